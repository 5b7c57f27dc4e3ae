# Diagnostics by earlier runs: rounds and passes that found more.

# What an estimate misses makes it lower. So no round, and no islands of an earlier pass,
# may have found much more.
diagnose_rounds <- function(course, sampler, estimate) {
  if (length(course$records) == 0) {
    return()
  }
  runs <- bind_rows(lapply(course$records, `[[`, "runs"))
  counts <- runs$n_particles == sampler$n_particles & runs$predicted_sd < rules$sure_round
  earlier <- if (length(course$passes) > 0) bind_rows(course$passes)
  log_z <- c(runs$log_z[counts %in% TRUE], earlier$log_z)
  error <- c(runs$predicted_sd[counts %in% TRUE], earlier$std_error)
  if (length(log_z) == 0) {
    return()
  }
  own <- if (is.na(estimate$std_error)) 0 else estimate$std_error
  value <- max((log_z - estimate$log_z - rules$round_margin) / sqrt(error^2 + own^2))
  list(diagnostic(
    "rounds", value, rules$round_errors,
    sprintf(
      "An earlier run found more evidence, by %s standard errors.",
      format(value, digits = 2)
    )
  ))
}

# Two passes that agree are evidence; one that finds more than the one before is not the
# last word. last: the estimate of the pass before, NULL in the first.
diagnose_passes <- function(last, estimate) {
  if (is.null(last)) {
    return()
  }
  error <- sqrt(last$std_error^2 + estimate$std_error^2)
  rise <- estimate$log_z - last$log_z
  list(diagnostic(
    "passes", rise, rules$rise_of_pass + rules$errors_apart * error,
    sprintf("The last pass raised the estimate by %s: the next might too.", format(rise, digits = 2))
  ))
}
