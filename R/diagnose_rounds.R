# Diagnostics by earlier runs: whether a round or an earlier pass found more evidence than the reported islands.

# An estimate that misses mass is too low. So no adapting run, and no islands of an earlier pass, should have a
# significantly higher estimate. The value is the largest difference in standard errors.
rounds_diagnostic <- new_diagnostic(
  advise = "particles", needs_draws = FALSE,
  judge = function(seen, found) {
    course <- seen$course
    runs <- unclass(bind_rows(lapply(course$records, `[[`, "runs")))
    counts <- which(runs$n_particles == seen$sampler$n_particles & runs$predicted_sd < rules$sure_round)
    passes <- unclass(bind_rows(course$passes))
    log_z <- c(runs$log_z[counts], passes$log_z)
    error <- c(runs$predicted_sd[counts], passes$std_error)
    if (length(log_z) == 0) {
      return()
    }
    by_smc <- row_of(seen$final$estimates, 1)
    own <- if (is.na(by_smc$std_error)) 0 else by_smc$std_error
    errors <- (log_z - by_smc$log_z - rules$margin) / sqrt(error^2 + own^2)
    most <- which.max(errors)
    says <- c("An earlier run found more evidence, by ", " standard errors.")
    diagnostic(errors[most], rules$errors_contradict, says, shift = log_z[most] - seen$estimate$log_z)
  }
)

# Two passes that agree support the estimate. If the last pass has raised it, a further pass might raise it again.
passes_diagnostic <- new_diagnostic(
  advise = c("form", "particles"), needs_draws = FALSE,
  judge = function(seen, found) {
    last <- seen$course$estimate
    if (!is.null(last)) {
      error <- sqrt(last$std_error^2 + seen$estimate$std_error^2)
      rise <- seen$estimate$log_z - last$log_z
      says <- c("The last pass raised the estimate by ", ": the next might too.")
      diagnostic(rise, rules$least_rise + rules$errors_apart * error, says, shift = rise)
    }
  }
)
