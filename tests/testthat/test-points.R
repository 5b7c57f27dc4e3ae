# Bayes factors of restrictions and of points, by closed forms.

# The limit of a fit with 32 islands, whose errors are those of their spread.
n_islands <- 32
small_smc <- function(target, ...) smc(target, n_particles = 512, n_steps = 8, islands = n_islands, seed = 1, ...)
expect_known <- function(value, error, truth, resolution) expect_estimate(value, error, truth, resolution, n_islands)

# The log Bayes factor, and the log evidence of the smaller model where that of the larger one is log_z.
expect_bayes_factor <- function(found, truth, log_z = 0, resolution = 0.2) {
  expect_known(found$log_bf, found$log_bf_error, truth, resolution)
  expect_known(found$log_z, found$std_error, log_z + truth, resolution)
}

# a and b are normal with correlation 0.9, c is normal, and s exponential
mean <- c(a = 1, b = -0.5, c = 2)
covariance <- rbind(c(1, 1.8, 0), c(1.8, 4, 0), c(0, 0, 0.25))
log_normal <- function(x, mean, covariance) {
  z <- (x - rep(mean, each = nrow(x))) %*% solve(chol(covariance))
  -rowSums(z^2) / 2 - length(mean) / 2 * log(2 * pi) - log(det(covariance)) / 2
}
normal <- target_function(
  function(x) log_normal(x[, 1:3, drop = FALSE], mean, covariance) - x[, 4],
  gradient = function(x) cbind((rep(mean, each = nrow(x)) - x[, 1:3, drop = FALSE]) %*% solve(covariance), -1),
  vectorized = TRUE, names = c(names(mean), "s"), lower = c(s = 0)
)
fit <- small_smc(normal)

# restrictions ----------------------------------------------------------------------

test_that("the probability of a restriction is that of the normal distribution", {
  found <- restrict(fit, a > 0, prior = 0.5)
  expect_known(found$posterior_prob, found$posterior_error, pnorm(1), 0.1)
  expect_bayes_factor(found, log(pnorm(1) / 0.5))
  expect_bayes_factor(restrict(fit, c < 1.5, s > 1, prior = 0.3), log(pnorm(-1) * exp(-1) / 0.3), resolution = 0.5)
  limit <- 3
  expect_bayes_factor(restrict(fit, a + b > limit, prior = 1), pnorm(2.5 / sqrt(8.6), lower.tail = FALSE, log.p = TRUE))
  expect_identical(glance(found)$log_bf, found$log_bf)
  expect_match(printed_text(found), "a > 0 .*under the prior 0.5 .*restricted against free")
})

test_that("the error of log Z of a restricted model is that of the islands' products, where SMC estimates it", {
  run <- smc_run(normal, fit$schedule, n_particles = 512, islands = n_islands, reference = fit$reference, seed = 2)
  found <- restrict(run, a > 0, b < 0, prior = 1)
  # of a normal pair with correlation 0.9, by quadrature over a
  inside <- function(a) dnorm(a, 1) * pnorm(0, -0.5 + 1.8 * (a - 1), sqrt(4 - 1.8^2))
  expect_bayes_factor(found, log(integrate(inside, 0, Inf)$value))
  inside <- run$particles[, "a"] > 0 & run$particles[, "b"] < 0
  products <- exp(run$islands$log_z) * tapply(exp(run$log_weights) * inside, run$island, sum) /
    tapply(exp(run$log_weights), run$island, sum)
  expect_equal(found$log_z, log(mean(products)))
  expect_gte(found$std_error, sd(products) / mean(products) / sqrt(n_islands) - 1e-8)
})

test_that("three rates under gamma priors have the order that quadrature says", {
  deaths <- c(11, 18, 24)
  rates <- target_function(
    function(rate) sum(dpois(deaths, rate, log = TRUE) + dgamma(rate, 2, 0.1, log = TRUE)),
    gradient = function(rate) (deaths + 1) / rate - 1.1, names = paste0("rate[", 1:3, "]"), lower = 0
  )
  fit <- small_smc(rates)
  posterior <- function(f, x, k) f(x, deaths[k] + 2, 1.1)
  ordered <- integrate(function(x) {
    posterior(dgamma, x, 2) * posterior(pgamma, x, 1) * (1 - posterior(pgamma, x, 3))
  }, 0, Inf)$value
  log_z <- sum(dnbinom(deaths, 2, 0.1 / 1.1, log = TRUE))
  by_number <- restrict(fit, rate[1] < rate[2], `rate[2]` < rate[3], prior = 1 / 6)
  expect_bayes_factor(by_number, log(6 * ordered), log_z)
  expect_identical(restrict(fit, rate[1] < rate[2] & rate[2] < rate[3], prior = 1 / 6)$log_bf, by_number$log_bf)

  # by draws of the prior, and by a fit of it
  set.seed(1)
  draws <- matrix(rgamma(3e4, 2, 0.1), 1e4, dimnames = list(NULL, colnames(fit$particles)))
  prior <- small_smc(target_function(
    function(rate) sum(dgamma(rate, 2, 0.1, log = TRUE)),
    gradient = function(rate) 1 / rate - 0.1, names = colnames(draws), lower = 0
  ))
  for (of_prior in list(draws, as.data.frame(draws), prior)) {
    found <- restrict(fit, rate[1] < rate[2], rate[2] < rate[3], prior = of_prior)
    expect_known(found$prior_prob, found$prior_error, 1 / 6, 0.1)
    expect_bayes_factor(found, log(6 * ordered), log_z, resolution = 0.5)
  }
  # a vector is all of its elements
  expect_identical(restrict(fit, rate > 12, prior = 1)$log_bf, {
    restrict(fit, rate[1] > 12, rate[2] > 12, rate[3] > 12, prior = 1)$log_bf
  })
})

test_that("where no draw is inside there is a bound", {
  found <- restrict(fit, a > 100, prior = 0.01)
  expect_identical(found$bound, "upper")
  expect_equal(found$posterior_prob, -log(0.05) / glance(fit)$ess_mean)
  expect_equal(found$log_bf, log(found$posterior_prob / 0.01))
  expect_identical(found$log_bf_error, NA_real_)
  expect_match(printed_text(found), "log BF: below")

  draws <- data.frame(a = rnorm(300), b = 0)
  found <- restrict(fit, a > 0, b < -0.1, prior = draws)
  expect_identical(found$bound, "lower")
  expect_equal(found$prior_prob, -log(0.05) / 300)
  expect_match(printed_text(found), "log BF: above")
  expect_s3_class(catch(restrict(fit, a > 100, prior = draws)), "autosmc_error_input")

  # where all are, there is an error nonetheless
  expect_gt(restrict(fit, s > 0, prior = 1)$log_bf_error, 0)
})

test_that("the prior of the target is that of its restrictions", {
  own <- function(sample) {
    fit$target$prior <- list(log_density = function(x) 0, sample = sample)
    fit
  }
  sample <- function(n) cbind(rnorm(n), rnorm(n), rexp(n), 1)
  found <- restrict(own(sample), a > 0, c > 1)
  expect_known(found$prior_prob, found$prior_error, exp(-1) / 2, 0.01)
  expect_identical(restrict(own(sample), a > 0, c > 1), found)
  expect_match(message_of(catch(restrict(own(rnorm), a > 0))), "`prior$sample` must return", fixed = TRUE)
  expect_match(message_of(catch(restrict(fit, a > 0))), "make the target with its `prior`")
})

test_that("a restricted model is compared with others", {
  found <- restrict(fit, a > 0, prior = 0.5)
  compared <- compare_evidence(restricted = found, known = c(log_z = 0, std_error = 0))
  expect_identical(compared$log_z[1], found$log_z)
  expect_identical(compared$std_error[1], found$std_error)
})

test_that("what is no restriction is named", {
  for (expected in list(quote(restrict(fit, d > 0, prior = 0.5)), quote(restrict(fit, a, prior = 0.5)))) {
    error <- catch(eval(expected))
    expect_s3_class(error, "autosmc_error_input")
    expect_match(message_of(error), "`(d > 0|a)` (cannot be evaluated|must be TRUE or FALSE)")
  }
  expect_match(message_of(catch(restrict(fit, prior = 0.5))), "A restriction must be given")
  expect_match(message_of(catch(restrict(fit, a = 0, prior = 0.5))), "savage_dickey")
  expect_bad(restrict(fit, a > 0), "prior")
  for (bad in list(0, 1.1, "a", list(), function(x) x, matrix(0, 2, 2))) {
    expect_bad(restrict(fit, a > 0, prior = bad), "prior")
  }
  expect_s3_class(catch(restrict(fit, a > 0, prior = data.frame(b = 1:3))), "autosmc_error_input")
  expect_bad(restrict(3, a > 0, prior = 0.5), "fit")
})

# points ------------------------------------------------------------------------------

test_that("the density at a point is that of the normal distribution", {
  found <- savage_dickey(fit, a = 0, prior_density = dnorm)
  expect_identical(found$method, "draws")
  expect_lt(found$khat, 0.7)
  expect_lte(found$n_target_evals, 2 * nrow(fit$particles))
  expect_bayes_factor(found, -1 / 2)
  expect_equal(found$posterior_density, exp(found$log_bf) * dnorm(0))
  expect_bayes_factor(
    savage_dickey(fit, a = 0, c = 2.5, prior_density = 0.1),
    dnorm(0, 1, log = TRUE) + dnorm(2.5, 2, 0.5, log = TRUE) - log(0.1)
  )
  # a bounded parameter
  expect_bayes_factor(savage_dickey(fit, s = 0.7, prior_density = dexp), 0)
  expect_match(printed_text(found), "a = 0 .*point against free .*ratios at the draws")
})

test_that("one island has a density without an error", {
  one <- savage_dickey(smc(normal, islands = 1, seed = 1), a = 0, prior_density = dnorm)
  expect_identical(c(one$log_bf_error, one$std_error), c(NA_real_, NA_real_))
  expect_estimate(one$log_bf, 0.03, -1 / 2, resolution = 0.2)
})

test_that("far out the target with the point is sampled", {
  # 5 standard deviations, at which b is where no draws are
  found <- savage_dickey(fit, a = 6, prior_density = 1, seed = 1)
  expect_identical(found$method, "fit")
  expect_gt(found$khat, 0.7)
  expect_bayes_factor(found, dnorm(5, log = TRUE))
  expect_identical(savage_dickey(fit, a = 6, prior_density = 1, seed = 1), found)
  # c is independent of all others
  expect_bayes_factor(savage_dickey(fit, c = 4.5, prior_density = 1, seed = 1), dnorm(4.5, 2, 0.5, log = TRUE))
})

test_that("where all parameters have values the density is known but for Z", {
  at <- c(a = 0, b = 0, c = 1)
  found <- savage_dickey(fit, a = 0, b = 0, c = 1, s = 2, prior_density = function(a, b, c, s) s)
  truth <- log_normal(t(at), mean, covariance) - 2 - log(2)
  expect_equal(found$log_z, truth)
  expect_known(found$log_bf, found$log_bf_error, truth, 0.2)
  expect_identical(found$n_target_evals, 1)
})

test_that("a conjugate regression has the densities of Student's t and of the inverse gamma distribution", {
  set.seed(4)
  n <- 25
  X <- cbind(1, rnorm(n))
  y <- drop(X %*% c(0.5, 0.4)) + rnorm(n)
  # beta ~ N(0, 4 sigma^2), sigma^2 ~ IG(2, 2)
  regression <- target_function(
    function(p) {
      sum(dnorm(y, X %*% p[1:2], p[3], log = TRUE)) + sum(dnorm(p[1:2], 0, 2 * p[3], log = TRUE)) +
        log(2) + 2 * log(2) - 5 * log(p[3]) - 2 / p[3]^2
    },
    gradient = function(p) {
      off <- y - X %*% p[1:2]
      c(
        crossprod(X, off) / p[3]^2 - p[1:2] / (4 * p[3]^2),
        (sum(off^2) + sum(p[1:2]^2) / 4 + 4) / p[3]^3 - (n + 7) / p[3]
      )
    },
    names = c("beta[1]", "beta[2]", "sigma"), lower = c(sigma = 0)
  )
  fit <- small_smc(regression)
  V <- solve(crossprod(X) + diag(2) / 4)
  m <- drop(V %*% crossprod(X, y))
  shape <- 2 + n / 2
  rate <- 2 + (sum(y^2) - sum(m * solve(V, m))) / 2
  log_z <- -n / 2 * log(2 * pi) + log(det(V)) / 2 - log(4) + 2 * log(2) - shape * log(rate) + lgamma(shape)
  expect_log_z(fit, log_z)
  log_t <- function(x, m, scale, df) dt((x - m) / scale, df, log = TRUE) - log(scale)
  scale <- sqrt(rate / shape * diag(V))
  of_beta <- savage_dickey(fit, `beta[2]` = 0, prior_density = exp(log_t(0, 0, 2, 4)))
  expect_bayes_factor(of_beta, log_t(0, m[2], scale[2], 2 * shape) - log_t(0, 0, 2, 4), log_z)
  log_sigma <- function(s, shape, rate) {
    log(2) + shape * log(rate) - lgamma(shape) - (2 * shape + 1) * log(s) - rate / s^2
  }
  expect_bayes_factor(
    savage_dickey(fit, sigma = 0.9, prior_density = exp(log_sigma(0.9, 2, 2)), seed = 1),
    log_sigma(0.9, shape, rate) - log_sigma(0.9, 2, 2), log_z
  )
  # a vector stands for its elements
  log_t2 <- function(square, df) lgamma(df / 2 + 1) - lgamma(df / 2) - log(df * pi) - (df / 2 + 1) * log1p(square / df)
  expect_bayes_factor(
    savage_dickey(fit, beta = 0, prior_density = 1),
    log_t2(sum(m * solve(V, m)) * shape / rate, 2 * shape) - log(rate / shape) - log(det(V)) / 2, log_z
  )
  inside <- pt((0.2 - m[2]) / scale[2], 2 * shape, lower.tail = FALSE)
  expect_bayes_factor(restrict(fit, beta[2] > 0.2, prior = 0.5), log(inside / 0.5), log_z)
})

test_that("targets of RTMB have points beside variables with types", {
  skip_if_not_installed("RTMB")
  target <- target_rtmb(
    function(p) dnorm(p$m, 1, 1, log = TRUE) - 2 * p$s + log(2) + sum(c(2, 1, 3) * log(p$w)) + lgamma(9) - log(2 * 6),
    list(m = 0, s = 1, w = rep(1 / 3, 3)),
    lower = c(s = 0), types = list(w = "simplex")
  )
  fit <- small_smc(target)
  log_z <- fit$log_z
  expect_bayes_factor(savage_dickey(fit, m = 2, prior_density = 1), dnorm(1, log = TRUE), log_z)
  expect_bayes_factor(savage_dickey(fit, s = 0.4, prior_density = 1), dexp(0.4, 2, log = TRUE), log_z)
  expect_match(message_of(catch(savage_dickey(fit, "w[1]" = 0.2, prior_density = 1))), "w\\[1\\] cannot be fixed")
})

test_that("what is no point is named", {
  for (bad in list(0, -1)) {
    expect_match(message_of(catch(savage_dickey(fit, s = bad, prior_density = 1))), "s must be inside its bounds")
  }
  expect_match(message_of(catch(savage_dickey(fit, d = 0, prior_density = 1))), "there is no \"d\"")
  expect_match(message_of(catch(savage_dickey(fit, 0, prior_density = 1))), "A point must be given")
  expect_match(message_of(catch(savage_dickey(fit, a = 0, a = 1, prior_density = 1))), "a must have one value; two are given")
  expect_bad(savage_dickey(fit, a = "0", prior_density = 1), "a")
  expect_bad(savage_dickey(fit, a = 0), "prior_density")
  for (bad in list(0, -1, NA, "a", NULL, c(1, 2), function(x) stop("no"), function(x) -1)) {
    expect_bad(savage_dickey(fit, a = 0, prior_density = bad), "prior_density")
  }
  expect_bad(savage_dickey(fit, a = 0, prior_density = 1, seed = -1), "seed")
  expect_bad(savage_dickey(3, a = 0, prior_density = 1), "fit")
})
