# Records, the results of runs: see run_sampler() for their elements.

# The particles on the unconstrained scale.
unconstrained_particles <- function(record) {
  if (is.null(record$unconstrained)) record$particles else record$unconstrained
}

all_dead <- function(records) all(vapply(records, is_dead, NA))

# Elements that with_images() computes from the pooled coordinates when all islands are there, so as to save memory.
made_by_maps <- c("particles", "unconstrained")

# Pooled draws with these elements, which are identical to those of the islands.
with_images <- function(final, target) {
  if (!is.null(final$coordinates)) {
    x <- forward_maps(maps_of(final$reference, target$dim), final$coordinates)$x
    scale <- scale_maps(target)
    final["unconstrained"] <- list(if (!is.null(scale)) x)
    final$particles <- name_columns(forward_maps(scale, x)$x, target$names)
  }
  final
}

n_living <- function(records) sum(!vapply(records, is_dead, NA))

# The gradients of the log target on the unconstrained scale at some of a record's particles; NULL where there are none,
# or not all are finite. They are computed from those in the coordinates of the reference, unless the record has
# `target_gradients`. It has these if points far from the particles were added, where the maps may lose all digits.
target_gradients <- function(record, rows) {
  if (!is.null(record$target_gradients)) {
    return(record$target_gradients[rows, , drop = FALSE])
  }
  if (!is.null(record$gradients)) {
    z <- record$coordinates[rows, , drop = FALSE]
    g <- forward_maps(maps_of(record$reference, ncol(z)), z, record$gradients[rows, , drop = FALSE])$g
    if (all(is.finite(g))) g
  }
}

is_dead <- function(record) !isFALSE(record$dead)

# Values of the core's `smc_status`.
status_failed <- 1
status_dead <- 2

steps_table <- function(result, run, index) {
  done <- seq_len(result$n_done)
  trace <- lapply(result$trace, `[`, done)
  may_lack <- c("refresh_rate", "acceptance")
  trace[may_lack] <- lapply(trace[may_lack], function(x) ifelse(is.nan(x), NA_real_, x))
  trace$barrier <- cumsum(trace$lcb)
  trace$tuner_status <- tuner_statuses[replace(trace$tuner_status, trace$tuner_status < 0, NA) + 1L]
  number <- function(this) {
    rep(if (run == this) as.integer(index) else NA_integer_, length(done))
  }
  numbers <- list(run = rep(run, length(done)), round = number("adapt"), island = number("final"), step = done)
  as_table(c(numbers, trace[step_columns]))
}

step_columns <- c(
  "lambda", "step_size", "refresh_rate", "acceptance", "ess", "lcb", "length", "barrier", "resampled", "log_z",
  "n_objective_evals", "n_target_evals", "tuner_status"
)

# The row of a run. If all particles died, the estimate of Z is zero. shared: of run_sampler().
runs_table <- function(result, run, index, sampler, steps, seconds, shared) {
  done <- result$status == 0
  last <- if (done) lapply(steps, function(x) x[length(x)]) else dead_ends
  new_table(
    run = run,
    round = if (run == "adapt") as.integer(index) else NA_integer_,
    log_z = last$log_z,
    biased = run == "adapt" || is_biased(sampler$kernel),
    n_particles = sampler$n_particles,
    n_steps = nrow(steps),
    ess = last$ess,
    barrier = last$barrier,
    n_objective_evals = sum(steps$n_objective_evals),
    n_target_evals = result$n_evals,
    n_calls = result$n_calls,
    n_impossible = result$n_impossible,
    seconds = if (done) seconds else NA_real_,
    predicted_sd = predicted_sd(shared, sampler$n_particles, sampler$resampling, sum(steps$resampled))
  )
}

dead_ends <- list(log_z = -Inf, ess = 0, barrier = NA_real_)

# The standard deviation of log Z estimated from the genealogies of a single run (Lee and Whiteley, 2018). With the
# shares of the final weights that descend from each initial particle, the relative variance of Z is 1 - (N / (N - 1))^k
# (1 - sum of squared shares). For multinomial resampling k is one more than the number of resamplings, each of which
# adds a variance of 1 / N to the shares. For the other schemes, which add almost none, k is 1.
predicted_sd <- function(shared, n, resampling, n_resampled) {
  if (is.null(shared)) {
    return(NA_real_)
  }
  k <- if (resampling == "multinomial") n_resampled + 1 else 1
  sqrt(max(1 - (n / (n - 1))^k * (1 - shared), 0))
}
