# The maps of a reference as R sees them, for points and gradients. The core has its own, in
# src/map_*.c; tests hold the one to the other.

# The gradients of the log target on the unconstrained scale at some of a record's
# particles, from those in the coordinates of its reference; NULL where there are none, or
# not all of them are finite.
target_gradients <- function(record, rows) {
  if (is.null(record$gradients)) {
    return(NULL)
  }
  at <- through_maps(
    record$reference, record$coordinates[rows, , drop = FALSE],
    record$gradients[rows, , drop = FALSE]
  )
  if (all(is.finite(at$g))) at$g
}

# Points z in the coordinates of a reference, and gradients there, on the unconstrained scale:
# list(z, g). g: NULL where points alone are wanted.
through_maps <- function(reference, z, g = NULL) {
  through_each(maps_of(reference, ncol(z)), list(z = z, g = g))
}

through_each <- function(maps, at) {
  for (map in maps) {
    at <- through(map, at)
  }
  at
}

# Each takes points z and gradients g of a log density there to the images and the
# gradients at these, without the gradient of the log Jacobian that g has; or points alone.
through <- function(map, at) {
  switch(map$name,
    affine = through_affine(map, at),
    tails = through_tails(map, at),
    conditional = through_conditional(map, at),
    neck = through_neck(map, at),
    rotation = through_rotation(map, at),
    precision = through_precision(map, at),
    polynomial = through_polynomial(map, at)
  )
}

through_affine <- function(map, at) {
  L <- map$chol
  scaled <- if (is.null(L)) sweep(at$z, 2, map$sd, "*") else multiply(at$z, t(L))
  list(
    z = sweep(scaled, 2, map$mean, "+"),
    g = if (is.null(at$g)) {
      NULL
    } else if (is.null(L)) {
      sweep(at$g, 2, map$sd, "/")
    } else {
      t(backsolve(L, t(at$g), upper.tri = FALSE, transpose = TRUE))
    }
  )
}

through_tails <- function(map, at) {
  by_column <- function(x) matrix(x, nrow(at$z), ncol(at$z), byrow = TRUE)
  angle <- (asinh(at$z) + by_column(map$skew)) / by_column(map$tail)
  z <- by_column(map$location) + by_column(map$scale) * sinh(angle)
  if (is.null(at$g)) {
    return(list(z = z))
  }
  slope <- 1 / (by_column(map$tail) * sqrt(1 + at$z^2))
  by_jacobian <- tanh(angle) * slope - at$z / (1 + at$z^2)
  list(z = z, g = (at$g - by_jacobian) / (by_column(map$scale) * cosh(angle) * slope))
}

through_conditional <- function(map, at) {
  conditioning <- map$conditioning + 1
  z <- at$z[, conditioning, drop = FALSE]
  scale <- exp(tcrossprod(z, map$slope))
  placed <- at$z + tcrossprod(z, map$shift)
  slope_of_location <- function(i) {
    matrix(map$shift[, i], nrow(z), ncol(scale), byrow = TRUE)
  }
  if (!is.null(map$curve)) {
    bends <- bends_at(z, list(bent = map$bent + 1, width = map$width, place = map$place))
    placed <- placed + tcrossprod(bends$value - 1, map$curve)
    slope_of_location <- function(i) {
      own <- which(bends$variable == i)
      sweep(tcrossprod(bends$slope[, own, drop = FALSE], map$curve[, own, drop = FALSE]), 2, map$shift[, i], "+")
    }
  }
  if (is.null(at$g)) {
    return(list(z = scale * placed))
  }
  g <- at$g / scale
  for (i in seq_along(conditioning)) {
    by_scale <- drop((at$g * placed + 1) %*% map$slope[, i])
    g[, conditioning[i]] <- at$g[, conditioning[i]] - by_scale - rowSums(at$g * slope_of_location(i))
  }
  list(z = scale * placed, g = g)
}

through_neck <- function(map, at) {
  k <- map$variable + 1
  half <- 0 * at$z
  moved <- which(map$bend != 0 | map$pull != 0)
  half[, moved] <- outer(at$z[, k], map$centre[moved], half_log_share, rate = map$rate)
  share <- exp(2 * half)
  scale <- exp(sweep(half, 2, map$bend, "*"))
  placed <- scale * at$z + sweep(share, 2, map$pull, "*")
  if (is.null(at$g)) {
    return(list(z = placed))
  }
  g <- at$g / scale
  # how the log share, and with it scale and location, change with the variable
  by_share <- sweep(at$g * at$z + 1, 2, map$bend / 2, "*") + sweep(g * share, 2, map$pull, "*")
  g[, k] <- at$g[, k] - rowSums(2 * map$rate * (1 - share) * by_share)
  list(z = placed, g = g)
}

through_rotation <- function(map, at) {
  axes <- t(map$axes)
  list(z = multiply(at$z, axes), g = if (!is.null(at$g)) multiply(at$g, axes))
}
