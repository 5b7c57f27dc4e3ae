# Fits of brms, which is no dependency: versions before 2.19 write old Stan. Two programs are compiled, that of a line
# in groups, and one of several families; of other terms it is seen that Stan understands them.

brms_says <- function(name, ...) getExportedValue("brms", name)(...)

skip_without_brms <- function() {
  brms <- "brms"
  skip_if(!requireNamespace(brms, quietly = TRUE), "brms is not installed")
  skip_if(!is.null(why_no_stan()), why_no_stan())
}

# For all tests of this file: removed by teardown-stan.R.
use_stan_cache()

# A line with groups, two observations each, that differ by 3 in x.
line_data <- data.frame(
  y = c(0.3, 1.1, -0.4, 0.2, 1.8, 1.2), who = rep(c("ann", "bob", "eve"), each = 2), x = c(-1.5, 1.5), z = c(1, 0, -1)
)
line_model <- function(formula = y ~ x + (1 | who), data = line_data, ...) {
  prior <- brms_says("set_prior", "normal(0, 1)", class = c("Intercept", "b")) +
    brms_says("set_prior", "exponential(1)", class = c("sd", "sigma"))
  brms_says("brm", formula, data, prior = prior, empty = TRUE, ...)
}

test_that("a fit of brms has the evidence, brms's names and brms's predictions", {
  skip_without_brms()
  data <- line_data
  fit <- suppressMessages(smc(line_model(), n_particles = 256, seed = 1))

  same_group <- outer(data$who, data$who, `==`)
  given <- function(sigma, sd) {
    root <- chol(diag(sigma^2, 6) + sd^2 * same_group + 1 + tcrossprod(data$x))
    -3 * log(2 * pi) - sum(log(diag(root))) - sum(backsolve(root, data$y, transpose = TRUE)^2) / 2 - sigma - sd
  }
  at <- expand.grid(sigma = seq(0.01, 9, 0.04), sd = seq(0.01, 9, 0.04))
  exact <- log(sum(exp(mapply(given, at$sigma, at$sd))) * 0.04^2)
  expect_log_z(fit, exact)

  variables <- c("b_Intercept", "b_x", "sd_who__Intercept", "sigma", sprintf("r_who[%s,Intercept]", c("ann", "bob", "eve")))
  expect_identical(names(coef(fit))[1:7], variables)
  in_brms <- as_brmsfit(fit)
  expect_equal(as.matrix(brms_says("as_draws_matrix", in_brms))[, variables], as.matrix(fit)[, variables],
    ignore_attr = TRUE
  )
  expected <- brms_says("posterior_epred", fit, newdata = data[3, ])
  at_bob <- as.matrix(fit)[, c("b_Intercept", "b_x", "r_who[bob,Intercept]")] %*% c(1, data$x[3], 1)
  expect_equal(drop(expected), drop(at_bob), ignore_attr = TRUE)
  expect_identical(dim(predict(fit, data[3, ], summary = FALSE)), dim(expected))
  expect_identical(dim(residuals(fit)), c(6L, 4L))
  expect_equal(nobs(fit), 6)
  expect_identical(all.vars(formula(fit)$formula), c("y", "x", "who"))
  expect_identical(family(fit)$family, "gaussian")
  for (name in c("loo", "waic")) {
    ask <- getExportedValue("loo", name)
    expect_identical(attr(suppressWarnings(ask(fit)), "model_name"), "fit")
    expect_identical(attr(suppressWarnings(ask(fit, model_names = "other")), "model_name"), "other")
  }
  expect_identical(dim(brms_says("predictive_interval", fit)), c(6L, 2L))

  alone <- suppressMessages(smc(line_model(sample_prior = "only"), n_particles = 256, seed = 1))
  expect_log_z(alone, 0)

  # draws of all parameters, under brms's names
  all <- line_model(save_pars = brms_says("save_pars", all = TRUE))
  kept <- as_brmsfit(suppressMessages(smc(all, n_particles = 64, seed = 1)))
  expect_log_z(suppressMessages(smc(kept, reference = "draws", scout = FALSE, n_particles = 256, seed = 1)), exact)
})

test_that("a program of brms that is not understood is said to be of its version, with what helps", {
  skip_without_brms()
  old <- line_model()
  old$model <- "data { int N; }\nparameters { real array; }\nmodel { }"
  error <- expect_error(as_target(old), class = "autosmc_error_program")
  for (said in c("line 2", format(old$version$brms), "update(fit, recompile = TRUE)")) {
    expect_match(conditionMessage(error), said, fixed = TRUE)
  }
})

test_that("models of brms are checked with data from their priors", {
  skip_without_brms()
  models <- list(line = line_model(), other = line_model(y ~ z + (1 | who))) # of one program

  line <- suppressMessages(internal("model_of_brms")(models$line, 1, list(seed = 1)))
  set.seed(1)
  drawn <- t(replicate(250, line$simulate()))
  expect_mean(rowMeans(drawn), 0, resolution = 0.7)
  # three times the slope, and the mean of three differences of errors, whose variance is 2 on average
  expect_mean(rowMeans(drawn[, c(2, 4, 6)] - drawn[, c(1, 3, 5)])^2, 9 + 4 / 3, resolution = 8)
  simulated <- line_model(data = transform(line_data, y = drawn[1, ]))
  expect_equal(
    suppressMessages(smc(line$target(drawn[1, ]), n_particles = 64, seed = 1))$log_z,
    suppressMessages(smc(simulated, n_particles = 64, seed = 1))$log_z
  )

  dir <- tempfile("check")
  on.exit(unlink(dir, recursive = TRUE))
  check <- function(n) suppressMessages(check_evidence(models, n = n, n_particles = 64, seed = 1, checkpoint = dir))
  few <- check(1)
  expect_identical(few$n_failed, 0L)
  # further data sets are of the same draws from the priors, and where all are there nothing is compiled or drawn
  priors <- list.files(dir, "final", full.names = TRUE, recursive = TRUE)
  expect_gt(length(priors), 0)
  before <- file.info(priors)$mtime
  more <- check(2)
  expect_identical(more$fits[1:2, ], few$fits)
  expect_identical(file.info(priors)$mtime, before)
  unlink(priors)
  expect_identical(check(2), more)
  expect_false(any(file.exists(priors)))

  models$other <- line_model(log(y + 1) ~ x + (1 | who))
  expect_bad(check_evidence(models, n = 1, seed = 1), "models")
})

# Small data for all families.
brms_data <- data.frame(
  x = c(-1.2, 0.4, 0.9, -0.3, 1.5, 0.1), z = c(0.2, 1.3, -0.5, 0.8, -1.1, 0.6), g = factor(c(1, 1, 2, 2, 3, 3)),
  half = factor(c(1, 1, 1, 1, 2, 2)), grade = factor(c(1, 2, 3, 2, 3, 1), ordered = TRUE),
  count = c(0L, 2L, 5L, 1L, 3L, 0L), yes = c(0L, 1L, 1L, 0L, 1L, 0L), y = c(0.3, 1.1, -0.4, 0.2, 1.8, 1.2),
  time = c(0.5, 1.2, 0.3, 2, 0.7, 1.1), ends = c("none", "right", "none", "none", "left", "none"),
  share = c(0.2, 0.6, 0.5, 0.3, 0.9, 0.4)
)

test_that("families of brms have the likelihoods that brms has in R, and priors that are normalised but for orders", {
  skip_without_brms()
  of <- function(formula, family) brms_says("bf", formula, family = family)
  formula <- of(count ~ x + offset(z), "negbinomial") + of(yes ~ mo(grade), "bernoulli") + of(grade ~ x, "cumulative") +
    brms_says("set_rescor", FALSE)
  prior <- brms_says("get_prior", formula, brms_data)
  prior <- prior[prior$class %in% c("b", "Intercept", "shape") & prior$coef == "" & prior$resp != "", ]
  prior$prior <- "normal(0, 1)"
  as_model <- function(...) {
    suppressMessages(as_target(brms_says("brm", formula, brms_data, prior = prior, empty = TRUE, ...)))
  }
  target <- as_model()
  alone <- as_model(sample_prior = "only")
  x <- matrix(sin(seq_len(4 * target$dim)), 4)
  draws <- target$outputs(x)
  names <- renamed_as(colnames(draws), stats::setNames(names(target$renamed), target$renamed))
  in_brms <- with_brms_draws(target$brmsfit, array(draws, c(4, 1, ncol(draws)), list(NULL, NULL, names)))
  expect_equal(
    evaluate_target(target, x)$log_density - evaluate_target(alone, x)$log_density,
    apply(brms_says("log_lik", in_brms), 1, sum)
  )
  expect_log_z(smc(alone, precision = 0.02, seed = 1), -lfactorial(2), resolution = 0.1)
})

test_that("Stan understands what brms writes for all kinds of terms", {
  skip_without_brms()
  neighbours <- rbind(c(0, 1, 1), c(1, 0, 0), c(1, 0, 0))
  dimnames(neighbours) <- list(1:3, 1:3)
  code <- function(...) {
    known <- list(near = neighbours, among = diag(6))
    suppressMessages(as.character(brms_says("make_stancode", ..., data = brms_data, data2 = known)))
  }
  terms <- list(
    y ~ gp(x), y ~ x + ar(time = time, gr = g), y ~ x + ma(cov = TRUE), y ~ car(near, gr = g), y ~ fcor(among),
    y ~ (x | gr(g, by = half)), y | weights(time) ~ (x || g), y ~ s(x, k = 3),
    y | trunc(lb = -1) ~ x, brms_says("bf", y ~ x, sigma ~ z)
  )
  families <- list(
    "student", "lognormal", "skew_normal", "exgaussian", "von_mises", "asym_laplace", "zero_one_inflated_beta",
    "hurdle_gamma", "beta", brms_says("mixture", "gaussian", "gaussian")
  )
  programs <- c(
    lapply(terms, code), lapply(families, function(family) code(share ~ x, family = family)),
    code(count ~ x, family = "zero_inflated_poisson"), code(grade ~ cs(x), family = "acat"),
    code(time | cens(ends) ~ x, family = "cox"), code(time | cens(ends) ~ x, family = "weibull"),
    code(y ~ x + z, prior = brms_says("set_prior", "horseshoe(1)"))
  )
  for (program in programs) expect_no_error(suppressMessages(translate_stan(read_stan_program(program))))
})
