# log_evidence(): the log evidence of a fit, a number with a standard error.

#' The log evidence of a fit
#'
#' The log evidence that a fit reports, as a number with its standard error (compare [logLik()]).
#'
#' @param object a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param ... not used.
#' @return A number of class `log_evidence`, `log_z` of the fit, with its `std_error` as an attribute. It prints with
#'   its error. In calculations it is a plain number, except that `c()` and `sum()` keep errors. The squared error of a
#'   sum is the sum of those of its fits; a fit that occurs twice contributes twice its error.
#' @seealso [compare_evidence()] for the errors of differences; [smc_append()].
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' log_evidence(fit)
#' log_evidence(fit) / log(10)
#' @export
log_evidence <- function(object, ...) {
  check_class(object, "object", "smc_fit", "smc()")
  check_dots_empty(...)
  fit <- paste(object$seed, format(object$log_z, digits = 17))
  new_log_evidence(object$log_z, list(stats::setNames(object$std_error, fit)))
}

# parts: for each number a vector of its independent error terms, with signs, named by the fits from which they come.
new_log_evidence <- function(log_z, parts) {
  std_error <- vapply(parts, function(errors) sqrt(sum(errors^2)), 0)
  structure(log_z, std_error = std_error, parts = parts, class = "log_evidence")
}

#' @export
print.log_evidence <- function(x, ...) {
  for (i in seq_along(x)) {
    error <- attr(x, "std_error")[i]
    decimals <- decimals_of_error(error)
    cat(
      "log evidence ", fixed(as.numeric(x)[i], decimals),
      if (!is.na(error)) sprintf(" (standard error %s)", fixed(error, decimals)), "\n",
      sep = ""
    )
  }
  invisible(x)
}

# Plain numbers are exact.
#' @export
c.log_evidence <- function(...) {
  parts_of <- function(x) if (inherits(x, "log_evidence")) attr(x, "parts") else rep(list(numeric()), length(x))
  new_log_evidence(unlist(lapply(list(...), as.numeric)), unlist(lapply(list(...), parts_of), recursive = FALSE))
}

# Terms of the same fit are added before they are squared, so that they may cancel.
#' @export
sum.log_evidence <- function(..., na.rm = FALSE) {
  all <- c.log_evidence(...)
  errors <- unlist(attr(all, "parts"))
  new_log_evidence(sum(as.numeric(all)), list(if (is.null(errors)) numeric() else rowsum(errors, names(errors))[, 1]))
}

# Other operations return plain numbers, without an error.
#' @export
Ops.log_evidence <- function(e1, e2) {
  plain <- function(x) if (inherits(x, "log_evidence")) as.numeric(x) else x
  operation <- get(.Generic, baseenv())
  if (missing(e2)) operation(plain(e1)) else operation(plain(e1), plain(e2))
}

# A column of plain numbers.
#' @export
as.data.frame.log_evidence <- function(x, row.names = NULL, optional = FALSE, ..., nm = "log_z") {
  as.data.frame(as.numeric(x), row.names, optional, ..., nm = nm)
}

#' @export
Math.log_evidence <- function(x, ...) get(.Generic, baseenv())(as.numeric(x), ...)
