# The shape of a reference: blocks of children that depend on parents, fitted to the particles of a run and their
# gradients, and kept where the particles that they were not fitted to are likelier so.

# Points of each half to which blocks are fitted, at least: with fewer, features are found by chance.
least_half <- 40

# A reference that is not normal: list(reference, gain), with the gain in mean log density over the present one of
# points that it was not fitted to. NULL where there is none, or it is no better. density: of counted_density(), or
# NULL.
fit_shape <- function(record, density = NULL) {
  d <- ncol(record$particles)
  shape <- if (d <= rules$largest_exact) fit_dependent(record, density)
  if (is.null(shape) && d > rules$largest_dense) fit_skewed(record) else shape
}

fit_dependent <- function(record, density) {
  points <- shape_points(record)
  if (is.null(points)) {
    return(NULL)
  }
  d <- ncol(points$x)
  genealogies <- n_genealogies(record)
  of_all <- list(
    x = sweep(points$x, 2, colMeans(points$x)), g = points$g, w = rep(1 / nrow(points$x), nrow(points$x)),
    mean = colMeans(points$x), genealogies = genealogies
  )
  L <- fit_scale(of_all$x, of_all$w, of_all$mean)
  if (is.null(L)) {
    return(NULL)
  }
  nearest <- fit_gaussian_score(of_all, L)
  exact <- exact_normal(of_all, L, genealogies, nearest)
  if (is.null(exact) && may_be_radial(nearest, of_all$w)) {
    exact <- exact_student(of_all, L, genealogies)
  }
  if (!is.null(exact)) {
    return(if (!are_alike(exact, record$reference)) list(reference = exact, gain = Inf))
  }
  if (min(length(points$train), length(points$test)) < least_half) {
    return(NULL)
  }
  space <- exact_space(of_all, changes_of(record$reference), density)
  if (is.null(space) && d > rules$largest_dense) {
    return(NULL)
  }
  shape <- chain_in(space, points)
  if (is.null(shape)) {
    return(NULL)
  }
  student <- if (is.null(space) && !has_parents(shape$chain)) fit_student(of_all$x, of_all$w, L, genealogies)
  if (!is.null(student) && student$criterion > mean(shape$log_density)) {
    reference <- new_student_reference(of_all$mean + student$mean, student$L, student$df)
    gain <- student$criterion - mean(present_density(record$reference, points))
    return(if (isTRUE(gain > 0)) list(reference = reference, gain = gain))
  }
  if (is.null(space) && is_chain_normal(shape$chain)) {
    return(NULL)
  }
  gain <- if (is_mixture(record$reference)) {
    # which is no simpler
    mean(shape$log_density[points$test] - present_density(record$reference, points))
  } else if (!is.null(space) && !identical(space$changes, changes_of(record$reference))) {
    Inf # it is right also where no point has been
  } else {
    gain_over(shape$log_density[points$test], present_density(record$reference, points))
  }
  if (isTRUE(gain > 0)) list(reference = shape$reference, gain = gain)
}

# Equally weighted points of a record: list(x, g, train, test), where no genealogy is in both halves. NULL where there
# are too few, or gradients are missing.
shape_points <- function(record) {
  weighty <- weighty_rows(record$log_weights)
  d <- ncol(record$particles)
  if (is.null(record$gradients) || 1 / sum(weighty$w^2) < max(rules$least_ess, d)) {
    return(NULL)
  }
  n <- max(2 * most_search, points_per_variable * d)
  rows <- weighty$rows[evenly_weighted(weighty$w, min(n, length(weighty$w)))]
  x <- unconstrained_particles(record)[rows, , drop = FALSE]
  g <- target_gradients(record, rows)
  is_first <- in_first_half(record, rows)
  points <- list(x = x, g = g, train = which(is_first), test = which(!is_first))
  if (have_fourth_powers(x, g)) points
}

points_per_variable <- 16

# The chain of blocks of the coordinates that are not exactly normal given these, and the reference that it makes:
# list(chain, reference, log_density), with that of each point, but for inflation.
chain_in <- function(space, points) {
  d <- ncol(points$x)
  changes <- if (is.null(space)) list() else space$changes
  at <- before_maps(change_maps(changes), points$x, points$g)
  variables <- if (is.null(space)) seq_len(d) else given_of(space)
  inner <- replace(points, c("x", "g"), at[c("x", "g")])
  chain <- fit_chain(inner, variables)
  if (is.null(chain)) {
    return(NULL)
  }
  off <- colMeans((chain$points$x + chain$points$g)^2)
  variance <- replace(rep(1, d), variables, inflation_of(off[variables], variables %in% chain$parents))
  list(
    chain = chain,
    reference = new_chain_reference(d, chain$maps, changes, sqrt(variance)),
    log_density = at$log_jacobian + chain$log_jacobian - rowSums(chain$points$x^2) / 2
  )
}

# The variance of coordinates of a reference over what was fitted, by the mean square that is left of their gradients.
# Where it is rounding, the reference is right also where no particle has been. Else a child may be elsewhere beyond
# them, and particles may not have seen both ends of a parent.
inflation_of <- function(off, is_parent) {
  if (mean(off) < rules$nothing_left) {
    return(rep(1, length(off)))
  }
  ifelse(is_parent, rules$inflation_parents, ifelse(off < rules$nothing_left, 1, rules$inflation))
}

# A reference that is normal before these maps, from the sampler's coordinates to those before `changes`.
new_chain_reference <- function(d, maps, changes = list(), inflation = rep(1, d)) {
  reference <- reference_gaussian(numeric(d))
  reference$maps <- maps
  if (length(changes) > 0) reference$changes <- changes
  reference$inflation <- inflation
  reference
}

has_parents <- function(chain) length(chain$parents) > 0

is_chain_normal <- function(chain) all(vapply(chain$blocks, `[[`, "", "form") == "normal")

# The log density of held-out points under the best reference of the present kind: those that are fitted at once are
# fitted to the other points.
present_density <- function(reference, points) {
  x <- points$x[points$test, , drop = FALSE]
  train <- rows_of_points(points, points$train)
  if (is_normal(reference)) {
    normal <- normal_block(train$x, train$g, seq_len(ncol(x)))
    return(if (is.null(normal)) rep(-Inf, nrow(x)) else log_density_by(normal, x))
  }
  if (is_mixture(reference)) {
    frame <- normal_of(reference, ncol(x))
    z <- from_user(frame, train$x)
    mixture <- fit_mixture(without_cover(reference$mixture), z, rep(1 / nrow(z), nrow(z)))
    return(log_mixture(mixture, from_user(frame, x)) - log_det(frame))
  }
  log_density_of(reference, x)
}

# The log density of rows of x under a reference, without its inflation, but for the constant of a normal distribution.
log_density_of <- function(reference, x) {
  d <- ncol(x)
  if (is_function_reference(reference)) {
    return(rep(-Inf, nrow(x)))
  }
  reference$inflation <- NULL
  at <- before_maps(reference_maps(reference, d), x)
  at$log_jacobian + if (is_student_reference(reference)) {
    log_student_density(at$x, reference$df)
  } else {
    -rowSums(at$x^2) / 2
  }
}

# Of standard t variables, in units in which that of normal ones is -|z|^2 / 2.
log_student_density <- function(z, df) {
  d <- ncol(z)
  lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df / 2) - (df + d) / 2 * log1p(rowSums(z^2) / df)
}

# Of many variables: a normal distribution, and the skew of its coordinates, by gradients. It is the one nearest to the
# `density`; or where that may not be asked, or there is none, the present one with new means and scales, if it is
# normal itself but for skew.
fit_skewed <- function(record) {
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
  if (length(changes_of(reference)) > 0) {
    return(NULL)
  }
  normal <- normal_of(reference, length(mean))
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
    d <- length(mean)
    inflation <- sqrt(inflation_of(rep(2 * at$nats / d, d), FALSE))
    list(
      reference = new_chain_reference(d, c(tails_maps(at$skew), list(affine_of(normal))), inflation = inflation),
      gain = if (is_normal(reference)) sum(w * (at$log_density + rowSums(z^2) / 2)) else 0
    )
  }
}
