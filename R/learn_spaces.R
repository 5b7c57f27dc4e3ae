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
    change[c("given", "order")] <- list(left[change$given], left[change$order])
    change$basis <- lapply(change$basis, acting_on, left, length(points$mean))
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
