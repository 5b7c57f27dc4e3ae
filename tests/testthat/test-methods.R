# What R users type.

# y = a + b x and noise, whose scale is a third variable, on islands.
x <- c(-1.5, -1, -0.5, 0, 0.5, 1, 1.5)
y <- c(-2.1, -1.4, 0.3, 0.9, 2.2, 2.8, 4.3)
line <- target_function(
  function(p) {
    sum(dnorm(y, p[1] + p[2] * x, p[3], log = TRUE)) +
      sum(dnorm(p[1:2], 0, 5, log = TRUE)) + dexp(p[3], log = TRUE)
  },
  dim = 3,
  gradient = function(p) {
    r <- (y - p[1] - p[2] * x) / p[3]
    c(sum(r) / p[3] - p[1] / 25, sum(r * x) / p[3] - p[2] / 25, sum(r^2 - 1) / p[3] - 1)
  },
  names = c("a", "b", "sigma"), lower = c(-Inf, -Inf, 0)
)
fit <- calmly(smc(line, n_particles = 64, n_steps = 8, islands = 4, seed = 1))
w <- exp(fit$log_weights)

# the posterior ---------------------------------------------------------------

test_that("coef(), vcov() and confint() are those of the weighted draws", {
  expect_equal(coef(fit), colSums(w * fit$particles))
  covariance <- cov.wt(fit$particles, w, method = "ML")$cov
  expect_equal(vcov(fit), covariance)
  table <- tidy(fit, conf.int = TRUE, conf.level = 0.9)
  bounds <- confint(fit, level = 0.9)
  expect_identical(dimnames(bounds), list(c("a", "b", "sigma"), c("5 %", "95 %")))
  expect_identical(unname(bounds), unname(cbind(table$conf.low, table$conf.high)))
  expect_identical(colnames(confint(fit)), c("2.5 %", "97.5 %"))
  expect_identical(confint(fit, c("sigma", "a")), confint(fit)[c("sigma", "a"), ])
  expect_identical(confint(fit, 2), confint(fit)["b", , drop = FALSE])
  for (bad in list("c", 4, TRUE, character())) expect_bad(confint(fit, bad), "parm")
  for (bad in list(0, 95, "a")) expect_bad(confint(fit, level = bad), "level")
  expect_bad(coef(fit, complete = TRUE), "complete")
})

test_that("what does not apply says so, and what does instead", {
  generics <- c(
    "logLik", "AIC", "BIC", "deviance", "df.residual", "fitted", "residuals", "sigma",
    "formula", "quantile", "median", "density", "simulate"
  )
  for (generic in c(lapply(generics, getExportedValue, ns = "stats"), mean, graphics::hist)) {
    error <- catch(generic(fit))
    expect_s3_class(error, "autosmc_error_input")
    expect_match(message_of(error), "does not apply")
  }
  expect_error(anova(fit, fit), "compare_evidence", class = "autosmc_error_input")
  expect_error(nobs(fit), "not known", class = "autosmc_error_input")
})

# draws -----------------------------------------------------------------------

test_that("as.matrix(), as.data.frame() and as.array() are draws that weigh the same", {
  draws <- as.matrix(fit)
  expect_identical(dim(draws), c(256L, 3L))
  expect_identical(colnames(draws), c("a", "b", "sigma"))
  table <- as.data.frame(draws)
  expect_identical(as.data.frame(fit), table)
  expect_identical(as.data.frame(fit, stringsAsFactors = FALSE), table)
  expect_identical(as.data.frame(fit, optional = TRUE), as.data.frame(draws, optional = TRUE))
  rows <- as.character(256:1)
  expect_identical(as.data.frame(fit, row.names = rows), as.data.frame(draws, row.names = rows))
  expect_identical(data.frame(fit), table)
  expect_identical(tibble::as_tibble(fit), tibble::as_tibble(table))
  expect_identical(cbind(draw = 1:256, table), cbind(data.frame(draw = 1:256), fit))
  expect_bad(as.data.frame(fit, weights = TRUE), "weights")
  array <- as.array(fit)
  expect_identical(dim(array), c(64L, 4L, 3L))
  expect_identical(as.vector(array), as.vector(draws))
  second <- fit$island == unique(fit$island)[2]
  expect_true(all(array[, 2, "b"] %in% fit$particles[second, "b"]))
  # resampling without noise: each weight to within a draw, of which many are alike
  at <- median(fit$particles[second, "a"])
  share <- sum(w[second & fit$particles[, "a"] <= at]) / sum(w[second])
  expect_lt(abs(mean(array[, 2, "a"] <= at) - share), 0.15)
  expect_equal(sum(weights(fit)), 1)
  expect_identical(weights(fit), w)
})

test_that("posterior, coda and bayesplot take the fit itself", {
  draws <- as.matrix(fit)
  skip_if_not_installed("posterior")
  expect_equal(posterior::as_draws_array(fit), posterior::as_draws_array(as.array(fit)))
  expect_identical(posterior::variables(fit), c("a", "b", "sigma"))
  expect_identical(posterior::nvariables(fit), 3L)
  expect_identical(posterior::ndraws(fit), 256L)
  expect_identical(posterior::nchains(fit), 4L)
  expect_equal(posterior::niterations(fit), 64)
  subset <- posterior::subset_draws(fit, "b", chain = 2)
  expect_identical(as.vector(subset), as.vector(as.array(fit)[, 2, "b"]))
  means <- posterior::summarise_draws(fit, "mean")$mean
  expect_equal(as.vector(means), colMeans(draws), ignore_attr = TRUE)
  skip_if_not_installed("coda")
  chains <- coda::as.mcmc.list(fit)
  expect_identical(coda::nchain(chains), 4L)
  expect_equal(as.matrix(chains), draws, ignore_attr = TRUE)
  expect_error(coda::as.mcmc(fit), "as.mcmc.list", class = "autosmc_error_input")
  alone <- calmly(smc_run(line, fit$schedule, n_particles = 16, seed = 1))
  expect_equal(as.matrix(coda::as.mcmc(alone)), as.matrix(alone), ignore_attr = TRUE)
  skip_if_not_installed("bayesplot")
  histogram <- bayesplot::mcmc_hist(fit, pars = "b", binwidth = 0.5)
  expect_equal(sort(histogram$data$value), sort(unname(draws[, "b"])))
})

test_that("pairs() draws chosen variables against each other", {
  pdf(NULL)
  on.exit(dev.off())
  seen <- withVisible(pairs(fit))
  expect_identical(seen$value, fit)
  expect_false(seen$visible)
  expect_silent(pairs(fit, c("a", "sigma"), col = "black"))
  expect_bad(pairs(fit, "c"), "variables")
  expect_bad(pairs(fit, "a"), "variables")
})

# predictions -----------------------------------------------------------------

test_that("predict() evaluates a function at the draws", {
  at <- c(-1, 2)
  of_line <- function(p, x) p[["a"]] + p[["b"]] * x
  table <- predict(fit, at, of_line)
  expect_named(table, c("term", "estimate", "std.error", "conf.low", "conf.high"))
  expect_identical(table$term, c("1", "2"))
  values <- fit$particles[, "a"] + fit$particles[, "b"] %o% at
  expect_equal(table$estimate, unname(colSums(w * values)))
  expect_equal(
    predict(fit, at, of_line, summary = FALSE),
    as.matrix(fit)[, "a"] + as.matrix(fit)[, "b"] %o% at,
    ignore_attr = TRUE
  )
  # without data, and with names; of the variables themselves it is tidy()
  expect_equal(predict(fit, fun = identity), tidy(fit, conf.int = TRUE))
  expect_equal(
    predict(fit, fun = function(p) p["a"] / p["sigma"], conf.level = 0.5)$estimate,
    sum(w * fit$particles[, "a"] / fit$particles[, "sigma"])
  )
})

test_that("a function that does not fit is named", {
  expect_bad(predict(fit), "fun")
  expect_bad(predict(fit, 1), "fun")
  expect_bad(predict(fit, fun = function(p) p[["slope"]]), "fun")
  for (bad in list(function(p) "a", function(p) NA, function(p) numeric(), 3)) {
    expect_bad(predict(fit, fun = bad), "fun")
  }
  expect_bad(predict(fit, fun = function(p) numeric(1 + (p[["a"]] > 1))), "fun")
  expect_bad(predict(fit, fun = identity, interval = TRUE), "interval")
})

test_that("draws without weight, however far out, leave the standard deviations alone", {
  far <- fit
  far$particles <- rbind(fit$particles, 1e300)
  far$log_weights <- c(fit$log_weights, -Inf)
  far$island <- c(fit$island, fit$island[length(fit$island)])
  expect_equal(tidy(far)$std.error, tidy(fit)$std.error)
  expect_equal(coef(far), coef(fit))
})

# A target whose draws have the log likelihood, as those of Stan programs do.
test_that("loo() and waic() take the log likelihood among the draws", {
  skip_if_not_installed("loo")
  log_lik_at <- function(p) dnorm(y, p[["a"]] + p[["b"]] * x, p[["sigma"]], log = TRUE)
  expect_error(loo::loo(fit), "log_lik", class = "autosmc_error_input")
  expect_error(loo::waic(fit), "log_lik", class = "autosmc_error_input")
  with_log_lik <- fit
  log_lik <- t(apply(fit$particles, 1, log_lik_at))
  colnames(log_lik) <- sprintf("log_lik[%d]", 1:7)
  with_log_lik$particles <- cbind(fit$particles, log_lik)
  expect_identical(nobs(with_log_lik), 7L)
  by_predict <- predict(fit, fun = log_lik_at, summary = FALSE)
  muffled <- function(code) suppressWarnings(code) # of Pareto k, with draws so few
  ours <- muffled(loo::loo(with_log_lik))
  r_eff <- loo::relative_eff(exp(by_predict), chain_id = rep(1:4, each = 64))
  expect_equal(ours$estimates, muffled(loo::loo(by_predict, r_eff = r_eff))$estimates)
  expect_equal(
    muffled(loo::waic(with_log_lik))$estimates, muffled(loo::waic(by_predict))$estimates
  )
  # in blocks of observations, as where all at once would take gigabytes
  parts <- list(1:3, 4:6, 7)
  of_part <- function(i) loo::loo(by_predict[, i, drop = FALSE], r_eff = r_eff[i])
  expect_equal(muffled(internal("join_blocks")(lapply(parts, of_part))), muffled(loo::loo(by_predict, r_eff = r_eff)))
  # and made when asked for, for several blocks at a time
  later <- fit
  times <- 0
  later$target$later <- colnames(log_lik)
  later$target$outputs <- function(u, names) {
    times <<- times + 1
    values <- t(apply(`colnames<-`(u, colnames(fit$particles)), 1, log_lik_at))
    colnames(values) <- colnames(log_lik)
    values[, names, drop = FALSE]
  }
  small <- list(loo_block = 2 * 256, blocks_at_a_time = 2)
  expect_equal(with_internals(small, muffled(loo::loo(later))), ours)
  expect_identical(times, 2)
  of_part <- function(i) loo::waic(by_predict[, i, drop = FALSE])
  expect_equal(muffled(internal("join_blocks")(lapply(parts, of_part))), muffled(loo::waic(by_predict)))
})

# the call and what it ran on -----------------------------------------------------

test_that("a fit knows its call, and update() makes it again", {
  expect_identical(
    fit$call,
    quote(smc(target = line, n_particles = 64, n_steps = 8, islands = 4, seed = 1))
  )
  again <- calmly(update(fit))
  expect_identical(without_time(again), without_time(fit))
  expect_identical(again$call, fit$call)
  steps <- 6
  other <- calmly(update(fit, n_steps = steps, seed = NULL))
  expect_identical(other$n_particles, 64L)
  expect_identical(nrow(other$islands), 4L)
  expect_identical(other$call$n_steps, quote(steps))
  expect_identical(other$target, fit$target)
  for (bad in list(quote(update(fit, 3)), quote(update(fit, seed = 1, 3)))) {
    expect_error(eval(bad), "by their names", class = "autosmc_error_input")
  }
})

test_that("update() of a function's fit needs neither the function nor its name", {
  fit_of <- function(scale) {
    f <- function(p) -sum(p^2) / 2 / scale
    calmly(smc(f,
      dim = 2, gradient = function(p) -p / scale, n_particles = 16, n_steps = 2, seed = 1
    ))
  }
  fit <- fit_of(4)
  again <- calmly(update(fit, n_particles = 32))
  expect_identical(again$n_particles, 32L)
  expect_identical(again$target, fit$target)
  # another target, with what belongs to it
  g <- function(p) -sum(p^2) / 2
  changed <- calmly(update(fit, target = g, gradient = function(p) -p, lower = -1))
  expect_identical(changed$target$lower, c(-1, -1))
})

test_that("the halves have calls too, and a fit says where it was made", {
  adapted <- autosmc::smc_adapt(line, n_particles = 16, n_steps = 2, seed = 1)
  expect_identical(adapted$call[[1]], quote(smc_adapt))
  expect_identical(update(adapted)$log_z, adapted$log_z)
  run <- calmly(do.call(smc_run, list(line, adapted$schedule, n_particles = 16, seed = 1)))
  expect_identical(run$call[[1]], quote(smc_run))
  expect_identical(calmly(update(run))$log_z, run$log_z)
  expect_identical(fit$session$r, as.character(getRversion()))
  expect_identical(fit$session$autosmc, as.character(packageVersion("autosmc")))
  expect_true(all(c("blas", "lapack", "platform") %in% names(fit$session)))
})

test_that("kernels have names", {
  for (name in c("klmc", "lmc", "mala", "rwmh")) {
    named <- adapt_plain(normal_target(), kernel = name, n_particles = 16, n_steps = 2, seed = 1)
    expect_identical(named$kernel, get(paste0("kernel_", name))())
  }
  run <- calmly(smc_run(normal_target(), data.frame(lambda = 1, step_size = 0.5),
    kernel = "mala", n_particles = 16
  ))
  expect_identical(run$kernel, kernel_mala())
  for (bad in list("nuts", 3, TRUE, c("lmc", "mala"))) {
    error <- catch(smc(normal_target(), kernel = bad))
    expect_bad(smc(normal_target(), kernel = bad), "kernel")
    expect_match(message_of(error), "\"klmc\", \"lmc\", \"mala\",? \"rwmh\"")
  }
})

test_that("the convergence of chains is asked of the draws", {
  skip_if_not_installed("posterior")
  expect_match(message_of(catch(posterior::rhat(quick_smc(normal_target())))), "summarise_draws")
})
