# The object that a run returns.

# result: of conclude(), with the `course` that led there; or list(course) where there are no islands. plan: the
# settings that are not those of a single run. call: the user's.
new_fit <- function(sampler, result, plan, call) {
  # a reference that is taken from the fit belongs to the scale that the target had
  sampler$reference <- with_scale_of(sampler$reference, sampler$target)
  if (!is.null(plan$step_fraction) && !sampler$kernel$refreshes) {
    plan$step_fraction <- 1 # other kernels take the tuned step sizes as they are
  }
  course <- result$course
  final <- result$final
  if (length(final$all$particles) >= large_run) gc() # what diagnostics have left
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
    # the class and `logml` are what bridgesampling asks of what it compares
    class = c("smc_fit", "bridge")
  )
  fit$heavy_tails <- heavy_tails(fit)
  warn_if_unreliable(fit)
  warn_of_heavy_tails(fit)
  fit
}

# Settings of smc() and smc_adapt() that say nothing of a single run, and the aims of islands: a fit has these of its
# plan, the rest of which is for the stages.
plan_names <- c("rounds", "whiten", "max_steps", "search", "max_evals", "max_seconds", "step_fraction")
aim_names <- c("precision", "max_islands", "draws", "asked")

# A row of `runs` before anything is known of it.
no_run <- list(
  run = NA_character_, round = NA_integer_, label = NA_character_, kernel = NA_character_, log_z = NA_real_,
  std_error = NA_real_, conf_low = NA_real_, conf_high = NA_real_, biased = NA, n_particles = NA_integer_,
  n_steps = NA_integer_, islands = NA_integer_, barrier = NA_real_, n_objective_evals = 0L, n_target_evals = 0,
  n_calls = 0, n_impossible = 0, seconds = NA_real_, used = TRUE
)

# A row for the surrogate of an integral over random effects, one for the scout, one for the probes of all fits, one for
# each correction of the evidence by that integral, one for every round, one for the islands of each pass but the last,
# and one for those of the last.
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

# The table of these rows; NULL for none.
runs_of <- function(rows) {
  rows <- without_null(rows)
  # gradients of a joint density are asked for where there are random effects alone
  has_joint <- "n_joint_gradients" %in% unlist(lapply(rows, names))
  blank <- c(no_run, if (has_joint) list(n_joint_gradients = NA_real_))
  bind_rows(lapply(rows, function(row) utils::modifyList(blank, row)[names(blank)]))
}

row_of_counts <- function(run, counts) {
  c(list(run = run), counts[names(counts) %in% c(spent, "n_impossible", "seconds", "n_joint_gradients")])
}
