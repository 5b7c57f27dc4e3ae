# The tables that the plots show; both kinds of graphics draw them.

# `fit$steps` with two factors, in the order in which they are drawn: `series`, in which each round is a level and all
# islands are one; and `line`, in which each island is a level, too.
lines_data <- function(fit) {
  steps <- fit$steps
  runs <- fit$runs
  rounds <- runs[runs$run == "adapt", ]
  labels <- sprintf("round %d%s", rounds$round, ifelse(rounds$used, "", " (unused)"))
  final <- if (isTRUE(nrow(fit$islands) > 1)) "final islands" else "final"
  is_final <- steps$run == "final"
  series <- ifelse(is_final, final, labels[match(steps$round, rounds$round)])
  steps$series <- factor(series, c(labels, if (any(is_final)) final))
  line <- paste(series, steps$island)
  steps$line <- factor(line, unique(line))
  steps
}

# A row for each panel, line and step: `panel` (factor), `series`, `line`, `step`, `value`; `low` and `high`, values
# that the axis must include, or NA; and `joined`, whether the value is drawn as part of a line, not as a point.
run_data <- function(fit) {
  steps <- lines_data(fit)
  columns <- steps[c("series", "line", "step")]
  is_long <- steps$line %in% steps$line[steps$step > 1]
  panel <- function(name, value, low = NA_real_, high = NA_real_, jumps = FALSE) {
    rows <- cbind(panel = name, columns, value = value, low = low, high = high)
    rows$joined <- is_long & !jumps
    rows[!is.na(value), ]
  }
  data <- rbind(
    panel("temperature", steps$lambda, 0, 1),
    panel("log10 step size", log10(steps$step_size)),
    panel("refreshment rate", steps$refresh_rate, 0, 1, jumps = TRUE),
    panel("acceptance", steps$acceptance, 0, 1),
    panel("ESS / particles", steps$ess / fit$n_particles, 0, 1, jumps = TRUE),
    panel("cumulative barrier", steps$barrier, 0),
    panel("log Z", steps$log_z)
  )
  data$panel <- factor(data$panel, unique(data$panel))
  data
}

# A row for each line and step, and for the start of each line: `series`, `line`, `lambda`, `barrier`.
barrier_data <- function(fit) {
  steps <- lines_data(fit)[c("series", "line", "lambda", "barrier")]
  start <- steps[!duplicated(steps$line), ]
  start[c("lambda", "barrier")] <- 0
  rbind(start, steps)
}

# The tables of the overview, a list; NULL for a panel that does not apply.
overview_data <- function(fit, variables) {
  has_islands <- NROW(fit$islands) > 1
  list(
    islands = if (has_islands) islands_data(fit),
    diagnostics = if (NROW(fit$diagnostics) > 0) diagnostics_data(fit),
    draws = if (is.null(fit$moments) || !has_islands) draws_data(fit, variables, most = 4)
  )
}

# A row for each diagnostic, the first one on top: `name`, `at` (its vertical position), `ratio` of value and limit,
# `passed`, and `verdict`, "passed" or "failed".
diagnostics_data <- function(fit) {
  diagnostics <- fit$diagnostics
  n <- NROW(diagnostics)
  if (n == 0) {
    abort("{.code what = \"diagnostics\"} needs a fit with diagnostics; this one has none.")
  }
  passed <- diagnostics$passed
  limit <- diagnostics$limit
  has_scale <- is.finite(limit) & limit > 0
  ratio <- diagnostics$value / ifelse(has_scale, limit, 1)
  # for diagnostics that fail below their limit, the inverse: it is above 1 if they fail
  ratio <- ifelse(has_scale & passed == (ratio > 1), 1 / ratio, ratio)
  # a failed diagnostic with the limit 0
  ratio[!passed] <- pmax(ratio[!passed], 1)
  data.frame(
    name = plain_names(diagnostics$name),
    at = rev(seq_len(n)),
    ratio = ifelse(is.na(ratio), 0, pmin(pmax(ratio, 0), 2)),
    passed = passed,
    verdict = ifelse(passed, "passed", "failed")
  )
}

# A row for each island, and below these the estimates from all of them, that of the fit last: `kind` ("island",
# "dead", "smc" if the fit reports the bridge, or "fit"), `at` (its vertical position), its `label`, `log_z`,
# `conf_low`, `conf_high`.
islands_data <- function(fit) {
  islands <- fit$islands
  n <- NROW(islands)
  if (n < 2) {
    abort(c(
      "{.code what = \"islands\"} needs a fit with several islands; this one has {n}.",
      "i" = "Islands are made by {.fn smc} and {.fn smc_run}; the argument is {.arg islands}."
    ))
  }
  estimates <- fit$estimates
  is_fit <- estimates$method == headline(estimates)$method
  estimates <- rbind(if (is_bridged(fit)) estimates[!is_fit, ], estimates[is_fit, ])
  data.frame(
    kind = c(ifelse(islands$log_z == -Inf, "dead", "island"), if (nrow(estimates) == 2) "smc", "fit"),
    at = c(seq_len(n), -0.07 * n * seq_len(nrow(estimates))),
    label = c(seq_len(n), ifelse(estimates$method == "smc", "SMC", "bridge")),
    log_z = c(islands$log_z, estimates$log_z),
    conf_low = c(rep(NA, n), estimates$conf_low),
    conf_high = c(rep(NA, n), estimates$conf_high)
  )
}

# A row for each panel and model of a comparison, in the order of most_probable(): `panel` (factor), `model`, `at`,
# `value`; `low` and `high`, the interval of two standard errors, for probabilities within 0 and 1; the value as `text`,
# drawn at the position `beside` with the justification `hjust`; and `room`, a value that the axis must include. Models
# beyond the first ones are a single row of the second panel.
evidence_data <- function(comparison) {
  ranked <- most_probable(comparison)
  shown <- ranked$first
  n_more <- nrow(ranked$rest)
  panels <- c("log Bayes factor", "posterior probability")
  with_rest <- function(x, of_rest) c(x, if (n_more > 0) of_rest)
  names <- with_rest(shown$model, count_of(n_more, "other"))
  panel <- function(name, value, error, least, most, text, hjust) {
    error <- with_rest(ifelse(is.na(error), 0, error), 0)
    low <- pmax(value - 2 * error, least)
    high <- pmin(value + 2 * error, most)
    data.frame(
      panel = factor(name, panels), model = names, at = rev(seq_along(names)), value = value,
      low = low, high = high, text = text, hjust = hjust, beside = if (hjust == 1) low else high,
      room = if (hjust == 1) 1.5 * min(low, na.rm = TRUE) else 1.5 * max(high)
    )
  }
  log_bf <- with_rest(shown$log_bf, NA)
  post_prob <- with_rest(shown$post_prob, sum(ranked$rest$post_prob))
  rbind(
    panel(panels[1], log_bf, shown$log_bf_error, -Inf, Inf, with_rest(format(shown)$log_bf, ""), 1),
    panel(panels[2], post_prob, shown$post_prob_error, 0, 1, format_probability(post_prob), 0)
  )
}

# The panels of a calibration: `shares`, the bins with `mean_prob`, `share_true`, `low`, `high`; and `factors`, a row
# for each true model: `name`, `at` (the first one on top; negative, where the axis of shares has no labels), and
# quantiles of the log10 Bayes factor.
calibration_data <- function(calibration) {
  factors <- calibration$bayes_factors
  factors <- data.frame(
    name = factors$model, at = -seq_along(factors$model),
    low = factors$log10_low, middle = factors$log10_median, high = factors$log10_high
  )
  list(shares = as.data.frame(calibration$bins), factors = factors[is.finite(factors$middle), ])
}

calibration_panels <- c("posterior probability", "log10 Bayes factor of the true model")

# A row for each variable and bar of its histogram: `variable` (factor), `from`, `to`, `density`.
draws_data <- function(fit, variables, most = 6) {
  check_has_draws(fit)
  variables <- varying_variables(fit, variables, most)
  bars <- lapply(variables, function(name) {
    bars <- weighted_histogram(fit$particles[, name], exp(fit$log_weights))
    cbind(variable = factor(name, variables), bars)
  })
  do.call(rbind, bars)
}

# The names of the given variables (NULL: the first `most` ones) that are neither constant nor NaN.
varying_variables <- function(fit, variables, most) {
  names <- colnames(fit$particles)
  if (!is.null(variables)) names <- check_variables(variables, names)
  varies <- varying_columns(fit$particles[fit$log_weights > -Inf, names, drop = FALSE]) %in% TRUE
  if (!is.null(variables) && !any(varies)) {
    abort("{.arg variables} must vary over the draws; {.field {utils::head(names, 3)}} {?does/do} not.")
  }
  if (is.null(variables)) utils::head(names[varies], most) else names[varies]
}

# A row for each panel and draw, of draws of equal weight: `panel` (factor), `x`, `y`, their names `x_name`, `y_name`,
# and `reach`, the limit of both axes where they have the same scale, else NA.
maps_data <- function(fit) {
  check_has_draws(fit)
  check_has_state(fit, "the plot needs the coordinates of its draws")
  reference <- fit$reference
  z <- fit$state$draws$coordinates
  if (length(conditioning_of(reference)) == 0 || is.null(z)) {
    abort(c(
      "{.code what = \"maps\"} needs a fit with islands in which variables depend on others.",
      "i" = "{.code fit$maps} says what was found."
    ))
  }
  draws <- pool(hold_islands(fit$state$records, pooled_draws(fit)), reference)
  x <- unconstrained_particles(draws)
  pair <- with_seed(seed_of_run(fit$seed, plot_key), clearest_pair(reference, fit$target$dim))
  rows <- resample_systematic(draws$log_weights, n_described)
  names <- coordinate_names(fit$target)
  panels <- c("as they are", "in the coordinates of the reference")
  panel <- function(name, x, y, names, reach) {
    data.frame(panel = factor(name, panels), x = x, y = y, x_name = names[1], y_name = names[2], reach = reach)
  }
  moved <- z[rows, pair[c(1, 3)]]
  rbind(
    panel(panels[1], x[rows, pair[1]], x[rows, pair[2]], names[pair[1:2]], NA),
    panel(panels[2], moved[, 1], moved[, 2], paste("coordinate of", names[pair[1:2]]), max(abs(moved)))
  )
}

# A weighted histogram, with the number of bars of Rice's rule at the effective sample size. The outermost 0.1 % on
# either side are left out: with heavy tails there would be a single bar.
weighted_histogram <- function(x, w) {
  ranked <- order(x)
  ends <- x[ranked][invert_distribution(w[ranked], c(0.001, 0.999))]
  shown <- w > 0 & x >= ends[1] & x <= ends[2]
  x <- x[shown]
  w <- w[shown] / sum(w)
  breaks <- pretty(range(x), 2 / sum(w^2)^(1 / 3))
  n <- length(breaks) - 1
  bar <- findInterval(x, breaks, all.inside = TRUE)
  weight <- vapply(split(w, factor(bar, seq_len(n))), sum, 0)
  data.frame(from = breaks[-(n + 1)], to = breaks[-1], density = unname(weight) / diff(breaks))
}
