# References of R functions.

# A reference of independent Laplace variables.
laplace <- function(dim, scale = 1) {
  reference_function(
    function(n) {
      size <- rexp(n * dim, 1 / scale)
      matrix(size * sample(c(-1, 1), n * dim, replace = TRUE), n)
    },
    function(x) -rowSums(abs(x)) / scale - dim * log(2 * scale),
    gradient = function(x) -sign(x) / scale,
    vectorized = TRUE
  )
}

# Of independent variables that are each a mixture of N(-1, 0.8^2) and N(1, 0.8^2).
mixture <- reference_function(
  function(n) {
    matrix(rnorm(2 * n, sample(c(-1, 1), 2 * n, replace = TRUE), 0.8), n)
  },
  function(x) {
    rowSums(log((dnorm(x, -1, 0.8) + dnorm(x, 1, 0.8)) / 2))
  },
  gradient = function(x) (tanh(x / 0.8^2) - x) / 0.8^2,
  vectorized = TRUE
)

standard_normal <- function(dim = 2, ...) {
  reference_function(
    function(n) matrix(rnorm(n * dim), n),
    function(x) rowSums(dnorm(x, log = TRUE)),
    gradient = function(x) -x,
    vectorized = TRUE, ...
  )
}

target <- target_gaussian(2, mean = 1, sd = 0.7) # the evidence is 1
beta_prior <- reference_function(
  function(n) rbeta(n, 2, 3),
  function(p) dbeta(p, 2, 3, log = TRUE),
  gradient = function(p) 1 / p - 2 / (1 - p),
  vectorized = TRUE
)

kernels <- list(
  independent = kernel_lmc(first_backward = "independent"),
  forward = kernel_lmc(backward = "forward"),
  klmc = kernel_klmc(),
  mala = kernel_mala(),
  rwmh = kernel_rwmh()
)
plan <- data.frame(lambda = (1:8) / 8, step_size = 0.15, refresh_rate = 0.5)


islands_of <- function(target, reference, kernel, schedule = plan, islands = 120) {
  calmly(smc_run(
    target, schedule,
    reference = reference, kernel = kernel,
    n_particles = 256, islands = islands, seed = 1
  ))
}

# laws ---------------------------------------------------------------------------

# Weighed against the reference itself, LMC has weights of finite variance when the
# first step is long and the reference no heavier in its tails.
test_that("the evidence is unbiased from a mixture of normals: lmc", {
  longer <- transform(plan, step_size = 0.5)
  fit <- islands_of(target, mixture, kernel_lmc(), longer, islands = 200)
  expect_mean(exp(fit$islands$log_z), 1, resolution = 0.12)
})

for (name in names(kernels)) {
  test_that(paste("the evidence is unbiased from a Laplace reference:", name), {
    fit <- islands_of(target, laplace(2), kernels[[name]])
    expect_mean(exp(fit$islands$log_z), 1, resolution = 0.08)
  })
  test_that(paste("the evidence is unbiased from the prior, with bounds:", name), {
    fit <- islands_of(beta_binomial, beta_prior, kernels[[name]])
    expect_mean(
      exp(fit$islands$log_z - log_z_beta_binomial), 1,
      resolution = 0.08
    )
    w <- exp(fit$log_weights + fit$log_z - log_z_beta_binomial) * 120
    integrals <- rowsum(w * fit$particles, fit$island)
    expect_mean(integrals, 9 / 15, resolution = 0.05)
  })
}

# With no path to speak of, the estimate is a mean of likelihoods at draws from the
# prior, as smc() itself would have it: the weights of MALA do not depend on moves.
test_that("one step from the prior weighs its draws by the likelihood", {
  seen <- NULL
  prior <- beta_prior
  prior$sample <- function(n) seen <<- rbeta(n, 2, 3)
  fit <- smc_run(
    beta_binomial, data.frame(lambda = 1, step_size = 0.1),
    reference = prior, kernel = kernel_mala(), n_particles = 64, seed = 1
  )
  expect_equal(fit$log_z, log(mean(dbinom(7, 10, seen))), tolerance = 1e-10)
})

test_that("N(0, I) by functions is N(0, I), given the same draws", {
  # the draws of the usual reference: at temperature 1e-300 nothing has moved yet
  drawn <- NULL
  spy <- function(x) {
    if (is.null(drawn)) drawn <<- unname(x)
    -rowSums((x - 1)^2)
  }
  spied <- target_function(
    spy, 2,
    gradient = function(x) -2 * (x - 1), vectorized = TRUE
  )
  for (kernel in c(list(kernel_lmc()), kernels[c("independent", "klmc", "mala")])) {
    drawn <- NULL
    usual <- smc_run(spied, plan, kernel = kernel, n_particles = 64, seed = 1)
    same <- standard_normal()
    same$sample <- function(n) drawn
    by_functions <- smc_run(
      spied, plan,
      kernel = kernel, n_particles = 64, seed = 1, reference = same
    )
    expect_equal(by_functions$particles, usual$particles, tolerance = 1e-8)
    expect_equal(by_functions$log_z, usual$log_z, tolerance = 1e-8)
  }
})

test_that("N(0, I) by functions has the estimates of N(0, I), tuned", {
  estimates <- function(reference) {
    calmly(smc(
      target,
      reference = reference, rounds = 0, n_particles = 128, n_steps = 6,
      kernel = kernel_mala(), islands = 60, seed = 1
    ))$islands$log_z
  }
  usual <- estimates(reference_gaussian())
  by_functions <- estimates(standard_normal())
  se <- sqrt(var(usual) / 60 + var(by_functions) / 60)
  expect_lt(se, 0.04)
  expect_lt(abs(mean(usual) - mean(by_functions)), errors_for(120) * se)
  expect_lt(abs(log(sd(usual) / sd(by_functions))), errors_for(120) / sqrt(60))
})

test_that("evaluations of the reference are not counted", {
  calls <- c(target = 0, reference = 0)
  f <- function(x) {
    calls["target"] <<- calls["target"] + nrow(x)
    -rowSums(x^2)
  }
  reference <- standard_normal()
  q <- reference$log_density
  reference$log_density <- function(x) {
    calls["reference"] <<- calls["reference"] + nrow(x)
    q(x)
  }
  fit <- quick_run(
    f,
    dim = 2, vectorized = TRUE, gradient = function(x) -2 * x,
    reference = reference
  )
  expect_identical(fit$runs$n_target_evals, 16 * 4)
  expect_identical(calls, c(target = 16 * 4, reference = 16 * 4))
})

# rounds ---------------------------------------------------------------------------

test_that("rounds start from the reference and go on from the fitted normal", {
  fit <- smc(
    target,
    reference = laplace(2, 3), rounds = 1, n_particles = 256, n_steps = 8,
    scout = FALSE, islands = 4, seed = 1
  )
  expect_true(all(fit$runs$used[1:2]))
  expect_s3_class(fit$reference, "smc_reference_gaussian")
  expect_log_z(fit, 0)
  plain <- smc(
    target,
    reference = laplace(2, 3), rounds = 1, n_particles = 256, n_steps = 8,
    islands = 2, seed = 1, whiten = FALSE
  )
  expect_s3_class(plain$reference, "smc_reference_function")
})

# The target is two narrow modes, of which the reference is a good mixture and no
# normal distribution is: a round with a fitted normal is rejected.
test_that("a fitted normal that does worse gives way to the reference", {
  modes <- function(x, sd) {
    log(0.5 * dnorm(x[, 1], -20, sd) + 0.5 * dnorm(x[, 1], 20, sd))
  }
  two <- target_function(
    function(x) modes(x, 1), 1,
    gradient = function(x) -(x - 20 * sign(x)), vectorized = TRUE
  )
  far_apart <- reference_function(
    function(n) rnorm(n, sample(c(-20, 20), n, replace = TRUE), 1.5),
    function(x) modes(x, 1.5),
    gradient = function(x) -(x - 20 * sign(x)) / 1.5^2, vectorized = TRUE
  )
  fit <- smc(
    two,
    reference = far_apart, rounds = 2, n_particles = 128, n_steps = 8,
    scout = FALSE, kernel = kernel_mala(), islands = 40, seed = 1
  )
  expect_false(fit$runs$used[2])
  expect_identical(fit$reference, far_apart)
  expect_mean(exp(fit$islands$log_z), 1, resolution = 0.1)
  expect_true(any(fit$particles > 0) && any(fit$particles < 0))
})

# reproducibility ------------------------------------------------------------------

small <- function(..., reference = laplace(2)) {
  smc(
    target, ...,
    reference = reference, n_particles = 32, n_steps = 3, rounds = 1
  )
}

test_that("set.seed() governs, by one draw, and the generator is left alone", {
  set.seed(3)
  fit <- calmly(small(islands = 3))
  after <- runif(1)
  set.seed(3)
  again <- calmly(small(islands = 3))
  expect_identical(without_time(fit), without_time(again))
  set.seed(3)
  runif(1)
  expect_identical(after, runif(1))
})

test_that("the user's kind of generator neither matters nor changes", {
  fit <- calmly(small(islands = 2, seed = 7))
  kinds <- suppressWarnings(RNGkind("Wichmann-Hill", "Box-Muller", "Rounding"))
  on.exit(RNGkind(kinds[1], kinds[2], kinds[3]))
  set.seed(1)
  before <- .Random.seed
  # that "Rounding" is not uniform is said whenever it is set
  suppressWarnings(other <- calmly(small(islands = 2, seed = 7)))
  expect_identical(.Random.seed, before)
  expect_identical(RNGkind(), c("Wichmann-Hill", "Box-Muller", "Rounding"))
  expect_identical(without_time(fit), without_time(other))
  rm(".Random.seed", envir = globalenv())
  suppressWarnings(calmly(small(islands = 2, seed = 7)))
  expect_false(exists(".Random.seed", globalenv(), inherits = FALSE))
  expect_identical(RNGkind()[1], "Wichmann-Hill")
})

test_that("the generator is put back after an error", {
  set.seed(1)
  before <- .Random.seed
  catch(small(seed = 1, reference = reference_function(
    function(n) {
      runif(1)
      stop("no draws")
    }, sum
  )))
  expect_identical(.Random.seed, before)
})

test_that("runs have draws of their own, and another island changes none", {
  draws <- list()
  reference <- laplace(2)
  sample_laplace <- reference$sample
  reference$sample <- function(n) {
    draws[[length(draws) + 1]] <<- sample_laplace(n)
    draws[[length(draws)]]
  }
  run <- function(...) {
    smc_run(
      target, plan, ...,
      kernel = kernel_mala(), reference = reference, n_particles = 32
    )
  }
  three <- calmly(run(islands = 3, seed = 1))
  four <- calmly(run(islands = 4, seed = 1))
  run(seed = 2)
  expect_identical(draws[1:3], draws[4:6])
  expect_identical(anyDuplicated(draws[4:8]), 0L)
  expect_identical(four$particles[1:96, ], three$particles)
  expect_identical(four$islands$log_z[1:3], three$islands$log_z)
})

test_that("seeds of runs are valid and differ", {
  keys <- c(1:1000, 2^31 + 0:100, 2^32 - 1)
  for (seed in c(0, 1, 2^31, 2^32 - 1)) {
    seeds <- seed_of_run(seed, keys)
    expect_false(anyDuplicated(seeds) > 0)
    expect_true(all(seeds == round(seeds) & abs(seeds) < 2^31))
  }
})

test_that("smc_replicate() draws anew", {
  fit <- smc_run(target, plan, reference = laplace(2), n_particles = 32, seed = 1)
  replicates <- smc_replicate(fit, 3, seed = 1)
  expect_identical(replicates$log_z[1], fit$log_z)
  expect_length(unique(replicates$log_z), 3)
})

# errors ---------------------------------------------------------------------------

test_that("the arguments are checked", {
  expect_bad(reference_function("f", sum), "sample")
  expect_bad(reference_function(sum), "log_density")
  expect_bad(reference_function(sum, 1), "log_density")
  expect_bad(reference_function(sum, sum, 1), "gradient")
  expect_bad(reference_function(sum, sum, vectorized = 1), "vectorized")
  expect_bad_undrawn(small(reference = "prior"), "reference")
})

run_from <- function(sample, log_density = function(x) 0, ..., on = target) {
  quick_run(on, reference = reference_function(sample, log_density, ...))
}
good_draws <- function(n) matrix(rnorm(2 * n), n)

expect_reference_error <- function(code, regexp, step = 0L) {
  error <- catch(code)
  expect_s3_class(error, "autosmc_error_target")
  expect_match(message_of(error), "^The reference failed")
  expect_identical(error$step, step)
  expect_identical(error$run, "final")
  message <- gsub("\\s+", " ", conditionMessage(error$parent))
  expect_match(message, regexp)
}

test_that("draws of a wrong shape are rejected", {
  shape <- "`reference\\$sample` must return a numeric matrix of 16 rows.* 2 columns"
  bad <- list(
    function(n) rnorm(n), function(n) matrix(0, 2, n), function(n) NULL,
    function(n) matrix("a", n, 2), function(n) as.data.frame(matrix(0, n, 2)),
    function(n) matrix(NA, n, 2)
  )
  for (sample in bad) expect_reference_error(run_from(sample), shape)
  one <- target_gaussian(1)
  expect_reference_error(
    run_from(function(n) rnorm(n + 1), on = one), "16 rows.* 1 column;"
  )
})

test_that("draws that are not finite or not inside are rejected", {
  put <- function(value) function(n) replace(matrix(0.5, n, 2), n + 3, value)
  for (value in list(NA_real_, NaN, Inf)) {
    expect_reference_error(
      run_from(put(value)),
      paste("finite numbers .* in row 3 x2 is", value)
    )
  }
  unit <- normal_target(2, lower = 0, upper = 1)
  expect_reference_error(run_from(put(1.5), on = unit), "bounds; in row 3 x2 is 1.5")
  expect_reference_error(run_from(put(-1), on = unit), "bounds; in row 3 x2 is -1")
  # rounding may put a draw on a bound
  gradient <- function(x) c(0, 0)
  fit <- run_from(put(1), gradient = gradient, on = unit)
  expect_true(is.finite(fit$log_z))
})

test_that("errors of the reference's functions are passed on, with the step", {
  stops <- function(...) stop("no more")
  expect_reference_error(run_from(stops), "no more")
  expect_reference_error(run_from(good_draws, stops), "no more")
  expect_reference_error(
    run_from(good_draws, function(x) c(1, 2)),
    "`reference\\$log_density` must return a number"
  )
  expect_reference_error(
    run_from(good_draws, gradient = function(x) 1),
    "The gradient of `reference\\$log_density` must be"
  )
  calls <- 0
  later <- function(x) {
    calls <<- calls + 1
    if (calls > 40) stop("no more") # 16 points a step
    0
  }
  expect_reference_error(
    run_from(good_draws, later, gradient = function(x) c(0, 0)), "no more", 2L
  )
})

test_that("a missing gradient of the reference is said once a call of smc()", {
  heard <- character()
  reference <- laplace(2)
  reference$gradient <- NULL
  withCallingHandlers(
    calmly(small(reference = reference, islands = 2, seed = 1)),
    autosmc_message_gradient = function(m) {
      heard <<- c(heard, conditionMessage(m))
      invokeRestart("muffleMessage")
    }
  )
  expect_length(heard, 1)
  expect_match(heard, "No gradient of `reference\\$log_density` was given")
})

test_that("a reference may be impossible in places, and prints", {
  half <- reference_function(
    function(n) rexp(n), function(x) if (x > 0) -x else -Inf,
    gradient = function(x) -1
  )
  positive <- target_function(
    function(x) if (x > 0) -2 * x else -Inf, 1,
    gradient = function(x) -2
  )
  fit <- quick_run(positive, reference = half)
  expect_true(all(fit$particles[exp(fit$log_weights) > 0] > 0))
  expect_output(print(half), "R functions")
})
