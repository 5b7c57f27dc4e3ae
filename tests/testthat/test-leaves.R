# Chains in which each variable is a curve of the one before, with noise that is not normal: no level of children given
# parents fits them, single children do.
sine_chain <- function(d, sd) {
  function(x) {
    mean <- cbind(0, sin(2 * x[, -d, drop = FALSE]))
    noise <- (x - mean) / sd
    log_density <- rowSums(matrix(stats::dlogis(noise, log = TRUE), nrow(x))) - d * log(sd)
    slope <- -tanh(noise / 2) / sd
    gradient <- slope
    gradient[, -d] <- slope[, -d] - slope[, -1] * 2 * cos(2 * x[, -d])
    attr(log_density, "gradient") <- gradient
    log_density
  }
}

test_that("the evidence of a chain of curves is right, and in few evaluations", {
  fits <- lapply(1:3, function(seed) smc(sine_chain(6, 0.5), dim = 6, vectorized = TRUE, seed = seed))
  expect_log_z(fits, 0, resolution = 0.05)
  # a mixture of normal distributions takes 500,000
  for (fit in fits) expect_lt(spent(fit), 300000)
})

test_that("an eliminated variable leaves its neighbours dependent", {
  chain <- abs(outer(1:4, 1:4, "-")) <= 1
  dimnames(chain) <- list(1:4, 1:4)
  eliminated <- internal("eliminated")
  expect_equal(unname(eliminated(chain, 4)), abs(outer(1:3, 1:3, "-")) <= 1)
  expect_equal(unname(eliminated(chain, 2)), matrix(c(TRUE, TRUE, FALSE, TRUE, TRUE, TRUE, FALSE, TRUE, TRUE), 3))
})
