# Plots of a fit. ggplot2 and R's own graphics draw the same data frames, which
# hold everything but the looks, so the two cannot disagree.

#' Plots of a fit
#'
#' `plot()` draws with R's own graphics, `autoplot()` makes the same plot with
#' ggplot2.
#'
#' * `"overview"`: what to look at first. The islands' estimates, the diagnostics, and the
#'   histograms of the first four variables; the first two where there are any.
#' * `"run"`: a panel each, by step, for the temperature, the logarithm of the step
#'   size (on the scale of the reference), the refreshment rate of [kernel_klmc()] or the
#'   acceptance probability of [kernel_mala()] and [kernel_rwmh()], the effective sample
#'   size (ESS) as a fraction of the particles, the cumulative barrier, and log Z up to
#'   that step. A line for each round of adaptation, and a thin black one for each final
#'   island; the refreshment rate and the ESS, which jump, are points.
#' * `"islands"`: the islands' estimates of log Z above the estimate of the fit with its
#'   95 % interval. For an island in which all particles died there is a `-Inf` at the
#'   left edge.
#' * `"diagnostics"`: a bar each, as a fraction of its limit, cut off at 2. Those that
#'   have failed are beyond the line.
#' * `"barrier"`: the cumulative barrier against the temperature, with the same lines:
#'   where it rises steeply the path is hard.
#' * `"draws"`: weighted histograms of the draws, without the outermost 0.1 % on either side.
#' * `"maps"`: what the fitted reference has made of the draws. The pair of variables of which
#'   one depends most on the other, as it is (on the unconstrained scale) and in the
#'   coordinates in which particles move, where it should look like a round cloud. `fit$maps`
#'   says in words what depends on what.
#'
#' @param x,object a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param what which plot: one of `"overview"`, `"run"`, `"islands"`, `"diagnostics"`,
#'   `"barrier"`, `"draws"` and `"maps"`.
#' @param variables for `what = "draws"` and `"overview"`, which variables (character vector
#'   of names); NULL for the first six, or four, or all where there are fewer.
#' @param ... not used.
#' @return `plot()`: the fit, invisibly. `autoplot()`: a ggplot, to which scales, themes
#'   and titles can be added.
#' @section Errors: Of class `autosmc_error_input`, when an argument is not what it
#'   should be, for the `"islands"` of a fit with fewer than two, for the `"diagnostics"`
#'   of one that has none, and for the `"maps"` of one in which no variable depends on another.
#' @source The barrier: Syed, Bouchard-Cote, Chern and Doucet (2024), *Optimised annealed
#'   sequential Monte Carlo samplers*. The colours: Okabe and Ito (2008), *Color universal
#'   design*; the line types differ as well.
#' @examples
#' target <- target_gaussian(2, mean = 2)
#' fit <- smc(target, n_particles = 128, n_steps = 8, seed = 1)
#' plot(fit)
#' plot(fit, "run")
#' plot(fit, "draws", variables = "x2")
#'
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' ggplot2::autoplot(fit, "islands")
#' @export
plot.smc_fit <- function(
  x,
  what = c("overview", "run", "islands", "diagnostics", "barrier", "draws", "maps"),
  variables = NULL,
  ...
) {
  check_dots_empty(...)
  check_has_runs(x)
  engine <- list(
    overview = base_overview,
    run = base_run,
    islands = base_islands,
    diagnostics = base_diagnostics,
    barrier = base_barrier,
    draws = base_draws,
    maps = base_maps
  )
  draw_picture(engine, x, what, variables)
  invisible(x)
}

#' @rdname plot.smc_fit
#' @method autoplot smc_fit
#' @rawNamespace S3method(ggplot2::autoplot, smc_fit)
autoplot.smc_fit <- function(
  object,
  what = c("overview", "run", "islands", "diagnostics", "barrier", "draws", "maps"),
  variables = NULL,
  ...
) {
  check_dots_empty(...)
  check_has_runs(object)
  engine <- list(
    overview = gg_overview,
    run = gg_run,
    islands = gg_islands,
    diagnostics = gg_diagnostics,
    barrier = gg_barrier,
    draws = gg_draws,
    maps = gg_maps
  )
  draw_picture(engine, object, what, variables)
}

# what is drawn ---------------------------------------------------------------

# engine: a function for each plot, of the data frame that the plot shows.
draw_picture <- function(engine, fit, what, variables) {
  what <- check_choice(what, "what", names(engine))
  if (!what %in% c("draws", "overview") && !is.null(variables)) {
    abort(
      "{.arg variables} goes with {.code what = \"draws\"} or {.code \"overview\"} only.",
      "input"
    )
  }
  most <- if (what == "draws") 6 else 4
  variables <- check_variables(variables, colnames(fit$particles), most = most)
  data <- switch(what,
    overview = overview_data(fit, variables),
    run = run_data(fit),
    islands = islands_data(fit),
    diagnostics = diagnostics_data(fit),
    barrier = barrier_data(fit),
    draws = draws_data(fit, variables),
    maps = maps_data(fit)
  )
  engine[[what]](data)
}

check_variables <- function(variables, names, arg = "variables", most = 6) {
  if (is.null(variables)) {
    return(utils::head(names, most))
  }
  if (!is.character(variables) || length(variables) == 0) {
    abort_argument(variables, arg, "NULL or names of variables")
  }
  # "tau" for all elements of a vector or matrix
  variables <- unlist(lapply(variables, function(variable) {
    elements <- names[startsWith(names, paste0(variable, "["))]
    if (variable %in% names || length(elements) == 0) variable else elements
  }))
  unknown <- setdiff(variables, names)
  if (length(unknown) > 0) {
    abort(
      c(
        "{.arg {arg}} must be names of variables; there is no {.val {unknown}}.",
        "i" = "There {?is/are} {.val {names}}."
      ),
      "input"
    )
  }
  unique(variables)
}

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
    draws = if (is.null(fit$moments) || !has_islands) draws_data(fit, variables)
  )
}

# A row a diagnostic, the first one on top: `name`, `at` (the place on the axis), `ratio` of
# value and limit, `passed`.
diagnostics_data <- function(fit) {
  diagnostics <- fit$diagnostics
  n <- NROW(diagnostics)
  if (n == 0) {
    abort("{.code what = \"diagnostics\"} needs a fit that has some; this one has none.", "input")
  }
  limit <- diagnostics$limit
  ratio <- diagnostics$value / ifelse(is.finite(limit) & limit > 0, limit, 1)
  # where the limit is 0 anything is beyond it
  ratio[!diagnostics$passed] <- pmax(ratio[!diagnostics$passed], 1)
  data.frame(
    name = gsub("_", " ", diagnostics$name),
    at = rev(seq_len(n)),
    ratio = ifelse(is.na(ratio), 0, pmin(pmax(ratio, 0), 2)),
    passed = diagnostics$passed
  )
}

# A row an island, and a last one for all of them: `kind` ("island", "dead" or
# "fit"), `at` (the place on the axis), `log_z`, `conf_low`, `conf_high`.
islands_data <- function(fit) {
  islands <- fit$islands
  n <- NROW(islands)
  if (n < 2) {
    abort(
      c(
        "{.code what = \"islands\"} needs a fit with several islands; this one has {n}.",
        "i" = "Islands are made by {.fn smc} and {.fn smc_run}; the argument is
          {.arg islands}."
      ),
      "input"
    )
  }
  data.frame(
    kind = c(ifelse(islands$log_z == -Inf, "dead", "island"), "fit"),
    at = c(seq_len(n), -0.05 * n),
    log_z = c(islands$log_z, fit$log_z),
    conf_low = c(rep(NA, n), fit$conf_low),
    conf_high = c(rep(NA, n), fit$conf_high)
  )
}

# A row a panel and model of a comparison, the first model on top: `panel` (factor), `model`, `at`, `value`, and `low` and
# `high`, two standard errors away, but no probability beyond 0 and 1.
evidence_data <- function(comparison) {
  n <- nrow(comparison)
  panels <- c("log Bayes factor", "posterior probability")
  panel <- function(name, value, error, least, most) {
    error <- ifelse(is.na(error), 0, error)
    data.frame(
      panel = factor(name, panels), model = comparison$model, at = rev(seq_len(n)), value = value,
      low = pmax(value - 2 * error, least), high = pmin(value + 2 * error, most)
    )
  }
  rbind(
    panel(panels[1], comparison$log_bf, comparison$log_bf_error, -Inf, Inf),
    panel(panels[2], comparison$post_prob, comparison$post_prob_error, 0, 1)
  )
}

# A row a variable and bar of its histogram: `variable` (factor), `from`, `to`, `density`.
draws_data <- function(fit, variables) {
  check_has_draws(fit)
  bars <- lapply(variables, function(name) {
    bars <- weighted_histogram(fit$particles[, name], exp(fit$log_weights))
    cbind(variable = factor(name, variables), bars)
  })
  do.call(rbind, bars)
}

# A row a draw and panel, of so many draws that all weigh the same: `panel` (factor), `x`, `y`,
# and the names of these, `x_name`, `y_name`.
maps_data <- function(fit) {
  check_has_draws(fit)
  check_has_state(fit, "the plot needs the coordinates of its draws")
  reference <- fit$reference
  z <- fit$state$draws$coordinates
  if (length(conditioning_of(reference)) == 0 || is.null(z)) {
    abort(
      c(
        "{.code what = \"maps\"} needs a fit with islands in which variables depend on others.",
        "i" = "{.code fit$maps} says what was found."
      ),
      "input"
    )
  }
  draws <- pool(hold_islands(fit$state$records, pooled_draws(fit)), reference)
  x <- unconstrained_particles(draws)
  pair <- clearest_pair(reference, fit$target$dim)
  rows <- resample_systematic(draws$log_weights, rules$n_described)
  names <- coordinate_names(fit$target)
  panels <- c("as they are", "in the coordinates of the reference")
  panel <- function(name, x, k, j) {
    data.frame(
      panel = factor(name, panels), x = x[rows, k], y = x[rows, j],
      x_name = names[pair[1]], y_name = names[pair[2]]
    )
  }
  rbind(panel(panels[1], x, pair[1], pair[2]), panel(panels[2], z, pair[1], pair[3]))
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
  data.frame(
    from = breaks[-(n + 1)],
    to = breaks[-1],
    density = unname(weight) / diff(breaks)
  )
}

# looks -----------------------------------------------------------------------

okabe_ito <- c(
  blue = "#0072B2",
  vermillion = "#D55E00",
  green = "#009E73",
  purple = "#CC79A7",
  orange = "#E69F00",
  sky_blue = "#56B4E9"
)

# A row a series. Numbers of colours and of line types without a common divisor, so
# that all of thirty rounds differ.
series_looks <- function(series) {
  names <- levels(series)
  n <- length(names)
  types <- c("solid", "longdash", "dotdash", "22", "twodash")
  looks <- data.frame(
    colour = rep_len(okabe_ito, n),
    type = rep_len(types, n),
    width = 2.4,
    row.names = names
  )
  # thin, for islands are many, and lie upon the round that they repeat
  looks[grepl("^final", names), ] <- list("black", "solid", 0.6)
  looks
}

diagnostics_axis <- "diagnostics (limit: 1)"

diagnostics_colours <- c("TRUE" = okabe_ito[["sky_blue"]], "FALSE" = okabe_ito[["vermillion"]])

# Legends are below the panels, in rows for which a plot 5 inches wide has room.
legend_columns <- function(series) {
  min(nlevels(series), 56 %/% max(nchar(levels(series))))
}

whole_breaks <- function(x) unique(round(pretty(x, 4)))

islands_breaks <- function(data) {
  own <- data$at[data$kind != "fit"]
  breaks <- intersect(whole_breaks(own), own)
  list(at = c(data$at[data$kind == "fit"], breaks), labels = c("fit", breaks))
}

# Names too long for an axis lose their middle.
shorten <- function(names, width = 24) {
  half <- width / 2 - 2
  n <- nchar(names)
  short <- paste0(substr(names, 1, half + 1), "...", substr(names, n - half + 1, n))
  ifelse(n > width, short, names)
}

# R's graphics ----------------------------------------------------------------

# Room for n panels, and for some lines of text below them all. Returns what was set
# before, in the order in which it can be set again: margins are in lines of the size of
# text, which the number of panels changes. A single panel leaves the user's own layout
# as it is, and finds its place in it.
set_panels <- function(n = 1, lines_below = 0) {
  several <- n > 1
  old <- graphics::par(c(if (several) c("mfrow", "cex", "oma"), "mar", "mgp", "tcl"))
  if (several) {
    graphics::par(mfrow = rev(grDevices::n2mfrow(n)), oma = c(lines_below, 0, 0, 0))
    lines_below <- 0
  }
  graphics::par(
    mar = c(3.2 + lines_below, 3.2, 0.8, 0.8),
    mgp = c(2, 0.5, 0),
    tcl = -0.3
  )
  old
}

set_panels_with_legend <- function(n, series) {
  rows <- ceiling(nlevels(series) / legend_columns(series))
  set_panels(n, lines_below = if (nlevels(series) > 1) 0.8 + 1.2 * rows else 0)
}

# of: below the whole page ("ndc") or below this panel ("nfc").
base_legend <- function(series, of) {
  if (nlevels(series) == 1) {
    return()
  }
  looks <- series_looks(series)
  graphics::legend(
    graphics::grconvertX(0.5, of),
    graphics::grconvertY(0, of),
    row.names(looks),
    col = looks$colour,
    lty = looks$type,
    lwd = looks$width,
    cex = 0.7 / graphics::par("cex"),
    seg.len = 2.5,
    x.intersp = 0.6,
    ncol = legend_columns(series),
    bty = "n",
    xjust = 0.5,
    yjust = 0,
    xpd = NA
  )
}

base_frame <- function(x, y, xlab, ylab, xaxt = "s", yaxt = "s") {
  limits <- function(v) range(v[is.finite(v)])
  plot(
    NA,
    xlim = limits(x), ylim = limits(y), xlab = xlab, ylab = ylab, xaxt = xaxt, yaxt = yaxt
  )
}

base_lines <- function(x, y, data) {
  looks <- series_looks(data$series)
  for (i in split(seq_along(x), data$line, drop = TRUE)) {
    look <- looks[as.character(data$series[i[1]]), ]
    graphics::lines(x[i], y[i], col = look$colour, lty = look$type, lwd = look$width)
  }
}

base_run <- function(data) {
  panels <- split(data, data$panel)
  old <- set_panels_with_legend(length(panels), data$series)
  on.exit(graphics::par(old))
  for (name in names(panels)) {
    panel <- panels[[name]]
    y <- c(panel$value, panel$low, panel$high)
    base_frame(panel$step, y, "step", name, xaxt = "n")
    graphics::axis(1, whole_breaks(panel$step))
    curves <- panel[panel$joined, ]
    base_lines(curves$step, curves$value, curves)
    dots <- panel[!panel$joined, ]
    colour <- series_looks(dots$series)[as.character(dots$series), "colour"]
    graphics::points(dots$step, dots$value, col = colour, pch = 20, cex = 0.5)
  }
  base_legend(data$series, "ndc")
}

base_barrier <- function(data) {
  old <- set_panels_with_legend(1, data$series)
  on.exit(graphics::par(old))
  base_frame(data$lambda, data$barrier, "temperature", "cumulative barrier")
  base_lines(data$lambda, data$barrier, data)
  base_legend(data$series, "nfc")
}

base_overview <- function(data) {
  variables <- if (!is.null(data$draws)) split(data$draws, data$draws$variable)
  old <- set_panels(sum(lengths(data[c("islands", "diagnostics")]) > 0) + length(variables))
  on.exit(graphics::par(old))
  if (!is.null(data$islands)) {
    base_islands(data$islands)
  }
  if (!is.null(data$diagnostics)) {
    base_diagnostics(data$diagnostics)
  }
  for (bars in variables) {
    base_draws(transform(bars, variable = droplevels(bars$variable)))
  }
}

base_islands <- function(data) {
  old <- set_panels()
  on.exit(graphics::par(old))
  x <- c(data$log_z, data$conf_low, data$conf_high)
  base_frame(x, data$at, "log Z", "island", yaxt = "n")
  breaks <- islands_breaks(data)
  graphics::axis(2, breaks$at, breaks$labels)
  estimate <- data[data$kind == "fit", ]
  island <- data[data$kind == "island", ]
  colour <- okabe_ito["vermillion"]
  graphics::abline(v = estimate$log_z, col = colour, lty = "dotted")
  graphics::points(island$log_z, island$at, pch = 19)
  for (at in data$at[data$kind == "dead"]) {
    graphics::text(graphics::par("usr")[1], at, " -Inf", adj = c(0, 0.5))
  }
  graphics::segments(
    estimate$conf_low, estimate$at, estimate$conf_high,
    col = colour, lwd = 2
  )
  graphics::points(estimate$log_z, estimate$at, pch = 18, cex = 1.5, col = colour)
}

base_diagnostics <- function(data) {
  old <- set_panels()
  on.exit(graphics::par(old))
  base_frame(c(0, 1, data$ratio), range(data$at) + c(-0.5, 0.5), diagnostics_axis, "", yaxt = "n")
  colour <- diagnostics_colours[as.character(data$passed)]
  graphics::rect(0, data$at - 0.4, data$ratio, data$at + 0.4, col = colour, border = NA)
  graphics::abline(v = 1, lty = "dotted")
  graphics::text(0, data$at, data$name, adj = c(0, 0.5), cex = 0.8)
}

base_draws <- function(data) {
  each_panel(split(data, data$variable), function(bars, name) {
    base_frame(c(bars$from, bars$to), c(0, bars$density), shorten(name), "density")
    graphics::rect(
      bars$from, 0, bars$to, bars$density,
      col = okabe_ito["sky_blue"], border = "white"
    )
  })
}

base_evidence <- function(data) {
  each_panel(split(data, data$panel), function(panel, name) {
    base_frame(c(panel$low, panel$high), range(panel$at) + c(-0.4, 0.6), name, "", yaxt = "n")
    graphics::segments(panel$low, panel$at, panel$high, lwd = 2, col = okabe_ito["blue"])
    graphics::points(panel$value, panel$at, pch = 19, col = okabe_ito["blue"])
    graphics::text(mean(graphics::par("usr")[1:2]), panel$at + 0.3, shorten(panel$model), cex = 0.8)
  })
}

base_maps <- function(data) {
  each_panel(split(data, data$panel), function(panel, name) {
    xlab <- paste0(shorten(panel$x_name[1]), ", ", name)
    base_frame(panel$x, panel$y, xlab, shorten(panel$y_name[1]))
    graphics::points(panel$x, panel$y, pch = 20, cex = 0.5, col = okabe_ito["blue"])
  })
}

# A page of tables, each drawn by draw(table, name).
each_panel <- function(panels, draw) {
  old <- set_panels(length(panels))
  on.exit(graphics::par(old))
  Map(draw, panels, names(panels))
}

# ggplot2 ---------------------------------------------------------------------

utils::globalVariables(".data") # the data of a layer, within aes()

gg_series <- function(data, x, y) {
  looks <- series_looks(data$series)
  several <- nrow(looks) > 1
  columns <- legend_columns(data$series)
  guide <- if (several) ggplot2::guide_legend(ncol = columns) else "none"
  scale <- function(make, values) {
    make(NULL, values = values, limits = row.names(looks), guide = guide)
  }
  ggplot2::ggplot(
    data,
    ggplot2::aes(
      .data[[x]],
      .data[[y]],
      group = .data$line,
      colour = .data$series,
      linetype = .data$series,
      linewidth = .data$series
    )
  ) +
    scale(ggplot2::scale_colour_manual, looks$colour) +
    scale(ggplot2::scale_linetype_manual, looks$type) +
    scale(ggplot2::scale_linewidth_manual, looks$width / ggplot2::.pt) + # in mm
    ggplot2::theme(
      legend.position = "bottom",
      legend.key.width = ggplot2::unit(2, "lines")
    )
}

gg_run <- function(data) {
  gg_series(data, "step", "value") +
    ggplot2::geom_line(data = data[data$joined, ]) +
    ggplot2::geom_point(data = data[!data$joined, ], size = 0.4) +
    ggplot2::geom_blank(ggplot2::aes(y = .data$low)) +
    ggplot2::geom_blank(ggplot2::aes(y = .data$high)) +
    ggplot2::facet_wrap("panel", scales = "free_y") +
    ggplot2::scale_x_continuous(breaks = whole_breaks) +
    ggplot2::labs(x = "step", y = NULL)
}

gg_barrier <- function(data) {
  gg_series(data, "lambda", "barrier") +
    ggplot2::geom_line() +
    ggplot2::labs(x = "temperature", y = "cumulative barrier")
}

# A panel for each plot, with its own axis; what the other axis would say is in the panel.
gg_overview <- function(data) {
  variables <- levels(data$draws$variable)
  panels <- c("log Z of the islands", diagnostics_axis, variables)
  on_panel <- function(table, panel) {
    if (!is.null(table)) cbind(table, panel = factor(panel, panels))
  }
  ggplot2::ggplot() +
    if_any(data$islands, function(d) gg_islands_layers(on_panel(d, panels[1]))) +
    if_any(data$diagnostics, function(d) gg_diagnostics_layers(on_panel(d, panels[2]))) +
    if_any(data$draws, function(d) gg_draws_layers(on_panel(d, as.character(d$variable)))) +
    ggplot2::facet_wrap(
      "panel",
      scales = "free",
      labeller = ggplot2::as_labeller(shorten)
    ) +
    ggplot2::theme(
      axis.text.y = ggplot2::element_blank(),
      axis.ticks.y = ggplot2::element_blank()
    ) +
    ggplot2::labs(x = NULL, y = NULL)
}

if_any <- function(table, layers) if (!is.null(table)) layers(table)

gg_islands <- function(data) {
  breaks <- islands_breaks(data)
  ggplot2::ggplot() +
    gg_islands_layers(data) +
    ggplot2::scale_y_continuous(
      breaks = breaks$at,
      labels = breaks$labels,
      minor_breaks = NULL
    ) +
    ggplot2::labs(x = "log Z", y = "island")
}

gg_islands_layers <- function(data) {
  estimate <- data[data$kind == "fit", ]
  colour <- okabe_ito[["vermillion"]]
  at <- ggplot2::aes(.data$log_z, .data$at)
  list(
    ggplot2::geom_vline(
      ggplot2::aes(xintercept = .data$log_z),
      estimate,
      colour = colour,
      linetype = "dotted"
    ),
    ggplot2::geom_point(at, data[data$kind == "island", ], size = 2),
    ggplot2::geom_text(at, data[data$kind == "dead", ], label = " -Inf", hjust = 0),
    ggplot2::geom_pointrange(
      ggplot2::aes(
        .data$log_z, .data$at,
        xmin = .data$conf_low, xmax = .data$conf_high
      ),
      estimate,
      colour = colour,
      shape = "diamond",
      size = 1
    )
  )
}

gg_diagnostics <- function(data) {
  ggplot2::ggplot() +
    gg_diagnostics_layers(data) +
    ggplot2::scale_y_continuous(breaks = NULL) +
    ggplot2::labs(x = diagnostics_axis, y = NULL)
}

gg_diagnostics_layers <- function(data) {
  bar <- ggplot2::aes(
    xmin = 0, xmax = .data$ratio, ymin = .data$at - 0.4, ymax = .data$at + 0.4
  )
  list(
    ggplot2::geom_rect(bar, data, fill = diagnostics_colours[as.character(data$passed)]),
    ggplot2::geom_vline(
      ggplot2::aes(xintercept = 1), data[1, ],
      linetype = "dotted"
    ),
    ggplot2::geom_text(
      ggplot2::aes(0, .data$at, label = .data$name), data,
      hjust = 0, size = 3
    )
  )
}

gg_draws <- function(data) {
  ggplot2::ggplot() +
    gg_draws_layers(data) +
    ggplot2::facet_wrap(
      "variable",
      scales = "free",
      labeller = ggplot2::as_labeller(shorten)
    ) +
    ggplot2::labs(x = NULL, y = "density")
}

gg_draws_layers <- function(data) {
  list(ggplot2::geom_rect(
    ggplot2::aes(xmin = .data$from, xmax = .data$to, ymin = 0, ymax = .data$density),
    data,
    fill = okabe_ito[["sky_blue"]],
    colour = "white",
    linewidth = 0.2
  ))
}

gg_evidence <- function(data) {
  models <- unique(data[c("at", "model")])
  ggplot2::ggplot(data, ggplot2::aes(.data$value, .data$at)) +
    ggplot2::geom_pointrange(
      ggplot2::aes(xmin = .data$low, xmax = .data$high),
      colour = okabe_ito[["blue"]]
    ) +
    ggplot2::facet_wrap("panel", scales = "free_x") +
    ggplot2::scale_y_continuous(
      breaks = models$at, labels = shorten(models$model), minor_breaks = NULL, expand = c(0, 0.5)
    ) +
    ggplot2::labs(x = NULL, y = NULL)
}

gg_maps <- function(data) {
  ggplot2::ggplot(data, ggplot2::aes(.data$x, .data$y)) +
    ggplot2::geom_point(size = 0.5, colour = okabe_ito[["blue"]]) +
    ggplot2::facet_wrap("panel", scales = "free") +
    ggplot2::labs(x = shorten(data$x_name[1]), y = shorten(data$y_name[1]))
}
