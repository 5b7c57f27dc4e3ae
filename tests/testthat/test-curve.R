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
curve <- evidence_curve(model, sds, against = null, seed = 1)

expect_on_curve <- function(curve, resolution) {
  for (i in seq_len(nrow(curve))) {
    expect_estimate(curve$log_z[i], curve$std_error[i], exact(curve$value[i]), resolution)
  }
}

test_that("the middle is fitted, its neighbours are reweighted, and others fitted from the nearest", {
  expect_identical(curve$value, sds)
  expect_identical(curve$from[3], "cold")
  expect_identical(curve$from[c(2, 4)], rep("reweighted", 2))
  expect_true("warm" %in% curve$from)
  expect_on_curve(curve, 0.5)
  is_fitted <- curve$from != "reweighted"
  expect_identical(curve$anchor[is_fitted], curve$value[is_fitted])
  expect_true(all(curve$khat[!is_fitted] <= 0.5))
  expect_true(all(curve$khat[is_fitted] > 0.5))
  expect_equal(curve$log_bf, curve$log_z - null)
  expect_equal(curve$log_bf_error, curve$std_error)
  expect_identical(curve$verdict, rep("passed", 5))
  # each fit, its draws at its own setting, and at each setting those of the nearest fit
  fits <- attr(curve, "fits")
  of_fits <- vapply(fits, function(fit) sum(fit$runs$n_target_evals), 0)
  n_draws <- pmin(4096, vapply(fits, function(fit) length(fit$log_weights), 0L))
  expect_equal(sum(curve$n_target_evals), sum(of_fits) + sum(n_draws) + 4096 * 4)
  expect_identical(anyDuplicated(vapply(fits, `[[`, 0, "seed")), 0L)
})

test_that("settings are added where the curve bends", {
  more <- refine_curve(curve, 2)
  expect_identical(nrow(more), 7L)
  expect_true(all(curve$value %in% more$value))
  expect_on_curve(more, 0.5)
  given <- refine_curve(curve, values = c(1, 1.1))
  expect_identical(setdiff(given$value, curve$value), 1.1)
  expect_identical(given$anchor[given$value == 1.1], 1)
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
