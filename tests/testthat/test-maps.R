# The maps of a reference, both ways, and against differences.

d <- 4
n <- 50
set.seed(3)

# A reference with maps of all kinds.
shaped <- internal("with_chol")(
  reference_gaussian(1:4), t(chol(crossprod(matrix(rnorm(20), 5))))
)
shaped$conditional <- list(
  conditioning = 2:3, offset = c(0.2, 0, 0, -0.3),
  shift = cbind(c(0.5, 0, 0, 0.2), c(-0.1, 0, 0, 0.4)),
  slope = cbind(c(0.3, 0, 0, -0.2), c(0.1, 0, 0, 0.2)),
  curve = cbind(c(0.2, 0, 0, 0.1), c(0.05, 0, 0, -0.1))
)
shaped$tails <- list(
  location = rnorm(4) / 5, scale = exp(rnorm(4) / 5), skew = rnorm(4) / 3,
  tail = c(0.5, 1, 0.8, 1)
)
shaped$inflation <- c(1.2, 2, 2, 1.2)
z <- matrix(rnorm(n * d), n)

without <- function(reference, ...) {
  for (part in c(...)) reference[[part]] <- NULL
  reference
}
uncurved <- shaped
uncurved$conditional$curve <- NULL
kneed <- shaped
kneed$conditional[c("bent", "width", "place")] <- list(c(1, 2, 2), c(0.4, 0, 2), c(0.6, 0, -0.3))
kneed$conditional$curve <- cbind(kneed$conditional$curve, c(0.3, 0, 0, 0.2))
neck <- shaped
neck$conditional <- list(
  kind = "neck", conditioning = 3, rate = 0.8, centre_of_share = c(-0.5, 0.3, 0, 1),
  bend = c(0.5, 0.3, 0, 0), pull = c(0.5, 0, 0, -0.4), scale = c(1.3, 1.1, 1, 0.9)
)
neck$conditional$axes <- local({
  axes <- diag(4)
  axes[-3, -3] <- qr.Q(qr(matrix(rnorm(9), 3)))
  axes
})
two_scales <- neck
two_scales$conditional$conditioning <- c(3, 1)
two_scales$conditional[c("bend", "pull", "slope")] <- list(
  c(0, 0.3, 0, 1), c(0, 0.5, 0, -0.4), cbind(c(0, 0.3, 0, 0.2), c(0, -0.2, 0, 0.1))
)
normal_given <- without(shaped, "conditional")
normal_given$changes <- list(list(
  name = "precision", kind = "precision", given = 2, order = c(4, 1, 3),
  entries = rbind(c(1, 0, 0), c(2, 4, 0), c(3, 5, 6)),
  factors = array(c(numeric(5), -0.5, 2, 0, 0, 1, 0.3, 0, 2, 0.5, 0), c(5, 1, 3)),
  precision = cbind(c(2, 0.5, -0.4, 1.5, 0.3, 1), c(0.8, -0.2, 0.1, 0.9, 0.2, 0.7), 0.1),
  pull = cbind(c(0.5, -0.2, 0), c(0.3, 0.1, -1), c(0, 0.7, 0.2)), least = rep(1e-3, 3)
))
closing <- neck # on the other side
closing$conditional$rate <- -0.5
polynomial <- without(shaped, "conditional")
polynomial$changes <- list(list(
  name = "polynomial", near = TRUE, given = c(1, 3), order = c(4, 2), entries = rbind(c(1, 0), c(2, 3)),
  centre = c(0.3, -0.5), width = c(2, 0.7), degrees = cbind(0, c(1, 0), c(0, 3), c(2, 1)),
  factor = matrix(rnorm(12) / 2, 3), mean = matrix(rnorm(8) / 2, 2)
))
references <- list(
  shaped, uncurved, kneed, neck, two_scales, closing, without(shaped, "tails"), without(shaped, "conditional", "inflation"),
  reference_gaussian(1:4, sd = c(0.5, 1, 2, 3)), reference_gaussian(), normal_given, polynomial
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
    out <- internal("through_maps")(maps, z, record$gradients)
    direct <- internal("evaluate_target")(target, out$x, unconstrained = TRUE)
    expect_lt(max(abs(found - direct$gradient) / (1 + abs(direct$gradient))), 1e-9)
    expect_equal(out$log_jacobian, at_z(reference, z)$log_density - direct$log_density)
    # and back
    back <- internal("before_maps")(maps, out$x, out$g)
    expect_equal(back, list(x = z, g = record$gradients, log_jacobian = -out$log_jacobian))
    expect_identical(internal("through_maps")(maps, z)$x, out$x)
    # for some of the particles
    expect_equal(internal("target_gradients")(record, 7:3), found[7:3, ])
  }
  expect_null(internal("target_gradients")(without(record, "gradients"), 1:3))
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
