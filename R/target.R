# What a target is: a list of class `smc_target` with `dim`, `names`, `label`
# and what its kind needs. Two kinds exist, `smc_target_function` and
# `smc_target_native`, each with one file and one method of target_border().

new_target <- function(dim, names, label, ..., class) {
  structure(
    list(dim = dim, names = check_names(names, dim), label = label, ...),
    class = c(class, "smc_target")
  )
}

#' Turn an object into a target
#'
#' [smc()] and its like call this on what they are given, so that a bare
#' function can be sampled: `smc(f, dim = 3)`. Packages may add methods for
#' models of their own.
#'
#' @param x a target, or a function of a numeric vector that returns the log
#'   density (see [target_function()]).
#' @param ... for a function, the other arguments of [target_function()], of
#'   which `dim` is needed.
#' @return A target: an object of class `smc_target`.
#' @examples
#' as_target(function(x) -sum(x^2) / 2, dim = 3)
#' @export
as_target <- function(x, ...) {
  UseMethod("as_target")
}

#' @export
as_target.default <- function(x, ...) {
  abort_argument(x, "target", "a target or a function")
}

#' @export
as_target.smc_target <- function(x, ...) {
  check_dots_empty(...)
  x
}

#' @export
as_target.function <- function(
  x,
  ...,
  dim,
  gradient = NULL,
  vectorized = FALSE,
  names = NULL
) {
  check_dots_empty(...)
  target_function(x, dim, gradient, vectorized, names)
}

#' @export
print.smc_target <- function(x, ...) {
  cat("<smc_target> ", x$label, "\n", sep = "")
  cat("dimension: ", x$dim, " (", format_names(x$names), ")\n", sep = "")
  invisible(x)
}

format_names <- function(names, most = 4) {
  if (length(names) > most) {
    names <- c(names[seq_len(most - 1)], "...", names[length(names)])
  }
  paste(names, collapse = ", ")
}

# What the compiled code is given of a target: `dim` and either `evaluate`, an
# R function of (x, gradient), or the names of compiled routines, in whose place
# with_addresses() puts their addresses.
target_border <- function(target) {
  UseMethod("target_border")
}

# The log density, and gradient, at the rows of x: for tests and for the curious.
evaluate_target <- function(target, x, gradient = TRUE) {
  storage.mode(x) <- "double"
  .Call(r_evaluate, with_addresses(target_border(target)), x, gradient)
}
