# Whitening: a reference that is fitted to the particles of a round.

# The variance of a fitted reference is larger than that of the particles: tails
# that are too light make an estimate that is too low, and looks fine.
inflation <- 1.5

# A reference fitted to the particles of a round; NULL when too few are left. It is a
# normal distribution, x = mean + L z; or, where some coordinates drive the scales of
# others as in a funnel, x = mean + L u(z) with u as in src/driven.h. `round` is of
# run_sampler(), with the `reference` of the run.
fit_reference <- function(round, drivable = TRUE) {
  weighty <- weighty_rows(round$log_weights)
  w <- weighty$w
  particles <- unconstrained_particles(round)[weighty$rows, , drop = FALSE]
  if (1 / sum(w^2) < max(10, ncol(particles))) {
    return(NULL)
  }
  mean <- mean_of_target(round, weighty)
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

# On the scale of the reference.
unconstrained_particles <- function(round) {
  if (is.null(round$unconstrained)) round$particles else round$unconstrained
}

# The particles that have weight, and these weights, normalised. The others may be
# anywhere, and squares of theirs infinite.
weighty_rows <- function(log_weights) {
  w <- exp(log_weights - max(log_weights))
  rows <- which(w > 1e-12)
  list(rows = rows, w = w[rows] / sum(w[rows]))
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

# the place alone -------------------------------------------------------------

# The reference that a round was run with, moved to the mean of its particles; NULL where
# it is not normal, or where these are twice as wide somewhere: then it would leave a part
# of the target behind.
move_reference <- function(round) {
  weighty <- weighty_rows(round$log_weights)
  if (!has_normal_gradients(round) || 1 / sum(weighty$w^2) < 10) {
    return(NULL)
  }
  z <- round$coordinates[weighty$rows, , drop = FALSE]
  variance <- colSums(weighty$w * z^2) - colSums(weighty$w * z)^2
  mean <- mean_of_target(round, weighty)
  if (!all(is.finite(mean)) || any(variance > 4)) {
    return(NULL)
  }
  reference <- round$reference
  reference$mean <- mean
  reference
}

# Whether a round has gradients, by which its coordinates x = mean + L z move.
has_normal_gradients <- function(round) {
  inherits(round$reference, "smc_reference_gaussian") &&
    !is_driven(round$reference) &&
    !is.null(round$gradients)
}

# The mean of the target, from the particles of a round. In many dimensions these descend
# from few ancestors, and their own mean says more of them than of the target. But the
# gradients of a log density have mean zero, and follow the particles: as control variates
# they take most of the noise out (Mira, Solgi and Imparato, 2013).
mean_of_target <- function(round, weighty) {
  rows <- function(x) x[weighty$rows, , drop = FALSE]
  if (!has_normal_gradients(round)) {
    return(colSums(weighty$w * rows(unconstrained_particles(round))))
  }
  mean <- controlled_mean(rows(round$coordinates), rows(round$gradients), weighty$w)
  reference <- round$reference
  L <- reference$chol
  reference$mean + if (is.null(L)) reference$sd * mean else as.vector(L %*% mean)
}

# The means of weighted rows, each with the column of `controls`, of true mean zero, that
# belongs to it as a control variate, where that varies and its squares are finite.
controlled_mean <- function(x, controls, w) {
  off <- colSums(w * controls)
  centred <- sweep(controls, 2, off)
  variance <- colSums(w * centred^2)
  varies <- variance > 1e-24 * off^2 # but for rounding
  slope <- colSums(w * centred * x) / variance
  correction <- slope * off
  colSums(w * x) - ifelse(varies & is.finite(correction), correction, 0)
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
