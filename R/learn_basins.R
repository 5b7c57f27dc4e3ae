# Basins: which normal distributions are of one mode.

# Paths from the starts, a row each, and the best normal of each path refined. Those that
# have come together go on as one; and the normals that the paths have passed elsewhere. start: of
# start_of().
look <- function(evaluate, starts, start = NULL) {
  paths <- climb(evaluate, starts, start)
  tried <- normals_along(evaluate, paths)
  normals <- lapply(tried, best_of, function(normal) normal$elbo)
  n_dropped <- nrow(starts) - length(normals)
  for (pass in seq_len(rules$n_passes)) {
    normals <- basins_of(refine(evaluate, normals, rules$n_batches))
  }
  passed <- out_of_reach(unlist(tried, recursive = FALSE), normals)
  list(normals = normals, passed = passed, n_dropped = n_dropped, rises = rises_without_end(paths))
}

# Whether a path has climbed to where the log density has no digits left for what a path can gain: one that has an
# evidence is nowhere as high.
rises_without_end <- function(paths) {
  height <- vapply(paths, `[[`, 0, "f")
  max(height, 0) > rules$path_tolerance / .Machine$double.eps
}

# Those whose ELBO does not rule out that they matter.
likely_normals <- function(normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  normals[elbos > max(elbos, -Inf) - rules$basin_range]
}

# The normals along each path whose ELBOs are finite; where there are none, those on its chord: a list for
# each path that has any.
normals_along <- function(evaluate, paths) {
  tried <- possible_normals(evaluate, lapply(paths, function(path) {
    n <- length(path$points)
    tried <- unique(round(seq(n, 1, length.out = min(n, rules$n_candidates))))
    without_null(lapply(path$points[tried], laplace_at))
  }))
  none <- lengths(tried) == 0
  tried[none] <- possible_normals(evaluate, lapply(paths[none], normals_on_chord))
  tried[lengths(tried) > 0]
}

# Of the normals of each path those whose ELBOs are finite.
possible_normals <- function(evaluate, candidates) {
  of_path <- factor(rep(seq_along(candidates), lengths(candidates)), seq_along(candidates))
  tried <- try_normals(evaluate, unlist(candidates, recursive = FALSE), rules$n_elbo_draws)
  possible <- vapply(tried, function(normal) normal$elbo > -Inf, NA)
  unname(split(lapply(tried[possible], c, n_paths = 1), of_path[possible]))
}

# Normals between the end of a path and its start, the nearer to the end the narrower. A path whose end is at
# the edge of what is possible, or in a corner, tells nothing of the width there, and Newton's step leads
# across it.
normals_on_chord <- function(path) {
  end <- path$points[[length(path$points)]]$x
  way <- path$points[[1]]$x - end
  sd <- pmax(abs(way), rules$least_on_chord * max(abs(way))) / 2
  lapply(2^-seq_len(rules$n_on_chord), function(part) {
    list(mean = end + part * way, L = if (length(sd) > rules$largest_dense) part * sd else diag(part * sd, length(sd)))
  })
}

# Of normals that paths have passed those that no particle from a basin reaches, and whose ELBOs do
# not rule out that they matter: the end of a long ridge that bends has no mode of its own.
out_of_reach <- function(passed, basins) {
  likely <- likely_normals(basins)
  best <- best_of(basins, function(normal) normal$elbo)
  Filter(function(normal) {
    normal$elbo > best$elbo - rules$basin_range &&
      !any(vapply(basins, are_close, NA, normal)) &&
      all(vapply(likely, distance_from, 0, normal) > rules$reach)
  }, passed)
}

# These once more, each place once, with their ELBOs anew.
check_passed <- function(evaluate, found) {
  passed <- basins_of(out_of_reach(found$passed, found$normals))
  out_of_reach(check_elbos_of(evaluate, passed), found$normals)
}

# N(x + H g, H) at a point of a path, with H as far as it is known; NULL where it is not.
laplace_at <- function(point) {
  if (is.null(point$memory$s)) {
    return(NULL)
  }
  L <- tryCatch(inverse_hessian_factor(point$memory), error = function(e) NULL)
  mean <- point$x + inverse_hessian_times(point$memory, point$g)
  if (!is.null(L) && all(is.finite(L)) && all(is.finite(mean))) list(mean = mean, L = L)
}

# Of normals whose means are close by the width of either, the best: one a basin.
basins_of <- function(normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  first_of_close(normals[order(elbos, decreasing = TRUE)])
}

first_of_close <- function(normals) {
  basins <- list()
  for (normal in normals) {
    same <- which(vapply(basins, are_close, NA, normal))[1]
    if (is.na(same)) {
      basins <- c(basins, list(normal))
    } else {
      basins[[same]]$n_paths <- basins[[same]]$n_paths + normal$n_paths
    }
  }
  basins
}

are_close <- function(a, b) {
  min(distance_from(a, b), distance_from(b, a)) < rules$basin_distance
}

# Of the mean of another normal from that of this one, in its sds.
distance_from <- function(normal, other) sqrt(sum(from_user(normal, t(other$mean))^2))

# More batches for the likely basins, as long as these help.
refine_best <- function(evaluate, normals) {
  if (length(normals) == 0) {
    return(normals)
  }
  for (pass in seq_len(rules$most_passes)) {
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

# In many dimensions a normal has standard deviations alone, since batches are too few for a covariance.
# The curvature at the mean of the best one gives it a covariance, for two gradients a dimension, and
# batches its mean and its scale in each of its coordinates. It is kept where its ELBO is higher.
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

# The ELBOs of the likely normals anew, with their standard errors: those by which they
# were chosen are too high.
check_elbos_of <- function(evaluate, normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  for (i in seq_along(normals)) {
    normals[[i]]$elbo_error <- NA_real_
    if (elbos[i] > max(elbos) - rules$basin_range) {
      draws <- draw_normal(normals[[i]], rules$n_elbo_checks)
      normals[[i]] <- with_elbo(normals[[i]], draws$z, evaluate(draws$x)$log_density)
    }
  }
  normals
}
