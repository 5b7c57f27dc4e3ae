# Posteriors from a likelihood and a prior.

# y_i ~ N(mu, 1) and mu ~ N(0, 2^2), in all the forms that the parts may have.
y <- c(1.1, 2.3, 0.4, 1.9, 1.6)
log_likelihood <- function(x) sum(dnorm(y, x, 1, log = TRUE))
log_prior <- function(x) dnorm(x, 0, 2, log = TRUE)
slope_of_likelihood <- function(x) sum(y) - length(y) * x
slope_of_prior <- function(x) -x / 4
slopes <- list(likelihood = slope_of_likelihood, prior = slope_of_prior)

in_attribute <- function(f, gradient) {
  function(x) structure(f(x), gradient = gradient(x))
}
rows <- function(f) function(x) apply(x, 1, f)

posterior <- function(likelihood = log_likelihood, prior = log_prior, ...) {
  target_posterior(likelihood, prior, 1, ..., names = "mu")
}

expected <- function(x) {
  list(
    log_density = vapply(x[, 1], function(m) log_likelihood(m) + log_prior(m), 0),
    gradient = slope_of_likelihood(x) + slope_of_prior(x)
  )
}
x <- cbind(c(-3, -0.5, 0, 1, 20))

messages_of <- function(code) {
  heard <- character()
  withCallingHandlers(code, autosmc_message_gradient = function(m) {
    heard[length(heard) + 1] <<- gsub("\\s+", " ", conditionMessage(m))
    invokeRestart("muffleMessage")
  })
  heard
}

# the sum ------------------------------------------------------------------------

test_that("the log density and the gradient are the sums of the parts'", {
  forms <- list(
    posterior(gradient = slopes),
    posterior(
      in_attribute(log_likelihood, slope_of_likelihood),
      in_attribute(log_prior, slope_of_prior)
    ),
    posterior(
      in_attribute(log_likelihood, slope_of_likelihood),
      gradient = slopes["prior"]
    ),
    posterior(rows(log_likelihood), gradient = slopes, vectorized = TRUE),
    posterior(
      in_attribute(rows(log_likelihood), slope_of_likelihood),
      gradient = slopes["prior"], vectorized = TRUE
    )
  )
  for (target in forms) {
    expect_length(messages_of(value <- evaluate_target(target, x)), 0)
    expect_equal(value[names(expected(x))], expected(x), tolerance = 1e-12)
    without <- evaluate_target(target, x, gradient = FALSE)
    expect_identical(without$log_density, value$log_density)
  }
})

test_that("a part without a gradient is differentiated, and named", {
  calls <- c(likelihood = 0, prior = 0)
  counted <- function(f, part) {
    function(x) {
      calls[part] <<- calls[part] + 1
      f(x)
    }
  }
  part <- function(...) {
    calls[] <<- 0
    target <- posterior(
      counted(log_likelihood, "likelihood"), counted(log_prior, "prior"), ...
    )
    heard <- messages_of(value <- evaluate_target(target, x))
    expect_equal(value[names(expected(x))], expected(x), tolerance = 1e-7)
    heard
  }
  heard <- part(gradient = slopes["likelihood"])
  expect_length(heard, 1)
  expect_match(heard, "No gradient of `log_prior` was given")
  expect_match(heard, "2 further calls")
  expect_match(heard, "Give the gradient as `gradient\\$prior`")
  expect_identical(calls, c(likelihood = 5, prior = 15))

  heard <- part(gradient = slopes["prior"])
  expect_match(heard, "No gradient of `log_likelihood` was given")
  expect_match(heard, "Give the gradient as `gradient\\$likelihood`")
  expect_identical(calls, c(likelihood = 15, prior = 5))

  heard <- part()
  expect_length(heard, 1)
  expect_match(heard, "No gradients of `log_likelihood` and `log_prior` were given: they")
  expect_match(heard, "2 further calls of each")
  expect_match(heard, "the gradients as `gradient\\$likelihood` and `gradient\\$prior`, or")
})

test_that("the message comes once a call of smc()", {
  target <- posterior(gradient = slopes["likelihood"])
  heard <- messages_of(calmly(smc(
    target,
    n_particles = 16, n_steps = 2, islands = 2, rounds = 1, seed = 1
  )))
  expect_length(heard, 1)
})

test_that("an impossible part makes the point impossible", {
  for (impossible in list(-Inf, NaN)) {
    target <- posterior(
      prior = function(x) if (x < 0) impossible else log_prior(x),
      gradient = slopes
    )
    fit <- quick_run(target)
    expect_true(all(fit$particles[exp(fit$log_weights) > 0] >= 0))
  }
})

# laws ---------------------------------------------------------------------------

test_that("a conjugate model has its evidence and its posterior", {
  target <- posterior(
    rows(log_likelihood), function(x) log_prior(x[, "mu"]),
    gradient = slopes, vectorized = TRUE
  )
  covariance <- diag(length(y)) + 4
  log_z <- -drop(y %*% solve(covariance, y)) / 2 -
    log(det(2 * pi * covariance)) / 2
  schedule <- data.frame(lambda = ((1:8) / 8)^2, step_size = 0.1)
  fit <- smc_run(
    target, schedule,
    reference = reference_gaussian(sd = 2), kernel = kernel_mala(),
    n_particles = 256, islands = 200, seed = 1
  )
  expect_mean(exp(fit$islands$log_z - log_z), 1, resolution = 0.05)
  w <- exp(fit$log_weights + fit$log_z - log_z) * 200
  mean <- sum(y) / (length(y) + 1 / 4)
  expect_mean(rowsum(w * fit$particles, fit$island), mean, resolution = 0.1)
})

# y successes of n, with a Beta(a, b) prior: the evidence and the mean.
test_that("a bounded conjugate model has its evidence and its posterior", {
  schedule <- data.frame(lambda = (1:4) / 4, step_size = 0.3)
  fit <- smc_run(
    beta_binomial, schedule,
    kernel = kernel_mala(), n_particles = 256, islands = 200, seed = 1
  )
  expect_mean(exp(fit$islands$log_z - log_z_beta_binomial), 1, resolution = 0.03)
  w <- exp(fit$log_weights + fit$log_z - log_z_beta_binomial) * 200
  expect_mean(rowsum(w * fit$particles, fit$island), 9 / 15, resolution = 0.03)
})

# what is given --------------------------------------------------------------------

test_that("the arguments are checked, by their names", {
  expect_bad(target_posterior("f", sum, 1), "log_likelihood")
  expect_bad(target_posterior(sum, NULL, 1), "log_prior")
  for (bad in list(sum, list(sum, sum), list(posterior = sum), list(prior = sum, prior = sum))) {
    expect_bad(target_posterior(sum, sum, 1, bad), "gradient")
  }
  expect_bad(target_posterior(sum, sum, 1, list(likelihood = 1)), "gradient$likelihood")
  expect_bad(target_posterior(sum, sum, 1, list(prior = 1)), "gradient$prior")
  expect_bad(target_posterior(sum, dim = 1), "log_prior")
  expect_bad(target_posterior(sum, sum), "dim")
  expect_bad(target_posterior(sum, sum, -1), "dim")
  expect_bad(target_posterior(sum, sum, 1, vectorized = NA), "vectorized")
  expect_bad(target_posterior(sum, sum, 2, names = "a"), "names")
})

test_that("what a part returns is checked, and the part is named", {
  parent_of <- function(target) {
    error <- catch(suppressMessages(quick_run(target)))
    expect_s3_class(error, "autosmc_error_target")
    gsub("\\s+", " ", conditionMessage(error$parent))
  }
  two <- function(x) c(1, 2)
  expect_match(parent_of(posterior(two)), "`log_likelihood` must return a number")
  expect_match(parent_of(posterior(prior = two)), "`log_prior` must return a number")
  expect_match(
    parent_of(posterior(gradient = list(likelihood = slope_of_likelihood, prior = two))),
    "The gradient of `log_prior` must be a numeric vector of length 1"
  )
})

test_that("printing says what it is", {
  expect_output(print(posterior()), "posterior of R functions")
})
