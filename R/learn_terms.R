# The terms of an exact precision: which functions of which parents its entries are sums of. The functions are chosen
# from a dictionary, by comparing its span with that of the entries along the axis of each parent. Called by
# fit_precision().
#
# The `terms` are a list of matrices, one for each of `parts_of_term`, with a row for each term and a column for each
# parent.

# Draws at which the target is probed to find which coordinates are normal given which.
n_linear_probes <- 32
# Points along an axis. Entries are sums of up to six functions of a parent.
n_along_axis <- 24
# Parallel axes: on a single one, two functions might occur in the same sum only.
n_axes <- 3
# Singular values of entries along an axis, relative to the largest, that are rounding.
rounding_of_entry <- 1e-9
# Largest distance of a function of length 1 from the span of entries that it belongs to. The distance of other
# functions is a hundred times as large.
rounding_of_factor <- 1e-6
# Smallest distance of a function of length 1 from the span of other functions, if it is to be added to these.
collinear_factor <- 1e-4
# Smallest number of points for the final fit of the terms.
n_probes <- 128
# Tolerance of QR decompositions: terms nearer to the span of earlier terms are collinear.
collinear_term <- 1e-10
# Contribution of a term to an entry, relative to the entry, that is rounding.
rounding_of_term <- 1e-8

# n of the points, with random steps of at$move along the first n_first parents. A step is about 1, so that
# exponentials of a logarithm differ even if the posterior is narrow, or a thousandth of the mean if this is too large
# for a logarithm. The other parents are constant.
spread_out <- function(at, n, n_first = length(at$given)) {
  at$x <- at$x[rep_len(seq_len(nrow(at$x)), n), , drop = FALSE]
  at$x[, at$given] <- at$x[, at$given] + stats::rnorm(n * length(at$given)) * rep(at$move[at$given], each = n)
  rest <- setdiff(at$given, at$given[seq_len(n_first)])
  at$x[, rest] <- rep(at$x[1, rest], each = n)
  at
}

# Points along `n_axes` parallels to the axis of coordinate k, one parallel after the other.
along_axis <- function(at, k) {
  along <- mean(at$x[, k]) + at$move[k] * seq(-2, 2, length.out = n_along_axis)
  at$x <- spread_out(at, n_axes)$x[rep(seq_len(n_axes), each = length(along)), , drop = FALSE]
  at$x[, k] <- along
  at
}

# The rows and columns of the entries on and below the diagonal of a matrix with this pattern.
lower_entries <- function(pattern) which(pattern & lower.tri(pattern, diag = TRUE), arr.ind = TRUE)

# The terms, the coefficients of each entry, and the data of the last fit: list(terms, coefficients, observed). One
# parent is added at a time: the candidates are products of the terms found with later parents constant and the factors
# of the next parent. So few products are ever tried. observe: a function of probes that returns the entries there, as
# conditional_normals() does. NULL if the terms are not found, or an entry has too many.
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

# Entries along the axis of coordinate k, at the same values t on all axes: list(t, y), where y has a row for each t,
# and a column for each entry on the first axis, then on the second, and so on, divided by its size. NULL if some are
# not known.
entries_along <- function(at, k, observe) {
  n <- n_along_axis
  observed <- observe(along_axis(at, k))
  if (isTRUE(nrow(observed$y) == n * n_axes)) {
    by_axis <- function(x) matrix(aperm(array(x, c(n, n_axes, ncol(x))), c(1, 3, 2)), n)
    y <- sweep(by_axis(observed$y), 2, sqrt(colSums(by_axis(observed$size)^2)), "/")
    list(t = observed$t[seq_len(n), match(k, at$given)], y = replace(y, is.nan(y), 0))
  }
}

# The functions of a coordinate t, from `simple_factors`, whose span contains the entries y of entries_along():
# list(functions, used), with a row for each function; used[i, j] says whether function i occurs in entry j. Usually all
# are in the span of the entries. If some occur in a single sum only, as few as possible complete the span. NULL if the
# dictionary does not contain the span.
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
  parts[is.na(parts)] <- 0 # collinear functions
  parts <- array(abs(parts), c(length(chosen), ncol(y) / n_axes, n_axes))
  list(
    functions = do.call(cbind, simple_factors)[chosen, , drop = FALSE],
    used = t(apply(parts > rounding_of_entry, 1:2, any))
  )
}

# Linearly independent columns that are in a span: list(chosen, basis), their indices and an orthonormal basis.
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

# The indices of the first two or three columns that together with those `inside`, of functions_in(), contain a span;
# NULL if there are none. As many columns as missing dimensions must lie in the span themselves, up to rounding, so that
# only the columns `near` it are tried.
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

# The indices of the first `size` columns, in the order of combn(), whose span contains `span`; NULL or empty if there
# are none.
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

# Whether columns are in the span of an orthonormal basis, up to rounding.
is_inside <- function(columns, basis) {
  all(colSums(outside(columns, basis)^2) < rounding_of_factor^2)
}

# The residuals of columns after projection on the span of an orthonormal basis.
outside <- function(columns, basis) columns - basis %*% crossprod(basis, columns)

# The dictionary of functions of one parent, as terms with one column, the simplest first. Precisions and scales are
# exponentials with rates up to 2, or halves if the parent is the logarithm of a variance. Factors by correlations are
# bounded: exponentials divided by powers of the hyperbolic cosine. Factors by coefficients are polynomials. They are
# divided by roots where a correlation is t / sqrt(1 + t^2).
simple_factors <- local({
  functions <- function(powers = 0, degrees = 0, falls = 0, rates = 0, roots = 0) {
    expand.grid(powers = powers, degrees = degrees, falls = falls, rates = rates, roots = roots)
  }
  # growing functions first, to avoid cancellation where the scale is small
  bounded <- functions(powers = 2:-2, falls = 1:2, rates = c(0.5, 1))
  bounded <- bounded[abs(bounded$powers) <= bounded$falls, ]
  bounded$powers <- bounded$powers * bounded$rates
  lapply(rbind(
    functions(powers = c(0, -2, -1, 1, 2, -0.5, 0.5)), bounded,
    functions(degrees = 1:4),
    functions(degrees = 0:1, roots = c(-1, 1, 2))
  ), as.matrix)
})

# The terms multiplied by the factors of one more parent, all products that may occur in an entry: terms, with `used`, a
# logical matrix with a row for each entry and a column for each product.
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

# The terms as an array for the C core, with the dimensions parts, parents and terms.
factors_in_terms <- function(terms) {
  aperm(array(unlist(terms[parts_of_term]), c(dim(terms$powers), length(parts_of_term))), 3:1)
}

# The values of terms at rows of t, a column for each term. Columns of t beyond those of the terms are ignored.
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

# Replaces 0 by the smallest positive number, since slopes are computed relative to the term.
not_zero <- function(t) replace(t, t == 0, .Machine$double.xmin)

# Columns scaled to length 1; 0 for those that are not finite.
normalised <- function(columns) {
  columns <- sweep(columns, 2, sqrt(colSums(columns^2)), "/")
  columns[!is.finite(columns)] <- 0
  columns
}

# The coefficients of each entry (a row) for each term, by least squares relative to its scale at each point.
# Contributions that are rounding or out of the range of numbers are set to 0.
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
