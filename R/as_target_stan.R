# Stan programs that other packages hold.

#' Targets from the objects of rstan, brms and CmdStanR
#'
#' The Stan program of a model or of a fit is compiled again, by [target_stan()], with
#' all its constants: the packages themselves leave out those that do not matter to
#' them. The target of a fit keeps the draws of the parameters, for
#' `smc(fit, reference = "draws")`.
#'
#' @param x a `stanmodel` or `stanfit` of rstan, a `brmsfit` of brms (with either
#'   backend), a `CmdStanModel` of CmdStanR, or one of its fits.
#' @param data the data, as in [target_stan()]. A `brmsfit` and the fits of CmdStanR have
#'   their own; a `stanfit` does not keep them, so that they are to be given once
#'   more.
#' @param ... further arguments of [target_stan()]: `include` and `seed`.
#' @return A target: an object of class `smc_target`.
#' @section Errors: Those of [target_stan()]; `autosmc_error_input` also when `data` are
#'   missing, or when CmdStanR's file of the data is no longer there, and
#'   `autosmc_error_package` when brms is not installed for a `brmsfit`.
#' @section Starting from draws: With `reference = "draws"` [smc()] starts from a
#'   distribution that is fitted to the draws, on the unconstrained scale. What is estimated
#'   is the same, and as unbiased: the draws are used for nothing else. Nor does it matter
#'   if they are not quite those of the posterior, since the scout's proposals compete with
#'   them.
#'
#'   All parameters must be among the draws: brms keeps them with
#'   `save_pars(all = TRUE)`, rstan without `pars`.
#' @section A fit of brms: Coefficients have flat priors in brms unless one is given,
#'   with which there is no evidence.
#'
#'   ```r
#'   fit <- brm(dist ~ speed, data = cars, prior = prior(normal(0, 10), class = "b"))
#'   smc(fit)
#'   ```
#' @name as_target.stanfit
NULL

#' @rdname as_target.stanfit
#' @export
as_target.stanmodel <- function(x, data, ...) {
  check_stan_data(data, "A Stan program")
  target_stan(x, data, ...)
}

#' @rdname as_target.stanfit
#' @export
as_target.stanfit <- function(x, data, ...) {
  check_stan_data(data, "A {.cls stanfit}")
  with_draws(target_stan(x@stanmodel, data, ...), draws_of_stanfit(x))
}

# From the slots, for which rstan need not be there: chains one below the other, without
# warm-up. NULL where there are none.
draws_of_stanfit <- function(x) {
  sim <- x@sim
  chains <- Map(function(chain, warmup) {
    draws <- do.call(cbind, chain)
    draws[seq_len(nrow(draws)) > warmup, , drop = FALSE]
  }, sim$samples, sim$warmup2)
  do.call(rbind, chains)
}

#' @rdname as_target.stanfit
#' @export
as_target.brmsfit <- function(x, ...) {
  check_installed("brms", "for the program and the data of a brmsfit")
  # brms is no dependency, not even a suggested one: it would bring rstan
  stancode <- getExportedValue("brms", "stancode")
  standata <- getExportedValue("brms", "standata")
  target_stan(as.character(stancode(x)), unclass(standata(x)), ...)
}

#' @rdname as_target.stanfit
#' @export
as_target.CmdStanModel <- function(x, data, ...) {
  check_stan_data(data, "A Stan program")
  target_stan(paste(x$code(), collapse = "\n"), data, ...)
}

#' @rdname as_target.stanfit
#' @export
as_target.CmdStanFit <- function(x, ...) {
  target <- target_stan(paste(x$code(), collapse = "\n"), x$data_file(), ...)
  with_draws(target, unclass(x$draws(format = "draws_matrix")))
}

check_stan_data <- function(data, what) {
  if (missing(data)) {
    abort(
      paste("{.arg data} is missing.", what, "does not keep its data."),
      "input"
    )
  }
}
