# What the user knows a target's variables as.

# The sampler's particles (n x dim) as the draws of a fit: a row a particle, a named
# column for each of the target's variables. A target with an element `outputs`, a
# function of such a matrix, has draws of other things than the sampler moves.
outputs_of <- function(target, particles, log_weights) {
  particles <- replace_weightless(particles, log_weights)
  if (is.null(target$outputs)) particles else target$outputs(particles)
}

# A particle without weight may be at a place where variables are infinite or do not exist,
# and zero times these is no number: it becomes a copy of one that has weight.
replace_weightless <- function(particles, log_weights) {
  weightless <- which(exp(log_weights) == 0)
  if (length(weightless) == 0) {
    return(particles)
  }
  rows <- replace(seq_along(log_weights), weightless, which.max(log_weights))
  particles[rows, , drop = FALSE]
}
