# References that are not normal: maps with children that depend on parents, fitted to the particles of a run and their
# gradients by least squares (Fisher divergences), and kept if they raise the held-out log density. Called as the rung
# `shape`.

# Smallest number of points in each half, for the fit and held out. With fewer, features are found by chance.
least_half <- 40

# list(reference, gain), with the gain in mean held-out log density over the present reference; NULL if there is none.
# density: of counted_density(); NULL to fit without further evaluations.
fit_shape <- function(record, density = NULL) {
  d <- ncol(record$particles)
  shape <- if (d <= rules$largest_exact) fit_dependent(record, density)
  if (is.null(shape) && d > rules$largest_dense) fit_skewed(record) else shape
}

fit_dependent <- function(record, density) {
  weighted <- weighted_points(record)
  if (is.null(weighted)) {
    return(NULL)
  }
  exact <- exact_reference(weighted)
  if (!is.null(exact)) {
    return(if (!are_alike(exact, record$reference)) list(reference = exact, gain = Inf))
  }
  points <- equal_points(record)
  if (is.null(points$g) || min(length(points$train), length(points$test)) < least_half) {
    return(NULL)
  }
  space <- exact_space(weighted, changes_of(record$reference), density)
  if (!knows_most(space) && !is.null(density)) {
    points$pattern <- pattern_among(points$x, density)
    of_left <- if (!is.null(space)) pattern_left(space, points$x, density)
    if (fills_pattern(of_left, points$pattern)) space <- NULL
    if (!is.null(space)) points$pattern <- of_left
  }
  shape <- if (!is.null(space) || ncol(points$x) <= rules$largest_dense) chain_in(space, points)
  if (!is.null(shape) && is.null(space) && !has_parents(shape$chain)) {
    shape <- with_heavy_tails(shape, weighted, points$x)
  }
  gain <- if (!is.null(shape)) gain_of(shape, space, points, record$reference)
  if (isTRUE(gain > 0)) list(reference = shape$reference, gain = gain)
}

# The weighted particles of a record, centred, with the factor L of their covariance: list(x, g, w, mean, L,
# genealogies), the last an effective number of genealogies. NULL if there are too few, or gradients are missing.
weighted_points <- function(record) {
  d <- ncol(record$particles)
  weighty <- thin_rows(rows_with_weight(record$log_weights), n_shape_points(d))
  g <- target_gradients(record, weighty$rows)
  moments <- if (!is.null(g)) weighted_factor(record, weighty)
  if (!is.null(moments) && fourth_powers_finite(moments$centred, g)) {
    list(
      x = moments$centred, g = g, w = weighty$w, mean = moments$mean, L = moments$L, genealogies = n_genealogies(record)
    )
  }
}

# The target itself, if gradients show that it is a normal distribution or a Student t; else NULL.
exact_reference <- function(points) {
  nearest <- fit_gaussian_score(points, points$L)
  normal <- exact_normal(points, points$L, points$genealogies, nearest)
  if (is.null(normal) && may_be_radial(nearest, points$w)) {
    exact_student(points, points$L, points$genealogies)
  } else {
    normal
  }
}

# The better by mean log density of a Student t and a chain without parents. x: the points of the chain. NULL if the
# chain is better but normal, which is another rung.
with_heavy_tails <- function(shape, weighted, x) {
  student <- fit_student(weighted$x, weighted$w, weighted$L, weighted$genealogies)
  if (!is.null(student) && student$criterion > mean(shape$log_density)) {
    reference <- new_student_reference(weighted$mean + student$mean, student$L, student$df)
    list(reference = reference, log_density = log_density_of(reference, x))
  } else if (!is_chain_normal(shape$chain)) {
    shape
  }
}

# The gain in mean held-out log density over the present reference, of gain_over(). Over a mixture, which is no simpler,
# any gain counts. New exact precisions have an infinite gain, since they are right also beyond the points.
gain_of <- function(shape, space, points, reference) {
  if (!is.null(space) && !is_mixture(reference) && !identical(space$changes, changes_of(reference))) {
    return(Inf)
  }
  new <- shape$log_density[points$test]
  present <- present_density(reference, points)
  if (is_mixture(reference)) mean(new - present) else gain_over(new, present)
}

# Equally weighted points of a record: list(x, g, train, test). No genealogy is in both halves. g is NULL if a gradient
# is not finite.
equal_points <- function(record) {
  weighty <- rows_with_weight(record$log_weights)
  n <- n_shape_points(ncol(record$particles))
  rows <- weighty$rows[systematic_rows(weighty$w, min(n, length(weighty$w)))]
  is_first <- in_first_half(record, rows)
  list(
    x = unconstrained_particles(record)[rows, , drop = FALSE], g = target_gradients(record, rows),
    train = which(is_first), test = which(!is_first)
  )
}

n_shape_points <- function(d) max(2 * most_search, points_per_variable * d)
points_per_variable <- 16

# A chain of blocks for the coordinates that are parents at all levels of the space (all, if it is NULL), and the
# reference with it: list(chain, reference, log_density), the last at each point, without inflation.
chain_in <- function(space, points) {
  d <- ncol(points$x)
  changes <- if (is.null(space)) list() else space$changes
  at <- inverse_maps(change_maps(changes), points$x, points$g)
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

# The inflation of the variance of each coordinate of a reference. off: the mean square of z + g for coordinates z with
# scores g, which is 0 for a standard normal distribution. If it is rounding, the fit is exact and there is no
# inflation. Parents, whose tails particles may have missed, have an inflation of their own.
inflation_of <- function(off, is_parent) {
  if (mean(off) < rules$nothing_left) {
    return(rep(1, length(off)))
  }
  replace(ifelse(off < rules$nothing_left, 1, rules$inflation), is_parent, rules$inflation_parents)
}

# The reference that is standard normal in the sampler's coordinates, with these maps and then `changes` towards the
# user's. inflation: factors of the standard deviations.
new_chain_reference <- function(d, maps, changes = list(), inflation = rep(1, d)) {
  reference <- reference_gaussian(numeric(d))
  reference$maps <- maps
  if (length(changes) > 0) reference$changes <- changes
  reference$inflation <- inflation
  reference
}

has_parents <- function(chain) length(chain$parents) > 0

is_chain_normal <- function(chain) all(vapply(chain$blocks, `[[`, "", "form") == "normal")

# The log density of held-out points under the present reference. A normal distribution or a mixture is first refitted
# to the training points.
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
    mixture <- refit_all_copies(reference, z, rep(1 / nrow(z), nrow(z)))
    return(log_mixture(mixture, from_user(frame, x)) - log_det(frame))
  }
  log_density_of(reference, x)
}

# The log density of rows of x under a reference without its inflation, without the constant of a normal distribution.
log_density_of <- function(reference, x) {
  d <- ncol(x)
  if (is_function_reference(reference)) {
    return(rep(-Inf, nrow(x)))
  }
  reference$inflation <- NULL
  at <- inverse_maps(reference_maps(reference, d), x)
  square <- rowSums(at$x^2)
  at$log_jacobian + if (is_student_reference(reference)) log_student(square, d, reference$df) else -square / 2
}

# For many variables: the present normal distribution with new means and scales and the skewness of its coordinates, by
# gradients: list(reference, gain). NULL if there is no skewness, or the present reference is of another kind.
fit_skewed <- function(record) {
  reference <- record$reference
  d <- ncol(record$particles)
  weighty <- rows_with_weight(record$log_weights)
  w <- weighty$w
  g <- target_gradients(record, weighty$rows)
  is_of_kind <- inherits(reference, "smc_reference_gaussian") && length(changes_of(reference)) == 0
  if (!is_of_kind || is.null(g) || 1 / sum(w^2) < rules$least_ess) {
    return(NULL)
  }
  x <- unconstrained_particles(record)[weighty$rows, , drop = FALSE]
  if (!fourth_powers_finite(x, g)) {
    return(NULL)
  }
  normal <- normal_of(reference, d)
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
    inflation <- sqrt(inflation_of(rep(2 * at$nats / d, d), FALSE))
    list(
      reference = new_chain_reference(d, c(tails_maps(at$skew), list(affine_of(normal))), inflation = inflation),
      gain = if (is_normal(reference)) sum(w * (at$log_density + rowSums(z^2) / 2)) else 0
    )
  }
}
