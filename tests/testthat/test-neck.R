# Necks that open, as those of hierarchies that are written as they are.

# Effects theta_j ~ N(mu, tau^2), mu ~ N(0, 2^2), log tau ~ N(-0.5, 1), and a measurement
# y_j ~ N(theta_j, s_j^2) of each. Given log tau all is normal.
y <- c(1.2, -0.4, 0.8, 2, -1.1, 0.3, 0.9, -0.2)
s <- c(0.5, 0.7, 0.6, 0.5, 0.9, 0.6, 0.4, 0.8)
J <- length(y)

log_hierarchy <- function(x) {
  n <- nrow(x)
  theta <- x[, -(1:2), drop = FALSE]
  dnorm(x[, 1], 0, 2, log = TRUE) + dnorm(x[, 2], -0.5, 1, log = TRUE) +
    rowSums(matrix(dnorm(theta, x[, 1], exp(x[, 2]), log = TRUE), n)) +
    rowSums(matrix(dnorm(t(theta), y, s, log = TRUE), n, byrow = TRUE))
}

gradient_hierarchy <- function(x) {
  theta <- x[, -(1:2), drop = FALSE]
  r <- (theta - x[, 1]) / exp(2 * x[, 2])
  cbind(
    rowSums(r) - x[, 1] / 4, rowSums(r * (theta - x[, 1])) - J - x[, 2] - 0.5,
    -r + t((y - t(theta)) / s^2)
  )
}

hierarchy <- function(x) structure(log_hierarchy(x), gradient = gradient_hierarchy(x))

# mu and the effects integrated out: the log density of the data and log tau
log_given <- function(log_tau) {
  v <- outer(exp(2 * log_tau), s^2, `+`)
  k <- 1 / 4 + rowSums(1 / v)
  mean <- drop((1 / v) %*% y) / k
  # Bayes' theorem at the posterior mean of mu
  rowSums(matrix(dnorm(rep(y, each = nrow(v)), mean, sqrt(v), log = TRUE), nrow(v))) +
    dnorm(mean, 0, 2, log = TRUE) + log(2 * pi / k) / 2 + dnorm(log_tau, -0.5, 1, log = TRUE)
}

# Exact draws of (mu, log tau, theta).
draw_hierarchy <- function(n) {
  grid <- seq(-8, 4, length.out = 4001)
  log_tau <- sample(grid, n, TRUE, exp(log_given(grid))) + runif(n, -1, 1) * diff(grid)[1] / 2
  v <- outer(exp(2 * log_tau), s^2, `+`)
  k <- 1 / 4 + rowSums(1 / v)
  mu <- drop((1 / v) %*% y) / k + rnorm(n) / sqrt(k)
  share <- exp(2 * log_tau) / v
  noise <- sqrt(share) * rep(s, each = n) * rnorm(n * J)
  cbind(mu, log_tau, share * rep(y, each = n) + (1 - share) * mu + noise)
}

# What gradients at draws tell of a shape, where the density may not be asked for at other points.
told_by <- function(x, log_density) shape_of_draws(x, log_density, is_asked = FALSE)
neck_of <- function(x, log_density) {
  conditional <- told_by(x, log_density)$reference$conditional
  if (identical(conditional$kind, "neck")) conditional$conditioning
}

test_that("the neck of a hierarchy is found by its gradients, and is exact where no draw has been", {
  set.seed(2)
  for (n in c(400, 3000)) {
    x <- draw_hierarchy(n)
    found <- told_by(x, hierarchy)
    expect_gt(found$gain, 1)
    expect_identical(found$reference$conditional$conditioning, 2L)
    far <- cbind(rep(c(-4, -2, 2), each = 30))
    expect_lt(spread_given(2, found$reference, hierarchy, J + 2, far), 1e-5)
  }
  x <- draw_hierarchy(20000)
  found <- told_by(x[x[, 2] > -1.2, ][1:2000, ], hierarchy)
  expect_lt(spread_given(2, found$reference, hierarchy, J + 2), 1e-5)
  # so few draws have a gradient that least squares leave nothing of
  expect_null(neck_of(draw_hierarchy(2 * J), hierarchy))
})

# Effects theta_j ~ N(0, tau^2) and means of m measurements of each, of unknown noise sigma:
# (log tau, log sigma, theta). Given both scales all is normal.
log_two_scales <- function(x, m = 4) {
  theta <- x[, -(1:2), drop = FALSE]
  n <- nrow(x)
  dnorm(x[, 1], -0.5, 1, log = TRUE) + dnorm(x[, 2], 0, 1, log = TRUE) +
    rowSums(matrix(dnorm(theta, 0, exp(x[, 1]), log = TRUE), n)) +
    rowSums(matrix(dnorm(theta, rep(y, each = n), exp(x[, 2]) / sqrt(m), log = TRUE), n))
}

gradient_two_scales <- function(x, m = 4) {
  theta <- x[, -(1:2), drop = FALSE]
  of_prior <- theta / exp(2 * x[, 1])
  off <- sweep(theta, 2, y)
  of_noise <- m * off / exp(2 * x[, 2])
  cbind(
    rowSums(of_prior * theta) - J - x[, 1] - 0.5, rowSums(of_noise * off) - J - x[, 2],
    -of_prior - of_noise
  )
}

two_scales <- function(x) structure(log_two_scales(x), gradient = gradient_two_scales(x))

# Effects given these scales.
draw_given <- function(scales) {
  share <- exp(2 * scales[, 1]) / (exp(2 * scales[, 1]) + exp(2 * scales[, 2]) / 4)
  noise <- sqrt(share) * exp(scales[, 2]) / 2 * rnorm(nrow(scales) * J)
  cbind(scales, matrix(share * rep(y, each = nrow(scales)) + noise, nrow(scales)))
}

# The same model, with z = theta / tau in the place of theta.
centred <- function(x) {
  x[, -(1:2)] <- x[, -(1:2)] * exp(x[, 1])
  x
}
multiples <- function(x) {
  g <- gradient_two_scales(centred(x))
  g_z <- g[, -(1:2), drop = FALSE] * exp(x[, 1])
  structure(
    log_two_scales(centred(x)) + J * x[, 1],
    gradient = cbind(g[, 1] + rowSums(g_z * x[, -(1:2), drop = FALSE]) + J, g[, 2], g_z)
  )
}

test_that("what is normal given two scales is found as it is, and as multiples of one of them", {
  for (seed in 1:3) {
    set.seed(seed)
    x <- draw_given(cbind(rnorm(400, -0.3, 0.5), rnorm(400, 0, 0.3)))
    by_draws <- told_by(x, two_scales)$reference
    expect_setequal(by_draws$conditional$conditioning, 1:2)
    z <- x
    z[, -(1:2)] <- z[, -(1:2)] * exp(-z[, 1])
    of_multiples <- told_by(z, multiples)$reference
    expect_identical(of_multiples$changes[[1]]$conditioning, 1L)
    expect_equal(drop(of_multiples$changes[[1]]$slope), rep(c(0, -1), c(2, J)))
    far <- as.matrix(expand.grid(c(-6, 3, 6), c(-3, 6)))[rep(1:6, 10), ]
    for (at in list(matrix(rnorm(200), 100), far)) {
      expect_lt(spread_given(1:2, by_draws, two_scales, J + 2, at), 1e-6)
      expect_lt(spread_given(1:2, of_multiples, multiples, J + 2, at), 1e-6)
    }
  }
})

test_that("nothing else is a neck, or a multiple of a scale", {
  with_gradient <- function(value, gradient) structure(value, gradient = gradient)
  none <- function(x, log_density) {
    reference <- told_by(x, log_density)$reference
    expect_null(reference$conditional)
    expect_length(reference$changes, 0)
  }
  set.seed(15)
  x <- matrix(rnorm(200 * 5), 200)
  precision <- solve(crossprod(matrix(rnorm(30), 6)))
  none(x, function(x) with_gradient(-rowSums(x^2) / 2, -x))
  none(x %*% chol(solve(precision)), function(x) with_gradient(-rowSums((x %*% precision) * x) / 2, -x %*% precision))
  none(matrix(runif(600, -1, 1), 200), function(x) with_gradient(0 * x[, 1], 0 * x))
  # z (g + z) is constant for a chi distribution
  none(abs(x) + 0.1, function(x) with_gradient(rowSums(3 * log(x) - x^2 / 2), 3 / x - x))
  # exponentials, or their squares, are beyond the range of numbers
  for (by in c(-700, -362, 250)) {
    far <- sweep(x, 2, c(by, numeric(4)), "+")
    none(far, function(x) with_gradient(-(x[, 1] - by)^2 / 2 - rowSums(x[, -1]^2) / 2, -sweep(x, 2, c(by, numeric(4)))))
  }
})

test_that("multiples of several scales are found, whatever the likelihood and the priors", {
  set.seed(19)
  n <- 300
  effects <- 6
  # (log sd of one group, log variance of another, their effects): counts, a half-Cauchy and a
  # half-normal prior
  x <- cbind(rnorm(n, 0, 0.5), rnorm(n, -1, 0.7), matrix(rnorm(2 * effects * n), n))
  first <- 2 + seq_len(effects)
  second <- first + effects
  counts <- rep(c(1, 4, 9), length.out = effects)
  log_density <- function(x) {
    u <- cbind(exp(x[, 1]) * x[, first], exp(x[, 2] / 2) * x[, second])
    counts <- rep(c(counts, counts), each = nrow(x))
    f <- (counts - exp(u)) * cbind(exp(x[, 1]) + 0 * x[, first], exp(x[, 2] / 2) + 0 * x[, second])
    by_scale <- f * x[, -(1:2)]
    structure(
      rowSums(counts * u - exp(u)) - rowSums(x[, -(1:2)]^2) / 2 + x[, 1] - log1p(exp(2 * x[, 1])) +
        x[, 2] / 2 - exp(x[, 2]) / 2,
      gradient = cbind(
        rowSums(by_scale[, seq_len(effects)]) + 1 - 2 * plogis(2 * x[, 1]),
        rowSums(by_scale[, -seq_len(effects)]) / 2 + 1 / 2 - exp(x[, 2]) / 2, f - x[, -(1:2)]
      )
    )
  }
  found <- internal("find_multiples")(points_at(x, log_density))
  expect_identical(lapply(found, `[[`, "conditioning"), list(1L, 2L))
  expect_equal(drop(found[[1]]$slope), rep(c(0, -1, 0), c(2, effects, effects)))
  expect_equal(drop(found[[2]]$slope), rep(c(0, -0.5), c(2 + effects, effects)))
})

test_that("gradients show a scale among many variables, whatever their units", {
  n <- 60
  units <- 10^seq(-3, 3, length.out = n)
  for (seed in 1:3) {
    set.seed(seed)
    log_scale <- rnorm(300, 0, 0.3)
    effects <- exp(log_scale) * matrix(rnorm(300 * n), 300)
    log_density <- function(x) {
      z <- sweep(x[, -1, drop = FALSE], 2, units, "/") * exp(-x[, 1])
      structure(
        -rowSums(z^2) / 2 - n * x[, 1] - x[, 1]^2 / 2,
        gradient = cbind(rowSums(z^2) - n - x[, 1], -sweep(z * exp(-x[, 1]), 2, units, "/"))
      )
    }
    expect_identical(neck_of(cbind(log_scale, sweep(effects, 2, units, "*")), log_density)[1], 1L)
  }
})

test_that("a hierarchy as it is written has all of its evidence", {
  truth <- log(integrate(function(l) exp(log_given(l)), -12, 6, rel.tol = 1e-10)$value)
  target <- target_function(log_hierarchy, J + 2, gradient_hierarchy, vectorized = TRUE)
  expect_log_z(calmly(smc(target, seed = 1)), truth)
})
