# One run of the sampler: from checked settings to the core and back.

# The number that tells the random streams of runs apart: the final runs are
# 1, 2, ..., by island; the adapting ones 2^31, 2^31 + 1, ..., by round.
run_key <- function(run, index) {
  if (run == "adapt") 2^31 + index else index
}

# settings --------------------------------------------------------------------

resampling_schemes <- c(
  "ssp",
  "systematic",
  "stratified",
  "residual",
  "multinomial"
)

# What a run is made with: what the verbs take and a fit keeps.
settings_names <- c(
  "target",
  "n_particles",
  "kernel",
  "reference",
  "tuner",
  "resampling",
  "ess_threshold",
  "seed"
)

# What all the verbs take, checked, as one list.
check_settings <- function(
  target,
  n_particles,
  kernel,
  reference,
  tuner,
  resampling,
  ess_threshold,
  seed,
  progress
) {
  check_class(tuner, "tuner", "smc_tuner", "tuner_kl()")
  settings <- list(
    target = target,
    n_particles = check_count(n_particles, "n_particles", min = 2),
    kernel = kernel,
    reference = check_reference(reference, target$dim),
    tuner = tuner,
    resampling = check_choice(resampling, "resampling", resampling_schemes),
    ess_threshold = check_number(ess_threshold, "ess_threshold", 0, 1),
    progress = check_flag(progress, "progress")
  )
  complete_tuner(settings)
  settings$seed <- check_seed(seed) # the last, so that an error draws nothing
  settings
}

# How many islands: a number, or as many as a precision takes.
check_islands <- function(islands, precision, max_islands) {
  islands <- check_count(islands, "islands")
  max_islands <- check_count(max_islands, "max_islands")
  if (!is.null(precision)) {
    precision <- check_number(precision, "precision", min = 0, open = TRUE)
    max_islands <- check_count(max_islands, "max_islands", min = 2)
    islands <- min(max(islands, 4L), max_islands) # fewer say little of an error
  }
  list(islands = islands, precision = precision, max_islands = max_islands)
}

# step_fraction: only what ends in islands has one.
check_rounds <- function(rounds, whiten, max_steps, step_fraction) {
  plan <- list(
    rounds = check_n_rounds(rounds),
    whiten = check_flag(whiten, "whiten"),
    max_steps = check_count(max_steps, "max_steps", min = 2)
  )
  if (!missing(step_fraction)) {
    if (!is_number(step_fraction) || step_fraction <= 0 || step_fraction > 1) {
      abort_argument(step_fraction, "step_fraction", "a number above 0 and at most 1")
    }
    plan$step_fraction <- as.double(step_fraction)
  }
  plan
}

# At least and at most so many; one number is both.
check_n_rounds <- function(rounds) {
  if (length(rounds) != 2) {
    return(rep(check_count(rounds, "rounds", min = 0), 2))
  }
  rounds <- c(
    check_count(rounds[1], "rounds", min = 0),
    check_count(rounds[2], "rounds", min = 0)
  )
  if (rounds[1] > rounds[2]) {
    given <- deparse(rounds)
    abort("{.arg rounds} must be the least and the most, in this order, not {given}.", "input")
  }
  rounds
}

# A seed of one's own choice; or one from R's generator, by exactly one draw.
check_seed <- function(seed) {
  if (is.null(seed)) {
    return(floor(stats::runif(1) * 2^31))
  }
  if (!is_number(seed) || seed != round(seed) || seed < 0 || seed >= 2^32) {
    abort_argument(seed, "seed", "NULL or a whole number from 0 to 2^32 - 1")
  }
  as.double(seed)
}

# the run ---------------------------------------------------------------------

# schedule: a list of `lambda` and, where there is nothing to tune, `step_size`
# and `refresh_rate`, each with an element a step; for temperatures that are found
# on the way, instead of `lambda` `adaptive_ess` and `n_steps`. tuner: the settings
# for tuning, or NULL. border: of border_of_run(). index: the round of run "adapt", the
# island of run "final". Returns a list of what one run gives: steps and runs (tibbles),
# particles, log_weights; and of run "adapt", for fitting the next reference, the
# `coordinates` of the particles, in which a normal reference is standard, `gradients`
# of the log target there, where the kernel has them, and where there are bounds the
# `unconstrained` particles.
run_sampler <- function(settings, border, run, schedule, tuner = NULL, index) {
  config <- withCallingHandlers(
    core_config(settings, schedule, tuner, run_key(run, index), border$reference),
    error = function(e) rethrow_at_step(e, 0L, run)
  )
  begin_run(settings$progress, run, index, config$n_steps)
  step <- NULL # under way; NULL before the first evaluation
  on_step <- function(now, lambda, ess, log_z) {
    step <<- now
    show_step(settings$progress, now, lambda, ess / settings$n_particles, log_z)
  }
  started <- proc.time()[["elapsed"]]
  result <- withCallingHandlers(
    .Call(r_smc_run, with_addresses(border), config, on_step),
    error = function(e) rethrow_at_step(e, step, run)
  )
  seconds <- proc.time()[["elapsed"]] - started

  steps <- steps_table(result, run, index)
  check_status(result, steps, run)
  c(
    list(
      steps = steps,
      runs = runs_table(result, run, index, settings, steps, seconds),
      particles = name_columns(result$particles, settings$target$names),
      log_weights = normalise_log(result$log_weights)
    ),
    if (run == "adapt") result[c("unconstrained", "coordinates", "gradients")]
  )
}

# A run as the core is told of it. reference: of border_of_run(), NULL for a Gaussian.
core_config <- function(settings, schedule, tuner, key, reference = NULL) {
  n_steps <- schedule$n_steps
  if (is.null(n_steps)) {
    n_steps <- length(schedule$lambda)
  }
  config <- list(
    kernel = settings$kernel$options,
    n_particles = settings$n_particles,
    n_steps = n_steps,
    lambda = schedule$lambda,
    adaptive_ess = schedule$adaptive_ess,
    step_size = schedule$step_size,
    refresh_rate = schedule$refresh_rate,
    tuner = tuner,
    resampling = settings$resampling,
    ess_threshold = settings$ess_threshold,
    seed = settings$seed,
    run = key
  )
  c(config, border_reference(settings, reference, key))
}

# errors ----------------------------------------------------------------------

# What the user's own function threw, with the step named. The package's own
# errors come here too, on their way from the checks of a function's value.
rethrow_at_step <- function(e, step, run) {
  if (is.null(step) || inherits(e, "autosmc_error_located")) {
    return()
  }
  where <- where_in_run(step, run)
  failed <- "target"
  if (inherits(e, "autosmc_error_reference")) {
    failed <- "reference"
    e <- e$parent
  }
  abort(
    "The {failed} failed {where}.",
    c("target", "located"),
    parent = e,
    step = step,
    run = run
  )
}

where_in_run <- function(step, run) {
  if (step == 0) {
    sprintf("at the start of the %s run, at a draw from the reference", run)
  } else {
    sprintf("at step %d of the %s run", step, run)
  }
}

# In the order of the core's `smc_status`.
check_status <- function(result, steps, run) {
  where <- where_in_run(result$step, run)
  if (result$status == 1) {
    code <- result$failure
    abort(
      "The target's routine returned the code {code} {where}.",
      "target",
      step = result$step,
      run = run,
      trace = steps
    )
  }
  if (result$status == 2) {
    abort(
      c(
        "No particle is left {where}: every weight is zero.",
        "i" = "The target's log density is NaN or -Inf at every particle, or
          the step was too long.",
        "i" = "Try more steps ({.arg n_steps}), a {.arg reference} closer to
          the target, or more particles ({.arg n_particles}).",
        "i" = "The steps up to there are in the error's {.field trace}."
      ),
      "degenerate",
      step = result$step,
      run = run,
      n_target_evals = result$n_evals,
      trace = steps
    )
  }
}

# tables ----------------------------------------------------------------------

steps_table <- function(result, run, index) {
  done <- seq_len(result$n_done)
  trace <- lapply(result$trace, `[`, done)
  status <- trace$tuner_status
  status[status < 0] <- NA
  na <- function(x) ifelse(is.nan(x), NA_real_, x)
  of <- function(this) if (run == this) as.integer(index) else NA_integer_
  indices <- list(round = of("adapt"), island = of("final"))
  tibble::tibble(
    run = rep(run, length(done)),
    round = indices$round,
    island = indices$island,
    step = done,
    lambda = trace$lambda,
    step_size = trace$step_size,
    refresh_rate = na(trace$refresh_rate),
    acceptance = na(trace$acceptance),
    ess = trace$ess,
    lcb = trace$lcb,
    barrier = cumsum(trace$lcb),
    resampled = trace$resampled,
    log_z = trace$log_z,
    n_objective_evals = trace$n_objective_evals,
    n_target_evals = trace$n_target_evals,
    tuner_status = tuner_statuses[status + 1L]
  )
}

# One row.
runs_table <- function(result, run, index, settings, steps, seconds) {
  last <- steps[nrow(steps), ]
  tibble::tibble(
    run = run,
    round = last$round,
    log_z = last$log_z,
    biased = run == "adapt" || is_biased(settings$kernel),
    n_particles = settings$n_particles,
    n_steps = nrow(steps),
    ess = last$ess,
    barrier = last$barrier,
    n_objective_evals = sum(steps$n_objective_evals),
    n_target_evals = result$n_evals,
    seconds = seconds,
    predicted_sd = predicted_sd(result, settings$resampling, sum(steps$resampled))
  )
}

# The spread of log Z that a run predicts by itself, from how its particles descend from
# those that it began with: with the shares that the families of these have in the final
# weights, the relative variance of Z is 1 - (N / (N - 1))^k (1 - sum of squared shares)
# (Lee and Whiteley, 2018). With multinomial resampling k is one more than the number of
# resamplings, each of which adds a variance of 1 / N to the shares; the other schemes add
# next to nothing, and k is 1.
predicted_sd <- function(result, resampling, n_resampled) {
  n <- length(result$log_weights)
  k <- if (resampling == "multinomial") n_resampled + 1 else 1
  shares <- rowsum(exp(normalise_log(result$log_weights)), result$origins)
  sqrt(max(1 - (n / (n - 1))^k * (1 - sum(shares^2)), 0))
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
