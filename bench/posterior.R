# The draws of smc() by its defaults from Sonar's posterior, against a long run of
# Hamiltonian Monte Carlo written here, which shares no code with the package.
# `rhat` is the largest of the 61 coefficients' by posterior, `error` the largest
# difference of means in posterior standard deviations (`error_chains`: of the equally
# weighted chains), `z` the root mean square of these differences in units of `mcse`:
# with eight islands it should be about sqrt(7 / 5) = 1.2. `ess` is the median over
# coefficients of (sd / mcse)^2, and `kish` the effective sample size by the weights
# alone, for comparison.
source("bench/common.R")

# the reference ---------------------------------------------------------------

# Logistic regression with a N(0, I) prior. A row of `signed` is the predictors of
# a signal, with the sign of its class; a column of `x` is a chain.
signed <- with(sonar, {
  features <- as.matrix(sonar[names(sonar) != "Class"])
  unname(ifelse(Class == "R", 1, -1) * cbind(scale(features), 1))
})
log_density <- function(x) {
  margin <- signed %*% x
  colSums(plogis(margin, log.p = TRUE)) - colSums(x^2) / 2
}
gradient <- function(x) crossprod(signed, plogis(-signed %*% x)) - x

# Newton's method for the mode; `unit` has there the inverse Hessian as its square.
mode <- numeric(ncol(signed))
for (i in 1:20) {
  p <- as.vector(plogis(signed %*% mode))
  root <- chol(crossprod(signed * sqrt(p * (1 - p))) + diag(length(mode)))
  ascent <- backsolve(root, backsolve(root, gradient(mode), transpose = TRUE))
  mode <- mode + as.vector(ascent)
}
stopifnot(max(abs(gradient(mode))) < 1e-10)
unit <- backsolve(root, diag(length(mode)))

# Chains side by side: an array iterations x chains x variables. Step size and
# number of leapfrog steps are drawn anew for every trajectory.
hmc <- function(n_draws, n_chains, n_warmup = 500) {
  d <- length(mode)
  draws <- array(0, c(n_draws, n_chains, d))
  x <- mode + unit %*% matrix(2 * rnorm(d * n_chains), d)
  for (i in seq_len(n_warmup + n_draws)) {
    step <- runif(1, 0.25, 0.45)
    start <- v <- matrix(rnorm(d * n_chains), d)
    y <- x
    for (leap in seq_len(sample(3:6, 1))) {
      v <- v + step / 2 * crossprod(unit, gradient(y))
      y <- y + step * unit %*% v
      v <- v + step / 2 * crossprod(unit, gradient(y))
    }
    gain <- log_density(y) - log_density(x) + colSums(start^2 - v^2) / 2
    accepted <- log(runif(n_chains)) < gain
    x[, accepted] <- y[, accepted]
    if (i > n_warmup) draws[i - n_warmup, , ] <- t(x)
  }
  draws
}

set.seed(1)
reference <- hmc(25000, n_chains = 4)
rhat <- apply(reference, 3, posterior::rhat)
true_mean <- apply(reference, 3, mean)
true_sd <- apply(reference, 3, sd)
mcse <- apply(reference, 3, posterior::mcse_mean) / true_sd
cat(sprintf(
  "HMC: largest rhat %.4f, largest Monte Carlo error of a mean %.4f sd\n",
  max(rhat), max(mcse)
))
stopifnot(max(rhat) < 1.005, max(mcse) < 0.01)

# the draws of smc() ----------------------------------------------------------

compare <- function(seed) {
  fit <- suppressWarnings(smc(target_sonar(), seed = seed))
  chains <- posterior::as_draws_array(fit)
  v <- summary(fit)$variables
  c(
    seed = seed,
    rhat = max(apply(chains, 3, posterior::rhat)),
    error = max(abs(v$mean - true_mean) / true_sd),
    error_chains = max(abs(apply(chains, 3, mean) - true_mean) / true_sd),
    z = sqrt(mean(((v$mean - true_mean) / v$mcse)^2)),
    ess = median((v$sd / v$mcse)^2),
    kish = 1 / sum(exp(2 * fit$log_weights))
  )
}
table <- as.data.frame(replicate_seeds(1:32, compare))
cat(sprintf(
  "rhat below 1.02 in %d of %d fits, errors below 0.1 sd in %d\n",
  sum(table$rhat < 1.02), nrow(table), sum(table$error < 0.1)
))
keep(table, "posterior")
