# A surrogate for models whose random effects are integrated out: cubic polynomials for the log of the ratio of the
# exact integral to Laplace's approximation (Tierney and Kadane, 1986). With it the sampler's target is so near to the
# exact density that few exact integrals correct it. Called by the loop, for models of RTMB and TMB.

# Distances from the mode at which the ratio is computed, along each axis of the normal distribution there, in standard
# deviations. Beyond the last, where few draws are, the surrogate is constant.
surrogate_distances <- c(-4, -2, 2, 4)

# The sampler with a surrogate in its target, and the evaluations that it took; unchanged if there are no random effects
# to correct for. The surrogate is NULL if no mode or no finite integral is found.
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
    # the exact mode may be some standard deviations from that of Laplace's approximation: so the fit is repeated there
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

# The counts in a row of `runs`. began: the time at the start, in seconds. before: earlier counts of counted_density().
counts_of_integrals <- function(integral, began, before = zero_counts) {
  count <- as.list(integral("count"))
  count$n_target_evals <- count$n_target_evals + before[["n_target_evals"]]
  c(count, list(
    n_impossible = before[["n_impossible"]], n_calls = count$n_target_evals, seconds = seconds_now() - began
  ))
}

# A polynomial approximation of the log density near its mode, which replaces the density there; NULL if its error at
# the fitted or the test points is too large.
good_polynomial <- function(surrogate, density, effects) {
  d <- length(surrogate$centre)
  n <- ceiling(points_per_term * nrow(polynomial_terms(d)) / (d + 1))
  if (n > most_polynomial_points) {
    return(NULL)
  }
  z <- draw_standard(n + test_points, d)
  own <- seq_len(n)
  # the fitted points have evenly spread distances from the mode
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

# Equations for each coefficient of the polynomial, of which a point gives d + 1. Above so many points there is none.
points_per_term <- 4
most_polynomial_points <- 500
# Test points: further draws of the normal distribution at the mode.
test_points <- 16
# Largest error of the log density at the mode, by the method of the exact integral; farther out more is allowed. It is
# so small that no further exact integrals are needed to correct it: those by sampling have larger errors themselves.
polynomial_error <- c(quadrature = 0.02, sampling = 0.1)

# The surrogate: the mode, scale and coefficients of the cubic along each axis, fitted to exact log ratios around the
# mode; NULL if one of these is not finite. integral: of counted_integral().
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
