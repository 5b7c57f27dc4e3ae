# Plots of evidence_curve().

# What both kinds of plots show, a list: `rows`, a row a setting with `value`, `y` and its band, `low` and `high`,
# whether it was `fitted`, and the `series`, the value of the second setting; the `names` of both axes; a `note` on the
# band; whether there is a line `at_zero`; the first setting in use, `used`; and whether its axis is on a `log` scale.
curve_data <- function(curve) {
  has_bf <- "log_bf" %in% names(curve)
  y <- if (has_bf) curve$log_bf else curve$log_z
  error <- if (has_bf) curve$log_bf_error else curve$std_error
  error[is.na(error)] <- 0
  names <- settings_in(curve)
  value <- curve[[names[1]]]
  second <- if (length(names) > 1) curve[[names[2]]] else numeric(nrow(curve))
  labels <- if (length(names) > 1) paste(names[2], "=", format_each(sort(unique(second)))) else ""
  list(
    rows = data.frame(
      value = value, y = y, low = y - 2 * error, high = y + 2 * error, fitted = curve$from != "reweighted",
      series = factor(second, labels = labels)
    ),
    names = c(if (length(names) > 1) names[1] else "setting", if (has_bf) "log Bayes factor" else "log Z"),
    note = if (any(curve$from == "reweighted")) "errors of open points are correlated" else "",
    at_zero = has_bf, used = attr(curve, "state")$used[[1]],
    log = is_positive(value) && max(value) > 10 * min(value)
  )
}

#' @rdname evidence_curve
#' @param x,object a curve.
#' @param main a title (string); NULL for none.
#' @export
plot.evidence_curve <- function(x, ..., main = NULL) {
  check_dots_empty(...)
  data <- curve_data(x)
  rows <- data$rows
  on_page(main, series = rows$series, {
    plot(
      rows$value, rows$y,
      type = "n", log = if (data$log) "x" else "", ylim = range(rows$low, rows$high, if (data$at_zero) 0),
      xlab = data$names[1], ylab = data$names[2]
    )
    if (data$at_zero) graphics::abline(h = 0, lty = "longdash")
    graphics::abline(v = data$used, lty = "dotted")
    for (one in split(rows, rows$series)) {
      look <- series_looks(rows$series)[as.integer(one$series[1]), ]
      graphics::polygon(
        c(one$value, rev(one$value)), c(one$low, rev(one$high)),
        col = grDevices::adjustcolor(look$colour, 0.3), border = NA
      )
      graphics::lines(one$value, one$y, col = look$colour, lty = look$type, lwd = 2)
      graphics::points(one$value, one$y, pch = 21, col = look$colour, bg = ifelse(one$fitted, look$colour, "white"))
    }
    graphics::mtext(data$note, adj = 1, cex = 0.8)
  })
  invisible(x)
}

#' @rdname evidence_curve
#' @method autoplot evidence_curve
#' @rawNamespace S3method(ggplot2::autoplot, evidence_curve)
autoplot.evidence_curve <- function(object, ...) {
  check_dots_empty(...)
  data <- curve_data(object)
  looks <- series_looks(data$rows$series)
  fill <- ifelse(data$rows$fitted, looks$colour[as.integer(data$rows$series)], "white")
  ggplot2::ggplot(data$rows, ggplot2::aes(.data$value, .data$y, colour = .data$series)) +
    ggplot2::geom_ribbon(
      ggplot2::aes(ymin = .data$low, ymax = .data$high, fill = .data$series),
      alpha = 0.3, colour = NA
    ) +
    (if (data$at_zero) ggplot2::geom_hline(yintercept = 0, linetype = "longdash")) +
    ggplot2::geom_vline(xintercept = data$used, linetype = "dotted") +
    ggplot2::geom_line() +
    ggplot2::geom_point(shape = 21, fill = fill) +
    ggplot2::scale_colour_manual(values = looks$colour, aesthetics = c("colour", "fill"), name = NULL) +
    (if (nrow(looks) == 1) ggplot2::theme(legend.position = "none")) +
    (if (data$log) ggplot2::scale_x_log10()) +
    ggplot2::labs(x = data$names[1], y = data$names[2], caption = data$note)
}
