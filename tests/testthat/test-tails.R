# Skew and heavy-tailed coordinates: the density that is fitted, and what is found.

density_of <- internal("log_sinh_arcsinh")
thetas <- list(
  c(0, 0, 0, 0), c(0.3, -0.5, 0.4, 0), c(-1, 0.7, 0, log(0.5)), c(0.2, 0.1, -0.8, log(0.7))
)

test_that("the sinh-arcsinh density is one, and normal without skew and tails", {
  for (theta in thetas) {
    total <- integrate(function(z) exp(density_of(z, theta)$value), -Inf, Inf, rel.tol = 1e-8)
    expect_equal(total$value, 1, tolerance = 1e-6)
  }
  z <- seq(-4, 4, by = 0.5)
  expect_equal(density_of(z, c(0.5, log(2), 0, 0))$value, dnorm(z, 0.5, 2, log = TRUE))
})

test_that("it is that of the map's images of standard normals", {
  set.seed(1)
  z <- rnorm(100)
  for (theta in thetas) {
    map <- list(location = theta[1], scale = exp(theta[2]), skew = theta[3], tail = exp(theta[4]))
    u <- map$location + map$scale * sinh((asinh(z) + map$skew) / map$tail)
    # by the gradient at u of the density, led back to z: that of a standard normal, -z
    by_u <- (density_of(u + 1e-6, theta)$value - density_of(u - 1e-6, theta)$value) / 2e-6
    stretch <- map$scale * cosh((asinh(z) + map$skew) / map$tail) / (map$tail * sqrt(1 + z^2))
    by_log_stretch <- tanh((asinh(z) + map$skew) / map$tail) / (map$tail * sqrt(1 + z^2)) -
      z / (1 + z^2)
    expect_equal(by_u * stretch + by_log_stretch, -z, tolerance = 1e-5)
    expect_equal(density_of(u, theta)$value + log(stretch), dnorm(z, log = TRUE))
  }
})

test_that("its gradient is that of its value", {
  z <- seq(-5, 5, length.out = 41)
  for (theta in thetas) {
    found <- density_of(z, theta)$gradient
    for (k in 1:4) {
      step <- 1e-5 * (1:4 == k)
      slope <- (density_of(z, theta + step)$value - density_of(z, theta - step)$value) / 2e-5
      expect_lt(max(abs(found[, k] - slope) / (1 + abs(slope))), 1e-7)
    }
  }
})

standardised <- function(x) scale(x)[, ] * sqrt(nrow(x) / (nrow(x) - 1))

test_that("columns that are skew or have heavy tails are found, and normal ones left", {
  set.seed(2)
  n <- 4000
  z <- matrix(rnorm(4 * n), n)
  x <- z
  x[, 2] <- sinh(asinh(z[, 2]) + 0.5)
  x[, 4] <- sinh(asinh(z[, 4]) / 0.6)
  w <- rep(1 / n, n)
  tails <- internal("fit_tails")(standardised(x), w, n)
  for (part in c("location", "skew")) expect_identical(tails[[part]][c(1, 3)], c(0, 0))
  for (part in c("scale", "tail")) expect_identical(tails[[part]][c(1, 3)], c(1, 1))
  # the likelihood's error of skew and log tail is about 1 / sqrt(n)
  expect_equal(tails$skew[2], 0.5, tolerance = 0.2)
  expect_equal(tails$tail[4], 0.6, tolerance = 0.1)
  expect_equal(tails$skew[4], 0, tolerance = 0.1)
  # what is gained is the distance of normal and true density, here known from many draws
  gain <- function(j) {
    s <- sd(x[, j])
    m <- mean(x[, j])
    theta <- if (j == 2) c(0, 0, 0.5, 0) else c(0, 0, 0, log(0.6))
    mean(density_of(x[, j], theta)$value - dnorm(x[, j], m, s, log = TRUE))
  }
  expect_equal(tails$gain, gain(2) + gain(4), tolerance = 0.05)
})

test_that("weights count", {
  set.seed(3)
  n <- 2000
  x <- matrix(rnorm(2 * n), n)
  x[1:1000, 1] <- sinh(asinh(x[1:1000, 1]) / 0.5)
  heavy <- rep(c(1, 0), each = 1000) / 1000
  normal <- rep(c(0, 1), each = 1000) / 1000
  expect_null(internal("fit_tails")(x, normal, 1000))
  expect_null(internal("fit_tails")(x, normal, 1 - 1e-15)) # a single genealogy, but for rounding
  expect_lt(internal("fit_tails")(x, heavy, 1000)$tail[1], 0.8)
})

test_that("nothing is found in normal columns", {
  set.seed(4)
  for (n in c(100, 1000)) {
    for (repeated in 1:20) {
      x <- standardised(matrix(rnorm(6 * n), n))
      expect_null(internal("fit_tails")(x, rep(1 / n, n), n))
    }
  }
})

test_that("tails must gain more than their parameters do by chance", {
  # of a slightly skew variable the gain is about skewness^2 / 12
  fitted <- function(skewness, n) {
    z <- qnorm(ppoints(2000))
    z <- standardised(cbind(z + skewness / 6 * (z^2 - 1), z))
    internal("fit_tails")(z, rep(1 / 2000, 2000), n)
  }
  # both are beyond four standard errors of the skewness, at a gain of 10 / n and 33 / n; and
  # log(n) is 14
  expect_null(fitted(0.011, 1e6))
  expect_equal(fitted(0.02, 1e6)$gain, 0.02^2 / 12 - log(1e6) / 1e6, tolerance = 0.2)
})

test_that("the evidence of a target with skew and heavy tails is found by its shape", {
  # independent coordinates, of the densities above: Z = 1
  parts <- list(thetas[[2]], thetas[[4]])
  target <- target_function(
    function(x) density_of(x[, 1], parts[[1]])$value + density_of(x[, 2], parts[[2]])$value, 2,
    # by the location, the gradient is minus that by the variable
    gradient = function(x) {
      -cbind(
        density_of(x[, 1], parts[[1]])$gradient[, 1], density_of(x[, 2], parts[[2]])$gradient[, 1]
      )
    },
    vectorized = TRUE
  )
  fit <- calmly(smc(target, n_particles = 512, seed = 1))
  expect_false(is.null(fit$reference$tails))
  expect_true(any(fit$reference$tails$tail < 1))
  expect_log_z(fit, 0)
})

# Columns with these skews, and gradients there.
skewed <- function(z, skew) {
  internal("through_maps")(list(list(
    name = "tails", location = rep(0.2, ncol(z)), scale = rep(0.8, ncol(z)), skew = skew, tail = rep(1, ncol(z))
  )), z, -z)
}

test_that("skew is found by gradients from few points, and normal columns are left", {
  set.seed(5)
  z <- matrix(rnorm(4 * 100), 100)
  skew <- c(0, 0.1, -0.4, 0)
  at <- skewed(z, skew)
  at$x[, c(1, 4)] <- z[, c(1, 4)]
  at$g[, 1] <- -z[, 1] + 0.2 * rnorm(100) # what others do to the gradient
  at$g[, 4] <- -z[, 4]
  found <- internal("fit_skew")(at$x, at$g)
  expect_identical(found$skew[c(1, 4)], c(0, 0))
  expect_identical(found$scale[c(1, 4)], c(1, 1))
  # the search ends where the sum of squares, which is 0 at the truth, falls by less than 2.2e-9, the square of this
  expect_equal(found$skew[2:3], skew[2:3], tolerance = 5e-5)
  expect_equal(found$location[2:3], c(0.2, 0.2), tolerance = 5e-5)
  expect_equal(found$scale[2:3], c(0.8, 0.8), tolerance = 5e-5)
  expect_null(internal("fit_skew")(z, -z))
})

# Logarithms of gamma variables, each with half of the one before added.
shapes_of_logs <- rep(c(1, 2, 5, 20), 65)
log_of_gammas <- function(x) {
  before <- cbind(0, x[, -ncol(x), drop = FALSE])
  z <- x - before / 2
  by_z <- sweep(-exp(z), 2, shapes_of_logs, "+")
  gradient <- by_z - cbind(by_z[, -1, drop = FALSE], 0) / 2
  structure(drop(z %*% shapes_of_logs) - rowSums(exp(z)), gradient = gradient)
}

test_that("hundreds of variables have the skew that their gradients tell, from few draws", {
  set.seed(8)
  d <- length(shapes_of_logs)
  draws <- function(n) {
    x <- log(matrix(rgamma(n * d, rep(shapes_of_logs, each = n)), n))
    for (j in 2:d) x[, j] <- x[, j] + x[, j - 1] / 2
    x
  }
  n <- 600
  x <- draws(n)
  found <- shape_of_draws(x, log_of_gammas)
  tails <- found$reference$tails
  expect_true(all(tails$skew < 0))

  # divergence from the reference, as it is without inflation: standard normal coordinates
  found$reference$inflation <- NULL
  z <- matrix(rnorm(2000 * d), 2000)
  maps <- internal("reference_maps")(found$reference, d)
  target <- target_function(log_of_gammas, d, vectorized = TRUE)
  log_ratio <- evaluate_target(target, z, FALSE, unconstrained = TRUE, maps = maps)$log_density +
    rowSums(z^2) / 2 + d / 2 * log(2 * pi) - sum(lgamma(shapes_of_logs))
  of_skewed <- -mean(log_ratio)
  # that of the normal distribution with the moments of the variables
  x <- draws(2000)
  log_target <- drop(log_of_gammas(x)) - sum(lgamma(shapes_of_logs))
  z <- x - cbind(0, x[, -d]) / 2
  of_normal <- mean(log_target) -
    sum(colMeans(dnorm(z, rep(colMeans(z), each = 2000), rep(apply(z, 2, sd), each = 2000), log = TRUE)))
  expect_gt(of_skewed, 0)
  expect_lt(of_skewed, of_normal / 5)
  expect_null(shape_of_draws(replace(x[1:n, ], 1, 1e90), log_of_gammas))
})

test_that("the inflation is the variance that normal variables have in coordinates in which they should be standard", {
  # z has the gradient -z / v, which is off by z (1 - 1 / v), of mean square (v - 1)^2 / v
  v <- 1.02
  nats <- 7 / 2 * (v - 1)^2 / v
  # |v - 1| / sqrt(v) is v - 1 but for half of its square
  expect_equal(internal("inflation_of")(nats, 1:7, 1), v, tolerance = (v - 1)^2)
  expect_equal(internal("inflation_of")(1e6, 1:7, 1), internal("rules")$inflation)
})
