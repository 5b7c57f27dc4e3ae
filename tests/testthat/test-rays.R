# Rays: what they find outside of the draws, and what smc() makes of it.

# Two normal distributions around the same centre, the wide one with a part of the evidence.
d <- 8
nested <- function(part, sd) {
  function(x) {
    square <- rowSums(x^2)
    log_narrow <- log1p(-part) - square / 2
    log_wide <- log(part) - square / (2 * sd^2) - d * log(sd)
    top <- pmax(log_narrow, log_wide)
    value <- top + log(exp(log_narrow - top) + exp(log_wide - top))
    wide <- exp(log_wide - value)
    structure(value - d / 2 * log(2 * pi), gradient = -x * (1 - wide + wide / sd^2))
  }
}

sampler_of <- function(target) sampler_for(target, 1024, kernel_mala())

# Draws z in the coordinates of N(0, scale^2), of islands that have taken as many evaluations as most rays are worth.
final_of <- function(target, z, scale = 1) {
  n <- nrow(z)
  list(
    islands = data.frame(n_target_evals = 1e5), reference = reference_gaussian(0, scale),
    log_weights = rep(-log(n), n), coordinates = z, origins = seq_len(n),
    log_target = evaluate_target(target, scale * z, gradient = FALSE)$log_density + ncol(z) * log(scale)
  )
}

look_from <- function(target, z, scale = 1) {
  ask_of("rays", final_of(target, z, scale), sampler = sampler_of(target))$found
}

normal_draws <- function(n, d) matrix(rnorm(n * d), n)

test_that("they tell how much of the evidence is outside of the draws", {
  set.seed(1)
  for (part in c(0.05, 0.3)) {
    outside <- look_from(target_function(nested(part, 6), d, vectorized = TRUE), normal_draws(8000, d))
    expect_estimate(outside$rise, outside$error, -log1p(-part), 0.03)
    # the points are of the wide one, all around, but for a few at the end of the narrow one
    expect_equal(sum(outside$points$w), 1)
    distance <- sqrt(rowSums(outside$points$z^2))
    expect_true(all(distance > 4 & distance < 6 * (sqrt(d) + 4)))
    slope <- rowSums(outside$points$g * outside$points$z) / distance^2
    expect_gt(mean(abs(slope + 1 / 36) < 0.003), 0.6)
  }
})

test_that("they tell what is within draws that are too wide to have been there", {
  set.seed(1)
  found <- lapply(1:4, function(k) {
    z <- normal_draws(8000, d)
    z <- z[rowSums(z^2) > 0.5, ] # where 0.03 % of the narrow one are
    look_from(target_function(nested(0.5, 6), d, vectorized = TRUE), z, scale = 6)
  })
  of_all <- function(name) vapply(found, `[[`, 0, name)
  expect_estimate(mean(of_all("rise")), sqrt(sum(of_all("error")^2)) / 4, log(2), 0.1)
  for (within in found) expect_true(all(rowSums(within$points$z^2) < 1)) # 1 / 6 of sqrt(d) and more
})

test_that("outside of draws that have seen all there is no more than its share", {
  set.seed(1)
  for (dim in c(3, 50)) {
    outside <- look_from(target_gaussian(dim), normal_draws(8000, dim))
    expect_estimate(outside$rise, outside$error, 0, 0.03)
  }
})

test_that("draws without weight may be anywhere, and where the target fails there are no rays", {
  target <- target_function(function(x) {
    if (any(abs(x) > 1e3)) stop("too far")
    structure(-rowSums(x^2) / 2, gradient = -x)
  }, dim = 2, vectorized = TRUE)
  look <- function(final) ask_of("rays", final, sampler = sampler_of(target))$found
  set.seed(9)
  n <- least_draws_for_probes + 1
  z <- normal_draws(n, 2)
  final <- final_of(target, z)
  expect_lt(look(final)$rise, 0.05)
  away <- final
  away$coordinates[1, ] <- c(Inf, NaN)
  away$log_weights[1] <- -Inf
  expect_lt(look(away)$rise, 0.05)
  # too few tell nothing
  fewer <- away
  fewer$log_weights[2] <- -Inf
  expect_null(look(fewer))
  # draws that are at one place, and draws a thousand times as far
  away$coordinates[] <- 1
  expect_null(look(away))
  final$coordinates <- 1e3 * z
  expect_null(look(final))
})

test_that("few evaluations are spent on them", {
  n_rays <- internal("n_rays")
  sampler <- list(kernel = kernel_klmc())
  each <- internal("n_ray_evals")(sampler)
  expect_lte(n_rays(sampler, 3e4) * each, 0.05 * 3e4)
  # the least that islands count as
  expect_gte(n_rays(sampler, internal("counted")(0, sampler, NULL)), 16)
  expect_identical(n_rays(sampler, 1e7), most_rays)
  expect_identical(internal("n_ray_evals")(list(kernel = kernel_rwmh())), each - 1)
})

test_that("smc() goes on to what they find, and counts what they take", {
  n_asked <- 0
  log_density <- nested(0.1, 5)
  counted <- function(x) {
    n_asked <<- n_asked + nrow(x)
    log_density(x)
  }
  target <- target_function(counted, d, vectorized = TRUE)
  for (seed in 1:3) {
    n_asked <- 0
    fit <- calmly(smc(target, seed = seed))
    expect_equal(spent(fit), n_asked)
    expect_gt(sum(fit$runs$run == "final"), 1)
    # without them it is log(0.9) = -0.105, and claims an error of 0.004
    expect_log_z(fit, 0)
  }
})

test_that("the next reference has what is outside, in a mixture or as heavier tails", {
  outside <- list(is_of_normal = FALSE, rise = -log(0.9), is_here = rep(TRUE, 400), points = list(
    z = rbind(diag(20, d), diag(-20, d)), w = rep(1 / (2 * d), 2 * d), g = matrix(0, 2 * d, d)
  ))
  set.seed(5)
  z <- matrix(rnorm(400 * d), 400)
  record <- list(
    reference = reference_gaussian(3, 2), particles = 3 + 2 * z, coordinates = z, gradients = -z,
    log_weights = rep(-log(400), 400), origins = 1:400
  )
  next_record <- function(record) internal("diagnostics")()$rays$remedy(record, outside)
  nested <- internal("propose")(next_record(record), "basins")$reference
  mixture <- nested$basins
  sizes <- vapply(1:2, function(k) det(internal("component")(mixture, k)$L)^(1 / d), 0)
  # points 20 away in each of d directions have the scale 20 / sqrt(d); the narrow one is inflated
  expect_equal(sizes[2] / sizes[1], 20 / sqrt(d), tolerance = 0.1)
  record$reference$maps <- list(list(name = "rotation", axes = diag(d)))
  expect_null(internal("propose")(next_record(record), "basins"))

  record$reference$maps <- NULL
  more <- next_record(record)
  expect_equal(nrow(more$particles), 400 + 2 * d)
  expect_equal(sum(exp(more$log_weights)), 1)
  expect_equal(sum(exp(more$log_weights[-(1:400)])), 0.1)
  expect_equal(more$particles[401, ], 3 + 2 * outside$points$z[1, ])
  expect_identical(anyDuplicated(more$origins), 0L)
  expect_gt(internal("fit_shape")(more)$gain, 0.5)
})
