# Rays: whether there is more of the target outside of where the draws are. Particles that have
# never seen a part of it, the wide one of two distributions around the same centre say, or the ends
# of heavy tails, agree with each other and show no sign of it. But rays through them lead there.

# Rays start at the mean of the draws, in the coordinates of the reference, and pass through some of
# them. Along a ray with the direction u the density of the distance r is in proportion to
# f(r) = r^(d - 1) p(r u). There is a distance that hardly any draw exceeds. The evidence outside
# of it is to that inside as the mean, over rays, of the integral of f outside to that inside, since
# the directions of the draws are those of what is inside.
#
# Returns list(rise, error, share, points): by how much the logarithm of the evidence is higher than
# the draws show, and its standard error; the share that is outside; and a point there on each ray,
# list(z, g, w), with weights of sum 1. NULL where the draws do not differ, or the islands take so
# little that even a few rays take too much.
look_outside <- function(sampler, final) {
  n <- n_rays(sampler, sum(final$islands$n_target_evals, na.rm = TRUE))
  if (n == 0) {
    return(NULL)
  }
  weighty <- weighty_rows(final$log_weights)
  z <- final$coordinates[weighty$rows, , drop = FALSE]
  centre <- colSums(weighty$w * z)
  distance <- sqrt(rowSums(sweep(z, 2, centre)^2))
  ends <- ends_of(distance, weighty$w)
  if (!isTRUE(ends[2] > ends[1])) {
    return(NULL)
  }
  with_seed(seed_of_run(sampler$seed, rays_key), {
    rays <- evenly_weighted(weighty$w, n)
    rays <- list(
      u = sweep(z[rays, , drop = FALSE], 2, centre) / distance[rays], centre = centre,
      distance = distance[rays], log_target = final$log_target[weighty$rows][rays]
    )
    found <- integrals_along(rays, distances_along(ends), sampler, final)
    gradient <- if (sampler$kernel$gradients) ask_on_rays(sampler, final, found$z, TRUE)$gradient
  })
  ratio <- found$outside / found$inside
  list(
    rise = log1p(mean(ratio)),
    error = stats::sd(ratio) / sqrt(length(ratio)) / (1 + mean(ratio)),
    share = mean(ratio) / (1 + mean(ratio)),
    points = list(z = found$z, g = gradient, w = ratio / sum(ratio))
  )
}

# Distances that only few draws are closer than, and that only few exceed.
ends_of <- function(distance, w) {
  ranked <- order(distance)
  distance[ranked][1 + findInterval(c(1, -1) * rules$share_outside + c(0, 1), cumsum(w[ranked]))]
}

# A sum over distances that grow by a factor, from half of the first end to far beyond the second:
# list(log_r, log_step, is_outside).
distances_along <- function(ends) {
  steps <- c(log(2 * ends[2] / ends[1]) / rules$n_inside, rules$step_outside)
  at <- function(step, n) log(ends[2]) + step * (seq_len(n) - 0.5)
  is_outside <- rep(c(FALSE, TRUE), c(rules$n_inside, rules$n_beyond))
  list(
    log_r = c(at(-steps[1], rules$n_inside), at(steps[2], rules$n_beyond)),
    log_step = log(steps[1 + is_outside]), is_outside = is_outside
  )
}

# The integrals of f along rays, but for a factor, list(inside, outside, z): with a point z outside
# from each. The distances of each ray begin at random, so that a narrow part between two of them is
# not missed by all; the draw itself is one of what is inside.
integrals_along <- function(rays, along, sampler, final) {
  n <- length(rays$distance)
  d <- ncol(rays$u)
  step <- rep(along$log_step, each = n)
  log_r <- rep(along$log_r, each = n) + exp(step) * stats::runif(n, -0.5, 0.5)
  u <- rays$u[rep(seq_len(n), length(along$log_r)), , drop = FALSE]
  points <- sweep(exp(log_r) * u, 2, rays$centre, "+")
  log_f <- matrix(ask_on_rays(sampler, final, points)$log_density + d * log_r + step, n)
  own <- rays$log_target + d * log(rays$distance) + along$log_step[1]
  highest <- pmax(apply(log_f, 1, max), own)
  f <- exp(log_f - highest)
  outside <- f[, along$is_outside, drop = FALSE]
  until <- t(apply(outside, 1, cumsum))
  chosen <- pmin(1 + rowSums(until < stats::runif(n) * rowSums(outside)), ncol(outside))
  list(
    inside = pmax(rowSums(f[, !along$is_outside, drop = FALSE]), exp(own - highest)),
    outside = rowSums(outside),
    z = points[seq_len(n) + n * (which(along$is_outside)[chosen] - 1), , drop = FALSE]
  )
}

ask_on_rays <- function(sampler, final, z, gradient = FALSE) {
  there <- evaluate_located(
    sampler$target, z, "rays",
    gradient = gradient, maps = maps_of(final$reference, sampler$target$dim),
    evaluators = over_batches(sampler)$evaluators
  )
  there$log_density[!is.finite(there$log_density)] <- -Inf
  there
}

# How many rays are worth it after islands that have taken so many evaluations; and the evaluations
# of a ray, which count as those of the islands do.
n_rays <- function(sampler, spent) {
  n <- min(rules$most_rays, floor(rules$share_of_rays * spent / n_ray_evals(sampler)))
  if (n < rules$least_rays) 0 else n
}

n_ray_evals <- function(sampler) rules$n_inside + rules$n_beyond + sampler$kernel$gradients

# A mixture of the normal distribution of the draws and of a wider one around the same centre, for
# the points outside. A proposal as of propose(); NULL where variables depend on each other otherwise.
fit_nested <- function(record, outside) {
  reference <- record$reference
  if (!is.null(reference$conditional) || !is.null(reference$changes) || is_mixture(reference)) {
    return(NULL)
  }
  narrow <- weighted_factor(record, weighty_rows(record$log_weights))
  x <- through_maps(reference, outside$points$z)$z
  if (is.null(narrow) || ncol(x) > rules$largest_dense) {
    return(NULL)
  }
  square <- rowSums(whitened(narrow$L, sweep(x, 2, narrow$mean))^2)
  wider <- sqrt(sum(outside$points$w * square) / ncol(x))
  list(
    reference = new_mixture_reference(list(
      list(mean = narrow$mean, L = narrow$L, bound = log1p(-outside$share)),
      list(mean = narrow$mean, L = wider * narrow$L, bound = log(outside$share))
    )),
    rung = "basins", gain = Inf
  )
}

# A record of the islands, with the points outside, that a reference may be fitted to.
with_outside <- function(record, outside) {
  points <- outside$points
  x <- through_maps(record$reference, points$z)$z
  add <- function(name, more) if (!is.null(record[[name]])) rbind(record[[name]], more)
  log_w <- normalise_log(record$log_weights)
  record$log_weights <- c(log_w + log1p(-outside$share), log(outside$share * points$w))
  record$origins <- c(record$origins, max(record$origins) + seq_along(points$w))
  record$particles <- add("particles", x)
  record$unconstrained <- add("unconstrained", x)
  record$coordinates <- add("coordinates", points$z)
  record$gradients <- add("gradients", points$g)
  record
}
