# Colours, axes and legends of both kinds of plots.

# The palette of Okabe and Ito (2008).
okabe_ito <- c(
  blue = "#0072B2", vermillion = "#D55E00", green = "#009E73", purple = "#CC79A7", orange = "#E69F00",
  sky_blue = "#56B4E9"
)

# The colour, line type and width of each series. The numbers of colours and line types have no common divisor, so that
# thirty series differ.
series_looks <- function(series) {
  names <- levels(series)
  types <- rep_len(c("solid", "longdash", "dotdash", "22", "twodash"), length(names))
  looks <- data.frame(colour = rep_len(okabe_ito, length(names)), type = types, width = 2.4, row.names = names)
  # thin, since there are many islands, close to the line of the round that they repeat
  looks[grepl("^final", names), ] <- list("black", "solid", 0.6)
  looks
}

diagnostics_axis <- "diagnostics (limit: 1)"

diagnostics_colours <- c("TRUE" = okabe_ito[["sky_blue"]], "FALSE" = okabe_ito[["vermillion"]])

# The number of columns of a legend that fit a plot 5 inches wide.
legend_columns <- function(series) {
  min(nlevels(series), 56 %/% max(nchar(levels(series))))
}

# The breaks of an axis of probabilities, none above 1, or of log Bayes factors, of which the largest is 0.
evidence_breaks <- function(limits) pretty(if (sum(limits) > 0) pmin(limits, 1) else limits)

whole_breaks <- function(x) unique(round(pretty(x, 4)))

# Readable names of diagnostics, of at most 16 letters, which is the room in a panel.
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

# The axis of a panel of diagnostics, in units of the limit: the width of the names at the left, the ticks (the last is
# the longest bar), the start of the verdicts, and the end.
diagnostics_names_width <- 3
diagnostics_breaks <- 0:2
diagnostics_verdict <- 2.1
diagnostics_end <- 3.3

# Names of more than 24 letters, without their middle.
shorten <- function(names) {
  n <- nchar(names)
  ifelse(n > 24, paste0(substr(names, 1, 11), "...", substr(names, n - 9, n)), names)
}
