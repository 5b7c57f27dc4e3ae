# Normal distributions as the scout, the fits and the bridge use them: list(mean, L), with the lower triangular Cholesky
# factor L of the covariance, or a vector of standard deviations in many dimensions. Fits are by draws and gradients.

# Least number of points for each coefficient of a least squares fit to gradients: with one there is no residual.
points_per_coefficient <- 2

# n draws: list(z, x), with standard normal rows z, and x = mean + L z.
draw_normal <- function(normal, n) {
  z <- draw_standard(n, length(normal$mean))
  list(z = z, x = to_user(normal, z))
}

to_user <- function(normal, z) {
  scaled <- if (is.matrix(normal$L)) multiply(z, t(normal$L)) else sweep(z, 2, normal$L, "*")
  sweep(scaled, 2, normal$mean, "+")
}

# The whitened coordinates z of rows of x. rows: NULL for all.
from_user <- function(normal, x, rows = NULL) {
  if (is.matrix(normal$L)) {
    whitened(normal$L, x, normal$mean, rows)
  } else {
    sweep(centred_rows(x, normal$mean, rows), 2, normal$L, "/")
  }
}

# The solutions z of x = mean + L z for rows of x. The inverse of L is computed where there are at least as many rows as
# columns. mean, rows: NULL for 0 and for all.
whitened <- function(L, x, mean = NULL, rows = NULL) {
  n <- if (is.null(rows)) nrow(x) else length(rows)
  if (n < ncol(x)) {
    x <- centred_rows(x, mean, rows)
    return(rows_by(n, ncol(x), function(i) {
      look_for_interrupt()
      t(forwardsolve(L, t(rows_of_block(x, i))))
    }))
  }
  if (!is.null(mean)) mean <- rep_len(as.double(mean), ncol(x))
  .Call(r_multiply_rows, x, rows, mean, t(inverse_of_lower(L)))
}

# The inverse of a lower triangular matrix, by blocks of columns, whose entries above the block are zero.
inverse_of_lower <- function(L) {
  d <- nrow(L)
  inverse <- matrix(0, d, d)
  for (j in blocks_of(d, d)) {
    look_for_interrupt()
    rows <- min(j):d
    inverse[rows, j] <- forwardsolve(L[rows, rows, drop = FALSE], diag(1, length(rows), length(j)))
  }
  inverse
}

centred_rows <- function(x, mean, rows) {
  if (!is.null(rows)) x <- x[rows, , drop = FALSE]
  if (is.null(mean)) x else sweep(x, 2, mean)
}

# Gradients at rows of x, in the coordinates z.
pull_back_rows <- function(normal, g) {
  if (is.matrix(normal$L)) multiply(g, normal$L) else sweep(g, 2, normal$L, "*")
}

# The lower triangular factor of A'A, computed from A. The product A'A may not be positive definite numerically if one
# direction is 1e8 times as wide as another.
factor_of_square <- function(A) {
  R <- qr.R(qr(A, tol = 0))
  t(R * ifelse(diag(R) < 0, -1, 1))
}

# The lower triangular factor of the inverse of A'A, where A is upper triangular.
factor_of_inverse <- function(A) {
  square <- cross_product(inverse_of_lower(t(A)))
  look_for_interrupt()
  t(chol(square))
}

# The lower triangular factor of the inverse of a matrix; NULL where the matrix is not positive definite.
inverse_factor <- function(Q) {
  tryCatch(factor_of_inverse(chol(Q)), error = function(e) NULL)
}

log_det <- function(normal) {
  sum(log(if (is.matrix(normal$L)) diag(normal$L) else normal$L))
}

variances <- function(normal) if (is.matrix(normal$L)) rowSums(normal$L^2) else normal$L^2

# The normal distribution of x = mean + L z, by `normal`, where z has the normal distribution `inner`. In many
# dimensions `inner` has standard deviations, but `normal` may have a matrix if the user gave it.
compose <- function(normal, inner) {
  normal$mean <- drop(to_user(normal, t(inner$mean)))
  normal$L <- if (!is.matrix(normal$L)) {
    normal$L * inner$L
  } else if (is.matrix(inner$L)) {
    normal$L %*% inner$L
  } else {
    sweep(normal$L, 2, inner$L, "*")
  }
  normal
}

# references ------------------------------------------------------------------

as_reference <- function(normal) new_fitted_reference(normal$mean, normal$L)

# The normal distribution with an inflated covariance, as a reference that reaches the tails of the target.
inflated <- function(normal) {
  factor <- rules$inflation^sqrt(min(1, rules$inflation_dim / length(normal$mean)))
  normal$L <- sqrt(factor) * normal$L
  normal
}

# A reference as list(mean, L): its normal part, or the default reference for one of R functions.
normal_of <- function(reference, dim) {
  if (is_function_reference(reference)) {
    reference <- reference_gaussian()
  }
  L <- reference$chol
  if (is.null(L)) {
    sd <- rep_len(reference$sd, dim)
    L <- if (dim > rules$largest_dense) sd else diag(sd, dim)
  }
  list(mean = rep_len(reference$mean, dim), L = L)
}

# fits ------------------------------------------------------------------------

# The normal distribution fitted to weighted points z with gradients g, in these rows; NULL where the fit fails. The fit
# to gradients is exact for a normal target, however few genealogies the points have. Where the points are significantly
# wider, as with two modes or heavy tails, or narrower, as at edges, their width is used.
normal_by_gradients <- function(z, g, w, genealogies, rows = seq_along(w)) {
  normal <- match_normal(z, g, w, lambda = 1 / sum(w^2), rows)
  if (!is.null(normal)) as_wide_as(normal, z, w, genealogies, rows)
}

# The normal distribution whose gradients are nearest, by least squares, to the gradients g of weighted points, list(x,
# g, w, mean); NULL where there is none. L: a factor of about the covariance of the points. Returns list(centre, upper,
# y, off, nats): the mean and the Cholesky factor of the precision in the coordinates z = L^-1 x, the points and the
# residuals of the gradients in its whitened coordinates, and half the mean square of the residuals.
fit_gaussian_score <- function(points, L) {
  d <- ncol(points$x)
  if (is.null(points$g) || nrow(points$x) < points_per_coefficient * (1 + d)) {
    return(NULL)
  }
  z <- whitened(L, points$x)
  linear <- weighted_least_squares(cbind(1, z), multiply(points$g, L), points$w)
  precision <- -linear$coefficients[-1, , drop = FALSE]
  upper <- factor_or_null((precision + t(precision)) / 2)
  if (is.null(upper)) {
    return(NULL)
  }
  centre <- backsolve(upper, backsolve(upper, linear$coefficients[1, ], transpose = TRUE))
  off <- whitened(t(upper), linear$residuals)
  list(
    centre = centre, upper = upper, y = multiply(sweep(z, 2, centre), t(upper)), off = off,
    nats = sum(points$w * rowSums(off^2)) / 2
  )
}

# The normal distribution as a reference that is marked as exact, if the target is normal up to a divergence of
# `normal_nats`, by the gradients of weighted points; else NULL. nearest: of fit_gaussian_score(). If the gradients of
# log p and of a normal log density differ by r, the Kullback-Leibler divergence of p from it is at most half the mean
# of r' covariance r, by the logarithmic Sobolev inequality, for densities without edges. Half of a normal distribution
# has the same gradients but another mean and variance, which are checked too. The reference is not inflated: it has no
# tails to miss, and in many dimensions draws from a wider one would descend from few particles.
exact_normal <- function(points, L, genealogies, nearest = fit_gaussian_score(points, L)) {
  if (isTRUE(nearest$nats < rules$normal_nats) && are_standard(nearest$y, points$w, genealogies)) {
    # NULL where the draws are singular up to rounding
    factor <- tryCatch(factor_of_inverse(nearest$upper), error = function(e) NULL)
    if (!is.null(factor)) {
      as_exact(new_fitted_reference(points$mean + drop(L %*% nearest$centre), L %*% factor))
    }
  }
}

# Marks a reference as equal to the target.
as_exact <- function(reference) {
  reference$fitted_to <- "gradients"
  reference
}

is_exact_reference <- function(reference) identical(reference$fitted_to, "gradients")

# Whether the means and variances of n independent weighted points are those of standard normal variables up to chance,
# by a sum of 2 d squares of standardised deviations.
are_standard <- function(y, w, n) {
  d <- ncol(y)
  squares <- n * sum(weighted_mean(y, w)^2) + n / 2 * sum((weighted_squares(y, w) - 1)^2)
  isTRUE(squares < 2 * d + rules$chance_sds * sqrt(2 * 2 * d))
}

# The normal distribution by batch and match (Cai et al., 2024) for weighted points z and their gradients, started from
# N(0, I); a larger lambda gives the start less weight. It minimises a divergence between scores, so for a normal target
# it is exact wherever the points are, if there are more of them than dimensions. In directions without points the start
# remains. In many dimensions it is fitted to each coordinate separately. NULL where it fails.
match_normal <- function(z, g, w, lambda, rows = NULL) {
  .Call(r_match_normal, z, g, w, lambda, rows, ncol(z) > rules$largest_dense)
}

# The limits of the largest and the smallest eigenvalue of the sample covariance of n standard normal points in d
# dimensions (Marchenko and Pastur, 1967). The largest one is above in one of ten cases, for 1 to 6 dimensions and 60
# points or more.
widest_by_chance <- function(d, n) (1 + sqrt(d / n))^2
narrowest_by_chance <- function(d, n) max(0, 1 - sqrt(d / n))^2

# The normal distribution with the width of the weighted points in the principal directions in which these are wider or
# narrower than it by more than chance. They are narrower at edges, which gradients do not show.
as_wide_as <- function(normal, z, w, n, rows = seq_along(w)) {
  factor_of_sd <- function(variance, d) {
    wider <- pmax(1, variance / widest_by_chance(d, n))
    # directions without points, up to rounding, are left as they are
    has_points <- variance > length(variance) * .Machine$double.eps * max(variance)
    narrower <- ifelse(has_points, pmin(1, variance / narrowest_by_chance(d, n)), 1)
    sqrt(wider * narrower)
  }
  if (!is.matrix(normal$L)) {
    variance <- over_columns(z, rows, function(z, j) {
      colSums(w * sweep(sweep(z, 2, normal$mean[j]), 2, normal$L[j], "/")^2)
    })
    normal$L <- normal$L * factor_of_sd(variance, log(length(variance)))
    return(normal)
  }
  y <- rows_by(length(rows), ncol(z), function(i) sqrt(w[i]) * from_user(normal, z, rows[i]))
  covariance <- eigen(cross_product(y), symmetric = TRUE)
  factor <- factor_of_sd(covariance$values, ncol(z))
  if (all(factor == 1) || !all(is.finite(factor))) {
    return(normal)
  }
  fitting <- normal$L %*% covariance$vectors %*% diag(factor, length(factor))
  normal$L <- factor_of_square(t(fitting))
  normal
}

normal_sd <- function(reference) {
  if (is.null(reference$chol)) reference$sd else sqrt(rowSums(reference$chol^2))
}

# A normal reference with this mean and Cholesky factor, or these standard deviations.
new_fitted_reference <- function(mean, chol) {
  if (!is.matrix(chol) || all(chol[lower.tri(chol)] == 0)) {
    return(reference_gaussian(mean, sd = if (is.matrix(chol)) diag(chol) else chol))
  }
  with_chol(reference_gaussian(mean), chol)
}

with_chol <- function(reference, chol) {
  reference$sd <- NULL
  reference$chol <- chol
  reference
}
