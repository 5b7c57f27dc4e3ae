# The log evidences of some of the paper's problems without SMC: of two from posteriordb whose fits by the defaults
# all warn, of Brownian, and as a check of Sonar's. Given two or three parameters, all others can be integrated out:
#
#   brownian  given the two scales all else is normal
#   capture   the effects of the animals are independent given their mean and scale, so that
#             there is an integral over one variable for each number of captures; and the
#             share of animals that exist has an incomplete beta function for its integral
#   drivers   given the three scales all else is normal, but for the bounds of the level: the
#             evidence without bounds, times the probability that a draw of the level
#             without bounds keeps within them
#
# That probability is a mean over normal draws, in each of which the part along the mean level
# is integrated exactly. It is unbiased, and new at each point, so that its errors average out.
#
# Each is found in two ways: by products of Gauss and Legendre's rules, with fewer and with
# more nodes, and by importance sampling on an unconstrained scale from Student's t, fitted to
# draws of a first such sample. Sonar's, in 61 variables, is found in the second way alone, from a normal
# distribution around its mode. For capture this one keeps the third parameter, and finds the
# integrals over the effects by another rule. The densities here are first compared with those
# of the programs. results/paper_truths.csv has a row for each way, and one for drivers without
# bounds, which is no evidence of the program.
#
#   Rscript bench/paper_truths.R --posteriordb DIR [--only REGEX]
#
# Not here: `hmm`, whose posterior is improper. That of `drivers` is proper, though the level, the
# seasonal effects and the coefficients have flat priors: they are 386 variables, which the 564
# normal terms determine at all scales; and the integral over them is a bounded function of the
# scales, whose priors are proper. It could be unbounded only where scales go to zero. Where the
# largest one does not, it has a limit, since the terms of the other two are linearly
# independent; where all do, it goes to zero, since no values make all terms zero at once.
source("bench/paper_jobs.R")

log_mean_exp <- function(x) max(x) + log(mean(exp(x - max(x))))

# rules ---------------------------------------------------------------------------

# Gauss and Legendre's rule of n nodes from lower to upper: a data frame.
gauss_legendre <- function(n, lower, upper) {
  i <- seq_len(n - 1)
  jacobi <- matrix(0, n, n)
  jacobi[cbind(i, i + 1)] <- jacobi[cbind(i + 1, i)] <- i / sqrt(4 * i^2 - 1)
  e <- eigen(jacobi, symmetric = TRUE)
  width <- upper - lower
  data.frame(at = lower + width * (e$values + 1) / 2, log_weight = log(width * e$vectors[1, ]^2))
}

# Of f(x), a log density at the rows of a matrix, by a product of rules. n: the number of nodes
# of each variable; box: a matrix with its lower and upper ends in a column.
quadrature <- function(f, box, n) {
  rules <- Map(gauss_legendre, n, box[1, ], box[2, ])
  x <- as.matrix(expand.grid(lapply(rules, `[[`, "at")))
  log_weight <- rowSums(expand.grid(lapply(rules, `[[`, "log_weight")))
  data.frame(
    log_z = log_mean_exp(f(x) + log_weight) + log(nrow(x)), std_error = NA, n_points = nrow(x)
  )
}

# The same on an unconstrained scale, by a quarter of n draws from t with some degrees of freedom and this centre and
# covariance, as often as there are `fits`, each with those fitted to the last, and n draws in the end.
importance <- function(f, centre, n, cov = diag(length(centre)), df = 5, fits = 1) {
  draw <- function(fit, n) {
    d <- length(centre)
    root <- chol(fit$cov)
    z <- matrix(rnorm(n * d), n) / sqrt(rchisq(n, df) / df)
    log_t <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) - sum(log(diag(root))) -
      (df + d) / 2 * log1p(rowSums(z^2) / df)
    u <- z %*% root + rep(fit$center, each = n)
    list(u = u, log_w = f(u) - log_t)
  }
  fit <- list(center = centre, cov = cov)
  for (i in seq_len(fits)) {
    first <- draw(fit, n / 4)
    fit <- cov.wt(first$u, exp(first$log_w - log_mean_exp(first$log_w)) / (n / 4))
  }
  log_w <- draw(fit, n)$log_w
  w <- exp(log_w - max(log_w))
  data.frame(
    log_z = log_mean_exp(log_w), std_error = sd(w) / mean(w) / sqrt(n), n_points = (1 + fits / 4) * n
  )
}

# capture -------------------------------------------------------------------------

# Log probabilities of 0 to n captures: a row for each pair of a logit of the mean probability
# and a scale. The effects are on a grid that goes as far as 12 standard deviations.
log_captures <- function(n, logit, scale, spacing = 0.05) {
  effect <- seq(-12, 12, by = spacing)
  log_prior <- dnorm(effect, log = TRUE) + log(spacing)
  eta <- logit + outer(scale, effect)
  log_p <- plogis(eta, log.p = TRUE)
  log_q <- plogis(-eta, log.p = TRUE)
  one <- function(k) {
    log_terms <- lchoose(n, k) + k * log_p + (n - k) * log_q + rep(log_prior, each = nrow(eta))
    apply(log_terms, 1, log_mean_exp) + log(length(effect))
  }
  vapply(0:n, one, double(nrow(eta)))
}

capture_truth <- function(data) {
  counts <- tabulate(data$y + 1, data$T + 1) # of animals never met, met once, and so on
  n_met <- sum(counts[-1])
  of_the_met <- function(log_p) drop(log_p[, -1, drop = FALSE] %*% counts[-1])
  # columns: the logit of the mean probability, and the scale
  without_share <- function(x) {
    log_p <- log_captures(data$T, x[, 1], x[, 2])
    met <- -expm1(log_p[, 1]) # the probability that an animal is
    # the integral of share^n_met (1 - share met)^n_unmet
    log_share <- lbeta(n_met + 1, counts[1] + 1) - (n_met + 1) * log(met) +
      pbeta(met, n_met + 1, counts[1] + 1, log.p = TRUE)
    of_the_met(log_p) + log_share + dlogis(x[, 1], log = TRUE)
  }
  with_share <- function(u) {
    log_p <- log_captures(data$T, u[, 2], 5 * plogis(u[, 3]), spacing = 0.13)
    of_the_met(log_p) + n_met * plogis(u[, 1], log.p = TRUE) +
      counts[1] * log1p(plogis(u[, 1]) * expm1(log_p[, 1])) +
      rowSums(dlogis(u, log = TRUE)) + log(5)
  }
  # the joint density that is integrated, of vectors and a matrix with a column an animal
  joint <- function(share, p, scale, effect) {
    log_p <- sapply(seq_along(data$y), function(i) {
      dbinom(data$y[i], data$T, plogis(qlogis(p) + scale * effect[, i]), log = TRUE)
    })
    met <- rep(data$y > 0, each = length(p))
    rowSums(dnorm(effect, log = TRUE)) + rowSums(log(share * exp(log_p) + (1 - share) * !met)) +
      log(share * (1 - share)) + log(p * (1 - p)) + log(scale * (5 - scale) / 5)
  }
  list(
    f = without_share, box = cbind(c(-12, 4), c(0, 5)), n_nodes = list(c(60, 60), c(100, 100)),
    free = with_share, mode = c(0, -2, 0), n_draws = 40000,
    density = function(x) joint(x[, "omega"], x[, "mean_p"], x[, "sigma"], columns(x, "eps_raw"))
  )
}

columns <- function(x, name) x[, startsWith(colnames(x), paste0(name, "[")), drop = FALSE]

# drivers -------------------------------------------------------------------------

# What is normal given the scales, for each of them a matrix: a row has the coefficients of a term
# in the level, the seasonal effects, beta and lambda.
drivers_terms <- function(data) {
  n <- data$n
  none <- matrix(0, n, n)
  year <- outer(seq_len(n), seq_len(n), function(t, s) as.numeric(s <= t & s > t - 12))
  step <- diag(n) - outer(seq_len(n), seq_len(n), function(t, s) as.numeric(s == t - 1))
  list(
    cbind(none, year, 0, 0)[-(1:11), ],
    cbind(step, none, 0, 0)[-1, ],
    cbind(diag(n), diag(n), data$x, data$w)
  )
}

drivers_truth <- function(data, n_draws = 64) {
  terms <- drivers_terms(data)
  targets <- list(0, 0, data$y)
  products <- lapply(terms, crossprod)
  n_terms <- vapply(terms, nrow, 0)
  n <- data$n
  d <- ncol(terms[[1]])
  bounds <- mean(data$y) + c(-3, 3) * sd(data$y)
  mean_level <- rep(c(1 / n, 0), c(n, d - n))

  # Given scales: log evidence without bounds, mean and root of the precision.
  normal_given <- function(scales) {
    precision <- Reduce(`+`, Map(`/`, products, scales^2))
    root <- chol(precision)
    b <- crossprod(terms[[3]], data$y) / scales[3]^2
    mean <- drop(backsolve(root, backsolve(root, b, transpose = TRUE)))
    rest <- unlist(Map(function(A, y, s) sum((A %*% mean - y)^2) / s^2, terms, targets, scales))
    log_z <- -sum(n_terms * log(scales)) - (sum(n_terms) - d) / 2 * log(2 * pi) -
      sum(rest) / 2 - sum(log(diag(root)))
    list(log_z = log_z, mean = mean, root = root)
  }
  # The probability that the level keeps within its bounds: each draw is split into the part
  # along the covariances with the mean level, of which an interval is allowed, and the rest.
  log_inside <- function(normal) {
    draws <- backsolve(normal$root, matrix(rnorm(d * n_draws), d))
    covariances <- backsolve(normal$root, backsolve(normal$root, mean_level, transpose = TRUE))
    sd <- sqrt(sum(mean_level * covariances))
    along <- covariances / sd
    rest <- normal$mean + draws - outer(along, colSums(mean_level * draws) / sd)
    ends <- lapply(bounds, function(bound) (bound - rest[1:n, ]) / along[1:n])
    from <- apply(do.call(pmin, ends), 2, max)
    to <- apply(do.call(pmax, ends), 2, min)
    log(mean(pmax(pnorm(to) - pnorm(from), 0)))
  }
  without_bounds <- function(scales) {
    normal_given(scales)$log_z + sum(dt(scales, 4, log = TRUE))
  }
  within_bounds <- function(scales) {
    normal <- normal_given(scales)
    normal$log_z + log_inside(normal) + sum(dt(scales, 4, log = TRUE))
  }
  # columns: the first scale as a part of the second, that as a part of the third, whose log.
  # At a ten-thousandth f is at its limit; far below that it would be lost to rounding.
  of_ratios <- function(f) {
    function(x) {
      x[, 1:2] <- pmax(x[, 1:2], 1e-4)
      apply(x, 1, function(x) {
        scales <- exp(x[3]) * c(x[1] * x[2], x[2], 1)
        f(scales) + log(scales[2]) + 2 * log(scales[3])
      })
    }
  }
  # logits of the two parts, and the log
  of_logits <- function(u) {
    parts <- plogis(u[, 1:2])
    of_ratios(within_bounds)(cbind(parts, u[, 3])) + rowSums(dlogis(u[, 1:2], log = TRUE))
  }

  # the joint density as the product of what is integrated and the normal one of all else
  density <- function(x) {
    scales <- columns(x, "sigma")
    level <- columns(x, "mu")
    others <- cbind(level, columns(x, "seasonal"), x[, c("beta", "lambda")])
    jacobian <- log((level - bounds[1]) * (bounds[2] - level) / diff(bounds))
    vapply(seq_len(nrow(x)), function(i) {
      normal <- normal_given(scales[i, ])
      z <- normal$root %*% (others[i, ] - normal$mean)
      normal$log_z + sum(dnorm(z, log = TRUE)) + sum(log(diag(normal$root))) +
        sum(dt(scales[i, ], 4, log = TRUE)) + sum(log(diff(c(0, scales[i, ])))) + sum(jacobian[i, ])
    }, 0)
  }
  list(
    # outside this box is less than a millionth
    f = of_ratios(within_bounds), without_bounds = of_ratios(without_bounds),
    box = cbind(c(0, 1), c(0.03, 1), c(-3.4, -2.4)),
    n_nodes = list(c(10, 18, 16), c(14, 26, 24)),
    free = of_logits, mode = c(-1.2, -0.9, -2.8), n_draws = 6000, density = density
  )
}

# the package's own -----------------------------------------------------------------

# The observations are at the first ten and the last ten of thirty times.
brownian_y <- c(
  0.21592641, 0.118771404, -0.07945447, 0.037677474, -0.27885845, -0.1484156, -0.3250906, -0.22957903, -0.44110894,
  -0.09830782, -0.8786016, -0.83736074, -0.7384849, -0.8939254, -0.7774566, -0.70238715, -0.87771565, -0.51853573,
  -0.6948214, -0.6202789
)

brownian_truth <- function() {
  times <- c(1:10, 21:30)
  walk <- eigen(outer(times, times, pmin), symmetric = TRUE)
  y <- drop(crossprod(walk$vectors, brownian_y))
  rows_of <- function(y, x) matrix(y, nrow(x), length(y), byrow = TRUE)
  # columns: the logs of the scales of the steps and of the observations
  given_scales <- function(x) {
    variance <- outer(exp(2 * x[, 1]), walk$values) + exp(2 * x[, 2])
    rowSums(dnorm(rows_of(y, x), 0, sqrt(variance), log = TRUE)) + rowSums(dnorm(x, 0, 2, log = TRUE))
  }
  joint <- function(x) {
    scale <- log1p(exp(x[, 31:32]))
    level <- x[, 1:30]
    steps <- level - cbind(0, level[, -30])
    rowSums(dlnorm(scale, 0, 2, log = TRUE)) + rowSums(plogis(x[, 31:32], log.p = TRUE)) +
      rowSums(dnorm(steps, 0, scale[, 1], log = TRUE)) +
      rowSums(dnorm(rows_of(brownian_y, x) - level[, times], 0, scale[, 2], log = TRUE))
  }
  list(
    f = given_scales, box = cbind(c(-12, 4), c(-16, 4)), n_nodes = list(c(160, 160), c(320, 320)),
    free = given_scales, mode = c(-2, -2.5), n_draws = 40000, density = joint
  )
}

sonar_truth <- function() {
  target <- target_sonar()
  normal <- reference_laplace(target, numeric(target$dim))
  list(
    free = function(u) autosmc:::evaluate_target(target, u, gradient = FALSE)$log_density,
    mode = normal$mean, cov = tcrossprod(normal$chol), n_draws = 400000
  )
}

# one problem ---------------------------------------------------------------------

# The largest relative difference from the program's density.
difference <- function(target, density) {
  u <- matrix(rnorm(20 * target$dim, sd = 0.5), 20)
  program <- autosmc:::evaluate_target(target, u)$log_density
  x <- if (is.null(target$outputs)) u else target$outputs(u)
  max(abs(density(x) / program - 1))
}

by_way <- function(truth, way) {
  switch(way,
    "fewer nodes" = quadrature(truth$f, truth$box, truth$n_nodes[[1]]),
    "more nodes" = quadrature(truth$f, truth$box, truth$n_nodes[[2]]),
    "without bounds" = quadrature(truth$without_bounds, truth$box, truth$n_nodes[[2]]),
    "importance sampling" = importance(truth$free, truth$mode, truth$n_draws),
    "from its mode" = importance(truth$free, truth$mode, truth$n_draws, truth$cov, df = 30, fits = 2)
  )
}

ways <- c("fewer nodes", "more nodes", "importance sampling")
from_posteriordb <- function(problem, find) {
  list(
    find = function() find(posteriordb_data(options$posteriordb, posteriordb_names[[problem]])),
    target = function() posteriordb_target(options$posteriordb, posteriordb_names[[problem]])
  )
}
truths_of_problems <- list(
  brownian = list(find = brownian_truth, target = target_brownian, ways = ways),
  sonar = list(find = sonar_truth, ways = "from its mode"), # by the density of the target itself
  capture = c(from_posteriordb("capture", capture_truth), list(ways = ways)),
  drivers = c(from_posteriordb("drivers", drivers_truth), list(ways = c(ways, "without bounds")))
)
options <- paper_options(seeds = "1")
problems <- grep(options$only, names(truths_of_problems), value = TRUE)
for (problem in problems) {
  about <- truths_of_problems[[problem]]
  jobs <- expand.grid(
    problem = problem, way = about$ways, seed = options$seeds,
    stringsAsFactors = FALSE
  )
  if (nrow(jobs_to_do(jobs, "paper_truths")) == 0) next
  truth <- about$find()
  if (!is.null(about$target)) {
    set.seed(1)
    off <- difference(about$target(), truth$density)
    if (off > 1e-8) stop("The density is not that of the program: ", format(off))
  }
  run_jobs(jobs, "paper_truths", function(job) {
    set.seed(job$seed)
    cbind(job, by_way(truth, job$way), row.names = NULL)
  })
}
