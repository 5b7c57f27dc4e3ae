# Angles: variables with two bounds at which the density is the same, so that one bound is beside the other.
# A mode next to a bound then goes on at the other, and is two modes on the scale on which particles move, or
# many where there are several angles. So the target's variables are turned: the sampler moves them between
# bounds on the far side of the circle. The turned target has the same density at the same x, and the same
# evidence; see src/map_bounds.c.

# As of find_scale_of_bounded(), with `turn`: by which part of its width each variable is to be turned.
find_turn <- function(sampler) {
  variables <- which(has_two_bounds(sampler$target))
  find_scale_of_bounded(sampler, "angles", angles_key, variables, function(evaluate) {
    points <- scattered_starts(sampler$target$dim, rules$n_starts)
    angles <- which_angles(evaluate, points, variables)
    turn <- if (length(angles) > 0) turn_by_modes(sampler$scout, angles)
    if (!is.null(turn)) list(turn = turn)
  })
}

# Those of these variables along which, from each of some points where that is known, the density ends on both sides
# with the same value, and is not all the same between, as that of a variable is about which the target says nothing.
which_angles <- function(evaluate, points, variables) {
  n <- nrow(points)
  # on the scale of the variable, but for a constant
  at <- function(u) {
    moved <- moved_to(points, variables, u)
    matrix(evaluate(moved, gradient = FALSE)$log_density, n) - stats::dlogis(u, log = TRUE)
  }
  first <- at(-rules$end_of_scale)
  last <- at(rules$end_of_scale)
  is_same <- function(x, y) abs(x - y) <= rules$same_at_ends * (1 + abs(x))
  is_known <- first > -Inf & last > -Inf
  variables[
    2 * colSums(is_known) > n & colSums(is_known & !is_same(first, last)) == 0 &
      colSums(is_known & !is_same(first, at(0))) > 0
  ]
}

# The points once for each variable, with this in the place of it.
moved_to <- function(points, variables, value) {
  n <- nrow(points)
  x <- points[rep(seq_len(n), length(variables)), , drop = FALSE]
  x[cbind(seq_len(nrow(x)), rep(variables, each = n))] <- value
  x
}

# Angles whose mean, over draws from the normals of the scout, is nearer to the bounds than to the middle are turned so
# that it is in the middle.
turn_by_modes <- function(scout, angles) {
  weights <- exp(normalise_log(scout$basins$elbo))
  directions <- vapply(scout$normals, function(reference) {
    normal <- normal_of(reference, length(reference$mean))
    u <- to_user(normal, draw_standard(rules$n_turning_draws, length(normal$mean)))
    colMeans(exp(2i * pi * stats::plogis(u[, angles, drop = FALSE])))
  }, complex(length(angles)))
  mean <- drop(matrix(directions, length(angles)) %*% weights)
  place <- (Arg(mean) / (2 * pi)) %% 1 # 0 and 1 are the bounds
  is_beside <- Mod(mean) > rules$least_direction & pmin(place, 1 - place) < 1 / 4
  turn <- numeric(length(scout$normals[[1]]$mean))
  turn[angles] <- ifelse(is_beside, (place - 1 / 2) %% 1, 0)
  if (any(is_beside)) turn
}
