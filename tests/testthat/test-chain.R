# Chains of conditional blocks: what is fitted to draws and their gradients, where the density is not asked elsewhere.

fitted_to <- function(x, log_density) shape_of_draws(x, log_density, is_asked = FALSE)

# Log weights of draws of a fitted reference, without its inflation, under the density.
log_weights_of <- function(reference, log_density, dim, n = 2000) {
  z <- matrix(rnorm(n * dim), n)
  at <- internal("forward_maps")(internal("reference_maps")(replace(reference, "inflation", list(NULL)), dim), z)
  drop(log_density(at$x)) + at$log_jacobian + rowSums(z^2) / 2 + dim / 2 * log(2 * pi)
}

# t ~ N(0, 4), and four children of scale exp(t / 2), or around b t^2.
log_funnel <- function(x) {
  z <- x[, -1, drop = FALSE] * exp(-x[, 1] / 2)
  structure(
    dnorm(x[, 1], 0, 2, log = TRUE) + rowSums(dnorm(z, log = TRUE)) - 2 * x[, 1],
    gradient = unname(cbind(rowSums(z^2) / 2 - 2 - x[, 1] / 4, -z * exp(-x[, 1] / 2)))
  )
}
draw_funnel <- function(n) {
  t <- rnorm(n, 0, 2)
  cbind(t, exp(t / 2) * matrix(rnorm(4 * n), n), deparse.level = 0)
}
b <- c(1, -0.5, 0.3)
log_banana <- function(x) {
  off <- x[, -1, drop = FALSE] - outer(x[, 1]^2, b)
  structure(
    dnorm(x[, 1], log = TRUE) + rowSums(dnorm(off, log = TRUE)),
    gradient = unname(cbind(2 * x[, 1] * drop(off %*% b) - x[, 1], -off))
  )
}
draw_banana <- function(n) {
  t <- rnorm(n)
  cbind(t, outer(t^2, b) + matrix(rnorm(3 * n), n), deparse.level = 0)
}
# y ~ N(X beta, exp(2 t)), beta ~ N(0, 1), and log sigma = t ~ N(0, 0.3): x = (beta, t).
design <- cbind(1, seq(-1, 2, length.out = 12), rep(0:1, 6))
y <- drop(design %*% c(0.5, 1, -1)) + rep(c(0.3, -0.4, 0.1), 4)
log_regression <- function(x) {
  p <- ncol(design)
  beta <- x[, seq_len(p), drop = FALSE]
  t <- x[, p + 1]
  off <- rep(y, each = nrow(x)) - tcrossprod(beta, design)
  structure(
    rowSums(dnorm(beta, log = TRUE)) + dnorm(t, 0, 0.3, log = TRUE) + rowSums(dnorm(off, 0, exp(t), log = TRUE)),
    gradient = unname(cbind(off %*% design * exp(-2 * t) - beta, rowSums(off^2) * exp(-2 * t) - length(y) - t / 0.09))
  )
}
log_given_t <- function(t) {
  vapply(t, function(t) {
    cov <- tcrossprod(design) + exp(2 * t) * diag(length(y))
    -(sum(y * solve(cov, y)) + determinant(cov)$modulus + length(y) * log(2 * pi)) / 2 + dnorm(t, 0, 0.3, log = TRUE)
  }, 0)
}
draw_regression <- function(n) {
  grid <- seq(-2, 2, by = 0.001)
  t <- sample(grid, n, TRUE, exp(log_given_t(grid)))
  t(vapply(t, function(t) {
    root <- chol(crossprod(design) * exp(-2 * t) + diag(ncol(design)))
    mean <- chol2inv(root) %*% crossprod(design, y) * exp(-2 * t)
    c(mean + backsolve(root, rnorm(ncol(design))), t)
  }, numeric(ncol(design) + 1)))
}

targets <- list(
  funnel = list(log = log_funnel, draw = draw_funnel, parent = 1, log_z = 0),
  banana = list(log = log_banana, draw = draw_banana, parent = 1, log_z = 0),
  regression = list(
    log = log_regression, draw = draw_regression, parent = 4,
    log_z = log(integrate(function(t) exp(log_given_t(t)), -3, 3, rel.tol = 1e-10)$value)
  )
)

test_that("what is normal given parents has an exact chain, also far from all draws", {
  for (target in targets) {
    set.seed(1)
    x <- target$draw(500)
    d <- ncol(x)
    reference <- fitted_to(x, target$log)$reference
    expect_identical(internal("conditioning_of")(reference), as.integer(target$parent))
    far <- cbind(rep(c(-4, 0, 4), each = 30))
    expect_lt(spread_given(target$parent, reference, target$log, d, far), 1e-4)
    # importance sampling
    w <- exp(log_weights_of(reference, target$log, d) - target$log_z)
    expect_mean(w, 1, resolution = 0.05)
    # the scores in the coordinates of the reference are minus these, but for those of the parent
    reference$inflation <- NULL
    at <- internal("inverse_maps")(internal("reference_maps")(reference, d), x, attr(target$log(x), "gradient"))
    expect_equal(at$g[, -target$parent], -at$x[, -target$parent], tolerance = 1e-4)
  }
})

test_that("draws without weight may be anywhere", {
  set.seed(7)
  x <- draw_funnel(400)
  fit <- function(x, log_weights) shape_of_draws(x, log_funnel, is_asked = FALSE, log_weights = log_weights)
  weights <- rep(-log(400), 400)
  far <- matrix(c(-3000, 1e200, 5, 5, 5), 20, 5, byrow = TRUE)
  expect_equal(fit(rbind(x, far), c(weights, rep(-800, 10), rep(-Inf, 10))), fit(x, weights))
})

test_that("draws that are mostly copies of one are fitted", {
  set.seed(8)
  x <- draw_funnel(400)
  x[1:398, ] <- x[rep(1, 398), ]
  expect_s3_class(fitted_to(x, log_funnel)$reference, "smc_reference")
})

test_that("an inflated reference is wider than what was fitted", {
  set.seed(6)
  for (target in targets) {
    x <- target$draw(200)
    reference <- fitted_to(x, target$log)$reference
    expect_true(all(reference$inflation >= 1))
    # no weight is larger than the ratio of the scales
    z <- matrix(rnorm(5000 * ncol(x)), 5000)
    new <- internal("forward_maps")(internal("reference_maps")(reference, ncol(x)), z)
    log_w <- internal("log_density_of")(reference, new$x) + new$log_jacobian + rowSums(z^2) / 2
    expect_lt(max(exp(log_w)), prod(reference$inflation) * (1 + 1e-6))
    # equal but for rounding where the fit is exact
    if (any(reference$inflation > 1)) expect_mean(exp(log_w), 1, resolution = 0.1) else expect_lt(max(abs(log_w)), 1e-6)
  }
})

test_that("levels with skew margins are found, in any order of the variables", {
  set.seed(2)
  # three levels, with skew margins
  log_levels <- function(x) {
    z <- (x[, 2:3, drop = FALSE] - x[, 1]^2 / 2) * exp(-x[, 1] / 3)
    v <- x[, 4:5, drop = FALSE] - x[, 2]
    by_2 <- -z * exp(-x[, 1] / 3)
    structure(
      3 * x[, 1] - exp(x[, 1]) - rowSums(z^2) / 2 - 2 * x[, 1] / 3 + rowSums(2 * v - exp(v)),
      gradient = cbind(
        3 - exp(x[, 1]) + rowSums(z^2) / 3 - 2 / 3 - rowSums(by_2) * x[, 1],
        by_2[, 1] - rowSums(2 - exp(v)), by_2[, 2], 2 - exp(v)
      )
    )
  }
  draw_levels <- function(n) {
    t <- log(rgamma(n, 3))
    u <- t^2 / 2 + exp(t / 3) * matrix(rnorm(2 * n), n)
    cbind(t, u, u[, 1] + log(matrix(rgamma(2 * n, 2), n)), deparse.level = 0)
  }
  x <- draw_levels(1000)
  new <- draw_levels(5000)
  log_target <- drop(log_levels(new)) - log(2 * pi) - lgamma(3)
  for (order in list(1:5, 5:1, c(3, 5, 1, 4, 2))) {
    permuted <- function(x) {
      value <- log_levels(x[, order(order), drop = FALSE])
      attr(value, "gradient") <- attr(value, "gradient")[, order, drop = FALSE]
      value
    }
    reference <- fitted_to(x[, order], permuted)$reference
    divergence <- log_target - internal("log_density_of")(reference, new[, order]) + 5 / 2 * log(2 * pi)
    expect_lt(mean(divergence) + errors_for() * sd(divergence) / sqrt(5000), 0.15)
  }
})

# A chain of rows of x alone, with their scores, of which one half is held out.
chain_of <- function(x, g) {
  rows <- seq_len(nrow(x))
  internal("fit_chain")(list(x = x, g = g, train = rows[rows %% 2 == 1], test = rows[rows %% 2 == 0]), seq_len(ncol(x)))
}

test_that("the chain of a normal distribution is nearer than moments have it", {
  set.seed(3)
  for (d in c(1, 2, 6)) {
    L <- matrix(rnorm(d^2), d) + diag(2, d)
    z <- matrix(rnorm(200 * d), 200)
    chain <- chain_of(tcrossprod(z, L) + 3, -z %*% solve(L))
    # the divergence of the likeliest normal distribution, half a nat a parameter
    expect_lt(mean(rowSums((chain$points$x + chain$points$g)^2)) / 2, d * (d + 3) / 4 / 200)
  }
})

test_that("parents are hardly ever found by chance", {
  set.seed(4)
  # independent logistic variables: a parent that is found is worth its gain on the half that was held out, which
  # chance has in one of 44 trials, and a fit has hardly more than four of them
  found <- replicate(50, {
    x <- matrix(rlogis(5 * 200), 200)
    length(chain_of(x, -tanh(x / 2))$parents) > 0
  })
  expect_lte(sum(found), qbinom(chance, 50, 4 / 44, lower.tail = FALSE))
})

test_that("no genealogy is in both halves of the points", {
  set.seed(5)
  origins <- rep(1:150, each = 4)
  x <- cbind(origins + runif(600) / 2, rnorm(600))
  record <- replace(record_of(x, -x), "origins", list(origins))
  points <- internal("equal_points")(record)
  halves <- lapply(points[c("train", "test")], function(rows) floor(points$x[rows, 1]))
  expect_length(intersect(halves$train, halves$test), 0)
  expect_gt(min(lengths(halves)), 100)
  # of so few points none is fitted, nor of those whose fourth powers are beyond all numbers
  expect_null(fitted_to(draw_funnel(60), log_funnel))
  far <- replace(x, 1, 1e90)
  expect_null(internal("fit_shape")(record_of(far, -far)))
})
