# What the fits of references share: weights, genealogies, and normal distributions as references.

# Variance relative to the squared mean that may be rounding: (1e-12)^2.
rounding_of_square <- 1e-24

# The log density of a normal distribution at its coordinates z, but for a constant.
log_normal <- function(z, normal) -rowSums(z^2) / 2 - log_det(normal)

# Every so many of the rows, so that at most n are left, but no less than `least_rows`.
thinned <- function(weighty, n) {
  by <- ceiling(length(weighty$rows) / max(n, rules$least_rows))
  keep <- seq(1, length(weighty$rows), by = by)
  w <- weighty$w[keep]
  list(rows = weighty$rows[keep], w = w / sum(w))
}

# How many independent draws the particles are worth, by their genealogies: which of them
# descend from the same first one.
n_genealogies <- function(record) {
  n_independent(exp(normalise_log(record$log_weights)), record$origins)
}

# The same for normalised weights of particles of these groups.
n_independent <- function(w, groups) 1 / concentration(w, groups)

# Which rows are in the first of two halves, in which particles of one genealogy stay together.
in_first_half <- function(record, rows) record$origins[rows] %% 2 == 0

is_normal <- function(reference) {
  inherits(reference, "smc_reference_gaussian") &&
    is.null(reference$maps) && is.null(reference$changes)
}

# Whether a reference has no shape.
is_plain <- function(reference) {
  is_function_reference(reference) || is_normal(reference) || is_mixture(reference)
}

# The mean of the particles, and the factor of their covariance; NULL where there are
# fewer of them than dimensions.
weighted_factor <- function(record, weighty) {
  x <- unconstrained_particles(record)[weighty$rows, , drop = FALSE]
  moments <- moments_of(x, weighty$w)
  if (!is.null(moments)) c(moments, list(centred = sweep(x, 2, moments$mean)))
}

# The same of the rows of x with normalised weights w, which are NaN where none has any.
moments_of <- function(x, w) {
  if (!isTRUE(1 / sum(w^2) >= max(rules$least_ess, ncol(x)))) {
    return(NULL)
  }
  mean <- weighted_mean(x, w)
  L <- fit_scale(sweep(x, 2, mean), w, mean)
  if (!is.null(L)) list(mean = mean, L = L)
}

# Whether those of all numbers are finite: fits take them.
have_fourth_powers <- function(x, g) all(is.finite(x^4), is.finite(g^4))

# The lower triangular factor of the covariance of weighted rows of mean 0; NULL when
# there is none. `mean` is what was taken from them to get there. The covariance is full
# when there are many particles for the dimension, with its correlations shrunk by the
# rule of Schaefer and Strimmer (2005), and else diagonal; with fewer particles than
# dimensions even that is not worth it.
fit_scale <- function(x, w, mean = 0) {
  d <- ncol(x)
  n <- 1 / sum(w^2)
  rows <- x * sqrt(w * n / (n - 1))
  variance <- colSums(rows^2)
  constant <- variance <= rounding_of_square * mean^2
  if (!all(is.finite(c(mean, variance))) || any(constant)) {
    return(NULL)
  }
  sd <- sqrt(variance)
  if (d == 1 || n < 6 * d) {
    return(diag(sd, d))
  }
  correlation <- stats::cov2cor(crossprod(rows))
  square <- correlation[upper.tri(correlation)]^2
  shrinkage <- min(1, sum((1 - square)^2 / (n - 1)) / sum(square))
  correlation <- (1 - shrinkage) * correlation
  diag(correlation) <- 1
  upper <- factor_or_null(correlation)
  if (!is.null(upper)) sd * t(unname(upper))
}
