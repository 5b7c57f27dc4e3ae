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

points_of <- function(x) {
  list(x = sweep(x, 2, colMeans(x)), g = gradient_hierarchy(x), w = rep(1 / nrow(x), nrow(x)))
}

# The log density of a conditional reference, by solving for the coordinates with the
# maps that R has.
log_reference <- function(reference, x) {
  apply(x, 1, function(at) {
    d <- length(at)
    image <- function(z) {
      point <- list(z = t(z), g = t(numeric(d)))
      for (map in internal("reference_maps")(reference, d)) {
        point <- switch(map$name,
          affine = internal("through_affine")(map, point),
          conditional = internal("through_conditional")(map, point),
          neck = internal("through_neck")(map, point),
          rotation = internal("through_rotation")(map, point)
        )
      }
      drop(point$z)
    }
    # given the conditioning variable the map is affine in the others
    k <- reference$conditional$conditioning
    z <- numeric(d)
    z[k] <- (at[k] - image(z)[k]) / reference$chol[k, k]
    origin <- image(z)
    others <- setdiff(seq_len(d), k)
    slopes <- vapply(others, function(j) (image(replace(z, j, 1)) - origin)[others], at[others])
    z[others] <- solve(slopes, (at - origin)[others])
    sum(dnorm(z, log = TRUE)) - log(abs(det(slopes))) - log(reference$chol[k, k])
  })
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
  fit <- internal("likeliest_neck")(points, view, NULL, 2000, 2000)
  expect_identical(fit$conditioning, 2L)
  # but not by so few draws that gradients match any of them
  d <- ncol(points$x)
  expect_null(internal("neck_on")(points, 2L, 2 * d - 1, 2 * d - 1))
  expect_identical(internal("neck_on")(points, 2L, 2 * d, 2 * d)$kind, "neck")
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
  with_internals(list(best_share = spy), internal("fit_neck")(frame, w, t, 1, NULL, n, n))
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
  best <- internal("best_share")(log_scale, rep(1 / n, n), t, 1, n)
  expect_identical(best$rate, 1)
  expect_identical(best$centre[1:2], c(0, -3))
  expect_identical(best$bend, c(1, 0, 0))
  expect_equal(best$half_log_share[, 1], share)
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
  # the variance of log weights of exact draws further down, against a linear log scale's
  spread <- function(reference, x) {
    sd(log_hierarchy(x) - log_reference(reference, x))
  }
  linear <- internal("condition_on")(points, 2L, 2000, 2000)
  straight <- internal("new_shaped_reference")(colMeans(seen), linear)
  straight$inflation <- NULL
  below <- which(x[, 2] < -1.6 & x[, 2] > -2.2)
  expect_gt(length(below), 100)
  below <- x[below[1:100], ]
  expect_lt(spread(reference, below), spread(straight, below) / 3)
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
  expect_log_z(calmly(smc(target, seed = 1)), truth, resolution = 0.3)
})
