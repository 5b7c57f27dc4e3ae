# Fits from other fits, curves and predictive evidences: the coverage of their errors, and what they cost. Closed forms
# or quadrature tell the log evidence.
#
#   Rscript bench/neighbours.R [seeds]
#
# writes results/neighbours.csv: a row a seed, case and setting, with the estimate, its standard error, the truth, how
# it was found (`from`), the evaluations it took, and those of the fit that it began with; of cases that end in
# "same precision", those of a cold fit of the same target.

library(autosmc)
seeds <- seq_len(c(as.integer(commandArgs(TRUE)), 30L)[1])

# A t test with Jeffreys' priors: a Cauchy one for the effect, of this scale.
difference <- with(sleep, extra[group == 2] - extra[group == 1])
t_test <- function(scale) {
  n <- length(difference)
  target_function(
    function(p) {
      at <- outer(p[, 1] * p[, 2], difference, function(mean, y) y - mean)
      rowSums(dnorm(at, 0, p[, 2], log = TRUE)) + dcauchy(p[, 1], 0, scale, log = TRUE) - log(p[, 2])
    },
    dim = 2, names = c("delta", "sigma"), lower = c(-Inf, 0), vectorized = TRUE,
    gradient = function(p) {
      delta <- p[, 1]
      sigma <- p[, 2]
      cbind(
        sum(difference) / sigma - n * delta - 2 * delta / (scale^2 + delta^2),
        -(n + 1) / sigma + sum(difference^2) / sigma^3 - delta * sum(difference) / sigma^2
      )
    }
  )
}
null_of_t_test <- local({
  n <- length(difference)
  lgamma(n / 2) - log(2) - n / 2 * log(pi) - n / 2 * log(sum(difference^2))
})
exact_t_test <- function(scale) {
  n <- length(difference)
  t2 <- n * mean(difference)^2 / var(difference)
  given <- function(g) {
    spread <- 1 + n * g * scale^2
    spread^-0.5 * (1 + t2 / (spread * (n - 1)))^(-n / 2) * (2 * pi)^-0.5 * g^-1.5 * exp(-1 / (2 * g))
  }
  null_of_t_test + log(integrate(given, 0, Inf, rel.tol = 1e-10)$value) + n / 2 * log1p(t2 / (n - 1))
}

# Eight schools, with a half-normal prior of this scale for the spread between them.
effects <- c(28, 8, -3, 7, -1, 1, 18, 12)
errors <- c(15, 10, 16, 11, 9, 11, 10, 18)
schools <- function(scale) {
  target_function(
    function(p) {
      theta <- p[, 3:10, drop = FALSE]
      dnorm(p[, 1], 0, 5, log = TRUE) + log(2) + dnorm(p[, 2], 0, scale, log = TRUE) +
        rowSums(dnorm(theta, p[, 1], p[, 2], log = TRUE)) +
        colSums(dnorm(t(theta), effects, errors, log = TRUE))
    },
    dim = 10, names = c("mu", "tau", sprintf("theta[%d]", 1:8)), lower = c(-Inf, 0, rep(-Inf, 8)), vectorized = TRUE,
    gradient = function(p) {
      theta <- p[, 3:10, drop = FALSE]
      off <- theta - p[, 1]
      cbind(
        -p[, 1] / 25 + rowSums(off) / p[, 2]^2, -p[, 2] / scale^2 - 8 / p[, 2] + rowSums(off^2) / p[, 2]^3,
        -off / p[, 2]^2 + t((effects - t(theta)) / errors^2)
      )
    }
  )
}
exact_schools <- function(scale) {
  given <- function(tau) {
    vapply(tau, function(tau) {
      covariance <- diag(errors^2 + tau^2) + 25
      root <- chol(covariance)
      z <- backsolve(root, effects, transpose = TRUE)
      exp(30 - 4 * log(2 * pi) - sum(log(diag(root))) - sum(z^2) / 2) * 2 * dnorm(tau, 0, scale)
    }, 0)
  }
  log(integrate(given, 0, 20 * scale, rel.tol = 1e-9, subdivisions = 1000)$value) - 30
}

# Counts with a gamma prior of their mean, in three batches.
counts <- c(3, 5, 2, 4, 6, 1, 4, 3, 7, 2, 5, 4)
poisson <- function(n) {
  y <- counts[seq_len(n)]
  target_function(
    function(mean) {
      of_counts <- dpois(rep(y, each = nrow(mean)), mean[, 1], log = TRUE)
      dgamma(mean[, 1], 2, 0.5, log = TRUE) + rowSums(matrix(of_counts, nrow(mean)))
    },
    dim = 1, names = "mean", lower = 0, vectorized = TRUE, gradient = function(mean) (1 + sum(y)) / mean - 0.5 - n
  )
}
exact_poisson <- function(n) {
  y <- counts[seq_len(n)]
  2 * log(0.5) + lgamma(2 + sum(y)) - lgamma(2) - (2 + sum(y)) * log(0.5 + n) - sum(lfactorial(y))
}

# Three logistic densities, with log Z = 0.
logistic <- function(location) {
  target_function(
    function(x) rowSums(dlogis(x, location, log = TRUE)), 3,
    gradient = function(x) -tanh((x - location) / 2), vectorized = TRUE
  )
}

n_evals <- function(fit) sum(fit$runs$n_target_evals)
row <- function(case, seed, setting, log_z, std_error, exact, from, evals, cold) {
  data.frame(
    case, seed, setting,
    log_z = signif(log_z, 10), std_error = signif(std_error, 4), exact = signif(exact, 10), from, evals, cold
  )
}
from_of <- function(fit) if (any(fit$runs$label %in% "fit" & fit$runs$used)) "warm" else "cold"

# From the fit at one setting to a near and to a far one.
warm <- function(case, model, exact, settings, seed) {
  first <- smc(model(settings[1]), seed = seed)
  do.call(rbind, lapply(settings[-1], function(setting) {
    fit <- smc(model(setting), reference = first, seed = seed + 1000)
    row(case, seed, setting, fit$log_z, fit$std_error, exact(setting), from_of(fit), n_evals(fit), n_evals(first))
  }))
}
curve_rows <- function(case, model, exact, settings, used, seed) {
  curve <- evidence_curve(model, settings, used = used, seed = 100 * seed)
  cold <- n_evals(attr(curve, "fits")[[1]])
  row(
    case, seed, curve$value, curve$log_z, curve$std_error, vapply(curve$value, exact, 0), curve$from,
    curve$n_target_evals, cold
  )
}
# By a precision of 0.01, from a near neighbour and from the beginning.
same_precision <- function(case, model, exact, settings, seed) {
  first <- smc(model(settings[1]), seed = seed)
  fit <- smc(model(settings[2]), reference = first, precision = 0.01, seed = seed + 1000)
  cold <- smc(model(settings[2]), precision = 0.01, seed = seed + 2000)
  row(
    paste0(case, ", same precision"), seed, settings[2], fit$log_z, fit$std_error, exact(settings[2]), from_of(fit),
    n_evals(fit), n_evals(cold)
  )
}
append_rows <- function(seed) {
  fit <- smc(poisson(4), seed = 100 * seed)
  total <- log_evidence(fit)
  rows <- NULL
  for (n in c(8, 12)) {
    cold <- n_evals(fit)
    fit <- smc_append(fit, poisson(n), seed = 100 * seed + n)
    new <- fit$predictive
    total <- sum(total, new)
    rows <- rbind(rows, row(
      "append", seed, n, as.numeric(new), attr(new, "std_error"), exact_poisson(n) - exact_poisson(n - 4), from_of(fit),
      n_evals(fit), cold
    ))
  }
  rbind(rows, row("append, sum", seed, 12, as.numeric(total), attr(total, "std_error"), exact_poisson(12), "", 0, 0))
}

scales <- function(from, to) exp(seq(log(from), log(to), length.out = 19))
results <- do.call(rbind, lapply(seeds, function(seed) {
  suppressMessages(rbind(
    warm("t test", t_test, exact_t_test, c(sqrt(0.5), 1, 0.1), seed),
    warm("schools", schools, exact_schools, c(5, 7, 50), seed),
    curve_rows("t test, curve", t_test, exact_t_test, scales(0.1, 5), sqrt(0.5), seed),
    curve_rows("schools, curve", schools, exact_schools, scales(0.5, 50), 6, seed),
    append_rows(seed),
    same_precision("t test", t_test, exact_t_test, c(sqrt(0.5), 1), seed),
    same_precision("schools", schools, exact_schools, c(5, 7), seed),
    same_precision("counts", poisson, exact_poisson, c(8, 12), seed),
    same_precision("logistic", logistic, function(location) 0, c(2, 2.2), seed)
  ))
}))
write.csv(results, file.path("bench", "results", "neighbours.csv"), row.names = FALSE)

# Of each case and kind: how often two standard errors hold the truth, with its binomial interval.
covered <- with(results, abs(log_z - exact) <= 2 * std_error)
for (rows in split(seq_len(nrow(results)), list(results$case, results$from), drop = TRUE)) {
  test <- binom.test(sum(covered[rows]), length(rows))
  cat(sprintf(
    "%s, %s: %d of %d covered, %.2f (%.2f, %.2f); root mean square of errors %.2f\n", results$case[rows[1]],
    results$from[rows[1]], sum(covered[rows]), length(rows), test$estimate, test$conf.int[1], test$conf.int[2],
    sqrt(mean(with(results[rows, ], ((log_z - exact) / std_error)^2)))
  ))
}
curves <- results[grepl("curve", results$case), ]
print(aggregate(cbind(evals) ~ case + seed, transform(curves, evals = evals / cold), sum) |>
  aggregate(evals ~ case, FUN = max))
same <- results[grepl("same precision", results$case), ]
print(aggregate(cbind(share = evals / cold) ~ case, same, function(x) round(c(mean = mean(x), max = max(x)), 2)))
