# Whitening: a reference that is fitted to the particles of a round.

# The variance of a fitted reference is larger than that of the particles: tails
# that are too light make an estimate that is too low, and looks fine.
inflation <- 1.5

# A reference fitted to weighted particles; NULL when too few are left. It is a normal
# distribution, x = mean + L z; or, where some coordinates drive the scales of others
# as in a funnel, x = mean + L u(z) with u as in src/driven.h.
fit_reference <- function(particles, log_weights, drivable = TRUE) {
  w <- exp(log_weights)
  n <- 1 / sum(w^2)
  if (n < max(10, ncol(particles))) {
    return(NULL)
  }
  mean <- colSums(w * particles)
  centred <- sweep(particles, 2, mean)
  L <- fit_scale(centred * sqrt(w * n / (n - 1)), mean, n)
  if (is.null(L)) {
    return(NULL)
  }
  u <- t(forwardsolve(L, t(centred)))
  driven <- if (drivable) fit_driven(u, w, n)
  if (is.null(driven)) {
    return(new_fitted_reference(mean, sqrt(inflation) * L))
  }
  # the fit is u = centre + shift z + scale exp(slope z) z', with unit z'
  scale <- sqrt(inflation) * driven$scale
  of_drivers <- rep(scale[driven$drivers], each = length(mean))
  new_fitted_reference(
    mean + drop(L %*% driven$centre),
    L %*% diag(scale),
    list(
      drivers = driven$drivers,
      shift = driven$shift / scale * of_drivers,
      slope = driven$slope * of_drivers
    )
  )
}

# driven: list(drivers, shift, slope), the last two dim x length(drivers) matrices.
new_fitted_reference <- function(mean, chol, driven = NULL) {
  if (all(chol[lower.tri(chol)] == 0) && is.null(driven)) {
    return(reference_gaussian(mean, sd = diag(chol)))
  }
  reference <- reference_gaussian(mean)
  reference$sd <- NULL
  reference$chol <- chol
  reference$driven <- driven
  reference
}

# the scale -------------------------------------------------------------------

# The lower triangular factor of the covariance of rows that have mean 0 and sum to it;
# NULL when there is none. The covariance is full when there are many particles for the
# dimension, with its correlations shrunk by the rule of Schaefer and Strimmer (2005),
# and else diagonal; with fewer particles than dimensions even that is not worth it.
fit_scale <- function(rows, mean, n) {
  d <- ncol(rows)
  variance <- colSums(rows^2)
  constant <- variance <= 1e-24 * mean^2 # but for rounding
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

# driven coordinates ----------------------------------------------------------

# log of a squared standard normal
log_chisq_variance <- pi^2 / 2

# A driver is worth it when it explains this part of the variance of the log squares
# of the others, in the mean over them. It takes a scale that changes by 30 % for one
# standard deviation of the driver.
least_explained <- 0.05

# The drivers among the standardised coordinates u (n x d), one after the other as
# long as there are any, and how the rest hangs on them, with the rest's `scale` where
# the drivers are 0. NULL when there are none.
fit_driven <- function(u, w, n) {
  driven <- NULL
  z <- u
  repeat {
    driver <- find_driver(z, w, n, driven$drivers)
    tried <- if (!is.null(driver)) follow(u, w, c(driven$drivers, driver))
    if (is.null(tried)) {
      return(driven)
    }
    driven <- tried
    z <- driven$z
  }
}

# The coordinate with the strongest linear relation to the log squares of the others,
# that is, twice the logarithm of their scale; NULL when it is weak, or may be chance.
find_driver <- function(z, w, n, drivers) {
  free <- setdiff(seq_len(ncol(z)), drivers)
  z <- z[, free, drop = FALSE]
  followers <- length(free) - 1
  if (followers < 1) {
    return(NULL)
  }
  centred <- sweep(z, 2, colSums(w * z))
  log_square <- log(z^2 + 1e-300)
  log_square <- sweep(log_square, 2, colSums(w * log_square))
  covariance <- crossprod(w * centred, log_square)
  explained <- covariance^2 / colSums(w * centred^2) / log_chisq_variance
  diag(explained) <- 0
  sums <- rowSums(explained)
  # n times the sum is chi-squared where there is no relation
  chance <- (followers + 8 * sqrt(2 * followers)) / n
  best <- which.max(sums)
  if (isTRUE(sums[best] > max(chance, least_explained * followers))) free[best]
}

# The others given the drivers: location by weighted least squares, log scale by
# regression of the log squares of what is left, in turn. The weights matter: where
# the scale is small the location must be right to a fraction of it.
follow <- function(u, w, drivers, n_sweeps = 3) {
  d <- ncol(u)
  design <- cbind(1, u[, drivers, drop = FALSE])
  location <- log_scale <- matrix(0, ncol(design), d)
  followers <- setdiff(seq_len(d), drivers)
  residual <- u
  for (sweep in seq_len(n_sweeps)) {
    for (j in followers) {
      precision <- w * exp(-2 * drop(design %*% log_scale[, j]))
      at <- regress(design, u[, j], precision)
      location[, j] <- at$coefficients
      residual[, j] <- at$residuals
      # least squares draws the line to the points that it hangs on: make up for it
      square <- at$residuals^2 / (1 - at$leverage) + 1e-300
      log_scale[, j] <- regress(design, log(square) / 2, w)$coefficients
    }
  }
  log_scale[1, ] <- 0 # the constant is the business of `scale`
  z <- residual * exp(-design %*% log_scale)
  driven <- list(
    drivers = drivers,
    z = z,
    centre = location[1, ],
    shift = t(location[-1, , drop = FALSE]),
    slope = t(log_scale[-1, , drop = FALSE]),
    scale = sqrt(colSums(w * z^2))
  )
  if (all(vapply(driven, function(x) all(is.finite(x)), NA))) driven
}

# Weighted least squares. The leverage is kept below 1, where nothing is left to see.
regress <- function(design, y, weights) {
  root <- sqrt(weights / sum(weights))
  decomposition <- qr(design * root)
  coefficients <- qr.coef(decomposition, y * root)
  list(
    coefficients = coefficients,
    residuals = drop(y - design %*% coefficients),
    leverage = pmin(rowSums(qr.Q(decomposition)^2), 1 - 1e-8)
  )
}
