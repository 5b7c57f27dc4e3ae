# Angles: variables with two bounds at which the density has the same value, so that the bounds are one point of a
# circle. A mode next to a bound continues at the other bound. On the logit scale it is two modes, or many for several
# angles. So angles are rotated, with the cut on the far side of the circle from the mode; the density as a function of
# x, and so the evidence, stays the same: see src/map_bounds.c. Angles of which mainly a sum is known are sampled by the
# sum. Called by scouted() in loop_scout.R.

# Logits of two places that count as a bound.
ends_of_scale <- c(25, 30)
# Largest relative difference of densities there that counts as rounding: a log density that changes by a thousand over
# the width has changed by 1e-10 there.
same_at_ends <- 1e-8
# Draws of a mode that determine the mean of an angle to a tenth of its spread.
n_turning_draws <- 64
# Least length of the mean direction vector of an angle that has a direction: for a uniform angle it is 0.1 by chance.
least_direction <- 0.2

# The result of find_scale_of_bounded() for angles. Its scale has `turn`, by which part of its width each variable is
# rotated, and `sums`, the changes of angles into sums, a column each in the form of src/map_bounds.c.
find_turn <- function(sampler) {
  variables <- which(may_be_logits(sampler$target))
  find_scale_of_bounded(sampler, "angles", angles_key, variables, function(evaluate) {
    points <- scattered_starts(sampler$target$dim, rules$n_starts)
    # for most variables a few points show that they are no angles
    few <- points[seq_len(few_scale_points), , drop = FALSE]
    angles <- which_angles(evaluate, few, variables, least = 0)
    if (length(angles) > 0) angles <- which_angles(evaluate, points, angles)
    if (length(angles) > 0) scale_of_angles(evaluate, sampler, angles)
  })
}

# The angles among these variables. Along an angle the density takes the same value near both bounds, already before the
# ends, from all points at which it is finite there; and it is not constant in between, as along a variable that the
# target does not depend on. It must be finite for more than `least` of the points.
which_angles <- function(evaluate, points, variables, least = nrow(points) / 2) {
  n <- nrow(points)
  # the log density on the scale of the variable, up to a constant
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

# Copies of the points for each of the variables, which is set to `value` there.
moved_to <- function(points, variables, value) {
  n <- nrow(points)
  x <- points[rep(seq_len(n), length(variables)), , drop = FALSE]
  x[cbind(seq_len(nrow(x)), rep(variables, each = n))] <- value
  x
}

# The scale of the angles, by draws from the scout's normal distributions; NULL for no change. Angles whose mean is
# nearer to the bounds than to the middle are rotated so that it is in the middle.
scale_of_angles <- function(evaluate, sampler, angles) {
  scout <- sampler$scout
  draws <- lapply(scout$normals, function(reference) {
    normal <- normal_of(reference, length(reference$mean))
    to_user(normal, draw_standard(n_turning_draws, length(normal$mean)))
  })
  weights <- exp(normalise_log(scout$basins$elbo))
  part <- lapply(draws, function(u) stats::plogis(u[, angles, drop = FALSE])) # the angles in units of their widths
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
    # the inverse changes, from the changed angles to those of the target
    sums <- vapply(rev(changes), function(change) c(angles[c(change$to, change$of)], -change$times), numeric(3))
    turn <- numeric(sampler$target$dim)
    turn[angles] <- ifelse(is_beside, (place - 1 / 2) %% 1, 0)
    # angles of a Stan program have no bounds here: a full turn marks them as angles
    is_whole <- turn == 0 & seq_along(turn) %in% sums[1:2, ] & !has_two_bounds(sampler$target)
    c(list(turn = replace(turn, is_whole, 1)), if (length(changes) > 0) list(sums = sums))
  }
}

# The mean outer product of the gradient with respect to the angles, in units of their widths, over draws from normal
# distributions with these weights. Points with a gradient that is not finite are left out.
moments_of_slopes <- function(evaluate, draws, part, weights, angles) {
  moments <- Map(function(u, p, weight) {
    slope <- evaluate(u, gradient = TRUE)$gradient[, angles, drop = FALSE]
    slope <- (slope - (1 - 2 * p)) / (p * (1 - p))
    slope <- slope[rowSums(!is.finite(slope)) == 0, , drop = FALSE]
    weight * crossprod(slope) / max(nrow(slope), 1)
  }, draws, part, weights)
  Reduce(`+`, moments)
}

# Changes of angles into less dependent ones: a list of (to, of, times), each of which adds the angle `of`, times an
# integer, to the angle `to`. Since the multiples are integers, the change is one to one on the circles. If mainly the
# sum of angles is known, the sum replaces one of them. The covariance V of the angles is taken to be the inverse of
# `square`, the mean outer product of gradients, plus the precision 12 of a uniform distribution. The changes are those
# of the lattice reduction by Lenstra, Lenstra and Lovasz (1982) with the inner products V.
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
      if (abs(ratio) > 0.51) { # above a half, where rounding errors would decide
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
