# Products: coordinates z that a model has as multiples of scales, mixed by correlations perhaps, as
# the effects of groups of models that are not centred. The likelihood knows u = A z alone, where
# the matrix A depends on these scales and correlations, the `given` coordinates t. Given these, z is
# seldom near to a normal distribution with a precision that is a sum of simple terms, but u is, whose
# prior has the precision (A A')^-1 (see spaces.R).
#
# At z = 0 the gradient by z is A' f, where f, the gradient of the likelihood by u, does not depend on t
# there. So the entries of A are found as those of a precision are (precision.R): as sums of terms in
# gradients. The z of each group have an A of the same form. With A' F A, the mean of the products of
# their gradients, any u = R A z will do, where R' R = F: the factor of A' F A, as long as the first z are
# part of the least u.

# The products for all multiples of scales: a change of variables (see spaces.R); NULL for none.
# at: of with_nats(); density: of counted_density().
find_products <- function(at, density) {
  if (!is.null(at)) with_seed(1, products_given(at, find_scales(at, density), density))
}

# The coordinates that set scales, or correlations: of those that are not multiples of others those
# that gain most where others are taken to be normal are tried first, and where none of these does,
# no others.
find_scales <- function(at, density) {
  scales <- multiples <- integer(0)
  n_failed <- 0
  for (k in setdiff(order(at$nats, decreasing = TRUE), which(is.na(at$nats)))) {
    if (k %in% multiples) next
    is_needless <- length(scales) == 0 && at$nats[k] < rules$least_scale
    if (is_needless || n_failed == rules$most_given) break
    found <- multiples_by(at, k, density)
    n_failed <- n_failed + (length(found) == 0)
    scales <- c(scales, if (length(found) > 0) k)
    multiples <- union(multiples, found)
  }
  scales
}

# The coordinates that are multiples of the scale that k sets, where no other scale moves; none where k
# sets none. At z = 0 the gradient by such z is in proportion to the scale, and the curvature of the
# likelihood, which is that of the target less that of the prior, to its square. Those of the fewest
# terms are asked, since others may be mixed of several.
multiples_by <- function(at, k, density) {
  at <- held(given_these(at, k))
  along <- entries_along(at, k, function(at) gradients_at(at, density))
  factors <- if (!is.null(along)) factors_of(along$t, along$y)
  if (is.null(factors)) {
    return(integer(0))
  }
  moves <- rowSums(factors$functions != 0) > 0
  changed <- which(rowSums(factors$used[, moves, drop = FALSE]) > 0)
  tried <- utils::head(changed[order(rowSums(factors$used[changed, , drop = FALSE]))], rules$most_asked)
  for (j in at$others[tried]) {
    if (is_square(at, k, j, density)) {
      return(at$others[changed])
    }
  }
  integer(0)
}

# Whether along coordinate k the curvature of the likelihood by coordinate j is in proportion to the square
# of the gradient.
is_square <- function(at, k, j, density) {
  step <- rules$small_step
  at <- rows_at(at, rep(1, 9))
  at$x[, k] <- rep(at$mean[k] + c(-1, 0, 1), 3)
  at$x[, j] <- rep(c(-step, 0, step), each = 3)
  at <- asked(at, density)
  g <- matrix(at$g[, j], 3)
  share <- ((g[, 1] - g[, 3]) / (2 * step) - 1) / g[, 2]^2
  all(at$usable) && isTRUE(max(abs(share - share[2])) < rules$same_share * abs(share[2]))
}

# The products where these coordinates set the scales.
products_given <- function(at, given, density) {
  at <- given_these(at, given)
  if (length(at$given) == 0 || length(at$others) == 0) {
    return(NULL)
  }
  observe <- function(at) gradients_at(at, density)
  pattern <- pattern_of(at, density)
  found <- if (!is.null(pattern)) find_terms(held(at), observe)
  if (!is.null(found)) {
    # where the rest is 0 too, some of f may be as well: counts of one, where their mean is exp(0)
    is_rest <- rowSums(found$coefficients != 0) > 0 & rowSums(set_by(found)) == 0
    found <- find_terms(held(at, at$others[is_rest]), observe)
  }
  groups <- if (!is.null(found)) groups_among(found, pattern)
  if (length(groups) > 0) new_products(at, found, groups)
}

# The same probes, with the others at 0, or at the mean of the draws.
held <- function(at, at_mean = NULL) {
  at$x[, at$others] <- 0
  at$x[, at_mean] <- rep(at$mean[at_mean], each = nrow(at$x))
  at
}

# On which of the coordinates given each entry depends: a logical matrix, a row an entry.
set_by <- function(found) {
  (found$coefficients != 0) %*% depend_on(found$terms) > 0
}

# The gradients by the others, as find_terms() wants entries. NULL where some are not known.
gradients_at <- function(at, density) {
  at <- asked(at, density)
  if (!all(at$usable)) {
    return(NULL)
  }
  y <- at$g[, at$others, drop = FALSE]
  size <- sqrt(colMeans(y^2))
  y[, size < rules$rounding_of_entry * max(size)] <- 0
  scale <- matrix(size, nrow(y), ncol(y), byrow = TRUE)
  list(t = at$x[, at$given, drop = FALSE], y = y, size = scale, scale = scale)
}

# The multiples of scales, a list of those of each group: that of the fewest terms first, which is part
# of the fewest products. Two belong to one group where they depend on each other, share a scale or a
# correlation, and one of them is mixed of several terms.
groups_among <- function(found, pattern) {
  n_terms <- rowSums(found$coefficients != 0)
  set_by <- set_by(found)
  is_multiple <- rowSums(set_by) > 0
  is_mixed <- n_terms > 1
  joined <- pattern & tcrossprod(set_by) > 0 & outer(is_mixed, is_mixed, `|`)
  diag(joined) <- TRUE
  groups <- split(which(is_multiple), components_of(joined[is_multiple, is_multiple, drop = FALSE]))
  lapply(unname(groups), function(group) group[order(n_terms[group], -group)])
}

# The number of the connected component of each vertex of a graph, with a symmetric matrix.
components_of <- function(joined) {
  component <- seq_len(nrow(joined))
  repeat {
    least <- apply(joined, 1, function(row) min(component[row]))
    if (identical(least, component)) {
      return(component)
    }
    component <- least
  }
}

# The change of variables, in the form of a precision A' F A with the mean 0. Groups of the same form, of
# which the same terms are used, have the same. NULL where it is none.
new_products <- function(at, found, groups) {
  used <- apply(found$coefficients != 0, 1, function(used) paste(which(used), collapse = " "))
  form <- vapply(groups, function(group) paste(used[group], collapse = ", "), "")
  is_enough <- table(form)[form] >= lengths(groups) # else A' F A has no inverse
  pairs <- squares_of(found$terms)
  if (!any(is_enough) || is.null(pairs)) {
    return(NULL)
  }
  square <- squares_by_group(groups[is_enough], form[is_enough], found$coefficients, pairs)
  order <- at$others[unlist(groups[is_enough])]
  needed <- colSums(square$precision != 0) > 0
  change <- list(
    name = "precision", kind = "products", given = at$given, order = order, entries = square$entries,
    factors = factors_in_terms(lapply(pairs$terms, function(part) part[needed, , drop = FALSE])),
    precision = square$precision[, needed, drop = FALSE], pull = matrix(0, length(order), sum(needed)),
    least = rep(.Machine$double.xmin, length(order))
  )
  x <- matrix(0, nrow(found$observed$t), length(at$mean))
  x[, at$given] <- found$observed$t
  if (all(part_left(change, x) > rules$collinear_term)) change
}

# The blocks A' F A of the groups on the diagonal of a matrix: the numbers of its entries, and the
# coefficients of these, as the core wants them: list(entries, precision).
squares_by_group <- function(groups, form, coefficients, pairs) {
  means <- lapply(split(groups, form), mean_square, coefficients, pairs)
  size <- sum(lengths(groups))
  entries <- matrix(0, size, size)
  first <- 0
  count <- 0
  for (group in groups) {
    lower <- lower_entries(matrix(TRUE, length(group), length(group)))
    entries[first + lower] <- count + seq_len(nrow(lower))
    first <- first + length(group)
    count <- count + nrow(lower)
  }
  list(entries = entries, precision = do.call(rbind, unname(means[form])))
}

is_products <- function(change) identical(change$kind, "products")

# The coordinates that set the scales.
scales_of <- function(products) products$given[apply(products$factors != 0, 2, any)]

# The products of each two terms: list(terms, number), of different ones, and their numbers for each
# pair, a matrix. NULL where these have hyperbolic cosines of different rates.
squares_of <- function(terms) {
  n <- nrow(terms$powers)
  a <- rep(seq_len(n), n)
  b <- rep(seq_len(n), each = n)
  rates <- terms$rates
  if (any(rates[a, ] * rates[b, ] != 0 & rates[a, ] != rates[b, ])) {
    return(NULL)
  }
  all <- lapply(terms, function(part) part[a, , drop = FALSE] + part[b, , drop = FALSE])
  all$rates <- pmax(rates[a, , drop = FALSE], rates[b, , drop = FALSE])
  key <- apply(do.call(cbind, all), 1, paste, collapse = " ")
  first <- !duplicated(key)
  list(
    terms = lapply(all, function(part) part[first, , drop = FALSE]),
    number = matrix(match(key, key[first]), n)
  )
}

# The mean over some groups of the products of the gradients by each two of the coordinates: a row for
# each entry on and below the diagonal, a column for each of the different terms.
mean_square <- function(groups, coefficients, pairs) {
  size <- length(groups[[1]])
  lower <- lower_entries(matrix(TRUE, size, size))
  n_terms <- nrow(pairs$terms$powers)
  of_group <- function(group) {
    t(apply(lower, 1, function(ab) {
      each <- outer(coefficients[group[ab[1]], ], coefficients[group[ab[2]], ])
      tabulated(each, pairs$number, n_terms)
    }))
  }
  Reduce(`+`, lapply(groups, of_group)) / length(groups)
}

# Sums of values by number, up to n.
tabulated <- function(values, number, n) {
  used <- values != 0
  sums <- rowsum(values[used], number[used])
  replace(numeric(n), as.integer(rownames(sums)), sums)
}
