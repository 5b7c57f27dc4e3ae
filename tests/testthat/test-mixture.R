# Mixtures of normal distributions as references.

normals <- list(
  list(mean = c(-3, 0), L = diag(2), elbo = log(0.5)),
  list(mean = c(3, 0), L = rbind(c(0.2, 0), c(0.1, 0.1)), elbo = log(0.3))
)
reference <- internal("new_mixture_reference")(normals)
mixture <- reference$mixture

# Its log density on the unconstrained scale, written out.
log_reference <- function(x) {
  moments <- internal("covering")(normals)
  parts <- c(normals, list(moments))
  weights <- c((0.5 / 0.8 + 0.5) / 4, (0.3 / 0.8 + 0.5) / 4, 0.5)
  log(rowSums(vapply(1:3, function(k) {
    z <- t(solve(sqrt(1.5) * parts[[k]]$L, t(x) - parts[[k]]$mean))
    weights[k] * exp(-rowSums(z^2) / 2) / (2 * pi * 1.5 * det(parts[[k]]$L))
  }, numeric(nrow(x)))))
}

test_that("the density is that of the mixture", {
  # a target that is the reference: all weights are the same, and log Z is 0
  same <- target_function(log_reference, 2, gradient = function(x) 0 * x, vectorized = TRUE)
  fit <- calmly(smc_run(same, data.frame(lambda = 1, step_size = 1e-30),
    kernel = kernel_rwmh(), reference = reference, n_particles = 500, islands = 1, seed = 1
  ))
  expect_equal(fit$log_z, 0, tolerance = 1e-9)
  expect_lt(fit$islands$predicted_sd, 1e-6)
})

test_that("draws in R are those of the mixture", {
  set.seed(2)
  n <- 40000
  x <- internal("to_user")(
    list(mean = reference$mean, L = reference$chol), internal("draw_mixture")(mixture, n)
  )
  # the mean of q / p is 1 for any density q within its range
  ratio <- exp(rowSums(dnorm(x, log = TRUE)) - log_reference(x))
  expect_lt(abs(mean(ratio) - 1), errors_for(Inf) * sd(ratio) / sqrt(n))
  near <- abs(x[, 1] - 3) < 0.3 & abs(x[, 2]) < 0.3
  part <- integrate(function(a) vapply(a, function(at) {
    integrate(function(b) exp(log_reference(cbind(at, b))), -0.3, 0.3)$value
  }, 0), 2.7, 3.3)$value
  expect_lt(abs(mean(near) - part), errors_for(Inf) * sqrt(part * (1 - part) / n))
})

test_that("a mixture is fitted to points, without components that have none", {
  set.seed(3)
  n <- 4000
  z <- rbind(
    matrix(rnorm(n), ncol = 2) %*% diag(c(0.5, 0.2)) + rep(c(-1, 0), each = n / 2),
    matrix(rnorm(n / 2), ncol = 2) / 10 + rep(c(1, 1), each = n / 4)
  )
  unit <- diag(2)
  start <- internal("as_mixture")(list(
    list(mean = c(-1, 0.5), L = unit / 2), list(mean = c(1, 0.5), L = unit / 2),
    list(mean = c(40, 0), L = unit)
  ), c(0.3, 0.3, 0.4))
  found <- internal("fit_mixture")(start, z, rep(1 / nrow(z), nrow(z)))
  expect_length(found$weights, 2)
  expect_equal(found$weights, c(2, 1) / 3, tolerance = 1e-3)
  expect_equal(found$means, cbind(c(-1, 0), c(1, 1)), tolerance = 0.05)
  sd <- vapply(1:2, function(k) diag(internal("component")(found, k)$L), c(0, 0))
  expect_equal(sd, cbind(c(0.5, 0.2), c(0.1, 0.1)), tolerance = 0.05)
})

test_that("a mixture is kept for modes, and gives way to the shape of a funnel", {
  set.seed(4)
  n <- 600
  # draws, and their log density's gradient, as a record of a run from a mixture
  record_of <- function(x, gradient) {
    two <- lapply(list(x[, 1] < 0, x[, 1] >= 0), function(rows) {
      list(mean = colMeans(x[rows, ]), L = t(chol(cov(x[rows, ]))), elbo = 0)
    })
    reference <- internal("new_mixture_reference")(two)
    frame <- list(mean = reference$mean, L = reference$chol)
    list(
      reference = reference, particles = x, coordinates = internal("from_user")(frame, x),
      gradients = internal("pull_back_rows")(frame, gradient), log_weights = numeric(n),
      origins = seq_len(n)
    )
  }
  v <- rnorm(n, 0, 1.5)
  y <- matrix(rnorm(5 * n), n)
  funnel <- record_of(
    cbind(v, exp(v / 2) * y, deparse.level = 0),
    cbind(-v / 2.25 + rowSums(y^2 - 1) / 2, -y / exp(v / 2))
  )
  # the mixture fits these very draws better than a normal distribution, but not new ones
  expect_gt(
    internal("refit_mixture")(funnel)$criterion, internal("refit_mixture")(funnel)$normal_criterion
  )
  expect_null(internal("fit_basins")(funnel))
  shape <- internal("fit_shape")(funnel)
  expect_identical(internal("conditioning_of")(shape$reference), 1L)
  expect_gt(shape$gain, 0)

  side <- sample(c(-4, 4), n, TRUE)
  z <- matrix(rnorm(6 * n), n)
  modes <- record_of(z + cbind(side, 0, 0, 0, 0, 0), -z)
  again <- internal("fit_basins")(modes)$reference
  expect_s3_class(again, "smc_reference_mixture")
  # each component is wider than the draws of its mode, so that the weights have no heavy tail
  for (k in 1:2) {
    of_mode <- modes$coordinates[side == if (again$mixture$means[1, k] < 0) -4 else 4, ]
    variances <- rowSums(internal("component")(again$mixture, k)$L^2)
    expect_equal(variances, internal("rules")$inflation * apply(of_mode, 2, var), tolerance = 1e-3)
  }
})

test_that("a narrow mode beside a wide one has its part of the evidence", {
  target <- mixture_target(rbind(c(-3, 0), c(3, 0)), c(1, 0.1), c(0.5, 0.5))
  for (seed in 1:2) {
    fit <- calmly(smc(target, seed = seed))
    expect_s3_class(fit$reference, "smc_reference_mixture")
    # which KLMC cannot keep
    expect_identical(fit$kernel$name, "hmc")
    expect_log_z(fit, 0)
    expect_output(print(fit$reference), "mixture of 3 normal")
  }
  # the kernel that is asked for is used
  asked <- calmly(smc(target, kernel = "klmc", n_particles = 256, seed = 1))
  expect_identical(asked$kernel$name, "klmc")
})

test_that("a narrow mode within a wide one is a basin of its own", {
  # a path of the scout ends in each, and the means are closer than the wider standard deviation
  for (d in c(3, 8)) {
    within <- mixture_target(rbind(rep(0, d), rep(4 / sqrt(d), d)), c(0.5, 8), c(0.5, 0.5))
    fits <- lapply(1:4, function(seed) calmly(smc(within, seed = seed)))
    expect_log_z(fits, 0, 0.02)
    expect_equal(smc_scout(within, seed = 1)$basins$elbo, rep(-log(2), 2), tolerance = 1e-2)
  }
})

test_that("normals of one basin that fit it badly are one, and what one explains is no excess", {
  plain <- function(at, sd, elbo) list(mean = rep(at, 2), L = diag(sd, 2), elbo = elbo, n_paths = 1)
  # of N(0, 1), which the first is
  narrow <- plain(0.1, 0.2, 2 * log(0.2) + 1 - 0.2^2 - 0.1^2)
  whole <- plain(0, 1, 0)
  expect_equal(internal("excess_over")(whole, narrow), 0)
  expect_length(internal("basins_of")(list(narrow, whole)), 1)
  # a mode of its own, with the same evidence
  expect_length(internal("basins_of")(list(plain(0.1, 0.02, 0), whole)), 2)
  expect_length(internal("basins_of")(list(whole, plain(0.1, 0.02, 0))), 2)
})

test_that("a mixture gives way to coordinates that are exactly normal given others", {
  # a weak instrument: of the product of an effect and a slope hardly more is known than of the effect
  at <- list(effect = 0.15, product = 0.3, sd = 0.14, slope_sd = 50)
  target <- target_function(
    function(x) {
      dnorm(x[, 1], log = TRUE) + dnorm(at$effect, x[, 1], at$sd, log = TRUE) +
        dnorm(at$product, x[, 1] * x[, 2], at$sd, log = TRUE) +
        dnorm(x[, 2], 0, at$slope_sd, log = TRUE)
    }, 2,
    gradient = function(x) {
      off <- (at$product - x[, 1] * x[, 2]) / at$sd^2
      by_effect <- -x[, 1] + (at$effect - x[, 1]) / at$sd^2 + off * x[, 2]
      cbind(by_effect, off * x[, 1] - x[, 2] / at$slope_sd^2)
    },
    vectorized = TRUE
  )
  # the product has a normal distribution given the effect
  log_z <- log(integrate(function(effect) {
    dnorm(effect) * dnorm(at$effect, effect, at$sd) *
      dnorm(at$product, 0, sqrt(at$sd^2 + at$slope_sd^2 * effect^2))
  }, -5, 5, subdivisions = 5000, rel.tol = 1e-10)$value)
  fits <- lapply(1:4, function(seed) calmly(smc(target, seed = seed)))
  expect_true(all(grepl("is normal given", lapply(fits, `[[`, "maps"))))
  expect_log_z(fits, log_z)
})

test_that("but not where what they are given has modes, which a mixture knows", {
  # half of the draws are in each mode of x1, and x2 is normal given x1
  log_parts <- function(x) cbind(dnorm(x[, 1], -4, 1, log = TRUE), dnorm(x[, 1], 4, 0.3, log = TRUE))
  target <- target_function(
    function(x) log(rowMeans(exp(log_parts(x)))) + dnorm(x[, 2], 0.3 * x[, 1]^2, log = TRUE), 2,
    gradient = function(x) {
      off <- x[, 2] - 0.3 * x[, 1]^2
      in_second <- 1 / (1 + exp(-log_parts(x) %*% c(-1, 1)))
      slope <- (1 - in_second) * (-4 - x[, 1]) + in_second * (4 - x[, 1]) / 0.3^2
      cbind(slope + 0.6 * off * x[, 1], -off)
    },
    vectorized = TRUE
  )
  fits <- lapply(1:4, function(seed) calmly(smc(target, seed = seed)))
  # by one normal distribution of x1 errors are 0.02
  expect_lt(median(vapply(fits, `[[`, 0, "std_error")), 0.005)
  expect_log_z(fits, 0)
})

test_that("a mode that the scout has found and one of which there are draws are both in the estimate", {
  # the scout finds the wide one alone
  d <- 6
  target <- mixture_target(rbind(numeric(d), rep(2.5, d)), c(1, 0.2), c(0.5, 0.5))
  for (seed in 1:2) {
    draws <- with_seed(seed, matrix(rnorm(300 * d, 2.5, 0.2), 300, dimnames = list(NULL, target$names)))
    fit <- suppressMessages(smc(target, reference = draws, seed = seed))
    expect_log_z(fit, 0, resolution = 0.15)
  }
})
