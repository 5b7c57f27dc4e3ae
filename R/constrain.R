# From the scale of a target's variables to the one on which the sampler moves them, and
# back.

#' The scale on which a target is sampled
#'
#' The sampler moves bounded variables on an unconstrained scale (see the section Bounds of
#' [target_function()]), and references are distributions on it. These functions take points
#' from the scale of the target's own functions, the one of `lower` and `upper`, to it and
#' back. Variables without bounds stay as they are.
#'
#' @param target a target; what [as_target()] makes of other things.
#' @param x points on the scale of the target's variables: a numeric vector of length `dim`,
#'   or an `n x dim` matrix, a row a point. They are inside the bounds; what is on a bound
#'   becomes the nearest number inside.
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
  points <- check_points(x, target, "x")
  outside <- which(
    sweep(points, 2, target$lower, "<") | sweep(points, 2, target$upper, ">"),
    arr.ind = TRUE
  )
  if (nrow(outside) > 0) {
    name <- target$names[outside[1, 2]]
    bad <- format(points[outside[1, 1], outside[1, 2]])
    abort("{.arg x} must be inside the bounds; {.field {name}} is {bad}.", "input")
  }
  change_scale(target, points, x, to_user = FALSE)
}

#' @rdname unconstrain
#' @export
constrain <- function(target, u, ...) {
  target <- check_target(target, ...)
  change_scale(target, check_points(u, target, "u"), u, to_user = TRUE)
}

# The rows of `points`, in the form of what was given.
change_scale <- function(target, points, given, to_user) {
  pass <- if (to_user) through_maps else before_maps
  points <- name_columns(pass(scale_maps(target), points)$x, target$names)
  if (is.matrix(given)) points else points[1, ]
}

# The map from the unconstrained scale to the user's; none where they are the same.
scale_maps <- function(target) {
  bounds <- interface_bounds(target)
  if (!is.null(bounds)) list(c(name = "bounds", bounds))
}

# A vector of length `dim`, or a matrix of points: an n x dim matrix.
check_points <- function(x, target, arg) {
  d <- target$dim
  check_given(x, arg)
  fits <- is.numeric(x) && !is.object(x) && all(is.finite(x)) &&
    if (is.matrix(x)) ncol(x) == d else length(x) == d
  if (!fits) {
    abort_argument(
      x, arg, sprintf("a vector of %d finite numbers, or a matrix of %d columns", d, d)
    )
  }
  matrix(as.double(x), ncol = d)
}
