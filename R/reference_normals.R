# Normal distributions, as the scout, the fits and the bridge use them: list(mean, L), with L
# lower triangular, or its diagonal as a vector where the dimension is too high for a
# matrix.

# Points a coefficient of a least squares fit to gradients: with one, nothing is ever left.
points_per_coefficient <- 2

# Draws, a row a draw: z standard normal, and x = mean + L z.
draw_normal <- function(normal, n) {
  z <- draw_standard(n, length(normal$mean))
  list(z = z, x = to_user(normal, z))
}

to_user <- function(normal, z) {
  scaled <- if (is.matrix(normal$L)) multiply(z, t(normal$L)) else sweep(z, 2, normal$L, "*")
  sweep(scaled, 2, normal$mean, "+")
}

# The coordinates z of rows of x, of which NULL are all.
from_user <- function(normal, x, rows = NULL) {
  if (is.matrix(normal$L)) {
    whitened(normal$L, x, normal$mean, rows)
  } else {
    sweep(centred_rows(x, normal$mean, rows), 2, normal$L, "/")
  }
}

# z in the rows mean + L z of x. The inverse pays for itself where there are more rows than columns.
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

# The inverse of a lower triangular matrix. Of a block of columns the rows above it are zero.
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

# The lower triangular factor of A'A. Its digits are those of A: where some direction is 1e8 times as
# wide as another, A'A is no covariance any more.
factor_of_square <- function(A) {
  R <- qr.R(qr(A, tol = 0))
  t(R * ifelse(diag(R) < 0, -1, 1))
}

# The same of the inverse of A'A, where A is upper triangular.
factor_of_inverse <- function(A) {
  square <- cross_product(inverse_of_lower(t(A)))
  look_for_interrupt()
  t(chol(square))
}

# The lower triangular factor of the inverse of a positive definite matrix; NULL where it is none.
inverse_factor <- function(Q) {
  tryCatch(factor_of_inverse(chol(Q)), error = function(e) NULL)
}

log_det <- function(normal) {
  sum(log(if (is.matrix(normal$L)) diag(normal$L) else normal$L))
}

variances <- function(normal) if (is.matrix(normal$L)) rowSums(normal$L^2) else normal$L^2

# The normal in x whose coordinates in `normal` are `inner`. In many dimensions `inner` has standard
# deviations alone, but a reference that is given may have a matrix.
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

# The normal as one to start from, which is to reach the tails of the target.
inflated <- function(normal) {
  factor <- rules$inflation^sqrt(min(1, rules$inflation_dim / length(normal$mean)))
  normal$L <- sqrt(factor) * normal$L
  normal
}

# A normal reference as such a list.
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

# From weighted points z and gradients g, of which these rows are taken. The match with gradients is
# exact for a normal target, however few genealogies the points come from; where they are wider than
# it says, as they are between two modes or in heavy tails, or narrower, as they are where the density
# ends abruptly, their width counts. NULL where it fails.
normal_by_gradients <- function(z, g, w, genealogies, rows = seq_along(w)) {
  normal <- match_normal(z, g, w, lambda = 1 / sum(w^2), rows)
  if (!is.null(normal)) as_wide_as(normal, z, w, genealogies, rows)
}

# The normal distribution whose gradients are nearest to the gradients g of weighted points, list(x, g, w,
# mean), by least squares; NULL where there is none. L: a factor of about the covariance of the points.
# In the coordinates z = L^-1 x it has the mean `centre`, and a precision with the factor `upper`; y are the
# points in its own coordinates, and `off` is there what is left of the gradients, `nats` half of its mean
# square.
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

# The normal distribution that the target is, by the gradients of weighted points, but for so little that
# no other shape can be closer by more than that; NULL where it is none. nearest: of fit_gaussian_score().
# Where the gradients of log p and of a normal differ by r, the Kullback-Leibler divergence of p from it
# is at most half the mean of r' covariance r, by the logarithmic Sobolev inequality. That is so of
# densities without edges: half of a normal distribution has its gradients too, but not its mean and
# variance. Such a reference is not inflated: there are no tails that it might miss, and in many
# dimensions draws from a wider one come from few of its particles.
exact_normal <- function(points, L, genealogies, nearest = fit_gaussian_score(points, L)) {
  if (isTRUE(nearest$nats < rules$normal_nats) && are_standard(nearest$y, points$w, genealogies)) {
    # which has none where the draws are flat to rounding
    factor <- tryCatch(factor_of_inverse(nearest$upper), error = function(e) NULL)
    if (!is.null(factor)) {
      as_exact(new_fitted_reference(points$mean + drop(L %*% nearest$centre), L %*% factor))
    }
  }
}

# Marks a reference as the distribution that the target is.
as_exact <- function(reference) {
  reference$fitted_to <- "gradients"
  reference
}

is_exact_reference <- function(reference) identical(reference$fitted_to, "gradients")

# Whether the means and variances of n independent weighted points are those of standard normal
# variables, but for chance: 2 d squares.
are_standard <- function(y, w, n) {
  d <- ncol(y)
  squares <- n * sum(weighted_mean(y, w)^2) + n / 2 * sum((weighted_squares(y, w) - 1)^2)
  isTRUE(squares < 2 * d + rules$chance_sds * sqrt(2 * 2 * d))
}

# The normal that matches weighted points z and their gradients, started from N(0, I)
# (Cai et al., 2024): the larger lambda, the less of the start is left. It minimises a
# divergence between gradients, so that for a normal target it is exact, wherever the
# points are, as soon as they are more than the dimension; in directions in which there are no points the
# start stays. In many dimensions coordinate by coordinate. NULL where it fails.
match_normal <- function(z, g, w, lambda, rows = NULL) {
  .Call(r_match_normal, z, g, w, lambda, rows, ncol(z) > rules$largest_dense)
}

# The variance of n points of a standard normal distribution in d dimensions along the direction where it is largest, by
# chance (Marchenko and Pastur, 1967): one time in ten it is above, for 1 to 6 dimensions and 60 points or more. And
# along that where it is smallest.
widest_by_chance <- function(d, n) (1 + sqrt(d / n))^2
narrowest_by_chance <- function(d, n) max(0, 1 - sqrt(d / n))^2

# The normal as wide as weighted points, in the directions in which these are wider or narrower than
# it by more than chance. They are narrower where the density ends abruptly, of which gradients know nothing.
as_wide_as <- function(normal, z, w, n, rows = seq_along(w)) {
  factor_of_sd <- function(variance, d) {
    wider <- pmax(1, variance / widest_by_chance(d, n))
    # in directions in which there are no points, but for rounding, they say nothing
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

# A normal reference with the factor of a covariance.
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
