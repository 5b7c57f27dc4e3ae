# Angles: variables with two bounds at which the density is the same, so that one bound is beside the other.
# A mode next to a bound then goes on at the other, and is two modes on the scale on which particles move, or
# many where there are several angles. So the target's variables are turned: the sampler moves them between
# bounds on the far side of the circle. The turned target has the same density at the same x, and the same
# evidence; see src/map_bounds.c. Angles of which mainly a sum is known are moved together.

# Logits of two places that are as good as a bound, and the relative difference of densities at two
# such that is rounding: a density that changes by a thousand over the width has changed by 1e-10
# there.
ends_of_scale <- c(25, 30)
same_at_ends <- 1e-8
# Draws of a mode that tell where an angle is, to a tenth of its spread.
n_turning_draws <- 64
# Length of the mean direction of an angle, below which it has none: that of a uniform one is 0.1
# by chance.
least_direction <- 0.2

# As of find_scale_of_bounded(), with `turn`: by which part of its width each variable is to be turned; and `sums`, of
# angles that are moved together: a column each, as src/map_bounds.c has them.
find_turn <- function(sampler) {
  variables <- which(may_be_logits(sampler$target))
  find_scale_of_bounded(sampler, "angles", angles_key, variables, function(evaluate) {
    points <- scattered_starts(sampler$target$dim, rules$n_starts)
    # of most variables few points tell that they are none
    few <- points[seq_len(few_scale_points), , drop = FALSE]
    angles <- which_angles(evaluate, few, variables, least = 0)
    if (length(angles) > 0) angles <- which_angles(evaluate, points, angles)
    if (length(angles) > 0) scale_of_angles(evaluate, sampler, angles)
  })
}

# Those of these variables along which, from each of some points where that is known, the density ends on both sides
# with the same value, which it has already before the end, and is not all the same between, as that of a variable is
# about which the target says nothing. It has to be known from more than `least` of the points.
which_angles <- function(evaluate, points, variables, least = nrow(points) / 2) {
  n <- nrow(points)
  # on the scale of the variable, but for a constant
  at <- function(u) {
    moved <- moved_to(points, variables, u)
    matrix(evaluate(moved, gradient = FALSE)$log_density, n) - stats::dlogis(u, log = TRUE)
  }
  ends <- lapply(c(-ends_of_scale, ends_of_scale), at)
  first <- ends[[1]]
  is_same <- function(x, y) abs(x - y) <= same_at_ends * (1 + abs(x))
  is_known <- Reduce(`&`, lapply(ends, function(end) end > -Inf))
  differs <- function(other) colSums(is_known & !is_same(first, other)) > 0
  goes_on <- colSums(is_known) > least & !Reduce(`|`, lapply(ends[-1], differs))
  variables[goes_on & differs(at(1))]
}

# The points once for each variable, with this in the place of it.
moved_to <- function(points, variables, value) {
  n <- nrow(points)
  x <- points[rep(seq_len(n), length(variables)), , drop = FALSE]
  x[cbind(seq_len(nrow(x)), rep(variables, each = n))] <- value
  x
}

# The scale of the angles, by draws from the normals of the scout; NULL where it is right as it is. Angles whose mean is
# nearer to the bounds than to the middle are turned so that it is in the middle.
scale_of_angles <- function(evaluate, sampler, angles) {
  scout <- sampler$scout
  draws <- lapply(scout$normals, function(reference) {
    normal <- normal_of(reference, length(reference$mean))
    to_user(normal, draw_standard(n_turning_draws, length(normal$mean)))
  })
  weights <- exp(normalise_log(scout$basins$elbo))
  part <- lapply(draws, function(u) stats::plogis(u[, angles, drop = FALSE])) # of the width
  changes <- if (length(angles) > 1) changes_of_angles(moments_of_slopes(evaluate, draws, part, weights, angles))
  for (change in changes) {
    part <- lapply(part, function(p) {
      p[, change$to] <- p[, change$to] + change$times * p[, change$of]
      p
    })
  }
  directions <- vapply(part, function(p) colMeans(exp(2i * pi * p)), complex(length(angles)))
  mean <- drop(matrix(directions, length(angles)) %*% weights)
  place <- (Arg(mean) / (2 * pi)) %% 1 # 0 and 1 are the bounds
  is_beside <- Mod(mean) > least_direction & pmin(place, 1 - place) < 1 / 4
  if (any(is_beside) || length(changes) > 0) {
    # the way back from the changed angles to those of the target
    sums <- vapply(rev(changes), function(change) c(angles[c(change$to, change$of)], -change$times), numeric(3))
    turn <- numeric(sampler$target$dim)
    turn[angles] <- ifelse(is_beside, (place - 1 / 2) %% 1, 0)
    # those of a program are its logits, and are known as angles by their turns
    is_whole <- turn == 0 & seq_along(turn) %in% sums[1:2, ] & !has_two_bounds(sampler$target)
    c(list(turn = replace(turn, is_whole, 1)), if (length(changes) > 0) list(sums = sums))
  }
}

# The mean square of the gradient by the angles, as parts of their widths, at draws from normals of these weights; of
# points where it is a number.
moments_of_slopes <- function(evaluate, draws, part, weights, angles) {
  moments <- Map(function(u, p, weight) {
    slope <- evaluate(u, gradient = TRUE)$gradient[, angles, drop = FALSE]
    slope <- (slope - (1 - 2 * p)) / (p * (1 - p))
    slope <- slope[rowSums(!is.finite(slope)) == 0, , drop = FALSE]
    weight * crossprod(slope) / max(nrow(slope), 1)
  }, draws, part, weights)
  Reduce(`+`, moments)
}

# Changes of angles into others that are less dependent: a list of (to, of, times), of which each adds so many times one
# angle to another. Of angles of which mainly the sum is known this is one, with which goes all that they depend on each
# other. All points on the circles are reached once, since the multiples are integers. The covariance V of the angles is
# taken to be the inverse of these mean squares and of what a uniform distribution has; the algorithm of Lenstra,
# Lenstra and Lovasz (1982) makes short vectors of a lattice with these products.
changes_of_angles <- function(square) {
  n <- nrow(square)
  V <- solve(square + diag(12, n))
  order <- seq_len(n)
  changes <- list()
  i <- 2
  while (i <= n) {
    for (j in (i - 1):1) {
      L <- t(chol(V[order, order]))
      ratio <- L[i, j] / L[j, j]
      if (abs(ratio) > 0.51) { # at a half rounding would decide
        times <- -round(ratio)
        M <- replace(diag(n), cbind(order[i], order[j]), times)
        V <- M %*% V %*% t(M)
        changes <- c(changes, list(list(to = order[i], of = order[j], times = times)))
      }
    }
    L <- t(chol(V[order, order]))
    is_longer <- L[i, i]^2 + L[i, i - 1]^2 >= 3 / 4 * L[i - 1, i - 1]^2
    if (!is_longer) order[c(i - 1, i)] <- order[c(i, i - 1)]
    i <- if (is_longer) i + 1 else max(i - 1, 2)
  }
  changes
}
