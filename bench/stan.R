# Stan programs whose evidence is known otherwise: smc() by its defaults, 4 seeds each.
# `exact` comes from quadrature or enumeration in R; `error` is the largest of the
# seeds' errors, `claimed` the median of their standard errors, `seconds` the processor
# time of smc(), `gradient_us` that of a gradient in microseconds, and `compile_s` that of
# compiling.
#
# The draws of all seeds together stand beside those of rstan (four chains of 2,000 iterations),
# where it is installed. Over all `n_declared` numbers that the program declares as parameters,
# `mean_off` is the largest difference of their means, in rstan's standard deviations, and
# `sd_off` that of the logarithms of their standard deviations; `mean_z` and `sd_z` are the
# largest differences in their Monte Carlo errors.
#
# Rscript bench/stan.R [PROGRAM...] renews the rows that are named, or all.
source("bench/common.R")
Sys.setenv(R_USER_CACHE_DIR = tempfile()) # everything is compiled anew

# log of the integral of exp(f) over a grid, a list of vectors of evenly spaced points;
# f takes a matrix with a row a point.
integrate_grid <- function(f, grid) {
  values <- f(as.matrix(expand.grid(grid)))
  width <- prod(vapply(grid, function(x) x[2] - x[1], 0))
  max(values) + log(sum(exp(values - max(values))) * width)
}

# log of the evidence of y ~ N(m, 1), m ~ N(0, 9); 0 observations are none.
log_normal_evidence <- function(y) {
  n <- length(y)
  variance <- 1 / (n + 1 / 9)
  sum(dnorm(y, log = TRUE)) + log(variance / 9) / 2 + variance * sum(y)^2 / 2
}

# log of the sum over all allocations of observations to two states, whose means are
# ordered: half of the sum without an order. log_prior(s): of an allocation.
log_allocations <- function(y, log_prior) {
  n <- length(y)
  terms <- vapply(seq_len(2^n) - 1, function(code) {
    s <- 1 + bitwAnd(bitwShiftR(code, seq_len(n) - 1), 1L)
    log_prior(s) + log_normal_evidence(y[s == 1]) + log_normal_evidence(y[s == 2])
  }, 0)
  max(terms) + log(sum(exp(terms - max(terms)))) - log(2)
}

# log of the chance of a sequence of choices between two whose shares are Beta(2, 2).
log_choices <- function(n1, n2) lbeta(2 + n1, 2 + n2) - lbeta(2, 2)

schools <- list(
  J = 8, y = c(28, 8, -3, 7, -1, 1, 18, 12),
  sigma = c(15, 10, 16, 11, 9, 11, 10, 18)
)
exact_schools <- function() {
  f <- function(x) {
    vapply(x[, 1], function(log_tau) {
      S <- diag(schools$sigma^2 + exp(2 * log_tau)) + 25
      R <- chol(S)
      z <- backsolve(R, schools$y, transpose = TRUE)
      -4 * log(2 * pi) - sum(log(diag(R))) - sum(z^2) / 2 +
        dcauchy(exp(log_tau), 0, 5, log = TRUE) + log_tau
    }, 0)
  }
  integrate_grid(f, list(seq(-15, 15, by = 0.01)))
}

gp <- list(N = 12, x = seq(-2, 2, length.out = 12))
gp$y <- sin(2 * gp$x) + 0.2 * cos(17 * gp$x)
exact_gp <- function() {
  distance <- outer(gp$x, gp$x, "-")^2
  f <- function(x) {
    apply(x, 1, function(log_p) {
      p <- exp(log_p)
      K <- p[2]^2 * exp(-distance / (2 * p[1]^2)) + diag(p[3]^2, gp$N)
      R <- chol(K)
      z <- backsolve(R, gp$y, transpose = TRUE)
      -gp$N / 2 * log(2 * pi) - sum(log(diag(R))) - sum(z^2) / 2 +
        sum(dnorm(log_p, c(0, 0, -1), 0.5, log = TRUE))
    })
  }
  integrate_grid(f, list(
    seq(-3, 3, by = 0.1), seq(-3, 3, by = 0.1), seq(-4, 2, by = 0.1)
  ))
}

states <- list(
  N = 12, y = c(-1.2, -0.4, -2.1, 1.9, 2.4, 1.1, 2.2, -0.8, -1.5, 1.4, 2.9, 1.7)
)
exact_hmm <- function() {
  log_allocations(states$y, function(s) {
    from <- s[-states$N]
    to <- s[-1]
    log(0.5) + log_choices(sum(from == 1 & to == 1), sum(from == 1 & to == 2)) +
      log_choices(sum(from == 2 & to == 1), sum(from == 2 & to == 2))
  })
}
exact_mixture <- function() {
  log_allocations(states$y, function(s) log_choices(sum(s == 1), sum(s == 2)))
}

set.seed(1)
pairs <- matrix(rnorm(40), 20) %*% chol(matrix(c(1, 0.9, 0.9, 2), 2))
exact_lkj <- function() {
  S <- crossprod(pairs)
  n <- nrow(pairs)
  f <- function(x) {
    tau <- exp(x[, 1:2])
    rho <- tanh(x[, 3])
    quadratic <- S[1, 1] / tau[, 1]^2 + S[2, 2] / tau[, 2]^2 -
      2 * rho * S[1, 2] / (tau[, 1] * tau[, 2])
    log_det <- 2 * rowSums(x[, 1:2]) + log1p(-rho^2)
    # (1 + rho) / 2 is Beta(2, 2); the last term is the Jacobian of tanh()
    -n * log(2 * pi) - n / 2 * log_det - quadratic / (2 * (1 - rho^2)) +
      rowSums(dnorm(x[, 1:2], log = TRUE)) +
      dbeta((1 + rho) / 2, 2, 2, log = TRUE) - log(2) + log1p(-rho^2)
  }
  integrate_grid(f, list(
    seq(-2, 2.5, by = 0.03), seq(-2, 2.5, by = 0.03), seq(-2, 4, by = 0.03)
  ))
}

decay <- list(N = 8, t = 1:8, y = c(7.1, 4.6, 3.9, 2.4, 1.3, 1.2, 0.5, 0.7))
exact_ode <- function() {
  f <- function(x) {
    apply(x, 1, function(log_p) {
      p <- exp(log_p)
      sum(dnorm(decay$y, 10 * exp(-p[1] * decay$t), p[2], log = TRUE)) +
        sum(dnorm(log_p, -1, 1, log = TRUE))
    })
  }
  integrate_grid(f, list(seq(-2.5, 0.5, by = 0.005), seq(-4, 4, by = 0.02)))
}

teeth <- as.data.frame(nlme::Orthodont)
children <- list(
  N = nrow(teeth), J = 27, group = as.integer(factor(teeth$Subject)), x = teeth$age - 11,
  y = teeth$distance
)
# All but the two scales is jointly normal.
exact_multilevel <- function() {
  same_group <- outer(children$group, children$group, "==")
  of_line <- 25 + 4 * tcrossprod(children$x)
  f <- function(u) {
    apply(u, 1, function(log_s) {
      s <- exp(log_s)
      root <- chol(of_line + s[1]^2 * same_group + diag(s[2]^2, children$N))
      z <- backsolve(root, children$y - 24, transpose = TRUE)
      -children$N / 2 * log(2 * pi) - sum(log(diag(root))) - sum(z^2) / 2 +
        sum(dexp(s, 0.5, log = TRUE) + log_s)
    })
  }
  integrate_grid(f, list(seq(-0.5, 2, by = 0.05), seq(-0.2, 1, by = 0.03)))
}

features <- unname(cbind(scale(as.matrix(sonar[1:60])), 1))
cases <- list(
  eight_schools = list(data = schools, exact = exact_schools),
  eight_schools_centred = list(data = schools, exact = exact_schools),
  multilevel = list(data = children, exact = exact_multilevel),
  gp = list(data = gp, exact = exact_gp),
  hmm = list(data = states, exact = exact_hmm),
  mixture = list(data = states, exact = exact_mixture),
  lkj = list(data = list(N = nrow(pairs), y = pairs), exact = exact_lkj),
  ode = list(data = decay, exact = exact_ode, n_particles = 128), # 0.3 ms a gradient
  sonar = list(
    data = list(N = 208, K = 61, x = features, y = sonar$Class == "R"),
    exact = function() truths$sonar
  )
)

seconds_of <- function(code) sum(system.time(code)[c(1, 2, 4, 5)])

# Of many points in one call, since a call has a cost of its own.
gradient_us <- function(target, n = 10000) {
  x <- matrix(rnorm(n * target$dim, sd = 0.3), n)
  seconds_of(autosmc:::evaluate_target(target, x)) / n * 1e6
}

# draws -------------------------------------------------------------------------

moments <- function(x, w) {
  mean <- colSums(w * x) / sum(w)
  c(mean, sqrt(colSums(w * x^2) / sum(w) - mean^2))
}

# A matrix with the rows `value` and `error`: means, then standard deviations, of a fit's draws,
# and their errors by leaving out one island after the other.
moments_of_fit <- function(fit, names) {
  x <- fit$particles[, names, drop = FALSE]
  w <- exp(fit$log_weights - max(fit$log_weights))
  islands <- unique(fit$island)
  without <- vapply(islands, function(i) {
    kept <- fit$island != i
    moments(x[kept, , drop = FALSE], w[kept])
  }, numeric(2 * length(names)))
  n <- length(islands)
  error <- sqrt((n - 1) / n * rowSums((without - rowMeans(without))^2))
  rbind(value = moments(x, w), error = error)
}

# The same of several fits together: an array, fits last.
moments_together <- function(each) {
  rbind(
    value = rowMeans(each["value", , ]),
    error = sqrt(rowMeans(each["error", , ]^2) / dim(each)[3])
  )
}

moments_of_rstan <- function(file, data, names) {
  fit <- suppressWarnings(
    rstan::sampling(rstan::stan_model(file), data, seed = 1, refresh = 0)
  )
  draws <- posterior::subset_draws(posterior::as_draws_array(fit), variable = names)
  found <- posterior::summarise_draws(draws, "mean", "sd", "mcse_mean", "mcse_sd")
  rbind(value = c(found$mean, found$sd), error = c(found$mcse_mean, found$mcse_sd))
}

# Without the numbers that never vary, such as half of a Cholesky factor.
compare_moments <- function(ours, theirs) {
  sd <- theirs["value", seq_len(ncol(theirs) / 2) + ncol(theirs) / 2]
  varies <- !is.na(sd) & sd > 0
  is_mean <- rep(c(TRUE, FALSE), each = length(sd))
  off <- ours["value", ] - theirs["value", ]
  z <- abs(off) / sqrt(ours["error", ]^2 + theirs["error", ]^2)
  log_ratio <- log(ours["value", ] / theirs["value", ])
  data.frame(
    n_declared = sum(varies),
    mean_off = max(abs(off[is_mean] / sd)[varies]),
    mean_z = max(z[is_mean][varies]),
    sd_off = max(abs(log_ratio[!is_mean])[varies]),
    sd_z = max(z[!is_mean][varies])
  )
}

# one table -----------------------------------------------------------------------

seeds <- 1:4

row_of <- function(name) {
  case <- modifyList(list(n_particles = 1024), cases[[name]])
  file <- file.path("bench", "stan", paste0(name, ".stan"))
  compile_s <- seconds_of(target <- target_stan(file, case$data))
  exact <- case$exact()
  declared <- target$parameters
  out <- replicate_seeds(seeds, function(seed) {
    seconds <- seconds_of(
      fit <- suppressWarnings(smc(target, seed = seed, n_particles = case$n_particles))
    )
    c(fit$log_z, fit$std_error, seconds, moments_of_fit(fit, declared))
  })
  row <- data.frame(
    program = name,
    dim = target$dim,
    exact = exact,
    log_z = median(out[, 1]),
    error = max(abs(out[, 1] - exact)),
    claimed = median(out[, 2]),
    seconds = median(out[, 3]),
    gradient_us = gradient_us(target),
    compile_s = compile_s
  )
  against <- if (has_rstan) {
    each <- array(
      t(out[, -(1:3)]), c(2, 2 * length(declared), length(seeds)),
      list(c("value", "error"), NULL, NULL)
    )
    compare_moments(moments_together(each), moments_of_rstan(file, case$data, declared))
  } else {
    data.frame(n_declared = NA, mean_off = NA, mean_z = NA, sd_off = NA, sd_z = NA)
  }
  cbind(row, against)
}

has_rstan <- requireNamespace("rstan", quietly = TRUE)
if (!has_rstan) message("rstan is not installed: no draws beside its own")
programs <- commandArgs(TRUE)
if (length(programs) == 0) programs <- names(cases)
for (name in programs) keep_rows(row_of(name), "stan", list(program = names(cases)))

# the program of the sonar data against the built-in target
if ("sonar" %in% programs) {
  case <- cases$sonar
  x <- matrix(rnorm(100 * 61, sd = 0.1), 100)
  in_stan <- autosmc:::evaluate_target(target_stan("bench/stan/sonar.stan", case$data), x)
  built_in <- autosmc:::evaluate_target(target_sonar(), x)
  cat("largest differences from target_sonar(), relative: log density",
    max(abs(in_stan$log_density / built_in$log_density - 1)), "gradient",
    max(abs(in_stan$gradient - built_in$gradient)) / max(abs(built_in$gradient)), "\n")
  cat("microseconds a gradient of target_sonar():", gradient_us(target_sonar()), "\n")
}
