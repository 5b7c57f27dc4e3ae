# Models of known evidence, one difficulty each: places and scales, conditioning, many
# dimensions, curves, funnels, rings, heavy tails, modes, skewness, bounds, edges and
# hierarchies. Within each class some judge and the others may be learnt from, with
# different numbers in the two. See models.R for the blocks and suite.R for the runner.

schools <- list(
  ybar = c(28, 8, -3, 7, -1, 1, 18, 12),
  se = c(15, 10, 16, 11, 9, 11, 10, 18),
  n = rep(1, 8), ss = rep(0, 8)
)

# places and scales, conditioning, dimensions ------------------------------------

shape_place <- function(mean, sd, d, judge) {
  model(
    sprintf("place_%g_sd_%g_d%d", mean, sd, d), "place", judge,
    function() density_target(independent_normal_density(rep(mean, d), rep(sd, d)), d),
    zero, normalised, d
  )
}

shape_condition <- function(number, d, rotated, judge) {
  name <- sprintf("condition_%s_%g_d%d", if (rotated) "rotated" else "diagonal", number, d)
  variances <- exp(seq(log(1 / number), 0, length.out = d))
  model(
    name, "conditioning", judge,
    function() {
      density_target(if (rotated) {
        axes <- random_rotation(d, 100 + d)
        normal_density(rep(0, d), axes %*% (t(axes) / variances))
      } else {
        independent_normal_density(rep(0, d), sqrt(variances))
      }, d)
    },
    zero, normalised, d
  )
}

shape_equicorrelated <- function(rho, d, judge) {
  model(
    sprintf("equicorrelated_%g_d%d", rho, d), "conditioning", judge,
    function() {
      precision <- (diag(d) - rho / (1 + (d - 1) * rho)) / (1 - rho)
      density_target(normal_density(rep(0, d), precision), d)
    },
    zero, normalised, d
  )
}

shape_ar <- function(rho, d, judge) {
  model(
    sprintf("ar_%g_d%d", rho, d), "conditioning", judge,
    function() {
      precision <- diag(c(1, rep(1 + rho^2, d - 2), 1))
      precision[abs(row(precision) - col(precision)) == 1] <- -rho
      density_target(normal_density(rep(0, d), precision / (1 - rho^2)), d)
    },
    zero, normalised, d
  )
}

shape_dimension <- function(name, mean, sd, judge) {
  d <- length(mean)
  model(
    name, "dimension", judge,
    function() density_target(independent_normal_density(mean, sd), d),
    zero, normalised, d
  )
}

# regressions on simulated data --------------------------------------------------

simulate_regression <- function(seed, n, beta, rho, noise) {
  with_seed(seed, {
    p <- length(beta) - 1
    shared <- rnorm(n)
    X <- cbind(1, sqrt(rho) * shared + sqrt(1 - rho) * matrix(rnorm(n * p), n))
    colnames(X) <- c("intercept", paste0("b", seq_len(p)))
    list(X = X, y = drop(X %*% beta) + noise * rnorm(n))
  })
}

# Without `prior`, the noise is known.
shape_regression <- function(name, judge, seed, n, beta, rho, noise, sd, prior = NULL) {
  data <- simulate_regression(seed, n, beta, rho, noise)
  p <- length(beta)
  prior_sd <- rep_len(sd, p)
  family <- if (is.null(prior)) known_normal_family(noise) else normal_family(prior)
  model(
    name, "regression", judge,
    function() regression_target(data$y, data$X, rep(0, p), prior_sd, family),
    function() {
      if (is.null(prior)) {
        known_regression_truth(data$y, data$X, rep(0, p), prior_sd, noise)
      } else {
        regression_truth(data$y, data$X, rep(0, p), prior_sd, prior)
      }
    },
    if (is.null(prior)) {
      "closed form"
    } else {
      "coefficients integrated out, quadrature over log sigma"
    },
    p + !is.null(prior)
  )
}

# curves, funnels, rings, tails --------------------------------------------------

# x_1 ~ N(0, s^2), x_2 ~ N(b (x_1^2 - s^2), 1), all others N(0, 1).
shape_banana <- function(b, s, d, judge) {
  f <- function(x) {
    x <- unname(x)
    r <- x[, 2] - b * (x[, 1]^2 - s^2)
    rest <- x[, -(1:2), drop = FALSE]
    value <- -(x[, 1] / s)^2 / 2 - log(s) - r^2 / 2 - rowSums(rest^2) / 2 -
      d / 2 * log(2 * pi)
    with_gradient(value, cbind(-x[, 1] / s^2 + 2 * b * x[, 1] * r, -r, -rest))
  }
  model(
    sprintf("banana_%g_%g_d%d", b, s, d), "banana", judge,
    function() density_target(f, d), zero, normalised, d
  )
}

# x_1 ~ N(0, 1), all others N(curve(x_1), sd^2), where a curve returns its value and its slope.
shape_curve <- function(name, curve, sd, d, judge) {
  f <- function(x) {
    x <- unname(x)
    at <- curve(x[, 1])
    r <- (x[, -1, drop = FALSE] - at$value) / sd
    value <- -x[, 1]^2 / 2 - rowSums(r^2) / 2 - (d - 1) * log(sd) - d / 2 * log(2 * pi)
    with_gradient(value, cbind(-x[, 1] + rowSums(r) * at$slope / sd, -r / sd))
  }
  model(
    sprintf("%s_%g_d%d", name, sd, d), "curve", judge,
    function() density_target(f, d), zero, normalised, d
  )
}

curve_bump <- function(t) list(value = 2 * exp(-t^2), slope = -4 * t * exp(-t^2))
curve_power <- function(t) list(value = abs(t)^1.5, slope = 1.5 * sign(t) * sqrt(abs(t)))
curve_saturating <- function(t) list(value = log(3 * exp(t) / (2 + exp(t))), slope = 2 / (2 + exp(t)))

# x_1 ~ N(0, 3^2), all others N(0, exp(x_1)).
shape_funnel <- function(d, judge) {
  f <- function(x) {
    x <- unname(x)
    y <- x[, 1]
    u <- x[, -1, drop = FALSE] * exp(-y / 2)
    squares <- rowSums(u^2)
    value <- -y^2 / 18 - log(3) - squares / 2 - (d - 1) * y / 2 - d / 2 * log(2 * pi)
    with_gradient(value, cbind(-y / 9 + squares / 2 - (d - 1) / 2, -u * exp(-y / 2)))
  }
  model(
    sprintf("funnel_d%d", d), "funnel", judge, function() density_target(f, d),
    zero, normalised, d
  )
}

shape_ring <- function(radius, sd, d, judge) {
  f <- function(x) {
    r <- sqrt(rowSums(x^2))
    with_gradient(-((r - radius) / sd)^2 / 2, -(r - radius) / sd^2 / r * x)
  }
  model(
    sprintf("ring_%g_%g_d%d", radius, sd, d), "ring", judge,
    function() density_target(f, d),
    function() {
      area <- log(2) + d / 2 * log(pi) - lgamma(d / 2)
      shell <- function(r) (d - 1) * log(r) - ((r - radius) / sd)^2 / 2
      area + log_integral(shell, radius - 9 * sd, radius + 9 * sd)
    },
    "quadrature over the radius", d
  )
}

shape_t <- function(df, d, judge) {
  const <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi)
  f <- function(x) {
    squares <- rowSums(x^2)
    with_gradient(
      const - (df + d) / 2 * log1p(squares / df), -(df + d) * x / (df + squares)
    )
  }
  model(
    sprintf("t%g_d%d", df, d), "heavy tails", judge, function() density_target(f, d),
    zero, normalised, d
  )
}

shape_product_t <- function(df, d, judge) {
  const <- d * (lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2)
  f <- function(x) {
    with_gradient(
      const - (df + 1) / 2 * rowSums(log1p(x^2 / df)), -(df + 1) * x / (df + x^2)
    )
  }
  model(
    sprintf("product_t%g_d%d", df, d), "heavy tails", judge,
    function() density_target(f, d), zero, normalised, d
  )
}

# A normal distribution, and a wide one around the same centre.
shape_contaminated <- function(part, sd, d, judge) {
  model(
    sprintf("contaminated_%g_%g_d%d", part, sd, d), "heavy tails", judge,
    function() {
      density_target(normal_mixture_density(matrix(0, 2, d), c(1, sd), c(1 - part, part)), d)
    },
    zero, normalised, d
  )
}

# modes ------------------------------------------------------------------------

shape_modes <- function(name, judge, means, sd = 1, weights = 1) {
  k <- nrow(means)
  weights <- rep_len(weights, k)
  model(
    name, "modes", judge,
    function() {
      density_target(
        normal_mixture_density(means, rep_len(sd, k), weights / sum(weights)), ncol(means)
      )
    },
    zero, normalised, ncol(means)
  )
}

on_circle <- function(k, radius) {
  angle <- 2 * pi * seq_len(k) / k
  radius * cbind(cos(angle), sin(angle))
}

shape_labels <- function(name, judge, ...) label_mixture(name, "labels", judge, ...)

# skewness, bounds, edges --------------------------------------------------------

# Independent variables, each with log density log(x) and slope(x).
shape_product <- function(
  name, class, judge, d, log, slope, truth = zero, how = normalised,
  lower = -Inf, upper = Inf
) {
  f <- function(x) {
    x <- unname(x)
    with_gradient(rowSums(matrix(log(x), nrow(x))), matrix(slope(x), nrow(x)))
  }
  model(
    name, class, judge, function() density_target(f, d, lower = lower, upper = upper),
    truth, how, d
  )
}

shape_log_gamma <- function(shape, d, judge) {
  shape_product(
    sprintf("log_gamma_%g_d%d", shape, d), "skew", judge, d,
    function(x) shape * x - exp(x) - lgamma(shape),
    function(x) shape - exp(x)
  )
}

shape_skew_normal <- function(alpha, d, judge) {
  shape_product(
    sprintf("skew_normal_%g_d%d", alpha, d), "skew", judge, d,
    function(x) {
      log(2) + dnorm(x, log = TRUE) + pnorm(alpha * x, log.p = TRUE)
    },
    function(x) {
      -x + alpha * exp(dnorm(alpha * x, log = TRUE) - pnorm(alpha * x, log.p = TRUE))
    }
  )
}

shape_gumbel <- function(location, scale, d, judge) {
  shape_product(
    sprintf("gumbel_%g_%g_d%d", location, scale, d), "skew", judge, d,
    function(x) {
      z <- (x - location) / scale
      -z - exp(-z) - log(scale)
    },
    function(x) (exp(-(x - location) / scale) - 1) / scale
  )
}

# rate_j ~ gamma(a, b), y_j ~ Poisson(rate_j time)
shape_gamma_poisson <- function(seed, d, a, b, time, judge) {
  y <- with_seed(seed, rpois(d, time * rgamma(d, a, b)))
  const <- d * (a * log(b) - lgamma(a)) + sum(y * log(time) - lgamma(y + 1))
  f <- function(x) {
    Y <- by_row(y, nrow(x))
    with_gradient(
      const + rowSums((a - 1 + Y) * log(x) - (b + time) * x),
      (a - 1 + Y) / x - (b + time)
    )
  }
  model(
    sprintf("gamma_poisson_d%d", d), "bounded", judge,
    function() density_target(f, d, lower = 0),
    function() sum(dnbinom(y, a, b / (b + time), log = TRUE)), "closed form", d
  )
}

# p_j ~ beta(a, b), y_j ~ binomial(m, p_j)
shape_beta_binomial <- function(seed, d, a, b, m, judge) {
  y <- with_seed(seed, rbinom(d, m, rbeta(d, a, b)))
  const <- sum(lchoose(m, y) - lbeta(a, b))
  f <- function(x) {
    Y <- by_row(y, nrow(x))
    with_gradient(
      const + rowSums((a - 1 + Y) * log(x) + (b - 1 + m - Y) * log1p(-x)),
      (a - 1 + Y) / x - (b - 1 + m - Y) / (1 - x)
    )
  }
  model(
    sprintf("beta_binomial_d%d", d), "bounded", judge,
    function() density_target(f, d, lower = 0, upper = 1),
    function() sum(lchoose(m, y) + lbeta(a + y, b + m - y) - lbeta(a, b)),
    "closed form", d
  )
}

# Positive variables and cubes, with their bounds given (class bounded), or not, and the
# density 0 outside (class edged).
shape_exponential <- function(rate, d, class, judge) {
  shape_product(
    sprintf("%s_exponential_%g_d%d", class, rate, d), class, judge, d,
    function(x) ifelse(x < 0, -Inf, log(rate) - rate * x),
    function(x) ifelse(x < 0, 0, -rate),
    lower = if (class == "bounded") 0 else -Inf
  )
}

shape_half_normal <- function(sd, d, class, judge) {
  shape_product(
    sprintf("%s_half_normal_%g_d%d", class, sd, d), class, judge, d,
    function(x) ifelse(x < 0, -Inf, log(2) + dnorm(x, 0, sd, log = TRUE)),
    function(x) ifelse(x < 0, 0, -x / sd^2),
    lower = if (class == "bounded") 0 else -Inf
  )
}

shape_cube <- function(width, d, class, judge) {
  shape_product(
    sprintf("%s_cube_%g_d%d", class, width, d), class, judge, d,
    function(x) ifelse(x < 0 | x > width, -Inf, -log(width)),
    function(x) 0 * x,
    lower = if (class == "bounded") 0 else -Inf,
    upper = if (class == "bounded") width else Inf
  )
}

# hierarchies ------------------------------------------------------------------

shape_schools <- function(tau, centred, judge) {
  model(
    paste("schools", tau$text, if (centred) "centred" else "non_centred", sep = "_"),
    "hierarchy", judge,
    function() hierarchy_target(schools, 0, 5, tau, centred = centred),
    function() hierarchy_truth(schools, 0, 5, tau, lower = -40, upper = 40),
    "effects and mu integrated out, quadrature over log tau", 10
  )
}

shape_intercepts <- function(seed, groups, each, tau, centred, judge) {
  data <- with_seed(seed, {
    group <- rep(seq_len(groups), each)
    grouped(rnorm(groups * each, 2 + tau * rnorm(groups)[group], 1.5), group)
  })
  priors <- list(tau = half_cauchy_log(1), sigma = exponential_log(1))
  model(
    sprintf("intercepts_%d_%s", groups, if (centred) "centred" else "non_centred"),
    "hierarchy", judge,
    function() hierarchy_target(data, 0, 5, priors$tau, priors$sigma, centred),
    function() {
      hierarchy_truth(data, 0, 5, priors$tau, priors$sigma, c(-12, -1), c(3, 2))
    },
    "effects and mu integrated out, quadrature over log tau and log sigma", groups + 3
  )
}

# y_j ~ binomial(m, logit = mu + tau z_j), mu ~ N(0, 2^2), log tau ~ N(0, 1)
shape_logit_intercepts <- function(seed, groups, m, judge) {
  y <- with_seed(seed, rbinom(groups, m, plogis(-0.5 + rnorm(groups))))
  f <- function(x) {
    x <- unname(x)
    n <- nrow(x)
    z <- x[, -(1:2), drop = FALSE]
    tau <- exp(x[, 2])
    eta <- x[, 1] + tau * z
    Y <- by_row(y, n)
    value <- dnorm(x[, 1], 0, 2, log = TRUE) + dnorm(x[, 2], log = TRUE) +
      rowSums(dnorm(z, log = TRUE) + Y * eta - m * softplus(eta)) + sum(lchoose(m, y))
    by_eta <- Y - m * plogis(eta)
    with_gradient(value, cbind(
      rowSums(by_eta) - x[, 1] / 4, rowSums(by_eta * z) * tau - x[, 2], by_eta * tau - z
    ))
  }
  model(
    sprintf("logit_intercepts_%d", groups), "hierarchy", judge,
    function() {
      names <- c("mu", "log_tau", paste0("z", seq_len(groups)))
      density_target(f, groups + 2, names)
    },
    function() {
      z <- seq(-9, 9, by = 0.05)
      given <- function(mu, l) {
        eta <- outer(mu, exp(l) * z, `+`)
        each <- vapply(0:m, function(k) {
          lik <- dbinom(k, m, plogis(eta))
          log(drop(lik %*% dnorm(z)) * 0.05)
        }, double(length(mu)))
        drop(each %*% tabulate(y + 1, m + 1)) + dnorm(mu, 0, 2, log = TRUE) +
          dnorm(l, log = TRUE)
      }
      mu <- seq(-9, 8, length.out = 171)
      l <- seq(-7, 4, length.out = 111)
      log_sum_exp(vapply(l, function(l) given(mu, l), mu)) +
        log(mu[2] - mu[1]) + log(l[2] - l[1])
    },
    "quadrature of each effect, then over mu and log tau", groups + 2
  )
}

# Effects with a likelihood that is not normal, and a scale that may be next to 0: theta_j ~ N(mu, tau^2),
# mu ~ N(0, 2^2), tau ~ half-normal(0, 1), or uniform up to a bound, and one y_j of each: a Poisson count
# with the mean exp(theta_j), or a duration with that mean, exponentially distributed.
effect_families <- list(
  counts = list(
    draw = function(theta) rpois(length(theta), exp(theta)),
    log = function(y, theta) y * theta - exp(theta) - lgamma(y + 1),
    slope = function(y, theta) y - exp(theta)
  ),
  durations = list(
    draw = function(theta) rexp(length(theta), exp(-theta)),
    log = function(y, theta) -theta - y * exp(-theta),
    slope = function(y, theta) y * exp(-theta) - 1
  )
)

shape_effects <- function(seed, family, groups, tau, centred, judge, bound = Inf) {
  of_family <- effect_families[[family]]
  y <- with_seed(seed, of_family$draw(0.5 + tau * rnorm(groups)))
  # of the logarithm of tau, or its logit: tau, the slope of log tau, the log prior, and its slope
  scale_at <- if (bound < Inf) {
    function(t) {
      list(tau = bound * plogis(t), rate = plogis(-t), prior = dlogis(t, log = TRUE), slope = 1 - 2 * plogis(t))
    }
  } else {
    function(t) {
      list(tau = exp(t), rate = 1, prior = log(2) + dnorm(exp(t), log = TRUE) + t, slope = 1 - exp(2 * t))
    }
  }
  f <- function(x) {
    x <- unname(x)
    Y <- by_row(y, nrow(x))
    mu <- x[, 1]
    scale <- scale_at(x[, 2])
    tau <- scale$tau
    effects <- x[, -(1:2), drop = FALSE]
    z <- if (centred) (effects - mu) / tau else effects
    theta <- if (centred) effects else mu + tau * effects
    slope <- of_family$slope(Y, theta)
    value <- dnorm(mu, 0, 2, log = TRUE) + scale$prior +
      rowSums(of_family$log(Y, theta) + dnorm(z, log = TRUE))
    if (centred) {
      value <- value - groups * log(tau)
      by_scale <- scale$slope + scale$rate * (rowSums(z^2) - groups)
      with_gradient(value, cbind(-mu / 4 + rowSums(z) / tau, by_scale, slope - z / tau))
    } else {
      by_scale <- scale$slope + scale$rate * tau * rowSums(slope * z)
      with_gradient(value, cbind(-mu / 4 + rowSums(slope), by_scale, tau * slope - z))
    }
  }
  model(
    paste0(family, "_", groups, if (bound < Inf) "_bounded", if (centred) "_centred" else "_non_centred"),
    "hierarchy", judge,
    function() {
      names <- c("mu", "log_tau", paste0(if (centred) "theta" else "z", seq_len(groups)))
      density_target(f, groups + 2, names)
    },
    function() {
      z <- seq(-9, 9, by = 0.02)
      values <- unique(y)
      given <- function(mu, t) {
        scale <- scale_at(t)
        theta <- outer(mu, scale$tau * z, `+`)
        each <- vapply(values, function(v) {
          log(drop(exp(of_family$log(v, theta)) %*% dnorm(z)) * 0.02)
        }, double(length(mu)))
        drop(each %*% tabulate(match(y, values))) + dnorm(mu, 0, 2, log = TRUE) + scale$prior
      }
      mu <- seq(-1, 2, length.out = 121)
      t <- if (bound < Inf) seq(-16, 3, length.out = 229) else seq(-14, 1.5, length.out = 187)
      log_sum_exp(vapply(t, function(t) given(mu, t), mu)) +
        log(mu[2] - mu[1]) + log(t[2] - t[1])
    },
    "quadrature of each effect, then over mu and log tau", groups + 2
  )
}

# Counts of groups that differ in their intercept and slope, in proportion to tau1 and tau2, with a
# correlation tanh(r): y_gi ~ Poisson(exp(mu + u_g1 + u_g2 x_i)), u_g1 = tau1 z_g1, u_g2 = tau2 (tanh(r) z_g1
# + z_g2 / cosh(r)), z ~ N(0, I), mu ~ N(0, 2^2), tau ~ half-normal(0, 1), r ~ N(0, 0.7^2).
shape_mixed_effects <- function(seed, groups, tau, design, judge) {
  first <- 4 + seq_len(groups)
  second <- first + groups
  y <- with_seed(seed, {
    u1 <- tau[1] * rnorm(groups)
    u2 <- tau[2] * (0.4 * u1 / tau[1] + sqrt(1 - 0.4^2) * rnorm(groups))
    matrix(rpois(groups * length(design), exp(0.5 + u1 + outer(u2, design))), groups)
  })
  f <- function(x) {
    x <- unname(x)
    z1 <- x[, first, drop = FALSE]
    z2 <- x[, second, drop = FALSE]
    tau1 <- exp(x[, 1])
    tau2 <- exp(x[, 2])
    r <- x[, 3]
    u1 <- tau1 * z1
    u2 <- tau2 * (tanh(r) * z1 + z2 / cosh(r))
    f1 <- f2 <- 0 * z1
    mu <- x[, 4]
    value <- rowSums(dnorm(z1, log = TRUE) + dnorm(z2, log = TRUE)) + dnorm(r, 0, 0.7, log = TRUE) +
      dnorm(mu, 0, 2, log = TRUE) + 2 * log(2) + dnorm(tau1, log = TRUE) + dnorm(tau2, log = TRUE) + x[, 1] + x[, 2]
    for (i in seq_along(design)) {
      Y <- by_row(y[, i], nrow(x))
      eta <- mu + u1 + u2 * design[i]
      value <- value + rowSums(Y * eta - exp(eta) - lgamma(Y + 1))
      f1 <- f1 + Y - exp(eta)
      f2 <- f2 + (Y - exp(eta)) * design[i]
    }
    with_gradient(value, cbind(
      rowSums(f1 * u1) + 1 - tau1^2, rowSums(f2 * u2) + 1 - tau2^2,
      tau2 * rowSums(f2 * (z1 / cosh(r)^2 - z2 * tanh(r) / cosh(r))) - r / 0.7^2, rowSums(f1) - mu / 4,
      tau1 * f1 + tau2 * tanh(r) * f2 - z1, tau2 / cosh(r) * f2 - z2
    ))
  }
  model(
    sprintf("counts_%d_mixed", groups), "hierarchy", judge,
    function() {
      names <- c(
        "log_tau1", "log_tau2", "r", "mu", paste0("z1_", seq_len(groups)), paste0("z2_", seq_len(groups))
      )
      density_target(f, 4 + 2 * groups, names)
    },
    function() {
      step <- 0.45
      z <- expand.grid(z1 = seq(-5.4, 5.4, by = step), z2 = seq(-5.4, 5.4, by = step))
      log_weight <- dnorm(z$z1, log = TRUE) + dnorm(z$z2, log = TRUE) + 2 * log(step)
      given <- function(t1, t2, r, mu) {
        u2 <- exp(t2) * (tanh(r) * z$z1 + z$z2 / cosh(r))
        eta <- mu + exp(t1) * z$z1 + outer(u2, design)
        log_lik <- tcrossprod(eta, y) - rowSums(exp(eta)) + log_weight
        sum(log(colSums(exp(log_lik)))) - sum(lgamma(y + 1)) + dnorm(r, 0, 0.7, log = TRUE) +
          dnorm(mu, 0, 2, log = TRUE) + 2 * log(2) +
          dnorm(exp(t1), log = TRUE) + dnorm(exp(t2), log = TRUE) + t1 + t2
      }
      t <- seq(-8, 0.75, by = 0.25)
      grid <- expand.grid(t, t, seq(-2.8, 2.8, by = 0.35), seq(-0.6, 1.6, by = 0.11))
      log_sum_exp(do.call(mapply, c(list(given), unname(as.list(grid))))) +
        2 * log(0.25) + log(0.35) + log(0.11)
    },
    "quadrature of each group's effects, then over log tau, r and mu", 4 + 2 * groups
  )
}

# y ~ N(X beta, I), beta_j ~ N(0, (lambda_j tau)^2), lambda_j, tau ~ half-Cauchy, with
# X'X = n I, so that coefficients are independent given tau.
shape_horseshoe <- function(seed, n, beta, scale, centred, judge) {
  p <- length(beta)
  data <- with_seed(seed, {
    X <- sqrt(n) * qr.Q(qr(matrix(rnorm(n * p), n)))
    list(X = X, y = drop(X %*% beta) + rnorm(n))
  })
  b <- drop(crossprod(data$X, data$y)) / n
  # log N(y; X beta, I) = const - n |beta - b|^2 / 2
  const <- -n / 2 * log(2 * pi) - (sum(data$y^2) - n * sum(b^2)) / 2
  local <- half_cauchy_log(1)
  global <- half_cauchy_log(scale)
  f <- function(x) {
    x <- unname(x)
    N <- nrow(x)
    l <- x[, p + seq_len(p), drop = FALSE]
    t <- x[, 2 * p + 1]
    size <- exp(l + t)
    z <- x[, seq_len(p), drop = FALSE]
    if (centred) z <- z / size
    by_beta <- n * (by_row(b, N) - size * z)
    value <- const - rowSums((by_row(b, N) - size * z)^2) * n / 2 -
      rowSums(z^2) / 2 - p / 2 * log(2 * pi) + rowSums(local$log(l)) + global$log(t)
    if (centred) {
      value <- value - rowSums(l + t)
      by_log <- z^2 - 1
      by_first <- by_beta - z / size
    } else {
      by_log <- by_beta * z * size
      by_first <- by_beta * size - z
    }
    with_gradient(value, cbind(
      by_first, by_log + local$slope(l), rowSums(by_log) + global$slope(t)
    ))
  }
  model(
    sprintf("horseshoe_%s", if (centred) "centred" else "non_centred"),
    "hierarchy", judge,
    function() {
      names <- c(
        paste0(if (centred) "beta" else "z", seq_len(p)), paste0("log_lambda", seq_len(p)),
        "log_tau"
      )
      density_target(f, 2 * p + 1, names)
    },
    function() {
      given <- function(t) {
        sum(vapply(b, function(b) {
          log_integral(function(l) {
            v <- exp(2 * (l + t)) + 1 / n
            local$log(l) - b^2 / v / 2 - log(n * v) / 2
          }, -40, 40, 1601)
        }, 0)) + global$log(t)
      }
      const + log_integral(function(t) vapply(t, given, 0), -40, 40, 1601)
    },
    "coefficients integrated out, quadrature over each log lambda, then over log tau",
    2 * p + 1
  )
}

# Gaussian processes -------------------------------------------------------------

exponential_kernel <- function(d, range) exp(-abs(outer(1:d, 1:d, `-`)) / range)

# y_i ~ N(f_i, noise^2), f ~ GP, the latent values as they are.
shape_gp_latent <- function(seed, d, range, noise, judge) {
  K <- exponential_kernel(d, range)
  y <- with_seed(seed, drop(crossprod(chol(K), rnorm(d))) + noise * rnorm(d))
  model(
    sprintf("gp_latent_d%d", d), "process", judge,
    function() {
      prior <- normal_density(rep(0, d), solve(K))
      likelihood <- independent_normal_density(y, rep(noise, d))
      density_target(function(x) {
        a <- prior(x)
        b <- likelihood(x)
        with_gradient(
          as.double(a) + as.double(b), attr(a, "gradient") + attr(b, "gradient")
        )
      }, d)
    },
    function() log_normal(y, rep(0, d), K + noise^2 * diag(d)), "closed form", d
  )
}

# The same with log amplitude and log noise ~ N(0, 1), in the eigenvectors of the kernel;
# with the latent values integrated out, or whitened.
shape_gp_scales <- function(seed, n, range, latent, judge) {
  e <- eigen(exponential_kernel(n, range), symmetric = TRUE)
  w <- with_seed(seed, 2 * sqrt(e$values) * rnorm(n) + 0.5 * rnorm(n))
  integrated <- function(x) {
    N <- nrow(x)
    signal <- exp(2 * x[, 1]) * by_row(e$values, N)
    v <- signal + exp(2 * x[, 2])
    W <- by_row(w, N)
    by_v <- (W^2 / v - 1) / v
    with_gradient(
      -rowSums(W^2 / v + log(2 * pi * v)) / 2 + rowSums(dnorm(x, log = TRUE)),
      cbind(rowSums(by_v * signal), rowSums(by_v) * exp(2 * x[, 2])) - x
    )
  }
  whitened <- function(x) {
    x <- unname(x)
    N <- nrow(x)
    z <- x[, -(1:2), drop = FALSE]
    f <- exp(x[, 1]) * z * by_row(sqrt(e$values), N)
    r <- (by_row(w, N) - f) * exp(-x[, 2])
    by_f <- r * exp(-x[, 2])
    value <- -rowSums(r^2) / 2 - n * x[, 2] - n / 2 * log(2 * pi) +
      rowSums(dnorm(x, log = TRUE))
    slope <- cbind(
      rowSums(by_f * f), rowSums(r^2) - n,
      by_f * exp(x[, 1]) * by_row(sqrt(e$values), N)
    )
    with_gradient(value, slope - x)
  }
  d <- 2 + latent * n
  model(
    sprintf("gp_scales_%s_%d", if (latent) "whitened" else "integrated", n), "process",
    judge,
    function() {
      names <- c("log_amplitude", "log_noise", if (latent) paste0("z", seq_len(n)))
      density_target(if (latent) whitened else integrated, d, names)
    },
    function() {
      log_integral_2(
        function(a, s) as.double(integrated(cbind(a, s))), c(-6, -7), c(6, 5), 601
      )
    },
    "latent values integrated out, quadrature over both scales", d
  )
}

# the suite --------------------------------------------------------------------


shapes <- list(
  shape_place(10, 1, 3, choose),
  shape_place(30, 1, 30, judge),
  shape_place(200, 50, 30, choose),
  shape_place(100, 30, 10, judge),
  shape_place(1000, 0.1, 3, choose),
  shape_place(1e4, 1, 3, judge),
  shape_place(0, 300, 30, choose),
  shape_place(0, 1000, 3, judge),
  shape_place(0, 0.01, 3, choose),
  shape_place(0, 0.001, 30, judge),
  shape_place(3, 0.03, 30, choose),
  shape_place(5, 0.01, 3, judge),
  shape_condition(1e2, 20, FALSE, choose),
  shape_condition(1e4, 50, FALSE, judge),
  shape_condition(1e6, 20, FALSE, choose),
  shape_condition(1e2, 50, TRUE, judge),
  shape_condition(1e4, 20, TRUE, choose),
  shape_condition(1e6, 50, TRUE, judge),
  shape_equicorrelated(0.9, 50, choose),
  shape_equicorrelated(0.9, 100, judge),
  shape_ar(0.9, 100, choose),
  shape_ar(0.9, 50, judge),
  shape_ar(0.99, 50, choose),
  shape_ar(0.99, 100, judge),
  shape_dimension("half_d200", rep(0.5, 200), rep(1, 200), choose),
  shape_dimension("half_d500", rep(0.5, 500), rep(1, 500), judge),
  shape_dimension("scales_d100", rep(0, 100), 10^seq(-1, 1, length.out = 100), choose),
  shape_dimension("scales_d200", rep(0, 200), 10^seq(-2, 0, length.out = 200), judge),
  shape_regression("regression_raw_d4", choose, 1, 40, c(80, 3, -5, 10), 0, 8, 100),
  shape_regression("regression_raw_d5", judge, 2, 50, c(150, 10, -20, 5, 0), 0, 20, 100),
  shape_regression("regression_rho99_d20", choose, 3, 100, rep(1, 20), 0.99, 1, 2),
  shape_regression("regression_rho98_d12", judge, 4, 60, rep(c(2, -2), 6), 0.98, 0.5, 3),
  shape_regression(
    "regression_sigma_d5", choose, 5, 50, c(150, 12, -4, 8), 0, 15, 100,
    exponential_log(0.1)
  ),
  shape_regression(
    "regression_sigma_d4", judge, 6, 30, c(-40, 6, 2), 0, 4, 50, half_cauchy_log(5)
  ),
  shape_banana(1, 1, 2, choose),
  shape_banana(0.03, 10, 2, judge),
  shape_banana(0.1, 10, 2, choose),
  shape_banana(1, 3, 2, judge),
  shape_banana(0.5, 2, 2, choose),
  shape_banana(0.03, 10, 10, judge),
  shape_curve("bump", curve_bump, 0.1, 2, choose),
  shape_curve("bump", curve_bump, 0.2, 6, choose),
  shape_curve("power", curve_power, 0.2, 6, choose),
  shape_curve("saturating", curve_saturating, 0.1, 2, choose),
  shape_funnel(2, choose),
  shape_funnel(10, judge),
  shape_funnel(20, choose),
  shape_funnel(30, judge),
  shape_ring(5, 0.3, 2, choose),
  shape_ring(8, 0.5, 5, judge),
  shape_ring(6, 0.4, 3, choose),
  shape_t(1, 1, choose),
  shape_t(1, 5, judge),
  shape_t(2, 5, choose),
  shape_t(2, 20, judge),
  shape_t(5, 20, choose),
  shape_t(3, 2, judge),
  shape_product_t(3, 5, choose),
  shape_product_t(2, 10, judge),
  shape_contaminated(0.1, 5, 8, choose),
  shape_contaminated(0.05, 10, 3, judge),
  shape_contaminated(0.2, 4, 20, judge),
  shape_modes("two_6_apart", choose, rbind(c(-3, 0), c(3, 0))),
  shape_modes("two_10_apart", judge, rbind(c(-5, 0, 0), c(5, 0, 0))),
  shape_modes("two_20_apart", choose, rbind(c(-10, 0), c(10, 0))),
  shape_modes("two_0_and_10", judge, rbind(c(0, 0), c(10, 0))),
  shape_modes("two_0_and_8", choose, rbind(c(0, 0, 0), c(8, 0, 0))),
  shape_modes("two_unequal_10", judge, rbind(c(-5, 0), c(5, 0)), 1, c(0.9, 0.1)),
  shape_modes("two_unequal_6", choose, rbind(c(-3, 0), c(3, 0)), 1, c(0.8, 0.2)),
  shape_modes("three", judge, rbind(c(-6, 0), c(0, 5), c(6, 0))),
  shape_modes("six_on_circle_8", choose, on_circle(6, 8)),
  shape_modes("eight_on_circle_10", judge, on_circle(8, 10)),
  shape_modes("wide_narrow_d2", judge, rbind(c(-3, 0), c(3, 0)), c(1, 0.1)),
  shape_modes("wide_narrow_d3", choose, rbind(c(-2.5, 0, 0), c(2.5, 0, 0)), c(1, 0.2)),
  shape_labels("labels_2", choose, 11, 40, c(-2, 2)),
  shape_labels("labels_3", judge, 12, 60, c(-5, 0, 4)),
  shape_labels("labels_3_close", choose, 13, 90, c(-4, 0, 4)),
  shape_labels("labels_2_raw", judge, 14, 30, c(1, 7)),
  shape_log_gamma(2, 5, choose),
  shape_log_gamma(0.5, 10, judge),
  shape_skew_normal(5, 4, judge),
  shape_gumbel(2, 3, 3, choose),
  shape_gamma_poisson(21, 5, 2, 1, 3, choose),
  shape_gamma_poisson(22, 10, 1.5, 0.5, 1, judge),
  shape_beta_binomial(23, 10, 2, 3, 12, choose),
  shape_beta_binomial(24, 5, 1, 1, 20, judge),
  shape_half_normal(1, 3, "bounded", choose),
  shape_half_normal(20, 2, "bounded", judge),
  shape_exponential(1, 5, "bounded", choose),
  shape_exponential(0.1, 1, "bounded", judge),
  shape_cube(1, 2, "bounded", choose),
  shape_cube(10, 5, "bounded", judge),
  shape_exponential(1, 1, "edged", choose),
  shape_exponential(2, 5, "edged", judge),
  shape_half_normal(1, 3, "edged", choose),
  shape_cube(1, 2, "edged", judge),
  shape_schools(normal_log(1, 1), TRUE, choose),
  shape_schools(half_cauchy_log(5), TRUE, judge),
  shape_schools(normal_log(1, 1), FALSE, choose),
  shape_schools(half_cauchy_log(5), FALSE, judge),
  shape_intercepts(31, 20, 5, 0.8, TRUE, choose),
  shape_intercepts(32, 20, 4, 1.2, FALSE, judge),
  shape_intercepts(33, 80, 5, 0.7, FALSE, choose),
  shape_intercepts(34, 80, 6, 1, TRUE, judge),
  shape_logit_intercepts(35, 15, 10, choose),
  shape_logit_intercepts(36, 12, 6, judge),
  shape_effects(45, "counts", 60, 0.3, TRUE, choose),
  shape_effects(46, "counts", 50, 0.6, FALSE, choose),
  shape_effects(47, "counts", 100, 0.4, TRUE, judge),
  shape_effects(48, "counts", 70, 0.3, FALSE, judge),
  shape_effects(49, "durations", 55, 0.5, TRUE, judge),
  shape_effects(50, "counts", 55, 0.4, FALSE, choose, bound = 5),
  shape_effects(51, "counts", 65, 0.5, FALSE, judge, bound = 3),
  shape_effects(52, "durations", 45, 0.6, TRUE, judge, bound = 5),
  shape_mixed_effects(53, 30, c(0.5, 0.3), c(-1, 0.2, 1), choose),
  shape_mixed_effects(54, 40, c(0.4, 0.1), c(-1, 0.5), judge),
  shape_horseshoe(37, 20, c(0, 2, 0), 1, TRUE, judge),
  shape_horseshoe(38, 25, c(0, 0, 1.5), 0.5, FALSE, choose),
  shape_gp_latent(41, 50, 10, 0.5, judge),
  shape_gp_latent(42, 40, 5, 0.3, choose),
  shape_gp_scales(43, 30, 6, FALSE, choose),
  shape_gp_scales(44, 30, 8, TRUE, judge)
)
