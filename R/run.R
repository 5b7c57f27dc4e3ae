# One run of the annealed SMC sampler in the compiled core, and the keys of all random streams.

# The key that selects the random stream of a run: 1, 2, ... for islands; 2^31, 2^31 + 1, ... for adapting runs.
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

# Size of a matrix of particles, in numbers, from which on garbage is collected right after a run.
large_run <- 1e6

# the run ---------------------------------------------------------------------

# A run, which is a pure function of the sampler, the path and the key.
#
# path: a list of `lambda` and, where there is nothing to tune, `step_size` and `refresh_rate`, each with an element for
# each step; or `adaptive_ess` and `n_steps`, where the run finds the temperatures. run: "adapt", which tunes what the
# path does not give, or "final". index: the number of the round or of the island.
#
# Returns a record, also if all particles die, a list of
# * `dead`: FALSE, or if all particles died list(step, run, at), where `at` are some particles on the user's scale;
# * `steps` and `runs`: tables with a row for each step, and one row for the run;
# * `reference`: that of the sampler;
# and unless all particles died
# * `particles`: an n x dim matrix; `unconstrained`: the same on the unconstrained scale, where there are bounds;
# * `coordinates`: in which a normal reference is standard normal; `log_target`: the log target density there;
#   `gradients`: its gradients there, for kernels that use them;
# * `log_weights`: normalised; `origins`: the initial particle from which each descends; `shared`: the probability that
#   two draws descend from the same one.
# Particles are reduced to what is to be kept, by reduce_record(). With a checkpoint the record is read from there if it
# exists, and else written there.
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
  step <- NULL # the current step; NULL before the first evaluation
  on_step <- function(now, lambda, ess, log_z) {
    step <<- now
    show_step(sampler$progress, now, lambda, ess / sampler$n_particles, log_z)
  }
  started <- seconds_now()
  rethrow <- function(e) rethrow_at_step(e, step, run)
  result <- withCallingHandlers( # like located(), with one frame less in the stack that users see
    tryCatch(
      .Call(r_smc_run, with_addresses(sampler$evaluators), config, on_step),
      stackOverflowError = rethrow
    ),
    error = if_raised(rethrow)
  )
  seconds <- seconds_now() - started
  if (length(result$particles) >= large_run) gc() # R itself waits until half as much again is in use
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

# The settings of a run in the form that the core reads.
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

# The error where all particles of a run have died.
abort_dead <- function(record, sampler) {
  seen <- look_at_dead(sampler, record$dead$at)
  helps <- advice_for_dead(seen, record$dead$step)
  abort(
    c(
      "No particle is left {where_in_run(record$dead$step, record$dead$run)}: every weight is zero.",
      "x" = if (!is.null(seen)) {
        "The target's log density is {seen$kinds} of {seen$n} particles that were checked."
      },
      "x" = if (!is.null(seen$reason)) "The target says: {seen$reason}",
      "i" = if (is.null(seen)) {
        "The target's log density is NaN or infinite at every particle, or the step was too
          long."
      } else if (seen$any_finite) {
        "At particles with a finite log density the step was too long."
      },
      stats::setNames(helps, rep("i", length(helps))),
      "i" = "The steps so far are in the error's {.field trace}."
    ),
    "degenerate",
    step = record$dead$step,
    run = record$dead$run,
    n_target_evals = record$runs$n_target_evals,
    trace = record$steps
  )
}

# Advice, in two lines at most, where all particles have died in this step. seen: of look_at_dead().
advice_for_dead <- function(seen, step) {
  if (is.null(seen) || seen$any_finite || step > 1) {
    return("Try more steps ({.arg n_steps}), a {.arg reference} closer to the target, or more
      particles ({.arg n_particles}).")
  }
  c(
    if (any(grepl("NaN", seen$kinds))) {
      "Check the data for NA, and the log density for an index or a name that the variables do not have."
    },
    "Give a point at which the log density is finite:
      {.code reference = reference_laplace(target, start)}."
  )
}

# The log density at particles that have all died: list(kinds, n, any_finite, reason), with its `kinds` in words, and
# the `reason` that the target gives, or NULL. NULL where the target cannot be evaluated. x: some of the particles, on
# the user's scale.
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

# The kinds of log densities in words, as is_possible() in src/path.c distinguishes them.
kind_of_density <- function(x) {
  kind <- rep("finite", length(x))
  kind[abs(x) >= 1e15] <- "1e15 or more in size"
  kind[x == Inf] <- "+Inf"
  kind[x == -Inf] <- "-Inf"
  kind[is.na(x)] <- "NaN"
  kind
}
