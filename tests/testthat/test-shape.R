# Answers: the log evidence of targets of all shapes, by smc() as it comes.

fits_of <- function(log_density, dim, seeds = 1, n_particles = 512, islands = 4) {
  target <- target_function(log_density, dim, vectorized = TRUE)
  lapply(seeds, function(seed) calmly(smc(target, n_particles = n_particles, islands = islands, seed = seed)))
}

# The log density of x around means with these log scales, columns of one matrix each, with what it has for gradients.
normal_around <- function(x, mean, log_scale) {
  z <- (x - mean) / exp(log_scale)
  list(
    value = rowSums(-z^2 / 2 - log_scale - log(2 * pi) / 2), by_mean = z / exp(log_scale), by_log_scale = z^2 - 1
  )
}

# t ~ N(0, sd^2), and each child is normal given t, with this mean and log scale and their slopes by t: functions of t
# with a column a child. All of these integrate to 1.
children_of <- function(sd, mean, mean_slope, log_scale, log_scale_slope) {
  function(x) {
    t <- x[, 1]
    of_t <- normal_around(cbind(t), 0, log(sd))
    of_rest <- normal_around(x[, -1, drop = FALSE], mean(t), log_scale(t))
    by_t <- rowSums(of_rest$by_mean * mean_slope(t)) + rowSums(of_rest$by_log_scale * log_scale_slope(t))
    structure(of_t$value + of_rest$value, gradient = unname(cbind(by_t - t / sd^2, -of_rest$by_mean)))
  }
}
times <- function(...) function(t) outer(t, c(...))
none <- function(n) function(t) matrix(0, length(t), n)
always <- function(...) function(t) matrix(c(...), length(t), length(c(...)), byrow = TRUE)

test_that("funnels, also of several slopes, and one in the other", {
  fits <- lapply(1:3, function(seed) calmly(smc(target_funnel(), seed = seed)))
  expect_log_z(fits, 0)
  expect_output(print(fits[[1]]$reference), "9 coordinates normal given the others")
  slopes <- c(0.5, -0.3, 1)
  expect_log_z(fits_of(children_of(2, none(3), none(3), times(slopes), always(slopes)), 4, 1:3), 0)
  funnels <- function(x) {
    d <- ncol(x)
    dnorm(x[, 1], log = TRUE) + rowSums(dnorm(x[, -1, drop = FALSE], 0, exp(x[, -d, drop = FALSE] / 2), log = TRUE))
  }
  expect_log_z(suppressMessages(fits_of(funnels, 4)), 0, 0.02) # without a gradient
})

test_that("bananas, and several at a time", {
  b <- c(1, -0.5, 0.3)
  bananas <- children_of(2, function(t) outer(t^2, b), function(t) outer(2 * t, b), none(3), none(3))
  expect_log_z(fits_of(bananas, 4, 1:3), 0)
  pairs <- function(x) {
    n <- 4
    t <- x[, seq_len(n), drop = FALSE]
    off <- x[, n + seq_len(n), drop = FALSE] - t^2
    structure(
      -rowSums(t^2 + off^2) / 2 - n * log(2 * pi), gradient = unname(cbind(2 * t * off - t, -off))
    )
  }
  expect_log_z(fits_of(pairs, 8, 1:3), 0)
})

test_that("curves: logarithms of sums, and a scale that is one", {
  # x logistic, and the others around logarithms of sums of it
  along <- function(x) outer(2 * x[, 1], 1:4, "-")
  rest <- function(x) (x[, -1, drop = FALSE] - log1p(exp(along(x)))) / 0.1
  knees <- function(x) {
    by_x <- 1 - 2 * plogis(x[, 1]) + rowSums(rest(x) * 2 * plogis(along(x))) / 0.1
    structure(
      dlogis(x[, 1], log = TRUE) + rowSums(dnorm(rest(x), log = TRUE)) - 4 * log(0.1),
      gradient = unname(cbind(by_x, -rest(x) / 0.1))
    )
  }
  expect_log_z(fits_of(knees, 5, 1:3, 1024, 8), 0, resolution = 0.05)
  soft <- function(t) matrix(log(log1p(exp(t))), length(t), 6)
  soft_slope <- function(t) matrix(plogis(t) / log1p(exp(t)), length(t), 6)
  expect_log_z(fits_of(children_of(1.5, times(rep(0.5, 6)), always(rep(0.5, 6)), soft, soft_slope), 7, 1:3), 0)
})

test_that("margins that are skew or have other tails", {
  # logarithms of gamma variables, each with half of the one before added
  shapes <- c(0.5, 1, 2, 5, 20)
  log_gammas <- function(x) {
    z <- x - cbind(0, x[, -5, drop = FALSE]) / 2
    by_z <- rep(shapes, each = nrow(x)) - exp(z)
    structure(
      drop(z %*% shapes) - rowSums(exp(z)) - sum(lgamma(shapes)), gradient = by_z - cbind(by_z[, -1, drop = FALSE] / 2, 0)
    )
  }
  expect_log_z(fits_of(log_gammas, 5, 1:3), 0)
  # the images of normal variables under sinh((asinh(z) + skew) / tail)
  sinh_arcsinh <- function(x, skew = c(-0.5, 0, 0.8), tail = c(1, 0.5, 1.6)) {
    angle <- asinh(x) * rep(tail, each = nrow(x)) - rep(skew, each = nrow(x))
    z <- sinh(angle)
    slope <- rep(tail, each = nrow(x)) / sqrt(1 + x^2)
    log_slope <- log(slope) + log(cosh(angle))
    structure(
      rowSums(dnorm(z, log = TRUE) + log_slope),
      gradient = -z * slope * cosh(angle) - x / (1 + x^2) + tanh(angle) * slope
    )
  }
  expect_log_z(fits_of(sinh_arcsinh, 3, 1:3), 0)
  # flat but for its smooth ends, beside a funnel
  with_flat <- function(x) {
    slopes <- rep(0.5, 5)
    funnel <- children_of(2, none(5), none(5), times(slopes), always(slopes))(x[, 1:6, drop = FALSE])
    y <- x[, 7]
    structure(
      funnel - sinh(y)^8, gradient = cbind(attr(funnel, "gradient"), -8 * sinh(y)^7 * cosh(y), deparse.level = 0)
    )
  }
  truth <- log(integrate(function(y) exp(-sinh(y)^8), -3, 3, rel.tol = 1e-10)$value)
  expect_log_z(fits_of(with_flat, 7, 1:3), truth)
})

# hierarchies -------------------------------------------------------------------

# Effects theta_j ~ N(mu, tau^2), mu ~ N(0, 4), log tau ~ N(-0.5, 1); x = (mu, log tau, effects), or z_j for
# theta_j = mu + tau z_j in their place. data(theta) has the log likelihood of each effect, and its slope.
hierarchy <- function(data, is_centred) {
  function(x) {
    mu <- x[, 1]
    tau <- exp(x[, 2])
    effects <- x[, -(1:2), drop = FALSE]
    theta <- if (is_centred) effects else mu + tau * effects
    of_data <- data(theta)
    of_effects <- if (is_centred) normal_around(theta, mu, x[, 2] + 0 * theta) else normal_around(effects, 0, 0 * theta)
    value <- dnorm(mu, 0, 2, log = TRUE) + dnorm(x[, 2], -0.5, 1, log = TRUE) + of_effects$value + rowSums(of_data$value)
    gradient <- if (is_centred) {
      cbind(rowSums(of_effects$by_mean), rowSums(of_effects$by_log_scale), of_data$slope - of_effects$by_mean)
    } else {
      cbind(rowSums(of_data$slope), rowSums(of_data$slope * (theta - mu)), tau * of_data$slope - effects)
    }
    gradient[, 1:2] <- gradient[, 1:2] - cbind(mu / 4, x[, 2] + 0.5)
    structure(value, gradient = unname(gradient))
  }
}

# By the trapezoidal rule, of each effect and then of mu and log tau.
log_evidence_of <- function(data, n) {
  z <- seq(-7, 7, by = 0.2)
  mu <- seq(-5, 5, length.out = 61)
  t <- seq(-6, 4, length.out = 81)
  each <- vapply(t, function(t) {
    theta <- c(outer(mu, exp(t) * z, `+`))
    likelihood <- exp(data(matrix(theta, length(theta), n))$value)
    of_effects <- apply(array(likelihood, c(length(mu), length(z), n)), c(1, 3), function(l) sum(l * dnorm(z)) * 0.2)
    rowSums(log(of_effects)) + dnorm(mu, 0, 2, log = TRUE) + dnorm(t, -0.5, 1, log = TRUE)
  }, mu)
  max(each) + log(sum(exp(each - max(each))) * (mu[2] - mu[1]) * (t[2] - t[1]))
}

# Each of these has as many columns as it is asked for.
along <- function(theta, values) rep(rep_len(values, ncol(theta)), each = nrow(theta))
data_of <- list(
  measurements = function(theta) {
    y <- along(theta, c(1.2, -0.4, 0.8, 2, -1.1, 0.3))
    s <- along(theta, c(0.5, 0.7, 0.6))
    list(value = dnorm(theta, y, s, log = TRUE), slope = (y - theta) / s^2)
  },
  counts = function(theta) {
    y <- along(theta, c(0, 0, 1, 1, 1, 2, 3, 5))
    list(value = y * theta - exp(theta), slope = y - exp(theta))
  },
  answers = function(theta) {
    right <- along(theta, 0:5)
    value <- right * plogis(theta, log.p = TRUE) + (5 - right) * plogis(-theta, log.p = TRUE)
    list(value = value, slope = right - 5 * plogis(theta))
  }
)

n_effects <- c(measurements = 6, counts = 8, answers = 6)
for (name in names(data_of)) {
  test_that(paste("hierarchies, as they are and as multiples of a scale:", name), {
    n <- n_effects[[name]]
    truth <- log_evidence_of(data_of[[name]], n)
    expect_log_z(fits_of(hierarchy(data_of[[name]], TRUE), 2 + n), truth)
    expect_log_z(fits_of(hierarchy(data_of[[name]], FALSE), 2 + n), truth)
  })
}

test_that("many effects of counts", {
  n <- 30
  data <- data_of$counts
  expect_log_z(fits_of(hierarchy(data, TRUE), 2 + n, 1, 1024, 8), log_evidence_of(data, n))
})

# Horseshoes: y_j ~ N(beta_j, 1), beta_j ~ N(0, (tau lambda_j)^2), log tau ~ N(-1, 1), and half-Cauchy lambda_j:
# x = (log tau, log lambda, beta), or beta_j / (tau lambda_j) in the place of beta_j.
y_of_horseshoe <- c(0.2, -0.5, 3, 0.1)
horseshoe <- function(is_centred) {
  function(x) {
    p <- length(y_of_horseshoe)
    l <- x[, 1 + seq_len(p), drop = FALSE]
    z <- x[, 1 + p + seq_len(p), drop = FALSE]
    s <- x[, 1] + l
    beta <- if (is_centred) z else exp(s) * z
    of_z <- if (is_centred) normal_around(z, 0, s) else normal_around(z, 0, 0 * s)
    off <- rep(y_of_horseshoe, each = nrow(x)) - beta
    by_s <- if (is_centred) of_z$by_log_scale else off * beta
    by_z <- if (is_centred) off else off * exp(s)
    log_cosh <- abs(l) + log1p(exp(-2 * abs(l))) - log(2)
    structure(
      dnorm(x[, 1], -1, 1, log = TRUE) - rowSums(log(pi) + log_cosh) + of_z$value + rowSums(dnorm(off, log = TRUE)),
      gradient = unname(cbind(rowSums(by_s) - x[, 1] - 1, by_s - tanh(l), by_z - of_z$by_mean))
    )
  }
}

test_that("horseshoes, as they are and as multiples of scales", {
  l <- seq(-30, 30, by = 0.05)
  log_given <- function(t) {
    log_y <- vapply(y_of_horseshoe, function(y) log(sum(dnorm(y, 0, sqrt(1 + exp(2 * (t + l)))) / cosh(l) / pi) * 0.05), 0)
    sum(log_y) + dnorm(t, -1, 1, log = TRUE)
  }
  truth <- log(sum(exp(vapply(seq(-8, 6, by = 0.05), log_given, 0))) * 0.05)
  expect_log_z(fits_of(horseshoe(TRUE), 9), truth)
  expect_log_z(fits_of(horseshoe(FALSE), 9), truth)
})

# Effects (u1, u2) = (exp(t1) z1, exp(t2) (tanh(r) z1 + z2 / cosh(r))) of groups, each with three counts of the
# logarithmic mean u1 + u2 v: x = (t1, t2, r, z1, z2).
counts_of_groups <- rbind(c(1, 2, 2), c(0, 1, 4), c(3, 2, 1), c(2, 1, 1), c(5, 3, 6), c(0, 0, 1))
v <- c(-1, 0.3, 1.2)
log_groups <- function(x) {
  n <- nrow(counts_of_groups)
  z1 <- x[, 3 + seq_len(n), drop = FALSE]
  z2 <- x[, 3 + n + seq_len(n), drop = FALSE]
  r <- x[, 3]
  u1 <- exp(x[, 1]) * z1
  u2 <- exp(x[, 2]) * (tanh(r) * z1 + z2 / cosh(r))
  value <- rowSums(dnorm(x[, -(1:3), drop = FALSE], log = TRUE)) + dnorm(x[, 1], -1, 0.7, log = TRUE) +
    dnorm(x[, 2], -1, 0.7, log = TRUE) + dnorm(r, 0, 0.7, log = TRUE)
  f1 <- f2 <- 0 * u1
  for (i in seq_along(v)) {
    off <- rep(counts_of_groups[, i], each = nrow(x)) - exp(u1 + u2 * v[i])
    value <- value + rowSums(rep(counts_of_groups[, i], each = nrow(x)) * (u1 + u2 * v[i]) - exp(u1 + u2 * v[i]))
    f1 <- f1 + off
    f2 <- f2 + off * v[i]
  }
  by_r <- exp(x[, 2]) * rowSums(f2 * (z1 / cosh(r)^2 - z2 * tanh(r) / cosh(r)))
  structure(value, gradient = unname(cbind(
    rowSums(f1 * u1) - (x[, 1] + 1) / 0.49, rowSums(f2 * u2) - (x[, 2] + 1) / 0.49, by_r - r / 0.49,
    exp(x[, 1]) * f1 + exp(x[, 2]) * tanh(r) * f2 - z1, exp(x[, 2]) / cosh(r) * f2 - z2
  )))
}

test_that("effects that are mixed by a correlation", {
  z <- expand.grid(z1 = seq(-5, 5, by = 0.5), z2 = seq(-5, 5, by = 0.5))
  weight <- dnorm(z$z1) * dnorm(z$z2) * 0.25
  t <- seq(-4, 2, by = 0.3)
  given <- expand.grid(t1 = t, t2 = t, r = seq(-2.7, 2.7, by = 0.3))
  log_values <- mapply(function(t1, t2, r) {
    log_rate <- exp(t1) * z$z1 + outer(exp(t2) * (tanh(r) * z$z1 + z$z2 / cosh(r)), v)
    sum(log(colSums(exp(tcrossprod(log_rate, counts_of_groups) - rowSums(exp(log_rate))) * weight)))
  }, given$t1, given$t2, given$r)
  log_prior <- with(given, dnorm(t1, -1, 0.7, log = TRUE) + dnorm(t2, -1, 0.7, log = TRUE) + dnorm(r, 0, 0.7, log = TRUE))
  truth <- log(sum(exp(log_values + log_prior))) + 3 * log(0.3)
  expect_log_z(fits_of(log_groups, 15, 1, 1024, 8), truth)
})

# Groups whose effects are normal around mu with the standard deviation tau: list(target, truth), x = (mu, log(tau),
# effects). likelihood, slope: functions of a matrix of effects, a column a group; the truth is by quadrature of each
# effect, then over mu and log(tau).
grouped <- function(likelihood, slope, n_groups) {
  prior <- function(mu, t) dnorm(mu, 0, 2, log = TRUE) + log(2) + dnorm(exp(t), log = TRUE) + t
  log_density <- function(x) {
    effects <- x[, -(1:2), drop = FALSE]
    rowSums(likelihood(effects) + dnorm(effects, x[, 1], exp(x[, 2]), log = TRUE)) + prior(x[, 1], x[, 2])
  }
  gradient <- function(x) {
    tau <- exp(x[, 2])
    effects <- x[, -(1:2), drop = FALSE]
    z <- (effects - x[, 1]) / tau
    cbind(rowSums(z) / tau - x[, 1] / 4, rowSums(z^2) - n_groups + 1 - tau^2, slope(effects) - z / tau)
  }
  step <- 0.1
  z <- seq(-8, 8, by = step)
  mu <- seq(-4, 4, by = step)
  given <- vapply(seq(-14, 1.5, by = 0.1), function(t) {
    of_groups <- vapply(mu, function(m) {
      each <- likelihood(matrix(m + exp(t) * z, length(z), n_groups))
      sum(log(colSums(exp(each) * dnorm(z) * step)))
    }, 0)
    of_groups + prior(mu, t)
  }, mu)
  list(
    target = target_function(log_density, n_groups + 2, gradient, vectorized = TRUE),
    truth = max(given) + log(sum(exp(given - max(given)))) + log(step * 0.1)
  )
}

test_that("effects that are nearly normal given their mean and scale, of which the data say little", {
  by_row <- function(values, x) rep(values, each = nrow(x))
  count <- c(0, 1, 1, 2, 0, 3, 1, 0, 2, 5, 1, 1)
  counts <- grouped(
    function(e) by_row(count, e) * e - exp(e) - lfactorial(by_row(count, e)), function(e) by_row(count, e) - exp(e), 12
  )
  time <- c(0.3, 1.2, 2.1, 1.6, 0.9, 0.5)
  events <- c(1, 2, 1, 3, 2, 1)
  durations <- grouped(
    function(e) -by_row(events, e) * e - by_row(time, e) * exp(-e),
    function(e) by_row(time, e) * exp(-e) - by_row(events, e), 6
  )
  for (model in list(counts, durations)) {
    fits <- lapply(1:3, function(seed) calmly(smc(model$target, seed = seed)))
    expect_log_z(fits, model$truth, resolution = 0.03)
  }
})

test_that("each coordinate has its own inflation, whether or not there are parents", {
  inflation_of <- internal("inflation_of")
  expect_identical(inflation_of(c(1, 0), FALSE), c(internal("rules")$inflation, 1))
  expect_identical(inflation_of(c(1, 0), c(TRUE, FALSE)), c(internal("rules")$inflation_parents, 1))
  expect_identical(inflation_of(c(0, 0), c(TRUE, FALSE)), c(1, 1))
})
