# What the draws of a fit say of the variables.

#' Print a fit, and summarise its draws
#'
#' Printed, a fit shows the log evidence with its error and interval, followed by
#' `(bridge)` where it is the bridge estimate (see [estimates]), the posterior of the first six
#' variables, how it was found, and last the verdict of its diagnostics.
#' `summary()` has all variables, prints the first 20, and the schedule as well.
#'
#' @param object,x a fit of [smc()], [smc_adapt()] or [smc_run()], or its summary.
#' @param schedule whether to print the schedule, the temperature and the kernel's
#'   parameters of each step (TRUE or FALSE): the first and last three steps of a fit, all of
#'   a summary.
#' @param digits how many significant digits to show of standard errors and standard deviations, and with them of
#'   estimates (a whole number); NULL for at least three decimals of `log Z`, and three digits of standard deviations.
#' @param ... not used.
#' @return `print()`: `x`, invisibly. `summary()`: an object of class `summary.smc_fit`, a
#'   list with the `fit` and `variables`, a data frame with a row a variable: its weighted
#'   `mean`, `sd` and quantiles `q5`, `median` and `q95`, and `mcse`, the Monte Carlo
#'   standard error of the mean, from the spread of the islands (NA for one island). Where tails are very
#'   heavy neither `sd` nor `mcse`, or not even `mean`, is to be trusted: `fit$heavy_tails` has these
#'   variables, and the fit has warned (see the section Heavy tails of [diagnostics]).
#' @section Errors: `autosmc_error_input` when an argument is not what it should be.
#' @source The estimate of a mean is the ratio of two means over islands, of
#'   the island's `exp(log_z)` times its own weighted mean, and of its `exp(log_z)`; `mcse`
#'   is the standard error by the delta method.
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
  structure(
    list(fit = object, variables = variables_table(object)),
    class = "summary.smc_fit"
  )
}

# A row for each of these columns of the draws.
variables_table <- function(fit, columns = seq_len(ncol(fit$particles))) {
  fit <- with_variables(fit, columns)
  moments <- weighted_moments(fit)
  quantiles <- weighted_quantiles(fit, c(0.05, 0.5, 0.95))
  tibble::tibble(
    variable = colnames(fit$particles),
    mean = moments$mean,
    sd = moments$sd,
    q5 = quantiles[1, ],
    median = quantiles[2, ],
    q95 = quantiles[3, ],
    mcse = mcse_mean(fit, moments$mean)
  )
}

# A fit with some of its variables only.
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

# Of the moments that a fit keeps; see only_moments().
variances_kept <- function(moments) if (is.matrix(moments$covariance)) diag(moments$covariance) else moments$covariance

weighted_moments <- function(fit) {
  if (!is.null(fit$moments)) {
    return(list(mean = unname(fit$moments$mean), sd = unname(sqrt(variances_kept(fit$moments)))))
  }
  has_weight <- exp(fit$log_weights) > 0 # others may be so far out that their squares are infinite
  w <- exp(fit$log_weights[has_weight])
  x <- fit$particles[has_weight, , drop = FALSE]
  mean <- weighted_sums(x, w)
  centred <- sweep(x, 2, mean)
  list(mean = unname(mean), sd = unname(sqrt(weighted_squares(centred, w))))
}

# The inverse of the weighted distribution functions: a row a probability, a column a
# variable. NA where there are no draws, NaN where some are NaN, as generated quantities can be.
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

# For each island, its share in the estimate times how far its own mean is off; an
# island in which all died has no share.
mcse_mean <- function(fit, mean) {
  n <- NROW(fit$islands)
  if (n < 2) {
    return(rep(NA_real_, length(mean)))
  }
  errors <- if (is.null(fit$moments)) {
    rowsum(exp(fit$log_weights) * sweep(fit$particles, 2, mean), fit$island)
  } else {
    share <- exp(normalise_log(fit$islands$log_z))
    share[share > 0] * sweep(fit$moments$means, 2, mean)
  }
  unname(sqrt(n / (n - 1) * colSums(errors^2)))
}

# How many independent draws would give as good means. Of the variables' figures
# this is the harmonic mean, whose inverse is unbiased. By chance few islands may
# agree too well; the weights alone allow no more than Kish's figure. What does not
# vary, as the upper triangle of a Cholesky factor, has no figure.
ess_mean <- function(fit) {
  moments <- weighted_moments(fit)
  mcse <- mcse_mean(fit, moments$mean)
  if (is.null(fit$moments)) {
    kish <- 1 / sum(exp(2 * fit$log_weights))
    varies <- which(apply(fit$particles, 2, max) > apply(fit$particles, 2, min))
  } else {
    share <- exp(normalise_log(fit$islands$log_z))
    kish <- 1 / sum((share^2 / fit$islands$ess)[share > 0])
    varies <- which(moments$sd > 0)
  }
  min(kish, 1 / mean((mcse / moments$sd)[varies]^2))
}
