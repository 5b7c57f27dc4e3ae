# Draws in the formats of posterior, and what bayesplot and loo make of them.

skip_if_not_installed("posterior")

small_fit <- function(
  islands = 4,
  seed = 1,
  target = target_gaussian(3, mean = 2),
  n_particles = 64
) {
  calmly(smc(
    target,
    n_particles = n_particles, n_steps = 5, rounds = 0, islands = islands, seed = seed
  ))
}

# All formats, by their names.
formats <- c("array", "df", "matrix", "list", "rvars")

in_format <- function(fit, format, ...) {
  getExportedValue("posterior", paste0("as_draws_", format))(fit, ...)
}

# shapes ----------------------------------------------------------------------

test_that("islands are chains, in every format", {
  fit <- small_fit()
  draws <- posterior::as_draws(fit)
  for (format in formats) {
    x <- in_format(fit, format)
    expect_s3_class(x, paste0("draws_", format))
    expect_identical(posterior::variables(x), c("x1", "x2", "x3"))
    expect_equal(posterior::niterations(x), 64)
    expect_equal(posterior::nchains(x), 4)
    expect_equal(posterior::as_draws_array(x), draws)
  }
  table <- posterior::as_draws_df(fit)
  expect_equal(table$.chain, rep(1:4, each = 64))
  expect_equal(table$.iteration, rep(1:64, 4))
  expect_equal(table$.draw, 1:256)
})

test_that("one island, one variable and an adapting run will do", {
  one <- posterior::as_draws(small_fit(1, target = target_gaussian(1)))
  expect_identical(dim(one), c(64L, 1L, 1L))
  adapted <- adapt_plain(
    target_gaussian(2),
    n_particles = 32, n_steps = 3, kernel = kernel_lmc(), seed = 1
  )
  expect_identical(dim(posterior::as_draws(adapted)), c(32L, 1L, 2L))
  weighted <- posterior::as_draws_df(adapted, weights = TRUE)
  expect_equal(weights(weighted), exp(adapted$log_weights))
})

test_that("names with indices are arrays of random variables", {
  fit <- small_fit(target = normal_target(4, names = c(
    "mu", "beta[1]", "beta[2]", "beta[3]"
  )))
  draws <- posterior::as_draws_rvars(fit)
  expect_identical(posterior::variables(draws), c("mu", "beta"))
  expect_length(draws$beta, 3)
  expect_equal(
    posterior::draws_of(draws$beta)[, 2],
    as.vector(posterior::as_draws_matrix(fit)[, "beta[2]"]),
    ignore_attr = TRUE
  )
})

# resampling ------------------------------------------------------------------

# How often each particle is among the draws of its island.
copies <- function(fit) {
  draws <- unclass(posterior::as_draws_matrix(fit))[, "x1"]
  as.vector(table(factor(match(draws, fit$particles[, "x1"]), seq_along(fit$island))))
}

test_that("a particle is drawn as often as its island weighs it, to within one", {
  fit <- small_fit()
  w <- exp(fit$log_weights)
  expected <- 64 * w / ave(w, fit$island, FUN = sum)
  expect_true(all(abs(copies(fit) - expected) < 1))
  expect_gt(max(copies(fit)), 1)
  # all variables of a draw are of the same particle, in the order of the particles
  rows <- rep(seq_along(w), copies(fit))
  draws <- unclass(posterior::as_draws_matrix(fit))
  expect_equal(draws[, 1:3], fit$particles[rows, ], ignore_attr = TRUE)
  expect_identical(fit$island[rows], rep(1:4, each = 64))
})

test_that("a particle without weight is never drawn", {
  fit <- small_fit(1)
  dropped <- c(1:20, 60:64)
  fit$log_weights[dropped] <- -Inf
  expect_identical(copies(fit)[dropped], rep(0L, 25))
  expect_identical(sum(copies(fit)), 64L)
})

test_that("a fit has the same draws again, and R's generator is left alone", {
  fit <- small_fit()
  set.seed(1)
  before <- .Random.seed
  first <- posterior::as_draws(fit)
  expect_identical(.Random.seed, before)
  runif(1)
  expect_identical(posterior::as_draws(fit), first)
})

test_that("chains are the islands that live", {
  fit <- fit_with_dead_islands()
  alive <- which(fit$islands$log_z > -Inf)
  expect_lt(length(alive), 12)
  draws <- posterior::as_draws(fit)
  expect_identical(dim(draws), c(16L, length(alive), 1L))
  for (k in seq_along(alive)) {
    expect_true(all(draws[, k, ] %in% fit$particles[fit$island == alive[k], ]))
  }
  # weighted, nothing is lost with them
  weighted <- posterior::as_draws_df(fit, weights = TRUE)
  expect_equal(sum(weights(weighted) * weighted$x), summary(fit)$variables$mean)
})

# estimates -------------------------------------------------------------------

test_that("with weights the estimates are those of summary(), in every format", {
  fit <- small_fit()
  summary <- summary(fit)$variables
  for (format in formats) {
    x <- in_format(fit, format, weights = TRUE)
    expect_equal(posterior::nchains(x), 1)
    expect_equal(posterior::ndraws(x), 256)
    w <- weights(x)
    expect_equal(w, exp(fit$log_weights))
    means <- vapply(summary$variable, function(name) {
      sum(w * posterior::extract_variable(x, name))
    }, 0)
    expect_equal(unname(means), summary$mean)
  }
  # and of as many draws as one likes that posterior resamples
  many <- posterior::resample_draws(
    posterior::as_draws_df(fit, weights = TRUE),
    ndraws = 1e5, method = "stratified"
  )
  expect_equal(mean(many$x1), summary$mean[1], tolerance = 1e-3)
})

# Sixty-four islands with common ancestors and uneven weights. By the spread of the
# islands' means the variance of their mean is known with a standard deviation of
# sqrt(2 / 63) = 18 % for one variable, 4 % for four fits of eight variables, and
# posterior's own estimate adds 2 %. Permuted, the draws would look three times as good
# as they are.
test_that("posterior's effective sample size is what the islands' spread says", {
  ratios <- vapply(1:4, function(seed) {
    fit <- calmly(smc(
      target_gaussian(8, mean = 1),
      n_particles = 256, n_steps = 8, rounds = 0, islands = 64, seed = seed
    ))
    draws <- posterior::as_draws(fit)
    means <- apply(draws, c(2, 3), mean)
    actual <- 64 * apply(draws, 3, sd)^2 / apply(means, 2, var)
    mean(apply(draws, 3, posterior::ess_mean)) * mean(1 / actual)
  }, 0)
  expect_estimate(mean(ratios), sqrt(0.04^2 + 0.02^2), 1, 0.3)
})

# Squared errors in units of the Monte Carlo error that posterior reports sum to
# chi-squared: 20 fits x 3 variables, all but independent.
test_that("means of the draws are right to within posterior's own error", {
  z <- vapply(1:20, function(seed) {
    draws <- posterior::as_draws(small_fit(8, seed))
    (apply(draws, 3, mean) - 2) / apply(draws, 3, posterior::mcse_mean)
  }, numeric(3))
  expect_gt(sum(z^2), qchisq(chance / 2, 60))
  expect_lt(sum(z^2), qchisq(1 - chance / 2, 60))
})

test_that("summarise_draws() has a row a variable, and rhat finds no fault", {
  fit <- small_fit(8, n_particles = 256)
  summary <- posterior::summarise_draws(fit)
  expect_identical(summary$variable, c("x1", "x2", "x3"))
  expect_true(all(summary$rhat < 1.1))
  # islands that are apart are told apart
  fit$particles[fit$island > 4, "x2"] <- fit$particles[fit$island > 4, "x2"] + 5
  rhat <- posterior::summarise_draws(fit, "rhat")$rhat
  expect_gt(rhat[2], 1.5)
  expect_lt(max(rhat[-2]), 1.1)
})

# wrong uses ------------------------------------------------------------------

test_that("a wrong argument is named", {
  fit <- small_fit()
  for (bad in list(NULL, NA, 1, "yes", fit$log_weights)) {
    expect_bad(posterior::as_draws(fit, weights = bad), "weights")
    expect_bad(posterior::as_draws_df(fit, weights = bad), "weights")
  }
  for (format in formats) {
    expect_bad(in_format(fit, format, variable = "x1"), "variable")
  }
  error <- catch(posterior::as_draws_df(target_gaussian(2)))
  expect_s3_class(error, "autosmc_error_input")
  expect_match(message_of(error), "smc()", fixed = TRUE)
})

# other packages --------------------------------------------------------------

test_that("bayesplot draws what the draws are", {
  skip_if_not_installed("bayesplot")
  grDevices::pdf(NULL) # where the pictures would go
  on.exit(grDevices::dev.off())
  fit <- small_fit()
  draws <- posterior::as_draws(fit)
  trace <- bayesplot::mcmc_trace(draws)
  expect_identical(nrow(trace$data), 64L * 4L * 3L)
  expect_identical(nlevels(trace$data$chain), 4L)
  histogram <- bayesplot::mcmc_hist(draws, pars = "x2", binwidth = 0.5)
  expect_equal(sort(histogram$data$value), sort(as.vector(draws[, , "x2"])))
  built <- ggplot2::ggplot_build(histogram)$data[[1]]
  expect_equal(sum(built$count), 256)
  scatter <- bayesplot::mcmc_scatter(draws, pars = c("x1", "x3"))
  expect_equal(scatter$data$x, as.vector(draws[, , "x1"]))
  expect_equal(scatter$data$y, as.vector(draws[, , "x3"]))
  skip_if_not_installed("gridExtra") # mcmc_pairs() takes it
  pairs <- bayesplot::mcmc_pairs(draws)
  expect_length(pairs$bayesplots, 9)
})

# y_i ~ N(mu, 1), mu ~ N(0, 3^2): the density of y_i given the others is normal, in
# closed form.
test_that("loo() on the draws finds the exact leave-one-out densities", {
  skip_if_not_installed("loo")
  y <- c(0.4, 1.2, -0.3, 0.9, 1.5, 0.1, 0.7, -0.6, 1.1, 2.1)
  target <- target_function(
    function(x) {
      rowSums(dnorm(outer(-as.vector(x), y, "+"), log = TRUE)) +
        dnorm(as.vector(x), 0, 3, log = TRUE)
    },
    dim = 1, names = "mu", vectorized = TRUE,
    gradient = function(x) sum(y) - length(y) * x - x / 9
  )
  fit <- smc(target, n_particles = 512, n_steps = 6, rounds = 0, seed = 1)
  draws <- posterior::as_draws_df(fit)
  log_lik <- dnorm(outer(-draws$mu, y, "+"), log = TRUE)
  r_eff <- loo::relative_eff(exp(log_lik), chain_id = draws$.chain)
  loo <- loo::loo(log_lik, r_eff = r_eff)

  variance <- 1 / (length(y) - 1 + 1 / 9)
  mean <- variance * (sum(y) - y)
  exact <- dnorm(y, mean, sqrt(1 + variance), log = TRUE)
  expect_true(all(loo$diagnostics$pareto_k < 0.5))
  error <- loo$pointwise[, "elpd_loo"] - exact
  expect_estimate(error, loo$pointwise[, "mcse_elpd_loo"], 0, 0.1)
  expect_true(all(r_eff > 0.1 & r_eff < 1.5))
})
