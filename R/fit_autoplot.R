# Plots by ggplot2, one function for each of views() (fit_plot.R), comparisons and calibrations. They draw the tables of
# fit_plot_data.R.

# A plot of lines by `series`, with the shared colours, line types and legend.
gg_series <- function(data, x, y) {
  looks <- series_looks(data$series)
  guide <- if (nrow(looks) > 1) ggplot2::guide_legend(ncol = legend_columns(data$series)) else "none"
  scale <- function(make, values) make(NULL, values = values, limits = row.names(looks), guide = guide)
  ggplot2::ggplot(
    data,
    ggplot2::aes(
      .data[[x]], .data[[y]],
      group = .data$line, colour = .data$series, linetype = .data$series, linewidth = .data$series
    )
  ) +
    scale(ggplot2::scale_colour_manual, looks$colour) +
    scale(ggplot2::scale_linetype_manual, looks$type) +
    scale(ggplot2::scale_linewidth_manual, looks$width / ggplot2::.pt) + # in mm
    ggplot2::theme(legend.position = "bottom", legend.key.width = ggplot2::unit(2, "lines"))
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

# A panel for each plot, with its own horizontal axis; the labels of the vertical axis are within the panel.
gg_overview <- function(data) {
  panels <- c("log Z of the islands", diagnostics_axis, levels(data$draws$variable))
  if_any <- function(table, panel, layers) if (!is.null(table)) layers(cbind(table, panel = factor(panel, panels)))
  ggplot2::ggplot() +
    if_any(data$islands, panels[1], function(islands) c(gg_islands_layers(islands), gg_islands_labels(islands))) +
    if_any(data$diagnostics, panels[2], gg_diagnostics_layers) +
    if_any(data$draws, as.character(data$draws$variable), gg_draws_layers) +
    ggplot2::facet_wrap("panel", scales = "free", labeller = ggplot2::as_labeller(shorten)) +
    ggplot2::scale_x_continuous(breaks = overview_breaks) +
    ggplot2::theme(axis.text.y = ggplot2::element_blank(), axis.ticks.y = ggplot2::element_blank()) +
    ggplot2::labs(x = NULL, y = NULL) +
    gg_room()
}

# Breaks of a panel by its limits. The panel of the diagnostics is recognised by its limits, which ggplot2 has expanded
# by 5 %.
overview_breaks <- function(limits) {
  own <- c(-diagnostics_names_width, diagnostics_end)
  if (isTRUE(all.equal(limits, own + c(-0.05, 0.05) * diff(own)))) diagnostics_breaks else pretty(limits, 4)
}

# The labels of the islands within the panel, and a blank point that makes room for them.
gg_islands_labels <- function(data) {
  x <- c(data$log_z, data$conf_low, data$conf_high)
  left <- data[1, ]
  left$log_z <- min(x[is.finite(x)]) - 0.2 * diff(range(x[is.finite(x)]))
  list(
    ggplot2::geom_text(ggplot2::aes(-Inf, .data$at, label = paste0(" ", .data$label)), data, hjust = 0, size = 2.8),
    ggplot2::geom_blank(ggplot2::aes(.data$log_z, .data$at), left)
  )
}

gg_islands <- function(data) {
  ggplot2::ggplot() +
    gg_islands_layers(data) +
    ggplot2::scale_y_continuous(
      breaks = data$at, labels = data$label, minor_breaks = NULL, guide = ggplot2::guide_axis(check.overlap = TRUE)
    ) +
    ggplot2::labs(x = "log Z", y = "island") +
    gg_room()
}

# Room at the right for a long number at the end of the axis.
gg_room <- function() ggplot2::theme(plot.margin = ggplot2::margin(5.5, 16, 5.5, 5.5))

gg_islands_layers <- function(data) {
  estimates <- data[data$kind %in% c("smc", "fit"), ]
  colour <- okabe_ito[["vermillion"]]
  at <- ggplot2::aes(.data$log_z, .data$at)
  fit <- data[data$kind == "fit", ]
  list(
    ggplot2::geom_vline(ggplot2::aes(xintercept = .data$log_z), fit, colour = colour, linetype = "dotted"),
    ggplot2::geom_point(at, data[data$kind == "island", ], size = 2),
    ggplot2::geom_text(at, data[data$kind == "dead", ], label = " -Inf", hjust = 0),
    ggplot2::geom_pointrange(
      ggplot2::aes(.data$log_z, .data$at, xmin = .data$conf_low, xmax = .data$conf_high), estimates,
      colour = ifelse(estimates$kind == "fit", colour, okabe_ito[["blue"]]), shape = "diamond", size = 1
    )
  )
}

gg_diagnostics <- function(data) {
  ggplot2::ggplot() +
    gg_diagnostics_layers(data) +
    ggplot2::scale_x_continuous(breaks = diagnostics_breaks, minor_breaks = NULL) +
    ggplot2::scale_y_continuous(breaks = NULL) +
    ggplot2::labs(x = diagnostics_axis, y = NULL)
}

gg_diagnostics_layers <- function(data) {
  bar <- ggplot2::aes(xmin = 0, xmax = .data$ratio, ymin = .data$at - 0.4, ymax = .data$at + 0.4)
  words <- function(x, label, hjust) {
    ggplot2::geom_text(ggplot2::aes(x, .data$at, label = .data[[label]]), data, hjust = hjust, size = 2.8)
  }
  ends <- data[c(1, 1), ]
  ends$ratio <- c(-diagnostics_names_width, diagnostics_end)
  list(
    ggplot2::geom_rect(bar, data, fill = diagnostics_colours[as.character(data$passed)]),
    ggplot2::geom_vline(ggplot2::aes(xintercept = 1), data[1, ], linetype = "dotted"),
    words(-0.05, "name", 1),
    words(diagnostics_verdict, "verdict", 0),
    ggplot2::geom_blank(ggplot2::aes(.data$ratio, .data$at), ends)
  )
}

gg_draws <- function(data) {
  ggplot2::ggplot() +
    gg_draws_layers(data) +
    ggplot2::facet_wrap("variable", scales = "free", labeller = ggplot2::as_labeller(shorten)) +
    ggplot2::labs(x = NULL, y = "density")
}

gg_draws_layers <- function(data) {
  bar <- ggplot2::aes(xmin = .data$from, xmax = .data$to, ymin = 0, ymax = .data$density)
  colour <- okabe_ito[["sky_blue"]]
  list(ggplot2::geom_rect(bar, data, fill = colour, colour = colour, linewidth = 0.2))
}

gg_evidence <- function(data) {
  models <- unique(data[c("at", "model")])
  ggplot2::ggplot(data, ggplot2::aes(.data$value, .data$at)) +
    ggplot2::geom_segment(
      ggplot2::aes(x = 0, xend = .data$value, yend = .data$at),
      colour = okabe_ito[["sky_blue"]], na.rm = TRUE
    ) +
    ggplot2::geom_pointrange(
      ggplot2::aes(xmin = .data$low, xmax = .data$high),
      colour = okabe_ito[["blue"]], linewidth = 1, na.rm = TRUE
    ) +
    ggplot2::geom_text(
      ggplot2::aes(.data$beside, label = paste0("  ", .data$text, "  ")), # away from the point
      hjust = data$hjust, size = 3, na.rm = TRUE
    ) +
    ggplot2::facet_wrap("panel", scales = "free_x") +
    ggplot2::geom_blank(ggplot2::aes(.data$room)) +
    ggplot2::scale_x_continuous(breaks = evidence_breaks) +
    ggplot2::scale_y_continuous(breaks = models$at, labels = shorten(models$model), minor_breaks = NULL) +
    ggplot2::labs(x = NULL, y = NULL)
}

gg_calibration <- function(data) {
  panels <- factor(calibration_panels, calibration_panels)
  on_panel <- function(table, i) cbind(table, panel = rep(panels[i], nrow(table)))
  shares <- on_panel(data$shares, 1)
  factors <- on_panel(data$factors, 2)
  limits <- on_panel(data.frame(x = c(-1, 1)), 2)
  blue <- okabe_ito[["blue"]]
  ggplot2::ggplot() +
    ggplot2::geom_abline(ggplot2::aes(slope = 1, intercept = 0), on_panel(data.frame(x = 0), 1), linetype = "dotted") +
    ggplot2::geom_linerange(
      ggplot2::aes(.data$mean_prob, ymin = .data$low, ymax = .data$high), shares,
      linewidth = 2, colour = okabe_ito[["sky_blue"]]
    ) +
    ggplot2::geom_point(ggplot2::aes(.data$mean_prob, .data$share_true), shares, colour = blue) +
    ggplot2::geom_vline(ggplot2::aes(xintercept = .data$x), limits, linetype = "dotted") +
    ggplot2::geom_pointrange(
      ggplot2::aes(.data$middle, .data$at, xmin = .data$low, xmax = .data$high), factors,
      colour = blue
    ) +
    ggplot2::geom_text(ggplot2::aes(.data$middle, .data$at, label = shorten(.data$name)), factors, vjust = -1) +
    ggplot2::geom_blank(ggplot2::aes(0, .data$at), transform(factors, at = factors$at + 0.5)) +
    ggplot2::facet_wrap("panel", scales = "free") +
    ggplot2::scale_y_continuous(breaks = seq(0, 1, by = 0.25)) +
    ggplot2::labs(x = NULL, y = "share of true models")
}

gg_maps <- function(data) {
  panel <- paste0(data$panel, "\n", shorten(data$y_name), "\nagainst ", shorten(data$x_name))
  named <- cbind(data[setdiff(names(data), "panel")], panel = factor(panel, unique(panel)))
  ggplot2::ggplot(named, ggplot2::aes(.data$x, .data$y)) +
    ggplot2::geom_point(size = 0.5, colour = okabe_ito[["blue"]]) +
    lapply(c(-1, 1), function(side) {
      ggplot2::geom_blank(ggplot2::aes(side * .data$reach, side * .data$reach), named[!is.na(named$reach), ])
    }) +
    ggplot2::facet_wrap("panel", scales = "free") +
    ggplot2::theme(aspect.ratio = 1) +
    ggplot2::labs(x = NULL, y = NULL)
}
