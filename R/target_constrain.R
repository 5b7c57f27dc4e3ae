# From the scale of a target's variables to the one on which the sampler moves them, and back.

#' The scale on which a target is sampled
#'
#' The sampler moves bounded variables on an unconstrained scale (see the section Bounds of [target_function()]), and
#' references are distributions on it. These functions take points from the scale of the target's own functions, the one
#' of `lower` and `upper`, to it and back. Variables without bounds stay as they are.
#'
#' @param target a target; what [as_target()] makes of other things.
#' @param x points on the scale of the target's variables: a numeric vector of length `dim`, or an `n x dim` matrix, a
#'   row a point. They are inside the bounds; what is on a bound becomes the nearest number inside.
#' @param u points on the unconstrained scale, a vector or a matrix alike.
#' @param ... for a function, the other arguments of [target_function()].
#' @return As `x` or `u`, a vector or a matrix, with the names of the variables.
#' @section Errors: Of class `autosmc_error_input` when `x` or `u` is not of the target's
#'   dimension, is not finite, or `x` is beyond a bound.
#' @seealso [reference_gaussian()], whose mean is on the unconstrained scale;
#'   [reference_laplace()], which finds a reference from a start.
#' @examples
#' target <- target_function(function(x) dgamma(x[2], 2, log = TRUE) - x[1]^2,
#'   dim = 2, names = c("mu", "sigma"), lower = c(-Inf, 0)
#' )
#' u <- unconstrain(target, c(3, 10))
#' u
#' constrain(target, u)
#' @export
unconstrain <- function(target, x, ...) {
  target <- check_target(target, ...)
  points <- check_user_points(x, target, "x")
  outside <- which(sweep(points, 2, target$lower, "<") | sweep(points, 2, target$upper, ">"), arr.ind = TRUE)
  if (nrow(outside) > 0) {
    abort("{.arg x} must be inside the bounds; {.field {target$names[outside[1, 2]]}} is
      {format(points[outside[1, 1], outside[1, 2]])}.")
  }
  as_given(change_scale(target, points, to_user = FALSE), target$names, x)
}

#' @rdname unconstrain
#' @export
constrain <- function(target, u, ...) {
  target <- check_target(target, ...)
  points <- change_scale(target, check_points(u, target$dim, "u"), to_user = TRUE)
  as_given(from_free(target$types, points)$x, user_names(target), u)
}

# The rows of `points`.
change_scale <- function(target, points, to_user) {
  pass <- if (to_user) forward_maps else inverse_maps
  pass(scale_maps(target), points)$x
}

# The map from the unconstrained scale to the user's; none where they are the same.
scale_maps <- function(target) {
  bounds <- interface_bounds(target)
  if (!is.null(bounds)) list(c(name = "bounds", bounds))
}

# An orthonormal frame of the elements of the variables as they are declared: a row an element, a column a variable
# that the sampler moves. It is the identity but for simplexes, whose K - 1 variables are coordinates of the
# logarithms of their K elements among the vectors that sum to zero.
element_frame <- function(target) {
  d <- target$dim
  if (is.null(target$parameters)) {
    return(diag(d))
  }
  at <- target$outputs(diag(d))
  if (!all(target$parameters %in% colnames(at))) {
    return(diag(d)) # some are not among the outputs that were asked for
  }
  vector_of <- function(names) sub("[^,[]*$", "", names) # "theta[2," of "theta[2,3]"
  of_elements <- vector_of(target$parameters)
  of_variables <- vector_of(target$names)
  rows <- lapply(unique(of_variables), function(name) {
    free <- which(of_variables == name)
    elements <- which(of_elements == name)
    if (length(elements) != length(free) + 1) {
      return(diag(d)[free, , drop = FALSE])
    }
    log_x <- log(at[free, elements, drop = FALSE])
    block <- matrix(0, length(elements), d)
    block[, free] <- t(log_x - rowMeans(log_x))
    block
  })
  frame <- do.call(rbind, rows)
  is_orthonormal <- isTRUE(all.equal(crossprod(frame), diag(d)))
  if (is_orthonormal) frame else diag(d)
}

# The names of the variables as the user's functions have them.
user_names <- function(target) if (is.null(target$types)) target$names else target$types$names

as_given <- function(points, names, given) {
  points <- name_columns(points, names)
  if (is.matrix(given)) points else points[1, ]
}

# Points on the scale of the target's functions as those between its bounds.
check_user_points <- function(x, target, arg) {
  types <- target$types
  if (is.null(types)) {
    return(check_points(x, target$dim, arg))
  }
  x <- check_points(x, length(types$names), arg)
  points <- unname(to_free(types, x))
  off <- abs(from_free(types, points)$x - x)
  if (!all(is.finite(points)) || max(off) > sqrt(.Machine$double.eps) * max(1, abs(x))) {
    abort("{.arg {arg}} must have values of the types: {.val {format_types(types)}}.")
  }
  points
}

# A vector of length d, or a matrix of points: an n x d matrix.
check_points <- function(x, d, arg) {
  check_given(x, arg)
  fits <- is.numeric(x) && !is.object(x) && all(is.finite(x)) &&
    if (is.matrix(x)) ncol(x) == d else length(x) == d
  if (!fits) {
    abort_argument(x, arg, sprintf("a vector of %d finite numbers, or a matrix of %d columns", d, d))
  }
  matrix(as.double(x), ncol = d)
}
