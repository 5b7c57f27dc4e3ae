# The generics that R users know from other fits.

#' Parameters and draws of a fit, by R's usual functions
#'
#' `coef()`, `vcov()` and `confint()` describe the posterior: its mean, its covariance
#' matrix, and central intervals. `as.matrix()`, `as.data.frame()` and `as.array()` are its
#' draws, which all weigh the same (see [as_draws.smc_fit()]); `weights()` are those of the
#' weighted draws, `fit$particles`.
#'
#' `update()` makes the fit again with some arguments changed. The target is that of the
#' fit, unless another is given; other arguments stay as they were in `fit$call`, and are
#' evaluated anew. Where the changes ask for more islands, or for a smaller error
#' (`precision`), and for nothing else, islands are added by [smc_extend()]: not where
#' `max_evals` was given. `keep` may be changed with them, from all draws to fewer.
#'
#' `nobs()` is the number of terms of the log likelihood, for a Stan program that has
#' them as `log_lik`, and for fits of brms. Any other log density does not tell.
#'
#' @param object,x a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param parm which variables (names or numbers); by default all of them.
#' @param level the probability of the intervals (number in (0, 1)).
#' @param row.names,optional as of [as.data.frame()].
#' @param stringsAsFactors not used: draws are numbers. [data.frame()] and its like give it.
#' @param generated as in [as_draws.smc_fit()].
#' @param variables which variables (character vector of names); NULL for the first four.
#' @param ... for `update()`, the arguments to change, by name; for `pairs()`, arguments of
#'   [graphics::pairs()]; otherwise not used.
#' @return `coef()`: a named numeric vector. `vcov()`: a matrix. `confint()`: a matrix with a
#'   row a variable and two columns. `as.matrix()`, `as.data.frame()`: a row a draw, the
#'   islands below each other, and a column a variable. `as.array()`: iterations x islands x
#'   variables, as bayesplot takes them: `bayesplot::mcmc_hist(fit)`. `weights()`: numbers
#'   that sum to one. `nobs()`: a whole number. `update()`: a fit. `pairs()` draws the
#'   variables against each other, and returns the fit, invisibly.
#' @section What does not apply: `logLik()`, and so `AIC()` and `BIC()`, `deviance()`,
#'   `df.residual()`, `fitted()`, `residuals()`, `simulate()`, `sigma()`, `formula()` and
#'   `anova()`, and `mean()`, `median()`, `quantile()`, `hist()` and `density()`, which are of
#'   numbers, are errors that say what to use instead. For fits of brms `fitted()`, `residuals()`, `formula()` and
#'   `family()` are brms's own.
#' @section Errors: `autosmc_error_input` when an argument is not what it should be, or when
#'   a function does not apply to the fit.
#' @seealso [predict.smc_fit()] for quantities that depend on the variables,
#'   [tidy.smc_fit()] for data frames, [log_evidence()].
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' coef(fit)
#' sqrt(diag(vcov(fit)))
#' confint(fit, "x1", level = 0.9)
#' head(as.data.frame(fit), 3)
#' update(fit, islands = 4)
#' @importFrom graphics hist pairs
#' @importFrom stats anova BIC coef confint density deviance df.residual family fitted formula logLik median nobs
#'   quantile residuals sigma simulate update vcov weights
#' @name coef.smc_fit
NULL

# the posterior ---------------------------------------------------------------

#' @rdname coef.smc_fit
#' @export
coef.smc_fit <- function(object, ...) {
  check_dots_empty(...)
  object <- folded(object)
  stats::setNames(weighted_moments(object)$mean, colnames(object$particles))
}

#' @rdname coef.smc_fit
#' @export
vcov.smc_fit <- function(object, ...) {
  check_dots_empty(...)
  if (is.matrix(object$moments$covariance)) {
    return(object$moments$covariance)
  }
  check_has_draws(object)
  object <- folded(object)
  weighted_covariance(object$particles, exp(object$log_weights), coef(object))
}

#' @rdname coef.smc_fit
#' @export
confint.smc_fit <- function(object, parm, level = 0.95, ...) {
  check_number(level, "level", 0, 1, open = TRUE)
  check_dots_empty(...)
  check_has_draws(object)
  names <- colnames(object$particles)
  if (missing(parm)) {
    parm <- names
  } else if (is.numeric(parm) && all(parm %in% seq_along(names))) {
    parm <- names[parm]
  }
  parm <- check_variables(parm, names, "parm")
  object <- folded(object)
  object$particles <- object$particles[, parm, drop = FALSE]
  p <- central(level)
  bounds <- t(weighted_quantiles(object, p))
  dimnames(bounds) <- list(parm, paste(format(100 * p, trim = TRUE, digits = 3), "%"))
  bounds
}

#' @rdname coef.smc_fit
#' @export
nobs.smc_fit <- function(object, ...) {
  check_dots_empty(...)
  if (is_of_brmsfit(object)) {
    return(nobs(object$target$brmsfit))
  }
  n <- length(log_lik_names(object))
  if (n == 0) {
    abort(c(
      "{.fn nobs} is not known: a log density does not tell how many observations it has.",
      "i" = "That of a Stan program with {.code log_lik} is."
    ))
  }
  n
}

# draws -----------------------------------------------------------------------

#' @rdname coef.smc_fit
#' @export
as.matrix.smc_fit <- function(x, ..., generated = FALSE) {
  check_dots_empty(...)
  rows <- equal_rows(x)
  with_generated(x$particles[rows, , drop = FALSE], x, rows, generated)
}

#' @rdname coef.smc_fit
#' @export
as.data.frame.smc_fit <- function(x, row.names = NULL, optional = FALSE, ..., stringsAsFactors = FALSE) {
  as.data.frame(as.matrix(x, ...), row.names = row.names, optional = optional)
}

#' @rdname coef.smc_fit
#' @export
as.array.smc_fit <- function(x, ...) {
  draws <- as.matrix(x, ...)
  n_chains <- nchains.smc_fit(x)
  names <- list(iteration = NULL, chain = NULL, variable = colnames(draws))
  array(draws, c(nrow(draws) / n_chains, n_chains, ncol(draws)), names)
}

#' @rdname coef.smc_fit
#' @export
weights.smc_fit <- function(object, ...) {
  check_dots_empty(...)
  check_has_draws(object)
  exp(object$log_weights)
}

#' @rdname coef.smc_fit
#' @export
pairs.smc_fit <- function(x, variables = NULL, ...) {
  variables <- check_variables(variables, colnames(x$particles), most = 4)
  draws <- as.matrix(x)[, variables, drop = FALSE]
  if (ncol(draws) < 2) {
    abort("{.fn pairs} takes at least two {.arg variables}.")
  }
  rows <- round(seq(1, nrow(draws), length.out = min(nrow(draws), 1000)))
  looks <- list(pch = 20, cex = 0.4, col = grDevices::adjustcolor(okabe_ito["blue"], 0.5))
  given <- list(...)
  looks[names(given)] <- given
  do.call(graphics::pairs, c(list(draws[rows, ]), looks))
  invisible(x)
}

# what does not apply -----------------------------------------------------------

# A method that says what to use instead: the defaults of R return NULL, or complain of what
# a fit is made of. of: what the generic calls its first argument.
does_not_apply <- function(name, instead, of = "object") {
  force(instead)
  force(name)
  method <- function(object, ...) {
    abort(c("{.fn {name}} does not apply to a fit of {.fn smc}.", "i" = instead))
  }
  names(formals(method))[1] <- of
  method
}

log_density_only <- "A log density has no observations and predictions of its own: see {.fn predict}."

#' @export
logLik.smc_fit <- does_not_apply(
  "logLik",
  "A Bayesian fit has no maximised likelihood; see {.fn log_evidence}, and {.fn loo} for predictions."
)

#' @export
BIC.smc_fit <- does_not_apply(
  "BIC",
  "The evidence itself is known: see {.fn compare_evidence}. {.fn bayestestR::bayesfactor_models} takes fits as its
    arguments, not a list of them: {.code do.call(bayestestR::bayesfactor_models, fits)}."
)

#' @export
deviance.smc_fit <- does_not_apply("deviance", "See {.fn log_evidence}, and {.fn loo} for predictions.")

#' @export
df.residual.smc_fit <- does_not_apply("df.residual", log_density_only)

#' @export
fitted.smc_fit <- function(object, ...) {
  if (is_of_brmsfit(object)) fitted(as_brmsfit(object), ...) else does_not_apply("fitted", log_density_only)()
}

#' @export
residuals.smc_fit <- function(object, ...) {
  if (is_of_brmsfit(object)) residuals(as_brmsfit(object), ...) else does_not_apply("residuals", log_density_only)()
}

#' @export
anova.smc_fit <- does_not_apply("anova", "Models are compared by {.fn compare_evidence}.")

#' @export
simulate.smc_fit <- does_not_apply("simulate", log_density_only)

#' @export
sigma.smc_fit <- does_not_apply("sigma", log_density_only)

#' @export
formula.smc_fit <- function(x, ...) {
  if (is_of_brmsfit(x)) formula(x$target$brmsfit) else does_not_apply("formula", "Its model is {.code fit$target}.")()
}

#' @export
family.smc_fit <- function(object, ...) {
  if (is_of_brmsfit(object)) family(object$target$brmsfit) else does_not_apply("family", log_density_only)()
}

#' @exportS3Method posterior::rhat
rhat.smc_fit <- does_not_apply(
  "rhat", "It is of one variable: {.code posterior::summarise_draws(fit)} has that of each.", "x"
)

what_has_draws <- "See {.fn coef}, {.fn confint} and {.fn summary}; {.fn as.data.frame} has the draws."

#' @export
mean.smc_fit <- does_not_apply("mean", what_has_draws, of = "x")

#' @export
quantile.smc_fit <- does_not_apply("quantile", what_has_draws, of = "x")

#' @export
median.smc_fit <- does_not_apply("median", what_has_draws, of = "x")

what_shows_draws <- "See {.code plot(fit, \"draws\")}; {.fn as.data.frame} has the draws."

#' @export
hist.smc_fit <- does_not_apply("hist", what_shows_draws, of = "x")

#' @export
density.smc_fit <- does_not_apply("density", what_shows_draws, of = "x")
