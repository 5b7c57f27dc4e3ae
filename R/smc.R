# smc(), and its two halves, smc_adapt() and smc_run(): annealed sequential Monte Carlo, whose kernels are tuned by
# minimising incremental KL divergences (Kim et al., 2025).

#' Log evidence and posterior draws with self-tuning SMC
#'
#' `smc()` estimates the log evidence of a model (the log of its marginal likelihood, or normalising constant), with a
#' standard error, and draws from its posterior. Most users need four arguments: `target`, the model; `seed`, to get the
#' same result again; `precision` and `draws`, for a smaller standard error or more draws.
#'
#' `smc()` locates the posterior by the gradients of the log density, tunes an annealed sampler on it, and runs the
#' tuned sampler several times with fresh random numbers. These independent runs are called islands. They give two
#' [estimates] of the evidence: by SMC, which is unbiased, and by bridge sampling. `fit$log_z` is the bridge estimate if
#' its standard error is clearly smaller. [Diagnostics][diagnostics] then look for signs that the estimate is wrong.
#'
#' @param target the model: a target of [target_function()], [target_rtmb()], [target_stan()], [target_native()] and the
#'   like, or a function or model object that [as_target()] converts. Its log density is that of prior and likelihood
#'   together, with all constants.
#' @param ... for a function, other arguments of [target_function()]: at least `dim` or `names`. For a model object,
#'   arguments of [as_target()], such as `lower` and `log_prior`; for random effects of RTMB, TMB and glmmTMB also
#'   `method`: `"auto"` corrects Laplace's approximation, `"laplace"` does not.
#' @param n_particles number of particles of a run (whole number of at least 2). The default is 128, or fewer (at least
#'   32) if eight islands of them give enough `draws`; further passes take four times as many if diagnostics fail or
#'   more than `max_islands` islands would be needed. If `islands` is given, or both `precision` and `draws` are NULL,
#'   the default is 1,024. A small `max_evals` lowers it.
#' @param n_steps number of steps from the given reference to the target (positive integer).
#' @param rounds the least and the largest number of rounds of adaptation (two whole numbers, or one for both). See
#'   [smc_rounds].
#' @param whiten whether references are fitted to the particles (TRUE or FALSE).
#' @param scout whether the posterior is located by gradients first (TRUE or FALSE). Without this stage the gradient is
#'   not checked: see [check_gradient()].
#' @param max_steps largest number of steps of later rounds (whole number of at least 2).
#' @param step_fraction step sizes of the islands, as a fraction of the tuned ones (number in (0, 1]). It applies to
#'   KLMC from a fitted reference. See section Kernels of [smc_rounds].
#' @param islands number of islands (positive integer). A standard error needs two, the bridge estimate four. With
#'   `precision` or `draws` there are at least eight.
#' @param precision the standard error of `log_z` to reach (number of at least 1e-15): islands are added until it is
#'   reached or there are `max_islands`. NULL for none. The default is 0.01 if references are fitted and neither
#'   `n_particles` nor `islands` is given. With a value above 0.01 fewer points are tried around the modes.
#' @param draws the effective sample size of the posterior means to reach (positive integer): `ess_mean` of [glance()].
#'   Islands are added as for `precision`. NULL for none. The default is 1,000 if there is a `precision` and neither
#'   `n_particles` nor `islands` is given.
#' @param max_islands largest number of islands (positive integer).
#' @param search about how many evaluations to spend on the search for further modes (whole number of at least 0). Half
#'   of the additional starting points are draws of the `prior`, if the target has one. The printed fit says how many
#'   starting points led to how many modes.
#' @param max_evals largest number of evaluations of the target in the call (number). With few evaluations there are
#'   fewer particles, and stages beyond the budget are left out, with a warning; see `truncated` below. It is an error
#'   if the budget is too small for any island.
#' @param max_seconds largest computing time, in seconds (number), approximately: it is converted to `max_evals` by the
#'   time that the first paths of the scout take. So a faster or slower machine gives another result for the same seed.
#' @param kernel how particles move: `"klmc"`, `"hmc"`, `"lmc"`, `"mala"`, `"rwmh"` or `"pcn"` (string), or
#'   [kernel_klmc()] and its like. NULL chooses: see [smc_rounds]. A kernel with given step sizes is not tuned.
#' @param schedule the temperatures of the first run: a numeric vector that rises from 0 to 1, such as
#'   [schedule_power()] makes, or [schedule_adaptive()].
#' @param reference the distribution from which particles start: [reference_gaussian()], [reference_function()] and the
#'   like, or `"prior"`, for a target that was given its `prior`. It may also be the fit of a similar target (see
#'   [smc_rounds], section From another fit), or draws of the posterior, to which a distribution is fitted. Draws are a
#'   matrix or a data frame with a column for each variable, draws of the packages posterior, coda or rstan, a list of
#'   chains, or `"draws"`, for those of a Stan fit (see [as_target.stanfit]).
#' @param tuner how the kernel is tuned: [tuner_kl()].
#' @param resampling `"ssp"` (Srinivasan sampling process), `"systematic"`, `"stratified"`,
#'   `"residual"` or `"multinomial"`.
#' @param ess_threshold particles are resampled when their effective sample size falls below this fraction of
#'   `n_particles` (number from 0 to 1).
#' @param keep what is kept of each island: all its `"draws"`, a number of equally weighted draws (positive integer), or
#'   only the `"moments"` of the variables. See [reproducibility], section Memory.
#' @param seed a whole number from 0 to 2^32 - 1 that fixes all randomness; NULL to draw one from R's generator, which
#'   [set.seed()] controls.
#' @param checkpoint NULL, or the path of a folder (string) from which an interrupted call resumes. See
#'   [reproducibility].
#' @param progress whether a call of more than two seconds shows its progress: a line, in a script one line a minute
#'   (TRUE or FALSE).
#'
#' @return An object of class `smc_fit`, a list with, among others,
#'
#' * `log_z`, `std_error`, `conf_low`, `conf_high`: the log evidence, its standard error and a 95 % interval;
#'   `sampling_error`: the Monte Carlo part of the standard error. See the section below.
#' * `particles`, `log_weights`, `island`: the draws, a matrix with a named column for each variable; the log weight of
#'   each draw (the weights sum to one); and its island.
#' * `diagnostics`, `heavy_tails`: tables of the checks. See [diagnostics].
#' * `improper`: the names of parameters with an improper prior, for which `log_z` is not an evidence (character vector,
#'   mostly empty). Only Stan programs tell (see [target_stan()] and [as_target.stanfit]). A coefficient of brms has
#'   the covariate as the name of its element.
#' * `laplace`: for a model with random effects that are integrated out, the evidence by Laplace's approximation and its
#'   correction. See [as_target()], section Random effects.
#' * `truncated`: the stages that `max_evals` or `max_seconds` left out (character vector, mostly empty).
#' * `schedule`, `reference`: what [smc_run()] takes. `maps` describes the shape of the reference in words.
#' * `scout`, `runs`, `steps`, `islands`: tables of what was done. See [smc_scout()], [smc_rounds] and [estimates].
#' * `state`: what [smc_extend()] needs. `fit$state <- NULL` makes a fit smaller.
#' * `target`, `seed` and all other settings; `call`, `session` (versions in use) and `seconds`.
#' @section The standard error: `std_error` is that of `log_z`: an error of 0.01 is about 1 % of the evidence itself. It
#'   is `sqrt(sampling_error^2 + shift^2)`. The first part is Monte Carlo error: it comes from the spread of independent
#'   islands, and falls with their number. The second is the largest change of `log_z` that a diagnostic has found, and
#'   mostly 0. No error counts a part of the posterior that neither the search nor any island has visited, such as a
#'   narrow mode far from all others. A fit with one island has no standard error (NA). See [estimates].
#' @section Warnings, and what to do: A fit that warns is returned all the same. [diagnostics] lists all warnings and
#'   errors, `vignette("trouble")` explains them.
#'
#'   * *The error of log_z is not to be trusted*: a diagnostic has failed. Do not report the fit. The warning says
#'     which, and what may help: often more particles, another form of the model, or bounds declared as such.
#'   * *The precision asked for was not reached*, or the draws: there were `max_islands` islands. Raise `max_islands` or
#'     `n_particles`, or accept the standard error, which is valid.
#'   * *Heavy tails*: use medians and quantiles of the variables named. `log_z` is not affected.
#'   * *max_evals has left out ...*, or `max_seconds`: allow more of it, or use fewer particles.
#' @seealso [summary.smc_fit()], [plot.smc_fit()], [coef.smc_fit()], [as_draws.smc_fit()] and
#'   [report()] for results; [compare_evidence()] for models; [smc_adapt()] and [smc_run()], the two
#'   halves of `smc()`; [smc_extend()] for more islands; `vignette("autosmc")` to get started.
#' @examples
#' # an R function, whose log evidence is log(2 pi) = 1.838; the interval of the estimate contains
#' # it, and the last line says that all diagnostics passed
#' fit <- smc(function(x) -sum(x^2) / 2,
#'   dim = 2, gradient = function(x) -x, n_particles = 32, n_steps = 4, seed = 1
#' )
#' fit
#' coef(fit)
#'
#' # the method of Kim et al. (2025), without what this package adds
#' smc(target_gaussian(2, mean = 3),
#'   n_particles = 128, rounds = 0, whiten = FALSE, islands = 1, seed = 1
#' )
#' @export
smc <- function(
  target,
  ...,
  n_particles = if (missing(islands) && !is.null(c(precision, draws))) particles_for(draws) else 1024,
  n_steps = 64,
  rounds = if (inherits(reference, "smc_fit")) c(0, 8) else c(1, 8),
  whiten = TRUE,
  scout = whiten && max(rounds) > 0,
  max_steps = max(64, n_steps),
  step_fraction = if (max(rounds) > 0 && whiten) 0.75 else 1,
  islands = if (inherits(reference, "smc_fit")) 4 else 8,
  precision = if (missing(n_particles) && missing(islands) && whiten && max(rounds) > 0) 0.01,
  draws = if (missing(n_particles) && missing(islands) && !is.null(precision)) 1000,
  max_islands = 64,
  search = 0,
  max_evals = Inf,
  max_seconds = Inf,
  kernel = NULL,
  schedule = schedule_power(n_steps),
  reference = reference_gaussian(),
  tuner = tuner_kl(),
  resampling = "ssp",
  ess_threshold = 0.5,
  keep = "draws",
  seed = NULL,
  checkpoint = NULL,
  progress = interactive()
) {
  call <- call_of("smc", match.call())
  target <- check_any_target(target, ...)
  if (target$dim == 0) {
    return(fit_without_variables(target, max(n_particles, draws), seed, call))
  }
  check_n_steps(n_steps, schedule, missing(n_steps))
  chooses_kernel <- is.null(kernel)
  kernel <- check_kernel(if (chooses_kernel) "klmc" else kernel)
  path <- check_path(schedule, kernel)
  plan <- check_plan(rounds, whiten, scout, max_steps, step_fraction, max_evals, max_seconds)
  plan$search <- check_count(search, "search", min = 0)
  plan$seeks <- !is.null(precision) || !is.null(draws)
  wanted <- check_islands(islands, precision, max_islands, draws)
  wanted$grows <- missing(n_particles) && missing(islands) && plan$seeks
  wanted$asked <- setdiff(wanted$asked, c("precision", "draws")[c(missing(precision), missing(draws))])
  plan$sought <- wanted$precision
  plan$may_shrink <- missing(n_particles)
  if (plan$may_shrink) n_particles <- particles_within(max_evals, n_particles, wanted$islands)
  plan$n_islands <- wanted$islands
  keep <- check_keep(keep)
  adapts <- needs_adapting(kernel, path)
  scouts <- adapts && plan$scout && kernel$gradients && !inherits(reference, "smc_fit")
  if (is.finite(plan$max_seconds) && !scouts) {
    abort(c(
      "{.arg max_seconds} needs the scout, whose first paths are timed.",
      "i" = "Give {.arg max_evals}, or leave {.arg scout} TRUE."
    ))
  }
  if (plan$search > 0 && !scouts) {
    abort("{.arg search} needs the scout: a kernel with gradients, {.arg rounds} of at least 1, and no other fit.")
  }
  sampler <- new_sampler(target, mget(c(options_of_verbs, "tuner", "path", "plan")))
  sampler$chooses_kernel <- chooses_kernel
  check_n_draws(sampler, wanted$islands)
  wanted$bridges <- adapts && makes_bridge(plan, kernel)
  n_rounds <- if (adapts) n_runs_foreseen(plan, kernel) else 0
  sampler$progress <- new_progress(sampler$show_progress, n_rounds, wanted$islands)
  result <- once_each(if (adapts) {
    course <- find_evidence(sampler, path, plan, wanted)
    plan$max_evals <- course$plan$max_evals
    c(course$result, list(course = course))
  } else {
    wanted <- affordable_islands(wanted, sampler, path, NULL, plan)
    conclude(sampler, run_islands(sampler, path, wanted))
  })
  plan$max_ratios <- plan$max_evals - sum(fit_runs(result)$n_target_evals)
  plan$truncated <- sampler$omissions$what
  fit <- new_fit(result$sampler, result, c(plan, wanted), call)
  if (length(fit$truncated) > 0) warn_of_omissions(fit)
  reduce_fit(fit, keep)
}

#' The two halves of smc()
#'
#' `smc_adapt()` is the first half of [smc()]: it tunes a sampler. `smc_run()` is the second: it runs a sampler with a
#' given schedule and reference. In between, the schedule can be inspected and changed.
#'
#' @inheritParams smc
#' @param schedule for `smc_adapt()`, as in [smc()]. For `smc_run()` a data frame such as `fit$schedule`, a row a step:
#'   columns `lambda`, `step_size`, for KLMC and HMC `refresh_rate`, and optionally `kernel`, its name.
#' @param kernel how particles move, as in [smc()]. The default of `smc_run()` is the kernel that the schedule names,
#'   with default options. If it names none, it is KLMC if there are refreshment rates, and LMC otherwise.
#' @return An object of class `smc_fit`, as [smc()] returns it. That of `smc_adapt()` has no islands and no diagnostics,
#'   and its estimate is biased: the run from which it comes also tuned the sampler. That of `smc_run()` has the
#'   estimate by SMC only, and no scout.
#' @seealso [smc_rounds] for what `smc_adapt()` does.
#' @examples
#' target <- target_gaussian(2, mean = 3)
#' adapted <- smc_adapt(target, n_particles = 128, n_steps = 8, seed = 1)
#' adapted$schedule
#' smc_run(target, adapted$schedule, reference = adapted$reference, seed = 2)
#' @export
smc_adapt <- function(
  target,
  ...,
  n_particles = 1024,
  n_steps = 64,
  rounds = if (inherits(reference, "smc_fit")) c(0, 8) else c(1, 8),
  whiten = TRUE,
  scout = whiten && max(rounds) > 0,
  max_steps = max(64, n_steps),
  kernel = NULL,
  schedule = schedule_power(n_steps),
  reference = reference_gaussian(),
  tuner = tuner_kl(),
  resampling = "ssp",
  ess_threshold = 0.5,
  seed = NULL,
  checkpoint = NULL,
  progress = interactive()
) {
  call <- call_of("smc_adapt", match.call())
  target <- check_target(target, ...)
  check_n_steps(n_steps, schedule, missing(n_steps))
  chooses_kernel <- is.null(kernel)
  kernel <- check_kernel(if (chooses_kernel) "klmc" else kernel)
  path <- check_path(schedule, kernel)
  plan <- check_plan(rounds, whiten, scout, max_steps)
  if (!needs_adapting(kernel, path)) {
    abort(c(
      "{.arg kernel} has given step sizes: there is nothing to tune.",
      "i" = "Leave out {.arg step_size}, or use {.fn smc} or {.fn smc_run}."
    ))
  }
  sampler <- new_sampler(target, mget(c(options_of_verbs, "tuner")))
  sampler$chooses_kernel <- chooses_kernel
  sampler$progress <- new_progress(sampler$show_progress, n_runs_foreseen(plan, kernel), n_islands = 0)
  course <- once_each(find_evidence(sampler, path, plan))
  plan$bridges <- makes_bridge(plan, kernel)
  new_fit(sampler_of_best(course), list(course = course), plan, call)
}

#' @rdname smc_adapt
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
  keep = "draws",
  seed = NULL,
  checkpoint = NULL,
  progress = interactive()
) {
  call <- call_of("smc_run", match.call())
  if (missing(schedule)) {
    abort("{.arg schedule} is missing: a data frame such as {.code fit$schedule}.")
  }
  target <- check_target(target, ...)
  kernel <- check_kernel(kernel)
  path <- check_schedule_frame(schedule, kernel)
  islands <- check_islands(islands, precision, max_islands)
  islands$bridges <- FALSE
  sampler <- new_sampler(target, c(mget(c(options_of_verbs, "keep")), list(tuner = tuner_kl())))
  check_n_draws(sampler, islands$islands)
  sampler$progress <- new_progress(sampler$show_progress, n_rounds = 0, islands$islands)
  result <- once_each({
    final <- run_islands(sampler, path, islands)
    conclude(sampler, final)
  })
  new_fit(result$sampler, result, islands, call)
}

# checks of arguments -----------------------------------------------------------

# The call with the name of the exported function, which do.call() and the like replace.
call_of <- function(verb, call) {
  call[[1]] <- as.name(verb)
  call
}

# n_steps makes the default schedule; beside a given schedule it must agree with it.
check_n_steps <- function(n_steps, schedule, is_default) {
  n_steps <- check_n(n_steps, "n_steps")
  if (!is_default && !is_adaptive(schedule) && length(schedule) != n_steps + 1) {
    n <- length(schedule)
    abort("{.arg schedule} must have {.arg n_steps} + 1 = {n_steps + 1} temperatures, not {n}.")
  }
}

# The `path` of run_sampler(): a list of the temperatures (lambda) or of how to choose them (adaptive_ess, n_steps), and
# of the step sizes and refreshment rates of a kernel that is not tuned.
check_path <- function(schedule, kernel) {
  if (!is_adaptive(schedule)) {
    path <- list(lambda = check_schedule(schedule))
    n_steps <- length(path$lambda)
  } else if (kernel$adjusted) {
    path <- list(adaptive_ess = schedule$ess, n_steps = schedule$max_steps)
    n_steps <- path$n_steps
  } else {
    label <- kernel$label
    abort(c(
      "{.fn schedule_adaptive} needs a kernel whose weights do not depend on the move, not {label}.",
      "i" = "Use {.fn kernel_hmc}, {.fn kernel_mala}, {.fn kernel_rwmh} or {.fn kernel_pcn}, or let {.arg rounds} find
        the temperatures."
    ))
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

# The settings of adaptation, checked, as a list. step_fraction: missing for smc_adapt(), which has no islands.
check_plan <- function(rounds, whiten, scout, max_steps, step_fraction, max_evals = Inf, max_seconds = Inf) {
  limit <- function(x, arg, min) if (identical(x, Inf)) x else check_number(x, arg, min = min)
  plan <- list(
    rounds = check_n_rounds(rounds),
    whiten = check_flag(whiten, "whiten"),
    scout = check_flag(scout, "scout"),
    max_steps = check_n(max_steps, "max_steps", min = 2),
    search = 0,
    max_evals = limit(max_evals, "max_evals", 1),
    max_seconds = limit(max_seconds, "max_seconds", 1e-3)
  )
  if (!missing(step_fraction)) {
    if (!is_number(step_fraction) || step_fraction <= 0 || step_fraction > 1) {
      abort_argument(step_fraction, "step_fraction", "a number above 0 and at most 1")
    }
    plan$step_fraction <- as.double(step_fraction)
  }
  plan
}

# c(least, most) rounds of adaptation.
check_n_rounds <- function(rounds) {
  if (length(rounds) != 2) rounds <- rep(check_count(rounds, "rounds", min = 0), 2)
  rounds <- vapply(unname(rounds), check_count, 0L, "rounds", min = 0)
  if (rounds[1] > rounds[2]) {
    given <- deparse(rounds)
    abort("{.arg rounds} must be the least and the most, in this order, not {given}.")
  }
  rounds
}

makes_bridge <- function(plan, kernel) plan$whiten && !is_biased(kernel)

# The least number of runs of adaptation, for the progress line: a first run, or a race of two, and the rounds.
n_runs_foreseen <- function(plan, kernel) {
  plan$rounds[1] + if (plan$scout && kernel$gradients) 2 else 1
}
