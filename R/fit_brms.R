#' The fit of a model of brms, as brms has it
#'
#' Puts the draws of a fit into the `brmsfit` that it was made of, under the names that brms gives its parameters
#' (`b_Days`, `sd_Subject__Intercept`). All that brms does with its own fits it then does with this one:
#' `summary()`, `fitted()`, `plot()`, `loo()` and all the rest.
#'
#' These it does with the fit itself: `posterior_predict()`, `posterior_epred()`, `posterior_linpred()`,
#' `predictive_error()`, `predictive_interval()`, `posterior_interval()`, `log_lik()`, `bayes_R2()`,
#' `conditional_effects()`, `conditional_smooths()`, `hypothesis()`, `pp_check()`, `fixef()`, `ranef()`, `VarCorr()`,
#' `loo()`, `fitted()`, `residuals()` and `predict()`. Each makes a `brmsfit` first, so that for several of them it is
#' quicker to make one by `as_brmsfit()`.
#'
#' The draws weigh the same, as those of [as.matrix()][as.matrix.smc_fit] do; each island is a chain. Some are there
#' several times, which effective sample sizes of brms do not see: those of the fit are in `summary(fit)`. What brms
#' reads of Hamiltonian Monte Carlo, such as divergent transitions, is 0, and so is `lp__`. What needs the compiled
#' model of rstan, such as `bridge_sampler()` or `loo(moment_match = TRUE)`, does not work where brms cannot compile.
#'
#' @param fit a fit that [smc()] made of a `brmsfit`, which may be one without draws, of `brm(empty = TRUE)`.
#' @return A `brmsfit`.
#' @section Errors: `autosmc_error_input` when the fit is not of a `brmsfit` or has no draws, and
#'   `autosmc_error_package` when brms or rstan is not installed.
#' @seealso [as_target.brmsfit()]
#' @examples
#' # brms compiles for a minute, which is longer than an example may take
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
  as_brms_has_it(x, draws)
}

is_of_brmsfit <- function(fit) !is.null(fit$target$brmsfit)

# What brms does with its fits.
ask_brms <- function(name, fit, ...) getExportedValue("brms", name)(as_brmsfit(fit), ...)

# The methods ----------------------------------------------------------------------

#' @exportS3Method rstantools::posterior_predict
posterior_predict.smc_fit <- function(object, ...) ask_brms("posterior_predict", object, ...)

#' @exportS3Method rstantools::posterior_epred
posterior_epred.smc_fit <- function(object, ...) ask_brms("posterior_epred", object, ...)

#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.smc_fit <- function(object, transform = FALSE, ...) {
  ask_brms("posterior_linpred", object, transform = transform, ...)
}

#' @exportS3Method rstantools::predictive_error
predictive_error.smc_fit <- function(object, ...) ask_brms("predictive_error", object, ...)

#' @exportS3Method rstantools::predictive_interval
predictive_interval.smc_fit <- function(object, ...) ask_brms("predictive_interval", object, ...)

#' @exportS3Method rstantools::posterior_interval
posterior_interval.smc_fit <- function(object, ...) ask_brms("posterior_interval", object, ...)

#' @exportS3Method rstantools::log_lik
log_lik.smc_fit <- function(object, ...) ask_brms("log_lik", object, ...)

#' @exportS3Method rstantools::bayes_R2
bayes_R2.smc_fit <- function(object, ...) ask_brms("bayes_R2", object, ...)

#' @exportS3Method brms::conditional_effects
conditional_effects.smc_fit <- function(x, ...) ask_brms("conditional_effects", x, ...)

#' @exportS3Method brms::conditional_smooths
conditional_smooths.smc_fit <- function(x, ...) ask_brms("conditional_smooths", x, ...)

#' @exportS3Method brms::hypothesis
hypothesis.smc_fit <- function(x, ...) ask_brms("hypothesis", x, ...)

#' @exportS3Method bayesplot::pp_check
pp_check.smc_fit <- function(object, ...) ask_brms("pp_check", object, ...)

#' @exportS3Method nlme::fixef
fixef.smc_fit <- function(object, ...) ask_brms("fixef", object, ...)

#' @exportS3Method nlme::ranef
ranef.smc_fit <- function(object, ...) ask_brms("ranef", object, ...)

#' @exportS3Method nlme::VarCorr
VarCorr.smc_fit <- function(x, sigma = 1, ...) ask_brms("VarCorr", x, sigma = sigma, ...)
