# Points of the target beside draws that are narrower than it.

internal <- function(name) get(name, asNamespace("autosmc"))

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

test_that("points are where the target is, and draws half as wide are not", {
  set.seed(1)
  density <- density_of(log_given)
  narrow <- digamma(shape) + sqrt(trigamma(shape)) * rnorm(500) / 2
  space <- internal("near_space")(points_at(draws_given(narrow), log_given), list(), density, n = 500)
  expect_identical(internal("given_of")(space), 1L)
  asked <- internal("averaged_by_place")(space$asked)
  n <- asked$genealogies
  expect_gt(n, 60)
  u <- asked$mean[1] + asked$x[, 1]
  expect_equal(sum(asked$w), 1)
  # mean, variance and third moment, with the errors of n draws
  z <- (u - digamma(shape)) / sqrt(trigamma(shape))
  skewness <- psigamma(shape, 2) / trigamma(shape)^1.5
  moment <- function(power) internal("weighted_sums")(cbind(z^power), asked$w)
  error_of <- function(power) {
    v <- log(rgamma(1e5, shape))
    sd(((v - digamma(shape)) / sqrt(trigamma(shape)))^power) / sqrt(n)
  }
  expect_lt(abs(moment(1)), errors_for(Inf) * error_of(1))
  expect_lt(abs(moment(2) - 1), errors_for(Inf) * error_of(2))
  expect_lt(abs(moment(3) - skewness), errors_for(Inf) * error_of(3))
  # what the fit is made of has the gradients of the target
  some <- seq_len(20)
  x <- sweep(space$asked$x[some, ], 2, space$asked$mean, "+")
  expect_equal(space$asked$g[some, ], attr(log_given(x), "gradient"))
})

test_that("no points are asked for where many coordinates are given, or the draws have no width", {
  set.seed(2)
  density <- density_of(log_given)
  x <- draws_given(digamma(shape) + sqrt(trigamma(shape)) * rnorm(500) / 2)
  space <- internal("near_space")(points_at(x, log_given), list(), density, n = 500, may_ask = FALSE)
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

test_that("points of one place are one, with the means of their gradients", {
  points <- list(
    x = cbind(c(1, 2, 1, 2), c(3, 4, 5, 6)), g = cbind(1:4, 0), w = c(0.1, 0.2, 0.3, 0.4), place = c(1, 2, 1, 2),
    is_first = c(FALSE, TRUE, FALSE, TRUE)
  )
  one <- internal("averaged_by_place")(points)
  expect_equal(one$w, c(0.4, 0.6))
  expect_equal(one$x[, 1], c(1, 2))
  expect_equal(unname(one$g[, 1]), c(0.1 * 1 + 0.3 * 3, 0.2 * 2 + 0.4 * 4) / c(0.4, 0.6))
  expect_identical(one$is_first, c(FALSE, TRUE))
})

test_that("the density of places is that of the distributions around the points", {
  set.seed(3)
  x <- cbind(rnorm(50), rnorm(50))
  x[, 2] <- x[, 2] + x[, 1]
  points <- list(x = sweep(x, 2, colMeans(x)), w = rep(1 / 50, 50), mean = colMeans(x))
  kernels <- internal("kernels_around")(points, 30)
  covariance <- crossprod(points$x) / 50
  expect_equal(crossprod(kernels$root), covariance)
  at <- rbind(c(0, 0), c(3, -1))
  direct <- apply(at, 1, function(a) {
    off <- sweep(kernels$centres, 2, a)
    log(mean(exp(-rowSums((off %*% solve(covariance)) * off) / 2)))
  })
  expect_equal(internal("log_density_of_kernels")(kernels, at), direct)
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
