# Basins: the normal distributions along paths of optimisation, and which of them belong to the same mode. Called by the
# scout.

# Points of a path at which normal distributions are tried: evenly spread, with the last one.
n_candidates <- 25
# Draws for the ELBO of each candidate of a path, which serves only to rank them.
n_elbo_draws <- 5
# If none along the path has a finite ELBO, so many normal distributions on the line from its end to its start are
# tried, each half as far from the end as the one before; and the ratio of their smallest to their largest standard
# deviation.
n_on_chord <- 12
least_on_chord <- 1e-3
# Their standard deviations in units of their distance from the end; narrow ones serve ordered variables.
widths_on_chord <- c(1 / 2, 1 / 16)
# Passes of refinement for the normal distribution of every path ...
passes_of_paths <- 3
# ... and at most so many for the best ones, as long as the ELBO rises.
most_passes <- 12
# Draws for a final ELBO, whose standard error is then an eleventh of the standard deviation of log ratios.
n_elbo_checks <- 128

# What paths from these starts, a row each, add to what was `found` before: list(normals, passed, ends, n_dropped,
# rises, n_points). The best normal of each path that is followed is refined; those that have come together go on as
# one. `passed` are normals that paths have passed elsewhere, those that are not followed where `passes` are asked for;
# `ends` the places where those that are followed have ended; and `n_points` how many points paths have. start: of
# start_of(). most: of tell_more().
look <- function(evaluate, starts, start = NULL, found = list(n_dropped = 0L, rises = FALSE, n_points = 0),
                 passes = TRUE, most = Inf) {
  paths <- climb(evaluate, starts, start)
  ends <- lapply(paths, end_of_path)
  is_followed <- tell_more(ends, found$ends, most)
  tried <- normals_along(evaluate, paths[is_followed])
  normals <- lapply(tried, function(of_path) with_factor(best_of(of_path, function(normal) normal$elbo)))
  n_dropped <- nrow(starts) - length(paths) + sum(is_followed) - length(normals)
  normals <- basins_of(normals)
  for (pass in seq_len(passes_of_paths)) {
    normals <- basins_of(refine(evaluate, normals, rules$n_batches))
  }
  # of the other paths what may be elsewhere is known before the target is asked
  elsewhere <- function(tried) out_of_reach(unlist(tried, recursive = FALSE), normals)
  others <- if (passes) elsewhere(normals_along(evaluate, paths[!is_followed], 0))
  list(
    normals = with_ends(c(found$normals, normals), ends[!is_followed]),
    passed = c(found$passed, elsewhere(tried), try_normals(evaluate, others, n_elbo_draws)),
    ends = c(found$ends, ends[is_followed]),
    n_dropped = found$n_dropped + n_dropped,
    rises = found$rises || rises_without_end(paths),
    n_points = found$n_points + sum(vapply(paths, function(path) ncol(path$points$x), 0L))
  )
}

# The end of a path: its place, minus the log density there, and the factor of a normal distribution around it.
end_of_path <- function(path) {
  list(mean = path$x, f = path$f, L = factor_along(path, ncol(path$points$x) - 1))
}

# Which paths have their normal distribution refined: of those that end at the same maximum the first and the last, from
# the nearest and the furthest start, for at most so many maxima; none that ends where an earlier one has ended.
tell_more <- function(ends, before, most) {
  new <- seq_along(ends)
  for (known in before) {
    new <- new[!are_same_ends(ends[new], known)] # and by their own widths, of the few that are left:
  }
  new <- Filter(function(i) !any(are_same_ends(before, ends[[i]])), new)
  told <- integer()
  while (length(new) > 0 && most > 0) {
    is_same <- vapply(ends[new], is_same_end, NA, ends[[new[1]]]) | seq_along(new) == 1
    told <- c(told, new[1], max(new[is_same]))
    new <- new[!is_same]
    most <- most - 1
  }
  seq_along(ends) %in% told
}

# Two ends belong to one maximum if the difference of their log densities is at most twice half the squared distance:
# widths along paths are rough.
is_same_end <- function(a, b) are_same_ends(list(a), b) || are_same_ends(list(b), a)

# Whether each of these ends belongs to the maximum of another, by the widths at the latter.
are_same_ends <- function(ends, other) {
  if (is.null(other$L) || length(ends) == 0) {
    return(logical(length(ends)))
  }
  square <- squares_from(other, ends)
  square < rules$basin_distance^2 & abs(vapply(ends, `[[`, 0, "f") - other$f) <= 2 * path_tolerance + square
}

# The normal distributions, with the counts of the other paths, each for the nearest one.
with_ends <- function(normals, ends) {
  if (length(normals) == 0 || length(ends) == 0) {
    return(normals)
  }
  square <- vapply(normals, squares_from, numeric(length(ends)), ends)
  with_paths(normals, max.col(-matrix(square, length(ends)), "first"))
}

# The normal distributions, with further paths counted; of: the number of the normal distribution for each path.
with_paths <- function(normals, led_to) {
  n <- tabulate(led_to, length(normals))
  Map(function(normal, n) replace(normal, "n_paths", normal$n_paths + n), normals, n)
}

# Whether a path has reached log densities so high that they have no digits left for what a path can gain: a density
# that has an evidence is nowhere as high.
rises_without_end <- function(paths) {
  height <- vapply(paths, `[[`, 0, "f")
  max(height, 0) > path_tolerance / .Machine$double.eps
}

# The normal distributions whose ELBO is close enough to the best to matter.
likely_normals <- function(normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  normals[elbos > max(elbos, -Inf) - rules$basin_range]
}

# For each path the normal distributions along it whose ELBOs are finite; where there are none, those on the line from
# its end to its start. With no draws the ELBO is that of Laplace's approximation.
normals_along <- function(evaluate, paths, n_draws = n_elbo_draws) {
  if (length(paths) == 0) {
    return(list())
  }
  is_diagonal <- length(paths[[1]]$x) > rules$largest_dense
  tried <- .Call(r_normals_along, evaluate, paths, n_candidates, n_draws, is_diagonal)
  none <- lengths(tried) == 0 & n_draws > 0
  tried[none] <- lapply(paths[none], function(path) {
    on_chord <- try_normals(evaluate, normals_on_chord(path), n_elbo_draws)
    Filter(function(normal) normal$elbo > -Inf, on_chord)
  })
  tried[lengths(tried) > 0]
}

# A normal distribution along a path keeps `path` and `point` instead of L, which would take as much memory as the path.
# has_ended: whether the path has come to a maximum, or to an edge.
with_factor <- function(normal) {
  if (is.null(normal$L)) {
    normal$L <- factor_along(normal$path, normal$point)
    normal$has_ended <- normal$path$is_done
    normal[c("path", "point")] <- NULL
  }
  normal
}

# By the curvature along a path up to a point; NULL where this is not known.
factor_along <- function(path, point) {
  is_diagonal <- length(path$x) > rules$largest_dense
  factor <- .Call(r_normal_factor, path, point, is_diagonal)
  if (all(is.finite(factor))) {
    if (is_diagonal) factor else factor_of_square(t(factor))
  }
}

# Normal distributions on the line from the end of a path to its start, narrower towards the end. They serve paths that
# end at an edge or in a corner of the support, where curvature does not show the width.
normals_on_chord <- function(path) {
  end <- path$x
  way <- path$points$x[, 1] - end
  sd <- pmax(abs(way), least_on_chord * max(abs(way)))
  chord <- expand.grid(part = 2^-seq_len(n_on_chord), width = widths_on_chord)
  Map(function(part, width) {
    sd <- part * width * sd
    L <- if (length(sd) > rules$largest_dense) sd else diag(sd, length(sd))
    list(mean = end + part * way, L = L, n_paths = 1, has_ended = path$is_done)
  }, chord$part, chord$width)
}

# Of the normal distributions that paths have passed, those that no particle from a basin reaches, and whose ELBO is
# high enough to matter: the end of a long curved ridge has no mode.
out_of_reach <- function(passed, basins) {
  likely <- likely_normals(basins)
  least <- max(vapply(basins, `[[`, 0, "elbo"), -Inf) - rules$basin_range
  passed <- Filter(function(normal) normal$elbo > least, passed)
  means <- do.call(rbind, lapply(passed, `[[`, "mean"))
  for (normal in if (length(passed) > 0) likely) {
    is_far <- rowSums(from_user(normal, means)^2) > rules$reach^2
    passed <- passed[is_far]
    means <- means[is_far, , drop = FALSE]
  }
  Filter(function(normal) !any(vapply(basins, are_close, NA, normal)), lapply(passed, with_factor))
}

# These, one for each place, with new ELBOs.
check_passed <- function(evaluate, found) {
  passed <- basins_of(out_of_reach(found$passed, found$normals))
  out_of_reach(check_elbos_of(evaluate, passed), found$normals)
}

# The best normal distribution of each basin.
basins_of <- function(normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  first_of_close(normals[order(elbos, decreasing = TRUE)])
}

first_of_close <- function(normals) {
  basins <- list()
  for (normal in normals) {
    same <- which(vapply(basins, is_same_basin, NA, normal))[1]
    if (is.na(same)) {
      basins <- c(basins, list(normal))
    } else {
      basins[[same]]$n_paths <- basins[[same]]$n_paths + normal$n_paths
    }
  }
  basins
}

# Whether another normal distribution belongs to the basin of this one: their means are close in units of either width,
# and the density at the other is not higher than this one explains, as it would be in a narrow mode within a wide one.
is_same_basin <- function(normal, other) {
  are_close(normal, other) && !isTRUE(excess_over(normal, other) > rules$basin_distance^2 / 2)
}

# The mean over draws of another normal distribution of log density minus that of this one minus its ELBO. It does not
# depend on how well the other one fits; where both fit it is their Kullback-Leibler divergence. In many dimensions,
# where only standard deviations are known, it is not used.
excess_over <- function(normal, other) {
  if (is.matrix(normal$L) && is.matrix(other$L)) {
    d <- length(normal$mean)
    square <- distance_from(normal, other)^2 + sum(forwardsolve(normal$L, other$L)^2)
    other$elbo - normal$elbo + (square - d) / 2 + log_det(normal) - log_det(other)
  }
}

are_close <- function(a, b) distance_between(a, b) < rules$basin_distance

distance_between <- function(a, b) min(distance_from(a, b), distance_from(b, a))

# The distance of the mean of another normal distribution from that of this one, in standard deviations of the latter.
distance_from <- function(normal, other) sqrt(squares_from(normal, list(other)))

squares_from <- function(normal, others) rowSums(from_user(normal, do.call(rbind, lapply(others, `[[`, "mean")))^2)

# Refines the likely basins by further batches, as long as their ELBO rises.
refine_best <- function(evaluate, normals) {
  if (length(normals) == 0) {
    return(normals)
  }
  for (pass in seq_len(most_passes)) {
    elbos <- vapply(normals, `[[`, 0, "elbo")
    likely <- order(elbos, decreasing = TRUE)[seq_len(min(rules$n_refined, length(elbos)))]
    likely <- likely[elbos[likely] > max(elbos) - rules$basin_range]
    normals[likely] <- refine(evaluate, normals[likely], rules$n_batches)
    now <- vapply(normals, `[[`, 0, "elbo")
    if (max(now) - max(elbos) < rules$least_gain) {
      break
    }
  }
  normals
}

# In many dimensions normal distributions have only standard deviations, since batches are too small for a covariance.
# The best one gets a covariance from the curvature at its mean, by two gradients for each dimension, and then a new
# mean and scales by batches. It is kept where its ELBO is higher.
curve_best <- function(evaluate, normals) {
  best <- which.max(vapply(normals, `[[`, 0, "elbo"))
  plain <- unlist(normals[best], recursive = FALSE)
  if (is.null(plain) || is.matrix(plain$L) || length(plain$mean) > rules$largest_curved) {
    return(normals)
  }
  curved <- plain
  curved$L <- inverse_factor(curvature_around(evaluate, plain$mean, plain$L)$hessian)
  if (is.null(curved$L)) {
    return(normals)
  }
  curved <- refine(evaluate, list(curved), rules$n_batches)[[1]]
  if (curved$elbo - curved$elbo_error > plain$elbo + rules$least_curved_gain) {
    normals <- c(list(curved), normals[-best]) # others that turn out to be close are then this one
  }
  normals
}

# New ELBOs of the likely normal distributions, with standard errors: those by which they were chosen are biased
# upwards.
check_elbos_of <- function(evaluate, normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  is_likely <- elbos > max(elbos, -Inf) - rules$basin_range
  normals[is_likely] <- try_normals(evaluate, normals[is_likely], n_elbo_checks)
  normals[!is_likely] <- lapply(normals[!is_likely], function(normal) replace(normal, "elbo_error", NA_real_))
  normals
}
