# The Student t reference.

# The log density of the multivariate t distribution at the rows of x, and its gradient.
log_student <- function(x, df, mean, cov) {
  d <- ncol(x)
  precision <- solve(cov)
  centred <- sweep(x, 2, mean)
  square <- rowSums((centred %*% precision) * centred)
  value <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) -
    as.numeric(determinant(cov)$modulus) / 2 - (df + d) / 2 * log1p(square / df)
  attr(value, "gradient") <- -(df + d) * (centred %*% precision) / (df + square)
  value
}

student_target <- function(df, mean, cov) {
  target_function(
    function(x) log_student(x, df, mean, cov),
    dim = length(mean), vectorized = TRUE
  )
}

centre <- c(1, -2, 0.5)
cov <- rbind(c(2, 0.5, -0.3), c(0.5, 1, 0.2), c(-0.3, 0.2, 0.7))

# The particles of a run that stays at its draws.
draws_from <- function(reference, n) {
  schedule <- data.frame(lambda = 1, step_size = 1e-30)
  smc_run(
    target_gaussian(3), schedule,
    kernel = kernel_rwmh(), reference = reference, n_particles = n, islands = 1, seed = 4
  )$particles
}

test_that("draws are from the distribution", {
  n <- 20000
  for (df in c(0.3, 1, 2.5, 30, 1e6)) {
    x <- draws_from(reference_student(df, centre, cov = cov), n)
    z <- forwardsolve(t(chol(cov)), t(x) - centre)
    p <- stats::pf(colSums(z^2) / 3, 3, df)
    # the chance that sqrt(n) D exceeds 3.1 is 1e-8 (Kolmogorov)
    distance <- max(abs(sort(p) - seq_len(n) / n))
    expect_lt(sqrt(n) * distance, 3.1)
    # directions are uniform: each half space has half of them, each quarter a quarter
    expect_mean(z[1, ] > 0, 1 / 2, resolution = 0.03)
    expect_mean(z[2, ] > z[3, ], 1 / 2, resolution = 0.03)
    expect_mean(z[1, ] > 0 & z[2, ] > 0, 1 / 4, resolution = 0.03)
  }
})

test_that("its density is normalised, with and without bounds and maps", {
  # From the target itself every weight is 1, whatever the particles do.
  exactly <- function(target, reference, kernel = kernel_mala(0.5)) {
    schedule <- data.frame(lambda = c(0.2, 1), step_size = 0.5)
    fit <- smc_run(target, schedule,
      kernel = kernel, reference = reference, n_particles = 64, islands = 1, seed = 1
    )
    expect_lt(abs(fit$log_z), 1e-12)
    expect_lt(max(abs(fit$log_weights + log(64))), 1e-12)
    expect_identical(all(is.finite(fit$particles)), TRUE)
  }
  for (df in c(0.5, 1, 4, 50)) {
    target <- student_target(df, centre, cov)
    exactly(target, reference_student(df, centre, cov = cov))
    exactly(target, reference_student(df, centre, cov = cov), kernel_rwmh(0.5))
    exactly(
      student_target(df, centre, diag(c(4, 1, 0.25))),
      reference_student(df, centre, c(2, 1, 0.5))
    )
  }
  exactly(student_target(3, numeric(3), diag(3)), reference_student(3))

  # log x1 and the logit of x3 have the distribution together with x2
  bounded <- target_function(
    function(x) {
      u <- cbind(log(x[, 1]), x[, 2], qlogis(x[, 3]))
      log_student(u, 4, centre, cov) - log(x[, 1]) - log(x[, 3]) - log1p(-x[, 3])
    },
    dim = 3, vectorized = TRUE, gradient = function(x) 0 * x,
    lower = c(0, -Inf, 0), upper = c(Inf, Inf, 1)
  )
  exactly(bounded, reference_student(4, centre, cov = cov), kernel_rwmh(0.5))

  # x2 bends round x1, and x3 spreads with it
  curved <- reference_student(4, c(0.3, 0, 0))
  feature_of <- internal("feature_of")
  curved$maps <- list(list(
    name = "moments", order = c(2, 3), log_scale = rbind(0, c(0.6, 0, 0)), location = rbind(c(0.4, 0.8, -0.8), 0),
    features = cbind(feature_of(1, "linear"), feature_of(1, "square"), internal("constant_feature"))
  ))
  banana <- target_function(
    function(x) {
      z1 <- x[, 1] - 0.3
      z <- cbind(z1, x[, 2] - 0.4 * z1 - 0.8 * (z1^2 - 1), x[, 3] * exp(-0.6 * z1))
      log_student(z, 4, numeric(3), diag(3)) - 0.6 * z1
    },
    dim = 3, vectorized = TRUE, gradient = function(x) 0 * x
  )
  exactly(banana, curved, kernel_rwmh(0.5))
})

test_that("estimates from it are unbiased with all kernels", {
  target <- student_target(3, centre, cov)
  reference <- reference_student(1.5, centre + 0.4, cov = 1.5 * cov)
  kernels <- list(
    kernel_klmc(), kernel_lmc(first_backward = "independent"), kernel_mala(), kernel_rwmh()
  )
  for (kernel in kernels) {
    fit <- smc(target,
      kernel = kernel, reference = reference, n_particles = 256, n_steps = 8,
      rounds = 0, whiten = FALSE, islands = 40, seed = 2
    )
    expect_identical(fit$reference, reference)
    expect_mean(exp(fit$islands$log_z), 1, resolution = 0.3)
  }
})

test_that("whitened coordinates make units and locations of no account", {
  run <- function(target, reference) {
    smc(target,
      reference = reference, n_particles = 64, n_steps = 6, islands = 2, seed = 3,
      # given, as a search would enlarge rounding errors
      kernel = kernel_klmc(step_size = 0.5, refresh_rate = 0.9)
    )
  }
  plain <- run(student_target(3, numeric(3), diag(3)), reference_student(2))
  moved <- run(
    student_target(3, c(0, 4, 8), 4^c(0, 1, 2) * diag(3)),
    reference_student(2, mean = c(0, 4, 8), sd = c(1, 2, 4))
  )
  expect_equal(moved$islands$log_z, plain$islands$log_z, tolerance = 1e-9)
  expect_equal(moved$log_weights, plain$log_weights, tolerance = 1e-9)
})

test_that("arguments are checked, and what was given is shown", {
  expect_bad(reference_student(), "df")
  for (df in list(0, -1, 0.01, Inf, NA, "1", c(1, 2))) {
    expect_bad(reference_student(df), "df")
  }
  expect_bad(reference_student(1, sd = 0), "sd")
  expect_bad(reference_student(1, sd = 1, cov = diag(2)), "cov")
  expect_bad(smc(target_gaussian(3), reference = reference_student(1, 1:2)), "mean")
  expect_bad(smc(target_gaussian(3), reference = reference_student(1, cov = diag(2))), "cov")
  expect_output(print(reference_student(2.5, 1)), "Student t, df 2.5, mean 1, sd 1")
  expect_output(
    print(reference_student(1, cov = diag(2))), "Student t, df 1, mean 0, a 2 x 2 covariance"
  )
})

test_that("rounds start from it, and leave it for a fitted reference", {
  fit <- smc(target_gaussian(2, mean = 3),
    reference = reference_student(4), n_particles = 128, islands = 2, seed = 1
  )
  expect_lt(abs(fit$log_z), 0.2)
  expect_s3_class(fit$reference, "smc_reference")
})

test_that("a Student t is found exactly by gradients, from draws that know little of its tails", {
  set.seed(43)
  find <- function(x, gradient) {
    mean <- colMeans(x)
    n <- nrow(x)
    points <- list(x = sweep(x, 2, mean), g = gradient(x), w = rep(1 / n, n), mean = mean)
    utils::getFromNamespace("exact_student", "autosmc")(points, t(chol(cov(x))), n)
  }
  for (d in c(1, 3, 30)) {
    mean <- rnorm(d, 100, 10)
    root <- matrix(rnorm(d^2), d) + diag(3, d)
    cov <- crossprod(root)
    precision <- solve(cov)
    by_student <- function(df) {
      function(x) {
        y <- sweep(x, 2, mean)
        -(df + d) * (y %*% precision) / (df + rowSums((y %*% precision) * y))
      }
    }
    x <- sweep(matrix(rnorm(1000 * d), 1000) %*% root, 2, mean, "+")
    for (df in c(1, 2, 4.5)) {
      found <- find(x, by_student(df))
      expect_equal(found$df, df, tolerance = 1e-6)
      expect_equal(found$mean, mean, tolerance = 1e-6)
      expect_equal(tcrossprod(found$chol), cov, tolerance = 1e-6, ignore_attr = TRUE)
    }
    expect_null(find(x, function(x) by_student(2)(x) + 0.01 * sin(x)))
    expect_null(find(x[x[, 1] > mean[1], , drop = FALSE], by_student(2))) # half of one
    expect_null(find(x, function(x) 0 * x - 1))
    expect_null(find(x, function(x) 0 * x))
  }

  target <- student_target(2, rnorm(20, 10), diag(seq(0.1, 10, length.out = 20)))
  fit <- calmly(smc(target, seed = 1))
  expect_equal(fit$reference$df, 2, tolerance = 1e-6)
  expect_lt(abs(fit$log_z), 0.05) # its standard error is 0.002
  expect_identical(fit$maps, "heavy tails in all directions (Student t, 2 degrees of freedom)")
})
