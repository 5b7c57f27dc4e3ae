# Diagnostics of the islands' estimates: their scatter, the share of each in the mean, islands in which all particles
# died, and the difference between the SMC and the bridge estimate.

# The largest share is judged from this many islands on.
least_islands <- 4
# Added to the predicted standard deviation, so that scatter by rounding alone does not fail.
scatter_rounding <- 1e-7

# The standard deviation of the islands' log Z over the one that they predict. A large ratio shows that some islands
# have found mass that others have missed. For few islands the limit is the quantile `scatter_level` of the ratio under
# the predicted variance. The diagnostic does not apply where the predicted variance is 0: after many multinomial
# resamplings the estimate of a small variance may be negative, and is set to 0.
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

# The SMC and the bridge estimate use the same draws in different ways, so they should agree.
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
