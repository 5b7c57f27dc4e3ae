# The log densities of the programs in the folder `old` as R has them, with all constants: functions of the parameters
# `p` and of the data `d`, lists of numbers and arrays by name. And all programs as one, since each takes long to compile.

log_sum <- function(x) max(x) + log(sum(exp(x - max(x))))
log_half_t <- function(x, df, scale) sum(dt(x / scale, df, log = TRUE) - log(scale) + log(2))
log_t <- function(x, df, mean, scale) sum(dt((x - mean) / scale, df, log = TRUE) - log(scale))
log_dirichlet <- function(x, a) lgamma(sum(a)) - sum(lgamma(a)) + sum((a - 1) * log(x))
# of a correlation in two dimensions
log_lkj <- function(r, eta) (eta - 1) * log(1 - r^2) - (2 * eta - 1) * log(2) - lbeta(eta, eta)
log_normals <- function(x, mean, covariance) { # rows of x
  root <- chol(covariance)
  z <- backsolve(root, t(x) - mean, transpose = TRUE)
  -length(x) / 2 * log(2 * pi) - nrow(x) * sum(log(diag(root))) - sum(z^2) / 2
}

counts <- c(2, 0, 3, 1, 5, 0)
covariate <- c(-1.2, 0.3, 0.8, -0.4, 1.5, 0.1)
groups <- c(1, 2, 3, 1, 2, 3)

old_stan <- list(
  brms2_10 = list(
    data = list(
      N = 6, Y = counts, K = 2, X = cbind(1, covariate), N_1 = 3, M_1 = 1, J_1 = groups, Z_1_1 = rep(1, 6),
      prior_only = 0
    ),
    log_density = function(p, d) {
      eta <- p$Intercept + (d$X[, 2] - mean(d$X[, 2])) * p$b + p$sd_1 * p$z_1[1, d$J_1]
      log_t(p$Intercept, 3, 1, 10) + log_half_t(p$sd_1, 3, 10) + sum(dnorm(p$z_1, log = TRUE)) +
        sum(dpois(d$Y, exp(eta), log = TRUE))
    }
  ),
  brms2_12 = list(
    data = list(N = 6, Y = counts, K = 2, X = cbind(1, covariate), prior_only = 0),
    log_density = function(p, d) {
      density <- p$zi * (d$Y == 0) + (1 - p$zi) * dpois(d$Y, exp(d$X %*% p$b))
      sum(log(density)) + log_t(p$b, 3, 0, 2.5) + dbeta(p$zi, 1, 3, log = TRUE)
    }
  ),
  brms2_13 = list(
    data = list(
      N = 6, Y = covariate, Dgp_1 = 1, Kgp_1 = 1, Nsubgp_1 = 3, Jgp_1 = groups, Xgp_1 = matrix(c(0, 0.7, 1.5))
    ),
    log_density = function(p, d) {
      covariance <- p$sdgp_1^2 * exp(-outer(drop(d$Xgp_1), drop(d$Xgp_1), `-`)^2 / (2 * p$lscale_1[1, 1]^2))
      gp <- drop(t(chol(covariance + 1e-12 * diag(3))) %*% p$zgp_1)
      log_inverse_gamma <- 2.5 * log(0.4) - lgamma(2.5) - 3.5 * log(p$lscale_1[1, 1]) - 0.4 / p$lscale_1[1, 1]
      sum(dnorm(d$Y, p$Intercept + gp[d$Jgp_1], p$sigma, log = TRUE)) + sum(dnorm(p$zgp_1, log = TRUE)) +
        log_t(p$Intercept, 3, 0, 2.5) + log_half_t(c(p$sdgp_1, p$sigma), 3, 2.5) + log_inverse_gamma
    }
  ),
  brms2_14 = list(
    data = list(
      N = 6, Y = c(1, 3, 2, 1, 3, 2), nthres = 2, N_1 = 3, M_1 = 2, J_1 = groups, Z_1_1 = rep(1, 6), Z_1_2 = covariate
    ),
    log_density = function(p, d) {
      r <- p$sd_1 * (p$L_1 %*% p$z_1)
      mu <- r[1, d$J_1] + r[2, d$J_1] * d$Z_1_2
      upto <- cbind(0, plogis(p$Intercept[1] - mu), plogis(p$Intercept[2] - mu), 1)
      at <- seq_along(mu)
      sum(log(upto[cbind(at, d$Y + 1)] - upto[cbind(at, d$Y)])) + log_t(p$Intercept, 3, 0, 2.5) +
        log_half_t(p$sd_1, 3, 2.5) + sum(dnorm(p$z_1, log = TRUE)) + log_lkj(p$L_1[2, 1], 1)
    }
  ),
  brms2_15 = list(
    data = list(N = 6, Y = counts, K = 1, X = matrix(covariate), grainsize = 2),
    log_density = function(p, d) {
      sum(dpois(d$Y, exp(p$Intercept + d$X %*% p$b), log = TRUE)) + dnorm(p$b, log = TRUE) +
        log_t(p$Intercept, 3, 1.1, 2.5)
    }
  ),
  brms2_16 = list(
    data = list(N = 6, nresp = 2, Y = cbind(covariate, counts / 2), x = rev(covariate)),
    log_density = function(p, d) {
      root <- p$sigma * p$Lrescor
      residuals <- d$Y - outer(rep(1, 6), p$Intercept) - outer(d$x, p$b)
      log_normals(residuals, 0, tcrossprod(root)) + sum(dnorm(p$b, log = TRUE)) + log_t(p$Intercept, 3, 0, 2.5) +
        sum(dexp(p$sigma, log = TRUE)) + log_lkj(p$Lrescor[2, 1], 1.5)
    }
  ),
  brms2_17 = list(
    data = list(
      N = 6, Y = covariate, Imo = 1, Jmo = array(3, 1), Xmo_1 = c(0, 1, 2, 3, 1, 2), con_simo_1 = c(1, 2, 1.5)
    ),
    log_density = function(p, d) {
      mu <- p$Intercept + p$bsp * 3 * c(0, cumsum(p$simo_1))[d$Xmo_1 + 1]
      sum(dnorm(d$Y, mu, p$sigma, log = TRUE)) + dnorm(p$bsp, log = TRUE) + log_dirichlet(p$simo_1, d$con_simo_1) +
        log_t(p$Intercept, 3, 0, 2.5) + log_half_t(p$sigma, 3, 2.5)
    }
  ),
  brms2_18 = list(
    data = list(N = 4, Y = c(0.4, 1.3, 2.2, 0.9), cens = c(0, 1, 0, -1)),
    log_density = function(p, d) {
      scale <- exp(p$Intercept) / gamma(1 + 1 / p$shape)
      sum(
        dweibull(d$Y[c(1, 3)], p$shape, scale, log = TRUE),
        pweibull(d$Y[2], p$shape, scale, lower.tail = FALSE, log.p = TRUE),
        pweibull(d$Y[4], p$shape, scale, log.p = TRUE), log_t(p$Intercept, 3, 0.5, 2.5),
        dgamma(p$shape, 0.01, 0.01, log = TRUE)
      )
    }
  ),
  brms2_22 = list(
    data = list(N = 4, Y = c(0.4, 0, 2.2, 0), Nmi = 2, Jmi = c(2, 4), x = covariate[1:4]),
    log_density = function(p, d) {
      y <- replace(d$Y, d$Jmi, p$Ymi)
      sum(dnorm(y, d$x * p$b, p$sigma, log = TRUE)) + dnorm(p$b, log = TRUE) + dexp(p$sigma, 2, log = TRUE)
    }
  ),
  capture = list(
    data = list(T = 4, I = 3, y = rbind(c(0, 1, 0, 1), c(1, 0, 0, 0), c(0, 0, 0, 0))),
    # seen again at the fourth time, after none at the third; never again after the first
    log_density = function(p, d) {
      seen <- log(p$phi[2] * (1 - p$p[2]) * p$phi[3] * p$p[3])
      gone <- 1 - p$phi
      never <- gone[1] + p$phi[1] * (1 - p$p[1]) * (gone[2] + p$phi[2] * (1 - p$p[2]) * (gone[3] +
        p$phi[3] * (1 - p$p[3])))
      seen + log(never)
    }
  ),
  cholesky = list(
    data = list(K = 2, N = 3, y = rbind(c(0.3, -0.5), c(1.2, 0.4), c(-0.7, 0.9))),
    log_density = function(p, d) {
      r <- p$L[2, 1]
      log_lkj(r, 2) + log_lkj(r, 1) + sum(dcauchy(p$s, 0, 2.5, log = TRUE)) +
        log_normals(d$y, 0, tcrossprod(p$s * p$L))
    }
  ),
  coal = list(
    data = list(r_e = 0.5, r_l = 1, T = 6, D = counts),
    log_density = function(p, d) {
      of_change <- vapply(1:6, function(s) sum(dpois(d$D, ifelse(1:6 < s, p$e, p$l), log = TRUE)), 0)
      dexp(p$e, 0.5, log = TRUE) + dexp(p$l, 1, log = TRUE) + log_sum(of_change) - log(6)
    }
  ),
  garch = list(
    data = list(T = 4, y = c(0.2, -0.4, 1.1, 0.3), sigma1 = 0.7),
    log_density = function(p, d) {
      variance <- 0.7^2
      for (t in 2:4) variance[t] <- p$alpha0 + p$alpha1 * (d$y[t - 1] - p$mu)^2 + p$beta1 * variance[t - 1]
      sum(dnorm(d$y, p$mu, sqrt(variance), log = TRUE))
    }
  ),
  gp = list(
    data = list(N = 3, x = c(0, 0.7, 1.5), y = c(0.2, -0.4, 1.1)),
    log_density = function(p, d) {
      log_normals(t(d$y), 0, exp(-outer(d$x, d$x, `-`)^2 / (2 * p$rho^2)) + 0.1 * diag(3))
    }
  ),
  hmm = list(
    data = list(
      K = 2, V = 3, T = 5, w = c(1, 3, 2, 2, 1), z = c(1, 2, 2, 1, 1), alpha = c(1, 2), beta = c(1.5, 1, 2)
    ),
    log_density = function(p, d) {
      sum(
        apply(p$theta, 1, log_dirichlet, d$alpha), apply(p$phi, 1, log_dirichlet, d$beta),
        log(p$phi[cbind(d$z, d$w)]), log(p$theta[cbind(d$z[-5], d$z[-1])])
      )
    }
  ),
  ifelse = list(
    data = list(N = 4, y = c(0.5, -1, 2, 0.1), k = c(2, 3, 3, 1)),
    log_density = function(p, d) {
      sum(dnorm(d$y, c(2 * p$a, 0, p$a, 0), log = TRUE)) + dnorm(p$a, log = TRUE) + log(10) +
        pnorm(1, p$a, 2, log.p = TRUE)
    }
  ),
  irt = list(
    data = list(J = 2, K = 2, N = 4, jj = c(1, 1, 2, 2), kk = c(1, 2, 1, 2), y = c(1, 0, 0, 1)),
    log_density = function(p, d) {
      sum(dbinom(d$y, 1, plogis(p$gamma[d$kk] * (p$alpha[d$jj] - p$beta[d$kk])), log = TRUE))
    }
  ),
  mixture = list(
    data = list(N = 4, K = 2, y = c(-1, 0.3, 2, 2.4)),
    log_density = function(p, d) {
      sum(vapply(d$y, function(y) log_sum(log(p$theta) + dnorm(y, p$mu, p$sigma, log = TRUE)), 0))
    }
  ),
  multilevel = list(
    data = list(
      N = 4, K = 2, J = 2, jj = c(1, 2, 1, 2), x = cbind(1, c(0.3, -0.5, 1, 2)), y = c(0.7, 0.1, -1, 0.4)
    ),
    log_density = function(p, d) {
      sum(dcauchy(p$tau, 0, 2.5, log = TRUE)) + log_lkj(p$Omega[2, 1], 2) +
        log_normals(p$beta, 0, outer(p$tau, p$tau) * p$Omega) +
        sum(dnorm(d$y, rowSums(d$x * p$beta[d$jj, ]), p$sigma, log = TRUE))
    }
  ),
  ode = list(
    data = list(T = 2, t0 = 0, ts = c(0.5, 1), y0 = c(1, 0)),
    log_density = function(p, d) dnorm(p$theta, log = TRUE)
  ),
  ordinal = list(
    data = list(N = 4, K = 3, y = c(1, 3, 2, 2), x = c(-0.5, 0.8, 0.2, 0)),
    log_density = function(p, d) {
      eta <- d$x * p$b
      of_level <- cbind(pnorm(p$c[1] - eta), pnorm(p$c[2] - eta) - pnorm(p$c[1] - eta), pnorm(eta - p$c[2]))
      sum(log(of_level[cbind(1:4, d$y)]))
    }
  ),
  ownlog = list(
    data = list(),
    log_density = function(p, d) dnorm(p$y, p$m, log = TRUE) + dt(p$y, 3, log = TRUE) - p$m^2 / 2
  ),
  schools = list(
    data = list(J = 3, y = c(28, 8, -3), sigma = c(15, 10, 16)),
    log_density = function(p, d) {
      sum(dnorm(p$eta, log = TRUE)) + sum(dnorm(d$y, p$mu + p$tau * p$eta, d$sigma, log = TRUE))
    }
  ),
  survival = list(
    data = list(N = 3, M = 2, t = c(0.5, 1.7, 2.2), c = c(1, 3)),
    log_density = function(p, d) {
      sum(dweibull(d$t, p$a, p$s, log = TRUE)) + sum(pweibull(d$c, p$a, p$s, lower.tail = FALSE, log.p = TRUE)) +
        log(2) + dcauchy(p$a, 0, 2.5, log = TRUE) + if (p$a > 3) -1 else 2 * log(p$a)
    }
  ),
  zi = list(
    data = list(N = 6, y = counts),
    log_density = function(p, d) sum(log(p$p * (d$y == 0) + (1 - p$p) * dpois(d$y, p$l)))
  )
)

# Programs one after another in one: list(code, data). Names of their own begin with that of the program, and the model
# of the k-th counts if element k of the data `counts` is 1. fixed: whether the parameters are data, too, of which the
# compiler makes no derivatives, in a third of the time.
as_one_program <- function(texts, fixed = FALSE) {
  texts <- Map(rename_own, texts, names(texts))
  of_all <- function(block) paste(vapply(texts, block_of, "", block), collapse = "\n")
  models <- sprintf("if (counts[%d] == 1) {\n%s\n}", seq_along(texts), vapply(texts, block_of, "", "model"))
  of_all_in <- function(blocks) paste(vapply(blocks, of_all, ""), collapse = "\n")
  as_data <- if (fixed) c("parameters", "transformed parameters")
  code <- sprintf("%s {\n%s\n}\n", program_blocks, c(
    of_all("functions"), paste0("int counts[", length(texts), "];\n", of_all_in(c("data", as_data[1]))),
    of_all_in(c("transformed data", as_data[2])),
    if (fixed) c("real unused;", "") else vapply(program_blocks[4:5], of_all, ""), paste(models, collapse = "\n")
  ))
  data <- Map(function(name, program) {
    stats::setNames(program$data, sprintf("%s_%s", name, names(program$data)))
  }, names(texts), old_stan[names(texts)])
  list(
    code = paste(code, collapse = ""),
    data = c(list(counts = numeric(length(texts))), do.call(c, unname(data)))
  )
}

program_blocks <- c("functions", "data", "transformed data", "parameters", "transformed parameters", "model")

block_of <- function(text, name) {
  pattern <- paste0("(?<!transformed )\\b", name, " ?(\\{(?:[^{}]++|(?1))*+\\})")
  found <- regmatches(text, regexpr(pattern, text, perl = TRUE))
  if (length(found) == 0) "" else sub("\\}$", "", sub("^[^{]*\\{", "", found))
}

# All names but those of types, of words of the language, and of functions that are not defined here.
rename_own <- function(text, program) {
  words <- strsplit(
    "data transformed parameters model functions generated quantities int real vector row_vector matrix simplex ordered
     array lower upper corr_matrix cholesky_factor_corr for in if else return void target",
    "\\s+"
  )[[1]]
  defined <- gregexpr("(?:^|\n) *(?:real|int|void|vector|matrix)(?:\\[[ ,]*\\])? +\\K\\w+(?= ?\\()", text, perl = TRUE)
  own <- regmatches(text, defined)[[1]]
  own <- c(own, sub("_(log|lpdf|lpmf)$", "", own))
  names <- gregexpr("(?<![\\w.])[A-Za-z]\\w*( ?\\()?", text, perl = TRUE)
  regmatches(text, names) <- lapply(regmatches(text, names), function(found) {
    name <- sub(" ?\\($", "", found)
    is_call <- name != found
    kept <- name %in% words | is_call & !name %in% own | name == "T" & program == "survival"
    ifelse(kept, found, paste0(program, "_", found))
  })
  text
}
