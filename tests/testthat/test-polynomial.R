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
    edge <- 4 * sinh(x[, 13])^3 * cosh(x[, 13])
    structure(
      -x[, 1]^2 / 2 - rowSums(z^2) / 2 - 11 * log(scale) - sinh(x[, 13])^4,
      gradient = unname(cbind(
        (rowSums(z^2) - 11) / scale * plogis(x[, 1]) - x[, 1], -z / scale, -edge
      ))
    )
  }
  t <- rnorm(400, sd = 0.7)
  x <- cbind(t, log1p(exp(t)) * matrix(rnorm(4400), 400), runif(400, -1, 1), deparse.level = 0)
  points <- points_at(x, log_cut)
  change <- find_given(points, 1, density_of(log_cut))
  expect_setequal(change$order, 2:13)
  expect_identical(internal("space_of")(points, list(change))$known, 2:12)
})

test_that("effects with such a scale are right", {
  target <- target_function(log_effects, 2 + n_effects, vectorized = TRUE)
  fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 3))
  expect_match(fit$maps, "nearly normal given", all = FALSE)
  expect_lt(fit$std_error, 0.05)
  expect_lt(abs(fit$log_z - log_evidence_of_effects), errors_for(3) * fit$std_error)
})
