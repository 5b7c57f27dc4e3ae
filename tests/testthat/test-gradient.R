# Gradients compared with differences of the log density.

locations <- c(3, -2, 1)
scales <- c(0.1, 1, 10)

# Three normals of different scales, whose gradient is changed.
changed_target <- function(change, offset = 0, ...) {
  target_function(
    function(x) offset + sum(dnorm(x, locations, scales, log = TRUE)),
    dim = 3, gradient = function(x) change(-(x - locations) / scales^2),
    names = c("a", "b", "c"), ...
  )
}

verdict <- function(target, seed = 1) smc_scout(target, seed = seed)$gradient

# by the user -------------------------------------------------------------------

test_that("a table shows gradients and differences of all variables", {
  target <- changed_target(function(g) g * c(1, 0.5, -1))
  x <- rbind(c(3.1, -1, 5), c(2.95, -4, -3))
  table <- check_gradient(target, x)
  expect_s3_class(table, "tbl_df")
  expect_identical(
    names(table), c("point", "variable", "gradient", "difference", "error", "passed")
  )
  expect_identical(table$point, rep(1:2, each = 3))
  expect_identical(table$variable, rep(c("a", "b", "c"), 2))
  exact <- as.vector(-(t(x) - locations) / scales^2)
  expect_equal(table$gradient, exact * c(1, 0.5, -1))
  expect_equal(table$difference, exact, tolerance = 1e-6)
  expect_identical(table$passed, rep(c(TRUE, FALSE, FALSE), 2))
  expect_lt(max(table$error[table$passed]), 1e-6)
  # a vector is one point; by default there are draws of the scout's best normal
  expect_equal(check_gradient(target, x[1, ]), table[1:3, ])
  drawn <- check_gradient(changed_target(identity), seed = 1)
  expect_true(all(drawn$passed))
  expect_identical(max(drawn$point), 4L)
  expect_identical(drawn, check_gradient(changed_target(identity), seed = 1))
})

test_that("gradients are compared on the unconstrained scale", {
  target <- target_function(
    function(x) dgamma(x[1], 3, log = TRUE) + dbeta(x[2], 2, 3, log = TRUE),
    dim = 2, gradient = function(x) c(2 / x[1] - 1, 1 / x[2] - 2 / (1 - x[2])),
    lower = 0, upper = c(Inf, 1)
  )
  table <- check_gradient(target, c(0.3, 0.9))
  expect_true(all(table$passed))
  expect_equal(table$gradient, c(3 - 0.3, 2 * 0.1 - 3 * 0.9))
  expect_equal(table$difference, table$gradient, tolerance = 1e-5)
})

test_that("what is not finite, flat or rough is told apart", {
  f <- function(gradient) {
    target_function(function(x) dnorm(x[1], log = TRUE), 2, gradient = gradient)
  }
  expect_identical(
    check_gradient(f(function(x) c(-x[1], 0)), c(0.4, 1))$passed, c(TRUE, TRUE)
  )
  expect_identical(
    check_gradient(f(function(x) c(NaN, 1)), c(0.4, 1))$passed, c(FALSE, FALSE)
  )
  noisy <- target_function(
    function(x) -x^2 / 2 + sin(1e9 * x), 1,
    gradient = function(x) -x
  )
  expect_identical(check_gradient(noisy, 0.4)$passed, NA)
  impossible <- target_function(
    function(x) if (x > 0) -x else -Inf, 1,
    gradient = function(x) -1
  )
  expect_identical(check_gradient(impossible, -1)$passed, NA)
  expect_identical(check_gradient(impossible, 1)$passed, TRUE)
})

test_that("a wrong argument is named", {
  target <- changed_target(identity)
  for (bad in list("a", c(1, 2), matrix(0, 1, 2), c(1, NA, 1))) {
    expect_bad(check_gradient(target, bad), "x")
  }
  expect_bad(check_gradient(target, seed = -1), "seed")
  none <- target_function(normal_density, dim = 2)
  error <- catch(suppressMessages(check_gradient(none, c(0, 0))))
  expect_s3_class(error, "autosmc_error_input")
  expect_match(message_of(error), "no gradient of its own")
})

# by smc() ------------------------------------------------------------------------

test_that("smc() stops at a wrong gradient, and names the variable", {
  changes <- list(
    flipped = function(g) -g,
    doubled = function(g) 2 * g,
    missing = function(g) g * c(1, 0, 1)
  )
  for (name in names(changes)) {
    target <- changed_target(changes[[name]])
    for (run in list(smc, smc_adapt)) {
      error <- catch(run(target, n_particles = 16, n_steps = 2, seed = 1))
      expect_s3_class(error, c("autosmc_error_gradient", "autosmc_error"))
      if (name == "missing") {
        expect_identical(error$variable, "b")
      }
      at <- match(error$variable, c("a", "b", "c"))
      exact <- -(error$x[[at]] - locations[at]) / scales[at]^2
      expect_equal(error$difference, exact, tolerance = 1e-4)
      changed <- changes[[name]](rep(exact, 3))[at]
      expect_equal(error$gradient, changed, tolerance = 1e-6)
      expect_match(message_of(error), error$variable, fixed = TRUE)
      expect_match(message_of(error), "check_gradient", fixed = TRUE)
      expect_match(message_of(error), "target_rtmb", fixed = TRUE)
    }
  }
})

test_that("without the scout a diagnostic sees a wrong gradient, and the warning says how to check it", {
  target <- target_function(
    function(x) rowSums(dnorm(x, 2, log = TRUE)),
    dim = 3, gradient = function(x) 2 * (2 - x), vectorized = TRUE
  )
  warning <- NULL
  fit <- withCallingHandlers(
    smc(target, n_particles = 256, kernel = "mala", scout = FALSE, seed = 1),
    warning = function(w) {
      warning <<- message_of(w)
      invokeRestart("muffleWarning")
    }
  )
  expect_log_z(fit, 0)
  expect_false(fit$diagnostics$passed[fit$diagnostics$name == "stein"])
  expect_match(warning, "nothing has checked the gradient: see `check_gradient(target)`", fixed = TRUE)
})

test_that("the scout says what it found, at a few evaluations that are counted", {
  for (seed in 1:3) {
    expect_identical(verdict(changed_target(identity), seed), "right")
    expect_identical(verdict(changed_target(function(g) -g), seed), "wrong")
  }
  expect_identical(verdict(target_sonar()), "right")
  expect_identical(verdict(target_funnel()), "right")
  expect_identical(verdict(target_brownian()), "right")
  calls <- 0
  counting <- target_function(
    function(x) {
      calls <<- calls + 1
      normal_density(x)
    },
    dim = 2, gradient = normal_gradient
  )
  scout <- smc_scout(counting, seed = 1)
  expect_identical(scout$gradient, "right")
  expect_equal(scout$n_target_evals, calls)
})

test_that("one wrong coordinate of many is found", {
  target <- target_function(
    function(x) -rowSums(x^2) / 2,
    dim = 60, gradient = function(x) {
      x[, 7] <- 0
      -x
    }, vectorized = TRUE
  )
  expect_identical(vapply(1:2, function(s) verdict(target, s), ""), rep("wrong", 2))
})

# The target on the unconstrained scale, where the gradient is wrong by 1 % in one variable.
planted <- function(target, variable) {
  evaluate <- function(u, ...) evaluate_target(target, u, unconstrained = TRUE, ...)
  target_function(
    function(u) evaluate(u, gradient = FALSE)$log_density, target$dim,
    gradient = function(u) {
      g <- evaluate(u)$gradient
      g[, variable] <- 1.01 * g[, variable]
      g
    }, vectorized = TRUE
  )
}

# A Weibull distribution of which three numbers are known but where it begins: with a small shape the posterior
# density rises towards the least of them until no digits are left.
edge_at_datum <- function(shape, y = c(5, 6.2, 9)) {
  target_function(
    function(shift) sum(dweibull(y - shift, shape, log = TRUE)) + dnorm(shift, 0, 10, log = TRUE), 1,
    gradient = function(shift) sum((1 - shape) / (y - shift) + shape * (y - shift)^(shape - 1)) - shift / 100,
    upper = min(y), names = "shift"
  )
}

test_that("each of ten gradients that are wrong by 1 % in one variable is found", {
  student <- target_function(
    function(x) -2 * rowSums(log1p(x^2 / 3)), 4,
    gradient = function(x) -4 * x / (3 + x^2), vectorized = TRUE
  )
  collinear <- target_function(
    function(x) -rowSums(x^2) / 2 - 5e5 * (x[, 1] - x[, 2])^2, 3,
    gradient = function(x) -x - 1e6 * (x[, 1] - x[, 2]) * rep(c(1, -1, 0), each = nrow(x)), vectorized = TRUE
  )
  gamma <- target_function(
    function(x) 2 * log(x) - x, 1,
    gradient = function(x) 2 / x - 1, lower = 0, vectorized = TRUE
  )
  targets <- list(
    changed_target(identity), target_sonar(), target_funnel(5), target_brownian(), target_pines(5), student,
    collinear, gamma, beta_binomial, edge_at_datum(0.8)
  )
  for (target in targets) {
    for (seed in 1:3) {
      variable <- 1 + (7 * seed) %% target$dim
      expect_true(verdict(planted(target, variable), seed) == "wrong", info = paste(target$label, variable))
    }
  }
})

test_that("where variables have no digits left the gradient is not judged", {
  target <- edge_at_datum(0.1)
  # beside the datum, and on its other side in units of the last place
  table <- check_gradient(target, c(5 - 1e-15))
  expect_identical(table$passed, NA)
  expect_identical(check_gradient(target, 4)$passed, TRUE)
  for (seed in 1:8) expect_identical(verdict(target, seed), "right")
})

test_that("a large constant in the log density is no hindrance", {
  for (offset in c(1e6, -1e6, 1e9)) {
    expect_identical(verdict(changed_target(identity, offset)), "right")
    expect_identical(verdict(changed_target(function(g) 2 * g, offset)), "wrong")
  }
})

test_that("kinks are no alarm", {
  laplace <- target_function(
    function(x) -rowSums(abs(x)), 20,
    gradient = function(x) -sign(x), vectorized = TRUE
  )
  expect_identical(vapply(1:3, function(s) verdict(laplace, s), ""), rep("right", 3))
})

test_that("a rough log density brings a warning", {
  rough <- list(
    noisy = function(x) -sum(x^2) / 2 + 0.01 * sin(1e9 * sum(x)),
    stairs = function(x) -round(sum(x^2) / 2, 1)
  )
  for (f in rough) {
    target <- target_function(f, 2, gradient = function(x) -x)
    warnings <- list()
    withCallingHandlers(
      try(smc_adapt(target, n_particles = 16, n_steps = 2, rounds = c(1, 1), seed = 1),
        silent = TRUE
      ),
      warning = function(w) {
        warnings <<- c(warnings, list(w))
        invokeRestart("muffleWarning")
      }
    )
    of_gradient <- vapply(warnings, inherits, NA, "autosmc_warning_gradient")
    expect_identical(sum(of_gradient), 1L)
  }
})

test_that("differences in place of a gradient are not checked", {
  expect_identical(verdict(target_gaussian(2)), "right")
  target <- target_function(normal_density, dim = 2)
  expect_identical(suppressMessages(verdict(target)), NA_character_)
  half <- target_posterior(
    normal_density, normal_density,
    dim = 2, gradient = list(prior = function(x) x)
  )
  expect_identical(suppressMessages(verdict(half)), NA_character_)
  # a gradient in the attribute is the user's own
  wrong <- target_function(
    function(x) structure(normal_density(x), gradient = x),
    dim = 2
  )
  expect_identical(verdict(wrong), "wrong")
})

# once ------------------------------------------------------------------------------

test_that("a warning of the user's own, or of no gradient, is heard once a call", {
  target <- target_function(
    function(x) {
      log(-1)
      if (x[1] > 0) warning("on the right")
      -sum(x^2) / 2
    },
    dim = 2
  )
  for (run in list(smc_adapt, smc_scout)) {
    heard <- character()
    hear <- function(restart) {
      function(w) {
        heard <<- c(heard, conditionMessage(w))
        invokeRestart(restart)
      }
    }
    settings <- if (identical(run, smc_adapt)) {
      list(n_particles = 16, n_steps = 2, rounds = c(1, 1))
    }
    withCallingHandlers(
      do.call(run, c(list(target, seed = 1), settings)),
      warning = hear("muffleWarning"), message = hear("muffleMessage")
    )
    expect_identical(sum(heard == "NaNs produced"), 1L)
    expect_identical(sum(heard == "on the right"), 1L)
    expect_identical(sum(grepl("No gradient of", heard)), 1L)
  }
})

test_that("a basin where the gradient contradicts the density is left out, if it is right in another one", {
  target <- target_function(
    function(x) if (x[1] < 0) dnorm(x[1], -6, log = TRUE) + dnorm(x[2], log = TRUE) else 90 - sum((x - c(6, 0))^2),
    gradient = function(x) if (x[1] < 0) -(x - c(-6, 0)) else -8 * (x - c(6, 0)),
    dim = 2
  )
  scout <- smc_scout(target, n_starts = 40, seed = NULL)
  expect_identical(scout$gradient, "right")
  expect_estimate(scout$basins$elbo[1], scout$basins$elbo_error[1] + 0.01, 0, 0.2)
  expect_true(all(scout$basins$elbo < 7))
  expect_warning(signal_scout_problems(target, scout), "x1 = .*left out", class = "autosmc_warning_gradient")
})
