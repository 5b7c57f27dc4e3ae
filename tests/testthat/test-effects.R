# Random effects that are integrated out: the integral over components, and what it makes of the evidence.

skip_if_not_installed("RTMB")

# The log of the ratio of the exact integral over the effects to Laplace's approximation, a function of parameters.
log_ratio <- function(model) {
  integral <- internal("counted_integral")(list(model = model, component = internal("effect_components")(model)))
  function(x) integral(x)[2]
}
components <- internal("connected_components")

model_of <- function(f, parameters) {
  RTMB::MakeADFun(f, parameters, random = "u", silent = TRUE)
}

# The log of the exact integral over the effects of a model at the parameters x.
exact_at <- function(model, x) {
  log_ratio(model)(x) - as.numeric(model$fn(x))
}

# Groups of 4 binary responses, or counts, with an intercept each, and the log likelihood by R's own integrals.
group <- rep(1:6, each = 4)
binary <- rep(c(0, 1, 0, 1, 1, 1), c(5, 3, 4, 2, 6, 4))
counts <- c(0, 3, 1, 2, 9, 12, 7, 8, 0, 0, 0, 0, 1, 2, 0, 1, 30, 25, 33, 28, 4, 2, 3, 5)
families <- list(
  list(
    y = binary, log_density = function(y, eta) plogis((2 * y - 1) * eta, log.p = TRUE),
    recorded = function(y, eta) RTMB::dbinom_robust(y, 1, eta, log = TRUE)
  ),
  list(
    y = counts, log_density = function(y, eta) dpois(y, exp(eta), log = TRUE),
    recorded = function(y, eta) RTMB::dpois(y, exp(eta), log = TRUE)
  )
)

intercepts_model <- function(family, prior = function(p) 0) {
  model_of(function(p) {
    -sum(RTMB::dnorm(p$u, 0, p$sd, log = TRUE)) - sum(family$recorded(family$y, p$b + p$u[group])) - prior(p)
  }, list(b = 0, sd = 1, u = numeric(6)))
}

intercepts_by_integrate <- function(family, x) {
  sum(vapply(split(family$y, group), function(y) {
    log_joint <- function(u) {
      vapply(u, function(u) sum(family$log_density(y, x[1] + u)), 0) + dnorm(u, 0, x[2], log = TRUE)
    }
    peak <- optimize(log_joint, c(-40, 40), maximum = TRUE, tol = 1e-8)
    part <- function(a, b) integrate(function(u) exp(log_joint(u) - peak$objective), a, b, rel.tol = 1e-9)$value
    reach <- 12 * x[2]
    peak$objective + log(part(peak$maximum - reach, peak$maximum) + part(peak$maximum, peak$maximum + reach))
  }, 0))
}

test_that("components are what is connected, in any order", {
  set.seed(1)
  for (size in list(rep(1, 7), c(2, 3, 1, 5), 40)) {
    of <- rep(seq_along(size), size)
    pattern <- outer(of, of, "==") & abs(outer(seq_along(of), seq_along(of), "-")) < 2
    shuffled <- sample(length(of))
    found <- components(Matrix::Matrix(1 * pattern[shuffled, shuffled], sparse = TRUE))
    expect_identical(outer(found, found, "=="), outer(of[shuffled], of[shuffled], "=="))
  }
})

test_that("Laplace's approximation of normal effects is exact, in components of any size", {
  set.seed(2)
  x <- matrix(rnorm(30), 10)
  y <- rnorm(10)
  for (size in 1:3) {
    group <- rep_len(1:3, 10)
    of_effects <- t(vapply(1:10, function(i) {
      replace(numeric(3 * size), 3 * (seq_len(size) - 1) + group[i], x[i, seq_len(size)])
    }, numeric(3 * size)))
    f <- function(p) {
      -sum(RTMB::dnorm(y, p$b + c(of_effects %*% p$u), 0.7, log = TRUE)) -
        sum(RTMB::dnorm(p$u, 0, exp(p$b), log = TRUE))
    }
    model <- model_of(f, list(b = 0, u = numeric(3 * size)))
    component <- internal("effect_components")(model)
    expect_identical(tabulate(component), rep(as.integer(size), 3))
    for (b in c(-2, 0.3, 2)) expect_lt(abs(log_ratio(model)(b)), 1e-8)
  }
})

test_that("single effects are integrated out as by integrate()", {
  for (family in families) {
    model <- intercepts_model(family)
    for (x in list(c(0.3, 0.2), c(-1, 1), c(1, 4))) {
      expect_equal(exact_at(model, x), intercepts_by_integrate(family, x), tolerance = 1e-7)
    }
  }
})

test_that("effects that belong together are integrated out without bias", {
  # the same scores for a group's intercept and slope, or three effects, that are far from normal
  set.seed(3)
  z <- cbind(1, rnorm(12), rnorm(12))
  y <- rep(c(1, 1, 0, 1), 3)
  for (size in 2:3) {
    model <- model_of(function(p) {
      -sum(RTMB::dnorm(p$u, 0, p$sd, log = TRUE)) -
        sum(RTMB::dbinom_robust(y, 1, c(z[, seq_len(size)] %*% p$u), log = TRUE))
    }, list(sd = 1, u = numeric(size)))
    nodes <- seq(-9, 9, length.out = 61)
    grid <- as.matrix(expand.grid(rep(list(nodes), size)))
    terms <- 2 * (grid %*% t(z[, seq_len(size)])) * rep(y - 0.5, each = nrow(grid))
    joint <- exp(rowSums(plogis(terms, log.p = TRUE)) + rowSums(dnorm(grid, log = TRUE)))
    truth <- sum(joint) * (nodes[2] - nodes[1])^size
    found <- replicate(40, exp(exact_at(model, 1) - log(truth)))
    expect_estimate(mean(found), max(sd(found) / sqrt(40), 1e-7), 1, resolution = 0.03, n = 40)
  }
})

# The log evidence of the counts, with Laplace's approximation or exact, by a grid over the parameters.
log_prior <- function(p) dnorm(p$b, 0, 2, log = TRUE) + dexp(p$sd, log = TRUE)
recorded_prior <- function(p) RTMB::dnorm(p$b, 0, 2, log = TRUE) + RTMB::dexp(p$sd, log = TRUE)

evidence_by_grid <- function(log_likelihood) {
  b <- seq(-7, 7, length.out = 29)
  log_sd <- seq(-2, 3, length.out = 26)
  value <- outer(b, log_sd, Vectorize(function(b, log_sd) {
    log_likelihood(c(b, exp(log_sd))) + log_prior(list(b = b, sd = exp(log_sd))) + log_sd
  }))
  max(value) + log(sum(exp(value - max(value)))) + log((b[2] - b[1]) * (log_sd[2] - log_sd[1]))
}

test_that("the evidence is exact, and Laplace's is beside it", {
  model <- intercepts_model(families[[2]], recorded_prior)
  of_laplace <- evidence_by_grid(function(x) -as.numeric(model$fn(x)) - log_prior(list(b = x[1], sd = x[2])))
  exact <- evidence_by_grid(function(x) exact_at(model, x) - log_prior(list(b = x[1], sd = x[2])))
  run <- function(...) {
    quiet_laplace(smc(model, lower = c(sd = 0), ..., n_particles = 128, n_steps = 4, rounds = 1, scout = FALSE))
  }
  fit <- run(seed = 1, islands = 6)
  expect_log_z(fit, exact)
  expect_estimate(fit$laplace$log_z, fit$laplace$std_error, of_laplace, resolution = 0.1)
  expect_estimate(fit$laplace$correction, fit$laplace$correction_error, exact - of_laplace, resolution = 0.1)
  expect_match(printed_text(fit), "6 components of 1 effect, by quadrature", fixed = TRUE)
  expect_match(unclass(report(fit)), "6 components of 1 effect, by quadrature", fixed = TRUE)
  expect_false(glance(fit)$laplace)

  alone <- run(seed = 2, islands = 6, method = "laplace")
  expect_log_z(alone, of_laplace)
  expect_identical(alone$log_z, alone$laplace$log_z)
  expect_match(printed_text(alone), "of Laplace's approximation", fixed = TRUE)
  expect_match(unclass(report(alone)), "with an unknown error of its own", fixed = TRUE)
  expect_true(glance(alone)$laplace)
  expect_warning(compare_evidence(fit, alone), class = "autosmc_warning_laplace")

  # more islands are corrected together, wherever they were run
  expect_log_z(more <- smc_extend(fit, islands = 8), exact)
  expect_identical(smc_combine(fit, smc_islands(fit, 7:8))[c("log_z", "laplace")], more[c("log_z", "laplace")])
  expect_bad(smc_extend(more, islands = 9, keep = "moments"), "keep")
})

# A random walk that counts are about: one component of as many effects.
walk_model <- function() {
  model_of(function(p) {
    -sum(RTMB::dnorm(diff(p$u), 0, 0.5, log = TRUE)) - RTMB::dnorm(p$u[1], p$b, 0.5, log = TRUE) -
      sum(RTMB::dpois(counts, exp(p$u), log = TRUE)) - RTMB::dnorm(p$b, 0, 2, log = TRUE)
  }, list(b = 0, u = numeric(24)))
}

# By the filter of a hidden Markov model on a fine grid: the evidence, and the mean and sd of the last effect, where
# the first is normal around `mean`.
walk_by_filter <- function(mean, sd) {
  u <- seq(-9, 8, length.out = 400)
  h <- u[2] - u[1]
  moves <- h * dnorm(outer(u, u, "-"), 0, 0.5)
  share <- h * dnorm(u, mean, sd)
  log_z <- 0
  for (t in seq_along(counts)) {
    if (t > 1) share <- drop(moves %*% share)
    share <- share * dpois(counts[t], exp(u))
    log_z <- log_z + log(sum(share))
    share <- share / sum(share)
  }
  mean <- sum(share * u)
  list(log_z = log_z, mean = mean, sd = sqrt(sum(share * (u - mean)^2)))
}

test_that("a large component is integrated out by runs without bias, wherever their path was found", {
  model <- walk_model()
  ratio <- log_ratio(model)
  set.seed(5)
  for (b in c(0, 2)) {
    truth <- walk_by_filter(b, 0.5)$log_z + dnorm(b, 0, 2, log = TRUE)
    found <- replicate(100, exp(ratio(b) - as.numeric(model$fn(b)) - truth))
    expect_estimate(mean(found), sd(found) / sqrt(100), 1, resolution = 0.1, n = 100)
  }
})

test_that("the evidence with a large component is exact, and draws have its effects", {
  truth <- walk_by_filter(0, sqrt(4 + 0.25))
  fit <- quiet_laplace(
    smc(walk_model(), n_particles = 128, n_steps = 4, rounds = 1, islands = 8, scout = FALSE, seed = 1)
  )
  expect_log_z(fit, truth$log_z, resolution = 0.1)
  # Laplace's approximation is seen to be another
  expect_gt(abs(fit$laplace$log_z - truth$log_z), 5 * fit$laplace$std_error)
  expect_match(printed_text(fit), "1 component of 24 effects, by sampling", fixed = TRUE)
  last <- posterior::as_draws_matrix(fit, effects = 512)[, "u[24]"]
  n <- length(last)
  expect_estimate(mean(last), truth$sd / sqrt(n / 2), truth$mean, resolution = 6 * truth$sd / sqrt(n / 2), n = n)
  expect_estimate(log(sd(last)), 1 / sqrt(n), log(truth$sd), resolution = 0.4, n = n)
})

test_that("where an integral does not settle log Z is Laplace's, and says why", {
  # tails that fall like 1 / u^2
  model <- model_of(function(p) {
    sum(log(1 + p$u^2)) - sum(RTMB::dnorm(p$b, 0, 1, log = TRUE)) + sum(log(1 + (p$u - p$b)^2) / 10)
  }, list(b = 0, u = numeric(2)))
  fit <- quiet_laplace(smc(model, n_particles = 32, n_steps = 4, rounds = 1, islands = 4, scout = FALSE, seed = 1))
  expect_match(printed_text(fit), "does not settle, with an unknown error of its own", fixed = TRUE)
})

test_that("a heavy tail of the ratios to what was sampled is no correction", {
  set.seed(4)
  n <- 512
  fails <- function(log_ratio) {
    found <- list(exact = log_ratio, std_error = sd(exp(log_ratio)) / mean(exp(log_ratio)) / sqrt(n))
    row <- internal("correction_diagnostic")$judge(list(khat = internal("khat_of_ratios")(found)))
    isFALSE(row$passed)
  }
  # of estimates by runs, and of ratios that have no variance
  expect_lt(mean(replicate(100, fails(rnorm(n, sd = 0.5)))), 0.05)
  expect_gt(mean(replicate(100, fails(rexp(n, 1)))), 0.8)
  # an error that does not matter is no reason
  expect_false(fails(rexp(n) / 100))
})

test_that("there is something to sample beside the effects", {
  model <- model_of(function(p) -sum(RTMB::dnorm(p$u, log = TRUE)), list(u = 0))
  expect_error(as_target(model), "no free parameters that are not `random`", class = "autosmc_error_input")
})

test_that("a log density with random effects is a model", {
  log_density <- function(p, data) {
    sum(dnorm(p$u, 0, p$sd, log = TRUE)) + sum(dpois(data$y, exp(p$b + p$u[group]), log = TRUE)) + log_prior(p)
  }
  make <- function(...) {
    quiet_laplace(target_rtmb(
      log_density, list(b = 0, sd = 1, u = numeric(6)),
      lower = c(sd = 0), data = list(y = counts), ...
    ))
  }
  target <- make(random = "u")
  expect_identical(target$names, c("b", "sd"))
  x <- rbind(c(0, 1), c(1, 0.5))
  own <- intercepts_model(families[[2]], recorded_prior)
  expect_equal(evaluate_target(target, x)$log_density, apply(x, 1, function(x) -as.numeric(own$fn(x))))
  for (bad in list("v", character(), c("u", "u"))) expect_bad(make(random = bad), "random")
  expect_bad(make(random = c("b", "sd", "u")), "random")
  expect_bad(make(random = "u", types = list(b = "simplex")), "types")
  expect_bad(make(random = "u", method = "exact"), "method")

  # with the surrogate of the correction
  integral <- internal("counted_integral")(target$effects)
  surrogate <- internal("fit_surrogate")(target, internal("counted_density")(target), integral, c(0, 0))
  ratio <- apply(x, 1, log_ratio(own))
  expect_equal(internal("surrogate_ratio")(surrogate, x), ratio, tolerance = 0.1)
  target$effects$surrogate <- surrogate
  expect_gradient(target, x)
})

# Normal observations of groups, whose evidence, and posterior of the mean and of the effects, are known: 5 each.
normal_y <- c(2.1, 1.4, 3.2, 2.2, 1.9, -0.3, 0.2, 0.4, -1.5, 0.1, 0.9, 1.6, 0.7, 0.2, 1.8, 4.1, 3.0, 3.3, 2.8, 4.4)
normal_group <- rep(1:4, each = 5)
normal_model <- function() {
  model_of(function(p) {
    -sum(RTMB::dnorm(normal_y, p$b + p$u[normal_group], 0.7, log = TRUE)) - sum(RTMB::dnorm(p$u, 0, 1, log = TRUE)) -
      RTMB::dnorm(p$b, 0, 1, log = TRUE)
  }, list(b = 0, u = numeric(4)))
}
small_fit <- function(model, ..., islands = 8) {
  quiet_laplace(smc(model, ..., n_particles = 256, n_steps = 4, rounds = 1, islands = islands, scout = FALSE))
}

test_that("evaluations and gradients for random effects are counted", {
  # a model that counts by itself; for the mode the gradient is asked for in another way
  model <- normal_model()
  asked <- c(fn = 0, gradient = 0)
  counting <- function(model) {
    fn <- model$fn
    f <- model$env$f
    model$fn <- function(...) {
      asked[["fn"]] <<- asked[["fn"]] + 1
      fn(...)
    }
    model$env$f <- function(...) {
      if (identical(list(...)$type, "ADGrad") && is.null(list(...)$set_tail)) asked[["gradient"]] <<- asked[["gradient"]] + 1
      f(...)
    }
    model
  }
  target <- quiet_laplace(as_target(model))
  target$effects$model <- counting(target$effects$model)
  integral <- internal("counted_integral")(target$effects)
  for (b in c(-2, 0.5, 3)) integral(b)
  expect_identical(unname(integral("count")), unname(asked))
  expect_identical(asked[["fn"]], 3)

  asked[] <- 0
  fit <- small_fit(target, seed = 1)
  row <- function(run, fit) fit$runs[fit$runs$run == run, ]
  of_both <- function(fit, column) sum(fit$runs[[column]][fit$runs$run %in% c("surrogate", "correction")])
  expect_identical(of_both(fit, "n_joint_gradients"), asked[["gradient"]])
  expect_identical(asked[["fn"]], 2 * 5 + 64) # two searches, 5 points around each, and the fewest draws
  expect_identical(row("correction", fit)$n_target_evals, 2 * 64) # with what was sampled
  text <- paste("and", count(asked[["gradient"]]), "gradients by the random effects")
  expect_match(printed_text(fit), text, fixed = TRUE)
  # of an extended fit both corrections
  more <- smc_extend(fit, islands = 9)
  expect_identical(of_both(more, "n_joint_gradients"), asked[["gradient"]])
  expect_identical(row("correction", more)$n_target_evals, c(128, 128))
  expect_identical(row("surrogate", more), row("surrogate", fit))
})

test_that("a limit of evaluations holds with those for random effects", {
  model <- intercepts_model(families[[1]], recorded_prior)
  fit <- suppressWarnings(quiet_laplace(smc(model, lower = c(sd = 0), max_evals = 3000, seed = 1)))
  expect_lte(sum(fit$runs$n_target_evals), 3000)
  expect_no_warning(smc_extend(fit, islands = nrow(fit$islands) + 1), class = "autosmc_warning_budget")
})

test_that("a polynomial is that of degree 4, with its slope", {
  set.seed(4)
  z <- matrix(rnorm(60), 30)
  value <- function(z) 1 + z[, 1] - z[, 2]^2 / 2 + 0.1 * z[, 1]^3 * z[, 2] - 0.2 * z[, 1]^2 * z[, 2]^2
  slope <- cbind(
    1 + 0.3 * z[, 1]^2 * z[, 2] - 0.4 * z[, 1] * z[, 2]^2, -z[, 2] + 0.1 * z[, 1]^3 - 0.4 * z[, 1]^2 * z[, 2]
  )
  polynomial <- internal("fit_polynomial")(z[1:8, ], value(z[1:8, ]), slope[1:8, ])
  expect_equal(internal("polynomial_at")(polynomial, z), value(z))
  expect_equal(internal("polynomial_slope")(polynomial, z), slope)
})

test_that("what is sampled has its own gradient, where it is the polynomial, where it is not, and between", {
  target <- quiet_laplace(as_target(intercepts_model(families[[2]], recorded_prior), lower = c(sd = 0)))
  sampler <- list(target = target, seed = 1, reference = reference_gaussian())
  target <- internal("with_surrogate")(sampler)$target
  surrogate <- target$effects$surrogate
  surrogate$polynomial <- internal("fit_polynomial")(diag(2), c(1, -1), 0.3 * diag(2))
  target$effects$surrogate <- surrogate
  z <- cbind(c(0, 1, 4.6, 3.5, 6), c(0, -1, 0, 3.3, 1))
  u <- sweep(z %*% t(solve(surrogate$scale)), 2, surrogate$centre, "+")
  expect_gradient(target, internal("change_scale")(target, u, to_user = TRUE))
})

test_that("draws have the effects, by their posterior", {
  model <- normal_model()
  fit <- small_fit(model, seed = 1)
  # (b, u) given y
  design <- cbind(1, outer(normal_group, 1:4, "=="))
  covariance <- solve(diag(5) + crossprod(design) / 0.49)
  mean <- drop(covariance %*% crossprod(design, normal_y)) / 0.49
  expect_log_z(fit, {
    V <- 0.49 * diag(20) + tcrossprod(design)
    -sum(normal_y * solve(V, normal_y)) / 2 - determinant(V)$modulus / 2 - 10 * log(2 * pi)
  })
  draws <- posterior::as_draws(fit, effects = 1024)
  expect_identical(posterior::nchains(draws), 8L)
  draws <- posterior::as_draws_matrix(draws)
  expect_identical(colnames(draws), c("b", "u[1]", "u[2]", "u[3]", "u[4]"))
  n <- nrow(draws)
  for (j in 1:5) {
    sd <- sqrt(covariance[j, j])
    expect_estimate(mean(draws[, j]), sd / sqrt(n / 2), mean[j], resolution = 6 * sd / sqrt(n / 2), n = n)
    expect_estimate(log(sd(draws[, j])), 1 / sqrt(n), log(sd), resolution = 0.3, n = n)
  }
  expect_estimate(cor(draws[, 1], draws[, 2]), 1 / sqrt(n / 2), cov2cor(covariance)[1, 2], resolution = 0.3, n = n)
  expect_identical(posterior::as_draws(fit, effects = 64), posterior::as_draws(fit, effects = 64))
  expect_bad(posterior::as_draws(fit, effects = 0), "effects")
  expect_bad(posterior::as_draws(fit, effects = TRUE, weights = TRUE), "effects")
  without <- list(
    small_fit(model, seed = 1, islands = 2, method = "laplace"),
    smc(target_gaussian(1), n_particles = 32, n_steps = 2, seed = 1)
  )
  for (fit in without) expect_bad(posterior::as_draws(fit, effects = TRUE), "effects")
})

test_that("draws of effects of binary responses are by their posterior", {
  family <- families[[1]]
  fit <- small_fit(intercepts_model(family, recorded_prior), lower = c(sd = 0), seed = 1)
  # by quadrature over both parameters and the effect of the first group
  b <- seq(-5, 5, length.out = 41)
  log_sd <- seq(-4, 2.5, length.out = 40)
  u <- seq(-12, 12, length.out = 241)
  own <- family$y[group == 1]
  log_others <- function(x) {
    sum(vapply(2:6, function(k) {
      y <- family$y[group == k]
      nodes <- seq(-8, 8, length.out = 81)
      eta <- x[1] + x[2] * nodes
      joint <- rowSums(vapply(y, function(y) family$log_density(y, eta), eta)) + dnorm(nodes, log = TRUE)
      log(sum(exp(joint)) * (nodes[2] - nodes[1]))
    }, 0))
  }
  moments <- 0
  for (b1 in b) {
    for (l in log_sd) {
      x <- c(b1, exp(l))
      of_u <- rowSums(vapply(own, function(y) family$log_density(y, b1 + u), u)) + dnorm(u, 0, x[2], log = TRUE)
      # a fine grid of the effect where it is narrow
      if (x[2] < 0.5) {
        z <- u / 2
        of_z <- rowSums(vapply(own, function(y) family$log_density(y, b1 + x[2] * z), z)) + dnorm(z, log = TRUE)
        weights <- exp(of_z) / 2
        value <- x[2] * z
      } else {
        weights <- exp(of_u)
        value <- u
      }
      outer_weight <- exp(log_others(x) + log_prior(list(b = b1, sd = x[2])) + l)
      moments <- moments + outer_weight * c(sum(weights), sum(weights * value), sum(weights * value^2))
    }
  }
  mean <- moments[2] / moments[1]
  sd <- sqrt(moments[3] / moments[1] - mean^2)
  draws <- posterior::as_draws_matrix(fit, effects = 1024)[, "u[1]"]
  n <- length(draws)
  expect_estimate(mean(draws), sd / sqrt(n / 2), mean, resolution = 6 * sd / sqrt(n / 2), n = n)
  expect_estimate(log(sd(draws)), 2 / sqrt(n), log(sd), resolution = 0.4, n = n)
})
