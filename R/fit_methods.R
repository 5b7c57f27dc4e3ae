# Methods of a fit for R's usual generics, such as coef() and as.matrix(), and errors for those that do not apply.

#' Parameters and draws of a fit, by R's usual functions
#'
#' `coef()`, `vcov()` and `confint()` return the posterior mean, covariance matrix and central intervals.
#' `as.matrix()`, `as.data.frame()` and `as.array()` return draws of equal weight (see [as_draws.smc_fit()]);
#' `weights()` returns the weights of the weighted draws, `fit$particles`.
#'
#' `update()` repeats the fit with some arguments changed. The target is that of the fit, unless another is given; other
#' arguments are those of `fit$call`, evaluated again. If the changes only ask for more islands or a smaller error
#' (`precision`), islands are added by [smc_extend()], unless `max_evals` was given. `keep` may be changed at the same
#' time, from all draws to fewer.
#'
#' `nobs()` is the number of terms of the log likelihood, for a Stan program that has them as `log_lik`, and for fits of
#' brms. It is unknown for any other log density.
#'
#' @param object,x a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param parm which variables (names or numbers); by default all of them.
#' @param level the probability of the intervals (number in (0, 1)).
#' @param row.names,optional as of [as.data.frame()].
#' @param stringsAsFactors not used: draws are numbers. [data.frame()] and its like pass it.
#' @param generated as in [as_draws.smc_fit()].
#' @param variables which variables (character vector of names); NULL for the first four.
#' @param ... for `update()`, the arguments to change, by name; for `pairs()`, arguments of
#'   [graphics::pairs()]; otherwise not used.
#' @return `coef()`: a named numeric vector. `vcov()`: a matrix. `confint()`: a matrix with a row for each variable and
#'   two columns. `as.matrix()`, `as.data.frame()`: a row for each draw, island by island, and a column for each
#'   variable. `as.array()`: iterations x islands x variables, the format of bayesplot: `bayesplot::mcmc_hist(fit)`.
#'   `weights()`: numbers that sum to one. `nobs()`: a whole number. `update()`: a fit. `pairs()` plots the variables
#'   against each other, and returns the fit, invisibly.
#' @section What does not apply: `logLik()`, and so `AIC()` and `BIC()`, `deviance()`, `df.residual()`, `fitted()`,
#'   `residuals()`, `simulate()`, `sigma()`, `formula()` and `anova()`, and the functions of vectors `mean()`,
#'   `median()`, `quantile()`, `hist()` and `density()` are errors that say what to use instead. For fits of brms,
#'   `fitted()`, `residuals()`, `formula()` and `family()` are brms's own.
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
      "i" = "It is known for a Stan program with {.code log_lik}."
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
  names <- colnames(x$particles)
  variables <- if (is.null(variables)) utils::head(names, 4) else check_variables(variables, names)
  draws <- as.matrix(x)[, variables, drop = FALSE]
  if (ncol(draws) < 2) {
    abort("{.fn pairs} takes at least two {.arg variables}.")
  }
  rows <- round(seq(1, nrow(draws), length.out = min(nrow(draws), 1000)))
  looks <- list(pch = 20, cex = 0.4, col = grDevices::adjustcolor(okabe_ito["blue"], 0.5))
  do.call(graphics::pairs, c(list(draws[rows, ]), utils::modifyList(looks, list(...))))
  invisible(x)
}

# what does not apply -----------------------------------------------------------

log_density_only <- "A log density has no observations and no predictions: see {.fn predict}."
what_has_draws <- "See {.fn coef}, {.fn confint} and {.fn summary}; {.fn as.data.frame} has the draws."
what_shows_draws <- "See {.code plot(fit, \"draws\")}; {.fn as.data.frame} has the draws."

# What to use instead of each generic: R's default methods would return NULL, or fail with an unrelated error.
used_instead <- c(
  logLik = "A Bayesian fit has no maximised likelihood; see {.fn log_evidence}, and {.fn loo} for predictions.",
  BIC = "The evidence itself is known: see {.fn compare_evidence}. {.fn bayestestR::bayesfactor_models} takes fits as
    its arguments, not a list of them: {.code do.call(bayestestR::bayesfactor_models, fits)}.",
  deviance = "See {.fn log_evidence}, and {.fn loo} for predictions.",
  anova = "Models are compared by {.fn compare_evidence}.",
  formula = "Its model is {.code fit$target}.",
  rhat = "It takes draws of one variable: {.code posterior::summarise_draws(fit)} has it for each.",
  df.residual = log_density_only, fitted = log_density_only, residuals = log_density_only, simulate = log_density_only,
  sigma = log_density_only, family = log_density_only,
  mean = what_has_draws, quantile = what_has_draws, median = what_has_draws,
  hist = what_shows_draws, density = what_shows_draws
)

does_not_apply <- function(name) {
  abort(c("{.fn {name}} does not apply to a fit of {.fn smc}.", "i" = used_instead[[name]]))
}

#' @rawNamespace S3method(logLik, smc_fit, refused_object)
#' S3method(BIC, smc_fit, refused_object)
#' S3method(deviance, smc_fit, refused_object)
#' S3method(df.residual, smc_fit, refused_object)
#' S3method(anova, smc_fit, refused_object)
#' S3method(simulate, smc_fit, refused_object)
#' S3method(sigma, smc_fit, refused_object)
refused_object <- function(object, ...) does_not_apply(.Generic)

#' @rawNamespace S3method(posterior::rhat, smc_fit, refused_x)
#' S3method(mean, smc_fit, refused_x)
#' S3method(quantile, smc_fit, refused_x)
#' S3method(median, smc_fit, refused_x)
#' S3method(hist, smc_fit, refused_x)
#' S3method(density, smc_fit, refused_x)
refused_x <- function(x, ...) does_not_apply(.Generic)

#' @export
fitted.smc_fit <- function(object, ...) {
  if (is_of_brmsfit(object)) fitted(as_brmsfit(object), ...) else does_not_apply("fitted")
}

#' @export
residuals.smc_fit <- function(object, ...) {
  if (is_of_brmsfit(object)) residuals(as_brmsfit(object), ...) else does_not_apply("residuals")
}

#' @export
formula.smc_fit <- function(x, ...) {
  if (is_of_brmsfit(x)) formula(x$target$brmsfit) else does_not_apply("formula")
}

#' @export
family.smc_fit <- function(object, ...) {
  if (is_of_brmsfit(object)) family(object$target$brmsfit) else does_not_apply("family")
}
