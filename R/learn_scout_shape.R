# A reference with a shape, found by the scout from gradients at draws of its best normal distribution, before any run.
# Called by scout_target().

# Draws for each coefficient of a linear gradient, to test whether gradients are linear.
draws_per_slope <- 8
# The smallest and the largest number of such draws.
shape_draws <- c(32, 256)

# Largest number of passes that improve an approximate shape.
most_near <- 3

# list(reference, marginal), or NULL. The reference is the target itself, if gradients show that it is normal; else one
# in which most coordinates are exactly standard normal given the rest (see learn_spaces.R), or nearly so. The marginal
# density of the rest, of few dimensions, is then scouted in its turn. marginal: its ELBO and standard error, only for
# an exact reference with such coordinates.
shape_around <- function(normals, density) {
  best <- best_of(normals, function(normal) normal$elbo)
  if (is.null(best) || length(best$mean) > rules$largest_exact) {
    return(NULL)
  }
  draws <- draw_normal(best, n_shape_draws(length(best$mean)))
  at <- density(draws$x)
  ok <- at$log_density > -Inf
  n <- sum(ok)
  if (n < rules$least_ess) {
    return(NULL)
  }
  w <- rep(1 / n, n)
  x <- draws$x[ok, , drop = FALSE]
  mean <- weighted_mean(x, w)
  points <- list(x = sweep(x, 2, mean), g = at$gradient[ok, , drop = FALSE], w = w, mean = mean)
  normal <- if (is.matrix(best$L) && length(likely_normals(normals)) == 1) exact_normal(points, best$L, n)
  if (!is.null(normal)) {
    return(list(reference = normal))
  }
  space <- exact_space(points, list(), density)
  if (knows_most(space)) exact_shape(space, density) else near_shape(best, density)
}

n_shape_draws <- function(d) min(max(shape_draws[1], draws_per_slope * (d + 1)), shape_draws[2])

# The result of shape_around() for an exact space; NULL if the scout finds no place of its marginal density.
exact_shape <- function(space, density) {
  given <- given_of(space)
  d <- ncol(space$points$x)
  at <- given_points(space)
  best <- scouted_given(given, d, change_maps(space$changes), density, sweep(at$x, 2, at$mean, "+"))
  if (!is.null(best)) {
    inflation <- replace(rep(1, d), given, sqrt(rules$inflation))
    list(
      reference = new_chain_reference(d, as_block(best, given, d)$maps, space$changes, inflation),
      marginal = best[c("elbo", "elbo_error")]
    )
  }
}

# The best normal distribution for the marginal density of the coordinates `given`; NULL for none. Paths start from the
# first of their draws x that have a positive density.
scouted_given <- function(given, d, maps, density, x) {
  marginal <- marginal_density(given, d, maps, density)
  starts <- x[seq_len(min(rules$n_starts, nrow(x))), , drop = FALSE]
  is_possible <- marginal(starts, gradient = FALSE)$log_density > -Inf
  if (any(is_possible)) {
    best_of(find_basins(marginal, starts[is_possible, , drop = FALSE])$normals, function(normal) normal$elbo)
  }
}

# list(reference), in which the variables on which most others depend are parents, all others a block of natural form,
# and the parents have the best normal distribution for their marginal density, computed as if the block were exact. The
# block is fitted to scores, first at draws of `normal` with parents that are spread out, so that exponentials of them
# differ, then at draws of the last fit. NULL if no ELBO exceeds that of the normal distribution.
near_shape <- function(normal, density) {
  d <- length(normal$mean)
  if (d > rules$largest_dense) {
    return(NULL)
  }
  n <- 2 * max(least_half, points_per_coefficient * (d + 2))
  x <- draw_normal(normal, n)$x
  pattern <- pattern_among(x, density)
  parents <- hubs_of(pattern, seq_len(d))
  if (length(parents) == 0) {
    return(NULL)
  }
  x[, parents] <- x[, parents] + stats::rnorm(n * length(parents))
  best <- list(elbo = normal$elbo + rules$least_curved_gain)
  for (pass in seq_len(most_near)) {
    shape <- near_shape_at(x, parents, pattern, density)
    if (is.null(shape)) break
    if (isTRUE(shape$elbo - rules$errors_seen * shape$elbo_error > best$elbo)) {
      best <- shape
    } else if (!is.null(best$maps)) {
      break
    }
    z <- draw_standard(n, d)
    z[, parents] <- sqrt(rules$inflation_parents) * z[, parents]
    x <- forward_maps(shape$maps, z)$x
  }
  if (!is.null(best$maps)) {
    variance <- replace(pmin(1 + sqrt(best$off), rules$inflation), parents, rules$inflation_parents)
    list(reference = new_chain_reference(d, best$maps, inflation = sqrt(variance)))
  }
}

# The same, fitted to the scores at these points: list(maps, elbo, elbo_error, off), or NULL.
near_shape_at <- function(x, parents, pattern, density) {
  d <- ncol(x)
  at <- density(x)
  known <- which(at$log_density > -Inf & is.finite(rowSums(at$gradient)))
  half <- length(known) %/% 2
  if (2 * half < nrow(x) / 2) {
    return(NULL)
  }
  points <- rows_of_points(list(x = x, g = at$gradient), known)
  points <- c(points, list(train = seq_len(half), test = half + seq_len(half), pattern = pattern))
  children <- setdiff(seq_len(d), parents)
  left <- function(trial) -mean(trial$off[, children]^2)
  trial <- natural_trial(points, rows_of_points(points, points$train), seq_len(d), children, parents, left)
  maps <- trial$block$maps
  normal <- if (!is.null(maps)) scouted_given(parents, d, maps, density, x[, parents, drop = FALSE])
  if (!is.null(normal)) {
    maps <- c(as_block(normal, parents, d)$maps, maps)
    c(list(maps = maps), elbo_of_maps(maps, d, density))
  }
}

# list(elbo, elbo_error, off) of the reference with these maps. off: the mean square of z + g for each coordinate z with
# score g, which is 0 for an exact reference.
elbo_of_maps <- function(maps, d, density) {
  z <- draw_standard(n_elbo_checks, d)
  at <- forward_maps(maps, z)
  there <- density(at$x)
  log_ratio <- there$log_density + at$log_jacobian - rowSums(stats::dnorm(z, log = TRUE))
  list(
    elbo = mean(log_ratio), elbo_error = stats::sd(log_ratio) / sqrt(n_elbo_checks),
    off = colMeans((inverse_maps(maps, at$x, there$gradient)$g + z)^2)
  )
}
