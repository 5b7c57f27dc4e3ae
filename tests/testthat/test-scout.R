# The scout: where the target is, and how wide, by its gradients.

# N(mean, cov) in axes of its own, with variances from 1 to `condition`.
normal_of_condition <- function(d, condition, location) {
  axes <- qr.Q(qr(matrix(rnorm(d^2), d)))
  sd <- sqrt(condition)^seq(0, 1, length.out = d)
  mean <- location * rnorm(d)
  list(
    mean = mean,
    root = sweep(axes, 2, sd, "*"), # in the coordinates of which it is standard
    target = target_function(
      function(x) {
        z <- sweep(sweep(x, 2, mean) %*% axes, 2, sd, "/")
        -rowSums(z^2) / 2 - d / 2 * log(2 * pi) - sum(log(sd))
      }, d,
      gradient = function(x) {
        -sweep(sweep(x, 2, mean) %*% axes, 2, sd^2, "/") %*% t(axes)
      },
      vectorized = TRUE
    )
  )
}

# 0.5 N(-10, I) + 0.5 N(10, I), on the first axis.
two_modes <- function(d = 2, at = 10) {
  target_function(
    function(x) {
      far <- -2 * at * abs(x[, 1])
      -(rowSums(x^2) + at^2 + far) / 2 + log1p(exp(far)) -
        d / 2 * log(2 * pi) - log(2)
    }, d,
    gradient = function(x) {
      x[, 1] <- x[, 1] - at * tanh(at * x[, 1])
      -x
    },
    vectorized = TRUE
  )
}

# what it finds -----------------------------------------------------------------

test_that("a normal distribution is found exactly, wherever and however wide it is", {
  # the worst of 1e6, in the target's own coordinates: mean 0 and covariance I
  for (seed in 1:4) {
    set.seed(seed)
    normal <- normal_of_condition(10, 1e6, 1e4)
    scout <- smc_scout(normal$target, seed = seed)
    expect_identical(nrow(scout$basins), 1L)
    expect_named(scout$references, c("best", "shape"))
    found <- scout$normals[[1]]
    off <- solve(normal$root, found$mean - normal$mean)
    expect_lt(max(abs(off)), 1e-3)
    inner <- solve(normal$root, factor_of(found))
    expect_lt(max(abs(tcrossprod(inner) - diag(10))), 1e-3)
    expect_lt(abs(scout$basins$elbo), 1e-3) # the log evidence
    expect_equal(scout$references$best$mean, found$mean)
    inflated <- tcrossprod(factor_of(scout$references$best))
    expect_equal(inflated, 1.5 * tcrossprod(factor_of(found)))
  }
})

test_that("in many dimensions its means and standard deviations are found", {
  d <- 260 # more than are given a covariance
  mean <- seq(-50, 50, length.out = d)
  sd <- exp(seq(-2, 2, length.out = d))
  scout <- smc_scout(target_gaussian(d, mean, sd), seed = 1)
  found <- scout$normals[[1]]
  expect_null(found$chol)
  expect_lt(max(abs(found$mean - mean) / sd), 1e-2)
  expect_lt(max(abs(found$sd / sd - 1)), 1e-2)
})

test_that("in many dimensions correlations are found by the curvature, up to a limit", {
  # each a part of the one before it: its evidence is 1
  d <- 260
  rho <- 0.8
  rest <- function(x) x[, -1, drop = FALSE] - rho * x[, -d, drop = FALSE]
  target <- target_function(
    function(x) {
      -x[, 1]^2 / 2 - rowSums(rest(x)^2) / (2 * (1 - rho^2)) -
        d / 2 * log(2 * pi) - (d - 1) / 2 * log(1 - rho^2)
    }, d,
    gradient = function(x) {
      slope <- rest(x) / (1 - rho^2)
      cbind(-x[, 1], -slope) + rho * cbind(slope, 0)
    }, vectorized = TRUE
  )
  scout <- smc_scout(target, seed = 1)
  expect_lt(abs(scout$basins$elbo[1]), 1e-4)
  L <- scout$normals[[1]]$chol
  expect_equal(tcrossprod(L)[1, 1:4], rho^(0:3), tolerance = 1e-6)
  expect_true(scout$n_target_evals > 2 * d)

  # beyond the limit it is not asked for
  fewer <- internal("rules")
  fewer$largest_curved <- d - 1
  plain <- with_internals(list(rules = fewer), smc_scout(target, seed = 1))
  expect_null(plain$normals[[1]]$chol)
  expect_lt(plain$basins$elbo[1], -1)
})

test_that("the normal with a covariance is kept where others are close to it", {
  # without covariances paths that end side by side seem to be basins of their own
  d <- 260
  target <- target_gaussian(d)
  evaluate <- internal("counted_density")(target)
  plain <- function(at, elbo) list(mean = rep(at, d), L = rep(0.1, d), elbo = elbo, n_paths = 1)
  normals <- internal("curve_best")(evaluate, list(plain(0.05, -101), plain(-0.05, -100)))
  kept <- internal("first_of_close")(normals)
  expect_length(kept, 1)
  expect_equal(kept[[1]]$elbo, 0)
  expect_equal(kept[[1]]$n_paths, 2)
})

test_that("a reference with a covariance does in many dimensions too", {
  d <- 260
  L <- diag(d)
  L[2, 1] <- 0.5
  fit <- calmly(smc(
    target_gaussian(d),
    reference = reference_gaussian(chol = L),
    scout = FALSE, n_steps = 4, n_particles = 64, rounds = 1, islands = 2, seed = 1
  ))
  expect_true(is.finite(fit$log_z))
  expect_identical(ncol(fit$reference$chol), 260L)
})

test_that("ELBOs are on the unconstrained scale", {
  # log x ~ N(3, 0.1^2)
  target <- target_function(
    function(x) sum(dlnorm(x, 3, 0.1, log = TRUE)), 2,
    gradient = function(x) -1 / x - (log(x) - 3) / 0.1^2 / x, lower = 0
  )
  found <- smc_scout(target, seed = 1)$normals[[1]]
  expect_equal(found$mean, c(3, 3), tolerance = 1e-3)
  expect_equal(tcrossprod(factor_of(found)), diag(0.01, 2), tolerance = 1e-3)
})

test_that("two modes are two basins, and the cover has the moments of their mixture", {
  for (seed in 1:3) {
    scout <- smc_scout(two_modes(), seed = seed)
    expect_identical(nrow(scout$basins), 2L)
    # 8 starts, 4 around the basins, and more as there are several
    expect_gt(sum(scout$basins$n_paths) + scout$n_dropped, 12)
    expect_false(is.unsorted(rev(scout$basins$elbo)))
    # each mode has half of the evidence
    expect_equal(scout$basins$elbo, rep(-log(2), 2), tolerance = 1e-3)
    means <- t(vapply(scout$normals, `[[`, numeric(2), "mean"))
    expect_equal(sort(means[, 1]), c(-10, 10), tolerance = 1e-3)
    expect_equal(means[, 2], c(0, 0), tolerance = 1e-3)
    expect_named(scout$references, c("best", "cover"))
    cover <- scout$references$cover
    expect_equal(cover$mean, c(0, 0), tolerance = 1e-2)
    expect_equal(tcrossprod(factor_of(cover)), 1.5 * diag(c(101, 1)), tolerance = 1e-2)
  }
})

test_that("a narrow mode beside a wide one is found", {
  # each has half of the evidence; the narrow one has a hundredth of the other's area
  wide_and_narrow <- mixture_target(rbind(c(-3, 0), c(3, 0)), c(1, 0.1), c(0.5, 0.5))
  for (seed in 1:3) {
    scout <- smc_scout(wide_and_narrow, seed = seed)
    expect_equal(scout$basins$elbo, rep(-log(2), 2), tolerance = 1e-2)
    sds <- vapply(scout$normals, function(normal) factor_of(normal)[1, 1], 0)
    expect_equal(sort(sds), c(0.1, 1), tolerance = 1e-2)
  }
})

test_that("a mode of half the width is found in more dimensions", {
  # the wide one has the density wherever the other is not near: one direction in 35 leads to that
  far_off <- mixture_target(rbind(numeric(4), rep(5, 4)), c(1, 0.5), c(0.8, 0.2))
  for (seed in 1:4) {
    scout <- smc_scout(far_off, seed = seed)
    expect_equal(scout$basins$elbo, log(c(0.8, 0.2))) # of a normal that fits there is no noise
  }
})

# what it survives ---------------------------------------------------------------

# The first variable is N(0, 1), or with probability 0.1 its sum with an exponential variable of mean 8;
# the second is N(0.05 x1^2, 1): a single mode, and a ridge that bends away from it.
ridge <- function(d = 3) {
  rate <- 1 / 8
  parts <- function(x) {
    cbind(
      near = log(0.9) + dnorm(x, log = TRUE),
      far = log(0.1 * rate) + rate^2 / 2 - rate * x + pnorm(x - rate, log.p = TRUE)
    )
  }
  target_function(
    function(x) {
      along <- parts(x[, 1])
      largest <- pmax(along[, 1], along[, 2])
      largest + log(rowSums(exp(along - largest))) + dnorm(x[, 2], 0.05 * x[, 1]^2, log = TRUE) +
        rowSums(dnorm(x[, -(1:2), drop = FALSE], log = TRUE))
    }, d,
    gradient = function(x) {
      along <- parts(x[, 1])
      is_far <- plogis(along[, "far"] - along[, "near"])
      hazard <- exp(dnorm(x[, 1] - rate, log = TRUE) - pnorm(x[, 1] - rate, log.p = TRUE))
      off <- x[, 2] - 0.05 * x[, 1]^2
      cbind((1 - is_far) * -x[, 1] + is_far * (hazard - rate) + 0.1 * x[, 1] * off, -off, -x[, -(1:2)])
    },
    vectorized = TRUE
  )
}

test_that("the cover of a ridge has what is far along it", {
  for (seed in 1:4) {
    scout <- smc_scout(ridge(), seed = seed)
    expect_identical(scout$gradient, "right")
    cover <- scout$references$cover
    places <- internal("to_user")(
      list(mean = cover$mean, L = cover$chol), t(cover$mixture$means)
    )
    # the first is that of the mode, the last the covering normal
    on_the_way <- places[-c(1, nrow(places)), , drop = FALSE]
    expect_gt(min(on_the_way[, 1]), 6)
    expect_equal(on_the_way[, 2], 0.05 * on_the_way[, 1]^2, tolerance = 0.25)
  }
})

test_that("a normal that paths have passed counts where it is likely and out of reach", {
  normal <- function(at, elbo, sd = 1) list(mean = c(at, 0), L = diag(sd, 2), elbo = elbo)
  kept <- function(...) internal("out_of_reach")(list(...), list(normal(0, 0), normal(100, -20)))
  expect_length(kept(normal(6.1, -6.9)), 1)
  expect_length(kept(normal(5.9, -6.9)), 0)
  expect_length(kept(normal(6.1, -7.1)), 0)
  expect_length(kept(normal(6.1, -6.9, sd = 3)), 0) # the basin is close by its width
  expect_length(kept(normal(102, -6.9)), 0) # and so is one that is not likely itself
  expect_length(kept(normal(95, -6.9)), 1)
  expect_length(kept(), 0)
})

test_that("starts where the target is impossible are survived", {
  # a normal distribution cut off, near the origin
  ball <- target_function(
    function(x) ifelse(rowSums(x^2) < 9, -2 * rowSums((x - 1)^2), -Inf), 3,
    gradient = function(x) ifelse(rowSums(x^2) < 9, 1, NaN) * -4 * (x - 1),
    vectorized = TRUE
  )
  scout <- smc_scout(ball, seed = 1)
  expect_lt(scout$n_dropped, 4)
  expect_lt(max(abs(scout$normals[[1]]$mean - 1)), 1)
  nowhere <- target_function(
    function(x) rep(-Inf, nrow(x)), 2,
    gradient = function(x) 0 * x, vectorized = TRUE
  )
  scout <- smc_scout(nowhere, seed = 1)
  expect_equal(scout$n_dropped, 8)
  expect_identical(nrow(scout$basins), 0L)
  expect_length(scout$normals, 0)
  expect_length(scout$references, 0)
  expect_output(print(scout), "0 basin")
})

test_that("paths climb from where a log density has no digits left, to where it has", {
  # at 0 it is -1e32
  steep <- function(x) (x - 10) / 1e-3
  far <- target_function(
    function(x) -rowSums(steep(x)^8), 2,
    gradient = function(x) -8 * steep(x)^7 / 1e-3, vectorized = TRUE
  )
  scout <- smc_scout(far, seed = 1)
  expect_equal(scout$n_dropped, 0)
  expect_lt(max(abs(scout$normals[[1]]$mean - 10)), 1e-3)
  expect_lt(scout$basins$elbo[1], 2 * log(2e-3 * gamma(9 / 8)))
  # without a slope such a number says no more than that the point is impossible
  penalty <- target_function(
    function(x) rep(-1e20, nrow(x)), 2,
    gradient = function(x) 0 * x, vectorized = TRUE
  )
  expect_equal(smc_scout(penalty, seed = 1)$n_dropped, 8)
})

test_that("variables that must be in order, up or down, have possible points", {
  in_order <- internal("in_order")
  set.seed(1)
  x <- matrix(rnorm(16 * 5), 16)
  y <- in_order(x)
  expect_identical(t(apply(y, 1, sort)), t(apply(x, 1, sort)))
  steps <- apply(y, 1, diff)
  expect_identical(which(apply(steps > 0, 2, all)), c(1L, 2L, 9L, 10L))
  expect_identical(which(apply(steps < 0, 2, all)), c(3L, 4L, 11L, 12L))
  expect_identical(y[c(5:8, 13:16), ], x[c(5:8, 13:16), ])
  expect_identical(in_order(x[, 1, drop = FALSE]), x[, 1, drop = FALSE])
  # one point in 3,628,800 by chance
  for (sign in c(1, -1)) {
    ordered <- target_function(
      function(x) ifelse(apply(sign * x, 1, is.unsorted), -Inf, rowSums(dnorm(x, log = TRUE))), 10,
      gradient = function(x) -x, vectorized = TRUE
    )
    expect_gt(nrow(smc_scout(ordered, seed = 1)$basins), 0)
  }
})

test_that("possible points are looked for where none of the starts is", {
  # six normal variables in order, as one point in 720 is, far from 0
  in_order <- function(x) apply(x, 1, function(row) all(diff(row) > 0))
  ordered <- target_function(
    function(x) ifelse(in_order(x), lfactorial(6) + rowSums(dnorm(x, 5, log = TRUE)), -Inf), 6,
    gradient = function(x) 5 - x, vectorized = TRUE
  )
  density <- internal("counted_density")(ordered)
  for (seed in 1:3) {
    set.seed(seed)
    starts <- internal("scattered_starts")(6, 8)
    starts[, 2] <- starts[, 1] - 1 # of which halves are impossible, too
    at <- internal("evaluate_starts")(density, starts, NULL)
    possible <- at$log_density > -Inf
    expect_true(any(possible))
    expect_identical(possible, in_order(at$x))
    expect_identical(dim(at$x), dim(starts))
    expect_identical(at$gradient[possible, ], 5 - at$x[possible, ])
  }
})

test_that("normal variables in order have their evidence", {
  ordered <- target_function(
    function(x) ifelse(x[, 1] < x[, 2], log(2) + rowSums(dnorm(x, 5, log = TRUE)), -Inf), 2,
    gradient = function(x) 5 - x, vectorized = TRUE
  )
  expect_log_z(lapply(1:3, function(seed) calmly(smc(ordered, n_particles = 512, seed = seed))), 0)
})

test_that("from paths that end in a corner the evidence is right", {
  # exponential in each variable up to 0
  rate <- 10
  corner <- target_function(
    function(x) ifelse(rowSums(x >= 0) == 0, 3 * log(rate) + rate * rowSums(x), -Inf), 3,
    gradient = function(x) rate + 0 * x, vectorized = TRUE
  )
  fits <- lapply(1:4, function(seed) calmly(smc(corner, seed = seed)))
  # what rests on few genealogies is said
  said <- vapply(fits, function(fit) !all(fit$diagnostics$passed), NA)
  expect_false(all(said))
  expect_log_z(fits[!said], 0)
})

test_that("improper, constant and rising densities end, and give only finite references", {
  of <- function(f, g, d = 2) target_function(f, d, gradient = g, vectorized = TRUE)
  odd <- list(
    constant = of(function(x) rep(0, nrow(x)), function(x) 0 * x),
    linear = of(function(x) 2 * x[, 1], function(x) cbind(2 + 0 * x[, 1], 0)),
    rising = of(function(x) rowSums(x^2), function(x) 2 * x),
    exponential = of(function(x) rowSums(exp(x)), function(x) exp(x)),
    one_sided = of(function(x) -exp(x[, 1]) - x[, 2]^2, function(x) {
      cbind(-exp(x[, 1]), -2 * x[, 2])
    }),
    cauchy = of(function(x) -rowSums(log1p(x^2)), function(x) -2 * x / (1 + x^2)),
    spike = of(function(x) -log(rowSums(x^2)) / 2, function(x) -x / rowSums(x^2)),
    no_slope = of(function(x) -rowSums(x^2), function(x) NaN * x),
    cube = of(
      function(x) ifelse(rowSums(abs(x) > 1) > 0, -Inf, 0), function(x) 0 * x
    )
  )
  for (name in names(odd)) {
    scout <- suppressWarnings(
      smc_scout(odd[[name]], seed = 1),
      classes = "autosmc_warning_infinite" # where what rises has no end
    )
    expect_s3_class(scout, "smc_scout")
    expect_gt(scout$n_target_evals, 0)
    for (reference in scout$references) {
      expect_true(all(is.finite(c(reference$mean, factor_of(reference)))), label = name)
    }
  }
})

# what it costs, and what it leaves alone ------------------------------------------

test_that("evaluations are counted exactly", {
  for (at in c(0, 10)) {
    calls <- 0
    modes <- two_modes(at = at)
    target <- target_function(
      function(x) {
        calls <<- calls + nrow(x)
        evaluate_target(modes, x)$log_density
      }, 2,
      gradient = function(x) evaluate_target(modes, x)$gradient, vectorized = TRUE
    )
    calls <- 0
    scout <- smc_scout(target, seed = 1)
    expect_identical(scout$n_target_evals, calls)
    fit <- smc_adapt(target, n_particles = 32, n_steps = 4, rounds = 1, seed = 1)
    expect_identical(fit$runs$n_target_evals[1], scout$n_target_evals)
    expect_identical(fit$runs$run[1], "scout")
  }
})

test_that("the seed governs, and R's generator is left alone", {
  target <- two_modes()
  same <- function(x) x[setdiff(names(x), "seconds")]
  set.seed(4)
  before <- .Random.seed
  first <- smc_scout(target, seed = 7)
  expect_identical(.Random.seed, before)
  set.seed(5)
  expect_identical(same(smc_scout(target, seed = 7)), same(first))
  expect_false(identical(smc_scout(target, seed = 8)$normals, first$normals))
  # without a seed one is drawn, by one draw
  set.seed(6)
  drawn <- smc_scout(target)
  after <- runif(1)
  set.seed(6)
  runif(1)
  expect_identical(after, runif(1))
  set.seed(6)
  expect_identical(same(smc_scout(target)), same(drawn))
  # smc() starts with the same scout
  fit <- smc_adapt(target, n_particles = 32, n_steps = 4, rounds = 1, seed = 7)
  expect_identical(same(fit$scout), same(first))
})

test_that("the paths are as many as the starts, and four around what they found, but for those that cost little", {
  no_cheap_ones <- list(n_cheap_starts = function(...) 0)
  for (n in c(1, 3, 8)) {
    scout <- function() smc_scout(target_gaussian(2), n_starts = n, seed = 1)
    few <- with_internals(no_cheap_ones, scout())
    expect_identical(sum(few$basins$n_paths) + few$n_dropped, n + 4)
    many <- scout()
    expect_gt(sum(many$basins$n_paths) + many$n_dropped, n + 4)
    expect_lt(many$n_target_evals, 1.1 * few$n_target_evals)
  }
})

test_that("normal distributions of unequal widths are all found", {
  # the narrowest has a thousandth of the volume of the widest
  d <- 10
  sd <- c(0.7, 1, 1.4)
  centres <- 4 * rbind(cos(1:d), sin(2 * 1:d), cos(3 * 1:d + 1)) # distances of 12 to 13
  three <- mixture_target(centres, sd, rep(1 / 3, 3))
  for (seed in 1:4) {
    scout <- smc_scout(three, seed = seed)
    expect_equal(scout$basins$elbo, rep(-log(3), 3), tolerance = 0.01)
  }
  expect_log_z(smc(three, seed = 5), 0, resolution = 0.1)
})

test_that("a scout prints", {
  expect_output(
    print(smc_scout(target_gaussian(2), seed = 1)),
    "<smc_scout> 1 basin.*evaluations of the target.*elbo.*n_paths"
  )
})

test_that("wrong arguments are named", {
  target <- target_gaussian(2)
  for (bad in list(0, 1.5, NA, NULL, "a", c(1, 2), Inf)) {
    expect_bad_undrawn(smc_scout(target, n_starts = bad), "n_starts")
  }
  for (bad in list(-1, 0.5, NA, "a", 2^32, c(1, 2))) {
    expect_bad_undrawn(smc_scout(target, seed = bad), "seed")
  }
  expect_bad_undrawn(smc_scout(), "target")
  expect_bad_undrawn(smc_scout("a"), "target")
})

# by defaults ----------------------------------------------------------------------

# Data of a regression in raw units: intercept 150, scale 20. The evidence by conjugacy:
# coefficients N(0, 1000^2) given a known scale.
raw_regression <- local({
  set.seed(9)
  n <- 100
  X <- cbind(1, rnorm(n, 170, 8), rnorm(n, 40, 12), runif(n, 0, 1000))
  y <- drop(X %*% c(150, 0.5, -1, 0.02)) + rnorm(n, sd = 20)
  d <- ncol(X)
  log_density <- function(b) {
    residuals <- y - tcrossprod(X, b)
    colSums(dnorm(residuals, 0, 20, log = TRUE)) + rowSums(dnorm(b, 0, 1000, log = TRUE))
  }
  gradient <- function(b) crossprod(y - tcrossprod(X, b), X) / 20^2 - b / 1000^2
  # without dense n x n matrices: Laplace's method, which is exact here
  precision <- crossprod(X) / 20^2 + diag(d) / 1000^2
  best <- solve(precision, crossprod(X, y) / 20^2)
  list(
    target = target_function(log_density, d, gradient = gradient, vectorized = TRUE),
    log_z = log_density(t(best)) + d / 2 * log(2 * pi) -
      as.numeric(determinant(precision)$modulus) / 2
  )
})

# x_1 ~ N(0, s^2), x_2 ~ N(b (x_1^2 - s^2), 1)
banana <- function(b, s) {
  bend <- function(x) x[, 2] - b * (x[, 1]^2 - s^2)
  target_function(
    function(x) dnorm(x[, 1], 0, s, log = TRUE) + dnorm(bend(x), log = TRUE), 2,
    gradient = function(x) cbind(-x[, 1] / s^2 + 2 * b * x[, 1] * bend(x), -bend(x)),
    vectorized = TRUE
  )
}

multivariate_t <- function(d, df) {
  constant <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi)
  target_function(
    function(x) constant - (df + d) / 2 * log1p(rowSums(x^2) / df), d,
    gradient = function(x) -(df + d) * x / (df + rowSums(x^2)), vectorized = TRUE
  )
}

expect_right <- function(target, truth, seed = 1) {
  fit <- expect_silent(suppressWarnings(smc(target, seed = seed), classes = "autosmc_warning_moments"))
  expect_log_z(fit, truth)
  fit
}

test_that("a regression in raw units has the right evidence by the defaults", {
  expect_right(raw_regression$target, raw_regression$log_z)
})

test_that("a wide normal distribution far away", {
  fit <- expect_right(target_gaussian(10, mean = 100, sd = 30), 0)
  mean <- colSums(exp(fit$log_weights) * fit$particles)
  expect_estimate(mean, 30 / sqrt(glance(fit)$ess_mean), 100, 6) # a fifth of their standard deviation
})

test_that("a banana", {
  expect_right(banana(0.1, 10), 0)
})

test_that("Student's t with 2 degrees of freedom", {
  expect_right(multivariate_t(5, 2), 0)
})

test_that("two modes 20 apart, of which both have draws", {
  fit <- expect_right(two_modes(), 0)
  expect_lt(abs(sum(exp(fit$log_weights)[fit$particles[, 1] > 0]) - 0.5), 0.2)
})

test_that("normals far wider in one direction than in others have a cover", {
  axes <- rbind(c(1, -1), c(1, 1)) / sqrt(2)
  L <- internal("factor_of_square")(c(1e9, 1) * axes)
  expect_identical(L[1, 2], 0)
  normals <- lapply(c(-1, 1), function(side) list(mean = side * axes[2, ], L = L))
  cover <- internal("covering")(normals)
  # along both directions, the variance of the normals and that of their means
  precision <- colSums(forwardsolve(cover$L, t(axes))^2)
  expect_lt(max(abs(precision * c(1e18, 2) - 1)), 1e-12)
})

test_that("paths go on while a basin was found by few of them", {
  # ten normal distributions in four dimensions
  k <- 10
  centres <- 8 * cbind(cos(seq_len(k)), sin(2 * seq_len(k)), cos(3 * seq_len(k)), sin(5 * seq_len(k)))
  logs <- function(x) matrix(apply(centres, 1, function(m) -rowSums(sweep(x, 2, m)^2) / 2), nrow(x))
  ten <- target_function(function(x) {
    each <- logs(x)
    most <- apply(each, 1, max)
    most + log(rowMeans(exp(each - most))) - 2 * log(2 * pi)
  }, 4, gradient = function(x) {
    each <- logs(x)
    part <- exp(each - apply(each, 1, max))
    (part / rowSums(part)) %*% centres - x
  }, vectorized = TRUE)
  for (seed in 1:3) {
    fit <- smc(ten, seed = seed)
    expect_gt(sum(fit$scout$basins$n_paths), 20)
    expect_equal(nrow(fit$scout$basins), k)
    expect_log_z(fit, 0, resolution = 0.1)
  }
})

test_that("a search takes what it is given, from scattered starts and draws of the prior", {
  n_asked <- 0
  prior <- list(
    log_density = function(x) sum(dnorm(x, log = TRUE)),
    sample = function(n) {
      n_asked <<- n_asked + n
      matrix(rnorm(3 * n), n)
    }
  )
  scout <- function(search, ...) {
    target <- target_function(normal_density, 3, gradient = normal_gradient, ...)
    fit <- suppressWarnings(smc(target, search = search, seed = 1))
    expect_equal(sum(fit$runs$n_target_evals[fit$runs$run == "scout"]), fit$scout$n_target_evals)
    fit$scout
  }
  plain <- scout(0)
  for (more in list(scout(3000), scout(3000, prior = prior))) {
    spent <- more$n_target_evals - plain$n_target_evals
    expect_true(spent > 2000 && spent <= 3300)
    expect_gt(sum(more$basins$n_paths), sum(plain$basins$n_paths) + 16)
  }
  expect_gt(n_asked, 8)
  expect_lt(n_asked, sum(more$basins$n_paths))
  expect_error(smc(normal_target(2), search = -1), "search", class = "autosmc_error_input")
  expect_error(smc(normal_target(2), search = 10, scout = FALSE), "search", class = "autosmc_error_input")
  # what does not fit into the limit is left out
  fit <- suppressWarnings(smc(normal_target(2), search = 1e5, max_evals = 2e4, seed = 1))
  expect_true("the search for further modes" %in% fit$truncated)
})
