# Coordinates that a model has as multiples of scales, mixed by correlations.

# Counts of groups that differ in their intercept and slope: x = (t1, t2, r, z1, z2), where
# u1 = exp(t1) z1, and u2 = exp(t2) (tanh(r) z1 + z2 / cosh(r)).
n_groups <- 16
design <- c(-1, 0.3, 1.2)
with_fixed_seed <- internal("with_seed")
counts <- with_fixed_seed(5, {
  u1 <- 0.5 * rnorm(n_groups)
  u2 <- 0.2 * u1 + 0.4 * rnorm(n_groups)
  matrix(rpois(3 * n_groups, exp(0.5 + u1 + outer(u2, design))), n_groups)
})
first <- 3 + seq_len(n_groups)
second <- first + n_groups
mixed <- function(x) {
  z1 <- x[, first, drop = FALSE]
  z2 <- x[, second, drop = FALSE]
  list(u1 = exp(x[, 1]) * z1, u2 = exp(x[, 2]) * (tanh(x[, 3]) * z1 + z2 / cosh(x[, 3])))
}
log_counts <- function(x) {
  x <- unname(x)
  u <- mixed(x)
  value <- -rowSums(x[, -(1:3), drop = FALSE]^2) / 2 - rowSums((x[, 1:2, drop = FALSE] + 1)^2) - x[, 3]^2
  f1 <- f2 <- 0 * u$u1
  for (i in seq_along(design)) {
    log_rate <- 0.5 + u$u1 + u$u2 * design[i]
    y <- rep(counts[, i], each = nrow(x))
    value <- value + rowSums(y * log_rate - exp(log_rate))
    f1 <- f1 + y - exp(log_rate)
    f2 <- f2 + (y - exp(log_rate)) * design[i]
  }
  s1 <- exp(x[, 1])
  s2 <- exp(x[, 2])
  r <- x[, 3]
  by_r <- s2 * rowSums(f2 * (x[, first, drop = FALSE] / cosh(r)^2 - x[, second, drop = FALSE] * tanh(r) / cosh(r)))
  structure(value, gradient = cbind(
    rowSums(f1 * u$u1) - 2 * (x[, 1] + 1), rowSums(f2 * u$u2) - 2 * (x[, 2] + 1), by_r - 2 * r,
    s1 * f1 + s2 * tanh(r) * f2 - x[, first, drop = FALSE],
    s2 / cosh(r) * f2 - x[, second, drop = FALSE]
  ))
}

# By quadrature of each group's z, and then over t1, t2 and r.
log_evidence_of_counts <- local({
  z <- seq(-5, 5, by = 0.5)
  z <- expand.grid(z1 = z, z2 = z)
  log_weight <- -(z$z1^2 + z$z2^2) / 2 + log(0.25)
  t <- seq(-4, 2, by = 0.3)
  r <- seq(-3, 3, by = 0.3)
  given <- expand.grid(t1 = t, t2 = t, r = r)
  log_values <- mapply(function(t1, t2, r) {
    u1 <- exp(t1) * z$z1
    u2 <- exp(t2) * (tanh(r) * z$z1 + z$z2 / cosh(r))
    log_rate <- 0.5 + u1 + outer(u2, design)
    l <- tcrossprod(log_rate, counts) - rowSums(exp(log_rate)) + log_weight
    sum(log(colSums(exp(l)))) - (t1 + 1)^2 - (t2 + 1)^2 - r^2
  }, given$t1, given$t2, given$r)
  max(log_values) + log(sum(exp(log_values - max(log_values)))) + 3 * log(0.3)
})

found_in <- function(points, log_density) {
  at <- internal("with_nats")(internal("probes_among")(points), density_of(log_density))
  internal("find_products")(at, density_of(log_density))
}
around <- with_fixed_seed(6, {
  x <- matrix(rnorm(400 * (3 + 2 * n_groups)), 400)
  x[, 1:3] <- rep(c(-0.7, -1, 0.3), each = 400) + 0.3 * x[, 1:3]
  x
})
after <- function(points, products) {
  points <- internal("changed")(points, list(products))
  points$x <- sweep(points$x, 2, points$mean, "+")
  points
}

test_that("products are what the likelihood knows, but for a constant factor", {
  points <- points_at(around, log_counts)
  products <- found_in(points, log_counts)
  expect_setequal(internal("scales_of")(products), 1:3)
  expect_setequal(products$order, c(first, second))
  u <- mixed(around)
  made <- after(points, products)$x
  expect_equal(made[, 1:3], around[, 1:3])
  for (group in seq_len(n_groups)) {
    known <- cbind(u$u1[, group], u$u2[, group])
    expect_lt(max(abs(qr.resid(qr(known), made[, c(first, second)[group + c(0, n_groups)]]))), 1e-11)
  }
  # and back
  back <- internal("through_maps")(list(products), made)$x
  expect_equal(back, around, tolerance = 1e-12)
})

test_that("a scale may be any of the simple functions", {
  y <- with_fixed_seed(7, rpois(30, exp(0.4 + 0.5 * rnorm(30))))
  # x = (mu, t, z): theta = mu + 3 / (1 + exp(-t)) z
  bounded <- function(x) {
    x <- unname(x)
    scale <- 3 * plogis(x[, 2])
    z <- x[, -(1:2), drop = FALSE]
    theta <- x[, 1] + scale * z
    slope <- rep(y, each = nrow(x)) - exp(theta)
    structure(
      drop(theta %*% y) - rowSums(exp(theta)) - rowSums(z^2) / 2 - x[, 1]^2 / 2 - x[, 2]^2 / 2,
      gradient = cbind(
        rowSums(slope) - x[, 1], scale * plogis(-x[, 2]) * rowSums(slope * z) - x[, 2], scale * slope - z
      )
    )
  }
  x <- with_fixed_seed(8, cbind(0.4 + 0.2 * rnorm(300), -1.5 + 0.5 * rnorm(300), matrix(rnorm(9000), 300)))
  points <- points_at(x, bounded)
  products <- found_in(points, bounded)
  # the mean moves all counts, but it is no scale; neither are those of one left out, of which f is 0 at 0
  expect_identical(internal("scales_of")(products), 2L)
  expect_setequal(products$order, 3:32)
  made <- after(points, products)$x[, 3:32]
  expect_equal(made / (plogis(x[, 2]) * x[, 3:32]), matrix(made[1] / (plogis(x[1, 2]) * x[1, 3]), 300, 30))
})

test_that("where nothing is a multiple of a scale no products are found", {
  y <- with_fixed_seed(9, rpois(20, 3))
  one_mean <- function(x) {
    x <- unname(x)
    rate <- exp(x[, 1] + x[, 2])
    slope <- sum(y) - 20 * rate
    structure(x[, 1] * sum(y) + x[, 2] * sum(y) - 20 * rate - rowSums(x^2) / 2, gradient = slope - x)
  }
  x <- with_fixed_seed(10, 0.5 + matrix(rnorm(400), 200))
  expect_null(found_in(points_at(x, one_mean), one_mean))
  # effects that are centred
  centred <- function(x) {
    x <- unname(x)
    theta <- x[, -1, drop = FALSE]
    scaled <- exp(-2 * x[, 1]) * theta
    structure(
      drop(theta %*% y) - rowSums(exp(theta)) - rowSums(scaled * theta) / 2 - 20 * x[, 1] - x[, 1]^2 / 2,
      gradient = cbind(rowSums(scaled * theta) - 20 - x[, 1], rep(y, each = nrow(x)) - exp(theta) - scaled)
    )
  }
  x <- with_fixed_seed(11, cbind(0.2 * rnorm(200), 1 + 0.5 * matrix(rnorm(4000), 200)))
  expect_null(found_in(points_at(x, centred), centred))
  without <- points_at(x, centred)
  without["g"] <- list(NULL)
  expect_null(found_in(without, centred))
})

names_of_counts <- c("t1", "t2", "r", paste0("z1_", seq_len(n_groups)), paste0("z2_", seq_len(n_groups)))

# By products or by polynomials: which of them is nearer is up to the draws.
test_that("effects mixed by a correlation are right", {
  target <- target_function(log_counts, 3 + 2 * n_groups, names = names_of_counts, vectorized = TRUE)
  fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 1))
  expect_match(fit$maps, "32 variables .* are nearly normal given t1, t2, r", all = FALSE)
  expect_log_z(fit, log_evidence_of_counts)
})
