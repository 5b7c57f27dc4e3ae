# How often the intervals of restrict() and savage_dickey() hold the truth: a conjugate regression with two coefficients
# and a standard deviation, of 8 islands, by seeds. An interval is two-sided with a level of 95 %, by Student's t with 7
# degrees of freedom, as errors are those of the spread of 8 islands. `Rscript bench/points.R [SEEDS]`.
source("bench/common.R")

args <- commandArgs(TRUE)
n_seeds <- if (length(args) > 0) as.integer(args[1]) else 100

set.seed(4)
n <- 25
X <- cbind(1, rnorm(n))
y <- drop(X %*% c(0.5, 0.4)) + rnorm(n)
# beta ~ N(0, 4 sigma^2), sigma^2 ~ IG(2, 2)
target <- target_function(
  function(p) {
    off <- outer(rep(1, nrow(p)), y) - p[, 1:2, drop = FALSE] %*% t(X)
    -(n + 7) * log(p[, 3]) - (rowSums(off^2) + rowSums(p[, 1:2, drop = FALSE]^2) / 4 + 4) / (2 * p[, 3]^2) -
      (n + 2) / 2 * log(2 * pi) - log(4) + 3 * log(2)
  },
  gradient = function(p) {
    b <- p[, 1:2, drop = FALSE]
    off <- outer(rep(1, nrow(p)), y) - b %*% t(X)
    cbind(
      (off %*% X - b / 4) / p[, 3]^2,
      (rowSums(off^2) + rowSums(b^2) / 4 + 4) / p[, 3]^3 - (n + 7) / p[, 3]
    )
  },
  vectorized = TRUE, names = c("b1", "b2", "sigma"), lower = c(sigma = 0)
)
V <- solve(crossprod(X) + diag(2) / 4)
m <- drop(V %*% crossprod(X, y))
shape <- 2 + n / 2
rate <- 2 + (sum(y^2) - sum(m * solve(V, m))) / 2
log_z <- -n / 2 * log(2 * pi) + log(det(V)) / 2 - log(4) + 2 * log(2) - shape * log(rate) + lgamma(shape)
scale <- sqrt(rate / shape * diag(V))
log_t <- function(x, k) dt((x - m[k]) / scale[k], 2 * shape, log = TRUE) - log(scale[k])
log_sigma <- function(s) log(2) + shape * log(rate) - lgamma(shape) - (2 * shape + 1) * log(s) - rate / s^2
log_both <- lgamma(shape + 1) - lgamma(shape) - log(2 * pi * rate) - log(det(V)) / 2 -
  (shape + 1) * log1p(sum(m * solve(V, m)) / (2 * rate))
log_above <- function(x, k) pt((x - m[k]) / scale[k], 2 * shape, lower.tail = FALSE, log.p = TRUE)
far <- m[2] + 5 * scale[2]

# The prior of b2 is a t distribution with 4 degrees of freedom and scale 2.
draws <- function() data.frame(b2 = 2 * rt(2000, 4))
cases <- list(
  half = list(log_above(0.2, 2) - log(0.5), function(fit, run) restrict(fit, b2 > 0.2, prior = 0.5)),
  half_by_smc = list(log_above(0.2, 2) - log(0.5), function(fit, run) restrict(run, b2 > 0.2, prior = 0.5)),
  tail = list(log_above(m[1] + 2.5 * scale[1], 1), function(fit, run) {
    restrict(fit, b1 > m[1] + 2.5 * scale[1], prior = 1)
  }),
  half_by_prior_draws = list(
    log_above(0.2, 2) - pt(0.1, 4, lower.tail = FALSE, log.p = TRUE),
    function(fit, run) restrict(fit, b2 > 0.2, prior = draws())
  ),
  coefficient = list(log_t(0, 2), function(fit, run) savage_dickey(fit, b2 = 0, prior_density = 1)),
  coefficient_by_smc = list(log_t(0, 2), function(fit, run) savage_dickey(run, b2 = 0, prior_density = 1)),
  both_coefficients = list(log_both, function(fit, run) savage_dickey(fit, b1 = 0, b2 = 0, prior_density = 1)),
  scale = list(log_sigma(1), function(fit, run) savage_dickey(fit, sigma = 1, prior_density = 1)),
  far = list(log_t(far, 2), function(fit, run) savage_dickey(fit, b2 = far, prior_density = 1))
)

of_seed <- function(seed) {
  set.seed(seed)
  fit <- suppressWarnings(smc(target, n_particles = 512, seed = seed))
  run <- smc_run(target, fit$schedule, n_particles = 512, islands = 8, reference = fit$reference, seed = seed + 1e6)
  do.call(rbind, Map(function(name, case) {
    found <- suppressWarnings(case[[2]](fit, run))
    data.frame(
      case = name, error = found$log_bf - case[[1]], std_error = found$log_bf_error,
      z_error = found$log_z - log_z - case[[1]], z_std_error = found$std_error,
      by_fit = identical(found$method, "fit")
    )
  }, names(cases), cases))
}
rows <- replicate_seeds(seq_len(n_seeds), of_seed)

covered <- function(error, std_error) {
  inside <- sum(abs(error) <= qt(0.975, 7) * std_error)
  c(inside / length(error), stats::binom.test(inside, length(error))$conf.int)
}
summaries <- lapply(split(rows, factor(rows$case, names(cases))), function(x) {
  log_bf <- covered(x$error, x$std_error)
  log_z <- covered(x$z_error, x$z_std_error)
  data.frame(
    case = x$case[1], seeds = nrow(x), by_fit = mean(x$by_fit),
    mean_error = mean(x$error), rms_error = sqrt(mean(x$error^2)), rms_claimed = sqrt(mean(x$std_error^2)),
    covered = log_bf[1], covered_low = log_bf[2], covered_high = log_bf[3],
    log_z_covered = log_z[1], log_z_low = log_z[2], log_z_high = log_z[3]
  )
})
table <- do.call(rbind, summaries)
keep(with_provenance(table), "points")
