# The scout: locates the target by its gradients before any particle moves. Quasi-Newton paths climb from overdispersed
# starts; the best normal distribution along each path is refined by batch and match; paths that end at different maxima
# are kept apart as basins. smc() calls scout_target().

# Points around the basins from which further paths may start. A mode of a tenth of the width, 6 standard deviations
# away, contains about four of them in two dimensions and 0.4 in three.
n_outside <- 2048
# The scout's share of all evaluations allowed; about how many a path with its normal distributions takes; and the
# fewest paths, which also show how long an evaluation takes.
share_of_scout <- 1 / 3
evals_of_path <- 400
fewest_paths <- 2
# More paths follow while there is a basin that at most so many paths have found, ...
few_paths <- 2
# ... up to so many in all: along a curved ridge each path may end in a different place.
most_paths <- 64

#' Locate a target
#'
#' Locates a target by its gradients, before any particle is moved: the first stage of [smc()].
#' Paths of quasi-Newton optimisation climb from random starts, some near and some far. Along each
#' path normal distributions are tried, and the best is refined by batch and match; of paths that end at
#' the same maximum two are enough. Those that end in different places are kept apart, as basins. What is
#' found is proposed as references for [smc()], where they compete with the reference that the user gave.
#'
#' Where a start is impossible it is moved towards 0. If all are, the parameters of a model of RTMB or TMB, or
#' up to 4,096 random points (half of them in order, for variables that must be), provide a start; and
#' if none of these is possible, paths begin where the log density is below -1e15. Where [smc()] integrates random effects
#' out, starts are around the mode of Laplace's approximation, whose values far from there mean little.
#'
#' In up to six variables, 2,048 points around the basins are tried (fewer where [smc()] is asked for less precision), and
#' four more paths start, two where the density most exceeds what was found, and two where, as draws of importance
#' sampling, it has the largest part of the evidence; and again, as long as these find basins. So a narrow mode beside a
#' wide one is found in two or three variables, and one of half the width in four to six.
#'
#' Further starts follow while they cost little: where all paths have ended in one basin, for a quarter of the evaluations
#' that the first ones took with their normal distributions, and where they have ended in several, for 2,048. By turns these
#' starts are near and far, and as wide as the basins are apart. No path is made from a start at which the normal
#' distributions explain the density, and of paths that end in places of their own no more are followed at a time than
#' there were first ones. So modes of unequal widths are found in ten variables, where one start of a thousand
#' leads to the narrowest.
#'
#' @param target,... what to look for: see [smc()].
#' @param n_starts number of the first paths (positive integer, at most 65,536). There are up to 64 while at most two paths
#'   have ended in a basin that matters, and others as above.
#' @param seed a whole number from 0 to 2^32 - 1; NULL to draw one from R's generator.
#' @return An object of class `smc_scout`, a list with
#'
#' * `basins`: a data frame with a row a basin, the best first: `elbo`, the evidence lower bound of
#'   its normal distribution, with Monte Carlo error (the mean of `log target - log normal` over
#'   draws from the basin's normal distribution, truncated to where the target is possible);
#'   `elbo_error`, its standard error, NA for basins too low to count; and `n_paths`, how many starts lead there.
#' * `normals`: a list with the normal distribution of each basin, as
#'   [reference_gaussian()] makes it, on the unconstrained scale. Above 250 variables it has standard
#'   deviations alone; that of the best basin a covariance, from the curvature at its mean, in up to 2,000
#'   variables and where this raises its ELBO.
#' * `references`: a named list of what is proposed, the least preferred first. `best` is the normal
#'   distribution of the best basin. `shape` is there if gradients at draws of `best` show that the target is a normal
#'   distribution, or that most variables are normal given the others, exactly or nearly. `cover` is there if there are
#'   several basins, or if a path has passed a likely place far from all of them, such as the end of a bent
#'   ridge: a mixture of the normal distributions of these basins and places, and of one with their
#'   common mean and covariance (that alone above 250 variables). Where the density is the same when labels are
#'   permuted or signs changed, a basin is there with all its copies, up to 5,040. If the density does not dip
#'   between these places in the coordinates of `shape`, they are one mode, and `shape` comes last.
#'   All variances are inflated by 1.5, and by less above 250 variables.
#' * `standard_elbo`: the ELBO of the standard normal distribution on the unconstrained scale.
#' * `n_dropped`: the number of starts from which nothing was found.
#' * `gradient`: whether the target's gradient agrees with differences of its log density
#'   (string): `"right"`, `"wrong"`, or `"rough"` where the differences do not settle; see
#'   [check_gradient()]. NA where there is no gradient of the target's own, or no place to
#'   look at it. A basin around which it is wrong, and right around the next, is left out, with a warning.
#' * `n_target_evals`, `n_impossible`, `n_calls`, `seconds`: the evaluations of the target, how many
#'   of them had no finite log density, the calls of the user's function that they took, and the time.
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
  n_starts <- check_count(n_starts, "n_starts", max = most_starts)
  seed <- check_seed(seed) # here, as it may draw from R's generator
  once_each(scout_target(target, n_starts, seed))
}

# With more paths, each of which keeps all of its points, there is not enough memory.
most_starts <- 65536

#' @export
print.smc_scout <- function(x, ...) {
  cat("<smc_scout> ", nrow(x$basins), " basin(s), ",
    count(x$n_target_evals), " evaluations of the target", say_calls(x), "\n",
    sep = ""
  )
  print(as.data.frame(x$basins), digits = 6, row.names = FALSE)
  invisible(x)
}

# A scout. plan: the limits of evaluations and of seconds for the fit, with which there may be fewer paths, and
# `search`, the evaluations for a search for further modes.
scout_target <- function(
  target, n_starts, seed, evaluators = target_interface(target),
  plan = list(max_evals = Inf, max_seconds = Inf, search = 0), progress = NULL
) {
  started <- seconds_now()
  evaluate <- show_asked(counted_density(target, evaluators), progress)
  budget <- new_budget(evaluate, plan)
  start <- start_of(target)
  with_seed(seed_of_run(seed, scout_key), {
    found <- look_around(evaluate, target, n_starts, start, budget)
    found$normals <- curve_best(evaluate, refine_best(evaluate, found$normals))
    if (length(found$normals) > 0 && target$dim <= rules$largest_outside && is.null(target$effects$surrogate)) {
      # in proportion to the precision that is sought
      n_points <- ceiling(n_outside * rules$sure_bridge / max(rules$sure_bridge, plan$sought))
      found <- look_outside(evaluate, found, budget, n_points)
    }
    # refined normal distributions come first: the ELBOs of the others may be higher by chance
    found$normals <- check_elbos_of(evaluate, first_of_close(found$normals))
    found[c("normals", "gradient", "left_out")] <- check_basin_gradients(target, evaluate, found$normals, start)
    found$passed <- check_passed(evaluate, found)
    found$copies <- with_seed(seed_of_run(seed, copies_key), tryCatch(
      copies_of(target, evaluate, likely_normals(found$normals)),
      autosmc_error_target = function(e) NULL # which may fail where all variables are equal
    ))
    shape <- shape_around(found$normals, limited_density(evaluate, min(rules$most_probe_evals, budget$left())))
    standard_elbo <- elbo_of_standard(evaluate, target$dim)
  })
  scout <- new_scout(found, shape, evaluate("count"))
  scout$marginal <- shape$marginal
  scout$standard_elbo <- standard_elbo
  scout$rises <- found$rises
  scout$gradient <- found$gradient$verdict
  scout$gradient_place <- found$gradient$place
  scout$left_out <- found$left_out
  scout[c("limit", "is_cut")] <- budget$state()
  scout$seconds <- seconds_now() - started
  scout
}

# The normal distributions found by all paths: from the first starts, from further ones while these find basins, and
# from those of a search.
look_around <- function(evaluate, target, n_starts, start, budget) {
  n <- budget$n_first(n_starts)
  found <- find_basins(evaluate, starts_for(target, n), start)
  budget$know_paths(n)
  repeat {
    found$normals <- basins_of(found$normals)
    n_more <- n_further(found, n, n_starts, budget)
    if (n_more == 0) break
    found <- if (n < n_starts) {
      find_basins(evaluate, starts_for(target, n_more), start, found)
    } else {
      look_further(evaluate, further_starts(target, n_more, found$normals), start, found, n_starts)
    }
    n <- n + n_more
  }
  from_prior <- FALSE
  until <- budget$end_of_search()
  while (budget$taken() < until) {
    from_prior <- !is.null(target$prior) && !from_prior
    starts <- if (from_prior) {
      unconstrain(target, prior_draws(target, n_starts))
    } else {
      starts_for(target, n_starts)
    }
    found <- find_basins(evaluate, starts, start, found)
    found$normals <- basins_of(found$normals)
  }
  found
}

# Starts of n paths. Where random effects are integrated out, starts are around the mode of Laplace's approximation,
# with up to ten times its standard deviations: far away the approximation is slow or has no meaningful value.
starts_for <- function(target, n) {
  starts <- scattered_starts(target$dim, n)
  around <- target$effects$surrogate
  widest <- 10
  if (is.null(around)) {
    starts
  } else {
    to_user(list(mean = around$centre, L = solve(around$scale)), starts * widest / widest_start)
  }
}

# The number of starts that follow n of them: the rest of the first ones; at most as many again while further starts are
# cheap; and `n_starts` more while a basin that matters has been found by one or two paths. The share of basins found
# once estimates the probability that the next start finds a new one (Good, 1953).
n_further <- function(found, n, n_starts, budget) {
  if (n < n_starts) {
    return(if (budget$pays(n_paths = n_starts - n)) n_starts - n else 0)
  }
  basins <- ended_basins(found$normals)
  is_rare <- vapply(basins, function(normal) normal$n_paths <= few_paths, NA)
  n_cheap <- n_cheap_starts(found, n, n_starts * budget$of_path(), length(basins))
  if (n_cheap > 0) {
    if (budget$pays(n_cheap * found$n_points / n)) n_cheap else 0
  } else if (n < most_paths && length(basins) > 1 && any(is_rare) && budget$pays(n_paths = n_starts)) {
    n_starts
  } else {
    0
  }
}

# Starts that lead to known basins are cheap: so many that they take a quarter of the evaluations `spent` on the first
# ones with their normal distributions, or where there are several basins, `n_outside` evaluations.
n_cheap_starts <- function(found, n, spent, n_basins) {
  if (n_basins == 0 || n_basins == 1 && length(found$normals) > 1) {
    return(0)
  }
  most <- if (n_basins > 1) n_outside else spent / 4
  max(0, min(n, floor((most / found$n_points - 1) * n)))
}

# The result of find_basins() with paths from these starts, without those at which the density is explained by the
# normal distributions found: these would lead to known basins. most: of find_basins().
look_further <- function(evaluate, starts, start, found, most) {
  n <- nrow(starts)
  known <- explained(found$normals, starts)
  of <- cbind(seq_len(n), max.col(known, "first"))
  excess <- evaluate(starts, gradient = FALSE)$log_density - known[of]
  is_known <- abs(excess) < rules$basin_distance^2 / 2
  found$normals <- with_paths(found$normals, of[is_known, 2])
  found$n_points <- found$n_points + n
  if (all(is_known)) found else find_basins(evaluate, starts[!is_known, , drop = FALSE], start, found, FALSE, most)
}

# The log density of each normal distribution at the points plus its log evidence (ELBO), a column for each.
explained <- function(normals, x) {
  parts <- vapply(normals, function(normal) {
    normal$elbo + log_normal(from_user(normal, x), normal) - length(normal$mean) / 2 * log(2 * pi)
  }, numeric(nrow(x)))
  matrix(parts, nrow(x))
}

# Basins in which a path has converged; a path may also stop along a ridge or in a neck.
ended_basins <- function(normals) Filter(function(normal) normal$has_ended, likely_normals(normals))

# Starts of further paths. Every second one is drawn around the mean of the basins, with a spread that matches their
# distances.
further_starts <- function(target, n, normals) {
  starts <- starts_for(target, n)
  basins <- ended_basins(normals)
  k <- length(basins)
  if (k > 1) {
    means <- do.call(rbind, lapply(basins, `[[`, "mean"))
    around <- list(mean = colMeans(means), L = sqrt(Reduce(`+`, lapply(basins, variances)) / k))
    around$L <- around$L * sqrt(sum(from_user(around, means)^2) / (k - 1) / target$dim)
    rows <- seq_len(n) %% 2 == 0
    starts[rows, ] <- to_user(around, matrix(stats::rnorm(sum(rows) * target$dim), ncol = target$dim))
  }
  starts
}

# The scout's budget, by the limits of a plan: a list of functions. A limit of seconds becomes one of evaluations when
# the first paths have shown how long an evaluation takes.
new_budget <- function(evaluate, plan) {
  started <- seconds_now()
  is_cut <- FALSE
  of_path <- evals_of_path
  taken <- function() evaluate("count")[["n_target_evals"]]
  left <- function() share_of_scout * plan$max_evals - taken()
  pays <- function(cost = 0, n_paths = 0) {
    is_enough <- cost + n_paths * of_path <= left()
    is_cut <<- is_cut || !is_enough
    is_enough
  }
  list(
    taken = taken, left = left, pays = pays, of_path = function() of_path,
    n_first = function(n_starts) {
      afforded <- if (is.finite(plan$max_seconds)) 0 else floor(left() / 2 / of_path)
      min(n_starts, max(fewest_paths, afforded))
    },
    know_paths = function(n) {
      of_path <<- taken() / n
      plan <<- with_timed_limit(plan, seconds_now() - started, taken())
    },
    end_of_search = function() if (plan$search > 0 && pays(plan$search)) taken() + plan$search else 0,
    state = function() list(limit = plan[names(plan) %in% c("max_evals", "max_seconds", "is_timed")], is_cut = is_cut)
  )
}

# The plan with its limit of seconds turned into one of evaluations, n of which took so many seconds.
with_timed_limit <- function(plan, seconds, n) {
  plan$is_timed <- is.finite(plan$max_seconds)
  plan$max_evals <- min(plan$max_evals, max(1, floor(n * plan$max_seconds / seconds)))
  plan$max_seconds <- Inf
  plan
}

# The point that a model comes with, on the unconstrained scale; NULL for none.
start_of <- function(target) {
  if (!is.null(target$start)) unconstrain(target, target$start)
}

# Basins that the first paths have missed: further paths start at points around the basins where the density most
# exceeds what the basins explain, as in incremental mixture importance sampling, as long as these find new basins.
look_outside <- function(evaluate, found, budget, n_points) {
  n_paths <- rules$n_outside_paths
  if (!budget$pays(n_points, n_paths = n_paths)) {
    return(found)
  }
  points <- points_around(evaluate, likely_normals(found$normals), n_points)
  for (pass in seq_len(most_paths / n_paths)) {
    likely <- likely_normals(found$normals)
    if (!budget$pays(n_paths = n_paths)) break
    found <- find_basins(evaluate, starts_outside(points, likely, n_paths), found = found)
    found$normals <- first_of_close(found$normals)
    if (length(likely_normals(found$normals)) <= length(likely)) break
  }
  found
}

# Points around the basins: list(x, log_density, log_p), with the log density of the target and that by which they are
# drawn, a normal distribution times a scale whose logarithm is uniform.
points_around <- function(evaluate, likely, n) {
  around <- covering(likely)
  d <- length(around$mean)
  ends <- rules$outside
  z <- exp(stats::runif(n, log(ends[1]), log(ends[2]))) * draw_normal(around, n)$z
  x <- to_user(around, z)
  square <- rowSums(z^2)
  part <- stats::pgamma(square / 2 / ends[1]^2, d / 2) - stats::pgamma(square / 2 / ends[2]^2, d / 2)
  log_p <- log(part / 2) + lgamma(d / 2) - d / 2 * log(pi * square) - log(log(ends[2] / ends[1])) - log_det(around)
  list(x = x, log_density = evaluate(x, gradient = FALSE)$log_density, log_p = log_p)
}

# Starts of n paths: half at the points where the density most exceeds the normal distributions, and half at those with
# the largest importance weights of the excess.
starts_outside <- function(points, likely, n) {
  excess <- points$log_density - do.call(pmax, as.data.frame(explained(likely, points$x)))
  part <- points$log_density + log1p(-exp(-pmax(excess, 0))) - points$log_p
  first_of <- function(value) order(value, decreasing = TRUE)[seq_len(n / 2)]
  points$x[c(first_of(excess), first_of(part)), , drop = FALSE]
}

new_scout <- function(found, shape, count) {
  normals <- found$normals
  elbos <- vapply(normals, `[[`, 0, "elbo")
  order <- order(elbos, decreasing = TRUE)
  normals <- normals[order]
  likely <- likely_normals(normals)
  shape <- if (!is.null(shape)) {
    list(shape = shape$reference)
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
        if (length(likely) + length(found$passed) > 1) {
          list(cover = covering_reference(c(likely, found$passed), found$copies))
        },
        shape
      ),
      n_dropped = found$n_dropped
    ), as.list(count)),
    class = "smc_scout"
  )
}

# A mixture of the basins, with their copies, and of the normal distribution that covers them; only the latter above
# `largest_dense` dimensions.
covering_reference <- function(normals, copies) {
  if (length(normals[[1]]$mean) <= rules$largest_dense) {
    new_mixture_reference(normals, copies)
  } else {
    as_reference(inflated(covering(normals)))
  }
}

# The ELBO of the standard normal distribution, the reference where the user gives none.
elbo_of_standard <- function(evaluate, dim) {
  standard <- c(normal_of(reference_gaussian(), dim), list(n_paths = 0))
  try_normals(evaluate, list(standard), n_elbo_checks)[[1]]$elbo
}

# A density that is -Inf everywhere after so many evaluations.
limited_density <- function(density, most) {
  left <- most
  function(x, ...) {
    left <<- left - nrow(x)
    if (left < 0) list(log_density = rep(-Inf, nrow(x)), gradient = 0 * x) else density(x, ...)
  }
}
