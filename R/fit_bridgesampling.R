# Methods of fits for the generics of the packages bridgesampling and bayestestR.

#' Fits in the functions of bridgesampling
#'
#' Methods for generics of the package bridgesampling that compare models. Fits may stand beside
#' results of `bridgesampling::bridge_sampler()`, before or after them. For errors of
#' the Bayes factors and of the probabilities, see [compare_evidence()].
#'
#' For bridgesampling, a fit is a single estimate: an object of class `bridge` whose element `logml` is its `log_z`. Its
#' islands are not repetitions, of which bridgesampling would take the median. If the first model is a `bridge_list` of
#' repetitions, bridgesampling recycles the fit, and says so.
#'
#' `bayes_factor()` is the same as `bf()`, and names the models as they were given. If the first model is a result of
#' bridgesampling, its own method is used, which calls the models `x1` and `x2`; `bf()` names them.
#' `bayestestR::bayesfactor_models()` takes fits as separate arguments, or a result of [smc_all()]. For another list of
#' fits use `do.call(bayestestR::bayesfactor_models, fits)`.
#'
#' @param x,x1,bridge_object a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param x2 a fit, or a result of `bridgesampling::bridge_sampler()`.
#' @param log whether to return the log Bayes factor (TRUE or FALSE).
#' @param denominator the number of the fit with which the others are compared.
#' @param verbose not used.
#' @param ... for `post_prob()`, further models, as `x2`; for `bayesfactor_models()`, fits; otherwise not used.
#' @param prior_prob,model_names as of [compare_evidence()].
#' @return `logml()`: `log_z` (number). `bf()`, and so `bayes_factor()`: the Bayes factor of `x1` over `x2`, an object
#'   of class `bf_default` with the elements `bf` and `log`. `bayesfactor_models()`: the table of that package.
#'   `post_prob()`: the posterior probabilities of the models, a named numeric vector. `error_measures()`: a list with
#'   `re2`, the squared relative error of `exp(log_z)`, its root `cv`, which is the standard error of `log_z`, and `cv`
#'   as a `percentage` (string).
#' @section Warnings: Of class `autosmc_warning_unreliable` from `bf()` and `post_prob()`, when
#'   diagnostics of a fit have failed.
#' @section Errors: `autosmc_error_input` for fewer than two models, for an object that is not a model, and for the
#'   error measures of a fit with one island.
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
    abort("{.arg x2} is missing: a second fit to compare {.arg x1} with.")
  }
  check_dots_empty(...)
  labels <- check_labels(NULL, list(substitute(x1), substitute(x2)))
  check_flag(log, "log")
  models <- list(x1, x2)
  estimates <- evidences_of(models, c("x1", "x2"))
  warn_of_models(labels, models, estimates)
  bf <- bridgesampling::bf(estimates$log_z[1], estimates$log_z[2], log = log)
  attr(bf, "model_names") <- labels
  bf
}

#' @rdname logml.smc_fit
#' @exportS3Method bridgesampling::bayes_factor
bayes_factor.smc_fit <- bf.smc_fit

#' @rdname logml.smc_fit
#' @exportS3Method bayestestR::bayesfactor_models
bayesfactor_models.smc_fit <- function(..., denominator = 1, verbose = TRUE) {
  given <- models_given(list(...), as.list(substitute(list(...)))[-1])
  models <- given$models
  labels <- check_labels(NULL, given$expressions)
  denominator <- check_count(denominator, "denominator", max = length(models))
  estimates <- evidences_of(models, labels)
  warn_of_models(labels, models, estimates)
  structure(
    data.frame(Model = labels, log_BF = estimates$log_z - estimates$log_z[denominator]),
    denominator = denominator, BF_method = "marginal likelihoods (sequential Monte Carlo)",
    unsupported_models = FALSE, model_names = labels,
    class = c("bayesfactor_models", "see_bayesfactor_models", "data.frame")
  )
}

#' @exportS3Method bayestestR::bayesfactor_models
bayesfactor_models.smc_fits <- bayesfactor_models.smc_fit

#' @rdname loo.smc_fit
#' @exportS3Method bridgesampling::bridge_sampler
bridge_sampler.smc_fit <- function(samples, ...) {
  check_has_draws(samples)
  target <- samples$target
  if (!is.null(target$outputs)) {
    abort(c(
      "{.fn bridge_sampler} needs draws on the scale on which {.arg samples} was sampled.",
      "i" = "The draws of a Stan program are on another scale: give bridgesampling a fit of rstan."
    ))
  }
  samples$particles <- unconstrain(target, samples$particles)
  # looking up a compiled routine takes longer than calling it
  evaluators <- with_addresses(target_interface(target))
  log_posterior <- function(u, data) {
    evaluate_target(target, matrix(u, 1), gradient = FALSE, unconstrained = TRUE, evaluators = evaluators)$log_density
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
  if (length(models) < 2) {
    abort("{.fn post_prob} takes at least two fits to compare, not 1.")
  }
  expressions <- c(list(substitute(x)), as.list(substitute(list(...)))[-1])
  labels <- check_labels(model_names, expressions)
  estimates <- evidences_of(models, labels)
  prior_prob <- check_prior_prob(prior_prob, labels)
  warn_of_models(labels, models, estimates)
  stats::setNames(posterior_probabilities(estimates, prior_prob)$estimate, labels)
}

#' @rdname logml.smc_fit
#' @exportS3Method bridgesampling::error_measures
error_measures.smc_fit <- function(bridge_object, ...) {
  check_dots_empty(...)
  cv <- bridge_object$std_error
  if (is.na(cv)) {
    abort("{.arg bridge_object} has no standard error: it needs more {.arg islands}.")
  }
  list(re2 = cv^2, cv = cv, percentage = paste0(format(100 * cv, digits = 2), "%"))
}
