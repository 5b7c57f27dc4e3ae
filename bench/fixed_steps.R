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
#     [--particles 1024] [--best N]
#
# For problems whose evaluations take milliseconds there are fewer particles, and with --best all
# seeds after the first only for the adaptive method and the N best step sizes of the first.
source("bench/paper_jobs.R")

# The paper shows its grid in figures only. This one has three values a decade, and holds
# the step sizes that the tuner chooses on all problems.
step_sizes <- 10^seq(-4, 0, length.out = 13)
refresh_rates <- list(lmc = NA, klmc = c(0.1, 0.5, 0.9)) # the paper's
n_steps <- 64
n_particles <- as.integer(option_of(commandArgs(TRUE), "--particles", "1024"))
n_best <- as.integer(option_of(commandArgs(TRUE), "--best", NA))

adaptive_run <- function(target, kernel, n, seed) {
  unless_dead(
    {
      fit <- smc_paper(
        target,
        kernel = paper_kernels[[kernel]], n_particles = n, n_steps = n_steps,
        tuner = tuner_kl(search = "golden"), seed = seed
      )
      c(fit$log_z, sum(fit$runs$n_target_evals))
    },
    c(-Inf, NA)
  )
}

fixed_run <- function(target, job) {
  schedule <- data.frame(lambda = schedule_power(n_steps)[-1], step_size = job$step_size)
  if (job$kernel == "klmc") schedule$refresh_rate <- job$refresh_rate
  kernel <- paper_kernels[[job$kernel]]
  unless_dead(
    {
      fit <- smc_run(target, schedule, kernel = kernel, n_particles = job$n_particles, seed = job$seed)
      c(fit$log_z, sum(fit$runs$n_target_evals))
    },
    c(-Inf, NA)
  )
}

run_job <- function(target, job) {
  value <- if (job$system == "adaptive") {
    adaptive_run(target, job$kernel, job$n_particles, job$seed)
  } else {
    fixed_run(target, job)
  }
  cbind(job, n_steps, log_z = value[1], n_target_evals = value[2])
}

# A row a seed of each cell.
with_seeds <- function(cells, seeds, n = n_particles) {
  cbind(merge(cells, data.frame(seed = seeds), by = NULL), n_particles = n)
}

grid_cells <- function(problem, kernel) {
  fixed <- expand.grid(
    step_size = signif(step_sizes, 6), refresh_rate = refresh_rates[[kernel]]
  )
  rbind(
    data.frame(problem, kernel, system = "adaptive", step_size = NA, refresh_rate = NA),
    data.frame(problem, kernel, system = "fixed", fixed)
  )
}

# The rows of the table, with n_particles but at equal evaluations.
rows_of_grid <- function(problem, kernel, seeds) {
  rows <- read_results("fixed_steps")
  here <- rows$problem == problem & rows$kernel == kernel & rows$seed %in% seeds
  rows[here & rows$n_particles == n_particles & rows$system != "fixed_equal", ]
}

# The n cells of the grid with the smallest root mean square errors.
best_fixed <- function(rows, truth, n = 1) {
  rows <- rows[rows$system == "fixed", ]
  rows$refresh_rate[is.na(rows$refresh_rate)] <- 0
  rows$square <- (rows$log_z - truth)^2
  cells <- aggregate(square ~ step_size + refresh_rate, rows, mean)
  best <- cells[head(order(cells$square), n), c("step_size", "refresh_rate")]
  best$refresh_rate[best$refresh_rate == 0] <- NA
  best
}

grid_runs <- function(target, problem, kernel, seeds) {
  run <- function(cells, seeds) {
    run_jobs(with_seeds(cells, seeds), "fixed_steps", function(job) run_job(target, job))
  }
  cells <- grid_cells(problem, kernel)
  if (is.na(n_best)) {
    return(run(cells, seeds))
  }
  run(cells, seeds[1])
  truth <- paper_truths(read_results)[problem]
  if (is.na(truth)) {
    return(invisible()) # equal_evals_run() says so
  }
  best <- best_fixed(rows_of_grid(problem, kernel, seeds[1]), truth, n_best)
  run(rbind(cells[cells$system == "adaptive", ], data.frame(problem, kernel, system = "fixed", best)), seeds)
}

equal_evals_run <- function(target, problem, kernel, seeds) {
  truth <- paper_truths(read_results)[problem]
  if (is.na(truth)) {
    message("No log evidence of ", problem, ": no best step size.")
    return(invisible())
  }
  rows <- rows_of_grid(problem, kernel, seeds)
  evals <- median(rows$n_target_evals[rows$system == "adaptive"], na.rm = TRUE)
  n <- round(evals / (n_steps + 1))
  cell <- data.frame(problem, kernel, system = "fixed_equal", best_fixed(rows, truth))
  run_jobs(
    with_seeds(cell, 1000 + seeds, n), "fixed_steps", function(job) run_job(target, job)
  )
}

options <- paper_options()
problems <- paper_problems(options)
kernels <- option_of(commandArgs(TRUE), "--kernels", "")
for (kernel in grep(kernels, names(paper_kernels), value = TRUE)) {
  for (problem in names(problems)) {
    target <- make_target(problems, problem)
    if (is.null(target)) next
    grid_runs(target, problem, kernel, options$seeds)
    equal_evals_run(target, problem, kernel, options$seeds)
  }
}
