# Laws of all kernels, each with a limit from its own Monte Carlo error (see `chance`).

# the matrix of laws ----------------------------------------------------------

# Kernel by resampling scheme: the evidence of a Gaussian, which is 1, with four
# fixed steps, resampling below 90 % so that nearly all of them resample.
#
# The step sizes are such that without resampling the fourth moment of the weights
# is finite, and so is the variance of a standard error. (All is Gaussian here: it
# is finite where a quadratic form is positive definite.) LMC with the reference
# for K_0 needs a long first step for that: below h = 1/4 or so even the variance
# is infinite.
matrix_target <- target_gaussian(2, mean = 1, sd = 0.7)

matrix_schedule <- function(step_size, refresh_rate = NA) {
  data.frame(
    lambda = schedule_power(4)[-1],
    step_size = step_size,
    refresh_rate = refresh_rate
  )
}

falling <- function(from, to) seq(from, to, length.out = 4)

klmc_cell <- list(kernel_klmc(), matrix_schedule(0.65, 0.9))
mala_cell <- list(kernel_mala(), matrix_schedule(0.3))
rwmh_cell <- list(kernel_rwmh(), matrix_schedule(1))
pcn_cell <- list(kernel_pcn(), matrix_schedule(0.5))
hmc_cell <- list(kernel_hmc(), matrix_schedule(0.8, 0.5))

cells <- list(
  "KLMC" = klmc_cell,
  "LMC, time-correct" = list(
    kernel_lmc(first_backward = "reference"),
    matrix_schedule(falling(0.7, 0.4))
  ),
  "LMC, time-correct, independent" = list(
    kernel_lmc(first_backward = "independent"),
    matrix_schedule(falling(0.5, 0.3))
  ),
  "LMC, forward" = list(
    kernel_lmc(backward = "forward"),
    matrix_schedule(falling(0.4, 0.2))
  ),
  "MALA" = mala_cell,
  "RWMH" = rwmh_cell,
  "pCN" = pcn_cell,
  "HMC" = hmc_cell
)

# `seed` differs from cell to cell, so that they fail or pass by themselves.
cell_evidences <- function(cell, resampling, threshold, seed, n = 120) {
  fit <- calmly(smc_run(
    matrix_target, cell[[2]],
    kernel = cell[[1]], n_particles = 256, resampling = resampling,
    ess_threshold = threshold, islands = n, seed = seed
  ))
  exp(fit$islands$log_z)
}

schemes <- c("ssp", "systematic", "stratified", "residual", "multinomial")
for (name in names(cells)) {
  for (scheme in schemes) {
    test_that(sprintf("unbiased: %s, %s resampling", name, scheme), {
      number <- 5 * match(name, names(cells)) + match(scheme, schemes)
      z <- cell_evidences(cells[[name]], scheme, 0.9, 1e4 * number)
      expect_mean(z, 1, resolution = 0.09)
    })
  }
}

others <- list(
  "KLMC, never resampled" = list(klmc_cell, 0),
  "KLMC, always resampled" = list(klmc_cell, 1),
  "MALA, never resampled" = list(mala_cell, 0),
  "MALA, always resampled" = list(mala_cell, 1),
  "RWMH, never resampled" = list(rwmh_cell, 0),
  "MALA, 3 moves" = list(list(kernel_mala(n_moves = 3), mala_cell[[2]]), 0.9),
  "RWMH, 3 moves" = list(list(kernel_rwmh(n_moves = 3), rwmh_cell[[2]]), 0.9),
  "HMC, never resampled" = list(hmc_cell, 0),
  "HMC, always resampled" = list(hmc_cell, 1),
  "HMC, 3 moves" = list(list(kernel_hmc(n_moves = 3), hmc_cell[[2]]), 0.9)
)
for (name in names(others)) {
  test_that(paste("unbiased:", name), {
    other <- others[[name]]
    seed <- 3e6 + 1e4 * match(name, names(others))
    z <- cell_evidences(other[[1]], "ssp", other[[2]], seed, n = 200)
    expect_mean(z, 1, resolution = 0.06)
  })
}

# the stationary distribution of the adjusted kernels -------------------------

# Particles after many moves at temperature 1 are independent draws: with one
# step nothing is resampled.
chain_ends <- function(target, kernel, step_size, ..., n_particles = 25000) {
  schedule <- data.frame(lambda = 1, step_size = step_size, refresh_rate = 0.5) # of those that have one
  fit <- smc_run(
    target, schedule, ...,
    kernel = kernel, n_particles = n_particles, seed = 1
  )
  acceptance <- fit$steps$acceptance
  expect_gt(acceptance, 0.2)
  expect_lt(acceptance, if (kernel$name == "hmc") 0.97 else 0.9) # HMC accepts nearly all that is smooth
  fit$particles
}

adjusted <- list(MALA = kernel_mala, RWMH = kernel_rwmh, pCN = kernel_pcn, HMC = kernel_hmc)

for (name in names(adjusted)) {
  make <- adjusted[[name]]

  test_that(paste(name, "leaves a density with light tails invariant"), {
    quartic <- target_function(
      function(x) -x[, 1]^4 / 4, 1,
      gradient = function(x) -x^3, vectorized = TRUE
    )
    # From |x| > 2.7 MALA would not come back: its drift grows as x^3. So it
    # starts near 0; step sizes are relative to the reference's variance.
    x <- chain_ends(
      quartic, make(n_moves = 200), c(MALA = 1.6, RWMH = 8, pCN = 0.4, HMC = 2)[[name]],
      reference = reference_gaussian(sd = 0.5)
    )
    expect_mean(x, 0, resolution = 0.05)
    expect_mean(x^2, 2 * gamma(3 / 4) / gamma(1 / 4), resolution = 0.05)
    expect_mean(x^4, 1, resolution = 0.1)
  })

  test_that(paste(name, "leaves a skewed density invariant"), {
    gumbel <- target_function(
      function(x) -x[, 1] - exp(-x[, 1]), 1,
      gradient = function(x) exp(-x) - 1, vectorized = TRUE
    )
    # far to the left MALA stands still, for the gradient is huge there; pCN needs a reference that reaches the tail
    x <- chain_ends(
      gumbel, make(n_moves = 300), c(MALA = 0.8, RWMH = 6, pCN = 0.5, HMC = 2)[[name]],
      reference = reference_gaussian(mean = 1, sd = c(MALA = 0.8, RWMH = 0.8, pCN = 2, HMC = 0.8)[[name]])
    )
    euler <- -digamma(1)
    expect_mean(x, euler, resolution = 0.1)
    expect_mean((x - euler)^2, pi^2 / 6, resolution = 0.2)
    expect_mean(exp(-x), 1, resolution = 0.05) # a standard exponential
  })

  test_that(paste(name, "leaves a correlated Gaussian invariant"), {
    covariance <- matrix(c(1, 0.5, 0.4, 0.5, 0.7, 0.1, 0.4, 0.1, 1.5), 3)
    mean <- c(1, -1, 0)
    precision <- solve(covariance)
    from_mean <- function(x) sweep(x, 2, mean)
    target <- target_function(
      function(x) -rowSums((from_mean(x) %*% precision) * from_mean(x)) / 2, 3,
      gradient = function(x) -from_mean(x) %*% precision, vectorized = TRUE
    )
    x <- chain_ends(
      target, make(n_moves = 200), c(MALA = 0.3, RWMH = 0.8, pCN = 0.3, HMC = 1)[[name]]
    )
    for (i in 1:3) {
      expect_mean(x[, i], mean[i], resolution = 0.05)
      for (j in 1:i) {
        product <- (x[, i] - mean[i]) * (x[, j] - mean[j])
        expect_mean(product, covariance[i, j], resolution = 0.1)
      }
    }
  })
}

# what is accepted --------------------------------------------------------------

# With the standard normal for target and reference, particles are in equilibrium
# at all temperatures. The mean over x and noise of some f(x, proposal, alpha),
# by quadrature; the proposal is N(x + pull x, variance).
in_equilibrium <- function(f, pull, variance) {
  grid <- seq(-8, 8, length.out = 401)
  points <- expand.grid(x = grid, noise = grid)
  x <- points$x
  y <- x + pull * x + sqrt(variance) * points$noise
  log_q <- function(from, to) {
    dnorm(to, from + pull * from, sqrt(variance), log = TRUE)
  }
  log_ratio <- dnorm(y, log = TRUE) - dnorm(x, log = TRUE) +
    log_q(y, x) - log_q(x, y)
  alpha <- exp(pmin(0, log_ratio))
  weight <- dnorm(x) * dnorm(points$noise) * (grid[2] - grid[1])^2
  sum(weight * f(x, y, alpha))
}

alpha_only <- function(x, y, alpha) alpha

test_that("the acceptance rates are those of MALA and RWMH", {
  rates <- function(kernel) {
    fit <- smc_run(
      target_gaussian(1), data.frame(lambda = (1:4) / 4, step_size = 1.2),
      kernel = kernel, n_particles = 1000, islands = 40, seed = 1
    )
    tapply(fit$steps$acceptance, fit$steps$island, mean)
  }
  # of a random walk on a normal: 2 / pi atan(2 / sd)
  expected <- 2 / pi * atan(2 / sqrt(1.2))
  expect_equal(in_equilibrium(alpha_only, 0, 1.2), expected, tolerance = 1e-4)
  expect_mean(rates(kernel_rwmh()), expected, resolution = 0.01)
  expect_mean(rates(kernel_rwmh(n_moves = 2)), expected, resolution = 0.01)
  expected <- in_equilibrium(alpha_only, -1.2, 2.4)
  expect_mean(rates(kernel_mala()), expected, resolution = 0.01)
})

test_that("HMC accepts all moves where the reference's width is the target's", {
  fit <- smc_run(
    target_gaussian(3, mean = 1, sd = 2), matrix_schedule(1, 0.5),
    kernel = kernel_hmc(), reference = reference_gaussian(sd = 2), n_particles = 100, seed = 1
  )
  expect_equal(fit$steps$acceptance, rep(1, 4))
})

test_that("the squared jump is as large as it can be", {
  tuned <- function(kernel) {
    adapt_plain(
      target_gaussian(1),
      n_particles = 4096, schedule = c(0, 1), kernel = kernel,
      tuner = tuner_kl(4096, regularization = 0), seed = 1
    )$schedule$step_size
  }
  jump <- function(x, y, alpha) alpha * (y - x)^2
  # no more than 1 % below the best
  rwmh <- function(log_h) in_equilibrium(jump, 0, exp(log_h))
  best <- optimize(rwmh, c(0, 3), maximum = TRUE, tol = 0.05)$objective
  expect_gt(rwmh(log(tuned(kernel_rwmh()))), 0.99 * best)
  mala <- function(log_h) in_equilibrium(jump, -exp(log_h), 2 * exp(log_h))
  best <- optimize(mala, c(-2, 1.5), maximum = TRUE, tol = 0.05)$objective
  expect_gt(mala(log(tuned(kernel_mala()))), 0.99 * best)
})

test_that("with objective \"acceptance\" the acceptance is near its target", {
  acceptance <- function(kernel) {
    fit <- smc_plain(
      target_gaussian(5, mean = 1),
      n_steps = 16, kernel = kernel, tuner = tuner_kl(512), seed = 1
    )
    fit$steps$acceptance[fit$steps$run == "final"]
  }
  near <- function(kernel, target) {
    a <- acceptance(kernel)
    expect_length(a, 16)
    expect_lt(max(abs(a - target)), 0.15)
    expect_lt(abs(mean(a) - target), 0.03)
  }
  near(kernel_mala(objective = "acceptance"), 0.574)
  near(kernel_rwmh(objective = "acceptance"), 0.234)
  near(kernel_mala(objective = "acceptance", target_acceptance = 0.8), 0.8)
  near(kernel_rwmh(objective = "acceptance", target_acceptance = 0.5), 0.5)
})

# models ------------------------------------------------------------------------

test_that("Sonar by KLMC has the right log evidence, and a frugal tuner", {
  fits <- lapply(1:2, function(seed) {
    fit <- calmly(smc_plain(target_sonar(), n_particles = 256, seed = seed))
    # besides the run itself a sub-sample of 128 about 7 times a step
    expect_lt(fit$runs$n_target_evals[1] - 256 * 65, 128 * 7.5 * 64)
    expect_true(all(is.na(fit$steps$tuner_status) |
      fit$steps$tuner_status == "converged"))
    fit
  })
  log_z <- vapply(fits, `[[`, 0, "log_z")
  sd <- vapply(fits, function(fit) fit$islands$predicted_sd, 0)
  # The truth is -108.36, and the mean of a logarithm lower by half of the variance. Of a
  # normal variable the chance of 5.7 standard deviations is 1e-8.
  error <- log_z + 108.36 + sd^2 / 2
  expect_lt(max(sd), 1)
  expect_lt(max(abs(error) / sd), 5.7)
  expect_lt(abs(mean(error)), 5.7 * sqrt(sum(sd^2)) / 2)
})

test_that("adapting LMC on Sonar is cheap, by either search", {
  adapted <- adapt_plain(
    target_sonar(),
    n_particles = 256, kernel = kernel_lmc(), seed = 1
  )
  expect_lt(mean(adapted$steps$n_objective_evals), 6.1)
  golden <- adapt_plain(
    target_sonar(),
    n_particles = 256, kernel = kernel_lmc(),
    tuner = tuner_kl(64, search = "golden"), seed = 1
  )
  n <- golden$steps$n_objective_evals
  expect_gte(n[1], 20)
  expect_lte(n[1], 27)
  expect_gte(mean(n[-1]), 9.5)
  expect_lte(mean(n[-1]), 12)
  expect_lt(
    mean(adapted$steps$n_objective_evals[-1]),
    mean(n[-1]) / 2 # as the page of tuner_kl() claims
  )
})

test_that("the step sizes of LMC fall with the temperature", {
  for (seed in 1:2) {
    adapted <- adapt_plain(
      target_gaussian(32, mean = 3),
      n_particles = 256, n_steps = 24, kernel = kernel_lmc(), seed = seed
    )
    h <- adapted$schedule$step_size
    expect_gt(median(h[1:6]), 1.2 * median(h[19:24]))
  }
})

# half of N(0, 0.6^2): the evidence is 1/2
half_normal <- target_function(
  function(x) ifelse(x[, 1] < 0, -Inf, dnorm(x[, 1], sd = 0.6, log = TRUE)), 1,
  gradient = function(x) -x / 0.36, vectorized = TRUE
)

for (name in names(adjusted)) {
  test_that(paste(name, "is unbiased for a density with an edge"), {
    kernel <- adjusted[[name]]()
    adapted <- adapt_plain(
      half_normal,
      n_particles = 256, n_steps = 6, kernel = kernel, seed = 1
    )
    expect_true(all(adapted$schedule$step_size > 0.01))
    fit <- calmly(smc_run(
      half_normal, adapted$schedule,
      n_particles = 128, kernel = kernel, islands = 250, seed = 1
    ))
    expect_mean(exp(fit$islands$log_z), 0.5, resolution = 0.04)
  })
}

test_that("KLMC does not collapse at an edge", {
  fits <- lapply(1:12, function(seed) {
    calmly(smc_plain(half_normal, n_particles = 256, n_steps = 16, seed = seed))
  })
  for (fit in fits) {
    expect_true(all(fit$steps$ess > 50))
    expect_true(all(fit$steps$tuner_status %in% c("converged", NA)))
    # too low on average, as ?smc_rounds says, and not by much
    expect_gt(fit$log_z, log(0.5) - 0.7)
    expect_lt(fit$log_z, log(0.5) + 0.4)
  }
  # A single particle next to the edge that would cross it rules a step size out,
  # so some seeds have far smaller ones: 1e-5 was seen.
  smallest <- vapply(fits, function(fit) min(fit$schedule$step_size), numeric(1))
  expect_gt(median(smallest), 1e-4)
})

test_that("Pines runs", {
  pines <- target_pines()
  expect_identical(pines$dim, 1600L)
  value <- evaluate_target(pines, matrix(0, 1, 1600))
  # f = mu in every cell
  mu <- log(126) - 1.91 / 2
  expect_equal(
    value$log_density,
    -800 * log(2 * pi) + 126 * mu - exp(mu)
  )
  # without the diagnostics of smc(), which take thousands of evaluations
  fit <- adapt_plain(pines, n_particles = 4, n_steps = 4, scout = FALSE, seed = 1)
  expect_identical(dim(fit$particles), c(4L, 1600L))
  expect_true(all(is.finite(fit$particles)))
  # four steps are far too few: between the start and the truth, about 501.8
  expect_gt(fit$log_z, 300)
  expect_lt(fit$log_z, 502)
})
