# Spaces: coordinates of which some are exactly standard normal given the rest, after precision maps (see
# learn_precision.R). Integrating these out gives the marginal density of the rest in closed form, so that the search is
# repeated, a level at a time. Called by fit_shape() and the scout.
#
# A space is list(changes, points, exact): the precision maps, the points after these, and the indices of the
# coordinates that are standard normal.

# Points that are tried for the marginal density of a few coordinates: where a part of
# `least_inside` is between the edges, all of them are beyond in one case of five, and where a
# tenth is in one of thirty.
n_marginal_draws <- 32
# Of the points whose gradients are furthest from those of a standard normal distribution, so many are checked as well.
n_furthest_off <- 8
# Half of the way of a difference of log densities along a parabola, in standard deviations: so a
# log density of 1,000, with 16 digits, makes an error of 1e-11.
wide_difference <- 0.02

# The exact space of the present reference, or one found by evaluating the target; NULL for none. present: the changes
# of the present reference. density: of counted_density(), or NULL.
exact_space <- function(points, present, density) {
  space <- space_of(points, present, density)
  if (!is.null(space) || is.null(density)) {
    return(space)
  }
  repeat {
    deeper <- next_level(space, points, density)
    if (is.null(deeper)) {
      return(space)
    }
    space <- deeper
  }
}

# The exact space with one more level than `space` (NULL for none), or NULL. With all children integrated out, some of
# their parents may be normal given the others: for example where the location or scale of each variable depends on the
# previous one.
next_level <- function(space, points, density) {
  left <- seq_along(points$mean)
  of_left <- points
  marginal <- density
  if (!is.null(space)) {
    left <- given_of(space)
    of_left <- given_points(space)
    marginal <- marginal_density(left, ncol(space$points$x), change_maps(space$changes), density)
  }
  at <- probes_among(of_left)
  if (is.null(at)) {
    return(NULL)
  }
  probe <- along_parabolas(at, marginal)
  space_given <- function(given) {
    change <- precision_given(at, given, probe)
    if (!is.null(change)) {
      change[c("given", "order")] <- list(left[change$given], left[change$order])
      change$basis <- lapply(change$basis, acting_on, left, length(points$mean))
      space_of(points, c(space$changes, list(change)), density)
    }
  }
  given <- find_given(at, probe)
  found <- space_given(given)
  bent <- if (is.null(found)) nonlinear_beside(given, at, probe)
  if (length(bent) > 0) space_given(c(given, bent)) else found
}

# The marginal density of the coordinates `given`, if the others are standard normal before these maps: the joint
# density at any value of the others, divided by their normal density. This value is 0; if the joint density is 0
# there, a draw, the last successful one first. Returns a function like that of counted_density().
marginal_density <- function(given, d, maps, density) {
  others <- rbind(0, draw_standard(n_marginal_draws, d - length(given)))
  function(x, gradient = TRUE, width = NULL, ...) {
    if (!is.null(width)) width <- replace(rep(NA, d), given, width)
    at <- list(log_density = rep(-Inf, nrow(x)), gradient = 0 * x)
    last <- 1
    for (i in seq_len(nrow(others))) {
      left <- which(at$log_density == -Inf)
      if (length(left) == 0) {
        break
      }
      z <- matrix(0, length(left), d)
      z[, given] <- x[left, ]
      z[, -given] <- rep(others[i, ], each = length(left))
      there <- density(z, gradient = gradient, maps = maps, width = width, ...)
      at$log_density[left] <- there$log_density - sum(stats::dnorm(others[i, ], log = TRUE))
      if (gradient) at$gradient[left, ] <- there$gradient[, given]
      if (any(there$log_density > -Inf)) last <- i
    }
    others <<- others[unique(c(last, seq_len(nrow(others)))), , drop = FALSE]
    at
  }
}

# A density whose gradients, if by differences, use wide steps. Short steps have too few digits, and along coordinates
# that are normal given the others, where the log density is a parabola, a central difference is exact for any step.
along_parabolas <- function(at, density) {
  width <- wide_difference * at$sd
  function(x) density(x, width = width)
}

# Whether at least half of the coordinates of a space are exactly standard normal given the rest.
knows_most <- function(space) {
  !is.null(space) && 2 * length(space$exact) >= ncol(space$points$x)
}

# Which of the coordinates that are not exactly normal depend on each other, as of pattern_among(); with a row and a
# column for each coordinate, FALSE for the exactly normal ones. NULL where it is not known.
pattern_left <- function(space, x, density) {
  left <- given_of(space)
  maps <- change_maps(space$changes)
  at <- inverse_maps(maps, x)$x[, left, drop = FALSE]
  among <- pattern_among(at, marginal_density(left, ncol(x), maps, density))
  if (!is.null(among)) {
    pattern <- matrix(FALSE, ncol(x), ncol(x))
    pattern[left, left] <- among
    pattern
  }
}

# Whether most pairs of remaining coordinates that are independent in the pattern of all depend on each other in the
# space.
fills_pattern <- function(of_left, pattern) {
  if (is.null(of_left) || is.null(pattern)) {
    return(FALSE)
  }
  left <- diag(of_left)
  isTRUE(mean(of_left[left, left][!pattern[left, left]]) > most_filled)
}

# The space of these changes, if they make their children exactly standard normal; else NULL. density: if not NULL, it
# is evaluated if the gradients of the points do not show this, since those by short differences may have no digits far
# out.
space_of <- function(points, changes, density) {
  if (length(changes) == 0) {
    return(NULL)
  }
  points <- changed(points, changes)
  if (!all(is.finite(points$x), is.finite(points$g))) {
    return(NULL)
  }
  exact <- sort(unique(unlist(lapply(changes, `[[`, "order"))))
  are_exact <- function(left) mean(left) < rules$nothing_left
  left <- left_by_normal(exact, points)
  if (!is.null(density) && !are_exact(left)) {
    left <- left_by_normal(exact, asked_along(exact, points, changes, density))
  }
  if (are_exact(left)) list(changes = changes, points = points, exact = exact)
}

# The coordinates of a space that are not exactly normal: parents at all levels.
given_of <- function(space) setdiff(seq_len(ncol(space$points$x)), space$exact)

# The points of a space, with these coordinates only.
given_points <- function(space) {
  points <- space$points
  given <- given_of(space)
  points$x <- points$x[, given, drop = FALSE]
  points$g <- points$g[, given, drop = FALSE]
  points$mean <- points$mean[given]
  points
}

# The mean square of z + g, relative to that of the gradient g, for each of the coordinates z in `normal`: 0 for
# standard normal ones; Inf if unknown. points: after the changes.
left_by_normal <- function(normal, points) {
  if (length(normal) == 0 || is.null(points$g)) {
    return(Inf)
  }
  z <- sweep(points$x, 2, points$mean, "+")[, normal, drop = FALSE]
  g <- points$g[, normal, drop = FALSE]
  left <- weighted_squares(z + g, points$w) / weighted_squares(g, points$w)
  replace(left, !is.finite(left), Inf)
}

# Some of the points after these changes, with gradients along the coordinates that should be standard `normal`: where
# the target has no gradient of its own, by differences over a distance that loses no digits. Among the points are those
# whose own gradients are furthest off, where the changes may be wrong.
asked_along <- function(normal, points, changes, density) {
  d <- ncol(points$x)
  x <- sweep(points$x, 2, points$mean, "+")
  off <- rowSums((x + points$g)[, normal, drop = FALSE]^2)
  rows <- union(systematic_rows(points$w, n_linear_probes), utils::head(order(off, decreasing = TRUE), n_furthest_off))
  x <- x[rows, , drop = FALSE]
  width <- replace(rep(NA, d), normal, wide_difference)
  g <- density(x, maps = change_maps(changes), width = width)$gradient
  list(x = x, g = g, mean = numeric(d), w = rep(1 / nrow(x), nrow(x)))
}
