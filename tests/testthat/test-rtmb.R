# Targets that are tapes of RTMB, and model objects of other packages.

skip_if_not_installed("RTMB")

evaluate <- function(target, x, ...) autosmc:::evaluate_target(target, x, ...)

# Values of the plain function, and gradients by central differences; x: a row a point.
expect_agrees <- function(target, f, x) {
  value <- function(x) apply(x, 1, f)
  given <- evaluate(target, x)
  expect_equal(given$log_density, value(x), tolerance = 1e-12)
  expect_equal(
    evaluate(target, x, gradient = FALSE)$log_density, value(x),
    tolerance = 1e-12
  )
  slope <- vapply(seq_len(ncol(x)), function(j) {
    h <- replace(numeric(ncol(x)), j, 1e-5)
    (value(sweep(x, 2, h, "+")) - value(sweep(x, 2, h))) / 2e-5
  }, numeric(nrow(x)))
  expect_equal(given$gradient, matrix(slope, nrow(x)), tolerance = 1e-6)
}

# Eight schools ------------------------------------------------------------------

schools <- local({
  y <- c(28, 8, -3, 7, -1, 1, 18, 12)
  se <- c(15, 10, 16, 11, 9, 11, 10, 18)
  function(p) {
    sum(dnorm(y, p$mu + p$tau * p$eta, se, log = TRUE)) +
      sum(dnorm(p$eta, log = TRUE)) + dnorm(p$mu, 0, 5, log = TRUE) +
      dexp(p$tau, 0.2, log = TRUE)
  }
})
schools_parameters <- list(mu = 0, tau = 1, eta = numeric(8))
schools_of_vector <- function(x) {
  schools(list(mu = x[1], tau = x[2], eta = x[-(1:2)]))
}
schools_target <- function(...) {
  target_rtmb(schools, schools_parameters, lower = c(tau = 0), ...)
}

test_that("the tape gives the values and the gradient, for any number of points", {
  target <- schools_target()
  expect_identical(target$names, c("mu", "tau", sprintf("eta[%d]", 1:8)))
  expect_identical(target$lower, c(-Inf, 0, rep(-Inf, 8)))
  expect_identical(target$upper, rep(Inf, 10))
  set.seed(1)
  for (n in c(1, 2, 127, 128, 129, 300)) {
    expect_agrees(target, schools_of_vector, matrix(abs(rnorm(10 * n)), n))
  }
})

test_that("R is not called again, and nothing is left behind", {
  calls <- 0
  counted <- function(p) {
    calls <<- calls + 1
    -sum(p$x^2) / 2
  }
  attached <- search()
  config <- RTMB::TapeConfig()
  target <- target_rtmb(counted, list(x = c(1, 2)))
  fit <- quick_smc(target)
  again <- quick_smc(target)
  expect_identical(calls, 2) # with numbers that are recorded, and with plain ones
  expect_identical(without_time(again), without_time(fit))
  expect_identical(search(), attached)
  expect_identical(RTMB::TapeConfig(), config)
})

test_that("the run is that of the same function as a target of R functions", {
  plain <- target_function(schools_of_vector,
    dim = 10, lower = c(-Inf, 0, rep(-Inf, 8)),
    gradient = function(x) {
      drop(evaluate(schools_target(), t(x))$gradient)
    }
  )
  by_tape <- quick_run(schools_target(), step_size = 0.1)
  by_function <- quick_run(plain, step_size = 0.1)
  expect_equal(by_tape$log_z, by_function$log_z, tolerance = 1e-8)
})

# Random effects ------------------------------------------------------------------
# y_ij ~ N(mu + u_i, 1), u_i ~ N(0, tau^2): with u integrated out a normal again, so that
# Laplace's approximation is exact.
effects_data <- local({
  set.seed(4)
  group <- rep(1:4, each = 3)
  list(group = group, y = rnorm(12, 1 + rnorm(4)[group]))
})
effects <- local({
  group <- effects_data$group
  y <- effects_data$y
  function(p) {
    -sum(dnorm(y, p$mu + p$u[group], 1, log = TRUE)) -
      sum(dnorm(p$u, 0, p$tau, log = TRUE)) -
      dnorm(p$mu, 0, 3, log = TRUE) - dexp(p$tau, 1, log = TRUE)
  }
})
effects_parameters <- list(mu = 0, tau = 1, u = numeric(4))
effects_marginal <- function(x) {
  covariance <- diag(12) + x[2]^2 * outer(effects_data$group, effects_data$group, "==")
  residual <- effects_data$y - x[1]
  dnorm(x[1], 0, 3, log = TRUE) + dexp(x[2], 1, log = TRUE) -
    (12 * log(2 * pi) + as.numeric(determinant(covariance)$modulus) +
      sum(residual * solve(covariance, residual))) / 2
}
effects_model <- function(...) {
  library(RTMB, warn.conflicts = FALSE)
  on.exit(detach("package:RTMB"))
  MakeADFun(effects, effects_parameters, ..., silent = TRUE)
}

# closed forms -------------------------------------------------------------------

test_that("a regression has its evidence", {
  set.seed(2)
  X <- cbind(1, matrix(rnorm(60), 20))
  y <- drop(X %*% c(0.3, -0.5, 1, 0)) + rnorm(20)
  target <- target_rtmb(
    function(p, data) {
      sum(dnorm(data$y, data$X %*% p$beta, 1, log = TRUE)) +
        sum(dnorm(p$beta, log = TRUE))
    },
    parameters = list(beta = numeric(4)),
    data = list(X = X, y = y)
  )
  covariance <- diag(20) + tcrossprod(X)
  exact <- -(20 * log(2 * pi) + as.numeric(determinant(covariance)$modulus) +
    sum(y * solve(covariance, y))) / 2
  expect_log_z(smc(target, n_particles = 256, n_steps = 16, seed = 1), exact)
})

test_that("bounds count with their Jacobian", {
  target <- target_rtmb(
    function(p) {
      dgamma(p$rate, 3, 2, log = TRUE) + sum(dbeta(p$share, 2, 3, log = TRUE))
    },
    parameters = list(rate = 1, share = c(0.5, 0.5)),
    lower = 0, upper = list(share = c(1, 1))
  )
  expect_identical(target$lower, c(0, 0, 0))
  expect_identical(target$upper, c(Inf, 1, 1))
  expect_log_z(
    smc(target, n_particles = 256, n_steps = 16, kernel = kernel_mala(), seed = 1), 0
  )
})

test_that("matrices go in as matrices, with their elements in R's order", {
  mean <- matrix(c(1, 2, 3, 4, 5, 6), 2)
  f <- function(p) {
    stopifnot(identical(dim(p$A), c(2L, 3L)), identical(names(p$b), c("u", "v")))
    -sum((p$A - mean)^2) / 2 - sum((p$A %*% c(1, -1, 2) - p$b)^2) / 2 +
      log(p$C[1, 1, 1]) - p$C[1, 1, 1]
  }
  parameters <- list(A = 0 * mean, b = c(u = 0, v = 1), C = array(1, c(1, 1, 1)))
  target <- target_rtmb(f, parameters, lower = list("C[1,1,1]" = 0))
  expect_identical(target$names, c(
    "A[1,1]", "A[2,1]", "A[1,2]", "A[2,2]", "A[1,3]", "A[2,3]",
    "b[1]", "b[2]", "C[1,1,1]"
  ))
  expect_identical(target$lower, rep(c(-Inf, 0), c(8, 1)))
  set.seed(3)
  x <- abs(matrix(rnorm(45), 5))
  expect_agrees(target, function(x) {
    f(list(A = matrix(x[1:6], 2), b = c(u = x[7], v = x[8]), C = array(x[9], c(1, 1, 1))))
  }, x)
})

test_that("constants, and a single variable, will do", {
  one <- target_rtmb(function(p) dnorm(p$x, log = TRUE), list(x = 0))
  x <- cbind(c(-1, 0, 2))
  expect_identical(one$names, "x")
  expect_agrees(one, function(x) dnorm(x, log = TRUE), x)
  flat <- target_rtmb(function(p) 3, list(x = 0))
  expect_identical(
    evaluate(flat, x)[c("log_density", "gradient")],
    list(log_density = rep(3, 3), gradient = matrix(0, 3, 1))
  )
})

test_that("a point where the tape is not finite is impossible, and no error", {
  target <- target_rtmb(function(p) sum(log(p$x)) - sum(p$x), list(x = c(1, 1)))
  value <- evaluate(target, rbind(c(1, 1), c(-1, 1), c(2, 3)))$log_density
  expect_identical(is.nan(value), c(FALSE, TRUE, FALSE))
  expect_equal(value[c(1, 3)], c(-2, log(6) - 5))
  fit <- quick_smc(target, reference = reference_gaussian(mean = 2))
  expect_true(is.finite(fit$log_z))
})

test_that("a target that is impossible near 0 is sampled from its parameters", {
  # Gompertz times of survival: in days, exp(rate * days) overflows at most starts, and at 0
  days <- c(10, 40, 90, 150, 240, 380, 400, 520, 700, 1000)
  log_density <- function(p) {
    cumulative <- exp(p$level) * expm1(p$rate * days) / p$rate
    sum(p$level + p$rate * days) - sum(cumulative) +
      dnorm(p$level, -5, 3, log = TRUE) + dexp(p$rate, 100, log = TRUE)
  }
  start <- list(level = -5, rate = 0.001)
  target <- target_rtmb(log_density, start, lower = c(rate = 0))
  expect_identical(smc_scout(target, seed = 1)$n_dropped, 0L)
  inner <- function(rate) {
    vapply(rate, function(r) {
      stats::integrate(function(level) {
        exp(vapply(level, function(l) log_density(list(level = l, rate = r)), 0) + 70)
      }, -20, 2, rel.tol = 1e-8)$value
    }, 0)
  }
  truth <- log(stats::integrate(inner, 0, 0.02, rel.tol = 1e-7)$value) - 70
  expect_log_z(calmly(smc(target, seed = 1)), truth, resolution = 0.05)
  # a model object's own, where it is inside the bounds
  model <- RTMB::MakeADFun(function(p) p$level^2 + p$rate^2, start, silent = TRUE)
  expect_identical(as_target(model, lower = list(rate = 0))$start, c(-5, 0.001))
  expect_null(as_target(model, lower = list(rate = 0.01))$start)
})

test_that("a large tape is evaluated in smaller blocks", {
  size <- function(n) autosmc:::block_size(n)
  expect_identical(size(100), 128)
  expect_identical(size(50000), 1)
  expect_identical(size(1e7), 1)
})

# other processes ----------------------------------------------------------------

test_that("a target can be saved and read", {
  target <- schools_target()
  x <- matrix(abs(rnorm(30)), 3)
  before <- evaluate(target, x)
  again <- unserialize(serialize(target, NULL))
  expect_identical(evaluate(again, x), before)
  expect_identical(evaluate(target, x), before)
})

test_that("workers record the tape again, and give the same", {
  skip_if_not_installed("future")
  model <- effects_model(random = "u")
  targets <- list(
    schools_target(),
    quiet_laplace(as_target(model, lower = c(tau = 0)))
  )
  old <- future::plan(future::sequential)
  on.exit(future::plan(old))
  run <- function() {
    lapply(targets, function(target) {
      quick_smc(target) # so that the tapes are there
      calmly(smc(target,
        n_particles = 32, n_steps = 3, rounds = 0, islands = 2, seed = 3
      ))$islands$log_z
    })
  }
  here <- run()
  future::plan(future::multisession, workers = 2)
  expect_identical(to_workers(run()), here)
})

# what is rejected ---------------------------------------------------------------

test_that("what is wrong with the arguments is said", {
  f <- function(p) -sum(p$x^2)
  expect_bad(target_rtmb(), "log_density")
  expect_bad(target_rtmb(3, list(x = 0)), "log_density")
  expect_bad(target_rtmb(f), "parameters")
  expect_bad(target_rtmb(f, c(x = 0)), "parameters")
  expect_bad(target_rtmb(f, list()), "parameters")
  expect_bad(target_rtmb(f, list(0)), "parameters")
  expect_bad(target_rtmb(f, list(x = 0, 1)), "parameters")
  expect_bad(target_rtmb(f, list(x = 0, x = 1)), "parameters")
  expect_bad(target_rtmb(f, list(x = "a")), "parameters$x")
  expect_bad(target_rtmb(f, list(x = NA)), "parameters$x")
  expect_bad(target_rtmb(f, list(x = c(1, Inf))), "parameters$x")
  expect_bad(target_rtmb(f, list(x = factor(1))), "parameters$x")
  expect_bad(target_rtmb(f, list(x = numeric())), "parameters")
  expect_bad(target_rtmb(f, list(x = 0), lower = c(y = 1)), "lower")
  expect_bad(target_rtmb(f, list(x = 0), lower = list(-1)), "lower")
  expect_bad(target_rtmb(f, list(x = 0), upper = "a"), "upper")
  expect_bad(target_rtmb(f, list(x = c(0, 0)), upper = c(1, 2, 3)), "upper")
  expect_bad(target_rtmb(f, list(x = c(0, 0)), upper = list(x = 1:3)), "upper$x")
  expect_bad(target_rtmb(f, list(x = 0), upper = c(x = NA_real_)), "upper$x")
  expect_bad(target_rtmb(f, list(x = 0), lower = 1, upper = -1), "lower")
  expect_bad(target_rtmb(f, list(x = 0), lower = c(x = 0)), "parameters")
})

test_that("a function that cannot be recorded is rejected, with the reason", {
  x <- list(x = c(1, 1))
  expect_bad(target_rtmb(function(p) p$x, x), "log_density")
  expect_bad(target_rtmb(function(p) "much", x), "log_density")
  expect_bad(target_rtmb(function(p) NULL, x), "log_density")
  expect_bad(target_rtmb(function(p) list(1), x), "log_density")
  expect_match(
    conditionMessage(catch(target_rtmb(function(p) p$x, x))), "2 numbers"
  )
  raised <- catch(target_rtmb(function(p) stop("no such thing"), x))
  expect_s3_class(raised, "autosmc_error_input")
  expect_match(message_of(raised$parent), "no such thing")
  # each cause in its own words
  says <- function(f, ...) {
    error <- catch(target_rtmb(f, x, ...))
    expect_s3_class(error, "autosmc_error_input")
    gsub("\\s+", " ", conditionMessage(error))
  }
  expect_match(says(function(p) if (p$x[1] > 0) 1 else 2), "A parameter is compared")
  expect_match(says(function(p) ifelse(p$x[1] > 0, 1, 2)), "A parameter is compared")
  expect_match(says(function(p) dunif(p$x[1], log = TRUE), lower = 0, upper = 2), "no `dunif()`: between", fixed = TRUE)
  expect_match(says(function(p) sum(vapply(1:2, function(i) p$x[i], 0))), "It fails in `vapply()`", fixed = TRUE)
  expect_match(says(function(p) sum(dnorm(p$x, p$mu, log = TRUE))), "asks for mu; the parameters are x", fixed = TRUE)
  expect_match(says(function(p) sum(dnorm(p$x, nowhere, log = TRUE))), "fails at `parameters`", fixed = TRUE)
  expect_match(says(function(p) sum(p$x), map = list()), "an argument of `RTMB::MakeADFun()`", fixed = TRUE)
  expect_match(says(function(p) sum(p$x), silent = TRUE), "silent")
})

test_that("a target that is recorded again with other data is an error", {
  around <- new.env()
  around$y <- 1:3
  f <- local(function(p) sum(dnorm(y, p$mu, log = TRUE)) + dnorm(p$mu, log = TRUE), around)
  target <- target_rtmb(f, list(mu = 0))
  again <- function() unserialize(serialize(target, NULL))
  expect_identical(evaluate_target(again(), 0.5)$log_density, evaluate_target(target, 0.5)$log_density)
  around$y <- 2:4
  expect_bad(evaluate_target(again(), 0.5), "log_density")
})

# model objects ------------------------------------------------------------------

test_that("a model object of RTMB is its negative, and stays as it is", {
  model <- effects_model()
  best <- model$env$last.par.best
  last <- model$env$last.par
  target <- as_target(model, lower = list(tau = 0), upper = c("u[2]" = 9))
  expect_identical(target$names, c("mu", "tau", sprintf("u[%d]", 1:4)))
  expect_identical(target$lower, c(-Inf, 0, rep(-Inf, 4)))
  expect_identical(target$upper, c(Inf, Inf, Inf, 9, Inf, Inf))
  set.seed(5)
  expect_agrees(
    target, function(x) -model$env$f(x), abs(matrix(rnorm(40 * 6), 40))
  )
  model$env$last.par <- last
  quick_smc(target)
  expect_identical(model$env$last.par.best, best)
  expect_identical(model$env$last.par, last)
  expect_bad(as_target(model, dim = 2), "dim")
  expect_bad(as_target(model, lower = c(v = 0)), "lower")
})

test_that("`map` fixes and joins variables", {
  model <- effects_model(map = list(mu = factor(NA), u = factor(c(NA, "b", "a", "b"))))
  target <- as_target(model)
  expect_identical(target$names, c("tau", "u[3]", "u[2]"))
  x <- rbind(c(0.5, 1, -1), c(2, 0.3, 0.7))
  expect_agrees(target, function(x) {
    -effects(list(mu = 0, tau = x[1], u = c(0, x[3], x[2], x[3])))
  }, x)
})

test_that("`random` effects are integrated out by Laplace's approximation", {
  for (intern in c(FALSE, TRUE)) {
    model <- effects_model(random = "u", intern = intern)
    expect_message(
      target <- as_target(model, lower = c(tau = 0)),
      class = "autosmc_message_laplace"
    )
    expect_identical(target$names, c("mu", "tau"))
    set.seed(6)
    x <- abs(matrix(rnorm(80), 40))
    expect_agrees(target, effects_marginal, x)
    # the search for the mode starts anew, whatever was evaluated before
    before <- evaluate(target, x)
    evaluate(target, 100 * x)
    expect_identical(evaluate(target, x), before)
  }
})

test_that("the functions of a model object will do where there is no tape of RTMB", {
  # as an object of TMB is evaluated
  model <- autosmc:::own_copy(effects_model(random = "u"))
  library(RTMB, warn.conflicts = FALSE)
  on.exit(detach("package:RTMB"))
  functions <- autosmc:::tmb_functions(model)
  target <- target_function(functions$log_density, 2, functions$gradient)
  x <- rbind(c(1, 1), c(-1, 2), c(0.5, 0.1))
  expect_agrees(target, effects_marginal, x)
  again <- unserialize(serialize(target, NULL))
  expect_identical(evaluate(again, x), evaluate(target, x))
})

# A datum is changed by less than the values at some particles would tell. To ask an object with random effects for all
# that it has would end R.
test_that("targets of RTMB, and model objects with and without random effects, are resumed", {
  density <- function(y) {
    force(y)
    function(p) -sum((y - p$mu - p$u)^2) / 2 - sum(p$u^2) / 2 - p$mu^2 / 50
  }
  parameters <- list(mu = 0, u = numeric(3))
  object <- function(y, ...) {
    f <- density(y)
    RTMB::MakeADFun(function(p) -f(p), parameters, silent = TRUE, ...)
  }
  ways <- list(
    function(y) target_rtmb(density(y), parameters),
    function(y) as_target(object(y)),
    function(y) quiet_laplace(as_target(object(y, random = "u"))),
    function(y) {
      functions <- internal("tmb_functions")(internal("own_copy")(object(y)))
      target_function(functions$log_density, 4, functions$gradient)
    }
  )
  for (way in ways) expect_resumed(function() way(c(1, 2, 0)), function() way(c(1, 2, 1e-13)))
})

test_that("lists that are no model objects are rejected", {
  expect_bad(as_target(list()), "target")
  expect_bad(as_target(list(par = 1, fn = sum, gr = sum)), "target")
  expect_bad(smc(data.frame(x = 1)), "target")
  report <- effects_model()
  report$env$ADreport <- TRUE
  expect_error(as_target(report), class = "autosmc_error_input")
  report$env$ADreport <- FALSE
  report$env$profile <- 1
  expect_error(as_target(report), class = "autosmc_error_input")
})

# Points at which a tape fails ----------------------------------------------------

test_that("a point at which what was recorded fails is impossible, and the others are not", {
  # the factor of a matrix that is no covariance outside of -1 < r < 1
  target <- target_rtmb(
    function(p) {
      L <- chol(diag(2) + p$r * (1 - diag(2)))
      dnorm(p$r, 0, 0.5, log = TRUE) + dnorm(p$m, L[1, 2], 1, log = TRUE)
    },
    list(r = 0, m = 0)
  )
  x <- cbind(c(0.5, 2, -0.2, -3, 0.9), seq(-1, 1, by = 0.5))
  value <- dnorm(x[, 1], 0, 0.5, log = TRUE) + dnorm(x[, 2], x[, 1], log = TRUE)
  possible <- abs(x[, 1]) < 1
  for (gradient in c(TRUE, FALSE)) {
    at <- evaluate(target, x, gradient = gradient)
    expect_identical(is.finite(at$log_density), possible)
    expect_equal(at$log_density[possible], value[possible])
  }
  expect_equal(
    evaluate(target, x)$gradient[possible, ],
    cbind(-x[, 1] / 0.25 + x[, 2] - x[, 1], x[, 1] - x[, 2])[possible, ]
  )
  fit <- smc(target, n_particles = 256, islands = 4, seed = 1)
  expect_log_z(fit, log(diff(pnorm(c(-1, 1), 0, 0.5))))
})

test_that("a density with an edge at a datum has the gradient of its tape", {
  y <- 5 + qweibull(ppoints(12), 0.5, 2)
  target <- target_rtmb(
    function(p) {
      z <- (y - p$shift) / p$scale
      sum(log(p$shape / p$scale) + (p$shape - 1) * log(z) - z^p$shape) +
        dexp(p$shape, 1, log = TRUE) + dexp(p$scale, 1, log = TRUE) + dnorm(p$shift, 0, 10, log = TRUE)
    },
    list(shift = 4, shape = 1, scale = 1),
    lower = c(shape = 0, scale = 0), upper = c(shift = min(y))
  )
  for (seed in 1:4) expect_identical(smc_scout(target, seed = seed)$gradient, "right")
})

test_that("what is recorded is held against the value of plain numbers", {
  # compiled code that takes recorded numbers for complex ones
  loses <- function(p) -sum(backsolve(diag(2), c(p$mu - 1, p$mu))^2) / 2
  error <- suppressWarnings(catch(target_rtmb(loses, list(mu = 0))))
  expect_s3_class(error, "autosmc_error_input")
  expect_match(message_of(error), "is -0.5 at `parameters`, but 0 as recorded by RTMB")
})
