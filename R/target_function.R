# Targets that are R functions.

#' A target from R functions
#'
#' @param log_density a function: the log density, up to a constant that is what
#'   [smc()] estimates. Of a numeric vector of length `dim`, with a number as
#'   its value; or with `vectorized = TRUE`, of an `n x dim` matrix with a row a
#'   point, with `n` numbers as its value. `NaN` and `-Inf` are allowed and mean
#'   that the point is impossible. The value may carry the gradient in its
#'   attribute `"gradient"`, as the functions made by [stats::deriv()] do.
#' @param dim the dimension (positive integer).
#' @param gradient a function of the same argument: the gradient, a numeric
#'   vector of length `dim` (vectorised: an `n x dim` matrix); or NULL. Without a
#'   gradient here and in the attribute, central differences are used, at
#'   `2 dim` further calls an evaluation, and a message says so once a run.
#' @param vectorized whether the functions take all points at once (TRUE or
#'   FALSE). Much faster, since R's overhead is paid once and not once a point.
#' @param names names of the variables (character vector of length `dim`, no two
#'   the same); NULL for `x1`, `x2`, .... They are the names of the vector, or
#'   of the matrix's columns, that the functions are given.
#' @return A target: an object of class `smc_target`.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong. In
#'   a run, of class `autosmc_error_target` when a function returns a value of a
#'   wrong type or shape, or raises an error itself: the error names the step,
#'   and the function's own error is its `parent`.
#' @seealso [target_native()] for compiled routines.
#' @examples
#' # a Gaussian, one point at a time; its evidence is (2 pi)^(3/2)
#' log_density <- function(x) -sum(x^2) / 2
#' target <- target_function(log_density, dim = 3, gradient = function(x) -x)
#' smc(target, n_steps = 8, n_particles = 128)
#'
#' # all points at once
#' target_function(
#'   function(x) -rowSums(x^2) / 2,
#'   dim = 3,
#'   gradient = function(x) -x,
#'   vectorized = TRUE
#' )
#'
#' # the gradient by symbolic differentiation
#' banana <- deriv(
#'   ~ -x^2 / 2 - (y - x^2)^2 / 2,
#'   c("x", "y"),
#'   function(x, y) NULL
#' )
#' target_function(
#'   function(p) banana(p[, "x"], p[, "y"]),
#'   dim = 2,
#'   vectorized = TRUE,
#'   names = c("x", "y")
#' )
#' @export
target_function <- function(
  log_density,
  dim,
  gradient = NULL,
  vectorized = FALSE,
  names = NULL
) {
  check_function(log_density, "log_density")
  if (missing(dim)) {
    abort(
      c(
        "{.arg dim} is missing.",
        "i" = "It must be a positive whole number: how many variables
          {.arg log_density} has."
      ),
      "input"
    )
  }
  dim <- check_count(dim, "dim")
  check_function(gradient, "gradient", or_null = TRUE)
  check_flag(vectorized, "vectorized")
  new_target(
    dim,
    names,
    label = if (vectorized) "vectorised R function" else "R function",
    log_density = log_density,
    gradient = gradient,
    vectorized = vectorized,
    class = "smc_target_function"
  )
}

#' @export
target_border.smc_target_function <- function(target) {
  list(dim = target$dim, evaluate = target_evaluator(target))
}

# evaluation ------------------------------------------------------------------
# An evaluator is a function of `x` (n x d) and `gradient` (whether it is
# wanted). It returns list(log_density = n doubles, gradient = n x d doubles or
# NULL), and has checked both.

target_evaluator <- function(target) {
  density <- density_caller(target)
  slope <- slope_caller(target)
  function(x, gradient) {
    value <- density(x)
    if (gradient) {
      value$gradient <- slope(x, value$gradient)
    }
    value
  }
}

# The log densities, and the gradients if the values carry them.
density_caller <- function(target) {
  f <- target$log_density
  d <- target$dim
  all_points <- function(x) {
    colnames(x) <- target$names
    value <- f(x)
    gradient <- attr(value, "gradient", exact = TRUE)
    list(
      log_density = check_log_density(value, nrow(x)),
      gradient = if (!is.null(gradient)) check_gradient(gradient, nrow(x), d)
    )
  }
  one_by_one <- function(x) {
    log_density <- double(nrow(x))
    gradients <- NULL
    for (i in seq_len(nrow(x))) {
      value <- f(point(x, i, target$names))
      log_density[i] <- check_log_density(value, 1)
      gradient <- attr(value, "gradient", exact = TRUE)
      if (!is.null(gradient)) {
        if (is.null(gradients)) {
          gradients <- matrix(NaN, nrow(x), d)
        }
        gradients[i, ] <- check_gradient(gradient, 1, d)
      }
    }
    list(log_density = log_density, gradient = gradients)
  }
  if (target$vectorized) all_points else one_by_one
}

# The gradients at x, of which `carried` came with the values, or is NULL.
slope_caller <- function(target) {
  f <- target$gradient
  d <- target$dim
  all_points <- function(x, carried) {
    colnames(x) <- target$names
    check_gradient(f(x), nrow(x), d)
  }
  one_by_one <- function(x, carried) {
    for (i in seq_len(nrow(x))) {
      x[i, ] <- check_gradient(f(point(x, i, target$names)), 1, d)
    }
    x
  }
  difference <- central_difference(target)
  carried_or_difference <- function(x, carried) {
    if (is.null(carried)) difference(x) else carried
  }
  if (is.null(f)) {
    carried_or_difference
  } else if (target$vectorized) {
    all_points
  } else {
    one_by_one
  }
}

point <- function(x, i, names) {
  row <- x[i, ]
  names(row) <- names
  row
}

# Central differences, with a message the first time that they are needed.
central_difference <- function(target) {
  density <- density_caller(target)
  told <- FALSE
  function(x) {
    if (!told) {
      told <<- TRUE
      calls <- 2 * target$dim
      cli::cli_inform(c(
        "i" = "No gradient was given: it is approximated by central
          differences, at {calls} further calls of {.arg log_density} for
          every evaluation."
      ), class = "autosmc_message_gradient")
    }
    slope <- x
    for (j in seq_len(target$dim)) {
      width <- .Machine$double.eps^(1 / 3) * pmax(1, abs(x[, j]))
      right <- left <- x
      right[, j] <- x[, j] + width
      left[, j] <- x[, j] - width
      rise <- density(right)$log_density - density(left)$log_density
      slope[, j] <- rise / (right[, j] - left[, j])
    }
    slope
  }
}

# checks of what the functions return -----------------------------------------

check_log_density <- function(value, n) {
  if (length(value) != n || !(is.numeric(value) || is_all_na(value))) {
    expected <- if (n == 1) "a number" else paste(n, "numbers, one a row")
    given <- describe(value)
    abort(
      "{.arg log_density} must return {expected}; it returned {given}.",
      "target"
    )
  }
  as.double(value)
}

check_gradient <- function(value, n, d) {
  fits <- length(value) == n * d &&
    (n == 1 || d == 1 || is.matrix(value) && nrow(value) == n)
  if (!fits || !(is.numeric(value) || is_all_na(value))) {
    expected <- if (n == 1) {
      paste("a numeric vector of length", d)
    } else {
      sprintf("a numeric matrix of %d rows, one a point, and %d columns", n, d)
    }
    given <- describe(value)
    abort("The gradient must be {expected}; it is {given}.", "target")
  }
  as.double(value)
}

# A plain NA is logical in R, but means a missing number.
is_all_na <- function(x) is.logical(x) && all(is.na(x))
