# Skewness and tails of single coordinates, by the sinh-arcsinh transformation of Jones and Pewsey (2009). See
# src/map_tails.c.

# A margin whose parameters are further from those of a normal distribution is none of these.
most_tails <- 5
# Steps of the search for a margin, and of its differences.
most_margin_steps <- 15
step_of_margin <- 1e-5
# Standard errors of the mean score of a margin that has an edge.
sure_edge <- 6
# Points from whose gradients the skew of a coordinate is estimated: to 0.01.
n_for_skew <- 512

# Those of these columns of points with scores g that are skew or have other tails, as a block; NULL for none.
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

# Whether the mean of the scores g is surely not 0.
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

# The maps of a margin: of its location, log scale, skew and log tail, which is 0 where it is not given.
margin_maps <- function(theta) {
  log_tail <- if (length(theta) > 3) theta[4] else 0
  tails_maps(list(location = theta[1], scale = exp(theta[2]), skew = theta[3], tail = exp(log_tail)))
}

# What a margin of these parameters leaves of a score.
left_by_margin <- function(theta, z, g) {
  at <- inverse_maps(margin_maps(theta), as.matrix(z), as.matrix(g))
  at$x + at$g
}

# The skew of columns of z that are nearly standard normal, by gradients g of the log density there: that of
# sinh-arcsinh distributions with normal tails whose gradients are nearest to these (Hyvarinen, 2005), where so much
# of them is not left by chance. Gradients tell it from far fewer points than moments do. The parameters of the map;
# NULL where no column has any.
fit_skew <- function(z, g) {
  theta <- vapply(seq_len(ncol(z)), function(j) fit_skew_of(z[, j], g[, j]), numeric(3))
  if (any(theta[3, ] != 0)) {
    list(location = theta[1, ], scale = exp(theta[2, ]), skew = theta[3, ], tail = rep(1, ncol(z)))
  }
}

# Location, log scale and skew; 0 where there is none.
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

# How the gradient of a log density that is standard normal without it changes with a small skew.
slope_by_skew <- function(z) (1 + 2 * z^2) / sqrt(1 + z^2) - (1 + z^2)^-1.5

# Weighted points z that are nearly standard normal, by gradients g there: list(skew, log_density, nats), with the skew
# of fit_skew(), or NULL, the log density with it, but for a constant, and a bound of the divergence from it.
skew_by_gradients <- function(z, g, w) {
  some <- systematic_rows(w, n_for_skew)
  skew <- fit_skew(z[some, , drop = FALSE], g[some, , drop = FALSE])
  at <- inverse_maps(tails_maps(skew), z, g)
  list(
    skew = skew, log_density = at$log_jacobian - rowSums(at$x^2) / 2,
    nats = sum(weighted_squares(at$x + at$g, w)) / 2
  )
}
