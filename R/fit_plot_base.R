# Plots of a fit by R's own graphics; they draw the tables of fit_plot_data.R.

# Evaluates `code`, which draws n panels, with a title, `main`, above and a legend of the `series` below all of them,
# and restores the graphical parameters, in an order that works: margins are in lines of text, whose size depends on the
# number of panels. A single panel keeps the user's layout. lines_left: the outer margin at the left of several panels.
on_page <- function(main, code, n = 1, series = NULL, lines_left = 0) {
  several <- n > 1
  has_legend <- nlevels(series) > 1
  lines_below <- if (has_legend) 0.8 + 1.2 * ceiling(nlevels(series) / legend_columns(series)) else 0
  lines_above <- if (is.null(main)) 0 else 1.8
  old <- graphics::par(c(if (several) c("mfrow", "cex", "oma"), "mar", "mgp", "tcl", "pty"))
  on.exit(graphics::par(old))
  if (several) {
    graphics::par(mfrow = rev(grDevices::n2mfrow(n)), oma = c(lines_below, lines_left, lines_above, 0))
    lines_below <- lines_above <- 0
  }
  graphics::par(
    mar = c(3.2 + lines_below, 3.2, 0.8 + lines_above, 1.6), # a long number may end beyond the right of the axis
    mgp = c(2, 0.5, 0),
    tcl = -0.3
  )
  force(code)
  if (has_legend) base_legend(series, if (several) "ndc" else "nfc")
  if (!is.null(main)) {
    graphics::mtext(main, line = if (several) 0.3 else 0.5, outer = several, font = 2, cex = 1.1 * graphics::par("cex"))
  }
}

# A page of panels, a named list of tables, each drawn by draw(table, name).
each_panel <- function(panels, main, draw, ...) {
  on_page(main, Map(draw, panels, names(panels)), length(panels), ...)
}

# The legend of `series`, below the whole page (of = "ndc") or below this panel ("nfc").
base_legend <- function(series, of) {
  looks <- series_looks(series)
  graphics::legend(
    graphics::grconvertX(0.5, of), graphics::grconvertY(0, of), row.names(looks),
    col = looks$colour, lty = looks$type, lwd = looks$width, ncol = legend_columns(series),
    cex = 0.7 / graphics::par("cex"), seg.len = 2.5, x.intersp = 0.6, bty = "n", xjust = 0.5, yjust = 0, xpd = NA
  )
}

base_frame <- function(x, y, xlab, ylab, xaxt = "s", yaxt = "s") {
  limits <- function(v) range(v[is.finite(v)])
  plot(NA, xlim = limits(x), ylim = limits(y), xlab = xlab, ylab = ylab, xaxt = xaxt, yaxt = yaxt)
}

base_lines <- function(x, y, data) {
  looks <- series_looks(data$series)
  for (i in split(seq_along(x), data$line, drop = TRUE)) {
    look <- looks[as.character(data$series[i[1]]), ]
    graphics::lines(x[i], y[i], col = look$colour, lty = look$type, lwd = look$width)
  }
}

base_run <- function(data, main = NULL) {
  each_panel(split(data, data$panel), main, series = data$series, function(panel, name) {
    base_frame(data$step, c(panel$value, panel$low, panel$high), "step", name, xaxt = "n")
    graphics::axis(1, whole_breaks(data$step))
    curves <- panel[panel$joined, ]
    base_lines(curves$step, curves$value, curves)
    dots <- panel[!panel$joined, ]
    colour <- series_looks(dots$series)[as.character(dots$series), "colour"]
    graphics::points(dots$step, dots$value, col = colour, pch = 20, cex = 0.5)
  })
}

base_barrier <- function(data, main = NULL) {
  on_page(main, series = data$series, {
    base_frame(data$lambda, data$barrier, "temperature", "cumulative barrier")
    base_lines(data$lambda, data$barrier, data)
  })
}

base_overview <- function(data, main = NULL) {
  variables <- if (!is.null(data$draws)) split(data$draws, data$draws$variable)
  n <- sum(lengths(data[c("islands", "diagnostics")]) > 0) + length(variables)
  on_page(main, n = n, {
    if (!is.null(data$islands)) base_islands(data$islands)
    if (!is.null(data$diagnostics)) base_diagnostics(data$diagnostics)
    for (bars in variables) base_draws(transform(bars, variable = droplevels(bars$variable)))
  })
}

base_islands <- function(data, main = NULL) {
  estimates <- data[data$kind %in% c("smc", "fit"), ]
  island <- data[data$kind == "island", ]
  colour <- okabe_ito[ifelse(estimates$kind == "fit", "vermillion", "blue")]
  on_page(main, {
    base_frame(c(data$log_z, data$conf_low, data$conf_high), data$at, "log Z", "island", yaxt = "n")
    # axis() leaves out labels for which there is no room
    graphics::axis(2, data$at, data$label, las = 1, cex.axis = 0.8)
    graphics::abline(v = data$log_z[data$kind == "fit"], col = okabe_ito["vermillion"], lty = "dotted")
    graphics::points(island$log_z, island$at, pch = 19)
    for (at in data$at[data$kind == "dead"]) {
      graphics::text(graphics::par("usr")[1], at, " -Inf", adj = c(0, 0.5))
    }
    graphics::segments(estimates$conf_low, estimates$at, estimates$conf_high, col = colour, lwd = 2)
    graphics::points(estimates$log_z, estimates$at, pch = 18, cex = 1.5, col = colour)
  })
}

base_diagnostics <- function(data, main = NULL) {
  limits <- c(-diagnostics_names_width, diagnostics_end)
  on_page(main, {
    base_frame(limits, range(data$at) + c(-0.5, 0.5), diagnostics_axis, "", xaxt = "n", yaxt = "n")
    graphics::axis(1, diagnostics_breaks)
    colour <- diagnostics_colours[as.character(data$passed)]
    graphics::rect(0, data$at - 0.4, data$ratio, data$at + 0.4, col = colour, border = NA)
    graphics::abline(v = 1, lty = "dotted")
    graphics::text(-0.05, data$at, data$name, adj = c(1, 0.5), cex = 0.7)
    graphics::text(diagnostics_verdict, data$at, data$verdict, adj = c(0, 0.5), cex = 0.7)
  })
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
    limits <- range(0, panel$low, panel$high, panel$room, finite = TRUE)
    base_frame(limits, range(panel$at) + c(-0.5, 0.5), name, "", xaxt = "n", yaxt = "n")
    graphics::axis(1, evidence_breaks(limits))
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
