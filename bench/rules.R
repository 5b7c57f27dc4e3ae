# What other values of the rules of R/rules.R change: each rule is halved and doubled, and models are fitted again.
#
#   Rscript bench/rules.R [OUT.csv] [RULE ...]
#
# Models are of the judging halves of the suites. All are fitted with one seed; a rule acts in those whose fit it changes,
# and of these the first four are fitted with eight seeds. A row a rule, value, model and seed; `rule` is "none" for the
# present values, and a rule that acts in no model has one row without a model. The default file is
# bench/results/rules.csv, of which bench/README.md has the summary. It takes an hour.

library(autosmc)
source(file.path("bench", "suite.R"))
Sys.setenv(OPENBLAS_NUM_THREADS = 1)

n_models <- 4
seeds <- 101:108
panel <- list(
  analyses = c(
    "cars_bounded", "iris_logistic", "sprays_poisson", "plants_non_centred", "sprays_centred", "swiss",
    "rivers_gamma_bounded", "sunspots_ar2"
  ),
  shapes = c(
    "banana_1_3_d2", "beta_binomial_d5", "bounded_half_normal_20_d2", "ar_0.99_d100", "edged_cube_1_d2", "funnel_d10",
    "t1_d5", "schools_half-Cauchy_centred", "intercepts_80_centred", "labels_3",
    "two_unequal_10", "wide_narrow_d2", "eight_on_circle_10", "skew_normal_5_d4"
  )
)
models <- do.call(c, unname(lapply(names(panel), function(suite) {
  lapply(suite_models(suite)[panel[[suite]]], c, list(suite = suite))
})))

values <- autosmc:::rules

# Twice a share or a probability may be above one: then half of what is missing to one is left.
others <- function(value) {
  if (is.integer(value)) {
    return(list(as.integer(max(value %/% 2L, 1L)), value * 2L))
  }
  is_share <- length(value) == 1 && value > 0.5 && value < 1
  list(value / 2, if (is_share) 1 - (1 - value) / 2 else value * 2)
}

with_rule <- function(name, value, code) {
  set <- function(rules) utils::assignInNamespace("rules", rules, "autosmc")
  on.exit(set(values))
  set(replace(values, name, list(value)))
  code
}

fitted <- function(name, value, model, seed) {
  fit <- with_rule(name, value, suite_fit(model$suite, model, seed))
  data.frame(
    rule = name, value = paste(format(value, digits = 3, trim = TRUE), collapse = " "),
    fit[c("model", "seed", "error", "std_error", "wrong", "warned", "n_target_evals", "seconds")]
  )
}

present <- new.env()
fitted_now <- function(model, seed) {
  key <- paste(model$name, seed)
  if (is.null(present[[key]])) {
    present[[key]] <- fitted("none", NA, model, seed)
    append_rows(present[[key]], file)
  }
  present[[key]]
}

# The fits of one rule with another value: in all models with one seed, in those where it acts with all.
vary <- function(name, value) {
  first <- lapply(models, function(model) fitted(name, value, model, seeds[1]))
  acts <- mapply(function(fit, model) {
    now <- fitted_now(model, seeds[1])
    !identical(c(fit$error, fit$n_target_evals), c(now$error, now$n_target_evals))
  }, first, models)
  chosen <- utils::head(which(acts), n_models)
  if (length(chosen) == 0) {
    return(append_rows(transform(first[[1]], model = NA, seed = NA, error = NA, std_error = NA), file))
  }
  for (i in chosen) {
    append_rows(first[[i]], file)
    for (seed in seeds[-1]) {
      fitted_now(models[[i]], seed)
      append_rows(fitted(name, value, models[[i]], seed), file)
    }
  }
}

arguments <- commandArgs(TRUE)
file <- if (length(arguments) > 0) arguments[1] else "bench/results/rules.csv"
wanted <- if (length(arguments) > 1) arguments[-1] else names(values)
unlink(file)
for (name in wanted) {
  for (value in others(values[[name]])) vary(name, value)
}
