# Variables that are normal given the others, as far as two bounds.

# A level that walks: normal, with a standard deviation of `sd` at the start and 0.1 a step, between -1 and 1.
level <- function(n, sd) {
  covariance <- sd^2 + 0.1^2 * (outer(seq_len(n), seq_len(n), pmin) - 1)
  precision <- solve(covariance)
  constant <- -n / 2 * log(2 * pi) - determinant(covariance)$modulus[[1]] / 2
  target_function(
    function(x) constant - rowSums((x %*% precision) * x) / 2, n,
    gradient = function(x) -x %*% precision, vectorized = TRUE,
    lower = -1, upper = 1, names = paste0("level", seq_len(n))
  )
}
# The probability that all of it is between the bounds: exact given the steps, of which there are many draws.
log_z_of <- function(n, sd) {
  n_draws <- 1e5
  set.seed(1)
  walk <- matrix(0, n_draws, n)
  for (i in seq_len(n)[-1]) walk[, i] <- walk[, i - 1] + 0.1 * rnorm(n_draws)
  least <- do.call(pmin, as.data.frame(walk))
  most <- do.call(pmax, as.data.frame(walk))
  log(mean(pmax(pnorm((1 - most) / sd) - pnorm((-1 - least) / sd), 0)))
}

fit <- calmly(smc(level(20, 3), precision = 0.005, seed = 1))

test_that("a level between bounds keeps its own scale, and its evidence is right", {
  expect_identical(fit$target$truncated, rep(1, 20))
  expect_match(fit$maps[1], "^level1, level2, level3, ..., level20 are normal given the others, truncated at the bounds$")
  # the probability is right to 0.001
  expect_log_z(fit, log_z_of(20, 3), 0.05)
  expect_true(all(abs(fit$particles) < 1))
  expect_identical(nrow(fit$diagnostics[!fit$diagnostics$passed, ]), 0L)
  # all but uniform: as many draws in each half
  shares <- rowsum(weights(fit) * (fit$particles[, 1] > 0), fit$island) / rowsum(weights(fit), fit$island)
  expect_mean(as.vector(shares), 0.5, 0.4)
})

test_that("what is made of the fit knows its scale", {
  x <- head(fit$particles, 20)
  expect_equal(constrain(fit$target, unconstrain(fit$target, x)), x)
  # the scale is that of the logit in the middle
  expect_equal(drop(constrain(fit$target, rep(0.1, 20))), rep(0.05, 20), ignore_attr = TRUE)
  n <- nrow(fit$islands)
  more <- calmly(smc_extend(fit, islands = n + 2))
  of_draws <- c("particles", "log_weights", "island")
  expect_identical(calmly(smc_combine(fit, smc_islands(fit, n + 1:2)))[of_draws], more[of_draws])
  run <- calmly(smc_run(
    level(20, 3), fit$schedule,
    kernel = kernel_mala(), reference = fit$reference, islands = 20, seed = 1
  ))
  expect_identical(run$target$truncated, fit$target$truncated)
  expect_log_z(run, log_z_of(20, 3))
})

test_that("one side may be cut off, and bounds may be anywhere", {
  # the start is normal around a bound of 6, so that half is left, of each of two
  far <- target_function(
    function(x) rowSums(dnorm(x, 6, 0.3, log = TRUE)), 2,
    gradient = function(x) -(x - 6) / 0.09, vectorized = TRUE, lower = 6, upper = 10
  )
  cut <- lapply(1:4, function(seed) calmly(smc(far, seed = seed)))
  for (fit in cut) expect_identical(fit$target$truncated, c(1, 1))
  expect_log_z(cut, 2 * log(0.5), 0.05)
})

test_that("the scale is kept where its edges would leave too little, or normal distributions are no nearer", {
  # a cube, of which a normal distribution covers next to nothing
  cube <- target_function(
    function(x) numeric(nrow(x)), 30,
    gradient = function(x) 0 * x, vectorized = TRUE, lower = 0, upper = 1
  )
  fit_of_cube <- calmly(smc(cube, seed = 1))
  expect_null(fit_of_cube$target$truncated)
  expect_log_z(fit_of_cube, 0)
  beta <- target_function(
    function(x) rowSums(dbeta(x, 5, 2, log = TRUE)), 2,
    gradient = function(x) 4 / x - 1 / (1 - x), vectorized = TRUE, lower = 0, upper = 1
  )
  expect_null(calmly(smc(beta, n_particles = 64, islands = 4, seed = 1))$target$truncated)
})

test_that("nothing is truncated where the user has chosen the kernel or the reference", {
  given <- function(...) calmly(smc(level(2, 1), n_particles = 64, islands = 4, seed = 1, ...))$target$truncated
  expect_identical(given(), c(1, 1))
  expect_null(given(kernel = "klmc"))
  expect_null(given(reference = reference_gaussian(sd = 2)))
  expect_null(given(scout = FALSE))
})

test_that("a variable is normal where its log density is a parabola, as far as it is known", {
  # of the places between 0 and 1, with the change of scale
  normal_between <- function(log_density) {
    evaluate <- function(u, gradient) {
      x <- plogis(u)
      list(log_density = log_density(x) + rowSums(log(x * (1 - x))))
    }
    set.seed(1)
    internal("normal_between")(evaluate, matrix(rnorm(12), 4), 1:3)
  }
  expect_identical(normal_between(function(x) 1e3 * x[, 1] * x[, 2] - x[, 3]^2), 1:3)
  expect_identical(normal_between(function(x) -x[, 1]^4 - x[, 2]^2 * x[, 3]), 2:3)
  expect_identical(normal_between(function(x) x[, 1] + log(x[, 2])), c(1L, 3L))
  expect_identical(normal_between(function(x) ifelse(x[, 1] > 0.5, -Inf, x[, 2])), 2:3)
  expect_identical(normal_between(function(x) rep(-Inf, nrow(x))), integer())
})
