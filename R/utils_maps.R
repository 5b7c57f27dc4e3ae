# Chains of maps (see map.h), forward and inverse: transformed points, gradients and log Jacobians.

# The rows of z after all maps of a list, in order: list(x, g, log_jacobian). If g is given, the gradients of a log
# density at z, the result has those of the log density of x. log_jacobian: log |det dx/dz|, a number a point.
forward_maps <- function(maps, z, g = NULL) .Call(r_chain, maps, z, g, FALSE, n_threads())

# The inverse: the points whose images under the maps are the rows of z. A list as above.
inverse_maps <- function(maps, z, g = NULL) .Call(r_chain, maps, z, g, TRUE, n_threads())
