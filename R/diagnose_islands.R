# Diagnostics of the islands: their scatter, their shares and those that died, and the two estimates.

# From so many islands on one that makes up half of the mean is suspicious.
least_islands <- 4
# Added to a predicted scatter that is 0 but for rounding.
scatter_rounding <- 1e-7

# Scatter beyond this multiple of the predicted one is suspicious, unless the islands are
# so few that it happens by chance in more than one of a thousand cases: then some have
# found what others have missed. Scatter that is but rounding is not. Where they predict
# none there is nothing to compare with: after many multinomial resamplings the estimate
# of a small variance may well be negative, and counts as 0.
scatter_diagnostic <- new_diagnostic(
  advise = "particles", needs_draws = FALSE,
  judge = function(seen, found) {
    islands <- row_of(seen$final$islands, which(seen$final$islands$log_z > -Inf))
    n <- length(islands$log_z)
    predicted <- sqrt(mean(islands$predicted_sd^2))
    if (n < 2 || predicted == 0) {
      return()
    }
    ratio <- stats::sd(islands$log_z) / (predicted + scatter_rounding)
    limit <- max(rules$suspicious_scatter, sqrt(stats::qchisq(rules$scatter_level, n - 1) / (n - 1)))
    diagnostic(ratio, limit, c("The islands' estimates scatter ", " times as much as they predict."))
  }
)

share_diagnostic <- new_diagnostic(
  advise = "particles", needs_draws = FALSE,
  judge = function(seen, found) {
    log_z <- seen$final$islands$log_z
    if (length(log_z) >= least_islands) {
      share <- max(exp(normalise_log(log_z)))
      says <- sprintf("One of the %d islands makes up %.0f %% of the mean.", length(log_z), 100 * share)
      diagnostic(share, rules$largest_share, says)
    }
  }
)

dead_diagnostic <- new_diagnostic(
  advise = c("far_out", "particles"), needs_draws = FALSE,
  judge = function(seen, found) {
    log_z <- seen$final$islands$log_z
    dead <- sum(log_z == -Inf)
    if (length(log_z) > 1) {
      diagnostic(dead, 0, sprintf("%d of %d islands lost all particles.", dead, length(log_z)))
    }
  }
)

# Two estimates from the same islands, with little in common but their draws.
estimates_diagnostic <- new_diagnostic(
  advise = "particles", needs_draws = FALSE,
  judge = function(seen, found) {
    apart <- errors_between(seen$final$estimates)
    if (!is.null(apart)) {
      says <- c("The estimates by SMC and by the bridge differ by ", " standard errors.")
      diagnostic(apart, rules$errors_contradict, says, shift = diff(seen$final$estimates$log_z))
    }
  }
)
