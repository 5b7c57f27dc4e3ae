# Points of the target where draws are narrower than it. Draws of a run may not have seen all of the target, and what
# is fitted to them does not lead there either. But where others are nearly normal given a few coordinates, some draws
# of the others tell the marginal density of these few at any place of theirs, as in nested approximations (Rue, Martino
# and Chopin, 2009). So places of the coordinates given are drawn around the points of a space (see spaces.R), and
# weighted.

# Weighted points of the target, by importance sampling of the coordinates given, with some draws of the others at each
# place. As points are in fit_dependent(), with `place`, the number of the place that each is at, and `is_first`, by
# which places are divided into two halves, and `is_wider`, whether they are wider along any direction than the points
# of the space. NULL where the coordinates given are too many for that, or nearly all of the weight is at a few places.
asked_points <- function(space, density) {
  given <- given_of(space)
  n_others <- others_at_each(space$nats)
  kernels <- if (length(given) %in% seq_len(rules$most_asked_given)) {
    kernels_around(given_points(space), rules$n_asked / n_others)
  }
  if (is.null(kernels)) {
    return(NULL)
  }
  places <- drawn_from(kernels)
  n <- nrow(places)
  place <- rep(seq_len(n), n_others)
  others <- draws_of_known(space, length(place))
  x <- matrix(0, length(place), ncol(space$points$x))
  x[, given] <- places[place, ]
  x[, space$known] <- others$x
  maps <- change_maps(space$changes)
  at <- density(x, maps = maps)
  log_marginal <- log_mean_exp_rows(matrix(at$log_density - others$log_density, n))
  w_places <- exp(normalise_log(log_marginal - log_density_of_kernels(kernels, places)))
  n_places <- 1 / sum(w_places^2)
  if (!isTRUE(n_places > rules$places_per_given * length(given))) {
    return(NULL)
  }
  # the others are taken to be as they were drawn: their weights would be those of a few points
  n_known <- rowSums(matrix(at$log_density > -Inf, n))
  w <- (w_places / n_known)[place]
  rows <- which(at$log_density > -Inf & w > rules$least_weight)
  moved <- through_maps(maps, x[rows, , drop = FALSE], at$gradient[rows, , drop = FALSE])
  if (!have_fourth_powers(moved$x, moved$g)) {
    return(NULL)
  }
  w <- w[rows] / sum(w[rows])
  mean <- weighted_sums(moved$x, w)
  list(
    x = sweep(moved$x, 2, mean), g = moved$g, w = w, mean = mean, genealogies = n_places,
    place = match(place[rows], unique(place[rows])), is_first = place[rows] %% 2 == 0,
    is_wider = widest_by(kernels, places, w_places) > widest_by_chance(length(given), n_places)
  )
}

# How many draws of the others there are at each place. The log ratio of one has a variance of about twice the
# divergence `nats`, and with eight times the divergence of them that of their mean is a quarter: more than eight are
# not taken. A power of 2.
others_at_each <- function(nats) 2^min(max(ceiling(log2(8 * nats)), 1), 3)

# Points with those of one place in one, and the means of their gradients, which are those of the marginal density.
averaged_by_place <- function(points) {
  share <- points$w
  w <- drop(rowsum(share, points$place))
  mean_of <- function(x) rowsum(share * x, points$place) / w
  first <- match(seq_along(w), points$place)
  points$x <- points$x[first, , drop = FALSE]
  points$g <- mean_of(points$g)
  points$w <- unname(w)
  points$is_first <- points$is_first[first]
  points
}

# n normal distributions around weighted points, each as wide as these are: list(centres, root); NULL where the points
# have no covariance.
kernels_around <- function(points, n) {
  covariance <- weighted_covariance(points$x, points$w, numeric(ncol(points$x)))
  root <- tryCatch(chol(covariance), error = function(e) NULL)
  if (!is.null(root)) {
    centres <- points$x[evenly_weighted(points$w, n), , drop = FALSE]
    list(centres = sweep(centres, 2, points$mean, "+"), root = root)
  }
}

# A point from each.
drawn_from <- function(kernels) {
  kernels$centres + multiply(draw_standard(nrow(kernels$centres), ncol(kernels$centres)), kernels$root)
}

# The log density at rows of x of a point from any of them, but for a constant.
log_density_of_kernels <- function(kernels, x) {
  x <- whitened(t(kernels$root), x)
  centres <- whitened(t(kernels$root), kernels$centres)
  square <- outer(rowSums(x^2), rowSums(centres^2), "+") - 2 * tcrossprod(x, centres)
  log_mean_exp_rows(-square / 2)
}

# The largest variance of weighted points along any direction, over that of the points that the kernels are around.
widest_by <- function(kernels, x, w) {
  z <- whitened(t(kernels$root), x)
  covariance <- weighted_covariance(z, w, weighted_sums(z, w))
  max(eigen(covariance, symmetric = TRUE, only.values = TRUE)$values)
}

# n draws of the others of a space, with their log density, but for a constant.
draws_of_known <- function(space, n) {
  z <- opposite_draws(n / 2, length(space$known))
  at <- through_maps(tails_maps(space$skew), z)
  list(x = to_user(space$of_known, at$x), log_density = -at$log_jacobian - rowSums(z^2) / 2)
}

log_mean_exp_rows <- function(x) {
  top <- pmax(apply(x, 1, max), -.Machine$double.xmax)
  top + log(rowMeans(exp(x - top)))
}

# In such a space only the coordinates given have a distribution that is not known. Points of
# these alone:
given_points <- function(space) {
  points <- space$points
  given <- given_of(space)
  points$x <- points$x[, given, drop = FALSE]
  points$g <- points$g[, given, drop = FALSE]
  points$mean <- points$mean[given]
  if (is.null(points$place)) points else averaged_by_place(points)
}

given_of <- function(space) setdiff(seq_len(ncol(space$points$x)), space$known)
