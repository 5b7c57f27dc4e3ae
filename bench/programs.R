# Stan programs (bench/stan/NAME.stan) whose evidence is known otherwise: the `data` of each, and
# `exact`, a function that finds the evidence by quadrature, or by enumeration. `n_particles` is
# given where a gradient takes long.

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
programs <- list(
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
