# The evidence of conditional autoregression in brms (`conditional_autoregression` of brms_models.R) in another way:
# quadrature over the logarithm of the scale and the logit of the dependence, and for each of these pairs importance
# sampling of what the likelihood has, eta = Intercept + rcar and b, from a Student t at the mode. The intercept given
# eta is integrated exactly, its prior being a mixture of normal distributions.
#
#   Rscript bench/brms_car.R [SEED [DRAWS [STEP]]]     some minutes with 300 draws and a step of 0.375
suppressPackageStartupMessages(library(brms))
source(file.path("bench", "brms_models.R"))
settings <- c(seed = 2, draws = 300, step = 0.375)
given <- as.numeric(commandArgs(TRUE))
settings[seq_along(given)] <- given
set.seed(settings[["seed"]])
draws <- settings[["draws"]]
step <- settings[["step"]]

data <- standata(brm_of("conditional_autoregression", empty = TRUE))
y <- as.numeric(data$Y)
x <- data$X[, 2] - mean(data$X[, 2])
n <- data$Nloc
adjacent <- neighbours
degree <- diag(rowSums(adjacent))
eigenvalues <- as.numeric(data$eigenMcar)
predictor <- cbind(outer(as.integer(data$Jloc), seq_len(n), `==`), x)

# log of the integral of exp(-precision / 2 (I - centre)^2) t(I; 3, 0, 2.5), by the gamma mixture of its variance
log_lambda <- seq(-16, 4, by = 0.2)
log_weight <- dgamma(exp(log_lambda), 1.5, 1.5, log = TRUE) + log_lambda + log(0.2)
log_intercept <- function(centre, precision) {
  variance <- 1 / precision + 6.25 * exp(-log_lambda)
  terms <- outer(-centre^2 / 2, 1 / variance) + rep(log_weight - log(variance) / 2, each = length(centre))
  most <- apply(terms, 1, max)
  most + log(rowSums(exp(terms - most))) - log(precision) / 2
}

# The log density of eta and b (a row each) given sdcar and car, as brms has it, without a constant for car.
log_density <- function(z, sd, car) {
  precision <- (degree - car * adjacent) / sd^2
  total <- sum(precision)
  eta <- z[, seq_len(n), drop = FALSE]
  centre <- drop(eta %*% rowSums(precision)) / total
  linear <- z %*% t(predictor)
  drop(linear %*% y) - rowSums(exp(linear)) - sum(lgamma(y + 1)) + dnorm(z[, n + 1], log = TRUE) - n * log(sd) +
    sum(log1p(-car * eigenvalues)) / 2 - (rowSums((eta %*% precision) * eta) - total * centre^2) / 2 +
    log_intercept(centre, total)
}

# c(log integral, its standard error), from the mode next to `start`, which is returned too.
integrate_effects <- function(sd, car, start, df = 8) {
  minus <- function(z) -log_density(t(z), sd, car)
  mode <- optim(start, minus, method = "BFGS", control = list(maxit = 300, reltol = 1e-10))$par
  root <- chol(optimHess(mode, minus))
  d <- n + 1
  e <- matrix(rnorm(draws * d), draws) / sqrt(rchisq(draws, df) / df)
  z <- sweep(e %*% t(backsolve(root, diag(d))), 2, mode, `+`)
  log_proposal <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) + sum(log(diag(root))) -
    (df + d) / 2 * log1p(rowSums(e^2) / df)
  log_w <- log_density(z, sd, car) - log_proposal
  w <- exp(log_w - max(log_w))
  list(value = max(log_w) + log(mean(w)), error = sd(w) / mean(w) / sqrt(draws), mode = mode)
}

half_t <- function(x) log(2) + dt(x / 2.5, 3, log = TRUE) - log(2.5)
grid <- expand.grid(logit = seq(-9, 10.5, by = 2 * step), log_sd = seq(-7, 2, by = step))
grid[c("value", "error")] <- 0
mode <- rep(0, n + 1)
for (i in rev(seq_len(nrow(grid)))) {
  sd <- exp(grid$log_sd[i])
  found <- integrate_effects(sd, plogis(grid$logit[i]), mode)
  mode <- found$mode
  grid$value[i] <- found$value + half_t(sd) + log(sd) + dlogis(grid$logit[i], log = TRUE)
  grid$error[i] <- found$error
}
w <- exp(grid$value - max(grid$value))
cat(sprintf(
  "log Z = %.4f (%.4f); posterior probability of log(sdcar) < -4.5: %.4f; at the ends of the grid: %.1e, %.1e\n",
  max(grid$value) + log(sum(w) * 2 * step^2), sqrt(sum((w * grid$error)^2)) / sum(w),
  sum(w[grid$log_sd < -4.5]) / sum(w), sum(w[grid$log_sd %in% range(grid$log_sd)]) / sum(w),
  sum(w[grid$logit %in% range(grid$logit)]) / sum(w)
))
