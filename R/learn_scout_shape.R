# Whether draws of the scout's best normal distribution show a reference with a shape.

# The space in which most coordinates are standard normal given the rest (see spaces.R), if draws of the best
# normal show that there is one: gradients tell it wherever the draws are. Particles of a run from that normal
# would show it too, but for where few of them have lived. NULL for none.
shape_around <- function(normals, density) {
  best <- best_of(normals, function(normal) normal$elbo)
  if (is.null(best) || length(best$mean) > rules$largest_exact) {
    return(NULL)
  }
  draws <- draw_normal(best, rules$race_particles)
  at <- density(draws$x)
  ok <- at$log_density > -Inf
  n <- sum(ok)
  if (n < rules$least_ess) {
    return(NULL)
  }
  w <- rep(1 / n, n)
  x <- draws$x[ok, , drop = FALSE]
  mean <- weighted_sums(x, w)
  points <- list(
    x = sweep(x, 2, mean), g = at$gradient[ok, , drop = FALSE], w = w, mean = mean, genealogies = n,
    is_first = seq_len(n) %% 2 == 0
  )
  exact <- exact_space(points, list(), density)
  space <- if (knows_most(exact)) {
    with_scouted_given(exact, density)
  } else if (!is.matrix(best$L) || !are_uncoupled(fit_gaussian_score(points, best$L), points)) {
    near_space(points, list(), density, n)
  }
  if (within_sampling_error(space, n)) with_shape(space) # and so is one that is exact
}

# The space with its `shape`: the normal distribution, than which draws of one show no other; points that were asked
# for may.
with_shape <- function(space) {
  space$shape <- space$normal
  if (!is.null(space$asked)) {
    n <- space$asked$genealogies
    space$conditional <- conditional_of_given(space)
    space$shape <- best_shape(space, n, n)$shape
  }
  space
}

# A space in which all coordinates but those given are exactly standard normal, with the best normal of these: their
# marginal density is known, in a few dimensions, and is scouted in its turn. So it does not matter how far from it the
# draws are that have shown the space. `marginal`: its ELBO, with the error; what edges cut off is in it.
with_scouted_given <- function(space, density) {
  given <- given_of(space)
  if (length(space$exact) + length(given) < ncol(space$points$x)) {
    return(space)
  }
  marginal <- marginal_density(space, density)
  start <- space$points$mean[given] + space$normal$centre[given]
  found <- look(marginal, scattered_starts(length(given), rules$n_starts), start)$normals
  best <- best_of(found, function(normal) normal$elbo)
  if (!is.null(best)) {
    space$marginal <- best[c("elbo", "elbo_error")]
    best$mean <- best$mean - space$points$mean[given]
    space$normal <- shape_of_given(space, best)
  }
  space
}

# Whether the reference with a shape is tried before the one that covers all these places: where they are in
# one mode, and where the coordinates given have been scouted. Else a shape that is exact is found again wherever the
# draws are, and need not be.
goes_first <- function(space, places, evaluate) {
  if (!is.null(space$marginal)) {
    return(TRUE)
  }
  is_candidate <- !is.null(space) && is.null(space$exact) && length(places) > 0
  is_candidate && is_one_mode(space, places, evaluate)
}

# Whether in the coordinates of a space the density does not dip on the way from its mean to those of these
# normals: then the basins are places in one mode, as those that paths find along a neck.
is_one_mode <- function(space, normals, evaluate) {
  n <- length(normals)
  d <- length(space$points$mean)
  means <- matrix(vapply(normals, `[[`, numeric(d), "mean"), n, d, byrow = TRUE)
  ends <- changed(list(x = means, w = rep(1 / n, n), mean = numeric(d)), space$changes)
  centre <- space$points$mean + space$normal$centre
  ways <- sweep(ends$x, 2, centre - ends$mean)
  part <- seq(0, 1, length.out = rules$n_on_way)
  x <- sweep(ways[rep(seq_len(n), length(part)), , drop = FALSE] * rep(part, each = n), 2, centre, "+")
  along <- matrix(evaluate(x, gradient = FALSE, maps = change_maps(space$changes))$log_density, n)
  dip <- pmin(along[, 1], along[, ncol(along)]) - apply(along, 1, min)
  isTRUE(max(dip) < rules$least_dip)
}
