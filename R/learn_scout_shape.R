# Whether draws of the scout's best normal distribution show a reference with a shape.

# The reference in which most coordinates are standard normal given the rest (see learn_spaces.R), if draws of the best
# normal show that there is one: gradients tell it wherever the draws are. Particles of a run from that normal would
# show it too, but for where few of them have lived. The marginal density of the coordinates given is known, in a few
# dimensions, and is scouted in its turn. list(reference, marginal), where `marginal` is its ELBO with the error; NULL
# for none.
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
  points <- list(x = sweep(x, 2, mean), g = at$gradient[ok, , drop = FALSE], w = w, mean = mean)
  space <- exact_space(points, list(), density)
  if (knows_most(space)) with_scouted_given(space, density)
}

with_scouted_given <- function(space, density) {
  given <- given_of(space)
  d <- ncol(space$points$x)
  of_given <- given_points(space)
  marginal <- marginal_density(space, density)
  start <- of_given$mean
  found <- look(marginal, scattered_starts(length(given), rules$n_starts), start)$normals
  best <- best_of(found, function(normal) normal$elbo)
  if (!is.null(best)) {
    inflation <- replace(rep(1, d), given, sqrt(rules$inflation))
    list(
      reference = new_chain_reference(d, as_block(best, given, d)$maps, space$changes, inflation),
      marginal = best[c("elbo", "elbo_error")]
    )
  }
}
