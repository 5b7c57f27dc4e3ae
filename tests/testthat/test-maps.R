# The maps of a reference, both ways, and against differences.

d <- 4
n <- 50
set.seed(3)

tails <- list(
  name = "tails", location = rnorm(4) / 5, scale = exp(rnorm(4) / 5), skew = rnorm(4) / 3, tail = c(0.5, 1, 1.3, 1)
)
feature_of <- internal("feature_of")
of_one <- list(
  name = "moments", order = c(4, 1),
  features = cbind(
    internal("constant_feature"), feature_of(2, "linear", 0.8, 0.3), feature_of(3, "square", 0.5), feature_of(2, "cube", 0.4),
    feature_of(3, "exponential", -0.3), feature_of(3, "softplus", 2, 0.6),
    internal("product_of_features")(feature_of(2, "linear"), feature_of(3, "softplus", -1))
  ),
  location = matrix(rnorm(14) / 4, 2), log_scale = matrix(rnorm(14) / 8, 2)
)
of_last <- list(
  name = "moments", order = 2, features = feature_of(3, "linear"), location = matrix(0.5), log_scale = matrix(-0.3)
)
axes <- diag(4)
axes[-3, -3] <- qr.Q(qr(matrix(rnorm(9), 3)))
rotation <- list(name = "rotation", axes = axes)
precision <- list(
  name = "precision", kind = "precision", given = 2, order = c(4, 1, 3),
  entries = rbind(c(1, 0, 0), c(2, 4, 0), c(3, 5, 6)),
  factors = array(c(numeric(5), -0.5, 2, 0, 0, 1, 0.3, 0, 2, 0.5, 0), c(5, 1, 3)),
  precision = cbind(c(2, 0.5, -0.4, 1.5, 0.3, 1), c(0.8, -0.2, 0.1, 0.9, 0.2, 0.7), 0.1),
  pull = cbind(c(0.5, -0.2, 0), c(0.3, 0.1, -1), c(0, 0.7, 0.2)), least = rep(1e-3, 3)
)

z <- matrix(rnorm(n * d), n)

# References with maps of all kinds.
normal <- internal("with_chol")(reference_gaussian(1:4), t(chol(crossprod(matrix(rnorm(20), 5)))))
with_maps <- function(..., reference = normal) {
  reference$maps <- list(...)
  reference
}
inflated <- with_maps(tails, of_last, of_one)
inflated$inflation <- c(1.2, 2, 2, 1.2)
changed <- with_maps(tails)
changed$changes <- list(precision)
references <- list(
  inflated, with_maps(of_one), with_maps(rotation, of_last), with_maps(tails), with_maps(of_last, precision, rotation),
  reference_gaussian(1:4, sd = c(0.5, 1, 2, 3)), reference_gaussian(), changed
)

target <- target_function(
  function(x) -rowSums((x - 1)^2) / 8 + sin((x[, 1] + x[, 4]) / 4), d,
  gradient = function(x) -(x - 1) / 4 + outer(cos((x[, 1] + x[, 4]) / 4) / 4, c(1, 0, 0, 1)),
  vectorized = TRUE
)

at_z <- function(reference, z) {
  evaluate_in <- internal("evaluate_target")
  evaluate_in(target, z, unconstrained = TRUE, maps = internal("reference_maps")(reference, d))
}

test_that("gradients in the coordinates of a reference are those of the density there", {
  width <- 1e-5
  for (reference in references) {
    found <- at_z(reference, z)$gradient
    for (j in seq_len(d)) {
      step <- width * (col(z) == j)
      plus <- at_z(reference, z + step)$log_density
      minus <- at_z(reference, z - step)$log_density
      slope <- (plus - minus) / (2 * width)
      expect_lt(max(abs(found[, j] - slope) / (1 + abs(slope))), 1e-6)
    }
  }
})

test_that("points and gradients go through the maps, and come back", {
  for (reference in references) {
    record <- list(
      coordinates = z, gradients = at_z(reference, z)$gradient, reference = reference
    )
    found <- internal("target_gradients")(record, seq_len(n))
    maps <- internal("reference_maps")(reference, d)
    out <- internal("forward_maps")(maps, z, record$gradients)
    direct <- internal("evaluate_target")(target, out$x, unconstrained = TRUE)
    expect_lt(max(abs(found - direct$gradient) / (1 + abs(direct$gradient))), 1e-9)
    expect_equal(out$log_jacobian, at_z(reference, z)$log_density - direct$log_density)
    # and back
    back <- internal("inverse_maps")(maps, out$x, out$g)
    expect_equal(back, list(x = z, g = record$gradients, log_jacobian = -out$log_jacobian))
    expect_identical(internal("forward_maps")(maps, z)$x, out$x)
    # for some of the particles
    expect_equal(internal("target_gradients")(record, 7:3), found[7:3, ])
  }
  expect_null(internal("target_gradients")(replace(record, "gradients", list(NULL)), 1:3))
  record$gradients[2, 1] <- NaN
  expect_null(internal("target_gradients")(record, 1:3))
  expect_false(is.null(internal("target_gradients")(record, 3:5)))
})

test_that("the density of a reference is that of its draws: the target has all its evidence", {
  # one step without a move: importance sampling from the reference
  normal <- target_gaussian(d, mean = 1:4, sd = 0.5)
  for (reference in references[1:6]) { # the others are too far from the target
    fit <- calmly(smc_run(normal, data.frame(lambda = 1, step_size = 1e-30),
      kernel = kernel_rwmh(), reference = reference, n_particles = 2e5, islands = 1, seed = 5
    ))
    # the error of one island is what its weights predict
    limit <- errors_for(Inf) * fit$islands$predicted_sd
    expect_lt(limit, 0.5)
    expect_lt(abs(exp(fit$log_z) - 1), limit)
  }
})
