# Models of known evidence with several modes, corners, angles, arms, flat sides and jumps. Half of them judge, as in
# shapes.R. See models.R for the blocks and suite.R for the runner.

quadrature <- "quadrature"

# As log_integral() and log_integral_2(), by the midpoints of intervals, where the density does not vanish at the ends.
log_midpoints <- function(f, lower, upper, n = 4000) {
  step <- (upper - lower) / n
  log_integral(f, lower + step / 2, upper - step / 2, n)
}

log_midpoints_2 <- function(f, lower, upper, n) {
  step <- (upper - lower) / n
  log_integral_2(f, lower + step / 2, upper - step / 2, n)
}

# A density of a few variables, each between two bounds.
boxed <- function(name, judge, f, lower, upper, truth, how = quadrature) {
  d <- length(lower)
  model(name, "several", judge, function() density_target(f, d, lower = lower, upper = upper), truth, how, d)
}

unbounded <- function(name, judge, f, d, truth, how = quadrature) {
  model(name, "several", judge, function() density_target(f, d), truth, how, d)
}

# copies by labels and signs -------------------------------------------------------

labels <- function(name, ...) label_mixture(name, "several", ..., n_steps = 18)

# All orders of 1, ..., k.
orders <- function(k) {
  if (k == 1) {
    return(matrix(1L))
  }
  before <- orders(k - 1)
  do.call(rbind, lapply(seq_len(k), function(i) cbind(i, matrix(setdiff(seq_len(k), i)[before], ncol = k - 1))))
}

# Loadings of p variables on k factors, normal around others, with all signs and orders of the factors.
factors <- function(name, judge, p, k, seed) {
  loadings <- with_seed(seed, matrix(rnorm(p * k, sd = 2), p))
  signs <- as.matrix(expand.grid(rep(list(c(-1, 1)), k)))
  order <- orders(k)
  means <- do.call(rbind, lapply(seq_len(nrow(order)), function(i) {
    t(apply(signs, 1, function(s) loadings[, order[i, ]] %*% diag(s)))
  }))
  n <- nrow(means)
  unbounded(name, judge, normal_mixture_density(means, rep(0.5, n), rep(1 / n, n)), p * k, zero, normalised)
}

# unequal modes --------------------------------------------------------------------

mixture <- function(name, judge, means, sd, weights) {
  unbounded(name, judge, normal_mixture_density(means, sd, weights / sum(weights)), ncol(means), zero, normalised)
}

scattered <- function(k, d, spread, seed) with_seed(seed, matrix(rnorm(k * d, sd = spread), k))

egg_box <- function(x) {
  a <- cos(x[, 1] / 2)
  b <- cos(x[, 2] / 2)
  slope <- -5 / 2 * (2 + a * b)^4 * cbind(sin(x[, 1] / 2) * b, a * sin(x[, 2] / 2))
  with_gradient((2 + a * b)^5 - 2 * log(10 * pi), slope)
}

himmelblau <- function(x) {
  a <- x[, 1]^2 + x[, 2] - 11
  b <- x[, 1] + x[, 2]^2 - 7
  with_gradient(-a^2 - b^2 - log(100), -2 * cbind(2 * a * x[, 1] + b, a + 2 * b * x[, 2]))
}

rastrigin <- function(name, judge, d) {
  f <- function(x) {
    value <- -rowSums(10 + x^2 - 10 * cos(2 * pi * x)) - d * log(10.24)
    with_gradient(value, -2 * x - 20 * pi * sin(2 * pi * x))
  }
  truth <- function() {
    one <- function(x) -(10 + x^2 - 10 * cos(2 * pi * x)) - log(10.24)
    d * log_midpoints(one, -5.12, 5.12, 1e5)
  }
  boxed(name, judge, f, rep(-5.12, d), rep(5.12, d), truth)
}

# y = sum_k b_k exp(-r_k t) + noise; b ~ N(0, 5^2), log r ~ N(0, 1.5^2).
two_exponentials <- function(name, judge, seed) {
  t <- seq(0.1, 4, length.out = 30)
  sigma <- 0.1
  y <- with_seed(seed, 2 * exp(-3 * t) + exp(-0.5 * t) + rnorm(30, sd = sigma))
  f <- function(x) {
    n <- nrow(x)
    off <- by_row(y, n)
    E <- lapply(1:2, function(k) exp(-outer(exp(x[, 2 + k]), t)))
    for (k in 1:2) off <- off - x[, k] * E[[k]]
    value <- rowSums(dnorm(off, 0, sigma, log = TRUE)) + rowSums(dnorm(x[, 1:2, drop = FALSE], 0, 5, log = TRUE)) +
      rowSums(dnorm(x[, 3:4, drop = FALSE], 0, 1.5, log = TRUE))
    by_b <- vapply(1:2, function(k) rowSums(off * E[[k]]) / sigma^2, double(n))
    by_r <- vapply(1:2, function(k) {
      -rowSums(off * E[[k]] * by_row(t, n)) * x[, k] * exp(x[, 2 + k]) / sigma^2
    }, double(n))
    by_b <- matrix(by_b, n) - x[, 1:2] / 25
    with_gradient(value, cbind(by_b, matrix(by_r, n) - x[, 3:4] / 2.25))
  }
  # coefficients integrated out
  truth <- function() {
    l <- seq(-6, 6, length.out = 601)
    E <- exp(-outer(exp(l), t))
    value <- matrix(-Inf, length(l), length(l))
    for (i in seq_along(l)) {
      for (j in seq_len(i)) {
        X <- E[c(i, j), ]
        # Woodbury's formula
        A <- diag(2) / 25 + tcrossprod(X) / sigma^2
        Xy <- X %*% y / sigma^2
        value[i, j] <- value[j, i] <- -sum(y^2) / sigma^2 / 2 + sum(Xy * solve(A, Xy)) / 2 -
          log(det(A)) / 2 - log(25) - 30 * log(sigma * sqrt(2 * pi)) + sum(dnorm(l[c(i, j)], 0, 1.5, log = TRUE))
      }
    }
    log_sum_exp(value) + 2 * log(l[2] - l[1])
  }
  unbounded(name, judge, f, 4, truth, "coefficients integrated out, quadrature")
}

# y = a cos(w t) + b sin(w t) + noise at few t; a, b ~ N(0, 1), w uniform: many frequencies are possible. Or with
# amplitude and phase in the place of a and b.
frequency <- function(name, judge, seed, polar) {
  t <- with_seed(seed, sort(runif(12, 0, 20)))
  sigma <- 0.7
  y <- with_seed(seed + 1, cos(2 * t + 1) + rnorm(12, sd = sigma))
  lower <- 0.5
  upper <- 6
  cartesian <- function(a, b, w) {
    n <- length(w)
    C <- cos(outer(w, t))
    S <- sin(outer(w, t))
    off <- by_row(y, n) - a * C - b * S
    list(
      value = rowSums(dnorm(off, 0, sigma, log = TRUE)) + dnorm(a, log = TRUE) + dnorm(b, log = TRUE) -
        log(upper - lower),
      slope = cbind(
        rowSums(off * C) / sigma^2 - a, rowSums(off * S) / sigma^2 - b,
        rowSums(off * by_row(t, n) * (b * C - a * S)) / sigma^2
      )
    )
  }
  f <- if (polar) {
    function(x) {
      r <- x[, 1]
      at <- cartesian(r * cos(x[, 2]), r * sin(x[, 2]), x[, 3])
      s <- at$slope
      with_gradient(at$value + log(r), cbind(
        s[, 1] * cos(x[, 2]) + s[, 2] * sin(x[, 2]) + 1 / r,
        r * (s[, 2] * cos(x[, 2]) - s[, 1] * sin(x[, 2])), s[, 3]
      ))
    }
  } else {
    function(x) {
      at <- cartesian(x[, 1], x[, 2], x[, 3])
      with_gradient(at$value, at$slope)
    }
  }
  truth <- function() {
    one <- function(w) {
      vapply(w, function(w) {
        X <- cbind(cos(w * t), sin(w * t))
        log_normal(y, rep(0, 12), tcrossprod(X) + sigma^2 * diag(12))
      }, 0)
    }
    log_midpoints(one, lower, upper, 20000) - log(upper - lower)
  }
  bounds <- if (polar) list(c(0, 0, lower), c(Inf, 2 * pi, upper)) else list(c(-Inf, -Inf, lower), c(Inf, Inf, upper))
  boxed(name, judge, f, bounds[[1]], bounds[[2]], truth, "coefficients integrated out, quadrature")
}

# A log gamma and a normal mode in each of the first two variables (Beaujean and Caldwell 2013), each of the others log
# gamma or normal.
log_gammas <- function(name, judge, d) {
  log_gamma <- function(x, at) list(log = x - at - exp(x - at), slope = 1 - exp(x - at))
  normal <- function(x, at) list(log = dnorm(x, at, 1, log = TRUE), slope = at - x)
  two <- function(part) {
    function(x) {
      a <- part(x, -10)
      b <- part(x, 10)
      value <- pmax(a$log, b$log) + log1p(exp(-abs(a$log - b$log)))
      list(log = value - log(2), slope = exp(a$log - value) * a$slope + exp(b$log - value) * b$slope)
    }
  }
  parts <- c(list(two(log_gamma), two(normal)), rep(
    list(function(x) log_gamma(x, 10), function(x) normal(x, 10)), length.out = d - 2
  ))
  f <- function(x) {
    each <- lapply(seq_len(d), function(j) parts[[j]](x[, j]))
    with_gradient(Reduce(`+`, lapply(each, `[[`, "log")), do.call(cbind, lapply(each, `[[`, "slope")))
  }
  boxed(name, judge, f, rep(-30, d), rep(30, d), zero, normalised)
}

# Two shells of radius 2 and width 0.1 in a box (Feroz and others 2009).
shells <- function(name, judge, d) {
  centres <- rbind(c(-3.5, rep(0, d - 1)), c(3.5, rep(0, d - 1)))
  f <- function(x) {
    each <- lapply(1:2, function(k) {
      u <- x - by_row(centres[k, ], nrow(x))
      r <- sqrt(rowSums(u^2))
      list(log = dnorm(r, 2, 0.1, log = TRUE), slope = -(r - 2) / 0.01 * u / r)
    })
    value <- pmax(each[[1]]$log, each[[2]]$log) + log1p(exp(-abs(each[[1]]$log - each[[2]]$log)))
    slope <- exp(each[[1]]$log - value) * each[[1]]$slope + exp(each[[2]]$log - value) * each[[2]]$slope
    with_gradient(value - d * log(12), slope)
  }
  truth <- function() {
    radius <- function(r) dnorm(r, 2, 0.1, log = TRUE) + (d - 1) * log(r)
    log_integral(radius, 1, 3) + log(2) + d / 2 * log(pi) + log(2) - lgamma(d / 2) - d * log(12)
  }
  boxed(name, judge, f, rep(-6, d), rep(6, d), truth, "quadrature over the radius")
}

# angles -----------------------------------------------------------------------------

sum_of_angles <- function(name, judge, k) {
  f <- function(x) {
    slope <- -k * sin(x[, 1] + x[, 2] - 1)
    with_gradient(k * cos(x[, 1] + x[, 2] - 1) - 2 * log(2 * pi), cbind(slope, slope))
  }
  boxed(name, judge, f, c(0, 0), rep(2 * pi, 2), function() log(besselI(k, 0, TRUE)) + k, "closed form")
}

# An orbit of small eccentricity e: known are e cos(w), e sin(w), and the sum of the angles w and m.
eccentricity <- function(name, judge, k) {
  of_e <- function(e, w) dnorm(e * cos(w), 0.03, 0.04, log = TRUE) + dnorm(e * sin(w), -0.02, 0.04, log = TRUE)
  f <- function(x) {
    e <- x[, 1]
    w <- x[, 2]
    off <- cbind(0.03 - e * cos(w), -0.02 - e * sin(w)) / 0.04^2
    of_sum <- -k * sin(w + x[, 3] - 1)
    value <- of_e(e, w) + k * cos(w + x[, 3] - 1) - 2 * log(2 * pi)
    with_gradient(value, cbind(
      off[, 1] * cos(w) + off[, 2] * sin(w), e * (off[, 2] * cos(w) - off[, 1] * sin(w)) + of_sum, of_sum
    ))
  }
  truth <- function() {
    log_midpoints_2(function(e, w) of_e(e, w) - log(2 * pi), c(0, 0), c(1, 2 * pi), 2000) + log(besselI(k, 0, TRUE)) + k
  }
  boxed(name, judge, f, c(0, 0, 0), c(1, 2 * pi, 2 * pi), truth)
}

# corners, arms, flat sides, bends -------------------------------------------------------

# Dirichlet(a) on n parts, and a likelihood that is linear in them.
sparse_simplex <- function(name, judge, n, a, likelihood) {
  constant <- lgamma(n * a) - n * lgamma(a)
  f <- function(x) {
    l <- drop(x %*% likelihood)
    with_gradient(constant + (a - 1) * rowSums(log(x)) + log(l), (a - 1) / x + outer(1 / l, likelihood))
  }
  model(
    name, "several", judge,
    function() {
      autosmc::target_function(
        f, n,
        vectorized = TRUE, names = sprintf("w[%d]", seq_len(n)), types = list(w = "simplex")
      )
    },
    function() log(mean(likelihood)), "closed form", n
  )
}

change_point_likelihood <- function(n, seed) {
  y <- with_seed(seed, rnorm(n, rep(c(0, 1), c(ceiling(n / 3), n - ceiling(n / 3)))))
  logs <- vapply(seq_len(n), function(k) sum(dnorm(y, rep(c(0, 1), c(k, n - k)), log = TRUE)), 0)
  exp(logs - max(logs))
}

# y ~ w N(m_1, 1) + (1 - w) N(m_2, 1); w uniform, m ~ N(0, 5^2): one of the two may be empty.
weights_near_an_end <- function(name, judge, n, away, seed) {
  y <- with_seed(seed, rnorm(n, rep(c(0, 3), c(n - away, away))))
  f <- function(x) {
    rows <- nrow(x)
    a <- dnorm(by_row(y, rows), x[, 1])
    b <- dnorm(by_row(y, rows), x[, 2])
    all <- x[, 3] * a + (1 - x[, 3]) * b
    slope <- cbind(
      rowSums(x[, 3] * a / all * (by_row(y, rows) - x[, 1])) - x[, 1] / 25,
      rowSums((1 - x[, 3]) * b / all * (by_row(y, rows) - x[, 2])) - x[, 2] / 25,
      rowSums((a - b) / all)
    )
    with_gradient(rowSums(log(all)) + rowSums(dnorm(x[, 1:2, drop = FALSE], 0, 5, log = TRUE)), slope)
  }
  # of the weight the likelihood is a polynomial
  truth <- function() {
    nodes <- gauss_legendre(ceiling((n + 1) / 2))
    m <- seq(-30, 30, length.out = 601)
    D <- outer(m, y, function(m, y) dnorm(y, m))
    grid <- expand.grid(i = seq_along(m), j = seq_along(m))
    value <- vapply(seq_along(nodes$x), function(k) {
      w <- nodes$x[k]
      log_parts <- 0
      for (l in seq_len(n)) log_parts <- log_parts + log(w * D[grid$i, l] + (1 - w) * D[grid$j, l])
      log_sum_exp(log_parts + dnorm(m[grid$i], 0, 5, log = TRUE) + dnorm(m[grid$j], 0, 5, log = TRUE)) + log(nodes$w[k])
    }, 0)
    log_sum_exp(value) + 2 * log(m[2] - m[1])
  }
  boxed(name, judge, f, c(-Inf, -Inf, 0), c(Inf, Inf, 1), truth)
}

# Nodes and weights on (0, 1), by Golub and Welsch.
gauss_legendre <- function(n) {
  k <- seq_len(n - 1)
  J <- matrix(0, n, n)
  J[cbind(k, k + 1)] <- J[cbind(k + 1, k)] <- k / sqrt(4 * k^2 - 1)
  e <- eigen(J, symmetric = TRUE)
  list(x = (e$values + 1) / 2, w = e$vectors[1, ]^2)
}

rosenbrock <- function(name, judge, d) {
  f <- function(x) {
    now <- x[, -d, drop = FALSE]
    bend <- x[, -1, drop = FALSE] - now^2
    slope <- cbind(400 * bend * now + 2 * (1 - now), 0) - cbind(0, 200 * bend)
    with_gradient(-100 * rowSums(bend^2) - rowSums((1 - now)^2) - d * log(10), slope)
  }
  # one variable after the other
  truth <- function() {
    x <- seq(-5, 5, length.out = 4001)
    left <- numeric(length(x))
    for (k in seq_len(d - 1)) {
      top <- max(left - (1 - x)^2)
      now <- exp(left - (1 - x)^2 - top)
      left <- top + log(drop(now %*% exp(-100 * outer(x^2, x, "-")^2)) * (x[2] - x[1]))
    }
    log_sum_exp(left) + log(x[2] - x[1]) - d * log(10)
  }
  boxed(name, judge, f, rep(-5, d), rep(5, d), truth)
}

# Normal variables and one that is nearly uniform on (0, 1).
flat_beside <- function(name, judge, d, pull) {
  normal <- normal_density(rep(1, d), solve(0.5 + 0.5 * diag(d)))
  f <- function(x) {
    of_normal <- normal(x[, seq_len(d), drop = FALSE])
    u <- x[, d + 1]
    value <- as.double(of_normal) + pull * u * x[, 1] - pull * u - pull^2 * u^2 / 2
    slope <- cbind(attr(of_normal, "gradient"), pull * x[, 1] - pull - pull^2 * u)
    slope[, 1] <- slope[, 1] + pull * u
    with_gradient(value, slope)
  }
  boxed(name, judge, f, c(rep(-Inf, d), 0), c(rep(Inf, d), 1), zero, normalised)
}

uniform_square <- function(x) with_gradient(rep(0, nrow(x)), 0 * x)

# In each direction the inverse of the distance, but for a small square.
peak <- function(x) {
  size <- pmax(abs(x), 1e-8)
  with_gradient(-rowSums(log(size)), ifelse(abs(x) > 1e-8, -1 / x, 0))
}

# jumps ------------------------------------------------------------------------------------

# Heights of a staircase times a normal density.
staircase <- function(name, judge, d, jump) {
  f <- function(x) with_gradient(rowSums(dnorm(x, log = TRUE)) + jump * rowSums(x > 0.5), -x)
  unbounded(name, judge, f, d, function() d * log(pnorm(0.5) + exp(jump) * pnorm(-0.5)), "closed form")
}

# Counts whose rate changes at some time, log rates ~ gamma; time uniform.
change_of_rate <- function(name, judge, seed) {
  at <- with_seed(seed, sort(c(runif(40, 0, 40), runif(15, 40, 100))))
  f <- function(x) {
    n <- nrow(x)
    before <- rowSums(outer(x[, 3], at, ">"))
    rate <- x[, 1:2, drop = FALSE]
    k <- cbind(before, length(at) - before)
    time <- cbind(x[, 3], 100 - x[, 3])
    with_gradient(
      rowSums(k * log(rate) - rate * time + dgamma(rate, 2, 1, log = TRUE)) - log(100),
      cbind(k / rate - time + 1 / rate - 1, rate[, 2] - rate[, 1])
    )
  }
  truth <- function() {
    part <- function(k, time) lgamma(k + 2) - (k + 2) * log(time + 1)
    ends <- c(0, at, 100)
    logs <- vapply(seq_len(length(ends) - 1), function(i) {
      log_integral(function(s) part(i - 1, s) + part(length(at) - i + 1, 100 - s), ends[i], ends[i + 1], 2000)
    }, 0)
    log_sum_exp(logs) - log(100)
  }
  boxed(name, judge, f, c(0, 0, 0), c(Inf, Inf, 100), truth)
}

several <- list(
  labels("labels_4", judge, 21, 80, c(-9, -3, 3, 9)),
  labels("labels_5", choose, 22, 100, c(-12, -6, 0, 6, 12)),
  factors("factors_2", judge, 6, 2, 23),
  factors("factors_3", choose, 5, 3, 24),
  mixture("unequal_d10", judge, scattered(5, 10, 4, 25), c(0.7, 0.85, 1, 1.2, 1.4), rep(1, 5)),
  mixture("unequal_d4", choose, scattered(4, 4, 5, 26), c(0.4, 0.6, 0.8, 1), c(1, 2, 3, 4)),
  mixture("beside_wider_d10", choose, rbind(rep(0, 10), rep(2, 10)), c(1, 10), c(1, 1)),
  mixture("beside_wider_d5", judge, rbind(rep(0, 5), rep(3, 5)), c(0.5, 8), c(1, 1)),
  two_exponentials("two_exponentials", judge, 27),
  boxed("egg_box", choose, egg_box, c(0, 0), rep(10 * pi, 2), function() {
    log_midpoints_2(function(x, y) as.double(egg_box(cbind(x, y))), c(0, 0), rep(10 * pi, 2), 4000)
  }),
  boxed("himmelblau", judge, himmelblau, c(-5, -5), c(5, 5), function() {
    log_integral_2(function(x, y) as.double(himmelblau(cbind(x, y))), c(-5, -5), c(5, 5), 2000)
  }),
  rastrigin("rastrigin_2", judge, 2),
  rastrigin("rastrigin_5", choose, 5),
  frequency("aliases", judge, 28, polar = FALSE),
  frequency("aliases_polar", choose, 30, polar = TRUE),
  log_gammas("log_gammas_2", choose, 2),
  log_gammas("log_gammas_10", judge, 10),
  shells("shells_2", judge, 2),
  shells("shells_5", choose, 5),
  sum_of_angles("angles_50", choose, 50),
  sum_of_angles("angles_500", judge, 500),
  eccentricity("eccentricity", judge, 200),
  sparse_simplex("dirichlet_29", choose, 29, 0.01, rep(1, 29)),
  sparse_simplex("dirichlet_29_change", judge, 29, 0.01, change_point_likelihood(29, 31)),
  weights_near_an_end("weights_near_an_end", judge, 48, 3, 32),
  rosenbrock("rosenbrock_2", choose, 2),
  rosenbrock("rosenbrock_4", judge, 4),
  rosenbrock("rosenbrock_10", choose, 10),
  flat_beside("flat_beside_4", judge, 4, 0.3),
  boxed("uniform_square", choose, uniform_square, c(0, 0), c(1, 1), zero, normalised),
  boxed("peak", judge, peak, c(-1, -1), c(1, 1), function() 2 * log(2 * (1 - log(1e-8))), "closed form"),
  staircase("staircase_3", choose, 3, 2),
  change_of_rate("change_of_rate", judge, 33)
)
