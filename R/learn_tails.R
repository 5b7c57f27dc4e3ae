# Skewness and tails of single coordinates, by the sinh-arcsinh transformation of Jones and Pewsey (2009). See
# src/map_tails.c.

# A margin whose parameters are further from those of a normal distribution is none of these.
most_tails <- 5
# Standard errors of the mean score of a margin that has an edge.
sure_edge <- 6

# Those of these columns of points with scores g that are skew or have other tails, as a block; NULL for none.
margins_block <- function(x, g, variables) {
  theta <- matrix(0, 4, ncol(x))
  theta[, variables] <- vapply(variables, function(j) fit_margin(x[, j], g[, j]), numeric(4))
  if (any(theta != 0)) list(form = "margins", children = variables, maps = margin_maps(theta))
}

# Location, log scale, skew and log tail of a margin that is nearly standard normal, by its score: that which leaves
# least of it. 0 where hardly anything is left without. A score does not tell of an edge, but its mean does, which is 0
# where there is none: such a margin is the likeliest.
fit_margin <- function(z, g) {
  if (has_edge(g)) {
    return(fit_margin_by(z, g, function(at) -mean(at$log_jacobian - at$x^2 / 2)))
  }
  off <- z + g
  cap <- 4 * stats::mad(off)
  off <- pmax(pmin(off, cap), -cap)
  left <- stats::.lm.fit(cbind(1, z, slope_by_skew(z), asinh(z)), off)$residuals
  if (!isTRUE(length(z) * log(sum((off - mean(off))^2) / sum(left^2)) >= 3 * log(length(z)))) {
    return(numeric(4))
  }
  fit_margin_by(z, g, function(at) mean((at$x + at$g)^2))
}

# Whether the mean of the scores g is surely not 0.
has_edge <- function(g) isTRUE(abs(mean(g)) > sure_edge * stats::sd(g) / sqrt(length(g)))

# The parameters at which this is least, of points and scores before the maps.
fit_margin_by <- function(z, g, loss) {
  before <- function(theta) before_maps(margin_maps(as.matrix(theta)), as.matrix(z), as.matrix(g))
  bounded <- function(theta) {
    is_margin <- all(is.finite(theta)) && all(abs(theta) <= most_tails)
    min(if (is_margin) loss(before(theta)) else Inf, .Machine$double.xmax, na.rm = TRUE)
  }
  found <- tryCatch(
    stats::optim(numeric(4), bounded, method = "BFGS", control = list(maxit = 60)),
    error = function(e) NULL
  )
  if (is.null(found)) numeric(4) else found$par
}

# The maps of margins: of the location, log scale, skew and log tail of each, a column.
margin_maps <- function(theta) {
  list(list(name = "tails", location = theta[1, ], scale = exp(theta[2, ]), skew = theta[3, ], tail = exp(theta[4, ])))
}

# How the gradient of a log density that is standard normal without it changes with a small skew.
slope_by_skew <- function(z) (1 + 2 * z^2) / sqrt(1 + z^2) - (1 + z^2)^-1.5
