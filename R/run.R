# One run of the sampler: from checked settings to the core and back.

# The number that tells the random streams of runs apart: the final runs are
# 1, 2, ..., by island; the adapting ones 2^31, 2^31 + 1, ..., by round.
run_key <- function(run, index) {
  if (run == "adapt") 2^31 + index else index
}

scout_key <- 2^31 - 1
edge_key <- 2^31 - 2
bridge_key <- 2^31 - 3 # less 1 and 2 for the two halves
rays_key <- 2^31 - 6
mirrors_key <- 2^31 - 7
angles_key <- 2^31 - 8
lines_key <- 2^31 - 9
truncated_key <- 2^31 - 10

# The clock of all that is timed.
seconds_now <- function() proc.time()[["elapsed"]]

# the run ---------------------------------------------------------------------

# A run, tuned or not. It is a pure function of the sampler, the path and the key.
#
# path: a list of `lambda` and, where there is nothing to tune, `step_size` and
# `refresh_rate`, each with an element a step; for temperatures that are found on the
# way, instead of `lambda` `adaptive_ess` and `n_steps`. run: "adapt", which tunes what
# the path does not give, or "final". index: the round, or the island.
#
# Returns its record, also when all particles die, a list of
# * `dead`: FALSE, or where all particles died, list(step, run, at): `at` are some of the
#   particles, on the user's scale;
# * `steps` and `runs`: tibbles with a row a step, and one row for the run;
# * `reference`: where it started;
# and where it is not dead
# * `particles`: an n x dim matrix; `unconstrained`: the same, where there are bounds;
# * `coordinates`: in which a normal reference is standard; `gradients`: those of the
#   log target there, for kernels that have them;
# * `log_target`: the log target there;
# * `log_weights`: normalised; `origins`: the first particle each descends from; `shared`: the
#   chance that two draws descend from the same one.
# Of an island that is what the sampler is to keep: see reduce_record().
# With a checkpoint it is taken from there, or kept there.
run_sampler <- function(sampler, path, run, index) {
  name <- run_name(run, index)
  settings <- if (!is.null(sampler$checkpoint)) settings_of_run(sampler, path, run)
  kept <- recall(sampler, name, settings, record_restorer(sampler, path, run, index))
  if (!is.null(kept)) {
    begin_run(sampler$progress, run, index, nrow(kept$steps))
    return(kept)
  }
  tuner <- if (run == "adapt" && is.null(path$step_size)) complete_tuner(sampler)
  config <- withCallingHandlers(
    core_config(sampler, path, tuner, run_key(run, index)),
    error = if_raised(function(e) rethrow_at_step(e, 0L, run))
  )
  begin_run(sampler$progress, run, index, config$n_steps)
  step <- NULL # under way; NULL before the first evaluation
  on_step <- function(now, lambda, ess, log_z) {
    step <<- now
    show_step(sampler$progress, now, lambda, ess / sampler$n_particles, log_z)
  }
  started <- seconds_now()
  result <- withCallingHandlers(
    tryCatch(
      .Call(r_smc_run, with_addresses(sampler$evaluators), config, on_step),
      # there is room for another error only when the stack has been left
      stackOverflowError = function(e) rethrow_at_step(e, step, run)
    ),
    error = if_raised(function(e) rethrow_at_step(e, step, run))
  )
  seconds <- seconds_now() - started
  record <- new_record(result, sampler, run, index, seconds)
  if (run == "final") {
    record <- reduce_record(record, sampler)
  }
  store(sampler, name, settings, stored_record(record), points_of(record, sampler))
  record
}

new_record <- function(result, sampler, run, index, seconds) {
  steps <- steps_table(result, run, index)
  if (result$status == status_failed) {
    abort_failed(result, steps, run)
  }
  is_dead <- result$status == status_dead
  shared <- if (!is_dead) concentration(exp(result$log_weights), result$origins)
  record <- list(
    dead = if (is_dead) death_of(result, run) else FALSE,
    steps = steps,
    runs = runs_table(result, run, index, sampler, steps, seconds, shared),
    reference = sampler$reference
  )
  if (is_dead) {
    return(record)
  }
  c(
    record, result[c("particles", "log_weights")], list(shared = shared),
    result[c("unconstrained", "coordinates", "gradients", "log_target", "origins")]
  )
}

is_dead <- function(record) !isFALSE(record$dead)

death_of <- function(result, run, n_kept = 64) {
  list(step = result$step, run = run, at = utils::head(result$particles, n_kept))
}

# The settings of a run, as the core reads them.
core_config <- function(sampler, path, tuner, key) {
  n_steps <- path$n_steps
  if (is.null(n_steps)) {
    n_steps <- length(path$lambda)
  }
  config <- list(
    kernel = sampler$kernel$options,
    n_particles = sampler$n_particles,
    n_steps = n_steps,
    lambda = path$lambda,
    adaptive_ess = path$adaptive_ess,
    step_size = path$step_size,
    refresh_rate = path$refresh_rate,
    tuner = tuner,
    resampling = sampler$resampling,
    ess_threshold = sampler$ess_threshold,
    seed = sampler$seed,
    run = key,
    names = sampler$target$names,
    threads = n_threads()
  )
  c(config, interface_reference(sampler, sampler$evaluators$reference, key))
}

# errors ----------------------------------------------------------------------

# What the user's own function threw, with the step named. The package's own
# errors come here too, on their way from the checks of a function's value. That a
# worker was lost is no fault of the target.
rethrow_at_step <- function(e, step, run) {
  if (is.null(step) || inherits(e, c("autosmc_error_located", "autosmc_error_worker"))) {
    return()
  }
  where <- where_in_run(step, run)
  failed <- "target"
  if (inherits(e, "autosmc_error_reference")) {
    failed <- "reference"
    e <- e$parent
  }
  hint <- NULL
  if (inherits(e, "autosmc_error_hint")) {
    hint <- e$message
    e <- e$parent
  }
  abort(
    c("The {failed} failed {where}.", "i" = if (!is.null(hint)) "{hint}"),
    c("target", "located"),
    parent = in_utf8(e),
    step = step,
    run = run
  )
}

# A condition whose message can be shown: bytes that are not UTF-8 are written as "<ff>".
in_utf8 <- function(e) {
  message <- conditionMessage(e)
  if (!all(validUTF8(message))) {
    e$message <- as_utf8(message)
  }
  e
}

as_utf8 <- function(text) {
  if (all(Encoding(text) != "bytes") && all(validEnc(text))) enc2utf8(text) else iconv(text, "UTF-8", "UTF-8", sub = "byte")
}

where_in_run <- function(step, run) {
  if (run == "scout") {
    "in the scout, before the first run"
  } else if (run == "bridge") {
    "at a draw for the bridge estimate, after the last run"
  } else if (run == "checkpoint") {
    "at particles of an earlier run"
  } else if (step == 0) {
    sprintf("at the start of the %s run, at a draw from the reference", run)
  } else {
    sprintf("at step %d of the %s run", step, run)
  }
}

# Of the core's `smc_status`.
status_failed <- 1
status_dead <- 2

abort_failed <- function(result, steps, run) {
  where <- where_in_run(result$step, run)
  code <- result$failure
  abort(
    "The target's routine returned the code {code} {where}.",
    "target",
    step = result$step,
    run = run,
    trace = steps
  )
}

# The error of a verb that cannot go on without this run.
abort_dead <- function(record, sampler) {
  where <- where_in_run(record$dead$step, record$dead$run)
  seen <- look_at_dead(sampler, record$dead$at)
  reason <- seen$reason
  helps <- what_revives(seen, record$dead$step)
  abort(
    c(
      "No particle is left {where}: every weight is zero.",
      "x" = if (!is.null(seen)) {
        "The target's log density is {seen$kinds} of {seen$n} particles that were looked at."
      },
      "x" = if (!is.null(reason)) "The target says: {reason}",
      "i" = if (is.null(seen)) {
        "The target's log density is NaN or infinite at every particle, or the step was too
          long."
      } else if (seen$any_finite) {
        "Where the log density is finite the step was too long."
      },
      stats::setNames(helps, rep("i", length(helps))),
      "i" = "The steps up to there are in the error's {.field trace}."
    ),
    "degenerate",
    step = record$dead$step,
    run = record$dead$run,
    n_target_evals = record$runs$n_target_evals,
    trace = record$steps
  )
}

# What may help where all particles have died in this step, of two lines at most. seen: of
# look_at_dead().
what_revives <- function(seen, step) {
  if (is.null(seen) || seen$any_finite || step > 1) {
    return("Try more steps ({.arg n_steps}), a {.arg reference} closer to the target, or more
      particles ({.arg n_particles}).")
  }
  c(
    if (any(grepl("NaN", seen$kinds))) {
      "Is there an NA in the data, or an index or a name that the variables do not have?"
    },
    "Bring a point at which the log density is finite:
      {.code reference = reference_laplace(target, start)}."
  )
}

# What the target says of particles that have all died: list(kinds, n, any_finite, reason),
# of which `reason` is NULL where the target gives none. NULL where it can no longer be
# evaluated. x: some of them, on the user's scale.
look_at_dead <- function(sampler, x) {
  ask <- function(code) tryCatch(suppressWarnings(code), error = function(e) NULL)
  target <- sampler$target
  said <- ask(evaluate_target(target, x, FALSE, evaluators = sampler$evaluators)$log_density)
  if (!is.null(said)) {
    counts <- table(kind_of_density(said), exclude = NULL)
    list(
      kinds = paste(names(counts), "at", counts),
      n = length(said),
      any_finite = "finite" %in% names(counts),
      reason = if (!is.null(target$why)) ask(target$why(x))
    )
  }
}

# Of what kind log densities are, in words: see is_possible() in src/path.c.
kind_of_density <- function(x) {
  kind <- rep("finite", length(x))
  kind[abs(x) >= 1e15] <- "1e15 or more in size"
  kind[x == Inf] <- "+Inf"
  kind[x == -Inf] <- "-Inf"
  kind[is.na(x)] <- "NaN"
  kind
}

# tables ----------------------------------------------------------------------

steps_table <- function(result, run, index) {
  done <- seq_len(result$n_done)
  trace <- lapply(result$trace, `[`, done)
  status <- trace$tuner_status
  status[status < 0] <- NA
  na <- function(x) ifelse(is.nan(x), NA_real_, x)
  number <- function(this) {
    rep(if (run == this) as.integer(index) else NA_integer_, length(done))
  }
  new_table(
    run = rep(run, length(done)),
    round = number("adapt"),
    island = number("final"),
    step = done,
    lambda = trace$lambda,
    step_size = trace$step_size,
    refresh_rate = na(trace$refresh_rate),
    acceptance = na(trace$acceptance),
    ess = trace$ess,
    lcb = trace$lcb,
    length = trace$length,
    barrier = cumsum(trace$lcb),
    resampled = trace$resampled,
    log_z = trace$log_z,
    n_objective_evals = trace$n_objective_evals,
    n_target_evals = trace$n_target_evals,
    tuner_status = tuner_statuses[status + 1L]
  )
}

# One row. A run in which all died is an estimate of zero. shared: of run_sampler().
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
    n_impossible = result$n_impossible,
    seconds = if (done) seconds else NA_real_,
    predicted_sd = if (done) {
      predicted_sd(shared, sampler$n_particles, sampler$resampling, sum(steps$resampled))
    } else {
      NA_real_
    }
  )
}

dead_ends <- list(log_z = -Inf, ess = 0, barrier = NA_real_)

# The spread of log Z that a run predicts by itself, from how its particles descend from
# those that it began with: with the shares that the descendants of each have in the final
# weights, the relative variance of Z is 1 - (N / (N - 1))^k (1 - sum of squared shares)
# (Lee and Whiteley, 2018). With multinomial resampling k is one more than the number of
# resamplings, each of which adds a variance of 1 / N to the shares; the other schemes add
# next to nothing, and k is 1.
predicted_sd <- function(shared, n, resampling, n_resampled) {
  k <- if (resampling == "multinomial") n_resampled + 1 else 1
  sqrt(max(1 - (n / (n - 1))^k * (1 - shared), 0))
}

name_columns <- function(x, names) {
  colnames(x) <- names
  x
}

# Log weights whose exponentials sum to one.
normalise_log <- function(log_weights) {
  shifted <- log_weights - max(log_weights)
  shifted - log(sum(exp(shifted)))
}
