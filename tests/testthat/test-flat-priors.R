# Flat priors of programs that brms wrote, by log densities that are written out. Those that
# are compiled are in test-stan.R.

# The prior of a program of brms: `log_prior` of a row of x a point on the unconstrained scale.
as_of_brms <- function(log_prior, names) {
  target <- target_function(log_prior, length(names), vectorized = TRUE, names = names)
  target$program <- list(code = "// generated with brms 2.23.0")
  target$data <- list(values = list(prior_only = 0))
  target
}

test_that("flat priors are told from wide ones, on whatever scale", {
  proper <- list(
    normal = function(u) dnorm(u, 3, 2, log = TRUE),
    wide = function(u) dnorm(u, 0, 1e6, log = TRUE),
    cauchy = function(u) dcauchy(u, 0, 1e4, log = TRUE),
    double_exponential = function(u) -abs(u - 1),
    uniform_far = function(u) dunif(u, -1e6, 1e6, log = TRUE),
    half_normal = function(u) u + dnorm(exp(u), 0, 1e5, log = TRUE),
    half_cauchy = function(u) u + dcauchy(exp(u), 0, 100, log = TRUE),
    inverse_gamma = function(u) u + dgamma(exp(-u), 1, 1, log = TRUE) - 2 * u,
    log_normal = function(u) dnorm(u, 0, 1e3, log = TRUE),
    uniform_between = function(u) plogis(u, log.p = TRUE) + plogis(-u, log.p = TRUE)
  )
  flat <- list(
    "flat[1]" = function(u) 0 * u,
    "flat[2]" = function(u) 0 * u + 1234.5,
    above_zero = function(u) u,
    below_zero = function(u) u - 3,
    one_over_sigma = function(u) 0 * u
  )
  parts <- c(proper, flat)[order(seq(1, 3, length.out = 15) %% 1)] # not all flat ones last
  log_prior <- function(x) {
    Reduce(`+`, lapply(seq_along(parts), function(j) parts[[j]](x[, j])))
  }
  target <- as_of_brms(log_prior, names(parts))
  expect_setequal(improper_parameters(target), names(flat))
  target$improper <- improper_parameters(target)
  warning <- catch_warning(warn_of_flat_priors(target))
  expect_s3_class(warning, "autosmc_warning_prior")
  expect_match(message_of(warning), "flat[2]", fixed = TRUE)
  for (name in names(proper)) {
    alone <- as_of_brms(function(x) proper[[name]](x[, 1]), name)
    expect_identical(improper_parameters(alone), character())
  }
})

test_that("many variables are looked at in parts", {
  log_prior <- function(x) {
    rowSums(dnorm(x[, -(6:8)], log = TRUE)) + rowSums(dnorm(x[, c(6, 8)], 0, 1e4, log = TRUE))
  }
  names <- paste0("b[", 1:1100, "]")
  expect_identical(improper_parameters(as_of_brms(log_prior, names)), names[7])
})

test_that("missing responses are none, nor is what cannot be asked", {
  flat <- function(x) 0 * x[, 1]
  expect_identical(improper_parameters(as_of_brms(flat, c("Ymi[1]", "Yl_x[2]", "b"))), "b")
  expect_identical(improper_parameters(as_of_brms(flat, "Ymi_y[1]")), character())
  nowhere <- as_of_brms(function(x) -Inf * x[, 1]^0, "b")
  expect_identical(improper_parameters(nowhere), character())
  expect_identical(improper_parameters(as_of_brms(function(x) stop("no"), "b")), character())
  other <- as_of_brms(flat, "b")
  other$data$values <- list()
  expect_identical(improper_parameters(other), character())
  expect_identical(improper_parameters(target_function(flat, 1, vectorized = TRUE)), character())
})

# the fit ---------------------------------------------------------------------

improper_fit <- function(improper, seed, ...) {
  target <- normal_target(2, names = c("b[1]", "sigma"), ...)
  target$improper <- improper
  calmly(smc_run(
    target, data.frame(lambda = c(0.2, 1), step_size = c(0.7, 0.5)),
    kernel = kernel_mala(), n_particles = 64, islands = 8, seed = seed
  ))
}

test_that("a fit says which priors are improper", {
  fit <- improper_fit(c(speed = "b[1]"), 1)
  expect_identical(fit$improper, c(speed = "b[1]"))
  expect_match(printed_text(fit), "prior of b[1] is improper", fixed = TRUE)
  expect_match(printed_text(fit), "passed; log Z is no evidence", fixed = TRUE)
  expect_match(report(fit), "prior of b[1] is improper", fixed = TRUE)
  proper <- improper_fit(NULL, 2)
  expect_identical(proper$improper, character())
  expect_no_match(printed_text(proper), "improper|no evidence")
  expect_no_match(report(proper), "improper")
})

test_that("models with improper priors of other parameters are not compared without a warning", {
  none <- improper_fit(NULL, 1)
  speed <- improper_fit(c(speed = "b[1]"), 2)
  weight <- improper_fit(c(weight = "b[1]"), 3)
  scale <- improper_fit("sigma", 4)
  said <- function(code, words) {
    warning <- expect_warning(code, class = "autosmc_warning_prior")
    expect_match(message_of(warning), words, fixed = TRUE)
  }
  said(compared <- compare_evidence(none, speed), "In speed: b[1]")
  for (later in c(printed_text(compared), printed_text(compared[2:1, ]), report(compared))) {
    expect_match(later, "The comparison means nothing: the models have improper priors", fixed = TRUE)
  }
  said(compare_evidence(speed, weight), "In speed: b[1]")
  said(compare_evidence(none, "{x}" = scale, speed), "In {x}: sigma")
  expect_no_warning(compare_evidence(scale, other = improper_fit("sigma", 5)))
  expect_no_warning(compare_evidence(none, other = improper_fit(NULL, 5)))
  skip_if_not_installed("bridgesampling")
  said(bridgesampling::bf(speed, none), "In speed: b[1]")
  said(bridgesampling::post_prob(none, speed), "In speed: b[1]")
  expect_no_warning(bridgesampling::bf(scale, improper_fit("sigma", 5)))
})
