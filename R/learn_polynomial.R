# Coordinates that are nearly normal given others, where the precision is no sum of the terms that
# precision.R tries: that of a Gaussian process with its length, or of effects whose scales are in
# order. Any smooth dependence is a polynomial where the draws are. So at some points near to them the
# nearest normal distributions are asked for; and the entries of their means and of the
# factors L of their precisions L D L', and the logarithms of D, are fitted by polynomials of the
# coordinates given. These bend off beyond the draws, and L D L' is a precision wherever it is asked for.
# See src/map_polynomial.c.

# The change of variables (see spaces.R) of the others given the drivers; NULL where too few of the conditional
# distributions are found. at: of driven_by().
find_polynomial <- function(at, density) {
  if (length(at$drivers) > 0) {
    with_seed(1, polynomial_given(given_these(at, at$drivers), density))
  }
}

polynomial_given <- function(at, density) {
  at$pattern <- if (length(at$others) > 0) pattern_of(at, density)
  if (is.null(at$pattern)) {
    return(NULL)
  }
  at$colours <- colours_of(at$pattern)
  ordered <- elimination(at$pattern)
  k <- length(at$given)
  is_affordable <- function(degree) {
    n <- points_for(k, degree)
    n_asked <- n * (1 + 2 * max(at$colours$colour)) * rules$nearest_steps
    n_asked <= rules$most_probe_evals &&
      max(ordered$entries) * n_polynomials(k, degree) <= rules$most_factor_work
  }
  degree <- highest_degree(is_affordable)
  if (degree > 0) {
    nearest <- fit_gaussian_kl(at, points_for(k, degree), ordered, density)
    if (!is.null(nearest)) fit_polynomial(at, ordered, nearest)
  }
}

# The mode of the others where the coordinates given are at their mean.
mode_given <- function(at, density) {
  others <- at$others
  restricted <- function(x, ...) {
    all <- matrix(at$mean, nrow(x), length(at$mean), byrow = TRUE)
    all[, others] <- x
    there <- density(all)
    there$gradient <- there$gradient[, others, drop = FALSE]
    there
  }
  path <- climb(restricted, rbind(at$mean[others]), NULL)
  if (length(path) > 0) path[[1]]$x else at$mean[others]
}

# Of the normal distributions that are nearest to the density given n points near to the draws, without those that
# are not found; NULL for none. The steps to these begin at that given the mean.
fit_gaussian_kl <- function(at, n, ordered, density) {
  at_mean <- nearest_at_mean(at, ordered, density)
  if (is.null(at_mean)) {
    return(NULL)
  }
  at$x <- rbind(at$mean)
  at <- near_the_draws(rows_at(at, rep(1, n)))
  at$x[, at$others] <- rep(at_mean$x[, at$others], each = n)
  at$spread <- at_mean$spread[rep(1, n), , drop = FALSE]
  nearest <- nearest_from(at, ordered, density)
  if (!is.null(nearest)) {
    has_settled <- nearest$step < rules$settled_step
    lapply(nearest[c("x", "L")], function(rows) rows[has_settled, , drop = FALSE])
  }
}

# That given the mean; NULL for none. The steps to it begin at the mean of the draws; or where none leads on from there,
# since the density is not even concave around it, at the mode.
nearest_at_mean <- function(at, ordered, density) {
  at$x <- rbind(at$mean)
  at$spread <- rbind(at$step[at$others] / rules$probe_step)
  nearest <- nearest_from(at, ordered, density)
  if (is.null(nearest)) {
    at$x[, at$others] <- mode_given(at, density)
    nearest <- nearest_from(at, ordered, density)
  }
  nearest
}

# The normal distribution of all coordinates that is nearest to the density, where nothing is given: list(mean, L);
# NULL for none.
nearest_of_all <- function(points, density) {
  at <- given_these(probes_among(points), integer(0))
  d <- length(at$mean)
  at$pattern <- matrix(TRUE, d, d)
  at$colours <- list(colour = seq_len(d), alone = rep(FALSE, d))
  entries <- matrix(0, d, d)
  lower <- lower.tri(entries, diag = TRUE)
  entries[lower] <- seq_len(sum(lower))
  ordered <- list(order = seq_len(d), entries = entries)
  nearest <- nearest_at_mean(at, ordered, density)
  if (!is.null(nearest) && nearest$step < rules$settled_step) {
    factor <- matrix(0, d, d)
    factor[lower] <- nearest$L
    root_d <- exp(diag(factor) / 2)
    diag(factor) <- 1
    list(mean = drop(nearest$x), L = factor_of_inverse(t(factor) * root_d))
  }
}

# A step leads to the normal distribution of which the mean and the precision are what the means of the gradient and
# of its slopes over the last one make them. The first goes the whole way, which ends the search where the density is
# normal; all others half of it, since where it is not even concave whole ones go back and forth. So do widths where a
# density is flat and falls off at once, if they are free. NULL where there are too few points at which these are
# precisions.
nearest_from <- function(at, ordered, density) {
  for (step in seq_len(rules$nearest_steps)) {
    nearest <- normals_at(at, ordered, density)
    if (is.null(nearest)) {
      return(NULL)
    }
    part <- if (step == 1) 1 else 0.5
    rows <- nearest$rows
    at$x <- (1 - part) * at$x[rows, , drop = FALSE] + part * nearest$x
    spread <- at$spread[rows, , drop = FALSE]
    by <- (nearest$spread / spread)^part
    at$spread <- spread * pmax(pmin(by, rules$most_spread), 1 / rules$most_spread)
  }
  nearest
}

# As factors_of_normals() returns them, of the conditional distributions at these points; NULL for none.
normals_at <- function(at, ordered, density) {
  lower <- lower_entries(at$pattern)
  observed <- conditional_normals(at, lower, density)
  factors <- if (!is.null(observed)) factors_of_normals(observed, lower, ordered, at$others)
  if (NROW(factors$x) > 0) factors
}

# How many polynomials of k variables there are, up to this degree; and at how many points the conditional
# distributions are asked for.
n_polynomials <- function(k, degree) choose(k + degree, degree)
points_for <- function(k, degree) rules$points_per_polynomial * n_polynomials(k, degree)

# The highest that passes; 0 for none.
highest_degree <- function(passes) max(Filter(passes, seq_len(rules$most_degree)), 0)

# The same points, all at the mean, with the coordinates given about as they are in the draws, and a bit wider.
near_the_draws <- function(at) {
  n <- nrow(at$x)
  draws <- at$draws[evenly_weighted(at$w, n), at$given, drop = FALSE]
  moves <- multiply(
    matrix(stats::rnorm(n * nrow(at$deviations)), n), at$deviations[, at$given, drop = FALSE]
  )
  at$x[, at$given] <- at$x[, at$given] + draws + rules$wider_than_draws * moves
  at
}

# The means and the factors of conditional normal distributions: list(rows, x, L, spread, step), with a row a point
# where the precision is one. rows: the numbers of these; x: the points with the means in the place of the others; L:
# its entries in the order of elimination, with log D on the diagonal; spread: standard deviations of the others; step:
# the root mean square of the way to the means, in conditional standard deviations.
factors_of_normals <- function(observed, lower, ordered, others) {
  order <- ordered$order
  p <- length(order)
  of_Q <- seq_len(nrow(lower))
  filled <- which(ordered$entries > 0)
  number <- ordered$entries[filled]
  of_point <- function(i) {
    y <- observed$y[i, ]
    Q <- matrix(0, p, p)
    Q[lower] <- Q[lower[, 2:1, drop = FALSE]] <- y[of_Q]
    root <- tryCatch(chol(Q[order, order]), error = function(e) NULL)
    if (is.null(root)) {
      return(rep(NA_real_, length(number) + 2 * p + 1))
    }
    mean <- backsolve(root, backsolve(root, y[-of_Q][order], transpose = TRUE))
    step <- drop(root %*% (mean - observed$x[i, others[order]]))
    L <- t(root / diag(root))
    diag(L) <- 2 * log(diag(root))
    spread <- sqrt(diag(chol2inv(root)))
    c(replace(numeric(length(number)), number, L[filled]), mean, replace(spread, order, spread), sqrt(mean(step^2)))
  }
  values <- t(vapply(seq_len(nrow(observed$y)), of_point, numeric(length(number) + 2 * p + 1)))
  ok <- is.finite(rowSums(values))
  values <- values[ok, , drop = FALSE]
  x <- observed$x[ok, , drop = FALSE]
  x[, others[order]] <- values[, length(number) + seq_len(p)]
  list(
    rows = observed$rows[ok], x = x, L = values[, seq_along(number), drop = FALSE],
    spread = values[, length(number) + p + seq_len(p), drop = FALSE], step = values[, ncol(values)]
  )
}

# The polynomials of the highest degree for which there are enough points: a map; NULL for none.
fit_polynomial <- function(at, ordered, factors) {
  k <- length(at$given)
  is_enough <- function(degree) rules$points_per_coefficient * n_polynomials(k, degree) <= nrow(factors$x)
  degree <- highest_degree(is_enough)
  if (degree == 0) {
    return(NULL)
  }
  change <- list(
    name = "polynomial", near = TRUE, given = at$given, order = at$others[ordered$order],
    entries = ordered$entries, centre = at$mean[at$given],
    width = rules$polynomial_width * at$sd[at$given], degrees = degrees_up_to(degree, k)
  )
  by <- qr(polynomials_at(change, factors$x[, change$given, drop = FALSE]), tol = rules$collinear_term)
  coefficients <- function(y) t(qr.coef(by, y))
  change$factor <- coefficients(factors$L)
  change$mean <- coefficients(factors$x[, change$order, drop = FALSE])
  if (is_finite(change[c("centre", "width", "factor", "mean")])) change
}

# The degrees in each of k variables of all polynomials up to a degree: a row a variable.
degrees_up_to <- function(degree, k) {
  degrees <- matrix(0, k, 1)
  for (total in seq_len(degree)) {
    before <- degrees[, colSums(degrees) == total - 1, drop = FALSE]
    more <- do.call(cbind, lapply(seq_len(k), function(i) before + (seq_len(k) == i)))
    degrees <- cbind(degrees, unique(more, MARGIN = 2))
  }
  degrees
}

# All polynomials at rows of t, the coordinates given, a column each.
polynomials_at <- function(change, t) {
  s <- tanh(sweep(sweep(t, 2, change$centre), 2, change$width, "/"))
  Reduce(`*`, lapply(seq_len(ncol(s)), function(k) outer(s[, k], change$degrees[k, ], "^")))
}
