# Coordinates that are normal given others: the effects of groups given the scales and correlations
# of a model, and whatever else its likelihood knows linearly with normal errors. Given these
# others, the gradient by such coordinates u is -(Q u - r), with a precision Q and a pull r that
# depend on the others alone. So differences of gradients, at some draws, tell which coordinates are
# such, and Q and r there, exactly. In models both are sums of terms, products of a factor of each
# given coordinate t,
#   exp(power t) t^degree / (cosh(rate t)^fall (1 + t^2)^(root / 2)),
# since scales are exponentials of these, coefficients the coordinates themselves, and correlations
# hyperbolic tangents, logistic functions or t / sqrt(1 + t^2). See src/map_precision.c.
#
# Effects of which the data are counts, say, are only nearly normal given their scale: their precision
# is that of their prior, which is such a sum, and the curvature of the likelihood, which depends on the
# effects themselves. At the mean of the draws this is a number, and Q and r are sums as before.

# The precision of all coordinates that are normal given others, or with `near` nearly so: a change of
# variables (see spaces.R); NULL for none. at: of probes_among(), with `near` of with_drivers(); density: of
# counted_density().
find_precision <- function(at, density, near = FALSE) {
  if (!is.null(at)) {
    at$near <- near
    with_seed(1, {
      if (near) {
        precision_given_drivers(at, density)
      } else {
        precision_given(at, find_given(at, density), density)
      }
    })
  }
}

# Some of the points, and what moves away from these, and gradients there, are measured by. NULL where
# these points have no gradients, or one coordinate alone.
probes_among <- function(points) {
  if (is.null(points$g) || ncol(points$x) < 2) {
    return(NULL)
  }
  rows <- evenly_weighted(points$w, rules$n_linear_probes)
  sd <- weighted_sd(points$x, points$w)
  at <- list(
    mean = points$mean,
    x = sweep(points$x, 2, points$mean, "+")[rows, , drop = FALSE],
    g = points$g[rows, , drop = FALSE],
    sd = sd, step = rules$probe_step * sd,
    draws = points$x, w = points$w, deviations = sqrt(points$w) * points$x
  )
  # what a gradient that does not change has beside its mean is rounding
  at$g_rounding <- sqrt(rules$rounding_of_entry * weighted_squares(points$g, points$w))
  at$g_sd <- pmax(weighted_sd(points$g, points$w), at$g_rounding, .Machine$double.xmin)
  at
}

# Moves of a part of the draws' standard deviation, but for coordinates that are so correlated that this is a
# long way where the others stay, by the curvature at the mean: there curvatures would change on the way,
# and differences by two coordinates disagree.
shorter_steps <- function(at, density) {
  step <- rules$small_step * at$sd
  d <- length(step)
  there <- density(rbind(at$mean, rep(at$mean, each = d) + diag(step, d)))
  curvature <- (there$gradient[1, ] - diag(there$gradient[-1, , drop = FALSE])) / step
  is_known <- there$log_density[1] > -Inf & there$log_density[-1] > -Inf & curvature > 0
  own <- ifelse(is_known, 1 / sqrt(abs(curvature)), Inf)
  pmin(at$step, rules$widest_probe * own)
}

# The same, with what each of the coordinates gains where none is given.
with_nats <- function(at, density) {
  if (!is.null(at)) at$nats <- with_seed(1, nats_by_each(at, integer(0), density))
  at
}

# The same, with the coordinates given which others may be nearly normal, and moves for these. scales:
# coordinates that are given for certain.
with_drivers <- function(at, density, scales = integer(0)) {
  if (!is.null(at)) {
    at <- driven_by(at, with_seed(1, find_drivers(at, density, scales)), density)
    at$n_certain <- length(scales)
  }
  at
}

driven_by <- function(at, drivers, density) {
  if (!is.null(at)) {
    at$drivers <- drivers
    if (length(drivers) > 0) at$step <- shorter_steps(at, density)
  }
  at
}

# The precision given these coordinates; NULL for none.
precision_given <- function(at, given, density) {
  at <- given_these(at, given)
  if (length(at$given) == 0 || length(at$others) == 0) {
    return(NULL)
  }
  at$pattern <- pattern_of(at, density)
  if (!is.null(at$pattern)) {
    at$colours <- colours_of(at$pattern)
    if (at$near) {
      at$x[, at$others] <- rep(at$mean[at$others], each = nrow(at$x))
      return(fit_precision(at, density))
    }
    precision <- fit_precision(at, density)
    if (!is.null(precision)) {
      return(precision)
    }
    inside <- not_far_out(at)
    if (!is.null(inside)) fit_precision(inside, density)
  }
}

# The same points, with the coordinates given that are far from 0 moved there, where what is exact holds as well. Far out
# one function looks like another: 1 + exp(t) is 1 for all small t. NULL where none is.
not_far_out <- function(at) {
  far <- at$given[abs(colMeans(at$x[, at$given, drop = FALSE])) > rules$one_function_beyond]
  if (length(far) > 0) {
    at$x[, far] <- sweep(at$x[, far, drop = FALSE], 2, colMeans(at$x[, far, drop = FALSE]))
    at
  }
}

given_these <- function(at, given) {
  at$given <- sort(given)
  at$others <- setdiff(seq_along(at$mean), given)
  at
}

# The same given the drivers; where it is not found, without those that matter least: the curvature of the
# likelihood, of which it is made too, may depend on them in another way.
precision_given_drivers <- function(at, density) {
  for (n in Filter(function(n) n >= at$n_certain, rev(seq_along(at$drivers)))) {
    precision <- precision_given(at, at$drivers[seq_len(n)], density)
    if (!is.null(precision)) {
      return(precision)
    }
  }
}

# Rows in proportion to their weights, as in systematic resampling.
evenly_weighted <- function(w, n) {
  pmin(findInterval((seq_len(n) - 0.5) / n, cumsum(w)) + 1, length(w))
}

# which coordinates -------------------------------------------------------------

# The coordinates given which the gradients by the others are linear in these: those by which the
# gradient is not even linear in the same coordinate, and then one after the other that which
# changes least linearly, where all that are not given yet move to either side. Some of these may
# turn out to be needless. NULL where a gradient of the others stays far from linear.
find_given <- function(at, density) {
  d <- ncol(at$x)
  bent_given <- function(given) second_differences(at, setdiff(seq_len(d), given), density)
  is_linear <- function(bent) !is.null(bent) && isTRUE(max(bent$share) < rules$nothing_left)
  given <- alone <- which(bend_alone(at, density))
  most <- min(rules$most_given, d - 1)
  bent <- if (length(given) <= most) bent_given(given)
  while (!is_linear(bent)) {
    if (is.null(bent) || length(given) == most) {
      return(NULL)
    }
    given <- c(given, setdiff(seq_len(d), given)[which.max(bent$square)])
    bent <- bent_given(given)
  }
  for (k in setdiff(given, alone)) {
    if (length(given) > 1 && is_linear(bent_given(setdiff(given, k)))) given <- setdiff(given, k)
  }
  sort(given)
}

# Whether the gradient by each coordinate is not linear where this one moves, at one of two points.
bend_alone <- function(at, density) {
  d <- ncol(at$x)
  of_point <- function(row) {
    ask <- function(sign) {
      there <- density(at$x[rep(row, d), , drop = FALSE] + sign * diag(at$step, d))
      ifelse(there$log_density > -Inf, diag(there$gradient), NA)
    }
    plus <- ask(1)
    minus <- ask(-1)
    bent <- (plus + minus - 2 * at$g[row, ])^2
    bent > rules$nothing_left * ((plus - minus)^2 + at$g_rounding^2)
  }
  is_bent <- of_point(1) | of_point(2)
  !is.na(is_bent) & is_bent
}

# How far the gradients by these coordinates are from linear, for random moves of all of them with
# the covariance of the draws: the `square` of the second difference of each, where gradients have
# variance 1, in units of the change of all; and its `share` in the square of its own change. So
# what a scale acts on changes by as much as that scale does, and the scale by all that it acts on.
# NULL where most of the points are impossible.
second_differences <- function(at, moved, density) {
  n <- nrow(at$x)
  moves <- matrix(stats::rnorm(n * nrow(at$deviations)), n) %*% at$deviations[, moved, drop = FALSE]
  moves <- rules$probe_step * moves
  ask <- function(moves) {
    x <- at$x
    x[, moved] <- x[, moved] + moves
    there <- density(x)
    list(ok = there$log_density > -Inf, g = there$gradient[, moved, drop = FALSE])
  }
  plus <- ask(moves)
  minus <- ask(-moves)
  over_sd <- function(g) sweep(g, 2, at$g_sd[moved], "/")
  bent <- over_sd(plus$g + minus$g - 2 * at$g[, moved])
  changed <- over_sd(plus$g - minus$g)
  size <- sqrt(rowSums(changed^2))
  usable <- which(plus$ok & minus$ok & size > 0)
  if (2 * length(usable) > n) {
    sum_of_squares <- function(x) colSums(x[usable, , drop = FALSE]^2)
    rounding <- length(usable) * (at$g_rounding[moved] / at$g_sd[moved])^2
    share <- sum_of_squares(bent) / (sum_of_squares(changed) + rounding)
    list(square = sum_of_squares(bent / size), share = replace(share, is.nan(share), 0))
  }
}

# The coordinates that are to be given, one after the other that which gains most, as of nats_by_each(), as
# long as that is much, and with one more given the rest gain less. Of many those that gain least alone are not tried
# again. In this order, after those given already; none where there are no such.
find_drivers <- function(at, density, given = integer(0)) {
  nats <- if (length(given) > 0 || is.null(at$nats)) nats_by_each(at, given, density) else at$nats
  tried <- utils::head(order(nats, decreasing = TRUE), rules$most_tried)
  nats[-tried] <- 0
  while (isTRUE(max(nats) > rules$least_driven) && length(given) < rules$most_given) {
    more <- c(given, which.max(nats))
    left <- nats_by_each(at, more, density, tried)
    if (!isTRUE(sum(left) < rules$less_driven * sum(nats))) {
      break
    }
    given <- more
    nats <- left
  }
  given
}

# What a normal distribution of the others gains, in nats, where each coordinate is given. Without it a quarter
# of the squared change of their precision is lost, in units of its inverse, between half a standard
# deviation below the mean of the coordinate and as much above it, where the others follow it as they do
# in the draws. With it the same of the difference to the change that there is where the others stay at
# their mean, where the precision is taken. So a scale gains much; and the mean of counts nothing, since
# their effects make up for it, and the precision stays. Differences of gradients along small random moves
# of the others tell it, which have the covariance of the draws given the coordinate, and those given
# already. 0 for these, for those that are not `tried`, and where nothing is gained. NA for all where the density is
# not known there.
nats_by_each <- function(at, given, density, tried = seq_along(at$mean)) {
  deviations <- deviations_given(at, given)
  covariance <- crossprod(deviations)
  variance <- diag(covariance)
  tried <- setdiff(tried[variance[tried] > 0], given)
  nats <- numeric(length(at$mean))
  if (length(tried) == 0) {
    return(nats)
  }
  n <- rules$n_driven_moves
  row <- rep(seq_along(tried), each = n)
  k <- tried[row]
  slope <- covariance[tried, , drop = FALSE] / variance[tried] # of all on each
  # the same for each, since they are compared
  moves <- multiply(matrix(stats::rnorm(n * nrow(deviations)), n), deviations)
  moves <- moves[rep(seq_len(n), length(tried)), , drop = FALSE]
  moves <- moves - moves[cbind(seq_along(k), k)] * slope[row, , drop = FALSE]
  change_along <- function(direction) {
    changes_of_gradients(at$mean, sqrt(variance[tried]) / 2 * direction, row, moves, density)
  }
  alone <- change_along(diag(length(nats))[tried, , drop = FALSE])
  # |followed|^2 less |followed - alone|^2, in units of the inverse precision
  twice <- 2 * change_along(slope) - alone
  by_slope <- function(change) rowSums(change * slope[row, , drop = FALSE])
  gains <- rowSums(multiply(twice, covariance) * alone) - by_slope(twice) * by_slope(alone) * variance[k]
  nats[tried] <- rowsum(gains, k, reorder = FALSE) / n / 4
  if (anyNA(nats)) NA * nats else pmax(nats, 0)
}

# What the deviations of the draws from their mean have beside a linear relation to coordinates given.
deviations_given <- function(at, given) {
  deviations <- at$deviations
  if (length(given) > 0) {
    deviations <- qr.resid(qr(deviations[, given, drop = FALSE]), deviations)
    deviations[, given] <- 0
  }
  deviations
}

# The change of the gradient along each move, at the mean and a way from it, less that as far on the other
# side. row: the row of `way` that belongs to each move. NA where the density is not known.
changes_of_gradients <- function(mean, way, row, moves, density) {
  at_end <- function(sign) {
    x <- sweep(sign * way, 2, mean, "+")
    from <- density(x)
    to <- density(x[row, , drop = FALSE] + rules$small_step * moves)
    is_known <- from$log_density[row] > -Inf & to$log_density > -Inf
    replace(to$gradient - from$gradient[row, , drop = FALSE], !is_known, NA) / rules$small_step
  }
  at_end(1) - at_end(-1)
}

# the normal distributions -----------------------------------------------------

# Points that differ by about 1 in the first of what is given, as far as logarithms must for their
# exponentials to be told apart, however narrow the posterior is. In the rest of it they are the same.
spread_out <- function(at, n, n_first = length(at$given)) {
  at <- rows_at(at, rep_len(seq_len(nrow(at$x)), n))
  at$x[, at$given] <- at$x[, at$given] + stats::rnorm(n * length(at$given))
  rest <- setdiff(at$given, at$given[seq_len(n_first)])
  at$x[, rest] <- rep(at$x[1, rest], each = n)
  at
}

# The same points along the axis of coordinate k, one after the other, from some where the others
# differ.
along_axis <- function(at, k) {
  along <- mean(at$x[, k]) + seq(-2, 2, length.out = rules$n_along_axis)
  at <- rows_at(spread_out(at, rules$n_axes), rep(seq_len(rules$n_axes), each = length(along)))
  at$x[, k] <- along
  at
}

rows_at <- function(at, rows) {
  at$x <- at$x[rows, , drop = FALSE]
  at
}

asked <- function(at, density) {
  there <- density(at$x)
  at$g <- there$gradient
  at$usable <- there$log_density > -Inf
  at
}

# Which of the others depend on each other: a symmetric logical matrix, TRUE on the diagonal; NULL
# where this cannot be told. In a model nothing is 0 by chance: two points do.
pattern_of <- function(at, density) {
  others <- at$others
  at <- asked(spread_out(at, 2), density)
  dependent <- lapply(1:2, function(row) {
    x <- at$x[rep(row, length(others)), , drop = FALSE]
    x[, others] <- x[, others] + diag(at$step[others], length(others))
    there <- density(x)
    change <- sweep(there$gradient, 2, at$g[row, ])[, others, drop = FALSE]
    Q <- -change / at$step[others]
    if (at$usable[row] && all(there$log_density > -Inf) && all(diag(Q) > 0)) {
      abs(Q) > rules$independent * sqrt(outer(diag(Q), diag(Q)))
    }
  })
  if (!any(vapply(dependent, is.null, NA))) {
    pattern <- Reduce(`|`, dependent)
    pattern | t(pattern)
  }
}

# At each point x, given the other coordinates, the precision Q of the others and the pull r: list(rows, x, t,
# y, size, scale), with a row a point; rows, the numbers of these; columns of t for the coordinates given, and of y
# for each row of `lower`, the entries on and below the diagonal of Q, and then for each entry of r; size, to
# which the rounding of y is in proportion; scale, in units of which errors of y matter. NULL where
# there are too few points at which Q is a precision. With standard deviations of the others, at$spread, a row a
# point, Q and r are those of the means of the gradient and of its slopes over as wide a normal distribution, by
# the quadrature of Gauss and Hermite with three nodes along each of these coordinates.
conditional_normals <- function(at, lower, density) {
  at <- asked(at, density)
  others <- at$others
  colours <- at$colours
  is_wide <- !is.null(at$spread)
  step <- if (is_wide) sqrt(3) * at$spread else matrix(at$step[others], nrow(at$x), length(others), byrow = TRUE)
  r <- at$g[, others, drop = FALSE]
  moved_by <- function(sign, which_moved) {
    x <- at$x
    x[, others[which_moved]] <- x[, others[which_moved]] + sign * step[, which_moved]
    there <- density(x)
    at$usable <<- at$usable & there$log_density > -Inf
    (there$gradient - at$g)[, others, drop = FALSE]
  }
  change <- lapply(seq_len(max(colours$colour)), function(colour) {
    ahead <- moved_by(1, colours$colour == colour)
    if (!is_wide) {
      return(ahead)
    }
    behind <- moved_by(-1, colours$colour == colour)
    r <<- r + (ahead + behind) / 6
    (ahead - behind) / 2
  })
  change <- do.call(cbind, change)
  by_move <- function(a, b) {
    -change[, (colours$colour[b] - 1) * length(others) + a, drop = FALSE] / step[, b, drop = FALSE]
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

# the fit ----------------------------------------------------------------------

# The change of variables; NULL where what Q and r are made of is not found. Along the axis of each
# coordinate given their entries are sums of a few functions of it; so all are sums of products of
# these.
fit_precision <- function(at, density) {
  ordered <- elimination(at$pattern)
  # for each coordinate given, points along its axis, and where its terms are fitted
  n_points <- length(at$given) * (rules$n_along_axis * rules$n_axes + rules$n_linear_probes)
  n_asked <- (1 + max(at$colours$colour)) * (n_points + rules$n_probes)
  if (n_asked > rules$most_probe_evals) {
    return(NULL)
  }
  lower <- lower_entries(at$pattern)
  found <- find_terms(at, function(at) conditional_normals(at, lower, density))
  if (!is.null(found)) new_precision(at, ordered, found, lower)
}

# The rows and columns of the entries on and below the diagonal of a matrix with this pattern.
lower_entries <- function(pattern) which(pattern & lower.tri(pattern, diag = TRUE), arr.ind = TRUE)

# What entries are made of: the terms, the coefficients of each entry, and what these were fitted to in
# the end, list(terms, coefficients, observed). observe: a function of probes, that returns entries there,
# as conditional_normals() does. Terms are found by one coordinate after the other: those that an entry is
# made of where all later coordinates stay as they are, times the factors of the next. So of all products
# few are ever tried. NULL where they are not found, or an entry has too many.
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
    least <- if (k == length(factors)) rules$n_probes else rules$n_linear_probes
    n <- max(least, rules$points_per_coefficient * most)
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

# Entries along the axis of coordinate k, at the same t on all axes: list(t, y), where y has a row a t,
# and a column for each entry on the first axis, then for each on the second, over its size. NULL where
# they are not known everywhere.
entries_along <- function(at, k, observe) {
  n <- rules$n_along_axis
  observed <- observe(along_axis(at, k))
  if (isTRUE(nrow(observed$y) == n * rules$n_axes)) {
    by_axis <- function(x) matrix(aperm(array(x, c(n, rules$n_axes, ncol(x))), c(1, 3, 2)), n)
    y <- sweep(by_axis(observed$y), 2, sqrt(colSums(by_axis(observed$size)^2)), "/")
    list(t = observed$t[seq_len(n), match(k, at$given)], y = replace(y, is.nan(y), 0))
  }
}

# Of simple functions of a coordinate t those that make up y, of entries_along(), and which entries
# each is a part of: list(functions, used), with a row a function, and a row of `used` an
# entry. Mostly each of them is in the span of the entries; where some appear in one sum alone, as
# few as make up the rest of the span. NULL where the span has others.
factors_of <- function(t, y) {
  entries <- svd(y, nv = 0)
  span <- entries$u[, entries$d > rules$rounding_of_entry * entries$d[1], drop = FALSE]
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
  parts <- qr.coef(qr(values[, chosen, drop = FALSE], tol = rules$collinear_term), y)
  parts[is.na(parts)] <- 0 # of functions that others make up
  parts <- array(abs(parts), c(length(chosen), ncol(y) / rules$n_axes, rules$n_axes))
  list(
    functions = do.call(cbind, simple_factors)[chosen, , drop = FALSE],
    used = t(apply(parts > rules$rounding_of_entry, 1:2, any))
  )
}

# Columns that are in a span, of which none makes up another: list(chosen, basis), an orthonormal one.
functions_in <- function(span, values) {
  basis <- matrix(0, nrow(values), 0)
  chosen <- integer(0)
  for (j in seq_len(ncol(values))) {
    free <- outside(values[, j], basis)
    size <- sqrt(sum(free^2))
    if (size > rules$collinear_factor && is_inside(values[, j, drop = FALSE], span)) {
      basis <- cbind(basis, free / size)
      chosen <- c(chosen, j)
    }
  }
  list(chosen = chosen, basis = basis)
}

# The first two or three columns that make up a span together with those inside it, of functions_in();
# none where there are none. So few have no room for a span of more dimensions. In one of as many all
# of them are themselves: as far off at most as all that is off the other way.
functions_beside <- function(inside, span, values) {
  others <- setdiff(which(colSums(values^2) > 0), inside$chosen)
  off <- colSums(outside(values[, others, drop = FALSE], span)^2)
  near <- others[off < ncol(span) * rules$rounding_of_factor^2]
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

# So many columns that make up a span, the first ones in the order of combn(); none where there are none.
first_spanning <- function(size, span, columns) {
  columns <- normalised(columns)
  if (size == 1) {
    left <- rep(colSums(span^2), each = ncol(columns)) - crossprod(columns, span)^2
    return(utils::head(which(rowSums(left >= rules$rounding_of_factor^2) == 0), 1))
  }
  for (i in utils::head(seq_len(ncol(columns)), 1 - size)) {
    later <- columns[, -seq_len(i), drop = FALSE]
    more <- first_spanning(size - 1, outside(span, columns[, i]), outside(later, columns[, i]))
    if (length(more) > 0) {
      return(c(i, i + more))
    }
  }
}

# Whether columns are in the span of an orthonormal basis, but for rounding.
is_inside <- function(columns, basis) {
  all(colSums(outside(columns, basis)^2) < rules$rounding_of_factor^2)
}

# What the span of an orthonormal basis leaves of columns.
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
  # growing ones first: what is next to 0 for small scales is not to be a difference from 1
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

# Which terms have a factor, that is not 1, of which coordinate.
depend_on <- function(terms) Reduce(`|`, lapply(terms[parts_of_term], `!=`, 0))

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
    decomposed <- qr(normalised(columns), tol = rules$collinear_term)
    y <- observed$y[, e] / scale[, e]
    by <- qr.coef(decomposed, y)
    by[is.na(by) | abs(by) < rules$rounding_of_term * sqrt(sum(y^2))] <- 0
    coefficients[e, own] <- ifelse(by == 0, 0, by / size)
  }
  coefficients
}

# The change of variables with these coefficients: a map, perhaps with a `basis` (see change_maps()); NULL where it is
# none, or takes too long. found: of fit_terms().
new_precision <- function(at, ordered, found, lower) {
  form <- if (factor_work(ordered) > 4 * length(at$others)^2) diagonal_form(at, found, lower)
  if (is.null(form) && factor_work(ordered) <= rules$most_factor_work) form <- factor_form(at, ordered, found, lower)
  if (is.null(form)) {
    return(NULL)
  }
  change <- c(
    list(name = "precision", kind = "precision", near = at$near, given = at$given),
    list(factors = factors_in_terms(found$terms), least = rep(.Machine$double.xmin, length(at$others))), form
  )
  t <- found$observed$t
  x <- matrix(0, nrow(t), length(at$mean))
  x[, at$given] <- t
  pivots <- .Call(r_precision_pivots, change, x)$pivots
  least <- apply(pivots, 2, function(pivot) {
    if (isTRUE(min(pivot) > .Machine$double.xmin) || !at$near) {
      rules$least_pivot * min(pivot)
    } else {
      rules$least_near_pivot * stats::median(pivot)
    }
  })
  change$least <- replace(least, are_sums(change), .Machine$double.xmin)
  if (is_finite(change[c("factors", "precision", "pull", "least")]) && all(least > .Machine$double.xmin)) change
}

# Steps of the factorisation that a point takes; with its derivatives one and a half times as many products.
# A basis takes three products with a matrix, two of which are triangular, and as many for gradients.
factor_work <- function(ordered) sum(colSums(ordered$entries > 0)^2)

# By the factor of Q in this order: list(order, entries, precision, pull).
factor_form <- function(at, ordered, found, lower) {
  place <- matrix(order(ordered$order)[lower], ncol = 2)
  rows <- ordered$entries[cbind(pmax(place[, 1], place[, 2]), pmin(place[, 1], place[, 2]))]
  of_Q <- seq_len(nrow(lower))
  precision <- matrix(0, max(ordered$entries), ncol(found$coefficients))
  precision[rows, ] <- found$coefficients[of_Q, ]
  list(
    order = at$others[ordered$order], entries = ordered$entries, precision = precision,
    pull = found$coefficients[-of_Q, , drop = FALSE][ordered$order, , drop = FALSE]
  )
}

# Where Q is a sum of one term or two, f_1(t) A + f_2(t) B, with the `basis` u = S E c in which it is diagonal whatever t
# is: S S' is the inverse of A + B, in units in which both terms are 1 on average, and E are the eigenvectors of S' A S.
# NULL where there are more terms, or A + B is no precision.
diagonal_form <- function(at, found, lower) {
  of_Q <- seq_len(nrow(lower))
  coefficients <- found$coefficients[of_Q, , drop = FALSE]
  used <- which(colSums(coefficients != 0) > 0)
  size <- colMeans(abs(values_of(found$terms, found$observed$t)))
  parts <- lapply(used, function(i) size[i] * symmetric_matrix(lower, coefficients[, i]))
  S <- if (length(used) <= 2) inverse_factor(Reduce(`+`, parts))
  if (is.null(S)) {
    return(NULL)
  }
  A <- eigen(crossprod(S, parts[[1]] %*% S), symmetric = TRUE)
  p <- length(at$others)
  precision <- matrix(0, p, length(size))
  precision[, used] <- cbind(A$values, 1 - A$values)[, seq_along(used)]
  precision[abs(precision) < rules$rounding_of_term] <- 0
  in_all <- function(x) {
    all <- diag(length(at$mean))
    all[at$others, at$others] <- x
    all
  }
  list(
    order = at$others, entries = diag(seq_len(p), p), precision = sweep(precision, 2, size, "/"),
    pull = crossprod(S %*% A$vectors, found$coefficients[-of_Q, , drop = FALSE]),
    basis = list(
      list(name = "rotation", axes = in_all(A$vectors)),
      list(name = "affine", mean = numeric(length(at$mean)), chol = in_all(S))
    )
  )
}

# With these entries on and below the diagonal.
symmetric_matrix <- function(lower, entries) {
  p <- max(lower)
  matrix <- matrix(0, p, p)
  matrix[lower] <- matrix[lower[, 2:1, drop = FALSE]] <- entries
  matrix
}

# Which entries of D are sums of positive terms, of which nothing is taken: they are right wherever they are
# asked for, as the precision of a variable whose scale depends on one with long tails.
are_sums <- function(change) {
  degrees <- change$factors[parts_of_term == "degrees", , , drop = FALSE]
  is_positive <- colSums(degrees %% 2, dims = 2) == 0
  of_Q <- change$precision[diag(change$entries), , drop = FALSE]
  is_sum <- rowSums(of_Q < 0) == 0 & rowSums(of_Q[, !is_positive, drop = FALSE] != 0) == 0
  is_sum & rowSums(change$entries > 0) == 1
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

# Whether the map at rows of x, of which those of the coordinates given are looked at, is that of the
# precision: 0 where it is not, since Q is beyond the range of numbers or D is at its bound; else the
# least part of a diagonal entry that is left when its turn comes, which sums of digits lose where
# some scale is far smaller than others.
part_left <- function(change, x) {
  if (is_polynomial(change)) {
    return(rep(1, nrow(x))) # it is one everywhere
  }
  at <- .Call(r_precision_pivots, change, x)
  part <- at$pivots / at$diagonal
  is_known <- is.finite(part) & sweep(at$pivots, 2, change$least, ">") & at$diagonal < 10^rules$largest_size
  part[!is_known] <- 0
  apply(part, 1, min)
}

# The least of all these, of the levels of a reference as of precisions_of(), at x before the maps of all; Inf for none.
least_part_left <- function(precisions, x) {
  left <- rep(Inf, nrow(x))
  for (precision in precisions) {
    left <- pmin(left, part_left(precision, x))
    x <- through_maps(change_maps(list(precision)), x)$x
  }
  left
}
