# The paper's 22 problems, 18 of them from a local checkout of posteriordb: the paper's
# method (LMC and KLMC with the tuner of the paper; N = 1024, T = 64, an adapting and an
# unbiased run from N(0, I)), and smc() by its defaults; by these on the same density in C,
# too (`defaults_c`), for the problems of bench/twins.R: their Stan programs by the defaults with
# the first of the seeds only. A row of results/posteriordb.csv
# is a fit, or says in `failure` why there is none: that the program cannot be compiled, or
# that all particles died. Delete such rows to try again.
#
#   Rscript bench/posteriordb.R DIR [--only REGEX] [--seeds 1:8] [--methods REGEX]
source("bench/paper_jobs.R")
source("bench/twins.R")

methods <- list(
  paper_lmc = function(target, seed) {
    smc_paper(target, kernel = paper_kernels$lmc, tuner = paper_tuner, seed = seed)
  },
  paper_klmc = function(target, seed) {
    smc_paper(target, kernel = paper_kernels$klmc, tuner = paper_tuner, seed = seed)
  },
  defaults = function(target, seed) smc(target, seed = seed)
)
methods$defaults_c <- methods$defaults # of a twin
paper_tuner <- tuner_kl(search = "golden")

# of: a target, or the error in its place, and the constant by which the log density of the
# problem is above the target's.
fit_row <- function(of, job) {
  row <- try_fit(of$target, function() methods[[job$method]](of$target, job$seed))$row
  row$log_z <- row$log_z + of$constant
  cbind(job, row)
}

folder <- commandArgs(TRUE)[1]
options <- paper_options(seeds = "1:8")
options$posteriordb <- folder
methods <- methods[grepl(option_of(commandArgs(TRUE), "--methods", ""), names(methods))]
problems <- paper_problems(options)
for (problem in names(problems)) {
  has_twin <- problem %in% names(twins)
  jobs <- expand.grid(
    problem = problem, method = names(methods), seed = options$seeds,
    stringsAsFactors = FALSE
  )
  is_left_out <- if (has_twin) {
    jobs$method == "defaults" & jobs$seed != options$seeds[1]
  } else {
    jobs$method == "defaults_c"
  }
  jobs <- jobs[!is_left_out, ]
  if (nrow(jobs_to_do(jobs, "posteriordb")) == 0) next
  as_is <- list(target = tryCatch(problems[[problem]](), error = identity), constant = 0)
  twin <- if (has_twin && !inherits(as_is$target, "error")) twin_of(as_is$target, folder, problem) else as_is
  run_jobs(jobs, "posteriordb", function(job) fit_row(if (job$method == "defaults_c") twin else as_is, job))
}
