# smc() by its defaults on 200 seeds each: how large its errors are, beside those that it
# claims, how often its 95 % interval holds the truth, and what it costs. The standard error
# of a share of 0.95 is 0.015. `Rscript bench/coverage.R [CASE...]` renews the rows that are named, or
# all, each as it is done.
source("bench/suite.R")

shapes <- suite_models("shapes")
built_in <- function(name) {
  list(
    name = name, class = "built in", judge = FALSE, d = NA, truth = truths[[name]],
    target = targets[[name]]
  )
}
cases <- list(
  gaussian = built_in("gaussian"),
  funnel = built_in("funnel"),
  sonar = built_in("sonar"),
  schools_non_centred = shapes[["schools_half-Cauchy_non_centred"]],
  schools_centred = shapes[["schools_half-Cauchy_centred"]],
  brownian = built_in("brownian")
)
row_of <- function(name) {
  fits <- replicate_seeds(1001:1200, function(seed) suite_fit("coverage", cases[[name]], seed))
  rms <- function(x) sqrt(mean(x^2))
  data.frame(
    target = name, truth = cases[[name]]$truth, fits = nrow(fits), mean_error = mean(fits$error),
    rms_error = rms(fits$error), rms_claimed = rms(fits$std_error),
    largest_error = max(abs(fits$error)), covered = mean(fits$covered),
    warned = mean(fits$warned), evaluations = mean(fits$n_target_evals)
  )
}

named <- commandArgs(TRUE)
for (name in if (length(named) > 0) named else names(cases)) {
  keep_rows(row_of(name), "coverage", list(target = names(cases)))
}
