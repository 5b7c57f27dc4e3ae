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

# The kernel of smc_run() when none is given.
kernel_of_schedule <- function(schedule) {
  rates <- if (is.data.frame(schedule)) schedule[["refresh_rate"]]
  if (is.null(rates) || all(is.na(rates))) kernel_lmc() else kernel_klmc()
}

#' Reference: a normal distribution
#'
#' The distribution that particles start from, at temperature 0. A reference
#' close to the target makes for an easier path. The kernels move in coordinates
#' in which the reference is standard normal, so `sd` or `cov` is also the scale
#' on which they see each variable.
#'
#' @param mean mean (a number, or a numeric vector of length `dim`).
#' @param sd standard deviation (positive, a number or a vector of length `dim`).
#' @param cov covariance, instead of `sd` (`dim x dim` numeric matrix, symmetric
#'   and positive definite); NULL for independent variables.
#' @return An object of class `smc_reference`.
#' @examples
#' target <- target_gaussian(2, mean = c(100, 0), sd = c(10, 1))
#' reference <- reference_gaussian(mean = c(90, 0), sd = c(20, 1))
#' smc(target, reference = reference, n_steps = 8, n_particles = 128)
#'
#' reference_gaussian(mean = c(90, 0), cov = rbind(c(400, 5), c(5, 1)))
#' @export
reference_gaussian <- function(mean = 0, sd = 1, cov = NULL) {
  if (!is.null(cov) && !missing(sd)) {
    abort("Only one of {.arg sd} and {.arg cov} may be given.", "input")
  }
  structure(
    list(
      mean = check_numeric(mean, "mean"),
      sd = if (is.null(cov)) check_positive(sd, "sd"),
      chol = if (!is.null(cov)) check_covariance(cov)
    ),
    class = "smc_reference"
  )
}

# The lower triangular factor L of cov = L L'.
check_covariance <- function(cov) {
  fits <- is.matrix(cov) &&
    is.numeric(cov) &&
    nrow(cov) == ncol(cov) &&
    all(is.finite(cov))
  expected <- "a symmetric, positive definite numeric matrix"
  if (!fits) {
    abort_argument(cov, "cov", expected)
  }
  upper <- tryCatch(chol(cov), error = function(e) NULL)
  if (is.null(upper) || !isSymmetric(unname(cov))) {
    abort("{.arg cov} must be {expected}; it is not.", "input")
  }
  t(unname(upper))
}

#' @export
print.smc_reference <- function(x, ...) {
  show <- function(v) {
    if (length(v) == 1) format(v) else sprintf("%d values", length(v))
  }
  scale <- if (is.null(x$chol)) {
    paste("sd", show(x$sd))
  } else {
    sprintf("a %d x %d covariance", nrow(x$chol), nrow(x$chol))
  }
  cat("<smc_reference> normal, mean ", show(x$mean), ", ", scale, "\n", sep = "")
  invisible(x)
}

# The reference as the core reads it, for a target of this dimension: nothing
# for N(0, I), which needs no map.
border_reference <- function(reference, dim) {
  mean <- check_numeric(reference$mean, "mean", lengths = c(1, dim))
  chol <- reference$chol
  if (!is.null(chol)) {
    if (nrow(chol) != dim) {
      size <- paste(dim(chol), collapse = " x ")
      abort("{.arg cov} must be {dim} x {dim}, not {size}.", "input")
    }
    return(list(
      reference_mean = rep_len(mean, dim),
      reference_chol = chol,
      reference_chol_transposed = t(chol)
    ))
  }
  sd <- check_positive(reference$sd, "sd", lengths = c(1, dim))
  if (all(mean == 0) && all(sd == 1)) {
    return(NULL)
  }
  list(reference_mean = rep_len(mean, dim), reference_sd = rep_len(sd, dim))
}
