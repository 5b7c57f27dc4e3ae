# Estimates of the evidence from the islands: that of SMC, which is unbiased, and the bridge
# (see estimate_bridge.R), which is consistent, and mostly much closer.

# The least error of an estimate: rounding of log densities of 1e5 and of sums of so many.
least_error <- 1e-8

# final: islands, of pool(); NULL where all have died. Returned with a row a method in `estimates`, and in
# `n_bridge_evals` what the bridge has cost.
estimate_evidence <- function(sampler, final, bridges) {
  if (is.null(final)) {
    return(list(estimates = new_table(std_error = NA_real_), n_bridge_evals = 0))
  }
  smc <- combine(final$islands)
  # a bridge whose least error is larger would not be reported
  is_sure <- is_exact_reference(sampler$reference) && isTRUE(smc$std_error < rules$least_bridge_error)
  bridge <- if (bridges && !is_sure && is.null(final$moments)) bridge(sampler, final) else list(n_target_evals = 0)
  final$estimates <- bind_rows(list(estimate_row("smc", smc), estimate_row("bridge", bridge$estimate)))
  final$n_bridge_evals <- bridge$n_target_evals
  final
}

# A row, as a list. estimate: of interval(); NULL for none.
estimate_row <- function(method, estimate) {
  if (!is.null(estimate)) c(list(method = method), estimate)
}

# The estimate that islands report, as a list: the bridge, where its error is clearly the smaller one. Where it gains
# little its distribution is far from the target, and SMC is the surer. Where the two contradict each other it is the
# higher one: a part that is missed makes an estimate lower.
headline <- function(estimates) {
  error <- estimates$std_error
  contradict <- isTRUE(errors_between(estimates) > rules$errors_contradict)
  bridges <- length(error) > 1 && isTRUE(error[2] < rules$bridge_gain * error[1])
  row_of(estimates, if (contradict) which.max(estimates$log_z) else if (bridges) 2 else 1)
}

# By how many standard errors the estimates by SMC and by the bridge differ; NULL where there is but one.
errors_between <- function(estimates) {
  if (nrow(estimates) > 1) abs(diff(estimates$log_z)) / sqrt(sum(estimates$std_error^2))
}

# An estimate with the error that a fit reports, which counts the largest shift of log Z that a diagnostic has seen,
# beside the `sampling_error`, that of chance.
with_shift <- function(estimate, diagnostics) {
  moved <- moved_estimate(estimate, list(log_z = 0, std_error = max(0, diagnostics$shift)))
  c(moved[c("log_z", "std_error")], sampling_error = estimate$std_error, moved[c("conf_low", "conf_high")])
}

# An estimate plus a difference that has an error.
moved_estimate <- function(estimate, by) {
  error <- sqrt(estimate$std_error^2 + by$std_error^2)
  half <- (estimate$conf_high - estimate$log_z) * error / estimate$std_error
  estimate$log_z <- estimate$log_z + by$log_z
  estimate$std_error <- error
  estimate$conf_low <- estimate$log_z - half
  estimate$conf_high <- estimate$log_z + half
  estimate
}

# The estimate from several islands: the mean of the Z's, its error by the delta method,
# and an interval by Student's t. The error is never less than what the islands predict
# by themselves: where they agree by chance, all may have missed the same; and never less than
# rounding, which is all that is left where the reference is the target.
combine <- function(islands) {
  n <- nrow(islands)
  largest <- max(islands$log_z)
  z <- exp(islands$log_z - largest)
  variance <- max(stats::var(z), mean((z * islands$predicted_sd)[z > 0]^2))
  estimate <- largest + log(mean(z))
  error <- if (n > 1) max(sqrt(variance / n) / mean(z), least_error) else NA_real_
  interval(estimate, error, n - 1)
}
