# Diagnostics of the draws: their variance relative to the reference, the effective number of their ancestors, and the
# tail of the importance ratios for the integral over random effects.

width_diagnostic <- new_diagnostic(
  advise = c("far_out", "particles"),
  judge = function(seen, found) {
    if (inherits(seen$final$reference, "smc_reference_gaussian")) {
      diagnostic(widest(seen$final), rules$widest, c("The draws have ", " times the variance of the reference."))
    }
  }
)

# The effective number of ancestors, the particles at temperature 0 from which the draws descend. From a reference close
# to the target it is large. Where it is small, the distribution of the islands' estimates is skew: most are too low,
# and they scatter less than their bias. A small standard error of the reported estimate shows that nothing is missed.
# The shift is the difference to the highest estimate, without regard to the standard errors, which are too small too.
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

# The Pareto k of the ratios of the exact integral over random effects to the sampled density. Where their tail is
# heavy, the largest ratios are mostly not among those drawn, and the mean is too low.
correction_diagnostic <- new_diagnostic(
  judge = function(seen, found) {
    if (isTRUE(is.finite(seen$khat))) {
      says <- "The ratios of the integral over the random effects to what was sampled have a heavy tail (Pareto k "
      diagnostic(seen$khat, largest_khat, c(says, ")."))
    }
  }
)
