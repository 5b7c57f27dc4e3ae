# Models without parameters.

y <- c(0.4, 1.2, -0.3)
null_model <- function(x) sum(dnorm(y, log = TRUE)) + length(x)

test_that("a model without parameters has an evidence without error", {
  fit <- smc(null_model, dim = 0)
  expect_s3_class(fit, "smc_fit")
  expect_identical(fit$log_z, sum(dnorm(y, log = TRUE)))
  expect_identical(c(fit$std_error, fit$conf_low, fit$conf_high), c(0, fit$log_z, fit$log_z))
  expect_identical(glance(fit)$dim, 0L)
  expect_identical(glance(fit)$n_target_evals, 1)
  expect_identical(dim(as.matrix(fit)), c(1000L, 0L))
  expect_length(coef(fit), 0)
  expect_identical(as.numeric(log_evidence(fit)), fit$log_z)
  expect_match(printed_text(fit), sprintf("log Z: %.3f (exact)", fit$log_z), fixed = TRUE)
  expect_match(printed_text(summary(fit)), "(exact)", fixed = TRUE)
  expect_match(report(fit), "no parameters")
  all_at_once <- function(x) rep(null_model(numeric()), nrow(x))
  expect_identical(smc(all_at_once, dim = 0, vectorized = TRUE)$log_z, fit$log_z)
  posterior <- target_posterior(function(x) null_model(x), function(x) 0, dim = 0)
  expect_identical(smc(posterior)$log_z, fit$log_z)
})

test_that("it stands beside others", {
  null <- smc(null_model, dim = 0)
  mean <- smc(
    function(mu) sum(dnorm(y, mu, log = TRUE)) + dnorm(mu, log = TRUE),
    dim = 1, gradient = function(mu) sum(y - mu) - mu, n_particles = 64, n_steps = 8, seed = 1
  )
  expect_no_warning(table <- compare_evidence(null, mean))
  expect_identical(table$log_z, c(null$log_z, mean$log_z))
  expect_identical(table$std_error[1], 0)
  # the same seed is no dependence where there is no error
  expect_no_warning(compare_evidence(smc(null_model, dim = 0, seed = 1), mean))
})

test_that("what has no variables is not run", {
  target <- target_function(null_model, 0)
  for (verb in list(smc_adapt, smc_scout, check_gradient)) expect_bad(verb(target), "target")
  for (show in list(plot, function(fit) smc_report(fit, "fit.html"))) {
    expect_error(show(smc(target)), "without parameters", class = "autosmc_error_input")
  }
  expect_error(smc(function(x) -Inf, dim = 0), class = "autosmc_error_degenerate")
  expect_error(smc(function(x) stop("no"), dim = 0), class = "autosmc_error_target")
  expect_bad(smc(null_model, dim = -1), "dim")
})
