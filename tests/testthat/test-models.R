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
  expect_log_z(fit, exact)
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

test_that("another package can add a method, as the help page has it", {
  as_target.regression <- function(x, ..., sd = 1) {
    autosmc::target_posterior(
      function(beta) sum(dnorm(x$y, x$X %*% beta, log = TRUE)),
      function(beta) sum(dnorm(beta, 0, sd, log = TRUE)),
      dim = ncol(x$X), names = colnames(x$X),
      gradient = list(
        likelihood = function(beta) crossprod(x$X, x$y - x$X %*% beta),
        prior = function(beta) -beta / sd^2
      )
    )
  }
  methods <- asNamespace("autosmc")[[".__S3MethodsTable__."]]
  on.exit(rm("as_target.regression", envir = methods))
  registerS3method("as_target", "regression", as_target.regression,
    envir = asNamespace("autosmc")
  )
  X <- cbind(a = 1, b = c(-1, 0, 1, 2))
  y <- c(0.1, 0.9, 2.3, 2.8)
  model <- structure(list(X = X, y = y), class = "regression")
  fit <- smc(model, sd = 2, n_particles = 128, n_steps = 8, seed = 1)
  covariance <- diag(4) + 4 * tcrossprod(X)
  exact <- -(4 * log(2 * pi) + log(det(covariance)) + sum(y * solve(covariance, y))) / 2
  expect_identical(as_target(model)$names, c("a", "b"))
  expect_log_z(fit, exact)
})
