# The evidence over a range of settings.

# Observations of three means with a normal prior, as its standard deviation changes.
observed <- c(1, -1, 0.5)
model <- function(sd, ...) {
  target_function(
    function(x) rowSums(dnorm(x, 0, sd, log = TRUE) + dnorm(sweep(x, 2, observed), log = TRUE)), 3,
    gradient = function(x) -x / sd^2 - sweep(x, 2, observed), vectorized = TRUE, ...
  )
}
exact <- function(sd) vapply(sd, function(sd) sum(dnorm(observed, 0, sqrt(1 + sd^2), log = TRUE)), 0)
null <- sum(dnorm(observed, log = TRUE))
sds <- c(0.05, 0.8, 1, 1.3, 4)
curve <- evidence_curve(model, sds, against = null, n_particles = 1024, seed = 1)

expect_on_curve <- function(curve, resolution) {
  for (i in seq_len(nrow(curve))) {
    expect_estimate(curve$log_z[i], curve$std_error[i], exact(curve$value[i]), resolution)
  }
}

test_that("the middle and the ends are fitted, and what is in between is reweighted", {
  expect_identical(curve$value, sds)
  expect_identical(curve$from, c("warm", "reweighted", "cold", "reweighted", "warm"))
  expect_on_curve(curve, 0.5)
  is_fitted <- curve$from != "reweighted"
  expect_identical(curve$anchor[is_fitted], curve$value[is_fitted])
  expect_true(all(curve$khat[!is_fitted] <= 0.7))
  expect_true(all(curve$khat[is_fitted] > 0.7))
  expect_equal(curve$log_bf, curve$log_z - null)
  expect_equal(curve$log_bf_error, curve$std_error)
  expect_identical(curve$verdict, rep("passed", 5))
  # each fit, the draws of each at the settings of all, and at each setting between two fits those of both
  fits <- attr(curve, "fits")
  of_fits <- vapply(fits, function(fit) sum(fit$runs$n_target_evals), 0)
  expect_equal(sum(curve$n_target_evals) - sum(of_fits), 600 * (3^2 + 2 * 2))
  expect_identical(anyDuplicated(vapply(fits, `[[`, 0, "seed")), 0L)
})

test_that("beside a fitted setting the evidence and its error are those of its fit", {
  beside <- evidence_curve(model, c(0.5, 0.7, 1, 1 + 1e-6, 1.4, 2, 3), used = 1, seed = 5)
  expect_identical(beside$value[beside$from != "reweighted"], c(0.5, 1, 3))
  next_to <- which(beside$value == 1) + 0:1
  expect_equal(diff(beside$log_z[next_to]), 0, tolerance = 1e-5)
  expect_equal(beside$std_error[next_to[2]], beside$std_error[next_to[1]], tolerance = 1e-3)
  expect_on_curve(beside, 0.1)
})

test_that("settings are added where the curve bends", {
  more <- refine_curve(curve, 2)
  expect_identical(nrow(more), 7L)
  expect_true(all(curve$value %in% more$value))
  expect_on_curve(more, 0.5)
  given <- refine_curve(curve, values = c(1, 1.1))
  expect_identical(setdiff(given$value, curve$value), 1.1)
  expect_true(given$anchor[given$value == 1.1] %in% c(1, 4))
})

test_that("draws of a narrow prior do not stand for a wide one", {
  # a scale with a likelihood that falls off slowly, and a half-normal prior
  of_scale <- function(sd) {
    target_function(
      function(s) dnorm(s[, 1], 0, sd, log = TRUE) + log(2) + dt(s[, 1] / 2, 2, log = TRUE) - log(2), 1,
      gradient = function(s) -s / sd^2 - 3 * s / (8 + s^2), vectorized = TRUE, lower = 0, names = "s"
    )
  }
  log_z <- function(sd) log(integrate(function(s) 2 * dnorm(s, 0, sd) * dt(s / 2, 2) / 2, 0, Inf, rel.tol = 1e-9)$value)
  wide <- lapply(1:4, function(seed) evidence_curve(of_scale, c(2, 4, 8, 16, 40), used = 2, seed = seed))
  # a fit from the neighbour that fails is made again from the beginning
  ends <- vapply(wide, function(curve) curve$from[5], "")
  expect_true(all(vapply(wide, function(curve) curve$from[1] == "cold", NA)) && !any(ends == "reweighted"))
  expect_gte(mean(ends == "warm"), 0.75)
  for (i in 1:5) {
    part <- function(name) vapply(wide, function(curve) curve[[name]][i], 0)
    expect_estimate(mean(part("log_z")), sqrt(sum(part("std_error")^2)) / 4, log_z(wide[[1]]$value[i]), 0.05)
  }
})

test_that("a precision is kept, and curves are compared with curves", {
  sure <- evidence_curve(model, c(0.5, 1), precision = 0.003, used = 1, seed = 3)
  expect_true(all(sure$std_error <= 0.003))
  expect_identical(sure$from, c("warm", "cold"))
  both <- evidence_curve(model, 1, against = sure, seed = 9)
  expect_equal(both$log_bf, both$log_z - sure$log_z[2])
  expect_equal(both$log_bf_error, sqrt(both$std_error^2 + sure$std_error[2]^2))
  expect_bad(evidence_curve(model, 1:2, against = sure, seed = 9), "against")
})

test_that("nothing is reweighted where it would miss something", {
  uniform <- function(width) {
    target_function(function(x) {
      ifelse(abs(x) < width, dnorm(x, log = TRUE) - log(2 * width), -Inf)
    }, 1, gradient = function(x) -x, vectorized = TRUE)
  }
  wider <- evidence_curve(uniform, c(0.5, 1), used = 0.5, n_particles = 256, seed = 1)
  expect_identical(wider$from == "reweighted", c(FALSE, FALSE))
  bounded <- evidence_curve(function(upper) model(1, lower = -9, upper = upper), c(8, 9), n_particles = 256, seed = 1)
  expect_false(any(bounded$from == "reweighted"))
})

test_that("a curve has two settings", {
  shifted <- function(sd, mean) {
    target_function(
      function(x) rowSums(dnorm(x, mean, sd, log = TRUE) + dnorm(sweep(x, 2, observed), log = TRUE)), 3,
      gradient = function(x) -(x - mean) / sd^2 - sweep(x, 2, observed), vectorized = TRUE
    )
  }
  exact <- function(sd, mean) sum(dnorm(observed, mean, sqrt(1 + sd^2), log = TRUE))
  values <- expand.grid(mean = c(-0.5, 0, 0.5), sd = c(0.7, 1, 1.5))
  two <- evidence_curve(shifted, values, against = null, seed = 1)
  expect_identical(names(two)[1:2], c("mean", "sd"))
  # the middle and the four corners
  side <- c("warm", "reweighted", "warm")
  expect_identical(two$from, c(side, "reweighted", "cold", "reweighted", side))
  in_order <- expand.grid(sd = c(0.7, 1, 1.5), mean = c(-0.5, 0, 0.5))[2:1]
  expect_equal(as.data.frame(two)[1:2], in_order, ignore_attr = TRUE)
  expect_estimate(two$log_z, two$std_error, mapply(exact, two$sd, two$mean), 0.1)
  expect_identical(two$anchor[two$from == "cold"], "0, 1")
  expect_setequal(names(attr(two, "fits")), two$anchor[two$from != "reweighted"])

  more <- refine_curve(two, values = data.frame(sd = c(1, 1.2), mean = c(0, 0.1)))
  expect_identical(nrow(more), 10L)
  expect_bad(refine_curve(two), "values")
  expect_bad(refine_curve(two, values = 1), "values")
  other <- evidence_curve(shifted, values[c(1, 5), ], used = c(sd = 1, mean = 0), against = two, seed = 2)
  expect_equal(other$log_bf, other$log_z - two$log_z[c(1, 5)])
  expect_bad(evidence_curve(shifted, data.frame(mean = 0, sd = 3), against = two, seed = 2), "against")

  twice <- stats::setNames(values, c("a", "a"))
  for (bad in list(values[1], cbind(values, a = 1), twice, transform(values, sd = "a"))) {
    expect_bad(evidence_curve(shifted, bad), "values")
  }
  for (bad in list(1, c(a = 1, b = 2), c(sd = 1, mean = NA))) {
    expect_bad(evidence_curve(shifted, values, used = bad), "used")
  }
  expect_bad(evidence_curve(shifted, stats::setNames(values, c("a", "b"))), "target")
  said <- printed_text(two)
  expect_match(said, "mean +sd +log_z")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(two), two)
  skip_if_not_installed("ggplot2")
  built <- ggplot2::ggplot_build(ggplot2::autoplot(two))
  expect_identical(length(unique(built$data[[1]]$fill)), 3L)
})

test_that("what is no curve is an error", {
  for (bad in list("a", NULL, numeric(), c(1, NA), c(1, 1), Inf)) expect_bad(evidence_curve(model, bad), "values")
  expect_bad(evidence_curve(1, 1), "target")
  expect_bad(evidence_curve(model, 1, reference = "prior"), "reference")
  expect_bad(evidence_curve(function(s) stop("no"), 1), "target")
  named <- function(s) model(1, names = paste0(c("a", "b", "c"), s))
  expect_bad(evidence_curve(named, 1:2, n_particles = 64, n_steps = 4, seed = 1), "target")
  improper <- function(s) replace(model(s), "improper", list(c(x1 = "mu")))
  expect_bad(evidence_curve(improper, 1), "target")
  expect_bad(refine_curve(1), "curve")
  flat <- function(sd) {
    target_function(
      function(x) dnorm(x[, 1], 0, sd, log = TRUE), 2,
      gradient = function(x) cbind(-x[, 1] / sd^2, 0), vectorized = TRUE
    )
  }
  expect_error(
    calmly(evidence_curve(flat, 1, n_particles = 64, seed = 1)), "does not fall off",
    class = "autosmc_error_input"
  )
})

test_that("a curve prints, plots and steps down", {
  said <- printed_text(curve)
  expect_match(said, "1 cold, 2 warm, 2 reweighted")
  expect_match(said, "share the error")
  expect_s3_class(curve[2:4, ], "evidence_curve")
  expect_false(inherits(curve[, 1:3], "evidence_curve"))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(curve, main = "a curve"), curve)
  expect_error(plot(curve, wrong = 1), class = "autosmc_error_input")
  skip_if_not_installed("ggplot2")
  built <- ggplot2::ggplot_build(ggplot2::autoplot(curve))
  expect_equal(built$data[[1]]$ymax - built$data[[1]]$ymin, 4 * curve$log_bf_error)
})
