# What the user knows a target's variables as.

# The sampler's particles (n x dim) as the draws of a fit: a row a particle, a named
# column for each of the target's variables. A target with an element `outputs`, a
# function of such a matrix, has draws of other things than the sampler moves.
outputs_of <- function(target, particles) {
  if (is.null(target$outputs)) particles else target$outputs(particles)
}
