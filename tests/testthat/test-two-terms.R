# Precisions that are sums of two terms, as that of the coefficients of a regression given the scale of its errors: in
# one basis they are diagonal whatever the scale is.

# y ~ N(X b, exp(2 t)), b ~ N(0, 1), t ~ N(0, 1), of n observations; x = (b, t). Without constants. The log evidence is an
# integral over t, by the trapezoidal rule.
regression <- function(p, n) {
  set.seed(p)
  X <- matrix(rnorm(n * p), n)
  y <- drop(X %*% rnorm(p)) + rnorm(n)
  XX <- crossprod(X)
  Xy <- drop(crossprod(X, y))
  log_density <- function(x) {
    b <- x[, seq_len(p), drop = FALSE]
    t <- x[, p + 1]
    by_b <- rep(Xy, each = nrow(x)) - b %*% XX
    square <- sum(y^2) - rowSums(b * (rep(Xy, each = nrow(x)) + by_b))
    structure(
      -rowSums(b^2) / 2 - t^2 / 2 - n * t - square * exp(-2 * t) / 2,
      gradient = unname(cbind(by_b * exp(-2 * t) - b, -t - n + square * exp(-2 * t)))
    )
  }
  parts <- eigen(XX, symmetric = TRUE)
  pull <- drop(crossprod(parts$vectors, Xy))^2
  t <- seq(-4, 4, length.out = 1e4)
  marginal <- vapply(exp(-2 * t), function(q) {
    precision <- 1 + q * parts$values
    (sum(pull * q^2 / precision) - sum(log(precision)) - q * sum(y^2)) / 2
  }, 0) - t^2 / 2 - n * t
  top <- max(marginal)
  log_z <- top + log(sum(exp(marginal - top)) * (t[2] - t[1])) + p / 2 * log(2 * pi)
  list(log_density = log_density, log_z = log_z, dim = p + 1)
}

# Of more coefficients than a factor is made for, with as many observations as these, and fewer.
test_that("a reference is exact given the scale, whatever the dimension", {
  for (n in c(130, 40)) {
    model <- regression(130, n)
    x <- 0.3 * matrix(rnorm(200 * model$dim), 200)
    reference <- shape_of_draws(x, model$log_density)$reference
    expect_setequal(reference$changes[[1]]$order, seq_len(130))
    far <- cbind(rep(c(-15, 0, 15), each = 20)) # standard deviations
    expect_lt(spread_given(model$dim, reference, model$log_density, model$dim, far), 1e-5)
  }
})

test_that("smc() has the evidence of a regression of which all coefficients are correlated", {
  model <- regression(20, 25)
  target <- target_function(model$log_density, model$dim, vectorized = TRUE)
  fit <- calmly(smc(target, n_particles = 256, islands = 4, seed = 1))
  expect_match(fit$maps, "20 variables .* are normal given x21", all = FALSE)
  expect_length(fit$reference$changes[[1]]$basis, 2)
  expect_log_z(fit, model$log_z, resolution = 0.05)
})
