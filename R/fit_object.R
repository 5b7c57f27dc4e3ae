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
      plan[setdiff(names(plan), not_of_fit)],
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

# What the plan says to the stages only.
not_of_fit <- c(
  "islands", "scout", "bridges", "n_islands", "seeks", "grows", "may_shrink", "max_bridged", "max_ratios", "truncated",
  "sought"
)

runs_columns <- c(
  "run", "round", "label", "kernel", "log_z", "std_error", "conf_low", "conf_high", "biased", "n_particles", "n_steps",
  "islands", "barrier", "n_objective_evals", "n_target_evals", "n_calls", "n_impossible", "seconds", "used"
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
  columns <- c(runs_columns, if ("n_joint_gradients" %in% unlist(lapply(rows, names))) "n_joint_gradients")
  bind_rows(lapply(rows, function(row) {
    row[setdiff(columns, names(row))] <- NA_real_
    row[columns]
  }))
}

row_of_counts <- function(run, counts) {
  c(list(
    run = run, round = NA_integer_, label = NA_character_, kernel = NA_character_, biased = NA,
    n_particles = NA_integer_, n_steps = NA_integer_, islands = NA_integer_, n_objective_evals = 0L,
    n_target_evals = counts$n_target_evals, n_calls = counts$n_calls, n_impossible = counts$n_impossible,
    seconds = counts$seconds, used = TRUE
  ), counts[names(counts) == "n_joint_gradients"])
}
