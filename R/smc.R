# The three verbs.

#' Log evidence and posterior draws with self-tuning SMC
#'
#' `smc()` tunes a sampler on the target with `smc_adapt()`, and then runs it
#' several times over with `smc_run()`, with the schedule that was found and fresh
#' randomness. Each of these runs (islands) gives an unbiased estimate of the
#' evidence: `E[exp(log_z)]` is the normalising constant of the target. Their mean
#' is the estimate, their spread its standard error. Each half can be called by
#' itself.
#'
#' @param target what to sample: a target made by [target_function()],
#'   [target_posterior()], [target_native()] or one of the built-in constructors such as
#'   [target_sonar()]; or a function, which [as_target()] turns into one.
#' @param ... for a function, the other arguments of [target_function()]: at
#'   least `dim`.
#' @param n_particles number of particles (whole number of at least 2).
#' @param n_steps number of steps from the reference to the target (positive
#'   integer).
#' @param rounds how many times adaptation is repeated after its first run: two whole
#'   numbers, the least and the most, or one, for exactly so many. Rounds beyond the
#'   least are made as long as each lowers the barrier by a tenth from a reference with
#'   drivers (see the section on rounds), and to replace a reference that did worse than
#'   the one before. Each round spreads the temperatures anew, by [schedule_barrier()],
#'   and with `whiten` moves the reference closer to the target. 0 for the paper's method.
#' @param whiten whether each round's reference is a normal distribution fitted to
#'   the particles of the best round before (TRUE or FALSE). Kernels then move in
#'   coordinates in which the target is close to standard normal. From the second fit
#'   on, where some variables drive the scale of the others, as in a funnel or a
#'   hierarchical model, the reference follows: it is normal given these variables.
#' @param max_steps at most so many steps in the rounds after the first (whole number
#'   of at least 2). The barrier of LMC grows with the number of steps, and without a
#'   limit would double it in every round.
#' @param step_fraction the fraction of the tuned step sizes with which the islands run
#'   (number in (0, 1]), for KLMC from a fitted or moved reference; the other kernels, and
#'   all from the reference that was given, take the tuned step sizes as they are. See the
#'   section on long steps.
#' @param islands how many independent unbiased runs are made with the schedule
#'   found (positive integer). Their spread gives the standard error; with one
#'   there is none.
#' @param precision NULL; or a standard error of `log_z` (positive number) for which
#'   islands are added, up to `max_islands` (positive integer).
#' @param max_islands see `precision`.
#' @param kernel how particles move: [kernel_klmc()], [kernel_lmc()],
#'   [kernel_mala()] or [kernel_rwmh()]. When step sizes are given in it there is
#'   nothing to tune, and `smc()` makes the final run only. For `smc_run()`, whose
#'   step sizes come from the schedule, the default is the kernel that the schedule's
#'   column `kernel` names, with its other options by their defaults; without this
#'   column, KLMC when the schedule has refreshment rates and LMC when not.
#' @param schedule for `smc()` and `smc_adapt()`, the temperatures of the first run:
#'   a numeric vector that rises from 0 to 1, such as [schedule_power()] makes; or
#'   [schedule_adaptive()]. For
#'   `smc_run()`, a data frame with a row a step and the columns `lambda`,
#'   `step_size` and, for KLMC, `refresh_rate`, such as `fit$schedule`; a column
#'   `kernel` (`"klmc"`, `"lmc"`, `"mala"` or `"rwmh"`) is optional.
#' @param reference where the particles start: [reference_gaussian()], or any
#'   other distribution with [reference_function()].
#' @param tuner how the kernel is tuned: [tuner_kl()].
#' @param resampling resampling scheme: `"ssp"` (Srinivasan sampling process),
#'   `"systematic"`, `"stratified"`, `"residual"` or `"multinomial"`.
#' @param ess_threshold resample when the effective sample size falls below this
#'   fraction of `n_particles` (number from 0 to 1).
#' @param seed a whole number from 0 to 2^32 - 1 that fixes all randomness; NULL
#'   to draw one from R's generator (one draw), so that [set.seed()] governs.
#' @param progress whether a call that takes more than two seconds shows a line of
#'   progress (TRUE or FALSE): the round or island under way, its step and
#'   temperature, the effective sample size and `log_z` so far, and the time left.
#'   Islands that run in other processes show nothing.
#'
#' @return An object of class `smc_fit`, a list with
#'
#' * `log_z`: the estimated log normalising constant, the logarithm of the mean of
#'   the islands' estimates; `std_error`, by the delta method from their spread, or from
#'   what they predict by themselves (see `islands`) where that is more; `conf_low` and
#'   `conf_high`, a 95 % interval by Student's t over islands. The last three are NA
#'   for a single island.
#' * `particles`: numeric matrix, a row a draw, the columns named; all islands
#'   together. `log_weights`: their log weights, each island in proportion to its
#'   estimate (numeric vector; the weights sum to one). `island`: the island of each
#'   draw.
#' * `schedule`: a data frame to give to `smc_run()`, a row a step, with `lambda`,
#'   `step_size`, `refresh_rate` (NA where it does not apply) and `kernel`, its name.
#'   `reference`: what it starts from, to be given with it.
#' * `steps`: a data frame with a row a run and step: `run` (`"adapt"` or
#'   `"final"`), `round` and `island` (one of them NA), `step`, `lambda`,
#'   `step_size`, `refresh_rate`, `acceptance` (the mean, of Metropolis-adjusted
#'   kernels), `ess`, `lcb` (the local communication barrier of Syed et al., 2024:
#'   how hard the step was) and its cumulative sum `barrier`, `resampled`, `log_z` (up
#'   to that step), `n_objective_evals`, `n_target_evals` (the first step's has the
#'   evaluations at the start), and `tuner_status`: `"converged"`, or `"at_limit"`,
#'   `"exhausted"` or `"infeasible"` when a search reached one of its bounds, and
#'   NA where nothing was tuned.
#' * `runs`: a data frame with a row for every round of `"adapt"`, and one for the
#'   `"final"` islands together: `run`, `round`, `log_z`, `std_error`, `conf_low`,
#'   `conf_high`, `biased`, `n_particles`, `n_steps`, `islands`, `barrier` (the global
#'   one; the mean over islands), `n_objective_evals`, `n_target_evals`, `seconds`, and
#'   `used`: FALSE for rounds that were not built on. A run that tunes is biased, and
#'   so is LMC with the detailed-balance backward kernel.
#' * `islands`: a data frame with a row an island: its `log_z`, `ess`, `barrier`,
#'   `n_target_evals`, `seconds`, and `predicted_sd`, the standard deviation of `log_z`
#'   that it predicts by itself, from how its particles descend from those that it began
#'   with (Lee and Whiteley, 2018), among others. NULL for `smc_adapt()`.
#' * `target`, `kernel`, `seed`, `rounds`, `whiten` and all other settings.
#'
#' @section Rounds: Each round after the first fits a normal distribution to the
#'   weighted particles of the best round so far, with its variance inflated by 1.5,
#'   and makes it the reference. Its covariance is full when the effective sample
#'   size is at least six times the dimension, with correlations shrunk, and
#'   diagonal when it is less. Where the kernel has gradients, and the reference of the
#'   round was normal, these are control variates for the mean (Mira, Solgi and
#'   Imparato, 2013).
#'
#'   When the effective sample size is less than the dimension, the reference is moved
#'   to that mean and keeps its scale, unless the particles are twice as wide as it
#'   somewhere; the number of steps is then at least that of the first round.
#'
#'   From the second fit on it looks for drivers: variables with which the
#'   log squares of the others rise or fall. Where one
#'   explains more than 10 % of the variance of these, in the mean, and the fit is
#'   likelier so, the reference is normal only given it: location and log scale of the
#'   others are linear in it.
#'
#'   A round whose barrier is higher than the best one's by more than 5 % is not built
#'   on, nor one whose estimate is lower by more than 5 (by more than 0.5, for the first
#'   with drivers), unless its barrier is lower by a third. The rounds after it do
#'   without drivers; or when there were none, only move the reference; or when that was
#'   refused, only spread the temperatures anew.
#' @section Warnings: Of class `autosmc_warning_unreliable`, when the islands' `log_z`
#'   scatter more than 1.8 times as much as they predict by themselves (for less than
#'   eight, more than happens by chance in one of a thousand cases), when one
#'   of four or more makes up over half of the mean, or when some lost all their
#'   particles: then some may have found what others have missed, and the error is not
#'   to be trusted. A fit says so too when it is printed. Of class
#'   `autosmc_warning_precision`, when `max_islands` did not reach `precision`. Of class
#'   `autosmc_warning_gradient`, when the log density is too rough for its gradient to be
#'   checked (see [check_gradient()]). A warning of the target's own functions, such as
#'   `NaNs produced`, is shown once in a call.
#' @section Cost: A run without tuning evaluates the target (log density and
#'   gradient) exactly `n_particles * (n_steps + 1)` times, or with `n_moves` moves
#'   a step `n_particles * (n_moves * n_steps + 1)` times. Tuning adds
#'   `n_subsample` for each evaluation of its objective.
#' @section Reproducibility: The same seed gives the same fit, but for the time
#'   it took (`runs$seconds`). `smc_run()` with the schedule, the reference, the kernel
#'   and the seed of a fit repeats its final run.
#' @section Errors: All have the class `autosmc_error` and one of
#'
#' * `autosmc_error_input`: an argument is not what it should be.
#' * `autosmc_error_target`: the target raised an error, or returned something
#'   that it should not. The error has the fields `run` and `step`.
#' * `autosmc_error_degenerate`: no particle is left with a finite weight. The
#'   error has the fields `run`, `step`, and `trace`: the `steps` up to there.
#' * `autosmc_error_gradient`: the gradient disagrees with differences of the log density,
#'   after the scout (see [check_gradient()]). The error has the fields `variable`,
#'   `gradient`, `difference`, and `x`, where that is so.
#'
#' Particles at which the log density is `NaN` or infinite are dropped (their
#' weight is zero); at a gradient that is not finite a particle moves without
#' one.
#' @section Densities with hard edges: Where the density is zero beyond an edge
#'   that many particles come near, the unadjusted kernels (`kernel_klmc()`,
#'   `kernel_lmc()`) lose the paths that would have crossed it and come back, and
#'   `exp(log_z)` is too low on average. Give such an edge as the bound of a variable
#'   (`lower`, `upper` of [target_function()]), or use `kernel_mala()` or
#'   `kernel_rwmh()`, which reject such moves and stay unbiased.
#' @section Long steps: The divergence that the tuner minimises is a mean over the paths
#'   that the particles take. It does not see the paths that would have to come from
#'   where no particle is: those that KLMC leads there by a long step in a place where
#'   the density bends sharply. With such steps `exp(log_z)` is unbiased still, but by
#'   values so rare that no run meets them: it is nearly always a few percent too low,
#'   and the islands agree on it. Steps shorter by a quarter (`step_fraction`) lose a
#'   small part of that, at a small price in variance. On the long way from a reference
#'   that is far from the target the price is not small, so there they are left as they
#'   are.
#' @source Kim, Xu, Gardner and Campbell (2025), algorithm 1. Lee and Whiteley (2018),
#'   *Variance estimation in the particle filter*, for `predicted_sd`. Mira, Solgi and
#'   Imparato (2013), *Zero variance Markov chain Monte Carlo for Bayesian estimators*,
#'   for the means of fitted references.
#' @examples
#' set.seed(1)
#' fit <- smc(target_funnel(dim = 3), n_particles = 256, n_steps = 16)
#' fit
#' head(fit$steps)
#'
#' # a function of one's own: log evidence log(2 pi) = 1.838
#' smc(function(x) -sum(x^2) / 2,
#'   dim = 2, gradient = function(x) -x,
#'   n_particles = 128, n_steps = 4, rounds = 0, islands = 2
#' )
#'
#' # the two halves; the schedule may be looked at and edited in between
#' target <- target_gaussian(2, mean = 3)
#' adapted <- smc_adapt(target, n_particles = 256, n_steps = 8)
#' adapted$schedule
#' smc_run(target, adapted$schedule, reference = adapted$reference)
#'
#' # the paper's method
#' smc(target, n_particles = 256, rounds = 0, whiten = FALSE, islands = 1)
#' @export
smc <- function(
  target,
  ...,
  n_particles = 1024,
  n_steps = 64,
  rounds = c(1, 8),
  whiten = TRUE,
  scout = whiten && max(rounds) > 0,
  max_steps = max(64, n_steps),
  step_fraction = if (max(rounds) > 0 && whiten) 0.75 else 1,
  islands = 8,
  precision = NULL,
  max_islands = 64,
  kernel = NULL,
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
  chooses_kernel <- is.null(kernel)
  if (chooses_kernel) {
    kernel <- kernel_klmc()
  }
  path <- check_path(schedule, kernel)
  plan <- check_plan(rounds, whiten, scout, max_steps, step_fraction)
  plan$chooses_kernel <- chooses_kernel
  islands <- check_islands(islands, precision, max_islands)
  sampler <- new_sampler(target, list(
    n_particles = n_particles, kernel = kernel, reference = reference, tuner = tuner,
    resampling = resampling, ess_threshold = ess_threshold, seed = seed,
    progress = progress
  ))
  adapts <- needs_adapting(kernel, path)
  n_rounds <- if (adapts) n_runs_foreseen(plan, kernel) else 0
  sampler$progress <- new_progress(sampler$show_progress, n_rounds, islands$islands)
  result <- once_each(if (adapts) {
    passes(sampler, path, plan, islands)
  } else {
    one_pass(sampler, path, islands)
  })
  new_fit(result$sampler, result, c(plan, islands))
}

#' @rdname smc
#' @export
smc_adapt <- function(
  target,
  ...,
  n_particles = 1024,
  n_steps = 64,
  rounds = c(1, 8),
  whiten = TRUE,
  scout = whiten && max(rounds) > 0,
  max_steps = max(64, n_steps),
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
  path <- check_path(schedule, kernel)
  plan <- check_plan(rounds, whiten, scout, max_steps)
  if (!needs_adapting(kernel, path)) {
    abort(
      c(
        "{.arg kernel} has its step sizes given: there is nothing to tune.",
        "i" = "Leave out {.arg step_size}, or use {.fn smc} or {.fn smc_run}."
      ),
      "input"
    )
  }
  sampler <- new_sampler(target, list(
    n_particles = n_particles, kernel = kernel, reference = reference, tuner = tuner,
    resampling = resampling, ess_threshold = ess_threshold, seed = seed,
    progress = progress
  ))
  sampler$progress <- new_progress(
    sampler$show_progress, n_runs_foreseen(plan, kernel),
    n_islands = 0
  )
  course <- once_each(adapt(sampler, path, plan))
  sampler$reference <- course$best$reference
  new_fit(sampler, list(course = course), plan)
}

#' @rdname smc
#' @export
smc_run <- function(
  target,
  schedule,
  ...,
  n_particles = 1024,
  islands = 1,
  precision = NULL,
  max_islands = 64,
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
  path <- check_schedule_frame(schedule, kernel)
  islands <- check_islands(islands, precision, max_islands)
  sampler <- new_sampler(target, list(
    n_particles = n_particles, kernel = kernel, reference = reference, tuner = tuner_kl(),
    resampling = resampling, ess_threshold = ess_threshold, seed = seed,
    progress = progress
  ))
  sampler$progress <- new_progress(sampler$show_progress, n_rounds = 0, islands$islands)
  result <- once_each(one_pass(sampler, path, islands))
  new_fit(result$sampler, result, islands)
}

# what is to be run -----------------------------------------------------------

check_target <- function(target, ...) {
  if (missing(target)) {
    abort(
      "{.arg target} is missing: a target, or a function with {.arg dim}.",
      "input"
    )
  }
  as_target(target, ...)
}

# n_steps is there to make the default schedule; with a schedule of one's own
# it can only agree.
check_n_steps <- function(n_steps, schedule, is_default) {
  n_steps <- check_count(n_steps, "n_steps")
  if (!is_default && !is_adaptive(schedule) && length(schedule) != n_steps + 1) {
    n <- length(schedule)
    abort(
      "{.arg schedule} must have {.arg n_steps} + 1 = {n_steps + 1}
        temperatures, not {n}.",
      "input"
    )
  }
}

# The temperatures, or how to find them, and what the kernel has given of its
# parameters: the `schedule` of run_sampler().
check_path <- function(schedule, kernel) {
  check_class(kernel, "kernel", "smc_kernel", "kernel_klmc()")
  if (!is_adaptive(schedule)) {
    path <- list(lambda = check_schedule(schedule))
    n_steps <- length(path$lambda)
  } else if (kernel$name %in% c("mala", "rwmh")) {
    path <- list(adaptive_ess = schedule$ess, n_steps = schedule$max_steps)
    n_steps <- path$n_steps
  } else {
    label <- kernel$label
    abort(
      c(
        "{.fn schedule_adaptive} needs a kernel whose weights do not depend on the
          move, not {label}.",
        "i" = "Use {.fn kernel_mala} or {.fn kernel_rwmh}, or let {.arg rounds}
          find the temperatures."
      ),
      "input"
    )
  }
  if (!is_to_be_tuned(kernel)) {
    every_step <- function(x, arg) {
      if (!is.null(x)) rep_len(check_positive(x, arg, c(1, n_steps)), n_steps)
    }
    path$step_size <- every_step(kernel$step_size, "step_size")
    path$refresh_rate <- every_step(kernel$refresh_rate, "refresh_rate")
  }
  path
}

# Whether there are parameters or temperatures to be found.
needs_adapting <- function(kernel, path) {
  is_to_be_tuned(kernel) || !is.null(path$adaptive_ess)
}

# At least so many runs of adaptation: a first one, or a race of at least two, and rounds.
n_runs_foreseen <- function(plan, kernel) {
  plan$rounds[1] + if (plan$scout && kernel$gradients) 2 else 1
}
