# Rounds of adaptation: after each tuned run the temperatures are spread anew by
# what the run has learnt of the path, and the reference is brought closer to the
# target by what it has learnt of the target.

# temperatures ----------------------------------------------------------------

#' The next schedule, from the barrier of a run
#'
#' Spreads the temperatures so that every step is equally hard, by the local
#' communication barriers that a run has met.
#'
#' @param fit a fit of [smc()], [smc_adapt()] or [smc_run()]. Of several islands
#'   the first counts; where there are none, the last round that was used.
#' @param n_steps number of steps (positive integer); NULL for twice the global
#'   barrier, rounded up, which is the length that Syed et al. recommend.
#' @param max_steps at most so many steps (positive integer). The barrier that LMC
#'   meets grows with the number of steps, so that without a limit the schedule
#'   would double in every round.
#' @return The temperatures: a numeric vector that rises from 0 to 1.
#' @source Syed, Bouchard-Cote, Chern and Doucet (2024), *Optimised annealed
#'   sequential Monte Carlo samplers*; the inverse of the cumulative barrier is a
#'   monotone cubic, [stats::splinefun()] with `method = "monoH.FC"`.
#' @examples
#' target <- target_gaussian(2, mean = 3)
#' fit <- smc_adapt(target, n_particles = 256, n_steps = 16, rounds = 0)
#' schedule <- schedule_barrier(fit)
#' smc_adapt(target, schedule = schedule, n_particles = 256, rounds = 0)
#' @export
schedule_barrier <- function(fit, n_steps = NULL, max_steps = 256) {
  check_class(fit, "fit", "smc_fit", "smc()")
  max_steps <- check_count(max_steps, "max_steps", min = 2)
  if (!is.null(n_steps)) {
    n_steps <- min(check_count(n_steps, "n_steps"), max_steps)
  }
  steps <- fit$steps
  final <- steps$run == "final"
  chosen <- if (any(final)) {
    final & steps$island == steps$island[final][1]
  } else {
    used <- fit$runs$round[fit$runs$used]
    steps$round == used[length(used)]
  }
  barrier_schedule(steps[chosen, ], n_steps, max_steps)
}

# least: of steps, where their number is to be found.
barrier_schedule <- function(steps, n_steps, max_steps, least = 2) {
  barrier <- c(0, steps$barrier)
  lambda <- c(0, steps$lambda)
  total <- barrier[length(barrier)]
  if (is.null(n_steps)) {
    n_steps <- min(max(least, ceiling(2 * total)), max_steps)
  }
  # steps at which nothing was in the way make no progress along the barrier
  ahead <- c(TRUE, diff(barrier) > 1e-8 * total) & barrier < (1 - 1e-8) * total
  ahead[length(ahead)] <- TRUE
  if (sum(ahead) < 3) {
    return(schedule_power(n_steps))
  }
  inverse <- stats::splinefun(
    barrier[ahead],
    lambda[ahead],
    method = "monoH.FC"
  )
  inner <- inverse(total * seq_len(n_steps - 1) / n_steps)
  inner <- sort(unique(inner[inner > 0 & inner < 1]))
  c(0, inner, 1)
}

#' Temperatures found on the way
#'
#' Each temperature is the highest that leaves a given fraction of the particles
#' as effective sample size, found by bisection. It takes a kernel whose weights do
#' not depend on the move: [kernel_mala()] or [kernel_rwmh()]. The run that finds
#' the temperatures is biased; the runs after it use what was found.
#'
#' @param ess the fraction (number in (0, 1)).
#' @param max_steps at most so many steps (positive integer); the last of them goes
#'   to temperature 1 whatever the effective sample size.
#' @return An object of class `smc_schedule_adaptive`, for the argument `schedule` of
#'   [smc()] and [smc_adapt()].
#' @examples
#' fit <- smc(target_gaussian(2, mean = 3),
#'   kernel = kernel_mala(),
#'   schedule = schedule_adaptive(0.5), n_particles = 256
#' )
#' fit$schedule
#' @export
schedule_adaptive <- function(ess = 0.5, max_steps = 1000) {
  structure(
    list(
      ess = check_number(ess, "ess", min = 0, max = 1, open = TRUE),
      max_steps = check_count(max_steps, "max_steps")
    ),
    class = "smc_schedule_adaptive"
  )
}

#' @export
print.smc_schedule_adaptive <- function(x, ...) {
  cat("<smc_schedule_adaptive> effective sample size ", format(x$ess),
    ", at most ", x$max_steps, " steps\n",
    sep = ""
  )
  invisible(x)
}

is_adaptive <- function(schedule) inherits(schedule, "smc_schedule_adaptive")

# the rounds ------------------------------------------------------------------

# One adapting run, and then rounds$rounds more: at least the first of these numbers, at
# most the second, as long as they make a reference with drivers better. Returns
# list(best, runs, used): the runs in their order, which of them were built on, and the
# best of them, each a list as run_sampler() returns it with the `reference` it was run
# with. Where no scale can be fitted, the way is long, and keeps the number of its steps.
adapt_in_rounds <- function(settings, border, path, rounds) {
  tuner <- if (is_to_be_tuned(settings$kernel)) complete_tuner(settings)
  one_round <- function(round, reference, path) {
    settings$reference <- reference
    result <- run_sampler(settings, border, "adapt", path, tuner, round)
    result$reference <- reference
    result
  }
  best <- one_round(0, settings$reference, path)
  runs <- list(best)
  used <- TRUE
  fits <- if (rounds$whiten) c("drivers", "scale", "place") # what may be fitted
  for (round in seq_len(rounds$rounds[2])) {
    is_first <- has_scale_of(best$reference, settings$reference)
    # the first particles are too few, and too far off, to show what drives what
    fitted <- next_reference(best, if (is_first) setdiff(fits, "drivers") else fits)
    reference <- if (is.null(fitted)) best$reference else fitted
    if (is.null(path$adaptive_ess)) {
      is_long_way <- rounds$whiten && has_scale_of(reference, settings$reference)
      least <- if (is_long_way) nrow(runs[[1]]$steps) else 2
      path$lambda <- barrier_schedule(best$steps, NULL, rounds$max_steps, least)[-1]
    }
    tried <- one_round(round, reference, path)
    runs <- c(runs, list(tried))
    is_used <- is_no_worse(tried, best)
    used <- c(used, is_used)
    if (!is_used) {
      fits <- fits_without(reference, best$reference)
    }
    is_last <- round >= rounds$rounds[1] && !deserves_another(tried, best, is_used, fits)
    if (is_used) {
      best <- tried
    }
    if (is_last) {
      break
    }
  }
  list(best = best, runs = runs, used = used)
}

# Fitted to the particles of a round, as far as it may be; NULL for no other one.
next_reference <- function(round, fits) {
  fitted <- if ("scale" %in% fits) fit_reference(round, drivable = "drivers" %in% fits)
  if (is.null(fitted) && "place" %in% fits) move_reference(round) else fitted
}

# What may be fitted after one that was refused: the same fit would do no better a second
# time.
fits_without <- function(refused, best) {
  if (is_driven(refused)) {
    c("scale", "place")
  } else if (!has_scale_of(refused, best)) {
    "place"
  }
}

# Whether a reference is another one, perhaps in another place.
has_scale_of <- function(reference, other) {
  scale <- c("sd", "chol", "driven")
  identical(reference[scale], other[scale])
}

# Whether another round is worth its cost: as long as drivers lower the barrier by a
# tenth, for references with these hang on far particles more than normal ones do; and
# when a fit was refused, as long as there is another.
deserves_another <- function(tried, best, is_used, fits) {
  if (!is_used) {
    return(length(fits) > 0)
  }
  is_driven(tried$reference) && tried$runs$barrier < 0.9 * best$runs$barrier
}

# Whether a round can be built on: its barrier is no higher than the best one's, but
# for chance; and its estimate has not fallen far, as it does when a reference leaves
# out a part of the target, unless the barrier is so much lower that the older
# estimate is the worse one. The first drivers are looked at more closely, for they may
# have been found where there are none.
is_no_worse <- function(tried, best) {
  first_drivers <- is_driven(tried$reference) && !is_driven(best$reference)
  far <- if (first_drivers) 0.5 else 5
  ratio <- if (tried$runs$log_z < best$runs$log_z - far) 2 / 3 else 1.05
  tried$runs$barrier <= ratio * best$runs$barrier
}

is_driven <- function(reference) !is.null(reference$driven)
