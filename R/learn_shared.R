# Helpers that several fits of references share: weights, genealogies, moments and kinds of references.

# A variance relative to the squared mean that may be rounding: (1e-12)^2.
rounding_of_square <- 1e-24

# The log density of a normal distribution at the points whose standardised coordinates are z, without the constant.
log_normal <- function(z, normal) -rowSums(z^2) / 2 - log_det(normal)

# Every k-th of the weighted rows, so that at most n are left, or `least_rows` if that is more.
thin_rows <- function(weighty, n) {
  by <- ceiling(length(weighty$rows) / max(n, rules$least_rows))
  keep <- seq(1, length(weighty$rows), by = by)
  w <- weighty$w[keep]
  list(rows = weighty$rows[keep], w = w / sum(w))
}

# The effective number of genealogies: an effective sample size in which particles that descend from the same initial
# one count as one.
n_genealogies <- function(record) {
  n_independent(exp(normalise_log(record$log_weights)), record$origins)
}

# The same for normalised weights w and any groups.
n_independent <- function(w, groups) 1 / concentration(w, groups)

# Whether each row is in the first of two halves. Particles of one genealogy are in the same half.
in_first_half <- function(record, rows) record$origins[rows] %% 2 == 0

is_normal <- function(reference) {
  inherits(reference, "smc_reference_gaussian") && is.null(reference$maps) && is.null(reference$changes)
}

# Whether a reference has no maps: a user's function, a normal distribution or a mixture.
is_plain <- function(reference) {
  is_function_reference(reference) || is_normal(reference) || is_mixture(reference)
}

# list(mean, L, centred): the mean of the particles, the factor of their covariance, and the centred particles; NULL if
# the effective sample size is too small, see moments_of().
weighted_factor <- function(record, weighty) {
  x <- unconstrained_particles(record)[weighty$rows, , drop = FALSE]
  moments <- moments_of(x, weighty$w)
  if (!is.null(moments)) c(moments, list(centred = sweep(x, 2, moments$mean)))
}

# list(mean, L) of the rows of x; NULL if the effective sample size is below the dimension or rules$least_ess. The
# normalised weights w may be NaN.
moments_of <- function(x, w) {
  if (!isTRUE(1 / sum(w^2) >= max(rules$least_ess, ncol(x)))) {
    return(NULL)
  }
  mean <- weighted_mean(x, w)
  L <- fit_scale(sweep(x, 2, mean), w, mean)
  if (!is.null(L)) list(mean = mean, L = L)
}

# Whether the fourth powers of all numbers are finite, as fits require.
fourth_powers_finite <- function(x, g) all(is.finite(x^4), is.finite(g^4))

# The lower triangular factor of the covariance of centred weighted rows; NULL if a coordinate is constant or not
# finite. With an effective sample size of at least 6 d the covariance is full, with correlations shrunk by the rule of
# Schaefer and Strimmer (2005); else it is diagonal. mean: what was subtracted from the rows.
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

# Least damping of normal equations whose columns have unit length, so that they are not singular.
least_damping <- 1e-9

# Nonlinear least squares by the method of Levenberg and Marquardt, with `free` as initial parameters: list(free, at,
# left), the parameters found, residual_at() there, and the sum of squares. residual_at(free) returns a list with the
# residual r, slopes_at(free, at) the derivatives of r, a column for each parameter. At most `most` iterations.
damped_least_squares <- function(free, residual_at, slopes_at, most) {
  at <- residual_at(free)
  left <- sum(at$r^2)
  damping <- least_damping
  for (iteration in seq_len(most)) {
    slopes <- slopes_at(free, at)
    products <- cross_product(slopes)
    size <- sqrt(diag(products)) + .Machine$double.xmin
    if (!all(is.finite(c(left, size)))) break
    left_before <- left
    H <- products / tcrossprod(size)
    h <- cross_product(slopes, -at$r) / size
    for (try in 1:6) {
      moved <- free + drop(solved(H + diag(damping, length(size)), h)) / size
      new <- residual_at(moved)
      left_new <- sum(new$r^2)
      if (isTRUE(left_new < left)) {
        free <- moved
        at <- new
        left <- left_new
        break
      }
      damping <- max(20 * damping, 1e-4)
    }
    if (left_before - left < 1e-7 * left_before) break
    damping <- max(damping / 10, least_damping)
  }
  list(free = free, at = at, left = left)
}
