# The three verbs.

#' Log evidence and posterior draws with self-tuning SMC
#'
#' `smc()` estimates the log evidence of a model, with a standard error, and draws from its posterior. Most
#' users need four arguments: `target`, the model; `seed`, to get the same result again; `precision` and `draws`,
#' for a smaller standard error or more draws.
#'
#' `smc()` locates the target by its gradients, tunes an annealed sampler on it, and runs the tuned sampler several
#' times with fresh random numbers. These independent runs are called islands. They give two [estimates] of the
#' evidence: by SMC, which is unbiased, and by bridge sampling. `fit$log_z` is the bridge if it has clearly the smaller
#' standard error. [Diagnostics][diagnostics] compare the fit with what must hold if it is right.
#'
#' @param target the model: a target of [target_function()], [target_rtmb()], [target_stan()],
#'   [target_native()] and the like, or a function or model object that [as_target()] converts.
#' @param ... for a function, other arguments of [target_function()]: at least `dim`. For a model object those of
#'   [as_target()], such as `lower`, `log_prior`, and for random effects of RTMB, TMB and glmmTMB `method`: `"auto"`
#'   corrects Laplace's approximation, `"laplace"` does not.
#' @param n_particles number of particles (whole number of at least 2). For a precision 128 are the first, or fewer, of
#'   at least 32, where eight islands of them are as many as the `draws` asked for, unless `islands` is given. They
#'   become four times as many in a further pass, where more than `max_islands` would be needed or diagnostics fail.
#'   With few `max_evals` there are fewer.
#' @param n_steps number of steps from the given reference to the target (positive integer).
#' @param rounds the least and the most rounds of adaptation (two whole numbers, or one for both).
#'   See [smc_rounds]. From another fit the least is none.
#' @param whiten whether references are fitted to particles (TRUE or FALSE).
#' @param scout whether the target is located by its gradients first (TRUE or FALSE). Without the
#'   scout the gradient is not checked: see [check_gradient()].
#' @param max_steps most steps of rounds after the first (whole number of at least 2).
#' @param step_fraction the islands' step sizes of KLMC from a fitted reference, as a fraction of the tuned ones
#'   (number in (0, 1]). See section Kernels of [smc_rounds].
#' @param islands number of islands (positive integer). One has no standard error; the bridge needs four. For a
#'   precision or draws there are eight at least.
#' @param precision the standard error of `log_z` (number of at least 1e-15) for which islands are added, up to
#'   `max_islands`; NULL for none. By default it is 0.01, where references are fitted and neither `n_particles` nor
#'   `islands` is given. A precision that was asked for and is not reached is a warning. With one
#'   above 0.01 fewer points are tried around the modes that were found, in proportion.
#' @param draws how many independent draws the means of the posterior are to be worth (positive integer), `ess_mean` of
#'   [glance()], for which islands are added as for a precision; NULL for any. By default it is 1,000 where a
#'   precision is aimed at, and neither `n_particles` nor `islands` is given.
#' @param max_islands most islands (positive integer).
#' @param search about how many evaluations are spent on looking for further modes (whole number of at least 0): the
#'   scout climbs from so many more starts, of which half are draws of the `prior`, where the target was given one. How
#'   many paths there were and to how many basins they led is printed with the fit.
#' @param max_evals most evaluations of the target in the call (number). With few there are fewer particles, and what is
#'   left after the first round is kept for the islands. What has been left out for it is in `truncated`, with a
#'   warning. It is an error if no fit takes so few.
#' @param max_seconds most seconds of computing (number), about: it becomes `max_evals` of the fit, by how long the
#'   scout's first paths take. So the same seed gives another result where the machine is faster or slower.
#' @param kernel how particles move: `"klmc"`, `"hmc"`, `"lmc"`, `"mala"`, `"rwmh"` or `"pcn"` (string), or
#'   [kernel_klmc()] and its like. NULL chooses: see [smc_rounds]. A kernel with given step sizes is not tuned.
#' @param schedule the temperatures of the first run: a numeric vector that rises from 0 to 1, such as
#'   [schedule_power()] makes, or [schedule_adaptive()].
#' @param reference where particles start: [reference_gaussian()], [reference_function()] and the like; `"prior"`, for a
#'   target that was given its `prior`; the fit of a neighbouring target, whose reference is tried before
#'   anything else (see [smc_rounds], section From another fit); or draws of the posterior, to which a
#'   distribution is fitted. These are a matrix or a data frame with a column for each variable, draws of the packages
#'   posterior, coda or rstan, a list of chains, or `"draws"`, for those of a Stan fit (see [as_target.stanfit]).
#' @param tuner how the kernel is tuned: [tuner_kl()].
#' @param resampling `"ssp"` (Srinivasan sampling process), `"systematic"`, `"stratified"`,
#'   `"residual"` or `"multinomial"`.
#' @param ess_threshold resample when the effective sample size falls below this fraction of
#'   `n_particles` (number from 0 to 1).
#' @param keep what is kept of each island: all its `"draws"`, a number of equally weighted draws (positive integer), or
#'   only the `"moments"` of the variables. See [reproducibility], section Memory.
#' @param seed a whole number from 0 to 2^32 - 1 that fixes all randomness; NULL to draw one from R's
#'   generator, so that [set.seed()] governs.
#' @param checkpoint NULL, or the path of a folder (string) from which a call that was cut off resumes. See
#'   [reproducibility].
#' @param progress whether a call of more than two seconds shows a line of progress, and in a script one a minute (TRUE
#'   or FALSE).
#'
#' @return An object of class `smc_fit`, a list with, among others,
#'
#' * `log_z`, `std_error`, `conf_low`, `conf_high`: the log evidence, its standard error and a 95 %
#'   interval; `sampling_error`: the part of the error that is chance. See [estimates].
#' * `particles`, `log_weights`, `island`: the draws, a matrix with a named column for each variable; their log
#'   weights, which sum to one once exponentiated; and the island of each draw.
#' * `diagnostics`, `heavy_tails`: tables of what was checked. See [diagnostics].
#' * `improper`: the names of parameters with an improper prior, so that `log_z` is no evidence (character vector,
#'   mostly empty). They are known of Stan programs alone (see [target_stan()] and [as_target.stanfit]). A coefficient
#'   of brms has the covariate as the name of its element.
#' * `laplace`: of a model with random effects that are integrated out, the evidence by Laplace's approximation and its
#'   correction. See [as_target()], section Random effects.
#' * `truncated`: what was left out since there were not enough `max_evals` (character vector, mostly empty).
#' * `schedule`, `reference`: to be given to [smc_run()]. `maps` describes the shape of the reference in words.
#' * `scout`, `runs`, `steps`, `islands`: what was done. See [smc_scout()], [smc_rounds] and [estimates].
#' * `state`: what [smc_extend()] goes on from. `fit$state <- NULL` makes a fit smaller.
#' * `target`, `seed` and all other settings; `call`, `session` (versions in use) and `seconds`.
#' @seealso [summary.smc_fit()], [plot.smc_fit()], [coef.smc_fit()], [as_draws.smc_fit()] and
#'   [report()] for results; [compare_evidence()] for models; [smc_adapt()] and [smc_run()], the two
#'   halves of `smc()`; [smc_extend()] for more islands; `vignette("autosmc")` to get started.
#' @examples
#' # a function of one's own, whose log evidence is log(2 pi) = 1.838; the interval of the
#' # estimate holds it, and the last line says that all is well
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
    abort("{.arg max_seconds} is by the time that the scout takes: without one give {.arg max_evals}.")
  }
  if (plan$search > 0 && !scouts) {
    abort("{.arg search} is the scout's, which needs gradients, rounds and no other fit.")
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
#' given schedule and reference. In between, the schedule may be looked at and edited.
#'
#' @inheritParams smc
#' @param schedule for `smc_adapt()`, as in [smc()]. For `smc_run()` a data frame such as `fit$schedule`, a row a step:
#'   columns `lambda`, `step_size`, for KLMC and HMC `refresh_rate`, and optionally `kernel`, its name.
#' @param kernel how particles move, as in [smc()]. The default of `smc_run()` is the kernel that the schedule names,
#'   with its other options by their defaults; without a name KLMC if there are refreshment rates, and LMC otherwise.
#' @return An object of class `smc_fit`, as [smc()] returns it. That of `smc_adapt()` has no islands
#'   and no diagnostics, and its estimate is biased, since the run that tunes is not independent of
#'   what it tunes. That of `smc_run()` has the estimate by SMC alone, and no scout.
#' @seealso [smc_rounds], on what `smc_adapt()` does.
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
      "{.arg kernel} has its step sizes given: there is nothing to tune.",
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

# what is to be run -----------------------------------------------------------

# The call of a verb as it would be written: a program may have called it by another name.
call_of <- function(verb, call) {
  call[[1]] <- as.name(verb)
  call
}

# n_steps is there to make the default schedule; with a schedule of one's own
# it can only agree.
check_n_steps <- function(n_steps, schedule, is_default) {
  n_steps <- check_n(n_steps, "n_steps")
  if (!is_default && !is_adaptive(schedule) && length(schedule) != n_steps + 1) {
    n <- length(schedule)
    abort("{.arg schedule} must have {.arg n_steps} + 1 = {n_steps + 1} temperatures, not {n}.")
  }
}

# The temperatures, or how to find them, and the parameters that the kernel was given: the
# `path` of run_sampler().
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

# step_fraction, scout: only where the verb has them.
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

# At least and at most so many; one number is both.
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

# At least so many runs of adaptation: a first one, or a race of at least two, and rounds.
n_runs_foreseen <- function(plan, kernel) {
  plan$rounds[1] + if (plan$scout && kernel$gradients) 2 else 1
}
