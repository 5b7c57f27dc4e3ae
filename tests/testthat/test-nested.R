# Groups within groups: of each of some schools some classes have a proportion each, whose logit is
# normal around that of the school, and these are normal around a mean. x = (mu, s, t, schools, classes),
# where exp(s) and exp(t) are the scales of schools and classes.

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

test_that("groups within groups are right", {
  target <- target_function(log_nested, max(classes), vectorized = TRUE)
  fit <- calmly(smc(target, seed = 1))
  expect_log_z(fit, log_evidence_of_nested())
})
