# Maps between the scale of a target's variables and the unconstrained scale on which the sampler moves them.

#' The scale on which a target is sampled
#'
#' The sampler moves bounded variables on an unconstrained scale (see the section Bounds of [target_function()]), and
#' references are distributions on it. `unconstrain()` maps points to it from the scale of the target's own functions,
#' that of `lower` and `upper`, and `constrain()` maps them back. Variables without bounds do not change.
#'
#' @param target a target, or any object that [as_target()] accepts.
#' @param x points on the scale of the target's variables: a numeric vector of length `dim`, or an `n x dim` matrix with
#'   one point per row. A value on a bound is replaced by the nearest number inside.
#' @param u points on the unconstrained scale, as a vector or matrix like `x`.
#' @param ... for a function, the other arguments of [target_function()].
#' @return A vector or matrix, as `x` or `u`, with the names of the variables.
#' @section Errors: Of class `autosmc_error_input` when `x` or `u` does not have the target's
#'   dimension or is not finite, or when `x` is beyond a bound.
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

# Maps the rows of `points` to the user's scale, or back from it.
change_scale <- function(target, points, to_user) {
  pass <- if (to_user) forward_maps else inverse_maps
  pass(scale_maps(target), points)$x
}

# A list of the map from the unconstrained scale to the user's; NULL if the two are the same.
scale_maps <- function(target) {
  bounds <- interface_bounds(target)
  if (!is.null(bounds)) list(c(name = "bounds", bounds))
}

# A matrix with orthonormal columns: a row for each element of the variables as declared, a column for each variable
# that the sampler moves. It is the identity except for simplexes. The K - 1 variables of a simplex are coordinates of
# the centred logarithms of its K elements in a basis of the vectors that sum to zero.
element_frame <- function(target) {
  d <- target$dim
  if (is.null(target$parameters)) {
    return(diag(d))
  }
  at <- target$outputs(diag(d))
  if (!all(target$parameters %in% colnames(at))) {
    return(diag(d)) # the user's `include` excludes some of them
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

# The names of the variables in the user's functions.
user_names <- function(target) if (is.null(target$types)) target$names else target$types$names

as_given <- function(points, names, given) {
  points <- name_columns(points, names)
  if (is.matrix(given)) points else points[1, ]
}

# Checks points on the scale of the target's functions, and returns them with typed variables unconstrained.
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

# Checks a vector of length d, or a matrix of points, and returns an n x d matrix.
check_points <- function(x, d, arg) {
  check_given(x, arg)
  fits <- is.numeric(x) && !is.object(x) && all(is.finite(x)) &&
    if (is.matrix(x)) ncol(x) == d else length(x) == d
  if (!fits) {
    abort_argument(x, arg, sprintf("a vector of %d finite numbers, or a matrix of %d columns", d, d))
  }
  matrix(as.double(x), ncol = d)
}
