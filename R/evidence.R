# The evidence of a model, and comparison of models by it.

# one model -------------------------------------------------------------------

#' The log evidence of a fit
#'
#' As [logLik()] is for a maximum likelihood fit: a number that knows its error. It is the
#' one of `fit$estimates` that the fit reports.
#'
#' @param object a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param ... not used.
#' @return A number of class `log_evidence`, `log_z` of the fit, with its `std_error` as an
#'   attribute. It prints with its error, and calculates as a plain number.
#' @seealso [compare_evidence()], which has the errors of differences too.
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' log_evidence(fit)
#' log_evidence(fit) / log(10)
#' @export
log_evidence <- function(object, ...) {
  check_class(object, "object", "smc_fit", "smc()")
  check_dots_empty(...)
  structure(object$log_z, std_error = object$std_error, class = "log_evidence")
}

#' @export
print.log_evidence <- function(x, ...) {
  error <- attr(x, "std_error")
  decimals <- decimals_of_error(error)
  cat(
    "log evidence ", fixed(as.numeric(x), decimals),
    if (!is.na(error)) sprintf(" (standard error %s)", fixed(error, decimals)), "\n",
    sep = ""
  )
  invisible(x)
}

# The error is that of the number itself, and of nothing that is computed from it.
#' @export
Ops.log_evidence <- function(e1, e2) {
  plain <- function(x) if (inherits(x, "log_evidence")) as.numeric(x) else x
  operation <- get(.Generic, baseenv())
  if (missing(e2)) operation(plain(e1)) else operation(plain(e1), plain(e2))
}

# The number alone, in a column, as that of any other number.
#' @export
as.data.frame.log_evidence <- function(x, row.names = NULL, optional = FALSE, ..., nm = "log_z") {
  as.data.frame(as.numeric(x), row.names, optional, ..., nm = nm)
}

#' @export
Math.log_evidence <- function(x, ...) get(.Generic, baseenv())(as.numeric(x), ...)

# the table -------------------------------------------------------------------

#' Compare models by their evidence
#'
#' Bayes factors and posterior model probabilities, with their standard errors.
#'
#' The errors of the fits are taken to be independent: make each with a seed of its
#' own, as [smc()] does unless told otherwise. Fits of similar targets that share a
#' seed are correlated.
#'
#' @param ... two or more fits of [smc()], [smc_adapt()] or [smc_run()], or results of
#'   `bridgesampling::bridge_sampler()`, or a list of them; all for the same data, and with
#'   log densities from which no constant has been dropped. Beside these, what is known from elsewhere: a result of
#'   [log_evidence()], or numbers as `c(log_z = -12.3, std_error = 0.1)`, with the error 0 for what is known exactly. A
#'   list or a data frame of one row with these names, such as [glance()] returns, is taken too.
#' @param prior_prob prior probabilities of the models (numeric vector, not negative,
#'   that sums to one); NULL for equal ones.
#' @param model_names names of the models (character vector); NULL for the names of
#'   the arguments, or the expressions given.
#' @return A data frame of class `smc_evidence`, a row a model in the order given:
#'
#' * `model`; `log_z` and its `std_error`, as the fit has them;
#' * `biased`: whether `log_z` comes of a run that is biased, as those of
#'   [smc_adapt()] are (NA for what is no fit);
#' * `converged`: whether all diagnostics of the fit have passed, as `glance()` has it (NA
#'   where there are none, as for what is no fit);
#' * `log_bf`, the log Bayes factor of the model over the best one, the one of the
#'   largest `log_z`, `bf`, the Bayes factor, and `log_bf_error`, the standard error of its logarithm (of the best one both are
#'   0; which one that is, is taken as given);
#' * `prior_prob`; `post_prob`, the posterior probability of the model, and
#'   `post_prob_error`, its standard error.
#'
#'   Errors are by the delta method, which is good when they are small: a `std_error`
#'   of `log_z` well below 1. They are NA where one that they need is: that of a fit with
#'   one island, or of a repeated or warped bridge sample.
#'
#'   It prints without `biased` and `prior_prob`, each number followed by its error, and
#'   with `converged` where a fit has not. `plot()` and `ggplot2::autoplot()` show the log Bayes factors with intervals of two
#'   standard errors, and the posterior probabilities. `tidy()` has the columns under the names of broom. A part of the
#'   table that has lost one of its columns is a plain tibble.
#' @section Warnings: Of class `autosmc_warning_comparison`, when an error is missing,
#'   an estimate is biased, or two fits share a seed. Of class
#'   `autosmc_warning_unreliable`, when diagnostics of a fit have failed. Of class
#'   `autosmc_warning_prior`, when priors are improper (`fit$improper`), unless all models have
#'   an improper prior of the same parameters, so that its constant cancels. Of class
#'   `autosmc_warning_data`, when the observations are known not to be the same: how many there are,
#'   or the values of the response, in whatever order. They are known where the data of a Stan program, or those of
#'   an object of TMB, have a `y`, `Y` or `N`, and where the target was given its `response` or `nobs`
#'   (see [target_function()]).
#' @section Errors: `autosmc_error_input` for fewer than two fits, for something that is
#'   no fit, and for other arguments that are not what they should be.
#' @source Kass and Raftery (1995), *Bayes factors*, Journal of the American
#'   Statistical Association 90, 773-795.
#' @seealso [logml.smc_fit()] for the functions of the package bridgesampling.
#' @examples
#' # observations of a mean mu, with two priors for it
#' y <- c(0.4, 1.2, -0.3, 0.9, 1.5)
#' fit_with_prior <- function(sd, seed) {
#'   log_joint <- function(mu) { # of all particles, a row each
#'     dnorm(mu, 0, sd, log = TRUE) + rowSums(dnorm(outer(c(mu), y, "-"), log = TRUE))
#'   }
#'   gradient <- function(mu) -mu / sd^2 + sum(y) - length(y) * mu
#'   smc(log_joint,
#'     dim = 1, gradient = gradient, vectorized = TRUE, names = "mu",
#'     n_particles = 64, n_steps = 4, rounds = 1, seed = seed
#'   )
#' }
#' compare_evidence(vague = fit_with_prior(10, seed = 1), narrow = fit_with_prior(1, seed = 2))
#' @export
compare_evidence <- function(..., prior_prob = NULL, model_names = NULL) {
  models <- list(...)
  expressions <- as.list(substitute(list(...)))[-1]
  if (length(models) == 1 && identical(class(models[[1]]), "list")) {
    models <- models[[1]]
    expressions <- expressions_in(expressions[[1]], models)
  }
  n <- length(models)
  if (n < 2) {
    abort(
      "{.fn compare_evidence} takes at least two fits to compare, not {n}.",
      "input"
    )
  }
  labels <- check_labels(model_names, expressions)
  estimates <- bind_rows(Map(evidence_of, models, labels))
  prior_prob <- check_prior_prob(prior_prob, n)
  warn_of_comparison(labels, estimates)
  warn_of_models(labels, models, estimates)
  best <- which.max(estimates$log_z)
  posterior <- posterior_probabilities(estimates, prior_prob)
  tibble::new_tibble(
    list(
      model = labels,
      log_z = estimates$log_z,
      std_error = estimates$std_error,
      biased = estimates$biased,
      converged = estimates$converged,
      log_bf = estimates$log_z - estimates$log_z[best],
      bf = exp(estimates$log_z - estimates$log_z[best]),
      log_bf_error = error_of_difference(estimates$std_error, best),
      prior_prob = prior_prob,
      post_prob = posterior$estimate,
      post_prob_error = posterior$std_error
    ),
    class = "smc_evidence"
  )
}

# A table without some of the columns is a tibble like any other.
#' @export
`[.smc_evidence` <- function(x, ...) {
  part <- NextMethod()
  if (is.data.frame(part) && !all(evidence_columns %in% names(part))) plain_tibble(part) else part
}

#' @export
`names<-.smc_evidence` <- function(x, value) {
  if (all(evidence_columns %in% value)) NextMethod() else plain_tibble(`names<-`(unclass(x), value))
}

plain_tibble <- function(x) {
  class(x) <- c("tbl_df", "tbl", "data.frame")
  x
}

evidence_columns <- c(
  "model", "log_z", "std_error", "converged", "log_bf", "log_bf_error", "post_prob", "post_prob_error"
)

#' @export
print.smc_evidence <- function(x, ...) {
  errors <- c(x$std_error, x$log_bf_error)
  errors <- errors[is.finite(errors) & errors > 0]
  decimals <- if (length(errors) > 0) decimals_of_error(min(errors)) else 3
  table <- data.frame(
    model = x$model,
    log_z = fixed(x$log_z, decimals),
    std_error = fixed(x$std_error, decimals),
    log_bf = fixed(x$log_bf, decimals),
    std_error = fixed(x$log_bf_error, decimals),
    post_prob = format_probability(x$post_prob),
    std_error = formatC(x$post_prob_error, digits = 1, format = "g"),
    check.names = FALSE
  )
  if (any(x$converged %in% FALSE)) {
    table$converged <- x$converged
  }
  print(table, row.names = FALSE)
  invisible(x)
}

#' @export
tidy.smc_evidence <- function(x, ...) {
  check_dots_empty(...)
  new_table(
    term = x$model, estimate = x$log_bf, std.error = x$log_bf_error, bf = x$bf,
    post.prob = x$post_prob, post.prob.error = x$post_prob_error
  )
}

#' @export
glance.smc_evidence <- function(x, ...) {
  check_dots_empty(...)
  best <- which.max(x$post_prob)
  new_table(n_models = nrow(x), best = x$model[best], post_prob = x$post_prob[best])
}

#' @export
plot.smc_evidence <- function(x, ...) {
  check_dots_empty(...)
  base_evidence(evidence_data(x))
  invisible(x)
}

#' @method autoplot smc_evidence
#' @rawNamespace S3method(ggplot2::autoplot, smc_evidence)
autoplot.smc_evidence <- function(object, ...) {
  check_dots_empty(...)
  gg_evidence(evidence_data(object))
}

# its columns -----------------------------------------------------------------

# One row: log_z, std_error, biased, converged, seed, which is NA where there is no error that others could share. label:
# what an error calls it.
evidence_of <- function(x, label) {
  if (inherits(x, "smc_fit")) {
    biased <- x$runs$biased[nrow(x$runs)]
    return(data.frame(
      log_z = x$log_z, std_error = x$std_error, biased = biased,
      converged = converged(x), seed = if (x$std_error %in% 0) NA else x$seed
    ))
  }
  known <- known_evidence(x)
  if (!is.null(known)) {
    return(known_row(known[1], known[2]))
  }
  if (!inherits(x, c("bridge", "bridge_list"))) {
    abort_argument(
      x,
      label,
      "a fit of `smc()`, a result of `bridgesampling::bridge_sampler()` or `c(log_z = , std_error = )`"
    )
  }
  check_installed("bridgesampling", "for its results")
  # it knows the error of a single sample that is not warped
  error <- if (inherits(x, "bridge") && x$method == "normal") {
    bridgesampling::error_measures(x)$cv
  } else {
    NA_real_
  }
  known_row(bridgesampling::logml(x), error)
}

known_row <- function(log_z, std_error) {
  data.frame(log_z = log_z, std_error = std_error, biased = NA, converged = NA, seed = NA_real_)
}

# c(log_z, std_error) of what log_evidence() returns, or of numbers under these names: the error is NA where there is none.
# NULL for anything else.
known_evidence <- function(x) {
  if (inherits(x, "log_evidence")) {
    x <- list(log_z = as.numeric(x), std_error = attr(x, "std_error"))
  }
  number <- function(name) if (name %in% names(x)) x[[name]] else NA_real_
  if (inherits(x, "bridge_list") || !is.list(x) && !is.numeric(x) || !is_number(number("log_z"))) {
    return(NULL)
  }
  error <- number("std_error")
  if (is_number(error) && error >= 0 || is.na(error)) c(number("log_z"), error)
}

error_of_difference <- function(std_error, best) {
  error <- sqrt(std_error^2 + std_error[best]^2)
  error[best] <- 0
  error
}

# d p_i / d log z_j = p_i (1(i = j) - p_j)
posterior_probabilities <- function(estimates, prior_prob) {
  p <- exp(normalise_log(estimates$log_z + log(prior_prob)))
  n <- length(p)
  derivative <- p * (diag(n) - matrix(p, n, n, byrow = TRUE))
  variance <- derivative^2 %*% estimates$std_error^2
  list(estimate = p, std_error = sqrt(as.vector(variance)))
}

# What the models of a list are called: the names of its elements, the expressions of
# list(a, b), or else nothing.
expressions_in <- function(expression, models) {
  if (is.call(expression) && identical(expression[[1]], as.name("list"))) {
    return(as.list(expression)[-1])
  }
  stats::setNames(vector("list", length(models)), names(models))
}

# Names for the models: those given, those of the arguments, or the expressions; a
# call made by a program may have the fit itself where a person has an expression.
check_labels <- function(model_names, expressions) {
  n <- length(expressions)
  if (!is.null(model_names)) {
    if (!is.character(model_names) || length(model_names) != n || anyNA(model_names)) {
      abort_argument(
        model_names, "model_names", paste("a character vector of length", n)
      )
    }
    return(make.unique(model_names))
  }
  labels <- vapply(seq_len(n), function(i) {
    x <- expressions[[i]]
    if (is.language(x)) deparse(x)[1] else paste("model", i)
  }, "")
  given <- names(expressions)
  named <- if (is.null(given)) FALSE else nzchar(given)
  labels[named] <- given[named]
  make.unique(labels)
}

check_prior_prob <- function(prior_prob, n) {
  if (is.null(prior_prob)) {
    return(rep(1 / n, n))
  }
  of <- "probabilities that sum to one"
  check_numeric(prior_prob, "prior_prob", lengths = n, of = of)
  if (any(prior_prob < 0) || abs(sum(prior_prob) - 1) > 1e-8) {
    abort_argument(prior_prob, "prior_prob", paste("a vector of", of))
  }
  as.double(prior_prob)
}

warn_of_comparison <- function(labels, estimates) {
  without <- labels[is.na(estimates$std_error)]
  biased <- labels[estimates$biased %in% TRUE]
  seeds <- estimates$seed
  alike <- labels[!is.na(seeds) & seeds %in% seeds[duplicated(seeds)]]
  problems <- c(
    "!" = if (length(without) > 0) {
      "{.val {without}} {?has/have} no standard error: run more {.arg islands}."
    },
    "!" = if (length(biased) > 0) {
      "The estimate of {.val {biased}} is biased: use {.fn smc} or {.fn smc_run}."
    },
    "!" = if (length(alike) > 0) {
      "{.val {alike}} have the same {.arg seed}: their errors are not independent."
    }
  )
  if (length(problems) > 0) {
    cli::cli_warn(
      c("The standard errors of the comparison are unreliable.", problems),
      class = warning_class("comparison")
    )
  }
}

# Of what makes a comparison meaningless, however well each of the evidences is known.
warn_of_models <- function(labels, models, estimates) {
  warn_of_unconverged(labels, estimates)
  warn_of_improper(labels, models)
  warn_of_data(labels, models)
}

# The unknown constant of an improper prior cancels where all models have this prior of the same parameters.
warn_of_improper <- function(labels, models) {
  improper <- lapply(models, function(x) if (inherits(x, "smc_fit")) x$improper)
  which <- lapply(improper, function(x) sort(paste(x, names(x))))
  if (length(unique(which)) > 1) {
    without <- lengths(improper) > 0
    said <- sprintf("In %s: %s", labels[without], vapply(improper[without], several, ""))
    cli::cli_warn(
      c(
        "The comparison means nothing: the models have improper priors of different parameters, and with each of them
          an unknown constant in {.field log_z}.",
        bullets(length(said)),
        "i" = "Give these parameters proper priors."
      ),
      class = warning_class("prior")
    )
  }
}

# A line of a message for each of the n elements of `said`, in which nothing is markup.
bullets <- function(n) stats::setNames(sprintf("{said[%d]}", seq_len(n)), rep("*", n))

warn_of_unconverged <- function(labels, estimates) {
  failed <- labels[estimates$converged %in% FALSE]
  if (length(failed) > 0) {
    cli::cli_warn(
      c(
        "The comparison is not to be trusted: diagnostics of {.val {failed}} have failed.",
        "i" = "See what a fit says when it is printed, or its {.field diagnostics}."
      ),
      class = warning_class("unreliable")
    )
  }
}

# methods for bridgesampling --------------------------------------------------

#' Fits in the functions of bridgesampling
#'
#' Methods for generics of the package bridgesampling that compare models. Fits may stand beside
#' results of `bridgesampling::bridge_sampler()`, before or after them. For errors of
#' the Bayes factors and of the probabilities, see [compare_evidence()].
#'
#' bridgesampling takes the median of repetitions. The islands of a fit are not
#' treated as such: a fit is one estimate, an object of class `bridge` with the element
#' `logml`, which is `log_z` of the fit, by whichever of the two methods that is (see
#' [estimates]). Beside repetitions (`bridge_list`) that
#' come first, bridgesampling recycles it, and says so.
#'
#' `bayes_factor()` does as `bf()`, and names the models as they were given. Where a result of
#' bridgesampling comes first, the method is that package's own, which calls the models `x1`
#' and `x2`; use `bf()`, which names them. `bayestestR::bayesfactor_models()` takes the fits as its arguments; a list
#' of them never reaches this package: use `do.call(bayestestR::bayesfactor_models, fits)`.
#'
#' @param x,x1,bridge_object a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param x2 a fit, or a result of `bridgesampling::bridge_sampler()`.
#' @param log whether to return the log Bayes factor (TRUE or FALSE).
#' @param denominator the number of the fit that the others are compared with.
#' @param verbose not used.
#' @param ... for `post_prob()`, more of what `x2` may be; for `bayesfactor_models()`, fits; otherwise not used.
#' @param prior_prob,model_names as of [compare_evidence()].
#' @return `logml()`: `log_z` (number). `bf()`, and so `bayes_factor()`: the Bayes factor
#'   of `x1` over `x2`, an object of class `bf_default` with the elements `bf` and
#'   `log`. `bayesfactor_models()`: the table of that package. `post_prob()`: the posterior probabilities of the models, a named
#'   numeric vector. `error_measures()`: a list with `re2`, the squared relative error
#'   of `exp(log_z)`, its root `cv`, which is the standard error of `log_z`, and `cv` as a
#'   `percentage` (string).
#' @section Warnings: Of class `autosmc_warning_unreliable` from `bf()` and `post_prob()`, when
#'   diagnostics of a fit have failed.
#' @section Errors: `autosmc_error_input` when there is nothing to compare with, when
#'   something is no fit, and when the error of a fit with one island is asked for.
#' @examplesIf requireNamespace("bridgesampling", quietly = TRUE)
#' one <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' other <- smc(target_gaussian(2, sd = 1.5), n_particles = 128, n_steps = 8, seed = 2)
#' bridgesampling::bf(one, other)
#' bridgesampling::post_prob(one, other)
#' bridgesampling::error_measures(one)
#' @exportS3Method bridgesampling::logml
logml.smc_fit <- function(x, ...) {
  check_dots_empty(...)
  x$log_z
}

#' @rdname logml.smc_fit
#' @exportS3Method bridgesampling::bf
bf.smc_fit <- function(x1, x2, log = FALSE, ...) {
  if (missing(x2)) {
    abort("{.arg x2} is missing: a second fit to compare {.arg x1} with.", "input")
  }
  check_dots_empty(...)
  labels <- check_labels(NULL, list(substitute(x1), substitute(x2)))
  bayes_factor_of(x1, x2, check_flag(log, "log"), labels)
}

#' @rdname logml.smc_fit
#' @exportS3Method bridgesampling::bayes_factor
bayes_factor.smc_fit <- bf.smc_fit

#' @rdname logml.smc_fit
#' @exportS3Method bayestestR::bayesfactor_models
bayesfactor_models.smc_fit <- function(..., denominator = 1, verbose = TRUE) {
  models <- list(...)
  labels <- check_labels(NULL, as.list(substitute(list(...)))[-1])
  denominator <- check_count(denominator, "denominator", max = length(models))
  estimates <- bind_rows(Map(evidence_of, models, labels))
  warn_of_models(labels, models, estimates)
  structure(
    data.frame(Model = labels, log_BF = estimates$log_z - estimates$log_z[denominator]),
    denominator = denominator, BF_method = "marginal likelihoods (sequential Monte Carlo)",
    unsupported_models = FALSE, model_names = labels,
    class = c("bayesfactor_models", "see_bayesfactor_models", "data.frame")
  )
}

bayes_factor_of <- function(x1, x2, log, labels) {
  estimates <- bind_rows(list(evidence_of(x1, "x1"), evidence_of(x2, "x2")))
  warn_of_models(labels, list(x1, x2), estimates)
  bf <- bridgesampling::bf(estimates$log_z[1], estimates$log_z[2], log = log)
  attr(bf, "model_names") <- labels
  bf
}

#' @rdname loo.smc_fit
#' @exportS3Method bridgesampling::bridge_sampler
bridge_sampler.smc_fit <- function(samples, ...) {
  check_has_draws(samples)
  target <- samples$target
  if (!is.null(target$outputs)) {
    abort(
      c(
        "{.fn bridge_sampler} needs draws on the scale on which {.arg samples} was sampled.",
        "i" = "Those of a Stan program are of other variables: give bridgesampling a fit of
          rstan."
      ),
      "input"
    )
  }
  samples$particles <- unconstrain(target, samples$particles)
  # to look for a compiled routine takes longer than to call it
  evaluators <- with_addresses(target_interface(target))
  log_posterior <- function(u, data) {
    evaluate_target(
      target, matrix(u, 1),
      gradient = FALSE, unconstrained = TRUE, evaluators = evaluators
    )$log_density
  }
  bounds <- stats::setNames(rep(Inf, target$dim), target$names)
  bridgesampling::bridge_sampler(
    as.mcmc.list.smc_fit(samples),
    log_posterior = log_posterior, data = NULL, lb = -bounds, ub = bounds, ...
  )
}

#' @rdname logml.smc_fit
#' @exportS3Method bridgesampling::post_prob
post_prob.smc_fit <- function(x, ..., prior_prob = NULL, model_names = NULL) {
  models <- list(x, ...)
  n <- length(models)
  if (n < 2) {
    abort("{.fn post_prob} takes at least two fits to compare, not 1.", "input")
  }
  expressions <- c(list(substitute(x)), as.list(substitute(list(...)))[-1])
  labels <- check_labels(model_names, expressions)
  estimates <- bind_rows(Map(evidence_of, models, labels))
  prior_prob <- check_prior_prob(prior_prob, n)
  warn_of_models(labels, models, estimates)
  stats::setNames(posterior_probabilities(estimates, prior_prob)$estimate, labels)
}

#' @rdname logml.smc_fit
#' @exportS3Method bridgesampling::error_measures
error_measures.smc_fit <- function(bridge_object, ...) {
  check_dots_empty(...)
  cv <- bridge_object$std_error
  if (is.na(cv)) {
    abort("{.arg bridge_object} has no standard error: it needs more {.arg islands}.", "input")
  }
  list(re2 = cv^2, cv = cv, percentage = paste0(format(100 * cv, digits = 2), "%"))
}
