# A polynomial that replaces an expensive log density near its mode (target_effects.R), by weighted least squares.

# The terms up to degree 4 in each pair of d variables. A row is a term: powers `a` and `b` of variables `i` and `j`.
polynomial_terms <- function(d) {
  powers <- as.matrix(expand.grid(a = 1:3, b = 1:3))
  powers <- powers[rowSums(powers) <= 4, ]
  pairs <- if (d > 1) t(utils::combn(d, 2)) else matrix(0, 0, 2)
  rbind(
    c(i = 1, j = 1, a = 0, b = 0), cbind(rep(seq_len(d), each = 4), 1, rep(1:4, d), 0),
    cbind(
      pairs[rep(seq_len(nrow(pairs)), each = nrow(powers)), , drop = FALSE],
      powers[rep(seq_len(nrow(powers)), nrow(pairs)), , drop = FALSE]
    )
  )
}

# A matrix of the terms at the rows of z, a column for each term; with k, of their derivatives by variable k.
term_values <- function(terms, z, k = NULL) {
  power <- function(variable, degree) z[, terms[, variable], drop = FALSE]^rep(pmax(degree, 0), each = nrow(z))
  a <- terms[, "a"]
  b <- terms[, "b"]
  if (is.null(k)) {
    return(power("i", a) * power("j", b))
  }
  of_i <- rep(a * (terms[, "i"] == k), each = nrow(z))
  of_j <- rep(b * (terms[, "j"] == k), each = nrow(z))
  of_i * power("i", a - 1) * power("j", b) + of_j * power("i", a) * power("j", b - 1)
}

# Fits log densities and gradients at the rows of z, coordinates in which the density is nearly standard normal.
fit_polynomial <- function(z, log_density, gradient) {
  d <- ncol(z)
  terms <- polynomial_terms(d)
  design <- do.call(rbind, c(list(term_values(terms, z)), lapply(seq_len(d), function(k) term_values(terms, z, k))))
  root <- rep(exp(-rowSums(z^2) / 8), d + 1) # square roots of weights, which are smaller far from the mode
  coefficients <- least_squares(root * design, cbind(root * c(log_density, gradient)))
  list(terms = terms, coefficients = drop(coefficients))
}

polynomial_at <- function(polynomial, z) drop(term_values(polynomial$terms, z) %*% polynomial$coefficients)

polynomial_slope <- function(polynomial, z) {
  terms <- polynomial$terms
  by_variable <- function(k) drop(term_values(terms, z, k) %*% polynomial$coefficients)
  matrix(vapply(seq_len(ncol(z)), by_variable, numeric(nrow(z))), nrow(z))
}

# Within this distance from the mode only the polynomial is used; over one more standard deviation its share falls to 0.
polynomial_reach <- function(d) sqrt(d) + 3

# The share of the polynomial at the rows of z, from 1 to 0, and its gradient.
polynomial_share <- function(z) {
  z[!is.finite(z)] <- 1e10
  r <- sqrt(rowSums(z^2))
  t <- pmax(pmin(polynomial_reach(ncol(z)) + 1 - r, 1), 0)
  list(share = t^2 * (3 - 2 * t), gradient = -6 * t * (1 - t) / pmax(r, 1) * z)
}
