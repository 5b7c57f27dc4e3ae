# Coordinates that are exactly normal given others: effects of groups given the scales and correlations of a model, and
# whatever else enters a likelihood linearly with normal errors. Given the others, the gradient by such coordinates u is
# -(Q u - r), with a precision matrix Q and a pull r that depend only on the others. Differences of gradients at some
# draws therefore show which coordinates these are, and Q and r there without error. In models both are sums of terms,
# each a product with one factor for each given coordinate t,
#   exp(power t) t^degree / (cosh(rate t)^fall (1 + t^2)^(root / 2)),
# since scales are exponentials of coordinates, coefficients the coordinates themselves, and correlations hyperbolic
# tangents, logistic functions or t / sqrt(1 + t^2). See src/map_precision.c. learn_spaces.R calls precision_given().

# Given coordinates that are further from 0 than this are also probed around 0: beyond, 1 + exp(t) differs from 1 or
# exp(t) by less than 2 %.
one_function_beyond <- 4
# Given coordinates that are further from 0 than this are no logarithms; they are moved by a thousandth of their size.
beyond_logarithms <- 1000
# In the basis in which a sum of two terms is diagonal, an element above minus this share counts as 0.
least_diagonal <- 1e-5
# A precision is invalid where a pivot is below this share of the smallest one at the points.
least_pivot <- 1e-3

# Some of the points, with the sizes of moves from these and the scales of gradients. NULL where there are no gradients,
# or there is only one coordinate.
probes_among <- function(points) {
  if (is.null(points$g) || ncol(points$x) < 2) {
    return(NULL)
  }
  rows <- systematic_rows(points$w, n_linear_probes)
  sd <- weighted_sd(points$x, points$w)
  at <- list(
    mean = points$mean,
    x = sweep(points$x, 2, points$mean, "+")[rows, , drop = FALSE],
    g = points$g[rows, , drop = FALSE],
    sd = sd, step = probe_step * sd, move = pmax(1, abs(points$mean) / beyond_logarithms),
    draws = points$x, w = points$w, deviations = sqrt(points$w) * points$x
  )
  # what a gradient that does not change has beside its mean is rounding
  at$g_rounding <- sqrt(rounding_of_entry * weighted_squares(points$g, points$w))
  at$g_sd <- pmax(weighted_sd(points$g, points$w), at$g_rounding, .Machine$double.xmin)
  at
}

# The map that makes all other coordinates standard normal given these (see learn_spaces.R); NULL where none is found.
# at: of probes_among(); density: of counted_density().
precision_given <- function(at, given, density) {
  at$given <- sort(given)
  at$others <- setdiff(seq_along(at$mean), given)
  if (length(at$given) == 0 || length(at$others) == 0) {
    return(NULL)
  }
  at$pattern <- pattern_of(at, density)
  if (!is.null(at$pattern)) {
    at$colours <- colours_of(at$pattern)
    precision <- fit_precision(at, density)
    if (!is.null(precision)) {
      return(precision)
    }
    inside <- not_far_out(at)
    if (!is.null(inside)) fit_precision(inside, density)
  }
}

# The same points, with given coordinates that are far from 0 centred at 0, where an exact form holds as well. Far from
# 0 different functions are hard to tell apart: 1 + exp(t) is 1 for all small t. NULL where no coordinate is far from 0.
not_far_out <- function(at) {
  far <- at$given[abs(colMeans(at$x[, at$given, drop = FALSE])) > one_function_beyond]
  if (length(far) > 0) {
    at$x[, far] <- sweep(at$x[, far, drop = FALSE], 2, colMeans(at$x[, far, drop = FALSE]))
    at
  }
}

# the fit ----------------------------------------------------------------------

# The map; NULL where the terms of Q and r are not found. Along the axis of each given coordinate the entries of Q and r
# are sums of a few functions of it, so that in general they are sums of products of these functions.
fit_precision <- function(at, density) {
  ordered <- elimination(at$pattern)
  # for each coordinate given, points along its axis, and where its terms are fitted
  n_points <- length(at$given) * (n_along_axis * n_axes + n_linear_probes)
  n_asked <- (1 + max(at$colours$colour)) * (n_points + n_probes)
  if (n_asked > rules$most_probe_evals) {
    return(NULL)
  }
  lower <- lower_entries(at$pattern)
  found <- find_terms(at, function(at) conditional_normals(at, lower, density))
  if (!is.null(found)) new_precision(at, ordered, found, lower)
}

# The map with these coefficients, perhaps with a `basis` (see change_maps()); NULL where Q is not positive definite, or
# the map would take too long. found: of find_terms().
new_precision <- function(at, ordered, found, lower) {
  of_Q <- found$coefficients[seq_len(nrow(lower)), , drop = FALSE]
  of_r <- found$coefficients[-seq_len(nrow(lower)), , drop = FALSE]
  form <- if (factor_work(ordered) > 2 * length(at$others)^2) {
    used <- which(colSums(of_Q != 0) > 0)
    parts <- lapply(used, function(i) symmetric_matrix(lower, of_Q[, i]))
    size <- colMeans(abs(values_of(found$terms, found$observed$t)))
    diagonal_form(at$others, parts, used, size, of_r, length(at$mean))
  }
  if (is.null(form) && factor_work(ordered) <= rules$most_factor_work) {
    form <- factor_form(at$others, ordered, lower, of_Q, of_r)
  }
  if (is.null(form)) {
    return(NULL)
  }
  change <- c(
    list(name = "precision", kind = "exact", given = at$given),
    list(factors = factors_in_terms(found$terms), least = rep(.Machine$double.xmin, length(at$others))), form
  )
  t <- found$observed$t
  x <- matrix(0, nrow(t), length(at$mean))
  x[, at$given] <- t
  pivots <- .Call(r_precision_pivots, change, x)$pivots
  least <- least_pivot * apply(pivots, 2, min)
  change$least <- replace(least, are_sums(change), .Machine$double.xmin)
  if (is_finite(change[c("factors", "precision", "pull", "least")]) && all(least > .Machine$double.xmin)) change
}

# The work of a sparse factorisation: the sum over the columns of the factor of their squared numbers of entries. A
# factorisation takes half as many multiplications at each point, its derivatives as many. A basis takes 3 p^2 with
# gradients, for p coordinates.
factor_work <- function(ordered) sum(colSums(ordered$entries > 0)^2)

# The map by the factor of Q in this order: list(order, entries, precision, pull). children: the variables of Q; Q: its
# entries at these places, a row for each, and r: those of the pull, with a column for each term.
factor_form <- function(children, ordered, places, Q, r) {
  place <- matrix(order(ordered$order)[places], ncol = 2)
  rows <- ordered$entries[cbind(pmax(place[, 1], place[, 2]), pmin(place[, 1], place[, 2]))]
  precision <- matrix(0, max(ordered$entries), ncol(Q))
  precision[rows, ] <- Q
  list(
    order = as.double(children[ordered$order]), entries = ordered$entries, precision = precision,
    pull = r[ordered$order, , drop = FALSE]
  )
}

# The map where Q is a sum of one or two terms, those that are `used`, by the `basis` in which Q is diagonal; NULL where
# there is none. size: of each term; scale: the units of the parts and of r.
diagonal_form <- function(children, parts, used, size, r, d, scale = 1) {
  basis <- diagonal_basis(Map(`*`, size[used], parts))
  if (is.null(basis) || any(basis$values < -least_diagonal)) {
    return(NULL)
  }
  p <- length(children)
  precision <- matrix(0, p, length(size))
  precision[, used] <- ifelse(basis$values < rounding_of_term, 0, basis$values)
  list(
    order = as.double(children), entries = diag(seq_len(p), p), precision = sweep(precision, 2, size, "/"),
    pull = crossprod(basis$S %*% basis$axes, r),
    basis = lapply(list(axes = basis$axes, chol = scale * basis$S), acting_on, children, d)
  )
}

# The basis u = S E c in which f_1(t) A + f_2(t) B is diagonal for all t: S S' is the inverse of A + B, where both f are
# 1 on average, and the columns of E, the `axes`, are the eigenvectors of S' A S. Returns list(S, axes, values), with
# the diagonals of A and B as columns. NULL where there are more than two `parts`, or A + B is not positive definite.
diagonal_basis <- function(parts) {
  S <- if (length(parts) <= 2) inverse_factor(Reduce(`+`, parts))
  if (!is.null(S)) {
    A <- eigen(crossprod(S, parts[[1]] %*% S), symmetric = TRUE)
    list(S = S, axes = A$vectors, values = cbind(A$values, 1 - A$values)[, seq_along(parts), drop = FALSE])
  }
}

# The d x d matrix that acts on these coordinates as x does, and on the others as the identity.
acting_on <- function(x, these, d) {
  all <- diag(d)
  all[these, these] <- x
  all
}

# The symmetric matrix with these entries on and below the diagonal.
symmetric_matrix <- function(lower, entries) {
  p <- max(lower)
  matrix <- matrix(0, p, p)
  matrix[lower] <- matrix[lower[, 2:1, drop = FALSE]] <- entries
  matrix
}

# Which entries of D are sums of positive terms without any subtraction. They are right for all values of the given
# coordinates, for example the precision of a variable whose scale depends on one with long tails.
are_sums <- function(change) {
  degrees <- change$factors[parts_of_term == "degrees", , , drop = FALSE]
  is_positive <- colSums(degrees %% 2, dims = 2) == 0
  of_Q <- change$precision[diag(change$entries), , drop = FALSE]
  is_sum <- rowSums(of_Q < 0) == 0 & rowSums(of_Q[, !is_positive, drop = FALSE] != 0) == 0
  is_sum & rowSums(change$entries > 0) == 1
}

# The order of elimination with little fill-in by the minimum degree heuristic, and the numbers of the entries of the
# factor as the core reads them: list(order, entries).
elimination <- function(pattern) {
  p <- nrow(pattern)
  graph <- pattern
  left <- rep(TRUE, p)
  order <- integer(p)
  for (turn in seq_len(p)) {
    degree <- colSums(graph[left, left, drop = FALSE])
    v <- which(left)[which.min(degree)]
    order[turn] <- v
    left[v] <- FALSE
    joined <- left & graph[, v]
    graph[joined, joined] <- TRUE
  }
  filled <- graph[order, order] & lower.tri(graph, diag = TRUE)
  entries <- matrix(0, p, p)
  entries[filled] <- seq_len(sum(filled))
  list(order = order, entries = entries)
}

# How accurate the map is at rows of x, of which only the given coordinates are used: 0 where Q is beyond the range of
# numbers or D is at its bound, and otherwise the smallest ratio of a pivot to its diagonal entry. A small ratio means
# cancellation, which occurs where one scale is far smaller than others.
part_left <- function(change, x) {
  at <- .Call(r_precision_pivots, change, x)
  part <- at$pivots / at$diagonal
  is_known <- is.finite(part) & sweep(at$pivots, 2, change$least, ">") & at$diagonal < 10^rules$largest_size
  part[!is_known] <- 0
  apply(part, 1, min)
}

# The smallest of these ratios over all levels of a reference, as of precisions_of(), at x before all maps; Inf for
# none.
least_part_left <- function(precisions, x) {
  left <- rep(Inf, nrow(x))
  for (precision in precisions) {
    left <- pmin(left, part_left(precision, x))
    x <- forward_maps(change_maps(list(precision)), x)$x
  }
  left
}
