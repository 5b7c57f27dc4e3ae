# Products of matrices of draws, and least squares: the search for shapes solves a hundred of these in
# a fit. By the core's products (product.c) they take a quarter of the time that qr() takes with R's
# own BLAS.

# Part of a column that those before it do not make up, from which on least squares are solved by
# the normal equations: with less, rounding of these has more than 1e-10 of the coefficients.
far_from_collinear <- 1e-3

# Matrices of doubles, here and below.
multiply <- function(a, b) .Call(r_multiply, a, b)

# a' b
cross_product <- function(a, b = a) .Call(r_cross_product, a, b)

# The upper triangular factor of a positive definite matrix; NULL where it is none.
factor_or_null <- function(A) tryCatch(chol(A), error = function(e) NULL)

# The coefficients of each column of y on the columns of x, a column each; 0 for columns that others
# make up.
least_squares <- function(x, y) solved_squares(x, y)$coefficients

# The same, by the normal equations where columns are far from collinear, and else by qr(): list(coefficients, upper,
# on, size), with the triangular factor of the columns `on` that no others make up, over the size of each. gram: the
# products of the columns with each other.
solved_squares <- function(x, y, gram = cross_product(x), tol = 1e-7) {
  size <- sqrt(diag(gram)) + .Machine$double.xmin
  on <- seq_len(ncol(x))
  upper <- factor_or_null(gram / tcrossprod(size))
  # of numbers that are none some BLAS make no error, but a factor that is no number
  if (!is.null(upper) && isTRUE(min(diag(upper)) >= far_from_collinear)) {
    unit <- backsolve(upper, backsolve(upper, cross_product(x, y) / size, transpose = TRUE))
  } else {
    decomposed <- qr(sweep(x, 2, size, "/"), tol = tol)
    on <- decomposed$pivot[seq_len(decomposed$rank)]
    upper <- qr.R(decomposed)[seq_along(on), seq_along(on), drop = FALSE]
    unit <- qr.coef(decomposed, y)
    unit[!is.finite(unit)] <- 0
  }
  list(coefficients = unit / size, upper = upper, on = on, size = size)
}

# The same with weights: list(coefficients, residuals).
weighted_least_squares <- function(design, y, weights) {
  root <- sqrt(weights)
  coefficients <- least_squares(design * root, y * root)
  list(coefficients = coefficients, residuals = y - multiply(design, coefficients))
}

# Their covariance, of which the means are these. The blocks are added up, and so its rounding, alone
# of all this, depends on them.
weighted_covariance <- function(x, w, mean, rows = seq_len(nrow(x))) {
  sum <- matrix(0, ncol(x), ncol(x), dimnames = list(colnames(x), colnames(x)))
  for (i in blocks_of(length(rows), ncol(x))) {
    sum <- sum + cross_product(scaled_rows(x, sqrt(w[i]), mean, rows[i]))
  }
  sum
}
