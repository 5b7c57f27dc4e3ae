# Checks of the values of a user's functions. x: their argument, a matrix of all points or the vector of one point.

check_log_density <- function(value, x, arg) {
  n <- n_points(x)
  if (length(value) != n || !are_numbers(value)) {
    expected <- if (n == 1) "a number" else paste(n, "numbers, one per row")
    abort(c("{.arg {arg}} must return {expected}; it returned {describe(value)}.", say_given(x)), "target")
  }
  as.double(value)
}

check_gradient_value <- function(value, x, arg) {
  n <- n_points(x)
  d <- length(x) / n
  fits <- length(value) == n * d && (n == 1 || d == 1 || is.matrix(value) && nrow(value) == n)
  if (!fits || !are_numbers(value)) {
    expected <- if (n == 1) {
      paste("a numeric vector of length", d)
    } else {
      sprintf("a numeric matrix of %d rows, one per point, and %d columns", n, d)
    }
    abort(c("The gradient of {.arg {arg}} must be {expected}; it is {describe(value)}.", say_given(x)), "target")
  }
  as.double(value)
}

n_points <- function(x) if (is.matrix(x)) nrow(x) else 1

# Lines of an error message: the shape of the function's argument, and how R may have dropped the matrix.
say_given <- function(x) {
  if (!is.matrix(x)) {
    return(c(
      "i" = sprintf("The function was given one point, a vector of length %d.", length(x)),
      "i" = "For a function of all points, one per row, set {.code vectorized = TRUE}."
    ))
  }
  c(
    "i" = sprintf("The function was given %s, with one point per row.", describe(x)),
    "i" = if (nrow(x) == 1) "R turns a single row or column into a vector, as in {.code x[i, ]} and in the values of
      {.fn apply} and {.fn sapply}: {.code drop = FALSE} or {.fn matrix} keeps the matrix."
  )
}

# A vector of NA is logical in R; here it counts as missing numbers.
are_numbers <- function(x) is.numeric(x) || is.logical(x) && all(is.na(x))
