# helpers ------------------------------------------------------------------

# Gradient by central differences, extrapolated to step size 0 (Richardson).
numeric_gradient <- function(target, x, coordinates, step = 0.02, levels = 5) {
  steps <- step / 2^(seq_len(levels) - 1)
  vapply(coordinates, function(i) {
    shifts <- c(steps, -steps)
    points <- matrix(x, 2 * levels, length(x), byrow = TRUE)
    points[, i] <- points[, i] + shifts
    values <- evaluate_target(target, points, gradient = FALSE)$log_density
    slopes <- (values[seq_len(levels)] - values[levels + seq_len(levels)]) /
      (2 * steps)
    for (k in seq_len(levels - 1)) {
      slopes <- (4^k * slopes[-1] - slopes[-length(slopes)]) / (4^k - 1)
    }
    slopes
  }, numeric(1))
}

# The largest error, relative to the largest element of the gradient.
expect_true_gradient <- function(target, x, coordinates = seq_along(x)) {
  gradient <- drop(evaluate_target(target, rbind(x))$gradient)
  numeric <- numeric_gradient(target, x, coordinates)
  error <- max(abs(gradient[coordinates] - numeric)) / max(abs(gradient))
  expect_lt(error, 1e-7)
}

expect_log_density <- function(target, points, log_density) {
  value <- evaluate_target(target, points, gradient = FALSE)$log_density
  expect_equal(value, apply(points, 1, log_density), tolerance = 1e-12)
}

# One call with all points must agree with one call a point.
expect_same_in_one_call <- function(target, points) {
  together <- evaluate_target(target, points)
  alone <- lapply(seq_len(nrow(points)), function(i) {
    evaluate_target(target, points[i, , drop = FALSE])
  })
  log_density <- vapply(alone, function(a) a$log_density, numeric(1))
  gradient <- do.call(rbind, lapply(alone, function(a) a$gradient))
  expect_equal(together$log_density, log_density, tolerance = 1e-12)
  expect_equal(
    unname(together$gradient), unname(gradient),
    tolerance = 1e-12
  )
  without <- evaluate_target(target, points, gradient = FALSE)
  expect_equal(without$log_density, together$log_density, tolerance = 1e-12)
}

normal_points <- function(n, dim, sd = 1) {
  matrix(rnorm(n * dim, sd = sd), n, dim)
}

expect_at_zero <- function(target, dim, log_density, squared_gradient) {
  value <- evaluate_target(target, matrix(0, 1, dim))
  expect_equal(value$log_density, log_density, tolerance = 1e-11)
  expect_equal(sum(value$gradient^2), squared_gradient, tolerance = 1e-11)
}

# Gaussian -----------------------------------------------------------------

test_that("the Gaussian is a product of normals", {
  set.seed(1)
  mean <- c(1, -2, 0.5)
  sd <- c(0.3, 2, 1)
  target <- target_gaussian(3, mean, sd)
  points <- normal_points(5, 3)
  expect_log_density(target, points, function(x) {
    sum(dnorm(x, mean, sd, log = TRUE))
  })
  for (i in 1:5) expect_true_gradient(target, points[i, ])
  expect_same_in_one_call(target, normal_points(300, 3))
})

test_that("the Gaussian recycles one mean and one sd", {
  points <- matrix(c(0.5, -1, 2, 0), 1)
  expect_log_density(target_gaussian(4, 2L, 3L), points, function(x) {
    sum(dnorm(x, 2, 3, log = TRUE))
  })
  expect_log_density(target_gaussian(4), points, function(x) {
    sum(dnorm(x, log = TRUE))
  })
})

test_that("the Gaussian names a wrong argument", {
  expect_error(target_gaussian(0), "dim")
  expect_error(target_gaussian(2.5), "dim")
  expect_error(target_gaussian(1.7e9), "from 1 to 10000000") # not a lack of memory
  expect_error(target_gaussian(3, mean = 1:2), "mean")
  expect_error(target_gaussian(3, mean = NA_real_), "mean")
  expect_error(target_gaussian(3, sd = 0), "sd")
  expect_error(target_gaussian(3, sd = c(1, 1)), "sd")
})

# Funnel -------------------------------------------------------------------

test_that("the funnel has the known values at 0", {
  expect_at_zero(target_funnel(), 10, -10.2879976207, 20.25)
})

test_that("the funnel is normal given its first coordinate", {
  set.seed(2)
  points <- normal_points(8, 10)
  target <- target_funnel()
  expect_log_density(target, points, function(x) {
    dnorm(x[1], 0, 3, log = TRUE) +
      sum(dnorm(x[-1], 0, exp(x[1] / 2), log = TRUE))
  })
  for (i in 1:8) expect_true_gradient(target, points[i, ])
  expect_same_in_one_call(target, normal_points(300, 10))
})

test_that("the funnel survives overflow", {
  points <- rbind(c(-1000, 1), c(1e308, 1e308), c(0, 0))
  value <- evaluate_target(target_funnel(2), points)$log_density
  expect_equal(value[1], -Inf)
  expect_false(is.finite(value[2]))
  expect_true(is.finite(value[3]))
})

test_that("the funnel wants two dimensions", {
  expect_error(target_funnel(1), "dim")
})

# Brownian -----------------------------------------------------------------

brownian_y <- c(
  0.21592641, 0.118771404, -0.07945447, 0.037677474, -0.27885845,
  -0.1484156, -0.3250906, -0.22957903, -0.44110894, -0.09830782,
  -0.8786016, -0.83736074, -0.7384849, -0.8939254, -0.7774566,
  -0.70238715, -0.87771565, -0.51853573, -0.6948214, -0.6202789
)

test_that("the Brownian motion has the known values at 0", {
  expect_at_zero(target_brownian(), 32, -38.1438076936, 528.013608369)
})

test_that("the Brownian motion is its model", {
  set.seed(3)
  points <- normal_points(8, 32)
  target <- target_brownian()
  expect_log_density(target, points, function(x) {
    scale <- log1p(exp(x[31:32]))
    sum(dlnorm(scale, 0, 2, log = TRUE)) +
      sum(plogis(x[31:32], log.p = TRUE)) +
      sum(dnorm(x[1:30], c(0, x[1:29]), scale[1], log = TRUE)) +
      sum(dnorm(brownian_y, x[c(1:10, 21:30)], scale[2], log = TRUE))
  })
  for (i in 1:8) expect_true_gradient(target, points[i, ])
  expect_same_in_one_call(target, normal_points(300, 32))
})

test_that("the Brownian motion is exact at extreme scales", {
  # With all positions at 0 only the 30 log a and the prior of a are left.
  extreme <- function(theta) {
    log_a <- if (theta < 0) theta else log(theta)
    log_jacobian <- min(theta, 0)
    -30 * (log_a + log(2 * pi) / 2) + log_jacobian +
      dnorm(log_a, 0, 2, log = TRUE) - log_a
  }
  rest <- evaluate_target(target_brownian(), matrix(0, 1, 32))$log_density -
    (dlnorm(log(2), 0, 2, log = TRUE) - log(2) +
      30 * dnorm(0, 0, log(2), log = TRUE))
  for (theta in c(-1e4, -745, -700, -400, -45, 45, 700, 1e4, 1e160)) {
    x <- replace(numeric(32), 31, theta)
    value <- evaluate_target(target_brownian(), rbind(x))
    expect_equal(value$log_density, rest + extreme(theta), tolerance = 1e-12)
    expect_false(anyNA(value$gradient))
  }
})

# Sonar --------------------------------------------------------------------

test_that("the sonar data are as they should be", {
  expect_equal(dim(sonar), c(208, 61))
  expect_equal(as.vector(table(sonar$Class)), c(111, 97))
})

test_that("the sonar posterior has the known values at 0", {
  expect_at_zero(target_sonar(), 61, -200.229864082, 26693.0073052)
})

test_that("the sonar posterior is a logistic regression", {
  set.seed(4)
  design <- cbind(scale(as.matrix(sonar[1:60])), 1)
  sign <- ifelse(sonar$Class == "R", 1, -1)
  points <- rbind(normal_points(4, 61), normal_points(4, 61, sd = 20))
  target <- target_sonar()
  expect_log_density(target, points, function(x) {
    sum(dnorm(x, log = TRUE)) +
      sum(plogis(sign * drop(design %*% x), log.p = TRUE))
  })
  for (i in 1:4) expect_true_gradient(target, points[i, ])
  expect_same_in_one_call(target, normal_points(300, 61))
})

# Pines --------------------------------------------------------------------

test_that("the pines are in the unit square, and all are counted", {
  expect_equal(dim(pines), c(126, 2))
  expect_true(all(pines >= 0 & pines <= 1))
  expect_equal(sum(grid_counts(pines, 40)), 126)
  corners <- data.frame(x = c(0, 1, 0, 1, 1), y = c(0, 0, 1, 1, 0.4))
  expect_equal(grid_counts(corners, 2), c(1, 2, 1, 1))
})

test_that("the pines posterior is its model", {
  set.seed(5)
  for (side in c(40, 3)) {
    d <- side^2
    cells <- expand.grid(x = seq_len(side), y = seq_len(side))
    covariance <- 1.91 * exp(-33 * as.matrix(dist(cells)) / side)
    chol <- t(chol(covariance))
    x_cell <- cut(pines$x, 0:side / side, include.lowest = TRUE)
    y_cell <- cut(pines$y, 0:side / side, include.lowest = TRUE)
    counts <- as.vector(table(x_cell, y_cell))
    points <- normal_points(3, d)
    target <- target_pines(side)
    expect_log_density(target, points, function(z) {
      f <- drop(chol %*% z) + log(126) - 1.91 / 2
      sum(dnorm(z, log = TRUE)) + sum(f * counts - exp(f) / d)
    })
    expect_true_gradient(target, points[1, ], unique(pmin(c(1, 2, 41, 777, 1600), d)))
    expect_same_in_one_call(target, points)
  }
  expect_error(target_pines(0), "side", class = "autosmc_error_input")
})

test_that("a routine without its context returns a code", {
  for (name in paste0("target_", c("gaussian", "sonar", "pines", "bridgestan"))) {
    error <- catch(smc_plain(target_native(name, "autosmc", dim = 3), n_particles = 16))
    expect_s3_class(error, "autosmc_error_target")
    expect_match(message_of(error), "returned the code 2")
    for (data in list(NULL, list(), list(1L, 1L, 1L, 1L), "a")) {
      init <- paste0(name, "_init")
      without <- target_native(name, "autosmc", dim = 3, init = init, data = data)
      expect_s3_class(catch(smc_plain(without, n_particles = 16)), "autosmc_error_target")
    }
  }
})
