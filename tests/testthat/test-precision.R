# Coordinates that are normal given others: how they are found, and what smc() makes of them.

# Effects of two groups, two each, with unknown scales and correlation, and a mean of their own that
# is normal, all given t = (log tau_1, log tau_2, atanh rho), which is normal, too: x = (t, mu, u). The
# precision is that of the effects and of data; its logarithmic determinant is known, so that the
# evidence is 1.
p <- 5
design <- rbind(c(1, 1, 0, 0, 0), c(1, 1, 0.5, 0, 0), c(1, 1, -1, 0, 0), c(1, 0, 0, 1, 0.3), c(1, 0, 0, 1, 2))
of_data <- crossprod(design) + diag(c(1, 0, 0, 0, 0))
towards <- drop(crossprod(design, c(1, -0.5, 2, 0.3, 1)))

# Of the precision of a group's two effects, given t: itself, and its derivatives by t.
of_pair <- function(t) {
  scales <- tcrossprod(exp(-t[1:2]))
  own <- cosh(t[3])^2
  shared <- -sinh(2 * t[3]) / 2
  pair <- rbind(c(own, shared), c(shared, own)) * scales
  slope <- c(sinh(2 * t[3]), -cosh(2 * t[3]))
  list(
    pair = pair,
    slopes = list(
      pair * rbind(c(-2, -1), c(-1, 0)), pair * rbind(c(0, -1), c(-1, -2)),
      rbind(slope, rev(slope)) * scales
    )
  )
}

log_hierarchy <- function(x) {
  out <- apply(x, 1, function(row) {
    t <- row[1:3]
    u <- row[-(1:3)]
    effects <- of_pair(t)
    Q <- of_data
    Q[2:3, 2:3] <- Q[2:3, 2:3] + effects$pair
    Q[4:5, 4:5] <- Q[4:5, 4:5] + effects$pair
    if (!all(is.finite(Q)) || rcond(Q) < 1e-14) {
      return(c(-Inf, 0 * row))
    }
    covariance <- solve(Q)
    m <- drop(covariance %*% towards)
    by_entry <- covariance - tcrossprod(u) + tcrossprod(m)
    by_pair <- by_entry[2:3, 2:3] + by_entry[4:5, 4:5]
    slopes <- vapply(effects$slopes, function(slope) sum(slope * by_pair) / 2, 0)
    value <- sum(dnorm(t, c(-0.5, 0, 0.3), c(0.6, 0.5, 0.7), log = TRUE)) - p / 2 * log(2 * pi) +
      as.numeric(determinant(Q)$modulus) / 2 - sum((u - m) * (Q %*% (u - m))) / 2
    c(value, slopes - (t - c(-0.5, 0, 0.3)) / c(0.6, 0.5, 0.7)^2, towards - Q %*% u)
  })
  structure(out[1, ], gradient = t(out[-1, , drop = FALSE]))
}

set.seed(4)
x <- matrix(rnorm(100 * (3 + p)), 100)

test_that("what is normal given what is found, and the precision exactly, also where no point has been", {
  found <- shape_of_draws(x, log_hierarchy)
  expect_identical(found$gain, Inf)
  expect_identical(found$reference$changes[[1]]$given, 1:3)
  expect_setequal(found$reference$changes[[1]]$order, 3 + seq_len(p))
  far <- sweep(matrix(rnorm(180), 60), 2, c(3, -2, 2), "+")
  expect_lt(spread_given(1:3, found$reference, log_hierarchy, 3 + p, far), 1e-6)
})

test_that("a single term of several coordinates is found", {
  log_scale <- function(x) {
    log_q <- 2 * x[, 1] - x[, 2]
    square <- exp(log_q) * rowSums(x[, 3:4, drop = FALSE]^2)
    value <- -rowSums(x[, 1:2, drop = FALSE]^2) / 2 + log_q - square / 2
    slope <- 1 - square / 2
    structure(value, gradient = cbind(
      2 * slope - x[, 1], -slope - x[, 2], -exp(log_q) * x[, 3:4, drop = FALSE]
    ))
  }
  found <- shape_of_draws(x[, 1:4], log_scale)$reference
  expect_identical(found$changes[[1]]$given, 1:2)
  expect_lt(spread_given(1:2, found, log_scale, 4, matrix(rnorm(100, 0, 4), 50)), 1e-6)
})

test_that("nothing is found where nothing is normal given what is found", {
  with_gradient <- function(value, gradient) structure(value, gradient = gradient)
  normal <- function(x) with_gradient(-rowSums(x^2) / 2, -x)
  heavy <- function(x) with_gradient(-3 * log1p(rowSums(x^2) / 2), -3 * x / (1 + rowSums(x^2) / 2))
  quartic <- function(x) with_gradient(-rowSums(x^4), -4 * x^3)
  impossible <- function(x) with_gradient(ifelse(x[, 1] > 0.2, -Inf, -rowSums(x^2)), -2 * x)
  # gradients that do not change, or are 0
  even <- function(x) with_gradient(-rowSums(x), 0 * x - 1)
  flat <- function(x) with_gradient(0 * x[, 1], 0 * x)
  for (density in list(normal, heavy, quartic, impossible, even, flat)) {
    expect_length(shape_of_draws(x, density)$reference$changes, 0)
  }
  expect_length(shape_of_draws(x[, 1, drop = FALSE], normal)$reference$changes, 0)
})

# Given t there are three pairs of effects u with N(0, 1) priors; data are normal around u_1 and a(t) u_1 + b(t) u_2.
data_of_pairs <- c(1.2, -0.4, 0.8, 2, -1.1, 0.3)
log_pairs <- function(a, slope_of_a, b, slope_of_b) {
  function(x) {
    t <- x[, 1]
    first <- x[, 2:4, drop = FALSE]
    second <- x[, 5:7, drop = FALSE]
    off <- rep(data_of_pairs[1:3], each = nrow(x)) - first
    off_mixed <- rep(data_of_pairs[4:6], each = nrow(x)) - a(t) * first - b(t) * second
    by_t <- rowSums(off_mixed * (slope_of_a(t) * first + slope_of_b(t) * second)) - t
    structure(
      -rowSums(x^2) / 2 - rowSums(off^2 + off_mixed^2) / 2,
      gradient = unname(cbind(by_t, off + a(t) * off_mixed - first, b(t) * off_mixed - second))
    )
  }
}

test_that("functions of a coordinate are told, so that the precision is exact far from all draws", {
  none <- function(t) 0 * t
  log_of <- list(
    scale = log_pairs(none, none, exp, exp),
    coefficient = log_pairs(none, none, identity, function(t) 1 + 0 * t),
    correlation = log_pairs(tanh, function(t) 1 / cosh(t)^2, function(t) 1 / cosh(t), function(t) -tanh(t) / cosh(t)),
    # another correlation, t / sqrt(1 + t^2)
    root = log_pairs(
      function(t) t / sqrt(1 + t^2), function(t) (1 + t^2)^-1.5,
      function(t) 1 / sqrt(1 + t^2), function(t) -t * (1 + t^2)^-1.5
    ),
    # effects with a scale that is uniform between two bounds
    uniform = function(x) {
      u <- x[, -1, drop = FALSE]
      scale <- plogis(x[, 1])
      by_t <- -x[, 1] + (rowSums(u^2) / scale^2 - 6) * (1 - scale)
      structure(
        -x[, 1]^2 / 2 - 6 * log(scale) - rowSums(u^2) / scale^2 / 2,
        gradient = unname(cbind(by_t, -u / scale^2))
      )
    }
  )
  draws <- matrix(rnorm(700), 100)
  for (log_density in log_of) {
    found <- shape_of_draws(draws, log_density)
    expect_identical(found$gain, Inf)
    expect_identical(found$reference$changes[[1]]$given, 1L)
    expect_lt(spread_given(1, found$reference, log_density, 7, cbind(rep(c(-5, 5), 30))), 1e-6)
  }
  # no sum of the functions that are tried
  odd <- shape_of_draws(draws, log_pairs(none, none, sin, cos))
  expect_false(isTRUE(odd$gain == Inf))
})

test_that("a sum of positive terms is right wherever it is asked for", {
  funnel <- function(x) {
    u <- x[, -1, drop = FALSE]
    by_t <- -x[, 1] + rowSums(u^2 * exp(-2 * x[, 1]) - 1)
    structure(
      -x[, 1]^2 / 2 - rowSums(u^2) * exp(-2 * x[, 1]) / 2 - ncol(u) * x[, 1],
      gradient = unname(cbind(by_t, -u * exp(-2 * x[, 1])))
    )
  }
  found <- shape_of_draws(matrix(rnorm(300), 100), funnel)$reference
  expect_identical(found$changes[[1]]$given, 1L)
  expect_lt(spread_given(1, found, funnel, 3, cbind(rep(c(-30, 30), 30))), 1e-6)
})

test_that("a sparse precision takes few differences, and its factor hardly more entries", {
  n <- 12L
  arrow <- diag(n) > 0
  arrow[, 1] <- arrow[1, ] <- TRUE
  colours <- internal("colours_of")(arrow)
  expect_identical(max(colours$colour), 2L)
  expect_identical(which(colours$alone), 1L)
  expect_identical(sum(internal("elimination")(arrow)$entries > 0), 2L * n - 1L)
  expect_identical(max(internal("colours_of")(diag(n) > 0)$colour), 1L)
  full <- matrix(TRUE, n, n)
  expect_identical(max(internal("colours_of")(full)$colour), n)
  expect_identical(internal("elimination")(full)$order, seq_len(n))
  cycle <- diag(n) > 0
  cycle[cbind(seq_len(n), c(2:n, 1))] <- TRUE
  filled <- internal("elimination")(cycle | t(cycle))$entries > 0
  expect_identical(sum(filled), 2L * n + n - 3L) # n - 3 are filled, whatever the order
})

test_that("what is left of a precision is known, and where it is none", {
  # an effect of scale exp(t) and its mean, each observed with error 1
  change <- list(
    name = "precision", given = 1, order = 2:3, entries = rbind(c(1, 0), c(2, 3)), least = c(1e-3, 1e-3),
    factors = array(c(-2, numeric(9)), c(5, 1, 2)),
    precision = rbind(c(1, 1), c(-1, 0), c(1, 1)), pull = matrix(0, 2, 2)
  )
  t <- c(-3, 0, 3)
  q <- exp(-2 * t)
  left <- internal("part_left")(change, cbind(t, 7, 7))
  expect_equal(left, 1 - q^2 / (1 + q)^2)
  # 1 beside exp(60) is rounding; exponentials end; and D is at its bound
  expect_lt(internal("part_left")(change, cbind(-30, 7, 7)), 1e-15)
  expect_identical(internal("part_left")(change, cbind(c(-290, -400), 7, 7)), c(0, 0))
  change$least[2] <- 2
  expect_identical(internal("part_left")(change, cbind(3, 7, 7)), 0)
})

test_that("smc() has the evidence of effects with an unknown correlation, and counts what it asks", {
  n_asked <- 0
  counted <- function(x) {
    n_asked <<- n_asked + nrow(x)
    log_hierarchy(x)
  }
  target <- target_function(counted, 3 + p, vectorized = TRUE)
  # where the scout's best basin is, and without a scout
  for (is_scouted in c(TRUE, FALSE)) {
    n_asked <- 0
    fit <- calmly(smc(target, n_particles = 256, islands = 8, scout = is_scouted, seed = 1))
    expect_equal(sum(fit$runs$n_target_evals), n_asked)
    # what the scout has found need not be looked for again
    expect_identical("probe" %in% fit$runs$run, !is_scouted)
    expect_match(fit$maps, "5 variables \\(x4, x5, x6, ...\\) are normal given x1, x2, x3", all = FALSE)
    expect_log_z(fit, 0)
  }
})

test_that("hundreds of effects with an unknown scale are found, up to a limit", {
  # effects u of scale exp(t), each observed once with error 1; t is normal, too
  d <- 301
  y <- seq(-3, 3, length.out = d - 1)
  precision <- function(x) 1 + exp(-2 * x[, 1])
  log_effects <- function(x) {
    q <- precision(x)
    u <- x[, -1, drop = FALSE]
    centred <- u - outer(1 / q, y)
    value <- -x[, 1]^2 / 0.18 + (d - 1) / 2 * log(q) - q * rowSums(centred^2) / 2
    by_q <- (d - 1) / (2 * q) - rowSums(u^2) / 2 + sum(y^2) / (2 * q^2)
    structure(value, gradient = cbind(
      -2 * exp(-2 * x[, 1]) * by_q - x[, 1] / 0.09, -q * centred,
      deparse.level = 0
    ))
  }
  set.seed(6)
  n <- 400
  x <- cbind(rnorm(n, 0, 0.3), 0)
  q <- precision(x)
  x <- cbind(x[, 1], outer(1 / q, y) + matrix(rnorm(n * (d - 1)), n) / sqrt(q))
  shape <- function() shape_of_draws(x, log_effects)
  found <- shape()
  expect_identical(found$gain, Inf)
  expect_identical(found$reference$changes[[1]]$given, 1L)
  expect_setequal(found$reference$changes[[1]]$order, 2:d)
  fewer <- internal("rules")
  fewer$largest_exact <- d - 1
  skewed <- with_internals(list(rules = fewer), shape())
  expect_null(skewed$reference$changes)
  expect_null(skewed$reference$fitted_to) # nor is it taken for the target
  expect_lt(skewed$gain, Inf)
})

# without a gradient --------------------------------------------------------------

# A line through points that are not known themselves, with errors in both directions. Given its slope
# b and the logarithms s and t of two scales all else is normal: a, the points' mean m, and the points.
w <- c(1.2, 3.9, 2.2, 5.8, 4.1, 7.3, 6.2, 8.8)
y <- c(2, 4.1, 3.6, 6.3, 5.5, 8.1, 5.9, 9.2)
log_line <- function(x) {
  by_row <- function(values) matrix(values, nrow(x), length(values), byrow = TRUE)
  points <- x[, 6:13, drop = FALSE]
  rowSums(dnorm(by_row(w), points, 1, log = TRUE)) +
    rowSums(dnorm(by_row(y), x[, 1] + x[, 2] * points, exp(x[, 3]), log = TRUE)) +
    rowSums(dnorm(points, x[, 4], exp(x[, 5]), log = TRUE)) +
    rowSums(dnorm(x[, 1:5, drop = FALSE], 0, by_row(c(10, 10, 1, 10, 1)), log = TRUE))
}

# The log density of b, s and t: pairs of data are normal, with the covariance V = (v, c; c, u), around a
# mean that is normal.
log_line_given <- function(b, s, t) {
  log_pair <- function(x, y, v, c, u) {
    det <- v * u - c^2
    -log(2 * pi) - log(det) / 2 - (u * x^2 - 2 * c * x * y + v * y^2) / (2 * det)
  }
  v <- 1 + exp(2 * t)
  c <- b * exp(2 * t)
  u <- exp(2 * s) + b^2 * exp(2 * t)
  n <- length(w)
  around <- mapply(function(w_i, y_i) log_pair(w_i - mean(w), y_i - mean(y), v, c, u), w, y)
  rowSums(around) - log_pair(0, 0, v / n, c / n, u / n) +
    log_pair(mean(w), mean(y), v / n + 100, c / n + 100 * b, u / n + 100 * (1 + b^2)) +
    dnorm(b, 0, 10, log = TRUE) + dnorm(s, log = TRUE) + dnorm(t, log = TRUE)
}

test_that("what is normal given others is found by differences of the log density, too", {
  places <- expand.grid(b = seq(0, 3, 0.04), s = seq(-5, 3, 0.08), t = seq(-3, 4, 0.08))
  log_z <- log(sum(exp(log_line_given(places$b, places$s, places$t))) * 0.04 * 0.08^2)
  target <- target_function(log_line, 13, vectorized = TRUE)
  fit <- suppressMessages(calmly(smc(target, n_particles = 256, islands = 4, seed = 1)))
  expect_match(fit$maps, "10 variables \\(x1, x4, x6, ...\\) are normal given x2, x3, x5", all = FALSE)
  expect_log_z(fit, log_z)
})

test_that("differences over wide ways are those of a parabola, at one point or many", {
  A <- crossprod(matrix(c(2, 1, 0, 1, 3, -1, 0.5, 0, 1), 3))
  target <- target_function(function(x) -rowSums((x %*% A) * x) / 2, 3, vectorized = TRUE)
  density <- internal("counted_density")(target)
  set.seed(1)
  for (n in c(1, 5)) {
    x <- matrix(rnorm(3 * n), n)
    wide <- density(x, width = c(0.1, 1, 10))
    expect_equal(wide$gradient, -x %*% A, tolerance = 1e-12)
    expect_identical(wide$log_density, density(x, gradient = FALSE)$log_density)
  }
  # that of the target's own is taken as it is
  given <- target_function(function(x) 0 * x[, 1], 3, function(x) 1 + 0 * x, vectorized = TRUE)
  density <- internal("counted_density")(given)
  expect_identical(density(x, width = rep(0.1, 3))$gradient, 1 + 0 * x)
  expect_equal(density("count")[["n_target_evals"]], nrow(x))
})

test_that("what is nearly normal given others is found as given, and log Z does not depend on units", {
  skip_if_not_installed("RTMB")
  set.seed(5)
  n_groups <- 8
  n <- 6 * n_groups
  group <- rep(seq_len(n_groups), each = 6)
  x <- rep(seq(-1, 1, length.out = 6), n_groups)
  y <- 3 + x + 1.5 * rnorm(n_groups)[group] + 0.5 * rnorm(n)
  # Student's t with three degrees of freedom: the data hardly tell the intercept from the mean of the effects
  log_student <- function(x, scale) {
    lgamma(2) - lgamma(1.5) - log(3 * pi) / 2 - log(scale) - 2 * log1p((x / scale)^2 / 3)
  }
  groups_in <- function(of_y, of_x) {
    x <- of_x * x
    y <- of_y * y
    target_rtmb(
      function(p) {
        sum(dnorm(y, p$a + p$b * x + p$tau * p$z[group], p$sigma, log = TRUE)) + sum(dnorm(p$z, log = TRUE)) +
          log_student(p$a - 2 * of_y, 2 * of_y) + dnorm(p$b, 0, 2 * of_y / of_x, log = TRUE) +
          dexp(p$tau, 0.5 / of_y, log = TRUE) + dexp(p$sigma, 1 / of_y, log = TRUE)
      },
      list(a = 0, b = 0, sigma = 1, tau = 1, z = numeric(n_groups)),
      lower = c(sigma = 0, tau = 0)
    )
  }
  # effects and slope integrated out, quadrature over the intercept and both log scales
  a <- seq(-12, 18, by = 0.1)
  given_scales <- function(log_sigma, log_tau) {
    variance <- exp(2 * log_sigma) * diag(n) + exp(2 * log_tau) * outer(group, group, "==") + 4 * tcrossprod(x)
    root <- chol(variance)
    q <- crossprod(backsolve(root, cbind(y, 1), transpose = TRUE))
    of_a <- log_student(a - 2, 2) - (q[1, 1] - 2 * a * q[1, 2] + a^2 * q[2, 2]) / 2
    log_sum_exp(of_a) + log(0.1) - sum(log(diag(root))) - n / 2 * log(2 * pi) +
      dexp(exp(log_sigma), 1, log = TRUE) + log_sigma + dexp(exp(log_tau), 0.5, log = TRUE) + log_tau
  }
  grid <- expand.grid(log_sigma = seq(-1.3, 0, by = 0.05), log_tau = seq(-3, 4, by = 0.05))
  truth <- log_sum_exp(mapply(given_scales, grid$log_sigma, grid$log_tau)) + 2 * log(0.05)
  for (unit in list(c(1, 1), c(1e-3, 1), c(1e3, 1), c(1, 1e-3), c(1, 1e3), c(1e3, 1e3))) {
    scout <- smc_scout(groups_in(unit[1], unit[2]), seed = 1)
    expect_length(scout$references$shape$changes, 1)
  }
  fits <- lapply(list(c(1, 1), c(1e3, 1e-3)), function(unit) {
    fit <- calmly(smc(groups_in(unit[1], unit[2]), precision = 0.001, seed = 1))
    fit$log_z <- fit$log_z + n * log(unit[1])
    fit
  })
  expect_log_z(fits[[1]], truth, 0.01)
  expect_log_z(fits[[2]], truth, 0.01)
})

test_that("what is a polynomial close by is not exact where a variable has a large unit", {
  # growth of a tree: the asymptote is normal given the middle and the scale, whose standard deviations are 80 and 50,
  # with a precision that over a few days is a polynomial in both
  tree <- subset(datasets::Orange, Tree == 1)
  age <- tree$age
  rise <- function(middle, scale) {
    matrix(stats::plogis((rep(age, each = length(middle)) - middle) / scale), length(middle))
  }
  log_density <- function(x) {
    curve <- rise(x[, 2], x[, 3])
    off <- rep(tree$circumference, each = nrow(x)) - x[, 1] * curve
    slope <- off / 7^2
    bend <- slope * x[, 1] * curve * (1 - curve) / x[, 3]
    prior <- cbind((x[, 1] - 150) / 50^2, (x[, 2] - 700) / 200^2, (x[, 3] - 300) / 100^2)
    along <- (rep(age, each = nrow(x)) - x[, 2]) / x[, 3]
    value <- rowSums(matrix(stats::dnorm(off, 0, 7, log = TRUE), nrow(x))) + stats::dnorm(x[, 1], 150, 50, log = TRUE) +
      stats::dnorm(x[, 2], 700, 200, log = TRUE) + stats::dnorm(x[, 3], 300, 100, log = TRUE)
    attr(value, "gradient") <- cbind(rowSums(slope * curve), -rowSums(bend), -rowSums(bend * along)) - prior
    value
  }
  # the asymptote integrated out, the others by the midpoints of cells
  grid <- expand.grid(middle = seq(102.5, 1497.5, by = 5), scale = seq(22.5, 797.5, by = 5))
  curve <- rise(grid$middle, grid$scale)
  precision <- 1 / 50^2 + rowSums(curve^2) / 7^2
  pull <- 150 / 50^2 + drop(curve %*% tree$circumference) / 7^2
  log_f <- pull^2 / precision / 2 - log(precision) / 2 - 150^2 / 50^2 / 2 - log(50) + sum(
    stats::dnorm(tree$circumference, 0, 7, log = TRUE)
  ) + stats::dnorm(grid$middle, 700, 200, log = TRUE) + stats::dnorm(grid$scale, 300, 100, log = TRUE)
  truth <- max(log_f) + log(sum(exp(log_f - max(log_f))) * 25)
  fits <- lapply(1:3, function(seed) calmly(smc(log_density, dim = 3, vectorized = TRUE, seed = seed)))
  expect_log_z(fits, truth, resolution = 0.05)
  # nor is it taken for exact from draws
  points <- points_at(fits[[1]]$particles[1:200, ], log_density)
  expect_null(internal("exact_space")(points, list(), density_of(log_density)))
})
