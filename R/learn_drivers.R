# Drivers: the variables given which others are normal.

# Moves of differences, in standard deviations: gradients that are linear are so at any distance.
probe_step <- 0.5

# The coordinates given which the gradients by the others are linear in these: those by which the
# gradient is not even linear in the same coordinate, and then one after the other that which
# changes least linearly, where all that are not given yet move to either side. Some of these may
# turn out to be needless. NULL where a gradient of the others stays far from linear.
find_given <- function(at, density) {
  d <- ncol(at$x)
  bent_given <- function(given) second_differences(at, setdiff(seq_len(d), given), density)
  is_linear <- function(bent) !is.null(bent) && isTRUE(max(bent$share) < rules$nothing_left)
  given <- alone <- which(nonlinear_alone(at, density))
  most <- min(rules$most_given, d - 1)
  bent <- if (length(given) <= most) bent_given(given)
  while (!is_linear(bent)) {
    if (is.null(bent) || length(given) == most) {
      return(NULL)
    }
    given <- c(given, setdiff(seq_len(d), given)[which.max(bent$square)])
    bent <- bent_given(given)
  }
  for (k in setdiff(given, alone)) {
    if (length(given) > 1 && is_linear(bent_given(setdiff(given, k)))) given <- setdiff(given, k)
  }
  sort(given)
}

# Those other coordinates by which gradients are not linear beyond rounding, though nearly: an intercept with a prior of
# Student's t, say. Along directions of which the data know little that is not near enough.
nonlinear_beside <- function(given, at, density) {
  others <- setdiff(seq_len(ncol(at$x)), given)
  bent <- if (length(given) > 0) others[second_differences(at, others, density)$share > rounding_of_entry^2]
  if (length(c(given, bent)) <= min(rules$most_given, length(others))) bent
}

# Whether the gradient by each coordinate is not linear where this one moves, at one of two points.
nonlinear_alone <- function(at, density) {
  d <- ncol(at$x)
  of_point <- function(row) {
    ask <- function(sign) {
      there <- density(at$x[rep(row, d), , drop = FALSE] + sign * diag(at$step, d))
      ifelse(there$log_density > -Inf, diag(there$gradient), NA)
    }
    plus <- ask(1)
    minus <- ask(-1)
    bent <- (plus + minus - 2 * at$g[row, ])^2
    bent > rules$nothing_left * ((plus - minus)^2 + at$g_rounding^2)
  }
  is_bent <- of_point(1) | of_point(2)
  !is.na(is_bent) & is_bent
}

# How far the gradients by these coordinates are from linear, for random moves of all of them with
# the covariance of the draws: the `square` of the second difference of each, where gradients have
# variance 1, in units of the change of all; and its `share` in the square of its own change. So
# what a scale acts on changes by as much as that scale does, and the scale by all that it acts on.
# NULL where most of the points are impossible.
second_differences <- function(at, moved, density) {
  n <- nrow(at$x)
  moves <- matrix(stats::rnorm(n * nrow(at$deviations)), n) %*% at$deviations[, moved, drop = FALSE]
  moves <- probe_step * moves
  ask <- function(moves) {
    x <- at$x
    x[, moved] <- x[, moved] + moves
    there <- density(x)
    list(ok = there$log_density > -Inf, g = there$gradient[, moved, drop = FALSE])
  }
  plus <- ask(moves)
  minus <- ask(-moves)
  over_sd <- function(g) sweep(g, 2, at$g_sd[moved], "/")
  bent <- over_sd(plus$g + minus$g - 2 * at$g[, moved])
  changed <- over_sd(plus$g - minus$g)
  size <- sqrt(rowSums(changed^2))
  usable <- which(plus$ok & minus$ok & size > 0)
  if (2 * length(usable) > n) {
    sum_of_squares <- function(x) colSums(x[usable, , drop = FALSE]^2)
    rounding <- length(usable) * (at$g_rounding[moved] / at$g_sd[moved])^2
    share <- sum_of_squares(bent) / (sum_of_squares(changed) + rounding)
    list(square = sum_of_squares(bent / size), share = replace(share, is.nan(share), 0))
  }
}
