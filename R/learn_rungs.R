# Fits: the next reference, from what a run has drawn.
#
# A rung of the ladder is a way to fit one: a list with `fit`, a function of a record, and of the
# `shape` of fit_shape(), which is looked for when it is first asked for. It returns a reference,
# or NULL where it cannot be fitted or would change nothing.
# To add a rung, write one and put it into `rungs`, in the order of what it can follow.

rungs <- list(
  location = list(fit = function(record, shape) fit_location(record)),
  normal = list(fit = function(record, shape) fit_normal(record)),
  shape = list(fit = function(record, shape) shape),
  basins = list(fit = function(record, shape) fit_basins(record, shape))
)

# The rungs whose references are not normal.
shapes <- c("shape", "basins")

# The highest rung of those allowed that can be fitted to a record:
# list(reference, rung, gain); NULL for none. density: the target's, of counted_density(), where it may
# be asked for that.
propose <- function(record, allowed, density = NULL, shape = fit_shape(record, density)) {
  for (rung in rev(intersect(names(rungs), allowed))) {
    fit <- rungs[[rung]]$fit(record, shape)
    if (!is.null(fit)) {
      return(c(fit, rung = rung))
    }
  }
}

# The rungs below one that was rejected.
below <- function(rung, allowed) {
  intersect(allowed, names(rungs)[seq_len(match(rung, names(rungs)) - 1)])
}

# the rungs -------------------------------------------------------------------

# The same reference in another location, the mean of the target; not where it is not
# normal, or where particles are twice as wide somewhere: then it would leave a part of
# the target behind.
fit_location <- function(record) {
  weighty <- weighty_rows(record$log_weights)
  if (!is_normal(record$reference) || is.null(record$gradients) ||
    1 / sum(weighty$w^2) < rules$least_ess) {
    return(NULL)
  }
  rows <- function(x) x[weighty$rows, , drop = FALSE]
  z <- rows(record$coordinates)
  variance <- weighted_squares(z, weighty$w) - weighted_sums(z, weighty$w)^2
  mean <- controlled_mean(z, rows(record$gradients), weighty$w)
  if (!all(is.finite(mean)) || any(variance > rules$widest_moved)) {
    return(NULL)
  }
  normal <- normal_of(record$reference, length(mean))
  reference <- record$reference
  reference$mean <- drop(to_user(normal, t(mean)))
  list(reference = reference)
}

# The means of weighted rows, each with the column of `controls`, of true mean zero, that
# belongs to it as a control variate, where that varies and its squares are finite
# (Mira, Solgi and Imparato, 2013).
controlled_mean <- function(x, controls, w) {
  off <- weighted_sums(controls, w)
  centred <- sweep(controls, 2, off)
  variance <- weighted_squares(centred, w)
  varies <- variance > rules$rounding * off^2
  slope <- colSums(w * centred * x) / variance
  correction <- slope * off
  weighted_sums(x, w) - ifelse(varies & is.finite(correction), correction, 0)
}

# A normal distribution: from particles and gradients together where the kernel has
# these, else from particles alone.
fit_normal <- function(record) {
  weighty <- weighty_rows(record$log_weights)
  if (1 / sum(weighty$w^2) < rules$least_ess) {
    return(NULL)
  }
  if (!is.null(record$gradients) && is_normal(record$reference)) {
    fit_by_gradients(record, weighty)
  } else {
    fit_by_moments(record, weighty)
  }
}

# In the coordinates of the run.
fit_by_gradients <- function(record, weighty) {
  inner <- normal_by_gradients(
    record$coordinates, record$gradients, weighty$w, n_genealogies(record), weighty$rows
  )
  if (is.null(inner)) {
    return(NULL)
  }
  list(reference = as_reference(
    inflated(compose(normal_of(record$reference, length(inner$mean)), inner))
  ))
}

# From weighted particles alone.
fit_by_moments <- function(record, weighty) {
  moments <- weighted_factor(record, weighty)
  if (!is.null(moments)) {
    list(reference = as_reference(inflated(moments)))
  }
}

# A reference that is not normal, where particles are likelier so: conditional, with tails,
# with both, in another space, or a Student t. To draws that have not seen the end of a neck it looks
# like heavy tails in all directions: so a conditional reference comes first, if there is one.
# None is looked for where hardly anything depends on anything; `left`, or NULL, is what a normal distribution
# leaves there, in nats.
# `gain` is that in mean log density over what a reference of the present kind can fit; where this
# is a mixture, which can fit anything, for particles that it was not fitted to.
# NULL where there is none.
fit_shape <- function(record, density = NULL) {
  d <- ncol(record$particles)
  if (d > rules$largest_exact) {
    return(fit_skewed(record))
  }
  shape <- fit_dependent(record, density)
  if (is.null(shape) && d > rules$largest_dense) fit_skewed(record, density) else shape
}

# Of many variables: a normal distribution, and the skew of its coordinates, by gradients. It is the one nearest to the
# `density`; or where that may not be asked, or there is none, the present one with new means and scales, if it is
# normal itself but for skew.
fit_skewed <- function(record, density = NULL) {
  reference <- record$reference
  weighty <- weighty_rows(record$log_weights)
  w <- weighty$w
  g <- target_gradients(record, weighty$rows)
  if (!inherits(reference, "smc_reference_gaussian") || is.null(g) || 1 / sum(w^2) < rules$least_ess) {
    return(NULL)
  }
  x <- unconstrained_particles(record)[weighty$rows, , drop = FALSE]
  if (!have_fourth_powers(x, g)) {
    return(NULL)
  }
  mean <- weighted_sums(x, w)
  nearest <- if (!is.null(density)) nearest_of_all(list(x = sweep(x, 2, mean), g = g, w = w, mean = mean), density)
  if (is.null(nearest) && has_coupling(reference)) {
    return(NULL)
  }
  normal <- if (is.null(nearest)) normal_of(reference, length(mean)) else nearest
  z <- from_user(normal, x)
  g <- pull_back_rows(normal, g)
  inner <- normal_by_gradients(z, g, w, n_genealogies(record))
  if (is.null(inner)) {
    return(NULL)
  }
  normal <- compose(normal, inner)
  z <- from_user(inner, z)
  at <- skew_by_gradients(z, pull_back_rows(inner, g), w)
  if (!is.null(at$skew)) {
    known <- seq_along(mean)
    inflation <- inflation_of(at$nats, known, rules$wider_skewed)
    shape <- list(L = normal$L, centre = 0, tails = at$skew, known = known, inflation = inflation)
    list(
      reference = new_shaped_reference(normal$mean, shape),
      gain = if (is_normal(reference)) sum(w * (at$log_density + rowSums(z^2) / 2)) else 0
    )
  }
}

# The same as fit_shape(), but for skew that gradients alone tell in many variables.
fit_dependent <- function(record, density) {
  d <- ncol(record$particles)
  weighty <- thinned(weighty_rows(record$log_weights), rules$shape_work / d^2)
  moments <- weighted_factor(record, weighty)
  if (is.null(moments)) {
    return(NULL)
  }
  w <- weighty$w
  genealogies <- n_genealogies(record)
  points <- list(
    x = moments$centred, g = target_gradients(record, weighty$rows), w = w, mean = moments$mean,
    genealogies = genealogies, is_first = in_first_half(record, weighty$rows)
  )
  if (!have_fourth_powers(points$x, points$g)) {
    return(NULL)
  }
  nearest <- fit_gaussian_score(points, moments$L)
  exact <- exact_normal(points, moments$L, genealogies, nearest)
  if (is.null(exact) && may_be_radial(nearest, w)) {
    exact <- exact_student(points, moments$L, genealogies)
  }
  if (!is.null(exact)) {
    return(if (!are_alike(exact, record$reference)) list(reference = exact, gain = Inf))
  }
  present <- changes_of(record$reference)
  n <- 1 / sum(w^2)
  exact <- exact_space(points, present, density)
  is_coupled <- has_coupling(record$reference) || !are_uncoupled(nearest, points)
  may_ask <- !is_mixture(record$reference) # which is compared with others by the particles
  near <- if (is_coupled && !knows_most(exact)) near_space(points, present, density, n, may_ask)
  if (is.null(exact) && is.null(near) && d > rules$largest_dense) {
    return(NULL)
  }
  if (!is.null(near$asked)) {
    points <- near$asked
    w <- points$w
    n <- genealogies <- points$genealogies
  }
  as_is <- space_of(points, list())
  with_conditional <- function(space) add_conditional(space, record$reference, genealogies)
  space <- if (within_sampling_error(near, n)) {
    with_conditional(near)
  } else if (!is.null(exact) || d > rules$largest_dense) {
    likeliest_space(lapply(found_spaces(exact, near), with_conditional))
  } else if (!is_coupled) {
    as_is
  } else {
    fit_space(as_is, record$reference, genealogies, found_spaces(near))
  }
  best <- best_shape(space, n, genealogies)
  shape <- best$shape
  conditional <- best$conditional
  tested <- best$tested
  criterion <- shape$criterion + log_jacobian(space$points)
  may_be_student <- is.null(conditional) && is.null(space$known)
  student <- if (may_be_student || is_student_reference(record$reference)) {
    fit_student(points$x, w, moments$L, genealogies)
  }
  is_student <- may_be_student && isTRUE(student$criterion > criterion)
  is_changed <- length(space$changes) > 0
  if (!is_student && !is_changed && is.null(shape$conditioning) && is.null(shape$tails)) {
    return(NULL)
  }
  list(
    reference = if (is_student) {
      new_student_reference(points$mean + student$mean, student$L, student$df)
    } else {
      new_shaped_reference(space$points$mean, shape, space$changes)
    },
    gain = if (!is.null(space$exact) && is_mixture(record$reference)) {
      criterion - held_out_mixture(record)
    } else if (!is.null(space$exact) && !identical(space$changes, changes_of(record$reference))) {
      Inf # it is right also where no point has been
    } else if (!is.null(conditional) && is_mixture(record$reference)) {
      tested[["fit"]] + log_jacobian(space$points) - held_out_mixture(record)
    } else if (!is.null(conditional) && !is_changed && is_normal(record$reference) && !anyNA(tested)) {
      tested[["fit"]] - tested[["normal"]] + sum(shape$tails$gain)
    } else {
      (if (is_student) student$criterion else criterion) -
        present_criterion(record, as_is, student, space)
    },
    left = if (!is_coupled && is_normal(record$reference)) nearest$nats
  )
}

# The shape of a space: its `conditional` distribution, if that makes points likelier that it was not fitted to, or else
# the normal one; with tails. list(shape, conditional, tested), where `conditional` is NULL if it is not that one, and
# `tested` is what was compared. n, genealogies: as of fit_conditional().
best_shape <- function(space, n, genealogies) {
  conditional <- space$conditional
  tested <- if (!is.null(conditional$of_given)) {
    held_out(conditional$of_given, given_points(space), n, genealogies)
  } else if (!is.null(conditional)) {
    held_out(conditional, space$points, n, genealogies)
  }
  if (!is_exact(conditional) && !isTRUE(tested[["fit"]] > tested[["normal"]])) {
    conditional <- NULL
  }
  shape <- add_tails(if (is.null(conditional)) space$normal else conditional, space$points$w, genealogies)
  list(shape = shape, conditional = conditional, tested = tested)
}

# Whether a reference has coordinates that depend on others otherwise than in a normal distribution.
has_coupling <- function(reference) {
  !is.null(reference$conditional) || length(changes_of(reference)) > 0
}

# Of the space of the points as they are, those found, and others (see spaces.R), that in which a shape
# fits best, with its `conditional` distribution, or NULL. The first that is exact.
fit_space <- function(as_is, reference, genealogies, found = list()) {
  space <- add_conditional(as_is, reference, genealogies)
  if (is_exact(space$conditional)) {
    return(space)
  }
  tried <- list(space)
  for (space in c(found, other_spaces(as_is, changes_of(reference)))) {
    space <- add_conditional(space, reference, genealogies)
    if (is_exact(space$conditional)) {
      return(space)
    }
    tried <- c(tried, list(space))
  }
  likeliest_space(tried)
}

likeliest_space <- function(spaces) {
  best_of(spaces, function(space) {
    max(space$normal$criterion, space$conditional$criterion) + log_jacobian(space$points)
  })
}

# Those that are not NULL.
found_spaces <- function(...) without_null(list(...))

add_conditional <- function(space, reference, genealogies) {
  if (!is.null(space$known)) {
    space$conditional <- conditional_of_given(space)
    return(space)
  }
  points <- space$points
  known <- if (identical(changes_of(reference), space$changes)) reference$conditional
  n <- 1 / sum(points$w^2)
  space$conditional <- fit_conditional(points, space$normal$L, n, genealogies, known)
  space
}

# Tails of the coordinates of which the skew is not known already.
add_tails <- function(shape, w, genealogies) {
  skewed <- which(shape$skew$skew != 0)
  tails <- fit_tails(shape$z, w, genealogies, setdiff(seq_len(ncol(shape$z)), c(shape$exact, skewed)))
  shape$criterion <- shape$criterion + sum(tails$gain)
  if (is.null(tails)) {
    tails <- shape$skew
  } else {
    for (name in names(shape$skew)) tails[[name]][skewed] <- shape$skew[[name]][skewed]
  }
  shape$tails <- tails
  shape
}

# The mean log density under the best fit of the reference's own kind. as_is: the points as they
# are; space: what has been fitted, which may be of this kind.
present_criterion <- function(record, as_is, student, space) {
  reference <- record$reference
  normal <- as_is$normal$criterion
  if (is_student_reference(reference)) {
    return(max(student$criterion, normal))
  }
  if (is_mixture(reference)) {
    return(max(refit_mixture(record)$criterion, normal))
  }
  has_space <- identical(changes_of(reference), space$changes)
  own <- if (has_space) space else space_of(as_is$points, changes_of(reference))
  if (is.null(own)) {
    return(normal)
  }
  w <- own$points$w
  genealogies <- own$points$genealogies
  is_same <- has_space &&
    identical(reference$conditional[same_kind], space$conditional[same_kind])
  present <- if (is_same) {
    space$conditional
  } else if (!is.null(reference$conditional) && !is.null(own$known)) {
    conditional_of_given(own, reference$conditional)
  } else if (!is.null(reference$conditional)) {
    fit_again(reference$conditional, own$points, 1 / sum(w^2), genealogies)
  }
  if (is.null(present)) present <- own$normal
  if (!is.null(reference$tails)) present <- add_tails(present, w, genealogies)
  max(normal, present$criterion + log_jacobian(own$points))
}

same_kind <- c("kind", "conditioning")

# A mixture again, where the particles are likelier so than in any other shape. The gain is
# over a reference of the same kind, and so 0.
fit_basins <- function(record, shape = fit_shape(record)) {
  if (!is_mixture(record$reference)) {
    return(NULL)
  }
  again <- refit_mixture(record)
  # the search for a shape takes longest, and so comes last
  if (again$criterion > again$normal_criterion && !isTRUE(shape$gain > 0)) {
    list(reference = again$reference, gain = 0)
  }
}

# The largest variance of weighted particles, in coordinates in which the reference has
# variance 1.
widest <- function(record) {
  weighty <- weighty_rows(record$log_weights)
  max(weighted_sd(record$coordinates, weighty$w, weighty$rows))^2
}
