# What the fits of references share: weights, genealogies, and normal distributions as references.

# Of several fits, some of which may be NULL; NULL for none.
likeliest <- function(fits) best_of(fits, function(fit) fit$criterion)

# The log density of L z, where z is standard normal, but for a constant.
log_normal <- function(z, L) -rowSums(z^2) / 2 - sum(log(diag(L)))

# What a point of mean 0 says of the logarithm of its scale there: that of its size, which
# is noisy, and low by a constant; or where there are gradients, which for a normal
# distribution are g = -z / scale^2, the logarithm of sqrt(|z / g|), which is exact.
log_scales <- function(z, g) {
  log_size <- function(x) log(x^2 + rules$least_square) / 2
  if (is.null(g)) log_size(z) else (log_size(z) - log_size(g)) / 2
}

# Of some coordinates what `common` times the columns of a design, and a constant, do not
# explain, in units of `common`: the residuals z, their gradients g, and the factor L of
# their covariance, or NULL; NULL for all where a point is further down a neck than numbers go.
rest_of <- function(points, coordinates, common, design) {
  if (!are_normal_numbers(common)) {
    return(NULL)
  }
  fit <- weighted_least_squares(
    cbind(1, common * design), points$x[, coordinates, drop = FALSE],
    precisions(points$w, common)
  )
  z <- fit$residuals / common
  g <- if (!is.null(points$g)) points$g[, coordinates, drop = FALSE] * common
  list(z = z, g = g, L = factor_of(z, g, points$w))
}

# Subnormal numbers have few digits, and their inverses may be infinite.
are_normal_numbers <- function(x) {
  isTRUE(all(x >= .Machine$double.xmin & x <= .Machine$double.xmax))
}

# The factor of the covariance of weighted points: by gradients, where there are any.
factor_of <- function(z, g, w) {
  if (is.null(g)) fit_scale(z, w) else match_normal(z, g, w, lambda = 1 / sum(w^2))$L
}

# Weights w over squared scales; they sum to one.
precisions <- function(w, scale) exp(normalise_log(log(w) - 2 * log(scale)))

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
    is.null(reference$conditional) && is.null(reference$tails) && is.null(reference$changes)
}

# A reference that is normal in other coordinates. shape: of fit_shape(), with `L`,
# `conditioning`, `shift`, `slope`, `curve`, `bent`, `width` and `place` of condition_on(), and `tails` of fit_tails(),
# where there are any; changes: of the space of which it is the shape. The conditioning
# variables are inflated more: particles that began in the middle of a neck, or of a bend, have not
# seen its ends.
new_shaped_reference <- function(mean, shape, changes = list()) {
  reference <- new_fitted_reference(mean + shape$centre, shape$L)
  if (!is.null(shape$conditioning)) {
    reference$conditional <- shape[intersect(names(shape), conditional_parameters)]
  }
  reference$tails <- shape$tails[c("location", "scale", "skew", "tail")]
  if (length(changes) > 0) reference$changes <- changes
  reference$inflation <- rep(sqrt(rules$inflation), length(mean))
  reference$inflation[shape$conditioning] <- sqrt(rules$inflation_conditioning)
  if (!is.null(shape$known)) reference$inflation[shape$known] <- sqrt(shape$inflation)
  reference
}

# Of condition_on() and of neck_on().
conditional_parameters <- c(
  "kind", "conditioning",
  "offset", "shift", "slope", "curve", "bent", "width", "place",
  "rate", "slope_found", "centre_of_share", "bend", "pull", "scale", "axes"
)

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
  mean <- weighted_sums(x, w)
  L <- fit_scale(sweep(x, 2, mean), w, mean)
  if (!is.null(L)) list(mean = mean, L = L)
}

# Whether those of all numbers are finite: fits take them.
have_fourth_powers <- function(x, g) all(is.finite(x^4), is.finite(g^4))

# The normal distribution with the moments of points; NULL where they have no covariance.
normal_shape <- function(points) {
  L <- fit_scale(points$x, points$w, points$mean)
  if (!is.null(L)) {
    z <- whitened(L, points$x)
    list(z = z, L = L, centre = 0, criterion = sum(points$w * log_normal(z, L)))
  }
}

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
  constant <- variance <= rules$rounding * mean^2
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
  upper <- tryCatch(chol(correlation), error = function(e) NULL)
  if (!is.null(upper)) sd * t(unname(upper))
}

# That which leaves least of the gradients, or the first that leaves less than `enough`; NULL for
# none.
least_left <- function(fits, enough = 0) best_of(fits, function(fit) -max(fit$left, enough))
