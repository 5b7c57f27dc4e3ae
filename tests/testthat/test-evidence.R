# Comparison of models, with and without bridgesampling.

# A normal density that is too low by the factor exp(log_z), sampled in a moment.
normal_fit <- function(log_z, seed, islands = 8, sd = 1, n_particles = 64, ...) {
  target <- target_function(
    function(x) log_z + rowSums(dnorm(x, 1, sd, log = TRUE)),
    dim = 2, gradient = function(x) (1 - x) / sd^2, vectorized = TRUE, ...
  )
  calmly(smc_run(
    target, data.frame(lambda = c(0.2, 1), step_size = c(0.7, 0.5)),
    kernel = kernel_mala(), n_particles = n_particles, islands = islands, seed = seed
  ))
}

# the table -------------------------------------------------------------------

test_that("there is a row a model, in the order given", {
  low <- normal_fit(-2, 1)
  high <- normal_fit(1, 2)
  middle <- normal_fit(0, 3)
  table <- compare_evidence(low, high, middle)
  expect_s3_class(table, c("smc_evidence", "tbl_df"), exact = FALSE)
  expect_identical(table$model, c("low", "high", "middle"))
  expect_identical(table$log_z, c(low$log_z, high$log_z, middle$log_z))
  expect_identical(table$std_error, c(low$std_error, high$std_error, middle$std_error))
  expect_named(
    table,
    c(
      "model", "log_z", "std_error", "log_bf", "log_bf_error", "bf", "prior_prob", "post_prob", "post_prob_error",
      "converged"
    )
  )
  expect_identical(table$log_bf, table$log_z - high$log_z)
  expect_identical(table$log_bf_error[2], 0)
  expect_equal(
    table$log_bf_error[-2],
    sqrt(c(low$std_error, middle$std_error)^2 + high$std_error^2)
  )
  expect_equal(table$post_prob, exp(table$log_z) / sum(exp(table$log_z)))
  # the order makes no difference
  again <- compare_evidence(middle, low, high)
  expect_equal(again, table[c(3, 1, 2), ])
})

test_that("of two models, the probability is logistic and so is its error", {
  one <- normal_fit(0.7, 1)
  other <- normal_fit(0, 2)
  prior <- c(0.2, 0.8)
  table <- compare_evidence(one, other, prior_prob = prior)
  p <- plogis(one$log_z - other$log_z + log(0.2 / 0.8))
  expect_equal(table$post_prob, c(p, 1 - p))
  error <- p * (1 - p) * sqrt(one$std_error^2 + other$std_error^2)
  expect_equal(table$post_prob_error, c(error, error))
  expect_identical(table$prior_prob, prior)
  certain <- compare_evidence(one, other, prior_prob = c(1, 0))
  expect_equal(certain$post_prob, c(1, 0))
  expect_equal(certain$post_prob_error, c(0, 0))
})

test_that("of more, the errors are those of numerical differentiation", {
  fits <- Map(normal_fit, c(0, 0.5, -0.4), 1:3, n_particles = c(16, 32, 64))
  prior <- c(0.5, 0.3, 0.2)
  table <- do.call(compare_evidence, c(fits, list(prior_prob = prior)))
  posterior <- function(log_z) prior * exp(log_z) / sum(prior * exp(log_z))
  jacobian <- vapply(1:3, function(j) {
    h <- 1e-5 * (1:3 == j)
    (posterior(table$log_z + h) - posterior(table$log_z - h)) / 2e-5
  }, numeric(3))
  variance <- jacobian %*% diag(table$std_error^2) %*% t(jacobian)
  expect_equal(table$post_prob_error, sqrt(diag(variance)), tolerance = 1e-7)
})

test_that("evidence far from zero neither overflows nor underflows", {
  for (by in c(-5000, 5000)) {
    table <- compare_evidence(normal_fit(by, 1), normal_fit(by - 1, 2))
    expect_equal(sum(table$post_prob), 1)
    expect_equal(table$post_prob[1], plogis(-table$log_bf[2]))
  }
})

# One hundred comparisons of two models of eight islands each, whose Bayes factor is
# exp(0.5). Two standard errors hold the truth with a probability of 0.94, by Student's
# t. The mean square of the errors is to agree with the variance, which the comparisons
# give to 14 %.
test_that("Bayes factors and probabilities are off by as much as they say", {
  runs <- smc_run(
    target_gaussian(2, mean = 1),
    data.frame(lambda = c(0.2, 1), step_size = c(0.7, 0.5)),
    kernel = kernel_mala(), n_particles = 64, islands = 1600, seed = 1
  )
  eight <- split(runs$islands, rep(1:200, each = 8))
  as_fit <- function(islands, seed, by = 0) {
    islands$log_z <- islands$log_z + by
    estimate <- get("combine", asNamespace("autosmc"))(islands)
    rest <- list(seed = seed, runs = data.frame(biased = FALSE))
    structure(c(estimate, rest), class = "smc_fit")
  }
  tables <- lapply(1:100, function(i) {
    compare_evidence(
      one = as_fit(eight[[i]], 1, by = 0.5),
      other = as_fit(eight[[100 + i]], 2)
    )
  })
  of <- function(column, row) vapply(tables, function(t) t[[column]][row], 0)
  bf <- of("log_bf", 1) - of("log_bf", 2)
  bf_error <- of("log_bf_error", 1) + of("log_bf_error", 2)
  expect_gte(sum(abs(bf - 0.5) < 2 * bf_error), qbinom(chance, 100, 0.94))
  limit <- errors_for(Inf) * sqrt(2 / 99)
  expect_lt(abs(log(mean(bf_error^2) / var(bf))), limit)
  expect_mean(of("post_prob", 1), plogis(0.5), resolution = 0.03)
  p_error <- of("post_prob_error", 1)
  expect_lt(abs(log(mean(p_error^2) / var(of("post_prob", 1)))), limit)
})

test_that("models are named by their arguments, or as one likes", {
  one <- normal_fit(0, 1)
  other <- normal_fit(0, 2)
  expect_identical(
    compare_evidence(null = one, other)$model,
    c("null", "other")
  )
  named <- compare_evidence(one, other, model_names = c("a", "b"))
  expect_identical(named$model, c("a", "b"))
  listed <- compare_evidence(list(one, other))
  expect_identical(listed$model, c("one", "other"))
  expect_equal(listed, compare_evidence(one, other))
  expect_identical(compare_evidence(list(a = one, b = other))$model, c("a", "b"))
  models <- list(one, b = other)
  expect_identical(compare_evidence(models)$model, c("model 1", "b"))
  expect_identical(compare_evidence(models, model_names = c("x", "y"))$model, c("x", "y"))
  by_program <- do.call(compare_evidence, list(one, full = other))
  expect_identical(by_program$model, c("model 1", "full"))
})

test_that("probabilities are printed so that none is 0 or 1 but by rounding far off", {
  text <- get("format_probability", asNamespace("autosmc"))
  expect_identical(text(c(0.984, 0.016)), c("0.984", "0.016"))
  expect_identical(text(c(0.99972, 0.00028)), c("0.9997", "0.0003"))
  expect_identical(text(c(1 - 1e-12, 1e-12)), c(">0.999999", "<0.000001"))
  expect_identical(text(c(1, 0)), c("1.000", "0"))
  expect_identical(text(c(0.999, 1e-3 - 1e-9, 1e-9)), c("0.999000", "0.001000", "<0.000001"))
})

test_that("log_evidence() is a number with its error", {
  fit <- normal_fit(-2, 1)
  evidence <- log_evidence(fit)
  expect_identical(as.numeric(evidence), fit$log_z)
  expect_identical(attr(evidence, "std_error"), fit$std_error)
  decimals <- get("decimals_of_error", asNamespace("autosmc"))(fit$std_error)
  expect_output(
    print(evidence),
    sprintf("log evidence %.*f (standard error %.*f)", as.integer(decimals), fit$log_z,
      as.integer(decimals), fit$std_error),
    fixed = TRUE
  )
  # what is computed from it is a plain number: the error would be another
  expect_identical(evidence - log_evidence(normal_fit(-2, 1)), 0)
  expect_identical(-evidence, -fit$log_z)
  expect_identical(exp(evidence), exp(fit$log_z))
  expect_true(evidence < 0)
  expect_output(print(log_evidence(normal_fit(-2, 1, islands = 1))), "evidence -?[0-9.]+$")
  expect_identical(data.frame(z = evidence), data.frame(z = fit$log_z))
  expect_identical(as.data.frame(evidence), data.frame(log_z = fit$log_z))
  expect_bad(log_evidence(3), "object")
})

test_that("it prints with three decimals", {
  one <- normal_fit(-108.1234, 1)
  other <- normal_fit(-109, 2)
  table <- compare_evidence(one, other)
  expect_output(print(table), "model +log_z +std_error +log_bf +std_error +post_prob")
  expect_output(print(table), sprintf("one %.3f", one$log_z))
  capture.output(printed <- withVisible(print(table)))
  expect_false(printed$visible)
  expect_identical(printed$value, table)
})

# what it warns of ------------------------------------------------------------

test_that("missing errors, bias and a shared seed are warned of", {
  fine <- normal_fit(0, 1)
  warned <- function(code, words) {
    expect_warning(table <- code, words, class = "autosmc_warning_comparison")
    table
  }
  single <- normal_fit(0, 2, islands = 1)
  table <- warned(compare_evidence(fine, single), "\"single\" has no standard error")
  expect_identical(is.na(table$log_bf_error), is.na(c(0, NA))[order(-table$log_z)])
  expect_identical(is.na(table$post_prob_error), c(TRUE, TRUE))
  expect_false(anyNA(table$post_prob))

  adapted <- adapt_plain(
    target_gaussian(2),
    n_particles = 32, n_steps = 3, kernel = kernel_lmc(), seed = 3
  )
  warned(compare_evidence(fine, adapted), "\"adapted\" is biased")

  alike <- normal_fit(0, 1, sd = 1.1)
  warned(compare_evidence(fine, alike), "same `seed`")
  expect_warning(compare_evidence(fine, normal_fit(0, 4)), NA)
})

test_that("known numbers stand beside fits", {
  fit <- normal_fit(0, 1)
  table <- compare_evidence(
    fit, known = c(log_z = -2, std_error = 0.1), list = list(log_z = -1, std_error = 0), log_evidence(fit), glance(fit)
  )
  expect_identical(table$model, c("fit", "known", "list", "log_evidence(fit)", "glance(fit)"))
  expect_identical(table$log_z, c(fit$log_z, -2, -1, fit$log_z, fit$log_z))
  expect_identical(table$std_error, c(fit$std_error, 0.1, 0, fit$std_error, fit$std_error))
  expect_identical(table$converged, c(glance(fit)$converged, NA, NA, NA, NA))
  expect_warning(compare_evidence(fit, c(log_z = 1)), "no standard error", class = "autosmc_warning_comparison")
  for (bad in list(c(log_z = NA), c(logz = 1), c(log_z = 1, std_error = -1), c(log_z = "1"), list(log_z = 1:2))) {
    expect_bad(compare_evidence(fit, bad), "bad")
  }
  skip_if_not_installed("bridgesampling")
  bf <- bridgesampling::bf(fit, c(log_z = -2, std_error = 0.1), log = TRUE)
  expect_equal(bf$bf, fit$log_z + 2)
})

# different data -----------------------------------------------------------------

test_that("models of different observations are not compared without a warning", {
  ozone <- c(41, 36, 12, 18, 28, 23)
  all <- normal_fit(0, 1, response = ozone)
  some <- normal_fit(0, 2, response = ozone[-2])
  logs <- normal_fit(0, 3, response = log(ozone))
  said <- function(code, ...) {
    warning <- expect_warning(code, class = "autosmc_warning_data")
    for (words in c(...)) expect_match(message_of(warning), words, fixed = TRUE)
  }
  said(compare_evidence(all, some), "all: 6 values, from 12 to 41", "some: 5 values")
  said(compare_evidence(all, "a {log}" = logs), "from 12 to 41", "a {log}: 6 values, from 2.485 to 3.714")
  said(compare_evidence(all, normal_fit(0, 4, nobs = 5)), "all: 6 observations")
  said(compare_evidence(normal_fit(0, 1, nobs = 4), normal_fit(0, 4, nobs = 5)), "4 observations")
  # the same in another order, shape or by another sum, and what is not known
  expect_no_warning(compare_evidence(all, normal_fit(0, 4, response = rev(ozone))))
  expect_no_warning(compare_evidence(all, normal_fit(0, 4, response = matrix(ozone * 3 / 3, 2))))
  expect_no_warning(compare_evidence(all, normal_fit(0, 4, nobs = 6)))
  expect_no_warning(compare_evidence(all, normal_fit(0, 4)))
  kinds <- factor(c("a", "b", "b"))
  expect_no_warning(compare_evidence(
    normal_fit(0, 1, response = kinds), normal_fit(0, 2, response = as.character(kinds))
  ))
  said(compare_evidence(normal_fit(0, 1, response = kinds), normal_fit(0, 2, response = rev(kinds) == "b")), "3 values")
  skip_if_not_installed("bridgesampling")
  said(bridgesampling::bf(all, some), "some: 5 values")
  said(bridgesampling::post_prob(all, logs), "logs: 6 values")
})

test_that("a response and a number of observations are what they should be", {
  for (bad in list(list(1), mean, 1i)) expect_bad(normal_fit(0, 1, response = bad), "response")
  for (bad in list("a", -1, 1.5, 1:2)) expect_bad(normal_fit(0, 1, nobs = bad), "nobs")
})

test_that("a wrong argument is named", {
  one <- normal_fit(0, 1)
  other <- normal_fit(0, 2)
  for (few in list(list(), list(one))) {
    error <- catch(do.call(compare_evidence, few))
    expect_s3_class(error, "autosmc_error_input")
    expect_match(message_of(error), "at least two fits")
  }
  expect_bad(compare_evidence(one, 3), "model 2")
  expect_bad(compare_evidence(one, wrong = one$log_z), "wrong")
  expect_bad(compare_evidence(list(one, other), one), "list(one, other)")
  for (bad in list(c(0.2, 0.2), c(-0.5, 1.5), 1, "a", c(NA, 1), c(0.2, 0.3, 0.5))) {
    expect_bad(compare_evidence(one, other, prior_prob = bad), "prior_prob")
  }
  for (bad in list("a", 1:2, c("a", NA), list("a", "b"))) {
    expect_bad(compare_evidence(one, other, model_names = bad), "model_names")
  }
})

# bridgesampling --------------------------------------------------------------

test_that("logml(), bf(), bayes_factor() and post_prob() take fits", {
  skip_if_not_installed("bridgesampling")
  one <- normal_fit(0.5, 1)
  other <- normal_fit(0, 2)
  expect_identical(bridgesampling::logml(one), one$log_z)

  bf <- bridgesampling::bf(one, other)
  expect_equal(bf$bf, exp(one$log_z - other$log_z))
  expect_equal(bf$bf * bridgesampling::bf(other, one)$bf, 1)
  expect_equal(bridgesampling::bf(one, other, log = TRUE)$bf, log(bf$bf))
  expect_identical(bridgesampling::bayes_factor(one, other), bf)
  expect_output(print(bf), "in favor of one over other")

  third <- normal_fit(-1, 3)
  prior <- c(0.1, 0.2, 0.7)
  p <- bridgesampling::post_prob(one, other, third, prior_prob = prior)
  table <- compare_evidence(one, other, third, prior_prob = prior)
  expect_equal(p, setNames(table$post_prob, c("one", "other", "third")))
  named <- bridgesampling::post_prob(one, other, model_names = c("a", "b"))
  expect_named(named, c("a", "b"))

  error <- bridgesampling::error_measures(one)
  expect_identical(error$cv, one$std_error)
  expect_equal(error$re2, one$std_error^2)
  expect_identical(error$percentage, paste0(format(100 * error$cv, digits = 2), "%"))
})

# The evidence of y_i ~ N(mu, 1), mu ~ N(0, sd^2), by both packages and in closed form.
y <- c(0.4, 1.2, -0.3, 0.9, 1.5)

conjugate_evidence <- function(sd) {
  v <- diag(5) + sd^2
  -(5 * log(2 * pi) + determinant(v)$modulus[1] + sum(y * solve(v, y))) / 2
}

log_joint <- function(mu, sd) {
  dnorm(mu, 0, sd, log = TRUE) + sum(dnorm(y, mu, log = TRUE))
}

conjugate_fit <- function(sd, seed) {
  smc(
    function(mu) log_joint(mu, sd),
    dim = 1, gradient = function(mu) sum(y) - 5 * mu - mu / sd^2,
    n_particles = 512, n_steps = 4, rounds = 0, seed = seed
  )
}

conjugate_bridge <- function(sd, ...) {
  variance <- 1 / (5 + 1 / sd^2)
  set.seed(1)
  bridgesampling::bridge_sampler(
    cbind(mu = rnorm(2000, variance * sum(y), sqrt(variance))),
    log_posterior = function(pars, data) log_joint(pars[["mu"]], data),
    data = sd, lb = c(mu = -Inf), ub = c(mu = Inf), silent = TRUE, ...
  )
}

test_that("both packages agree with the closed form, each in the other's functions", {
  skip_if_not_installed("bridgesampling")
  truth <- conjugate_evidence(3) - conjugate_evidence(1)
  fit <- conjugate_fit(3, 1)
  fit_1 <- conjugate_fit(1, 2)
  bridge <- conjugate_bridge(1)
  expect_log_z(fit, conjugate_evidence(3))

  table <- compare_evidence(fit, bridge, fit_1)
  expect_identical(table$log_z, c(fit$log_z, bridge$logml, fit_1$log_z))
  expect_identical(table$std_error[2], bridgesampling::error_measures(bridge)$cv)
  error <- sqrt(fit$std_error^2 + table$std_error[2:3]^2)
  expect_estimate(fit$log_z - table$log_z[2:3], error, truth, 0.1)

  # first, second, and in the middle
  bf <- bridgesampling::bf(fit, bridge)$bf
  expect_equal(bf, exp(fit$log_z - bridge$logml))
  expect_equal(bridgesampling::bf(bridge, fit)$bf, 1 / bf)
  expect_output(print(bridgesampling::bf(bridge, fit)), "in favor of bridge over fit")
  expect_equal(bridgesampling::bayes_factor(bridge, fit)$bf, 1 / bf)
  ours_first <- bridgesampling::post_prob(fit, bridge, fit_1)
  theirs_first <- bridgesampling::post_prob(bridge, fit, fit_1)
  expect_equal(ours_first, setNames(table$post_prob, table$model))
  expect_equal(theirs_first, ours_first[c(2, 1, 3)])
})

# The same draws and the same density: what differs is the estimate.
test_that("bridge_sampler() takes a fit, on the scale without bounds", {
  skip_if_not_installed("bridgesampling")
  skip_if_not_installed("coda")
  fit <- smc(beta_binomial, n_particles = 256, n_steps = 8, rounds = 1, seed = 1)
  bridge <- bridgesampling::bridge_sampler(fit, silent = TRUE)
  error <- sqrt(bridgesampling::error_measures(bridge)$cv^2 + fit$std_error^2)
  expect_lt(error, 0.03)
  expect_lt(abs(bridge$logml - log_z_beta_binomial), 5 * error)
  fit$target$outputs <- identity
  expect_bad(bridgesampling::bridge_sampler(fit), "samples")
})

test_that("repetitions of bridgesampling may stand on either side", {
  skip_if_not_installed("bridgesampling")
  fit <- conjugate_fit(3, 1)
  repeated <- conjugate_bridge(1, repetitions = 3)
  middle <- median(repeated$logml)
  bf <- bridgesampling::bf(fit, repeated, log = TRUE)$bf
  expect_equal(bf, fit$log_z - middle)
  expect_warning(theirs <- bridgesampling::bf(repeated, fit, log = TRUE), "recycled")
  expect_equal(theirs$bf_median_based, -bf)
  expect_equal(theirs$bf, repeated$logml - fit$log_z)
  expect_warning(p <- bridgesampling::post_prob(repeated, fit), "recycled")
  expect_equal(p[, "fit"], plogis(fit$log_z - repeated$logml))
  expect_warning(
    table <- compare_evidence(fit, repeated),
    "\"repeated\" has no standard error",
    class = "autosmc_warning_comparison"
  )
  expect_identical(table$log_z, c(fit$log_z, middle))
})

test_that("a wrong use of bridgesampling's functions is named", {
  skip_if_not_installed("bridgesampling")
  one <- normal_fit(0, 1)
  other <- normal_fit(0, 2)
  expect_bad(bridgesampling::bf(one), "x2")
  expect_bad(bridgesampling::bayes_factor(one), "x2")
  for (bad in list(NULL, 3, "a", list(other))) {
    expect_bad(bridgesampling::bf(one, bad), "x2")
    expect_bad(bridgesampling::post_prob(one, wrong = bad), "wrong")
  }
  expect_bad(bridgesampling::bf(one, other, log = 2), "log")
  expect_bad(bridgesampling::bf(one, other, other), "log")
  expect_match(
    conditionMessage(catch(bridgesampling::post_prob(one))), "at least two fits"
  )
  expect_bad(bridgesampling::post_prob(one, other, prior_prob = 1), "prior_prob")
  single <- normal_fit(0, 3, islands = 1)
  expect_bad(bridgesampling::error_measures(single), "bridge_object")
})

test_that("a package that is not there is asked for", {
  check <- get("check_installed", asNamespace("autosmc"))
  error <- catch(check("no.such.package", "for this"))
  expect_s3_class(error, "autosmc_error_package")
  expect_match(message_of(error), "install.packages(\"no.such.package\")",
    fixed = TRUE
  )
  expect_silent(check("stats", "for that"))
})

# fits that are not to be trusted ------------------------------------------------

failed_fit <- function(...) {
  fit <- normal_fit(...)
  fit$diagnostics$passed[1] <- FALSE
  fit
}

good_fit <- function(...) {
  fit <- normal_fit(...)
  fit$diagnostics$passed <- TRUE
  fit
}

test_that("the table has the fits' verdicts, and names those that failed", {
  good <- good_fit(0, 1)
  doubtful <- failed_fit(1, 2)
  expect_warning(
    table <- compare_evidence(good, doubtful),
    "diagnostics of \"doubtful\" have failed",
    class = "autosmc_warning_unreliable"
  )
  expect_identical(table$converged, c(TRUE, FALSE))
  expect_output(print(table), "converged")
  expect_warning(table <- compare_evidence(good, other = good_fit(1, 2)), NA)
  expect_identical(table$converged, c(TRUE, TRUE))
})

test_that("so do bf() and post_prob()", {
  skip_if_not_installed("bridgesampling")
  good <- good_fit(0, 1)
  doubtful <- failed_fit(1, 2)
  say <- function(code) expect_warning(code, "\"doubtful\"", class = "autosmc_warning_unreliable")
  say(bridgesampling::bf(good, doubtful))
  say(bridgesampling::bf(doubtful, good))
  say(bridgesampling::post_prob(good, doubtful))
  expect_warning(bridgesampling::bf(good, good_fit(1, 3)), NA)
  expect_warning(bridgesampling::post_prob(good, good_fit(1, 3)), NA)
})

test_that("BIC(), by which other packages compare a list of fits, says what to use", {
  error <- catch(BIC(quick_smc(target_gaussian(2))))
  expect_match(message_of(error), "bayesfactor_models()` takes fits as its arguments, not a list", fixed = TRUE)
})

test_that("bayestestR has the table of Bayes factors", {
  skip_if_not_installed("bayestestR")
  one <- quick_smc(target_gaussian(2), seed = 1)
  other <- quick_smc(target_gaussian(2, mean = 1), seed = 2)
  bayesfactor_models <- getExportedValue("bayestestR", "bayesfactor_models")
  table <- bayesfactor_models(one, other)
  expect_equal(table$log_BF, c(0, other$log_z - one$log_z))
  # a list is an error that says what to do
  expect_identical(do.call(bayesfactor_models, list(a = one, b = other))$Model, c("a", "b"))
  expect_identical(bayesfactor_models(structure(list(a = one, b = other), class = "smc_fits"))$Model, c("a", "b"))
  error <- catch(suppressWarnings(bayesfactor_models(list(one, other))))
  expect_match(message_of(error), "takes fits as its arguments")
})

test_that("a part of a comparison is printed as what it is, and a whole one stays one", {
  compared <- suppressWarnings(compare_evidence(
    a = quick_smc(target_gaussian(2), seed = 1), b = quick_smc(target_gaussian(2, mean = 1), seed = 2)
  ))
  expect_equal(compared$bf, exp(compared$log_bf))
  expect_s3_class(compared[2:1, ], "smc_evidence")
  for (part in list(compared[, c("model", "log_bf")], compared["bf"], stats::setNames(compared, letters[1:9]))) {
    expect_identical(class(part), c("tbl_df", "tbl", "data.frame"))
    expect_output(print(part))
  }
  expect_identical(compared$model, c("a", "b"))
  expect_identical(tidy(compared)$estimate, compared$log_bf)
  expect_identical(glance(compared)$best, compared$model[which.max(compared$post_prob)])
})

test_that("a comparison is drawn with its errors", {
  compared <- structure(
    tibble::tibble(
      model = c("a", "b"), log_z = c(-5, -6), std_error = c(0.1, NA), log_bf = c(0, -1), log_bf_error = c(0, 0.2),
      post_prob = c(0.99, 0.01), post_prob_error = c(0.1, NA), converged = NA
    ),
    class = c("smc_evidence", "tbl_df", "tbl", "data.frame")
  )
  data <- evidence_data(compared)
  expect_equal(data$low, c(0, -1.4, 0.79, 0.01))
  expect_equal(data$high, c(0, -0.6, 1, 0.01))
  expect_identical(data$text, c("0", "-1.000", "0.990", "0.010"))
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  expect_identical(plot(compared), compared)
  grDevices::dev.off()
  expect_gt(file.size(file), 1000)
  unlink(file)
  skip_if_not_installed("ggplot2")
  expect_s3_class(ggplot2::ggplot_build(ggplot2::autoplot(compared)), "ggplot_built")
})
