# Checks of what a user's functions return. x: what they were given, the matrix of all points or the vector of one.

check_log_density <- function(value, x, arg) {
  n <- n_points(x)
  if (length(value) != n || !are_numbers(value)) {
    expected <- if (n == 1) "a number" else paste(n, "numbers, one a row")
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
      sprintf("a numeric matrix of %d rows, one a point, and %d columns", n, d)
    }
    abort(c("The gradient of {.arg {arg}} must be {expected}; it is {describe(value)}.", say_given(x)), "target")
  }
  as.double(value)
}

n_points <- function(x) if (is.matrix(x)) nrow(x) else 1

# Lines of an error message: what a function was given, and how R loses its rows.
say_given <- function(x) {
  if (!is.matrix(x)) {
    return(c(
      "i" = sprintf("The function was given one point, a vector of length %d.", length(x)),
      "i" = "A function of all points, a row each, takes {.code vectorized = TRUE}."
    ))
  }
  c(
    "i" = sprintf("The function was given %s, a row a point.", describe(x)),
    "i" = if (nrow(x) == 1) "R makes a vector of a single row or column, as in {.code x[i, ]} and what
      {.fn apply} and {.fn sapply} return: {.code drop = FALSE} or {.fn matrix} keeps the matrix."
  )
}

# A plain NA is logical in R, but means a missing number.
are_numbers <- function(x) is.numeric(x) || is.logical(x) && all(is.na(x))
