# Matrix products and least squares by the products of the C core (product.c), which take a quarter of the time of qr()
# with R's own BLAS. A fit solves some hundred least squares problems.

# Least squares are solved by the normal equations if every pivot of the Cholesky factor, for columns of length 1, is at
# least this large: rounding then changes the coefficients by less than 1e-10. Otherwise qr() is used.
least_squares_pivot <- 1e-3

# a b, of matrices of doubles
multiply <- function(a, b) .Call(r_multiply, a, b)

# a' b
cross_product <- function(a, b = a) .Call(r_cross_product, a, b)

# The upper Cholesky factor of a matrix; NULL if it is not positive definite.
factor_or_null <- function(A) tryCatch(chol(A), error = function(e) NULL)

# The coefficients of the columns of y on those of x, a column for each column of y; 0 for collinear columns of x.
least_squares <- function(x, y) solve_least_squares(x, y)$coefficients

# As least_squares(), a list: coefficients; on, the columns of x that are not collinear with others; size, the length
# of each column; and upper, the triangular factor of the columns `on` after scaling to length 1. gram: x' x.
solve_least_squares <- function(x, y, gram = cross_product(x), tol = 1e-7) {
  size <- sqrt(diag(gram)) + .Machine$double.xmin
  on <- seq_len(ncol(x))
  upper <- factor_or_null(gram / tcrossprod(size))
  # for NaN or infinite numbers some BLAS raise no error, but return a factor with NaN
  if (!is.null(upper) && isTRUE(min(diag(upper)) >= least_squares_pivot)) {
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

# Weighted least squares: list(coefficients, residuals).
weighted_least_squares <- function(design, y, weights) {
  root <- sqrt(weights)
  coefficients <- least_squares(design * root, y * root)
  list(coefficients = coefficients, residuals = y - multiply(design, coefficients))
}

# The weighted covariance of x about `mean`. It is summed over blocks, so that its last digits depend on their size.
weighted_covariance <- function(x, w, mean, rows = seq_len(nrow(x))) {
  sum <- matrix(0, ncol(x), ncol(x), dimnames = list(colnames(x), colnames(x)))
  for (i in blocks_of(length(rows), ncol(x))) {
    sum <- sum + cross_product(scaled_rows(x, sqrt(w[i]), mean, rows[i]))
  }
  sum
}
