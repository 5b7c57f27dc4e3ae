# Colours, axes and legends that both kinds of plots share.

okabe_ito <- c(
  blue = "#0072B2", vermillion = "#D55E00", green = "#009E73", purple = "#CC79A7", orange = "#E69F00",
  sky_blue = "#56B4E9"
)

# A row a series. Numbers of colours and of line types without a common divisor, so
# that all of thirty rounds differ.
series_looks <- function(series) {
  names <- levels(series)
  types <- rep_len(c("solid", "longdash", "dotdash", "22", "twodash"), length(names))
  looks <- data.frame(colour = rep_len(okabe_ito, length(names)), type = types, width = 2.4, row.names = names)
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

# Of probabilities, beside which there is room for numbers, or of log Bayes factors, the largest of which is 0.
evidence_breaks <- function(limits) pretty(if (sum(limits) > 0) pmin(limits, 1) else limits)

whole_breaks <- function(x) unique(round(pretty(x, 4)))

# Diagnostics as a reader who does not know their names would call them, in 16 letters, for which a panel has room.
plain_names <- function(names) {
  plain <- c(
    scatter = "island scatter", largest_share = "largest island", dead_islands = "dead islands",
    estimates = "SMC and bridge", mean_gradient = "mean gradient", stein = "Stein's identity",
    width = "reference width", ancestor_ess = "ancestors", edges = "density edges", jumps = "density jumps",
    proper = "proper density", rays = "mass far out", mirrors = "mirrored mass", lines = "mass along lines",
    elbo = "scout's ELBO", basins = "scout's modes", rounds = "change by rounds", passes = "change by passes",
    correction = "effects' ratios"
  )
  ifelse(names %in% names(plain), plain[names], gsub("_", " ", names))
}

# A panel of diagnostics, in units of the limit: the part that their names take, the ticks, the longest bar at the last
# of them, where the verdicts begin, and the end.
diagnostics_names_width <- 3
diagnostics_breaks <- 0:2
diagnostics_verdict <- 2.1
diagnostics_end <- 3.3

# Names too long for an axis lose their middle.
shorten <- function(names) {
  n <- nchar(names)
  ifelse(n > 24, paste0(substr(names, 1, 11), "...", substr(names, n - 9, n)), names)
}
