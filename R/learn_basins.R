# Normal approximations of the modes of a target, called basins: the best candidate along each quasi-Newton path, by
# evidence lower bound (ELBO) as in Pathfinder (Zhang et al., 2022), refined by batch and match (Cai et al., 2024).
# Approximations of the same mode are merged. Called by smc_scout().

# Candidates along each path, spread evenly over its points, the last one included.
n_candidates <- 25
# Draws for the ELBO of each candidate. It only ranks them, and is computed again later.
n_elbo_draws <- 5
# If no candidate along a path has a finite ELBO, so many are placed on the line from its end to its start, each at half
# the distance from the end of the one before; and their smallest standard deviation, relative to the largest.
n_on_chord <- 12
least_on_chord <- 1e-3
# Their standard deviations, relative to the distance from the end. The narrow ones are for ordered variables.
widths_on_chord <- c(1 / 2, 1 / 16)
# Passes of batch and match for every path, and the largest number for the best ones, which end when they no longer
# gain.
passes_of_paths <- 3
most_passes <- 12
# Draws for a final ELBO: its standard error is an eleventh of the standard deviation of the log ratios.
n_elbo_checks <- 128

# Runs a path from each row of `starts`, fits candidates along those chosen by paths_to_follow(), refines the best of
# each and merges equal basins. Adds the result to `found`, and returns a list: `normals`, one a basin; `passed`,
# candidates far from all basins, also those of the other paths if `passes`; `ends` of the followed paths, see
# end_of_path(); `n_dropped`, the number of starts without a normal distribution; `rises`, whether a log density grew
# without limit; `n_points`, the number of points on all paths. start: see start_of(). most: see paths_to_follow().
find_basins <- function(evaluate, starts, start = NULL, found = list(n_dropped = 0L, rises = FALSE, n_points = 0),
                 passes = TRUE, most = Inf) {
  paths <- climb(evaluate, starts, start)
  ends <- lapply(paths, end_of_path)
  is_followed <- paths_to_follow(ends, found$ends, most)
  tried <- normals_along(evaluate, paths[is_followed])
  normals <- lapply(tried, function(of_path) with_factor(best_of(of_path, function(normal) normal$elbo)))
  n_dropped <- nrow(starts) - length(paths) + sum(is_followed) - length(normals)
  normals <- basins_of(normals)
  for (pass in seq_len(passes_of_paths)) {
    normals <- basins_of(refine(evaluate, normals, rules$n_batches))
  }
  # candidates on the other paths are ranked by Laplace's approximation first, which needs no evaluation
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

# The end of a path as list(mean, f, L): the point, its log density, and the Cholesky factor of the local covariance.
end_of_path <- function(path) {
  list(mean = path$x, f = path$f, L = factor_along(path, ncol(path$points$x) - 1))
}

# Whether each path is followed (logical vector). Paths that end at a maximum known `before` are not. Of those that end
# at the same new maximum the first and the last are: they have the nearest and the furthest start. At most `most` new
# maxima are followed.
paths_to_follow <- function(ends, before, most) {
  new <- seq_along(ends)
  for (known in before) {
    new <- new[!are_same_ends(ends[new], known)]
  }
  # the few that are left are compared by their own widths, too
  new <- Filter(function(i) !any(are_same_ends(before, ends[[i]])), new)
  followed <- integer()
  while (length(new) > 0 && most > 0) {
    is_same <- vapply(ends[new], is_same_end, NA, ends[[new[1]]]) | seq_along(new) == 1
    followed <- c(followed, new[1], max(new[is_same]))
    new <- new[!is_same]
    most <- most - 1
  }
  seq_along(ends) %in% followed
}

# Whether two paths end at the same maximum, by the width at either end.
is_same_end <- function(a, b) are_same_ends(list(a), b) || are_same_ends(list(b), a)

# Whether each of `ends` is at the maximum of `other`: close by the width there, with a difference in log density of at
# most the squared distance. That is twice the value for a normal density, since widths along paths are rough.
are_same_ends <- function(ends, other) {
  if (is.null(other$L) || length(ends) == 0) {
    return(logical(length(ends)))
  }
  square <- squares_from(other, ends)
  square < rules$basin_distance^2 & abs(vapply(ends, `[[`, 0, "f") - other$f) <= 2 * path_tolerance + square
}

# The normals, with each path that was not followed counted for the one nearest to its end.
with_ends <- function(normals, ends) {
  if (length(normals) == 0 || length(ends) == 0) {
    return(normals)
  }
  square <- vapply(normals, squares_from, numeric(length(ends)), ends)
  with_paths(normals, max.col(-matrix(square, length(ends)), "first"))
}

# The normals with increased `n_paths`. led_to: the index of a normal for each new path.
with_paths <- function(normals, led_to) {
  n <- tabulate(led_to, length(normals))
  Map(function(normal, n) replace(normal, "n_paths", normal$n_paths + n), normals, n)
}

# Whether a path has reached a log density so large that rounding exceeds the tolerance of the paths. The density is
# then taken to be unbounded, without a finite evidence.
rises_without_end <- function(paths) {
  height <- vapply(paths, `[[`, 0, "f")
  max(height, 0) > path_tolerance / .Machine$double.eps
}

# The normals whose ELBO is within rules$basin_range of the best.
likely_normals <- function(normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  normals[elbos > max(elbos, -Inf) - rules$basin_range]
}

# The candidates with finite ELBO along each path, or on its chord where there are none: a list of lists, without the
# paths that have no candidate. With n_draws = 0 an ELBO is Laplace's approximation.
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

# To save memory a candidate along a path holds its `path` and `point`: here the factor `L` replaces them. has_ended:
# whether the path has reached a maximum or an edge.
with_factor <- function(normal) {
  if (is.null(normal$L)) {
    normal$L <- factor_along(normal$path, normal$point)
    normal$has_ended <- normal$path$is_done
    normal[c("path", "point")] <- NULL
  }
  normal
}

# The factor of the covariance at a point of a path, from the quasi-Newton estimate of the curvature up to there: a
# matrix, or standard deviations in high dimension; NULL where it is not finite.
factor_along <- function(path, point) {
  is_diagonal <- length(path$x) > rules$largest_dense
  factor <- .Call(r_normal_factor, path, point, is_diagonal)
  if (all(is.finite(factor))) {
    if (is_diagonal) factor else factor_of_square(t(factor))
  }
}

# Normal distributions between the end and the start of a path, narrower towards the end. They serve a path that ends
# at the edge of the support or in a corner, where the curvature does not give the width and Newton's step leaves the
# support.
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

# The candidates in `passed` that are beyond the reach of particles from any basin, and whose ELBO is within
# rules$basin_range of the best: for example at the end of a long bent ridge, which is no mode.
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

# The candidates in `found$passed`, merged where close, with new ELBOs from more draws.
check_passed <- function(evaluate, found) {
  passed <- basins_of(out_of_reach(found$passed, found$normals))
  out_of_reach(check_elbos_of(evaluate, passed), found$normals)
}

# The best normal distribution of each basin.
basins_of <- function(normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  first_of_close(normals[order(elbos, decreasing = TRUE)])
}

# The first normal distribution of each basin, in the order given, with the number of paths of all.
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

# Whether `other` approximates the same mode as `normal`: their means are close by the width of either, and the target
# at `other` is not higher than `normal` predicts. The second condition tells a narrow mode from a wide one around it.
is_same_basin <- function(normal, other) {
  are_close(normal, other) && !isTRUE(excess_over(normal, other) > rules$basin_distance^2 / 2)
}

# The mean of log(target density / (evidence x density of `normal`)) over draws of `other`, with the ELBO of `normal` as
# log evidence. Where both fit it is their Kullback-Leibler divergence: half the squared distance for equal covariances.
# NULL in high dimension, where a normal distribution has standard deviations alone.
excess_over <- function(normal, other) {
  if (is.matrix(normal$L) && is.matrix(other$L)) {
    d <- length(normal$mean)
    square <- distance_from(normal, other)^2 + sum(forwardsolve(normal$L, other$L)^2)
    other$elbo - normal$elbo + (square - d) / 2 + log_det(normal) - log_det(other)
  }
}

are_close <- function(a, b) distance_between(a, b) < rules$basin_distance

distance_between <- function(a, b) min(distance_from(a, b), distance_from(b, a))

# The distance of the mean of `other` from that of `normal`, in standard deviations of `normal`.
distance_from <- function(normal, other) sqrt(squares_from(normal, list(other)))

squares_from <- function(normal, others) rowSums(from_user(normal, do.call(rbind, lapply(others, `[[`, "mean")))^2)

# Further passes of batch and match for the best basins, until the best ELBO gains less than rules$least_gain.
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

# A covariance for the best normal distribution in high dimension, where the others have standard deviations alone. The
# covariance is the inverse of the curvature at its mean, from two gradients a dimension; batch and match then refines
# its mean and its scale along each of its coordinates. The result is kept if its ELBO is higher.
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
    normals <- c(list(curved), normals[-best]) # first, so that others close to it are merged into it
  }
  normals
}

# The normals with new ELBOs and their standard errors, from fresh draws: ELBOs by which a maximum was chosen are too
# high. The error is NA for those out of rules$basin_range.
check_elbos_of <- function(evaluate, normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  is_likely <- elbos > max(elbos, -Inf) - rules$basin_range
  normals[is_likely] <- try_normals(evaluate, normals[is_likely], n_elbo_checks)
  normals[!is_likely] <- lapply(normals[!is_likely], function(normal) replace(normal, "elbo_error", NA_real_))
  normals
}
