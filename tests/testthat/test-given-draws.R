# Draws of other programs as the start of a path.

draws_target <- function() {
  target_function(
    function(x) dnorm(x[1], 30, 0.1, log = TRUE) + dgamma(x[2], 4, 2, log = TRUE), 2,
    gradient = function(x) c((30 - x[1]) / 0.01, 3 / x[2] - 2), names = c("mu[1,2]", "sigma"), lower = c(sigma = 0)
  )
}
set.seed(1)
given <- cbind(lp__ = 0, sigma = rgamma(400, 4, 2), "mu[1, 2]" = rnorm(400, 30, 0.1))

test_that("smc() starts from draws of whatever kind", {
  fit <- smc(draws_target(), reference = given, scout = FALSE, n_particles = 128, n_steps = 8, seed = 1)
  adapt <- fit$runs[fit$runs$run == "adapt", ]
  expect_identical(adapt$label[1], "draws")
  expect_log_z(fit, 0)

  reference <- function(x, target = draws_target()) smc_adapt(target, reference = x, rounds = 0, n_particles = 16, n_steps = 2, kernel = kernel_lmc(), seed = 1)$reference
  same <- reference(given)
  expect_equal(same$mean, c(mean(given[, 3]), mean(log(given[, 2]))))
  expect_identical(reference(data.frame(given, chain = "a", check.names = FALSE)), same)
  expect_message(in_order <- reference(unname(given[, 3:2])), "taken as mu[1,2] and sigma, in this order", fixed = TRUE)
  expect_identical(in_order, same)
  of_jags <- function(name, x, dim) structure(array(x, c(dim, 200, 2)), varname = name, class = "mcarray")
  mu <- array(0, c(1, 2, 400))
  mu[1, 2, ] <- given[, 3]
  expect_identical(reference(list(mu = of_jags("mu", mu, 1:2), sigma = of_jags("sigma", given[, 2], 1))), same)
  chains <- list(given[1:200, ], given[201:400, ])
  expect_identical(reference(chains), same)
  expect_identical(reference(list(samples = chains, summary = 1)), same)
  array <- aperm(array(given, c(200, 2, 3), list(NULL, NULL, colnames(given))), c(1, 2, 3))
  expect_identical(reference(array), same)
  if (requireNamespace("coda", quietly = TRUE)) {
    expect_identical(reference(coda::mcmc.list(lapply(chains, coda::mcmc))), same)
    expect_identical(reference(coda::mcmc(given)), same)
  }
  if (requireNamespace("posterior", quietly = TRUE)) {
    expect_equal(reference(posterior::as_draws_array(given)), same)
    expect_equal(reference(posterior::as_draws_df(as.data.frame(given, check.names = FALSE))), same)
  }
  # of a type
  w <- matrix(rexp(300), 100)
  w <- w / rowSums(w)
  simplex <- target_function(function(w) sum(log(w)), 3, names = paste0("w[", 1:3, "]"), types = list(w = "simplex"))
  expect_length(suppressMessages(reference(w, simplex))$mean, 2)
})

test_that("draws of another model, or without some, are told", {
  run <- function(x) {
    told <- character()
    fit <- withCallingHandlers(
      suppressWarnings(smc(draws_target(), reference = x, n_particles = 128, n_steps = 8, seed = 1)),
      autosmc_message_draws = function(m) {
        told <<- c(told, message_of(m))
        tryInvokeRestart("muffleMessage")
      }
    )
    expect_log_z(fit, 0, resolution = 0.1)
    told
  }
  expect_identical(run(given), character())
  elsewhere <- given
  elsewhere[, "mu[1, 2]"] <- elsewhere[, "mu[1, 2]"] + 1000
  expect_match(run(elsewhere), "are they of this model", fixed = TRUE)
  expect_match(run(rbind(given, c(0, -1, 30))), "1 of 401 draws has values that are missing or", fixed = TRUE)
})

test_that("draws that are none are errors", {
  run <- function(x) smc(draws_target(), reference = x)
  for (bad in list(given[, 1:2], given[1:2, ], given[, 2, drop = FALSE], -given, list(1, 2), "x", list(given, unname(given)))) {
    expect_error(run(bad), class = "autosmc_error_input")
  }
  expect_error(run(given[, 1:2]), "no draws of mu[1,2]", fixed = TRUE)
  unnamed <- function(x) -sum(x^2)
  expect_match(message_of(catch(smc(unnamed, dim = 2, reference = given))), "from a function, `names` gives the names", fixed = TRUE)
  coded <- data.frame(given, check.names = FALSE)
  coded$sigma <- factor(coded$sigma)
  expect_error(run(coded), "no draws of sigma.*column sigma is not numeric")
  expect_error(run(-given), "None of the draws")
  outside <- rbind(given, c(0, -1, 30), c(0, NA, 30))
  expect_identical(
    suppressMessages(smc_adapt(draws_target(), reference = outside, n_particles = 16, n_steps = 2, rounds = 0, kernel = kernel_lmc()))$reference$mean,
    smc_adapt(draws_target(), reference = given, n_particles = 16, n_steps = 2, rounds = 0, kernel = kernel_lmc())$reference$mean
  )
})
