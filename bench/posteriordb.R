# The paper's 22 problems, 18 of them from a local checkout of posteriordb: the paper's
# method (LMC and KLMC with the tuner of the paper; N = 1024, T = 64, an adapting and an
# unbiased run from N(0, I)), and smc() by its defaults. A row of results/posteriordb.csv
# is a fit, or says in `failure` why there is none: that the program cannot be compiled, or
# that all particles died. Delete such rows to try again.
#
#   Rscript bench/posteriordb.R DIR [--only REGEX] [--seeds 1:8]
source("bench/paper_jobs.R")

methods <- list(
  paper_lmc = function(target, seed) {
    smc_paper(target, kernel = paper_kernels$lmc, tuner = paper_tuner, seed = seed)
  },
  paper_klmc = function(target, seed) {
    smc_paper(target, kernel = paper_kernels$klmc, tuner = paper_tuner, seed = seed)
  },
  defaults = function(target, seed) smc(target, seed = seed)
)
paper_tuner <- tuner_kl(search = "golden")

fit_row <- function(target, job) {
  warned <- FALSE
  started <- proc.time()
  fit <- withCallingHandlers(
    tryCatch(
      {
        if (inherits(target, "error")) stop(target)
        methods[[job$method]](target, job$seed)
      },
      error = identity
    ),
    warning = function(w) {
      warned <<- warned || any(grepl("^autosmc_", class(w)))
      tryInvokeRestart("muffleWarning")
    }
  )
  failed <- inherits(fit, "error")
  of_fit <- function(value) if (failed) NA else value
  cbind(
    job,
    d = if (inherits(target, "error")) NA else target$dim,
    log_z = of_fit(fit$log_z),
    std_error = of_fit(fit$std_error),
    n_target_evals = of_fit(sum(fit$runs$n_target_evals)),
    warned = warned,
    seconds = sum((proc.time() - started)[1:2]), # of the processor
    failure = if (failed) first_line(conditionMessage(fit)) else ""
  )
}

first_line <- function(text) {
  strsplit(trimws(cli::ansi_strip(text)), "\n")[[1]][1]
}

folder <- commandArgs(TRUE)[1]
options <- paper_options(seeds = "1:8")
options$posteriordb <- folder
problems <- paper_problems(options)
for (problem in names(problems)) {
  jobs <- expand.grid(
    problem = problem, method = names(methods), seed = options$seeds,
    stringsAsFactors = FALSE
  )
  if (nrow(jobs_to_do(jobs, "posteriordb")) == 0) next
  target <- tryCatch(problems[[problem]](), error = identity)
  run_jobs(jobs, "posteriordb", function(job) fit_row(target, job))
}
