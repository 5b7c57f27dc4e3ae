# Fitted references: locations, normal distributions, and shapes. What rounds make of them
# is in test-rounds.R.

factor_of <- function(reference) {
  if (is.null(reference$chol)) diag(reference$sd, length(reference$mean)) else reference$chol
}

equal_weights <- function(n) rep(-log(n), n)

# The reference of the highest rung that can be fitted.
fit_reference <- function(x, log_weights, gradients = NULL) {
  internal("propose")(record_of(x, gradients, log_weights), c("normal", "shape"))$reference
}

# x_2, ..., x_d ~ N(0, exp(x_1)) given x_1 ~ N(0, 3^2), as target_funnel().
funnel_draws <- function(n, d, sd = 3) {
  y <- rnorm(n, sd = sd)
  cbind(y, matrix(rnorm(n * (d - 1)) * exp(y / 2), n))
}

conditional_reference <- function(mean, L, conditional) {
  reference <- internal("with_chol")(reference_gaussian(mean), L)
  reference$conditional <- conditional
  reference
}

# The reference that is the funnel itself.
funnel_reference <- function(d) {
  conditional_reference(
    rep(0, d), diag(c(3, rep(1, d - 1))),
    list(
      conditioning = 1L,
      shift = matrix(0, d, 1),
      slope = matrix(c(0, rep(1.5, d - 1)), d, 1)
    )
  )
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
    expect_true(kept > 0.9 && kept < 1)
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

# the location alone -------------------------------------------------------------

controlled_mean <- internal("controlled_mean")

test_that("gradients take the noise out of a mean", {
  # of independent normal variables all of it, whatever the draws and their weights
  set.seed(21)
  mean <- c(3, -1, 0.5)
  sd <- c(1, 0.1, 20)
  x <- cbind(rexp(20), rcauchy(20), runif(20))
  gradient <- sweep(-sweep(x, 2, mean), 2, sd^2, "/")
  w <- runif(20)
  expect_equal(controlled_mean(x, gradient, w / sum(w)), mean)
  # of others what is linear in the gradient: three quarters of the variance where the
  # correlation with it is 0.87
  precision <- solve(rbind(c(1, 0.5), c(0.5, 1)))
  off <- replicate(500, {
    x <- weighted_draws(100, c(0, 0), solve(precision), spread = 0)$x
    w <- rep(0.01, 100)
    c(colMeans(x), controlled_mean(x, -x %*% precision, w))
  })
  ratio <- rowMeans(off[3:4, ]^2) / rowMeans(off[1:2, ]^2)
  expect_equal(ratio, c(0.25, 0.25), tolerance = 0.3) # 3.9 standard errors
  # a gradient that does not vary says nothing, nor one whose square overflows
  for (useless in list(0 * x, 0 * x + 0.7, 1e200 * x)) {
    expect_equal(controlled_mean(x, useless, w / sum(w)), colSums(w * x) / sum(w))
  }
})

# Independent normal variables: a reference that is moved finds the means.
independent <- list(mean = rep(c(1, -2), 20), sd = rep(c(0.5, 1, 0.8, 0.9), 10))
wide_target <- function() target_gaussian(40, independent$mean, independent$sd)
few_particles <- function(target = wide_target(), ...) {
  record_for(target, ..., n_particles = 32)
}
moved <- function(record) internal("propose")(record, "location")$reference

test_that("with fewer particles than dimensions the location of normal variables is found", {
  for (reference in list(reference_gaussian(), reference_gaussian(0.5, rep(1.1, 40)))) {
    found <- moved(few_particles(reference = reference))
    expect_equal(found$mean, independent$mean)
    expect_identical(found$sd, reference$sd)
  }
  # with a covariance: here the reference's own, so that the z are independent
  set.seed(22)
  root <- diag(40) + lower.tri(diag(40)) * rnorm(1600, sd = 0.1)
  precision <- solve(tcrossprod(root))
  correlated <- target_function(
    function(x) -sum((x - 1) * precision %*% (x - 1)) / 2, 40,
    gradient = function(x) -drop(precision %*% (x - 1))
  )
  reference <- reference_gaussian(0, cov = tcrossprod(root))
  found <- moved(few_particles(correlated, reference = reference))
  expect_equal(found$mean, rep(1, 40))
  expect_identical(found$chol, reference$chol)
  # with bounds: normal on the log scale
  bounded <- target_function(
    function(x) sum(dlnorm(x, 1, log = TRUE)), 40,
    gradient = function(x) -1 / x - (log(x) - 1) / x, lower = 0
  )
  expect_equal(moved(few_particles(bounded))$mean, rep(1, 40))
})

test_that("what cannot be moved stays", {
  # no gradients; too wide for the reference; no normal distribution
  expect_null(moved(few_particles(kernel = kernel_rwmh())))
  expect_null(moved(few_particles(target_gaussian(40, sd = 5))))
  given <- reference_function(
    function(n) matrix(rnorm(40 * n), n), function(x) sum(dnorm(x, log = TRUE)),
    gradient = function(x) -x
  )
  expect_null(moved(few_particles(reference = given)))
})

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

test_that("particles start at draws from the conditional reference", {
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

test_that("the evidence is unbiased from a conditional reference that does not fit", {
  reference <- funnel_reference(3)
  reference$chol[2, 1] <- 0.7
  reference$mean <- c(0.5, -0.5, 0)
  reference$conditional$shift[3] <- 0.4
  reference$conditional$slope[] <- c(0, 0.3, -0.2)
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

# the fit ----------------------------------------------------------------------

test_that("the fit finds the conditioning variable, and how scale and location depend on it", {
  set.seed(4)
  n <- 4000
  x <- funnel_draws(n, 4, sd = 1)
  x[, 3] <- 2 + 3 * x[, 1] + 5 * x[, 3]
  reference <- fit_reference(x[, c(2, 3, 1, 4)], equal_weights(n))
  conditional <- reference$conditional
  expect_identical(conditional$conditioning, 3L)
  expect_equal(conditional$shift[3, ], 0)
  expect_equal(conditional$slope[3, ], 0)
  # in units of the conditioning variable: the log scale changes by 1/2; the errors of a slope are
  # sqrt(pi^2 / 8 / n)
  error <- sqrt(pi^2 / 8 / n)
  slope <- conditional$slope[-3, ] / reference$chol[3, 3]
  expect_true(all(abs(slope - 0.5) < 4 * error))
})

test_that("the map of a fit makes a funnel as normal as its inflation", {
  set.seed(5)
  n <- 4000
  reference <- fit_reference(funnel_draws(n, 3, sd = 1), equal_weights(n))
  fit <- smc_run(target_funnel(3), data.frame(lambda = 1, step_size = 1e-12),
    kernel = kernel_rwmh(1e-12), reference = reference,
    n_particles = 4000, islands = 1, seed = 5
  )
  # draws of the reference: given y, of a variance 1.5 times exp(y)
  e <- fit$particles[, 2:3] * exp(-fit$particles[, 1] / 2)
  expect_lt(abs(mean(e^2) - 1.5), 4 * 1.5 * sqrt(2 / 8000) + 0.1)
})

test_that("particles without weight may be anywhere", {
  set.seed(7)
  n <- 1000
  x <- funnel_draws(n, 4)
  reference <- fit_reference(x, equal_weights(n))
  expect_length(reference$conditional$conditioning, 1)
  far <- matrix(c(-3000, 1e200, 5, 5), 20, 4, byrow = TRUE)
  weights <- c(equal_weights(n), rep(-800, 10), rep(-Inf, 10))
  expect_equal(fit_reference(rbind(x, far), weights), reference)
})

test_that("a location that depends on nothing gets no slope by chance", {
  # in the neck, exp(-5), a slope of its standard error at the mouth would be too much
  set.seed(8)
  reference <- fit_reference(funnel_draws(1000, 10), equal_weights(1000))
  shift <- abs(reference$conditional$shift[-1, ])
  expect_gt(mean(shift < 0.003), 0.8)
  expect_lt(max(shift), 0.05)
})

test_that("nothing is conditional where scales are constant, or by chance only", {
  set.seed(6)
  for (n in c(100, 1000)) {
    for (repeated in 1:10) {
      normal <- matrix(rnorm(n * 8), n) %*% matrix(rnorm(64), 8)
      heavy <- matrix(rt(n * 8, df = 5), n)
      for (x in list(normal, heavy)) {
        reference <- fit_reference(x, equal_weights(n))
        expect_s3_class(reference, "smc_reference") # it was fitted, ...
        expect_null(reference$conditional)
      }
    }
  }
  one <- fit_reference(matrix(rnorm(500)), equal_weights(500))
  expect_s3_class(one, "smc_reference")
  expect_null(one$conditional)
})

# Squared residuals are smaller where the leverage is high: of a skew variable, in the tail.
test_that("a scale that is constant has no slope by the leverage of few points", {
  set.seed(42)
  slopes <- replicate(300, {
    x <- cbind(rexp(30), rnorm(30))
    # as if there were so many that no slope is dropped for being small
    points <- list(x = sweep(x, 2, colMeans(x)), w = rep(1 / 30, 30))
    fit <- internal("condition_on")(points, 1L, 1e9, 1e9)
    fit$slope[2, 1]
  })
  # 0.04 with the correction, as squares are estimated too; -0.15 without it
  expect_lt(abs(mean(slopes)), 0.1)
})

test_that("two conditioning variables are found, each with what depends on it", {
  set.seed(43)
  n <- 4000
  x <- matrix(rnorm(n * 6), n)
  x[, 3:4] <- x[, 3:4] * exp(x[, 1] / 2)
  x[, 5] <- x[, 5] * exp(-x[, 2] / 2)
  x[, 6] <- x[, 6] + x[, 2]^2
  conditional <- fit_reference(x, equal_weights(n))$conditional
  expect_setequal(conditional$conditioning, 1:2)
  order <- order(conditional$conditioning)
  expect_equal(conditional$slope[3:5, order],
    rbind(c(0.5, 0), c(0.5, 0), c(0, -0.5)),
    tolerance = 0.1
  )
  expect_gt(conditional$curve[6, order[2]], 0.5)
})

# x_1 ~ N(0, s^2), x_2 ~ N(b (x_1^2 - s^2), 1)
banana_draws <- function(n, b, s) {
  x <- rnorm(n, sd = s)
  cbind(x, rnorm(n, b * (x^2 - s^2)))
}

# The conditional part of what is fitted to equally weighted rows, with its factor; NULL for none.
conditional_fit <- function(x) {
  reference <- fit_reference(x, equal_weights(nrow(x)))
  if (!is.null(reference$conditional)) c(reference$conditional, list(L = factor_of(reference)))
}

test_that("a conditional fit finds the curve of a banana", {
  set.seed(34)
  for (b in c(0.1, 1)) {
    for (s in c(1, 3, 10)) {
      fit <- conditional_fit(banana_draws(2000, b, s))
      if (b * s < 0.5) { # hardly bent
        next
      }
      expect_identical(fit$conditioning, 1L)
      # in units of the follower's own scale; the mean of the squares is in the constant
      curve <- fit$curve[2, 1] * fit$L[2, 2] / fit$L[1, 1]^2
      expect_equal(curve, b, tolerance = 0.1)
      expect_equal(fit$slope[2, 1], 0, tolerance = 0.1)
    }
  }
})

test_that("a conditional fit finds the knee of a logarithm of a sum, and the square of a banana", {
  set.seed(36)
  n <- 2000
  for (knee in list(c(0.2, 0.5), c(0.7, 1), c(0.4, -0.8))) { # width and place
    x <- qnorm((sample(n) - 0.5) / n) # of unit variance, but for the quantiles beyond
    y <- log1p(exp((x - knee[2]) / knee[1])) + rnorm(n, 0, 0.02)
    fit <- conditional_fit(cbind(x, y))
    expect_identical(fit$conditioning, 1L)
    expect_equal(c(fit$width[1], fit$place[1]), knee, tolerance = 0.02)
    # and so it is exact, but for the noise
    expect_equal(fit$L[2, 2], 0.02, tolerance = 4 / sqrt(2 * n))
  }
  expect_null(conditional_fit(banana_draws(n, 1, 1))$width)
})

test_that("the evidence of a target with several knees is right", {
  # y_j given x is normal around a logarithm of a sum, x logistic: each has density one
  along <- function(x) outer(2 * x[, 1], 1:4, "-")
  rest <- function(x) (x[, -1, drop = FALSE] - log1p(exp(along(x)))) / 0.1
  bent <- target_function(
    function(x) dlogis(x[, 1], log = TRUE) + rowSums(dnorm(rest(x), log = TRUE)) - 4 * log(0.1), 5,
    gradient = function(x) {
      by_rest <- rowSums(rest(x) * 2 * plogis(along(x))) / 0.1
      cbind(1 - 2 * plogis(x[, 1]) + by_rest, -rest(x) / 0.1)
    },
    vectorized = TRUE
  )
  fit <- expect_no_warning(smc(bent, seed = 1))
  expect_gt(length(fit$reference$conditional$bent), 1)
  # with a square in place of the knees its error is 0.024
  expect_log_z(fit, 0, resolution = 0.05)
})

test_that("a conditional fit finds the slope of a funnel", {
  set.seed(35)
  for (sd in c(1, 3)) {
    fit <- conditional_fit(funnel_draws(2000, 5, sd))
    expect_identical(fit$conditioning, 1L)
    slope <- fit$slope[-1, 1] / fit$L[1, 1]
    # 4.5 standard errors of a regression of the log squares
    expect_lt(max(abs(slope - 0.5)), 4.5 * sqrt(pi^2 / 8 / 2000) / sd)
  }
})

test_that("gradients find a neck from so few draws that sizes do not", {
  set.seed(44)
  n <- 30
  found <- replicate(40, {
    x <- funnel_draws(n, 5, sd = 1)
    square <- rowSums(x[, -1]^2)
    g <- cbind(-x[, 1] - 2 + square * exp(-x[, 1]) / 2, -x[, -1] * exp(-x[, 1]))
    points <- list(
      x = sweep(x, 2, colMeans(x)), g = g, w = rep(1 / n, n), mean = colMeans(x)
    )
    L <- internal("fit_scale")(points$x, points$w)
    by_gradients <- internal("fit_conditional")(points, L, n, n)
    by_sizes <- internal("fit_conditional")(points[c("x", "w")], L, n, n)
    c(identical(by_gradients$conditioning, 1L), identical(by_sizes$conditioning, 1L))
  })
  expect_gt(mean(found[1, ]), 0.75)
  expect_lt(mean(found[2, ]), 0.5)
})

test_that("a conditional fit finds nothing in normals, rings and two modes", {
  set.seed(36)
  for (repeated in 1:5) {
    for (n in c(200, 2000)) {
      angle <- runif(n, 0, 2 * pi)
      ring <- (5 + 0.3 * rnorm(n)) * cbind(cos(angle), sin(angle))
      modes <- matrix(rnorm(3 * n), n)
      modes[, 1] <- modes[, 1] + sample(c(-5, 5), n, TRUE)
      expect_null(conditional_fit(matrix(rnorm(n * 6), n) %*% matrix(rnorm(36), 6)))
      expect_null(conditional_fit(ring))
      expect_null(conditional_fit(modes))
    }
  }
})

# The log density of a conditional reference, by its definition: x = mean + L u,
# u_j = exp(slope_j . z_d) (z_j + offset_j + shift_j . z_d + curve_j . (b(z_d) - 1)),
# where z_j ~ N(0, inflation_j^2), and b is the square, or bends at knees.
log_conditional <- function(reference, x) {
  conditional <- reference$conditional
  inflation <- if (is.null(reference$inflation)) rep(1, ncol(x)) else reference$inflation
  L <- factor_of(reference)
  u <- t(solve(L, t(sweep(x, 2, reference$mean))))
  zd <- u[, conditional$conditioning, drop = FALSE] # conditioning variables are their own z
  bends <- zd^2
  if (!is.null(conditional$bent)) {
    bends <- mapply(function(i, width, place) {
      if (width == 0) zd[, i]^2 else 8 * width^2 * log(cosh((zd[, i] - place) / (2 * width)))
    }, conditional$bent, conditional$width, conditional$place)
  }
  location <- zd %*% t(conditional$shift) + (bends - 1) %*% t(conditional$curve)
  log_scale <- zd %*% t(conditional$slope)
  z <- sweep(u * exp(-log_scale) - location, 2, conditional$offset)
  rowSums(dnorm(sweep(z, 2, inflation, "/"), log = TRUE)) - sum(log(inflation)) -
    rowSums(log_scale) -
    as.numeric(determinant(L)$modulus)
}

test_that("a target that is its reference has equal weights with two conditions and bounds", {
  d <- 5
  reference <- conditional_reference(
    c(0.3, -0.2, 0, 1, 0.5), diag(d) + 0.2 * lower.tri(diag(d)),
    list(
      conditioning = c(2L, 4L),
      offset = c(0.3, 0, -0.2, 0, 0.1),
      shift = rbind(c(0.5, 0), 0, c(0, -0.3), 0, c(0.2, 0.1)),
      slope = rbind(c(0.3, 0.1), 0, c(0, 0.4), 0, c(-0.2, 0)),
      curve = rbind(c(0, 0.2), 0, c(0.1, 0), 0, 0),
      bent = c(2, 1), width = c(0.4, 0), place = c(0.6, 0)
    )
  )
  reference$inflation <- c(1.2, 2, 1.2, 2, 1.2)
  # one variable below, one above, one between bounds; and two free ones
  lower <- c(0, -Inf, -1, -Inf, -Inf)
  upper <- c(Inf, 2, 3, Inf, Inf)
  target <- target_function(
    function(x) {
      u <- unconstrain(bounded, x)
      log_jacobian <- u[, 1] + u[, 2] + log(4) + plogis(u[, 3], log.p = TRUE) +
        plogis(-u[, 3], log.p = TRUE)
      log_conditional(reference, u) - log_jacobian
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

test_that("an inflated conditional reference is a distribution that covers the fitted one", {
  set.seed(37)
  n <- 4000
  shapes <- list(banana_draws(n, 0.5, 2), funnel_draws(n, 3, 1), {
    x <- funnel_draws(n, 3, 1)
    x[, 3] <- x[, 3] + 2 * x[, 1] + 0.7 * x[, 1]^2
    x
  })
  for (x in shapes) {
    d <- ncol(x)
    inflated <- fit_reference(x, equal_weights(n))
    plain <- inflated
    plain$inflation <- NULL
    drawn <- smc_run(target_gaussian(d), data.frame(lambda = 1, step_size = 1e-30),
      kernel = kernel_rwmh(), reference = inflated, n_particles = 20000, islands = 1, seed = 7
    )$particles
    w <- exp(log_conditional(plain, drawn) - log_conditional(inflated, drawn))
    # no weight is larger than the ratio of the scales: sqrt(4) for the conditioning variable, sqrt(1.5)
    # for the others
    expect_lt(max(w), 2 * 1.5^((d - 1) / 2) * (1 + 1e-6))
    expect_lt(abs(mean(w) - 1), 4.5 * sd(w) / sqrt(20000))
    # and the fitted distribution is that of the draws: their mean is where it was
    off <- colMeans(w * sweep(drawn, 2, colMeans(x)))
    error <- apply(w * drawn, 2, sd) / sqrt(20000) + apply(x, 2, sd) / sqrt(n)
    expect_true(all(abs(off) < 4.5 * error + 0.1 * apply(x, 2, sd)))
  }
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

test_that("what others gain from a variable shows in the gradients along it", {
  set.seed(40)
  n <- 1000
  are_uncoupled <- function(x, g) {
    points <- list(x = sweep(x, 2, colMeans(x)), g = g, w = rep(1 / n, n), mean = colMeans(x))
    L <- internal("fit_scale")(points$x, points$w)
    internal("are_uncoupled")(internal("fit_gaussian_score")(points, L), points)
  }
  # p effects and the logarithm of their scale, of standard deviation s: about p s^2 nats, beside others
  # that are normal but for a little
  effects <- function(p, s) {
    t <- rnorm(n, sd = s)
    u <- exp(t) * matrix(rnorm(n * p), n)
    others <- matrix(log(rgamma(n * 30, 20)), n)
    list(
      x = cbind(t, u, others),
      g = cbind(-t / s^2 + rowSums(u^2 * exp(-2 * t) - 1), -u * exp(-2 * t), 20 - exp(others))
    )
  }
  for (p in c(5, 30)) {
    strong <- effects(p, sqrt(0.5 / p))
    expect_false(are_uncoupled(strong$x, strong$g))
    weak <- effects(p, sqrt(0.05 / p))
    expect_true(are_uncoupled(weak$x, weak$g))
  }
  # few variables, each of which is a large part of what a normal distribution leaves
  of_gamma <- function(d) {
    x <- matrix(log(rgamma(n * d, 5)), n)
    are_uncoupled(x, 5 - exp(x))
  }
  expect_false(of_gamma(3))
  expect_true(of_gamma(20))
  expect_false(internal("are_uncoupled")(NULL, NULL))
  expect_false(internal("are_uncoupled")(list(nats = Inf), NULL))
})

# in rounds --------------------------------------------------------------------

test_that("the default finds the neck of a funnel, and all of its evidence", {
  # the paper's method, at more evaluations: about -0.5; the truth is 0
  fits <- lapply(1:2, function(seed) calmly(smc(target_funnel(), seed = seed)))
  for (fit in fits) {
    expect_identical(internal("conditioning_of")(fit$reference), 1L)
    expect_log_z(fit, 0)
  }
  expect_output(print(fits[[1]]$reference), "9 coordinates normal given the others")
})
