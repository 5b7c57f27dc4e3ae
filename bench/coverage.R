# smc() by its defaults on 200 seeds each: how large its errors are, beside those that it
# claims, how often its 95 % interval holds the truth, and what it costs. The standard error
# of a share of 0.95 is 0.015. `Rscript bench/coverage.R [CASE...]` renews the rows that are named, or
# all, each as it is done.
source("bench/common.R")
source("bench/suite.R")

shapes <- suite_models("shapes")
of_suite <- function(name) list(target = shapes[[name]]$target, truth = shapes[[name]]$truth)
cases <- list(
  gaussian = list(target = targets$gaussian, truth = 0),
  funnel = list(target = targets$funnel, truth = 0),
  sonar = list(target = targets$sonar, truth = -108.357),
  schools_non_centred = of_suite("schools_half-Cauchy_non_centred"),
  schools_centred = of_suite("schools_half-Cauchy_centred"),
  brownian = list(target = targets$brownian, truth = 1.18775)
)
row_of <- function(name) {
  case <- cases[[name]]
  target <- case$target()
  out <- replicate_seeds(1001:1200, function(seed) {
    warned <- FALSE
    fit <- withCallingHandlers(smc(target, seed = seed), warning = function(w) {
      warned <<- TRUE
      tryInvokeRestart("muffleWarning")
    })
    c(
      error = fit$log_z - case$truth, claimed = fit$std_error,
      covered = fit$conf_low <= case$truth && case$truth <= fit$conf_high,
      evaluations = sum(fit$runs$n_target_evals), warned = warned
    )
  })
  data.frame(
    target = name, truth = case$truth, fits = nrow(out), mean_error = mean(out[, "error"]),
    rms_error = sqrt(mean(out[, "error"]^2)), rms_claimed = sqrt(mean(out[, "claimed"]^2)),
    largest_error = max(abs(out[, "error"])), covered = mean(out[, "covered"]),
    warned = mean(out[, "warned"]), evaluations = mean(out[, "evaluations"])
  )
}

keep_row <- function(new) {
  file <- "bench/results/coverage.csv"
  kept <- if (file.exists(file)) read.csv(file)
  table <- rbind(kept[kept$target != new$target, ], new)
  keep(table[order(match(table$target, names(cases))), ], "coverage")
}

named <- commandArgs(TRUE)
for (name in if (length(named) > 0) named else names(cases)) keep_row(row_of(name))
