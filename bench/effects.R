# Random intercepts of 2,000 groups of 5 binary responses: the evidence by smc(), which integrates the effects out, and
# by Laplace's approximation, beside the truth by quadrature of the groups' integrals and of the two parameters.
#
#   Rscript bench/effects.R [OUT.csv]
#
# A row a standard deviation of the intercepts; seconds are of the processor, with one thread.
library(autosmc)
options(autosmc.threads = 1)
Sys.setenv(OPENBLAS_NUM_THREADS = 1)
n_groups <- 2000
n_each <- 5
group <- rep(seq_len(n_groups), each = n_each)

simulated <- function(sd) {
  set.seed(1)
  rbinom(n_groups * n_each, 1, plogis(0.3 + rnorm(n_groups, 0, sd)[group]))
}

target_of <- function(y) {
  target_rtmb(
    function(p, data) {
      sum(dnorm(p$u, 0, p$sd, log = TRUE)) + sum(dbinom_robust(data$y, 1, p$b + p$u[group], log = TRUE)) +
        dnorm(p$b, 0, 2, log = TRUE) + dexp(p$sd, log = TRUE)
    },
    list(b = 0, sd = 1, u = numeric(n_groups)),
    lower = c(sd = 0), data = list(y = y), random = "u"
  )
}

# Of a group with so many successes, times the prior of its intercept.
log_integral <- function(successes, b, sd) {
  log_joint <- function(u) {
    dnorm(u, 0, sd, log = TRUE) + successes * plogis(b + u, log.p = TRUE) +
      (n_each - successes) * plogis(-b - u, log.p = TRUE)
  }
  peak <- optimize(log_joint, c(-9, 9) * sd, maximum = TRUE)
  part <- function(from, to) integrate(function(u) exp(log_joint(u) - peak$objective), from, to, rel.tol = 1e-10)$value
  peak$objective + log(part(-Inf, peak$maximum) + part(peak$maximum, Inf))
}

# By Gauss-Hermite quadrature around the mode of (b, log sd).
true_log_z <- function(y, n_nodes = 11) {
  groups <- tabulate(tapply(y, group, sum) + 1, n_each + 1)
  log_density <- function(x) {
    sd <- exp(x[2])
    sum(groups * vapply(0:n_each, log_integral, 0, x[1], sd)) + dnorm(x[1], 0, 2, log = TRUE) +
      dexp(sd, log = TRUE) + x[2]
  }
  mode <- optim(c(0, 0), function(x) -log_density(x), hessian = TRUE)
  L <- t(chol(solve(mode$hessian)))
  i <- seq_len(n_nodes - 1)
  jacobi <- matrix(0, n_nodes, n_nodes)
  jacobi[cbind(i, i + 1)] <- jacobi[cbind(i + 1, i)] <- sqrt(i)
  rule <- eigen(jacobi, TRUE)
  weights <- outer(rule$vectors[1, ]^2, rule$vectors[1, ]^2)
  value <- apply(expand.grid(rule$values, rule$values), 1, function(z) log_density(mode$par + L %*% z) + sum(z^2) / 2)
  max(value) + log(sum(weights * exp(value - max(value)))) + log(2 * pi) + log(det(L))
}

row_of_sd <- function(sd) {
  y <- simulated(sd)
  target <- suppressMessages(target_of(y))
  time <- system.time(fit <- suppressWarnings(smc(target, max_evals = 2500, seed = 1)))
  data.frame(
    sd = sd, truth = true_log_z(y), log_z = fit$log_z, std_error = fit$std_error,
    laplace = fit$laplace$log_z, laplace_error = fit$laplace$std_error,
    n_target_evals = sum(fit$runs$n_target_evals), seconds = sum(time[1:2])
  )
}

out <- c(commandArgs(TRUE), "bench/results/effects.csv")[1]
table <- do.call(rbind, lapply(c(0.5, 1, 2), row_of_sd))
utils::write.csv(format(table, digits = 8), out, row.names = FALSE, quote = FALSE)
print(table)
