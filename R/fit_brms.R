# as_brmsfit(), and methods of fits for the generics that brms uses.

#' A fit as a brmsfit
#'
#' Puts the draws of a fit into the `brmsfit` from which its target was made, with the parameter names of brms
#' (`b_Days`, `sd_Subject__Intercept`). All functions of brms work on the result: `summary()`, `fitted()`, `plot()`,
#' `loo()` and the others.
#'
#' The following also work on the fit itself: `posterior_predict()`, `posterior_epred()`, `posterior_linpred()`,
#' `predictive_error()`, `predictive_interval()`, `posterior_interval()`, `log_lik()`, `bayes_R2()`,
#' `conditional_effects()`, `conditional_smooths()`, `hypothesis()`, `pp_check()`, `fixef()`, `ranef()`, `VarCorr()`,
#' `loo()`, `fitted()`, `residuals()` and `predict()`. Each makes a `brmsfit` first; if you use several of them, it is
#' quicker to call `as_brmsfit()` once.
#'
#' The draws have equal weights, as those of [as.matrix()][as.matrix.smc_fit]; each island is a chain. Resampling
#' repeats some draws, which the effective sample sizes of brms do not account for: use those of `summary(fit)`.
#' Diagnostics of Hamiltonian Monte Carlo, such as divergent transitions, are 0, and so is `lp__`. Functions that need
#' the compiled model of rstan, such as `bridge_sampler()` or `loo(moment_match = TRUE)`, work only if brms can compile.
#'
#' @param fit a fit that [smc()] made of a `brmsfit`, which may be one without draws, of `brm(empty = TRUE)`.
#' @return A `brmsfit`.
#' @section Errors: `autosmc_error_input` when the fit is not of a `brmsfit` or has no draws, and
#'   `autosmc_error_package` when brms or rstan is not installed.
#' @seealso [as_target.brmsfit()]
#' @examples
#' # compilation by brms takes a minute
#' \dontrun{
#' prior <- brms::prior(normal(0, 10), class = "b")
#' fit <- smc(brms::brm(dist ~ speed, cars, prior = prior, empty = TRUE))
#' in_brms <- as_brmsfit(fit)
#' brms::conditional_effects(in_brms)
#' }
#' @export
as_brmsfit <- function(fit) {
  check_class(fit, "fit", "smc_fit", "smc()")
  x <- fit$target$brmsfit
  if (is.null(x)) {
    label <- fit$target$label
    abort("{.arg fit} must be of a {.cls brmsfit}, not of the {label}.")
  }
  check_has_draws(fit)
  check_installed("brms", "for fits of brms")
  check_installed("rstan", "in which brms keeps its draws")
  draws <- as.array(fit, generated = TRUE)
  renamed <- fit$target$renamed
  dimnames(draws)[[3]] <- renamed_as(dimnames(draws)[[3]], stats::setNames(names(renamed), renamed))
  with_brms_draws(x, draws)
}

is_of_brmsfit <- function(fit) !is.null(fit$target$brmsfit)

# Calls a function of brms on the fit as a brmsfit. The methods below have the first argument of their generics.
ask_brms <- function(name, fit, ...) getExportedValue("brms", name)(as_brmsfit(fit), ...)

#' @rawNamespace S3method(rstantools::posterior_predict, smc_fit, brms_of_object)
#' S3method(rstantools::posterior_epred, smc_fit, brms_of_object)
#' S3method(rstantools::posterior_linpred, smc_fit, brms_of_object)
#' S3method(rstantools::predictive_error, smc_fit, brms_of_object)
#' S3method(rstantools::predictive_interval, smc_fit, brms_of_object)
#' S3method(rstantools::posterior_interval, smc_fit, brms_of_object)
#' S3method(rstantools::log_lik, smc_fit, brms_of_object)
#' S3method(rstantools::bayes_R2, smc_fit, brms_of_object)
#' S3method(bayesplot::pp_check, smc_fit, brms_of_object)
#' S3method(nlme::fixef, smc_fit, brms_of_object)
#' S3method(nlme::ranef, smc_fit, brms_of_object)
brms_of_object <- function(object, ...) ask_brms(.Generic, object, ...)

#' @rawNamespace S3method(brms::conditional_effects, smc_fit, brms_of_x)
#' S3method(brms::conditional_smooths, smc_fit, brms_of_x)
#' S3method(brms::hypothesis, smc_fit, brms_of_x)
#' S3method(nlme::VarCorr, smc_fit, brms_of_x)
brms_of_x <- function(x, ...) ask_brms(.Generic, x, ...)
