# Calibration of posterior model probabilities, by models whose evidences are known.

# Eight observations of a mean, which is 0 or N(0, sd^2). by: an error of the evidence; noise: the sd of one by chance.
mean_model <- function(sd, by = 0, noise = 0, fails = function(y) FALSE) {
  constant <- -(8 * log(2 * pi) + log1p(8 * sd^2)) / 2
  list(
    simulate = function() rnorm(8, rnorm(1, 0, sd)),
    target = function(y) {
      if (fails(y)) stop("no {fit}")
      # the error by chance is a function of the data, so that the same seed is the same check
      error <- by + noise * qnorm((1e4 * abs(y[1])) %% 1)
      c(log_z = constant - (sum(y^2) - sum(y)^2 / (8 + 1 / sd^2)) / 2 + error, std_error = noise)
    }
  )
}
pair <- function(...) list(null = mean_model(0), effect = mean_model(1, ...))

test_that("exact evidences are calibrated", {
  for (prior in list(NULL, c(effect = 0.8, null = 0.2))) {
    check <- check_evidence(pair(), prior, n = 2000, seed = 1)
    expect_estimate(check$models$shift[2], check$models$shift_error[2], 0, resolution = 0.4)
    expect_estimate(check$slope, check$slope_error, 1, resolution = 0.7)
    expect_identical(check$n_failed, 0L)
    with(check$models, expect_estimate(mean_prob, mean_error, prior_prob, resolution = 0.08))
    bins <- check$bins
    error <- sqrt(bins$mean_prob * (1 - bins$mean_prob) / bins$n)
    expect_true(all(abs(bins$share_true - bins$mean_prob) <= errors_for() * error))
    # the models are drawn by their prior probabilities
    share <- mean(check$fits$true == "null")
    p <- check$models$prior_prob[1]
    expect_lt(abs(share - p), errors_for() * sqrt(p * (1 - p) / 2000))
  }
})

test_that("an error of 0.5 in log Z is seen and estimated with 400 data sets, and one by chance in the slope", {
  check <- check_evidence(pair(by = 0.5), n = 400, seed = 1)
  expect_lt(max(check$models$seen), 0.5)
  expect_equal(check$models$shift[1], -check$models$shift[2], tolerance = 1e-4)
  expect_false(check$passed)
  # the error that is told is two to four standard errors, of the sum of p (1 - p)
  p <- check$fits$post_prob[check$fits$model == "null"]
  expect_gt(check$models$seen[1] * sqrt(sum(p * (1 - p))), 2)
  expect_lt(check$models$seen[1] * sqrt(sum(p * (1 - p))), 4)
  large <- check_evidence(pair(by = 0.5), n = 2000, seed = 1)
  expect_estimate(large$models$shift[2], large$models$shift_error[2], 0.5, resolution = 0.4)
  expect_identical(large$p_value, 1 / 1000)
  expect_output(print(large), "not calibrated")
  noisy <- check_evidence(pair(noise = 2), n = 2000, seed = 1)
  expect_lt(noisy$slope + errors_for() * noisy$slope_error, 1)
  expect_false(noisy$passed)
})

test_that("the shift maximises the likelihood, with Firth's correction", {
  check <- check_evidence(c(pair(), list(small = mean_model(0.3))), n = 60, seed = 2)
  p <- matrix(check$fits$post_prob, 60, byrow = TRUE)
  is_true <- check$fits$true[1 + 3 * 0:59] == "null"
  penalised <- function(by) {
    at <- plogis(qlogis(p[, 1]) + by)
    sum(log(ifelse(is_true, at, 1 - at))) + log(sum(at * (1 - at))) / 2
  }
  best <- optimize(penalised, c(-3, 3), maximum = TRUE, tol = 1e-8)$maximum
  expect_equal(check$models$shift[1], -best, tolerance = 1e-5)
  at <- plogis(qlogis(p[, 1]) + best)
  expect_equal(check$models$shift_error[1], 1 / sqrt(sum(at * (1 - at))), tolerance = 1e-5)
})

test_that("the p-value is uniform, also where few data sets leave a doubt", {
  p <- vapply(1:60, function(seed) {
    check_evidence(list(null = mean_model(0), effect = mean_model(5)), n = 10, seed = seed)$p_value
  }, 0)
  # p-values of discrete statistics are larger than uniform ones
  for (level in c(0.05, 0.2, 0.5)) {
    expect_lte(sum(p <= level, na.rm = TRUE), qbinom(chance, 60, level, lower.tail = FALSE))
  }
  expect_gt(mean(p > 0.5), 0.1)
})

test_that("evidences that are certain, and wrong, are not calibrated", {
  certain <- function(right) {
    model <- function(at) {
      list(simulate = function() at, target = function(y) c(log_z = -1e4 * xor(y == at, right), std_error = 0))
    }
    check_evidence(list(a = model(0), b = model(1)), n = 20, seed = 1)
  }
  expect_false(certain(FALSE)$passed)
  expect_identical(certain(FALSE)$p_value, 1 / 1000)
  expect_match(printed_text(certain(TRUE)), "No test: in each data set")
})

test_that("fits that fail are counted and shown", {
  check <- check_evidence(pair(fails = function(y) mean(y) > 1), n = 200, seed = 1)
  failed <- unique(check$fits$data[!is.na(check$fits$error)])
  expect_gt(length(failed), 0)
  expect_identical(check$n_failed, length(failed))
  expect_false(check$passed)
  expect_identical(nrow(check$fits), 400L)
  expect_identical(sort(unique(check$fits$data[is.na(check$fits$post_prob)])), failed)
  expect_match(check$fits$error[!is.na(check$fits$error)], "no {fit}", fixed = TRUE)
  factors <- check$bayes_factors
  expect_equal(factors$above_10 + factors$between + factors$below_0.1 + factors$failed, c(1, 1))
  expect_equal(sum(factors$failed * factors$n), length(failed))
  expect_output(print(check), sprintf("Of 400 fits %d failed", length(failed)))
  all <- check_evidence(list(a = mean_model(0, fails = is.numeric), b = mean_model(1)), n = 5, seed = 1)
  expect_false(all$passed)
  expect_match(printed_text(all), "No test: in each data set")
})

test_that("targets are fitted, by workers and from a checkpoint alike", {
  fitted_model <- function(sd) {
    known <- mean_model(sd)
    list(simulate = known$simulate, target = function(y) {
      target_function(
        function(mu) dnorm(mu, 0, sd, log = TRUE) + sum(dnorm(y, mu, log = TRUE)), 1,
        gradient = function(mu) sum(y) - 8 * mu - mu / sd^2
      )
    })
  }
  models <- list(small = fitted_model(0.5), large = fitted_model(2))
  run <- function(n = 4, ...) {
    check_evidence(models, n = n, n_particles = 64, n_steps = 4, rounds = 0, seed = 3, ...)
  }
  check <- run()
  expect_identical(check$fits$model, rep(c("small", "large"), 4))
  known <- check_evidence(list(small = mean_model(0.5), large = mean_model(2)), n = 4, seed = 3)
  expect_identical(check$fits$true, known$fits$true)
  expect_estimate(check$fits$log_z, check$fits$std_error, known$fits$log_z, resolution = 0.1)
  dir <- tempfile("check")
  on.exit(unlink(dir, recursive = TRUE))
  expect_identical(run(3, checkpoint = dir)$fits, check$fits[1:6, ])
  files <- file.info(list.files(dir, "data", full.names = TRUE))$mtime
  expect_identical(run(checkpoint = dir), check)
  expect_identical(file.info(list.files(dir, "data-[123]", full.names = TRUE))$mtime, files)
  error <- expect_error(
    check_evidence(models, n = 4, n_particles = 32, seed = 3, checkpoint = dir),
    class = "autosmc_error_mismatch"
  )
  expect_identical(error$differs, "...")
  skip_if_not_installed("future")
  old <- future::plan(future::multisession, workers = 2)
  on.exit(future::plan(old), add = TRUE)
  expect_identical(run(), check)
})

test_that("a check is drawn, and wrong arguments are named", {
  check <- check_evidence(pair(), n = 20, seed = 1)
  pdf(NULL)
  on.exit(dev.off())
  expect_identical(plot(check, main = "Calibration"), check)
  expect_bad(check_evidence(), "models")
  expect_bad(check_evidence(pair()[1]), "models")
  expect_bad(check_evidence(list(a = mean_model(1), b = list(simulate = mean))), "models")
  expect_bad(check_evidence(stats::setNames(pair(), c("a", "a"))), "models")
  expect_bad(check_evidence(pair(), c(0.5, 0.6)), "prior_prob")
  expect_bad(check_evidence(pair(), n = 0), "n")
  expect_bad(plot(check, odd = 1), "odd")
  # a prior probability of 0, and a single data set
  expect_output(print(check_evidence(pair(), c(1, 0), n = 1, seed = 1)), "1 data set")
  skip_if_not_installed("ggplot2")
  expect_no_warning(print(ggplot2::autoplot(check)))
})
