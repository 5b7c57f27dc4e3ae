# smc() by its defaults: rounds, whitening and islands; 32 seeds each.
# `covered` is the share of the 95 % intervals that hold the truth, `error` the
# median of the standard errors, `warned` the share of fits with a warning.
#
#   Rscript bench/evidence.R [TARGET ...]
source("bench/common.R")

seeds <- 1:32

cases <- c(
  targets[c("brownian", "sonar", "funnel", "pines")],
  lapply(setNames(2^(1:7), paste0("shifted_", 2^(1:7))), function(d) {
    function() target_gaussian(d, mean = 3)
  })
)
names <- commandArgs(TRUE) # the targets; all when none is named
if (length(names) == 0) names <- names(cases)

for (name in names) {
  target <- cases[[name]]()
  true <- if (name %in% names(truths)) truths[[name]] else 0
  out <- replicate_seeds(seeds, function(seed) {
    warned <- 0
    fit <- withCallingHandlers(
      smc(target, seed = seed),
      autosmc_warning_unreliable = function(w) {
        warned <<- 1
        tryInvokeRestart("muffleWarning")
      }
    )
    runs <- fit$runs
    c(
      log_z = fit$log_z,
      error = fit$std_error,
      covered = fit$conf_low <= true && true <= fit$conf_high,
      warned = warned,
      evals = sum(runs$n_target_evals),
      final_evals = runs$n_target_evals[runs$run == "final" & runs$used],
      n_steps = runs$n_steps[runs$run == "final" & runs$used]
    )
  })
  row <- cbind(
    target = name,
    truth = true,
    spread(out[, "log_z"], seeds),
    error = median(out[, "error"]),
    covered = mean(out[, "covered"]),
    warned = mean(out[, "warned"]),
    evals = median(out[, "evals"]),
    final_evals = median(out[, "final_evals"]),
    n_steps = median(out[, "n_steps"])
  )
  keep_rows(with_provenance(row), "evidence", list(target = names(cases)))
}
