# Building blocks of the models of the suites. See suite.R.
#
# A log density is a function of an n x d matrix, a row a point. Its value is n numbers
# with the gradients, n x d, in the attribute "gradient".

# A model of known evidence.
#
# truth: a function that finds log Z; how: in what way. It is called by truths.R, which
#   keeps the number in results/truths.csv: suite_models() reads it from there.
# target: a function that makes the target, so that it is made where it is used.
# judge: whether the model may only judge; rules may be chosen on the others.
model <- function(name, class, judge, target, truth, how, d = NULL) {
  list(
    name = name, class = class, judge = judge, target = target, truth = truth,
    how = how, d = if (is.null(d)) target()$dim else d
  )
}

# A model may judge, or rules may be chosen on it.
judge <- TRUE
choose <- FALSE

normalised <- "a normalised density"
zero <- function() 0

density_target <- function(f, d, names = NULL, lower = -Inf, upper = Inf) {
  autosmc::target_function(
    f,
    dim = d, vectorized = TRUE, names = names, lower = lower, upper = upper
  )
}

with_gradient <- function(value, gradient) {
  attr(value, "gradient") <- unname(gradient)
  value
}

# Evaluates `code` with R's generator at `seed`, and puts it back as it was.
with_seed <- function(seed, code) {
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit(
    if (is.null(old)) {
      rm(".Random.seed", envir = globalenv())
    } else {
      assign(".Random.seed", old, globalenv())
    }
  )
  set.seed(seed, kind = "Mersenne-Twister", normal.kind = "Inversion")
  code
}

by_row <- function(v, n) matrix(v, n, length(v), byrow = TRUE)

log_sum_exp <- function(x) {
  top <- max(x)
  top + log(sum(exp(x - top)))
}

# log(1 + exp(x)) without overflow.
softplus <- function(x) pmax(x, 0) + log1p(exp(-abs(x)))

# log of the integral of exp(f) over an interval, f vectorised, by the trapezoidal rule,
# which is exact to many digits where f falls to -Inf smoothly on both sides.
log_integral <- function(f, lower, upper, n = 4001) {
  x <- seq(lower, upper, length.out = n)
  log_sum_exp(f(x)) + log(x[2] - x[1])
}

# The same over a rectangle; f of two vectors of equal length.
log_integral_2 <- function(f, lower, upper, n = 401) {
  x <- seq(lower[1], upper[1], length.out = n)
  y <- seq(lower[2], upper[2], length.out = n)
  grid <- expand.grid(x = x, y = y)
  log_sum_exp(f(grid$x, grid$y)) + log(x[2] - x[1]) + log(y[2] - y[1])
}

# normal distributions ---------------------------------------------------------

# N(mean, inverse of precision).
normal_density <- function(mean, precision) {
  d <- length(mean)
  const <- as.numeric(determinant(precision)$modulus) / 2 - d / 2 * log(2 * pi)
  function(x) {
    u <- x - by_row(mean, nrow(x))
    g <- -u %*% precision
    with_gradient(const + rowSums(u * g) / 2, g)
  }
}

# N(mean, diag(sd^2)).
independent_normal_density <- function(mean, sd) {
  const <- -sum(log(sd)) - length(mean) / 2 * log(2 * pi)
  function(x) {
    u <- (x - by_row(mean, nrow(x))) / by_row(sd, nrow(x))
    with_gradient(const - rowSums(u^2) / 2, -u / by_row(sd, nrow(x)))
  }
}

random_rotation <- function(d, seed) {
  with_seed(seed, qr.Q(qr(matrix(rnorm(d^2), d))))
}

# log N(y; mean, cov).
log_normal <- function(y, mean, cov) {
  root <- chol(cov)
  u <- backsolve(root, y - mean, transpose = TRUE)
  -sum(u^2) / 2 - sum(log(diag(root))) - length(y) / 2 * log(2 * pi)
}

# A mixture of normals with means in the rows of `means`, one sd each.
normal_mixture_density <- function(means, sd, weights) {
  d <- ncol(means)
  const <- log(weights) - d * log(sd) - d / 2 * log(2 * pi)
  function(x) {
    n <- nrow(x)
    parts <- lapply(seq_len(nrow(means)), function(k) {
      u <- (by_row(means[k, ], n) - x) / sd[k]
      list(log = const[k] - rowSums(u^2) / 2, slope = u / sd[k])
    })
    logs <- matrix(vapply(parts, `[[`, double(n), "log"), n)
    top <- do.call(pmax, as.data.frame(logs))
    value <- top + log(rowSums(exp(logs - top)))
    slope <- 0
    for (k in seq_along(parts)) {
      slope <- slope + exp(logs[, k] - value) * parts[[k]]$slope
    }
    with_gradient(value, slope)
  }
}

# y ~ sum_k N(m_k, 1) / K, m_k ~ N(0, 10^2).
label_mixture <- function(name, class, judge, seed, n, centres, n_steps = 60) {
  K <- length(centres)
  y <- with_seed(seed, rnorm(n, rep_len(centres, n)))
  f <- function(x) {
    rows <- nrow(x)
    logs <- lapply(seq_len(K), function(k) dnorm(by_row(y, rows), x[, k], log = TRUE))
    top <- do.call(pmax, logs)
    shares <- lapply(logs, function(l) exp(l - top))
    total <- Reduce(`+`, shares)
    value <- rowSums(top + log(total)) - n * log(K) +
      rowSums(dnorm(x, 0, 10, log = TRUE))
    slope <- vapply(seq_len(K), function(k) {
      rowSums(shares[[k]] / total * (by_row(y, rows) - x[, k])) - x[, k] / 100
    }, double(rows))
    with_gradient(value, matrix(slope, rows))
  }
  model(
    name, class, judge, function() density_target(f, K),
    function() {
      # one labelling: 9 posterior sds round its mode, which the others do not reach
      mode <- vapply(seq_len(K), function(k) mean(y[rep_len(seq_len(K), n) == k]), 0)
      width <- min(9 / sqrt(n / K), min(diff(sort(centres))) / 2)
      h <- 2 * width / n_steps
      step <- seq(-width, width, by = h)
      grid <- as.matrix(expand.grid(lapply(mode, function(m) m + step)))
      blocks <- split(seq_len(nrow(grid)), ceiling(seq_len(nrow(grid)) / 2e4))
      parts <- lapply(blocks, function(i) as.double(f(grid[i, , drop = FALSE])))
      log_sum_exp(unlist(parts)) + K * log(h) + lfactorial(K)
    },
    "quadrature over one labelling, plus log K!", K
  )
}

# priors on the logarithm of a scale ---------------------------------------------
# Of l = log scale, with the Jacobian: list(log = function, slope = function).

half_cauchy_log <- function(scale) {
  list(
    log = function(l) log(2 / (pi * scale)) - softplus(2 * (l - log(scale))) + l,
    slope = function(l) 1 - 2 * plogis(2 * (l - log(scale))),
    text = "half-Cauchy"
  )
}

exponential_log <- function(rate) {
  list(
    log = function(l) log(rate) - rate * exp(l) + l,
    slope = function(l) 1 - rate * exp(l),
    text = "exponential"
  )
}

normal_log <- function(mean, sd) {
  list(
    log = function(l) dnorm(l, mean, sd, log = TRUE),
    slope = function(l) (mean - l) / sd^2,
    text = "log-normal"
  )
}

# regressions ------------------------------------------------------------------

# Coefficients with independent normal priors. `family` is a list with
#   log(y, eta, extra), the log likelihoods, n x N, and slope(), those by eta;
# and, if there is one further parameter (`extra`, n numbers), `extra` (its name), `prior`
#   (of the logarithm) and extra_slope(), the log likelihoods' slopes by it.
regression_density <- function(y, X, mean, sd, family) {
  p <- ncol(X)
  prior <- independent_normal_density(mean, sd)
  function(x) {
    n <- nrow(x)
    beta <- unname(x[, seq_len(p), drop = FALSE])
    extra <- if (!is.null(family$extra)) unname(x[, p + 1])
    eta <- tcrossprod(beta, X)
    Y <- by_row(y, n)
    before <- prior(beta)
    value <- as.double(before) + rowSums(family$log(Y, eta, extra))
    slope <- attr(before, "gradient") + family$slope(Y, eta, extra) %*% X
    if (!is.null(extra)) {
      value <- value + family$prior$log(extra)
      slope <- cbind(
        slope,
        rowSums(family$extra_slope(Y, eta, extra)) + family$prior$slope(extra)
      )
    }
    with_gradient(value, slope)
  }
}

normal_family <- function(prior) {
  list(
    log = function(y, eta, l) -((y - eta) * exp(-l))^2 / 2 - l - log(2 * pi) / 2,
    slope = function(y, eta, l) (y - eta) * exp(-2 * l),
    extra = "log_sigma",
    prior = prior,
    extra_slope = function(y, eta, l) ((y - eta) * exp(-l))^2 - 1
  )
}

known_normal_family <- function(sigma) {
  list(
    log = function(y, eta, l) dnorm(y, eta, sigma, log = TRUE),
    slope = function(y, eta, l) (y - eta) / sigma^2
  )
}

poisson_family <- function() {
  list(
    log = function(y, eta, l) y * eta - exp(eta) - lgamma(y + 1),
    slope = function(y, eta, l) y - exp(eta)
  )
}

# Binomial counts of `size` with logit eta.
binomial_family <- function(size = 1) {
  list(
    log = function(y, eta, l) {
      m <- by_row(rep_len(size, ncol(y)), nrow(y))
      lchoose(m, y) + y * eta - m * softplus(eta)
    },
    slope = function(y, eta, l) {
      y - by_row(rep_len(size, ncol(y)), nrow(y)) * plogis(eta)
    }
  )
}

# Negative binomial counts with log mean eta and log size l.
negative_binomial_family <- function(prior) {
  list(
    log = function(y, eta, l) {
      k <- exp(l)
      lgamma(y + k) - lgamma(k) - lgamma(y + 1) + y * (eta - l) -
        (y + k) * softplus(eta - l)
    },
    slope = function(y, eta, l) y - (y + exp(l)) * plogis(eta - l),
    extra = "log_size",
    prior = prior,
    extra_slope = function(y, eta, l) {
      k <- exp(l)
      k * (digamma(y + k) - digamma(k) - softplus(eta - l)) - y +
        (y + k) * plogis(eta - l)
    }
  )
}

regression_target <- function(y, X, mean, sd, family) {
  density_target(
    regression_density(y, X, mean, sd, family),
    ncol(X) + !is.null(family$extra),
    c(make.names(colnames(X), unique = TRUE), family$extra)
  )
}

# Exact: coefficients integrated out, error scale known.
known_regression_truth <- function(y, X, mean, sd, sigma) {
  cov <- X %*% (sd^2 * t(X)) + sigma^2 * diag(length(y))
  log_normal(y, drop(X %*% mean), cov)
}

# Coefficients integrated out, the trapezoidal rule over log sigma.
regression_truth <- function(y, X, mean, sd, prior) {
  e <- eigen(X %*% (sd^2 * t(X)), symmetric = TRUE)
  r2 <- drop(crossprod(e$vectors, y - X %*% mean))^2
  values <- pmax(e$values, 0)
  f <- function(l) {
    vapply(l, function(l) {
      v <- values + exp(2 * l)
      -sum(r2 / v + log(2 * pi * v)) / 2
    }, 0) + prior$log(l)
  }
  centre <- log(sqrt(mean(lm.fit(X, y)$residuals^2)))
  log_integral(f, centre - 8, centre + 8, 8001)
}

# normal hierarchies -------------------------------------------------------------

# Group means ybar of n observations each, ss their sums of squared deviations:
#   y_ij ~ N(theta_j, sigma_j^2), theta_j ~ N(mu, tau^2), mu ~ N(mean, sd^2).
# data: list(ybar, n, ss, and `se`, the known sigma_j, or NULL for one sigma with prior
# `sigma` on its logarithm). tau: the prior of log tau. centred: whether the variables are
# theta, or z = (theta - mu) / tau.
hierarchy_density <- function(data, mean, sd, tau, sigma, centred) {
  J <- length(data$ybar)
  known <- !is.null(data$se)
  from <- 2 + !known
  function(x) {
    x <- unname(x)
    n <- nrow(x)
    mu <- x[, 1]
    l <- x[, 2]
    s <- if (known) by_row(log(data$se), n) else matrix(x[, 3], n, J)
    z <- x[, from + seq_len(J), drop = FALSE]
    if (centred) z <- (z - mu) * exp(-l)
    deviation <- by_row(data$ybar, n) - mu - exp(l) * z
    N <- by_row(data$n, n)
    squares <- by_row(data$ss, n) + N * deviation^2
    value <- dnorm(mu, mean, sd, log = TRUE) + tau$log(l) - rowSums(z^2) / 2 -
      J / 2 * log(2 * pi) - if (centred) J * l else 0
    value <- value -
      rowSums(N * s + squares * exp(-2 * s) / 2) - sum(data$n) / 2 * log(2 * pi)
    by_theta <- N * deviation * exp(-2 * s)
    slope <- if (centred) {
      cbind(
        rowSums(z) * exp(-l), tau$slope(l) + rowSums(z^2) - J,
        by_theta - z * exp(-l)
      )
    } else {
      cbind(
        rowSums(by_theta), tau$slope(l) + exp(l) * rowSums(by_theta * z),
        by_theta * exp(l) - z
      )
    }
    slope[, 1] <- slope[, 1] + (mean - mu) / sd^2
    if (!known) {
      value <- value + sigma$log(x[, 3])
      slope <- cbind(
        slope[, 1:2, drop = FALSE],
        sigma$slope(x[, 3]) + rowSums(squares * exp(-2 * s) - N),
        slope[, -(1:2), drop = FALSE]
      )
    }
    with_gradient(value, slope)
  }
}

hierarchy_target <- function(data, mean, sd, tau, sigma = NULL, centred) {
  J <- length(data$ybar)
  names <- c(
    "mu", "log_tau", if (is.null(data$se)) "log_sigma",
    paste0(if (centred) "theta" else "z", seq_len(J))
  )
  density_target(
    hierarchy_density(data, mean, sd, tau, sigma, centred), length(names), names
  )
}

# Effects and mu integrated out; the trapezoidal rule over log tau (and log sigma).
hierarchy_truth <- function(data, mean, sd, tau, sigma = NULL, lower, upper) {
  J <- length(data$ybar)
  # log density of the data given tau and sigma, by Sherman and Morrison's formula
  given <- function(l, s) {
    vapply(seq_along(l), function(i) {
      sigma2 <- if (is.null(s)) data$se^2 else rep(exp(2 * s[i]), J)
      within <- -sum((data$n - 1) * log(2 * pi * sigma2) + log(data$n) + data$ss / sigma2) / 2
      v <- exp(2 * l[i]) + sigma2 / data$n
      r <- data$ybar - mean
      k <- 1 / sd^2 + sum(1 / v)
      within - (sum(log(2 * pi * v)) + log(sd^2 * k) + sum(r^2 / v) - sum(r / v)^2 / k) / 2
    }, 0)
  }
  if (is.null(sigma)) {
    log_integral(function(l) given(l, NULL) + tau$log(l), lower, upper, 20001)
  } else {
    log_integral_2(
      function(l, s) given(l, s) + tau$log(l) + sigma$log(s), lower, upper
    )
  }
}

# The data of a hierarchy from observations y and their groups.
grouped <- function(y, group) {
  list(
    ybar = as.vector(tapply(y, group, mean)),
    n = as.vector(tapply(y, group, length)),
    ss = as.vector(tapply(y, group, function(v) sum((v - mean(v))^2)))
  )
}

# growth curves ------------------------------------------------------------------

# Lines that vary by group: y ~ N(beta_1 + r_1j + (beta_2 + r_2j) x, sigma^2), with effects
# r_j ~ N(0, S) of standard deviations tau_1, tau_2 and correlation rho = tanh(u), which is
# uniform a priori; beta ~ N(mean, sd^2). data: list(y, x, group), groups numbered from 1. tau,
# sigma: the priors of log tau_1 and log tau_2, and of log sigma. centred: whether the variables
# are r, or the standard normal z of r = diag(tau) L z, L the factor of the correlation.
growth_density <- function(data, mean, sd, tau, sigma, centred) {
  groups <- outer(data$group, seq_len(max(data$group)), "==") + 0
  J <- ncol(groups)
  N <- length(data$y)
  prior <- independent_normal_density(mean, sd)
  function(x) {
    x <- unname(x)
    n <- nrow(x)
    l <- x[, 3:5, drop = FALSE]
    rho <- tanh(x[, 6])
    q2 <- 1 / cosh(x[, 6])^2
    q <- sqrt(q2)
    z1 <- x[, 6 + seq_len(J), drop = FALSE]
    z2 <- x[, 6 + J + seq_len(J), drop = FALSE]
    if (centred) {
      z1 <- z1 * exp(-l[, 1])
      z2 <- (z2 * exp(-l[, 2]) - rho * z1) / q
    }
    second <- rho * z1 + q * z2
    at <- by_row(data$x, n)
    intercept <- x[, 1] + (exp(l[, 1]) * z1)[, data$group, drop = FALSE]
    slope <- x[, 2] + (exp(l[, 2]) * second)[, data$group, drop = FALSE]
    off <- by_row(data$y, n) - intercept - slope * at
    precision <- exp(-2 * l[, 3])
    before <- prior(x[, 1:2, drop = FALSE])
    value <- as.double(before) + tau[[1]]$log(l[, 1]) + tau[[2]]$log(l[, 2]) +
      sigma$log(l[, 3]) + log(q2 / 2) - rowSums(z1^2 + z2^2) / 2 - J * log(2 * pi) -
      N * (l[, 3] + log(2 * pi) / 2) - precision * rowSums(off^2) / 2
    if (centred) value <- value - J * (l[, 1] + l[, 2] + log(q))
    # by the effects, through the data
    by_1 <- precision * off %*% groups
    by_2 <- precision * (off * at) %*% groups
    gradient <- cbind(
      attr(before, "gradient") + cbind(rowSums(by_1), rowSums(by_2)),
      tau[[1]]$slope(l[, 1]), tau[[2]]$slope(l[, 2]),
      sigma$slope(l[, 3]) - N + precision * rowSums(off^2), -2 * rho
    )
    if (centred) {
      by_z1 <- z1 - rho / q * z2
      gradient[, 3] <- gradient[, 3] + rowSums(z1 * by_z1) - J
      gradient[, 4] <- gradient[, 4] + rowSums(z2 * second) / q - J
      gradient[, 6] <- gradient[, 6] + rowSums(z2 * (q * z1 - rho * z2)) + J * rho
      effects <- cbind(by_1 - by_z1 * exp(-l[, 1]), by_2 - z2 / q * exp(-l[, 2]))
    } else {
      by_2 <- exp(l[, 2]) * by_2
      gradient[, 3] <- gradient[, 3] + rowSums(exp(l[, 1]) * by_1 * z1)
      gradient[, 4] <- gradient[, 4] + rowSums(by_2 * second)
      gradient[, 6] <- gradient[, 6] + rowSums(by_2 * (q2 * z1 - rho * q * z2))
      effects <- cbind(exp(l[, 1]) * by_1 + rho * by_2 - z1, q * by_2 - z2)
    }
    with_gradient(value, cbind(gradient, effects))
  }
}

growth_target <- function(data, mean, sd, tau, sigma, centred) {
  J <- max(data$group)
  names <- c(
    "beta_1", "beta_2", "log_tau_1", "log_tau_2", "log_sigma", "u",
    paste0(if (centred) "r_1" else "z_1", "_", seq_len(J)),
    paste0(if (centred) "r_2" else "z_2", "_", seq_len(J))
  )
  density_target(
    growth_density(data, mean, sd, tau, sigma, centred), length(names), names
  )
}

# Of log tau_1, log tau_2, log sigma and u, with all else integrated out: group by group by
# Woodbury's formula. Symmetric matrices of two by two are three columns, a row a point.
growth_marginal <- function(data, mean, sd, tau, sigma) {
  sums <- lapply(split(seq_along(data$y), data$group), function(i) {
    X <- cbind(1, data$x[i])
    y <- data$y[i] - drop(X %*% mean)
    list(n = length(i), XX = crossprod(X), Xy = drop(crossprod(X, y)), yy = sum(y^2))
  })
  function(u) {
    rho <- tanh(u[, 4])
    precision <- exp(-2 * u[, 3])
    S <- cbind(exp(2 * u[, 1]), rho * exp(u[, 1] + u[, 2]), exp(2 * u[, 2]))
    value <- tau[[1]]$log(u[, 1]) + tau[[2]]$log(u[, 2]) + sigma$log(u[, 3]) -
      2 * log(cosh(u[, 4])) - log(2) - sum(log(sd))
    total <- by_row(c(1, 0, 1) / c(sd[1]^2, 1, sd[2]^2), nrow(u))
    linear <- matrix(0, nrow(u), 2)
    for (s in sums) {
      a <- s$XX[c(1, 2, 4)]
      # the effects' variance, given the data: the inverse of I + S X'X / sigma^2, times S
      det_S <- S[, 1] * S[, 3] - S[, 2]^2
      det <- 1 + precision * (S[, 1] * a[1] + 2 * S[, 2] * a[2] + S[, 3] * a[3]) +
        precision^2 * det_S * (a[1] * a[3] - a[2]^2)
      V <- (S + precision * det_S * by_row(c(a[3], -a[2], a[1]), nrow(u))) / det
      # V X'y and X'X V X'y
      Vy <- cbind(V[, 1] * s$Xy[1] + V[, 2] * s$Xy[2], V[, 2] * s$Xy[1] + V[, 3] * s$Xy[2])
      value <- value - s$n * (u[, 3] + log(2 * pi) / 2) - log(det) / 2 -
        precision * (s$yy - precision * drop(Vy %*% s$Xy)) / 2
      linear <- linear + precision * (by_row(s$Xy, nrow(u)) - precision * Vy %*% s$XX)
      VXX <- list(
        cbind(V[, 1] * a[1] + V[, 2] * a[2], V[, 2] * a[1] + V[, 3] * a[2]),
        cbind(V[, 1] * a[2] + V[, 2] * a[3], V[, 2] * a[2] + V[, 3] * a[3])
      )
      taken <- cbind(VXX[[1]] %*% a[1:2], VXX[[2]] %*% a[1:2], VXX[[2]] %*% a[2:3])
      total <- total + precision * (by_row(a, nrow(u)) - precision * taken)
    }
    det <- total[, 1] * total[, 3] - total[, 2]^2
    square <- linear[, 1]^2 * total[, 3] - 2 * linear[, 1] * linear[, 2] * total[, 2] +
      linear[, 2]^2 * total[, 1]
    list(x = u, log = value - log(det) / 2 + square / det / 2)
  }
}
