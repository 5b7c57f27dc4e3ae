# Fitted references: locations, normal distributions, and shapes. What rounds make of them
# is in test-rounds.R.

equal_weights <- function(n) rep(-log(n), n)

# The reference of the highest rung that can be fitted.
fit_reference <- function(x, log_weights, gradients = NULL) {
  internal("propose")(record_of(x, gradients, log_weights), c("normal", "shape"))$reference
}

# The reference that is the funnel itself: x_2, ..., x_d ~ N(0, exp(x_1)) given x_1 ~ N(0, 3^2), as target_funnel().
funnel_reference <- function(d) {
  reference <- internal("with_chol")(reference_gaussian(rep(0, d)), diag(c(3, rep(1, d - 1))))
  reference$maps <- list(list(
    name = "moments", order = as.double(seq_len(d)[-1]), features = internal("feature_of")(1, "linear"),
    location = matrix(0, d - 1, 1), log_scale = matrix(1.5, d - 1, 1)
  ))
  reference
}

# a normal from particles alone --------------------------------------------------------

# n draws from N(mean, cov) with random log weights that do not depend on them.
weighted_draws <- function(n, mean, cov, spread = 0.5) {
  d <- length(mean)
  x <- t(mean + t(chol(cov)) %*% matrix(rnorm(n * d), d))
  log_weights <- rnorm(n, sd = spread)
  list(x = x, log_weights = log_weights - log(sum(exp(log_weights))))
}

# From particles alone, as for a kernel without gradients.
fit_to <- function(draws) {
  internal("fit_normal")(record_of(draws$x, NULL, draws$log_weights))$reference
}

test_that("a reference is fitted with its variance inflated by 1.5", {
  set.seed(11)
  mean <- c(10, -3, 0)
  cov <- rbind(c(4, 1, 0.3), c(1, 1, -0.2), c(0.3, -0.2, 0.25))
  draws <- weighted_draws(40000, mean, cov)
  ess <- 1 / sum(exp(2 * draws$log_weights))
  reference <- fit_to(draws)
  expect_s3_class(reference, "smc_reference")
  fitted <- reference$chol %*% t(reference$chol)
  expect_true(all(reference$chol[upper.tri(cov)] == 0))
  # 4 standard errors of a mean, and of a covariance
  expect_true(all(abs(reference$mean - mean) < 4 * sqrt(diag(cov) / ess)))
  error <- sqrt((tcrossprod(diag(cov)) + cov^2) / ess)
  expect_true(all(abs(fitted / 1.5 - cov) < 4 * error))
})

test_that("weights count: draws of weight zero do not", {
  set.seed(12)
  draws <- weighted_draws(2000, c(1, 2), diag(2))
  outliers <- matrix(1e6, 500, 2)
  more <- list(
    x = rbind(draws$x, outliers),
    log_weights = c(draws$log_weights, rep(-Inf, 500))
  )
  expect_equal(fit_to(more), fit_to(draws))
})

test_that("correlations are shrunk by the rule of Schaefer and Strimmer", {
  cov <- matrix(0.6, 5, 5) + 0.4 * diag(5)
  for (n in c(30, 100, 1000)) {
    set.seed(13)
    draws <- weighted_draws(n, rep(0, 5), cov, 0)
    r <- cor(draws$x)[upper.tri(cov)]
    kept <- 1 - sum((1 - r^2)^2) / (n - 1) / sum(r^2)
    fitted <- tcrossprod(fit_to(draws)$chol)
    expect_equal(cov2cor(fitted)[upper.tri(cov)], kept * r)
    expect_equal(diag(fitted), 1.5 * apply(draws$x, 2, var))
    expect_true(kept > (if (n < 100) 0.5 else 0.9) && kept < 1)
  }
  # of independent variables little is left
  set.seed(14)
  draws <- weighted_draws(100, rep(0, 10), diag(10) + 0.1, 0)
  fitted <- tcrossprod(fit_to(draws)$chol)
  left <- cov2cor(fitted)[upper.tri(fitted)] - 0.1 / 1.1
  expect_lt(sqrt(mean(left^2)), 0.09) # 0.1 without shrinkage
})

test_that("with few particles for the dimension the covariance is diagonal", {
  set.seed(15)
  few <- fit_to(weighted_draws(59, rep(1, 10), diag((1:10)^2), 0))
  expect_null(few$chol)
  expect_length(few$sd, 10)
  many <- fit_to(weighted_draws(61, rep(1, 10), tcrossprod(1:10) * (1 + diag(10)) / 2, 0))
  expect_null(many$sd)
  expect_identical(dim(many$chol), c(10L, 10L))
  wide <- fit_to(weighted_draws(2000, rep(1, 400), diag(400), 0))
  expect_null(wide$chol)
  # inflated by less, so that the barrier is that of 250 variables
  expect_equal(log(mean(wide$sd^2)) * sqrt(400), log(1.5) * sqrt(250), tolerance = 0.03)
  one <- fit_to(weighted_draws(5000, 3, matrix(4), 0))
  expect_null(one$chol)
  expect_equal(one$mean, 3, tolerance = 0.05)
  expect_equal(one$sd, sqrt(1.5 * 4), tolerance = 0.05)
})

test_that("no reference is fitted to next to nothing", {
  set.seed(16)
  draws <- weighted_draws(1000, c(0, 0), diag(2), spread = 8)
  expect_lt(1 / sum(exp(2 * draws$log_weights)), 10)
  expect_null(fit_to(draws))
  expect_null(fit_to(weighted_draws(9, c(0, 0), diag(2), 0)))
  constant <- weighted_draws(1000, c(0, 0), diag(2))
  constant$x[, 2] <- 0
  expect_null(fit_to(constant))
})

test_that("a coordinate that does not vary is no reference", {
  set.seed(1)
  weights <- rep(-log(1000), 1000)
  fit_columns <- function(...) fit_to(list(x = cbind(...), log_weights = weights))
  expect_null(fit_columns(rnorm(1000), 0.1))
  expect_s3_class(fit_columns(rnorm(1000), rnorm(1000)), "smc_reference")
})

# Independent normal variables.
independent <- list(mean = rep(c(1, -2), 20), sd = rep(c(0.5, 1, 0.8, 0.9), 10))
wide_target <- function() target_gaussian(40, independent$mean, independent$sd)

test_that("after a fit to few particles the islands are unbiased", {
  fit <- calmly(smc(
    wide_target(),
    n_particles = 32, n_steps = 16, kernel = "klmc", islands = 4, seed = 1
  ))
  z <- exp(smc_replicate(fit, 400, seed = 3)$log_z)
  expect_mean(z, 1, resolution = 0.3)
})

# a normal from particles and gradients ----------------------------------------

rotated_covariance <- function(d, condition) {
  axes <- qr.Q(qr(matrix(rnorm(d^2), d)))
  axes %*% (condition^seq(0, 1, length.out = d) * t(axes))
}

covariance_of <- function(normal) {
  if (is.matrix(normal$L)) tcrossprod(normal$L) else diag(normal$L^2)
}

match_normal <- internal("match_normal")

test_that("match_normal() solves its equation", {
  set.seed(31)
  for (d in c(1, 2, 7, 20)) {
    for (n in c(3, 30)) {
      z <- matrix(rt(n * d, 3), n) %*% rotated_covariance(d, 3)
      g <- -atan(z) %*% rotated_covariance(d, 5) + matrix(rnorm(n * d), n)
      w <- runif(n)
      w <- w / sum(w)
      for (lambda in c(0.1, 10, 1000)) {
        normal <- match_normal(z, g, w, lambda)
        of <- function(x) {
          mean <- colSums(w * x)
          share <- lambda / (1 + lambda)
          list(mean = mean, square = lambda * crossprod(sqrt(w) * sweep(x, 2, mean)) +
            share * tcrossprod(mean), share = share)
        }
        V <- diag(d) + of(z)$square
        U <- of(g)$square
        S <- covariance_of(normal)
        expect_lt(max(abs(S %*% U %*% S + S - V)), 1e-8 * max(V))
        mean <- of(z)$share * drop(S %*% of(g)$mean + of(z)$mean)
        expect_equal(normal$mean, mean, tolerance = 1e-8)
      }
    }
  }
})

test_that("match_normal() is exact for a normal target from one point more than dimensions", {
  set.seed(32)
  for (d in c(1, 3, 10)) {
    cov <- rotated_covariance(d, if (d == 1) 5 else 100)
    mean <- rnorm(d, sd = 10)
    z <- matrix(rnorm((d + 1) * d, sd = 3), d + 1) # far from where the target is
    g <- -sweep(z, 2, mean) %*% solve(cov)
    # the larger lambda, the less of the start is left
    normal <- match_normal(z, g, rep(1 / (d + 1), d + 1), 1e8)
    root <- t(chol(cov))
    off <- forwardsolve(root, t(forwardsolve(root, covariance_of(normal)))) - diag(d)
    expect_lt(max(abs(off)), 1e-3)
    expect_lt(max(abs(forwardsolve(root, normal$mean - mean))), 1e-3)
  }
})

test_that("a normal is not narrower than the particles, as between two modes", {
  set.seed(33)
  n <- 2000
  side <- sample(c(-8, 8), n, TRUE)
  x <- cbind(rnorm(n) + side, rnorm(n, sd = 0.5))
  left <- 1 / (1 + exp(16 * x[, 1]))
  g <- cbind(-left * (x[, 1] + 8) - (1 - left) * (x[, 1] - 8), -4 * x[, 2])
  reference <- internal("fit_normal")(record_of(x, g))$reference
  fitted <- tcrossprod(factor_of(reference))
  # but for what chance allows: the variance is inflated by 1.5
  variance <- diag(var(x))
  expect_true(all(diag(fitted) >= variance))
  # without gradients of its own a mode is as wide as it is
  expect_lt(fitted[2, 2], 2 * variance[2])
  # the gradients alone would see one mode
  matched <- match_normal(x, g, rep(1 / n, n), n)
  expect_lt(covariance_of(matched)[1, 1], variance[1] / 4)
})

test_that("a normal is not wider than the particles either, as in a square of which gradients know nothing", {
  set.seed(34)
  n <- 400
  fitted_to <- function(x, g) {
    reference <- internal("fit_normal")(record_of(x, g))$reference
    tcrossprod(factor_of(reference)) / 1.5 # the inflation
  }
  x <- cbind(runif(n), rnorm(n))
  fitted <- fitted_to(x, cbind(0, -x[, 2]))
  chance <- (1 - sqrt(2 / n))^2
  expect_equal(fitted[1, 1], var(x)[1, 1] / chance, tolerance = 0.05)
  expect_equal(fitted[2, 2], 1, tolerance = 0.01)
  # the gradients alone would see a density without an end
  matched <- match_normal(x, cbind(0, -x[, 2]), rep(1 / n, n), n)
  expect_gt(covariance_of(matched)[1, 1], 100 * var(x)[1, 1])
  # few genealogies say nothing of the width, however many points descend from them
  x <- matrix(rnorm(3 * n, sd = 0.01), n)
  normal <- internal("normal_by_gradients")(x, -x, exp(equal_weights(n)), genealogies = 3)
  expect_lt(max(abs(tcrossprod(normal$L) - diag(3))), 0.01)
  normal <- internal("normal_by_gradients")(x, -x, exp(equal_weights(n)), genealogies = n)
  expect_lt(max(tcrossprod(normal$L)), 1e-3)
})

# the map ----------------------------------------------------------------------

test_that("a target that is its reference has equal weights at every step", {
  # Metropolis kernels weigh by the densities alone: log Z = 0 but for rounding
  for (d in c(2, 5)) {
    for (kernel in list(kernel_rwmh(0.5), kernel_mala(0.5))) {
      fit <- smc_run(target_funnel(d), data.frame(lambda = 1:4 / 4, step_size = 0.5),
        kernel = kernel, reference = funnel_reference(d), n_particles = 64,
        islands = 1, seed = 1
      )
      expect_lt(abs(fit$log_z), 1e-10)
      expect_equal(fit$steps$ess, rep(64, 4))
      expect_gt(fit$steps$acceptance[4], 0.2) # they did move
    }
  }
})

test_that("particles start at draws from a reference with maps", {
  fit <- calmly(smc_run(target_funnel(2), data.frame(lambda = 1, step_size = 1e-12),
    kernel = kernel_rwmh(1e-12), reference = funnel_reference(2),
    n_particles = 4000, islands = 1, seed = 2
  ))
  y <- fit$particles[, 1] / 3
  e <- fit$particles[, 2] * exp(-fit$particles[, 1] / 2)
  expect_gt(ks.test(y, "pnorm")$p.value, chance)
  expect_gt(ks.test(e, "pnorm")$p.value, chance)
  expect_mean(y * (e^2 - 1), 0, resolution = 0.2)
})

test_that("the evidence is unbiased from a reference with maps that does not fit", {
  reference <- funnel_reference(3)
  reference$chol[2, 1] <- 0.7
  reference$mean <- c(0.5, -0.5, 0)
  reference$maps[[1]]$location[] <- c(0, 0.4)
  reference$maps[[1]]$log_scale[] <- c(0.3, -0.2)
  target <- target_gaussian(3, mean = 1) # Z = 1
  schedule <- data.frame(lambda = 1:16 / 16, step_size = 0.15, refresh_rate = 0.5)
  for (kernel in list(kernel_klmc(), kernel_mala())) {
    if (kernel$name != "klmc") schedule$refresh_rate <- NULL
    fit <- calmly(smc_run(target, schedule,
      kernel = kernel, reference = reference,
      n_particles = 256, islands = 300, seed = 3
    ))
    expect_mean(exp(fit$islands$log_z), 1, resolution = 0.1)
  }
})

test_that("a target that is its reference has equal weights with two parents and bounds", {
  d <- 5
  feature_of <- internal("feature_of")
  features <- cbind(
    feature_of(2, "linear"), feature_of(4, "square", 0.5, 0.3),
    internal("product_of_features")(feature_of(2, "softplus", 2, 0.6), feature_of(4, "exponential", -0.4))
  )
  location <- rbind(c(0.5, 0, 0.2), c(0, -0.3, 0.1), c(0.2, 0.1, 0))
  log_scale <- rbind(c(0.3, 0.1, 0), c(0, 0.1, -0.2), c(-0.2, 0, 0.1))
  L <- diag(d) + 0.2 * lower.tri(diag(d))
  reference <- internal("with_chol")(reference_gaussian(c(0.3, -0.2, 0, 1, 0.5)), L)
  reference$maps <- list(list(
    name = "moments", order = c(1, 3, 5), features = features, location = location, log_scale = log_scale
  ))
  reference$inflation <- c(1.2, 2, 1.2, 2, 1.2)
  # of x = mean + L u by its definition: u_j = m_j + exp(s_j) z_j, where z_j ~ N(0, inflation_j^2)
  log_reference <- function(x) {
    u <- t(solve(L, t(sweep(x, 2, reference$mean))))
    phi <- cbind(u[, 2], (0.5 * (u[, 4] - 0.3))^2, log1p(exp(2 * (u[, 2] - 0.6))) * exp(-0.4 * u[, 4]))
    s <- tcrossprod(phi, log_scale)
    z <- u
    z[, c(1, 3, 5)] <- (u[, c(1, 3, 5)] - tcrossprod(phi, location)) * exp(-s)
    rowSums(dnorm(z, 0, rep(reference$inflation, each = nrow(z)), log = TRUE)) - rowSums(s)
  }
  # one variable below, one above, one between bounds; and two free ones
  lower <- c(0, -Inf, -1, -Inf, -Inf)
  upper <- c(Inf, 2, 3, Inf, Inf)
  target <- target_function(
    function(x) {
      u <- unconstrain(bounded, x)
      log_jacobian <- u[, 1] + u[, 2] + log(4) + plogis(u[, 3], log.p = TRUE) + plogis(-u[, 3], log.p = TRUE)
      log_reference(u) - log_jacobian
    }, d,
    lower = lower, upper = upper, vectorized = TRUE
  )
  bounded <- target
  fit <- suppressMessages(smc_run(target, data.frame(lambda = 1:3 / 3, step_size = 0.3),
    kernel = kernel_rwmh(), reference = reference, n_particles = 64, seed = 1
  ))
  expect_lt(abs(fit$log_z), 1e-8)
  expect_equal(fit$steps$ess, rep(64, 3))
  expect_gt(fit$steps$acceptance[3], 0.1)
})

test_that("a Student t is fitted to heavy tails, and not to normal ones", {
  set.seed(38)
  cov <- rbind(c(4, 1, 0), c(1, 1, 0.2), c(0, 0.2, 0.25))
  n <- 4000
  student <- function(x) {
    w <- rep(1 / nrow(x), nrow(x))
    x <- sweep(x, 2, colMeans(x))
    internal("fit_student")(x, w, internal("fit_scale")(x, w), nrow(x))
  }
  for (df in c(1.5, 2, 4)) {
    x <- matrix(rnorm(3 * n), n) %*% chol(cov) / sqrt(rchisq(n, df) / df)
    fit <- student(x)
    expect_identical(fit$df, df)
    expect_equal(tcrossprod(fit$L), cov, tolerance = 0.15)
  }
  for (repeated in 1:5) {
    for (n in c(100, 1000)) {
      expect_null(student(matrix(rnorm(3 * n), n) %*% chol(cov)))
    }
  }
  # where the correlations of few draws are shrunk, the fitted normal distribution is wider than the
  # draws, which is no sign of tails
  for (repeated in 1:5) {
    cov <- crossprod(matrix(rnorm(40 * 45), 45))
    expect_null(student(matrix(rnorm(40 * 300), 300) %*% chol(cov)))
  }
})

test_that("draws and gradients tell a normal distribution, exactly, from others", {
  set.seed(39)
  d <- 4
  n <- 400
  factor <- t(chol(crossprod(matrix(rnorm(40), 10)))) %*% diag(c(1e-3, 1, 1, 1e3))
  z <- matrix(rnorm(n * d), n)
  points <- function(z, g) {
    x <- z %*% t(factor)
    list(
      x = sweep(x, 2, colMeans(x)), g = t(solve(t(factor), t(g))), w = rep(1 / n, n),
      mean = colMeans(x)
    )
  }
  exact <- function(points) {
    internal("exact_normal")(points, internal("fit_scale")(points$x, points$w), n)
  }
  is_normal <- function(points) !is.null(exact(points))
  expect_true(is_normal(points(z, -z)))
  # it is that of the gradients, not of the draws
  wider <- points(1.05 * z + 0.05, -1.05 * z - 0.05)
  wider$mean <- c(1, 10, -5, 100) + colMeans((1.05 * z + 0.05) %*% t(factor))
  found <- exact(wider)
  # in its own coordinates, so that each variable counts
  expect_lt(max(abs(solve(factor, found$mean - c(1, 10, -5, 100)))), 1e-8)
  expect_equal(tcrossprod(solve(factor, found$chol)), diag(d), tolerance = 1e-8)
  expect_true(is_normal(points(z + 2, -z)))
  # with an edge on one side, or two, gradients are those of a normal distribution
  half <- cbind(abs(z[, 1]), z[, -1])
  expect_false(is_normal(points(half, -half)))
  middle <- cbind(z[, 1] / (1 + abs(z[, 1])), z[, -1])
  expect_false(is_normal(points(middle, -middle)))
  exponential <- cbind(rexp(n), z[, -1])
  expect_false(is_normal(points(exponential, cbind(-1, -z[, -1]))))
  # of a Student t, of a banana, and of two modes
  expect_false(is_normal(points(z, -(8 + d) * z / (8 + rowSums(z^2)))))
  off <- z[, 2] - 0.5 * z[, 1]^2
  expect_false(is_normal(points(z, cbind(-z[, 1] + off * z[, 1], -off, -z[, 3:4]))))
  expect_false(is_normal(points(z, cbind(-z[, 1] + 2 * tanh(2 * z[, 1]), -z[, -1]))))
  # a difference r in the gradients: half of the mean of r^2, by which the bound is in nats
  limit <- internal("rules")$normal_nats
  r <- sin(3 * z[, 1])
  r <- residuals(lm(r ~ z))
  for (nats in limit * c(0.5, 2)) {
    g <- -z + cbind(r * sqrt(2 * nats / mean(r^2)), 0, 0, 0)
    expect_identical(is_normal(points(z, g)), nats < limit)
  }
  # too few points, no gradients, and what is no distribution
  few <- points(z, -z)
  few[c("x", "g")] <- lapply(few[c("x", "g")], function(x) x[1:8, ])
  expect_null(internal("exact_normal")(replace(few, "w", list(rep(1 / 8, 8))), diag(d), 8))
  expect_null(internal("exact_normal")(few[c("x", "w")], diag(d), 8))
  expect_false(is_normal(points(z, z)))
})
