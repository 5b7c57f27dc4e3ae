# Driven coordinates: what in a fitted reference follows others, see src/driven.h.

# log of a squared standard normal
log_chisq_variance <- pi^2 / 2

# A driver is worth it when it explains this part of the variance of the log squares
# of the others, in the mean over them. It takes a scale that changes by 40 % for one
# standard deviation of the driver.
least_explained <- 0.1

# How weighted particles of mean 0 hang on drivers among their coordinates, as follow()
# returns it. Drivers are found one after the other, as long as there are any; NULL when
# there are none, or when the normal distribution with the factor L is likelier.
fit_driven <- function(x, w, L) {
  z <- whitened(L, x)
  log_density <- sum(w * log_normal(z, L))
  # Correlations that are there by chance hide what is small in the neck of a funnel:
  # the coordinates as they are may show it better.
  views <- list(z, sweep(x, 2, sqrt(colSums(w * x^2)), "/"))
  driven <- NULL
  repeat {
    driver <- find_driver(x, w, views, driven$drivers)
    tried <- if (!is.null(driver)) follow(x, w, c(driven$drivers, driver))
    if (!isTRUE(tried$log_density > log_density)) {
      return(driven)
    }
    driven <- tried
    log_density <- driven$log_density
    views <- list(driven$z)
  }
}

# z in the rows L z of x.
whitened <- function(L, x) t(forwardsolve(L, t(x)))

# The log density of L z, where z is standard normal, but for a constant.
log_normal <- function(z, L) -rowSums(z^2) / 2 - sum(log(diag(L)))

# The coordinate with the strongest linear relation to the log squares of the others,
# that is, twice the logarithm of their scale, in one of their views; NULL when it is
# weak, or may be chance.
find_driver <- function(x, w, views, drivers) {
  free <- setdiff(seq_len(ncol(x)), drivers)
  followers <- length(free) - 1
  if (followers < 1) {
    return(NULL)
  }
  x <- x[, free, drop = FALSE]
  explained <- lapply(views, function(z) {
    log_square <- log(z[, free, drop = FALSE]^2 + 1e-300)
    log_square <- sweep(log_square, 2, colSums(w * log_square))
    part <- crossprod(w * x, log_square)^2 / colSums(w * x^2) / log_chisq_variance
    diag(part) <- 0
    rowSums(part)
  })
  explained <- do.call(pmax, explained)
  # n times the sum is chi-squared where there is no relation
  n <- 1 / sum(w^2)
  chance <- (followers + 8 * sqrt(2 * followers)) / n
  best <- which.max(explained)
  if (isTRUE(explained[best] > max(chance, least_explained * followers))) free[best]
}

# The particles given the drivers: x = centre + L u with u(z) as in src/driven.h, where
# z has unit variance. L has the drivers' factor and the followers', and nothing between
# them. Location and log scale are found in turn, the location by weighted least squares
# and the log scale by regression of the log squares of what is left. The weights matter:
# where the scale is small the location must be right to a fraction of it.
follow <- function(x, w, drivers, n_sweeps = 3) {
  d <- ncol(x)
  followers <- setdiff(seq_len(d), drivers)
  among_drivers <- fit_scale(x[, drivers, drop = FALSE], w)
  if (is.null(among_drivers)) {
    return(NULL)
  }
  L <- matrix(0, d, d)
  L[drivers, drivers] <- among_drivers
  design <- cbind(1, whitened(among_drivers, x[, drivers, drop = FALSE]))
  location <- log_scale <- matrix(0, ncol(design), d)
  for (sweep in seq_len(n_sweeps)) {
    # the scale that the followers have in common must not count in their correlations
    common <- rowMeans(log_scale[, followers, drop = FALSE])
    precision <- precisions(w, design %*% common)
    rest <- regress(design, x[, followers, drop = FALSE], precision)$residuals
    among_followers <- fit_scale(rest, precision)
    if (is.null(among_followers)) {
      return(NULL)
    }
    L[followers, followers] <- among_followers
    u <- whitened(L, x)
    for (j in followers) {
      at <- regress_briefly(design, u[, j], precisions(w, design %*% log_scale[, j]))
      location[, j] <- at$coefficients
      # least squares draws the line to the points that it hangs on: make up for it
      square <- at$residuals^2 / (1 - at$leverage) + 1e-300
      log_scale[, j] <- regress(design, log(square) / 2, w)$coefficients
    }
    log_scale[1, ] <- 0 # the constant is the business of L
  }
  z <- (u - design %*% location) * exp(-design %*% log_scale)
  scale <- sqrt(colSums(w * z^2))
  scale[drivers] <- 1
  z <- sweep(z, 2, scale, "/")
  driven <- list(
    drivers = drivers,
    z = z,
    centre = drop(L %*% location[1, ]),
    L = L %*% diag(scale),
    shift = t(location[-1, , drop = FALSE]) / scale,
    slope = t(log_scale[-1, , drop = FALSE])
  )
  driven$log_density <-
    sum(w * (log_normal(z, driven$L) - rowSums(design %*% log_scale)))
  if (all(vapply(driven, function(x) all(is.finite(x)), NA))) driven
}

# Weights w over squared scales; they sum to one.
precisions <- function(w, log_scale) exp(normalise_log(log(w) - 2 * drop(log_scale)))

# Weighted least squares; y is a vector, or a matrix with a column a variable. The
# leverage is kept below 1, where nothing is left to see. `spread` is the diagonal of
# the coefficients' covariance, in units of the residual's.
regress <- function(design, y, weights) {
  root <- sqrt(weights)
  decomposition <- qr(design * root)
  coefficients <- qr.coef(decomposition, y * root)
  list(
    coefficients = coefficients,
    residuals = y - design %*% coefficients,
    leverage = pmin(rowSums(qr.Q(decomposition)^2), 1 - 1e-8),
    spread = diag(chol2inv(qr.R(decomposition)))
  )
}

# The same for a vector y, without the slopes that may as well be 0 (by Schwarz's
# criterion): they would do harm where the line goes on and the particles do not.
regress_briefly <- function(design, y, weights) {
  n <- 1 / sum(weights^2)
  full <- regress(design, y, weights)
  variance <- sum(weights * full$residuals^2) * full$spread / n
  needed <- full$coefficients^2 > log(n) * variance
  needed[1] <- TRUE # the constant
  brief <- regress(design[, needed, drop = FALSE], y, weights)
  coefficients <- replace(numeric(ncol(design)), needed, brief$coefficients)
  list(
    coefficients = coefficients,
    residuals = brief$residuals,
    leverage = brief$leverage
  )
}
