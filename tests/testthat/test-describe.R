# The shape of a posterior in words and as a picture.

funnel <- calmly(smc(target_funnel(4), n_particles = 256, islands = 4, seed = 1))

# x given log tau: multiples of tau, and one variable that is none.
noncentred_target <- function() {
  y <- c(1.2, -0.4, 0.8, 2)
  target_function(
    function(x) {
      theta <- x[, 1] + exp(x[, 2]) * x[, 3:6, drop = FALSE]
      rowSums(dnorm(x[, c(1, 3:6), drop = FALSE], log = TRUE)) + dnorm(x[, 2], log = TRUE) +
        rowSums(matrix(dnorm(t(theta), y, 0.5, log = TRUE), ncol = 4, byrow = TRUE))
    },
    gradient = function(x) {
      tau <- exp(x[, 2])
      z <- x[, 3:6, drop = FALSE]
      by_theta <- t(y - t(x[, 1] + tau * z)) / 0.25
      cbind(
        rowSums(by_theta) - x[, 1], rowSums(by_theta * z) * tau - x[, 2],
        by_theta * tau - z
      )
    },
    dim = 6, vectorized = TRUE, names = c("mu", "log_tau", paste0("z", 1:4))
  )
}

test_that("a fit says what depends on what", {
  expect_identical(funnel$maps[1], "scale of x1, x2, x3 depends on y")
  expect_output(print(funnel), "shape:    scale of x1, x2, x3 depends on y")
  # nothing is said of a normal distribution
  normal <- calmly(smc(target_gaussian(2), n_particles = 64, n_steps = 4, islands = 2, seed = 1))
  expect_null(normal$maps)
  expect_no_match(capture.output(print(normal)), "shape:")
})

test_that("what is normal given others is named, and multiples of a scale", {
  fit <- calmly(smc(noncentred_target(), n_particles = 512, islands = 4, seed = 1))
  expect_true("5 variables (mu, z1, z2, ...) are normal given log_tau" %in% fit$maps)
  describe <- internal("describe_change")
  precision <- list(kind = "precision", given = c(1, 3), order = 2)
  expect_identical(
    describe(precision, c("log(tau)", "theta", "mu")), "theta is normal given log(tau), mu"
  )
  several <- list(name = "conditional", conditioning = 6, shift = matrix(0, 6, 1), slope = cbind(-c(0, 1, 1, 1, 1, 0)))
  expect_identical(
    describe(several, c("mu", "z1", "z2", "z3", "z4", "log_tau")),
    "4 variables (z1, z2, z3, ...) multiply a scale that log_tau sets"
  )
  one <- list(name = "conditional", conditioning = 1, shift = matrix(0, 2, 1), slope = cbind(c(0, 0.5)))
  expect_identical(
    describe(one, c("log(tau)", "z")),
    "z multiplies a scale that log(tau) sets"
  )
})

test_that("changes along a coordinate are those of the maps", {
  # sd exp(0.4 z1), location 0.3 z1^2
  reference <- internal("new_shaped_reference")(numeric(3), list(
    centre = 0, L = diag(c(2, 1, 1)), kind = "linear", conditioning = 1L,
    offset = numeric(3), shift = cbind(numeric(3)), curve = cbind(c(0, 0, 0.3)),
    slope = cbind(c(0, 0.4, 0))
  ))
  reference$inflation <- NULL
  changed <- internal("changed_along")(reference, 1L, 3)
  expect_equal(changed$scale, c(NaN, 0.8, 0))
  # 1,000 points give the scale to 2 %
  expect_equal(changed$location[3], 0.3, tolerance = 0.1)
  expect_equal(changed$location[2], 0)
  expect_identical(internal("clearest_pair")(reference, 3), c(1, 2, 2))
  expect_identical(
    internal("describe_maps")(reference, target_gaussian(3)),
    c("scale of x2 depends on x1", "location of x3 bends with x1")
  )
})

test_that("tails, basins and bounds have their words", {
  describe <- internal("describe_maps")
  target <- target_gaussian(2)
  expect_identical(
    describe(reference_student(3), target),
    "heavy tails in all directions (Student t, 3 degrees of freedom)"
  )
  expect_identical(
    describe(reference_student(1), target),
    "heavy tails in all directions (Student t, 1 degree of freedom)"
  )
  two <- lapply(c(-5, 5), function(x) list(mean = c(x, 0), L = diag(2), elbo = 0))
  expect_identical(
    describe(internal("new_mixture_reference")(two), target), "a mixture of 2 normal distributions"
  )
  reference <- reference_gaussian()
  reference$tails <- list(location = c(0, 0), scale = c(1, 1), skew = c(0.2, 0), tail = c(0.5, 0.8))
  expect_identical(
    describe(reference, target), c("heavy tails along 2 directions", "skew along 1 direction")
  )
  bounded <- target_function(
    function(x) 0,
    dim = 4, lower = c(0, -Inf, 0, -Inf), upper = c(Inf, 0, 1, Inf), names = c("a", "b", "p", "x")
  )
  expect_identical(
    internal("coordinate_names")(bounded), c("log(a)", "b", "logit(p)", "x")
  )
})

test_that("the plot of the maps shows the pair before and after", {
  data <- internal("maps_data")(funnel)
  expect_identical(levels(data$panel), c("as they are", "in the coordinates of the reference"))
  expect_identical(unique(data$x_name), "y")
  before <- data[data$panel == "as they are", ]
  after <- data[data$panel != "as they are", ]
  # a rank correlation of sizes, which is 0 for a round cloud, with an error of 0.03
  turns <- function(data) cor(data$x, abs(data$y), method = "spearman")
  expect_gt(turns(before), 0.4)
  expect_lt(abs(turns(after)), 0.2)
  pdf(NULL)
  on.exit(dev.off())
  expect_identical(plot(funnel, "maps"), funnel)
  skip_if_not_installed("ggplot2")
  expect_s3_class(ggplot2::autoplot(funnel, "maps"), "ggplot")
})

test_that("without dependence there is no plot of the maps", {
  normal <- calmly(smc(target_gaussian(2), n_particles = 64, n_steps = 4, islands = 2, seed = 1))
  expect_error(plot(normal, "maps"), "depend on", class = "autosmc_error_input")
})
