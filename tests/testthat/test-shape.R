# Answers: the log evidence of targets of all shapes, by smc() as it comes.

fits_of <- function(log_density, dim, seeds = 1, ...) {
  target <- target_function(log_density, dim, vectorized = TRUE, ...)
  lapply(seeds, function(seed) calmly(smc(target, n_particles = 512, islands = 4, seed = seed)))
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
  at <- function(t) outer(2 * t, 1:4, "-")
  knees <- children_of(
    1.5, function(t) log1p(exp(at(t))), function(t) 2 * plogis(at(t)), always(rep(log(0.1), 4)), none(4)
  )
  expect_log_z(fits_of(knees, 5, 1:3), 0)
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
  n <- 60
  data <- data_of$counts
  expect_log_z(fits_of(hierarchy(data, TRUE), 2 + n), log_evidence_of(data, n))
})
