# Rays: whether there is more of the target further out than the draws are, or further in. Particles
# that have never seen a part of it, one of two distributions around the same centre say, a narrow
# and a wide one, or the ends of heavy tails, agree with each other and show no sign of it. But rays
# through them lead there.

# Least number of draws for rays, mirrors and lines: with fewer, rays may be wrong about a fit
# that is right.
least_draws_beside <- 256
# Rays through the draws: some, ...
few_rays <- 8
# ... and at most, where these find something: a tenth outside is known to 0.001.
most_rays <- 32
# Distances on each between the nearest and the furthest draws, ...
n_between <- 28
# ... before and beyond these, each a fifth nearer or further than the last, which lead to a tenth
# and to 80 times the distance.
places_before <- 11
n_beyond <- 22
step_of_rays <- 0.2
# Shares of the draws on the other side of a distance. Of a part that was seen by too few draws,
# the largest tells most.
shares_there <- c(0.001, 0.01, 0.1)

# Rays start at the mean of the draws, in the coordinates of the reference, and pass through some of
# them; and, where some of these depend on others otherwise than exactly, also in those of the normal distribution of the
# draws: a wide distribution around a narrow one is not around it where the coordinates bend. Along a ray with the direction u the
# density of the distance r is in proportion to f(r) = r^(d - 1) p(r u). Beyond a distance R the evidence is to that
# before R as the mean, over rays through draws before R, of the integral of f beyond R to that before, since the
# directions of these draws are those of what is there; and the other way round. A few R are tried, with most of
# the draws on this side. Where a few rays find something, more decide.
#
# Returns, for that R and that side of it where this says most, list(rise, error, points, is_here):
# by how much the logarithm of the evidence is higher than the draws show, and its standard error; a
# point on the other side on each ray, list(z, g, w), with weights of sum 1, in the coordinates of the reference, or where
# it `is_of_normal` on the unconstrained scale; and which draws are on this side. NULL where there are too few draws, or rays, or they do not differ.
look_along_rays <- function(seen, evaluate) {
  spaces <- spaces_of_rays(seen$final)
  n <- n_rays(seen$sampler, n_spent(seen)) %/% length(spaces)
  found <- with_seed(seed_of_run(seen$sampler$seed, rays_key), {
    surest_rise(without_null(lapply(spaces, look_in_space, n = n, seen = seen, evaluate = evaluate)))
  })
  if (!is.null(found) && seen$sampler$kernel$gradients) {
    maps <- if (found$is_of_normal) list() else maps_of(seen$final$reference, seen$sampler$target$dim)
    found$points$g <- evaluate(found$points$z, maps = maps)$gradient
  }
  found
}

# Coordinates in which there are rays, each a list of those of the draws, z, the maps from there to the unconstrained
# scale, log_target, a function of rows to the log density there, and whether they are those of a normal distribution of
# the draws, and not of the reference.
spaces_of_rays <- function(final) {
  maps <- maps_of(final$reference, ncol(final$coordinates))
  bends <- length(conditioning_of(final$reference)) > 0 && !has_exact_precisions(final$reference)
  normal <- if (bends) weighted_factor(final, weighty_rows(final$log_weights))
  own <- list(
    z = final$coordinates, maps = maps, log_target = function(rows) final$log_target[rows], is_of_normal = FALSE
  )
  if (is.null(normal)) {
    return(list(own))
  }
  log_target <- function(rows) {
    in_maps <- through_maps(maps, final$coordinates[rows, , drop = FALSE])$log_jacobian
    final$log_target[rows] - in_maps + log_det(normal)
  }
  list(own, list(
    z = from_user(normal, unconstrained_particles(final)), maps = list(affine_of(normal)), log_target = log_target,
    is_of_normal = TRUE
  ))
}

# What at most n rays in such coordinates find: as look_along_rays(), but for gradients.
look_in_space <- function(space, n, seen, evaluate) {
  final <- seen$final
  draws <- distances_of(space$z, final)
  if (n < 2 || !isTRUE(max(draws$far) > min(draws$near) && min(draws$near) > 0) ||
    sum(draws$w > 0) < least_draws_beside) {
    return(NULL)
  }
  log_density <- function(z) evaluate(z, gradient = FALSE, maps = space$maps)$log_density
  look <- function(n) {
    chosen <- evenly_weighted(draws$w, n)
    rays <- density_on_rays(draws, chosen[draws$distance[chosen] > 0], space, log_density)
    found <- c(
      lapply(draws$far, on_other_side, rays = rays, draws = draws, outward = TRUE),
      lapply(draws$near, on_other_side, rays = rays, draws = draws, outward = FALSE)
    )
    found <- surest_rise(found)
    if (!is.null(found)) {
      found$points <- points_there(found, rays)
      found$is_of_normal <- space$is_of_normal
      if (space$is_of_normal) found$points$z <- through_maps(space$maps, found$points$z)$x
    }
    found
  }
  few <- look(min(few_rays, n))
  if (n > few_rays && may_be_more(few, few$error, seen$estimate)) look(n) else few
}

rays_diagnostic <- new_diagnostic(
  advise = c("far_out", "particles"),
  ask = look_along_rays,
  most = function(sampler, spent, course) {
    n <- n_rays(sampler, spent)
    few <- if (n > few_rays) 2 * few_rays * (n_ray_evals(sampler) - sampler$kernel$gradients) else 0
    few + n * n_ray_evals(sampler)
  },
  judge = function(seen, found) {
    says <- c("Rays through the draws reach mass that no draw has visited, which raises the estimate by ", ".")
    judge_beside(seen, found, says)
  },
  remedy = function(record, found) {
    nested <- nested_normals(record, found)
    c(if (found$is_of_normal) with_points_beyond(record, found) else with_found(record, found), list(nested = nested))
  }
)

# The distances of all draws from their mean; those that few draws are before, and that few exceed.
distances_of <- function(coordinates, final) {
  weighty <- weighty_rows(final$log_weights)
  all <- seq_along(final$log_weights)
  w <- replace(numeric(length(all)), weighty$rows, weighty$w)
  # where there is no weight draws may be anywhere
  in_place <- function(z, w) if (all(w > 0)) z else replace(z, w == 0, 0)
  centre <- weighted_mean(coordinates, weighty$w, weighty$rows)
  distance <- over_rows(coordinates, function(z, i) {
    sqrt(rowSums(sweep(in_place(z, w[i]), 2, centre)^2))
  })
  ranked <- order(distance)
  cumulated <- cumsum(w[ranked])
  quantiles <- function(p) distance[ranked[1 + findInterval(p, cumulated)]]
  list(
    w = w, distance = distance, n = n_independent(w, final$origins),
    centre = centre,
    near = quantiles(shares_there), far = quantiles(1 - shares_there)
  )
}

# f along the rays through some of the draws, but for a factor, at distances that grow by a factor,
# from far before all draws to far beyond them: list(f, log_r, distance, z), with a row of f
# and log_r a ray, and the points z of the first column, the second, and so on. The distances on each
# ray begin at random, so that a narrow part between two of them is not missed by all; the draw
# itself is one of them, too.
density_on_rays <- function(draws, chosen, space, log_density) {
  n <- length(chosen)
  d <- length(draws$centre)
  last <- max(draws$far)
  between <- log(last / min(draws$near))
  step <- rep(
    c(step_of_rays, between / n_between, step_of_rays),
    c(places_before, n_between, n_beyond)
  )
  at <- cumsum(step) - step / 2 - places_before * step_of_rays - between + log(last)
  log_r <- outer(stats::runif(n, -0.5, 0.5), step) + rep(at, each = n)
  away <- sweep(space$z[chosen, , drop = FALSE], 2, draws$centre)
  u <- away / draws$distance[chosen]
  z <- exp(c(log_r)) * u[rep(seq_len(n), length(step)), , drop = FALSE]
  z <- sweep(z, 2, draws$centre, "+")
  log_step <- rep(log(step), each = n)
  log_f <- matrix(log_density(z), n) + d * log_r + log_step
  own <- space$log_target(chosen) + d * log(draws$distance[chosen]) + log(min(step))
  nearest <- max.col(-abs(log_r - log(draws$distance[chosen])))
  cell <- cbind(seq_len(n), nearest)
  log_f[cell] <- pmax(log_f[cell], own)
  list(
    f = exp(log_f - apply(log_f, 1, max)), log_r = log_r, distance = draws$distance[chosen], z = z
  )
}

# What is beyond a distance, or before it, by the rays and by the draws: list(rise, error, is_here,
# rows, f, ratio), of the rays through draws on this side of it, with the density on the other.
on_other_side <- function(end, rays, draws, outward) {
  rows <- which((rays$distance < end) == outward)
  is_there <- (rays$log_r[rows, , drop = FALSE] > log(end)) == outward
  f <- rays$f[rows, , drop = FALSE]
  ratio <- rowSums(f * is_there) / rowSums(f * !is_there)
  is_here <- (draws$distance < end) == outward
  c(
    rise_by(ratio, sum(draws$w[!is_here]), draws$n),
    list(is_here = is_here, rows = rows, ratio = ratio, f = f * is_there)
  )
}

# By how much the logarithm of the evidence is higher than the draws show, and its standard error: list(rise, error,
# by_chance), with the error that it has where nothing is missed: then there are too few draws on the other side by
# chance. ratio: that of the evidence on the other side to that on this one, as told by each of some draws on this
# side; share: that of all draws on the other, of n independent ones.
rise_by <- function(ratio, share, n) {
  of_ratio <- stats::sd(ratio) / sqrt(length(ratio)) / (1 + mean(ratio))
  with_odds <- function(odds) sqrt(of_ratio^2 + odds / n)
  list(
    rise = log1p(mean(ratio)) + log1p(-share), error = with_odds(share / (1 - share)), by_chance = with_odds(mean(ratio))
  )
}

# Of several such that which says most; NULL for none.
surest_rise <- function(found) {
  found <- Filter(function(one) is.finite(one$rise) && is.finite(one$error), found)
  best_of(found, function(one) one$rise - rules$errors_seen * one$error)
}

# A point on each of these rays, where the density is high.
points_there <- function(found, rays) {
  until <- t(apply(found$f, 1, cumsum))
  target <- stats::runif(nrow(until)) * until[, ncol(until)]
  column <- pmin(1 + rowSums(until <= target), ncol(until))
  list(
    z = rays$z[found$rows + nrow(rays$f) * (column - 1), , drop = FALSE],
    w = found$ratio / sum(found$ratio)
  )
}

# How many rays are worth it after islands that have taken so many evaluations; and the evaluations
# of a ray, which count as those of the islands do.
n_rays <- function(sampler, spent) min(most_rays, floor(rules$share_beside * spent / n_ray_evals(sampler)))

n_ray_evals <- function(sampler) {
  places_before + n_between + n_beyond + sampler$kernel$gradients
}

# The normal distribution of the draws on this side, and a wider or narrower one around the same centre, for the points
# on the other, as of new_mixture_reference(); NULL where variables depend on each other otherwise.
nested_normals <- function(record, found) {
  reference <- record$reference
  is_plain <- is.null(reference$maps) && is.null(reference$changes) && !is_mixture(reference)
  if (!is_plain && !found$is_of_normal) {
    return(NULL)
  }
  here <- list(rows = which(found$is_here), w = exp(record$log_weights[found$is_here]))
  here$w <- here$w / sum(here$w)
  normal <- weighted_factor(record, here)
  x <- found$points$z
  if (!found$is_of_normal) x <- through_maps(maps_of(reference, ncol(x)), x)$x
  if (is.null(normal) || ncol(x) > rules$largest_dense) {
    return(NULL)
  }
  square <- rowSums(from_user(normal, x)^2)
  scale <- sqrt(sum(found$points$w * square) / ncol(x))
  list(
    list(mean = normal$mean, L = normal$L, elbo = -found$rise),
    list(mean = normal$mean, L = scale * normal$L, elbo = log(-expm1(-found$rise)))
  )
}

# A record of the islands, with the points that rays or lines have found, that a reference may be fitted to: in its
# coordinates, z, and where that is known on the unconstrained scale, x.
with_found <- function(record, found) {
  points <- found$points
  x <- points$x
  if (is.null(x)) x <- through_maps(maps_of(record$reference, ncol(points$z)), points$z)$x
  add <- function(name, more) if (!is.null(record[[name]])) rbind(record[[name]], more)
  log_w <- normalise_log(record$log_weights)
  record$log_weights <- c(log_w - found$rise, log(-expm1(-found$rise) * points$w))
  record$origins <- c(record$origins, max(record$origins) + seq_along(points$w))
  record$particles <- add("particles", x)
  record$unconstrained <- add("unconstrained", x)
  record$coordinates <- add("coordinates", points$z)
  record$gradients <- add("gradients", points$g)
  record
}

# The same of points on the unconstrained scale, with their gradients.
with_points_beyond <- function(record, found) {
  points <- found$points
  at <- before_maps(maps_of(record$reference, ncol(points$z)), points$z, points$g)
  found$points[c("x", "z", "g")] <- list(points$z, at$x, at$g)
  known <- target_gradients(record, seq_along(record$log_weights))
  record <- with_found(record, found)
  if (!is.null(known)) record$target_gradients <- rbind(known, points$g)
  record
}
