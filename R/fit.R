# The result of a run, and what can be done with it.

# adapted: of adapt_in_rounds(), or NULL; final: of run_islands(), or NULL; plan:
# the settings that are not those of a single run.
new_fit <- function(settings, adapted, final, plan) {
  rounds <- lapply(seq_along(adapted$runs), function(i) {
    cbind(adapted$runs[[i]]$runs, used = adapted$used[i])
  })
  if (is.null(final)) {
    estimate <- combine(adapted$best$runs$log_z)
    draws <- adapted$best
    draws$island <- rep(1L, nrow(draws$particles))
    steps <- adapted$best$steps
  } else {
    estimate <- combine(final$islands$log_z)
    warn_if_unreliable(final$islands, plan$precision, estimate$std_error)
    draws <- final
    steps <- final$steps[final$steps$island == final$island[1], ]
  }
  structure(
    c(
      estimate,
      list(
        particles = draws$particles,
        log_weights = draws$log_weights,
        island = draws$island,
        schedule = steps[c("lambda", "step_size", "refresh_rate")],
        steps = bind_rows(c(lapply(adapted$runs, `[[`, "steps"), list(final$steps))),
        runs = fit_runs(rounds, final, estimate),
        islands = final$islands
      ),
      settings[settings_names],
      plan[setdiff(names(plan), "islands")]
    ),
    class = "smc_fit"
  )
}

# A row for every round, and one for the islands together.
fit_runs <- function(rounds, final, estimate) {
  rows <- lapply(rounds, function(row) {
    cbind(row,
      std_error = NA_real_, conf_low = NA_real_, conf_high = NA_real_,
      islands = 1L
    )
  })
  if (!is.null(final)) {
    islands <- final$islands
    row <- islands[1, setdiff(names(islands), c("island", "predicted_sd"))]
    row$run <- "final"
    row$used <- TRUE
    row[names(estimate)] <- estimate
    row$islands <- nrow(islands)
    row$barrier <- mean(islands$barrier, na.rm = TRUE)
    sums <- c("n_objective_evals", "n_target_evals", "seconds")
    row[sums] <- lapply(islands[sums], sum, na.rm = TRUE)
    rows <- c(rows, list(row))
  }
  columns <- c(
    "run",
    "round",
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
    "seconds",
    "used"
  )
  bind_rows(lapply(rows, function(row) as.data.frame(row)[columns]))
}

bind_rows <- function(tables) {
  tibble::as_tibble(do.call(rbind, Filter(Negate(is.null), tables)))
}

# printing --------------------------------------------------------------------

#' @export
print.smc_fit <- function(x, ...) {
  runs <- x$runs
  last <- runs[nrow(runs), ]
  count <- function(n) format(n, big.mark = ",", scientific = FALSE)
  line <- function(name, ...) {
    cat(format(paste0(name, ":"), width = 10), ..., "\n", sep = "")
  }
  variables <- if (x$target$dim == 1) "variable" else "variables"
  cat("<smc_fit> ", x$target$label, ", ", x$target$dim, " ", variables, "\n", sep = "")
  line("log Z", format_estimate(x, last))
  line(
    "sampler", x$kernel$label, ", ", count(last$n_particles), " particles, ",
    last$n_steps, " steps",
    if (last$islands > 1) sprintf(", %d islands", last$islands)
  )
  line("cost", format_cost(runs, count))
  line(
    "draws", count(nrow(x$particles)), " weighted, effective sample size ",
    count(round(final_ess(x)))
  )
  stopped <- table(x$steps$tuner_status)
  stopped <- stopped[names(stopped) != "converged"]
  if (length(stopped) > 0) {
    line("tuning", toString(sprintf("%d steps %s", stopped, names(stopped))))
  }
  cat("schedule:\n")
  print_schedule(x$schedule)
  invisible(x)
}

format_estimate <- function(fit, last) {
  if (last$biased) {
    return(sprintf("%.3f (biased)", fit$log_z))
  }
  if (is.na(fit$std_error)) {
    return(sprintf("%.3f (unbiased run; its error takes more islands)", fit$log_z))
  }
  sprintf(
    "%.3f, standard error %.3f, 95 %% interval %.3f to %.3f",
    fit$log_z,
    fit$std_error,
    fit$conf_low,
    fit$conf_high
  )
}

format_cost <- function(runs, count) {
  by_run <- tapply(runs$n_target_evals, runs$run, sum)
  parts <- sprintf("%s %s", count(by_run), names(by_run))
  paste0(
    count(sum(by_run)),
    " evaluations of the target",
    if (length(by_run) > 1) paste0(" (", paste(parts, collapse = " + "), ")"),
    ", ",
    sprintf("%.2f s", sum(runs$seconds))
  )
}

# The first and the last rows.
print_schedule <- function(schedule, ends = 3) {
  n <- nrow(schedule)
  columns <- Filter(function(x) !all(is.na(x)), schedule)
  table <- data.frame(
    step = seq_len(n),
    lapply(columns, format, digits = 3),
    check.names = FALSE
  )
  if (n > 2 * ends + 1) {
    gap <- stats::setNames(rep(list("..."), ncol(table)), names(table))
    first <- seq_len(ends)
    table <- rbind(table[first, ], gap, table[n + 1 - rev(first), ])
  }
  print(table, row.names = FALSE, right = TRUE)
}

# Of the pooled draws.
final_ess <- function(fit) 1 / sum(exp(2 * fit$log_weights))

# summaries -------------------------------------------------------------------

#' Summaries of a fit
#'
#' @param object,x a fit, as [smc()] returns it.
#' @param ... not used.
#' @return `summary()`: an object of class `summary.smc_fit`, a list with the fit
#'   and `variables`, a data frame with a row a variable and its weighted `mean`,
#'   `sd` and quantiles `q5`, `median` and `q95`.
#'
#'   `tidy()`: the `steps` of the fit, a data frame with a row a run and step.
#'
#'   `glance()`: a data frame of one row with `log_z`, `std_error`, `conf_low`,
#'   `conf_high`, `biased`, `kernel`, `dim`, `n_particles`, `n_steps`, `islands`, `ess`
#'   (of the pooled draws),
#'   `n_objective_evals`, `n_target_evals` and `seconds` (of all runs together)
#'   and `seed`.
#' @name summary.smc_fit
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 256, n_steps = 8)
#' summary(fit)
#' tidy(fit)
#' glance(fit)
NULL

#' @rdname summary.smc_fit
#' @export
summary.smc_fit <- function(object, ...) {
  w <- exp(object$log_weights)
  rows <- lapply(object$target$names, function(name) {
    x <- object$particles[, name]
    mean <- sum(w * x)
    q <- weighted_quantile(x, w, c(0.05, 0.5, 0.95))
    tibble::tibble(
      variable = name,
      mean = mean,
      sd = sqrt(sum(w * (x - mean)^2)),
      q5 = q[1],
      median = q[2],
      q95 = q[3]
    )
  })
  structure(
    list(fit = object, variables = bind_rows(rows)),
    class = "summary.smc_fit"
  )
}

# The inverse of the weighted distribution function.
weighted_quantile <- function(x, w, p) {
  order <- order(x)
  cumulative <- cumsum(w[order]) / sum(w)
  at <- findInterval(p, cumulative, left.open = TRUE) + 1L
  x[order][pmin(at, length(x))]
}

#' @export
print.summary.smc_fit <- function(x, ...) {
  print(x$fit)
  cat("variables:\n")
  print(as.data.frame(x$variables), digits = 3, row.names = FALSE)
  invisible(x)
}

#' @importFrom generics tidy
#' @export
generics::tidy

#' @importFrom generics glance
#' @export
generics::glance

#' @rdname summary.smc_fit
#' @export
tidy.smc_fit <- function(x, ...) {
  x$steps
}

#' @rdname summary.smc_fit
#' @export
glance.smc_fit <- function(x, ...) {
  runs <- x$runs
  last <- runs[nrow(runs), ]
  tibble::tibble(
    log_z = x$log_z,
    std_error = x$std_error,
    conf_low = x$conf_low,
    conf_high = x$conf_high,
    biased = last$biased,
    kernel = x$kernel$name,
    dim = x$target$dim,
    n_particles = last$n_particles,
    n_steps = last$n_steps,
    islands = last$islands,
    ess = final_ess(x),
    n_objective_evals = sum(runs$n_objective_evals),
    n_target_evals = sum(runs$n_target_evals),
    seconds = sum(runs$seconds),
    seed = x$seed
  )
}
