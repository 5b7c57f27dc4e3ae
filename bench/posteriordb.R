# The paper's 22 problems, 18 of them from a local checkout of posteriordb: the paper's
# method (LMC and KLMC with the tuner of the paper; N = 1024, T = 64, an adapting and an
# unbiased run from N(0, I)), and smc() by its defaults. A row of results/posteriordb.csv
# is a fit, or says in `failure` why there is none: that the program cannot be compiled, or
# that all particles died. Delete such rows to try again.
#
#   Rscript bench/posteriordb.R DIR [--only REGEX] [--seeds 1:8] [--methods REGEX]
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
  cbind(job, try_fit(target, function() methods[[job$method]](target, job$seed))$row)
}

folder <- commandArgs(TRUE)[1]
options <- paper_options(seeds = "1:8")
options$posteriordb <- folder
methods <- methods[grepl(option_of(commandArgs(TRUE), "--methods", ""), names(methods))]
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
