# Spaces: coordinates in which shapes are fitted, beside those of the points as they are. A space is
# made by changes of variables, one after the other, that undo what a model is known to do: products
# in the place of multiples of a scale (noncentred.R), and standard normal coordinates in the place
# of those that are normal given others (precision.R, polynomial.R). The last maps of a reference that is
# fitted in a space lead out of it.

# The space in which others are standard normal given some coordinates, where that is exact: of the
# present reference, or found by asking for the target's `density`, of counted_density(), or NULL.
exact_space <- function(points, present, density) {
  space <- exact_after(points, Filter(is_precision, present), density)
  if (!is.null(space) || is.null(density)) {
    return(space)
  }
  repeat {
    deeper <- next_level(space, points, density)
    if (is.null(deeper)) {
      return(space)
    }
    space <- deeper
  }
}

# Of the coordinates given which others are normal some may be normal given the rest, once the others are
# integrated out, as in a chain in which the location or scale of each variable depends on the one before. So
# levels are found one after the other, from the last of the chain on. The exact space with one level more than
# `space`, which is NULL for none; or NULL.
next_level <- function(space, points, density) {
  left <- seq_along(points$mean)
  of_left <- points
  marginal <- density
  if (!is.null(space)) {
    left <- given_of(space)
    of_left <- given_points(space)
    marginal <- with_seed(1, marginal_density(space, density))
  }
  change <- find_exact(probes_among(of_left), marginal)
  if (!is.null(change)) {
    change <- change_among(change, left, length(points$mean))
    exact_after(points, c(space$changes, list(change)), density)
  }
}

# The space after these changes, if there are any, and all that they make standard normal is exactly so; else NULL.
exact_after <- function(points, changes, density) {
  space <- if (length(changes) > 0) space_of(points, changes, density)
  if (!is.null(space$exact)) space
}

# The marginal density of the coordinates given: that of the point with them and any of the others, over that of these
# others, which are standard normal. They are 0; or, where edges are in the way there, draws, of which the last that was
# inside comes first.
marginal_density <- function(space, density) {
  given <- given_of(space)
  d <- ncol(space$points$x)
  maps <- change_maps(space$changes)
  others <- rbind(0, draw_standard(rules$n_marginal_draws, d - length(given)))
  function(x, gradient = TRUE, width = NULL, ...) {
    if (!is.null(width)) width <- replace(rep(NA, d), given, width)
    at <- list(log_density = rep(-Inf, nrow(x)), gradient = 0 * x)
    last <- 1
    for (i in seq_len(nrow(others))) {
      left <- which(at$log_density == -Inf)
      if (length(left) == 0) {
        break
      }
      z <- matrix(0, length(left), d)
      z[, given] <- x[left, ]
      z[, -given] <- rep(others[i, ], each = length(left))
      there <- density(z, gradient = gradient, maps = maps, width = width, ...)
      at$log_density[left] <- there$log_density - sum(stats::dnorm(others[i, ], log = TRUE))
      if (gradient) at$gradient[left, ] <- there$gradient[, given]
      if (any(there$log_density > -Inf)) last <- i
    }
    others <<- others[unique(c(last, seq_len(nrow(others)))), , drop = FALSE]
    at
  }
}

# Gradients by differences over short ways have too few digits. The log density is a parabola along
# coordinates that are normal given others, and the difference over any way is exact.
find_exact <- function(at, density) {
  width <- rules$wide_difference * at$sd
  find_precision(at, function(x) density(x, width = width))
}

# The space in which others are nearly standard normal given some coordinates, of space_among(). Where it is near, and
# `density` may be asked, points of the target take the place of the first ones, as its `asked`; and as long as they
# are wider, a space is looked for among them. So it matters little how much of the target the first points have seen.
near_space <- function(points, present, density, n, may_ask = TRUE) {
  space <- space_among(points, present, density, n)
  for (time in seq_len(rules$most_askings)) {
    is_told <- may_ask && !is.null(density) && is_told_by_others(space, n)
    asked <- if (is_told) with_seed(1, asked_points(space, density))
    if (is.null(asked)) {
      break
    }
    there <- if (asked$is_wider) space_among(asked, space$changes, density, n) else space_of(asked, space$changes)
    if (is.null(there)) {
      break
    }
    space <- c(there, list(asked = asked))
    more <- with_one_more(space, density)
    if (!is.null(more)) {
      space <- more
    } else if (!asked$is_wider) {
      break
    }
  }
  space
}

# The space with polynomials of one more coordinate, where that is nearer: of the others that which is furthest from
# normal, as one that a bound makes skew in a tail of those given. Else NULL.
with_one_more <- function(space, density) {
  polynomial <- Find(is_polynomial, space$changes)
  if (is.null(polynomial) || length(polynomial$given) == rules$most_asked_given) {
    return(NULL)
  }
  left <- left_by_normal(polynomial$order, space$points)
  if (max(left) > rules$one_more_left) {
    given <- sort(c(polynomial$given, polynomial$order[which.max(left)]))
    more <- polynomial_space(space$asked, before_polynomial(space$changes), given, density)
    if (isTRUE(more$nats < space$nats)) c(more, list(asked = space$asked))
  }
}

# Whether the others of a space are so near to normal that draws of them tell the marginal density of those given.
is_told_by_others <- function(space, n) {
  is.null(space$exact) && (within_sampling_error(space, n) || isTRUE(space$nats < rules$next_to_near))
}

# The space in which others are nearly standard normal given some coordinates: that of the present
# reference, as long as it is near to the points, worth n draws; or found by asking for the target's
# density, as of exact_space(), for the coordinates as they are, or with products for the multiples of
# scales; or where that is not near, with polynomials after it or alone, if it is nearer so. Not one that is exact for a
# few, nor one in which the density falls off beside the points. NULL where there are no such.
space_among <- function(points, present, density, n) {
  known <- if (!is.null(Find(is_precision, present))) space_of(points, present)
  if (!is.null(known$exact) && !knows_most(known)) known <- NULL
  if (is.null(density)) {
    return(known)
  }
  known <- unless_falling(known, density)
  polynomial <- Find(is_polynomial, present)
  if (!is.null(polynomial)) { # which was fitted to other draws
    known <- smaller_divergence(known, polynomial_space(points, before_polynomial(present), polynomial$given, density))
  }
  if (is_nearest(known, n)) {
    return(known)
  }
  at <- with_drivers(with_nats(probes_among(points), density), density)
  changes <- changes_to_near(points, at, density)
  space <- if (!is.null(changes)) unless_falling(space_of(points, changes), density)
  if (is_nearest(space, n)) {
    return(space)
  }
  # a precision without some of the drivers would mix these with the others
  given <- given_of_all(changes)
  if (is.null(given) || !all(at$drivers %in% given)) {
    changes <- list()
    given <- at$drivers
  }
  smaller_divergence(space, polynomial_space(points, changes, given, density))
}

# What is exact is right everywhere.
unless_falling <- function(space, density) {
  if (!is.null(space$exact) || !is.null(space) && !falls_off(space, density)) space
}

# Whether a part of the reference of a space is where the target is next to nothing, while the points are not: where
# a precision that is right at the points goes wrong a little further out. There it keeps particles from what is beyond,
# and what is fitted to these does so again. The coordinates given are as much wider than the points as they are in
# a reference.
falls_off <- function(space, density) {
  points <- space$points
  d <- ncol(points$x)
  maps <- change_maps(space$changes)
  normal <- list(mean = points$mean + space$normal$centre, L = space$normal$L)
  skew <- space$normal$skew
  log_ratio <- function(x) {
    z <- from_user(normal, x)
    at <- before_maps(tails_maps(skew), z)
    log_reference <- log_normal(at$x, normal$L) + at$log_jacobian
    density(x, gradient = FALSE, maps = maps)$log_density - log_reference
  }
  of_points <- log_ratio(places_among(points, rules$n_beside))
  z <- with_seed(1, draw_standard(rules$n_beside, d))
  given <- if (!is.null(space$known)) given_of(space)
  z[, given] <- sqrt(rules$inflation) * z[, given]
  z <- through_maps(tails_maps(skew), z)$x
  of_reference <- log_ratio(to_user(normal, z))
  mean(of_reference < min(of_points) - rules$next_to_nothing) > rules$part_fallen
}

# The space of these changes and polynomials of the coordinates `given` after them; NULL for none. A precision among the
# changes is a sum of terms, which go on beyond the draws, where polynomials bend off.
polynomial_space <- function(points, changes, given, density) {
  after <- density_after(changes, density)
  at <- driven_by(probes_among(changed(points, changes)), given, after)
  polynomial <- find_polynomial(at, after)
  if (!is.null(polynomial)) unless_falling(space_of(points, c(changes, list(polynomial))), density)
}

# Of two spaces, or NULL, the one with the smaller divergence bound: the first, where
# nothing is known in the second.
smaller_divergence <- function(a, b) {
  is_nearer <- !is.null(b$nats) && (is.null(a$nats) || b$nats < a$nats)
  if (is_nearer) b else a
}

# The changes to it: those of the precision, after products where there is none as things are; NULL for none.
changes_to_near <- function(points, at, density) {
  precision <- find_precision(at, density, near = TRUE)
  if (!is.null(precision)) {
    return(list(precision))
  }
  products <- find_products(at, density)
  if (!is.null(products)) {
    after <- density_after(list(products), density)
    at <- probes_among(changed(points, list(products)))
    at <- with_drivers(at, after, scales_of(products))
    precision <- find_precision(at, after, near = TRUE)
    if (!is.null(precision)) list(products, precision)
  }
}

# The density of points after these changes.
density_after <- function(changes, density) {
  function(x, ...) density(x, maps = change_maps(changes), ...)
}

# Whether at least half of the coordinates are exactly standard normal given the rest.
knows_most <- function(space) {
  length(space$exact) > 0 && 2 * length(space$exact) >= ncol(space$points$x)
}

# Whether the others of a space are so near to the normal distribution that they were given that one
# fitted to n draws, all correlations included, could as well be further off by chance.
within_sampling_error <- function(space, n) {
  d <- length(space$known)
  isTRUE(space$nats < d * (d + 3) / (4 * n))
}

# The same, and so near that no other space is looked for: in hundreds of variables chance alone may be tens of nats.
is_nearest <- function(space, n) within_sampling_error(space, n) && space$nats < rules$next_to_near

# Other spaces that are to be tried: those of products for the multiples of each scale where that
# makes points likelier to be normal; of all products; and of the changes of the present reference, unless others
# are nearly normal after these, which near_space() looks at. A list.
other_spaces <- function(as_is, present) {
  products <- find_multiples(as_is$points)
  is_better <- vapply(products, function(one) {
    isTRUE(normal_criterion(space_of(as_is$points, list(one))) > normal_criterion(as_is))
  }, NA)
  if (!is.null(Find(is_precision, present))) present <- NULL
  sets <- unique(Filter(length, list(products[is_better], products, present)))
  spaces <- lapply(sets, function(changes) space_of(as_is$points, changes))
  without_null(spaces)
}

# Points after these changes, and a normal distribution: list(changes, points, normal, known, exact). Those
# `known` are the coordinates that the changes make standard normal, or nearly so, but for a few that they do
# not, and `exact` the same where it is exact; else both are NULL, and `normal` has the moments of the points.
# density: to be asked, where the gradients of the points do not show that what should be exact is: those by
# differences over short ways may have no digits at the few points that are far out; or NULL.
# NULL where there is none, or the range of numbers does not do.
space_of <- function(points, changes, density = NULL) {
  points <- changed(points, changes)
  if (!all(is.finite(points$x), is.finite(points$g))) {
    return(NULL)
  }
  levels <- Filter(is_precision, changes)
  normal <- unique(unlist(lapply(levels, `[[`, "order"))) # polynomials have those of the precision before them
  space <- list(changes = changes, points = points)
  # a polynomial knows nothing of what is far from the points
  are_exact <- function(left) mean(left) < rules$nothing_left && !any(vapply(levels, is_polynomial, NA))
  left <- left_by_normal(normal, points)
  if (!is.null(density) && !are_exact(left) && !any(vapply(levels, `[[`, NA, "near"))) {
    left <- left_by_normal(normal, asked_along(normal, points, changes, density))
  }
  is_known <- left < rules$far_from_normal
  if (mean(!is_known) <= rules$max_nongaussian_share && isTRUE(mean(left[is_known]) < rules$nearly_linear)) {
    space$known <- sort(normal[is_known])
    space$exact <- if (are_exact(left)) normal
    space <- fit_known(space)
    space$normal <- normal_of_given(space)
  } else {
    space$normal <- normal_shape(points)
  }
  if (!is.null(space$normal)) space
}

# Fits the normal distribution of the coordinates that are given others, `of_known`: the standard one, where that
# is exact, else one with `skew`, as of fit_skew(), or NULL. `z_of_known`: the points in its coordinates, but for the
# skew; `criterion_of_known`: their mean log density; `nats`: a bound of the divergence from it, as of exact_normal().
fit_known <- function(space) {
  points <- space$points
  known <- space$known
  d <- length(known)
  x <- sweep(points$x, 2, points$mean, "+")[, known, drop = FALSE]
  g <- points$g[, known, drop = FALSE]
  normal <- if (is.null(space$exact)) normal_by_gradients(x, g, points$w, points$genealogies)
  space$of_known <- if (is.null(normal)) list(mean = numeric(d), L = rep(1, d)) else normal
  space$nats <- 0
  space$z_of_known <- from_user(space$of_known, x)
  log_density <- -rowSums(space$z_of_known^2) / 2
  if (is.null(space$exact)) {
    at <- skew_by_gradients(space$z_of_known, pull_back_rows(space$of_known, g), points$w)
    space[c("skew", "nats")] <- at[c("skew", "nats")]
    log_density <- at$log_density
  }
  space$criterion_of_known <- sum(points$w * (log_density - log_det(space$of_known)))
  space
}

# Weighted points z that are nearly standard normal, by gradients g there: list(skew, log_density, nats), with the skew
# of fit_skew(), or NULL, the log density with it, but for a constant, and a bound of the divergence from it.
skew_by_gradients <- function(z, g, w) {
  some <- evenly_weighted(w, rules$n_for_skew)
  skew <- fit_skew(z[some, , drop = FALSE], g[some, , drop = FALSE])
  at <- before_maps(tails_maps(skew), z, g)
  list(
    skew = skew, log_density = at$log_jacobian - rowSums(at$x^2) / 2,
    nats = sum(weighted_squares(at$x + at$g, w)) / 2
  )
}

# The variance of a reference's coordinates that are nearly normal, over what was fitted: so many `times` as much above 1
# as that of normal variables whose gradients are as far off.
inflation_of <- function(nats, known, times) {
  off <- sqrt(2 * nats / length(known))
  min(1 + times * off, rules$inflation)
}

# The share of the mean square of the gradient by each coordinate that should be standard `normal`
# that is not of such a one; Inf where it is not known, or there are none. points: after the changes.
left_by_normal <- function(normal, points) {
  if (length(normal) == 0 || is.null(points$g)) {
    return(Inf)
  }
  z <- sweep(points$x, 2, points$mean, "+")[, normal, drop = FALSE]
  g <- points$g[, normal, drop = FALSE]
  left <- weighted_squares(z + g, points$w) / weighted_squares(g, points$w)
  replace(left, !is.finite(left), Inf)
}

# Some of the points after these changes, with the gradients along coordinates that should be standard `normal`:
# where the target has none of its own by differences over ways that lose no digits there.
asked_along <- function(normal, points, changes, density) {
  d <- ncol(points$x)
  x <- places_among(points, rules$n_linear_probes)
  width <- replace(rep(NA, d), normal, rules$wide_difference)
  g <- density(x, maps = change_maps(changes), width = width)$gradient
  list(x = x, g = g, mean = numeric(d), w = rep(1 / nrow(x), nrow(x)))
}

# Where n of the points are, chosen in proportion to their weights.
places_among <- function(points, n) {
  sweep(points$x[evenly_weighted(points$w, n), , drop = FALSE], 2, points$mean, "+")
}

# In such a space only the coordinates given have a distribution that is not known. Points of
# these alone:
given_points <- function(space) {
  points <- space$points
  given <- given_of(space)
  points$x <- points$x[, given, drop = FALSE]
  points$g <- points$g[, given, drop = FALSE]
  points$mean <- points$mean[given]
  if (is.null(points$place)) points else averaged_by_place(points)
}

given_of <- function(space) setdiff(seq_len(ncol(space$points$x)), space$known)

# Their normal distribution as a shape of all coordinates; NULL for none.
normal_of_given <- function(space) {
  points <- given_points(space)
  normal <- normal_by_gradients(points$x, points$g, points$w, points$genealogies)
  if (!is.null(normal)) shape_of_given(space, normal, points)
}

# The same of a normal distribution of them that is known, around the mean of the points.
shape_of_given <- function(space, normal, points = given_points(space)) {
  z <- from_user(normal, points$x)
  criterion <- sum(points$w * log_normal(z, normal$L))
  in_all_coordinates(list(z = z, L = normal$L, centre = normal$mean, criterion = criterion), space)
}

# The conditional distribution of them, likewise. again: a conditional reference that is to be
# fitted again; NULL for the best. NULL where there is none, as where that was conditional on others.
conditional_of_given <- function(space, again = NULL) {
  points <- given_points(space)
  given <- given_of(space)
  n <- 1 / sum(points$w^2)
  shape <- if (is.null(again)) {
    fit_conditional(points, space$normal$L[given, given, drop = FALSE], n, points$genealogies)
  } else if (all(again$conditioning %in% given)) {
    again$conditioning <- match(again$conditioning, given)
    fit_again(again, points, n, points$genealogies)
  }
  if (!is.null(shape)) c(in_all_coordinates(shape, space), list(of_given = shape))
}

# A shape of the coordinates given as one of all, of which the others have the space's normal
# distribution.
in_all_coordinates <- function(shape, space) {
  d <- ncol(space$points$x)
  given <- given_of(space)
  vector <- function(x, of_others) replace(rep(of_others, d), given, x)
  rows <- function(x) replace(matrix(0, d, ncol(x)), cbind(rep(given, ncol(x)), c(col(x))), x)
  block <- function(x) replace(diag(d), as.matrix(expand.grid(given, given)), x)
  known <- space$known
  make <- list(
    offset = function(x) vector(x, 0), centre_of_share = function(x) vector(x, 0),
    bend = function(x) vector(x, 0), pull = function(x) vector(x, 0),
    scale = function(x) vector(x, 1),
    shift = rows, slope = rows, curve = rows, L = block, axes = block
  )
  for (name in intersect(names(make), names(shape))) {
    if (!is.null(shape[[name]])) shape[[name]] <- make[[name]](shape[[name]])
  }
  if (!is.null(shape$conditioning)) shape$conditioning <- given[shape$conditioning]
  normal <- space$of_known
  if (!is.null(space$skew)) {
    shape$skew <- lapply(list(location = 0, scale = 1, skew = 0, tail = 1), rep, d)
    for (name in names(space$skew)) shape$skew[[name]][known] <- space$skew[[name]]
  }
  shape$criterion <- shape$criterion + space$criterion_of_known
  z <- matrix(0, nrow(space$z_of_known), d)
  z[, known] <- space$z_of_known
  rows <- if (is.null(space$points$place)) seq_len(nrow(z)) else space$points$place
  z[, given] <- shape$z[rows, ]
  shape$z <- z
  shape$g <- NULL # only the search for shapes looks at gradients
  shape$L[known, known] <- if (is.matrix(normal$L)) normal$L else diag(normal$L)
  centre <- numeric(d)
  centre[known] <- normal$mean - space$points$mean[known]
  centre[given] <- shape$centre
  shape$centre <- centre
  shape$exact <- space$exact
  shape$known <- known
  shape$inflation <- inflation_of(space$nats, space$known, rules$wider_given)
  shape
}

# The mean log density of the points as they were, under the normal distribution of a space.
normal_criterion <- function(space) {
  if (!is.null(space)) space$normal$criterion + log_jacobian(space$points)
}

changes_of <- function(reference) as.list(reference$changes)

# Those of variables that are normal given others, level by level: the last one from the core's standard
# coordinates comes first. An empty list for none.
precisions_of <- function(reference) rev(Filter(is_precision, changes_of(reference)))

# The coordinates that are given at all levels, or NULL.
given_last <- function(reference) given_of_all(changes_of(reference))

given_of_all <- function(changes) Find(is_precision, changes, right = TRUE)$given

log_jacobian <- function(points) if (is.null(points$log_jacobian)) 0 else points$log_jacobian

# The points after one change after the other, with their gradients where there are any, and their
# mean `log_jacobian`.
changed <- function(points, changes) {
  at <- before_maps(change_maps(changes), sweep(points$x, 2, points$mean, "+"), points$g)
  points$mean <- weighted_sums(at$x, points$w)
  points$x <- sweep(at$x, 2, points$mean)
  points["g"] <- list(at$g)
  points$log_jacobian <- log_jacobian(points) + sum(points$w * at$log_jacobian)
  points
}

# Whether it makes coordinates standard normal that are normal given others: of find_precision(), or of
# find_polynomial().
is_precision <- function(change) identical(change$kind, "precision") || is_polynomial(change)

before_polynomial <- function(changes) Filter(Negate(is_polynomial), changes)

is_polynomial <- function(change) identical(change$name, "polynomial")

# The maps that lead out of a space: each change is the map that leads back from it, and the maps of its `basis`, in which
# that is simple.
change_maps <- function(changes) {
  do.call(c, lapply(rev(changes), function(change) c(list(change), change$basis)))
}

# The same change of coordinates that are these of d ones.
change_among <- function(change, left, d) {
  change[c("given", "order")] <- list(left[change$given], left[change$order])
  change$basis <- lapply(change$basis, function(map) {
    all <- diag(d)
    matrix <- intersect(c("axes", "chol"), names(map))
    all[left, left] <- map[[matrix]]
    map[[matrix]] <- all
    if (!is.null(map$mean)) map$mean <- numeric(d)
    map
  })
  change
}
