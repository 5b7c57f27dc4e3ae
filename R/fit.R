# The object that a run returns.

# result: of passes(), or conclude(); or list(course) where there are no islands. plan: the
# settings that are not those of a single run. call: the user's.
new_fit <- function(sampler, result, plan, call) {
  # a reference that is taken from the fit belongs to the scale that the target had
  sampler$reference <- with_scale_of(sampler$reference, sampler$target)
  if (!is.null(plan$step_fraction) && !sampler$kernel$refreshes) {
    plan$step_fraction <- 1 # other kernels take the tuned step sizes as they are
  }
  course <- result$course
  final <- result$final
  if (is.null(final)) {
    estimates <- as_table(estimate_row("smc", combine(course$best$runs)))
    draws <- course$best
    draws$island <- rep(1L, nrow(draws$particles))
    steps <- course$best$steps
  } else {
    estimates <- final$estimates
    draws <- final
    steps <- steps_of_first(final)
  }
  estimate <- headline(estimates)
  fit <- structure(
    c(
      estimate[setdiff(names(estimate), "method")],
      list(estimates = estimates),
      draws_of(draws, sampler$target),
      list(
        schedule = new_table(
          lambda = steps$lambda,
          step_size = steps$step_size,
          refresh_rate = steps$refresh_rate,
          kernel = rep(sampler$kernel$name, length(steps$lambda))
        ),
        steps = bind_rows(c(lapply(course$records, `[[`, "steps"), list(final$steps))),
        runs = fit_runs(result),
        islands = final$islands,
        logml = estimate$log_z,
        scout = course$scout,
        diagnostics = result$diagnostics,
        improper = if (is.null(sampler$target$improper)) character() else sampler$target$improper,
        maps = describe_maps(draws$reference, sampler$target)
      ),
      sampler[sampler_names],
      plan[setdiff(names(plan), not_of_fit)],
      list(
        call = call, session = session_facts(),
        seconds = seconds_now() - sampler$started,
        state = state_of_fit(result, sampler, plan$bridges)
      )
    ),
    # the class and `logml` are what bridgesampling asks of what it compares
    class = c("smc_fit", "bridge")
  )
  fit$heavy_tails <- heavy_tails(fit)
  warn_if_unreliable(fit)
  warn_of_heavy_tails(fit)
  if (is.na(fit$std_error) && isTRUE(plan$n_islands > 1) && is.finite(plan$max_evals)) {
    warn_of_one_island(plan$n_islands)
  }
  fit
}

# The steps of the first of the islands that live, as a list of columns.
steps_of_first <- function(final) {
  row_of(final$steps, final$steps$island == final$steps$island[1])
}

# What a fit has of the particles of a record, or of pooled islands.
draws_of <- function(record, target) {
  all <- all_draws(record)
  list(
    particles = if (is.null(record$moments)) {
      outputs_of(target, all$particles, all$log_weights)
    } else {
      t(record$moments$mean)[0, , drop = FALSE]
    },
    log_weights = all$log_weights,
    island = all$island,
    moments = record$moments
  )
}

# What the last digits of a fit depend on beside the seed.
session_facts <- function() {
  list(
    autosmc = unname(getNamespaceVersion("autosmc")),
    r = paste(R.version$major, R.version$minor, sep = "."),
    platform = R.version$platform,
    blas = unname(extSoftVersion()["BLAS"]),
    lapack = La_version()
  )
}

# What the plan says to the stages only.
not_of_fit <- c(
  "islands", "scout", "bridges", "n_islands", "seeks_precision", "max_bridged"
)

runs_columns <- c(
  "run",
  "round",
  "label",
  "kernel",
  "log_z",
  "std_error",
  "conf_low",
  "conf_high",
  "biased",
  "n_particles",
  "n_steps",
  "islands",
  "barrier",
  "n_objective_evals",
  "n_target_evals",
  "n_impossible",
  "seconds",
  "used"
)

# A row for the scout, one for every round, one for the probes of all fits, one for the islands of
# each pass but the last, and one for those of the last.
fit_runs <- function(result) {
  course <- result$course
  rounds <- Map(function(record, used) {
    c(unclass(record$runs), list(islands = 1L, used = used))
  }, course$records, course$used)
  rows <- c(
    if (!is.null(course$scout)) list(scout_row(course$scout)),
    if (n_probe_evals(course) > 0) list(probe_row(course)),
    rounds,
    course$passes,
    if (!is.null(result$final)) list(final_row(result))
  )
  bind_rows(lapply(rows, function(row) {
    row[setdiff(runs_columns, names(row))] <- NA_real_
    row[runs_columns]
  }))
}

scout_row <- function(scout) row_of_counts("scout", scout)

probe_row <- function(course) {
  row_of_counts("probe", c(as.list(course$density("count")), seconds = NA))
}

row_of_counts <- function(run, counts) {
  list(
    run = run, round = NA_integer_, label = NA_character_,
    kernel = NA_character_, biased = NA,
    n_particles = NA_integer_, n_steps = NA_integer_, islands = NA_integer_,
    n_objective_evals = 0L, n_target_evals = counts$n_target_evals,
    n_impossible = counts$n_impossible,
    seconds = counts$seconds, used = TRUE
  )
}

# The islands of a pass together, with the evaluations of bridge and diagnostics.
final_row <- function(result, used = TRUE) {
  islands <- result$final$islands
  label <- result$course$best$runs$label
  row <- row_of(islands, 1)
  row$run <- "final"
  row$used <- used
  row$label <- if (is.null(label)) "given" else label
  row$kernel <- result$sampler$kernel$name
  by_smc <- row_of(result$final$estimates, 1)
  by_smc$method <- NULL
  row[names(by_smc)] <- by_smc
  row$islands <- nrow(islands)
  row$barrier <- mean(islands$barrier, na.rm = TRUE)
  sums <- c("n_objective_evals", "n_target_evals", "n_impossible", "seconds")
  row[sums] <- lapply(unclass(islands)[sums], sum, na.rm = TRUE)
  asked <- c(
    edges = n_edge_trials(result$sampler, result$course),
    proper = n_proper_trials(result$sampler, result$course),
    rays = n_rays(result$sampler, row$n_target_evals) * n_ray_evals(result$sampler)
  )
  row$n_target_evals <- row$n_target_evals + result$final$n_bridge_evals +
    sum(asked[names(asked) %in% result$diagnostics$name], result$mirrors$n_target_evals, result$lines$n_target_evals)
  row
}

# A tibble of columns of one length. Those of tibble itself look at each column, and the tables of a
# short run would take a third of its time. So do subsets of a tibble, and rows are lists.
new_table <- function(...) as_table(list(...))

as_table <- function(columns) {
  structure(
    columns,
    row.names = .set_row_names(length(columns[[1]])), class = c("tbl_df", "tbl", "data.frame")
  )
}

# A row of a table, or some of them, as a list of columns.
row_of <- function(table, i) lapply(unclass(table), `[`, i)

without_null <- function(list) list[!vapply(list, is.null, TRUE)]

# Tables, or rows, with the same columns, one below the other; those that are NULL are left out.
bind_rows <- function(tables) {
  tables <- lapply(without_null(tables), unclass)
  if (length(tables) == 0) {
    return(tibble::tibble())
  }
  if (length(tables) == 1) {
    return(as_table(tables[[1]]))
  }
  columns <- lapply(names(tables[[1]]), function(name) {
    unlist(lapply(tables, `[[`, name), use.names = FALSE)
  })
  as_table(stats::setNames(columns, names(tables[[1]])))
}
