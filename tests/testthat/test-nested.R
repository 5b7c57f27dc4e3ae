# Groups within groups: of each of some schools some classes have a proportion each, whose logit is
# normal around that of the school, and these are normal around a mean. x = (mu, s, t, schools, classes),
# where exp(s) and exp(t) are the scales of schools and classes.

internal <- function(name) get(name, asNamespace("autosmc"))

passed <- c(3, 4, 6, 5, 7, 8, 2, 5, 4, 7, 6, 6)
n_pupils <- 10
n_schools <- 4
school <- rep(seq_len(n_schools), each = length(passed) / n_schools)
member <- outer(school, seq_len(n_schools), `==`) + 0
schools <- 3 + seq_len(n_schools)
classes <- 3 + n_schools + seq_along(passed)

# Given the mean of each class's logit and their scale, the log density and the gradient by both.
normal_around <- function(x, mean, log_scale) {
  z <- (x - mean) / exp(log_scale)
  list(
    value = rowSums(-z^2 / 2 - log_scale - log(2 * pi) / 2), by_mean = z / exp(log_scale),
    by_log_scale = rowSums(z^2 - 1)
  )
}

log_nested <- function(x) {
  mu <- x[, 1]
  a <- x[, schools, drop = FALSE]
  b <- x[, classes, drop = FALSE]
  of_schools <- normal_around(a, mu, x[, 2])
  of_classes <- normal_around(b, a[, school, drop = FALSE], x[, 3])
  of_data <- rep(passed, each = nrow(x)) - n_pupils * plogis(b)
  value <- of_schools$value + of_classes$value + drop(b %*% passed) - n_pupils * rowSums(log1p(exp(b))) -
    mu^2 / 2 - rowSums((x[, 2:3, drop = FALSE] + 1)^2) / 2
  structure(unname(value), gradient = unname(cbind(
    rowSums(of_schools$by_mean) - mu, of_schools$by_log_scale - x[, 2] - 1,
    of_classes$by_log_scale - x[, 3] - 1, of_classes$by_mean %*% member - of_schools$by_mean,
    of_data - of_classes$by_mean
  )))
}

# Its log evidence, by quadrature of the classes of a school, then of the school, and over mu and the
# scales in the end.
log_evidence_of_nested <- function(n = 49) {
  z <- seq(-7, 7, by = 0.25)
  weight <- dnorm(z) * 0.25
  a <- seq(-12, 12, by = 0.25)
  mu <- seq(-4, 4, length.out = n)
  log_scales <- seq(-7, 4, length.out = n)
  by_t <- vapply(log_scales, function(t) {
    b <- outer(a, exp(t) * z, `+`)
    of_class <- vapply(passed, function(y) log(drop(exp(y * b - n_pupils * log1p(exp(b))) %*% weight)), a)
    of_schools <- apply(of_class %*% member, 2, splinefun, x = a)
    by_s <- vapply(log_scales, function(s) {
      at <- pmin(pmax(outer(mu, exp(s) * z, `+`), min(a)), max(a))
      each <- vapply(of_schools, function(of_school) log(drop(exp(matrix(of_school(at), n)) %*% weight)), mu)
      rowSums(each) - mu^2 / 2 - (s + 1)^2 / 2
    }, mu)
    by_s - (t + 1)^2 / 2
  }, matrix(0, n, n))
  step <- (mu[2] - mu[1]) * (log_scales[2] - log_scales[1])^2
  max(by_t) + log(sum(exp(by_t - max(by_t))) * step)
}

# As draws of which the scales of classes are around exp(t).
draws_around <- function(t, n = 250) {
  set.seed(1)
  mu <- rnorm(n, 0.1, 0.3)
  s <- rnorm(n, -1, 0.7)
  t <- rnorm(n, t, 0.8)
  a <- mu + exp(s) * matrix(rnorm(n * n_schools), n)
  b <- a[, school] + exp(t) * matrix(rnorm(n * length(passed)), n)
  cbind(mu, s, t, a, b, deparse.level = 0)
}
deep <- draws_around(-2.5)

test_that("the gradient is that of the log density", {
  target <- target_function(log_nested, max(classes), vectorized = TRUE)
  table <- check_gradient(target, deep[1:3, ])
  expect_identical(nrow(table), length(deep[1:3, ]))
  expect_true(all(table$passed))
  expect_equal(table$gradient, table$difference, tolerance = 1e-6)
})

test_that("both scales are told from what they act on, whatever is given first", {
  at <- probes_at(deep, log_nested)
  set.seed(2)
  expect_setequal(internal("find_drivers")(at, density_of(log_nested)), 2:3)
  # with both given nothing is left to gain
  left <- internal("nats_by_each")(at, 2:3, density_of(log_nested))
  expect_lt(max(left), 1e-10)
})

test_that("a mean of counts is nothing that others depend on", {
  # effects of groups that are not centred, three counts in each: their curvature at the mean of the effects
  # changes with the mean mu, but effects make up for it
  y <- c(2, 3, 1, 6, 4, 5, 9, 7, 8, 2, 4, 1, 5, 3, 3)
  group <- rep(1:5, each = 3)
  log_density <- function(x) {
    tau <- exp(x[, 2])
    z <- x[, -(1:2)]
    eta <- x[, 1] + tau * z[, group]
    slope <- (rep(y, each = nrow(x)) - exp(eta)) %*% (outer(group, 1:5, `==`) + 0)
    structure(
      unname(drop(eta %*% y) - rowSums(exp(eta)) - rowSums(z^2) / 2 - x[, 2]^2 / 2),
      gradient = unname(cbind(rowSums(slope), rowSums(slope * tau * z) - x[, 2], slope * tau - z))
    )
  }
  set.seed(3)
  n <- 250
  theta <- matrix(rnorm(5 * n, rep(log(c(2, 5, 8, 2.3, 3.7)), each = n), 0.25), n)
  mu <- rowMeans(theta) + rnorm(n, 0, 0.2)
  t <- rnorm(n, -0.7, 0.3)
  x <- cbind(mu, t, (theta - mu) / exp(t))
  density <- density_of(log_density)
  at <- internal("with_nats")(probes_at(x, log_density), density)
  change <- internal("find_products")(at, density)
  expect_identical(internal("scales_of")(change), 2L)
  after <- internal("density_after")(list(change), density)
  moved <- internal("changed")(points_at(x, log_density), list(change))
  at <- internal("probes_among")(moved)
  expect_identical(internal("find_drivers")(at, after, 2L), 2L)
})

test_that("a space that is exact for a few is no reason not to look for one that is near for most", {
  points <- points_at(draws_around(-1), log_nested)
  density <- density_of(log_nested)
  exact <- internal("exact_space")(points, list(), density)
  expect_setequal(exact$exact, c(1, schools))
  near <- internal("near_space")(points, exact$changes, density, n = 250)
  expect_setequal(near$known, c(1, schools, classes))
})

test_that("what is conditional on coordinates that are known now is not fitted again", {
  points <- points_at(deep, log_nested)
  near <- internal("near_space")(points, list(), density_of(log_nested), n = 250)
  expect_null(internal("conditional_of_given")(near, list(kind = "neck", conditioning = classes[1])))
})

test_that("groups within groups are right", {
  target <- target_function(log_nested, max(classes), vectorized = TRUE)
  fit <- calmly(smc(target, n_particles = 512, islands = 4, seed = 2))
  expect_match(fit$maps, "nearly normal", all = FALSE)
  expect_log_z(fit, log_evidence_of_nested())
})
