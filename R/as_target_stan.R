# Stan programs that other packages hold.

#' Targets from the objects of rstan, brms and CmdStanR
#'
#' The Stan program of a model or of a fit is compiled again, by [target_stan()], with
#' all its constants: the packages themselves leave out those that do not matter to
#' them. None of their draws is used.
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
  target_stan(x@stanmodel, data, ...)
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
  target_stan(paste(x$code(), collapse = "\n"), x$data_file(), ...)
}

check_stan_data <- function(data, what) {
  if (missing(data)) {
    abort(
      paste("{.arg data} is missing.", what, "does not keep its data."),
      "input"
    )
  }
}
