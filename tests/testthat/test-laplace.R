# The scales of bounded variables, and references from modes.

bounded <- target_function(
  function(x) {
    dnorm(x[1], 100, 2, log = TRUE) + dgamma(x[2], 3, log = TRUE) +
      dgamma(4 - x[3], 3, log = TRUE) + dbeta((x[4] + 1) / 3, 2, 3, log = TRUE)
  },
  dim = 4, names = c("free", "above", "below", "between"),
  lower = c(-Inf, 0, -Inf, -1), upper = c(Inf, Inf, 4, 2),
  gradient = function(x) {
    p <- (x[4] + 1) / 3
    c(
      (100 - x[1]) / 4, 2 / x[2] - 1, -(2 / (4 - x[3]) - 1),
      (1 / p - 2 / (1 - p)) / 3
    )
  }
)

# scales --------------------------------------------------------------------------

test_that("scales are changed by the formulas, there and back", {
  x <- rbind(c(90, 0.5, 3, 0), c(-1, 20, -5, 1.9))
  u <- unconstrain(bounded, x)
  expected <- cbind(x[, 1], log(x[, 2]), log(4 - x[, 3]), log((x[, 4] + 1) / (2 - x[, 4])))
  expect_equal(u, expected, ignore_attr = TRUE)
  expect_identical(colnames(u), bounded$names)
  expect_equal(constrain(bounded, u), x, ignore_attr = TRUE)
  expect_equal(unconstrain(bounded, x[2, ]), u[2, ])
  expect_equal(constrain(bounded, u[2, ]), setNames(x[2, ], bounded$names))
})

# The core evaluates at u the density at x(u), and adds the log Jacobian.
test_that("they are those of the core", {
  evaluate <- get("evaluate_target", asNamespace("autosmc"))
  set.seed(1)
  u <- matrix(rnorm(40, sd = 3), 10)
  x <- constrain(bounded, u)
  p <- (x[, 4] + 1) / 3
  log_jacobian <- log(x[, 2]) + log(4 - x[, 3]) + log(3 * p * (1 - p))
  expect_equal(
    evaluate(bounded, u, unconstrained = TRUE)$log_density,
    evaluate(bounded, unname(x))$log_density + log_jacobian
  )
  seen <- NULL
  spy <- bounded
  spy$terms[[1]]$log_density <- function(x) {
    seen <<- rbind(seen, x)
    0
  }
  evaluate(spy, u, gradient = FALSE, unconstrained = TRUE)
  expect_identical(unname(seen), unname(x))
})

test_that("nothing is put on a bound or beyond it", {
  far <- constrain(bounded, rbind(rep(800, 4), rep(-800, 4)))
  expect_true(all(far[, 2] > 0 & far[, 3] < 4 & far[, 4] > -1 & far[, 4] < 2))
  at <- unconstrain(bounded, c(0, 0, 4, -1))
  expect_true(all(is.finite(at)))
  expect_identical(unconstrain(target_gaussian(2), c(1, 2)), c(x1 = 1, x2 = 2))
})

test_that("points that are not points of the target are named", {
  for (bad in list(NULL, "a", 1:3, matrix(0, 4, 1), c(0, 1, 1, NaN))) {
    expect_bad(unconstrain(bounded, bad), "x")
    expect_bad(constrain(bounded, bad), "u")
  }
  expect_bad(unconstrain(bounded, c(0, -1, 1, 1)), "x")
  expect_bad(unconstrain(bounded, c(0, 1, 5, 1)), "x")
  expect_bad(unconstrain(bounded), "x")
})

# modes ---------------------------------------------------------------------------

# Modes on the unconstrained scale: of u = log x with x ~ gamma(3), log 3, with curvature
# 3; of the logit of p ~ beta(2, 3), log(2 / 3), with curvature 5 p (1 - p) = 6 / 5.
test_that("a mode and its curvature are found", {
  reference <- reference_laplace(bounded, c(0, 1, 1, 1), inflate = 2)
  expect_s3_class(reference, "smc_reference_gaussian")
  expect_equal(reference$mean, c(100, log(3), log(3), log(2 / 3)), tolerance = 1e-4)
  L <- if (is.null(reference$chol)) diag(reference$sd) else reference$chol
  expect_equal(tcrossprod(L), 2 * diag(c(4, 1 / 3, 1 / 3, 5 / 6)), tolerance = 5e-3)
})

test_that("of a normal distribution it is exact, whatever its scales", {
  set.seed(2)
  L <- (crossprod(matrix(rnorm(25), 5)) + diag(5)) %*% diag(10^(-2:2))
  cov <- tcrossprod(L)
  mean <- c(1e4, 0, -3, 1, 50)
  precision <- solve(cov / 1e4, tol = 0) / 1e4
  target <- target_function(
    function(x) -sum((x - mean) * precision %*% (x - mean)) / 2 + 1e6,
    dim = 5, gradient = function(x) -as.vector(precision %*% (x - mean))
  )
  reference <- reference_laplace(target, mean + rnorm(5, sd = 10), inflate = 1)
  white <- solve(reference$chol, t(chol(cov)))
  expect_lt(max(abs(tcrossprod(white) - diag(5))), 1e-3)
  expect_lt(max(abs(solve(reference$chol, reference$mean - mean))), 0.02)
})

test_that("where there is no mode, that is said", {
  no_mode <- list(
    "rises without end" = target_function(
      function(x) x, 1, gradient = function(x) 1
    ),
    "comes to rest" = target_function(
      function(x) -exp(-x), 1, gradient = function(x) exp(-x)
    ),
    "flat" = target_function(
      function(x) -x[1]^2, 2, gradient = function(x) c(-2 * x[1], 0)
    ),
    "wrong gradient" = target_function(
      function(x) -x^2 / 2, 1, gradient = function(x) x
    )
  )
  for (name in names(no_mode)) {
    target <- no_mode[[name]]
    error <- catch(reference_laplace(target, rep(0.5, target$dim)))
    expect_s3_class(error, c("autosmc_error_mode", "autosmc_error"))
    expect_match(message_of(error), "No mode was found", info = name)
  }
})

test_that("a wrong argument is named", {
  for (bad in list(NULL, "a", 1:3, matrix(1, 1, 4), c(0, 1, 1, NA))) {
    expect_bad(reference_laplace(bounded, bad), "start")
  }
  expect_bad(reference_laplace(bounded), "start")
  expect_bad(reference_laplace(bounded, c(0, 1, 1, 1), inflate = 0), "inflate")
  impossible <- target_function(function(x) -Inf, 1, gradient = function(x) 0)
  expect_bad(reference_laplace(impossible, 0), "start")
})

# factors -------------------------------------------------------------------------

test_that("a reference takes a factor of its covariance", {
  L <- rbind(c(2, 0), c(-1, 0.5))
  expect_equal(reference_gaussian(1, chol = L), reference_gaussian(1, cov = tcrossprod(L)))
  for (bad in list(t(L), -L, 1:3, L[, 1, drop = FALSE], "a", L * NA)) {
    expect_bad(reference_gaussian(chol = bad), "chol")
  }
  expect_bad(reference_gaussian(chol = L, cov = tcrossprod(L)), "chol")
  expect_bad(reference_gaussian(sd = 1, chol = L), "chol")
  expect_bad(smc(target_gaussian(3), reference = reference_gaussian(chol = L)), "chol")
})

test_that("beside an edge there is no mode, and the error says so", {
  # on the unit simplex; the last two parts have no pull away from 0
  exponents <- c(12, 7, 3, 0, 1, 0)
  target <- target_function(
    function(x) {
      last <- 1 - sum(x)
      if (last > 0) sum(exponents * log(c(x, last))) else -Inf
    },
    gradient = function(x) exponents[1:5] / x - exponents[6] / (1 - sum(x)),
    dim = 5, lower = 0, upper = 1
  )
  expect_error(
    reference_laplace(target, rep(0.15, 5)), "No mode was found",
    class = "autosmc_error_mode"
  )
})
