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

# The coefficients of each column of y on the columns of x, a column each; 0 for columns that others
# make up. By the normal equations where the columns are far from that, and else by qr().
least_squares <- function(x, y) {
  size <- sqrt(weighted_squares(x, rep(1, nrow(x))))
  unit <- sweep(x, 2, size, "/")
  upper <- factor_of_products(cross_product(unit))
  if (is.null(upper)) {
    coefficients <- qr.coef(qr(x), y)
    return(replace(coefficients, is.na(coefficients), 0))
  }
  backsolve(upper, backsolve(upper, cross_product(unit, y), transpose = TRUE)) / size
}

# The upper triangular factor of the products of columns of unit length; NULL where these are not far from collinear.
factor_of_products <- function(products) {
  upper <- tryCatch(chol(products), error = function(e) NULL)
  # of a column of zeros, which has no unit, some BLAS make no error, but a factor that is no number
  if (!is.null(upper) && isTRUE(min(diag(upper)) >= far_from_collinear)) upper
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
