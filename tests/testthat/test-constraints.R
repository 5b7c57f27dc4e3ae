# Targets with bounds: densities, evidences and draws in closed form.

# targets whose evidence and moments are known ---------------------------------

vectorised <- function(f, gradient, ...) {
  target_function(f, gradient = gradient, vectorized = TRUE, ...)
}

# start: a reference with room to spare, on the unconstrained scale.
gamma_target <- function(shape, rate) {
  list(
    target = vectorised(
      function(x) (shape - 1) * log(x[, 1]) - rate * x[, 1],
      function(x) (shape - 1) / x - rate,
      dim = 1, lower = 0
    ),
    log_z = lgamma(shape) - shape * log(rate),
    mean = shape / rate,
    start = reference_gaussian(0.5, 1)
  )
}

beta_target <- function(a, b) {
  list(
    target = vectorised(
      function(x) (a - 1) * log(x[, 1]) + (b - 1) * log1p(-x[, 1]),
      function(x) (a - 1) / x - (b - 1) / (1 - x),
      dim = 1, lower = 0, upper = 1
    ),
    log_z = lbeta(a, b),
    mean = a / (a + b),
    start = reference_gaussian(sd = 3)
  )
}

# A standard normal, cut off.
truncated_target <- function(lower, upper) {
  z <- pnorm(upper) - pnorm(lower)
  list(
    target = vectorised(
      function(x) dnorm(x[, 1], log = TRUE), function(x) -x,
      dim = 1, lower = lower, upper = upper
    ),
    log_z = log(z),
    mean = (dnorm(lower) - dnorm(upper)) / z,
    start = reference_gaussian(sd = 2.5)
  )
}

# exp(2 x) below 3
upper_target <- list(
  target = vectorised(
    function(x) 2 * x[, 1], function(x) 0 * x + 2,
    dim = 1, upper = 3
  ),
  log_z = 6 - log(2),
  mean = 3 - 1 / 2,
  start = reference_gaussian(sd = 2)
)

# s ~ Gamma(6, 2) above 0, m | s ~ N(1, s^2) without bounds, and p ~ Beta(2, 3)
# between -1 and 1, none of them normalised but m.
mixed_target <- list(
  target = vectorised(
    function(x) {
      5 * log(x[, "s"]) - 2 * x[, "s"] +
        dnorm(x[, "m"], 1, x[, "s"], log = TRUE) +
        log1p(x[, "p"]) + 2 * log1p(-x[, "p"])
    },
    function(x) {
      away <- (x[, "m"] - 1) / x[, "s"]
      cbind(
        5 / x[, "s"] - 2 + (away^2 - 1) / x[, "s"],
        -away / x[, "s"],
        1 / (1 + x[, "p"]) - 2 / (1 - x[, "p"])
      )
    },
    dim = 3, names = c("s", "m", "p"),
    lower = c(0, -Inf, -1), upper = c(Inf, Inf, 1)
  ),
  log_z = lgamma(6) - 6 * log(2) + lbeta(2, 3) + 4 * log(2),
  mean = c(3, 1, 2 * 2 / 5 - 1),
  start = reference_gaussian(c(1, 1, 0), c(0.8, 6, 2))
)

known <- list(
  "gamma" = gamma_target(4, 2),
  "beta" = beta_target(2.5, 1.7),
  "a normal, cut off on one side" = truncated_target(0.5, Inf),
  "a normal, cut off on both sides" = truncated_target(-0.5, 2),
  "an upper bound only" = upper_target,
  "bounded variables and free ones" = mixed_target
)

# laws of the estimates --------------------------------------------------------

# Each island's estimate of Z is unbiased, and so is that of the integral of x,
# which is the estimate of Z times the weighted mean of x. Both over the true Z, and
# the second over the size of x.
expect_right <- function(known, schedule, reference, kernel, n = 200) {
  fit <- calmly(smc_run(
    known$target, schedule,
    reference = reference, kernel = kernel,
    n_particles = 256, islands = n, seed = 2
  ))
  expect_mean(exp(fit$islands$log_z - known$log_z), 1, resolution = 0.04)
  w <- exp(fit$log_weights) * n * exp(fit$log_z - known$log_z)
  integrals <- rowsum(w * fit$particles, fit$island)
  for (j in seq_along(known$mean)) {
    size <- max(1, abs(known$mean[j]))
    expect_mean(integrals[, j] / size, known$mean[j] / size, resolution = 0.1)
  }
}

# Whitened, with three rounds, or not. One of them may try a shape in vain.
for (name in names(known)) {
  for (rounds in c(0, 3)) {
    title <- sprintf("evidence and means are right: %s, %d rounds", name, rounds)
    test_that(title, {
      this <- known[[name]]
      adapted <- smc_adapt(
        this$target,
        n_particles = 256, n_steps = 8, rounds = rounds, reference = this$start,
        kernel = kernel_mala(), scout = FALSE, seed = 1
      )
      # weights of several variables scatter more
      n <- if (this$target$dim > 1) 400 else 200
      expect_right(this, adapted$schedule, adapted$reference, kernel_mala(), n)
    })
  }
}

test_that("evidence and means are right with the unadjusted kernels", {
  start <- reference_gaussian(sd = 1.5)
  schedule <- data.frame(lambda = (1:8) / 8, step_size = 0.4, refresh_rate = 0.9)
  expect_right(known$beta, schedule, start, kernel_klmc(), n = 400)
  expect_right(known$beta, schedule, start, kernel_lmc(), n = 400)
})

test_that("the fitted reference is that of the unconstrained particles", {
  # log x is normal: the fit by gradients is exact
  log_normal <- target_function(
    function(x) dlnorm(x, 0.6, 0.5, log = TRUE), 1,
    gradient = function(x) (-1 - (log(x) - 0.6) / 0.25) / x, lower = 0
  )
  fit <- smc_adapt(log_normal, n_particles = 1000, seed = 1, rounds = 1)
  expect_equal(fit$reference$mean, 0.6, tolerance = 1e-8)
  expect_equal(fit$reference$sd, 0.5, tolerance = 1e-8)
  # log x of Gamma(a, b) has mean digamma(a) - log(b)
  fit <- smc_adapt(
    gamma_target(4, 2)$target,
    n_particles = 1000, kernel = "klmc", seed = 1, rounds = 1
  )
  expect_equal(fit$reference$mean, digamma(4) - log(2), tolerance = 0.3)
})

test_that("draws have the right distribution", {
  fit <- smc(beta_target(0.5, 0.7)$target, n_particles = 512, seed = 1)
  set.seed(1)
  draws <- sample(fit$particles, 400, replace = TRUE, exp(fit$log_weights))
  expect_gt(suppressWarnings(ks.test(draws, "pbeta", 0.5, 0.7))$p.value, chance)
})

test_that("an untuned run makes exactly N (T + 1) evaluations, all inside", {
  seen <- NULL
  target <- target_function(
    function(x) {
      seen <<- c(seen, x)
      dbeta(x[, 1], 0.5, 0.5, log = TRUE)
    },
    dim = 1, gradient = function(x) -0.5 / x + 0.5 / (1 - x),
    vectorized = TRUE, lower = 0, upper = 1
  )
  fit <- quick_run(target, reference = reference_gaussian(0, 30))
  expect_identical(fit$islands$n_target_evals, 16 * 4)
  expect_identical(fit$runs$n_target_evals, 16 * 4)
  expect_length(seen, 16 * 4)
  expect_true(all(seen > 0 & seen < 1))
})

test_that("without bounds nothing changes", {
  free <- normal_target(2)
  same <- normal_target(2, lower = c(-Inf, -Inf), upper = Inf)
  expect_identical(quick_smc(same)$particles, quick_smc(free)$particles)
  expect_null(target_interface(same)$lower)
})

# the unconstrained scale --------------------------------------------------------

unconstrained_points <- function(dim) {
  set.seed(1)
  rbind(matrix(rnorm(20 * dim, sd = 2), 20), rep(-5, dim), rep(5, dim))
}

for (name in names(known)) {
  test_that(paste("the density gains the Jacobian:", name), {
    target <- known[[name]]$target
    u <- unconstrained_points(target$dim)
    at <- function(u) evaluate_target(target, u, unconstrained = TRUE)
    value <- at(u)
    log_jacobian <- 0
    x <- u
    for (j in seq_len(target$dim)) {
      low <- target$lower[j]
      high <- target$upper[j]
      if (is.finite(low) && is.finite(high)) {
        x[, j] <- low + (high - low) * plogis(u[, j])
        log_jacobian <- log_jacobian + log(high - low) + dlogis(u[, j], log = TRUE)
      } else if (is.finite(low) || is.finite(high)) {
        x[, j] <- if (is.finite(low)) low + exp(u[, j]) else high - exp(u[, j])
        log_jacobian <- log_jacobian + u[, j]
      }
      slope <- (at(u + 1e-5 * (col(u) == j))$log_density -
        at(u - 1e-5 * (col(u) == j))$log_density) / 2e-5
      expect_equal(value$gradient[, j], slope, tolerance = 1e-6)
    }
    expect_equal(
      value$log_density,
      evaluate_target(target, x)$log_density + log_jacobian,
      tolerance = 1e-10
    )
  })
}

test_that("central differences stay inside, and are right there", {
  seen <- NULL
  f <- function(x) {
    seen <<- c(seen, x)
    2 * log(x) - x
  }
  u <- cbind(c(-200, -20, -3, 0, 3))
  target <- target_function(f, 1, lower = 0)
  value <- suppressMessages(evaluate_target(target, u, unconstrained = TRUE))
  expect_equal(drop(value$gradient), drop(3 - exp(u)), tolerance = 1e-6)
  expect_true(all(seen > 0))
  seen <- NULL
  both <- target_function(f, 1, lower = 0, upper = 1)
  u <- cbind(c(-30, 0, 30, 37))
  suppressMessages(evaluate_target(both, u, unconstrained = TRUE))
  expect_true(all(seen >= 0 & seen <= 1))
  # the largest number is a bound, too
  seen <- NULL
  u <- cbind(c(700, 709.78, 800))
  value <- suppressMessages(evaluate_target(target, u, unconstrained = TRUE))
  expect_true(all(is.finite(seen)) && max(seen) > 1e308)
  expect_equal(value$gradient[1:2] / -exp(u[1:2]), c(1, 1))
})

test_that("a point that rounding puts on a bound is taken inside", {
  target <- target_function(
    function(x) dgamma(x[, 1] - 5, 0.5, log = TRUE), 1,
    gradient = function(x) -0.5 / (x - 5) - 1,
    vectorized = TRUE, lower = 5
  )
  u <- cbind(c(-1000, -40, 0, 1000))
  value <- evaluate_target(target, u, unconstrained = TRUE)
  expect_true(all(is.finite(value$log_density[1:3])))
  expect_true(all(is.finite(value$gradient[1:3, ])))
  expect_identical(value$log_density[4], -Inf)
})

# compiled targets ---------------------------------------------------------------

gamma_native <- function(...) {
  target_native(
    "gamma_density", native_library(),
    dim = 2, init = "gamma_init", data = c(4, 2), ...
  )
}

test_that("a compiled target has bounds as an R function has", {
  native_library()
  in_r <- vectorised(
    function(x) rowSums(3 * log(x) - 2 * x), function(x) 3 / x - 2,
    dim = 2, lower = 0
  )
  native <- gamma_native(lower = 0)
  expect_equal(
    quick_smc(native)$particles, quick_smc(in_r)$particles,
    tolerance = 1e-8
  )
  known <- list(
    target = native, log_z = 2 * (lgamma(4) - 4 * log(2)), mean = c(2, 2)
  )
  schedule <- data.frame(lambda = (1:8) / 8, step_size = 0.5)
  expect_right(known, schedule, reference_gaussian(0.5, 1), kernel_mala())
  range <- .Call(getNativeSymbolInfo("gamma_range", native_library()))
  expect_gt(range[1], 0)
  expect_lt(range[2], Inf)
})

# what is given --------------------------------------------------------------------

test_that("a bare function takes bounds", {
  fit <- quick_smc(
    function(x) -x, dim = 1, gradient = function(x) -1, lower = 2, upper = 3
  )
  expect_true(all(fit$particles > 2 & fit$particles < 3))
})

test_that("bounds are checked", {
  bad <- function(argument, ...) {
    expect_bad(target_function(sum, 2, ...), argument)
    expect_bad(target_posterior(sum, sum, 2, ...), argument)
    expect_bad(target_native("target_funnel", "autosmc", 2, ...), argument)
  }
  bad("lower", lower = NA)
  bad("lower", lower = NULL)
  bad("lower", lower = "0")
  bad("lower", lower = c(0, NaN))
  bad("lower", lower = c(0, 0, 0))
  bad("upper", upper = numeric())
  bad("upper", upper = list(1, 2))
  bad("upper", upper = c(1, NA))
  bad("lower", lower = 1, upper = 1)
  bad("lower", lower = c(0, 2), upper = 1)
  bad("lower", lower = Inf)
  bad("upper", upper = -Inf)
  bad("lower", lower = c(x3 = 0))
  bad("lower", lower = c(x1 = 0, x1 = 1))
  named <- function(...) target_function(sum, 2, names = c("a", "b"), ...)[c("lower", "upper")]
  expect_identical(named(lower = c(b = 0)), named(lower = c(-Inf, 0)))
  expect_identical(named(lower = c(b = 0, a = 1), upper = c(a = 2)), named(lower = c(1, 0), upper = c(2, Inf)))
  error <- catch(target_function(sum, 2, lower = c(0, 2), upper = 1))
  expect_match(gsub("\\s+", " ", conditionMessage(error)), "for x2 they are 2 and 1")
})

test_that("printing says the bounds", {
  printed <- capture.output(print(mixed_target$target))
  expect_match(printed[3], "bounds: 0 < s, -1 < p < 1", fixed = TRUE)
  expect_length(capture.output(print(normal_target(2))), 2)
})

test_that("each kind of bounds has the Jacobian and the gradients of its map, both ways", {
  # unbounded, above, below, between, as far as the bounds, and the logit of a place as far as the bounds
  map <- list(
    name = "bounds", lower = c(-Inf, 1, -Inf, -1, -1, -Inf), upper = c(Inf, Inf, 2, 3, 3, Inf),
    truncated = c(0, 0, 0, 0, 1, 1)
  )
  set.seed(2)
  d <- length(map$lower)
  u <- matrix(runif(10 * d, -1.8, 1.8), 10)
  to_x <- function(u) internal("forward_maps")(list(map), u)
  at <- to_x(u)
  step <- 1e-5
  slopes <- jacobian_slopes <- 0 * u
  for (j in seq_len(d)) {
    moved <- step * (col(u) == j)
    plus <- to_x(u + moved)
    minus <- to_x(u - moved)
    slopes[, j] <- (plus$x - minus$x)[, j] / (2 * step)
    jacobian_slopes[, j] <- (plus$log_jacobian - minus$log_jacobian) / (2 * step)
  }
  expect_equal(at$log_jacobian, rowSums(log(abs(slopes))), tolerance = 1e-8)
  # the density of u is that of x times the Jacobian
  of_u <- matrix(rnorm(10 * d), 10)
  of_x <- (of_u - jacobian_slopes) / slopes
  forward <- internal("forward_maps")(list(map), u, of_u)
  expect_equal(forward$g, of_x, tolerance = 1e-7)
  back <- internal("inverse_maps")(list(map), at$x, of_x)
  expect_equal(back$x, u, tolerance = 1e-10)
  expect_equal(back$g, of_u, tolerance = 1e-7)
  expect_equal(back$log_jacobian, -at$log_jacobian, tolerance = 1e-10)
})
