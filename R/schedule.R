# Temperature schedules.

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
  n_steps <- check_count(n_steps, "n_steps")
  power <- check_number(power, "power", min = 0, open = TRUE)
  (seq(0, n_steps) / n_steps)^power
}

# Temperatures from 0 to 1, without the leading 0.
check_schedule <- function(schedule, arg = "schedule") {
  rises <- is.numeric(schedule) &&
    length(schedule) >= 2 &&
    all(is.finite(schedule)) &&
    all(diff(schedule) > 0)
  if (!rises || schedule[1] != 0 || schedule[length(schedule)] != 1) {
    abort_argument(
      schedule,
      arg,
      "a numeric vector that rises, without ties, from 0 to 1"
    )
  }
  as.double(schedule[-1])
}

# The data frame that smc_run() is given: a row a step. A row for the start, at
# temperature 0, may stand first. Returns a list of what `kernel` needs of it.
check_schedule_frame <- function(schedule, kernel) {
  if (!is.data.frame(schedule)) {
    abort_argument(schedule, "schedule", "a data frame with a row a step")
  }
  wanted <- c("lambda", "step_size", if (kernel$refreshes) "refresh_rate")
  if (!all(wanted %in% names(schedule))) {
    columns <- names(schedule)
    label <- kernel$label
    abort(
      "{.arg schedule} must have the columns {.field {wanted}} for {label}; it
        has {.field {columns}}.",
      "input"
    )
  }
  if (nrow(schedule) > 0 && schedule$lambda[1] %in% 0) {
    schedule <- schedule[-1, ]
  }
  for (name in wanted) {
    check_column(schedule, name)
  }
  check_agreement(kernel, schedule, "step_size")
  check_agreement(kernel, schedule, "refresh_rate")
  list(
    lambda = check_schedule(
      c(0, schedule$lambda),
      "schedule$lambda"
    ),
    step_size = check_positive(schedule$step_size, "schedule$step_size"),
    refresh_rate = if (kernel$refreshes) {
      check_rates(schedule$refresh_rate, "schedule$refresh_rate")
    }
  )
}

# A column may be of any kind, a matrix among them: only one number a row will do.
check_column <- function(schedule, name) {
  column <- schedule[[name]]
  plain <- is.numeric(column) && is.null(dim(column)) && length(column) == nrow(schedule)
  if (!plain) {
    abort_argument(column, paste0("schedule$", name), "a numeric vector, one number a row")
  }
}

# A parameter may be in the schedule and in the kernel, but it is the same one.
check_agreement <- function(kernel, schedule, name) {
  given <- kernel[[name]]
  column <- schedule[[name]]
  if (is.null(given) || is.null(column)) {
    return()
  }
  fits <- length(given) %in% c(1, length(column))
  if (!fits || !isTRUE(all(given == column))) {
    abort(
      "{.arg kernel} and {.arg schedule} both have {.field {name}}, and differ.",
      "input"
    )
  }
}

# The kernel of smc_run() when none is given: the one that the schedule names. Anything
# that is not a data frame is left to check_schedule_frame().
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
