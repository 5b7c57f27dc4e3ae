# The terms of a precision that depends on other variables.

# Entry of a precision, over the roots of those of the diagonal, that is rounding of a difference.
independent <- 1e-6

# Which of the others depend on each other: a symmetric logical matrix, TRUE on the diagonal; NULL
# where this cannot be told. In a model nothing is 0 by chance: two points do.
pattern_of <- function(at, density) {
  at <- spread_out(at, 2)
  curvature <- lapply(1:2, function(row) curvature_by_steps(at$x[row, ], at$others, at$step[at$others], density))
  if (all(vapply(curvature, function(Q) !is.null(Q) && all(diag(Q) > 0), NA))) {
    dependence(curvature)
  }
}

# Which coordinates depend on each other, by second derivatives at two of these points: as pattern_of(), and NULL for
# two, of which nothing can be said.
pattern_among <- function(x, density) {
  if (ncol(x) < 3) {
    return(NULL)
  }
  step <- probe_step * spreads(x)
  rows <- round(nrow(x) * c(1, 2) / 3)
  curvature <- lapply(rows, function(row) curvature_by_steps(x[row, ], seq_len(ncol(x)), step, density))
  if (!any(vapply(curvature, is.null, NA))) dependence(curvature)
}

# Minus the second derivatives by these coordinates at the point x, by steps along each; NULL where they are not
# finite.
curvature_by_steps <- function(x, of, step, density) {
  moved <- matrix(x, length(of) + 1, length(x), byrow = TRUE)
  moved[-1, of] <- moved[-1, of] + diag(step, length(of))
  at <- density(moved)
  change <- sweep(at$gradient[-1, , drop = FALSE], 2, at$gradient[1, ])[, of, drop = FALSE]
  if (all(at$log_density > -Inf, is.finite(change))) -change / step
}

# Which coordinates depend on each other by any of these matrices of second derivatives.
dependence <- function(curvature) {
  are_dependent <- lapply(curvature, function(Q) {
    root <- sqrt(abs(diag(Q)))
    abs(Q) > independent * outer(root, root)
  })
  pattern <- Reduce(`|`, are_dependent)
  pattern | t(pattern) | diag(nrow(pattern)) > 0
}

# At each point x, given the other coordinates, the precision Q of the others and the pull r: list(rows, x, t,
# y, size, scale), with a row a point; rows, the numbers of these; columns of t for the coordinates given, and of y
# for each row of `lower`, the entries on and below the diagonal of Q, and then for each entry of r; size, to
# which the rounding of y is in proportion; scale, in units of which errors of y matter. NULL where
# there are too few points at which Q is a precision.
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

# Columns of a sparse symmetric matrix that may be found by one difference have one colour: no row
# has an entry in two of them, but for rows whose own columns are `alone`, of a colour of their own:
# there all entries are found with that column. So few colours do where all depend on a few.
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
