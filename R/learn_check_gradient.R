# The gradient of a target, checked by the user.

#' Check the gradient of a target
#'
#' Compares the gradient of a target with central differences of its log density, variable
#' by variable, on the unconstrained scale (see [unconstrain()]). [smc()] and [smc_adapt()]
#' do so by themselves, after the scout: a gradient that is wrong at several points along a
#' variable is an error, and a rough log density, whose differences do not settle, brings a warning.
#' Of more than 64 variables some are moved together.
#'
#' The step of a difference is a tenth of a variable's width, given the others, at first. As long as the
#' differences over a step and over half of it disagree the step is made shorter. What
#' rounding can do to the log density is allowed for. Where no step settles, the log
#' density is rough there: it jumps, or is noisy, or found by an iteration that ends early.
#' A density with an edge at a datum, such as a shifted Weibull distribution, loses its digits next
#' to it: failures there alone do not show that the gradient is wrong.
#'
#' @param target what to check: a target, or something that [as_target()] makes one of.
#' @param x where: an `n x dim` numeric matrix, a row a point, or a vector for one point,
#'   on the scale of the target's variables; NULL for four likely draws from the best normal
#'   distribution of [smc_scout()].
#' @param ... for a function, the other arguments of [target_function()].
#' @param seed for the scout: a whole number from 0 to 2^32 - 1; NULL to draw one from R's
#'   generator.
#' @return A data frame with a row a point and variable: `point`, its number; `variable`;
#'   `gradient`, as the target has it; `difference`, as the log density says; both on the
#'   unconstrained scale; `error`, their difference relative to the largest of the two and the
#'   root of the curvature; and `passed`: whether the
#'   error is at most 0.005 and what rounding explains, FALSE too where the gradient is not
#'   finite, and NA where differences do not settle, the target is impossible, or the variable is so
#'   close to a bound that rounding hides its steps.
#' @section Cost: One evaluation for each point, and for each point and variable four of the log
#'   density alone, or more if the step has to be shortened.
#' @section Errors: Of class `autosmc_error_input` when the target has no gradient of its
#'   own; otherwise those of [smc_scout()]. In [smc()] and [smc_adapt()], of class
#'   `autosmc_error_gradient` when the gradient is wrong, with the fields `variable`,
#'   `gradient`, `difference` and `x`.
#' @section Warnings: In [smc()] and [smc_adapt()], of class `autosmc_warning_gradient` when
#'   the log density is rough.
#' @seealso [target_rtmb()], which finds gradients by itself.
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
    table <- by_variable(target, evaluate, place$x[i, ], place$width[i, ])
    cbind(point = i, table)
  }))
  table <- bind_rows(tables)
  table[c("point", "variable", "gradient", "difference", "error", "passed")]
}
