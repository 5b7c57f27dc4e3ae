# The object of class smc_fit that smc(), smc_adapt() and smc_run() return, and its table of runs.

# result: of conclude(), with the `course` of adaptation; or list(course) if there are no islands. plan: the settings
# that are not those of a single run. call: the user's.
new_fit <- function(sampler, result, plan, call) {
  # the reference in the fit is on the scale of the target, see with_scale_of()
  sampler$reference <- with_scale_of(sampler$reference, sampler$target)
  if (!is.null(plan$step_fraction) && !sampler$kernel$refreshes) {
    plan$step_fraction <- 1 # only KLMC reduces the tuned step sizes
  }
  course <- result$course
  final <- result$final
  if (length(final$all$particles) >= large_run) gc() # temporary memory of the diagnostics
  if (is.null(final)) {
    estimates <- as_table(estimate_row("smc", combine(course$best$runs)))
    draws <- course$best
    draws$island <- rep(1L, length(draws$log_weights))
    if (!is.null(draws$all)) draws$all$island <- rep(1L, length(draws$all$log_weights))
    steps <- course$best$steps
  } else {
    estimates <- final$estimates
    draws <- final
    steps <- steps_of_first(final)
  }
  kept <- draws_of(draws, sampler$target)
  of_effects <- estimate_effects(
    sampler$target, headline(estimates), kept, plan$precision, sampler$seed, plan$max_ratios
  )
  result$corrections <- c(result$corrections, list(of_effects$counts))
  of_correction <- correction_diagnostic$judge(of_effects["khat"])
  if (!is.null(of_correction)) {
    result$diagnostics <- bind_rows(list(result$diagnostics, c(name = "correction", of_correction)))
  }
  estimate <- with_shift(of_effects$estimate, result$diagnostics)
  fit <- structure(
    c(
      estimate, list(estimates = estimates, laplace = of_effects$laplace), kept,
      list(
        schedule = new_table(
          lambda = steps$lambda, step_size = steps$step_size, refresh_rate = steps$refresh_rate,
          kernel = rep(sampler$kernel$name, length(steps$lambda))
        ),
        steps = bind_rows(c(lapply(course$records, `[[`, "steps"), list(final$steps))),
        runs = fit_runs(result), islands = final$islands, logml = estimate$log_z, scout = course$scout,
        diagnostics = result$diagnostics,
        improper = if (is.null(sampler$target$improper)) character() else sampler$target$improper,
        maps = describe_maps(draws$reference, sampler$target),
        truncated = if (is.null(plan$truncated)) character() else plan$truncated
      ),
      sampler[sampler_names],
      plan[intersect(names(plan), c(plan_names, aim_names))],
      list(
        call = call, session = session_facts(), seconds = seconds_now() - sampler$started,
        state = state_of_fit(result, sampler, plan$bridges)
      )
    ),
    # the class "bridge" and `logml` make it a result for bridgesampling
    class = c("smc_fit", "bridge")
  )
  fit$heavy_tails <- heavy_tails(fit)
  warn_if_unreliable(fit)
  warn_of_heavy_tails(fit)
  fit
}

# Elements of the plan that a fit keeps: settings of adaptation, and aims of the islands.
plan_names <- c("rounds", "whiten", "max_steps", "search", "max_evals", "max_seconds", "step_fraction")
aim_names <- c("precision", "max_islands", "draws", "asked")

# An empty row of `runs`.
no_run <- list(
  run = NA_character_, round = NA_integer_, label = NA_character_, kernel = NA_character_, log_z = NA_real_,
  std_error = NA_real_, conf_low = NA_real_, conf_high = NA_real_, biased = NA, n_particles = NA_integer_,
  n_steps = NA_integer_, islands = NA_integer_, barrier = NA_real_, n_objective_evals = 0L, n_target_evals = 0,
  n_calls = 0, n_impossible = 0, seconds = NA_real_, used = TRUE
)

# The table of runs: a row for the surrogate of an integral over random effects, for the scout, for the differences of
# gradients ("probe"), for each correction of the evidence by that integral, for every round, and for the islands of
# each pass.
fit_runs <- function(result) {
  course <- result$course
  probes <- as.list(probes_of(course))
  of_round <- function(record, used) c(unclass(record$runs), list(islands = 1L, used = used))
  runs_of(c(
    list(
      if (!is.null(course$surrogate)) row_of_counts("surrogate", course$surrogate),
      if (!is.null(course$scout)) row_of_counts("scout", course$scout),
      if (probes$n_target_evals > 0) row_of_counts("probe", c(probes, seconds = NA))
    ),
    lapply(without_null(result$corrections), function(counts) row_of_counts("correction", counts)),
    Map(of_round, course$records, course$used), course$passes, list(result$row)
  ))
}

# The table of these rows, lists that may lack columns; an empty table for none.
runs_of <- function(rows) {
  rows <- without_null(rows)
  # gradients of the joint density occur only with random effects
  has_joint <- "n_joint_gradients" %in% unlist(lapply(rows, names))
  blank <- c(no_run, if (has_joint) list(n_joint_gradients = NA_real_))
  bind_rows(lapply(rows, function(row) utils::modifyList(blank, row)[names(blank)]))
}

row_of_counts <- function(run, counts) {
  c(list(run = run), counts[names(counts) %in% c(spent, "n_impossible", "seconds", "n_joint_gradients")])
}
