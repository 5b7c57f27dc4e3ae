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
  expect_identical(funnel$maps[1], "x1, x2, x3 are normal given y")
  expect_output(print(funnel), "shape:    x1, x2, x3 are normal given y")
  # nothing is said of a normal distribution
  normal <- calmly(smc(target_gaussian(2), n_particles = 64, n_steps = 4, islands = 2, seed = 1))
  expect_null(normal$maps)
  expect_no_match(capture.output(print(normal)), "shape:")
})

test_that("what is normal given others is named, and what depends on others otherwise", {
  fit <- calmly(smc(noncentred_target(), n_particles = 512, islands = 4, seed = 1))
  expect_true("5 variables (mu, z1, z2, ...) are normal given log_tau" %in% fit$maps)
  describe <- internal("describe_maps")
  target <- target_function(function(x) 0, 3, lower = c(0, -Inf, -Inf), names = c("tau", "theta", "mu"))
  reference <- reference_gaussian()
  reference$changes <- list(list(name = "precision", kind = "precision", given = c(1, 3), order = 2))
  expect_identical(describe(reference, target), "theta is normal given log(tau), mu")
  reference$changes <- NULL
  reference$maps <- list(list(name = "precision", given = 1, order = c(3, 2)))
  expect_identical(describe(reference, target), "theta, mu are nearly normal given log(tau)")
  reference$maps <- list(list(name = "moments", order = c(3, 2), features = internal("feature_of")(1, "linear")))
  expect_identical(describe(reference, target), "location and scale of theta, mu depend on log(tau)")
})

test_that("changes along a coordinate are those of the maps", {
  # sd exp(0.4 z1), location 0.3 z1^2
  feature_of <- internal("feature_of")
  reference <- reference_gaussian(numeric(3), sd = c(2, 1, 1))
  reference$maps <- list(list(
    name = "moments", order = c(2, 3), features = cbind(feature_of(1, "linear"), feature_of(1, "square")),
    location = rbind(0, c(0, 0.3)), log_scale = rbind(c(0.4, 0), 0)
  ))
  changed <- internal("changed_along")(reference, 1L, 3)
  expect_equal(changed$scale, c(NaN, 0.8, 0))
  # 1,000 points give the scale to 2 %
  expect_equal(changed$location[3], 0.3, tolerance = 0.1)
  expect_equal(changed$location[2], 0)
  expect_identical(internal("clearest_pair")(reference, 3), c(1, 2, 2))
  expect_identical(
    internal("describe_maps")(reference, target_gaussian(3)),
    "location and scale of x2, x3 depend on x1"
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
  reference$maps <- list(list(
    name = "tails", location = c(0, 0), scale = c(1, 1), skew = c(0.2, 0), tail = c(0.5, 0.8)
  ))
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
