# Plots of a fit by R's own graphics.

# Room for n panels, and for some lines of text below them all. Returns what was set
# before, in the order in which it can be set again: margins are in lines of the size of
# text, which the number of panels changes. A single panel leaves the user's own layout
# as it is, and finds its place in it. main: a title, for which there is room above all panels. lines_left: of several
# panels, before all of them.
set_panels <- function(n = 1, lines_below = 0, main = NULL, lines_left = 0) {
  several <- n > 1
  lines_above <- if (is.null(main)) 0 else 1.8
  old <- graphics::par(c(if (several) c("mfrow", "cex", "oma"), "mar", "mgp", "tcl"))
  if (several) {
    graphics::par(mfrow = rev(grDevices::n2mfrow(n)), oma = c(lines_below, lines_left, lines_above, 0))
    lines_below <- lines_above <- 0
  }
  graphics::par(
    mar = c(3.2 + lines_below, 3.2, 0.8 + lines_above, 1.6), # a long number may end beyond the right of the axis
    mgp = c(2, 0.5, 0),
    tcl = -0.3
  )
  old
}

set_panels_with_legend <- function(n, series, main) {
  rows <- ceiling(nlevels(series) / legend_columns(series))
  set_panels(n, lines_below = if (nlevels(series) > 1) 0.8 + 1.2 * rows else 0, main)
}

# Above all of n panels.
base_title <- function(main, n = 1) {
  if (!is.null(main)) {
    graphics::mtext(main, line = if (n > 1) 0.3 else 0.5, outer = n > 1, font = 2, cex = 1.1 * graphics::par("cex"))
  }
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

base_run <- function(data, main = NULL) {
  panels <- split(data, data$panel)
  old <- set_panels_with_legend(length(panels), data$series, main)
  on.exit(graphics::par(old))
  for (name in names(panels)) {
    panel <- panels[[name]]
    y <- c(panel$value, panel$low, panel$high)
    base_frame(data$step, y, "step", name, xaxt = "n")
    graphics::axis(1, whole_breaks(data$step))
    curves <- panel[panel$joined, ]
    base_lines(curves$step, curves$value, curves)
    dots <- panel[!panel$joined, ]
    colour <- series_looks(dots$series)[as.character(dots$series), "colour"]
    graphics::points(dots$step, dots$value, col = colour, pch = 20, cex = 0.5)
  }
  base_legend(data$series, "ndc")
  base_title(main, length(panels))
}

base_barrier <- function(data, main = NULL) {
  old <- set_panels_with_legend(1, data$series, main)
  on.exit(graphics::par(old))
  base_frame(data$lambda, data$barrier, "temperature", "cumulative barrier")
  base_lines(data$lambda, data$barrier, data)
  base_legend(data$series, "nfc")
  base_title(main)
}

base_overview <- function(data, main = NULL) {
  variables <- if (!is.null(data$draws)) split(data$draws, data$draws$variable)
  n <- sum(lengths(data[c("islands", "diagnostics")]) > 0) + length(variables)
  old <- set_panels(n, main = main)
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
  base_title(main, n)
}

base_islands <- function(data, main = NULL) {
  old <- set_panels(main = main)
  on.exit(graphics::par(old))
  x <- c(data$log_z, data$conf_low, data$conf_high)
  base_frame(x, data$at, "log Z", "island", yaxt = "n")
  # those for which there is no room are left out
  graphics::axis(2, data$at, data$label, las = 1, cex.axis = 0.8)
  estimates <- data[data$kind %in% c("smc", "fit"), ]
  fit <- estimates[estimates$kind == "fit", ]
  island <- data[data$kind == "island", ]
  colour <- okabe_ito[ifelse(estimates$kind == "fit", "vermillion", "blue")]
  graphics::abline(v = fit$log_z, col = okabe_ito["vermillion"], lty = "dotted")
  graphics::points(island$log_z, island$at, pch = 19)
  for (at in data$at[data$kind == "dead"]) {
    graphics::text(graphics::par("usr")[1], at, " -Inf", adj = c(0, 0.5))
  }
  graphics::segments(
    estimates$conf_low, estimates$at, estimates$conf_high,
    col = colour, lwd = 2
  )
  graphics::points(estimates$log_z, estimates$at, pch = 18, cex = 1.5, col = colour)
  base_title(main)
}

base_diagnostics <- function(data, main = NULL) {
  old <- set_panels(main = main)
  on.exit(graphics::par(old))
  limits <- c(-diagnostics_names_width, diagnostics_end)
  base_frame(limits, range(data$at) + c(-0.5, 0.5), diagnostics_axis, "", xaxt = "n", yaxt = "n")
  graphics::axis(1, diagnostics_breaks)
  colour <- diagnostics_colours[as.character(data$passed)]
  graphics::rect(0, data$at - 0.4, data$ratio, data$at + 0.4, col = colour, border = NA)
  graphics::abline(v = 1, lty = "dotted")
  graphics::text(-0.05, data$at, data$name, adj = c(1, 0.5), cex = 0.7)
  graphics::text(diagnostics_verdict, data$at, data$verdict, adj = c(0, 0.5), cex = 0.7)
  base_title(main)
}

base_draws <- function(data, main = NULL) {
  each_panel(split(data, data$variable), main, function(bars, name) {
    base_frame(c(bars$from, bars$to), c(0, bars$density), shorten(name), "density")
    graphics::rect(
      bars$from, 0, bars$to, bars$density,
      col = okabe_ito["sky_blue"], border = okabe_ito["sky_blue"]
    )
  })
}

base_evidence <- function(data, main = NULL) {
  labels <- shorten(data$model[data$panel == levels(data$panel)[1]])
  draw <- function(panel, name) {
    graphics::par(mar = replace(graphics::par("mar"), 2, 0.8))
    base_frame(c(0, panel$low, panel$high, panel$room), range(panel$at) + c(-0.5, 0.5), name, "", yaxt = "n")
    if (name == levels(data$panel)[1]) {
      graphics::axis(2, panel$at, labels, las = 1, tick = FALSE, cex.axis = 0.8, xpd = NA)
    }
    graphics::segments(0, panel$at, panel$value, col = okabe_ito["sky_blue"], lwd = 2)
    graphics::segments(panel$low, panel$at, panel$high, lwd = 4, col = okabe_ito["blue"])
    graphics::points(panel$value, panel$at, pch = 19, col = okabe_ito["blue"])
    graphics::text(panel$beside, panel$at, panel$text, pos = if (panel$hjust[1] == 1) 2 else 4, cex = 0.8)
  }
  each_panel(split(data, data$panel), main, draw, lines_left = max(nchar(labels)) / 2)
}

base_calibration <- function(data, main = NULL) {
  draw <- list(
    shares = function(shares) {
      base_frame(c(0, 1), c(0, 1), calibration_panels[1], "share of true models")
      graphics::abline(0, 1, lty = "dotted")
      graphics::segments(shares$mean_prob, shares$low, y1 = shares$high, lwd = 5, col = okabe_ito["sky_blue"])
      graphics::points(shares$mean_prob, shares$share_true, pch = 19, col = okabe_ito["blue"])
    },
    factors = function(factors) {
      y <- range(factors$at) + c(-0.5, 0.5)
      base_frame(c(-1, 1, factors$low, factors$high), y, calibration_panels[2], "", yaxt = "n")
      graphics::abline(v = c(-1, 1), lty = "dotted")
      graphics::segments(factors$low, factors$at, factors$high, lwd = 2, col = okabe_ito["blue"])
      graphics::points(factors$middle, factors$at, pch = 19, col = okabe_ito["blue"])
      graphics::text(factors$middle, factors$at, shorten(factors$name), pos = 3)
    }
  )
  each_panel(Filter(nrow, data), main, function(panel, name) draw[[name]](panel))
}

base_maps <- function(data, main = NULL) {
  each_panel(split(data, data$panel), main, function(panel, name) {
    graphics::par(pty = "s")
    reach <- panel$reach * c(-1, 1)
    base_frame(c(panel$x, reach), c(panel$y, reach), shorten(panel$x_name[1]), shorten(panel$y_name[1]))
    graphics::points(panel$x, panel$y, pch = 20, cex = 0.5, col = okabe_ito["blue"])
    graphics::mtext(name, line = 0.1, cex = 0.8 * graphics::par("cex"))
  })
}

# A page of tables, each drawn by draw(table, name).
each_panel <- function(panels, main, draw, ...) {
  pty <- graphics::par("pty")
  old <- set_panels(length(panels), main = main, ...)
  on.exit(graphics::par(c(old, list(pty = pty))))
  Map(draw, panels, names(panels))
  base_title(main, length(panels))
}
