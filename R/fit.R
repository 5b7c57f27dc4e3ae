# The result of a run, and what can be done with it.

# runs: what run_sampler() returned, the last of them the one that counts.
new_fit <- function(settings, runs) {
  last <- runs[[length(runs)]]
  structure(
    c(
      list(
        log_z = last$runs$log_z,
        particles = last$particles,
        log_weights = last$log_weights,
        schedule = last$steps[c("lambda", "step_size", "refresh_rate")],
        steps = bind_rows(lapply(runs, `[[`, "steps")),
        runs = bind_rows(lapply(runs, `[[`, "runs"))
      ),
      settings[setdiff(names(settings), "progress")]
    ),
    class = "smc_fit"
  )
}

bind_rows <- function(tables) tibble::as_tibble(do.call(rbind, tables))

# printing --------------------------------------------------------------------

#' @export
print.smc_fit <- function(x, ...) {
  runs <- x$runs
  last <- runs[nrow(runs), ]
  count <- function(n) format(n, big.mark = ",", scientific = FALSE)
  bias <- if (last$biased) "biased" else "unbiased run"
  cat("<smc_fit> ", x$target$label, ", ", x$target$dim, " ",
    if (x$target$dim == 1) "variable" else "variables", "\n",
    sep = ""
  )
  cat("log Z:    ", sprintf("%.3f", x$log_z), " (", bias, ")\n", sep = "")
  cat("sampler:  ", x$kernel$label, ", ", count(last$n_particles),
    " particles, ", last$n_steps, " steps\n",
    sep = ""
  )
  cat("cost:     ", format_cost(runs, count), "\n", sep = "")
  cat("draws:    ", count(last$n_particles), " weighted, effective sample size ",
    round(final_ess(x)), "\n",
    sep = ""
  )
  stopped <- table(x$steps$tuner_status)
  stopped <- stopped[names(stopped) != "converged"]
  if (length(stopped) > 0) {
    cat("tuning:   ", toString(sprintf("%d steps %s", stopped, names(stopped))),
      "\n",
      sep = ""
    )
  }
  cat("schedule:\n")
  print_schedule(x$schedule)
  invisible(x)
}

format_cost <- function(runs, count) {
  total <- sum(runs$n_target_evals)
  parts <- sprintf("%s %s", count(runs$n_target_evals), runs$run)
  paste0(
    count(total),
    " evaluations of the target",
    if (nrow(runs) > 1) paste0(" (", paste(parts, collapse = " + "), ")"),
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

final_ess <- function(fit) fit$steps$ess[nrow(fit$steps)]

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
#'   `glance()`: a data frame of one row with `log_z`, `biased`, `kernel`, `dim`,
#'   `n_particles`, `n_steps`, `ess` (of the final particles),
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
    biased = last$biased,
    kernel = x$kernel$name,
    dim = x$target$dim,
    n_particles = last$n_particles,
    n_steps = last$n_steps,
    ess = final_ess(x),
    n_objective_evals = sum(runs$n_objective_evals),
    n_target_evals = sum(runs$n_target_evals),
    seconds = sum(runs$seconds),
    seed = x$seed
  )
}
