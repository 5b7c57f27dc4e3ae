# Points of the target beside draws that are narrower than it.

# The first variable is the logarithm of one from a gamma distribution of this shape. Given it the others are normal, with
# means and scales that are smooth functions of it.
shape <- 4
scale_given <- function(u) log1p(exp(2 * u))^-2

log_given <- function(x) {
  u <- x[, 1]
  scale <- scale_given(u)
  z <- (x[, -1, drop = FALSE] - sin(u) - u^2 / 4) / scale
  by_log_scale <- -4 * plogis(2 * u) / log1p(exp(2 * u))
  by_u <- shape - exp(u) + rowSums(z) * (cos(u) + u / 2) / scale + rowSums(z^2 - 1) * by_log_scale
  value <- shape * u - exp(u) - lgamma(shape) + rowSums(dnorm(z, log = TRUE)) - ncol(z) * log(scale)
  structure(value, gradient = cbind(by_u, -z / scale, deparse.level = 0))
}

draws_given <- function(u) {
  z <- matrix(rnorm(8 * length(u)), length(u))
  cbind(u, sin(u) + u^2 / 4 + scale_given(u) * z, deparse.level = 0)
}

# Draws of which the first variable is half as wide as in the target.
narrow_draws <- function() {
  set.seed(1)
  draws_given(digamma(shape) + sqrt(trigamma(shape)) * rnorm(500) / 2)
}
near_space <- function(x, density, ...) internal("near_space")(points_at(x, log_given), list(), density, n = 500, ...)

test_that("points are where the target is, and draws half as wide are not", {
  space <- near_space(narrow_draws(), density_of(log_given))
  asked <- space$asked
  u <- asked$mean[1] + asked$x[, 1]
  expect_gt(asked$genealogies, 60)
  expect_equal(sum(asked$w), 1)
  # mean, variance and third moment, with the errors of as many draws
  z <- (u - digamma(shape)) / sqrt(trigamma(shape))
  of_target <- (log(rgamma(1e5, shape)) - digamma(shape)) / sqrt(trigamma(shape))
  truth <- c(0, 1, psigamma(shape, 2) / trigamma(shape)^1.5)
  for (power in 1:3) {
    error <- sd(of_target^power) / sqrt(asked$genealogies)
    expect_estimate(sum(asked$w * z^power), error, truth[power], c(0.7, 1.3, 5)[power])
  }
  # what the fit is made of has the gradients of the target
  some <- seq_len(20)
  expect_equal(asked$g[some, ], attr(log_given(sweep(asked$x[some, ], 2, asked$mean, "+")), "gradient"))
})

test_that("no points are asked for where many coordinates are given, or the draws have no width", {
  density <- density_of(log_given)
  space <- near_space(narrow_draws(), density, may_ask = FALSE)
  expect_null(space$asked)
  asked_points <- internal("asked_points")
  expect_false(is.null(asked_points(space, density)))
  given_many <- space
  given_many$known <- 8:9
  expect_null(asked_points(given_many, density))
  no_width <- space
  no_width$points$x[, 1] <- 0
  expect_null(asked_points(no_width, density))
  # neither where all weight is at one place
  one_place <- function(x, ...) {
    there <- density(x, ...)
    there$log_density <- there$log_density - 1e4 * x[, 1]^2
    there
  }
  expect_null(asked_points(space, one_place))
})

test_that("from such draws a fit has a reference as wide as the target", {
  found <- shape_of_draws(narrow_draws(), log_given)$reference
  expect_gt(found$chol[1, 1] / sqrt(trigamma(shape)), 0.8)
})

test_that("polynomials are of one more coordinate, where that is far from normal and others depend on it", {
  set.seed(4)
  # the second variable is the logarithm of one from a gamma distribution, and the means of the others bend with it
  log_two <- function(x) {
    scale <- exp(x[, 1] / 4)
    z <- x[, -(1:2), drop = FALSE] / scale - x[, 2]^2 / 4
    by_t <- (rowSums(z * (z + x[, 2]^2 / 4)) - ncol(z)) / 4 - x[, 1]
    by_w <- shape - exp(x[, 2]) + rowSums(z) * x[, 2] / 2
    value <- -x[, 1]^2 / 2 + shape * x[, 2] - exp(x[, 2]) - rowSums(z^2) / 2 - ncol(z) * x[, 1] / 4
    structure(value, gradient = cbind(by_t, by_w, -z / scale, deparse.level = 0))
  }
  t <- rnorm(500)
  w <- log(rgamma(500, shape))
  x <- cbind(t, w, exp(t / 4) * (w^2 / 4 + matrix(rnorm(500 * 8), 500)), deparse.level = 0)
  points <- points_at(x, log_two)
  density <- density_of(log_two)
  with_one_more <- internal("with_one_more")
  space_given <- function(given) {
    space <- internal("polynomial_space")(points, list(), given, density)
    c(space, list(asked = points))
  }
  more <- with_one_more(space_given(1L), density)
  expect_identical(more$changes[[1]]$given, 1:2)
  expect_lt(more$nats, space_given(1L)$nats)
  # the others are normal given both
  expect_null(with_one_more(space_given(1:2), density))
})

test_that("along their widest direction points of a normal distribution are wider than chance allows one time in ten", {
  set.seed(8)
  n <- 80
  share_above <- function(d) {
    widest <- replicate(400, {
      x <- matrix(rnorm(n * d), n)
      max(eigen(cov(x), symmetric = TRUE, only.values = TRUE)$values)
    })
    mean(widest > widest_by_chance(d, n))
  }
  shares <- vapply(c(1, 3, 6), share_above, 0)
  expect_true(all(shares > 1 / 30 & shares < 1 / 6)) # four standard errors of a tenth: 0.04 to 0.16
})
