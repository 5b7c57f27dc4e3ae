# The tests, tables and plots of check_evidence(): calibration of posterior model probabilities.

# An object of class smc_calibration. rows: a list of results of fit_data_set(). seed: of the simulated p-value.
calibration_of <- function(rows, models, prior_prob, seed) {
  n <- length(rows)
  k <- length(models)
  true <- vapply(rows, `[[`, 0L, "true")
  log_z <- do.call(rbind, lapply(rows, `[[`, "log_z"))
  is_there <- rowSums(is.na(log_z)) == 0
  there <- function(x) x[is_there, , drop = FALSE]
  log_p <- matrix(NA_real_, n, k)
  log_p[is_there, ] <- normalise_rows(sweep(there(log_z), 2, log(prior_prob), "+"))
  p <- exp(log_p)
  of_rows <- function(name) unlist(lapply(rows, `[[`, name))
  fits <- new_table(
    data = rep(seq_len(n), each = k), true = rep(models[true], each = k), model = rep(models, n),
    log_z = as.vector(t(log_z)), std_error = of_rows("std_error"), converged = of_rows("converged"),
    post_prob = as.vector(t(p)), error = of_rows("error")
  )
  found <- test_calibration(there(log_p), there(log_z), true[is_there], seed)
  shifts <- seq_len(k)
  n_failed <- sum(!is.na(fits$error))
  structure(
    list(
      fits = fits,
      models = new_table(
        model = models, prior_prob = prior_prob, mean_prob = colMeans(there(p)),
        mean_error = apply(there(p), 2, stats::sd) / sqrt(sum(is_there)),
        shift = -found$estimate[shifts], shift_error = found$std_error[shifts], seen = found$seen[shifts]
      ),
      slope = 1 + found$estimate[k + 1], slope_error = found$std_error[k + 1], p_value = found$p_value,
      n_failed = n_failed, passed = n_failed == 0 && isTRUE(found$p_value >= test_level),
      bins = bin_calibration(fits[is_there[fits$data], ]), bayes_factors = bayes_factors_of(log_z, true, models)
    ),
    class = "smc_calibration"
  )
}

normalise_rows <- function(x) {
  shifted <- x - apply(x, 1, max)
  shifted - log(rowSums(exp(shifted)))
}

# tests -----------------------------------------------------------------------

# The conventional level of the test, the power for which the detectable error `seen` is computed, and the number of
# simulated data sets of its p-value.
test_level <- 0.05
test_power <- 0.8
n_replications <- 999

# Score tests of calibration in k + 1 directions: a shift of the log evidence of each model, and a factor of all. log_p:
# log posterior probabilities, a row a data set. list(estimate, std_error, seen), a number a direction, and the p_value
# of the largest score.
test_calibration <- function(log_p, log_z, true, seed) {
  n <- nrow(log_p)
  k <- ncol(log_p)
  p <- exp(log_p)
  directions <- lapply(seq_len(k), function(j) matrix(rep(as.double(seq_len(k) == j), each = n), n, k))
  directions[[k + 1]] <- log_z - rowSums(p * log_z)
  tilts <- lapply(directions, tilt, log_p = log_p, true = true)
  part <- function(name) vapply(tilts, `[[`, 0, name)
  info <- part("info")
  mean <- part("mean")
  # if all probabilities are 0 or 1, a true model of probability 0 has an arbitrarily large score
  spread <- sqrt(pmax(info, .Machine$double.xmin))
  largest_score <- function(true) {
    sums <- c(tabulate(true, k), sum(directions[[k + 1]][seq_len(n) + n * (true - 1L)]))
    max(abs(sums - mean) / spread)
  }
  if (all(info == 0) && largest_score(true) == 0) {
    return(list(estimate = part("estimate"), std_error = part("std_error"), seen = rep(Inf, k + 1), p_value = NA_real_))
  }
  cumulative <- p
  for (j in seq_len(k)[-1]) cumulative[, j] <- cumulative[, j - 1] + p[, j]
  largest <- with_seed(seed, replicate(n_replications, {
    largest_score(1L + as.integer(rowSums(stats::runif(n) > cumulative[, -k, drop = FALSE])))
  }))
  needed <- stats::quantile(largest, 1 - test_level, names = FALSE) + stats::qnorm(test_power)
  # the same sums in another order differ in their last digits
  n_as_large <- sum(largest >= largest_score(true) * (1 - 1e-9))
  list(
    estimate = part("estimate"), std_error = part("std_error"), seen = needed / spread,
    p_value = (1 + n_as_large) / (1 + n_replications)
  )
}

# The factor of `x`, a matrix like log_p, that added to log_p maximises the likelihood of the true models, with Firth's
# correction, which keeps it finite: list(estimate, std_error, mean, info), the last two the mean and the variance of
# the sum of x over the true models.
tilt <- function(x, log_p, true) {
  moments <- function(by) {
    p <- exp(normalise_rows(log_p + by * x))
    mean <- rowSums(p * x)
    list(mean = sum(mean), info = sum(p * (x - mean)^2), third = sum(p * (x - mean)^3))
  }
  observed <- sum(x[cbind(seq_along(true), true)])
  equation <- function(by) {
    at <- moments(by)
    observed - at$mean + if (at$info > 0) at$third / (2 * at$info) else 0
  }
  start <- moments(0)
  if (!isTRUE(start$info > 0)) {
    return(list(estimate = NA_real_, std_error = Inf, mean = start$mean, info = 0))
  }
  step <- 1 / sqrt(start$info)
  estimate <- stats::uniroot(equation, c(-step, step), extendInt = "downX", tol = 1e-6 * step)$root
  list(estimate = estimate, std_error = 1 / sqrt(moments(estimate)$info), mean = start$mean, info = start$info)
}

# tables ----------------------------------------------------------------------

n_bins <- 10

bin_calibration <- function(fits) {
  bin <- pmin(floor(fits$post_prob * n_bins) + 1, n_bins)
  bind_rows(lapply(sort(unique(bin)), function(b) {
    own <- which(bin == b)
    n <- length(own)
    mean <- mean(fits$post_prob[own])
    list(
      from = (b - 1) / n_bins, to = b / n_bins, n = n, mean_prob = mean,
      share_true = mean(fits$true[own] == fits$model[own]),
      low = stats::qbinom(0.025, n, mean) / n, high = stats::qbinom(0.975, n, mean) / n
    )
  }))
}

bayes_factors_of <- function(log_z, true, models) {
  log10_bf <- vapply(seq_along(true), function(i) log_z[i, true[i]] - max(log_z[i, -true[i]]), 0) / log(10)
  bind_rows(lapply(seq_along(models), function(j) {
    own <- log10_bf[true == j]
    q <- stats::quantile(own, c(0.05, 0.5, 0.95), na.rm = TRUE, names = FALSE)
    share <- function(is_so) if (length(own) > 0) mean(is_so %in% TRUE) else NA_real_
    list(
      model = models[j], n = length(own), above_10 = share(own > 1), between = share(abs(own) <= 1),
      below_0.1 = share(own < -1), failed = share(is.na(own)), log10_low = q[1], log10_median = q[2], log10_high = q[3]
    )
  }))
}

# print and plot --------------------------------------------------------------

#' @export
print.smc_calibration <- function(x, ...) {
  n <- max(x$fits$data)
  cat("<smc_calibration> ", count_of(nrow(x$models), "model"), ", ", count_of(n, "data set"), "\n", sep = "")
  models <- as.data.frame(x$models)
  models[-1] <- lapply(models[-1], fixed)
  print(models, row.names = FALSE)
  cat(sprintf("Slope of the log Bayes factors: %s (%s)\n", fixed(x$slope), fixed(x$slope_error)))
  largest <- max(x$models$seen)
  said <- c(
    if (is.na(x$p_value)) {
      "No test: in each data set the true model has the posterior probability 1, or a fit failed."
    } else {
      sprintf(
        "%s (p = %s). These data sets detect an error of %s in log Z with a probability of 0.8.",
        if (x$p_value < test_level) "The posterior probabilities are not calibrated" else "No miscalibration found",
        format_probability(x$p_value), fixed(largest, 2)
      )
    },
    if (x$n_failed > 0) {
      sprintf("! Of %s %d failed: the check has not passed.", count_of(nrow(x$fits), "fit"), x$n_failed)
    },
    if (any(x$fits$converged %in% FALSE)) {
      sprintf("! In %s diagnostics have failed.", count_of(sum(x$fits$converged %in% FALSE), "fit"))
    }
  )
  cat(strwrap(said, min(getOption("width"), 80), exdent = 2), sep = "\n")
  cat("Bayes factor of the true model over the best of the others:\n")
  factors <- as.data.frame(x$bayes_factors)[1:6]
  factors[3:6] <- lapply(factors[3:6], fixed, 2)
  names(factors) <- c("true", "data sets", "above 10", "between", "below 1/10", "failed")
  print(factors, row.names = FALSE)
  invisible(x)
}

#' @export
plot.smc_calibration <- function(x, ..., main = NULL) {
  check_dots_empty(...)
  base_calibration(calibration_data(x), main)
  invisible(x)
}

#' @method autoplot smc_calibration
#' @rawNamespace S3method(ggplot2::autoplot, smc_calibration)
autoplot.smc_calibration <- function(object, ...) {
  check_dots_empty(...)
  gg_calibration(calibration_data(object))
}
