# From the particles of the sampler to the draws of a fit.

# The draws for these particles (n x dim): a row for each particle, a named column for each variable. A target may have
# an element `outputs`, a function of such a matrix that returns the draws of other quantities than the sampler moves.
outputs_of <- function(target, particles, log_weights) {
  # the minimum first, which is fast and mostly decides; it is NaN if all particles have died, and none is replaced
  replaced <- if (isTRUE(min(log_weights, 0) < -745)) which(exp(log_weights) == 0)
  if (is.null(target$outputs)) {
    is_nowhere <- !is.finite(rowSums(particles[replaced, , drop = FALSE]))
    return(replace_rows(particles, replaced[is_nowhere], log_weights))
  }
  kept_outputs(target, replace_rows(particles, replaced, log_weights))
}

# The draws without the columns `later`, which are computed only on request.
kept_outputs <- function(target, x) {
  if (length(target$later) == 0) target$outputs(x) else target$outputs(x, target$at_once)
}

# Replaces particles of weight 0 by copies of the particle with the largest weight: their variables may be infinite and
# their quantities NaN, and 0 times these would be NaN in means.
replace_rows <- function(particles, rows, log_weights) {
  if (length(rows) > 0) particles[rows, ] <- particles[rep(which.max(log_weights), length(rows)), ]
  particles
}
