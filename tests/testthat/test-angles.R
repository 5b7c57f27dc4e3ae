# Angles: variables that go on from one bound to the other.

# Von Mises distributions around these means, each of evidence 2 pi I0(strength).
angles <- function(means, strength = 4, ...) {
  from_mean <- function(x) sweep(x, 2, means)
  target_function(
    function(x) strength * rowSums(cos(from_mean(x))), length(means),
    gradient = function(x) -strength * sin(from_mean(x)), vectorized = TRUE,
    lower = -pi, upper = pi, names = paste0("angle", seq_along(means)), ...
  )
}
log_z_of <- function(d, strength = 4) d * log(2 * pi * besselI(strength, 0))

turned <- angles(c(pi, 0.2, -3))
fit <- calmly(smc(turned, n_particles = 1024, seed = 1))

test_that("angles beside their bounds are turned, and others are not", {
  turn <- fit$target$turn
  expect_identical(turn > 0, c(TRUE, FALSE, TRUE))
  # the means are in the middle, to the spread of the draws over the root of their number
  middle <- constrain(fit$target, c(0, 0, 0))
  off <- (middle[c(1, 3)] - c(pi, -3) + pi) %% (2 * pi) - pi
  expect_lt(max(abs(off)), 0.5)
  expect_match(fit$maps[1], "^angle1, angle3 are angles")
})

test_that("evidence and draws are those of the target", {
  expect_log_z(fit, log_z_of(3), 0.02)
  more <- calmly(smc_extend(fit, islands = 16))
  x <- more$particles
  expect_true(all(x > -pi & x < pi))
  # half of a distribution around pi is below it
  shares <- as.vector(rowsum(weights(more) * (x[, 1] > 0), more$island) / rowsum(weights(more), more$island))
  expect_mean(shares, 0.5, 0.3)
  cosines <- rowsum(weights(more) * cos(x[, 3] + 3), more$island) / rowsum(weights(more), more$island)
  expect_mean(as.vector(cosines), besselI(4, 1) / besselI(4, 0), 0.15)
})

test_that("so many angles are one mode, not one for each choice of sides", {
  many <- calmly(smc(angles(rep(pi, 5)), n_particles = 1024, seed = 1))
  expect_log_z(many, log_z_of(5), 0.02)
  expect_true(all(many$target$turn > 0))
})

# Of two angles mainly the sum is known, and where that is beside the bounds.
of_sum <- function(strength, at) {
  slope <- function(x) matrix(-strength * sin(x[, 1] + x[, 2] - at), nrow(x), 2)
  target_function(
    function(x) strength * cos(x[, 1] + x[, 2] - at) - 2 * log(2 * pi), 2,
    gradient = slope, vectorized = TRUE, lower = 0, upper = 2 * pi, names = c("node", "phase")
  )
}

test_that("angles of which the sum is known are sampled as this and one of them", {
  for (at in 0:1) {
    fit_of_sum <- calmly(smc(of_sum(500, at), precision = 0.005, draws = 4000, seed = 1))
    expect_log_z(fit_of_sum, log(besselI(500, 0, TRUE)) + 500, 0.05)
    expect_match(fit_of_sum$maps[1], "^node, phase are angles that are moved together")
    expect_identical(dim(fit_of_sum$target$sums), c(3L, 1L))
    # each is uniform, and so is their difference
    for (times in list(c(1, 0), c(0, 1), c(1, -1))) {
      cosine <- weights(fit_of_sum) * cos(fit_of_sum$particles %*% times)
      shares <- rowsum(cosine, fit_of_sum$island) / c(rowsum(weights(fit_of_sum), fit_of_sum$island))
      expect_mean(as.vector(shares), 0, 0.3)
    }
    x <- head(fit_of_sum$particles, 20)
    expect_equal(constrain(fit_of_sum$target, unconstrain(fit_of_sum$target, x)), x)
  }
  # the sum of three, twice one less another, and none
  three <- function(times, strength = 100) {
    target_function(
      function(x) strength * cos(2 * pi * x %*% times)[, 1], 3,
      gradient = function(x) outer(-2 * pi * strength * sin(2 * pi * x %*% times)[, 1], times),
      vectorized = TRUE, lower = 0, upper = 1
    )
  }
  for (times in list(c(1, 1, 1), c(2, -1, 0))) {
    fit_of_three <- calmly(smc(three(times), precision = 0.005, seed = 1))
    expect_log_z(fit_of_three, log(besselI(100, 0, TRUE)) + 100, 0.05)
  }
  expect_null(fit$target$sums)
})

test_that("what is made of the fit knows how the target was turned", {
  x <- head(fit$particles, 20)
  expect_equal(constrain(fit$target, unconstrain(fit$target, x)), x)
  same <- function(a, b) {
    of_draws <- c("particles", "log_weights", "island")
    expect_identical(a[of_draws], b[of_draws])
  }
  more <- calmly(smc_extend(fit, islands = 10))
  same(calmly(smc_combine(fit, smc_islands(fit, 9:10))), more)
  # the target as the user has it, and the reference of the fit
  run <- calmly(smc_run(turned, fit$schedule, reference = fit$reference, n_particles = 2048, islands = 24, seed = 3))
  expect_identical(run$target$turn, fit$target$turn)
  expect_log_z(run, log_z_of(3), 0.05)
})

test_that("nothing is turned that does not go on, nor on a scale that the user has chosen", {
  beta <- target_function(
    function(x) rowSums(dbeta(x, 5, 0.8, log = TRUE)), 2,
    gradient = function(x) 4 / x + 0.2 / (1 - x), vectorized = TRUE, lower = 0, upper = 1
  )
  fit_of_beta <- calmly(smc(beta, n_particles = 64, islands = 4, seed = 1))
  expect_null(fit_of_beta$target$turn)
  given <- calmly(smc(turned, reference = reference_gaussian(sd = 2), n_particles = 64, islands = 4, seed = 1))
  expect_null(given$target$turn)
  expect_null(calmly(smc(turned, scout = FALSE, n_particles = 64, islands = 4, seed = 1))$target$turn)
  # an edge at the bounds, a density that is not known there, and one of which that is known by chance
  which_angles <- function(log_density) {
    evaluate <- function(x, gradient) list(log_density = log_density(x) + rowSums(dlogis(x, log = TRUE)))
    set.seed(1)
    internal("which_angles")(evaluate, matrix(rnorm(16), 8), 1:2)
  }
  expect_identical(which_angles(function(x) cos(2 * pi * plogis(x[, 1])) + x[, 2] / 100), 1L)
  expect_identical(which_angles(function(x) ifelse(x[, 2] > 0, -Inf, 0) + x[, 1]), integer(0))
  # nor one that is symmetric, without bounds
  expect_identical(which_angles(function(x) rowSums(dnorm(x, log = TRUE) - dlogis(x, log = TRUE))), integer(0))
})

test_that("its evaluations are counted, and are in the checkpoint", {
  dir <- tempfile("runs")
  on.exit(unlink(dir, recursive = TRUE))
  calls <- 0
  again <- function() {
    calls <<- 0
    counting <- target_function(
      function(x) {
        calls <<- calls + nrow(x)
        4 * rowSums(cos(sweep(x, 2, c(pi, 0.2, -3))))
      }, 3,
      gradient = function(x) -4 * sin(sweep(x, 2, c(pi, 0.2, -3))), vectorized = TRUE, lower = -pi, upper = pi
    )
    calmly(smc(counting, n_particles = 64, islands = 4, seed = 4, checkpoint = dir))
  }
  first <- again()
  # those that write the files, four points or fewer for each, are not counted
  n_files <- length(list.files(dir, "smc$"))
  expect_lte(calls - sum(first$runs$n_target_evals), 4 * n_files)
  expect_gte(calls, sum(first$runs$n_target_evals))
  second <- again()
  expect_lt(calls, sum(first$runs$n_target_evals) / 4) # of diagnostics, and of reading
  expect_identical(second$particles, first$particles)
  expect_identical(sum(second$runs$n_target_evals), sum(first$runs$n_target_evals))
})

test_that("a variable about which the target says nothing is no angle", {
  target <- target_function(
    function(x) dnorm(x[, 1], log = TRUE), 2,
    gradient = function(x) cbind(-x[, 1], 0), vectorized = TRUE,
    names = c("x", "flat"), lower = c(flat = -pi), upper = c(flat = pi)
  )
  for (seed in 1:3) expect_no_match(paste(calmly(smc(target, seed = seed))$maps, ""), "angle")
})
