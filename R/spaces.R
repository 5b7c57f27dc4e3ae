# Spaces: coordinates in which shapes are fitted, beside those of the points as they are. A space is
# made by changes of variables, one after the other, that undo what a model is known to do: products
# in the place of multiples of a scale (noncentred.R), and standard normal coordinates in the place
# of those that are normal given others (precision.R). The last maps of a reference that is fitted in
# a space lead out of it.

# The spaces to be tried: those of products for the multiples of each scale where that makes points
# likelier to be normal, and of all products; that of normal coordinates, where the target can be
# asked for its `density`; and that of the changes of the present reference. A list.
other_spaces <- function(as_is, present, density) {
  found <- find_multiples(as_is$points)
  is_better <- vapply(found, function(one) {
    isTRUE(normal_criterion(space_of(as_is$points, list(one))) > normal_criterion(as_is))
  }, NA)
  precision <- Find(is_precision, present)
  if (!is.null(density) && !fits_exactly(precision, as_is$points)) {
    precision <- find_precision(as_is$points, density)
  }
  sets <- list(
    if (!is.null(precision)) list(precision), found[is_better], found, present
  )
  spaces <- lapply(unique(Filter(length, sets)), function(changes) space_of(as_is$points, changes))
  Filter(Negate(is.null), spaces)
}

# Points after these changes, and the normal distribution with their moments: list(changes, points,
# normal). NULL where there is none, or the range of numbers does not do.
space_of <- function(points, changes) {
  points <- changed(points, changes)
  precision <- Find(is_precision, changes)
  normal <- if (!all(is.finite(points$x), is.finite(points$g))) {
    NULL
  } else if (is.null(precision)) {
    normal_shape(points)
  } else {
    normal_of_given(points, precision)
  }
  if (!is.null(normal)) list(changes = changes, points = points, normal = normal)
}

# Whether the gradients are those of standard normal coordinates, after this change alone.
fits_exactly <- function(precision, points) {
  !is.null(precision) && isTRUE(left_by(precision, changed(points, list(precision))) < rules$linear_gradients)
}

# The share of the gradients' mean square, by the coordinates that should be standard normal, that is
# not that of such ones. points: after the change.
left_by <- function(precision, points) {
  z <- sweep(points$x, 2, points$mean, "+")[, precision$order, drop = FALSE]
  g <- points$g[, precision$order, drop = FALSE]
  mean(colSums(points$w * (z + g)^2) / colSums(points$w * g^2))
}

# Where the others are standard normal, of the coordinates given; NULL for none.
normal_of_given <- function(points, precision) {
  given <- precision$given
  g <- points$g[, given, drop = FALSE]
  of_given <- if (!is.null(points$g)) {
    normal_by_gradients(points$x[, given, drop = FALSE], g, points$w, points$genealogies)
  }
  if (is.null(of_given)) {
    return(NULL)
  }
  d <- ncol(points$x)
  L <- diag(1, d)
  L[given, given] <- of_given$L
  centre <- -points$mean
  centre[given] <- of_given$mean
  z <- whitened(L, sweep(points$x, 2, centre))
  list(
    z = z, L = L, centre = centre, criterion = sum(points$w * log_normal(z, L)),
    exact = if (isTRUE(left_by(precision, points) < rules$linear_gradients)) precision$order
  )
}

# The mean log density of the points as they were, under the normal distribution of a space.
normal_criterion <- function(space) {
  if (!is.null(space)) space$normal$criterion + log_jacobian(space$points)
}

changes_of <- function(reference) as.list(reference$changes)

log_jacobian <- function(points) if (is.null(points$log_jacobian)) 0 else points$log_jacobian

# The points after one change after the other, with their gradients where there are any, and their
# mean `log_jacobian`.
changed <- function(points, changes) {
  Reduce(function(points, change) {
    if (is_precision(change)) standardised(points, change) else multiplied(points, change)
  }, changes, points)
}

# The points with x and gradients g in the place of theirs. gained: what the change of variables
# adds to the mean log Jacobian.
in_coordinates <- function(points, x, g, gained) {
  points$mean <- colSums(points$w * x)
  points$x <- sweep(x, 2, points$mean)
  points$g <- g
  points$log_jacobian <- log_jacobian(points) + gained
  points
}

is_precision <- function(change) identical(change$kind, "precision")

# The map that leads back.
change_map <- function(change, dim) {
  if (is_precision(change)) precision_map(change) else product_map(change, dim)
}
