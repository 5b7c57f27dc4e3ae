# Maps, as R has them: lists of the `name` of a map in the core and of its parameters. All that they do is done in
# src/map_*.c, both ways.

# Rows of z after maps, one after the other; with gradients g of a log density at z those of the density that the images
# have; or points alone: list(x, g, log_jacobian), where the last is the log determinant of the derivative of x by z, a
# number a point.
through_maps <- function(maps, z, g = NULL) .Call(r_chain, maps, z, g, FALSE, n_threads())

# The way back: the points x that these maps lead to the rows of z from.
before_maps <- function(maps, z, g = NULL) .Call(r_chain, maps, z, g, TRUE, n_threads())

# The gradients of the log target on the unconstrained scale at some of a record's
# particles, from those in the coordinates of its reference; NULL where there are none, or
# not all of them are finite.
target_gradients <- function(record, rows) {
  if (!is.null(record$gradients)) {
    z <- record$coordinates[rows, , drop = FALSE]
    g <- through_maps(maps_of(record$reference, ncol(z)), z, record$gradients[rows, , drop = FALSE])$g
    if (all(is.finite(g))) g
  }
}
