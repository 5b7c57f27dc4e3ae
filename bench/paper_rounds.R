# The paper's rounds: from T = 64 steps on, each round tunes the kernel, makes an unbiased
# run, and spreads the temperatures of the next one by the communication barrier, with as
# many steps as twice the barrier. N = 1024, B = 256, from N(0, I) in every round.
#
# results/paper_rounds.csv has a row a round: `log_z` of the unbiased run, the `barrier` of
# the adapting one, and evaluations of the adapting runs so far. Round k of seed s has the
# seed 100 s + k. results/paper_steps.csv has the steps of the last round for the first
# seeds: temperatures, the barrier up to there, step sizes. They are of the same runs where one
# process does all; else these seeds are run once more.
#
# The paper sets no limit to the number of steps. The barrier of LMC grows with it, and
# without a limit both would go on growing in every round on Pines.
#
#   Rscript bench/paper_rounds.R [--only REGEX] [--kernels REGEX] [--seeds 1:32] [--posteriordb DIR]
source("bench/paper_jobs.R")

n_rounds <- 3 # the first, and two with temperatures of their own
first_n_steps <- 64
most_steps <- 512
seeds_with_steps <- 1:4

one_round <- function(target, kernel, schedule, seed) {
  fit <- smc_adapt(
    target,
    schedule = schedule, kernel = kernel, rounds = 0, whiten = FALSE, seed = seed,
    tuner = tuner_kl(n_subsample = 256, search = "golden")
  )
  run <- smc_run(target, fit$schedule, kernel = kernel, seed = seed)
  steps <- fit$steps
  barrier <- steps$barrier[nrow(steps)]
  list(
    fit = fit,
    row = data.frame(
      log_z = run$log_z, barrier, n_steps = nrow(steps),
      n_target_evals = sum(fit$runs$n_target_evals)
    ),
    steps = data.frame(
      lambda = steps$lambda, barrier = steps$barrier, step_size = steps$step_size,
      refresh_rate = if (is.null(steps$refresh_rate)) NA else steps$refresh_rate
    ),
    n_steps = min(max(2, ceiling(2 * barrier)), most_steps)
  )
}

# A list of rounds; one in which all particles die is the last.
all_rounds <- function(target, job) {
  kernel <- paper_kernels[[job$kernel]]
  schedule <- schedule_power(first_n_steps)
  rounds <- list()
  for (round in seq_len(n_rounds)) {
    one <- unless_dead(one_round(target, kernel, schedule, 100 * job$seed + round), NULL)
    if (is.null(one)) {
      dead <- data.frame(log_z = -Inf, barrier = NA, n_steps = NA, n_target_evals = NA)
      return(c(rounds, list(list(row = dead))))
    }
    rounds[[round]] <- one
    # by the barrier that was met, where the package takes the lengths of the steps
    one$fit$steps$length <- one$fit$steps$lcb
    schedule <- schedule_barrier(one$fit, one$n_steps, max_steps = most_steps)
  }
  rounds
}

# Without the fits, whose particles would take much memory; kept for the table of the steps.
kept_rounds <- new.env()
rounds_of <- function(target, job) {
  key <- paste(unlist(job), collapse = " ")
  if (is.null(kept_rounds[[key]])) {
    kept_rounds[[key]] <- lapply(all_rounds(target, job), `[`, c("row", "steps"))
  }
  kept_rounds[[key]]
}

round_rows <- function(target, job) {
  rows <- do.call(rbind, lapply(rounds_of(target, job), `[[`, "row"))
  rows$n_target_evals <- cumsum(rows$n_target_evals)
  cbind(job, round = seq_len(nrow(rows)), rows, row.names = NULL)
}

step_rows <- function(target, job) {
  rounds <- rounds_of(target, job)
  last <- rounds[[length(rounds)]]$steps
  if (is.null(last)) {
    last <- data.frame(lambda = NA, barrier = NA, step_size = NA, refresh_rate = NA)
  }
  cbind(job, step = seq_len(nrow(last)), last, row.names = NULL)
}

options <- paper_options()
problems <- paper_problems(options)
kernels <- option_of(commandArgs(TRUE), "--kernels", "")
kernels <- grep(kernels, names(paper_kernels), value = TRUE)
for (problem in names(problems)) {
  target <- make_target(problems, problem)
  if (is.null(target)) next
  jobs <- expand.grid(
    problem = problem, kernel = kernels, seed = options$seeds,
    stringsAsFactors = FALSE
  )
  run_jobs(jobs, "paper_rounds", function(job) round_rows(target, job))
  jobs <- jobs[jobs$seed %in% seeds_with_steps, ]
  run_jobs(jobs, "paper_steps", function(job) step_rows(target, job))
}
