# The terms of an exact precision matrix: the functions of the given coordinates whose sum each entry is.
# learn_precision.R calls find_terms().

# Draws at which gradients are tested for linearity.
n_linear_probes <- 32
# Points along an axis, on which entries are sums of up to six functions, ...
n_along_axis <- 24
# ... and parallel axes: on a single axis a sum of two functions cannot be told from one function.
n_axes <- 3
# A singular value of entries along an axis below this share of the largest is rounding.
rounding_of_entry <- 1e-9
# A function belongs to the span of entries if at most this share of it is outside: other functions have a hundred times
# as much.
rounding_of_factor <- 1e-6
# A function is independent of others if they leave more than this share of it.
collinear_factor <- 1e-4
# Least number of points at which the last terms are fitted.
n_probes <- 128
# A term is independent of those before it if they leave more than this share of it, ...
collinear_term <- 1e-10
# ... and is dropped as rounding if it contributes less than this share.
rounding_of_term <- 1e-8

# Points at which the first given coordinates differ by about 1, as logarithms must for their exponentials to be told
# apart however narrow the posterior is, and by a thousandth of their size where they are too large for logarithms. The
# other given coordinates are constant.
spread_out <- function(at, n, n_first = length(at$given)) {
  at$x <- at$x[rep_len(seq_len(nrow(at$x)), n), , drop = FALSE]
  at$x[, at$given] <- at$x[, at$given] + stats::rnorm(n * length(at$given)) * rep(at$move[at$given], each = n)
  rest <- setdiff(at$given, at$given[seq_len(n_first)])
  at$x[, rest] <- rep(at$x[1, rest], each = n)
  at
}

# Points along axes parallel to that of coordinate k, axis by axis.
along_axis <- function(at, k) {
  along <- mean(at$x[, k]) + at$move[k] * seq(-2, 2, length.out = n_along_axis)
  at$x <- spread_out(at, n_axes)$x[rep(seq_len(n_axes), each = length(along)), , drop = FALSE]
  at$x[, k] <- along
  at
}

# The rows and columns of the entries on and below the diagonal of a matrix with this pattern.
lower_entries <- function(pattern) which(pattern & lower.tri(pattern, diag = TRUE), arr.ind = TRUE)

# The terms of all entries with their coefficients, and the data of the last fit: list(terms, coefficients, observed).
# observe: a function of probes that returns the entries there, such as conditional_normals(). Coordinates are added one
# after the other: the candidates are the products of the terms found with later coordinates constant and of the factors
# of the next coordinate, so that few of all products are tried. NULL where no terms are found, or an entry has too
# many.
find_terms <- function(at, observe) {
  factors <- list()
  for (k in at$given) {
    entries <- entries_along(at, k, observe)
    found <- if (!is.null(entries)) factors_of(entries$t, entries$y)
    if (is.null(found)) {
      return(NULL)
    }
    factors <- c(factors, list(found))
  }
  terms <- list(used = matrix(TRUE, nrow(factors[[1]]$used), 1))
  for (k in seq_along(factors)) {
    terms <- products_of(terms, factors[[k]])
    most <- max(rowSums(terms$used))
    if (most > rules$most_terms) {
      return(NULL)
    }
    least <- if (k == length(factors)) n_probes else n_linear_probes
    n <- max(least, points_per_coefficient * most)
    observed <- observe(spread_out(at, n, k))
    if (is.null(observed) || nrow(observed$y) <= most) {
      return(NULL)
    }
    coefficients <- entries_by_terms(terms, observed)
    terms$used <- coefficients != 0
    needed <- colSums(terms$used) > 0
    coefficients <- coefficients[, needed, drop = FALSE]
    terms$used <- terms$used[, needed, drop = FALSE]
    terms[parts_of_term] <- lapply(terms[parts_of_term], function(x) x[needed, , drop = FALSE])
  }
  list(terms = terms[parts_of_term], coefficients = coefficients, observed = observed)
}

# Entries along parallel axes of coordinate k: list(t, y), where y has a row for each t, and a column for each entry on
# the first axis, then for each on the second and so on, each divided by its size. NULL where an entry is not known
# everywhere.
entries_along <- function(at, k, observe) {
  n <- n_along_axis
  observed <- observe(along_axis(at, k))
  if (isTRUE(nrow(observed$y) == n * n_axes)) {
    by_axis <- function(x) matrix(aperm(array(x, c(n, n_axes, ncol(x))), c(1, 3, 2)), n)
    y <- sweep(by_axis(observed$y), 2, sqrt(colSums(by_axis(observed$size)^2)), "/")
    list(t = observed$t[seq_len(n), match(k, at$given)], y = replace(y, is.nan(y), 0))
  }
}

# The simple functions of a coordinate t of which the entries y, of entries_along(), are sums: list(functions, used),
# with a row of `functions` for each and a row of `used` for each entry. Mostly each function is in the span of the
# entries; where some appear only in one sum, as few as span the rest. NULL where simple functions do not span the
# entries.
factors_of <- function(t, y) {
  entries <- svd(y, nv = 0)
  span <- entries$u[, entries$d > rounding_of_entry * entries$d[1], drop = FALSE]
  values <- normalised(values_of(simple_factors, t))
  inside <- functions_in(span, values)
  chosen <- inside$chosen
  if (length(chosen) < ncol(span)) {
    more <- functions_beside(inside, span, values)
    chosen <- if (length(more) > 0) c(chosen, more)
  }
  if (length(chosen) == 0) {
    return(NULL)
  }
  parts <- qr.coef(qr(values[, chosen, drop = FALSE], tol = collinear_term), y)
  parts[is.na(parts)] <- 0 # of functions that others make up
  parts <- array(abs(parts), c(length(chosen), ncol(y) / n_axes, n_axes))
  list(
    functions = do.call(cbind, simple_factors)[chosen, , drop = FALSE],
    used = t(apply(parts > rounding_of_entry, 1:2, any))
  )
}

# Linearly independent columns in a span: list(chosen, basis), their numbers and an orthonormal basis.
functions_in <- function(span, values) {
  basis <- matrix(0, nrow(values), 0)
  chosen <- integer(0)
  for (j in seq_len(ncol(values))) {
    free <- outside(values[, j], basis)
    size <- sqrt(sum(free^2))
    if (size > collinear_factor && is_inside(values[, j, drop = FALSE], span)) {
      basis <- cbind(basis, free / size)
      chosen <- c(chosen, j)
    }
  }
  list(chosen = chosen, basis = basis)
}

# The first two or three columns that span the rest of a span, together with those of functions_in(); none where there
# are no such columns. Where they are as many as the dimensions that are left, each of them must itself be in the span.
functions_beside <- function(inside, span, values) {
  others <- setdiff(which(colSums(values^2) > 0), inside$chosen)
  off <- colSums(outside(values[, others, drop = FALSE], span)^2)
  near <- others[off < ncol(span) * rounding_of_factor^2]
  n_left <- ncol(span) - length(inside$chosen)
  for (size in setdiff(2:3, seq_len(n_left - 1))) {
    tried <- if (size > n_left) others else near
    columns <- outside(values[, tried, drop = FALSE], inside$basis)
    more <- tried[first_spanning(size, outside(span, inside$basis), columns)]
    if (length(more) > 0) {
      return(more)
    }
  }
}

# The first `size` columns, in the order of combn(), whose span contains this one; none where there are none.
first_spanning <- function(size, span, columns) {
  columns <- normalised(columns)
  if (size == 1) {
    left <- rep(colSums(span^2), each = ncol(columns)) - crossprod(columns, span)^2
    return(utils::head(which(rowSums(left >= rounding_of_factor^2) == 0), 1))
  }
  for (i in utils::head(seq_len(ncol(columns)), 1 - size)) {
    later <- columns[, -seq_len(i), drop = FALSE]
    more <- first_spanning(size - 1, outside(span, columns[, i]), outside(later, columns[, i]))
    if (length(more) > 0) {
      return(c(i, i + more))
    }
  }
}

# Whether columns are in the span of an orthonormal basis up to rounding.
is_inside <- function(columns, basis) {
  all(colSums(outside(columns, basis)^2) < rounding_of_factor^2)
}

# The part of columns that is orthogonal to the span of an orthonormal basis.
outside <- function(columns, basis) columns - basis %*% crossprod(basis, columns)

# Of a coordinate; each a column. Precisions, scales, and hyperbolic functions of correlations have
# whole powers of up to 2, and halves where a coordinate is the logarithm of a variance. What is
# multiplied by correlations is a bounded function, made of the same functions over powers of the
# hyperbolic cosine. What is multiplied by a coefficient is a polynomial, and over roots where a
# correlation is t / sqrt(1 + t^2). The simplest come first.
simple_factors <- local({
  functions <- function(powers = 0, degrees = 0, falls = 0, rates = 0, roots = 0) {
    expand.grid(powers = powers, degrees = degrees, falls = falls, rates = rates, roots = roots)
  }
  # growing functions first: they are small where the scale is, without a cancelling difference from 1
  bounded <- functions(powers = 2:-2, falls = 1:2, rates = c(0.5, 1))
  bounded <- bounded[abs(bounded$powers) <= bounded$falls, ]
  bounded$powers <- bounded$powers * bounded$rates
  lapply(rbind(
    functions(powers = c(0, -2, -1, 1, 2, -0.5, 0.5)), bounded,
    functions(degrees = 1:4),
    functions(degrees = 0:1, roots = c(-1, 1, 2))
  ), as.matrix)
})

# Products of terms and the factors of one more coordinate, all that an entry may be made of:
# matrices with a row a product, and a column a coordinate; and `used`, a row an entry, a column a
# product.
products_of <- function(terms, factor) {
  each <- expand.grid(term = seq_len(ncol(terms$used)), factor = seq_len(ncol(factor$used)))
  used <- terms$used[, each$term, drop = FALSE] & factor$used[, each$factor, drop = FALSE]
  tried <- colSums(used) > 0
  each <- each[tried, ]
  products <- lapply(seq_along(parts_of_term), function(i) {
    before <- terms[[parts_of_term[i]]][each$term, , drop = FALSE]
    unname(cbind(before, factor$functions[each$factor, i]))
  })
  c(stats::setNames(products, parts_of_term), list(used = used[, tried, drop = FALSE]))
}

parts_of_term <- c("powers", "degrees", "falls", "rates", "roots")

# As the core has them: of the parts, the coordinates, and the terms.
factors_in_terms <- function(terms) {
  aperm(array(unlist(terms[parts_of_term]), c(dim(terms$powers), length(parts_of_term))), 3:1)
}

# A row a point, a column a term. t: the coordinates of the terms' columns, and perhaps later ones.
values_of <- function(terms, t) {
  t <- not_zero(as.matrix(t)[, seq_len(ncol(terms$powers)), drop = FALSE])
  log_value <- tcrossprod(t, terms$powers)
  powers <- 1
  for (k in seq_len(ncol(t))) {
    falls <- which(terms$falls[, k] > 0)
    angle <- abs(outer(t[, k], terms$rates[falls, k]))
    log_cosh <- angle + log1p(exp(-2 * angle)) - log(2)
    log_value[, falls] <- log_value[, falls] - sweep(log_cosh, 2, terms$falls[falls, k], "*")
    log_value <- log_value - outer(log1p(t[, k]^2), terms$roots[, k] / 2)
    powers <- powers * outer(t[, k], terms$degrees[, k], "^")
  }
  powers * exp(log_value)
}

# The slopes of a term are taken relative to it.
not_zero <- function(t) replace(t, t == 0, .Machine$double.xmin)

# Columns of length 1; 0 for those that are not finite.
normalised <- function(columns) {
  columns <- sweep(columns, 2, sqrt(colSums(columns^2)), "/")
  columns[!is.finite(columns)] <- 0
  columns
}

# The coefficients of each entry, a row each, by least squares relative to its scale at each point.
# What contributes no more than rounding is 0, and so is what is beyond the range of numbers.
entries_by_terms <- function(terms, observed) {
  values <- values_of(terms, observed$t)
  scale <- observed$scale
  coefficients <- matrix(0, ncol(scale), ncol(values))
  for (e in which(rowSums(terms$used) > 0)) {
    own <- terms$used[e, ]
    columns <- values[, own, drop = FALSE] / scale[, e]
    size <- sqrt(colSums(columns^2))
    decomposed <- qr(normalised(columns), tol = collinear_term)
    y <- observed$y[, e] / scale[, e]
    by <- qr.coef(decomposed, y)
    by[is.na(by) | abs(by) < rounding_of_term * sqrt(sum(y^2))] <- 0
    coefficients[e, own] <- ifelse(by == 0, 0, by / size)
  }
  coefficients
}
