# Natural form of a conditional block: given its parents t, the children u are normal with a precision matrix Q(t) and
# a linear term r(t) = Q(t) m(t), the pull, both linear in features of t. If Q has an exponential, r also has its
# products with each parent, so that the mean m can be linear in the parents where Q is large. The score of the
# children is r(t) - Q(t) u, so that minimising the Fisher divergence is linear least squares. Called by learn_chain.R.
# See src/map_precision.c.

# An entry of the precision is kept if its t statistic exceeds this.
least_t <- 3
# If more than this share of a pattern is filled, only those entries are kept that the scores show.
most_filled <- 0.5
# Q(t) must also be positive definite at the parents multiplied by this.
wide_parents <- 1.25
# With more children the least squares of all rows have common weights, which takes a single decomposition.
most_own_weights <- 16
# Rates of the exponentials of a parent: for a log scale, for a log variance or a log precision, and (two together) for
# the log scale of effects in the non-centred parametrisation.
precision_rates <- list(-2, -1, 1, 2, c(1, 2))

# A scale for each child: the square root of the ratio of the spreads of its values and its scores; the spread of its
# values if the score is constant.
child_scales <- function(x, g, children) {
  of_points <- spreads(x[, children, drop = FALSE])
  of_scores <- spreads(g[, children, drop = FALSE])
  scale <- sqrt(of_points / of_scores)
  ifelse(scale < largest_scale * of_points, scale, of_points)
}

# Largest scale relative to the spread of a child: beyond, its score is constant up to rounding.
largest_scale <- 1e6

# The inverse mean squares of scores given the parents, by log-linear regression on `design`.
score_weights <- function(g, design) {
  # the mean of the logarithm of a squared standard normal variable is -1.27
  log_square <- log(g^2 + rep(1e-12 * colMeans(g^2), each = nrow(g)) + .Machine$double.xmin)
  log_weights <- -(design %*% least_squares(design, log_square)) - 1.27
  exp(pmax(pmin(log_weights, largest_exponent), -largest_exponent))
}

# Weighted least squares of each column j of y on the columns on[[j]] of `design`: list(coef, se, residual). `coef` and
# `se` have a row for each column of y. common: whether all use the mean weights.
least_squares_by_row <- function(design, y, weights, on, common) {
  if (common) weights <- matrix(rowMeans(weights), nrow(y), ncol(y))
  root <- sqrt(weights)
  coef <- se <- matrix(0, ncol(y), ncol(design))
  free <- numeric(ncol(y))
  if (common) gram <- cross_product(design * root[, 1])
  key <- vapply(on, paste, "", collapse = " ")
  for (rows in split(seq_along(on), if (common) key else seq_along(on))) {
    columns <- on[[rows[1]]]
    own <- design[, columns, drop = FALSE] * root[, rows[1]]
    products <- if (common) gram[columns, columns, drop = FALSE] else cross_product(own)
    found <- solve_least_squares(own, y[, rows, drop = FALSE] * root[, rows[1]], products, tol = 1e-13)
    coef[rows, columns] <- t(found$coefficients)
    if (length(found$on) > 0) {
      sd <- sqrt(diag(chol2inv(found$upper))) / found$size[found$on]
      se[rows, columns[found$on]] <- rep(sd, each = length(rows))
    }
    free[rows] <- max(nrow(y) - length(found$on), 1)
  }
  residual <- y - multiply(design, t(coef))
  list(coef = coef, se = se * sqrt(colSums(residual^2 * weights) / free), residual = residual)
}

# The data for fits of the same children given the same parents: scaled children u and their scores, centred parents t.
# Centring changes an exponential by a factor only. pattern: the sparsity pattern of all variables, or NULL.
natural_points <- function(x, g, children, parents, pattern = NULL) {
  scale <- child_scales(x, g, children)
  centre <- apply(x[, parents, drop = FALSE], 2, stats::median)
  t <- sweep(x[, parents, drop = FALSE], 2, centre)
  list(
    children = children, parents = parents, d = ncol(x), scale = scale, centre = centre, t = t,
    u = sweep(x[, children, drop = FALSE], 2, scale, "/"), score = sweep(g[, children, drop = FALSE], 2, scale, "*"),
    design = cbind(1, t, t^2), pattern = if (!is.null(pattern)) pattern[children, children, drop = FALSE]
  )
}

# The block with these features. It has `maps` only if its precision is positive definite. free: a logical array
# features x children x (1 + children) of the free entries of the pulls (first) and the precisions. terms: the
# features, as of linear_terms(). again: whether to refit with weights by the residuals of the first fit.
fit_natural <- function(points, terms, free, again = FALSE) {
  p <- length(points$children)
  K <- dim(free)[1]
  phi <- bounded_values(terms, points$t)
  design <- do.call(cbind, lapply(seq_len(K), function(k) phi[, k] * cbind(1, -points$u)))
  by_row <- matrix(aperm(free, c(3, 1, 2)), ncol = p)
  on <- lapply(seq_len(p), function(j) which(by_row[, j]))
  fit_with <- function(weights) least_squares_by_row(design, points$score, weights, on, p > most_own_weights)
  weights <- score_weights(points$score, points$design)
  found <- fit_with(weights)
  if (again) {
    weights <- score_weights(found$residual + 1e-9 * points$score, points$design)
    found <- fit_with(weights)
  }
  A <- t_A <- array(0, c(K, p, p))
  b <- matrix(0, K, p)
  for (k in seq_len(K)) {
    at <- (k - 1) * (p + 1) + seq_len(p + 1)
    coef <- found$coef[, at, drop = FALSE]
    b[k, ] <- coef[, 1]
    coef <- coef[, -1, drop = FALSE]
    sure <- matrix(free[k, , -1], p, p) / (found$se[, at[-1], drop = FALSE]^2 + 1e-300)
    total <- pmax(sure + t(sure), 1e-300)
    A[k, , ] <- (coef * sure + t(coef * sure)) / total
    t_A[k, , ] <- abs(A[k, , ]) * sqrt(total)
  }
  block <- list(
    form = "natural", children = points$children, parents = points$parents, terms = terms, free = free, A = A, b = b,
    t_A = t_A, weights = weights, residual = found$residual
  )
  if (!all(is.finite(A))) {
    return(block)
  }
  is_wide <- is_precision_wide(block, points, phi)
  if (!is_wide) {
    block <- cut_positive(block, points, phi)
    is_wide <- is_precision_wide(block, points, phi)
  }
  if (is_wide) with_maps(block, points, phi) else block
}

# The block with the matrix of each feature projected on the positive semidefinite matrices, and the pulls refitted.
cut_positive <- function(block, points, phi) {
  p <- length(block$children)
  left <- points$score
  for (k in seq_len(nrow(block$A))) {
    parts <- eigen(matrix(block$A[k, , ], p), symmetric = TRUE)
    least <- if (k == 1) 1e-9 * mean(abs(parts$values)) else 0
    block$A[k, , ] <- parts$vectors %*% (pmax(parts$values, least) * t(parts$vectors))
    left <- left + phi[, k] * (points$u %*% matrix(block$A[k, , ], p))
  }
  free <- matrix(block$free[, , 1], nrow(block$A))
  on <- lapply(seq_len(p), function(j) which(free[, j]))
  block$b <- t(least_squares_by_row(phi, left, block$weights, on, p > most_own_weights)$coef)
  block
}

# A constant and the q parents, as terms (see learn_terms.R).
linear_terms <- function(q) {
  none <- matrix(0, q + 1, q)
  replace(stats::setNames(rep(list(none), length(parts_of_term)), parts_of_term), "degrees", list(rbind(0, diag(q))))
}

# The terms with added ones: the exponential of the parents with these rates, and its products with each other parent.
with_exponential <- function(terms, rates) {
  linear <- lapply(linear_terms(length(rates)), function(part) part[c(TRUE, rates == 0), , drop = FALSE])
  linear$powers <- sweep(linear$powers, 2, rates, "+")
  Map(rbind, terms, linear)
}

# Only the terms that with_exponential() adds. powers: a list of vectors of rates.
exponentials <- function(powers) {
  none <- lapply(linear_terms(length(powers[[1]])), function(part) part[0, , drop = FALSE])
  Reduce(with_exponential, powers, none)
}

# The values of terms, bounded so that their squares do not overflow.
bounded_values <- function(terms, t) {
  most <- exp(largest_exponent)
  pmax(pmin(values_of(terms, t), most), -most)
}

# Which of the terms are pure exponentials (or constant): the precision has these only.
of_precision <- function(terms) rowSums(terms$degrees) == 0

# Whether Q(t) is positive definite, also for parents beyond the points. Since Q is linear in the features, only the
# points where a feature is smallest or largest are checked.
is_precision_wide <- function(block, points, phi) {
  p <- length(block$children)
  wide <- rbind(bounded_values(block$terms, wide_parents * points$t), phi)
  ends <- unique(c(apply(wide, 2, which.min), apply(wide, 2, which.max)))
  Q <- wide[ends, , drop = FALSE] %*% matrix(block$A, ncol(phi))
  all(is.finite(Q)) && all(apply(Q, 1, function(q) !is.null(factor_or_null(matrix(q, p)))))
}

# The log density of the children under the block, or of the given columns, without the constant of a normal
# distribution.
log_density_by <- function(block, x, columns = block$children) {
  at <- inverse_maps(block$maps, x)
  at$log_jacobian - rowSums(at$x[, columns, drop = FALSE]^2) / 2
}

# The block with its maps, from z to x: in the basis in which Q is diagonal, if Q is a sum of at most two terms.
with_maps <- function(block, points, phi) {
  p <- length(block$children)
  A <- lapply(seq_len(nrow(block$A)), function(k) matrix(block$A[k, , ], p))
  used <- which(vapply(A, function(Q) any(Q != 0), NA))
  size <- colMeans(abs(phi))
  form <- if (p > 1) diagonal_form(block$children, A[used], used, size, t(block$b), points$d, points$scale)
  if (is.null(form)) {
    ordered <- elimination(Reduce(`|`, lapply(A, `!=`, 0), diag(p) > 0))
    at <- matrix(ordered$order[which(ordered$entries > 0, arr.ind = TRUE)], ncol = 2)
    unit <- 1 / points$scale
    entries <- do.call(cbind, lapply(A, function(Q) Q[at] * unit[at[, 1]] * unit[at[, 2]]))
    form <- factor_form(block$children, ordered, at, entries, t(block$b) * unit)
  }
  diagonal <- form$precision[diag(form$entries), , drop = FALSE] %*% t(phi)
  form$least <- pmax(1e-6 * apply(diagonal, 1, function(q) min(q[q > 0])), .Machine$double.xmin)
  map <- list(name = "precision", given = as.double(block$parents), factors = factors_in_terms(block$terms))
  centre <- replace(numeric(points$d), block$parents, points$centre)
  block$maps <- c(change_maps(list(c(map, form))), list(list(name = "affine", mean = centre, sd = rep(1, points$d))))
  block
}

# the search ------------------------------------------------------------------

# Forward selection. It starts with a linear pull and a constant precision, whose nonzero entries are found by second
# derivatives or else by scores; richer_natural() then adds exponentials.
natural_start <- function(points) {
  p <- length(points$children)
  pattern <- points$pattern
  if (is.null(pattern) || mean(pattern) > most_filled) {
    pattern <- matrix(linear_natural(points)$t_A[1, , ] > least_t | diag(p) > 0, p)
  }
  c(linear_natural(points, pattern), list(pattern = pattern))
}

# The block with a linear pull and a constant precision, which has entries where `pattern` is TRUE.
linear_natural <- function(points, pattern = TRUE) {
  p <- length(points$children)
  q <- length(points$parents)
  free <- array(FALSE, c(q + 1, p, p + 1))
  free[1, , -1] <- pattern
  free[, , 1] <- TRUE
  fit_natural(points, linear_terms(q), free)
}

# The block with the best exponentials added; NULL if none gains, or there are too few points for the coefficients.
richer_natural <- function(block, points) {
  best <- best_exponentials(block, points)
  if (is.null(best)) {
    return(NULL)
  }
  terms <- block$terms
  free <- block$free
  for (power in best) {
    terms <- with_exponential(terms, power)
    free <- with_free(free, block$pattern, sum(power == 0))
  }
  if (points_per_coefficient * max(apply(free, 2, sum)) > nrow(points$u)) {
    return(NULL)
  }
  c(fit_natural(points, terms, free, again = TRUE), list(pattern = block$pattern))
}

# The block with the same features, fitted to these points; NULL if its precision is not positive definite.
refit_natural <- function(block, x, g) {
  points <- natural_points(x, g, block$children, block$parents)
  again <- fit_natural(points, block$terms, block$free, again = TRUE)
  if (!is.null(again$maps)) again
}

# The array of free entries extended by the terms of with_exponential(). q: the number of other parents.
with_free <- function(free, pattern, q) {
  n <- dim(free)[1]
  both <- array(FALSE, dim(free) + c(1 + q, 0, 0))
  both[seq_len(n), , ] <- free
  both[-seq_len(n), , 1] <- TRUE
  both[n + 1, , -1] <- pattern
  both
}

# The exponentials that may be added, each a list of vectors of rates: of one parent, or of two if that of one is in the
# block already.
candidate_powers <- function(block) {
  q <- ncol(block$terms$powers)
  unit <- function(k, rates) lapply(rates, function(rate) replace(numeric(q), k, rate))
  alone <- do.call(c, lapply(seq_len(q), function(k) lapply(precision_rates, function(rates) unit(k, rates))))
  all <- block$terms$powers[of_precision(block$terms), , drop = FALSE]
  present <- all[rowSums(all != 0) == 1, , drop = FALSE]
  pairs <- list()
  for (i in seq_len(nrow(present))) {
    for (k in which(present[i, ] == 0)) {
      pairs <- c(pairs, lapply(c(-2, -1, 1, 2), function(rate) list(replace(present[i, ], k, rate))))
    }
  }
  is_new <- function(powers) !any(vapply(powers, function(w) any(colSums(t(all) != w) == 0), NA))
  Filter(is_new, c(alone, pairs))
}

# The candidate with the largest gain, in log likelihood of the residuals with the penalty of the BIC (Schwarz, 1978);
# NULL if none gains. Candidates are compared with common weights for all children.
best_exponentials <- function(block, points) {
  n <- nrow(points$u)
  p <- length(points$children)
  candidates <- candidate_powers(block)
  if (length(candidates) == 0) {
    return(NULL)
  }
  W <- block$weights
  common <- sqrt(rowMeans(W))
  E <- block$residual * common
  u <- sweep(points$u, 2, apply(points$u, 2, stats::median))
  phi <- bounded_values(block$terms, points$t) * common
  in_Q <- apply(block$free[, , -1, drop = FALSE], 1, any)
  of_pull <- qr(phi)
  of_Q <- qr(phi[, in_Q, drop = FALSE])
  total <- colSums(E^2)
  gains <- vapply(candidates, function(powers) {
    terms <- exponentials(powers)
    f <- bounded_values(terms, points$t) * common
    if (!all(is.finite(f)) || any(colSums(f^2) > 1e200)) {
      return(-Inf)
    }
    f_pull <- qr.resid(of_pull, f)
    f_pull[, colSums(f_pull^2) < 1e-9 * colSums(f^2)] <- 0
    f_Q <- qr.resid(of_Q, f[, of_precision(terms), drop = FALSE])
    columns <- do.call(cbind, c(list(f_pull), lapply(seq_len(ncol(f_Q)), function(k) f_Q[, k] * u)))
    unit <- 1 / sqrt(colSums(columns^2) + .Machine$double.xmin)
    columns <- sweep(columns, 2, unit, "*")
    A <- cross_product(columns)
    diag(A) <- diag(A) + 1e-9
    taken <- taken_by_row(A, cross_product(columns, E), block$pattern, ncol(f), ncol(f_Q))
    n_free <- ncol(f) + ncol(f_Q) * rowSums(block$pattern)
    sum(pmax(-n / 2 * log(pmax(1 - taken / (total + .Machine$double.xmin), 1e-12)) - n_free * log(n) / 2, 0))
  }, 0)
  k <- which.max(gains)
  if (isTRUE(gains[k] > 0)) candidates[[k]]
}

# The decrease in the sum of squared residuals of each child by the new columns in its row of the pattern, from normal
# equations A, h: n_pull columns for the pull, then one for each child and each of n_features.
taken_by_row <- function(A, h, pattern, n_pull, n_features) {
  if (all(pattern)) {
    return(colSums(h * solved(A, h)))
  }
  p <- nrow(pattern)
  vapply(seq_len(p), function(j) {
    on <- c(rep(TRUE, n_pull), rep(pattern[j, ], n_features))
    sum(h[on, j] * solved(A[on, on, drop = FALSE], h[on, j]))
  }, 0)
}
