# Sparsity patterns and values of precision matrices, by differences of gradients. Columns that share no row are
# differenced together, by the colouring of Curtis, Powell and Reid (1974). Called by learn_precision.R.

# An entry of a precision matrix counts as 0 if, divided by the roots of the diagonal entries, it is at most this.
independent <- 1e-6

# The sparsity pattern of the precision of the children: a symmetric logical matrix, TRUE on the diagonal; NULL if the
# precision is not positive or not finite at one of two points. Two points suffice, since no entry is 0 by chance.
pattern_of <- function(at, density) {
  at <- spread_out(at, 2)
  curvature <- lapply(1:2, function(row) curvature_by_steps(at$x[row, ], at$others, at$step[at$others], density))
  if (all(vapply(curvature, function(Q) !is.null(Q) && all(diag(Q) > 0), NA))) {
    dependence(curvature)
  }
}

# The sparsity pattern of the second derivatives by all coordinates, at two of the points x: as pattern_of(), but NULL
# with fewer than three coordinates.
pattern_among <- function(x, density) {
  if (ncol(x) < 3) {
    return(NULL)
  }
  step <- probe_step * spreads(x)
  rows <- round(nrow(x) * c(1, 2) / 3)
  curvature <- lapply(rows, function(row) curvature_by_steps(x[row, ], seq_len(ncol(x)), step, density))
  if (!any(vapply(curvature, is.null, NA))) dependence(curvature)
}

# The negative Hessian with respect to the coordinates `of` at the point x, by forward differences of gradients; NULL if
# it is not finite.
curvature_by_steps <- function(x, of, step, density) {
  moved <- matrix(x, length(of) + 1, length(x), byrow = TRUE)
  moved[-1, of] <- moved[-1, of] + diag(step, length(of))
  at <- density(moved)
  change <- sweep(at$gradient[-1, , drop = FALSE], 2, at$gradient[1, ])[, of, drop = FALSE]
  if (all(at$log_density > -Inf, is.finite(change))) -change / step
}

# The pattern of entries that are not 0 in any of these negative Hessians.
dependence <- function(curvature) {
  are_dependent <- lapply(curvature, function(Q) {
    root <- sqrt(abs(diag(Q)))
    abs(Q) > independent * outer(root, root)
  })
  pattern <- Reduce(`|`, are_dependent)
  pattern | t(pattern) | diag(nrow(pattern)) > 0
}

# The precision Q and the pull r of the children given the parents, at each point at$x: list(rows, x, t, y, size,
# scale). `rows` are the indices of the usable points, and all matrices have a row for each. t: the parents. y: the
# entries of Q at the places `lower`, then r. size: magnitudes to which the rounding errors of y are proportional.
# scale: units in which errors of y are measured. NULL if at most half of the points are usable, with a positive
# diagonal of Q.
conditional_normals <- function(at, lower, density) {
  there <- density(at$x)
  at$g <- there$gradient
  at$usable <- there$log_density > -Inf
  others <- at$others
  colours <- at$colours
  step <- at$step[others]
  r <- at$g[, others, drop = FALSE]
  change <- do.call(cbind, lapply(seq_len(max(colours$colour)), function(colour) {
    moved <- others[colours$colour == colour]
    x <- at$x
    x[, moved] <- sweep(x[, moved, drop = FALSE], 2, at$step[moved], "+")
    there <- density(x)
    at$usable <<- at$usable & there$log_density > -Inf
    (there$gradient - at$g)[, others, drop = FALSE]
  }))
  by_move <- function(a, b) {
    -sweep(change[, (colours$colour[b] - 1) * length(others) + a, drop = FALSE], 2, step[b], "/")
  }
  a <- lower[, 1]
  b <- lower[, 2]
  by_b <- by_move(a, b)
  by_a <- by_move(b, a)
  Q <- (by_b + by_a) / 2
  only_b <- colours$alone[b] & !colours$alone[a]
  only_a <- colours$alone[a] & !colours$alone[b]
  Q[, only_b] <- by_b[, only_b]
  Q[, only_a] <- by_a[, only_a]
  u <- at$x[, others, drop = FALSE]
  off <- which(a != b)
  added <- cbind(Q * u[, b, drop = FALSE], Q[, off, drop = FALSE] * u[, a[off], drop = FALSE])
  sums <- function(added) t(rowsum(t(added), c(a, b[off])))
  size <- abs(r) + sums(abs(added))
  r <- r + sums(added)
  diagonal <- which(lower[, 1] == lower[, 2])
  usable <- which(at$usable & rowSums(!(Q[, diagonal, drop = FALSE] > 0)) == 0)
  if (2 * length(usable) > nrow(u)) {
    root <- sqrt(Q[usable, diagonal, drop = FALSE])
    of_Q <- root[, lower[, 1], drop = FALSE] * root[, lower[, 2], drop = FALSE]
    list(
      rows = usable, x = at$x[usable, , drop = FALSE], t = at$x[usable, at$given, drop = FALSE],
      y = unname(cbind(Q, r))[usable, , drop = FALSE],
      size = cbind(of_Q, size[usable, , drop = FALSE]), scale = cbind(of_Q, root)
    )
  }
}

# Colours of the columns of a sparse symmetric matrix, as list(colour, alone). Columns of one colour are found by one
# difference, since no row has entries in two of them. Rows whose own columns are `alone`, with a colour of their own,
# are exempt, since symmetry gives their entries. This needs few colours if all coordinates depend on a few.
colours_of <- function(pattern) {
  degree <- colSums(pattern)
  tried <- lapply(unique(degree), function(most) {
    alone <- degree > most
    rest <- pattern[!alone, !alone, drop = FALSE]
    colour <- integer(nrow(rest))
    for (j in seq_along(colour)) {
      clashes <- colSums(rest[rest[, j], , drop = FALSE]) > 0
      colour[j] <- min(setdiff(seq_len(j), colour[clashes]))
    }
    all <- integer(length(degree))
    all[alone] <- seq_len(sum(alone))
    all[!alone] <- sum(alone) + colour
    list(colour = all, alone = alone)
  })
  tried[[which.min(vapply(tried, function(one) max(one$colour), 0))]]
}
