# Heavy tails, by the Pareto k of the draws, and the precision of posterior means. Where a density falls off like a
# power, the sample moments of the draws do not converge, and those of the target may not exist. The log evidence and
# quantiles are not affected. Called when a fit is made, and by its summaries.

# Decimal logarithm of a value whose square nearly overflows.
largest_square <- 150
# Points at which variables of finite range are found.
n_range_points <- 32
# Largest relative growth of such a variable from far out to ten times as far: one that grows like a logarithm grows by
# a third.
same_range <- 0.01

# The variables whose standard deviations, or even means, cannot be estimated from the draws: a table with a row for
# each, of the `variable`, `khat`, the shape of its heavier tail, and `mean_ok`, whether its mean can be estimated. NULL
# for a fit without draws.
heavy_tails <- function(fit) {
  if (!is.null(fit$moments)) {
    return()
  }
  weighty <- rows_with_weight(fit$log_weights)
  most <- most_of_shape(1 / c(crossprod(weighty$w)))
  some <- thin_rows(weighty, rules$most_judged)
  # shapes of generalised Pareto distributions fitted to the tails, see src/pareto.c
  shapes <- function(n) {
    .Call(r_tail_shapes, fit$particles, some$rows, some$w, n, rules$part_of_tail, rules$tail_level, TRUE)
  }
  n <- 1 / sum(some$w^2)
  khat <- shapes(n)
  # again by the number of independent draws, since copies of a few draws do not show a tail
  if (any(khat > most / 2, na.rm = TRUE)) khat <- shapes(min(n, ess_mean(fit), na.rm = TRUE))
  heavy <- which(khat > most / 2)
  if (length(heavy) > 0) {
    heavy <- heavy[!colnames(fit$particles)[heavy] %in% of_finite_range(fit$target)]
  }
  new_table(variable = colnames(fit$particles)[heavy], khat = khat[heavy], mean_ok = khat[heavy] <= most)
}

# The names of the variables of finite range, such as those with two bounds, and probabilities, angles and correlations
# of programs: their values are hardly larger at points ten times as far out.
of_finite_range <- function(target) {
  size <- function(scale) {
    points <- scale * sin(outer(seq_len(n_range_points), seq_len(target$dim)^2))
    x <- if (is.null(target$outputs)) {
      change_scale(target, points, to_user = TRUE)
    } else {
      # where a program fails, the range is unknown
      suppressWarnings(kept_outputs(target, points), classes = "autosmc_warning_outputs")
    }
    apply(abs(x), 2, max)
  }
  near <- size(10 * widest_start)
  far <- size(100 * widest_start)
  variables <- if (is.null(target$outputs)) target$names else names(far)
  variables[which(far < 10^largest_square & far <= near * (1 + same_range))]
}

# The Pareto k of the upper tail of weighted draws x, not finite where it cannot be estimated. The default length of the
# tail is that of Vehtari, Simpson, Gelman, Yao and Gabry (2024).
tail_khat <- function(x, w, part = min(0.2, 3 * sqrt(sum(w^2)))) {
  .Call(r_tail_shapes, cbind(x), seq_along(x), w, 1 / sum(w^2), part, 0, FALSE)
}

# Largest Pareto k of ratios whose mean is reliable (Vehtari, Simpson, Gelman, Yao and Gabry, 2024).
largest_khat <- 0.7

# The largest Pareto k of h for which n draws suffice for the mean of h in practice (Vehtari, Simpson, Gelman, Yao and
# Gabry, 2024); the mean exists for k below 1. The k of the squares of x is twice that of x.
most_of_shape <- function(n) 1 - 1 / log10(n)

# A sentence for the variables whose means cannot be estimated, and one for the others; NULL for none.
describe_heavy <- function(heavy) {
  if (NROW(heavy) == 0) {
    return()
  }
  says <- function(which, moments) {
    if (any(which)) {
      sprintf(
        "Heavy tails: the draws do not determine the %s of %s (Pareto k %s %s).", moments,
        format_names(heavy$variable[which]), if (sum(which) == 1) "=" else "up to", fixed(max(heavy$khat[which]), 1)
      )
    }
  }
  c(says(!heavy$mean_ok, "mean and standard deviation"), says(heavy$mean_ok, "standard deviation"))
}

warn_of_heavy_tails <- function(fit) {
  says <- describe_heavy(fit$heavy_tails[fit$heavy_tails$mean_ok %in% FALSE, ])
  if (length(says) > 0) {
    warn("moments", c(
      stats::setNames(verbatim(says), c("", rep("!", length(says) - 1))),
      "i" = "Report medians and quantiles of these variables instead. The log evidence is not affected."
    ))
  }
}

# precision of means -----------------------------------------------------------

# The variances of the moments that a fit keeps; see only_moments().
variances_kept <- function(moments) if (is.matrix(moments$covariance)) diag(moments$covariance) else moments$covariance

weighted_moments <- function(fit) {
  if (!is.null(fit$moments)) {
    return(list(mean = unname(fit$moments$mean), sd = unname(sqrt(variances_kept(fit$moments)))))
  }
  rows <- which(exp(fit$log_weights) > 0) # the squares of others may overflow
  w <- exp(fit$log_weights[rows])
  list(mean = unname(weighted_mean(fit$particles, w, rows)), sd = unname(weighted_sd(fit$particles, w, rows)))
}

# The Monte Carlo standard errors of the means, from the differences between islands, weighted by their shares in the
# estimate; NA for a single island.
mcse_mean <- function(fit, mean) {
  n <- NROW(fit$islands)
  if (n < 2) {
    return(rep(NA_real_, length(mean)))
  }
  squares <- if (is.null(fit$moments)) {
    lapply(split(seq_along(fit$island), fit$island), function(rows) {
      weighted_mean(fit$particles, exp(fit$log_weights[rows]), rows, centre = mean)^2
    })
  } else {
    share <- exp(normalise_log(fit$islands$log_z))
    list(colSums((share[share > 0] * sweep(fit$moments$means, 2, mean))^2))
  }
  unname(sqrt(n / (n - 1) * Reduce(`+`, squares)))
}

# Whether the numbers of each column differ; NA where some are missing.
varying_columns <- function(x) {
  vapply(seq_len(ncol(x)), function(j) {
    ends <- range(x[, j])
    ends[2] > ends[1]
  }, NA)
}

# The effective sample size for means, of a fit or of pooled islands: the harmonic mean over the variables, since its
# inverse is unbiased. It is at most Kish's effective sample size of the weights, since few islands may agree by chance;
# for an exact reference it is Kish's. Variables that are constant, such as entries of the upper triangle of a Cholesky
# factor, are left out.
ess_mean <- function(fit) {
  kish <- if (is.null(fit$moments)) {
    1 / sum(exp(2 * fit$log_weights))
  } else {
    share <- exp(normalise_log(fit$islands$log_z))
    1 / sum((share^2 / fit$islands$ess)[share > 0])
  }
  if (is_exact_reference(fit$reference)) {
    return(kish)
  }
  moments <- weighted_moments(fit)
  mcse <- mcse_mean(fit, moments$mean)
  varies <- if (is.null(fit$moments)) which(varying_columns(fit$particles)) else which(moments$sd > 0)
  min(kish, 1 / mean((mcse / moments$sd)[varies]^2))
}
