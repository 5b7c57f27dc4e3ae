# Lines: what they find beyond the draws along a variable, and what smc() makes of it.

rules <- internal("rules")
look <- function(sampler, final) ask_of("lines", final, no_error, sampler = sampler)$found
no_error <- list(method = "bridge", log_z = 0, std_error = NA_real_)
limit_of <- function(found) internal("limit_of_rise")(found, no_error)

# A long thin tail: x1 has a t distribution with two degrees of freedom, and the others are normal and narrow.
thin_tail <- function(d = 3, sd = 0.1, heard = function(x) NULL) {
  target_function(
    function(x) {
      heard(x)
      t <- x[, 1]
      rest <- x[, -1, drop = FALSE] / sd
      structure(
        dt(t, 2, log = TRUE) + rowSums(dnorm(rest, log = TRUE)) - (d - 1) * log(sd),
        gradient = cbind(-3 * t / (2 + t^2), -rest / sd)
      )
    },
    d,
    vectorized = TRUE
  )
}

sampler_of <- function(target, kernel = kernel_mala()) sampler_for(target, 64, kernel, seed = 2)

# Draws x, in the coordinates of a normal reference with correlations.
final_of <- function(x, sampler, n_evals = 1e6) {
  n <- nrow(x)
  L <- t(chol(diag(ncol(x)) + 0.5))
  final <- list(
    islands = data.frame(n_target_evals = n_evals), log_weights = rep(-log(n), n), origins = seq_len(n),
    reference = reference_gaussian(1, chol = L), particles = x, estimates = as.data.frame(no_error)
  )
  final$coordinates <- t(solve(L, t(x - 1)))
  final
}

draws_of_tail <- function(n, until = 1, d = 3, sd = 0.1) {
  cbind(qt(until * (seq_len(n) - 0.5) / n, 2)[sample(n)], matrix(sd * rnorm(n * (d - 1)), n))
}

test_that("they tell how much of the evidence is beyond the draws, and where", {
  n_asked <- 0
  sampler <- sampler_of(thin_tail(heard = function(x) n_asked <<- n_asked + nrow(x)))
  set.seed(1)
  for (until in c(0.9, 0.97)) {
    final <- final_of(draws_of_tail(4000, until), sampler)
    n_asked <- 0
    asked <- ask_of("lines", final, no_error, sampler = sampler)
    found <- asked$found
    expect_estimate(found$rise, found$error, -log(until), 0.1)
    expect_identical(found$name, "x1")
    # the points are on the lines, beyond where a tenth of the draws are, with the gradients there
    expect_equal(sum(found$points$w), 1)
    x <- found$points$z
    expect_true(all(x[, 1] > quantile(final$particles[, 1], 0.9) - 1e-8))
    expect_true(all(apply(x[, -1], 1, function(rest) any(rowSums(abs(sweep(final$particles[, -1], 2, rest))) < 1e-8))))
    expect_equal(found$points$g, cbind(-3 * x[, 1] / (2 + x[, 1]^2), -100 * x[, -1]))
    expect_equal(asked$n_target_evals, n_asked)
  }
  expect_gt(look(sampler, final_of(draws_of_tail(4000, 0.9), sampler))$rise, limit_of(found))
})

test_that("where many lines do not decide whether a part is missed, more do", {
  numbers_for <- function(rise) {
    asked <- NULL
    beyond_part <- function(part, n, ...) {
      asked <<- c(asked, n)
      list(rise = rise(n), error = 1.6 / sqrt(n), of_lines = 1.6 / sqrt(n), of_draws = 0)
    }
    with_internals(
      list(beyond_part = beyond_part),
      internal("with_more_lines")(beyond_part(NULL, 64), c(256, 1024), no_error, NULL)
    )
    asked
  }
  expect_equal(numbers_for(function(n) 0.1), 64) # within its error from nothing
  expect_equal(numbers_for(function(n) 1), 64) # above its limit
  expect_equal(numbers_for(function(n) 0.5), c(64, 256))
  expect_equal(numbers_for(function(n) if (n == 64) 0.5 else 0), c(64, 256))
  expect_equal(numbers_for(function(n) 4 / sqrt(n)), c(64, 256, 1024)) # no more than that
})

test_that("where many lines tell nothing of what a few have found, nothing is known", {
  sampler <- sampler_of(thin_tail())
  set.seed(3)
  final <- final_of(draws_of_tail(500), sampler)
  found <- with_internals(
    list(beyond_part = function(part, n, ...) {
      list(rise = if (n == 8) 1 else NaN, error = 0.1, of_lines = 0.1, of_draws = 0, part = part, of = part$of)
    }),
    look(sampler, final)
  )
  expect_null(found)
})

test_that("a rise that matters, but is not sure, counts less its own error, and does not warn", {
  row_of <- function(rise, error, std_error = 0.02) {
    estimate <- list(method = "bridge", log_z = 0, std_error = std_error)
    found <- list(rise = rise, error = error, name = "x1")
    judge_of("lines", list(estimates = as.data.frame(estimate)), estimate, found = found)
  }
  unsure <- row_of(0.05, 0.03, 0.04)
  expect_true(unsure$passed)
  expect_equal(unsure$shift, 0.04)
  expect_identical(row_of(0.05, 0.045, 0.04)$shift, 0) # they do not tell it from what does not matter
  expect_identical(row_of(0.015, 0.01)$shift, 0) # less than the error of the estimate
  expect_identical(row_of(0.009, 0.005, 0.001)$shift, 0) # too little for a word
  expect_identical(row_of(-0.05, 0.01)$shift, 0)
  sure <- row_of(0.1, 0.03)
  expect_false(sure$passed)
  expect_equal(sure$shift, 0.1)
})

test_that("lines through the same draw are not independent", {
  set.seed(7)
  values <- rnorm(50)
  error <- internal("squared_error")
  expect_equal(error(values, 1:50), var(values) / 50)
  expect_equal(error(rep(values, 3), rep(1:50, 3)), var(values) / 50)
})

test_that("beyond draws that have seen all there is no more than their share", {
  set.seed(2)
  for (case in list(
    list(target = thin_tail(), x = draws_of_tail(4000)),
    list(target = target_gaussian(20), x = matrix(rnorm(8e4), 4000)),
    list(target = thin_tail(), x = draws_of_tail(4000), kernel = kernel_rwmh())
  )) {
    sampler <- sampler_of(case$target, if (is.null(case$kernel)) kernel_mala() else case$kernel)
    found <- look(sampler, final_of(case$x, sampler))
    expect_true(is.null(found$rise) || found$rise < limit_of(found))
  }
})

test_that("where little can be told there are no lines", {
  sampler <- sampler_of(thin_tail())
  set.seed(3)
  final <- final_of(draws_of_tail(500), sampler)
  expect_false(is.null(look(sampler, final)))
  # too few draws have weight
  few <- final
  few$log_weights[-(1:255)] <- -Inf
  expect_null(look(sampler, few))
  # draws at one place have no ends
  same <- final
  same$particles[] <- 1
  expect_null(look(sampler, same))
  # the target fails far out
  failing <- target_function(function(x) {
    if (any(abs(x) > 50)) stop("too far")
    -rowSums(x^2) / 2
  }, 3, gradient = function(x) -x, vectorized = TRUE)
  expect_null(look(sampler_of(failing), final_of(matrix(rnorm(1500), 500), sampler_of(failing))))
})

test_that("the longest ends have lines, or those of the variables given which others are normal", {
  set.seed(4)
  x <- cbind(rnorm(4000), rt(4000, 3), runif(4000), rexp(4000))
  draws <- list(x = x, w = rep(1 / 4000, 4000))
  parts <- internal("parts_of_ends")(internal("longest_ends")(draws, 1:4, 3), 6)
  expect_equal(vapply(parts, `[[`, 0, "variable"), rep(c(2, 2, 4), 2))
  expect_equal(vapply(parts, `[[`, 0, "side"), rep(c(-1, 1, 1), 2))
  expect_length(internal("parts_of_ends")(internal("longest_ends")(draws, 1:4, 3), 4), 4)
  beyond <- function(part, place) mean(part$side * x[, part$variable] >= place)
  expect_equal(vapply(parts, function(part) beyond(part, part$from), 0), rep(c(0.1, 0.01), each = 3), tolerance = 0.01)
  expect_equal(vapply(parts, function(part) beyond(part, part$to), 0), rep(c(0.01, 0.001), each = 3), tolerance = 0.01)
  sampler <- sampler_of(target_gaussian(4))
  final <- final_of(x, sampler)
  expect_identical(internal("line_variables")(final), 1:4)
  final$reference$changes <- list(list(name = "precision", given = 3L, order = c(1, 2, 4)))
  expect_identical(internal("line_variables")(final), 3L)
})

# Effects u ~ N(mu, exp(t)), of which draws have seen no t beyond a quantile; and a reference in which they depend on mu
# and t.
test_that("along a parent lines bend as its children follow", {
  n_effects <- 6
  effects <- 2 + seq_len(n_effects)
  log_density <- function(x) {
    z <- (x[, effects] - x[, 1]) / exp(x[, 2])
    rowSums(dnorm(cbind(x[, 1:2], z), log = TRUE)) - n_effects * x[, 2]
  }
  gradient <- function(x) {
    z <- (x[, effects] - x[, 1]) / exp(x[, 2])
    cbind(rowSums(z) / exp(x[, 2]) - x[, 1], rowSums(z^2) - n_effects - x[, 2], -z / exp(x[, 2]))
  }
  names <- c("mu", "t", sprintf("u%d", seq_len(n_effects)))
  sampler <- sampler_of(target_function(log_density, 8, gradient, vectorized = TRUE, names = names))
  feature <- function(k) internal("feature_of")(k, "linear")
  maps_of <- internal("maps_of")
  set.seed(6)
  for (until in c(0.9, 0.97)) {
    t <- qnorm(until * (seq_len(4000) - 0.5) / 4000)[sample(4000)]
    mu <- rnorm(4000)
    x <- cbind(mu, t, mu + exp(t) * matrix(rnorm(4000 * n_effects), 4000))
    final <- final_of(x, sampler)
    # location mu and scale exp(t)
    final$reference <- reference_gaussian(numeric(8))
    final$reference$maps <- list(list(
      name = "moments", order = as.double(effects), features = cbind(feature(1), feature(2)),
      location = cbind(rep(1, n_effects), 0), log_scale = cbind(rep(0, n_effects), 1)
    ))
    at <- internal("inverse_maps")(maps_of(final$reference, 8), x, gradient(x))
    final[c("coordinates", "gradients")] <- at[c("x", "g")]
    final["log_target"] <- list(log_density(x) - at$log_jacobian)
    found <- look(sampler, final)
    expect_estimate(found$rise, found$error, -log(until), 0.15)
    expect_identical(found$name, "t")
  }
  record <- internal("diagnostics")()$lines$remedy(final, found)
  known <- 4000 + seq_along(found$points$w)
  expect_equal(internal("target_gradients")(record, known), gradient(record$particles[known, ]), ignore_attr = TRUE)
})

test_that("the points that are found join the draws, whatever leads to their coordinates", {
  set.seed(5)
  z <- matrix(rnorm(600), 200)
  record <- list(
    reference = reference_gaussian(3, 2), particles = 3 + 2 * z, coordinates = z, gradients = -z,
    log_weights = rep(-log(200), 200), origins = 1:200
  )
  x <- cbind(40 + 1:10, 3, 3)
  found <- list(rise = -log(0.9), points = list(z = x, g = -(x - 3) / 4, w = rep(0.1, 10)))
  with_points <- internal("diagnostics")()$lines$remedy
  gradients_of <- function(record) internal("target_gradients")(record, seq_len(nrow(record$coordinates)))
  affine <- with_points(record, found)
  expect_equal(affine$particles, rbind(3 + 2 * z, x))
  expect_equal(affine$coordinates, rbind(z, (x - 3) / 2))
  expect_equal(sum(exp(affine$log_weights[201:210])), 0.1)
  expect_equal(gradients_of(affine), -(affine$particles - 3) / 4)
  # also by a bend
  feature_of <- internal("feature_of")
  record$reference$maps <- list(list(
    name = "moments", order = c(2, 3), features = cbind(feature_of(1, "linear"), feature_of(1, "square")),
    location = cbind(c(0.3, -0.2), c(0.1, 0)), log_scale = cbind(c(-0.05, 0), 0)
  ))
  maps <- internal("reference_maps")(record$reference, 3)
  record$particles <- internal("forward_maps")(maps, z)$x
  shaped <- with_points(record, found)
  expect_equal(shaped$particles, rbind(record$particles, x))
  expect_equal(internal("forward_maps")(maps, shaped$coordinates)$x, shaped$particles)
  expect_equal(gradients_of(shaped)[201:210, ], found$points$g)
})

# The shape of a skew normal distribution, with a Cauchy prior: at large values the likelihood is flat.
test_that("smc() goes on to a long thin tail, and counts what lines take", {
  y <- c(0.1, 0.3, 0.35, 0.5, 0.8, 1, 1.1, 1.6, 2, 2.7, 3.1, 0.2)
  n_asked <- 0
  log_density <- function(x) {
    n_asked <<- n_asked + nrow(x)
    z <- outer(-x[, 1], y, `+`)
    rowSums(dnorm(z, log = TRUE) + pnorm(x[, 2] * z, log.p = TRUE) + log(2)) +
      dnorm(x[, 1], 0, 10, log = TRUE) + dcauchy(x[, 2], 0, 10, log = TRUE)
  }
  gradient <- function(x) {
    z <- outer(-x[, 1], y, `+`)
    inverse_mills <- exp(dnorm(x[, 2] * z, log = TRUE) - pnorm(x[, 2] * z, log.p = TRUE))
    cbind(
      rowSums(z - x[, 2] * inverse_mills) - x[, 1] / 100,
      rowSums(inverse_mills * z) - 2 * x[, 2] / (100 + x[, 2]^2)
    )
  }
  # alpha = sinh(u)
  at <- expand.grid(xi = seq(-4, 6, by = 0.01), u = seq(-12, 16, by = 0.05))
  l <- log_density(cbind(at$xi, sinh(at$u))) + log(cosh(at$u))
  truth <- max(l) + log(sum(exp(l - max(l)))) + log(0.01 * 0.05)
  target <- target_function(log_density, 2, gradient, vectorized = TRUE, names = c("xi", "alpha"))
  n_asked <- 0
  fits <- lapply(1:4, function(seed) calmly(smc(target, seed = seed)))
  expect_equal(sum(vapply(fits, function(fit) sum(fit$runs$n_target_evals), 0)), n_asked)
  for (fit in fits) expect_true("lines" %in% fit$diagnostics$name)
  # none misses much, and most no more than their errors see
  off <- abs(vapply(fits, `[[`, 0, "log_z") - truth)
  error <- vapply(fits, `[[`, 0, "std_error")
  expect_lt(max(off - 3 * error), 0.1)
  limit <- errors_for() * error
  expect_gte(sum(off < limit & limit < 0.1), 2)
})

# The scale of the observations has a long tail towards zero, with 3 % of the evidence; log Z by quadrature over both
# scales.
test_that("small islands miss no tail that few draws reach", {
  fits <- lapply(1:6, function(seed) calmly(smc(target_brownian(), precision = 0.01, seed = seed)))
  expect_log_z(fits, 1.187749, resolution = 0.03)
})
