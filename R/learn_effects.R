# A surrogate of the log of the ratio of the integral over random effects to Laplace's approximation: what is sampled
# is so near to the exact density that few exact integrals tell the rest.

# Distances of points from the mode along the axes of the normal distribution there, in standard deviations. Beyond the
# last, where few draws are, the surrogate is constant.
surrogate_distances <- c(-4, -2, 2, 4)

# The sampler, with a surrogate in the target where the integral can be computed and a mode is found.
with_surrogate <- function(sampler) {
  target <- sampler$target
  effects <- target$effects
  if (is.null(effects) || effects$method == "laplace" || !is.null(effects$surrogate)) {
    return(sampler)
  }
  component <- effect_components(effects$model)
  if (is_integrable(tabulate(component))) {
    sampler$target <- with_seed(seed_of_run(sampler$seed, effects_key), {
      # the posterior of many groups is some standard deviations away from that by Laplace's approximation
      start <- if (is.null(target$start)) numeric(target$dim) else change_scale(target, t(target$start), FALSE)[1, ]
      for (time in 1:2) {
        target$effects$surrogate <- tryCatch(fit_surrogate(target, start, component), autosmc_error = function(e) NULL)
        start <- target$effects$surrogate$centre
        if (is.null(start)) break
      }
      target
    })
    sampler$evaluators <- interface_of_run(sampler)
  }
  sampler
}

# To the ratios around the mode that the target has.
fit_surrogate <- function(target, start, component) {
  d <- target$dim
  peak <- find_peak(counted_density(target), start)
  z <- rbind(0, do.call(rbind, lapply(surrogate_distances, diag, d)))
  x <- change_scale(target, sweep(z %*% t(peak$L), 2, peak$mode, "+"), to_user = TRUE)
  log_ratio <- apply(x, 1, function(x) log_laplace_ratio(target$effects$model, x, component))
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
