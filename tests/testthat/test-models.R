# Targets from the objects of packages that need not be installed.

# An object like those of BayesianTools::createBayesianSetup(): one normal observation
# for each of the parameters, which have uniform priors.
bayesian_setup <- function(dim, lower = NULL, upper = NULL) {
  density <- function(x) {
    x <- if (is.matrix(x)) x else matrix(x, 1)
    rowSums(dnorm(x, 1, log = TRUE)) - dim * log(6)
  }
  structure(
    list(
      prior = structure(list(lower = lower, upper = upper), class = "prior"),
      posterior = structure(list(density = density), class = "posterior"),
      names = paste("par", seq_len(dim)),
      numPars = dim
    ),
    class = "BayesianSetup"
  )
}

test_that("a set-up of BayesianTools has its names, its bounds and its evidence", {
  setup <- bayesian_setup(2, lower = c(-2, -2), upper = c(4, 4))
  target <- as_target(setup)
  expect_identical(target$names, c("par 1", "par 2"))
  expect_identical(target$lower, c(-2, -2))
  expect_identical(target$upper, c(4, 4))
  expect_message(
    fit <- smc(setup, n_particles = 256, n_steps = 16, seed = 1),
    class = "autosmc_message_gradient"
  )
  exact <- 2 * log((pnorm(3) - pnorm(-3)) / 6)
  expect_lt(fit$std_error, 0.02)
  expect_lt(abs(fit$log_z - exact), 4.5 * fit$std_error)
  expect_bad(as_target(setup, dim = 2), "dim")
})

test_that("a prior without bounds, or with one for all, will do", {
  open <- as_target(bayesian_setup(2))
  expect_identical(c(open$lower, open$upper), c(-Inf, -Inf, Inf, Inf))
  expect_identical(as_target(bayesian_setup(3, lower = 0))$lower, c(0, 0, 0))
})

test_that("the message on a missing gradient says how to have one", {
  heard <- tryCatch(quick_smc(normal_density, dim = 2), message = identity)
  expect_match(gsub("\\s+", " ", conditionMessage(heard)), "target_rtmb()", fixed = TRUE)
})
