# The variables of a space that are nearly normal given the others, and the distribution of these.

# Half of the way of a difference of log densities along a parabola, in standard deviations: so a
# log density of 1,000, with 16 digits, makes an error of 1e-11.
wide_difference <- 0.02
# Points from whose gradients the skew of a coordinate is estimated: to 0.01.
n_for_skew <- 512

# Weighted points z that are nearly standard normal, by gradients g there: list(skew, log_density, nats), with the skew
# of fit_skew(), or NULL, the log density with it, but for a constant, and a bound of the divergence from it.
skew_by_gradients <- function(z, g, w) {
  some <- evenly_weighted(w, n_for_skew)
  skew <- fit_skew(z[some, , drop = FALSE], g[some, , drop = FALSE])
  at <- before_maps(tails_maps(skew), z, g)
  list(
    skew = skew, log_density = at$log_jacobian - rowSums(at$x^2) / 2,
    nats = sum(weighted_squares(at$x + at$g, w)) / 2
  )
}

# The share of the mean square of the gradient by each coordinate that should be standard `normal`
# that is not of such a one; Inf where it is not known, or there are none. points: after the changes.
left_by_normal <- function(normal, points) {
  if (length(normal) == 0 || is.null(points$g)) {
    return(Inf)
  }
  z <- sweep(points$x, 2, points$mean, "+")[, normal, drop = FALSE]
  g <- points$g[, normal, drop = FALSE]
  left <- weighted_squares(z + g, points$w) / weighted_squares(g, points$w)
  replace(left, !is.finite(left), Inf)
}

# Some of the points after these changes, with the gradients along coordinates that should be standard `normal`:
# where the target has none of its own by differences over ways that lose no digits there.
asked_along <- function(normal, points, changes, density) {
  d <- ncol(points$x)
  x <- places_among(points, n_linear_probes)
  width <- replace(rep(NA, d), normal, wide_difference)
  g <- density(x, maps = change_maps(changes), width = width)$gradient
  list(x = x, g = g, mean = numeric(d), w = rep(1 / nrow(x), nrow(x)))
}

# Where n of the points are, chosen in proportion to their weights.
places_among <- function(points, n) {
  sweep(points$x[evenly_weighted(points$w, n), , drop = FALSE], 2, points$mean, "+")
}
