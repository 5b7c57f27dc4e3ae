# What the results owe to the single rules of R/rules.R: each of those that no derivation
# fixes is made smaller and larger, about by half and by two, and models in which it has a say
# are fitted again, with the same seeds:
#
#   Rscript bench/rules.R [OUT.csv] [RULE ...]
#
# A row a rule, value and model; `rule` is "none" for the present values. The default file is
# bench/results/rules.csv, of which bench/README.md has the summary.

library(autosmc)
source(file.path("bench", "suite.R"))
Sys.setenv(OPENBLAS_NUM_THREADS = 1)

models <- suite_models("shapes")
of_scout <- c("two_unequal_10", "wide_narrow_d2", "labels_2", "regression_raw_d4")
of_passes <- c("funnel_d10", "schools_half-Cauchy_centred", "banana_1_3_d2", "t2_d5")
of_conditionals <- c("banana_1_3_d2", "log_gamma_2_d5", "ring_5_0.3_d2", "funnel_d10")
of_tails <- c("log_gamma_2_d5", "product_t3_d5", "t2_d5")

values <- autosmc:::rules
vary <- function(name, models, other = values[[name]] * c(0.5, 2)) {
  list(name = name, models = models, values = as.list(other))
}
varied <- list(
  vary("n_batches", of_scout, c(2, 10)),
  vary("least_gain", of_scout),
  vary("n_refined", of_scout, c(1, 6)),
  vary("covering_part", c(of_scout[1:3], "eight_on_circle_10"), c(0.25, 0.75)),
  vary("outside", of_scout, list(c(1.2, 7), c(3, 30))),
  vary("n_outside_paths", of_scout, c(2, 8)),
  vary("n_starts", c(of_scout, "eight_on_circle_10"), c(4, 16)),
  vary("race_particles", c(of_scout, "funnel_d10"), c(128, 512)),
  vary("race_ess", c(of_scout, of_passes), c(0.6, 0.9)),
  vary("equal_barrier", of_passes, c(1.02, 1.1)),
  vary("fall", of_passes),
  vary("margin", of_passes),
  vary("least_rise", of_passes),
  vary("chance_sds", of_conditionals),
  vary("least_rows", "intercepts_20_centred"),
  vary("student_df", of_tails, list(c(1, 2, 4, 8), c(1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 20))),
  vary("genealogies_per_dimension", of_tails),
  vary("widest_tails", of_tails, list(values$widest_tails / 2, values$widest_tails * 2)),
  vary("sure_bridge", of_passes),
  vary("sure_shape", of_passes),
  vary("most_further_passes", of_passes, c(3, 10)),
  vary("spoilt", of_passes, c(1.5, 4)),
  vary("least_shape_gain", of_passes),
  vary("largest_edge", c("edged_exponential_1_d1", "edged_half_normal_1_d3", "two_unequal_10")),
  vary("basin_part", c(of_scout[1:3], "eight_on_circle_10"))
)

with_rule <- function(name, value, code) {
  set <- function(rules) utils::assignInNamespace("rules", rules, "autosmc")
  on.exit(set(values))
  set(replace(values, name, list(value)))
  code
}

fit_with <- function(name, value, model) {
  fit <- with_rule(name, value, suite_fit("shapes", models[[model]], seed = 101))
  data.frame(
    rule = name, value = paste(format(value, digits = 3, trim = TRUE), collapse = " "),
    fit[c("model", "error", "std_error", "wrong", "warned", "n_target_evals", "seconds")]
  )
}

arguments <- commandArgs(TRUE)
file <- if (length(arguments) > 0) arguments[1] else "bench/results/rules.csv"
if (length(arguments) > 1) {
  varied <- Filter(function(rule) rule$name %in% arguments[-1], varied)
}
unlink(file)
for (model in unique(unlist(lapply(varied, `[[`, "models")))) {
  append_rows(fit_with("none", NA, model), file)
}
for (rule in varied) {
  for (value in rule$values) {
    for (model in rule$models) {
      append_rows(fit_with(rule$name, value, model), file)
    }
  }
}
