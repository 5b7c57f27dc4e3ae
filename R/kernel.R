# Markov kernels, as the user chooses them.

#' Kernel: unadjusted Langevin Monte Carlo
#'
#' Moves every particle by a step of gradient ascent on the annealed log density
#' and noise: `K_t(x, .) = N(x + h_t g_t(x), 2 h_t I)`. Its bias is corrected by
#' the weights, not by rejection.
#'
#' @param step_size NULL to tune the step sizes `h_t`; or a positive number, or
#'   one for every step (numeric vector of length `n_steps`), which switches the
#'   tuning off.
#' @param backward the backward kernel that the moves are weighed against:
#'
#'   * `"time_correct"`, the kernel of the step before, with its own temperature
#'     and step size; the best of the three. At the first step, where there is
#'     none before, it is the reference.
#'   * `"forward"`, the kernel of the step itself: unbiased too, but of a higher
#'     variance.
#'   * `"detailed_balance"`, the reversal of the kernel, as if it were
#'     reversible. It is not, so the estimate is biased; and the weights do not
#'     depend on the step size, so it must be given. For comparison only.
#' @return An object of class `smc_kernel`.
#' @source Kim, Xu, Gardner and Campbell (2025), sections 5.1 (the kernel) and D
#'   (the backward kernels).
#' @examples
#' target <- target_gaussian(2, mean = 1)
#' smc(target, kernel = kernel_lmc(step_size = 0.3), n_steps = 8)
#' @export
kernel_lmc <- function(
  step_size = NULL,
  backward = c("time_correct", "forward", "detailed_balance")
) {
  backward <- check_choice(
    backward,
    "backward",
    c("time_correct", "forward", "detailed_balance")
  )
  if (!is.null(step_size)) {
    step_size <- check_positive(step_size, "step_size")
  } else if (backward == "detailed_balance") {
    abort(
      c(
        "{.arg step_size} must be given with the detailed-balance backward
          kernel, it is NULL.",
        "i" = "The weights do not depend on it, so there is nothing to tune."
      ),
      "input"
    )
  }
  structure(
    list(
      name = "lmc",
      step_size = step_size,
      backward = backward,
      biased = backward == "detailed_balance",
      tuner_defaults = list(
        regularization = 0.1,
        tolerance = 0.01,
        bracket_start = 0.1,
        bracket_growth = 2,
        backoff = -1,
        step_size_guess = exp(-10),
        step_size_anchor = 1
      )
    ),
    class = "smc_kernel"
  )
}

#' @export
format.smc_kernel <- function(x, ...) {
  paste0("LMC (", x$backward, " backward kernel)")
}

#' @export
print.smc_kernel <- function(x, ...) {
  cat("<smc_kernel> ", format(x), "\n", sep = "")
  cat("step size: ", format_step_size(x$step_size), "\n", sep = "")
  invisible(x)
}

format_step_size <- function(h) {
  if (is.null(h)) {
    "tuned"
  } else if (length(h) == 1) {
    format(h)
  } else {
    sprintf("%d given, from %s to %s", length(h), format(h[1]), format(h[length(h)]))
  }
}
