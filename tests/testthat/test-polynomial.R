# Coordinates that are nearly normal given others, in no form that a sum of simple terms has.

# Effects u of scale log(1 + exp(t)), each observed once with the error 1, and all correlated by a mean of
# their own that is normal; t is normal, too: x = (t, mean, u).
y <- seq(-2, 3, length.out = 12)
n_effects <- length(y)
log_effects <- function(x) {
  t <- x[, 1]
  mean <- x[, 2]
  scale <- log1p(exp(t))
  z <- (x[, -(1:2), drop = FALSE] - mean) / scale
  off <- rep(y, each = nrow(x)) - x[, -(1:2), drop = FALSE]
  value <- -(t^2 + mean^2 + rowSums(z^2) + rowSums(off^2)) / 2 - n_effects * log(scale) -
    (2 + 2 * n_effects) / 2 * log(2 * pi)
  slope <- (rowSums(z^2) - n_effects) / scale * plogis(t)
  structure(value, gradient = unname(cbind(slope - t, rowSums(z) / scale - mean, off - z / scale)))
}

# Given t the data are normal with the variances 1 + scale^2 and the covariances 1.
log_evidence_of_effects <- local({
  t <- seq(-8, 8, by = 0.01)
  v <- 1 + log1p(exp(t))^2
  square <- (sum(y^2) - sum(y)^2 / (v + n_effects)) / v
  log_y <- -(n_effects * log(2 * pi) + (n_effects - 1) * log(v) + log(v + n_effects) + square) / 2
  log(sum(exp(log_y + dnorm(t, log = TRUE))) * 0.01)
})

test_that("effects with such a scale are right", {
  target <- target_function(log_effects, 2 + n_effects, vectorized = TRUE)
  fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 1))
  expect_match(fit$maps, "13 variables \\(x2, x3, x4, ...\\) are nearly normal given x1", all = FALSE)
  expect_lt(spread_given(1, fit$reference, log_effects, 2 + n_effects), 0.5)
  expect_log_z(fit, log_evidence_of_effects)
})

test_that("effects beside a coordinate that is not normal are right", {
  # the last is uniform but for smooth edges; the others have scales that depend on the first
  log_cut <- function(x) {
    scale <- log1p(exp(x[, 1]))
    z <- x[, 2:12, drop = FALSE] / scale
    edge <- 8 * sinh(x[, 13])^7 * cosh(x[, 13])
    structure(
      -x[, 1]^2 / 2 - rowSums(z^2) / 2 - 11 * log(scale) - sinh(x[, 13])^8,
      gradient = unname(cbind(
        (rowSums(z^2) - 11) / scale * plogis(x[, 1]) - x[, 1], -z / scale, -edge
      ))
    )
  }
  truth <- 6 * log(2 * pi) + log(integrate(function(x) exp(-sinh(x)^8), -3, 3, rel.tol = 1e-10)$value)
  fit <- calmly(smc(target_function(log_cut, 13, vectorized = TRUE), n_particles = 512, seed = 1))
  expect_log_z(fit, truth)
})

# Abilities u with the standard deviation exp(t), each of which n right answers out of 5 tell; t is normal.
n_right <- rep(0:5, 3)
log_abilities <- function(x) {
  t <- x[, 1]
  u <- x[, -1, drop = FALSE]
  right <- rep(n_right, each = nrow(x))
  value <- -(t^2 + rowSums(u^2) * exp(-2 * t)) / 2 - length(n_right) * t -
    (1 + length(n_right)) / 2 * log(2 * pi) +
    rowSums(right * plogis(u, log.p = TRUE) + (5 - right) * plogis(-u, log.p = TRUE))
  by_t <- -t + rowSums(u^2) * exp(-2 * t) - length(n_right)
  structure(value, gradient = unname(cbind(by_t, right - 5 * plogis(u) - u * exp(-2 * t))))
}

# The evidence, by integrals of each ability given t.
log_evidence_of_abilities <- local({
  t <- seq(-7, 7, by = 0.02)
  of_one <- function(n) {
    vapply(t, function(t) {
      integrate(function(z) dnorm(z) * exp(n * plogis(exp(t) * z, log.p = TRUE) +
        (5 - n) * plogis(-exp(t) * z, log.p = TRUE)), -10, 10, rel.tol = 1e-9, subdivisions = 1000)$value
    }, 0)
  }
  given_t <- rowSums(vapply(n_right, function(n) log(of_one(n)), numeric(length(t))))
  log(sum(exp(given_t + dnorm(t, log = TRUE))) * 0.02)
})

test_that("variables with a skew are drawn with it when the density is compared to a reference's", {
  # logarithms of gamma variables of shape 6, moved by a normal one with variance 0.1
  log_rates <- function(x) {
    v <- x[, -1, drop = FALSE] - x[, 1]
    slope <- 6 - exp(v)
    structure(rowSums(6 * v - exp(v)) - 5 * x[, 1]^2, gradient = cbind(-rowSums(slope) - 10 * x[, 1], slope))
  }
  set.seed(3)
  t <- rnorm(200, sd = sqrt(0.1))
  x <- cbind(t, t + log(matrix(rgamma(200 * 600, 6), 200)), deparse.level = 0)
  density <- density_of(log_rates)
  space <- internal("polynomial_space")(points_at(x, log_rates), list(), 1, density)
  expect_lt(space$nats, 3)
  # a little for each adds up, and would pass for a wall
  space$normal$skew <- NULL
  expect_true(internal("falls_off")(space, density))
})

test_that("abilities of which few answers tell are right, and skew", {
  target <- target_function(log_abilities, 1 + length(n_right), vectorized = TRUE)
  fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 1))
  expect_log_z(fit, log_evidence_of_abilities)
  expect_true(any(fit$reference$tails$skew != 0))
  expect_lt(spread_given(1, fit$reference, log_abilities, 1 + length(n_right)), 0.5)
})

test_that("the nearest normal distribution of all variables is a target that is normal", {
  set.seed(3)
  d <- 6
  precision <- crossprod(matrix(rnorm(d^2), d)) + diag(d)
  mean <- rnorm(d)
  log_normal <- function(x) {
    off <- sweep(x, 2, mean)
    structure(-rowSums((off %*% precision) * off) / 2, gradient = -off %*% precision)
  }
  x <- matrix(rnorm(50 * d), 50) # not draws of it
  points <- list(x = x, g = attr(log_normal(x), "gradient"), w = rep(1 / 50, 50), mean = numeric(d))
  found <- internal("nearest_of_all")(points, density_of(log_normal))
  expect_equal(found$mean, mean)
  expect_equal(tcrossprod(found$L), solve(precision))
  expect_equal(found$L[upper.tri(found$L)], numeric(d * (d - 1) / 2))
})

test_that("there is no nearest normal distribution where the density is not concave", {
  log_saddle <- function(x) structure(x[, 1] * x[, 2], gradient = x[, 2:1])
  points <- list(x = diag(2), g = diag(2)[2:1, ], w = c(0.5, 0.5), mean = numeric(2))
  expect_null(internal("nearest_of_all")(points, density_of(log_saddle)))
})
