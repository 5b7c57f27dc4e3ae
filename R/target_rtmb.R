# Targets that are evaluated by tapes of RTMB (recorded computations with derivatives; Kristensen et al., 2016): R
# functions of a list of parameters, and model objects of RTMB.

#' A target from an R function, differentiated by RTMB
#'
#' The log density is a plain R function of a list of parameters. RTMB records its operations once, on a tape, and a run
#' evaluates the tape at many points together: the gradient is exact, and the R function is not called again. This takes
#' about twice the time of vectorised R functions for value and gradient, and much less than R code that takes one point
#' at a time.
#'
#' The function is written as for `RTMB::MakeADFun()`, but returns the log density itself and not its negative. It may
#' use what RTMB can differentiate: arithmetic, matrix algebra, and densities like `dnorm(x, mean, sd, log = TRUE)` and
#' `dmvnorm(x, mean, Sigma, log = TRUE)`. RTMB is attached while the function is recorded, so `library(RTMB)` is not
#' needed. Branches on a parameter (`if`), and comparisons such as `sigma > 0`, cannot be recorded; give bounds as
#' `lower` and `upper` instead.
#'
#' @param log_density a function of a list like `parameters`, and of `data` if given. It returns the log of likelihood
#'   times prior (a number), with the priors of all parameters and all constants. A parameter without a prior has a flat
#'   prior, with which the evidence is undefined.
#' @param parameters a named list of numbers, numeric vectors, matrices or arrays. It gives the shapes of the
#'   parameters, and a point at which the function is recorded. If the log density is not finite at any point that
#'   [smc()] tries first, it starts from this point.
#' @param lower,upper bounds of the variables. A number for all of them (`-Inf` and `Inf` for none); or a named list, or
#'   a named numeric vector, whose names are those of parameters or of single variables, such as `c(sigma = 0)` or
#'   `list("beta[2]" = 0)`. The bound of a parameter is a number or, in a list, one number for each of its elements.
#'   Variables that are not named have no bound. See the section Bounds.
#' @param data any R object, the second argument of `log_density`. Or NULL: then `log_density` is called with the
#'   parameters only, and can use variables of the environment in which it was defined.
#' @param types a list with the types of parameters, such as `list(w = "simplex")`: see the section Types. The values in
#'   `parameters` must be of their type; a correlation matrix is a matrix there.
#' @param prior NULL; or the prior of the vector of variables, as in [target_function()]. It does not replace the prior
#'   in `log_density`.
#' @param response,nobs the observations, as in [target_function()]; NULL to take `y`, `Y` or `N` from `data`.
#' @param random names of parameters, such as effects of groups, that are integrated out (character vector); NULL for
#'   none. They cannot have bounds or types. See [as_target()], section Random effects.
#' @param method how these are integrated out, as in [as_target()].
#' @param ... not used.
#' @return A target: an object of class `smc_target`. Its variables are the elements of the parameters, in R's order:
#'   `sigma` for a number, `beta[1]`, `beta[2]` for a vector, `Sigma[1,1]`, `Sigma[2,1]` for a matrix.
#' @inheritSection target_function Bounds
#' @inheritSection target_function Types
#' @section Other processes: A tape cannot be saved or sent to another process, but it is recorded again when it is
#'   missing. So targets can be saved, and workers of the future package can make runs. `log_density` must work in the
#'   other process: the objects that it uses should be in `data`, or in the environment of a function that made it,
#'   since workers do not have the global environment of this session. It is an error if the value at `parameters` has
#'   changed, as with other data.
#' @section Impossible points: If the recorded operations fail at a point, such as `chol()` of a matrix that is not
#'   positive definite, the log density is -Inf: the point is impossible, and the run continues. The column
#'   `n_impossible` of a fit's `runs` counts these points.
#' @section Errors: Of class `autosmc_error_package` when RTMB is not installed. Of class `autosmc_error_input` when an
#'   argument is wrong; when `log_density` cannot be recorded, with the function's own error as `parent`; and when the
#'   tape has another value at `parameters` than the function, as with compiled functions that do not support RTMB's
#'   numbers.
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
  point_tape(target) # so that errors of recording are reported now
  target
}

# start: a point inside the bounds, or NULL. record: a function without arguments that returns the tape of the log
# density at one point (of RTMB's class "Tape").
tape_target <- function(names, bounds, label, start, types = NULL, record = NULL) {
  new_target(
    length(names), names, label,
    start = start, record = record, tapes = new.env(parent = emptyenv()),
    lower = bounds$lower, upper = bounds$upper, types = types, class = "smc_target_tape"
  )
}

# tapes -----------------------------------------------------------------------

# The tape `name` of the target. It is made by `make()` when it is missing, as all tapes are in a new session.
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

# A tape that evaluates a block of points: a list of the `tape`, its `size` in points, whether it is for the `gradient`
# too, the tape `of_one` point, its number of operations, and whether it `remembers`: a tape with a search for the mode
# starts the search where the previous one ended. `copies` counts the memory of copies, see run_tape().
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

# The number of points that one call of a tape evaluates. The overhead of a call is that of ten points of a small model,
# so a block has up to 128 points, as many as the tuner asks for at a time. 2e5 operations take some ten megabytes,
# which limits larger models. If fewer than 8 points would remain, a block is one point: the overhead is negligible
# then.
block_size <- function(n_operations) if (n_operations > 2.5e4) 1 else min(128, 2e5 %/% n_operations)

# A tape of `size` points. With `gradient` its value is one number, the sum of the log densities, each multiplied by an
# additional variable that is 1. So its derivatives are the gradients at all points, followed by the log densities.
# Simplifying the tape makes the points share constants, such as data.
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

# x: a column for each point. Returns a matrix with a column for each point: the log density and below it the gradient.
# The last block is filled up with copies of the last point, or evaluated point by point if it has few points. If a
# block fails, as chol() of a matrix that is not positive definite does, its points are evaluated one by one, and those
# that fail have NaN.
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

# The number of points up to which evaluation one by one is faster than a full block. If each point needs a search for
# the mode, the overhead of a call matters less, so the number is larger.
few_of_block <- function(block) block$size * if (block$remembers) 1 / 2 else 1 / 8

# The values of `tape`, one of the block's tapes, at the points x, or the value of failed() if the tape fails.
run_tape <- function(block, tape, x, failed) {
  n <- NCOL(x)
  if (block$remembers) {
    # R's garbage collector does not know the size of copies, so it is called after 5e5 operations, and before the next
    # copy is made
    copies <- block$copies
    copies$size <- sum(copies$size, n * block$n_operations)
    if (copies$size > 5e5) {
      gc(full = FALSE)
      copies$size <- 0
    }
    tape <- tape$laplace(integer()) # makes a copy: no variable is integrated out
  }
  x <- as.double(x)
  tryCatch(
    if (block$gradient) {
      places <- seq_along(x)
      x <- c(x, rep(1, n))
      # without a mode the gradient may crash R
      if (block$remembers) stopifnot(is.finite(tape(x)))
      out <- c(tape$jacobian(x))
      rbind(out[-places], matrix(out[places], ncol = n))
    } else {
      tape(x)
    },
    error = function(e) {
      # a tape caches its last call, which is incomplete now: evaluating it at NaN clears the cache
      tryCatch(tape(NaN * tape$par()), error = function(e) NULL)
      failed()
    }
  )
}
