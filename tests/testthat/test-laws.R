# Laws of the estimates, each with a limit from its own Monte Carlo error (see `chance`).

# unbiased evidence ---------------------------------------------------------

target <- target_gaussian(2, mean = 1, sd = 0.7) # the evidence is 1

# Tuned once, with randomness of its own.
tuned_schedule <- function(target, kernel = kernel_lmc(), ...) {
  adapted <- adapt_plain(target, n_steps = 8, kernel = kernel, seed = 1, ...)
  adapted$schedule
}

evidences <- function(target, schedule, ..., kernel = kernel_lmc(),
                      n_particles = 256, n = 200) {
  fit <- calmly(smc_run(
    target, schedule, ...,
    n_particles = n_particles, kernel = kernel, islands = n, seed = 1
  ))
  exp(fit$islands$log_z)
}

# Every resampling scheme is in test-kernel-laws.R.
for (backward in c("time_correct", "forward")) {
  for (threshold in c(0, 1)) {
    test_that(sprintf(
      "the evidence is unbiased: backward %s, threshold %g",
      backward, threshold
    ), {
      kernel <- kernel_lmc(backward = backward)
      schedule <- tuned_schedule(target, kernel)
      z <- evidences(
        target, schedule,
        kernel = kernel, ess_threshold = threshold
      )
      expect_mean(z, 1, resolution = 0.05)
    })
  }
}

test_that("thresholds 0 and 1 resample never and always", {
  schedule <- tuned_schedule(target)
  resampled <- function(threshold) {
    smc_run(
      target, schedule,
      n_particles = 64, kernel = kernel_lmc(), ess_threshold = threshold,
      seed = 1
    )$steps$resampled
  }
  expect_identical(resampled(0), rep(FALSE, 8))
  expect_identical(resampled(1), rep(c(TRUE, FALSE), c(7, 1)))
})

test_that("the evidence is unbiased with a reference of one's own", {
  far <- target_gaussian(2, mean = c(500, -3), sd = c(10, 0.1))
  near <- reference_gaussian(mean = c(490, -3.1), sd = c(20, 0.15))
  schedule <- tuned_schedule(far, reference = near)
  z <- evidences(far, schedule, reference = near)
  expect_mean(z, 1, resolution = 0.05)
})

test_that("draws are right with a reference of one's own", {
  far <- target_gaussian(2, mean = c(500, -3), sd = c(10, 0.1))
  near <- reference_gaussian(mean = c(490, -3.1), sd = c(20, 0.15))
  schedule <- tuned_schedule(far, reference = near)
  moments <- vapply(1:60, function(seed) {
    fit <- calmly(smc_run(
      far, schedule,
      reference = near, n_particles = 512, kernel = kernel_lmc(), islands = 2, seed = seed
    ))
    unlist(summary(fit)$variables[c("mean", "sd")])
  }, numeric(4))
  expect_mean(moments["mean1", ], 500, resolution = 1)
  expect_mean(moments["mean2", ], -3, resolution = 0.01)
  expect_mean(moments["sd1", ], 10, resolution = 0.5)
  expect_mean(moments["sd2", ], 0.1, resolution = 0.005)
})

# A weight of zero is a weight: with a single step, nothing is lost by it. The
# step sizes here and below are long enough for weights of finite variance.
test_that("particles at which the density is not finite count as zero", {
  half_normal <- target_function(
    function(x) {
      inside <- x[, 1] > 0
      outside <- ifelse(x[, 1] < -1, -Inf, ifelse(x[, 1] < -0.5, NaN, NA))
      ifelse(inside, dnorm(x[, 1], log = TRUE), outside)
    },
    dim = 1,
    gradient = function(x) ifelse(x > -0.7, -x, NaN),
    vectorized = TRUE
  )
  schedule <- data.frame(lambda = 1, step_size = 0.6)
  z <- evidences(half_normal, schedule, n_particles = 512, n = 300)
  expect_mean(z, 0.5, resolution = 0.025)
})

test_that("gradients that are not finite do not bias the evidence", {
  patchy <- target_function(
    function(x) dnorm(x[, 1], log = TRUE),
    dim = 1,
    gradient = function(x) {
      ifelse(x > 0.5 & x < 1, NaN, ifelse(x > -1 & x < -0.5, Inf, -x))
    },
    vectorized = TRUE
  )
  schedule <- data.frame(lambda = (1:4) / 4, step_size = 0.5)
  z <- evidences(patchy, schedule)
  expect_mean(z, 1, resolution = 0.05)
})

# backward kernels ----------------------------------------------------------

# The paper's experiment, with 40 replications. Were log Z normal with the paper's 80 %
# band, which is 2.56 standard deviations wide, the standard error of the median would be
# 1.253 sd / sqrt(40): 0.31 for the time-correct kernel.
test_that("the backward kernels rank as in the paper", {
  far <- target_gaussian(10, mean = 30)
  schedule <- data.frame(lambda = (1:64) / 64, step_size = 0.5)
  log_z <- function(backward) {
    kernel <- kernel_lmc(0.5, backward)
    fit <- calmly(smc_run(far, schedule, kernel = kernel, islands = 40, seed = 1))
    fit$islands$log_z
  }
  # The median is `value`, by the sample's own 80 % band; the rounding of `value` comes on
  # top.
  expect_median <- function(x, value) {
    sd <- diff(quantile(x, c(0.1, 0.9), names = FALSE)) / 2.56
    se <- 1.253 * sd / sqrt(length(x))
    expect_lt(abs(median(x) - value), errors_for(length(x)) * se + 0.05)
  }
  time_correct <- log_z("time_correct")
  expect_median(time_correct, -2.2)
  expect_median(log_z("forward"), -19.9)
  expect_median(log_z("detailed_balance"), 19.9)
  # an end of the band has a standard error of 1.71 sd / sqrt(40), 0.42
  band <- quantile(time_correct, c(0.1, 0.9), names = FALSE)
  expect_lt(max(abs(band - c(-3.8, 0.2))), errors_for(40) * 0.42 + 0.05)
})

# models --------------------------------------------------------------------

test_that("Sonar by LMC has a plausible log evidence and a frugal tuner", {
  fit <- calmly(smc_plain(
    target_sonar(),
    n_particles = 512, kernel = kernel_lmc(), seed = 1
  ))
  # some estimates of LMC are low by several units, and none is high: by Markov's
  # inequality those beyond -103 have a probability of 0.005 at most
  expect_gt(fit$log_z, -120)
  expect_lt(fit$log_z, -103)
  adapt <- fit$steps[fit$steps$run == "adapt", ]
  expect_lt(adapt$n_objective_evals[1], 25)
  expect_lt(mean(adapt$n_objective_evals[-1]), 6)
  expect_true(all(adapt$tuner_status == "converged"))
})

# y_i ~ N(mu, 1) and mu ~ N(0, 2^2): the posterior and the evidence are known.
test_that("a conjugate model has the right posterior and evidence", {
  y <- c(1.1, 2.3, 0.4, 1.9, 1.6)
  model <- target_function(
    function(mu) {
      likelihood <- vapply(mu[, 1], function(m) {
        sum(dnorm(y, m, 1, log = TRUE))
      }, numeric(1))
      likelihood + dnorm(mu[, 1], 0, 2, log = TRUE)
    },
    dim = 1,
    gradient = function(mu) sum(y) - length(y) * mu - mu / 4,
    vectorized = TRUE,
    names = "mu"
  )
  precision <- length(y) + 1 / 4
  covariance <- diag(length(y)) + 4
  evidence <- exp(
    -drop(y %*% solve(covariance, y)) / 2 -
      log(det(2 * pi * covariance)) / 2
  )
  schedule <- tuned_schedule(model)
  fits <- lapply(1:40, function(seed) {
    calmly(smc_run(
      model, schedule,
      n_particles = 256, kernel = kernel_lmc(), islands = 4, seed = seed
    ))
  })
  z <- vapply(fits, function(fit) exp(fit$islands$log_z), numeric(4))
  moments <- vapply(fits, function(fit) {
    unlist(summary(fit)$variables[c("mean", "sd")])
  }, numeric(2))
  expect_mean(as.vector(z) / evidence, 1, resolution = 0.05)
  expect_mean(moments["mean", ], sum(y) / precision, resolution = 0.05)
  expect_mean(moments["sd", ], 1 / sqrt(precision), resolution = 0.05)
})
