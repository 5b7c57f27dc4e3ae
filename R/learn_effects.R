# A surrogate of the log of the ratio of the integral over random effects to Laplace's approximation: what is sampled
# is so near to the exact density that few exact integrals tell the rest.

# Distances of points from the mode along the axes of the normal distribution there, in standard deviations. Beyond the
# last, where few draws are, the surrogate is constant.
surrogate_distances <- c(-4, -2, 2, 4)

# The sampler, with a surrogate in the target where the integral can be computed and a mode is found, and with what that
# has cost.
with_surrogate <- function(sampler) {
  target <- sampler$target
  effects <- target$effects
  if (!is_corrected(effects) || !is.null(effects$surrogate)) {
    return(sampler)
  }
  began <- seconds_now()
  integral <- counted_integral(effects)
  count <- zero_counts
  with_seed(seed_of_run(sampler$seed, effects_key), {
    # the posterior of many groups is some standard deviations away from that by Laplace's approximation
    start <- if (is.null(target$start)) numeric(target$dim) else change_scale(target, t(target$start), FALSE)[1, ]
    for (time in 1:2) {
      density <- counted_density(target)
      surrogate <- tryCatch(fit_surrogate(target, density, integral, start), autosmc_error = function(e) NULL)
      count <- count + density("count")
      target$effects["surrogate"] <- list(surrogate)
      if (is.null(surrogate)) break
      start <- surrogate$centre
    }
    if (!is.null(surrogate)) {
      density <- counted_density(target)
      target$effects$surrogate$polynomial <- good_polynomial(surrogate, density, effects)
      count <- count + density("count")
    }
  })
  sampler$target <- target
  sampler$evaluators <- interface_of_run(sampler)
  sampler$surrogate <- counts_of_integrals(integral, began, count)
  sampler
}

# The counts of a row of `runs`. began: by the clock. before: of counted_density().
counts_of_integrals <- function(integral, began, before = zero_counts) {
  count <- as.list(integral("count"))
  count$n_target_evals <- count$n_target_evals + before[["n_target_evals"]]
  c(count, list(
    n_impossible = before[["n_impossible"]], n_calls = count$n_target_evals, seconds = seconds_now() - began
  ))
}

# The polynomial that takes the place of the density near its mode, where it agrees with it, also at points that it was
# not fitted to; or NULL.
good_polynomial <- function(surrogate, density, effects) {
  d <- length(surrogate$centre)
  n <- ceiling(points_per_term * nrow(polynomial_terms(d)) / (d + 1))
  if (n > most_polynomial_points) {
    return(NULL)
  }
  z <- draw_standard(n + test_points, d)
  own <- seq_len(n)
  # those that it is fitted to are as many near the mode as far from it
  z[own, ] <- z[own, , drop = FALSE] / sqrt(rowSums(z[own, , drop = FALSE]^2)) * polynomial_reach(d) * (own - 0.5) / n
  L <- solve(surrogate$scale)
  at <- density(sweep(z %*% t(L), 2, surrogate$centre, "+"))
  if (!all(is.finite(at$log_density))) {
    return(NULL)
  }
  slope <- at$gradient %*% L
  polynomial <- fit_polynomial(z[own, , drop = FALSE], at$log_density[own], slope[own, ])
  off <- at$log_density - polynomial_at(polynomial, z)
  error <- polynomial_error[[integration_method(effects)]]
  if (all(abs(off) < error * exp(rowSums(z^2) / 4))) polynomial
}

# Equations a term, at most so many points, ...
points_per_term <- 4
most_polynomial_points <- 500
# ... and beside these, draws of the normal distribution at the mode. At all of them the error is to be so small, but
# far out, where few draws are, that it costs no further ratios of the exact to the sampled density: those by sampling
# scatter by more than this themselves.
test_points <- 16
polynomial_error <- c(quadrature = 0.02, sampling = 0.1)

# To the ratios around the mode of the density.
fit_surrogate <- function(target, density, integral, start) {
  d <- target$dim
  peak <- find_peak(density, start)
  z <- rbind(0, do.call(rbind, lapply(surrogate_distances, diag, d)))
  x <- change_scale(target, sweep(z %*% t(peak$L), 2, peak$mode, "+"), to_user = TRUE)
  log_ratio <- apply(x, 1, integral)[2, ]
  if (!all(is.finite(log_ratio))) {
    return(NULL)
  }
  coefficients <- drop(least_squares(cbind(1, z, z^2, z^3), cbind(log_ratio)))
  at <- seq_len(d) + 1
  list(
    maps = scale_maps(target), centre = peak$mode, scale = solve(peak$L), reach = max(surrogate_distances),
    constant = coefficients[1], linear = coefficients[at], square = coefficients[at + d],
    cube = coefficients[at + 2 * d]
  )
}
