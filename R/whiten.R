# Whitening: a reference that is fitted to the particles of a round.

# The variance of a fitted reference is larger than that of the particles: tails
# that are too light make an estimate that is too low, and looks fine.
inflation <- 1.5

# A reference fitted to weighted particles; NULL when too few are left. It is a normal
# distribution, x = mean + L z; or, where some coordinates drive the scales of others
# as in a funnel, x = mean + L u(z) with u as in src/driven.h.
fit_reference <- function(particles, log_weights, drivable = TRUE) {
  w <- exp(log_weights - max(log_weights))
  weighty <- w > 1e-12 # the others may be anywhere, and squares of theirs infinite
  particles <- particles[weighty, , drop = FALSE]
  w <- w[weighty] / sum(w[weighty])
  if (1 / sum(w^2) < max(10, ncol(particles))) {
    return(NULL)
  }
  mean <- colSums(w * particles)
  x <- sweep(particles, 2, mean)
  L <- fit_scale(x, w, mean)
  if (is.null(L)) {
    return(NULL)
  }
  driven <- if (drivable) fit_driven(x, w, L)
  if (is.null(driven)) {
    return(new_fitted_reference(mean, sqrt(inflation) * L))
  }
  new_fitted_reference(
    mean + driven$centre,
    sqrt(inflation) * driven$L,
    list(
      drivers = driven$drivers,
      shift = driven$shift,
      slope = sqrt(inflation) * driven$slope
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
