# print() of a fit and of its summary.

#' @rdname summary.smc_fit
#' @export
print.smc_fit <- function(x, ..., schedule = FALSE, digits = NULL) {
  print_fit(x, most_variables = 6, check_flag(schedule, "schedule"), digits)
  invisible(x)
}

#' @rdname summary.smc_fit
#' @export
print.summary.smc_fit <- function(x, ..., schedule = TRUE, digits = NULL) {
  print_fit(x$fit, most_variables = most_printed, check_flag(schedule, "schedule"), digits, of_summary = TRUE)
  invisible(x)
}

# The estimate, the variables, the sampler, and last the verdict of the diagnostics.
print_fit <- function(fit, most_variables, schedule, digits = NULL, of_summary = FALSE) {
  if (!is.null(digits)) check_count(digits, "digits", max = 15)
  cat("<smc_fit> ", fit$target$label, ", ", count_of(fit$target$dim, "variable"), "\n", sep = "")
  print_estimate(fit, digits)
  if (is_exact_fit(fit)) {
    return(print_line("verdict", format_verdict(fit)))
  }
  cat("\n")
  print_variables(fit, most_variables, digits, with_mcse = of_summary)
  cat("\n")
  if (length(fit$maps) > 0) print_line("shape", paste(fit$maps, collapse = "; "))
  print_sampler(fit)
  if (schedule) {
    cat("schedule:\n")
    print_schedule(fit$schedule, ends = if (of_summary) Inf else 3)
  }
  print_line("search", format_search(fit))
  findings <- c(what_failed(fit$diagnostics), describe_heavy(fit$heavy_tails), describe_improper(fit$improper))
  for (finding in findings) print_line("warning", finding)
  print_line("verdict", format_verdict(fit))
}

# A line `name: text`, wrapped to the width of the screen.
print_line <- function(name, ...) {
  indent <- 10
  text <- strwrap(paste0(...), getOption("width") - indent)
  names <- c(paste0(name, ":"), character(length(text) - 1))
  cat(paste0(format(names, width = indent), text), sep = "\n")
}

# digits: significant digits of the standard error; NULL for at least three decimals, and as many as show one digit.
print_estimate <- function(fit, digits) {
  decimals <- decimals_of_error(fit$std_error, digits)
  number <- function(x) fixed(x, decimals)
  of_laplace <- if (is_laplace(fit)) ", of Laplace's approximation"
  if (is_exact_fit(fit)) {
    print_line("log Z", number(fit$log_z), " (exact)")
  } else if (last_run(fit)$biased) {
    print_line("log Z", number(fit$log_z), " (biased", of_laplace, ")")
  } else if (is.na(fit$std_error)) {
    print_line("log Z", number(fit$log_z), " (unbiased", of_laplace, "; a standard error needs more islands)")
  } else {
    # the reference is the target itself, and there is no edge
    is_exact <- is_exact_reference(fit$reference) && fit$sampling_error < rules$least_bridge_error
    print_line(
      "log Z", number(fit$log_z), ", standard error ", number(fit$std_error),
      if (has_shift(fit)) paste0(", of which Monte Carlo error ", number(fit$sampling_error)),
      if (is_exact) " (exact for the basin found)" else if (is_bridged(fit)) " (bridge)",
      of_laplace
    )
    print_line("interval", number(fit$conf_low), " to ", number(fit$conf_high), " (95 %", of_laplace, ")")
  }
  if (is.list(fit$laplace)) print_line("effects", describe_effects(fit))
}

# Whether the standard error includes a shift found by a diagnostic.
has_shift <- function(fit) isTRUE(fit$std_error > fit$sampling_error)

# Whether the reported estimate is the bridge estimate.
is_bridged <- function(fit) headline(fit$estimates)$method == "bridge"

last_run <- function(fit) fit$runs[nrow(fit$runs), ]

# Number of variables that a summary prints.
most_printed <- 20

# The table of the first `most` variables, and how to get the others.
print_variables <- function(fit, most, digits, with_mcse) {
  d <- ncol(fit$particles)
  shown <- seq_len(min(d, most))
  print(format_variables(variables_table(fit, shown), with_mcse, digits), row.names = FALSE, right = TRUE)
  if (d > length(shown)) {
    cat(" ... and ", count(d - length(shown)), " more: summary(fit)$variables has all\n", sep = "")
  }
  if (length(fit$target$later) > 0) {
    later <- unique(base_names(fit$target$later))
    cat(" ... and on demand ", toString(later), ": as_draws(fit, generated = TRUE)\n", sep = "")
  }
}

# A table of variables_table() as text, with so many significant digits of the standard deviation (NULL: 3).
format_variables <- function(table, with_mcse, digits = NULL) {
  # generated quantities may be NaN, or constant up to rounding
  least <- abs(table$mean) * sqrt(.Machine$double.eps)
  varies <- is.finite(table$sd) & table$sd > least
  table$sd[!varies & is.finite(table$sd)] <- 0
  decimals <- decimals_for(ifelse(varies, table$sd, 1), if (is.null(digits)) 3 else digits)
  columns <- lapply(table[c("mean", "sd", "q5", "median", "q95")], fixed, decimals)
  if (with_mcse) columns$mcse <- formatC(table$mcse, digits = 2, format = "g")
  data.frame(variable = shorten(table$variable), columns)
}

print_sampler <- function(fit) {
  last <- last_run(fit)
  print_line(
    "sampler", fit$kernel$label, ", ", count(last$n_particles), " particles, ", count_of(last$n_steps, "step"),
    if (last$islands > 1) sprintf(", %d islands", last$islands)
  )
  print_line("cost", format_cost(fit))
  if (length(fit$truncated) > 0) print_line("left out", toString(fit$truncated), ", to keep to ", limit_of(fit))
  ess <- ess_mean(fit)
  copies <- n_copies(fit)
  print_line(
    "draws",
    if (is.null(fit$moments)) paste(count(nrow(fit$particles)), "weighted") else "moments only",
    if (!is.na(ess)) {
      known_to <- signif(100 / sqrt(2 * ess), 1) # of normal variables
      sprintf(" (effective sample size %s, standard deviations to %g %%)", count(signif(ess, 2)), known_to)
    },
    if (copies > 0) sprintf(", above folded onto one of %d copies", copies)
  )
  print_missed_aims(fit)
  stopped <- table(fit$steps$tuner_status)
  stopped <- stopped[names(stopped) != "converged"]
  if (length(stopped) > 0) {
    print_line("tuning", toString(sprintf("%d steps %s", stopped, names(stopped))))
  }
}

# A line on the default aims that max_islands islands have not reached; for aims that the user gave there is a warning.
print_missed_aims <- function(fit) {
  missed <- missed_aims(fit)
  missed <- missed[setdiff(names(missed), fit$asked)]
  words <- c(precision = "a standard error of %s", draws = "an effective sample size of %s")
  if (length(missed) > 0 && length(fit$truncated) == 0) {
    aims <- sprintf(words[names(missed)], vapply(missed, count, ""))
    print_line("missed", paste(aims, collapse = " and "), ": more islands would be needed (`max_islands`)")
  }
}

format_cost <- function(fit) {
  runs <- fit$runs
  by_run <- tapply(runs$n_target_evals, factor(runs$run, unique(runs$run)), sum)
  parts <- sprintf("%s %s", names(by_run), count(by_run))
  n_joint <- sum(runs[["n_joint_gradients"]], na.rm = TRUE)
  paste0(
    count(sum(by_run)), " evaluations", say_calls(runs),
    sprintf(", %.2f s", fit$seconds), if (length(by_run) > 1) paste0(" (", toString(parts), ")"),
    if (n_joint > 0) paste0("; and ", count(n_joint), " gradients by the random effects")
  )
}

# All rows, or the first and the last `ends` ones.
print_schedule <- function(schedule, ends) {
  n <- nrow(schedule)
  columns <- Filter(function(x) is.numeric(x) && !all(is.na(x)), schedule)
  # positive numbers, with three digits of the smallest
  columns <- lapply(columns, function(x) fixed(x, decimals_for(min(x, na.rm = TRUE), 3, least = 3)))
  table <- data.frame(step = seq_len(n), columns)
  if (n > 2 * ends + 1) {
    gap <- stats::setNames(rep(list("..."), ncol(table)), names(table))
    first <- seq_len(ends)
    table <- rbind(table[first, ], gap, table[n + 1 - rev(first), ])
  }
  print(table, row.names = FALSE, right = TRUE)
}

# Where the scout searched for modes.
format_search <- function(fit) {
  scout <- fit$scout
  if (is.null(scout)) {
    return("there was no search for modes other than those that particles reached")
  }
  where <- if (is.null(fit$target$effects$surrogate)) {
    paste("with standard deviations of 1 to", widest_start)
  } else {
    "around the mode of Laplace's approximation"
  }
  paste0(
    count_of(sum(scout$basins$n_paths, scout$n_dropped), "start"), " ", where, " led to ",
    count_of(nrow(scout$basins), "basin"), "; narrow modes elsewhere cannot be excluded"
  )
}

format_verdict <- function(fit) {
  n <- NROW(fit$diagnostics)
  n_failed <- length(failed(fit$diagnostics))
  if (is_exact_fit(fit)) {
    "there are no parameters to integrate over, and no error"
  } else if (n == 0) {
    "no diagnostics: these need several islands"
  } else if (n_failed > 0) {
    sprintf("not to be trusted, %d of %d diagnostics failed: see vignette(\"trouble\")", n_failed, n)
  } else {
    paste0(
      if (n == 1) "the one diagnostic that applies has passed" else sprintf("all %d diagnostics passed", n),
      if (length(fit$improper) > 0) "; log Z is no evidence, as priors are improper"
    )
  }
}
