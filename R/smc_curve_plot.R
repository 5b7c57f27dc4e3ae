# Plots of a curve of evidences.

# In `rows`, a row a setting: `value`, `y` and its band, `low` and `high`, and whether it was `fitted`. And the `name` of
# y, whether there is a line `at_zero`, the setting that is `used`, and whether settings are on a `log` scale.
curve_data <- function(curve) {
  has_bf <- "log_bf" %in% names(curve)
  y <- if (has_bf) curve$log_bf else curve$log_z
  error <- if (has_bf) curve$log_bf_error else curve$std_error
  error[is.na(error)] <- 0
  list(
    rows = data.frame(
      value = curve$value, y = y, low = y - 2 * error, high = y + 2 * error, fitted = curve$from != "reweighted"
    ),
    name = if (has_bf) "log Bayes factor" else "log Z", at_zero = has_bf, used = attr(curve, "state")$used,
    log = is_positive(curve$value) && max(curve$value) > 10 * min(curve$value)
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
  old <- set_panels(main = main)
  on.exit(graphics::par(old))
  plot(
    rows$value, rows$y,
    type = "n", log = if (data$log) "x" else "", ylim = range(rows$low, rows$high, if (data$at_zero) 0),
    xlab = "setting", ylab = data$name
  )
  graphics::polygon(
    c(rows$value, rev(rows$value)), c(rows$low, rev(rows$high)),
    col = grDevices::adjustcolor(okabe_ito[["sky_blue"]], 0.5), border = NA
  )
  if (data$at_zero) graphics::abline(h = 0, lty = "longdash")
  graphics::abline(v = data$used, lty = "dotted", col = okabe_ito[["vermillion"]])
  graphics::lines(rows$value, rows$y, col = okabe_ito[["blue"]], lwd = 2)
  graphics::points(rows$value, rows$y, pch = 21, col = okabe_ito[["blue"]], bg = fill_of(rows))
  base_title(main)
  invisible(x)
}

fill_of <- function(rows) ifelse(rows$fitted, okabe_ito[["blue"]], "white")

#' @rdname evidence_curve
#' @method autoplot evidence_curve
#' @rawNamespace S3method(ggplot2::autoplot, evidence_curve)
autoplot.evidence_curve <- function(object, ...) {
  check_dots_empty(...)
  data <- curve_data(object)
  blue <- okabe_ito[["blue"]]
  ggplot2::ggplot(data$rows, ggplot2::aes(.data$value, .data$y)) +
    ggplot2::geom_ribbon(
      ggplot2::aes(ymin = .data$low, ymax = .data$high),
      fill = okabe_ito[["sky_blue"]], alpha = 0.5
    ) +
    (if (data$at_zero) ggplot2::geom_hline(yintercept = 0, linetype = "longdash")) +
    ggplot2::geom_vline(xintercept = data$used, linetype = "dotted", colour = okabe_ito[["vermillion"]]) +
    ggplot2::geom_line(colour = blue) +
    ggplot2::geom_point(shape = 21, colour = blue, fill = fill_of(data$rows)) +
    (if (data$log) ggplot2::scale_x_log10()) +
    ggplot2::labs(x = "setting", y = data$name)
}
