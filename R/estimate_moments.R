# Whether the draws tell means and standard deviations. Far out a density may fall like a power: the draws then have
# a mean of squares, as any numbers have, but the next million have another, and the target may have none. The log
# evidence and quantiles are not affected.

# Decimal logarithm of a value whose square is no number any more.
largest_square <- 150
# Points that tell whether a variable stays in a finite range, and by which part it may grow from afar to ten times as
# far: what grows like a logarithm does so by a third.
n_range_points <- 32
same_range <- 0.01

# The variables whose standard deviations, or even means, cannot be estimated from the draws: a table with a row for
# each of these, `variable`, `khat`, the shape of its heavier tail, and `mean_ok`, whether the mean can be. NULL for a
# fit without draws.
heavy_tails <- function(fit) {
  if (!is.null(fit$moments)) {
    return()
  }
  weighty <- weighty_rows(fit$log_weights)
  most <- most_of_shape(1 / c(crossprod(weighty$w)))
  some <- thinned(weighty, rules$most_judged)
  # those of generalised Pareto distributions, see src/pareto.c
  shapes <- function(n) {
    .Call(r_tail_shapes, fit$particles, some$rows, some$w, n, rules$part_of_tail, rules$tail_level, TRUE)
  }
  n <- 1 / sum(some$w^2)
  khat <- shapes(n)
  # copies of few draws show no tail
  if (any(khat > most / 2, na.rm = TRUE)) khat <- shapes(min(n, ess_mean(fit), na.rm = TRUE))
  heavy <- which(khat > most / 2)
  if (length(heavy) > 0) {
    heavy <- heavy[!colnames(fit$particles)[heavy] %in% of_finite_range(fit$target)]
  }
  new_table(variable = colnames(fit$particles)[heavy], khat = khat[heavy], mean_ok = khat[heavy] <= most)
}

# The names of those variables that stay in a finite range wherever the sampler goes, as what has two bounds does,
# and probabilities, angles and correlations of programs: those whose values are no larger from afar than from ten times
# as far.
of_finite_range <- function(target) {
  size <- function(scale) {
    points <- scale * sin(outer(seq_len(n_range_points), seq_len(target$dim)^2))
    x <- if (is.null(target$outputs)) {
      change_scale(target, points, to_user = TRUE)
    } else {
      # where a program fails nothing is known
      suppressWarnings(kept_outputs(target, points), classes = "autosmc_warning_outputs")
    }
    apply(abs(x), 2, max)
  }
  near <- size(10 * widest_start)
  far <- size(100 * widest_start)
  variables <- if (is.null(target$outputs)) target$names else names(far)
  variables[which(far < 10^largest_square & far <= near * (1 + same_range))]
}

# The Pareto k of the upper tail of x, of draws with these weights, by default as long a tail as Vehtari et al. have it;
# not finite where it cannot be told.
tail_khat <- function(x, w, part = min(0.2, 3 * sqrt(sum(w^2)))) {
  .Call(r_tail_shapes, cbind(x), seq_along(x), w, 1 / sum(w^2), part, 0, FALSE)
}

# Above it a mean of ratios is not to be trusted (Vehtari, Simpson, Gelman, Yao and Gabry, 2024). Smoothed by the fitted
# tail such means have the same errors.
largest_khat <- 0.7

# The largest shape k of a tail of h with which n draws tell the mean of h in practice (Vehtari, Simpson, Gelman, Yao
# and Gabry, 2024); there is a mean where k is below 1. The tail of squares is twice as heavy as that of x.
most_of_shape <- function(n) 1 - 1 / log10(n)

# A sentence for the variables of which not even the mean can be told, and one for the others; NULL for none.
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

# how well means are known --------------------------------------------------------

# Of the moments that a fit keeps; see only_moments().
variances_kept <- function(moments) if (is.matrix(moments$covariance)) diag(moments$covariance) else moments$covariance

weighted_moments <- function(fit) {
  if (!is.null(fit$moments)) {
    return(list(mean = unname(fit$moments$mean), sd = unname(sqrt(variances_kept(fit$moments)))))
  }
  rows <- which(exp(fit$log_weights) > 0) # others may be so far out that their squares are infinite
  w <- exp(fit$log_weights[rows])
  list(mean = unname(weighted_mean(fit$particles, w, rows)), sd = unname(weighted_sd(fit$particles, w, rows)))
}

# For each island, its share in the estimate times how far its own mean is off; an
# island in which all died has no share.
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

# Whether numbers of a column differ; NA where some are none.
varying_columns <- function(x) {
  vapply(seq_len(ncol(x)), function(j) {
    ends <- range(x[, j])
    ends[2] > ends[1]
  }, NA)
}

# Of a fit, or of islands that are pooled: how many independent draws would give as good means. Of the variables' figures
# this is the harmonic mean, whose inverse is unbiased. By chance few islands may
# agree too well; the weights alone allow no more than Kish's figure, which is that of draws from a reference that is
# the target. What does not vary, as the upper triangle of a Cholesky factor, has no figure.
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
