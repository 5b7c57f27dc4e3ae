# check_gradient(): the exported check of a target's gradient by central differences. See learn_gradient.R.

#' Check the gradient of a target
#'
#' Compares the gradient of a target with central differences of its log density, variable
#' by variable, on the unconstrained scale (see [unconstrain()]). [smc()] and [smc_adapt()]
#' do so by themselves, after the scout. A gradient that is wrong at several points along a variable is an
#' error. A rough log density, whose differences do not converge, gives a warning. If there are more than
#' 64 variables, these two functions move several variables together.
#'
#' The first step of a difference is a tenth of the variable's conditional standard deviation. The step is
#' shortened while the differences over the step and over half of it disagree. The tolerance includes
#' the rounding error of the log density. If no step is short enough, the log density is called rough at the point:
#' it jumps, is noisy, or comes from an iteration that stops early.
#' The log density of a model with an edge at a datum, such as a shifted Weibull distribution, loses its digits
#' next to the edge: failures only there do not show that the gradient is wrong.
#'
#' @param target a target, or an object that [as_target()] converts to one.
#' @param x the points at which to check: an `n x dim` numeric matrix, a row a point, or a vector for one
#'   point, on the scale of the target's variables; NULL for four likely draws from the best normal
#'   distribution of [smc_scout()].
#' @param ... for a function, the other arguments of [target_function()].
#' @param seed for the scout: a whole number from 0 to 2^32 - 1; NULL to draw one from R's
#'   generator.
#' @return A data frame with a row for each point and variable:
#'
#' * `point`: the number of the point.
#' * `variable`: the name of the variable.
#' * `gradient`, `difference`: the derivative by the target's gradient and by differences of its log density, both
#'   on the unconstrained scale.
#' * `error`: their absolute difference, divided by the largest of the two and the square root of the curvature.
#' * `passed`: TRUE if the error is at most 0.005, apart from rounding; FALSE if it is larger, or the gradient is not
#'   finite; NA if the differences do not converge, the target has density 0 at the point, or the variable is so
#'   close to a bound that rounding hides its steps.
#' @section Cost: One evaluation for each point, and for each point and variable at least four of the log
#'   density without gradient; more if the step has to be shortened.
#' @section Errors: Of class `autosmc_error_input` when the target has no gradient of its
#'   own; otherwise those of [smc_scout()]. In [smc()] and [smc_adapt()], of class
#'   `autosmc_error_gradient` when the gradient is wrong, with the fields `variable`,
#'   `gradient`, `difference` and `x`.
#' @section Warnings: In [smc()] and [smc_adapt()], of class `autosmc_warning_gradient` when
#'   the log density is rough.
#' @seealso [target_rtmb()], which differentiates automatically.
#' @examples
#' log_density <- function(x) dnorm(x[1], 1, 2, log = TRUE) + dnorm(x[2], x[1], log = TRUE)
#' wrong <- function(x) c(-(x[1] - 1) / 4, x[1] - x[2])
#' check_gradient(log_density, dim = 2, gradient = wrong, x = c(0, 1))
#'
#' right <- function(x) c(-(x[1] - 1) / 4 + x[2] - x[1], x[1] - x[2])
#' check_gradient(log_density, dim = 2, gradient = right, x = c(0, 1))
#' @export
check_gradient <- function(target, x = NULL, ..., seed = NULL) {
  target <- check_target(target, ...)
  if (is.null(x)) {
    place <- smc_scout(target, seed = seed)$gradient_place
    if (is.null(place)) {
      abort(c(
        "No point was found at which to check the gradient.",
        "i" = "Give one as {.arg x}."
      ))
    }
  } else {
    u <- change_scale(target, check_user_points(x, target, "x"), to_user = FALSE)
    place <- list(x = u, width = pmax(abs(u), 1))
  }
  if (!has_own_gradient(target, place$x)) {
    abort("The target has no gradient of its own: there is nothing to check.")
  }
  evaluate <- counted_density(target)
  n <- if (is.null(x)) min(nrow(place$x), n_gradient_points) else nrow(place$x)
  tables <- once_each(lapply(seq_len(n), function(i) {
    table <- slopes_by_variable(target, evaluate, place$x[i, ], place$width[i, ])
    cbind(point = i, table)
  }))
  table <- bind_rows(tables)
  table[c("point", "variable", "gradient", "difference", "error", "passed")]
}
