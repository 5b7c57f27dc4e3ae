# Diagnostics of the islands: their scatter, their shares and those that died, and the two estimates.

diagnose_islands <- function(islands) {
  n <- NROW(islands)
  if (n < 2) {
    return()
  }
  living <- which(islands$log_z > -Inf)
  dead <- n - length(living)
  list(
    if (length(living) > 1) diagnose_scatter(row_of(islands, living)),
    if (n >= rules$least_islands) {
      share <- max(exp(normalise_log(islands$log_z)))
      diagnostic(
        "largest_share", share, rules$largest_share,
        sprintf("One of the %d islands makes up %.0f %% of the mean.", n, 100 * share)
      )
    },
    diagnostic(
      "dead_islands", dead, 0,
      sprintf("%d of %d islands lost all particles.", dead, n)
    )
  )
}

# Scatter beyond this multiple of the predicted one is suspicious, unless the islands are
# so few that it happens by chance in more than one of a thousand cases: then some have
# found what others have missed. Scatter that is but rounding is not. Where they predict
# none there is nothing to compare with: after many multinomial resamplings the estimate
# of a small variance may well be negative, and counts as 0.
diagnose_scatter <- function(islands) {
  n <- length(islands$log_z)
  found <- stats::sd(islands$log_z)
  predicted <- sqrt(mean(islands$predicted_sd^2))
  if (predicted == 0) {
    return()
  }
  ratio <- found / (predicted + rules$scatter_rounding)
  limit <- max(
    rules$suspicious_scatter,
    sqrt(stats::qchisq(rules$scatter_level, n - 1) / (n - 1))
  )
  diagnostic(
    "scatter", ratio, limit,
    sprintf(
      "The islands' estimates scatter %s times as much as they predict.",
      format(ratio, digits = 2)
    )
  )
}

# Two estimates from the same islands, with little in common but their draws.
diagnose_estimates <- function(estimates) {
  if (nrow(estimates) < 2) {
    return()
  }
  apart <- abs(diff(estimates$log_z)) / sqrt(sum(estimates$std_error^2))
  list(diagnostic(
    "estimates", apart, rules$errors_of_estimates,
    sprintf(
      "The estimates by SMC and by the bridge differ by %s standard errors.",
      format(apart, digits = 2)
    )
  ))
}
