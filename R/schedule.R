# Temperature schedules and references: where the path goes and where it starts.

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
  wanted <- c("lambda", "step_size", if (kernel$name == "klmc") "refresh_rate")
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
  check_agreement(kernel, schedule, "step_size")
  check_agreement(kernel, schedule, "refresh_rate")
  list(
    lambda = check_schedule(
      if (is.numeric(schedule$lambda)) c(0, schedule$lambda) else schedule$lambda,
      "schedule$lambda"
    ),
    step_size = check_positive(schedule$step_size, "schedule$step_size"),
    refresh_rate = if (kernel$name == "klmc") {
      check_rates(schedule$refresh_rate, "schedule$refresh_rate")
    }
  )
}

# A parameter may be in the schedule and in the kernel, but it is the same one.
check_agreement <- function(kernel, schedule, name) {
  of_kernel <- kernel[[name]]
  if (!is.null(of_kernel) && !all(of_kernel == schedule[[name]])) {
    abort(
      "{.arg kernel} and {.arg schedule} both have {.field {name}}, and differ.",
      "input"
    )
  }
}

# The kernel of smc_run() when none is given.
kernel_of_schedule <- function(schedule) {
  rates <- if (is.data.frame(schedule)) schedule[["refresh_rate"]]
  if (is.null(rates) || all(is.na(rates))) kernel_lmc() else kernel_klmc()
}

#' Reference: independent normals
#'
#' The distribution that particles start from, at temperature 0. A reference
#' close to the target makes for an easier path. The kernels move in coordinates
#' in which the reference is standard normal, so `sd` is also the scale on which
#' they see each variable.
#'
#' @param mean mean (a number, or a numeric vector of length `dim`).
#' @param sd standard deviation (positive, a number or a vector of length `dim`).
#' @return An object of class `smc_reference`.
#' @examples
#' target <- target_gaussian(2, mean = c(100, 0), sd = c(10, 1))
#' reference <- reference_gaussian(mean = c(90, 0), sd = c(20, 1))
#' smc(target, reference = reference, n_steps = 8, n_particles = 128)
#' @export
reference_gaussian <- function(mean = 0, sd = 1) {
  structure(
    list(
      mean = check_numeric(mean, "mean"),
      sd = check_positive(sd, "sd")
    ),
    class = "smc_reference"
  )
}

#' @export
print.smc_reference <- function(x, ...) {
  show <- function(v) {
    if (length(v) == 1) format(v) else sprintf("%d values", length(v))
  }
  cat("<smc_reference> normal, mean ", show(x$mean), ", sd ", show(x$sd), "\n",
    sep = ""
  )
  invisible(x)
}

# Mean and sd for a target; both NULL for N(0, I), which needs no map.
complete_reference <- function(reference, dim) {
  mean <- check_numeric(reference$mean, "mean", lengths = c(1, dim))
  sd <- check_positive(reference$sd, "sd", lengths = c(1, dim))
  if (all(mean == 0) && all(sd == 1)) {
    return(list(mean = NULL, sd = NULL))
  }
  list(mean = rep_len(mean, dim), sd = rep_len(sd, dim))
}
