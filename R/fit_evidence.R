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
#'   attribute. It prints with its error, and calculates as a plain number; only `c()` and `sum()` keep errors. The
#'   squared error of a sum is the sum of those of its fits; a fit that is in it twice has twice its error.
#' @seealso [compare_evidence()], which has the errors of differences too; [smc_append()].
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

# parts: for each number the errors that it is made of, independent of each other, with signs, and named by the fits.
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

# A plain number among them is known exactly.
#' @export
c.log_evidence <- function(...) {
  parts_of <- function(x) if (inherits(x, "log_evidence")) attr(x, "parts") else rep(list(numeric()), length(x))
  new_log_evidence(unlist(lapply(list(...), as.numeric)), unlist(lapply(list(...), parts_of), recursive = FALSE))
}

# What the same fit has contributed is one error, which may cancel.
#' @export
sum.log_evidence <- function(..., na.rm = FALSE) {
  all <- c.log_evidence(...)
  errors <- unlist(attr(all, "parts"))
  new_log_evidence(sum(as.numeric(all)), list(if (is.null(errors)) numeric() else rowsum(errors, names(errors))[, 1]))
}

# The error is that of the number itself, and of nothing else that is computed from it.
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
