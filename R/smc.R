# The three verbs.

#' Log evidence and posterior draws with self-tuning SMC
#'
#' `smc()` tunes a sampler on the target with `smc_adapt()`, and then runs it
#' with `smc_run()`, with the schedule that was found and fresh randomness. The
#' second run's estimate of the evidence is unbiased: `E[exp(log_z)]` is the
#' normalising constant of the target. Each half can be called by itself.
#'
#' @param target what to sample: a target made by [target_function()],
#'   [target_native()] or one of the built-in constructors such as
#'   [target_sonar()]; or a function, which [as_target()] turns into one.
#' @param ... for a function, the other arguments of [target_function()]: at
#'   least `dim`.
#' @param n_particles number of particles (whole number of at least 2).
#' @param n_steps number of steps from the reference to the target (positive
#'   integer).
#' @param kernel how particles move: [kernel_klmc()], [kernel_lmc()],
#'   [kernel_mala()] or [kernel_rwmh()]. When step sizes are given in it there is
#'   nothing to tune, and `smc()` makes the final run only. For `smc_run()`, whose
#'   step sizes come from the schedule, the default is KLMC when the schedule has
#'   refreshment rates and LMC when not.
#' @param schedule for `smc()` and `smc_adapt()`, the temperatures: a numeric
#'   vector that rises from 0 to 1, such as [schedule_power()] makes. For
#'   `smc_run()`, a data frame with a row a step and the columns `lambda`,
#'   `step_size` and, for KLMC, `refresh_rate`, such as `fit$schedule`.
#' @param reference where the particles start: [reference_gaussian()].
#' @param tuner how the kernel is tuned: [tuner_kl()].
#' @param resampling resampling scheme: `"ssp"` (Srinivasan sampling process),
#'   `"systematic"`, `"stratified"`, `"residual"` or `"multinomial"`.
#' @param ess_threshold resample when the effective sample size falls below this
#'   fraction of `n_particles` (number from 0 to 1).
#' @param seed a whole number from 0 to 2^32 - 1 that fixes all randomness; NULL
#'   to draw one from R's generator (one draw), so that [set.seed()] governs.
#' @param progress whether to show a progress bar (TRUE or FALSE).
#'
#' @return An object of class `smc_fit`, a list with
#'
#' * `log_z`: the estimated log normalising constant.
#' * `particles`: `n_particles x dim` numeric matrix, a row a draw, the columns
#'   named.
#' * `log_weights`: their log weights (numeric vector; the weights sum to one).
#' * `schedule`: a data frame to give to `smc_run()`, a row a step, with `lambda`,
#'   `step_size` and `refresh_rate` (NA where it does not apply).
#' * `steps`: a data frame with a row a run and step: `run` (`"adapt"` or
#'   `"final"`), `step`, `lambda`, `step_size`, `refresh_rate`, `acceptance` (the
#'   mean, of Metropolis-adjusted kernels), `ess`, `lcb` (the
#'   local communication barrier of Syed et al., 2024: how hard the step was) and
#'   its cumulative sum `barrier`, `resampled`, `log_z` (up to that step), `n_objective_evals`, `n_target_evals` (the first step's has the
#'   evaluations at the start), and `tuner_status`: `"converged"`, or `"at_limit"`,
#'   `"exhausted"` or `"infeasible"` when a search reached one of its bounds, and
#'   NA where nothing was tuned.
#' * `runs`: a data frame with a row a run: `run`, `log_z`, `biased`,
#'   `n_particles`, `n_steps`, `barrier`, `n_objective_evals`, `n_target_evals` and
#'   `seconds`.
#'   A run that tunes is biased, and so is LMC with the detailed-balance backward
#'   kernel.
#' * `target`, `seed` and the other settings.
#'
#' @section Cost: A run without tuning evaluates the target (log density and
#'   gradient) exactly `n_particles * (n_steps + 1)` times, or with `n_moves` moves
#'   a step `n_particles * (n_moves * n_steps + 1)` times. Tuning adds
#'   `n_subsample` for each evaluation of its objective.
#' @section Reproducibility: The same seed gives the same fit, but for the time
#'   it took (`runs$seconds`). `smc_run()` with the schedule and the seed of a fit
#'   repeats its final run.
#' @section Errors: All have the class `autosmc_error` and one of
#'
#' * `autosmc_error_input`: an argument is not what it should be.
#' * `autosmc_error_target`: the target raised an error, or returned something
#'   that it should not. The error has the fields `run` and `step`.
#' * `autosmc_error_degenerate`: no particle is left with a finite weight. The
#'   error has the fields `run`, `step`, and `trace`: the `steps` up to there.
#'
#' Particles at which the log density is `NaN` or infinite are dropped (their
#' weight is zero); at a gradient that is not finite a particle moves without
#' one.
#' @section Densities with hard edges: Where the density is zero beyond an edge
#'   that many particles come near, the unadjusted kernels (`kernel_klmc()`,
#'   `kernel_lmc()`) lose the paths that would have crossed it and come back, and
#'   `exp(log_z)` is too low on average. Map such a variable to the whole line (its
#'   logarithm, say, with the Jacobian), or use `kernel_mala()` or
#'   `kernel_rwmh()`, which reject such moves and stay unbiased.
#' @source Kim, Xu, Gardner and Campbell (2025), algorithm 1.
#' @examples
#' set.seed(1)
#' fit <- smc(target_funnel(dim = 3), n_particles = 256, n_steps = 16)
#' fit
#' head(fit$steps)
#'
#' # a function of one's own: log evidence log(2 pi) = 1.838
#' smc(function(x) -sum(x^2) / 2, dim = 2, gradient = function(x) -x,
#'     n_particles = 256, n_steps = 8)
#'
#' # the two halves; the schedule may be looked at and edited in between
#' adapted <- smc_adapt(target_gaussian(2, mean = 3), n_steps = 8)
#' adapted$schedule
#' smc_run(target_gaussian(2, mean = 3), adapted$schedule)
#' @export
smc <- function(
  target,
  ...,
  n_particles = 1024,
  n_steps = 64,
  kernel = kernel_klmc(),
  schedule = schedule_power(n_steps),
  reference = reference_gaussian(),
  tuner = tuner_kl(),
  resampling = "ssp",
  ess_threshold = 0.5,
  seed = NULL,
  progress = interactive()
) {
  target <- check_target(target, ...)
  check_n_steps(n_steps, schedule, missing(n_steps))
  lambda <- check_schedule(schedule)
  settings <- check_settings(
    target,
    n_particles,
    kernel,
    reference,
    resampling,
    ess_threshold,
    seed,
    progress
  )
  border <- target_border(settings$target)
  if (is_to_be_tuned(kernel)) {
    adapted <- adapt(settings, border, lambda, tuner)
    final <- run_sampler(settings, border, "final", as.list(adapted$steps))
    new_fit(settings, list(adapted, final))
  } else {
    given <- given_schedule(kernel, lambda)
    final <- run_sampler(settings, border, "final", given)
    new_fit(settings, list(final))
  }
}

#' @rdname smc
#' @export
smc_adapt <- function(
  target,
  ...,
  n_particles = 1024,
  n_steps = 64,
  kernel = kernel_klmc(),
  schedule = schedule_power(n_steps),
  reference = reference_gaussian(),
  tuner = tuner_kl(),
  resampling = "ssp",
  ess_threshold = 0.5,
  seed = NULL,
  progress = interactive()
) {
  target <- check_target(target, ...)
  check_n_steps(n_steps, schedule, missing(n_steps))
  lambda <- check_schedule(schedule)
  settings <- check_settings(
    target,
    n_particles,
    kernel,
    reference,
    resampling,
    ess_threshold,
    seed,
    progress
  )
  if (!is_to_be_tuned(kernel)) {
    abort(
      c(
        "{.arg kernel} has its step sizes given: there is nothing to tune.",
        "i" = "Leave out {.arg step_size}, or use {.fn smc} or {.fn smc_run}."
      ),
      "input"
    )
  }
  border <- target_border(settings$target)
  new_fit(settings, list(adapt(settings, border, lambda, tuner)))
}

#' @rdname smc
#' @export
smc_run <- function(
  target,
  schedule,
  ...,
  n_particles = 1024,
  kernel = kernel_of_schedule(schedule),
  reference = reference_gaussian(),
  resampling = "ssp",
  ess_threshold = 0.5,
  seed = NULL,
  progress = interactive()
) {
  if (missing(schedule)) {
    abort(
      "{.arg schedule} is missing: a data frame such as {.code fit$schedule}.",
      "input"
    )
  }
  target <- check_target(target, ...)
  check_class(kernel, "kernel", "smc_kernel", "kernel_lmc()")
  given <- check_schedule_frame(schedule, kernel)
  settings <- check_settings(
    target,
    n_particles,
    kernel,
    reference,
    resampling,
    ess_threshold,
    seed,
    progress
  )
  final <- run_sampler(settings, target_border(settings$target), "final", given)
  new_fit(settings, list(final))
}

check_target <- function(target, ...) {
  if (missing(target)) {
    abort(
      "{.arg target} is missing: a target, or a function with {.arg dim}.",
      "input"
    )
  }
  as_target(target, ...)
}

adapt <- function(settings, border, lambda, tuner) {
  check_class(tuner, "tuner", "smc_tuner", "tuner_kl()")
  tuner <- complete_tuner(tuner, settings$kernel, settings$n_particles)
  run_sampler(settings, border, "adapt", list(lambda = lambda), tuner)
}

# n_steps is there to make the default schedule; with a schedule of one's own
# it can only agree.
check_n_steps <- function(n_steps, schedule, is_default) {
  n_steps <- check_count(n_steps, "n_steps")
  if (!is_default && length(schedule) != n_steps + 1) {
    n <- length(schedule)
    abort(
      "{.arg schedule} must have {.arg n_steps} + 1 = {n_steps + 1}
        temperatures, not {n}.",
      "input"
    )
  }
}

# The schedule of a kernel whose parameters are given, for all steps or for each.
given_schedule <- function(kernel, lambda) {
  n_steps <- length(lambda)
  every_step <- function(x, arg) {
    if (!is.null(x)) rep_len(check_positive(x, arg, c(1, n_steps)), n_steps)
  }
  list(
    lambda = lambda,
    step_size = every_step(kernel$step_size, "step_size"),
    refresh_rate = every_step(kernel$refresh_rate, "refresh_rate")
  )
}
