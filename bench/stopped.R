# Fits that stop at a precision, 50 seeds each: how large their errors are beside those that they claim and those that
# were asked for, how often the 95 % interval holds the truth, and what they cost. `Rscript bench/stopped.R [MODEL...]`
# renews the rows that are named, or all, each as it is done.
source("bench/suite.R")

chosen <- list(
  analyses = c("women", "cars_bounded", "lynx_ar2", "tooth_growth", "discoveries", "iris_logistic"),
  shapes = c(
    "regression_sigma_d4", "banana_1_3_d2", "log_gamma_2_d5", "bounded_half_normal_20_d2",
    "schools_half-Cauchy_centred", "funnel_d10"
  )
)
models <- unlist(unname(Map(function(suite, names) suite_models(suite)[names], names(chosen), chosen)), recursive = FALSE)
stopifnot(lengths(models) > 0)

row_of <- function(model, precision) {
  fits <- replicate_seeds(5001:5050, function(seed) {
    fit <- suppressWarnings(suppressMessages(smc(model$target(), precision = precision, seed = seed)))
    error <- fit$log_z - model$truth
    data.frame(
      error, claimed = fit$std_error, islands = nrow(fit$islands), n_particles = fit$n_particles,
      covered = fit$conf_low <= model$truth && model$truth <= fit$conf_high, evaluations = sum(fit$runs$n_target_evals)
    )
  })
  rms <- function(x) sqrt(mean(x^2))
  data.frame(
    model = model$name, precision, fits = nrow(fits), rms_error = rms(fits$error), rms_claimed = rms(fits$claimed),
    reached = mean(fits$claimed <= precision), covered = mean(fits$covered), islands = mean(fits$islands),
    most_particles = max(fits$n_particles), evaluations = stats::median(fits$evaluations)
  )
}

precisions <- c(0.01, 0.001)
named <- commandArgs(TRUE)
for (name in if (length(named) > 0) named else names(models)) {
  for (precision in precisions) {
    keep_rows(row_of(models[[name]], precision), "stopped", list(model = names(models), precision = precisions))
  }
}
