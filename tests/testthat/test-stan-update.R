# Programs of old versions of Stan, brought up to date.

updated <- function(code) get("update_stan", asNamespace("autosmc"))(list(code = code, includes = list()))

# What is said in place of `before`, and that it is not changed again.
expect_updated <- function(before, after, changes) {
  found <- updated(before)
  expect_identical(found$program$code, after)
  expect_identical(found$changes, changes)
  expect_length(updated(after)$changes, 0)
}

test_that("arrays are declared as they are now", {
  expect_updated("data { int Y[N]; }", "data { array[N] int Y; }", "arrays")
  expect_updated(
    "data { int<lower=1, upper=K> J_1[N, 2]; }", "data { array[N, 2] int<lower=1, upper=K> J_1; }", "arrays"
  )
  expect_updated("{ vector<lower=(a > b)>[K] x[N]; }", "{ array[N] vector<lower=(a > b)>[K] x; }", "arrays")
  expect_updated("{ real x[2] = f(y[1], 3); }", "{ array[2] real x = f(y[1], 3); }", "arrays")
  expect_updated("{ cholesky_factor_corr[K] L[n[1], n[2]]; }", "{ array[n[1], n[2]] cholesky_factor_corr[K] L; }", "arrays")
  expect_updated(
    "real[] f(vector[] x, data int[,] k) { return x[, 1]; }",
    "array[] real f(array[] vector x, data array[,] int k) { return x[, 1]; }", "arrays"
  )
})

test_that("comments within brackets are no part of what stands there", {
  expect_updated("data { int k[N, // rows\n 2]; }", "data { array[N, 2] int k\n; }", "arrays")
  expect_updated("{ f(1); } real g(real[/* c */] x) { }", "{ f(1); } real g(array[] real x) { }", "arrays")
})

test_that("assignments, comments and increments are written as they are now", {
  expect_updated("{ x[1, y[2]] <- 3; if (a) b <- -1; }", "{ x[1, y[2]] = 3; if (a) b = -1; }", "assignments")
  expect_updated("# old\n#include <a.stan>\n", "// old\n#include <a.stan>\n", "comments")
  expect_updated("{ increment_log_prob(f(x, 2)); }", "{ target += (f(x, 2)); }", "increment_log_prob")
})

test_that("densities are written as they are now, Stan's and the program's own", {
  expect_updated("{ a = normal_log(y, 0, s[1, 2]); }", "{ a = normal_lpdf(y | 0, s[1, 2]); }", "densities")
  expect_updated("{ a = poisson_log_log(k, f(b, c)); }", "{ a = poisson_log_lpmf(k | f(b, c)); }", "densities")
  expect_updated(
    "{ a = normal_cdf_log(y, m, s) + normal_ccdf_log(y, m, s) + weibull_cdf(y, 1, 2); }",
    "{ a = normal_lcdf(y | m, s) + normal_lccdf(y | m, s) + weibull_cdf(y | 1, 2); }", "densities"
  )
  expect_updated(
    "functions { real own_log(real y, real s) { return -y / s; } real n_log(int k) { return k; } }
     model { x ~ own(2); target += own_log(f(x, 1), 2) + n_log(3); }",
    "functions { real own_lpdf(real y, real s) { return -y / s; } real n_lpmf(int k) { return k; } }
     model { x ~ own(2); target += own_lpdf(f(x, 1) | 2) + n_lpmf(3); }", "densities"
  )
})

test_that("a function of the program's own that is no density keeps its name", {
  expect_updated(
    "functions { vector own_log(vector x) { return log(x); } } model { y <- own_log(x); }",
    "functions { vector own_log(vector x) { return log(x); } } model { y = own_log(x); }", "assignments"
  )
})

test_that("functions have the names that they have now", {
  expect_updated(
    "{ a = multiply_log(x, y) + fabs(z) + if_else(a > b, f(1, 2), 3) + get_lp(); }",
    "{ a = lmultiply(x, y) + abs(z) + (a > b ? f(1, 2) : 3) + target(); }", "functions"
  )
  own <- "functions { real if_else(int a, real b, real c) { return b; } } model { target += if_else(1, 2, 3); }"
  expect_length(updated(own)$changes, 0)
})

test_that("comments, strings and programs of today are left alone", {
  for (code in c(
    "// int Y[N]; x <- 2\n/* increment_log_prob(2)\n real z[3]; */", "{ print(\"real x[N] <- # 3\"); }",
    "{ if (a <-1) b = 2; c = d <-e; }", "{ array[3] int x; target += normal_lpdf(x[1] | 0, log_sum(x)); }", "",
    "data { int Y[3; } parameters { real x; }"
  )) {
    expect_identical(updated(code)$program$code, code)
  }
  expect_length(updated(paste(readLines(stan_file("tasks")), collapse = "\n"))$changes, 0)
})

test_that("the negative binomial of a linear predictor is that of its mean, which has digits for all shapes", {
  with_mean <- function(code) get("without_glm", asNamespace("autosmc"))(list(code = code, includes = list()))$code
  glm <- "{ target += neg_binomial_2_log_glm_lpmf(Y[1:N] | Xc, m, b,\n  exp(s));
    y ~ neg_binomial_2_log_glm(x, a, b, f(1, 2)); }"
  mean <- "{ target += neg_binomial_2_log_lpmf(Y[1:N] | (m) + (Xc) * (b),\n  exp(s));
    y ~ neg_binomial_2_log((a) + (x) * (b), f(1, 2)); }"
  expect_identical(with_mean(glm), mean)
  expect_identical(with_mean(mean), mean)
})

# A group of counts, as brms 2.18 writes it but for names, in the oldest words.
old_program <- "functions {
  real scaled_log(real y, real s) { return normal_log(y, 0, s); } # a density
  real[] doubled(real[] x) { real out[2]; out[1] <- 2 * x[1]; out[2] <- 2 * x[2]; return out; }
}
data {
  int<lower=1> N;
  int Y[N]; # counts
  int<lower=1> J[N];
  real at[2];
}
parameters {
  real b;
  vector[2] z[1];
  real<lower=0> tau;
}
model {
  matrix[2, 2] K;
  K <- cov_exp_quad(at, 1.0, 2.0);
  b ~ scaled(2);
  increment_log_prob(exponential_log(tau, 1) + normal_log(z[1], 0, 1));
  for (n in 1:N)
    Y[n] ~ poisson_log(b + if_else(tau > 1, tau, tau) * z[1][J[n]]);
  increment_log_prob(multiply_log(2, 3) + K[1, 2] + sum(doubled(at)) + normal_ccdf_log(0.5, 0, 1));
}
"

# What such words are worth is tested with kinds.stan, which has them too.
test_that("the compiler takes an old program, with a message", {
  skip_if(!is.null(why_no_stan()), why_no_stan())
  expect_message(
    expect_match(translate_stan(read_stan_program(old_program)), "class autosmc_stan_program"),
    class = "autosmc_message_update"
  )
})

source(test_path("stan", "old_values.R"), local = TRUE)
old_texts <- vapply(names(old_stan), function(name) {
  paste(readLines(test_path("stan", "old", paste0(name, ".stan"))), collapse = "\n")
}, "")

test_that("the compiler takes programs as old manuals and versions of brms have them", {
  skip_if(!is.null(why_no_stan()), why_no_stan())
  for (name in names(old_texts)) {
    heard <- NULL
    translated <- withCallingHandlers(translate_stan(read_stan_program(old_texts[[name]])), message = function(m) {
      heard <<- c(heard, class(m))
      invokeRestart("muffleMessage")
    })
    expect_match(translated, "class autosmc_stan_program", info = name)
    # that of 2.22 is of today
    expect_identical("autosmc_message_update" %in% heard, name != "brms2_22", info = name)
  }
})

# All of them, and their parameters, take longer to compile: bench/old_stan.R.
test_that("old programs have the log densities that R has", {
  skip_on_cran()
  skip_if(!is.null(why_no_stan()), why_no_stan())
  use_stan_cache()
  on.exit(leave_stan_cache())
  # values of their parameters
  at <- list(
    capture = list(phi = c(0.9, 0.5, 0.7), p = c(0.3, 0.8, 0.6)), coal = list(e = 3.1, l = 0.9),
    ifelse = list(a = -0.7), survival = list(a = 1.4, s = 2.2), zi = list(p = 0.2, l = 1.7)
  )
  one <- as_one_program(old_texts[names(at)], fixed = TRUE)
  values <- do.call(c, unname(Map(function(p, name) stats::setNames(p, paste0(name, "_", names(p))), at, names(at))))
  data <- utils::modifyList(one$data, values)
  for (name in names(at)) {
    data$counts <- as.numeric(names(at) == name)
    target <- suppressMessages(suppressWarnings(target_stan(one$code, data), classes = "autosmc_warning_prior"))
    by_r <- old_stan[[name]]$log_density(at[[name]], old_stan[[name]]$data)
    expect_equal(evaluate_target(target, matrix(0), gradient = FALSE)$log_density, by_r, tolerance = 1e-10, info = name)
  }
})

test_that("what cannot be brought up to date is named with its line", {
  skip_if(!is.null(why_no_stan()), why_no_stan())
  error <- expect_error(
    target_stan("data { int Y[2]; }\nparameters { real array; }\nmodel { }", list(Y = 1:2)),
    class = "autosmc_error_program"
  )
  expect_match(conditionMessage(error), "line 2", fixed = TRUE)
  expect_match(conditionMessage(error), "arrays were updated", fixed = TRUE)
})

test_that("as_brmsfit() takes fits of a brmsfit alone", {
  error <- catch(as_brmsfit(quick_run(normal_target())))
  expect_s3_class(error, "autosmc_error_input")
  expect_match(message_of(error), "brmsfit", fixed = TRUE)
  expect_bad(as_brmsfit(3), "fit")
})
