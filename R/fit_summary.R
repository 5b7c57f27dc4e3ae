# summary(): the table of the variables.

#' Print a fit, and summarise its draws
#'
#' `print()` shows the log evidence with its standard error and interval, followed by `(bridge)` if it is the bridge
#' estimate (see [estimates]), the posterior of the first six variables, how the fit was made, and last the verdict of
#' the diagnostics. `summary()` has all variables, and prints the first 20, and the schedule as well.
#'
#' @param object,x a fit of [smc()], [smc_adapt()] or [smc_run()], or its summary.
#' @param schedule whether to print the schedule, the temperature and the kernel's parameters of each step (TRUE or
#'   FALSE): for a fit the first and last three steps, for a summary all of them.
#' @param digits number of significant digits of standard errors and standard deviations (a whole number); estimates
#'   have the same decimals. NULL for at least three decimals of `log Z`, and three digits of standard deviations.
#' @param ... not used.
#' @return `print()`: `x`, invisibly. `summary()`: an object of class `summary.smc_fit`, a
#'   list with the `fit` and `variables`, a data frame with a row for each variable: its weighted
#'   `mean`, `sd` and quantiles `q5`, `median` and `q95`, and `mcse`, the Monte Carlo standard error of the mean, from
#'   the spread of the islands (NA for one island). Do not use the standard deviations of variables in `fit$heavy_tails`
#'   (see the section Heavy tails of [diagnostics]). If the density is invariant to permutations of labels or changes of
#'   sign, the draws are first mapped to one copy of each mode: see `fold` of [as_draws.smc_fit()].
#' @section Errors: `autosmc_error_input` when an argument is not what it should be.
#' @source A posterior mean is estimated by the ratio of two means over islands: of `exp(log_z)` times the island's
#'   weighted mean, and of `exp(log_z)`; `mcse` is its standard error by the delta method.
#' @seealso [tidy.smc_fit()] for data frames, [coef.smc_fit()] for R's usual generics,
#'   [report()] for a paragraph of text.
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' fit
#' print(fit, schedule = TRUE)
#' summary(fit)$variables
#' @export
summary.smc_fit <- function(object, ...) {
  check_dots_empty(...)
  structure(list(fit = object, variables = variables_table(object)), class = "summary.smc_fit")
}

# The summary of these columns of the draws, a row each.
variables_table <- function(fit, columns = seq_len(ncol(fit$particles))) {
  fit <- with_variables(folded(fit), columns)
  moments <- weighted_moments(fit)
  quantiles <- weighted_quantiles(fit, c(0.05, 0.5, 0.95))
  tibble::tibble(
    variable = colnames(fit$particles), mean = moments$mean, sd = moments$sd,
    q5 = quantiles[1, ], median = quantiles[2, ], q95 = quantiles[3, ], mcse = mcse_mean(fit, moments$mean)
  )
}

# The fit with some of its variables.
with_variables <- function(fit, columns) {
  fit$particles <- fit$particles[, columns, drop = FALSE]
  if (!is.null(fit$moments)) {
    fit$moments <- list(
      mean = fit$moments$mean[columns],
      covariance = variances_kept(fit$moments)[columns],
      means = fit$moments$means[, columns, drop = FALSE]
    )
  }
  fit
}

# Weighted quantiles: a row for each probability, a column for each variable. NA if there are no draws, NaN for a
# variable with NaN among its draws, such as a generated quantity.
weighted_quantiles <- function(fit, p) {
  if (!is.null(fit$moments)) {
    return(matrix(NA_real_, length(p), ncol(fit$particles)))
  }
  w <- exp(fit$log_weights)
  quantiles <- vapply(seq_len(ncol(fit$particles)), function(j) {
    x <- fit$particles[, j]
    if (anyNA(x)) {
      return(rep(NaN, length(p)))
    }
    order <- order(x)
    x[order][invert_distribution(w[order], p)]
  }, p)
  matrix(quantiles, length(p))
}
