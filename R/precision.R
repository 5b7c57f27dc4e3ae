# Coordinates that are normal given others: the effects of groups given the scales and correlations
# of a model, and whatever else its likelihood knows linearly with normal errors. Given these others,
# the gradient by such coordinates u is -(Q u - r), with a precision Q and a pull r that depend on the
# others alone. So differences of gradients, at some draws, tell which coordinates are such, and Q and
# r there, exactly. In models both are sums of terms of the given coordinates t,
#   exp(sum_k power_k t_k) / prod_k cosh(rate_k t_k)^fall_k,
# since scales are exponentials of these, and correlations are hyperbolic tangents or logistic
# functions. See src/map_precision.c.

# The precision of all coordinates that are normal given others, a change of variables (see
# spaces.R); NULL for none. points: of fit_shape(); density: of counted_density().
find_precision <- function(points, density) {
  if (is.null(points$g) || ncol(points$x) < 2) {
    return(NULL)
  }
  rows <- evenly_weighted(points$w, rules$n_probes)
  at <- list(
    x = sweep(points$x, 2, points$mean, "+")[rows, , drop = FALSE],
    g = points$g[rows, , drop = FALSE],
    step = rules$probe_step * weighted_sd(points$x, points$w)
  )
  given <- sort(with_seed(1, find_given(at, density)))
  others <- setdiff(seq_along(at$step), given)
  if (length(given) == 0 || length(others) == 0 || is_too_long(length(others))) {
    return(NULL)
  }
  at <- with_seed(1, spread_out(at, given, density))
  pattern <- pattern_of(at, others, density)
  normals <- if (!is.null(pattern)) conditional_normals(at, others, pattern, density)
  if (!is.null(normals)) fit_precision(normals, given, others, pattern)
}

# Factors of so many coordinates at all points take cubic time where all depend on each other.
is_too_long <- function(p) rules$n_probes * p^3 > rules$precision_work

# Rows in proportion to their weights, as in systematic resampling.
evenly_weighted <- function(w, n) {
  pmin(findInterval((seq_len(n) - 0.5) / n, cumsum(w)) + 1, length(w))
}

# which coordinates -------------------------------------------------------------

# The coordinates given which the gradients by the others are linear in these. They are found one
# after the other: that which changes least linearly, where all that are not given yet move by a
# step to either side. NULL where the gradients of the others stay far from linear.
find_given <- function(at, density) {
  d <- ncol(at$x)
  rows <- unique(round(seq(1, nrow(at$x), length.out = rules$n_linear_probes)))
  given <- integer(0)
  left <- numeric(0)
  repeat {
    others <- setdiff(seq_len(d), given)
    bent <- second_differences(at, rows, others, density)
    if (is.null(bent)) {
      return(NULL)
    }
    left <- c(left, mean(rowSums(bent[, others, drop = FALSE]^2)))
    if (left[length(left)] < rules$nothing_left || length(given) == min(rules$most_given, d - 1)) {
      break
    }
    given <- c(given, others[which.max(colMeans(bent[, others, drop = FALSE]^2))])
  }
  n_given <- seq_along(left) - 1
  best <- which.min(log(left + rules$least_square) + n_given * log(2))
  if (left[best] < rules$linear_gradients) given[seq_len(n_given[best])] else integer(0)
}

# How far gradients are from linear, over how much they change, for random steps of these
# coordinates: a row a point. NULL where most of the points are impossible.
second_differences <- function(at, rows, moved, density) {
  x <- at$x[rows, , drop = FALSE]
  moves <- 0 * x
  moves[, moved] <- sample(c(-1, 1), length(rows) * length(moved), replace = TRUE)
  moves <- sweep(moves, 2, at$step, "*")
  plus <- density(x + moves)
  minus <- density(x - moves)
  in_steps <- function(g) sweep(g, 2, at$step, "*")
  bent <- in_steps(plus$gradient + minus$gradient - 2 * at$g[rows, , drop = FALSE])
  changed <- in_steps(plus$gradient - minus$gradient)[, moved, drop = FALSE]
  size <- sqrt(rowSums(changed^2))
  usable <- plus$log_density > -Inf & minus$log_density > -Inf & size > 0
  if (2 * sum(usable) > length(rows)) (bent / size)[usable, , drop = FALSE]
}

# the normal distributions -----------------------------------------------------

# Points that differ in what is given, however few genealogies the draws come from.
spread_out <- function(at, given, density) {
  moves <- matrix(stats::rnorm(nrow(at$x) * length(given)), nrow(at$x))
  at$x[, given] <- at$x[, given] + sweep(moves, 2, at$step[given], "*")
  there <- density(at$x)
  at$g <- there$gradient
  at$usable <- there$log_density > -Inf
  at
}

# Which of the others depend on each other: a symmetric logical matrix, TRUE on the diagonal; NULL
# where this cannot be told. In a model nothing is 0 by chance: two points do.
pattern_of <- function(at, others, density) {
  rows <- utils::head(which(at$usable), 2)
  dependent <- lapply(rows, function(row) {
    x <- at$x[rep(row, length(others)), , drop = FALSE]
    x[, others] <- x[, others] + diag(at$step[others], length(others))
    there <- density(x)
    change <- sweep(there$gradient, 2, at$g[row, ])[, others, drop = FALSE]
    Q <- -change / at$step[others]
    if (all(there$log_density > -Inf) && all(diag(Q) > 0)) {
      abs(Q) > rules$independent * sqrt(outer(diag(Q), diag(Q)))
    }
  })
  if (!any(vapply(dependent, is.null, NA))) {
    pattern <- Reduce(`|`, dependent)
    pattern | t(pattern)
  }
}

# At each point, given the other coordinates, the precision Q of `others` and the pull r:
# list(x, lower, Q, r), with a row a point, and a column of Q for each row of `lower`, the entries
# on and below the diagonal. NULL where there are too few points at which Q is a precision.
conditional_normals <- function(at, others, pattern, density) {
  colours <- colours_of(pattern)
  change <- lapply(seq_len(max(colours$colour)), function(colour) {
    moved <- others[colours$colour == colour]
    x <- at$x
    x[, moved] <- sweep(x[, moved, drop = FALSE], 2, at$step[moved], "+")
    there <- density(x)
    at$usable <<- at$usable & there$log_density > -Inf
    (there$gradient - at$g)[, others, drop = FALSE]
  })
  by_move <- function(a, b) -change[[colours$colour[b]]][, a] / at$step[others[b]]
  lower <- which(pattern & lower.tri(pattern, diag = TRUE), arr.ind = TRUE)
  u <- at$x[, others, drop = FALSE]
  r <- at$g[, others, drop = FALSE]
  Q <- apply(lower, 1, function(ab) {
    a <- ab[[1]]
    b <- ab[[2]]
    entry <- if (colours$alone[a] == colours$alone[b]) {
      (by_move(a, b) + by_move(b, a)) / 2
    } else if (colours$alone[b]) {
      by_move(a, b)
    } else {
      by_move(b, a)
    }
    r[, a] <<- r[, a] + entry * u[, b]
    if (a != b) r[, b] <<- r[, b] + entry * u[, a]
    entry
  })
  usable <- which(at$usable & rowSums(Q[, lower[, 1] == lower[, 2], drop = FALSE] <= 0) == 0)
  if (2 * length(usable) > nrow(at$x)) {
    list(
      x = at$x[usable, , drop = FALSE], lower = lower,
      Q = Q[usable, , drop = FALSE], r = r[usable, , drop = FALSE]
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

# the fit ----------------------------------------------------------------------

# The change of variables from the normals at some points; NULL where there are too few of these.
fit_precision <- function(normals, given, others, pattern) {
  diagonal <- which(normals$lower[, 1] == normals$lower[, 2])
  root <- sqrt(normals$Q[, diagonal, drop = FALSE])
  scale <- cbind(root[, normals$lower[, 1]] * root[, normals$lower[, 2]], root)
  y <- cbind(normals$Q, normals$r)
  t <- normals$x[, given, drop = FALSE]
  terms <- find_terms(t, y / scale, 1 / scale)
  if (is.null(terms)) {
    return(NULL)
  }
  values <- values_of(terms, t)
  # relative to the precision at each point: its errors there are what matters
  coefficients <- vapply(seq_len(ncol(y)), function(e) {
    least_squares(values / scale[, e], y[, e] / scale[, e])$coefficients
  }, numeric(ncol(values)))
  coefficients <- matrix(coefficients, ncol(values))
  ordered <- elimination(pattern)
  number <- ordered$entries
  precision <- matrix(0, max(number), ncol(values))
  place <- order(ordered$order)[normals$lower]
  place <- matrix(place, ncol = 2)
  rows <- number[cbind(pmax(place[, 1], place[, 2]), pmin(place[, 1], place[, 2]))]
  is_Q <- seq_len(ncol(normals$Q))
  precision[rows, ] <- t(coefficients[, is_Q, drop = FALSE])
  change <- list(
    kind = "precision", given = given, order = others[ordered$order], entries = number,
    powers = t(terms$powers), falls = t(terms$falls), rates = t(terms$rates),
    precision = precision,
    pull = t(coefficients[, -is_Q, drop = FALSE])[ordered$order, , drop = FALSE],
    least = rep(.Machine$double.xmin, length(others))
  )
  pivots <- factors_at(change, normals$x)$L[, diag(number), drop = FALSE]
  change$least <- rules$least_pivot * apply(pivots, 2, min)
  if (all(is.finite(unlist(change[-1]))) && all(change$least > .Machine$double.xmin)) change
}

# The terms that y, a column an entry, is a sum of, all times weights, a column an entry too. An entry
# is a sum of a few of all that are tried, and many are sums of the same. So they are found entry by
# entry, with those of the entries before: first among powers alone, then among all. What entries that
# are no such sums have in common is found in the end.
find_terms <- function(t, y, weights) {
  y <- sweep(y, 2, sqrt(colSums(y^2)), "/")
  y[is.nan(y)] <- 0 # of an entry that is 0
  tried <- simple_terms(ncol(t))
  values <- values_of(tried, t)
  of_powers <- which(rowSums(tried$falls) == 0)
  found <- integer(0)
  for (among in list(of_powers, seq_len(ncol(values)))) {
    failures <- 0
    for (e in by_simplicity(y, values[, among, drop = FALSE], rowMeans(weights))) {
      columns <- weights[, e] * values
      if (failures <= rules$most_failures && !is_sum(columns[, found, drop = FALSE], y[, e])) {
        new <- terms_of_entry(columns, y[, e], found, among)
        failures <- failures + is.null(new)
        found <- c(found, new)
      }
    }
  }
  rest <- vapply(seq_len(ncol(y)), function(e) {
    least_squares(weights[, e] * values[, found, drop = FALSE], y[, e])$residuals
  }, y[, 1])
  columns <- rowMeans(weights) * values
  found <- c(found, of_powers[common_terms(rest, columns[, of_powers], columns[, found, drop = FALSE])])
  if (length(found) > 0) lapply(tried, function(part) part[found, , drop = FALSE])
}

# Entries in the order of what the best single term leaves of them: those that are sums of few come
# first.
by_simplicity <- function(y, values, weights) {
  columns <- normalised(weights * values)
  order(-row_max(crossprod(y, columns)^2))
}

# Columns of length 1; 0 for those that are not finite.
normalised <- function(columns) {
  columns <- sweep(columns, 2, sqrt(colSums(columns^2)), "/")
  columns[!is.finite(columns)] <- 0
  columns
}

# Coefficients and residuals; those of columns that the others make up are 0.
least_squares <- function(columns, y) {
  size <- sqrt(colSums(columns^2))
  decomposed <- qr(sweep(columns, 2, size, "/"), tol = rules$collinear_term)
  by <- qr.coef(decomposed, y) / size
  list(coefficients = replace(by, is.na(by), 0), residuals = qr.resid(decomposed, y))
}

# Whether y, of length 1, is a sum of columns, but for rounding.
is_sum <- function(columns, y) {
  ncol(columns) > 0 && sum(least_squares(columns, y)$residuals^2) < rules$rounding_of_entry ||
    all(y == 0)
}

# The terms beside those found that make up an entry y: the one of which most is left, after each
# other (orthogonal matching pursuit), without those that then are needless. NULL where so few do
# not do.
terms_of_entry <- function(columns, y, found, among) {
  pursuit <- pursue(normalised(columns[, among, drop = FALSE]), as.matrix(y),
    normalised(columns[, found, drop = FALSE]), rules$most_terms_of_entry, rules$rounding_of_entry
  )
  if (pursuit$left >= rules$rounding_of_entry) {
    return(NULL)
  }
  new <- among[pursuit$chosen]
  for (term in new) {
    if (is_sum(columns[, c(found, setdiff(new, term)), drop = FALSE], y)) {
      new <- setdiff(new, term)
    }
  }
  new
}

# The same for what all entries leave, as far as it is worth the terms by Schwarz's criterion.
common_terms <- function(rest, columns, known) {
  rest <- rest[, colSums(rest^2) > rules$rounding_of_entry, drop = FALSE]
  if (ncol(rest) > 0) {
    n <- nrow(rest)
    most <- min(rules$most_terms, n / rules$points_per_coefficient) - ncol(known)
    pursue(normalised(columns), rest, normalised(known), most, 0, log(n) / n)$chosen
  }
}

# Columns that explain most of y one after the other, beside those of a basis: at most so many, until
# no more than `enough` is left, or the best explains a smaller share than `least`. list(chosen, left).
pursue <- function(columns, y, basis, most, enough, least = 0) {
  basis <- qr.Q(qr(basis))
  beside <- function(x) x - basis %*% crossprod(basis, x)
  free <- beside(columns)
  y <- beside(y)
  chosen <- integer(0)
  while (length(chosen) < most && sum(y^2) > enough) {
    square <- colSums(free^2)
    gain <- rowSums(crossprod(free, y)^2) / square
    gain[!(square > rules$collinear_term^2)] <- 0
    best <- which.max(gain)
    if (gain[best] <= least * sum(y^2)) {
      break
    }
    along <- free[, best] / sqrt(square[best])
    free <- free - outer(along, drop(crossprod(along, free)))
    y <- y - outer(along, drop(crossprod(along, y)))
    chosen <- c(chosen, best)
  }
  list(chosen = chosen, left = sum(y^2))
}

# Terms are lists of matrices with a row a term, and a column a given coordinate.
parts_of_term <- c("powers", "falls", "rates")

# A row a point, a column a term.
values_of <- function(terms, t) {
  log_value <- tcrossprod(t, terms$powers)
  for (k in seq_len(ncol(t))) {
    falls <- which(terms$falls[, k] > 0)
    angle <- abs(outer(t[, k], terms$rates[falls, k]))
    log_cosh <- angle + log1p(exp(-2 * angle)) - log(2)
    log_value[, falls] <- log_value[, falls] - sweep(log_cosh, 2, terms$falls[falls, k], "*")
  }
  exp(log_value)
}

# Precisions, scales, their products, and hyperbolic functions of correlations have whole powers of up
# to 2, of up to three coordinates; and halves where a coordinate is the logarithm of a variance. What
# is multiplied by correlations is a bounded function of one of the coordinates, made of the same
# functions over powers of the hyperbolic cosine.
simple_terms <- function(k) {
  whole <- c(-2, -1, 1, 2)
  powers <- rbind(powers_of(k, whole, 3), powers_of(k, c(-0.5, 0.5), 2)[-1, , drop = FALSE])
  plain <- list(powers = powers, falls = 0 * powers, rates = 0 * powers)
  if (k > rules$most_bounded) {
    return(plain)
  }
  of_one <- expand.grid(power = -2:2, fall = 1:2, rate = c(0.5, 1))
  of_one <- of_one[abs(of_one$power) <= of_one$fall, ]
  others <- powers_of(k - 1, whole, 2)
  bounded <- lapply(seq_len(k), function(i) {
    both <- expand.grid(one = seq_len(nrow(of_one)), others = seq_len(nrow(others)))
    one <- of_one[both$one, ]
    part <- function(x, rest = 0) {
      all <- matrix(0, nrow(both), k)
      all[, -i] <- rest
      all[, i] <- x
      all
    }
    list(
      powers = part(one$power * one$rate, others[both$others, ]),
      falls = part(one$fall), rates = part(one$rate)
    )
  })
  Reduce(function(a, b) Map(rbind, a, b), bounded, plain)
}

# All rows of k such powers of which at most so many are not 0, and whose sizes add up to at most 4;
# first that of zeros.
powers_of <- function(k, powers, most) {
  of_some <- function(i) {
    of_i <- as.matrix(expand.grid(rep(list(powers), length(i))))
    all <- matrix(0, nrow(of_i), k)
    all[, i] <- of_i
    all
  }
  sets <- lapply(seq_len(min(k, most)), function(size) utils::combn(k, size, of_some, simplify = FALSE))
  all <- do.call(rbind, c(list(numeric(k)), unlist(sets, FALSE)))
  unname(all[rowSums(abs(all)) <= 4, , drop = FALSE])
}

# The order in which the factor of a sparse precision fills least, as far as the fewest entries at
# each turn tell (the minimum degree), and the numbers of its entries, as the core wants them:
# list(order, entries).
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

# the map ----------------------------------------------------------------------

# D, on the diagonal, and L at rows of x, an entry a column, as the core has them; and the solution y
# of L y = r, and r: list(terms, L, y).
factors_at <- function(change, x) {
  terms <- values_of(lapply(change[parts_of_term], t), x[, change$given, drop = FALSE])
  L <- tcrossprod(terms, change$precision)
  for (v in seq_along(change$order)) {
    d <- pmax(L[, change$entries[v, v]], change$least[v])
    L[, change$entries[v, v]] <- d
    below <- below_diagonal(change, v)
    column <- L[, change$entries[below, v], drop = FALSE]
    for (j in seq_along(below)) {
      filled <- change$entries[below[j:length(below)], below[j]]
      L[, filled] <- L[, filled] - column[, j] / d * column[, j:length(below), drop = FALSE]
    }
    L[, change$entries[below, v]] <- column / d
  }
  list(terms = terms, L = L, y = solve_lower(change, L, tcrossprod(terms, change$pull)))
}

# The rows of the entries in column v, below the diagonal.
below_diagonal <- function(change, v) which(change$entries[, v] > 0 & seq_along(change$order) > v)

# L^-1, L^-T, and the products with L and its transpose, of rows.
solve_lower <- function(change, L, x) {
  for (v in seq_along(change$order)) {
    below <- below_diagonal(change, v)
    x[, below] <- x[, below] - L[, change$entries[below, v]] * x[, v]
  }
  x
}

solve_upper <- function(change, L, x) {
  for (v in rev(seq_along(change$order))) {
    below <- below_diagonal(change, v)
    x[, v] <- x[, v] - rowSums(L[, change$entries[below, v], drop = FALSE] * x[, below, drop = FALSE])
  }
  x
}

multiply_lower <- function(change, L, x) {
  for (v in rev(seq_along(change$order))) {
    below <- below_diagonal(change, v)
    x[, below] <- x[, below] + L[, change$entries[below, v]] * x[, v]
  }
  x
}

multiply_upper <- function(change, L, x) {
  for (v in seq_along(change$order)) {
    below <- below_diagonal(change, v)
    x[, v] <- x[, v] + rowSums(L[, change$entries[below, v], drop = FALSE] * x[, below, drop = FALSE])
  }
  x
}

# The standard deviations of the others, as far as they are D^(-1/2).
pivots_at <- function(change, at) at$L[, diag(change$entries), drop = FALSE]

# Points, as of fit_shape(), with standard normal coordinates in the place of those that are normal
# given others.
standardised <- function(points, change) {
  x <- sweep(points$x, 2, points$mean, "+")
  at <- factors_at(change, x)
  d <- pivots_at(change, at)
  u <- x[, change$order, drop = FALSE]
  z <- (multiply_upper(change, at$L, u) - at$y / d) * sqrt(d)
  g <- points$g
  if (!is.null(g)) {
    by_c <- solve_lower(change, at$L, g[, change$order, drop = FALSE])
    g[, change$given] <- g[, change$given] + slopes_by_given(change, at, x, z, by_c)
    g[, change$order] <- by_c / sqrt(d)
  }
  x[, change$order] <- z
  in_coordinates(points, x, g, sum(points$w * rowSums(log(d))) / 2)
}

# The inverse; see through().
through_precision <- function(map, at) {
  change <- map
  change$order <- map$order + 1
  change$given <- setdiff(seq_len(ncol(at$z)), change$order)
  factors <- factors_at(change, at$z)
  d <- pivots_at(change, factors)
  z <- at$z[, change$order, drop = FALSE]
  u <- solve_upper(change, factors$L, factors$y / d + z / sqrt(d))
  at$z[, change$order] <- u
  by_c <- at$g[, change$order, drop = FALSE] * sqrt(d)
  at$g[, change$order] <- multiply_lower(change, factors$L, by_c)
  at$g[, change$given] <- at$g[, change$given, drop = FALSE] -
    slopes_by_given(change, factors, at$z, z, by_c)
  at
}

# What the gradient by the given coordinates gains where u is replaced by z, with the slopes of the
# log Jacobian. x: the points with u; by_c: the gradient by u, times L^-1. See src/map_precision.c,
# which does the same.
slopes_by_given <- function(change, at, x, z, by_c) {
  L <- at$L
  u <- x[, change$order, drop = FALSE]
  d <- pivots_at(change, at)
  by_y <- by_c / d
  by_d <- -by_y * (at$y + sqrt(d) * z / 2) / d - 1 / (2 * d)
  by_r <- solve_upper(change, L, by_y)
  bar <- 0 * L
  for (v in seq_along(change$order)) {
    below <- below_diagonal(change, v)
    bar[, change$entries[below, v]] <- -u[, below] * by_c[, v] - by_r[, below] * at$y[, v]
  }
  for (v in rev(seq_along(change$order))) {
    below <- below_diagonal(change, v)
    own <- change$entries[below, v]
    for (j in seq_along(below)) {
      rows <- j:length(below)
      filled <- bar[, change$entries[below[rows], below[j]], drop = FALSE]
      bar[, own[rows]] <- bar[, own[rows]] - filled * L[, own[j]] * d[, v]
      bar[, own[j]] <- bar[, own[j]] - rowSums(filled * L[, own[rows], drop = FALSE]) * d[, v]
      by_d[, v] <- by_d[, v] - rowSums(filled * L[, own[rows], drop = FALSE]) * L[, own[j]]
    }
    bar[, own] <- bar[, own] / d[, v]
    by_d[, v] <- by_d[, v] - rowSums(bar[, own, drop = FALSE] * L[, own, drop = FALSE])
    moves <- d[, v] > change$least[v]
    bar[, change$entries[v, v]] <- ifelse(moves, by_d[, v], 0)
  }
  by_terms <- bar %*% change$precision + by_r %*% change$pull
  by_terms <- by_terms * at$terms
  vapply(seq_along(change$given), function(k) {
    angle <- outer(x[, change$given[k]], change$rates[k, ])
    slope <- sweep(-tanh(angle), 2, change$falls[k, ] * change$rates[k, ], "*")
    rowSums(by_terms * sweep(slope, 2, change$powers[k, ], "+"))
  }, numeric(nrow(x)))
}

# As the core has it.
precision_map <- function(change) {
  c(
    list(name = "precision", order = change$order - 1),
    change[c("entries", parts_of_term, "precision", "pull", "least")]
  )
}
