# Drivers: the variables given which others are normal.

# The coordinates given which the gradients by the others are linear in these: those by which the
# gradient is not even linear in the same coordinate, and then one after the other that which
# changes least linearly, where all that are not given yet move to either side. Some of these may
# turn out to be needless. NULL where a gradient of the others stays far from linear.
find_given <- function(at, density) {
  d <- ncol(at$x)
  bent_given <- function(given) second_differences(at, setdiff(seq_len(d), given), density)
  is_linear <- function(bent) !is.null(bent) && isTRUE(max(bent$share) < rules$nothing_left)
  given <- alone <- which(bend_alone(at, density))
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

# Whether the gradient by each coordinate is not linear where this one moves, at one of two points.
bend_alone <- function(at, density) {
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
  moves <- rules$probe_step * moves
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

# The coordinates that are to be given, one after the other that which gains most, as of nats_by_each(), as
# long as that is much, and with one more given the rest gain less. Of many those that gain least alone are not tried
# again. In this order, after those given already; none where there are no such.
find_drivers <- function(at, density, given = integer(0)) {
  nats <- if (length(given) > 0 || is.null(at$nats)) nats_by_each(at, given, density) else at$nats
  tried <- utils::head(order(nats, decreasing = TRUE), rules$most_tried)
  nats[-tried] <- 0
  while (isTRUE(max(nats) > rules$least_driven) && length(given) < rules$most_given) {
    more <- c(given, which.max(nats))
    left <- nats_by_each(at, more, density, tried)
    if (!isTRUE(sum(left) < rules$less_driven * sum(nats))) {
      break
    }
    given <- more
    nats <- left
  }
  given
}

# What a normal distribution of the others gains, in nats, where each coordinate is given. Without it a quarter
# of the squared change of their precision is lost, in units of its inverse, between half a standard
# deviation below the mean of the coordinate and as much above it, where the others follow it as they do
# in the draws. With it the same of the difference to the change that there is where the others stay at
# their mean, where the precision is taken. So a scale gains much; and the mean of counts nothing, since
# their effects make up for it, and the precision stays. Differences of gradients along small random moves
# of the others tell it, which have the covariance of the draws given the coordinate, and those given
# already. 0 for these, for those that are not `tried`, and where nothing is gained. NA for all where the density is
# not known there.
nats_by_each <- function(at, given, density, tried = seq_along(at$mean)) {
  deviations <- deviations_given(at, given)
  covariance <- crossprod(deviations)
  variance <- diag(covariance)
  tried <- setdiff(tried[variance[tried] > 0], given)
  nats <- numeric(length(at$mean))
  if (length(tried) == 0) {
    return(nats)
  }
  n <- rules$n_driven_moves
  row <- rep(seq_along(tried), each = n)
  k <- tried[row]
  slope <- covariance[tried, , drop = FALSE] / variance[tried] # of all on each
  # the same for each, since they are compared
  moves <- multiply(matrix(stats::rnorm(n * nrow(deviations)), n), deviations)
  moves <- moves[rep(seq_len(n), length(tried)), , drop = FALSE]
  moves <- moves - moves[cbind(seq_along(k), k)] * slope[row, , drop = FALSE]
  change_along <- function(direction) {
    changes_of_gradients(at$mean, sqrt(variance[tried]) / 2 * direction, row, moves, density)
  }
  alone <- change_along(diag(length(nats))[tried, , drop = FALSE])
  # |followed|^2 less |followed - alone|^2, in units of the inverse precision
  twice <- 2 * change_along(slope) - alone
  by_slope <- function(change) rowSums(change * slope[row, , drop = FALSE])
  gains <- rowSums(multiply(twice, covariance) * alone) - by_slope(twice) * by_slope(alone) * variance[k]
  nats[tried] <- rowsum(gains, k, reorder = FALSE) / n / 4
  if (anyNA(nats)) NA * nats else pmax(nats, 0)
}

# What the deviations of the draws from their mean have beside a linear relation to coordinates given.
deviations_given <- function(at, given) {
  deviations <- at$deviations
  if (length(given) > 0) {
    deviations <- qr.resid(qr(deviations[, given, drop = FALSE]), deviations)
    deviations[, given] <- 0
  }
  deviations
}

# The change of the gradient along each move, at the mean and a way from it, less that as far on the other
# side. row: the row of `way` that belongs to each move. NA where the density is not known.
changes_of_gradients <- function(mean, way, row, moves, density) {
  at_end <- function(sign) {
    x <- sweep(sign * way, 2, mean, "+")
    from <- density(x)
    to <- density(x[row, , drop = FALSE] + rules$small_step * moves)
    is_known <- from$log_density[row] > -Inf & to$log_density > -Inf
    replace(to$gradient - from$gradient[row, , drop = FALSE], !is_known, NA) / rules$small_step
  }
  at_end(1) - at_end(-1)
}
