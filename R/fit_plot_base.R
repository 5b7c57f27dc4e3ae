# Plots of a fit by R's own graphics.

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
