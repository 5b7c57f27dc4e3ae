# reference_laplace(): Laplace's approximation, the normal distribution at a mode (Tierney and Kadane, 1986). Its parts
# also serve the scout and the surrogate of random effects.

# Largest step of a central difference, relative to the standard deviation. Its relative error is a sixth of the square,
# 0.2 % of a slope that changes by as much as its size over a standard deviation.
widest_difference <- 0.1
# Largest number of starts of the optimiser, and of iterations for the widths at a mode.
most_climbs <- 5
# A point is a mode if the Newton step from it is shorter than this, in standard deviations.
mode_distance <- 0.01
# The widths at a mode have converged when they change by a smaller factor: then differences over a tenth of a width
# have a relative error of 1 %.
settled_curvature <- 2

#' Reference: the normal distribution at a mode
#'
#' Maximises the density of the target from a start, by [stats::optim()] with its method `"BFGS"` and the target's
#' gradient. The reference is Laplace's approximation: the normal distribution with its mean at the mode and, as
#' covariance, the inverse of the negative Hessian there, multiplied by `inflate`. Mode and Hessian are those on the
#' unconstrained scale (see [unconstrain()]), where the mode differs from that on the scale of the variables.
#'
#' [smc()] locates the target by itself ([smc_scout()]). This function is for targets
#' whose mode is known, or hard to find. A mode may be far from the bulk of the draws, as in
#' hierarchical models, or may not exist.
#'
#' @param target a target, or an object that [as_target()] converts to one.
#' @param start the first point: a numeric vector of length `dim`, on the scale of the
#'   target's variables.
#' @param inflate factor of the covariance (positive number). Values above 1 guard against tails that are
#'   heavier than the normal distribution's.
#' @param ... for a function, the other arguments of [target_function()]; `dim` is the length of `start`.
#' @return An object of class `smc_reference`, as [reference_gaussian()] makes it.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong, or the target is
#'   impossible at `start`. Of class `autosmc_error_mode` when no mode is found from
#'   there: the density increases without bound, or the optimiser ends where the gradient is not 0 or
#'   the Hessian is not negative definite.
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

# list(mode, L): the covariance of Laplace's approximation is L L'. Restarts the optimiser where it has ended, with the
# variables scaled by their widths there, until it ends at a mode.
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
      "No mode was found from {.arg start}: where the optimiser ended {curved$problem}.",
      "i" = "The density may increase without bound there, as in a hierarchical model whose variance goes to 0; or
        the gradient may be wrong: see {.fn check_gradient}.",
      "i" = "{.fn smc} locates the target without a mode. If it finds no possible point, it can start around one:
        {.code reference = reference_gaussian(mean, sd)}, on the unconstrained scale."
    ),
    "mode"
  )
}

# The end of the optimiser from x. width: the units of the variables.
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
  # next to an edge, scaling by the widths may round a start to a point of density 0
  stats::optim(
    x, function(u) -max(at(u)$log_density, -.Machine$double.xmax), function(u) -at(u)$gradient[1, ],
    method = "BFGS",
    control = list(parscale = width, fnscale = size, maxit = 1000, reltol = 0)
  )$par
}

# list(hessian, log_density): the negative Hessian at x, by central differences of gradients with a step of a tenth of
# the `width`, and the log densities at the points of these differences.
curvature_around <- function(evaluate, x, width) {
  d <- length(x)
  step <- widest_difference * width
  right <- seq_len(d)
  around <- evaluate(sweep(rbind(diag(step, d), diag(-step, d)), 2, x, "+"))
  hessian <- matrix((around$gradient[-right, ] - around$gradient[right, ]) / (2 * step), d)
  list(hessian = (hessian + t(hessian)) / 2, log_density = around$log_density)
}

# list(L), the factor of the covariance at a mode x; list(problem, width, x) if x is not a mode, with the point after a
# Newton step in the place of x where that has a higher density.
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
    "the density does not decrease in all directions"
  } else if (is.null(upper)) {
    "the Hessian is not negative definite"
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
