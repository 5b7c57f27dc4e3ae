# Islands: independent unbiased runs, and what their spread says of the error.

# The final runs of a schedule, as pool() returns them.
run_islands <- function(settings, border, schedule, islands) {
  if (in_parallel(islands$islands)) {
    close_progress(settings$progress) # other processes could not go on with it
    settings$progress <- NULL
  }
  run_all <- function(indices) run_indices(settings, border, schedule, indices)
  results <- run_all(seq_len(islands$islands))
  while (wants_more(results, islands)) {
    n <- length(results)
    results <- c(results, run_all(seq(n + 1, min(n + 4, islands$max_islands))))
  }
  if (all_dead(results)) {
    stop(results[[1]])
  }
  pool(results)
}

# Whether a precision is asked for, not reached yet, and there is room for more islands.
wants_more <- function(results, islands) {
  if (is.null(islands$precision) || length(results) >= islands$max_islands) {
    return(FALSE)
  }
  all_dead(results) || combine(islands_table(results))$std_error > islands$precision
}

# The results of run_sampler(), and the error of a run in which all died: it is an
# estimate like any other, of zero.
run_indices <- function(settings, border, schedule, indices) {
  lapply_islands(indices, function(i) {
    tryCatch(
      run_sampler(settings, border, "final", schedule, index = i),
      autosmc_error_degenerate = function(e) e
    )
  })
}

is_dead <- function(result) inherits(result, "condition")

all_dead <- function(results) all(vapply(results, is_dead, NA))

island_log_z <- function(results) {
  vapply(results, function(r) if (is_dead(r)) -Inf else r$runs$log_z, 0)
}

# In parallel where the user has set a plan for it; in this process otherwise. The
# random streams belong to the islands, so the results are the same.
lapply_islands <- function(indices, f) {
  if (in_parallel(length(indices))) {
    future.apply::future_lapply(
      indices,
      f,
      future.seed = NULL,
      future.packages = "autosmc"
    )
  } else {
    lapply(indices, f)
  }
}

in_parallel <- function(n) {
  n > 1 &&
    isNamespaceLoaded("future") &&
    !inherits(future::plan(), "sequential") &&
    requireNamespace("future.apply", quietly = TRUE)
}

# Draws are pooled with weights in proportion to each island's estimate. Returns
# list(islands, steps, particles, log_weights, island): a table with a row an island,
# and the pooled rest, to which islands in which all died add nothing but their row.
pool <- function(results) {
  share <- normalise_log(island_log_z(results))
  alive <- which(!vapply(results, is_dead, NA))
  living <- results[alive]
  weights <- Map(`+`, lapply(living, `[[`, "log_weights"), share[alive])
  list(
    islands = islands_table(results),
    steps = bind_rows(lapply(living, `[[`, "steps")),
    particles = do.call(rbind, lapply(living, `[[`, "particles")),
    log_weights = unlist(weights),
    island = rep(alive, each = nrow(living[[1]]$particles))
  )
}

# A row an island; at least one is alive.
islands_table <- function(results) {
  first <- Find(Negate(is_dead), results)
  rows <- lapply(results, function(r) {
    if (!is_dead(r)) {
      return(r$runs)
    }
    row <- first$runs
    dead <- dead_row(r)
    row[names(dead)] <- dead
    row
  })
  table <- cbind(island = seq_along(results), bind_rows(rows))
  tibble::as_tibble(table[setdiff(names(table), "run")])
}

# What is known of a run in which all died, by its error.
dead_row <- function(error) {
  tibble::tibble(
    log_z = -Inf,
    ess = 0,
    barrier = NA_real_,
    n_target_evals = error$n_target_evals,
    seconds = NA_real_,
    predicted_sd = NA_real_
  )
}

# The estimate from several islands: the mean of the Z's, its error by the delta method,
# and an interval by Student's t. The error is never less than what the islands predict
# by themselves: where they agree by chance, all may have missed the same.
combine <- function(islands, level = 0.95) {
  n <- nrow(islands)
  largest <- max(islands$log_z)
  z <- exp(islands$log_z - largest)
  variance <- max(stats::var(z), mean((z * islands$predicted_sd)[z > 0]^2))
  estimate <- largest + log(mean(z))
  error <- if (n > 1) sqrt(variance / n) / mean(z) else NA_real_
  half <- if (n > 1) stats::qt((1 + level) / 2, n - 1) * error else NA_real_
  list(
    log_z = estimate,
    std_error = error,
    conf_low = estimate - half,
    conf_high = estimate + half
  )
}

# Scatter beyond this multiple of the predicted one is suspicious, unless the islands are
# so few that it happens by chance in more than one of a thousand cases: then some have
# found what others have missed, and the estimate hangs on few of them.
suspicious_scatter <- function(n) max(1.8, sqrt(stats::qchisq(0.999, n - 1) / (n - 1)))

# What speaks against the error of log Z: sentences; NULL when nothing does. Scatter
# that is but rounding does not.
doubts <- function(islands) {
  n <- NROW(islands)
  if (n < 2) {
    return()
  }
  living <- islands[islands$log_z > -Inf, ]
  dead <- n - nrow(living)
  found <- stats::sd(living$log_z)
  predicted <- sqrt(mean(living$predicted_sd^2))
  share <- max(exp(normalise_log(islands$log_z)))
  rounding <- 1e-6
  c(
    if (nrow(living) > 1 &&
      found > suspicious_scatter(nrow(living)) * predicted + rounding) {
      sprintf(
        "The islands' estimates scatter %s times as much as they predict.",
        format(found / predicted, digits = 2)
      )
    },
    if (n >= 4 && share > 0.5) {
      sprintf("One of the %d islands makes up %.0f %% of the mean.", n, 100 * share)
    },
    if (dead > 0) {
      sprintf("%d of %d islands lost all particles.", dead, n)
    }
  )
}

warn_if_unreliable <- function(islands, precision, error) {
  doubts <- doubts(islands)
  if (length(doubts) > 0) {
    cli::cli_warn(
      c(
        "The error of {.field log_z} is not to be trusted.",
        stats::setNames(doubts, rep("x", length(doubts))),
        "i" = "Some islands may have seen a part of the target that others missed.
          Run again with twice the {.arg n_particles}: if {.field log_z} rises by more
          than its error, this run missed something.",
        "i" = "Where variables differ much in scale, or the target is far from the
          start, a better {.arg reference} does more."
      ),
      class = "autosmc_warning_unreliable"
    )
  }
  if (!is.null(precision) && error > precision) {
    n <- nrow(islands)
    needed <- format(ceiling(n * (error / precision)^2), big.mark = ",", digits = 15)
    error <- format(error, digits = 2)
    cli::cli_warn(
      c(
        "The precision asked for was not reached: with {n} islands the standard
          error is {error}, not {precision}.",
        "i" = "It would take about {needed} islands like these: raise
          {.arg max_islands}, or {.arg n_particles}."
      ),
      class = "autosmc_warning_precision"
    )
  }
}

#' Repeat the unbiased run of a fit
#'
#' Runs the sampler again and again with the schedule and the reference of a fit
#' and with fresh randomness, to see how its estimates scatter.
#'
#' @param fit a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param n number of runs (positive integer).
#' @param seed a whole number from 0 to 2^32 - 1; NULL to draw one from R's
#'   generator.
#' @return A data frame with a row a run: `replicate`, `log_z`, `ess` (of the final
#'   particles), `barrier`, `n_target_evals` and `seconds`. A run that loses all its
#'   particles is an estimate of zero: its `log_z` is -Inf and its `ess` 0, its
#'   `barrier` and `seconds` are NA.
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1),
#'   n_particles = 128, n_steps = 8,
#'   islands = 1
#' )
#' smc_replicate(fit, 5)
#' @export
smc_replicate <- function(fit, n, seed = NULL) {
  check_class(fit, "fit", "smc_fit", "smc()")
  n <- check_count(n, "n")
  settings <- fit[names(fit) %in% settings_names]
  settings$seed <- check_seed(seed)
  border <- border_of_run(settings)
  results <- run_indices(settings, border, as.list(fit$schedule), seq_len(n))
  columns <- c("log_z", "ess", "barrier", "n_target_evals", "seconds")
  rows <- lapply(results, function(r) {
    (if (is_dead(r)) dead_row(r) else r$runs)[columns]
  })
  tibble::tibble(replicate = seq_len(n), bind_rows(rows))
}
