# A fit and its summary, as text.

#' @rdname summary.smc_fit
#' @export
print.smc_fit <- function(x, ..., schedule = FALSE) {
  schedule <- check_flag(schedule, "schedule")
  print_fit(x, most_variables = 6, schedule)
  invisible(x)
}

#' @rdname summary.smc_fit
#' @export
print.summary.smc_fit <- function(x, ..., schedule = TRUE) {
  schedule <- check_flag(schedule, "schedule")
  print_fit(x$fit, most_variables = Inf, schedule)
  invisible(x)
}

# What was estimated, how, and at the end whether to believe it.
print_fit <- function(fit, most_variables, schedule) {
  d <- fit$target$dim
  cat(
    "<smc_fit> ", fit$target$label, ", ", count_of(d, "variable"), "\n",
    sep = ""
  )
  print_estimate(fit)
  cat("\n")
  print_variables(fit, most_variables)
  cat("\n")
  if (length(fit$maps) > 0) {
    print_line("shape", paste(fit$maps, collapse = "; "))
  }
  print_sampler(fit)
  if (schedule) {
    cat("schedule:\n")
    print_schedule(fit$schedule, ends = if (is.finite(most_variables)) 3 else Inf)
  }
  print_verdict(fit)
}

# A name, and what there is to say, in lines that fit on the screen.
print_line <- function(name, ...) {
  indent <- 10
  text <- strwrap(paste0(...), getOption("width") - indent)
  names <- c(paste0(name, ":"), character(length(text) - 1))
  cat(paste0(format(names, width = indent), text), sep = "\n")
}

print_estimate <- function(fit) {
  number <- function(x) fixed(x, decimals_of_error(fit$std_error))
  if (last_run(fit)$biased) {
    print_line("log Z", number(fit$log_z), " (biased)")
  } else if (is.na(fit$std_error)) {
    print_line("log Z", number(fit$log_z), " (unbiased; a standard error needs more islands)")
  } else {
    print_line(
      "log Z", number(fit$log_z), ", standard error ", number(fit$std_error),
      if (is_bridged(fit)) " (bridge)"
    )
    print_line("interval", number(fit$conf_low), " to ", number(fit$conf_high), " (95 %)")
  }
}

# Whether the estimate of a fit is that of the bridge.
is_bridged <- function(fit) headline(fit$estimates)$method == "bridge"

last_run <- function(fit) fit$runs[nrow(fit$runs), ]

# The posterior of the first variables: mean, standard deviation, and quantiles.
print_variables <- function(fit, most) {
  d <- ncol(fit$particles)
  shown <- seq_len(min(d, most))
  table <- variables_table(fit, shown)
  # what a program generates may be constant, but for rounding, or not a number
  least <- abs(table$mean) * sqrt(.Machine$double.eps)
  varies <- is.finite(table$sd) & table$sd > least
  decimals <- decimals_for(ifelse(varies, table$sd, 1), 3)
  columns <- lapply(table[c("mean", "sd", "q5", "median", "q95")], fixed, decimals)
  if (most == Inf) {
    columns$mcse <- formatC(table$mcse, digits = 2, format = "g")
  }
  print(
    data.frame(variable = shorten(table$variable), columns),
    row.names = FALSE, right = TRUE
  )
  if (d > length(shown)) {
    cat(" ... and ", d - length(shown), " more: summary() has all\n", sep = "")
  }
}

print_sampler <- function(fit) {
  last <- last_run(fit)
  print_line(
    "sampler", fit$kernel$label, ", ", count(last$n_particles), " particles, ",
    count_of(last$n_steps, "step"),
    if (last$islands > 1) sprintf(", %d islands", last$islands)
  )
  print_line("cost", format_cost(fit))
  ess <- ess_mean(fit)
  print_line(
    "draws",
    if (is.null(fit$moments)) {
      paste(count(nrow(fit$particles)), "weighted")
    } else {
      "moments only"
    },
    if (!is.na(ess)) {
      sprintf(" (effective sample size %s)", count(signif(ess, 2)))
    }
  )
  stopped <- table(fit$steps$tuner_status)
  stopped <- stopped[names(stopped) != "converged"]
  if (length(stopped) > 0) {
    print_line("tuning", toString(sprintf("%d steps %s", stopped, names(stopped))))
  }
}

format_cost <- function(fit) {
  runs <- fit$runs
  by_run <- tapply(runs$n_target_evals, factor(runs$run, unique(runs$run)), sum)
  parts <- sprintf("%s %s", names(by_run), count(by_run))
  paste0(
    count(sum(by_run)), " evaluations, ", sprintf("%.2f s", fit$seconds),
    if (length(by_run) > 1) paste0(" (", toString(parts), ")")
  )
}

# All rows, or the first and the last ones.
print_schedule <- function(schedule, ends) {
  n <- nrow(schedule)
  columns <- Filter(function(x) is.numeric(x) && !all(is.na(x)), schedule)
  table <- data.frame(step = seq_len(n), lapply(columns, format_positive))
  if (n > 2 * ends + 1) {
    gap <- stats::setNames(rep(list("..."), ncol(table)), names(table))
    first <- seq_len(ends)
    table <- rbind(table[first, ], gap, table[n + 1 - rev(first), ])
  }
  print(table, row.names = FALSE, right = TRUE)
}

# A column of positive numbers in one format, with three digits of the smallest.
format_positive <- function(x) {
  fixed(x, decimals_for(min(x, na.rm = TRUE), 3, least = 3))
}

print_verdict <- function(fit) {
  findings <- c(what_failed(fit$diagnostics), describe_heavy(fit$heavy_tails))
  for (finding in findings) {
    print_line("warning", finding)
  }
  print_line("verdict", format_verdict(fit))
}

format_verdict <- function(fit) {
  n <- NROW(fit$diagnostics)
  n_failed <- length(failed(fit$diagnostics))
  if (n == 0) {
    "no diagnostics: these need several islands"
  } else if (n_failed > 0) {
    sprintf(
      "not to be trusted, %d of %d diagnostics failed: see vignette(\"trouble\")",
      n_failed, n
    )
  } else if (n == 1) {
    "the one diagnostic that applies has passed"
  } else {
    sprintf("all %d diagnostics passed", n)
  }
}
