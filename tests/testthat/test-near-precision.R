# Coordinates that are only nearly normal given others.

internal <- function(name) get(name, asNamespace("autosmc"))

near_precision <- function(at, density, ...) {
  internal("find_precision")(internal("with_drivers")(at, density, ...), density, near = TRUE)
}

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

# Points around the posterior; and as draws of it, what the precision found by them makes of standard
# normal ones.
set.seed(1)
t <- rnorm(200, -0.8, 0.5)
mu <- rnorm(200, 0.5, 0.2)
z <- matrix(rnorm(200 * length(counts)), 200)
around <- cbind(mu, t, mu + exp(t) * z, deparse.level = 0)
precision <- near_precision(probes_at(around, log_counts), density_of(log_counts))
normal <- matrix(rnorm(200 * ncol(around)), 200)
normal[, 2] <- t
centred <- internal("through_precision")(
  internal("precision_map")(precision, ncol(normal)), list(z = normal, g = 0 * normal)
)$z

# Their density, which is lower by so much where t is beyond a wall.
density_behind <- function(wall = Inf, by = 0) {
  density_of(function(x) {
    value <- log_counts(x)
    value[] <- value - ifelse(x[, 2] > wall, by, 0)
    value
  })
}

test_that("the scale is what the others depend on", {
  expect_identical(precision$given, 2L)
  expect_setequal(precision$order, setdiff(seq_len(ncol(centred)), 2))
  # exp(-2 t), and what does not depend on it
  expect_setequal(precision$powers, c(0, -2))
})

test_that("given the scale the others have the normal distribution that the density has at their mean", {
  points <- points_at(centred, log_counts)
  precision <- near_precision(internal("probes_among")(points), density_of(log_counts))
  # there, whatever the scale is, the gradient is that of a standard normal distribution
  at_mean <- matrix(points$mean, 5, ncol(centred), byrow = TRUE)
  at_mean[, 2] <- c(-4, -2, -1, 0, 1)
  after <- internal("standardised")(points_at(at_mean, log_counts), precision)
  known <- precision$order
  z <- sweep(after$x, 2, after$mean, "+")[, known]
  expect_equal(after$g[, known], -z, tolerance = 1e-9)
  # and at the points it is so but for a small part
  space <- internal("space_of")(points, list(precision))
  expect_identical(space$known, sort(known))
  expect_null(space$exact)
  expect_true(internal("is_near")(space, n = 20))
  expect_false(internal("is_near")(space, n = 1e6))
})

test_that("no scale is found where the precision of the others does not change", {
  find <- function(log_density) {
    near_precision(probes_at(centred, log_density), density_of(log_density))
  }
  expect_null(find(function(x) structure(-rowSums(x^2) / 2, gradient = -x)))
  # each coordinate bends, by itself
  expect_null(find(function(x) structure(-rowSums(exp(x) - x), gradient = 1 - exp(x))))
  expect_null(find(function(x) structure(rep(-Inf, nrow(x)), gradient = 0 * x)))
})

test_that("multiples of a scale are looked at as products", {
  log_density <- function(x) log_counts(x, centred = FALSE)
  mu <- centred[, 1]
  z <- (centred[, -(1:2)] - mu) / exp(t)
  points <- points_at(cbind(mu, t, z, deparse.level = 0), log_density)
  multiples <- internal("find_multiples")(points)
  expect_identical(multiples[[1]]$variable, 2L)
  # products are effects with mean 0, of which the model is the centred one
  after <- internal("density_after")(multiples, density_of(log_density))
  products <- cbind(mu, t, exp(t) * z, deparse.level = 0)
  of_centred <- attr(log_counts(centred), "gradient")
  of_centred[, 1] <- of_centred[, 1] + rowSums(of_centred[, -(1:2)])
  expect_equal(after(products)$gradient, of_centred)
  space <- internal("near_space")(points, list(), density_of(log_density), n = 200)
  expect_length(space$changes, 2)
  expect_identical(space$changes[[2]]$given, 2L)
  # a space that is near is kept, without looking for another one: no gradient is asked for
  density <- density_of(log_density)
  no_gradients <- function(x, gradient = TRUE, ...) if (gradient) stop("asked") else density(x, gradient = FALSE, ...)
  expect_identical(internal("space_among")(points, space$changes, no_gradients, n = 20)$changes, space$changes)
})

test_that("a space is none where the density falls off beside the points", {
  falls_off <- internal("falls_off")
  near_space <- internal("near_space")
  behind <- function(wall) points_at(centred[centred[, 2] < wall, ], log_counts)
  open <- density_behind()
  space <- near_space(behind(Inf), list(), open, n = 200)
  expect_identical(space$changes[[1]]$given, 2L)
  expect_false(falls_off(space, open))
  # a third of the draws are beyond the wall, and none of the points
  wall <- quantile(t, 2 / 3)
  high <- density_behind(wall, 100)
  low <- density_behind(wall, 5)
  points <- behind(wall)
  space <- internal("space_among")(points, list(), open, n = 130)
  expect_false(falls_off(space, open))
  expect_false(falls_off(space, low))
  expect_true(falls_off(space, high))
  # neither is such a one kept, nor found
  expect_null(near_space(points, space$changes, high, n = 130))
  # where points are behind the wall as well, it is a part of the target
  expect_false(falls_off(near_space(behind(Inf), list(), open, n = 200), high))
})

test_that("effects of counts are right, centred and not", {
  for (is_centred in c(TRUE, FALSE)) {
    target <- target_function(
      function(x) log_counts(x, is_centred), 2 + length(counts),
      names = c("mu", "log_tau", paste0("effect", seq_along(counts))), vectorized = TRUE
    )
    fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 3))
    expect_match(fit$maps, "nearly normal given log_tau", all = FALSE)
    # gradients around the scout's best basin have told it before any particle moved
    if (is_centred) expect_s3_class(fit$scout$references$shape, "smc_reference")
    expect_log_z(fit, log_evidence_of_counts)
  }
})

test_that("a curvature at its bound is no rounding", {
  change <- precision
  w <- rep(1 / nrow(centred), nrow(centred))
  loses <- function(change) {
    internal("loses_digits")(list(x = centred, w = w, precisions = list(change)))
  }
  pivots <- internal("pivots_at")(change, internal("factors_at")(change, centred))
  change$least[] <- median(apply(pivots, 1, min)) # of half of the draws
  expect_false(loses(change))
  change$near <- FALSE
  expect_true(loses(change))
})

test_that("a fit asks for no more points than it may", {
  rules <- internal("rules")
  rules$most_probe_evals <- 10
  course <- list(density = density_of(log_counts))
  density <- with_internals(
    list(rules = rules),
    internal("affordable_density")(course, list(), list(max_evals = Inf))
  )
  expect_true(all(is.finite(density(centred[1:6, ])$log_density)))
  expect_true(all(density(centred[1:6, ])$log_density == -Inf))
})

# A local linear trend of counts: the log rates are sums of increments u, with slopes that are sums of v.
# x = (log s, log t, u, v), where s and t are the scales of u and v.
n_times <- 40
log_trend <- local({
  set.seed(15)
  sums <- outer(seq_len(n_times), seq_len(n_times), ">=") + 0
  by_slopes <- rbind(0, sums[-n_times, ] %*% sums)
  increments <- cbind(sums, by_slopes)
  y <- rpois(n_times, exp(1.5 + drop(increments %*% rnorm(2 * n_times, 0, rep(c(0.08, 0.01), each = n_times)))))
  function(x) {
    own <- list(2 + seq_len(n_times), 2 + n_times + seq_len(n_times))
    z <- lapply(1:2, function(k) x[, own[[k]], drop = FALSE] / exp(x[, k]))
    eta <- 1.5 + x[, -(1:2), drop = FALSE] %*% t(increments)
    by_data <- (rep(y, each = nrow(x)) - exp(eta)) %*% increments
    value <- drop(eta %*% y) - rowSums(exp(eta))
    by_scales <- 0 * x[, 1:2, drop = FALSE]
    for (k in 1:2) {
      value <- value - rowSums(z[[k]]^2) / 2 - n_times * x[, k] - (x[, k] + c(2.5, 4)[k])^2 / 2
      by_scales[, k] <- rowSums(z[[k]]^2) - n_times - x[, k] - c(2.5, 4)[k]
      by_data[, own[[k]] - 2] <- by_data[, own[[k]] - 2] - z[[k]] / exp(x[, k])
    }
    structure(unname(value), gradient = unname(cbind(by_scales, by_data)))
  }
})

test_that("coordinates that are correlated have a precision, also where draws are wide", {
  set.seed(2)
  scales <- cbind(rnorm(300, -2.5, 0.3), rnorm(300, -4, 0.4))
  z <- matrix(rnorm(300 * 2 * n_times, 0, 0.7), 300)
  x <- cbind(scales, exp(scales[, rep(1:2, each = n_times)]) * z)
  at <- probes_at(x, log_trend)
  change <- near_precision(at, density_of(log_trend), 1:2)
  expect_identical(change$given, 1:2)
  expect_true(all(internal("part_left")(change, x) > 0))
  # at the mean of the others it is the curvature, which does not change over steps that are short
  rules <- internal("rules")
  rules$widest_probe <- 1e-4
  change <- with_internals(
    list(rules = rules),
    near_precision(at, density_of(log_trend), 1:2)
  )
  middle <- at$x
  middle[, -(1:2)] <- rep(at$mean[-(1:2)], each = nrow(middle))
  moved <- middle
  moved[, -(1:2)] <- moved[, -(1:2)] + 1e-7 * matrix(rnorm(nrow(moved) * 2 * n_times), nrow(moved))
  gradient <- function(x) attr(log_trend(x), "gradient")
  changed <- ((gradient(moved) - gradient(middle)) / 1e-7)[, change$order]
  u <- ((moved - middle) / 1e-7)[, change$order]
  L <- internal("factors_at")(change, middle)
  d <- internal("pivots_at")(change, L)
  by_map <- -internal("by_lower")(change, L$L, d * internal("by_upper")(change, L$L, u))
  expect_equal(by_map, changed, tolerance = 1e-4)
})
