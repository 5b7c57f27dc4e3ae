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
  ratio <- counted_ratio(effects)
  count <- c(n_target_evals = 0, n_impossible = 0)
  with_seed(seed_of_run(sampler$seed, effects_key), {
    # the posterior of many groups is some standard deviations away from that by Laplace's approximation
    start <- if (is.null(target$start)) numeric(target$dim) else change_scale(target, t(target$start), FALSE)[1, ]
    for (time in 1:2) {
      density <- counted_density(target)
      surrogate <- tryCatch(fit_surrogate(target, density, ratio, start), autosmc_error = function(e) NULL)
      count <- count + density("count")
      target$effects["surrogate"] <- list(surrogate)
      if (is.null(surrogate)) break
      start <- surrogate$centre
    }
  })
  sampler$target <- target
  sampler$evaluators <- interface_of_run(sampler)
  sampler$surrogate <- counts_of_ratios(ratio, began, count)
  sampler
}

# The counts of a row of `runs`. began: by the clock. before: of counted_density().
counts_of_ratios <- function(ratio, began, before = c(n_target_evals = 0, n_impossible = 0)) {
  count <- as.list(ratio("count"))
  count$n_target_evals <- count$n_target_evals + before[["n_target_evals"]]
  c(count, list(n_impossible = before[["n_impossible"]], seconds = seconds_now() - began))
}

# To the ratios around the mode of the density.
fit_surrogate <- function(target, density, ratio, start) {
  d <- target$dim
  peak <- find_peak(density, start)
  z <- rbind(0, do.call(rbind, lapply(surrogate_distances, diag, d)))
  x <- change_scale(target, sweep(z %*% t(peak$L), 2, peak$mode, "+"), to_user = TRUE)
  log_ratio <- apply(x, 1, ratio)
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
