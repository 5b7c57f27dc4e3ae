# Levels: variables that are normal given others, of which some are normal given the rest, and so on, as
# in a chain.

# x1 ~ N(1, 0.7), and each of the next is N(the square of the one before, 0.2): its integral is 1.
chain_sd <- 0.2
log_chain <- function(x) {
  before <- x[, -ncol(x), drop = FALSE]
  dnorm(x[, 1], 1, 0.7, log = TRUE) + rowSums(dnorm(x[, -1, drop = FALSE], before^2, chain_sd, log = TRUE))
}

chain_slopes <- function(x) {
  d <- ncol(x)
  off <- (x[, -1, drop = FALSE] - x[, -d, drop = FALSE]^2) / chain_sd^2
  g <- cbind((1 - x[, 1]) / 0.7^2, -off)
  g[, -d] <- g[, -d] + 2 * x[, -d] * off
  g
}

chain_target <- function(d, gradient = NULL) target_function(log_chain, d, gradient, vectorized = TRUE)

test_that("levels are found one after the other, with a gradient or without, and are exact far from all draws", {
  set.seed(1)
  x <- matrix(rnorm(200, 1, 0.7), 200, 4)
  for (j in 2:4) x[, j] <- rnorm(200, x[, j - 1]^2, chain_sd)
  for (log_density in list(log_chain, function(x) structure(log_chain(x), gradient = chain_slopes(x)))) {
    found <- shape_of_draws(x, log_density)
    expect_identical(found$gain, Inf)
    expect_identical(lapply(found$reference$changes, `[[`, "order"), list(4L, 3L, 2L))
    expect_identical(lapply(found$reference$changes, `[[`, "given"), list(1:3, 1:2, 1L))
    expect_lt(spread_given(1, found$reference, log_chain, 4, cbind(rep(c(-5, 5), 20))), 1e-6)
  }
})

test_that("smc() has the evidence of chains of squares and of funnels", {
  fit <- calmly(smc(chain_target(4, chain_slopes), n_particles = 256, islands = 4, seed = 1))
  expect_match(fit$maps, "x3 is normal given x1, x2", all = FALSE, fixed = TRUE)
  expect_log_z(fit, 0, 0.02) # -0.2 and worse without levels

  funnels <- function(x) {
    d <- ncol(x)
    dnorm(x[, 1], log = TRUE) + rowSums(dnorm(x[, -1, drop = FALSE], 0, exp(x[, -d, drop = FALSE] / 2), log = TRUE))
  }
  fit <- suppressMessages(calmly(
    smc(target_function(funnels, 4, vectorized = TRUE), n_particles = 256, islands = 4, seed = 1)
  ))
  expect_log_z(fit, 0, 0.02)
})

test_that("nothing is fitted to draws whose fourth powers are beyond all numbers", {
  x <- matrix(c(rnorm(199), 1e100), 100)
  expect_null(shape_of_draws(x, function(x) structure(-rowSums(x^2) / 2, gradient = -x)))
})
