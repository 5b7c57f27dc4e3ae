# Coordinates that are normal given others: how they are found, and what smc() makes of them.

internal <- function(name) get(name, asNamespace("autosmc"))

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

test_that("what is normal given what is found, and the precision exactly", {
  found <- internal("find_precision")(probes_at(x, log_hierarchy), density_of(log_hierarchy))
  expect_identical(found$given, 1:3)
  expect_setequal(found$order, 3 + seq_len(p))
  # 1, and 3 + 3 + 2 exponentials in the inverse of a covariance of two effects
  expect_identical(ncol(found$powers), 9L)
  # also where no point has been the gradients are those of standard normal coordinates
  far <- points_at(sweep(x, 2, c(3, -2, 2, rep(0, p)), "+"), log_hierarchy)
  space <- internal("space_of")(far, list(found))
  expect_identical(space$exact, found$order)
  z <- sweep(space$points$x, 2, space$points$mean, "+")
  expect_lt(max(abs(z[, found$order] + space$points$g[, found$order])), 1e-5)
  # and those by what is given are of its own distribution, and of no more
  expect_equal(
    space$points$g[, 1:3],
    sweep(-sweep(z[, 1:3], 2, c(-0.5, 0, 0.3)), 2, c(0.6, 0.5, 0.7)^2, "/"),
    tolerance = 1e-5
  )
})

test_that("points that are standardised come back through the map, and their gradients", {
  points <- points_at(x, log_hierarchy)
  found <- internal("find_precision")(internal("probes_among")(points), density_of(log_hierarchy))
  after <- internal("standardised")(points, found)
  z <- sweep(after$x, 2, after$mean, "+")
  back <- internal("through_precision")(internal("precision_map")(found, 3 + p), list(z = z, g = after$g))
  expect_equal(back$z, x)
  expect_equal(back$g, points$g)
})

test_that("a single term of several coordinates is found", {
  log_scale <- function(x) {
    log_q <- 2 * x[, 1] - x[, 2]
    square <- exp(log_q) * rowSums(x[, 3:4]^2)
    value <- -rowSums(x[, 1:2]^2) / 2 + log_q - square / 2
    slope <- 1 - square / 2
    structure(value, gradient = cbind(
      2 * slope - x[, 1], -slope - x[, 2], -exp(log_q) * x[, 3:4]
    ))
  }
  found <- internal("find_precision")(probes_at(x[, 1:4], log_scale), density_of(log_scale))
  expect_identical(found$given, 1:2)
  expect_equal(found$powers, cbind(c(2, -1)))
  far <- points_at(x[, 1:4] + 1, log_scale)
  expect_identical(internal("space_of")(far, list(found))$exact, found$order)
})

test_that("nothing is found where nothing is normal given what is found", {
  with_gradient <- function(value, gradient) structure(value, gradient = gradient)
  normal <- function(x) with_gradient(-rowSums(x^2) / 2, -x)
  heavy <- function(x) with_gradient(-3 * log1p(rowSums(x^2) / 2), -3 * x / (1 + rowSums(x^2) / 2))
  quartic <- function(x) with_gradient(-rowSums(x^4), -4 * x^3)
  impossible <- function(x) with_gradient(ifelse(x[, 1] > 0.2, -Inf, -rowSums(x^2)), -2 * x)
  # the precision is no sum of the functions that are tried
  odd <- function(x) {
    Q <- 1 + sin(x[, 1])^2
    square <- rowSums(x[, -1]^2)
    slope <- sin(2 * x[, 1]) * (3.5 / Q - square / 2)
    with_gradient(3.5 * log(Q) - Q * square / 2 - x[, 1]^2 / 2, cbind(slope - x[, 1], -Q * x[, -1]))
  }
  # gradients that do not change, or are 0
  even <- function(x) with_gradient(-rowSums(x), 0 * x - 1)
  flat <- function(x) with_gradient(0 * x[, 1], 0 * x)
  for (density in list(normal, heavy, quartic, impossible, odd, even, flat)) {
    expect_null(internal("find_precision")(probes_at(x, density), density_of(density)))
  }
  expect_null(internal("find_precision")(probes_at(x[, 1, drop = FALSE], normal), density_of(normal)))
  without <- points_at(x, log_hierarchy)
  without["g"] <- list(NULL)
  expect_null(internal("find_precision")(internal("probes_among")(without), density_of(log_hierarchy)))
})

test_that("functions of a coordinate are told by the span of what is made of them", {
  t <- seq(-2, 2, length.out = 24)
  set.seed(6)
  mixed <- function(...) cbind(...) %*% matrix(rnorm(12 * ...length()), ...length())
  factors <- function(y) unname(internal("factors_of")(t, y)$functions)
  expect_equal(factors(mixed(1, exp(2 * t))), rbind(rep(0, 5), c(2, 0, 0, 0, 0)))
  expect_equal(factors(mixed(exp(-t / 2))), rbind(c(-0.5, 0, 0, 0, 0)))
  # what multiplies effects with a correlation tanh(t)
  found <- factors(mixed(1, tanh(t), 1 / cosh(t), tanh(t)^2, tanh(t) / cosh(t)))
  expect_identical(nrow(found), 5L)
  expect_true(all(found[-1, 4] == 1)) # rates
  # of a scale that is uniform between two bounds, of which 1 / scale^2 is one sum
  uniform <- factors(mixed(1, exp(t), (1 + exp(-t))^2))
  expect_equal(uniform[order(uniform[, 1]), ], cbind(c(-2, -1, 0, 1), 0, 0, 0, 0))
  expect_setequal(factors(mixed((1 + exp(-t))^2))[, 1], c(-2, -1, 0))
  # what multiplies a coefficient, or effects with the correlation t / sqrt(1 + t^2)
  expect_equal(factors(mixed(1, t, t^2))[, 2], 0:2)
  found <- factors(mixed(1, t / sqrt(1 + t^2), 1 / (1 + t^2), t / (1 + t^2)))
  expect_equal(found[, c(2, 5)], cbind(c(0, 1, 0, 1), c(0, 1, 2, 2)))
  # far from 0, where exponentials are out of the range of numbers
  far <- internal("factors_of")(t + 700, cbind(1, t, t^2) %*% matrix(rnorm(12), 3))
  expect_false(anyNA(far$used))
  expect_null(factors(mixed(1, sin(t))))
  # entries 1 and 2 on three axes, and an entry that is 0
  y <- cbind(1, exp(2 * t), 0, 2, 1 + exp(2 * t), 0, 3, exp(2 * t), 0)
  expect_identical(
    internal("factors_of")(t, y)$used, rbind(c(TRUE, FALSE), c(TRUE, TRUE), c(FALSE, FALSE))
  )
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
    given = 1, order = 2:3, entries = rbind(c(1, 0), c(2, 3)), least = c(1e-3, 1e-3),
    powers = cbind(c(-2, 0)), precision = rbind(c(1, 1), c(-1, 0), c(1, 1)), pull = matrix(0, 2, 2)
  )
  change[c("degrees", "falls", "rates", "roots")] <- list(matrix(0, 2, 1))
  change[internal("parts_of_term")] <- lapply(change[internal("parts_of_term")], t)
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
  n_others <- 1 # one point more told that there are gradients
  # where the scout's best basin is, and without a scout
  for (is_scouted in c(TRUE, FALSE)) {
    n_asked <- 0
    fit <- calmly(smc(target, n_particles = 256, islands = 8, scout = is_scouted, seed = 3))
    expect_equal(sum(fit$runs$n_target_evals), n_asked - n_others)
    n_others <- 0
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
  record <- list(
    reference = reference_gaussian(), particles = x, coordinates = x,
    gradients = attr(log_effects(x), "gradient"), log_weights = rep(-log(n), n), origins = seq_len(n)
  )
  shape <- function() internal("fit_shape")(record, density_of(log_effects))
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

test_that("terms beyond the range of numbers are left out", {
  t <- matrix(seq(0.5, 2.5, length.out = 20))
  none <- matrix(0, 4, 1)
  terms <- list(
    powers = cbind(c(0, 1, 500, -2000)), degrees = none, falls = none, rates = none, roots = none,
    used = matrix(TRUE, 1, 4)
  )
  normals <- list(t = t, y = 2 + 3 * exp(t), scale = matrix(1, 20, 1))
  expect_equal(internal("entries_by_terms")(terms, normals), rbind(c(2, 3, 0, 0)))
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

test_that("a single point with a conditional distribution is enough of one", {
  found <- internal("find_precision")(probes_at(x, log_hierarchy), density_of(log_hierarchy))
  at <- internal("given_these")(probes_at(x, log_hierarchy), found$given)
  at <- internal("rows_at")(at, 1)
  at$colours <- internal("colours_of")(internal("pattern_of")(at, density_of(log_hierarchy)))
  lower <- which(lower.tri(diag(p), diag = TRUE), arr.ind = TRUE)
  normals <- internal("conditional_normals")(at, lower, density_of(log_hierarchy))
  expect_equal(dim(normals$y), c(1, nrow(lower) + p))
  expect_identical(dim(normals$size), dim(normals$y))
  expect_identical(dim(normals$scale), dim(normals$y))
})
