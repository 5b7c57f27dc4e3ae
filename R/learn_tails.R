# Skewness and tail weight of single coordinates, by the sinh-arcsinh transformation of Jones and Pewsey (2009), fitted
# by minimising Fisher divergences (Hyvarinen, 2005). Called by learn_chain.R and fit_skewed(). See src/map_tails.c.

# A margin whose parameters are further from those of a normal distribution is none of these.
most_tails <- 5
# Steps of the search for a margin, and of its differences.
most_margin_steps <- 15
step_of_margin <- 1e-5
# Standard errors of the mean score of a margin that has an edge.
sure_edge <- 6
# Points from whose gradients the skew of a coordinate is estimated: to 0.01.
n_for_skew <- 512

# A block for those of these columns of x, with scores g, that are skew or whose tails are not normal; NULL for none.
margins_block <- function(x, g, variables) {
  theta <- matrix(0, 4, ncol(x))
  theta[, variables] <- vapply(variables, function(j) fit_margin(x[, j], g[, j]), numeric(4))
  if (any(theta != 0)) {
    list(form = "margins", children = variables, maps = list(list(
      name = "tails", location = theta[1, ], scale = exp(theta[2, ]), skew = theta[3, ], tail = exp(theta[4, ])
    )))
  }
}

# Location, log scale, skew and log tail of a margin that is nearly standard normal, by its score: that which leaves
# least of it. 0 where hardly anything is left without. A score does not tell of an edge, but its mean does, which is 0
# where there is none: such a margin is the likeliest.
fit_margin <- function(z, g) {
  if (has_edge(g)) {
    return(likeliest_margin(z))
  }
  off <- z + g
  cap <- 4 * stats::mad(off)
  off <- pmax(pmin(off, cap), -cap)
  left <- stats::.lm.fit(cbind(1, z, slope_by_skew(z), asinh(z)), off)$residuals
  if (!isTRUE(length(z) * log(sum((off - mean(off))^2) / sum(left^2)) >= 3 * log(length(z)))) {
    return(numeric(4))
  }
  residual_at <- function(theta) list(r = if (is_margin(theta)) left_by_margin(theta, z, g) else Inf)
  slopes_at <- function(theta, at) {
    moved <- lapply(1:4, function(k) replace(theta, k, theta[k] + step_of_margin))
    vapply(moved, function(theta) (left_by_margin(theta, z, g) - at$r) / step_of_margin, numeric(length(z)))
  }
  damped_least_squares(numeric(4), residual_at, slopes_at, most_margin_steps)$free
}

# Whether the mean of the scores g is significantly different from 0.
has_edge <- function(g) isTRUE(abs(mean(g)) > sure_edge * stats::sd(g) / sqrt(length(g)))

is_margin <- function(theta) all(is.finite(theta)) && all(abs(theta) <= most_tails)

# The parameters of the margin under which z is likeliest.
likeliest_margin <- function(z) {
  loss <- function(theta) {
    log_density <- if (is_margin(theta)) log_density_by(list(maps = margin_maps(theta)), as.matrix(z), 1) else -Inf
    min(-mean(log_density), .Machine$double.xmax, na.rm = TRUE)
  }
  found <- tryCatch(
    stats::optim(numeric(4), loss, method = "BFGS", control = list(maxit = 60)),
    error = function(e) NULL
  )
  if (is.null(found)) numeric(4) else found$par
}

# The maps of a margin with this location, log scale, skewness and log tail, which is 0 if omitted.
margin_maps <- function(theta) {
  log_tail <- if (length(theta) > 3) theta[4] else 0
  tails_maps(list(location = theta[1], scale = exp(theta[2]), skew = theta[3], tail = exp(log_tail)))
}

# The residuals z + g of a score after the maps of a margin, which are 0 if the margin is exact.
left_by_margin <- function(theta, z, g) {
  at <- inverse_maps(margin_maps(theta), as.matrix(z), as.matrix(g))
  at$x + at$g
}

# The parameters of a map for the skewness of columns of z that are nearly standard normal, by least squares on the
# gradients g of the log density: of sinh-arcsinh distributions with normal tails, in the columns where the improvement
# is significant. This takes far fewer points than estimates by moments. NULL if no column is skew.
fit_skew <- function(z, g) {
  theta <- vapply(seq_len(ncol(z)), function(j) fit_skew_of(z[, j], g[, j]), numeric(3))
  if (any(theta[3, ] != 0)) {
    list(location = theta[1, ], scale = exp(theta[2, ]), skew = theta[3, ], tail = rep(1, ncol(z)))
  }
}

# Location, log scale and skewness of one column; 0 if it is not significantly skew.
fit_skew_of <- function(z, g) {
  left_by <- function(theta) min(sum(left_by_margin(theta, z, g)^2), .Machine$double.xmax, na.rm = TRUE)
  by_skew <- stats::.lm.fit(cbind(1, z, slope_by_skew(z)), z + g)
  normal <- stats::.lm.fit(cbind(1, z), z + g)
  is_less <- function(left) isTRUE(length(z) * log(sum(normal$residuals^2) / left) > rules$odd_moment^2)
  if (is_less(sum(by_skew$residuals^2))) {
    most <- rules$widest_tails
    first <- pmax(pmin(c(0, 0, by_skew$coefficients[3]), most), -most)
    found <- stats::optim(first, left_by, method = "L-BFGS-B", lower = -most, upper = most)
    if (is_less(found$value)) return(found$par)
  }
  numeric(3)
}

# The derivative of the score with respect to the skewness, at 0, where the distribution is standard normal.
slope_by_skew <- function(z) (1 + 2 * z^2) / sqrt(1 + z^2) - (1 + z^2)^-1.5

# The skewness of weighted points z that are nearly standard normal, by gradients g: list(skew, log_density, nats).
# skew: of fit_skew(). log_density: with it, without the constant of a normal distribution. nats: half the mean square
# of the residual scores, a bound of the divergence.
skew_by_gradients <- function(z, g, w) {
  some <- systematic_rows(w, n_for_skew)
  skew <- fit_skew(z[some, , drop = FALSE], g[some, , drop = FALSE])
  at <- inverse_maps(tails_maps(skew), z, g)
  list(
    skew = skew, log_density = at$log_jacobian - rowSums(at$x^2) / 2,
    nats = sum(weighted_squares(at$x + at$g, w)) / 2
  )
}
