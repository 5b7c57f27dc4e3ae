# How often the 95 % interval of smc() by its defaults holds the truth: 200 seeds
# each. The standard error of a share of 0.95 is 0.015.
source("bench/common.R")

cases <- list(
  gaussian = list(target = target_gaussian(10, mean = 3), truth = 0),
  brownian = list(target = target_brownian(), truth = 1.18775),
  sonar = list(target = target_sonar(), truth = -108.357),
  funnel = list(target = target_funnel(), truth = 0)
)
rows <- lapply(names(cases), function(name) {
  case <- cases[[name]]
  out <- replicate_seeds(1001:1200, function(seed) {
    fit <- suppressWarnings(smc(case$target, seed = seed))
    c(
      log_z = fit$log_z,
      covered = fit$conf_low <= case$truth && case$truth <= fit$conf_high,
      error = fit$std_error
    )
  })
  cbind(
    target = name,
    truth = case$truth,
    spread(out[, "log_z"]),
    error = median(out[, "error"]),
    covered = mean(out[, "covered"])
  )
})
keep(do.call(rbind, rows), "coverage")
