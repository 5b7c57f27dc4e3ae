# The paper's comparison with fixed step sizes: SMC-LMC and SMC-KLMC with h_t = h over a
# grid, and over refreshment rates, beside the paper's adaptive method (the tuner of the
# paper; an adapting run, and an unbiased one with its schedule); N = 1024, T = 64. A row of
# results/fixed_steps.csv is an unbiased run:
#
#   adaptive     the unbiased run; its evaluations count those of the adapting run, too
#   fixed        a step size of the grid
#   fixed_equal  the best step size of the grid with as many more particles as the
#                evaluations of the adaptive method buy, and seeds from 1001; what finding
#                the best one has cost is not counted
#
# The best one has the smallest root mean square error over the seeds: it is chosen on the
# runs it is judged by, in its favour. Where all particles die log Z is -Inf.
#
#   Rscript bench/fixed_steps.R [--only REGEX] [--kernels REGEX] [--seeds 1:32] [--posteriordb DIR]
source("bench/paper_jobs.R")

# The paper shows its grid in figures only. This one has three values a decade, and holds
# the step sizes that the tuner chooses on all problems.
step_sizes <- 10^seq(-4, 0, length.out = 13)
refresh_rates <- list(lmc = NA, klmc = c(0.1, 0.5, 0.9)) # the paper's
n_steps <- 64
n_particles <- 1024

adaptive_run <- function(target, kernel, seed) {
  unless_dead(
    {
      fit <- smc_paper(
        target,
        kernel = paper_kernels[[kernel]], n_particles = n_particles, n_steps = n_steps,
        tuner = tuner_kl(search = "golden"), seed = seed
      )
      c(fit$log_z, sum(fit$runs$n_target_evals))
    },
    c(-Inf, NA)
  )
}

fixed_run <- function(target, job, n) {
  schedule <- data.frame(lambda = schedule_power(n_steps)[-1], step_size = job$step_size)
  if (job$kernel == "klmc") schedule$refresh_rate <- job$refresh_rate
  kernel <- paper_kernels[[job$kernel]]
  unless_dead(
    {
      fit <- smc_run(target, schedule, kernel = kernel, n_particles = n, seed = job$seed)
      c(fit$log_z, sum(fit$runs$n_target_evals))
    },
    c(-Inf, NA)
  )
}

run_job <- function(target, job, n = n_particles) {
  value <- if (job$system == "adaptive") {
    adaptive_run(target, job$kernel, job$seed)
  } else {
    fixed_run(target, job, n)
  }
  cbind(job, n_particles = n, n_steps, log_z = value[1], n_target_evals = value[2])
}

# A row a seed of each cell.
with_seeds <- function(cells, seeds) merge(cells, data.frame(seed = seeds), by = NULL)

grid_jobs <- function(problem, kernel, seeds) {
  fixed <- expand.grid(
    step_size = signif(step_sizes, 6), refresh_rate = refresh_rates[[kernel]]
  )
  cells <- rbind(
    data.frame(problem, kernel, system = "adaptive", step_size = NA, refresh_rate = NA),
    data.frame(problem, kernel, system = "fixed", fixed)
  )
  with_seeds(cells, seeds)
}

# The cell of the grid with the smallest root mean square error.
best_fixed <- function(rows, truth) {
  rows <- rows[rows$system == "fixed", ]
  rows$refresh_rate[is.na(rows$refresh_rate)] <- 0
  rows$square <- (rows$log_z - truth)^2
  cells <- aggregate(square ~ step_size + refresh_rate, rows, mean)
  best <- cells[which.min(cells$square), c("step_size", "refresh_rate")]
  if (best$refresh_rate == 0) best$refresh_rate <- NA
  best
}

equal_evals_run <- function(target, problem, kernel, seeds) {
  truth <- paper_truths(read_results)[problem]
  if (is.na(truth)) {
    message("No log evidence of ", problem, ": no best step size.")
    return(invisible())
  }
  rows <- read_results("fixed_steps")
  rows <- rows[rows$problem == problem & rows$kernel == kernel & rows$seed %in% seeds, ]
  evals <- median(rows$n_target_evals[rows$system == "adaptive"], na.rm = TRUE)
  n <- round(evals / (n_steps + 1))
  cell <- data.frame(problem, kernel, system = "fixed_equal", best_fixed(rows, truth))
  run_jobs(
    with_seeds(cell, 1000 + seeds), "fixed_steps", function(job) run_job(target, job, n)
  )
}

options <- paper_options()
problems <- paper_problems(options)
kernels <- option_of(commandArgs(TRUE), "--kernels", "")
for (kernel in grep(kernels, names(paper_kernels), value = TRUE)) {
  for (problem in names(problems)) {
    target <- make_target(problems, problem)
    if (is.null(target)) next
    jobs <- grid_jobs(problem, kernel, options$seeds)
    run_jobs(jobs, "fixed_steps", function(job) run_job(target, job))
    equal_evals_run(target, problem, kernel, options$seeds)
  }
}
