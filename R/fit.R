# The result of a run, and what can be done with it.

# result: of passes(), or one_pass(); or list(course) where there are no islands. plan: the
# settings that are not those of a single run.
new_fit <- function(sampler, result, plan) {
  course <- result$course
  final <- result$final
  if (is.null(final)) {
    estimate <- combine(course$best$runs)
    draws <- course$best
    draws$island <- rep(1L, nrow(draws$particles))
    steps <- course$best$steps
  } else {
    estimate <- result$estimate
    warn_if_unreliable(
      result$diagnostics, final$islands, plan$precision, estimate$std_error
    )
    draws <- final
    steps <- final$steps[final$steps$island == final$island[1], ]
  }
  structure(
    c(
      estimate,
      list(
        particles = outputs_of(sampler$target, draws$particles),
        log_weights = draws$log_weights,
        island = draws$island,
        schedule = tibble::tibble(
          steps[c("lambda", "step_size", "refresh_rate")],
          kernel = sampler$kernel$name
        ),
        steps = bind_rows(c(lapply(course$records, `[[`, "steps"), list(final$steps))),
        runs = fit_runs(result),
        islands = final$islands,
        logml = estimate$log_z,
        scout = course$scout,
        diagnostics = result$diagnostics
      ),
      sampler[sampler_names],
      plan[setdiff(names(plan), c("islands", "scout", "chooses_kernel"))]
    ),
    # the class and `logml` are what bridgesampling asks of what it compares
    class = c("smc_fit", "bridge")
  )
}

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

# A row for the scout, one for every round, one for the islands of each pass but the last,
# and one for those of the last.
fit_runs <- function(result) {
  course <- result$course
  rounds <- Map(function(record, used) {
    data.frame(record$runs, islands = 1L, used = used)
  }, course$records, course$used)
  rows <- c(
    if (!is.null(course$scout)) list(scout_row(course$scout)),
    rounds,
    course$passes,
    if (!is.null(result$final)) list(final_row(result))
  )
  bind_rows(lapply(rows, function(row) {
    row[setdiff(runs_columns, names(row))] <- NA_real_
    row[runs_columns]
  }))
}

scout_row <- function(scout) {
  data.frame(
    run = "scout", round = NA_integer_, label = NA_character_,
    kernel = NA_character_, biased = NA,
    n_particles = NA_integer_, n_steps = NA_integer_, islands = NA_integer_,
    n_objective_evals = 0L, n_target_evals = scout$n_target_evals,
    n_impossible = scout$n_impossible,
    seconds = scout$seconds, used = TRUE
  )
}

# The islands of a pass together, with the evaluations of its diagnostics.
final_row <- function(result, used = TRUE) {
  islands <- result$final$islands
  label <- result$course$best$runs$label
  row <- as.data.frame(islands[1, setdiff(names(islands), "island")])
  row$run <- "final"
  row$used <- used
  row$label <- if (is.null(label)) "given" else label
  row$kernel <- result$sampler$kernel$name
  row[names(result$estimate)] <- result$estimate
  row$islands <- nrow(islands)
  row$barrier <- mean(islands$barrier, na.rm = TRUE)
  sums <- c("n_objective_evals", "n_target_evals", "n_impossible", "seconds")
  row[sums] <- lapply(islands[sums], sum, na.rm = TRUE)
  row$n_target_evals <- row$n_target_evals + n_edge_trials(result$sampler, result$course)
  row
}

bind_rows <- function(tables) {
  tibble::as_tibble(do.call(rbind, Filter(Negate(is.null), tables)))
}

# printing --------------------------------------------------------------------

#' @export
print.smc_fit <- function(x, ...) {
  runs <- x$runs
  last <- runs[nrow(runs), ]
  ess <- ess_mean(x)
  count <- function(n) trimws(format(n, big.mark = ",", scientific = FALSE))
  line <- function(name, ...) {
    cat(format(paste0(name, ":"), width = 10), ..., "\n", sep = "")
  }
  variables <- if (x$target$dim == 1) "variable" else "variables"
  cat("<smc_fit> ", x$target$label, ", ", x$target$dim, " ", variables, "\n", sep = "")
  line("log Z", format_estimate(x, last))
  for (finding in what_failed(x$diagnostics)) {
    line("warning", finding)
  }
  line(
    "sampler", x$kernel$label, ", ", count(last$n_particles), " particles, ",
    last$n_steps, " steps",
    if (last$islands > 1) sprintf(", %d islands", last$islands)
  )
  line("cost", format_cost(runs, count))
  line(
    "draws", count(nrow(x$particles)), " weighted",
    if (!is.na(ess)) {
      paste0(", worth about ", count(signif(ess, 2)), " independent ones")
    }
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
  by_run <- tapply(runs$n_target_evals, factor(runs$run, unique(runs$run)), sum)
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
  columns <- Filter(function(x) is.numeric(x) && !all(is.na(x)), schedule)
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

converged <- function(fit) if (NROW(fit$diagnostics) > 0) all(fit$diagnostics$passed) else NA

# How many independent draws would give as good means. Of the variables' figures
# this is the harmonic mean, whose inverse is unbiased. By chance few islands may
# agree too well; the weights alone allow no more than Kish's figure. What does not
# vary, as the upper triangle of a Cholesky factor, has no figure.
ess_mean <- function(fit) {
  moments <- weighted_moments(fit)
  mcse <- mcse_mean(fit, moments$mean)
  kish <- 1 / sum(exp(2 * fit$log_weights))
  varies <- which(apply(fit$particles, 2, max) > apply(fit$particles, 2, min))
  min(kish, 1 / mean((mcse / moments$sd)[varies]^2))
}

# summaries -------------------------------------------------------------------

#' Summaries of a fit, as data frames
#'
#' Columns are named as everywhere in the package, with underscores (`std_error`,
#' `conf_low`), and not with the dots of broom.
#'
#' @param object,x a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param what which table (string): `"steps"`, `"parameters"` or `"runs"`.
#' @param conf_level the probability of the intervals of `"parameters"` (number in
#'   (0, 1)).
#' @param ... not used.
#' @return `summary()`: an object of class `summary.smc_fit`, a list with the fit
#'   and `variables`, a data frame with a row a variable: its weighted `mean`, `sd`
#'   and quantiles `q5`, `median` and `q95`, and `mcse`, the Monte Carlo standard
#'   error of the mean, from the spread of the islands (NA for one island).
#'
#'   `tidy()`: a data frame. `"steps"`: `fit$steps`, a row a run and step.
#'   `"parameters"`: a row a variable, with `term`, `estimate` (the posterior mean),
#'   `std_error` (the posterior standard deviation), `conf_low` and `conf_high` (the
#'   weighted quantiles that bound the central interval). `"runs"`: `fit$runs`, a row a
#'   round, and one for the final islands together.
#'
#'   `glance()`: a data frame of one row with `log_z`, `std_error`, `conf_low`,
#'   `conf_high`, `biased`, `kernel`, `dim`, `n_particles`, `n_steps`, `islands`,
#'   `converged` (whether all of the fit's diagnostics have passed; NA where there are
#'   none), `ess_mean`, `n_objective_evals`, `n_target_evals` and `seconds` (of all runs
#'   together) and `seed`. `ess_mean` is how many independent draws would give means as
#'   precise as those of the fit: the harmonic mean over variables of `(sd / mcse)^2`,
#'   at most Kish's effective sample size of the weights, and NA for one island. Kish's
#'   by itself, as `ess` of the steps and islands, does not see that particles share
#'   ancestors, and can be several times as high.
#'
#'   `augment()`: a data frame with a row a particle: the target's variables,
#'   `.island`, `.weight` (the weights of all islands together sum to one) and
#'   `.log_weight`.
#' @section Errors: `autosmc_error_input` when an argument is not what it should be.
#' @source The estimate of a mean is the ratio of two means over islands, of
#'   `exp(log_z)` times the island's own weighted mean, and of `exp(log_z)`; `mcse` is
#'   its standard error by the delta method.
#' @name summary.smc_fit
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 256, n_steps = 8)
#' summary(fit)
#' tidy(fit)
#' tidy(fit, "parameters", conf_level = 0.9)
#' glance(fit)
#' augment(fit)
NULL

#' @rdname summary.smc_fit
#' @export
summary.smc_fit <- function(object, ...) {
  check_dots_empty(...)
  moments <- weighted_moments(object)
  quantiles <- weighted_quantiles(object, c(0.05, 0.5, 0.95))
  variables <- tibble::tibble(
    variable = colnames(object$particles),
    mean = moments$mean,
    sd = moments$sd,
    q5 = quantiles[1, ],
    median = quantiles[2, ],
    q95 = quantiles[3, ],
    mcse = mcse_mean(object, moments$mean)
  )
  structure(
    list(fit = object, variables = variables),
    class = "summary.smc_fit"
  )
}

weighted_moments <- function(fit) {
  w <- exp(fit$log_weights)
  mean <- colSums(w * fit$particles)
  centred <- sweep(fit$particles, 2, mean)
  list(mean = unname(mean), sd = unname(sqrt(colSums(w * centred^2))))
}

# The inverse of the weighted distribution functions: a row a probability, a column a
# variable.
weighted_quantiles <- function(fit, p) {
  w <- exp(fit$log_weights)
  quantiles <- vapply(seq_len(ncol(fit$particles)), function(j) {
    x <- fit$particles[, j]
    order <- order(x)
    x[order][invert_distribution(w[order], p)]
  }, p)
  matrix(quantiles, length(p))
}

# For each island, its share in the estimate times how far its own mean is off; an
# island in which all died has no share.
mcse_mean <- function(fit, mean) {
  n <- NROW(fit$islands)
  if (n < 2) {
    return(rep(NA_real_, length(mean)))
  }
  centred <- sweep(fit$particles, 2, mean)
  errors <- rowsum(exp(fit$log_weights) * centred, fit$island)
  unname(sqrt(n / (n - 1) * colSums(errors^2)))
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

#' @importFrom generics augment
#' @export
generics::augment

#' @rdname summary.smc_fit
#' @export
tidy.smc_fit <- function(
  x,
  what = c("steps", "parameters", "runs"),
  conf_level = 0.95,
  ...
) {
  what <- check_choice(what, "what", c("steps", "parameters", "runs"))
  conf_level <- check_number(conf_level, "conf_level", 0, 1, open = TRUE)
  check_dots_empty(...)
  switch(what,
    steps = x$steps,
    parameters = parameters_table(x, conf_level),
    runs = x$runs
  )
}

parameters_table <- function(fit, conf_level) {
  moments <- weighted_moments(fit)
  quantiles <- weighted_quantiles(fit, (1 + c(-1, 1) * conf_level) / 2)
  tibble::tibble(
    term = colnames(fit$particles),
    estimate = moments$mean,
    std_error = moments$sd,
    conf_low = quantiles[1, ],
    conf_high = quantiles[2, ]
  )
}

#' @rdname summary.smc_fit
#' @export
augment.smc_fit <- function(x, ...) {
  check_dots_empty(...)
  tibble::tibble(
    tibble::as_tibble(x$particles),
    .island = x$island,
    .weight = exp(x$log_weights),
    .log_weight = x$log_weights
  )
}

#' @rdname summary.smc_fit
#' @export
glance.smc_fit <- function(x, ...) {
  check_dots_empty(...)
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
    converged = converged(x),
    ess_mean = ess_mean(x),
    n_objective_evals = sum(runs$n_objective_evals),
    n_target_evals = sum(runs$n_target_evals),
    seconds = sum(runs$seconds),
    seed = x$seed
  )
}
