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
ratios_key <- 2^31 - 11
plot_key <- 2^31 - 12
copies_key <- 2^31 - 13
fit_key <- 2^31 - 14 # less the number of runs so far
models_key <- 2^30
prior_key <- 2^30 + 1
effects_key <- 2^30 + 2
jumps_key <- 2^30 + 3
effects_draws_key <- 2^30 + 4

# Numbers in a matrix of particles, from which R collects its memory after a run and before there is as much again.
large_run <- 1e6

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
# Of the particles that is what is to be kept: see reduce_record().
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
  config <- located(run, core_config(sampler, path, tuner, run_key(run, index)))
  begin_run(sampler$progress, run, index, config$n_steps)
  step <- NULL # under way; NULL before the first evaluation
  on_step <- function(now, lambda, ess, log_z) {
    step <<- now
    show_step(sampler$progress, now, lambda, ess / sampler$n_particles, log_z)
  }
  started <- seconds_now()
  rethrow <- function(e) rethrow_at_step(e, step, run)
  result <- withCallingHandlers( # as located() does it, with a frame less for what users see of a stack
    tryCatch(
      .Call(r_smc_run, with_addresses(sampler$evaluators), config, on_step),
      stackOverflowError = rethrow
    ),
    error = if_raised(rethrow)
  )
  seconds <- seconds_now() - started
  if (length(result$particles) >= large_run) gc() # R would wait until there is half as much again
  record <- reduce_record(new_record(result, sampler, run, index, seconds), sampler, keep_of(sampler, run))
  store(sampler, name, settings, stored_record(record), points_of(record, sampler))
  record
}

new_record <- function(result, sampler, run, index, seconds) {
  steps <- steps_table(result, run, index)
  if (result$status == status_failed) {
    abort(
      "The target's routine returned the code {result$failure} {where_in_run(result$step, run)}.", "target",
      step = result$step, run = run, trace = steps
    )
  }
  is_dead <- result$status == status_dead
  shared <- if (!is_dead) concentration(exp(result$log_weights), result$origins)
  c(
    list(
      dead = if (is_dead) list(step = result$step, run = run, at = utils::head(result$particles, 64)) else FALSE,
      steps = steps,
      runs = runs_table(result, run, index, sampler, steps, seconds, shared),
      reference = sampler$reference
    ),
    if (!is_dead) {
      c(
        result[c("particles", "log_weights")], list(shared = shared),
        result[c("unconstrained", "coordinates", "gradients", "log_target", "origins")]
      )
    }
  )
}

# The settings of a run, as the core reads them.
core_config <- function(sampler, path, tuner, key) {
  c(
    sampler[c("n_particles", "resampling", "ess_threshold", "seed")],
    path[intersect(c("lambda", "adaptive_ess", "step_size", "refresh_rate"), names(path))],
    list(
      kernel = sampler$kernel$options, n_steps = max(path$n_steps, length(path$lambda)), tuner = tuner, run = key,
      names = sampler$target$names, threads = n_threads()
    ),
    interface_reference(sampler, sampler$evaluators$reference, key)
  )
}

# errors ----------------------------------------------------------------------

# The error of a verb that cannot go on without this run.
abort_dead <- function(record, sampler) {
  seen <- look_at_dead(sampler, record$dead$at)
  helps <- what_revives(seen, record$dead$step)
  abort(
    c(
      "No particle is left {where_in_run(record$dead$step, record$dead$run)}: every weight is zero.",
      "x" = if (!is.null(seen)) {
        "The target's log density is {seen$kinds} of {seen$n} particles that were looked at."
      },
      "x" = if (!is.null(seen$reason)) "The target says: {seen$reason}",
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
