# Another fit as the start.

# One observation each of three means with a normal prior, and its log evidence.
y <- c(1, -1, 0.5)
means <- function(sd, observed = y, ...) {
  target_function(
    function(x) rowSums(dnorm(x, 0, sd, log = TRUE) + dnorm(sweep(x, 2, observed), log = TRUE)), length(observed),
    gradient = function(x) -x / sd^2 - sweep(x, 2, observed), vectorized = TRUE, ...
  )
}
log_z_of_means <- function(sd, observed = y) sum(dnorm(observed, 0, sqrt(1 + sd^2), log = TRUE))

# Not normal, with log Z = 0.
logistic <- function(location) {
  target_function(
    function(x) rowSums(dlogis(x, location, log = TRUE)), 3,
    gradient = function(x) -tanh((x - location) / 2), vectorized = TRUE
  )
}

test_that("from the fit of a neighbour a target takes fewer evaluations, without rounds", {
  fit_of <- function(...) smc(..., n_particles = 1024)
  cold <- fit_of(means(1), seed = 1)
  warm <- expect_silent(fit_of(means(1.3), reference = cold, seed = 2))
  expect_identical(warm$runs$label, c("fit", "fit"))
  expect_lt(spent(warm), spent(cold)) # which is as cheap as can be, from a reference that is the target
  expect_null(warm$scout)
  expect_log_z(warm, log_z_of_means(1.3), 0.01)
  beside <- c("proper", "rays", "lines", "mean_gradient", "estimates")
  expect_true(all(beside %in% warm$diagnostics$name))
  # and so on, with more islands, and from it
  expect_identical(smc_extend(warm, islands = 5)$diagnostics$name, warm$diagnostics$name)
  expect_log_z(fit_of(means(1.5), reference = warm, seed = 3), log_z_of_means(1.5), 0.01)

  cold <- fit_of(logistic(2), seed = 1)
  of_logistic <- lapply(2:5, function(seed) fit_of(logistic(2.2), reference = cold, seed = seed))
  for (fit in of_logistic) {
    expect_identical(unique(fit$runs$label), "fit")
    expect_lt(spent(fit), spent(cold) / 2)
  }
  expect_log_z(of_logistic, 0, 0.05)
  # and SMC by itself, whose islands are unbiased
  by_smc <- lapply(of_logistic, function(fit) as.list(fit$estimates[1, ]))
  error <- sqrt(sum(vapply(by_smc, `[[`, 0, "std_error")^2)) / length(by_smc)
  expect_estimate(mean(vapply(by_smc, `[[`, 0, "log_z")), error, 0, 0.1)
})
test_that("a target that is further off is fitted again, and one that is too far from the beginning", {
  cold <- smc(logistic(2), seed = 1)
  refitted <- expect_silent(smc(logistic(4), reference = cold, seed = 2))
  expect_true("fit" %in% refitted$runs$label && refitted$runs$label[nrow(refitted$runs)] != "fit")
  expect_false("scout" %in% refitted$runs$run)
  expect_log_z(refitted, 0)

  far <- c(20, -20, 10)
  of_far <- smc(means(1, far), seed = 3)
  expect_message(fit <- smc(means(9, far), reference = of_far, seed = 4), class = "autosmc_message_cold")
  expect_log_z(fit, log_z_of_means(9, far))
  expect_true(all(c("scout", "fit") %in% c(fit$runs$run, fit$runs$label)))
  expect_false(any(fit$runs$used[fit$runs$label %in% "fit"]))
  expect_true(all(c("elbo", "rounds") %in% fit$diagnostics$name))
})

test_that("where diagnostics fail from another fit, the target is fitted without it", {
  # a wide distribution around a narrow one, of which the fit knows nothing
  nested <- function(weight) mixture_target(matrix(0, 2, 2), c(1, 30), c(1 - weight, weight))
  narrow <- smc(nested(0), seed = 1)
  expect_message(fit <- smc(nested(0.5), reference = narrow, seed = 2), "rays", class = "autosmc_message_cold")
  final <- fit$runs[fit$runs$run == "final", ]
  expect_identical(final$label[1], "fit")
  expect_identical(final$used, seq_along(final$used) == nrow(final))
  expect_log_z(fit, 0)
})

test_that("variables that are new start from the scout, and others may be missing", {
  # a normal distribution of correlated variables, of which the others have the same evidence
  correlated <- function(d) {
    precision <- solve(0.5 + diag(0.5, d))
    target_function(
      function(x) -rowSums((x %*% precision) * x) / 2, d,
      gradient = function(x) -x %*% precision, vectorized = TRUE
    )
  }
  log_z <- function(d) (d * log(2 * pi) + log(det(0.5 + diag(0.5, d)))) / 2
  smaller <- smc(correlated(2), seed = 1)
  larger <- expect_silent(smc(correlated(4), reference = smaller, seed = 2))
  expect_identical(larger$runs$run[1], "scout")
  expect_identical(larger$runs$label[larger$runs$run == "adapt"][1], "fit")
  expect_log_z(larger, log_z(4), 0.02)
  expect_log_z(smc(correlated(3), reference = larger, seed = 3), log_z(3), 0.02)
  # without a scout there is nothing to start from
  expect_log_z(smc(correlated(3), reference = smaller, scout = FALSE, seed = 3), log_z(3), 0.02)
})

test_that("variables are checked, and so is the seed", {
  fit <- smc(means(1), n_particles = 128, seed = 1)
  expect_bad(smc(means(1), reference = fit, seed = 1), "seed")
  expect_bad(smc(means(1, names = c("a", "b", "c")), reference = fit, seed = 2), "reference")
  # other bounds: what the draws tell
  expect_log_z(smc(means(1, lower = -9), reference = fit, seed = 2), log_z_of_means(1))
  # without its draws, too
  fit <- smc(means(1), n_particles = 128, keep = "moments", seed = 1)
  expect_log_z(smc(means(1.1), reference = fit, seed = 2), log_z_of_means(1.1), 0.02)
  expect_s3_class(smc_adapt(means(1.1), reference = fit, seed = 2), "smc_fit")
})
