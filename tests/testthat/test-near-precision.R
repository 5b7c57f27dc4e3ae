# Coordinates that are only nearly normal given others.

# One Poisson count of each effect, with an unknown mean and scale: x = (mu, t, effects), where
# theta_j ~ N(mu, exp(2 t)), or with effects z_j that are not centred theta_j = mu + exp(t) z_j.
counts <- c(0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 1, 2, 0, 5, 2, 1, 3, 2)
log_counts <- function(x, centred = TRUE) {
  n_effects <- length(counts)
  mu <- x[, 1]
  tau <- exp(x[, 2])
  effects <- x[, -(1:2), drop = FALSE]
  z <- if (centred) (effects - mu) / tau else effects
  theta <- if (centred) effects else mu + tau * effects
  slope <- rep(counts, each = nrow(x)) - exp(theta)
  value <- drop(theta %*% counts) - rowSums(exp(theta)) - rowSums(z^2) / 2 - n_effects / 2 * log(2 * pi) -
    mu^2 / 8 - x[, 2]^2 / 2 - if (centred) n_effects * x[, 2] else 0
  gradient <- if (centred) {
    cbind(rowSums(z) / tau - mu / 4, rowSums(z^2) - n_effects - x[, 2], slope - z / tau)
  } else {
    cbind(rowSums(slope) - mu / 4, tau * rowSums(slope * z) - x[, 2], tau * slope - z)
  }
  structure(unname(value), gradient = unname(gradient))
}

# Its log evidence, by quadrature of each effect, and then over mu and t.
log_evidence_of_counts <- local({
  z <- seq(-8, 8, by = 0.05)
  mu <- seq(-2, 3, length.out = 81)
  t <- seq(-5, 3, length.out = 121)
  on_grid <- vapply(t, function(t) {
    theta <- outer(mu, exp(t) * z, `+`)
    of_count <- vapply(0:5, function(y) log(drop(exp(y * theta - exp(theta)) %*% dnorm(z)) * 0.05), mu)
    drop(of_count %*% tabulate(counts + 1, 6)) - mu^2 / 8 - t^2 / 2
  }, mu)
  max(on_grid) + log(sum(exp(on_grid - max(on_grid))) * (mu[2] - mu[1]) * (t[2] - t[1]))
})

# As draws of the posterior: each effect is normal around the mode of its density given mu and t.
draws_of_counts <- local({
  set.seed(1)
  n <- 200
  t <- rnorm(n, -0.8, 0.5)
  mu <- rnorm(n, 0.5, 0.2)
  effects <- matrix(mu, n, length(counts))
  y <- rep(counts, each = n)
  for (step in 1:20) {
    precision <- exp(effects) + exp(-2 * t)
    effects <- effects + pmax(-1, pmin(1, (y - exp(effects) - (effects - mu) * exp(-2 * t)) / precision))
  }
  cbind(mu, t, effects + rnorm(length(effects)) / sqrt(precision), deparse.level = 0)
})

nearly_normal <- function(found) Filter(function(change) isTRUE(change$near), found$reference$changes)

test_that("given the scale that others depend on they are nearly normal, also where no draw has been", {
  found <- shape_of_draws(draws_of_counts, log_counts)
  precision <- nearly_normal(found)[[1]]
  expect_identical(precision$given, 2L)
  expect_setequal(precision$order, setdiff(seq_len(2 + length(counts)), 2))
  expect_lt(spread_given(2, found$reference, log_counts, 2 + length(counts)), 0.5)
  expect_lt(spread_given(2, found$reference, log_counts, 2 + length(counts), cbind(rep(c(-4, 2), 30))), 1)
})

test_that("no scale is found where the precision of the others does not change", {
  find <- function(log_density) nearly_normal(shape_of_draws(draws_of_counts, log_density))
  expect_length(find(function(x) structure(-rowSums(x^2) / 2, gradient = -x)), 0)
  # each coordinate bends, by itself
  expect_length(find(function(x) structure(-rowSums(exp(x) - x), gradient = 1 - exp(x))), 0)
  expect_length(find(function(x) structure(rep(-Inf, nrow(x)), gradient = 0 * x)), 0)
})

test_that("it is none where the density falls off beside the draws", {
  # a third of what the reference would draw is beyond the wall, and none of the draws
  wall <- quantile(draws_of_counts[, 2], 2 / 3)
  before <- draws_of_counts[draws_of_counts[, 2] < wall, ]
  found_behind <- function(by, x = before) {
    length(nearly_normal(shape_of_draws(x, function(x) {
      value <- log_counts(x)
      value[] <- value - ifelse(x[, 2] > wall, by, 0)
      value
    })))
  }
  expect_identical(found_behind(5), 1L)
  expect_identical(found_behind(100), 0L)
  # where draws are behind the wall as well, it is a part of the target
  expect_identical(found_behind(100, draws_of_counts), 1L)
})

test_that("effects of counts are right, centred and not", {
  for (is_centred in c(TRUE, FALSE)) {
    target <- target_function(
      function(x) log_counts(x, is_centred), 2 + length(counts),
      names = c("mu", "log_tau", paste0("effect", seq_along(counts))), vectorized = TRUE
    )
    fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 1))
    expect_match(fit$maps, "nearly normal given log_tau", all = FALSE)
    # gradients around the scout's best basin have told it before any particle moved
    if (is_centred) expect_s3_class(fit$scout$references$shape, "smc_reference")
    expect_log_z(fit, log_evidence_of_counts)
  }
})

test_that("a fit asks for no more points than it may", {
  rules <- replace(internal("rules"), "most_probe_evals", 10)
  density <- with_internals(
    list(rules = rules),
    internal("affordable_density")(list(density = density_of(log_counts)), list(), list(max_evals = Inf))
  )
  expect_true(all(is.finite(density(draws_of_counts[1:6, ])$log_density)))
  expect_true(all(density(draws_of_counts[1:6, ])$log_density == -Inf))
})
