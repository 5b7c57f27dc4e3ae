# A reference from a start: the normal distribution at the mode.

# Differences are taken over this part of the normal's width, where what a central one
# leaves out is a sixth of the square, 0.2 % of a slope that changes as much, ...
widest_difference <- 0.1
# Restarts of the search for a mode; two have always been enough.
most_climbs <- 5
# A mode is one where the Newton step from it is shorter, in sds: its normal is as good then.
mode_distance <- 0.01
# Factor by which widths may still change where the curvature at a mode is taken: differences over
# a tenth of a width that is wrong by less leave out 1 %.
settled_curvature <- 2

#' Reference: the normal distribution at a mode
#'
#' Climbs from a start to a mode of the target, by [stats::optim()] with its method `"BFGS"`
#' and the target's gradient, and takes the normal distribution with the mode as its mean and
#' the inverse of the negative Hessian there as its covariance (Laplace's approximation),
#' inflated. All of this is on the unconstrained scale (see [unconstrain()]), where a mode
#' is not where it is on the scale of the variables.
#'
#' [smc()] looks for the target by itself ([smc_scout()]). This function is for targets
#' whose mode is known, or hard to find. A mode may be far from the bulk of the draws, as in
#' hierarchical models, and there may be none.
#'
#' @param target a target, or what [as_target()] makes one of.
#' @param start where to begin: a numeric vector of length `dim`, on the scale of the
#'   target's variables.
#' @param inflate factor of the covariance (positive number). Above 1 the tails of the
#'   target are reached more surely.
#' @param ... for a function, the other arguments of [target_function()]; `dim` is the length of `start`.
#' @return An object of class `smc_reference`, as [reference_gaussian()] makes it.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong, or the target is
#'   impossible at `start`. Of class `autosmc_error_mode` when no mode is found from
#'   there: the density increases without bound, or the climb ends where the gradient is not 0 or
#'   the density is not curved downwards in all directions.
#' @source Tierney and Kadane (1986), *Accurate approximations for posterior moments and
#'   marginal densities*.
#' @seealso [reference_gaussian()].
#' @examples
#' target <- target_function(
#'   function(x) dgamma(x[1], 3, log = TRUE) + dnorm(x[2], 100, 2, log = TRUE),
#'   gradient = function(x) c(2 / x[1] - 1, (100 - x[2]) / 4),
#'   dim = 2, names = c("sigma", "mu"), lower = c(0, -Inf)
#' )
#' reference <- reference_laplace(target, start = c(1, 90))
#' constrain(target, reference$mean)
#' smc(target, reference = reference, n_particles = 32, n_steps = 4, rounds = 1, seed = 1)
#' @export
reference_laplace <- function(target, start, inflate = 1.5, ...) {
  check_given(start, "start")
  target <- if (is.function(target) && !"dim" %in% ...names()) {
    check_target(target, dim = length(start), ...)
  } else {
    check_target(target, ...)
  }
  if (is.matrix(start)) {
    abort_argument(start, "start", "a vector")
  }
  inflate <- check_number(inflate, "inflate", min = 0, open = TRUE)
  from <- change_scale(target, check_user_points(start, target, "start"), to_user = FALSE)
  peak <- once_each(find_peak(counted_density(target), from[1, ]))
  new_fitted_reference(peak$mode, sqrt(inflate) * peak$L)
}

# list(mode, L): the covariance of Laplace's approximation is L L'. Climbs, with the units of
# the variables that were found where the last climb ended, until one ends on a peak.
find_peak <- function(evaluate, x) {
  if (evaluate(t(x))$log_density == -Inf) {
    abort("The target is impossible at {.arg start}, or its gradient is not finite there.")
  }
  width <- rep(1, length(x))
  for (climb in seq_len(most_climbs)) {
    x <- climb_from(evaluate, x, width)
    curved <- curvature_at(evaluate, x, width)
    if (is.null(curved$problem)) {
      return(list(mode = x, L = curved$L))
    }
    width <- curved$width
    x <- curved$x
  }
  abort(
    c(
      "No mode was found from {.arg start}: where the climb ended {curved$problem}.",
      "i" = "The density may increase without bound there, as in a hierarchical model whose variance goes to 0; or
        the gradient may be wrong: see {.fn check_gradient}.",
      "i" = "{.fn smc} locates the target without a mode. If it finds no possible point, it can start around one:
        {.code reference = reference_gaussian(mean, sd)}, on the unconstrained scale."
    ),
    "mode"
  )
}

climb_from <- function(evaluate, x, width) {
  last <- list()
  at <- function(u) { # optim() asks for the gradient where it has asked for the value
    if (!identical(last$u, u)) {
      last <<- c(list(u = u), evaluate(t(u)))
    }
    last
  }
  # optim() begins with a step as long as the gradient: this makes it one width at most
  size <- max(1, sqrt(sum((width * at(x)$gradient)^2)))
  # beside an edge the units of the widths may round a start to what is impossible
  stats::optim(
    x, function(u) -max(at(u)$log_density, -.Machine$double.xmax), function(u) -at(u)$gradient[1, ],
    method = "BFGS",
    control = list(parscale = width, fnscale = size, maxit = 1000, reltol = 0)
  )$par
}

# The negative Hessian at x, by differences of gradients over a tenth of a width to both sides, and
# the log densities there: list(hessian, log_density).
curvature_around <- function(evaluate, x, width) {
  d <- length(x)
  step <- widest_difference * width
  right <- seq_len(d)
  around <- evaluate(sweep(rbind(diag(step, d), diag(-step, d)), 2, x, "+"))
  hessian <- matrix((around$gradient[-right, ] - around$gradient[right, ]) / (2 * step), d)
  list(hessian = (hessian + t(hessian)) / 2, log_density = around$log_density)
}

# The curvature at x: list(L); or where x is no peak list(problem, width, x), with a better x if
# there is one.
curvature_at <- function(evaluate, x, width) {
  centre <- evaluate(t(x))
  for (refinement in seq_len(most_climbs)) {
    around <- curvature_around(evaluate, x, width)
    hessian <- around$hessian
    now <- ifelse(diag(hessian) > 0, 1 / sqrt(abs(diag(hessian))), width)
    change <- max(now / width, width / now)
    width <- now
    if (change < settled_curvature) {
      break
    }
  }
  upper <- factor_or_null(hessian)
  problem <- if (!all(around$log_density < centre$log_density)) {
    "the density does not fall to all sides"
  } else if (is.null(upper)) {
    "it is not curved downwards in all directions"
  } else if (sum(backsolve(upper, centre$gradient[1, ], transpose = TRUE)^2) > mode_distance^2) {
    "the gradient is not 0"
  }
  if (is.null(problem)) {
    return(list(L = factor_of_inverse(upper)))
  }
  if (!is.null(upper)) {
    newton <- x + drop(chol2inv(upper) %*% centre$gradient[1, ])
    if (evaluate(t(newton))$log_density > centre$log_density) {
      x <- newton
    }
  }
  list(problem = problem, width = width, x = x)
}
