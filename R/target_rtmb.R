# Targets that are tapes of RTMB: functions of a list of parameters, and the model objects of RTMB and TMB.

#' A target from an R function, differentiated by RTMB
#'
#' The log density is a plain R function of a list of parameters. RTMB records once what it computes (the tape), and all
#' evaluations of a run are made on the tape, at many points together: the gradient is exact, and R is not called again.
#' That takes about twice the time of a value and a gradient that are written by hand for all points at once, and a
#' small part of the time of R code that takes one point.
#'
#' The function is written as for `RTMB::MakeADFun()`, but returns the log density itself and not its negative. It may
#' use what RTMB can differentiate: arithmetic, matrix algebra, and densities like `dnorm(x, mean, sd, log = TRUE)` and
#' `dmvnorm(x, mean, Sigma, log = TRUE)`. RTMB is attached while the function is recorded, so `library(RTMB)` is not
#' needed. What depends on a parameter by `if`, or by a comparison such as `sigma > 0`, cannot be recorded; give bounds
#' as `lower` and `upper` instead.
#'
#' @param log_density a function of a list like `parameters`, and of `data` if that is
#'   given: the log of likelihood times prior (a number), with the priors of all parameters and all constants. A
#'   parameter without a prior has a flat one, and then the evidence means nothing.
#' @param parameters a named list of numbers, numeric vectors, matrices or arrays: the
#'   shapes of the parameters, and a point at which the function can be recorded. Where the
#'   log density is not finite at any point that [smc()] tries by itself, it starts from there.
#' @param lower,upper bounds of the variables. A number for all of them (`-Inf` and `Inf` for none); or a named list, or
#'   a named numeric vector, whose names are those of parameters or of single variables, such as `c(sigma = 0)` or
#'   `list("beta[2]" = 0)`. The bound of a parameter is a number, or in a list as many as it has elements. What is not
#'   named has none. See the section Bounds.
#' @param data any R object, as the second argument of `log_density`. Or NULL: then `log_density` is called with the
#'   parameters only, and sees the data that are around where it was written.
#' @param types a list with the types of parameters, such as `list(w = "simplex")`: see the section Types. The values in
#'   `parameters` must be of their type; a correlation matrix is a matrix there.
#' @param prior NULL; or the prior, as in [target_function()], of the variables as a vector, for what needs it beside the
#'   log density. It does not take the place of the prior in `log_density`.
#' @param response,nobs the observations, as in [target_function()]; NULL for what is called `y`, `Y` or `N` in `data`.
#' @param random names of parameters, such as effects of groups, that are integrated out (character vector); NULL for
#'   none. They have no bounds and no types. See [as_target()], section Random effects.
#' @param method how these are integrated out, as in [as_target()].
#' @param ... not used.
#' @return A target: an object of class `smc_target`. Its variables are the elements of the parameters, in R's order:
#'   `sigma` for a number, `beta[1]`, `beta[2]` for a vector, `Sigma[1,1]`, `Sigma[2,1]` for a matrix.
#' @inheritSection target_function Bounds
#' @inheritSection target_function Types
#' @section Other processes: A tape cannot be sent to other processes, or be saved. It is recorded afresh where it is
#'   missing, so targets can be saved, and runs can be made by workers of the future package. `log_density` must work
#'   there: what it uses should be in `data`, or in the environment of a function that made it, since workers do not see
#'   the global environment of this session. With other data, by which its value at `parameters` is another, it is an
#'   error.
#' @section Impossible points: Where what was recorded fails at a point, such as `chol()` of a matrix that is
#'   no covariance there, the log density is -Inf: the point is impossible, and the others go on. How many
#'   there were is in the column `n_impossible` of a fit's `runs`.
#' @section Errors: Of class `autosmc_error_package` when RTMB is not installed. Of class
#'   `autosmc_error_input` when an argument is wrong, and when `log_density` cannot be
#'   recorded, in which case the function's own error is its `parent`, or has another value at `parameters` than what
#'   is recorded, as with functions of packages that do not know RTMB's numbers.
#' @source Kristensen, *RTMB: 'R' Bindings for 'TMB'*, and Kristensen et al. (2016), *TMB:
#'   Automatic differentiation and Laplace approximation*.
#' @seealso [as_target()] for the model objects of `RTMB::MakeADFun()` and `TMB::MakeADFun()`.
#' @examplesIf requireNamespace("RTMB", quietly = TRUE)
#' # the stopping distance of cars by their speed
#' log_density <- function(p) {
#'   sum(dnorm(cars$dist, p$b[1] + p$b[2] * cars$speed, p$sigma, log = TRUE)) +
#'     sum(dnorm(p$b, 0, 20, log = TRUE)) + dexp(p$sigma, 0.1, log = TRUE)
#' }
#' target <- target_rtmb(log_density, parameters = list(b = c(0, 0), sigma = 1), lower = c(sigma = 0))
#' target
#' smc(target, n_steps = 4, n_particles = 64, rounds = 1, seed = 1)
#' @export
target_rtmb <- function(
  log_density, parameters, lower = -Inf, upper = Inf, data = NULL, types = NULL, prior = NULL, response = NULL,
  nobs = NULL, random = NULL, method = c("auto", "laplace"), ...
) {
  check_not_of_object(...)
  check_function(log_density, "log_density")
  parameters <- check_parameters(parameters)
  check_installed("RTMB", "for targets by automatic differentiation")
  target <- if (is.null(random)) {
    recorded_target(log_density, parameters, lower, upper, data, types)
  } else {
    model <- effects_model(log_density, parameters, data, check_random(random, names(parameters), types))
    as_target(model, lower = lower, upper = upper, method = method)
  }
  target$prior <- check_prior(prior)
  target$observed <- observations(response, nobs, if (is.list(data)) data)
  target
}

recorded_target <- function(log_density, parameters, lower, upper, data, types) {
  variables <- variables_of(parameters)
  bounds <- variable_bounds(lower, upper, variables)
  check_inside(parameters, variables, bounds)
  start <- unlist(parameters, use.names = FALSE)
  target <- tape_target(variables$names, bounds, "R function, differentiated by RTMB", start, types)
  at <- drop(check_user_points(start, target, "parameters"))
  types <- target$types
  target$record <- same_at(at, function() tape_function(log_density, parameters, data, at, types))
  point_tape(target) # to find out now what cannot be recorded
  target
}

# start: a point inside the bounds, or NULL. record: a function without arguments that makes the tape of the log density
# at one point (of class "Tape").
tape_target <- function(names, bounds, label, start, types = NULL, record = NULL) {
  new_target(
    length(names), names, label,
    start = start, record = record, tapes = new.env(parent = emptyenv()),
    lower = bounds$lower, upper = bounds$upper, types = types, class = "smc_target_tape"
  )
}

# tapes -----------------------------------------------------------------------

# The tape `name` of the target, made by `make()` where it is missing.
kept_tape <- function(target, name, make) {
  tapes <- target$tapes
  if (!identical(tapes$session, session)) {
    rm(list = ls(tapes), envir = tapes)
    tapes$session <- session
  }
  if (is.null(tapes[[name]])) tapes[[name]] <- make()
  tapes[[name]]
}

point_tape <- function(target) kept_tape(target, "point", function() recording(target$record()))

# A block of points for the log density of each, or for that and the gradient: a list of the `tape`, its `size` in
# points, whether it is for the `gradient`, the tape `of_one` point, and whether it `remembers`: the search for a mode
# that is part of a tape starts where it last ended.
block_of <- function(target, gradient) {
  kept_tape(target, if (gradient) "gradients" else "values", function() {
    tape <- point_tape(target)
    operations <- colnames(tape$graph())
    size <- block_size(length(operations))
    list(
      tape = block_tape(tape, size, gradient), size = size, gradient = gradient, of_one = block_tape(tape, 1, gradient),
      n_operations = length(operations), remembers = "Newton" %in% operations, copies = new.env(parent = emptyenv())
    )
  })
}

# How many points are evaluated by one call of a tape. A call costs as much as ten
# points of a small model, so they are many: as many as the tuner asks for at a time. But
# a tape of many points of a large model takes much memory, where a call would cost
# nothing by comparison, so that there is one point where there would be few. 2e5 operations take some ten megabytes.
block_size <- function(n_operations) if (n_operations > 2.5e4) 1 else min(128, 2e5 %/% n_operations)

# `size` points one after another, each evaluated as `tape` does. For gradients it is one number, the sum of these
# values, each times a factor of 1 that is also a variable: its derivatives are the gradients of all points and then
# their values. The points share their constants, such as data, once the tape is simplified.
block_tape <- function(tape, size, gradient) {
  dim <- length(tape$par())
  block <- RTMB::MakeTape(
    function(x) {
      values <- do.call(c, lapply(seq_len(size), function(k) tape(x[(k - 1) * dim + seq_len(dim)])))
      if (gradient) sum(x[size * dim + seq_len(size)] * values) else values
    },
    c(rep(tape$par(), size), if (gradient) rep(1, size))
  )
  block$simplify()
  block
}

# evaluation ------------------------------------------------------------------

#' @export
evaluation.smc_target_tape <- function(target) {
  list(evaluate = function(x, gradient) {
    out <- evaluate_blocks(block_of(target, gradient), t(x))
    list(log_density = out[1, ], gradient = if (gradient) as.double(t(out[-1, ])))
  })
}

# x: a column a point. Returns a matrix of the values, above the gradients, and a column a point. The last
# block is filled up with the last point, but for few points, which are evaluated one by one. What was recorded may fail
# at a point, as a Cholesky factor of what is no covariance there: then the points of its block are evaluated one by
# one, too, and those that fail have NaN. It is no mistake of the model's, which was recorded at a point.
evaluate_blocks <- function(block, x) {
  n <- ncol(x)
  n_out <- if (block$gradient) 1 + nrow(x) else 1
  one_by_one <- function(x) apply(x, 2, function(x) run_tape(block, block$of_one, x, function() rep(NaN, n_out)))
  parts <- lapply(seq(1, n, by = block$size), function(first) {
    own <- x[, pmin(seq(first, length.out = block$size), n), drop = FALSE]
    n_own <- min(block$size, n + 1 - first)
    if (n_own <= few_of_block(block)) {
      return(as.double(one_by_one(own[, seq_len(n_own), drop = FALSE])))
    }
    as.double(run_tape(block, block$tape, own, function() one_by_one(own)))[seq_len(n_own * n_out)]
  })
  matrix(unlist(parts), n_out)
}

# Up to so large a part of a block points are evaluated one by one, in less time. Of those with a mode to search for
# each takes long, so that a call costs little more.
few_of_block <- function(block) block$size * if (block$remembers) 1 / 2 else 1 / 8

# tape: of the block, for these points. failed: what there is in the place of the values, a function without arguments.
run_tape <- function(block, tape, x, failed) {
  n <- NCOL(x)
  if (block$remembers) {
    # R does not see the memory that copies take; before the next, so that none is kept
    copies <- block$copies
    copies$size <- sum(copies$size, n * block$n_operations)
    if (copies$size > 5e5) {
      gc(full = FALSE)
      copies$size <- 0
    }
    tape <- tape$laplace(integer()) # a copy: nothing is integrated out
  }
  x <- as.double(x)
  tryCatch(
    if (block$gradient) {
      places <- seq_along(x)
      x <- c(x, rep(1, n))
      # a gradient by way of a mode that was not found may crash R
      if (block$remembers) stopifnot(is.finite(tape(x)))
      out <- c(tape$jacobian(x))
      rbind(out[-places], matrix(out[places], ncol = n))
    } else {
      tape(x)
    },
    error = function(e) {
      # where x is that of the last call a tape returns what it has, which is half done now
      tryCatch(tape(NaN * tape$par()), error = function(e) NULL)
      failed()
    }
  )
}
