# References that are fitted to draws, and what they are good for. Laws of maps and fits are tested by these.

# Draws on the unconstrained scale, each with a genealogy of its own, as fits see those of a run.
record_of <- function(x, gradients = NULL, log_weights = rep(-log(nrow(x)), nrow(x)), reference = reference_gaussian(),
                      coordinates = x) {
  list(
    particles = x, coordinates = coordinates, gradients = gradients, log_weights = log_weights,
    origins = seq_len(nrow(x)), reference = reference
  )
}

# What is fitted to draws x of a log density, which may have its gradient as an attribute: list(reference, gain), or
# NULL. is_asked: whether the fit may ask for the density at other points.
shape_of_draws <- function(x, log_density, is_asked = TRUE, ...) {
  density <- density_of(log_density)
  record <- record_of(x, suppressMessages(density(x))$gradient, ...)
  suppressMessages(internal("fit_shape")(record, if (is_asked) density))
}

# How far the other coordinates of a reference are from standard normal ones where the given ones are what they are: the
# standard deviation of the log weights of draws that differ in nothing else. 0 where the reference is exact given these.
# at: values of the given coordinates, a row each, in which the reference is standard normal.
spread_given <- function(given, reference, log_density, dim, at = matrix(rnorm(100 * length(given)), 100)) {
  reference$inflation <- NULL
  target <- target_function(log_density, dim, vectorized = TRUE)
  maps <- internal("reference_maps")(reference, dim)
  log_weights <- function() {
    z <- matrix(rnorm(nrow(at) * dim), nrow(at))
    z[, given] <- at
    internal("evaluate_target")(target, z, FALSE, unconstrained = TRUE, maps = maps)$log_density +
      rowSums(z[, -given, drop = FALSE]^2) / 2
  }
  sd(log_weights() - log_weights()) / sqrt(2)
}

# The factor of the covariance of a reference.
factor_of <- function(reference) {
  if (is.null(reference$chol)) diag(reference$sd, length(reference$mean)) else reference$chol
}
