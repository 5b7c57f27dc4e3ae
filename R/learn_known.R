# The variables of a space that are nearly normal given the others, and the distribution of these.

# Half of the way of a difference of log densities along a parabola, in standard deviations: so a
# log density of 1,000, with 16 digits, makes an error of 1e-11.
wide_difference <- 0.02
# Points from whose gradients the skew of a coordinate is estimated: to 0.01.
n_for_skew <- 512

# Fits the normal distribution of the coordinates that are given others, `of_known`: the standard one, where that
# is exact, else one with `skew`, as of fit_skew(), or NULL. `z_of_known`: the points in its coordinates, but for the
# skew; `criterion_of_known`: their mean log density; `nats`: a bound of the divergence from it, as of exact_normal().
fit_known <- function(space) {
  points <- space$points
  known <- space$known
  d <- length(known)
  x <- sweep(points$x, 2, points$mean, "+")[, known, drop = FALSE]
  g <- points$g[, known, drop = FALSE]
  normal <- if (is.null(space$exact)) normal_by_gradients(x, g, points$w, points$genealogies)
  space$of_known <- if (is.null(normal)) list(mean = numeric(d), L = rep(1, d)) else normal
  space$nats <- 0
  space$z_of_known <- from_user(space$of_known, x)
  log_density <- -rowSums(space$z_of_known^2) / 2
  if (is.null(space$exact)) {
    at <- skew_by_gradients(space$z_of_known, pull_back_rows(space$of_known, g), points$w)
    space[c("skew", "nats")] <- at[c("skew", "nats")]
    log_density <- at$log_density
  }
  space$criterion_of_known <- sum(points$w * (log_density - log_det(space$of_known)))
  space
}

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

# The variance of a reference's coordinates that are nearly normal, over what was fitted: so many `times` as much
# above 1 as that of normal variables whose gradients are as far off.
inflation_of <- function(nats, known, times = 1) {
  off <- sqrt(2 * nats / length(known))
  min(1 + times * off, rules$inflation)
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

# Their normal distribution as a shape of all coordinates; NULL for none.
normal_of_given <- function(space) {
  points <- given_points(space)
  normal <- normal_by_gradients(points$x, points$g, points$w, points$genealogies)
  if (!is.null(normal)) shape_of_given(space, normal, points)
}

# The same of a normal distribution of them that is known, around the mean of the points.
shape_of_given <- function(space, normal, points = given_points(space)) {
  z <- from_user(normal, points$x)
  criterion <- sum(points$w * log_normal(z, normal$L))
  in_all_coordinates(list(z = z, L = normal$L, centre = normal$mean, criterion = criterion), space)
}

# The conditional distribution of them, likewise. again: a conditional reference that is to be
# fitted again; NULL for the best. NULL where there is none, as where that was conditional on others.
conditional_of_given <- function(space, again = NULL) {
  points <- given_points(space)
  given <- given_of(space)
  n <- 1 / sum(points$w^2)
  shape <- if (is.null(again)) {
    fit_conditional(points, space$normal$L[given, given, drop = FALSE], n, points$genealogies)
  } else if (all(again$conditioning %in% given)) {
    again$conditioning <- match(again$conditioning, given)
    fit_again(again, points, n, points$genealogies)
  }
  if (!is.null(shape)) c(in_all_coordinates(shape, space), list(of_given = shape))
}

# A shape of the coordinates given as one of all, of which the others have the space's normal
# distribution.
in_all_coordinates <- function(shape, space) {
  d <- ncol(space$points$x)
  given <- given_of(space)
  vector <- function(x, of_others) replace(rep(of_others, d), given, x)
  rows <- function(x) replace(matrix(0, d, ncol(x)), cbind(rep(given, ncol(x)), c(col(x))), x)
  block <- function(x) replace(diag(d), as.matrix(expand.grid(given, given)), x)
  known <- space$known
  make <- list(
    offset = function(x) vector(x, 0), centre_of_share = function(x) vector(x, 0),
    bend = function(x) vector(x, 0), pull = function(x) vector(x, 0),
    scale = function(x) vector(x, 1),
    shift = rows, slope = rows, curve = rows, L = block, axes = block
  )
  for (name in intersect(names(make), names(shape))) {
    if (!is.null(shape[[name]])) shape[[name]] <- make[[name]](shape[[name]])
  }
  if (!is.null(shape$conditioning)) shape$conditioning <- given[shape$conditioning]
  normal <- space$of_known
  if (!is.null(space$skew)) {
    shape$skew <- lapply(list(location = 0, scale = 1, skew = 0, tail = 1), rep, d)
    for (name in names(space$skew)) shape$skew[[name]][known] <- space$skew[[name]]
  }
  shape$criterion <- shape$criterion + space$criterion_of_known
  z <- matrix(0, nrow(space$z_of_known), d)
  z[, known] <- space$z_of_known
  rows <- if (is.null(space$points$place)) seq_len(nrow(z)) else space$points$place
  z[, given] <- shape$z[rows, ]
  shape$z <- z
  shape$g <- NULL # only the search for shapes looks at gradients
  shape$L[known, known] <- if (is.matrix(normal$L)) normal$L else diag(normal$L)
  centre <- numeric(d)
  centre[known] <- normal$mean - space$points$mean[known]
  centre[given] <- shape$centre
  shape$centre <- centre
  shape$exact <- space$exact
  shape$known <- known
  shape$inflation <- inflation_of(space$nats, space$known, rules$wider_given)
  shape
}

# The mean log density of the points as they were, under the normal distribution of a space.
normal_criterion <- function(space) {
  if (!is.null(space)) space$normal$criterion + log_jacobian(space$points)
}
