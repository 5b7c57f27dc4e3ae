# Variables with types, in plain R functions and in those of RTMB, by closed forms.

# Dirichlet(a) with counts; the density is that of the first elements.
a <- c(2, 1, 3)
counts <- c(4, 0, 2)
log_dirichlet <- function(w, a) sum((a - 1) * log(w)) + lgamma(sum(a)) - sum(lgamma(a))
log_z_dirichlet <- sum(lgamma(a + counts) - lgamma(a)) + lgamma(sum(a)) - lgamma(sum(a + counts))
simplex_names <- paste0("w[", 1:3, "]")

simplex_target <- function(...) {
  target_function(
    function(w) log_dirichlet(w, a) + sum(counts * log(w)), 3,
    names = simplex_names, types = list(w = "simplex"), ...
  )
}

test_that("a simplex has the evidence and the posterior of Dirichlet's distribution", {
  fit <- smc(simplex_target(gradient = function(w) (a - 1 + counts) / w), n_particles = 256, seed = 1)
  expect_log_z(fit, log_z_dirichlet)
  expect_identical(colnames(fit$particles), simplex_names)
  expect_equal(rowSums(fit$particles), rep(1, nrow(fit$particles)))
  mean <- (a + counts) / sum(a + counts)
  sd <- sqrt(mean * (1 - mean) / (1 + sum(a + counts)))
  expect_estimate(coef(fit), sd / sqrt(glance(fit)$ess_mean), mean, resolution = 0.1)
})

test_that("the gradient is that of the unconstrained variables, in each way it can be given", {
  gradient <- function(w) (a - 1 + counts) / w
  u <- matrix(c(0.3, -1, 2, 0.1, 0, -2), 3)
  exact <- internal("evaluate_target")(simplex_target(gradient = gradient), u)
  expect_message(by_differences <- internal("evaluate_target")(simplex_target(), u), class = "autosmc_message_gradient")
  expect_identical(by_differences$log_density, exact$log_density)
  expect_equal(by_differences$gradient, exact$gradient, tolerance = 1e-7)
  all_at_once <- target_function(
    function(w) {
      value <- apply(w, 1, function(w) log_dirichlet(w, a) + sum(counts * log(w)))
      structure(value, gradient = t(apply(w, 1, gradient)))
    }, 3,
    vectorized = TRUE, names = simplex_names, types = c(w = "simplex")
  )
  expect_equal(internal("evaluate_target")(all_at_once, u), exact, tolerance = 1e-13)
  posterior <- target_posterior(
    function(w) sum(counts * log(w)), function(w) log_dirichlet(w, a), 3,
    gradient = list(likelihood = function(w) counts / w, prior = function(w) (a - 1) / w),
    names = simplex_names, types = list(w = "simplex")
  )
  expect_equal(internal("evaluate_target")(posterior, u), exact, tolerance = 1e-13)
})

# What every type is in one target, with a bounded variable between them.
R_names <- paste0("R[", outer(1:3, 1:3, paste, sep = ","), "]")
all_names <- c("cut[1]", "cut[2]", "cut[3]", "tau", R_names, "rate[1]", "rate[2]")
all_types <- list(cut = "ordered", R = "correlation", rate = "positive_ordered")
log_lkj_constant <- function(eta) { # of 3 x 3 matrices
  b <- eta + 1 / 2
  2 * ((2 * b - 1) * log(2) + lbeta(b, b)) + (2 * eta - 1) * log(2) + lbeta(eta, eta)
}
log_all <- function(cut, tau, R, rate, log_det) {
  # order statistics, an exponential scale, LKJ(2), and order statistics again
  log(6) + sum(dnorm(cut, log = TRUE)) - tau + log_det(R) - log_lkj_constant(2) + log(2) - sum(rate)
}
all_target <- function(...) {
  log_det <- function(R) as.numeric(determinant(R)$modulus)
  target_function(
    function(x) log_all(x[1:3], x[["tau"]], matrix(x[R_names], 3), x[14:15], log_det), 15,
    gradient = function(x) {
      inverse <- tryCatch(solve(matrix(x[R_names], 3)), error = function(e) matrix(NaN, 3, 3))
      c(-x[1:3], -1, inverse, -1, -1)
    },
    names = all_names, types = all_types, lower = c(tau = 0), ...
  )
}

test_that("ordered variables and correlation matrices have densities of integral 1", {
  target <- all_target()
  expect_identical(target$dim, 3L + 1L + 3L + 2L)
  expect_match(printed_text(target), "types: cut ordered, R correlation, rate positive_ordered", fixed = TRUE)
  fit <- smc(target, n_particles = 64, seed = 1)
  expect_log_z(fit, 0)
  draws <- fit$particles
  expect_identical(colnames(draws), all_names)
  expect_true(all(draws[, "cut[1]"] < draws[, "cut[2]"], draws[, "cut[2]"] < draws[, "cut[3]"], draws[, "tau"] > 0))
  expect_true(all(draws[, "rate[1]"] > 0, draws[, "rate[1]"] < draws[, "rate[2]"]))
  expect_equal(draws[, "R[1,1]"], rep(1, nrow(draws)))
  expect_identical(draws[, "R[3,1]"], draws[, "R[1,3]"])
  determinants <- apply(draws[1:50, R_names], 1, function(R) det(matrix(R, 3)))
  expect_true(all(determinants > 0))
  # a correlation r under LKJ(2) is 2 b - 1 with b of Beta(5/2, 5/2): its square has the mean 1 / 6, and the variance 5 / 252
  squares <- draws[, "R[2,1]"]^2
  w <- weights(fit)
  expect_estimate(sum(w * squares) / sum(w), sqrt(5 / 252 / glance(fit)$ess_mean), 1 / 6, resolution = 0.1)
})

test_that("RTMB records the same", {
  skip_if_not_installed("RTMB")
  # no determinant, since that of a recorded matrix is not known to all versions
  log_det <- function(R) log(1 + 2 * R[2, 1] * R[3, 1] * R[3, 2] - R[2, 1]^2 - R[3, 1]^2 - R[3, 2]^2)
  target <- target_rtmb(
    function(p) log_all(p$cut, p$tau, p$R, p$rate, log_det),
    list(cut = c(-1, 0, 1), tau = 1, R = diag(3), rate = c(1, 2)),
    lower = c(tau = 0), types = all_types
  )
  plain <- all_target()
  expect_identical(target$names, plain$names)
  x <- abs(matrix(sin(1:36), 4))
  expect_equal(internal("evaluate_target")(target, x), internal("evaluate_target")(plain, x), tolerance = 1e-10)
  expect_identical(target$outputs(x), plain$outputs(x))
  expect_identical(target$start[1], -1)
  at_start <- target_rtmb(
    function(p) log_dirichlet(p$w, a) + sum(counts * log(p$w)), list(w = c(0.2, 0.5, 0.3)), types = list(w = "simplex")
  )
  fit <- smc(at_start, n_particles = 128, seed = 1)
  expect_log_z(fit, log_z_dirichlet, resolution = 0.1)
  bad <- list(list(w = c(0.3, 0.3)), list(w = c(-0.5, 1.5)))
  for (parameters in bad) expect_bad(target_rtmb(function(p) log(p$w[1]), parameters, types = list(w = "simplex")), "parameters")
})

test_that("functions without a gradient see all elements, under their names", {
  for (vectorized in c(TRUE, FALSE)) {
    seen <- list()
    target <- suppressMessages(target_function(function(x) {
      at <- if (vectorized) x else t(x)
      seen <<- unique(c(seen, list(colnames(at))))
      rowSums(log(at[, simplex_names, drop = FALSE])) + lgamma(6) + dexp(at[, "tau"], log = TRUE)
    }, 4, vectorized = vectorized, names = c(simplex_names, "tau"), lower = c(tau = 0), types = c(w = "simplex")))
    fit <- suppressMessages(smc(target, n_particles = 128, seed = 1))
    expect_log_z(fit, 0)
    expect_identical(unique(seen), list(c(simplex_names, "tau")))
  }
})

test_that("points go to the unconstrained scale and back", {
  target <- all_target()
  u <- matrix(sin(1:18), 2)
  x <- constrain(target, u)
  expect_identical(colnames(x), all_names)
  expect_identical(x[, "tau"], exp(u[, 4]))
  expect_equal(unconstrain(target, x), u, ignore_attr = TRUE)
  expect_equal(unconstrain(target, x[1, ]), u[1, ], ignore_attr = TRUE)
  expect_true(all(check_gradient(target, x[1, ])$passed))
  x[1, "R[2,1]"] <- 2
  x[2, "cut[1]"] <- 9
  expect_bad(unconstrain(target, x[1, ]), "x")
  expect_bad(unconstrain(target, x[2, ]), "x")
  expect_bad(unconstrain(target, u), "x")
})

test_that("covariances, Cholesky factors and directions have densities of integral 1", {
  # Wishart(I, 5) in two dimensions; its factor, of roots of chi-squared numbers and a normal one; the factor of LKJ(2);
  # and the distribution of von Mises and Fisher on the sphere
  names <- c(outer(c("S", "L", "C"), c("[1,1]", "[2,1]", "[1,2]", "[2,2]"), paste0), sprintf("d[%d]", 1:3))
  names <- names[order(match(substr(names, 1, 1), c("S", "L", "C", "d")))]
  kappa <- 2
  log_density <- function(x) {
    chi <- function(x, df) dchisq(x^2, df, log = TRUE) + log(2 * x)
    det_S <- x[, 1] * x[, 4] - x[, 3]^2
    log(pmax(det_S, 0)) - (x[, 1] + x[, 4]) / 2 - 5 * log(2) - log(pi) / 2 - lgamma(2.5) - lgamma(2) +
      chi(x[, 5], 5) + dnorm(x[, 6], log = TRUE) + chi(x[, 8], 4) +
      2 * log(x[, 12]) + log(3 / 4) +
      kappa * x[, 13] + log(kappa) - log(4 * pi * sinh(kappa))
  }
  target <- suppressMessages(target_function(log_density, 15, vectorized = TRUE, names = names, types = list(
    S = "covariance", L = "cholesky_covariance", C = "cholesky_correlation", d = "unit_vector"
  )))
  expect_identical(target$dim, 3L + 3L + 1L + 3L)
  fit <- suppressMessages(smc(target, n_particles = 128, seed = 1))
  expect_log_z(fit, 0)
  draws <- fit$particles
  expect_equal(draws[, "L[1,2]"] + draws[, "C[1,2]"], numeric(nrow(draws)))
  expect_equal(draws[, "C[2,1]"]^2 + draws[, "C[2,2]"]^2, rep(1, nrow(draws)))
  expect_equal(rowSums(draws[, 13:15]^2), rep(1, nrow(draws)))
  expect_identical(draws[, "S[1,2]"], draws[, "S[2,1]"])
  n <- glance(fit)$ess_mean
  expect_estimate(coef(fit)[["S[1,1]"]], sqrt(10 / n), 5, resolution = 1)
  expect_estimate(coef(fit)[["d[1]"]], 1 / sqrt(n), 1 / tanh(kappa) - 1 / kappa, resolution = 0.3)
  u <- matrix(sin(1:20), 2)
  expect_equal(unconstrain(target, constrain(target, u))[, 1:7], u[, 1:7], ignore_attr = TRUE)
  expect_equal(constrain(target, unconstrain(target, constrain(target, u))), constrain(target, u))
})

test_that("far out nothing is lost", {
  target <- simplex_target()
  out <- target$outputs(rbind(c(800, 0), c(-800, 300)))
  expect_equal(rowSums(out), c(1, 1))
  expect_true(all(is.finite(out)))
})

test_that("a run starts from the prior", {
  dirichlet <- function(n) {
    g <- matrix(rgamma(3 * n, rep(a, each = n)), n)
    g / rowSums(g)
  }
  target <- simplex_target(
    gradient = function(w) (a - 1 + counts) / w,
    prior = list(log_density = function(w) log_dirichlet(w, a), sample = dirichlet)
  )
  fit <- suppressMessages(calmly(smc(
    target, reference = "prior", whiten = FALSE, n_particles = 2048, n_steps = 8, kernel = kernel_rwmh(), seed = 1
  )))
  expect_log_z(fit, log_z_dirichlet)
  positive <- target_function(
    function(x) dexp(x, log = TRUE) + dpois(2, x, log = TRUE), 1,
    gradient = function(x) 2 / x - 2, lower = 0, vectorized = TRUE,
    prior = list(log_density = function(x) dexp(x, log = TRUE), sample = function(n) rexp(n))
  )
  fit <- suppressMessages(calmly(smc(positive, reference = "prior", n_particles = 128, n_steps = 8, seed = 1)))
  expect_log_z(fit, log(1 / 8))
  expect_bad(smc(simplex_target(), reference = "prior"), "reference")
  for (bad in list(list(1), function(x) 0, list(log_density = mean))) expect_bad(simplex_target(prior = bad), "prior")
  expect_bad(simplex_target(prior = list(log_density = 1, sample = mean)), "prior$log_density")
})

test_that("a matrix that rounding has made singular is impossible, and functions need not factor it", {
  names <- sprintf("R[%d,%d]", rep(1:3, 3), rep(1:3, each = 3))
  log_det <- function(R) 2 * sum(log(diag(chol(matrix(R, 3)))))
  points <- list(
    correlation = rbind(0, c(8, 0.5, 1), c(30, 0, 0), c(0, 20, 20), NaN),
    covariance = rbind(0, c(0, 100, 0, 1, 1, 0), c(0, 1e8, 0, 0, 0, 0), c(0, 0, 0, 1, 1e8, 0), NaN)
  )
  for (type in names(points)) {
    target <- target_function(
      log_det, 9, gradient = function(R) c(solve(matrix(R, 3))), names = names, types = stats::setNames(list(type), "R")
    )
    at <- internal("evaluate_target")(target, points[[type]])
    expect_identical(is.finite(at$log_density), c(TRUE, TRUE, FALSE, FALSE, FALSE))
    expect_identical(is.finite(rowSums(at$gradient)), is.finite(at$log_density))
    expect_silent(internal("evaluate_target")(target, points[[type]][5, , drop = FALSE]))
  }
})

test_that("types that do not fit are errors", {
  f <- function(x) 0
  names <- c("w[1]", "w[2]", "w[3]", "s")
  with <- function(types, ...) target_function(f, 4, names = names, types = types, ...)
  for (bad in list("simplex", list(v = "simplex"), list("simplex"), list(w = "simplex", w = "ordered"), 3)) {
    expect_bad(with(bad), "types")
  }
  expect_bad(with(list(w = "cube")), "types$w")
  expect_bad(with(list(s = "simplex")), "types")
  expect_bad(with(list(w = "correlation")), "types")
  expect_bad(with(list(w = "simplex"), lower = 0), "lower")
  expect_bad(with(list(w = "simplex"), upper = c("w[2]" = 1)), "upper")
  expect_silent(with(list(w = "simplex"), lower = c(s = 0)))
  error <- catch(quick_smc(with(list(w = "simplex"), gradient = function(x) 1:3)))
  expect_s3_class(error, "autosmc_error_target")
})

test_that("dunif() without bounds is told of", {
  f <- function(x) dnorm(1, x, log = TRUE) + dunif(x, 0, 10, log = TRUE)
  told <- expect_message(target_function(f, 1), class = "autosmc_message_bounds")
  expect_match(message_of(told), "`lower` and `upper`", fixed = TRUE)
  expect_silent(target_function(f, 1, lower = 0, upper = 10))
  expect_silent(target_function(function(x) 0, 1))
  # of two, one has bounds
  g <- function(x) dunif(x[1], 0, 1, log = TRUE) + dunif(x[2], 0, 10, log = TRUE)
  expect_message(target_function(g, 2, lower = c(0, -Inf), upper = c(1, Inf)), class = "autosmc_message_bounds")
  expect_silent(target_function(g, 2, lower = 0, upper = c(1, 10)))
})
