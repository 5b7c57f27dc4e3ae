# Families and terms of brms: the evidence of a model of each, against bridge sampling of the draws of rstan, and the
# prior alone, of which the evidence is 1.
#
#   Rscript bench/brms_programs.R smc [MODEL ...]      with the brms that is installed, to results/brms_programs.csv
#   Rscript bench/brms_programs.R bridge [MODEL ...]   with its rstan, to results/brms_bridge.csv
#
# The two may need libraries of their own (R_LIBS), where rstan and autosmc take different versions of StanHeaders.
# All models are fitted unless some are named. The data are small, and coefficients have normal priors.
suppressPackageStartupMessages(library(brms))
source(file.path("bench", "brms_models.R"))

results <- file.path("bench", "results")
version_of <- function(package) format(utils::packageVersion(package))
seconds_of <- function(code) system.time(code)[["elapsed"]]

# Replaces the row of this model and this version of brms.
keep_row <- function(row, file) {
  row <- data.frame(model = row$model, brms = version_of("brms"), row[-1])
  numeric <- vapply(row, is.double, TRUE)
  row[numeric] <- lapply(row[numeric], signif, 6)
  print(row, row.names = FALSE)
  if (file.exists(file)) {
    old <- utils::read.csv(file, colClasses = c(brms = "character"))
    row <- rbind(old[!(old$model == row$model & old$brms == row$brms), names(row)], row)
  }
  row <- row[order(match(row$model, names(models)), numeric_version(row$brms)), ]
  utils::write.csv(row, file, row.names = FALSE)
}

by_smc <- function(name) {
  warned <- FALSE
  changes <- ""
  listen <- function(code) {
    withCallingHandlers(
      code,
      autosmc_warning = function(w) {
        warned <<- TRUE
        message(conditionMessage(w))
        invokeRestart("muffleWarning")
      },
      autosmc_message_update = function(m) {
        said <- gsub("\\s+", " ", cli::ansi_strip(conditionMessage(m)))
        changes <<- sub(".*was updated: (.*)[.].*", "\\1", said)
      }
    )
  }
  x <- brm_of(name, empty = TRUE)
  compile_s <- seconds_of(target <- listen(autosmc::as_target(x)))
  fit <- listen(autosmc::smc(target, seed = 1))
  # brms itself does not sample from the prior where a term has none of its own
  alone <- utils::modifyList(unclass(standata(x)), list(prior_only = 1L))
  prior <- autosmc::smc(autosmc::target_stan(as.character(stancode(x)), alone), seed = 1)
  keep_row(list(
    model = name, stan = version_of("StanHeaders"), d = target$dim, log_z = fit$log_z, std_error = fit$std_error,
    seconds = sum(fit$seconds), compile_s = compile_s, warned = warned, prior_log_z = prior$log_z,
    prior_error = prior$std_error, changes = changes
  ), file.path(results, "brms_programs.csv"))
}

by_bridge <- function(name) {
  compile_s <- seconds_of(fit <- brm_of(name, chains = 0, save_pars = save_pars(all = TRUE)))
  seconds <- seconds_of({
    fit <- update(fit, chains = 4, iter = 4000, warmup = 1000, seed = 1, refresh = 0, recompile = FALSE)
    bridge <- bridgesampling::bridge_sampler(fit, silent = TRUE)
  })
  keep_row(list(
    model = name, rstan = version_of("rstan"), log_z = bridge$logml,
    std_error = bridgesampling::error_measures(bridge)$cv, seconds = seconds, compile_s = compile_s,
    rhat = max(rhat(fit), na.rm = TRUE)
  ), file.path(results, "brms_bridge.csv"))
}

arguments <- commandArgs(TRUE)
way <- list(smc = by_smc, bridge = by_bridge)[[arguments[1]]]
chosen <- if (length(arguments) > 1) arguments[-1] else names(models)
for (name in chosen) {
  tryCatch(way(name), error = function(e) message(name, ": ", conditionMessage(e)))
}
