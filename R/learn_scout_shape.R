# The shape that the scout proposes: a normal reference, or one in which children depend on parents, where gradients at
# draws of the best normal distribution show it.

# Draws for the test whether gradients are linear, as a multiple of the coefficients of a gradient, ...
draws_per_slope <- 8
# ... but at least and at most so many.
shape_draws <- c(32, 256)

# Passes in which a shape that is nearly right is found.
most_near <- 3

# The normal distribution that the target is, where gradients show that; else the reference in which most coordinates
# are standard normal given the rest (see learn_spaces.R), or nearly so, if draws of the best normal show that there is
# one: gradients tell it wherever the draws are. Particles of a run from that normal would show it too, but for where
# few of them have lived. The marginal density of the coordinates given is known, in a few dimensions, and is scouted in
# its turn. list(reference, marginal), where `marginal` is its ELBO with the error, if that is exact; NULL for none.
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

# The best normal distribution of the coordinates given, where others are standard normal given these; NULL for none. x:
# draws of those given; paths start from the first that are possible.
scouted_given <- function(given, d, maps, density, x) {
  marginal <- marginal_density(given, d, maps, density)
  starts <- x[seq_len(min(rules$n_starts, nrow(x))), , drop = FALSE]
  is_possible <- marginal(starts, gradient = FALSE)$log_density > -Inf
  if (any(is_possible)) {
    best_of(look(marginal, starts[is_possible, , drop = FALSE])$normals, function(normal) normal$elbo)
  }
}

# The variables on which most others depend as parents, their children as a block of natural form, and the best normal
# distribution of the parents, with their marginal density as it would be if the block were exact. Scores tell the block
# wherever they are: at first at draws of a normal distribution whose parents are spread out, as far as exponentials
# must be to be told apart, then at draws of what was found. list(reference); NULL where no ELBO is above that of the
# normal distribution.
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

# By the scores at these points: list(maps, elbo, elbo_error, off), or NULL.
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

# The ELBO of the reference with these maps, and the mean square of what it leaves of the gradient by each coordinate:
# list(elbo, elbo_error, off).
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
