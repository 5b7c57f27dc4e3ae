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
