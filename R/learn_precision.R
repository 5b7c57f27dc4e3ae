# Children that are exactly normal given their parents: for example the effects of groups given the scales of a model.
# The gradient by children u is then r(t) - Q(t) u, with a precision matrix Q and a linear term r, called the pull, that
# depend on the parents t only. So differences of gradients give Q and r at any t exactly. In most models both are sums
# of terms, each a product with one factor for each parent,
#   exp(power t) t^degree / (cosh(rate t)^fall (1 + t^2)^(root / 2)),
# since scales are exponentials of parents, coefficients are parents themselves, and correlations are hyperbolic
# tangents, logistic functions or t / sqrt(1 + t^2). Called by next_level(). See src/map_precision.c.

# If no terms are found, parents farther from 0 than this are moved towards 0: beyond, 1 + exp(t) is 1 or exp(t) up to
# 2 %.
one_function_beyond <- 4
# Parents farther from 0 than this are not logarithms of scales. Their steps are a thousandth of their means.
beyond_logarithms <- 1000
# Diagonal entries in the basis that diagonalises a sum of two terms may be negative up to this by rounding.
least_diagonal <- 1e-5
# Share of the smallest pivot at the fitted points, below which the precision does not count as positive definite.
least_pivot <- 1e-3

# A sample of the points for probing the target, with scales: sd and step of each coordinate, `move` for parents, sd and
# rounding of gradients. NULL if the points have no gradients, or a single coordinate.
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
  # the spread of a constant gradient is rounding
  at$g_rounding <- sqrt(rounding_of_entry * weighted_squares(points$g, points$w))
  at$g_sd <- pmax(weighted_sd(points$g, points$w), at$g_rounding, .Machine$double.xmin)
  at
}

# The precision map of all other coordinates given those in `given`, the parents: a change of variables (see
# learn_spaces.R). NULL if the others are not normal given the parents. at: of probes_among(). density: of
# counted_density().
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

# The same points with parents that are far from 0 centred at 0. An exact form holds there as well, and far out
# different functions are alike: 1 + exp(t) is 1 for all very negative t. NULL if no parent is far from 0.
not_far_out <- function(at) {
  far <- at$given[abs(colMeans(at$x[, at$given, drop = FALSE])) > one_function_beyond]
  if (length(far) > 0) {
    at$x[, far] <- sweep(at$x[, far, drop = FALSE], 2, colMeans(at$x[, far, drop = FALSE]))
    at
  }
}

# the fit ----------------------------------------------------------------------

# The precision map; NULL if the terms of Q and r are not found. Along the axis of each parent the entries are sums of a
# few functions of it, so that in general they are sums of products of these functions.
fit_precision <- function(at, density) {
  ordered <- elimination(at$pattern)
  # for each parent: points along its axis, and points to which its terms are fitted
  n_points <- length(at$given) * (n_along_axis * n_axes + n_linear_probes)
  n_asked <- (1 + max(at$colours$colour)) * (n_points + n_probes)
  if (n_asked > rules$most_probe_evals) {
    return(NULL)
  }
  lower <- lower_entries(at$pattern)
  found <- find_terms(at, function(at) conditional_normals(at, lower, density))
  if (!is.null(found)) new_precision(at, ordered, found, lower)
}

# The precision map with these coefficients, perhaps with a `basis` (see change_maps()). NULL if Q is not positive
# definite at the fitted points, or its factorisation would take too long. found: of find_terms().
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

# The cost of a sparse factorisation: the sum of squared column counts of the factor. It takes half as many
# multiplications at each point, and its derivatives as many. A basis takes 3 p^2, with gradients, for any Q.
factor_work <- function(ordered) sum(colSums(ordered$entries > 0)^2)

# The parameters of a precision map that factorises Q in this order: list(order, entries, precision, pull). Q:
# coefficients of the entries of the precision of `children` at `places`, a row an entry and a column a term; r: those
# of the pull.
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

# The parameters of a precision map with the `basis` in which Q is diagonal, if Q is a sum of at most two positive
# semidefinite `parts`, times the terms `used`; else NULL. size: the mean absolute value of each term. scale: the units
# of the children in the parts and r.
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

# The basis u = S E c in which f_1(t) A + f_2(t) B is diagonal for all t, by the generalised eigenvectors of A and B: S
# S' is the inverse of A + B, and E, the `axes`, are the eigenvectors of S' A S. Returns list(S, axes, values), with the
# diagonals of A and of B as columns. NULL if there are more than two `parts`, or their sum is not positive definite.
diagonal_basis <- function(parts) {
  S <- if (length(parts) <= 2) inverse_factor(Reduce(`+`, parts))
  if (!is.null(S)) {
    A <- eigen(crossprod(S, parts[[1]] %*% S), symmetric = TRUE)
    list(S = S, axes = A$vectors, values = cbind(A$values, 1 - A$values)[, seq_along(parts), drop = FALSE])
  }
}

# The d x d identity with the rows and columns `these` replaced by the matrix x.
acting_on <- function(x, these, d) {
  all <- diag(d)
  all[these, these] <- x
  all
}

# The symmetric matrix with these entries at the places `lower`, on and below the diagonal.
symmetric_matrix <- function(lower, entries) {
  p <- max(lower)
  matrix <- matrix(0, p, p)
  matrix[lower] <- matrix[lower[, 2:1, drop = FALSE]] <- entries
  matrix
}

# Which pivots of Q are sums of positive terms, without subtraction (logical vector). They have no cancellation however
# small they are, such as the precision of a child whose scale depends on a parent with long tails.
are_sums <- function(change) {
  degrees <- change$factors[parts_of_term == "degrees", , , drop = FALSE]
  is_positive <- colSums(degrees %% 2, dims = 2) == 0
  of_Q <- change$precision[diag(change$entries), , drop = FALSE]
  is_sum <- rowSums(of_Q < 0) == 0 & rowSums(of_Q[, !is_positive, drop = FALSE] != 0) == 0
  is_sum & rowSums(change$entries > 0) == 1
}

# A minimum degree ordering, which keeps the factor of a sparse precision matrix sparse: list(order, entries), where
# `entries` numbers the nonzero entries of the factor, 0 elsewhere.
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

# The loss of digits in the factorisation of Q at rows of x, of which the parents are used: the smallest ratio of a
# pivot to the diagonal entry. It is small if one scale is far smaller than others. 0 if Q is out of the range of
# numbers, or a pivot is at its lower bound, so that the map is not that of the precision.
part_left <- function(change, x) {
  at <- .Call(r_precision_pivots, change, x)
  part <- at$pivots / at$diagonal
  is_known <- is.finite(part) & sweep(at$pivots, 2, change$least, ">") & at$diagonal < 10^rules$largest_size
  part[!is_known] <- 0
  apply(part, 1, min)
}

# The smallest part_left() over all levels, of precisions_of(), at points x on the user's side of all maps; Inf without
# levels.
least_part_left <- function(precisions, x) {
  left <- rep(Inf, nrow(x))
  for (precision in precisions) {
    left <- pmin(left, part_left(precision, x))
    x <- forward_maps(change_maps(list(precision)), x)$x
  }
  left
}
