# Random effects of binary responses, by default: the evidence by smc(), which integrates the effects out, and by
# Laplace's approximation, beside the truth. Intercepts of 2,000 groups of 5, with three standard deviations: by
# quadrature of the groups' integrals and of the two parameters. Intercepts and slopes of 500 groups of 6: by quadrature in two
# dimensions around the mode of each group, and by importance sampling over the four parameters, with its error.
# And Poisson counts of 2,000 days about an autoregression, by the filter of a hidden Markov model on a grid, and by
# importance sampling over the three parameters; and of the cells of a lattice, about a random field. These two ask for
# a precision of 0.1. And normal responses about a spatial field, by sdmTMB, which must be installed for this row.
#
#   Rscript bench/effects.R [OUT.csv] [ROW]
#
# A row a model; seconds are of the processor, with one thread. ROW is the number of the one that is to be renewed.
library(autosmc)
options(autosmc.threads = 1)
Sys.setenv(OPENBLAS_NUM_THREADS = 1)
n_groups <- 2000
n_each <- 5
group <- rep(seq_len(n_groups), each = n_each)

# intercepts ----------------------------------------------------------------------

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

# The nodes of Gauss-Hermite quadrature for N(0, 1), and the weights.
normal_rule <- function(n) {
  i <- seq_len(n - 1)
  jacobi <- matrix(0, n, n)
  jacobi[cbind(i, i + 1)] <- jacobi[cbind(i + 1, i)] <- sqrt(i)
  rule <- eigen(jacobi, TRUE)
  list(nodes = rule$values, weights = rule$vectors[1, ]^2)
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
  rule <- normal_rule(n_nodes)
  weights <- outer(rule$weights, rule$weights)
  value <- apply(expand.grid(rule$nodes, rule$nodes), 1, function(z) log_density(mode$par + L %*% z) + sum(z^2) / 2)
  max(value) + log(sum(weights * exp(value - max(value)))) + log(2 * pi) + log(det(L))
}


# intercepts and slopes -------------------------------------------------------------

slopes <- local({
  set.seed(1)
  n <- 500
  group <- rep(seq_len(n), each = 6)
  x <- rep(seq(-1, 1, length.out = 6), n)
  eta <- 0.3 + rnorm(n)[group] + (0.5 + rnorm(n)[group]) * x
  list(n = n, group = group, x = x, y = rbinom(6 * n, 1, plogis(eta)))
})

target_of_slopes <- function() {
  target_rtmb(
    function(p, data) {
      eta <- p$b[1] + p$u[data$group] + (p$b[2] + p$v[data$group]) * data$x
      sum(dnorm(p$u, 0, p$sd[1], log = TRUE)) + sum(dnorm(p$v, 0, p$sd[2], log = TRUE)) +
        sum(dbinom_robust(data$y, 1, eta, log = TRUE)) + sum(dnorm(p$b, 0, 2, log = TRUE)) + sum(dexp(p$sd, log = TRUE))
    },
    list(b = c(0, 0), sd = c(1, 1), u = numeric(slopes$n), v = numeric(slopes$n)),
    lower = list(sd = 0), data = slopes, random = c("u", "v")
  )
}

# The log likelihood, by n_nodes^2 nodes around the mode of each group's standardised effects.
log_likelihood_of_slopes <- function(b, sd, n_nodes = 9) {
  sums <- function(values) rowsum(values, slopes$group, reorder = FALSE)
  by_group <- function(z) b[1] + sd[1] * z[slopes$group, 1] + (b[2] + sd[2] * z[slopes$group, 2]) * slopes$x
  design <- cbind(rep(sd[1], length(slopes$x)), sd[2] * slopes$x)
  z <- matrix(0, slopes$n, 2)
  curvature <- function(z) {
    p <- plogis(by_group(z))
    h <- sums(p * (1 - p) * cbind(design[, 1]^2, design[, 1] * design[, 2], design[, 2]^2))
    list(gradient = sums((slopes$y - p) * design) - z, a = 1 + h[, 1], b = h[, 2], c = 1 + h[, 3])
  }
  for (step in 1:12) {
    at <- curvature(z)
    step <- cbind(at$c * at$gradient[, 1] - at$b * at$gradient[, 2], at$a * at$gradient[, 2] - at$b * at$gradient[, 1])
    z <- z + step / (at$a * at$c - at$b^2)
  }
  at <- curvature(z)
  det <- at$a * at$c - at$b^2
  # the inverse of the Cholesky factor of the precision, transposed
  l11 <- sqrt(at$a)
  l21 <- at$b / l11
  l22 <- sqrt(at$c - l21^2)
  rule <- normal_rule(n_nodes)
  terms <- vapply(seq_len(n_nodes^2), function(k) {
    e <- rule$nodes[c((k - 1) %/% n_nodes, (k - 1) %% n_nodes) + 1]
    w <- rule$weights[c((k - 1) %/% n_nodes, (k - 1) %% n_nodes) + 1]
    point <- z + cbind(e[1] / l11 - l21 * e[2] / l11 / l22, e[2] / l22)
    log_likelihood <- drop(sums(plogis((2 * slopes$y - 1) * by_group(point), log.p = TRUE)))
    log_likelihood - rowSums(point^2) / 2 + sum(e^2) / 2 + sum(log(w))
  }, numeric(slopes$n))
  most <- apply(terms, 1, max)
  sum(most + log(rowSums(exp(terms - most)))) - sum(log(det)) / 2
}

# By importance sampling around the mode: log Z and its standard error.
by_importance <- function(log_density, start, n) {
  mode <- optim(start, function(x) -log_density(x), method = "BFGS", hessian = TRUE)
  L <- t(chol(solve(mode$hessian)))
  set.seed(2)
  d <- length(start)
  df <- 10
  z <- matrix(rnorm(d * n), d) * rep(sqrt(df / rchisq(n, df)), each = d)
  log_t <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) - (df + d) / 2 * log1p(colSums(z^2) / df)
  value <- apply(z, 2, function(z) log_density(mode$par + drop(L %*% z))) - log_t + log(det(L))
  ratio <- exp(value - max(value))
  c(max(value) + log(mean(ratio)), sd(ratio) / mean(ratio) / sqrt(n))
}

true_log_z_of_slopes <- function() {
  log_density <- function(x) {
    sd <- exp(x[3:4])
    log_prior <- sum(dnorm(x[1:2], 0, 2, log = TRUE)) + sum(dexp(sd, log = TRUE)) + sum(x[3:4])
    log_likelihood_of_slopes(x[1:2], sd) + log_prior
  }
  by_importance(log_density, c(0.3, 0.5, 0, 0), 2000)
}

# days ----------------------------------------------------------------------------

days <- local({
  set.seed(1)
  n <- 2000
  list(n = n, y = rpois(n, exp(0.5 + as.numeric(arima.sim(list(ar = 0.9), n, sd = 0.4)))))
})

target_of_days <- function() {
  target_rtmb(
    function(p, data) {
      x <- p$u - p$b
      n <- length(x)
      sum(dnorm(x[-1], p$phi * x[-n], p$sd, log = TRUE)) + dnorm(x[1], 0, p$sd / sqrt(1 - p$phi^2), log = TRUE) +
        sum(dpois(data$y, exp(p$u), log = TRUE)) + dnorm(p$b, 0, 2, log = TRUE) + dexp(p$sd, log = TRUE)
    },
    list(b = 0.5, phi = 0.9, sd = 0.4, u = numeric(days$n)),
    lower = list(phi = 0, sd = 0), upper = list(phi = 1), data = days, random = "u"
  )
}

# b, the logit of phi, and log sd.
true_log_z_of_days <- function() {
  log_density <- function(x) {
    phi <- plogis(x[2])
    sd <- exp(x[3])
    wide <- sd / sqrt(1 - phi^2)
    u <- seq(-6, 6, length.out = 201) * wide
    h <- u[2] - u[1]
    moves <- h * dnorm(outer(u, phi * u, "-"), 0, sd)
    likelihood <- outer(0:max(days$y), u, function(y, u) dpois(y, exp(x[1] + u)))
    share <- h * dnorm(u, 0, wide)
    log_z <- 0
    for (t in seq_len(days$n)) {
      if (t > 1) share <- drop(moves %*% share)
      share <- share * likelihood[days$y[t] + 1, ]
      log_z <- log_z + log(sum(share))
      share <- share / sum(share)
    }
    log_z + dnorm(x[1], 0, 2, log = TRUE) + dexp(sd, log = TRUE) + x[3] + log(phi) + log1p(-phi)
  }
  by_importance(log_density, c(0.5, qlogis(0.9), log(0.4)), 500)
}

# cells ---------------------------------------------------------------------------

# A random field on a lattice of 30 x 30 cells, whose precision is that of a stochastic differential equation (Lindgren,
# Rue and Lindstrom, 2011), and counts about it.
cells <- local({
  set.seed(1)
  side <- 30
  line <- Matrix::bandSparse(side, side, 0:1, list(c(1, rep(2, side - 2), 1), rep(-1, side)), symmetric = TRUE)
  one <- Matrix::Diagonal(side)
  G <- Matrix::kronecker(line, one) + Matrix::kronecker(one, line)
  general <- function(Q) as(as(Q, "generalMatrix"), "CsparseMatrix")
  list(side = side, one = general(Matrix::Diagonal(side^2)), G = general(G), G2 = general(Matrix::crossprod(G)))
})
# log_range: of the distance beyond which cells hardly depend on each other; log_sd: of the field's sd.
precision_of_cells <- function(log_range, log_sd) {
  kappa2 <- 8 * exp(-2 * log_range)
  (kappa2^2 * cells$one + 2 * kappa2 * cells$G + cells$G2) * (exp(-2 * log_sd) / (4 * pi * kappa2))
}
cells$y <- local({
  set.seed(1)
  factor <- Matrix::Cholesky(Matrix::forceSymmetric(precision_of_cells(log(cells$side / 4), 0)), LDL = FALSE)
  u <- Matrix::solve(factor, Matrix::solve(factor, rnorm(cells$side^2), system = "Lt"), system = "Pt")
  rpois(cells$side^2, exp(0.5 + as.numeric(u)))
})

target_of_cells <- function() {
  target_rtmb(
    function(p, data) {
      dgmrf(p$u, 0, precision_of_cells(p$log_range, p$log_sd), log = TRUE) +
        sum(dpois(data$y, exp(p$b + p$u), log = TRUE)) + dnorm(p$b, 0, 2, log = TRUE) +
        dnorm(p$log_range, log(data$side / 4), 0.5, log = TRUE) + dnorm(p$log_sd, 0, 0.5, log = TRUE)
    },
    list(b = 0.5, log_range = log(cells$side / 4), log_sd = 0, u = numeric(cells$side^2)),
    data = cells, random = "u"
  )
}

# field -----------------------------------------------------------------------------

# A spatial field of sdmTMB about 100 normal responses, which are jointly normal given the four parameters.
field <- function() {
  set.seed(1)
  n <- 100
  data <- data.frame(X = runif(n), Y = runif(n))
  data$y <- 1 + drop(rnorm(n) %*% chol(exp(-as.matrix(dist(data)) / 0.3))) + 0.4 * rnorm(n)
  mesh <- sdmTMB::make_mesh(data, c("X", "Y"), cutoff = 0.12)
  fit <- sdmTMB::sdmTMB(y ~ 1, data, mesh)
  log_prior <- function(p) sum(dnorm(unlist(p), c(0, -2, 1.5, -1), c(3, 1, 0.7, 0.5), log = TRUE))
  list(
    n = ncol(mesh$A_st), target = as_target(fit, log_prior = log_prior), A = as.matrix(mesh$A_st), y = data$y,
    precision = lapply(fit$tmb_data$spde[c("M0", "M1", "M2")], as.matrix)
  )
}

# By a grid over three of the parameters: the intercept, N(0, 3^2), is one more normal effect.
true_log_z_of_field <- function(field, n_grid = 33) {
  n <- length(field$y)
  log_density <- function(x) {
    k2 <- exp(2 * x[2])
    precision <- exp(2 * x[1]) * (k2^2 * field$precision$M0 + 2 * k2 * field$precision$M1 + field$precision$M2)
    root <- chol(field$A %*% solve(precision, t(field$A)) + exp(2 * x[3]) * diag(n) + 9)
    -n / 2 * log(2 * pi) - sum(log(diag(root))) - sum(backsolve(root, field$y, transpose = TRUE)^2) / 2 +
      sum(dnorm(x, c(-2, 1.5, -1), c(1, 0.7, 0.5), log = TRUE))
  }
  grid <- lapply(list(c(-7, 2), c(-2, 5), c(-2, 0.5)), function(range) seq(range[1], range[2], length.out = n_grid))
  value <- apply(expand.grid(grid), 1, log_density)
  max(value) + log(sum(exp(value - max(value)))) + sum(log(vapply(grid, function(x) x[2] - x[1], 0)))
}

row_of_field <- function() {
  field <- field()
  row_of("field", field$n, field$target, c(true_log_z_of_field(field), 0))
}

# the table -----------------------------------------------------------------------

row_of <- function(model, effects, target, truth, ...) {
  time <- system.time(fit <- smc(suppressMessages(target), ..., seed = 1))
  data.frame(
    model = model, effects = effects, truth = truth[1], truth_error = truth[2], log_z = fit$log_z,
    std_error = fit$std_error, laplace = fit$laplace$log_z, laplace_error = fit$laplace$std_error,
    n_target_evals = sum(fit$runs$n_target_evals), n_joint_gradients = sum(fit$runs$n_joint_gradients, na.rm = TRUE),
    seconds = sum(time[1:2])
  )
}

row_of_sd <- function(sd) {
  y <- simulated(sd)
  row_of(paste("intercepts, sd", sd), n_groups, target_of(y), c(true_log_z(y), 0))
}

rows <- list(
  function() row_of_sd(0.5), function() row_of_sd(1), function() row_of_sd(2),
  function() row_of("intercepts and slopes", 2 * slopes$n, target_of_slopes(), true_log_z_of_slopes()),
  function() row_of("days", days$n, target_of_days(), true_log_z_of_days(), precision = 0.1),
  function() row_of("cells", cells$side^2, target_of_cells(), c(NA, NA), precision = 0.1),
  row_of_field
)
arguments <- commandArgs(TRUE)
out <- c(arguments, "bench/results/effects.csv")[1]
chosen <- if (length(arguments) > 1) as.integer(arguments[2]) else seq_along(rows)
table <- do.call(rbind, lapply(rows[chosen], function(row) row()))
if (length(chosen) < length(rows) && file.exists(out)) {
  kept <- utils::read.csv(out)
  table <- rbind(kept[!kept$model %in% table$model, ], table)
}
table[-1] <- signif(table[-1], 8)
utils::write.csv(table, out, row.names = FALSE)
print(table)
