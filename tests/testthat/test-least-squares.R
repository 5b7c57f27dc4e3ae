test_that("products are those of R", {
  set.seed(1)
  for (shape in list(c(7, 5, 3), c(130, 1, 260), c(1, 4, 1), c(2500, 33, 9), c(5, 2050, 2))) {
    a <- matrix(rnorm(shape[1] * shape[2]), shape[1])
    b <- matrix(rnorm(shape[2] * shape[3]), shape[2])
    # sums of as many products, each of them rounded
    limit <- function(n) 2 * n * .Machine$double.eps
    expect_lte(max(abs(multiply(a, b) - a %*% b) / (abs(a) %*% abs(b))), limit(shape[2]))
    y <- matrix(rnorm(shape[1] * shape[3]), shape[1])
    expect_lte(
      max(abs(cross_product(a, y) - crossprod(a, y)) / crossprod(abs(a), abs(y))),
      limit(shape[1])
    )
    # of which only half is made where both are the same
    expect_identical(cross_product(a), cross_product(a, a + 0))
  }
})

test_that("triangular matrices are inverted, however large", {
  set.seed(4)
  factor_of_inverse <- internal("factor_of_inverse")
  for (d in c(1, 5, 730)) { # two blocks of columns
    L <- diag(d) + lower.tri(diag(d)) * matrix(rnorm(d * d), d) / d
    expect_lt(max(abs(inverse_of_lower(L) %*% L - diag(d))), 1e-12)
    factor <- factor_of_inverse(t(L))
    expect_identical(max(0, abs(factor[upper.tri(factor)])), 0)
    expect_lt(max(abs(L %*% t(L) %*% factor %*% t(factor) - diag(d))), 1e-12)
  }
})

test_that("least squares leave nothing along the columns, however collinear these are", {
  set.seed(2)
  x <- cbind(1, matrix(rnorm(200 * 3), 200) %*% diag(c(1e-8, 1, 1e8)))
  y <- matrix(rnorm(200 * 2), 200)
  slope_left <- function(x) {
    residuals <- y - x %*% least_squares(x, y)
    max(abs(crossprod(scale(x, FALSE, sqrt(colSums(x^2))), residuals))) / max(abs(y))
  }
  expect_lt(slope_left(x), 1e-11)
  for (part in c(1e-2, 1e-3, 1e-4, 1e-6)) {
    near <- cbind(x, x[, 3] + part * rnorm(200))
    expect_lt(slope_left(near), 1e-8)
  }
})

test_that("columns that others make up have no coefficients", {
  set.seed(3)
  x <- matrix(rnorm(60), 20)
  y <- matrix(rnorm(20), 20)
  with_sum <- least_squares(cbind(x, rowSums(x), 0), y)
  expect_equal(with_sum[1:3, ], least_squares(x, y)[, 1])
  expect_equal(with_sum[4:5, ], c(0, 0))
  expect_equal(least_squares(cbind(0, x), y), rbind(0, least_squares(x, y)))
  w <- runif(20)
  fit <- weighted_least_squares(x, y, w)
  again <- lm.wfit(x, y, w)
  expect_equal(fit$coefficients, again$coefficients, ignore_attr = TRUE)
  expect_equal(fit$residuals, again$residuals, ignore_attr = TRUE)
})
