# Runs a suite of models of known log evidence by the defaults of smc(), a row a fit:
#
#   Rscript bench/suite.R shapes|analyses|several OUT.csv [--seeds 1:4] [--only REGEX]
#     [--judge | --choose] [--workers 2] [--fresh]
#
# Rows are added to OUT.csv as fits end, and fits that are there are not made again, so a
# run can be resumed; with --fresh the file is begun anew. Sourced, it only defines
# functions: suite_models("shapes") is the list of the models.
#
# A fit is wrong when its error is more than three standard errors and more than 0.1, and
# silent when it is wrong and there is no warning of autosmc.
source("bench/common.R")

suites <- c("shapes", "analyses", "several")

# The models of a suite; `dir` is the directory of this file.
suite_models <- function(suite = suites, dir = "bench") {
  suite <- match.arg(suite)
  space <- new.env(parent = globalenv())
  for (file in c("models.R", paste0(suite, ".R"))) {
    sys.source(file.path(dir, file), space)
  }
  models <- space[[suite]]
  names(models) <- vapply(models, `[[`, "", "name")
  stopifnot(!anyDuplicated(names(models)))
  found <- file.path(dir, "results", "truths.csv")
  truths <- if (file.exists(found)) utils::read.csv(found)
  lapply(models, function(model) {
    model$find_truth <- model$truth
    row <- match(paste(suite, model$name), paste(truths$suite, truths$model))
    model$truth <- if (is.na(row)) NA_real_ else truths$truth[row]
    model
  })
}

# One fit: a data frame of one row.
suite_fit <- function(suite, model, seed) {
  warned <- FALSE
  said <- character()
  started <- proc.time()[["elapsed"]]
  fit <- withCallingHandlers(
    tryCatch(autosmc::smc(model$target(), seed = seed), error = identity),
    warning = function(w) {
      kind <- grep("^autosmc_", class(w), value = TRUE)[1]
      warned <<- warned || doubts_evidence(w)
      text <- strsplit(conditionMessage(w), "\n")[[1]][1]
      said <<- c(said, paste0(if (is.na(kind)) "warning" else kind, ": ", text))
      tryInvokeRestart("muffleWarning")
    }
  )
  seconds <- proc.time()[["elapsed"]] - started
  failed <- inherits(fit, "error")
  of_fit <- function(name) if (failed) NA_real_ else fit[[name]]
  of_method <- function(method, name) {
    value <- if (!failed) fit$estimates[[name]][fit$estimates$method == method]
    if (length(value) == 0) NA_real_ else value
  }
  error <- of_fit("log_z") - model$truth
  covers <- of_fit("conf_low") <= model$truth && model$truth <= of_fit("conf_high")
  # a fit that failed or has no finite estimate is wrong, and has said so if it failed
  wrong <- !is.finite(error) ||
    abs(error) > 0.1 && !isTRUE(abs(error) <= 3 * of_fit("std_error"))
  data.frame(
    suite = suite, model = model$name, class = model$class, judge = model$judge,
    d = model$d, seed = seed, truth = model$truth, log_z = of_fit("log_z"),
    std_error = of_fit("std_error"), conf_low = of_fit("conf_low"),
    conf_high = of_fit("conf_high"),
    smc_log_z = of_method("smc", "log_z"), smc_std_error = of_method("smc", "std_error"),
    bridge_log_z = of_method("bridge", "log_z"),
    bridge_std_error = of_method("bridge", "std_error"),
    error = error, wrong = wrong, warned = warned,
    warnings = one_line(unique(said)), silent = wrong && !warned && !failed,
    covered = isTRUE(covers),
    n_target_evals = if (failed) NA_real_ else sum(fit$runs$n_target_evals),
    seconds = seconds, failure = if (failed) one_line(conditionMessage(fit)) else ""
  )
}

one_line <- function(text) {
  gsub("[\n\r]+ *", " ", paste(cli::ansi_strip(text), collapse = "; "))
}

# All fits that are not in `file` yet: a data frame of all that are then there.
suite_run <- function(suite, models, seeds, file, workers = 2) {
  done <- if (file.exists(file)) utils::read.csv(file)
  jobs <- expand.grid(model = names(models), seed = seeds, stringsAsFactors = FALSE)
  keys <- paste(suite, jobs$model, jobs$seed)
  jobs <- jobs[!keys %in% paste(done$suite, done$model, done$seed), ]
  message(nrow(jobs), " fits to make")
  if (.Platform$OS.type == "windows") workers <- 1
  # a process a job, so that a slow model holds up none of the others; the rows are
  # written in this process, one after the other
  running <- list()
  next_job <- 1
  while (next_job <= nrow(jobs) || length(running) > 0) {
    if (next_job <= nrow(jobs) && workers <= 1) {
      job <- jobs[next_job, ]
      append_rows(suite_fit(suite, models[[job$model]], job$seed), file)
      next_job <- next_job + 1
      next
    }
    while (next_job <= nrow(jobs) && length(running) < workers) {
      job <- jobs[next_job, ]
      running[[length(running) + 1]] <- parallel::mcparallel(
        suite_fit(suite, models[[job$model]], job$seed),
        name = paste(job$model, job$seed)
      )
      next_job <- next_job + 1
    }
    results <- parallel::mccollect(running, wait = FALSE, timeout = 1)
    for (name in names(results)) {
      row <- results[[name]]
      if (is.data.frame(row)) {
        append_rows(row, file)
      } else {
        why <- if (is.null(row)) "its process was killed" else one_line(as.character(row))
        message(name, " has no row: ", why)
      }
    }
    over <- vapply(running, function(job) job$name %in% names(results), TRUE)
    running <- running[!over]
  }
  utils::read.csv(file)
}

# By class, and over all.
suite_summary <- function(rows) {
  one <- function(rows, class) {
    data.frame(
      class = class, n = nrow(rows), wrong = sum(rows$wrong), silent = sum(rows$silent),
      false_alarms = sum(rows$warned & !rows$wrong),
      failed = sum(is.na(rows$log_z)),
      median_error = signif(stats::median(abs(rows$error), na.rm = TRUE), 2),
      coverage = round(mean(rows$covered), 2),
      evaluations = stats::median(rows$n_target_evals, na.rm = TRUE)
    )
  }
  by_class <- split(rows, factor(rows$class, unique(rows$class)))
  do.call(rbind, unname(c(Map(one, by_class, names(by_class)), list(one(rows, "all")))))
}

suite_options <- function(args) {
  if (length(args) < 2 || !args[1] %in% suites) {
    stop("usage: Rscript bench/suite.R shapes|analyses|several OUT.csv [options], see the file")
  }
  list(
    suite = args[1], file = args[2],
    seeds = eval(str2lang(option_of(args, "--seeds", "1:4"))),
    only = option_of(args, "--only", ""),
    workers = as.integer(option_of(args, "--workers", "2")),
    judge = "--judge" %in% args, choose = "--choose" %in% args, fresh = "--fresh" %in% args
  )
}

suite_main <- function(args) {
  options <- suite_options(args)
  models <- suite_models(options$suite)
  is_judge <- vapply(models, `[[`, TRUE, "judge")
  wanted <- grepl(options$only, names(models)) &
    (!options$judge | is_judge) & (!options$choose | !is_judge)
  unknown <- names(which(wanted & is.na(vapply(models, `[[`, 0, "truth"))))
  if (length(unknown) > 0) {
    stop("no truth in results/truths.csv, see truths.R: ", toString(unknown))
  }
  if (options$fresh) unlink(options$file)
  rows <- suite_run(
    options$suite, models[wanted], options$seeds, options$file, options$workers
  )
  base::options(width = 120)
  print(suite_summary(rows), row.names = FALSE)
  wrong <- rows[rows$wrong, c("model", "judge", "seed", "error", "std_error", "warned")]
  if (nrow(wrong) > 0) print(wrong, row.names = FALSE, digits = 3)
}

if (sys.nframe() == 0) suite_main(commandArgs(TRUE))
