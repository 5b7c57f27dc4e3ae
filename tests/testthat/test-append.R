# More data for a fit.

y <- c(0.4, 1.2, -0.3, 0.9, 1.5, 2.1)
scale <- 1.7
model <- function(y) {
  target_function(
    function(x) dnorm(x[, 1], 0, scale, log = TRUE) + rowSums(dnorm(outer(x[, 1], y, "-"), log = TRUE)), 1,
    gradient = function(x) sum(y) - length(y) * x - x / scale^2, vectorized = TRUE, names = "mu"
  )
}
# y is normal with covariance I + scale^2 11'
exact <- function(y) {
  n <- length(y)
  -n / 2 * log(2 * pi) - log1p(n * scale^2) / 2 - (sum(y^2) - sum(y)^2 * scale^2 / (1 + n * scale^2)) / 2
}
first <- smc(model(y[1:2]), seed = 1)
second <- smc_append(first, model(y[1:4]), seed = 2)
third <- smc_append(second, model(y), seed = 3)

test_that("predictive evidences are those of the new data given the old", {
  expect_s3_class(second, "smc_fit")
  expect_identical(second$runs$label[1], "fit")
  of <- function(x, value) expect_estimate(as.numeric(x), attr(x, "std_error"), value, 0.01)
  of(second$predictive, exact(y[1:4]) - exact(y[1:2]))
  of(third$predictive, exact(y) - exact(y[1:4]))
  expect_equal(attr(third$predictive, "std_error"), sqrt(second$std_error^2 + third$std_error^2))
})

test_that("what batches sum up to is the evidence of all data, with its error", {
  total <- sum(log_evidence(first), second$predictive, third$predictive)
  expect_equal(as.numeric(total), third$log_z)
  expect_equal(attr(total, "std_error"), third$std_error)
})

test_that("c() and sum() keep errors, which are never smaller than they are", {
  a <- log_evidence(first)
  both <- c(a, log_evidence(third), 1)
  expect_equal(as.numeric(both), c(first$log_z, third$log_z, 1))
  expect_equal(attr(both, "std_error"), c(first$std_error, third$std_error, 0))
  error <- function(...) attr(sum(...), "std_error")
  expect_equal(error(both), sqrt(first$std_error^2 + third$std_error^2))
  expect_equal(error(a, a), 2 * first$std_error) # the same error twice
  expect_equal(error(a, 1), first$std_error)
  expect_s3_class(sum(a), "log_evidence")
  expect_output(print(both), "error [0-9.]+(e-[0-9]+)?\\)\n.*error [0-9.]+(e-[0-9]+)?\\)\n.*log evidence 1", perl = TRUE)
})

test_that("it is an error to append to no fit, or with its seed", {
  expect_bad(smc_append(1, model(y)), "fit")
  expect_bad(smc_append(first, model(y), seed = 1), "seed")
  expect_bad(smc_append(first, model(y), reference = "prior"), "reference")
})
