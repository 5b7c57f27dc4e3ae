# The scout: finds where the target is, and how wide, by its gradients, before the
# sampler starts. Quasi-Newton paths climb from overdispersed starts; the best normal
# distribution along each path is refined by batch and match; basins are told apart.

#' Locate a target
#'
#' Locates a target by its gradients, before any particle is moved: the first stage of [smc()].
#' Paths of quasi-Newton optimisation climb from random starts, some near and some far. Along each
#' path normal distributions are tried, and the best is refined by batch and match. Those that end
#' in different places are kept apart, as basins. What is found is proposed as references for
#' [smc()], where they compete with the reference that the user gave.
#'
#' Where a start is impossible it is moved towards 0. If all are, the parameters of a model of RTMB or TMB, or
#' up to 4,096 random points (half of them in order, for variables that must be), provide a start; and
#' if none of these is possible, paths begin where the log density is below -1e15.
#'
#' In up to six variables, 2,048 points around the basins are tried, and four more paths start where
#' the density most exceeds what was found. So a narrow mode beside a wide one is found in two or
#' three variables, and one of half the width in four to six.
#'
#' @param target,... what to look for: see [smc()].
#' @param n_starts number of paths (positive integer). Where they end in different
#'   basins twice as many are made; with up to six variables four more begin around what
#'   was found.
#' @param seed a whole number from 0 to 2^32 - 1; NULL to draw one from R's generator.
#' @return An object of class `smc_scout`, a list with
#'
#' * `basins`: a data frame with a row a basin, the best first: `elbo`, the evidence lower bound of
#'   its normal distribution, with Monte Carlo error (the mean of `log target - log normal` over
#'   draws from the basin's normal distribution, truncated to where the target is possible);
#'   `elbo_error`, its standard error, NA for basins too low to count; and `n_paths`, how many paths
#'   ended there.
#' * `normals`: a list with the normal distribution of each basin, as
#'   [reference_gaussian()] makes it, on the unconstrained scale. Above 250 variables it has standard
#'   deviations alone; that of the best basin a covariance, from the curvature at its mean, in up to 2,000
#'   variables and where this raises its ELBO.
#' * `references`: a named list of what is proposed, the least preferred first. `best` is the normal
#'   distribution of the best basin. `shape` is there if gradients at draws of `best` show that most
#'   variables are normal given the others, exactly or nearly. `cover` is there if there are several
#'   basins, or if a path has passed a likely place far from all of them, such as the end of a bent
#'   ridge: a mixture of the normal distributions of these basins and places, and of one with their
#'   common mean and covariance (that alone above 250 variables). If the density does not dip
#'   between these places in the coordinates of `shape`, they are one mode, and `shape` comes last.
#'   All variances are inflated by 1.5, and by less above 250 variables.
#' * `n_dropped`: the number of paths that found nothing.
#' * `gradient`: whether the target's gradient agrees with differences of its log density
#'   (string): `"right"`, `"wrong"`, or `"rough"` where the differences do not settle; see
#'   [check_gradient()]. NA where there is no gradient of the target's own, or no place to
#'   look at it.
#' * `n_target_evals`, `n_impossible`, `seconds`: the evaluations of the target, how many
#'   of them had no finite log density, and the time that it took.
#' @source Zhang, Carpenter, Gelman and Vehtari (2022), *Pathfinder: parallel
#'   quasi-Newton variational inference*, for candidates along a path and their ELBOs;
#'   Cai, Modi, Pillaud-Vivien, Margossian, Gower, Blei and Saul (2024), *Batch and
#'   match: black-box variational inference with a score-based divergence*; Raftery and Bao
#'   (2010), *Estimating and projecting trends in HIV/AIDS generalized epidemics using
#'   incremental mixture importance sampling*, for starts where the density exceeds what was
#'   found.
#' @examples
#' target <- target_gaussian(2, mean = c(150, -3), sd = c(20, 0.1))
#' scout <- smc_scout(target, seed = 1)
#' scout
#' scout$references$best$mean
#' @export
smc_scout <- function(target, ..., n_starts = 8, seed = NULL) {
  target <- check_target(target, ...)
  n_starts <- check_count(n_starts, "n_starts")
  seed <- check_seed(seed) # here, as it may draw from R's generator
  once_each(scout_target(target, n_starts, seed))
}

#' @export
print.smc_scout <- function(x, ...) {
  cat("<smc_scout> ", nrow(x$basins), " basin(s), ",
    format(x$n_target_evals, big.mark = ","), " evaluations of the target\n",
    sep = ""
  )
  print(as.data.frame(x$basins), digits = 6, row.names = FALSE)
  invisible(x)
}

# most_probe_evals: how many evaluations may be spent on a reference with a shape.
scout_target <- function(
  target, n_starts, seed, evaluators = target_interface(target), most_probe_evals = rules$most_probe_evals
) {
  started <- seconds_now()
  evaluate <- counted_density(target, evaluators)
  start <- start_of(target)
  with_seed(seed_of_run(seed, scout_key), {
    found <- look(evaluate, scattered_starts(target$dim, n_starts), start)
    if (length(found$normals) > 1) {
      found <- add_found(found, look(evaluate, scattered_starts(target$dim, n_starts), start))
    }
    found$normals <- curve_best(evaluate, refine_best(evaluate, basins_of(found$normals)))
    if (length(found$normals) > 0 && target$dim <= rules$largest_outside) {
      found <- add_found(found, look(evaluate, starts_outside(evaluate, found$normals)))
    }
    # what was refined comes first: the ELBOs of the others may be higher by luck
    found$normals <- check_elbos_of(evaluate, first_of_close(found$normals))
    found$passed <- check_passed(evaluate, found)
    gradient <- try_gradient(target, evaluate, found$normals, start)
    shape <- shape_around(found$normals, limited_density(evaluate, most_probe_evals))
    found$prefers_shape <- goes_first(shape, c(likely_normals(found$normals), found$passed), evaluate)
  })
  scout <- new_scout(found, shape, evaluate("count"))
  scout$marginal <- shape$marginal
  scout$rises <- found$rises
  scout$gradient <- gradient$verdict
  scout$gradient_place <- gradient$place
  scout$seconds <- seconds_now() - started
  scout
}

# The point that a model comes with, on the unconstrained scale; NULL for none.
start_of <- function(target) {
  if (!is.null(target$start)) unconstrain(target, target$start)
}

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

add_found <- function(found, more) {
  list(
    normals = c(found$normals, more$normals),
    passed = c(found$passed, more$passed),
    n_dropped = found$n_dropped + more$n_dropped,
    rises = found$rises || more$rises
  )
}

# Whether a path has climbed to where the log density has no digits left for what a path can gain: one that has an
# evidence is nowhere as high.
rises_without_end <- function(paths) {
  height <- vapply(paths, `[[`, 0, "f")
  max(height, 0) > rules$path_tolerance / .Machine$double.eps
}

# Starts for the basins that the first paths have gone past: points around what was found at
# which the density most exceeds it, as in incremental mixture importance sampling.
starts_outside <- function(evaluate, normals) {
  likely <- likely_normals(normals)
  around <- covering(likely)
  scale <- exp(stats::runif(rules$n_outside, log(rules$outside[1]), log(rules$outside[2])))
  x <- to_user(around, scale * draw_normal(around, rules$n_outside)$z)
  found <- do.call(pmax, lapply(likely, function(normal) {
    normal$elbo - rowSums(from_user(normal, x)^2) / 2 - log_det(normal)
  }))
  excess <- evaluate(x, gradient = FALSE)$log_density - found
  x[order(excess, decreasing = TRUE)[seq_len(rules$n_outside_paths)], , drop = FALSE]
}

# Those whose ELBO does not rule out that they matter.
likely_normals <- function(normals) {
  elbos <- vapply(normals, `[[`, 0, "elbo")
  normals[elbos > max(elbos, -Inf) - rules$basin_range]
}

new_scout <- function(found, shape, count) {
  normals <- found$normals
  elbos <- vapply(normals, `[[`, 0, "elbo")
  order <- order(elbos, decreasing = TRUE)
  normals <- normals[order]
  likely <- likely_normals(normals)
  shape <- if (!is.null(shape)) {
    list(shape = new_shaped_reference(shape$points$mean, shape$shape, shape$changes))
  }
  structure(
    c(list(
      basins = new_table(
        elbo = elbos[order],
        elbo_error = vapply(normals, `[[`, 0, "elbo_error"),
        n_paths = vapply(normals, `[[`, 0, "n_paths")
      ),
      normals = lapply(normals, as_reference),
      references = c(
        if (length(likely) > 0) list(best = as_reference(inflated(likely[[1]]))),
        if (!found$prefers_shape) shape,
        if (length(likely) + length(found$passed) > 1) {
          list(cover = covering_reference(c(likely, found$passed)))
        },
        if (found$prefers_shape) shape
      ),
      n_dropped = found$n_dropped
    ), as.list(count)),
    class = "smc_scout"
  )
}

# The space in which most coordinates are standard normal given the rest (see spaces.R), if draws of the best
# normal show that there is one: gradients tell it wherever the draws are. Particles of a run from that normal
# would show it too, but for where few of them have lived. NULL for none.
shape_around <- function(normals, density) {
  best <- best_of(normals, function(normal) normal$elbo)
  if (is.null(best) || length(best$mean) > rules$largest_exact) {
    return(NULL)
  }
  draws <- draw_normal(best, rules$race_particles)
  at <- density(draws$x)
  ok <- at$log_density > -Inf
  n <- sum(ok)
  if (n < rules$least_ess) {
    return(NULL)
  }
  w <- rep(1 / n, n)
  x <- draws$x[ok, , drop = FALSE]
  mean <- weighted_sums(x, w)
  points <- list(
    x = sweep(x, 2, mean), g = at$gradient[ok, , drop = FALSE], w = w, mean = mean, genealogies = n,
    is_first = seq_len(n) %% 2 == 0
  )
  exact <- exact_space(points, list(), density)
  space <- if (knows_most(exact)) {
    with_scouted_given(exact, density)
  } else if (!is.matrix(best$L) || !are_uncoupled(fit_gaussian_score(points, best$L), points)) {
    near_space(points, list(), density, n)
  }
  if (within_sampling_error(space, n)) with_shape(space) # and so is one that is exact
}

# The space with its `shape`: the normal distribution, than which draws of one show no other; points that were asked
# for may.
with_shape <- function(space) {
  space$shape <- space$normal
  if (!is.null(space$asked)) {
    n <- space$asked$genealogies
    space$conditional <- conditional_of_given(space)
    space$shape <- best_shape(space, n, n)$shape
  }
  space
}

# A space in which all coordinates but those given are exactly standard normal, with the best normal of these: their
# marginal density is known, in a few dimensions, and is scouted in its turn. So it does not matter how far from it the
# draws are that have shown the space. `marginal`: its ELBO, with the error; what edges cut off is in it.
with_scouted_given <- function(space, density) {
  given <- given_of(space)
  if (length(space$exact) + length(given) < ncol(space$points$x)) {
    return(space)
  }
  marginal <- marginal_density(space, density)
  start <- space$points$mean[given] + space$normal$centre[given]
  found <- look(marginal, scattered_starts(length(given), rules$n_starts), start)$normals
  best <- best_of(found, function(normal) normal$elbo)
  if (!is.null(best)) {
    space$marginal <- best[c("elbo", "elbo_error")]
    best$mean <- best$mean - space$points$mean[given]
    space$normal <- shape_of_given(space, best)
  }
  space
}

# Whether the reference with a shape is tried before the one that covers all these places: where they are in
# one mode, and where the coordinates given have been scouted. Else a shape that is exact is found again wherever the
# draws are, and need not be.
goes_first <- function(space, places, evaluate) {
  if (!is.null(space$marginal)) {
    return(TRUE)
  }
  is_candidate <- !is.null(space) && is.null(space$exact) && length(places) > 0
  is_candidate && is_one_mode(space, places, evaluate)
}

# Whether in the coordinates of a space the density does not dip on the way from its mean to those of these
# normals: then the basins are places in one mode, as those that paths find along a neck.
is_one_mode <- function(space, normals, evaluate) {
  n <- length(normals)
  d <- length(space$points$mean)
  means <- matrix(vapply(normals, `[[`, numeric(d), "mean"), n, d, byrow = TRUE)
  ends <- changed(list(x = means, w = rep(1 / n, n), mean = numeric(d)), space$changes)
  centre <- space$points$mean + space$normal$centre
  ways <- sweep(ends$x, 2, centre - ends$mean)
  part <- seq(0, 1, length.out = rules$n_on_way)
  x <- sweep(ways[rep(seq_len(n), length(part)), , drop = FALSE] * rep(part, each = n), 2, centre, "+")
  along <- matrix(evaluate(x, gradient = FALSE, maps = change_maps(space$changes))$log_density, n)
  dip <- pmin(along[, 1], along[, ncol(along)]) - apply(along, 1, min)
  isTRUE(max(dip) < rules$least_dip)
}

# A mixture of the basins and of the normal that covers them; that normal alone where the
# dimension is too high.
covering_reference <- function(normals) {
  if (length(normals[[1]]$mean) <= rules$largest_dense) {
    new_mixture_reference(normals)
  } else {
    as_reference(inflated(covering(normals)))
  }
}

# the target, as the scout sees it --------------------------------------------

# A function of an n x d matrix on the unconstrained scale, or before these maps, and of whether the gradient
# is wanted: list(log_density, gradient), where what is not finite, or has no finite gradient, has log density
# -Inf and gradient 0. far: whether points of log density below -1e15 count, where they have a slope: sums with
# such numbers are rounding errors, but paths climb from there. width: over which ways the gradient is to be taken by
# differences where the target has none of its own, one a coordinate; NULL for those of the target.
# Of "count" it gives how many points it was asked for, and how many were impossible; with gradient = "own" whether
# gradients are the target's own.
counted_density <- function(target, evaluators = target_interface(target)) {
  evaluators <- with_addresses(evaluators) # once, not at each call
  count <- c(n_target_evals = 0, n_impossible = 0)
  has_own <- NULL
  is_own <- function(x) {
    if (is.null(has_own)) {
      has_own <<- has_own_gradient(target, x)
      count[1] <<- count[1] + is_told_by_call(target)
    }
    has_own
  }
  function(x, gradient = TRUE, maps = NULL, far = FALSE, width = NULL) {
    if (identical(x, "count")) {
      return(count)
    }
    x[!is.finite(x)] <- 0
    if (identical(gradient, "own")) {
      return(is_own(x))
    }
    ask <- function(x, gradient) {
      evaluate_located(target, x, "scout", gradient = gradient, maps = maps, evaluators = evaluators)
    }
    value <- ask(x, gradient && (is.null(width) || is_own(x)))
    if (gradient && is.null(value$gradient)) value$gradient <- slopes_over(width, x, ask)
    ok <- is.finite(value$log_density) & abs(value$log_density) < 1e15
    count <<- count + c(nrow(x), sum(!ok))
    if (gradient) {
      if (far) ok <- ok | (is.finite(value$log_density) & value$log_density < 0 & rowSums(value$gradient != 0) > 0)
      ok <- ok & is.finite(rowSums(value$gradient))
      value$gradient[!ok, ] <- 0
    }
    value$log_density[!ok] <- -Inf
    value
  }
}

# The gradient at x by differences over these ways to either side; 0 along coordinates with none, NA.
# ask: of counted_density().
slopes_over <- function(width, x, ask) {
  slopes <- vapply(seq_along(width), function(j) {
    if (is.na(width[j])) {
      return(numeric(nrow(x)))
    }
    moved <- function(way) {
      x[, j] <- x[, j] + way
      ask(x, gradient = FALSE)$log_density
    }
    (moved(width[j]) - moved(-width[j])) / (2 * width[j])
  }, numeric(nrow(x)))
  matrix(slopes, nrow(x))
}

# quasi-Newton paths ----------------------------------------------------------

# Starts near and far: normal, with standard deviations from 1 to `widest_start`. A row
# a start.
scattered_starts <- function(dim, n) {
  scale <- exp(seq(0, log(rules$widest_start), length.out = max(n, 2)))[seq_len(n)]
  matrix(stats::rnorm(n * dim), n, dim) * scale
}

# All paths go side by side, so that their points share calls of the target. They begin where log densities have no
# digits left only where they would not begin at all. Returns the
# paths that began at a point of finite density, each a list with its `points`: of
# every point x, its log density f, gradient g, and the pairs of differences up to it.
climb <- function(evaluate, starts, start) {
  at <- evaluate_starts(evaluate, starts, start)
  if (all(at$log_density == -Inf)) {
    possible <- evaluate
    evaluate <- function(x) possible(x, far = TRUE)
    at <- c(list(x = starts), evaluate(starts))
  }
  paths <- lapply(which(at$log_density > -Inf), function(i) {
    new_path(at$x[i, ], at$log_density[i], at$gradient[i, ])
  })
  for (tick in seq_len(rules$most_path_evals)) {
    active <- which(!vapply(paths, `[[`, NA, "done"))
    if (length(active) == 0) {
      break
    }
    tried <- evaluate(do.call(rbind, lapply(paths[active], trial_point)))
    for (i in seq_along(active)) {
      paths[[active[i]]] <- advance(
        paths[[active[i]]], tried$log_density[i], tried$gradient[i, ]
      )
    }
  }
  paths
}

# Starts where the target is impossible are brought nearer to 0; and where it is impossible there too, to
# the point that the model comes with. If all are impossible still, as where variables must be in order,
# others take their place.
evaluate_starts <- function(evaluate, x, start) {
  at <- bring_nearer(evaluate, c(list(x = x), evaluate(x)), x, numeric(ncol(x)))
  if (!is.null(start)) at <- bring_nearer(evaluate, at, x, start)
  if (any(at$log_density > -Inf)) at else possible_starts(evaluate, at)
}

# The starts, with possible points, as many as are found, in the places of the first. Half of the points that are
# tried have all variables moved together, since they may have to be small, all of them; and a half are in
# ascending order, or in descending order, since variables may have to be, and of eight few are by chance.
possible_starts <- function(evaluate, at) {
  found <- at$x[0, , drop = FALSE]
  n <- rules$start_batch
  for (batch in seq_len(rules$most_start_batches)) {
    x <- in_order(scattered_starts(ncol(at$x), n) + c(0, 1) * drop(scattered_starts(1, n)))
    found <- rbind(found, x[evaluate(x, gradient = FALSE)$log_density > -Inf, , drop = FALSE])
    if (nrow(found) >= nrow(at$x)) {
      break
    }
  }
  places <- seq_len(min(nrow(found), nrow(at$x)))
  at$x[places, ] <- found[places, ]
  c(at["x"], evaluate(at$x))
}

# Of every eight rows two with their values in ascending order, and two in descending order.
in_order <- function(x) {
  turn <- seq_len(nrow(x)) %% 8
  sorted <- function(rows, decreasing) {
    matrix(apply(x[rows, , drop = FALSE], 1, sort, decreasing), ncol = ncol(x), byrow = TRUE)
  }
  x[turn %in% 1:2, ] <- sorted(turn %in% 1:2, FALSE)
  x[turn %in% 3:4, ] <- sorted(turn %in% 3:4, TRUE)
  x
}

# at: list(x, log_density, gradient) of the starts, of which `x` are the first places.
bring_nearer <- function(evaluate, at, x, centre) {
  away <- sweep(x, 2, centre)
  for (attempt in seq_len(rules$most_start_halvings)) {
    bad <- which(at$log_density == -Inf)
    if (length(bad) == 0) {
      break
    }
    nearer <- sweep(away[bad, , drop = FALSE] / 2^attempt, 2, centre, "+")
    again <- evaluate(nearer)
    at$x[bad, ] <- nearer
    at$log_density[bad] <- again$log_density
    at$gradient[bad, ] <- again$gradient
  }
  at
}

new_path <- function(x, f, g) {
  path <- list(
    x = x, f = f, g = g,
    memory = list(alpha = rep(1, length(x)), s = NULL, y = NULL),
    length = 1, # of a step, as long as nothing is known of the curvature
    points = list(),
    done = FALSE
  )
  aim(remember_point(path))
}

remember_point <- function(path) {
  path$points <- c(path$points, list(path[c("x", "f", "g", "memory")]))
  path
}

# Sets out for the next point.
aim <- function(path) {
  size <- sqrt(sum(path$g^2))
  if (is.null(path$memory$s)) {
    path$direction <- if (size > 0) path$g / size * path$length else path$g
  } else {
    path$direction <- inverse_hessian_times(path$memory, path$g)
  }
  path$gain <- sum(path$direction * path$g) # to be expected, twice
  path$t <- 1
  # before anything is known of the curvature a small slope says nothing
  enough <- if (is.null(path$memory$s)) 0 else rules$path_tolerance
  path$done <- !is.finite(path$gain) || path$gain <= enough
  path
}

trial_point <- function(path) path$x + path$t * path$direction

# The path after its trial point was evaluated: there, or with a shorter step. (Armijo's
# rule; the shorter step by a parabola through what is known.)
advance <- function(path, f, g) {
  if (f >= path$f + rules$sufficient_rise * path$t * path$gain) {
    s <- path$t * path$direction
    y <- path$g - g
    if (sum(s * y) > rules$least_curvature * sqrt(sum(s^2) * sum(y^2))) {
      path$memory <- remember_pair(path$memory, s, y)
    } else {
      path$length <- 2 * path$length # not concave here: go further
    }
    path[c("x", "f", "g")] <- list(trial_point(path), f, g)
    return(aim(remember_point(path)))
  }
  shorter <- path$t * path$gain / (2 * (path$gain - (f - path$f) / path$t))
  path$t <- if (is.finite(f)) min(max(shorter, path$t / 10), path$t / 2) else path$t / 10
  path$done <- path$t < rules$shortest_step
  path
}

# The inverse Hessian of -log density, from pairs of differences s of points and y of
# gradients: the diagonal `alpha` (Zhang et al., algorithm 3) and the last pairs.
remember_pair <- function(memory, s, y) {
  alpha <- memory$alpha
  if (is.null(memory$s)) {
    alpha <- rep(sum(s * y) / sum(y^2), length(s))
  } else {
    a <- sum(y^2 * alpha)
    b <- sum(y * s)
    c <- sum(s^2 / alpha)
    updated <- 1 / (a / (b * alpha) + y^2 / b - a * s^2 / (b * c * alpha^2))
    if (all(is.finite(updated) & updated > 0)) {
      alpha <- updated
    }
  }
  last <- function(x, new) {
    x <- cbind(x, new, deparse.level = 0)
    x[, seq.int(max(1, ncol(x) - rules$n_pairs + 1), ncol(x)), drop = FALSE]
  }
  list(alpha = alpha, s = last(memory$s, s), y = last(memory$y, y))
}

# H g, by the two loops of limited-memory BFGS.
inverse_hessian_times <- function(memory, g) {
  .Call(r_inverse_hessian_times, memory$alpha, memory$s, memory$y, g)
}

# ELBOs --------------------------------------------------------------
# A normal that has been tried has its `elbo`.

# The normal with its `elbo`, the mean of log target - log normal over draws z from it, which is below the log
# evidence but for noise; with the standard error, `elbo_error`. Where some of the draws are impossible it
# is that of the normal on the possible part alone.
with_elbo <- function(normal, z, log_density) {
  ok <- log_density > -Inf
  z <- z[ok, , drop = FALSE]
  ratio <- log_density[ok] + rowSums(z^2) / 2 + ncol(z) / 2 * log(2 * pi) + log_det(normal)
  is_enough <- length(ratio) > 1 # for an error
  share <- mean(ok)
  normal$elbo <- if (is_enough) mean(ratio) + log(share) else -Inf
  normal$elbo_error <- if (is_enough) {
    sqrt(stats::var(ratio) / length(ratio) + (1 - share) / length(ratio))
  } else {
    NaN
  }
  normal
}

# Of many normals the one with the highest ELBO is the luckiest. The error counts against
# it: where a normal fits, there is none.
is_better <- function(a, b) {
  a$elbo > -Inf && (b$elbo == -Inf || a$elbo - a$elbo_error > b$elbo - b$elbo_error)
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

# The lower triangular factor of H, by the compact form of limited-memory BFGS (Byrd,
# Nocedal and Schnabel, 1994); in many dimensions the square root of the diagonal `alpha`.
inverse_hessian_factor <- function(memory) {
  d <- length(memory$alpha)
  if (d > rules$largest_dense) {
    return(sqrt(memory$alpha))
  }
  s <- memory$s
  scaled_y <- memory$alpha * memory$y
  products <- crossprod(s, memory$y)
  inverse <- backsolve(products, diag(ncol(s))) # of its upper triangle
  middle <- diag(diag(products), ncol(s)) + crossprod(memory$y, scaled_y)
  half <- s %*% crossprod(inverse, middle %*% inverse / 2) - scaled_y %*% inverse
  H <- diag(memory$alpha, d) + tcrossprod(half, s)
  t(chol(H + tcrossprod(s, half)))
}

# The normals with their ELBOs, all from one call of the target.
try_normals <- function(evaluate, normals, n_draws) {
  draws <- lapply(normals, draw_normal, n_draws)
  if (length(draws) == 0) {
    return(list())
  }
  value <- evaluate(do.call(rbind, lapply(draws, `[[`, "x")))
  for (i in seq_along(normals)) {
    rows <- (i - 1) * n_draws + seq_len(n_draws)
    normals[[i]] <- with_elbo(normals[[i]], draws[[i]]$z, value$log_density[rows])
  }
  normals
}

# batch and match -------------------------------------------------------------

# Each normal after batches of draws, each of which brings it closer to the target; of
# all that it has been, the one with the highest ELBO but for its error.
refine <- function(evaluate, normals, n_batches) {
  if (length(normals) == 0) {
    return(normals)
  }
  d <- length(normals[[1]]$mean)
  n <- min(max(rules$least_batch, d), rules$most_batch)
  now <- best <- normals
  for (t in seq_len(n_batches)) {
    draws <- lapply(now, draw_normal, n)
    value <- evaluate(do.call(rbind, lapply(draws, `[[`, "x")))
    for (i in seq_along(now)) {
      rows <- (i - 1) * n + seq_len(n)
      now[[i]] <- with_elbo(now[[i]], draws[[i]]$z, value$log_density[rows])
      # at first it is the same one, and its new ELBO is not what it was chosen by
      if (is_better(now[[i]], best[[i]]) || (t == 1 && now[[i]]$elbo > -Inf)) {
        best[[i]] <- now[[i]]
      }
      ok <- value$log_density[rows] > -Inf
      now[[i]] <- batch_step(
        now[[i]], draws[[i]]$z[ok, , drop = FALSE],
        value$gradient[rows[ok], , drop = FALSE], n * d / (t + 1)
      )
    }
  }
  best
}

# One step; where too few draws are possible the normal is narrowed instead.
batch_step <- function(normal, z, g, lambda) {
  matched <- if (nrow(z) >= 4) {
    match_normal(z, pull_back_rows(normal, g), rep(1 / nrow(z), nrow(z)), lambda)
  }
  if (is.null(matched)) {
    normal$L <- normal$L / 2
    return(normal)
  }
  compose(normal, matched)
}

# basins ----------------------------------------------------------------------

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

# The normal with the mean and covariance of the equal mixture.
covering <- function(normals) {
  means <- do.call(rbind, lapply(normals, `[[`, "mean"))
  mean <- colMeans(means)
  between <- sweep(means, 2, mean) / sqrt(nrow(means))
  if (length(mean) > rules$largest_dense) {
    within <- Reduce(`+`, lapply(normals, variances)) / length(normals)
    return(list(mean = mean, L = sqrt(within + colSums(between^2))))
  }
  within <- do.call(rbind, lapply(normals, function(n) t(n$L))) / sqrt(length(normals))
  list(mean = mean, L = factor_of_square(rbind(within, between)))
}
