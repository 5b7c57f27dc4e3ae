# Necks that open, as those of hierarchies that are written as they are.

internal <- function(name) get(name, asNamespace("autosmc"))

# Effects theta_j ~ N(mu, tau^2), mu ~ N(0, 2^2), log tau ~ N(-0.5, 1), and a measurement
# y_j ~ N(theta_j, s_j^2) of each. Given log tau all is normal.
y <- c(1.2, -0.4, 0.8, 2, -1.1, 0.3, 0.9, -0.2)
s <- c(0.5, 0.7, 0.6, 0.5, 0.9, 0.6, 0.4, 0.8)
J <- length(y)

log_hierarchy <- function(x) {
  n <- nrow(x)
  theta <- x[, -(1:2), drop = FALSE]
  dnorm(x[, 1], 0, 2, log = TRUE) + dnorm(x[, 2], -0.5, 1, log = TRUE) +
    rowSums(matrix(dnorm(theta, x[, 1], exp(x[, 2]), log = TRUE), n)) +
    rowSums(matrix(dnorm(t(theta), y, s, log = TRUE), n, byrow = TRUE))
}

gradient_hierarchy <- function(x) {
  theta <- x[, -(1:2), drop = FALSE]
  r <- (theta - x[, 1]) / exp(2 * x[, 2])
  cbind(
    rowSums(r) - x[, 1] / 4, rowSums(r * (theta - x[, 1])) - J - x[, 2] - 0.5,
    -r + t((y - t(theta)) / s^2)
  )
}

# mu and the effects integrated out: the log density of the data and log tau
log_given <- function(log_tau) {
  v <- outer(exp(2 * log_tau), s^2, `+`)
  k <- 1 / 4 + rowSums(1 / v)
  mean <- drop((1 / v) %*% y) / k
  # Bayes' theorem at the posterior mean of mu
  rowSums(matrix(dnorm(rep(y, each = nrow(v)), mean, sqrt(v), log = TRUE), nrow(v))) +
    dnorm(mean, 0, 2, log = TRUE) + log(2 * pi / k) / 2 + dnorm(log_tau, -0.5, 1, log = TRUE)
}

# Exact draws of (mu, log tau, theta).
draw_hierarchy <- function(n) {
  grid <- seq(-8, 4, length.out = 4001)
  log_tau <- sample(grid, n, TRUE, exp(log_given(grid))) + runif(n, -1, 1) * diff(grid)[1] / 2
  v <- outer(exp(2 * log_tau), s^2, `+`)
  k <- 1 / 4 + rowSums(1 / v)
  mu <- drop((1 / v) %*% y) / k + rnorm(n) / sqrt(k)
  share <- exp(2 * log_tau) / v
  noise <- sqrt(share) * rep(s, each = n) * rnorm(n * J)
  cbind(mu, log_tau, share * rep(y, each = n) + (1 - share) * mu + noise)
}

points_of <- function(x, g = gradient_hierarchy(x)) {
  list(x = sweep(x, 2, colMeans(x)), g = g, w = rep(1 / nrow(x), nrow(x)), mean = colMeans(x))
}

# The log density of a conditional reference, by solving for the coordinates with the
# maps that R has.
log_reference <- function(reference, x) {
  apply(x, 1, function(at) {
    d <- length(at)
    image <- function(z) {
      drop(internal("through_maps")(reference, t(z))$z)
    }
    # given the conditioning variables the map is affine in the others, and these are affine
    # in their own coordinates
    k <- reference$conditional$conditioning
    axes <- reference$conditional$axes
    of_k <- (reference$chol %*% if (is.null(axes)) diag(d) else axes)[k, k, drop = FALSE]
    z <- numeric(d)
    z[k] <- solve(of_k, (at - image(z))[k])
    origin <- image(z)
    others <- setdiff(seq_len(d), k)
    slopes <- vapply(others, function(j) (image(replace(z, j, 1)) - origin)[others], at[others])
    z[others] <- solve(slopes, (at - origin)[others])
    sum(dnorm(z, log = TRUE)) - log(abs(det(slopes))) - log(abs(det(of_k)))
  })
}

# The line of a neck on a variable with these values, for points with weights w.
line_at <- function(t, w, sd = 1, level = 0 * t) {
  line <- list(u = cbind(t), sd = sd, level = level)
  rates <- internal("rules")$neck_slopes * sd
  c(line, list(shares = lapply(rates, internal("shares_by"), line, w)))
}

test_that("the axes along which a scale changes are found from few points", {
  set.seed(1)
  Q <- qr.Q(qr(matrix(rnorm(16), 4)))
  t <- rnorm(60)
  e <- matrix(rnorm(240), 60)
  scale <- exp(outer(t, c(0.5, 0.2, 0, -0.4)))
  product <- internal("turning_by")(
    (e * scale) %*% t(Q), (-e / scale) %*% t(Q), rep(1 / 60, 60), t
  )
  found <- eigen(product + t(product), symmetric = TRUE)$vectors
  # in the order of the eigenvalues, up to signs: by the points alone, not by their number
  expect_gt(min(diag(abs(crossprod(found, Q)))), 0.9)
})

test_that("a neck is looked for on the coordinate with which the others turn", {
  set.seed(5)
  points <- points_of(draw_hierarchy(2000))
  L <- internal("fit_scale")(points$x, points$w)
  view <- list(z = internal("whitened")(L, points$x), g = points$g %*% L)
  expect_identical(internal("find_turning")(view, points$w), 2L)
  # also where nothing else has found it
  fit <- internal("find_neck")(points, view, NULL, 2000, 2000)
  expect_identical(fit$conditioning[1], 2L)
  # but not by so few points that least squares leave nothing of any gradients
  d <- ncol(points$x)
  some <- function(n) points_of(draw_hierarchy(n))
  expect_null(internal("neck_on")(some(4 * d - 1), 2L, 2 * d - 1, 2 * d - 1))
  expect_identical(internal("neck_on")(some(4 * d), 2L, 2 * d - 1, 2 * d - 1)$kind, "neck")
})

test_that("scales along a neck are those of residuals that make up for their leverage", {
  set.seed(6)
  n <- 12
  t <- rexp(n) # of which the largest has a high leverage
  u <- matrix(rnorm(2 * n), n)
  g <- matrix(rnorm(2 * n), n)
  w <- runif(n)
  w <- w / sum(w)
  seen <- NULL
  best_share <- internal("best_share")
  spy <- function(log_scale, ...) {
    seen <<- log_scale
    best_share(log_scale, ...)
  }
  frame <- list(flexible = cbind(t, t^2), u = u, g = g)
  with_internals(list(best_share = spy), internal("fit_neck")(frame, w, line_at(t, w), NULL, n, n))
  line <- lm(u ~ t + I(t^2), weights = w)
  off <- residuals(line) / sqrt(1 - hatvalues(line))
  expect_equal(seen, log(abs(off / g)) / 2, ignore_attr = TRUE)
})

test_that("a scale follows a share where that explains enough of it, and more than chance", {
  n <- 100
  t <- seq(-2, 2, length.out = n)
  share <- internal("half_log_share")(t, centre = 0, rate = 1)
  flat <- internal("half_log_share")(t, centre = -3, rate = 1)
  noise <- rep(c(1, -1), n / 2)
  # all of a large variance; all of a small one; and 2 % of one, where chance gives 4.6 %
  log_scale <- cbind(share, flat, share + 7 * sd(share) * noise)
  w <- rep(1 / n, n)
  best <- internal("best_share")(log_scale, w, line_at(t, w), n)
  expect_identical(best$rate, 1)
  expect_identical(best$centre[1:2], c(0, -3))
  expect_identical(best$bend, c(1, 0, 0))
  expect_equal(best$half_log_share[, 1], share)
})

test_that("a scale may also follow the level", {
  n <- 400
  set.seed(8)
  w <- rep(1 / n, n)
  line <- line_at(rnorm(n), w, sd = 0.7, level = rnorm(n))
  share <- internal("half_log_share")(line$u[, 1], centre = 0.5, rate = 0.7)
  log_scale <- cbind(share + 0.7 * line$level, share)
  best <- internal("best_share")(log_scale, w, line, n)
  expect_identical(best$centre, c(0.5, 0.5))
  expect_equal(best$slope, c(0.7, 0), ignore_attr = TRUE)
  expect_equal(best$log_scale, log_scale, ignore_attr = TRUE)
})

# Effects theta_j ~ N(0, tau^2) and means of m measurements of each, of unknown noise sigma:
# (log tau, log sigma, theta). Given both scales all is normal.
log_two_scales <- function(x, m = 4) {
  theta <- x[, -(1:2), drop = FALSE]
  n <- nrow(x)
  dnorm(x[, 1], -0.5, 1, log = TRUE) + dnorm(x[, 2], 0, 1, log = TRUE) +
    rowSums(matrix(dnorm(theta, 0, exp(x[, 1]), log = TRUE), n)) +
    rowSums(matrix(dnorm(theta, rep(y, each = n), exp(x[, 2]) / sqrt(m), log = TRUE), n))
}

gradient_two_scales <- function(x, m = 4) {
  theta <- x[, -(1:2), drop = FALSE]
  of_prior <- theta / exp(2 * x[, 1])
  off <- sweep(theta, 2, y)
  of_noise <- m * off / exp(2 * x[, 2])
  cbind(
    rowSums(of_prior * theta) - J - x[, 1] - 0.5, rowSums(of_noise * off) - J - x[, 2],
    -of_prior - of_noise
  )
}

test_that("gradients that are linear given two scales make a neck that is exact everywhere", {
  set.seed(9)
  # points anywhere, not draws
  x <- cbind(rnorm(200, -0.3, 0.3), rnorm(200, 0, 0.3), matrix(rnorm(200 * J, 0, 0.6), 200))
  points <- points_of(x, gradient_two_scales(x))
  expect_identical(internal("find_level")(points, 1L), 2L)
  expect_identical(internal("find_level")(points, 2L), 1L)
  for (variables in list(1:2, 2:1)) {
    neck <- internal("neck_by_gradients")(points, variables, 200)
    reference <- internal("new_shaped_reference")(colMeans(x), neck)
    reference$inflation <- NULL
    at <- cbind(rep(c(-4, 1, 2), each = 20), rep(c(1, -3, 2), each = 20), matrix(rnorm(60 * J), 60))
    log_ratio <- log_two_scales(at) - log_reference(reference, at)
    expect_equal(log_ratio, ave(log_ratio, rep(1:3, each = 20)), tolerance = 1e-6)
    # the same by the function that the fits are checked with
    by_fit <- internal("log_density_of")(neck, sweep(at, 2, colMeans(x)))
    expect_equal(by_fit - (J + 2) / 2 * log(2 * pi), log_reference(reference, at))
  }
})

# The same model, with z = theta / tau in the place of theta.
centred <- function(x) {
  x[, -(1:2)] <- x[, -(1:2)] * exp(x[, 1])
  x
}

gradient_noncentred <- function(x) {
  g <- gradient_two_scales(centred(x))
  g_z <- g[, -(1:2)] * exp(x[, 1])
  cbind(g[, 1] + rowSums(g_z * x[, -(1:2)]) + J, g[, 2], g_z)
}

test_that("coordinates that are multiples of a scale are found, and the neck of products is exact", {
  set.seed(13)
  x <- cbind(rnorm(200, -0.3, 0.3), rnorm(200, 0, 0.3), matrix(rnorm(200 * J, 0.3), 200))
  points <- points_of(x, gradient_noncentred(x))
  found <- internal("find_multiples")(points)
  expect_identical(found, list(list(variable = 1L, rate = 1, multiples = 2L + seq_len(J))))

  as_is <- internal("space_of")(points, list())
  space <- internal("fit_space")(as_is, reference_gaussian(), 200)
  expect_identical(space$changes, found)
  expect_setequal(space$conditional$conditioning, 1:2)
  # the gradients of what is fitted are those of the centred model
  products <- space$points
  expect_equal(sweep(products$x, 2, products$mean, "+"), centred(x))
  expect_equal(products$g, gradient_two_scales(centred(x)))
  expect_equal(products$log_jacobian, J * mean(x[, 1]))

  reference <- internal("new_shaped_reference")(products$mean, space$conditional, found)
  reference$inflation <- NULL
  at <- cbind(rep(c(-4, 1, 2), each = 20), rep(c(1, -3, 2), each = 20), matrix(rnorm(60 * J), 60))
  log_ratio <- log_two_scales(centred(at)) + J * at[, 1] - log_reference(reference, at)
  expect_equal(log_ratio, ave(log_ratio, rep(1:3, each = 20)), tolerance = 1e-6)
  by_fit <- internal("log_density_of")(space$conditional, sweep(centred(at), 2, products$mean))
  expect_equal(by_fit + J * at[, 1] - (J + 2) / 2 * log(2 * pi), log_reference(reference, at))
})

test_that("points without gradients are taken to products as those with gradients are", {
  set.seed(20)
  x <- matrix(rnorm(50 * 4), 50)
  points <- points_of(x, -x)
  products <- list(
    list(variable = 1L, rate = 1, multiples = 3:4), list(variable = 2L, rate = -0.5, multiples = 4L)
  )
  with_gradients <- internal("changed")(points, products)
  points["g"] <- list(NULL)
  expect_identical(
    internal("changed")(points, products), replace(with_gradients, "g", list(NULL))
  )
})

test_that("multiples of several scales are found, whatever the likelihood and the priors", {
  set.seed(19)
  n <- 300
  effects <- 6
  # (log sd of one group, log variance of another, their effects): counts, a half-Cauchy and a
  # half-normal prior
  x <- cbind(rnorm(n, 0, 0.5), rnorm(n, -1, 0.7), matrix(rnorm(2 * effects * n), n))
  first <- 2 + seq_len(effects)
  second <- first + effects
  counts <- rep(c(1, 4, 9), length.out = effects)
  pull <- function(u) sweep(-exp(u), 2, counts, "+")
  f1 <- pull(exp(x[, 1]) * x[, first]) * exp(x[, 1])
  f2 <- pull(exp(x[, 2] / 2) * x[, second]) * exp(x[, 2] / 2)
  g <- cbind(
    rowSums(f1 * x[, first]) + 1 - 2 * plogis(2 * x[, 1]),
    rowSums(f2 * x[, second]) / 2 + 1 / 2 - exp(x[, 2]) / 2,
    f1 - x[, first], f2 - x[, second]
  )
  found <- internal("find_multiples")(points_of(x, g))
  expect_equal(found, list(
    list(variable = 1L, rate = 1, multiples = first),
    list(variable = 2L, rate = 0.5, multiples = second)
  ))
})

test_that("nothing else is a multiple of a scale", {
  set.seed(15)
  x <- cbind(rnorm(200, -0.3, 0.3), rnorm(200, 0, 0.3), matrix(rnorm(200 * J, 0, 0.6), 200))
  gradients <- list(
    normal = -x, flat = 0 * x, two_scales = gradient_two_scales(x), hierarchy = gradient_hierarchy(x),
    # of which the data say nothing
    prior = cbind(1 - exp(x[, 1]), -x[, -1])
  )
  for (g in gradients) {
    expect_length(internal("find_multiples")(points_of(x, g)), 0)
  }
  same <- points_of(x[rep(1, 200), ], gradient_noncentred(x[rep(1, 200), ]))
  expect_length(internal("find_multiples")(same), 0)
  # z (g + z) is constant for a chi distribution: beside the prior it is rounding
  positive <- cbind(x[, 1], abs(x[, -1]) + 0.1)
  chi <- cbind(-x[, 1], 3 / positive[, -1] - positive[, -1])
  expect_length(internal("find_multiples")(points_of(positive, chi)), 0)
  # exponentials, or their squares, are beyond the range of numbers
  for (by in c(-700, -362, 250)) {
    far <- sweep(x, 2, c(by, numeric(ncol(x) - 1)), "+")
    expect_length(internal("find_multiples")(points_of(far, -x)), 0)
  }
  few <- points_of(x[1:10, ], gradient_noncentred(x[1:10, ]))
  expect_length(internal("find_multiples")(few), 0)
})

test_that("gradients show a scale among many variables, whatever their units", {
  n <- 100
  for (seed in 1:4) {
    set.seed(seed)
    log_scale <- rnorm(300, 0, 0.3)
    effects <- exp(log_scale) * matrix(rnorm(300 * n), 300)
    units <- 10^seq(-3, 3, length.out = n)
    g <- cbind(rowSums(effects^2) / exp(2 * log_scale) - n - log_scale, -effects / exp(2 * log_scale))
    points <- points_of(cbind(log_scale, sweep(effects, 2, units, "*")), sweep(g, 2, c(1, units), "/"))
    expect_identical(internal("find_scale")(points), 1L)
  }
})

test_that("what depends on neither scale is kept apart", {
  set.seed(14)
  x <- cbind(rnorm(200, -0.3, 0.3), rnorm(200, 0, 0.3), matrix(rnorm(200 * J, 0, 0.6), 200))
  # a prior for each effect, beside that by their scale
  g <- gradient_two_scales(x) - cbind(0, 0, x[, -(1:2)])
  points <- points_of(x, g)
  line <- internal("line_of")(points, 1:2)
  found <- internal("best_precision")(points, 2 + 1:J, line, 1)
  expect_lt(found$left, 1e-12)
  # of A and B over the means of their exponentials
  mean_of <- function(log_scale) mean(exp(-2 * (log_scale - mean(log_scale))))
  expect_equal(found$A * exp(2 * mean(x[, 1])) / mean_of(x[, 1]), diag(J))
  expect_equal(found$B * exp(2 * mean(x[, 2])) / mean_of(x[, 2]), 4 * diag(J))
})

test_that("a neck on the difference of two scales comes before one on a single scale", {
  set.seed(10)
  scales <- cbind(rnorm(400, -0.3, 0.5), rnorm(400, 0, 0.3))
  share <- exp(2 * scales[, 1]) / (exp(2 * scales[, 1]) + exp(2 * scales[, 2]) / 4)
  noise <- sqrt(share) * exp(scales[, 2]) / 2 * rnorm(400 * J)
  x <- cbind(scales, matrix(share * rep(y, each = 400) + noise, 400))
  points <- points_of(x, gradient_two_scales(x))
  view <- list(z = points$x, g = points$g)
  neck <- internal("find_neck")(points, view, 1L, 400, 400)
  expect_setequal(neck$conditioning, 1:2)
  single <- internal("neck_on")(points, 1L, 400, 400)
  expect_gt(single$left, 100 * neck$left)
})

test_that("a neck that was exact is fitted again, without a search", {
  set.seed(16)
  x <- cbind(rnorm(200, -0.3, 0.3), rnorm(200, 0, 0.3), matrix(rnorm(200 * J, 0, 0.6), 200))
  points <- points_of(x, gradient_two_scales(x))
  neck <- internal("neck_by_gradients")(points, 1:2, 200)
  L <- internal("fit_scale")(points$x, points$w)
  searched <- FALSE
  search <- function(...) searched <<- TRUE
  again <- with_internals(
    list(find_neck = search),
    internal("fit_conditional")(points, L, 200, 200, known = neck)
  )
  expect_false(searched)
  expect_equal(again, neck)
})

test_that("scales beyond the range of numbers make no shape", {
  set.seed(17)
  points <- points_of(draw_hierarchy(200))
  line <- internal("line_of")(points, 2L)
  for (log_scale in c(-740, 800)) {
    log_scale <- matrix(log_scale + line$u[, 1], 200, J + 1)
    expect_null(internal("frame_of")(points, c(1L, 2 + seq_len(J)), line, log_scale))
  }
  expect_false(is.null(internal("frame_of")(points, c(1L, 2 + seq_len(J)), line, NULL)))
})

test_that("a precision that counts at too few points is not sought", {
  set.seed(18)
  t <- rnorm(200)
  others <- matrix(rnorm(200 * 3), 200)
  # far down, all but a few of the points have next to nothing of exp(-2 t) over its mean; farther
  # yet, it is beyond the range of numbers
  for (times in c(1, 40, 400)) {
    far <- times * t
    points <- points_of(cbind(far, others), cbind(-far, -others * exp(-2 * far)))
    expect_identical(is.null(internal("precision_on")(points, 1L, 1)), times > 1)
  }
})

test_that("normal gradients make no neck", {
  set.seed(11)
  x <- matrix(rnorm(200 * 4), 200) %*% matrix(rnorm(16), 4)
  precision <- solve(crossprod(matrix(rnorm(20), 5)))
  points <- points_of(x, -x %*% precision)
  expect_null(internal("neck_by_gradients")(points, 1L, 200))
})

test_that("a standard normal distribution has no neck", {
  set.seed(15)
  x <- matrix(rnorm(200 * 3), 200)
  points <- points_of(x, -x)
  expect_null(internal("fit_conditional")(points, diag(3), 200, 200))
})

test_that("a flat density has no neck", {
  set.seed(12)
  x <- matrix(runif(200 * 3, -1, 1), 200)
  points <- list(x = x, g = 0 * x, w = rep(1 / 200, 200), mean = numeric(3))
  expect_null(internal("find_level")(points, 1L))
  expect_null(internal("neck_by_gradients")(points, 1L, 200))
  expect_null(internal("find_neck")(points, list(z = x, g = 0 * x), 1L, 200, 200))
})

test_that("a neck is fitted to a hierarchy, closer than any other shape", {
  set.seed(2)
  for (n in c(400, 3000)) {
    points <- points_of(draw_hierarchy(n))
    L <- internal("fit_scale")(points$x, points$w)
    fit <- internal("fit_conditional")(points, L, n, n)
    expect_identical(fit$kind, "neck")
    expect_identical(fit$conditioning, 2L)
    # the slope of log scales by log tau is 1
    expect_equal(fit$rate, fit$L[2, 2])
    linear <- internal("condition_on")(points, 2L, n, n)
    expect_gt(fit$criterion, linear$criterion)
  }
})

test_that("the criterion of a neck is the mean log density of its reference, less Schwarz's", {
  set.seed(7)
  n <- 60
  x <- draw_hierarchy(n)
  neck <- internal("neck_on")(points_of(x), 2L, n, n)
  reference <- internal("new_shaped_reference")(colMeans(x), neck)
  reference$inflation <- NULL
  normalised <- mean(log_reference(reference, x)) + ncol(x) / 2 * log(2 * pi)
  n_parameters <- sum(neck$bend) + sum(neck$pull != 0) + 1
  expect_equal(neck$criterion, normalised - n_parameters * log(n) / (2 * n))
})

test_that("a neck goes on where no point has been", {
  set.seed(3)
  x <- draw_hierarchy(20000)
  seen <- x[x[, 2] > -1.2, ][1:2000, ]
  points <- points_of(seen)
  neck <- internal("neck_on")(points, 2L, 2000, 2000)
  reference <- internal("new_shaped_reference")(colMeans(seen), neck)
  reference$inflation <- NULL
  # log weights of exact draws further down, given log tau, whose own density is not the neck's
  spread <- function(reference, x) {
    log_ratio <- log_hierarchy(x) - log_reference(reference, x)
    sd(residuals(lm(log_ratio ~ poly(x[, 2], 4))))
  }
  linear <- internal("condition_on")(points, 2L, 2000, 2000)
  straight <- internal("new_shaped_reference")(colMeans(seen), linear)
  straight$inflation <- NULL
  below <- which(x[, 2] < -1.6 & x[, 2] > -2.2)
  expect_gt(length(below), 100)
  below <- x[below[1:100], ]
  # four orders of log tau leave 0.001 of its density's logarithm, and a linear log scale 1
  expect_lt(spread(reference, below), 0.01)
  expect_gt(spread(straight, below), 0.1)
})

test_that("lines through weighted points are those of least squares", {
  set.seed(4)
  n <- 50
  x <- matrix(rnorm(2 * n), n)
  y <- cbind(2 * x[, 1] + rnorm(n), rnorm(n))
  log_scale <- cbind(0.3 * x[, 1], 0)
  w <- runif(n)
  w <- w / sum(w)
  found <- internal("fit_lines")(x, y, w, log_scale, n)
  first <- lm(y[, 1] ~ x[, 1], weights = w * exp(-2 * log_scale[, 1]))
  expect_equal(c(found$origin[1], found$slope[1]), unname(coef(first)))
  expect_equal(found$residuals[, 1], unname(residuals(first)))
  expect_equal(found$leverage[, 1], unname(hatvalues(first)))
  # there is nothing in the second
  expect_identical(found$slope[2], 0)
  expect_equal(found$origin[2], weighted.mean(y[, 2], w))
})

test_that("a hierarchy as it is written has all of its evidence", {
  skip_on_cran()
  truth <- log(integrate(function(l) exp(log_given(l)), -12, 6, rel.tol = 1e-10)$value)
  target <- target_function(log_hierarchy, J + 2, gradient_hierarchy, vectorized = TRUE)
  expect_log_z(calmly(smc(target, seed = 1)), truth)
})
