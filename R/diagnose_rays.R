# Diagnostic of rays: whether the target has mass further out or further in than the draws, estimated by integrals of
# the density along rays from their mean. It finds a second distribution around the same centre that is wider or
# narrower, and heavy tails. Islands that have all missed such a part agree with each other.

# Least number of draws for rays, mirrors and lines: with fewer, rays may contradict a correct fit.
least_draws_for_probes <- 256
# Number of rays at first.
few_rays <- 8
# Largest number of rays, where the first ones find something: a tenth outside is then known to 0.001.
most_rays <- 32
# Distances on each ray between the nearest and the furthest draws.
n_between <- 28
# Distances before the nearest and beyond the furthest draws, with a ratio of exp(step_of_rays) between neighbours. They
# extend the range to a tenth of the nearest and to 80 times the furthest distance.
places_before <- 11
n_beyond <- 22
step_of_rays <- 0.2
# Shares of the draws beyond the quantiles that divide the draws into two sides.
tail_shares <- c(0.001, 0.01, 0.1)

# Rays start at the mean of the draws, in the coordinates of the reference, and pass through some of the draws. Where
# these coordinates are curved there are also rays in the coordinates of the normal distribution of the draws, which are
# straight: a wide distribution around a narrow one is not around it in curved coordinates. Along a
# ray with direction u the density of the distance r is proportional to f(r) = r^(d - 1) p(r u). The ratio of the
# evidence beyond a distance R to the evidence within R is the mean, over rays through draws within R, of the integral
# of f beyond R over its integral within R; the same holds with both sides exchanged. R is a quantile of the distances
# such that most draws are on the side of the rays. Where a few rays find a rise, more rays are used.
#
# Returns, for the R and the side with the clearest rise, list(rise, error, by_chance, points, is_here, ...): the rise
# of log Z over the value that the draws show, with its standard errors, as of rise_by(); a point on the other side on
# each ray, list(z, w, g), with weights of sum 1 and gradients where the kernel has them; and which draws are on this
# side. The points are in the coordinates of the reference, or where `is_of_normal` is TRUE on the unconstrained scale.
# NULL where there are too few draws or rays, or all distances are equal.
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

# The coordinates in which there are rays: lists of the draws in them, z, the maps from there to the unconstrained
# scale, the log density of these rows of z, log_target(), and whether they are the coordinates of the normal
# distribution of the draws.
spaces_of_rays <- function(final) {
  maps <- maps_of(final$reference, ncol(final$coordinates))
  bends <- length(conditioning_of(final$reference)) > 0 && !has_exact_precisions(final$reference)
  normal <- if (bends) weighted_factor(final, rows_with_weight(final$log_weights))
  own <- list(
    z = final$coordinates, maps = maps, log_target = function(rows) final$log_target[rows], is_of_normal = FALSE
  )
  if (is.null(normal)) {
    return(list(own))
  }
  log_target <- function(rows) {
    in_maps <- forward_maps(maps, final$coordinates[rows, , drop = FALSE])$log_jacobian
    final$log_target[rows] - in_maps + log_det(normal)
  }
  list(own, list(
    z = from_user(normal, unconstrained_particles(final)), maps = list(affine_of(normal)), log_target = log_target,
    is_of_normal = TRUE
  ))
}

# What at most n rays find in such coordinates, of spaces_of_rays(): as look_along_rays(), without gradients.
look_in_space <- function(space, n, seen, evaluate) {
  final <- seen$final
  draws <- distances_of(space$z, final)
  if (n < 2 || !isTRUE(max(draws$far) > min(draws$near) && min(draws$near) > 0) ||
    sum(draws$w > 0) < least_draws_for_probes) {
    return(NULL)
  }
  log_density <- function(z) evaluate(z, gradient = FALSE, maps = space$maps)$log_density
  look <- function(n) {
    chosen <- systematic_rows(draws$w, n)
    rays <- density_on_rays(draws, chosen[draws$distance[chosen] > 0], space, log_density)
    found <- c(
      lapply(draws$far, on_other_side, rays = rays, draws = draws, outward = TRUE),
      lapply(draws$near, on_other_side, rays = rays, draws = draws, outward = FALSE)
    )
    found <- surest_rise(found)
    if (!is.null(found)) {
      found$points <- points_there(found, rays)
      found$is_of_normal <- space$is_of_normal
      if (space$is_of_normal) found$points$z <- forward_maps(space$maps, found$points$z)$x
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

# The distances of all draws from their mean in these coordinates: list(w, distance, n, centre, near, far), with the
# weights of the draws, the number n of independent draws, and the lower and upper quantiles of the distances, `near`
# and `far`.
distances_of <- function(coordinates, final) {
  weighty <- rows_with_weight(final$log_weights)
  all <- seq_along(final$log_weights)
  w <- replace(numeric(length(all)), weighty$rows, weighty$w)
  # draws without weight may be infinite
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
    near = quantiles(tail_shares), far = quantiles(1 - tail_shares)
  )
}

# The density f along the rays through the chosen draws, up to a factor for each ray, times the width of each cell in
# log r: list(f, log_r, distance, z), with a row of f and log_r for each ray, and the points z of the first column, then
# those of the second, and so on. A random offset on each ray makes it unlikely that all rays miss a narrow peak. The
# density at the draw itself enters the integral of the cell in which it lies.
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

# The rise of log Z by mass beyond the distance `end` (outward), or within it (inward), by the rays through draws on
# this side: list(rise, error, by_chance, is_here, rows, ratio, f), with the rows of these rays and f on the other side.
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

# The rise of log Z over the value that the draws show, with its standard error: list(rise, error, by_chance), where
# `by_chance` is the standard error if nothing is missed, that is, if the draws on the other side are too few by chance.
# ratio: estimates of the ratio of the evidence on the other side to that on this side, one for each ray; share: the
# share of the draws on the other side; n: the number of independent draws.
rise_by <- function(ratio, share, n) {
  of_ratio <- stats::sd(ratio) / sqrt(length(ratio)) / (1 + mean(ratio))
  with_odds <- function(odds) sqrt(of_ratio^2 + odds / n)
  rise <- log1p(mean(ratio)) + log1p(-share)
  list(rise = rise, error = with_odds(share / (1 - share)), by_chance = with_odds(mean(ratio)))
}

# The result with the largest lower confidence limit of the rise; NULL where none is finite.
surest_rise <- function(found) {
  found <- Filter(function(one) is.finite(one$rise) && is.finite(one$error), found)
  best_of(found, function(one) one$rise - rules$errors_seen * one$error)
}

# A point on the other side on each of these rays, drawn in proportion to f, with weights in proportion to the ratios.
points_there <- function(found, rays) {
  until <- t(apply(found$f, 1, cumsum))
  target <- stats::runif(nrow(until)) * until[, ncol(until)]
  column <- pmin(1 + rowSums(until <= target), ncol(until))
  list(
    z = rays$z[found$rows + nrow(rays$f) * (column - 1), , drop = FALSE],
    w = found$ratio / sum(found$ratio)
  )
}

# The number of rays, given the evaluations of the islands.
n_rays <- function(sampler, spent) min(most_rays, floor(rules$share_beside * spent / n_ray_evals(sampler)))

# Evaluations for each ray.
n_ray_evals <- function(sampler) places_before + n_between + n_beyond + sampler$kernel$gradients

# Two normal distributions for new_mixture_reference(): that of the draws on this side, and a wider or narrower one
# around the same centre for the points on the other side. NULL where the reference has maps or is a mixture, or in more
# than `largest_dense` dimensions.
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
  if (!found$is_of_normal) x <- forward_maps(maps_of(reference, ncol(x)), x)$x
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

# The record of the islands with the points that rays or lines have found, for the next fit of a reference. The points
# are in the coordinates of the reference, z, and for lines also on the unconstrained scale, x.
with_found <- function(record, found) {
  points <- found$points
  x <- points$x
  if (is.null(x)) x <- forward_maps(maps_of(record$reference, ncol(points$z)), points$z)$x
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
  at <- inverse_maps(maps_of(record$reference, ncol(points$z)), points$z, points$g)
  found$points[c("x", "z", "g")] <- list(points$z, at$x, at$g)
  known <- target_gradients(record, seq_along(record$log_weights))
  record <- with_found(record, found)
  if (!is.null(known)) record$target_gradients <- rbind(known, points$g)
  record
}
