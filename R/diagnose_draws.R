# Diagnostics by the draws: their width, and how many of them are independent.

width_diagnostic <- new_diagnostic(
  advise = c("far_out", "particles"),
  judge = function(seen, found) {
    if (inherits(seen$final$reference, "smc_reference_gaussian")) {
      diagnostic(widest(seen$final), rules$widest, c("The draws have ", " times the variance of the reference."))
    }
  }
)

# From a reference that fits, many draws have an ancestor of their own. Where few have, the
# islands' estimates are skew: most are too low, and scatter less than they are off. A small error
# of the bridge shows that nothing is missed all the same. Since the errors are too small, too, any higher estimate,
# of the same islands or of others, counts as it is.
ancestor_ess_diagnostic <- new_diagnostic(
  advise = c("form", "particles"),
  judge = function(seen, found) {
    if (!isTRUE(seen$course$best$is_fitted) || !isTRUE(seen$estimate$std_error > rules$sure_enough)) {
      return()
    }
    final <- seen$final
    n <- 1 / final$shared
    all <- sum(final$islands$n_particles[final$islands$log_z > -Inf])
    few <- round(n)
    others <- c(final$estimates$log_z, vapply(seen$course$passes, function(row) row$log_z, 0))
    diagnostic(
      n / all, rules$least_ancestor_ess,
      sprintf("The %s draws have only about %s ancestor%s.", count(all), count(few), if (few > 1) "s" else ""),
      shift = max(others) - seen$estimate$log_z, beyond = "below"
    )
  }
)

# Ratios of the exact integral over random effects to what was sampled, where they have a heavy tail: the largest are
# mostly not among those that were drawn, and the mean is too low.
correction_diagnostic <- new_diagnostic(
  judge = function(seen, found) {
    if (isTRUE(is.finite(seen$khat))) {
      says <- "The ratios of the integral over the random effects to what was sampled have a heavy tail (Pareto k "
      diagnostic(seen$khat, largest_khat, c(says, ")."))
    }
  }
)
