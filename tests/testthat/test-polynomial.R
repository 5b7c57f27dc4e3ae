# Coordinates that are nearly normal given others, in no form that a sum of simple terms has.

internal <- function(name) get(name, asNamespace("autosmc"))

# Effects u of scale log(1 + exp(t)), each observed once with the error 1, and all correlated by a mean of
# their own that is normal; t is normal, too: x = (t, mean, u).
y <- seq(-2, 3, length.out = 12)
n_effects <- length(y)
log_effects <- function(x) {
  t <- x[, 1]
  mean <- x[, 2]
  scale <- log1p(exp(t))
  z <- (x[, -(1:2), drop = FALSE] - mean) / scale
  off <- rep(y, each = nrow(x)) - x[, -(1:2), drop = FALSE]
  value <- -(t^2 + mean^2 + rowSums(z^2) + rowSums(off^2)) / 2 - n_effects * log(scale) -
    (2 + 2 * n_effects) / 2 * log(2 * pi)
  slope <- (rowSums(z^2) - n_effects) / scale * plogis(t)
  structure(value, gradient = unname(cbind(slope - t, rowSums(z) / scale - mean, off - z / scale)))
}

# Given t the data are normal with the variances 1 + scale^2 and the covariances 1.
log_evidence_of_effects <- local({
  t <- seq(-8, 8, by = 0.01)
  v <- 1 + log1p(exp(t))^2
  square <- (sum(y^2) - sum(y)^2 / (v + n_effects)) / v
  log_y <- -(n_effects * log(2 * pi) + (n_effects - 1) * log(v) + log(v + n_effects) + square) / 2
  log(sum(exp(log_y + dnorm(t, log = TRUE))) * 0.01)
})

set.seed(2)
t <- rnorm(400, 0.5, 0.7)
level <- rnorm(400, 0.4, 0.4)
points <- points_at(
  cbind(t, level, level + log1p(exp(t)) * matrix(rnorm(400 * n_effects), 400), deparse.level = 0), log_effects
)
find_given <- function(points, given, density) {
  at <- internal("driven_by")(internal("probes_among")(points), given, density)
  internal("find_polynomial")(at, density)
}
find <- function(...) find_given(points, ...)
change <- find(1, density_of(log_effects))

test_that("a precision and a mean that depend on others in a smooth way are found", {
  expect_null(internal("find_precision")(internal("probes_among")(points), density_of(log_effects)))
  expect_identical(change$given, 1)
  expect_setequal(change$order, 1 + seq_len(1 + n_effects))
  expect_identical(change$degrees, t(0:3) + 0)
  # of what it makes of standard normal coordinates
  z <- cbind(t, matrix(rnorm(400 * (1 + n_effects)), 400), deparse.level = 0)
  draws <- internal("through_polynomial")(internal("polynomial_map")(change), list(z = z))$z
  space <- internal("space_of")(points_at(draws, log_effects), list(change))
  expect_identical(space$known, sort(change$order))
  expect_null(space$exact) # which it is only near to the draws
  expect_true(internal("is_near")(space, n = 400))
  # far out it is a normal distribution, too
  far <- points$x[1:3, ]
  far[, 1] <- c(-1e3, 0, 1e3)
  expect_true(all(is.finite(unlist(internal("polynomial_factors_at")(change, far)[c("L", "mean", "root_d")]))))
})

test_that("points come back through the map, and their gradients", {
  after <- internal("standardised_by_polynomial")(points, change)
  z <- sweep(after$x, 2, after$mean, "+")
  back <- internal("through_polynomial")(internal("polynomial_map")(change), list(z = z, g = after$g))
  expect_equal(back$z, sweep(points$x, 2, points$mean, "+"))
  expect_equal(back$g, points$g)
})

test_that("all polynomials up to a degree are there, each once", {
  for (k in 1:4) {
    for (degree in 1:3) {
      degrees <- internal("degrees_up_to")(degree, k)
      expect_identical(dim(unique(degrees, MARGIN = 2)), c(k, as.integer(choose(k + degree, degree))))
      expect_lte(max(colSums(degrees)), degree)
    }
  }
})

test_that("none are found where there is no mode, or too few points may be asked for", {
  expect_null(find(integer(0), density_of(log_effects)))
  expect_null(find(seq_len(2 + n_effects), density_of(log_effects)))
  expect_null(find(1, density_of(function(x) structure(rep(-Inf, nrow(x)), gradient = 0 * x))))
  expect_null(find(1, density_of(function(x) structure(rowSums(x^2), gradient = 2 * x))))
  expect_null(find(1, internal("limited_density")(density_of(log_effects), 100)))
})

test_that("a coordinate that is not normal is not taken for one", {
  # the last is uniform but for smooth edges; the others have scales that depend on the first
  log_cut <- function(x) {
    scale <- log1p(exp(x[, 1]))
    z <- x[, 2:12, drop = FALSE] / scale
    edge <- 8 * sinh(x[, 13])^7 * cosh(x[, 13])
    structure(
      -x[, 1]^2 / 2 - rowSums(z^2) / 2 - 11 * log(scale) - sinh(x[, 13])^8,
      gradient = unname(cbind(
        (rowSums(z^2) - 11) / scale * plogis(x[, 1]) - x[, 1], -z / scale, -edge
      ))
    )
  }
  t <- rnorm(400, sd = 0.7)
  x <- cbind(t, log1p(exp(t)) * matrix(rnorm(4400), 400), runif(400, -0.95, 0.95), deparse.level = 0)
  points <- points_at(x, log_cut)
  change <- find_given(points, 1, density_of(log_cut))
  expect_setequal(change$order, 2:13)
  expect_identical(internal("space_of")(points, list(change))$known, 2:12)
})

test_that("effects with such a scale are right", {
  target <- target_function(log_effects, 2 + n_effects, vectorized = TRUE)
  fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 3))
  expect_match(fit$maps, "nearly normal given", all = FALSE)
  expect_log_z(fit, log_evidence_of_effects)
})

# Abilities u with the standard deviation exp(t), each of which n right answers out of 5 tell; t is normal.
n_right <- rep(0:5, 3)
log_abilities <- function(x) {
  t <- x[, 1]
  u <- x[, -1, drop = FALSE]
  right <- rep(n_right, each = nrow(x))
  value <- -(t^2 + rowSums(u^2) * exp(-2 * t)) / 2 - length(n_right) * t -
    (1 + length(n_right)) / 2 * log(2 * pi) +
    rowSums(right * plogis(u, log.p = TRUE) + (5 - right) * plogis(-u, log.p = TRUE))
  by_t <- -t + rowSums(u^2) * exp(-2 * t) - length(n_right)
  structure(value, gradient = unname(cbind(by_t, right - 5 * plogis(u) - u * exp(-2 * t))))
}

# The evidence, by integrals of each ability given t.
log_evidence_of_abilities <- local({
  t <- seq(-7, 7, by = 0.02)
  of_one <- function(n) {
    vapply(t, function(t) {
      integrate(function(z) dnorm(z) * exp(n * plogis(exp(t) * z, log.p = TRUE) +
        (5 - n) * plogis(-exp(t) * z, log.p = TRUE)), -10, 10, rel.tol = 1e-9, subdivisions = 1000)$value
    }, 0)
  }
  given_t <- rowSums(vapply(n_right, function(n) log(of_one(n)), numeric(length(t))))
  log(sum(exp(given_t + dnorm(t, log = TRUE))) * 0.02)
})

abilities_near <- function() {
  set.seed(5)
  t <- rnorm(200, 0.3, 0.4)
  u <- qlogis((n_right + 1) / 7)
  points_at(cbind(t, matrix(rep(u, each = 200) + rnorm(3600), 200), deparse.level = 0), log_abilities)
}

test_that("gradient and slopes have mean zero and minus the precision over the nearest normal distributions", {
  points <- abilities_near()
  density <- density_of(log_abilities)
  at <- internal("given_these")(internal("driven_by")(internal("probes_among")(points), 1, density), 1)
  at$pattern <- internal("pattern_of")(at, density)
  at$colours <- internal("colours_of")(at$pattern)
  small <- 1e-3 * at$step
  ordered <- internal("elimination")(at$pattern)
  nearest <- internal("nearest_normals")(at, 20, ordered, density)
  # E(g) and 1 + E(z g), z standard normal, by the rule of Gauss and Hermite with many nodes; in units in which z has
  # the variance 1
  node <- eigen(local({
    k <- sqrt(seq_len(40))
    M <- matrix(0, 41, 41)
    M[cbind(1:40, 2:41)] <- M[cbind(2:41, 1:40)] <- k
    M
  }))
  off_by <- function(found) {
    sd <- exp(-found$L / 2) # the precision is diagonal
    off <- array(0, c(2, dim(sd)))
    for (i in seq_along(node$values)) {
      x <- found$x
      x[, at$others[ordered$order]] <- x[, at$others[ordered$order]] + node$values[i] * sd
      g <- sd * density(x)$gradient[, at$others[ordered$order]]
      off[1, , ] <- off[1, , ] + node$vectors[1, i]^2 * g
      off[2, , ] <- off[2, , ] + node$vectors[1, i]^2 * node$values[i] * g
    }
    c(max(abs(off[1, , ])), max(abs(1 + off[2, , ])))
  }
  at$x <- nearest$x
  at$step <- small
  for (step in 1:6) {
    at_mode <- internal("normals_at")(at, ordered, density)
    at$x <- at_mode$x
  }
  expect_gt(nrow(nearest$x), 15)
  expect_true(all(off_by(at_mode) > 0.05)) # which skew distributions are
  expect_true(all(off_by(nearest) < off_by(at_mode) / 3))
})

test_that("a nearer space is looked for where the one found is near by chance alone", {
  points <- abilities_near()
  density <- density_of(log_abilities)
  # in so many variables two draws allow for 47 nats
  at <- internal("probes_among")(points)
  at <- internal("with_drivers")(internal("with_nats")(at, density), density)
  space <- internal("space_of")(points, internal("changes_to_near")(points, at, density))
  expect_true(internal("is_near")(space, n = 2))
  expect_gt(space$nats, 1)
  nearer <- internal("near_space")(points, list(), density, n = 2)
  expect_identical(vapply(nearer$changes, `[[`, "", "kind"), c("precision", "polynomial"))
  expect_lt(nearer$nats, space$nats)
})

test_that("beyond the draws, where polynomials bend off, the precision before them is right", {
  points <- abilities_near()
  density <- density_of(log_abilities)
  after_precision <- internal("near_space")(points, list(), density, n = 2)$changes
  polynomial <- internal("polynomial_space")(points, list(), 1, density)$changes
  # where the scale is next to 0 the abilities are normal given it
  z <- cbind(-4, matrix(rnorm(200 * length(n_right)), 200), deparse.level = 0)
  nats <- function(changes) {
    draws <- internal("through_each")(internal("change_maps")(changes, ncol(z)), list(z = z))$z
    after <- internal("changed")(points_at(draws, log_abilities), changes)
    expect_equal(sweep(after$x, 2, after$mean, "+"), z)
    mean(rowSums((z + after$g)[, -1]^2)) / 2
  }
  expect_lt(nats(after_precision), 1)
  expect_gt(nats(polynomial), 1000)
})

test_that("variables with a skew are drawn with it when the density is compared to a reference's", {
  # logarithms of gamma variables of shape 6, moved by a normal one with variance 0.1
  log_rates <- function(x) {
    v <- x[, -1, drop = FALSE] - x[, 1]
    slope <- 6 - exp(v)
    structure(rowSums(6 * v - exp(v)) - 5 * x[, 1]^2, gradient = cbind(-rowSums(slope) - 10 * x[, 1], slope))
  }
  set.seed(3)
  t <- rnorm(200, sd = sqrt(0.1))
  x <- cbind(t, t + log(matrix(rgamma(200 * 600, 6), 200)), deparse.level = 0)
  density <- density_of(log_rates)
  space <- internal("polynomial_space")(points_at(x, log_rates), list(), 1, density)
  expect_lt(space$nats, 3)
  # a little for each adds up, and would pass for a wall
  space$normal$skew <- NULL
  expect_true(internal("falls_off")(space, density))
})

test_that("means of gradients and slopes are exact for polynomials of the fourth degree", {
  # log density -u^4 / 4 + u^3 - 8 u^2 of each of two, given another
  log_density <- function(x) {
    u <- x[, 2:3]
    structure(
      rowSums(-u^4 / 4 + u^3 - 8 * u^2) - x[, 1]^2 / 2,
      gradient = cbind(-x[, 1], -u^3 + 3 * u^2 - 16 * u)
    )
  }
  x <- cbind(0, c(-1, 0.5), c(0.2, 2))
  spread <- cbind(c(0.5, 1), c(0.3, 0.2))
  at <- list(x = x, given = 1, others = 2:3, colours = list(colour = c(1, 1), alone = c(FALSE, FALSE)), spread = spread)
  lower <- cbind(1:2, 1:2)
  found <- internal("conditional_normals")(at, lower, density_of(log_density))
  u <- x[, 2:3]
  mean_gradient <- -(u^3 + 3 * u * spread^2) + 3 * (u^2 + spread^2) - 16 * u
  precision <- 3 * (u^2 + spread^2) - 6 * u + 16
  expect_equal(found$y, cbind(precision, mean_gradient + precision * u))
})

test_that("abilities of which few answers tell are right, and skew", {
  target <- target_function(log_abilities, 1 + length(n_right), vectorized = TRUE)
  fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 1))
  expect_log_z(fit, log_evidence_of_abilities)
  expect_true(any(fit$reference$tails$skew != 0))
})

test_that("the nearest normal distribution of all variables is a target that is normal", {
  set.seed(3)
  d <- 6
  precision <- crossprod(matrix(rnorm(d^2), d)) + diag(d)
  mean <- rnorm(d)
  log_normal <- function(x) {
    off <- sweep(x, 2, mean)
    structure(-rowSums((off %*% precision) * off) / 2, gradient = -off %*% precision)
  }
  x <- matrix(rnorm(50 * d), 50) # not draws of it
  points <- list(x = x, g = attr(log_normal(x), "gradient"), w = rep(1 / 50, 50), mean = numeric(d))
  found <- internal("nearest_of_all")(points, density_of(log_normal))
  expect_equal(found$mean, mean)
  expect_equal(tcrossprod(found$L), solve(precision))
  expect_equal(found$L[upper.tri(found$L)], numeric(d * (d - 1) / 2))
})

test_that("there is no nearest normal distribution where the density is not concave", {
  log_saddle <- function(x) structure(x[, 1] * x[, 2], gradient = x[, 2:1])
  points <- list(x = diag(2), g = diag(2)[2:1, ], w = c(0.5, 0.5), mean = numeric(2))
  expect_null(internal("nearest_of_all")(points, density_of(log_saddle)))
})
