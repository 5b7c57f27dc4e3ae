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
source("bench/programs.R")
Sys.setenv(R_USER_CACHE_DIR = tempfile()) # everything is compiled anew

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
  case <- modifyList(list(n_particles = 1024), programs[[name]])
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
named <- commandArgs(TRUE)
if (length(named) == 0) named <- names(programs)
for (name in named) keep_rows(row_of(name), "stan", list(program = names(programs)))

# the program of the sonar data against the built-in target
if ("sonar" %in% named) {
  case <- programs$sonar
  x <- matrix(rnorm(100 * 61, sd = 0.1), 100)
  in_stan <- autosmc:::evaluate_target(target_stan("bench/stan/sonar.stan", case$data), x)
  built_in <- autosmc:::evaluate_target(target_sonar(), x)
  cat(
    "largest differences from target_sonar(), relative: log density",
    max(abs(in_stan$log_density / built_in$log_density - 1)), "gradient",
    max(abs(in_stan$gradient - built_in$gradient)) / max(abs(built_in$gradient)), "\n"
  )
  cat("microseconds a gradient of target_sonar():", gradient_us(target_sonar()), "\n")
}
