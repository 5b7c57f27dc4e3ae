# Bridge sampling (Meng and Wong, 1996): a second estimate of the evidence, from the draws of the islands and from draws
# of a distribution that is fitted to them. Called by estimate_evidence().

# The islands are split into halves. The distribution fitted to the draws of one half is bridged to the draws of the
# other half, on which it does not depend, and vice versa; the estimate is the mean of both. The distribution is fitted
# in the coordinates of the reference, in which the target is nearly normal. Returns list(estimate, n_target_evals),
# without `estimate` where too few islands have particles left, or no distribution can be fitted.
bridge <- function(sampler, final) {
  living <- unique(final$island)
  if (length(living) < rules$bridge_islands) {
    return(list(n_target_evals = 0))
  }
  odd <- living[seq(1, length(living), by = 2)]
  rows <- lapply(list(odd, setdiff(living, odd)), function(half) which(final$island %in% half))
  halves <- lapply(1:2, function(half) bridge_half(sampler, final, rows[[half]], rows[[3 - half]], half))
  of_halves <- function(name) vapply(halves, `[[`, 0, name)
  log_z <- mean(of_halves("log_z"))
  variance <- mean(of_halves("variance")) / 2
  list(
    estimate = if (is.finite(log_z) && is.finite(variance)) {
      interval(log_z, sqrt(variance + rules$least_bridge_error^2), length(living) - 2)
    },
    n_target_evals = sum(of_halves("n_target_evals"))
  )
}

# The estimate from one half: list(log_z, variance, n_target_evals), NA where there is none. fitted_to, rest: rows of
# the draws that the distribution is fitted to, and of the others; half: 1 or 2.
bridge_half <- function(sampler, final, fitted_to, rest, half) {
  middle <- fit_bridge(final, fitted_to)
  if (is.null(middle)) {
    return(list(log_z = NA_real_, variance = NA_real_, n_target_evals = 0))
  }
  log_y <- log_ratios(sampler, final, middle, length(rest), half)
  log_x <- final$log_target[rest] - log_bridge(middle, final$coordinates, rest)
  solved <- solve_bridge(log_y, log_x, final$log_weights[rest], final$origins[rest], final$island[rest])
  c(solved, n_target_evals = length(rest))
}

# The log ratios of the target to the fitted distribution `middle` at n draws from the latter.
log_ratios <- function(sampler, final, middle, n, half) {
  draws <- with_seed(seed_of_run(sampler$seed, bridge_key - half), draw_bridge(middle, n))
  name <- sprintf("bridge-%d-%d-%d", final$island[1], length(unique(final$island)), half)
  maps <- maps_of(final$reference, sampler$target$dim)
  evaluators <- over_batches(sampler)$evaluators
  at_draws <- remember(
    sampler, name, c(settings_of_target(sampler), list(middle = middle)), numbers_restorer(n),
    function(...) points_of(with_images(final, sampler$target), sampler),
    over_rows(draws, function(x, i) {
      evaluate_located(
        sampler$target, x, "bridge",
        gradient = FALSE, maps = maps, evaluators = evaluators
      )$log_density
    })
  )
  at_draws[!is.finite(at_draws)] <- -Inf
  at_draws - log_bridge(middle, draws)
}

# the distribution ------------------------------------------------------------

# The distribution fitted to these rows of the draws, in the coordinates of the reference: a Student t or a mixture if
# the reference is one, else a normal distribution, by gradients where there are any. A list(mean, L) with `df` for a
# Student t, or list(mixture); NULL where none can be fitted.
fit_bridge <- function(final, rows) {
  weighty <- rows_with_weight(final$log_weights[rows])
  rows <- rows[weighty$rows]
  w <- weighty$w
  z <- function() final$coordinates[rows, , drop = FALSE]
  d <- ncol(final$coordinates)
  reference <- final$reference
  if (is_mixture(reference)) {
    has_copies <- !is.null(reference$copies)
    return(list(
      mixture = if (has_copies) refit_all_copies(reference, z(), w) else fit_mixture(reference$mixture, z(), w)
    ))
  }
  df <- if (is_student_reference(reference)) reference$df
  normal <- if (!is.null(df)) {
    student_step(z(), w, list(mean = rep(0, d), L = diag(d)), df)
  } else if (!is.null(final$gradients)) {
    n <- n_independent(w, final$origins[rows])
    normal_by_gradients(final$coordinates, final$gradients, w, n, rows)
  } else {
    mean <- weighted_mean(final$coordinates, w, rows)
    L <- fit_scale(sweep(z(), 2, mean), w, mean)
    if (!is.null(L)) list(mean = mean, L = L)
  }
  if (!is.null(normal)) c(normal, list(df = df))
}

draw_bridge <- function(middle, n) {
  if (!is.null(middle$mixture)) {
    return(draw_mixture(middle$mixture, n))
  }
  z <- draw_standard(n, length(middle$mean))
  if (!is.null(middle$df)) z <- z / sqrt(stats::rchisq(n, middle$df) / middle$df)
  rows_by(n, ncol(z), function(i) to_user(middle, rows_of_block(z, i)))
}

# The log density of the fitted distribution at rows of x.
log_bridge <- function(middle, x, rows = seq_len(nrow(x))) {
  d <- ncol(x)
  unlist(lapply(blocks_of(length(rows), d), function(i) {
    if (!is.null(middle$mixture)) {
      return(log_mixture(middle$mixture, x[rows[i], , drop = FALSE]) - d / 2 * log(2 * pi))
    }
    square <- rowSums(from_user(middle, x, rows[i])^2)
    radial <- if (is.null(middle$df)) -square / 2 else log_student(square, d, middle$df)
    radial - log_det(middle) - d / 2 * log(2 * pi)
  }))
}

# the equation ----------------------------------------------------------------

# The solution of the equation of Meng and Wong and its variance: list(log_z, variance), see src/bridge.c. log_y, log_x:
# log ratios of the target to the distribution, at draws from the distribution and at weighted draws from the target.
solve_bridge <- function(log_y, log_x, log_weights, origins, island) {
  weighty <- rows_with_weight(log_weights)
  rows <- weighty$rows
  .Call(r_bridge, log_y, log_x[rows], weighty$w, origins[rows], island[rows])
}
