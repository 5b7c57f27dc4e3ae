# Variables whose moments the draws do not tell.

heavy_tails <- internal("heavy_tails")
describe_heavy <- internal("describe_heavy")

# n draws from the generalised Pareto distribution of scale 1, in ascending order.
pareto_draws <- function(n, k) {
  log_survival <- log(sort(runif(n), decreasing = TRUE))
  if (k == 0) -log_survival else expm1(-k * log_survival) / k
}

# A fit with these draws, a column a variable.
with_draws <- function(..., log_weights = NULL, lower = -Inf, upper = Inf) {
  x <- cbind(...)
  n <- nrow(x)
  list(
    particles = x, log_weights = if (is.null(log_weights)) rep(-log(n), n) else log_weights,
    target = target_function(function(x) 0, ncol(x), names = colnames(x), lower = lower, upper = upper)
  )
}

# The shape of the heavier tail of x, where it is heavy.
khat_of <- function(x, ...) heavy_tails(with_draws(x = x, ...))$khat

test_that("the shape of a tail is that by loo", {
  skip_if_not_installed("loo")
  set.seed(1)
  n <- 5000
  for (k in c(0.5, 1)) {
    x <- 3 * pareto_draws(n, k)
    # the tenth above a quantile
    excess <- x[x > x[n - n / 10 + 1]] - x[n - n / 10 + 1]
    expect_equal(khat_of(x), loo::gpdfit(excess, wip = FALSE)$k, tolerance = 1e-6)
  }
})

test_that("the Pareto k of ratios is that of the largest alone", {
  skip_if_not_installed("loo")
  set.seed(3)
  z <- rnorm(4000)
  for (log_ratio in list(z, -z^2, -rexp(4000))) {
    k <- internal("tail_khat")(exp(log_ratio), rep(1 / 4000, 4000))
    expect_equal(k, suppressWarnings(loo::psis(log_ratio, r_eff = 1))$diagnostics$pareto_k, tolerance = 0.1)
  }
})

test_that("the shape of draws is the true one, within its error", {
  set.seed(2)
  n <- 8000
  for (k in c(0.8, 1.2)) { # far enough above what counts as heavy
    found <- replicate(20, khat_of(pareto_draws(n, k)))
    # the variance of the likeliest shape is (1 + k)^2 over the draws in the tail
    expect_lt(abs(mean(found) - k), 4 * (1 + k) / sqrt(20 * n / 10))
  }
})

test_that("a weight of two is two draws", {
  set.seed(3)
  x <- sample(pareto_draws(3000, 0.8))
  times <- rep(1:3, 1000)
  weighted <- khat_of(x, log_weights = log(times / sum(times)))
  # worth 5,143 draws, not 6,000, which the grid of shapes follows
  expect_equal(weighted, khat_of(rep(x, times)), tolerance = 0.02)
})

test_that("the heavier tail may be either, in any unit", {
  set.seed(4)
  x <- rt(3000, 1) * ifelse(runif(3000) < 0.5, -1, 1)
  x[x < 0] <- -abs(rnorm(sum(x < 0)))
  shape <- khat_of(x)
  expect_gt(shape, 0.36)
  expect_equal(khat_of(-x), shape)
  expect_equal(khat_of(1e3 + 1e-3 * x), shape)
  expect_length(khat_of(c(x[-1], Inf)), 0)
})

test_that("moments are told of by how many there are", {
  set.seed(5)
  n <- 8192
  fit <- with_draws(
    normal = rnorm(n), cauchy = rcauchy(n), skew = rexp(n), t2 = rt(n, 2), t5 = rt(n, 5),
    ratio = 1 / rgamma(n, 2), log_normal = rlnorm(n)
  )
  heavy <- heavy_tails(fit)
  expect_identical(heavy$variable, c("cauchy", "t2", "ratio"))
  expect_identical(heavy$mean_ok, c(FALSE, TRUE, TRUE))
  # 1 / k moments: the error of a shape is (1 + k) / sqrt(n / 10)
  expect_lt(max(abs(heavy$khat - c(1, 0.5, 0.5)) / (1 + heavy$khat)), 4 / sqrt(n / 10))
})

test_that("a small mode apart is no tail, nor is a wide component that ends", {
  set.seed(8)
  n <- 8192
  apart <- function(part, by) rnorm(n) + ifelse(runif(n) < part, by, 0)
  fit <- with_draws(
    near = apart(0.02, 6), far = apart(0.02, -30), half = apart(0.5, 10), wide = rnorm(n) * ifelse(runif(n) < 0.1, 5, 1)
  )
  expect_identical(nrow(heavy_tails(fit)), 0L)
})

test_that("what has two bounds has no tails", {
  set.seed(9)
  x <- rcauchy(8192)
  names_of_heavy <- function(...) heavy_tails(with_draws(a = x, b = x, ...))$variable
  expect_identical(names_of_heavy(), c("a", "b"))
  expect_identical(names_of_heavy(lower = c(a = -1e9), upper = c(a = 1e9, b = 1e9)), "b")
  # nor has what a program makes of its variables and stays between bounds
  fit <- with_draws(angle = x, probability = x, scale = x, sum = x)
  fit$target <- target_gaussian(3)
  fit$target$outputs <- function(u) {
    cbind(angle = atan2(u[, 1], u[, 2]), probability = plogis(u[, 1]), scale = exp(u[, 3]), sum = u[, 1] + u[, 2])
  }
  expect_identical(heavy_tails(fit)$variable, c("scale", "sum"))
})

test_that("what has no mean is warned of, and what may have no standard deviation is said when the fit is printed", {
  set.seed(2)
  fit <- with_draws(x = rt(8192, 2))
  fit$heavy_tails <- heavy_tails(fit)
  expect_identical(fit$heavy_tails$mean_ok, TRUE)
  expect_no_warning(warn_of_heavy_tails(fit))
  fit <- with_draws(x = rcauchy(8192))
  fit$heavy_tails <- heavy_tails(fit)
  expect_warning(warn_of_heavy_tails(fit), class = "autosmc_warning_moments")
})

test_that("what is constant, discrete, infinite or not a number does no harm", {
  set.seed(6)
  n <- 4000
  fit <- with_draws(
    constant = 3, coin = rbinom(n, 1, 0.5), count = rpois(n, 2), rare = rbinom(n, 1, 0.001),
    infinite = c(Inf, rnorm(n - 1)), none = c(NaN, rnorm(n - 1))
  )
  expect_identical(nrow(heavy_tails(fit)), 0L)
})

test_that("too few draws tell no tail", {
  set.seed(7)
  x <- rcauchy(8192)
  few <- c(rep(0, 800), rep(-Inf, 7392)) # only these have weight
  expect_identical(nrow(heavy_tails(with_draws(x = x, log_weights = few - log(800)))), 0L)
  expect_identical(heavy_tails(with_draws(x = x))$variable, "x")
})

test_that("copies of few draws are no heavy tail, and what they are worth is printed", {
  # particles that are weighted and resampled, and never move
  target <- target_gaussian(30, mean = 0.4)
  still <- data.frame(lambda = 1:8 / 8, step_size = 1e-8)
  fit <- calmly(smc_run(target, still, islands = 8, kernel = kernel_mala(), seed = 2))
  expect_identical(nrow(fit$heavy_tails), 0L)
  expect_lt(glance(fit)$ess_mean, 500)
  expect_output(print(fit), "effective sample size [0-9]+,\\s+standard\\s+deviations\\s+to\\s+[3-9] %")
  # islands of which each has seen another part have few draws together
  set.seed(10)
  apart <- with_draws(x = sort(rcauchy(8000)))
  expect_identical(heavy_tails(apart)$variable, "x")
  apart$island <- rep(1:8, each = 1000)
  apart$islands <- data.frame(log_z = numeric(8))
  expect_identical(nrow(heavy_tails(apart)), 0L)
})

test_that("a fit warns of heavy tails, and says so, but trusts its evidence", {
  # the reference is the target itself, and draws are independent
  cauchy <- target_function(
    function(x) -1.5 * log1p(sum(x^2)), 2,
    gradient = function(x) -3 * x / (1 + sum(x^2)), names = c("wide", "{odd}")
  )
  expect_warning(fit <- smc(cauchy, seed = 1), "standard deviation of wide, \\{odd\\} ", class = "autosmc_warning_moments")
  expect_identical(fit$heavy_tails$variable, c("wide", "{odd}"))
  expect_true(all(fit$diagnostics$passed))
  says <- "the draws do not determine the mean and standard deviation of wide, {odd} (Pareto k up to"
  expect_match(gsub("\\s+", " ", paste(capture.output(print(fit)), collapse = " ")), says, fixed = TRUE)
  expect_match(report(fit), says, fixed = TRUE)
  # no draws, nothing to tell by
  schedule <- data.frame(lambda = c(0.5, 1), step_size = 0.3)
  calmly(moments <- smc_run(cauchy, schedule, islands = 2, n_particles = 64, keep = "moments", seed = 1))
  expect_null(moments$heavy_tails)
})

test_that("what is said of one and of several variables", {
  one <- data.frame(variable = "a", khat = 0.5, mean_ok = TRUE)
  expect_identical(
    describe_heavy(one), "Heavy tails: the draws do not determine the standard deviation of a (Pareto k = 0.5)."
  )
  both <- rbind(one, data.frame(variable = c("b", "c"), khat = 1, mean_ok = FALSE))
  expect_match(describe_heavy(both)[1], "the mean and standard deviation of b, c \\(Pareto k up to 1.0\\)")
  expect_length(describe_heavy(both), 2)
  expect_null(describe_heavy(one[0, ]))
  expect_null(describe_heavy(NULL))
})
