# Points taken through chains of maps, and back.

# Rows of z after maps, one after the other; with gradients g of a log density at z those of the density that the images
# have; or points alone: list(x, g, log_jacobian), where the last is the log determinant of the derivative of x by z, a
# number a point.
through_maps <- function(maps, z, g = NULL) .Call(r_chain, maps, z, g, FALSE, n_threads())

# The way back: the points x that these maps lead to the rows of z from.
before_maps <- function(maps, z, g = NULL) .Call(r_chain, maps, z, g, TRUE, n_threads())
