# What the plots of a fit show, as data frames.

# `fit$steps` with the `series` that a row belongs to, a factor, in which rounds are told
# apart but islands are not, and the `line`, in which islands are too. Both are in the
# order in which they are drawn.
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

# A row a panel, line and step: `panel` (factor), `series`, `line`, `step`, `value`;
# `low` and `high`, which the panel is to show in any case, or NA; and `joined`, whether
# it is a point of a curve. What jumps up and down is easier to read as points.
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

# A row a line and step, and one for each line's start: `series`, `line`, `lambda`,
# `barrier`.
barrier_data <- function(fit) {
  steps <- lines_data(fit)[c("series", "line", "lambda", "barrier")]
  start <- steps[!duplicated(steps$line), ]
  start[c("lambda", "barrier")] <- 0
  rbind(start, steps)
}

# The plots of the overview for which there is something to show: a list of tables.
overview_data <- function(fit, variables) {
  has_islands <- NROW(fit$islands) > 1
  list(
    islands = if (has_islands) islands_data(fit),
    diagnostics = if (NROW(fit$diagnostics) > 0) diagnostics_data(fit),
    draws = if (is.null(fit$moments) || !has_islands) draws_data(fit, variables, most = 4)
  )
}

# A row a diagnostic, the first one on top: `name`, `at` (the place on the axis), `ratio` of
# value and limit, `passed`, and `verdict`, that in words.
diagnostics_data <- function(fit) {
  diagnostics <- fit$diagnostics
  n <- NROW(diagnostics)
  if (n == 0) {
    abort("{.code what = \"diagnostics\"} needs a fit that has some; this one has none.")
  }
  passed <- diagnostics$passed
  limit <- diagnostics$limit
  has_scale <- is.finite(limit) & limit > 0
  ratio <- diagnostics$value / ifelse(has_scale, limit, 1)
  # some fail below their limit: of these the inverse is beyond 1 where they fail, too
  ratio <- ifelse(has_scale & passed == (ratio > 1), 1 / ratio, ratio)
  # where the limit is 0 anything is beyond it
  ratio[!passed] <- pmax(ratio[!passed], 1)
  data.frame(
    name = plain_names(diagnostics$name),
    at = rev(seq_len(n)),
    ratio = ifelse(is.na(ratio), 0, pmin(pmax(ratio, 0), 2)),
    passed = passed,
    verdict = ifelse(passed, "passed", "failed")
  )
}

# A row an island, and below these the estimates from all of them, that of the fit last: `kind` ("island", "dead",
# "smc" where the fit has the bridge, or "fit"), `at` (the place on the axis), its `label`, `log_z`, `conf_low`,
# `conf_high`.
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

# A row a panel and model of a comparison, in the order of most_probable(): `panel` (factor), `model`, `at`, `value`, and
# `low` and `high`, two standard errors away, but no probability beyond 0 and 1; and the value as `text`, of which the end
# that `hjust` says (1: the right one) is `beside` them, with `room` up to there. Models for which there is no room are
# one row of the second panel.
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

# The panels of a calibration: `shares`, the bins with `mean_prob`, `share_true`, `low`, `high`; and `factors`, a row a
# true model: `name`, `at` (the first one on top; negative, where an axis of shares has no numbers), and quantiles of
# the log10 Bayes factor.
calibration_data <- function(calibration) {
  factors <- calibration$bayes_factors
  factors <- data.frame(
    name = factors$model, at = -seq_along(factors$model),
    low = factors$log10_low, middle = factors$log10_median, high = factors$log10_high
  )
  list(shares = as.data.frame(calibration$bins), factors = factors[is.finite(factors$middle), ])
}

calibration_panels <- c("posterior probability", "log10 Bayes factor of the true model")

# A row a variable and bar of its histogram: `variable` (factor), `from`, `to`, `density`.
draws_data <- function(fit, variables, most = 6) {
  check_has_draws(fit)
  variables <- varying_variables(fit, variables, most)
  bars <- lapply(variables, function(name) {
    bars <- weighted_histogram(fit$particles[, name], exp(fit$log_weights))
    cbind(variable = factor(name, variables), bars)
  })
  do.call(rbind, bars)
}

# Those given that vary, or the first ones: what is constant, or no number everywhere, has no density.
varying_variables <- function(fit, variables, most) {
  names <- colnames(fit$particles)
  if (!is.null(variables)) names <- check_variables(variables, names)
  varies <- varying_columns(fit$particles[fit$log_weights > -Inf, names, drop = FALSE]) %in% TRUE
  if (!is.null(variables) && !any(varies)) {
    abort("{.arg variables}: there is no density of what does not vary, as {.field {utils::head(names, 3)}}.")
  }
  if (is.null(variables)) utils::head(names[varies], most) else names[varies]
}

# A row a draw and panel, of so many draws that all weigh the same: `panel` (factor), `x`, `y`,
# and the names of these, `x_name`, `y_name`; `reach`, how far both axes go, where they have the same scale.
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

# As many bars as Rice's rule asks for at this effective sample size, over all draws but the outermost 0.1 % on either
# side: of a heavy tail one bar would be all that is seen.
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
