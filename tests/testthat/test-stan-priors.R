# Parameters without a prior, by the text of a Stan program.

flat_in <- function(parameters, model, ..., transformed = "") {
  code <- sprintf(
    "data { int N; vector[N] y; real s; }
     parameters { %s }
     transformed parameters { %s }
     model { %s }", parameters, transformed, model
  )
  parameters_without_prior(list(code = code, includes = list(...)))
}

test_that("parameters in the likelihood alone have no prior", {
  regression <- "real mu; vector[2] beta; real<lower=0> sigma;"
  expect_identical(flat_in(regression, "y ~ normal(mu, sigma);"), c("mu", "beta", "sigma"))
  expect_identical(flat_in(regression, "mu ~ normal(0, s); y ~ normal(mu, sigma);"), c("beta", "sigma"))
  expect_identical(
    flat_in(regression, "vector[N] eta = mu + X * beta; // beta ~ normal(0, 1);
      beta[1] ~ std_normal(); target += normal_lpdf(y | eta, sigma) /* + exponential_lpdf(sigma | 1) */;"),
    c("mu", "sigma")
  )
  # of a hierarchy, of what the data are given, and of a mixture
  expect_identical(
    flat_in(
      "real mu; real<lower=0> tau; vector[N] eta;", "eta ~ normal(0, 1); y ~ normal(theta, s);",
      transformed = "vector[N] theta; for (n in 1:N) theta[n] = mu + tau * eta[n];"
    ),
    c("mu", "tau")
  )
  expect_identical(
    flat_in(
      "simplex[2] w; ordered[2] m; real<lower = 0> u;",
      "for (n in 1:N) { vector[2] lp; lp[1] = log(w[1]) + normal_lupdf(y[n] | m[1], 1);
         lp[2] = log(w[2]) + normal_lpdf(y[n] | m[2], u); target += log_sum_exp(lp); }"
    ),
    c("m", "u")
  )
})

test_that("whatever may be a prior counts as one", {
  has_prior <- function(...) expect_length(flat_in(...), 0)
  likelihood <- "y ~ normal(mu, exp(sigma));"
  both <- "real mu, sigma;"
  priors <- c(
    "mu ~ normal(0, 1); sigma ~ normal(0, 1) T[0, ];",
    "[mu, sigma]' ~ multi_normal(zero, S);",
    "target += normal_lpdf(mu | 0, s) + normal_lupdf(sigma | mu, 1) - normal_lccdf(0 | 0, 1);",
    "target += -square(mu) - sigma^2;",
    "my_prior_lp(mu, sigma);",
    "for (p in {mu, sigma}) p ~ normal(0, 1);",
    "array[2] real p = {mu, sigma}; p ~ normal(0, 1);",
    "{ real v = square(mu); if (s < 1 && N == 2) v ~ gamma(2, 2); else { v ~ gamma(2, 1); } sigma ~ cauchy(0, 1); }",
    "real lp = 0; lp += normal_lpdf(mu | 0, 1); lp += cauchy_lpdf(sigma | 0, 1); target += lp;",
    "0 ~ normal(mu - sigma, 1);",
    "real p; increment_log_prob(-square(mu)); p <- sigma^2; p ~ gamma(2, 2);", # of old versions
    "target += reduce_sum(partial_sum_lupdf, y, 1, mu, sigma);"
  )
  for (prior in priors) has_prior(both, paste(likelihood, prior))
  # densities of 1 that are proper but for a constant
  has_prior(
    "real<lower=0, upper=1> p; simplex[3] w; corr_matrix[2] R; array[2] unit_vector[3] d; cholesky_factor_corr[3] L;",
    "y ~ normal(p * w[1] * R[1, 2] * d[1][1], L[2, 1]);"
  )
  expect_identical(flat_in("real<lower=0, upper=1> p; array[2] real<lower=0> q;", ""), "q")
})

test_that("a power of a positive parameter is no proper prior", {
  scales <- "real mu; real<lower=0> sigma; vector<lower = 0>[2] tau; array[2] real<lower=0> nu;"
  priors <- c(
    "target += -log(sigma); target += - 2 * log(tau[1]); target += -log(nu);",
    "target += -log(sigma) - sum(log(tau)) + log(1 / nu[2]);",
    "target += normal_lpdf(y | mu, sigma) - log(sigma);",
    "target += log(1 / sigma) + normal_lpdf(y | mu, sigma);"
  )
  for (prior in priors) expect_identical(flat_in(scales, prior), c("mu", "sigma", "tau", "nu"))
  # powers that are part of a density, or of a parameter that may not come next to 0
  scale <- "real<lower=0> sigma;"
  proper <- c(
    "target += -3 * log(sigma) - 2 / sigma;", "target += -log(sigma) - square(log(sigma));",
    "target += -square(1 - log(sigma));", "target += -log(sigma); sigma ~ lognormal(0, 1);", "target += -log(sigma)^2;",
    "target += s > 0 ? -sigma : -log(sigma);"
  )
  for (prior in proper) expect_length(flat_in(scale, prior), 0)
  expect_length(flat_in("real<lower=1> sigma;", "target += -3 * log(sigma);"), 0)
})

test_that("what a program includes is read", {
  expect_length(flat_in("real mu;", "\n#include prior.stan\n y ~ normal(mu, 1);", prior.stan = "mu ~ normal(0, 1);"), 0)
})

brms_program <- "// generated with brms 2.23.0
data { int N; vector[N] Y; int prior_only; }
parameters { real<lower=0> sigma; %s }
model { real lprior = 0;
  lprior += normal_%s(sigma | 0, 1)%s;
  target += lprior; }"

test_that("a program of brms without constants of truncation is refused", {
  code <- sprintf(brms_program, "", "lupdf", "")
  expect_error(target_stan(code, list(N = 0, Y = numeric(), prior_only = 1)), "normalize = TRUE", class = "autosmc_error_input")
  expect_silent(check_normalised(list(code = sprintf(brms_program, "", "lpdf", "- normal_lccdf(0 | 0, 1)"))))
  expect_silent(check_normalised(list(code = sub("generated with brms", "", code))))
})

test_that("thresholds of brms are told to have no normalised prior", {
  target <- normal_target(6, names = c("Intercept_1[1]", "Intercept_1[2]", paste0("Intercept_2[", 1:3, "]"), "sigma"))
  code <- sprintf(brms_program, "ordered[nthres[1]] Intercept_1; ordered[nthres[2]] Intercept_2;", "lpdf", "")
  target$program <- list(code = code, includes = list())
  told <- expect_message(tell_constants(target), class = "autosmc_message_ordered")
  expect_match(message_of(told), "log(2! * 3!)` = 2.485", fixed = TRUE)
  target$program$code <- sub("generated with brms", "", code)
  expect_silent(tell_constants(target))
  target$program$code <- gsub("ordered", "vector", code)
  expect_silent(tell_constants(target))
})

test_that("what the density of brms lacks for conditional autoregression is told", {
  target <- normal_target(3, names = c("car", "rcar[1]", "rcar[2]"))
  target$program <- list(code = sprintf(brms_program, "", "lpdf", ""), includes = list())
  target$data <- list(values = list(Nneigh = c(2, 1, 1)))
  told <- expect_message(tell_constants(target), class = "autosmc_message_car")
  neighbours <- rbind(c(0, 1, 1), c(1, 0, 0), c(1, 0, 0))
  n <- rowSums(neighbours)
  by_brms <- sum(log1p(-0.3 * eigen(neighbours / sqrt(outer(n, n)))$values)) / 2
  high <- by_brms - log(det(diag(n) - 0.3 * neighbours)) / 2 + 3 / 2 * log(2 * pi)
  expect_match(message_of(told), sprintf("high by %.3f", high), fixed = TRUE)
  target$names <- c("zcar[1]", "zcar[2]", "sdcar")
  told <- expect_message(tell_constants(target), class = "autosmc_message_car")
  expect_match(message_of(told), "models with the same", fixed = TRUE)
})

test_that("the evidence of ordered variables with independent priors is low by the log of how many orders there are", {
  ordered <- target_function(
    function(u) {
      cut <- c(u[1], u[1] + cumsum(exp(u[-1])))
      sum(dnorm(cut, log = TRUE)) + sum(u[-1])
    },
    dim = 3
  )
  fit <- suppressMessages(calmly(smc(ordered, seed = 1)))
  expect_log_z(fit, -lfactorial(3), resolution = 0.1)
})

test_that("a fit of several data sets is no model", {
  fit <- structure(list(), class = c("brmsfit_multiple", "brmsfit"))
  expect_error(smc(fit), "smc_all(lapply(data", fixed = TRUE, class = "autosmc_error_input")
})

test_that("a coefficient of brms is named by its covariate", {
  X <- matrix(0, 2, 3, dimnames = list(NULL, c("Intercept", "speed", "weight")))
  variables <- c("b[1]", "b[2]", "Intercept", "b_sigma[1]", "sigma")
  flat <- c("b[2]", "b_sigma[1]", "sigma")
  expect_identical(
    name_coefficients(flat, variables, list(X = X, X_sigma = X[, 1, drop = FALSE])),
    c(weight = "b[2]", Intercept = "b_sigma[1]", "sigma")
  )
  expect_identical(name_coefficients(flat, variables, list(X = unname(X))), flat)
  expect_identical(name_coefficients(flat, variables, "data.json"), flat)
  # in a fit of brms it has this name already
  expect_identical(name_coefficients("b_speed", c("b_Intercept", "b_speed"), list(X = X)), "b_speed")
})
