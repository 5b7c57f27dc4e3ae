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

test_that("a model object of RTMB takes a prior", {
  skip_if_not_installed("RTMB")
  likelihood <- function(p) -sum(RTMB::dnorm(c(1, 2), p$mean, exp(p$log_sd), log = TRUE))
  model <- RTMB::MakeADFun(likelihood, list(mean = 0, log_sd = 0), silent = TRUE)
  log_prior <- function(p) dnorm(p$mean, 0, 2, log = TRUE) + dexp(exp(p$log_sd), log = TRUE) + p$log_sd
  target <- as_target(model, log_prior = log_prior)
  x <- cbind(c(0.5, -1), c(0.2, 0.4))
  value <- evaluate_target(target, x)$log_density
  by_hand <- apply(x, 1, function(x) log_prior(list(mean = x[1], log_sd = x[2])) - model$fn(x))
  expect_equal(value, by_hand)
  expect_gradient(target, x)
  expect_bad(as_target(model, log_prior = 3), "log_prior")
  expect_bad(as_target(model, log_prior = function(p) dnorm(p$median)), "log_prior")
  said <- expect_error(as_target(model, log_prior = function() 1), "list with the elements mean and log_sd")
  expect_match(conditionMessage(said), "unused argument")
})

test_that("a model object says which library it lacks", {
  skip_if_not_installed("TMB")
  model <- list(
    par = c(beta = 1), fn = function(x) 0, gr = function(x) 0, env = list2env(list(DLL = "of_no_package"))
  )
  error <- catch(as_target(model))
  expect_s3_class(error, "autosmc_error_input")
  expect_match(message_of(error), "Load it first", fixed = TRUE)
})

# A function of a package, which is no dependency.
of_package <- function(package, name) {
  skip_if_not_installed("TMB")
  skip_if(!suppressWarnings(requireNamespace(package, quietly = TRUE)), paste(package, "is not installed"))
  getExportedValue(package, name)
}

glmmTMB_of <- function(...) suppressWarnings(of_package("glmmTMB", "glmmTMB")(...))

test_that("a fit of glmmTMB takes a prior, and asks for one", {
  fit <- glmmTMB_of(dist ~ speed, data = cars, family = "poisson")
  expect_bad(as_target(fit), "log_prior")
  said <- expect_error(as_target(fit, log_prior = 3), "must be a function, not 3")
  expect_null(said$parent)
  target <- as_target(fit, log_prior = function(p) sum(dnorm(p$beta, 0, 10, log = TRUE)))
  expect_length(target$improper, 0)
  x <- rbind(c(1, 0.1), c(2, 0.15))
  by_hand <- apply(x, 1, function(b) {
    sum(dpois(cars$dist, exp(b[1] + b[2] * cars$speed), log = TRUE)) + sum(dnorm(b, 0, 10, log = TRUE))
  })
  expect_equal(evaluate_target(target, x)$log_density, by_hand)
  expect_gradient(target, x)
})

test_that("effects of groups in a fit of glmmTMB have the mode that TMB finds, near the fit and far from it", {
  fit <- glmmTMB_of(count ~ 1 + (1 | spray), data = InsectSprays, family = "poisson")
  target <- suppressMessages(as_target(fit, log_prior = function(p) sum(dnorm(unlist(p), 0, 3, log = TRUE))))
  x <- rep(fit$fit$par, each = 8) + rep(c(0.1, 1, 4, 9), each = 2) * cbind(sin(1:8), cos(1:8))
  by_tmb <- suppressWarnings(apply(x, 1, fit$obj$fn))
  prior <- rowSums(dnorm(x, 0, 3, log = TRUE))
  expect_equal(evaluate_target(target, x, gradient = FALSE)$log_density, prior - by_tmb)
  expect_gradient(target, x[1:4, ])
})

test_that("what has no prior in a fit of glmmTMB is named, whether the prior is the model's or given", {
  fit <- glmmTMB_of(count ~ 1 + (1 | spray), data = InsectSprays, family = "poisson")
  flat_in <- function(...) {
    warned <- NULL
    target <- withCallingHandlers(suppressMessages(as_target(fit, ...)), autosmc_warning_prior = function(w) {
      warned <<- message_of(w)
      invokeRestart("muffleWarning")
    })
    expect_identical(grepl("log_prior", c(warned, "")[1]), length(target$improper) > 0)
    target$improper
  }
  of_beta <- function(p) dnorm(p$beta, 0, 10, log = TRUE)
  expect_identical(flat_in(log_prior = of_beta), "theta")
  # flat for the standard deviation, with its Jacobian
  expect_identical(flat_in(log_prior = function(p) of_beta(p) + p$theta), "theta")
  expect_length(flat_in(log_prior = function(p) of_beta(p) + dexp(exp(p$theta), log = TRUE) + p$theta), 0)

  # as newer versions have them: normal(0, 3) of beta, gamma(1, 2) of theta, and lkj() of no density
  prior_of <- function(distribution, parameter, numbers, start = 0) {
    own <- list(
      prior_distrib = distribution, prior_whichpar = parameter, prior_elstart = start, prior_elend = 0,
      prior_npar = length(numbers), prior_params = numbers
    )
    fit$obj$env$data[names(own)] <- own
    fit$obj$retape()
  }
  prior_of(0, 0, c(0, 3))
  expect_identical(flat_in(), "theta")
  expect_length(flat_in(log_prior = function(p) dnorm(p$theta, log = TRUE)), 0)
  prior_of(0, 0, c(0, 3), start = 1) # of all coefficients but the intercept, which is the only one
  expect_bad(as_target(fit), "log_prior")
  prior_of(30, 10, 1)
  expect_identical(flat_in(log_prior = of_beta), "theta")
  prior_of(10, 10, c(1, 2))
  expect_identical(flat_in(), "beta")
  x <- c(2, -0.3)
  found <- suppressMessages(evaluate_target(as_target(fit, log_prior = of_beta), t(x), gradient = FALSE)$log_density)
  expect_equal(found, dnorm(x[1], 0, 10, log = TRUE) - as.numeric(fit$obj$fn(x)) + x[2])
})

test_that("a spatial field of sdmTMB has its evidence, and no density where it is all rounding", {
  set.seed(1)
  data <- data.frame(X = runif(40), Y = runif(40))
  data$y <- sin(6 * data$X) + cos(5 * data$Y) + 0.3 * rnorm(40)
  sdmTMB_says <- function(name, ...) suppressWarnings(suppressMessages(of_package("sdmTMB", name)(...)))
  mesh <- sdmTMB_says("make_mesh", data, c("X", "Y"), cutoff = 0.25)
  fit_by <- function(backend) {
    sdmTMB_says("sdmTMB", y ~ 0, data, mesh, control = sdmTMB_says("sdmTMBcontrol", backend = backend))
  }
  log_prior <- function(p) sum(dnorm(unlist(p), c(-1, 1.5, -1), c(1, 0.7, 0.5), log = TRUE))
  for (backend in c("rtmb", "tmb")) {
    fit <- fit_by(backend)
    target <- quiet_laplace(as_target(fit, log_prior = log_prior))
    # the responses are jointly normal
    spde <- lapply(fit$tmb_data$spde[c("M0", "M1", "M2")], as.matrix)
    A <- as.matrix(mesh$A_st)
    by_hand <- function(x) {
      k2 <- exp(2 * x[2])
      precision <- exp(2 * x[1]) * (k2^2 * spde$M0 + 2 * k2 * spde$M1 + spde$M2)
      root <- chol(A %*% solve(precision, t(A)) + exp(2 * x[3]) * diag(40))
      log_prior(as.list(x)) - 20 * log(2 * pi) - sum(log(diag(root))) -
        sum(backsolve(root, data$y, transpose = TRUE)^2) / 2
    }
    x <- rbind(c(-2, 1, -1), c(0, 0, 0), c(-3, 2, 1))
    expect_equal(evaluate_target(target, x)$log_density, apply(x, 1, by_hand))
    expect_gradient(target, x)
    far <- 10 * matrix(sin(1:300), 100)^3 * 3
    expect_lt(max(evaluate_target(target, far, gradient = FALSE)$log_density), by_hand(c(-2.3, 1.2, -0.8)))
  }
  grid <- list(seq(-5, 2, 0.5), seq(-1.5, 4.5, 0.4), seq(-3, 0.5, 0.25))
  value <- apply(expand.grid(grid), 1, by_hand)
  exact <- max(value) + log(sum(exp(value - max(value))) * 0.5 * 0.4 * 0.25)
  alone <- as_target(fit, log_prior = log_prior, method = "laplace") # exact, for a normal distribution
  expect_log_z(quiet_laplace(smc(alone, n_particles = 64, n_steps = 4, rounds = 1, islands = 8, seed = 1)), exact)
})
