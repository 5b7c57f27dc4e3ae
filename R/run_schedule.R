# Temperature schedules: fixed ones, checks of given ones, and schedules from the barrier of a run (Syed, Bouchard-Cote,
# Chern and Doucet, 2024).

# Least share of a step in the total length for a knot of the interpolation: below it the slope would exceed 1e8.
least_progress <- 1e-8

#' Temperatures that rise as a power of the step
#'
#' `lambda_t = (t / n_steps)^power`: the density at step `t` is
#' `reference^(1 - lambda_t) * target^lambda_t`.
#'
#' @param n_steps number of steps (positive integer).
#' @param power exponent (positive number); 1 for equal steps, more for smaller
#'   steps near the reference.
#' @return The temperatures: a numeric vector of length `n_steps + 1` that rises
#'   from 0 to 1.
#' @examples
#' schedule_power(4)
#' @export
schedule_power <- function(n_steps = 64, power = 2) {
  n_steps <- check_n(n_steps, "n_steps")
  power <- check_number(power, "power", min = 0, open = TRUE)
  (seq(0, n_steps) / n_steps)^power
}

# The checked temperatures, which rise from 0 to 1, without the leading 0.
check_schedule <- function(schedule, arg = "schedule") {
  is_schedule <- is.numeric(schedule) && length(schedule) >= 2 && all(is.finite(schedule)) &&
    all(diff(schedule) > 0) && schedule[1] == 0 && schedule[length(schedule)] == 1
  if (!is_schedule) {
    abort_argument(schedule, arg, "a numeric vector that rises, without ties, from 0 to 1")
  }
  as.double(schedule[-1])
}

# Checks the data frame given to smc_run(), with a row for each step, possibly after one at temperature 0. Returns a
# list of `lambda`, `step_size` and, for kernels that refresh velocities, `refresh_rate`.
check_schedule_frame <- function(schedule, kernel) {
  if (!is.data.frame(schedule)) {
    abort_argument(schedule, "schedule", "a data frame with a row a step")
  }
  wanted <- c("lambda", "step_size", if (kernel$refreshes) "refresh_rate")
  if (!all(wanted %in% names(schedule))) {
    abort("{.arg schedule} must have the columns {.field {wanted}} for {kernel$label}; it has
      {.field {names(schedule)}}.")
  }
  if (nrow(schedule) > 0 && schedule$lambda[1] %in% 0) {
    schedule <- schedule[-1, ]
  }
  for (name in wanted) {
    # a column of a data frame may also be a matrix or a list
    column <- schedule[[name]]
    if (!is.numeric(column) || !is.null(dim(column)) || length(column) != nrow(schedule)) {
      abort_argument(column, paste0("schedule$", name), "a numeric vector, one number a row")
    }
  }
  check_agreement(kernel, schedule, "step_size")
  check_agreement(kernel, schedule, "refresh_rate")
  list(
    lambda = check_schedule(c(0, schedule$lambda), "schedule$lambda"),
    step_size = check_positive(schedule$step_size, "schedule$step_size"),
    refresh_rate = if (kernel$refreshes) check_rates(schedule$refresh_rate, "schedule$refresh_rate")
  )
}

# An error where the schedule and the kernel have different values of a parameter.
check_agreement <- function(kernel, schedule, name) {
  given <- kernel[[name]]
  column <- schedule[[name]]
  is_same <- is.null(given) || is.null(column) ||
    length(given) %in% c(1, length(column)) && isTRUE(all(given == column))
  if (!is_same) {
    abort("{.arg kernel} and {.arg schedule} both have {.field {name}}, and differ.")
  }
}

# The default kernel of smc_run(): the one that the schedule names. check_schedule_frame() gives the error for a
# schedule that is not a data frame.
kernel_of_schedule <- function(schedule) {
  if (!is.data.frame(schedule)) {
    return(kernel_lmc())
  }
  name <- unique(stats::na.omit(as.character(schedule[["kernel"]])))
  rates <- schedule[["refresh_rate"]]
  if (length(name) == 0) {
    name <- if (is.null(rates) || all(is.na(rates))) "lmc" else "klmc"
  }
  kernel_by_name(name, "schedule$kernel")
}

# temperatures that are found --------------------------------------------------

#' The next schedule, from the barrier of a run
#'
#' Spreads the temperatures so that every step is equally long, by the lengths of the steps of a run:
#' the change of temperature times the standard deviation of log target minus log reference
#' among the particles. In short steps that is the local communication barrier of a kernel that
#' keeps each distribution as it is. What another kernel adds depends little on where a step
#' is: it makes schedules longer, but does not tell where steps are needed.
#'
#' @param fit a fit of [smc()], [smc_adapt()] or [smc_run()]. Of several islands
#'   the first counts; where there are none, the last round that was used.
#' @param n_steps number of steps (positive integer); NULL for twice the global
#'   barrier of the run, rounded up, which is the length that Syed et al. recommend.
#' @param max_steps where `n_steps` is NULL, at most so many steps (whole number of at
#'   least 2), by default as many as in the rounds of [smc()]. The barrier that LMC meets
#'   grows with the number of steps, so that without a limit the schedule would double in
#'   every round.
#' @return The temperatures: a numeric vector that rises from 0 to 1.
#' @source Syed, Bouchard-Cote, Chern and Doucet (2024), *Optimised annealed
#'   sequential Monte Carlo samplers*, who spread the temperatures by the barrier that was met;
#'   the inverse of the cumulative length is a monotone cubic, [stats::splinefun()] with
#'   `method = "monoH.FC"`.
#' @examples
#' target <- target_gaussian(2, mean = 3)
#' fit <- smc_adapt(target, n_particles = 256, n_steps = 16, rounds = 0, seed = 1)
#' schedule <- schedule_barrier(fit)
#' smc_adapt(target, schedule = schedule, n_particles = 256, rounds = 0, seed = 2)
#' @export
schedule_barrier <- function(fit, n_steps = NULL, max_steps = 64) {
  check_class(fit, "fit", "smc_fit", "smc()")
  max_steps <- check_n(max_steps, "max_steps", min = 2)
  if (!is.null(n_steps)) {
    n_steps <- check_n(n_steps, "n_steps")
  }
  steps <- fit$steps
  final <- steps$run == "final"
  chosen <- if (any(final)) {
    final & steps$island == steps$island[final][1]
  } else {
    used <- fit$runs$round[fit$runs$run == "adapt" & fit$runs$used]
    steps$round == used[length(used)]
  }
  barrier_schedule(steps[chosen, ], n_steps, max_steps)
}

# Temperatures with equal lengths of the steps. If `n_steps` is NULL, it is determined by the barrier of the run, and is
# at least `least`. The temperatures are placed by the lengths, the barrier of an exact kernel: what an inexact kernel
# adds is about the same for each step, and would keep steps where there are already many.
barrier_schedule <- function(steps, n_steps, max_steps, least = 2) {
  if (is.null(n_steps)) {
    met <- steps$barrier[nrow(steps)]
    n_steps <- min(max(least, ceiling(rules$steps_per_barrier * met)), max_steps)
  }
  way <- c(0, cumsum(steps$length))
  lambda <- c(0, steps$lambda)
  total <- way[length(way)]
  # the knots of the inverse must increase, but a step may have length 0
  progress <- least_progress * total
  ahead <- c(TRUE, diff(way) > progress) & way < total - progress
  ahead[length(ahead)] <- TRUE
  if (sum(ahead) < 3) {
    return(schedule_power(n_steps))
  }
  inverse <- stats::splinefun(way[ahead], lambda[ahead], method = "monoH.FC")
  inner <- inverse(total * seq_len(n_steps - 1) / n_steps)
  inner <- sort(unique(inner[inner > 0 & inner < 1]))
  c(0, inner, 1)
}

#' Temperatures found on the way
#'
#' Each temperature is the highest that leaves a given fraction of the particles
#' as effective sample size, found by bisection. It takes a kernel whose weights do
#' not depend on the move: [kernel_hmc()], [kernel_mala()], [kernel_rwmh()] or [kernel_pcn()]. The run that finds
#' the temperatures is biased; the runs after it use what was found.
#'
#' @param ess the fraction (number in (0, 1)).
#' @param max_steps the largest number of steps (positive integer). The last of them goes to
#'   temperature 1 whatever the effective sample size, so the estimate of a run that reaches
#'   the limit is unreliable. The limit should be far above the number of steps that are needed.
#' @return An object of class `smc_schedule_adaptive`, for the argument `schedule` of
#'   [smc()] and [smc_adapt()].
#' @examples
#' fit <- smc(target_gaussian(2, mean = 3),
#'   kernel = kernel_mala(),
#'   schedule = schedule_adaptive(0.5), n_particles = 256, seed = 1
#' )
#' fit$schedule
#' @export
schedule_adaptive <- function(ess = 0.5, max_steps = 1000) {
  structure(
    list(
      ess = check_number(ess, "ess", min = 0, max = 1, open = TRUE),
      max_steps = check_n(max_steps, "max_steps")
    ),
    class = "smc_schedule_adaptive"
  )
}

#' @export
print.smc_schedule_adaptive <- function(x, ...) {
  cat("<smc_schedule_adaptive> effective sample size ", format(x$ess), ", at most ", x$max_steps, " steps\n", sep = "")
  invisible(x)
}

is_adaptive <- function(schedule) inherits(schedule, "smc_schedule_adaptive")
