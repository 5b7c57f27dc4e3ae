# What the user knows a target's variables as.

# The sampler's particles (n x dim) as the draws of a fit: a row a particle, a named
# column for each of the target's variables. A target with an element `outputs`, a
# function of such a matrix, has draws of other things than the sampler moves.
outputs_of <- function(target, particles, log_weights) {
  # none where all have died, and weights are NaN; asked at once of millions, nearly always with the answer no
  replaced <- if (isTRUE(min(log_weights, 0) < -745)) which(exp(log_weights) == 0)
  if (is.null(target$outputs)) {
    is_nowhere <- !is.finite(rowSums(particles[replaced, , drop = FALSE]))
    return(replace_rows(particles, replaced[is_nowhere], log_weights))
  }
  kept_outputs(target, replace_rows(particles, replaced, log_weights))
}

# Without those columns that are made when they are asked for.
kept_outputs <- function(target, x) {
  if (length(target$later) == 0) target$outputs(x) else target$outputs(x, target$at_once)
}

# A particle without weight may be at a place where variables are infinite or quantities do not
# exist, and zero times these is no number: it becomes a copy of one that has weight.
replace_rows <- function(particles, rows, log_weights) {
  if (length(rows) > 0) particles[rows, ] <- particles[rep(which.max(log_weights), length(rows)), ]
  particles
}
