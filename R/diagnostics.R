# Diagnostics: what speaks against an estimate. Each is a number with a limit beyond
# which the estimate is not to be trusted, a sentence that says so, and advice on what would help.

# A row a diagnostic: `name`, `value`, `limit`, `passed`, and what is said where it has not
# passed. NULL where none applies.
diagnose <- function(sampler, course, final, rays = NULL, mirrors = NULL, lines = NULL) {
  by_smc <- row_of(final$estimates, 1)
  has_draws <- is.null(final$moments)
  edges <- if (has_draws) look_for_edges(sampler, course, final)
  has_edges <- is_truncated(sampler$target) || isTRUE(edges$share > rules$largest_edge)
  rows <- c(
    diagnose_islands(final$islands),
    diagnose_estimates(final$estimates),
    if (has_draws) diagnose_gradients(final, has_edges),
    if (has_draws) diagnose_draws(final),
    if (has_draws) diagnose_ancestor_ess(course, final),
    diagnose_edges(edges, sampler$kernel),
    if (has_draws) diagnose_proper(sampler, course, final),
    diagnose_rays(rays, headline(final$estimates)),
    diagnose_mirrors(mirrors, headline(final$estimates)),
    diagnose_lines(lines, headline(final$estimates)),
    diagnose_scout(course$scout, final, headline(final$estimates)),
    diagnose_rounds(course, sampler, by_smc),
    diagnose_passes(course$estimate, headline(final$estimates))
  )
  rows <- without_null(rows)
  if (length(rows) > 0) bind_rows(rows)
}

# says: what is wrong where it fails, NA where it passes. beyond: whether the value is not to be trusted above its
# limit, or below it.
diagnostic <- function(name, value, limit, says, beyond = c("above", "below")) {
  above <- match.arg(beyond) == "above"
  failed <- is.finite(limit) && !is.na(value) && if (above) value > limit else value < limit
  says <- if (failed) gsub("\\s+", " ", says) else NA_character_
  list(name = name, value = value, limit = limit, passed = !failed, says = says)
}

# the islands -----------------------------------------------------------------

diagnose_islands <- function(islands) {
  n <- NROW(islands)
  if (n < 2) {
    return()
  }
  living <- which(islands$log_z > -Inf)
  dead <- n - length(living)
  list(
    if (length(living) > 1) diagnose_scatter(row_of(islands, living)),
    if (n >= rules$least_islands) {
      share <- max(exp(normalise_log(islands$log_z)))
      diagnostic(
        "largest_share", share, rules$largest_share,
        sprintf("One of the %d islands makes up %.0f %% of the mean.", n, 100 * share)
      )
    },
    diagnostic(
      "dead_islands", dead, 0,
      sprintf("%d of %d islands lost all particles.", dead, n)
    )
  )
}

# Scatter beyond this multiple of the predicted one is suspicious, unless the islands are
# so few that it happens by chance in more than one of a thousand cases: then some have
# found what others have missed. Scatter that is but rounding is not. Where they predict
# none there is nothing to compare with: after many multinomial resamplings the estimate
# of a small variance may well be negative, and counts as 0.
diagnose_scatter <- function(islands) {
  n <- length(islands$log_z)
  found <- stats::sd(islands$log_z)
  predicted <- sqrt(mean(islands$predicted_sd^2))
  if (predicted == 0) {
    return()
  }
  ratio <- found / (predicted + rules$scatter_rounding)
  limit <- max(
    rules$suspicious_scatter,
    sqrt(stats::qchisq(rules$scatter_level, n - 1) / (n - 1))
  )
  diagnostic(
    "scatter", ratio, limit,
    sprintf(
      "The islands' estimates scatter %s times as much as they predict.",
      format(ratio, digits = 2)
    )
  )
}

# Two estimates from the same islands, with little in common but their draws.
diagnose_estimates <- function(estimates) {
  if (nrow(estimates) < 2) {
    return()
  }
  apart <- abs(diff(estimates$log_z)) / sqrt(sum(estimates$std_error^2))
  list(diagnostic(
    "estimates", apart, rules$errors_of_estimates,
    sprintf(
      "The estimates by SMC and by the bridge differ by %s standard errors.",
      format(apart, digits = 2)
    )
  ))
}

# Stein's identities ----------------------------------------------------------

# Under the target the gradient g of its log density has mean 0, and (y - mean) g' has
# mean -I; but not where the density ends abruptly. Both are compared with their standard errors, in coordinates y in which the
# draws have covariance I.
diagnose_gradients <- function(final, has_edges = FALSE) {
  # with few genealogies the standard errors are not known themselves
  if (is.null(final$gradients) || has_edges || n_genealogies(final) < rules$least_genealogies) {
    return()
  }
  weighty <- weighty_rows(final$log_weights)
  genealogies <- .Call(r_number_groups, final$origins[weighty$rows])
  d <- ncol(final$gradients)
  first <- max(abs(t_values(final$gradients, weighty$w, genealogies, rows = weighty$rows)))
  list(
    diagnostic(
      "mean_gradient", first, stats::qnorm(rules$gradient_level / (2 * d), lower.tail = FALSE),
      sprintf(
        "The mean gradient at the draws is %s standard errors from zero.",
        format(first, digits = 2)
      )
    ),
    diagnose_stein(final, weighty, genealogies)
  )
}

# The weighted means of some rows of x, of which NULL are all, or where there is y, of x y + 1, over
# their standard errors. Particles that descend from the same first one, with the same number from 1
# on, count as one draw.
t_values <- function(x, w, genealogies, y = NULL, rows = NULL) {
  .Call(r_t_values, x, y, w, genealogies, rows)
}

diagnose_stein <- function(final, weighty, genealogies) {
  scaled <- scaled_draws(final, weighty)
  if (is.null(scaled)) {
    return()
  }
  # a few parts: each goes through all draws
  d <- ncol(final$coordinates)
  t <- lapply(blocks_of(d, length(weighty$rows), least = ceiling(d / 8)), function(j) {
    t_values(scaled$y(j), weighty$w, genealogies, scaled$gradients(j))
  })
  value <- sqrt(mean(unlist(t)^2))
  diagnostic(
    "stein", value, rules$stein,
    sprintf(
      "Draws and gradients violate Stein's identity (by %s standard errors).",
      format(value, digits = 2)
    )
  )
}

# Functions of some columns for draws y that have mean 0 and covariance I, and the gradients there;
# in many dimensions with variances 1 alone. NULL where the draws have no covariance.
scaled_draws <- function(final, weighty) {
  rows <- weighty$rows
  w <- weighty$w
  z <- final$coordinates
  d <- ncol(z)
  mean <- weighted_mean(z, w, rows)
  if (d > rules$largest_dense) {
    sd <- weighted_sd(z, w, rows)
    return(list(
      y = function(j) sweep(sweep(z[rows, j, drop = FALSE], 2, mean[j]), 2, sd[j], "/"),
      gradients = function(j) sweep(final$gradients[rows, j, drop = FALSE], 2, sd[j], "*")
    ))
  }
  upper <- tryCatch(chol(weighted_covariance(z, w, mean, rows)), error = function(e) NULL)
  if (!is.null(upper)) {
    inverse <- backsolve(upper, diag(d))
    list(
      y = function(j) .Call(r_multiply_rows, z, rows, mean, inverse[, j, drop = FALSE]),
      gradients = function(j) {
        .Call(r_multiply_rows, final$gradients, rows, NULL, t(upper[j, , drop = FALSE]))
      }
    )
  }
}

# the draws -------------------------------------------------------------------

diagnose_draws <- function(final) {
  if (!inherits(final$reference, "smc_reference_gaussian")) {
    return()
  }
  variance <- widest(final)
  list(diagnostic(
    "width", variance, rules$widest,
    sprintf("The draws have %s times the variance of the reference.", format(variance, digits = 2))
  ))
}

# From a reference that fits, many draws have an ancestor of their own. Where few have, the
# islands' estimates are skew: most are too low, and scatter less than they are off. A small error
# of the bridge shows that nothing is missed all the same.
diagnose_ancestor_ess <- function(course, final) {
  is_fitted <- !is.null(course$best) && course$best$runs$label != "given"
  if (!is_fitted || !isTRUE(headline(final$estimates)$std_error > rules$sure_enough)) {
    return()
  }
  n <- 1 / final$shared
  all <- sum(final$islands$n_particles[final$islands$log_z > -Inf])
  few <- round(n)
  list(diagnostic(
    "ancestor_ess", n / all, rules$least_ancestor_ess,
    sprintf("The %s draws have only about %s ancestor%s.", count(all), count(few), if (few > 1) "s" else ""),
    beyond = "below"
  ))
}

# Whether the density ends near many draws: points one standard deviation away from some of
# them, along one variable each, are tried. The share of them at which there is none, and the names of
# these variables; NULL where it is not looked for.
look_for_edges <- function(sampler, course, final) {
  n <- n_edge_trials(sampler, course)
  if (n == 0) {
    return()
  }
  weighty <- weighty_rows(final$log_weights)
  x <- unconstrained_particles(final)
  d <- ncol(x)
  sd <- weighted_sd(x, weighty$w, weighty$rows)
  along <- rep_len(seq_len(d), n)
  tried <- with_seed(seed_of_run(sampler$seed, edge_key), {
    side <- sample(rep_len(c(-1, 1), n))
    rows <- weighty$rows[sample.int(length(weighty$rows), n, TRUE, weighty$w)]
    evaluate_located(
      sampler$target, moved_along(x[rows, , drop = FALSE], along, side * sd[along]), "edges",
      gradient = FALSE, evaluators = over_batches(sampler)$evaluators
    )$log_density
  })
  beyond <- !is.finite(tried)
  list(share = mean(beyond), names = unique(sampler$target$names[along[beyond]]))
}

# Kernels that reject moves do so at an edge, too.
diagnose_edges <- function(edges, kernel) {
  if (!is.null(edges)) {
    list(diagnostic(
      "edges", edges$share, if (kernel$adjusted) Inf else rules$largest_edge,
      sprintf(
        "The density ends abruptly next to the draws, along %s: give the bounds as `lower` and `upper`.",
        format_names(edges$names)
      )
    ))
  }
}

# The rows of x, each moved by `by` along a column of its own.
moved_along <- function(x, along, by) {
  own <- cbind(seq_along(along), along)
  x[own] <- x[own] + by
  x
}

# Evaluations of the target, which count as those of the islands do. Without gradients an edge
# does no harm.
n_edge_trials <- function(sampler, course) {
  if (is.null(course) || !sampler$kernel$gradients) 0 else max(rules$n_edge_trials, 2 * sampler$target$dim)
}

# Whether rays through the draws, reflections of them or lines along a variable reach mass beyond the draws; see
# look_along_rays(), look_in_mirrors() and look_along_lines(). says: a function of the rise, in words.
diagnose_beside <- function(name, found, estimate, says) {
  if (!is.null(found$rise)) {
    list(diagnostic(name, found$rise, limit_of_rise(found, estimate), says(format(found$rise, digits = 2))))
  }
}

diagnose_rays <- function(rays, estimate) {
  diagnose_beside("rays", rays, estimate, function(rise) {
    sprintf("Rays through the draws reach mass that no draw has visited, which raises the estimate by %s.", rise)
  })
}

diagnose_mirrors <- function(mirrors, estimate) {
  diagnose_beside("mirrors", mirrors, estimate, function(rise) {
    sprintf(
      "Reflecting %s within the bounds reaches mass that no draw has visited, which raises the estimate by at
        least %s.",
      format_names(mirrors$names), rise
    )
  })
}

diagnose_lines <- function(lines, estimate) {
  diagnose_beside("lines", lines, estimate, function(rise) {
    sprintf(
      "Lines along %s reach mass beyond all draws, which raises the estimate by %s.", lines$name, rise
    )
  })
}

# Of what rays, mirrors or lines find beside the draws.
limit_of_rise <- function(found, estimate) {
  own <- if (is.na(estimate$std_error)) 0 else estimate$std_error
  max(rules$most_of_rays, own) + rules$errors_of_rays * found$error
}

# the scout -------------------------------------------------------------------

# A density that does not fall off somewhere is wide in the scout's normal distribution, or,
# where it found none, in the draws; or these have gone to where numbers end, as those of a scale do,
# or of a probability, on which a prior has no limit: its logarithm is no wider than a thousand. Or it
# does not fall off along a variable, of a scale together with its effects. NULL where the target
# fails so far out.
diagnose_proper <- function(sampler, course, final) {
  if (n_proper_trials(sampler, course) == 0) {
    return()
  }
  some <- thinned(weighty_rows(final$log_weights), rules$least_rows)
  space <- space_of_scales(final, some)
  if (length(space$precisions) == 0) {
    space <- space_by_earlier(course, final, some, otherwise = space)
  }
  never_falls <- tryCatch(
    endless_direction(sampler, course, space),
    autosmc_error_target = function(e) NULL
  )
  if (is.null(never_falls)) {
    return()
  }
  sd <- if (length(course$scout$normals) > 0) {
    normal_sd(course$scout$normals[[1]])
  } else {
    weighty <- weighty_rows(final$log_weights)
    weighted_sd(unconstrained_particles(final), weighty$w, weighty$rows)
  }
  widest <- if (max(log10(sd)) > rules$widest_proper) widest_direction(space)
  if (!nzchar(never_falls) && !is.null(widest)) {
    never_falls <- say_direction(Inf, widest, sampler$target)
  }
  is_improper <- nzchar(never_falls) || is_at_end(final, sampler$target) || loses_digits(space)
  list(diagnostic(
    "proper", max(log10(sd), if (is_improper) rules$largest_size), rules$widest_proper,
    sprintf(
      "The density does not fall off %s: the posterior may be improper, and then has no evidence.",
      if (nzchar(never_falls)) never_falls else "in some direction"
    )
  ))
}

# Whether a part of the draws is where numbers end, of a variable that has no finite range: one that has may well have
# most of its mass next to 0.
is_at_end <- function(final, target) {
  size <- log10(abs(some_draws(final, target)))
  varies <- apply(size, 2, max) > apply(size, 2, min) # not the zeros of a factor
  is_beyond <- size > rules$largest_square | size < -rules$largest_size
  variables <- if (is.null(target$outputs)) target$names else colnames(size)
  beyond <- variables[which(varies & colMeans(is_beyond) > rules$part_beyond)]
  length(beyond) > 0 && !all(beyond %in% of_finite_range(target))
}

# These draws and their weights, and the maps from there to the unconstrained scale: list(x, w, maps,
# precisions). Where a reference has the precisions of variables that are normal given others, these are
# standard normal there: as a scale moves, so do its effects, and the density is that of the scale alone.
space_of_scales <- function(final, some) {
  precisions <- precisions_of(final$reference)
  if (length(precisions) == 0) {
    return(list(x = take_rows(unconstrained_particles(final), some$rows), w = some$w, maps = list()))
  }
  z <- take_rows(final$coordinates, some$rows)
  maps <- maps_of(final$reference, ncol(z))
  before <- seq_along(maps) < match(precisions[[1]]$name, vapply(maps, `[[`, "", "name"))
  list(
    x = through_maps(maps[before], z)$x, w = some$w, maps = maps[!before],
    precisions = precisions
  )
}

has_exact_precisions <- function(reference) {
  precisions <- precisions_of(reference)
  length(precisions) > 0 && !any(vapply(precisions, `[[`, TRUE, "near"))
}

# The same by the last reference of an earlier run that had precisions which are exact: particles that went on from it may
# have led to a reference that has none. `otherwise` where there was none.
space_by_earlier <- function(course, final, some, otherwise) {
  reference <- Find(has_exact_precisions, lapply(course$records, `[[`, "reference"), right = TRUE)
  if (is.null(reference)) {
    return(otherwise)
  }
  mean <- weighted_sums(otherwise$x, some$w)
  points <- list(x = sweep(otherwise$x, 2, mean), w = some$w, mean = mean)
  points <- changed(points, changes_of(reference))
  x <- sweep(points$x, 2, points$mean, "+")
  if (!all(is.finite(x))) {
    return(otherwise)
  }
  list(
    x = x, w = some$w, maps = change_maps(changes_of(reference)), precisions = precisions_of(reference)
  )
}

# Whether a part of the draws is where a precision is rounding, since some scale is so small there,
# and not for another reason: for others it is far from that. A density that does not fall off as a
# scale goes down leads there.
loses_digits <- function(space) {
  # where others are only nearly normal the curvature may be at its bound for another reason
  precisions <- lapply(space$precisions, function(precision) {
    if (precision$near) precision$least[] <- .Machine$double.xmin
    precision
  })
  left <- least_part_left(precisions, take_rows(space$x, evenly_weighted(space$w, rules$n_sizes)))
  mean(left < rules$least_left) > rules$part_beyond &&
    mean(left > sqrt(rules$least_left)) > rules$part_beyond
}

# The direction along which, from most draws to one side, the density falls so slowly that its integral has no end, in
# words; "" for none. The directions are the variables, and that in which the draws are widest, as those of a softmax
# are along the sum of its variables.
endless_direction <- function(sampler, course, space) {
  n <- n_proper_trials(sampler, course) / 3
  sd <- weighted_sd(space$x, space$w)
  d <- length(sd)
  widest <- widest_direction(space)
  draws <- take_rows(space$x, evenly_weighted(space$w, n))
  n_directions <- d + !is.null(widest)
  along <- rep_len(seq_len(n_directions), n)
  side <- rep_len(rep(c(-1, 1), each = n_directions), n)
  moved <- function(r) {
    own <- along <= d
    x <- moved_along(draws, pmin(along, d), ifelse(own, side * r * sd[along], 0))
    if (all(own)) x else x + outer(ifelse(own, 0, side * r), widest)
  }
  part <- part_in_reach(space, moved, n)
  at <- lapply(c(0, rules$far_out), function(r) moved(part * r))
  tried <- matrix(evaluate_located(
    sampler$target, do.call(rbind, at), "far out",
    gradient = FALSE, maps = space$maps, evaluators = over_batches(sampler)$evaluators
  )$log_density, n)
  share <- tapply(part > 0 & is_endless(tried, part), side * along, mean)
  found <- abs(as.integer(names(share)[which(share > 0.5)]))
  if (length(found) == 0) "" else say_direction(min(found), widest, sampler$target)
}

# A standard deviation of the draws in the direction in which they are widest; NULL where that is a variable, or there are
# too many of them.
widest_direction <- function(space) {
  d <- ncol(space$x)
  if (d > 1 && d <= rules$largest_dense) {
    covariance <- weighted_covariance(space$x, space$w, weighted_sums(space$x, space$w))
    if (all(is.finite(covariance))) {
      first <- eigen(covariance, symmetric = TRUE)
      sqrt(max(first$values[1], 0)) * first$vectors[, 1]
    }
  }
}

# The direction of a variable, by its number, or beyond these the widest one, without what is small in it.
say_direction <- function(which, widest, target) {
  if (which <= target$dim) {
    name <- target$names[which]
    return(if (has_two_bounds(target)[which]) paste("towards a bound of", name) else paste("along", name))
  }
  share <- round(widest / widest[which.max(abs(widest))], 1)
  terms <- which(share != 0)
  size <- ifelse(abs(share[terms]) == 1, "", paste0(abs(share[terms]), " "))
  sign <- ifelse(share[terms] < 0, "- ", "+ ")
  terms <- paste0(sign, size, target$names[terms])
  if (length(terms) > 4) terms <- c(terms[1:3], "...", terms[length(terms)])
  paste("along", sub("^[+] ", "", paste(terms, collapse = " ")))
}

# Whether the density falls no faster than the inverse of the distance, and is not so small far out that
# this does not matter. tried: at draws, and at this part of both distances.
is_endless <- function(tried, part) {
  distances <- rules$far_out
  own <- tried[, 1]
  near <- tried[, 2]
  far <- tried[, 3]
  is.finite(near) & is.finite(far) & far - near > -diff(log(distances)) &
    far - own + log(part * distances[2]) > log(rules$least_bridge_error)
}

# The longest part of the distance after which draws are still where their precision is known; 0 for
# none.
part_in_reach <- function(space, moved, n) {
  part <- numeric(n)
  for (shorter in rules$shorter_far_out) {
    rows <- which(part == 0)
    if (length(rows) == 0) {
      break
    }
    there <- moved(shorter * max(rules$far_out))[rows, , drop = FALSE]
    part[rows[least_part_left(space$precisions, there) > rules$least_left]] <- shorter
  }
  part
}

# Evaluations of the target, three a draw, which count as those of the islands do.
n_proper_trials <- function(sampler, course) {
  if (is.null(course$scout)) 0 else 3 * max(rules$n_edge_trials, 2 * (sampler$target$dim + 1))
}

# Values of the target's variables, a column each, at some of the draws, by their weights. Of a
# program's they are its parameters, not what it makes of them.
some_draws <- function(final, target) {
  weighty <- weighty_rows(final$log_weights)
  rows <- weighty$rows[evenly_weighted(weighty$w, rules$n_sizes)]
  x <- final$particles[rows, , drop = FALSE]
  if (is.null(target$outputs)) {
    return(x)
  }
  # what fails there is told of when the fit is made
  x <- suppressWarnings(target$outputs(x), classes = "autosmc_warning_outputs")
  x[, colnames(x) %in% target$parameters, drop = FALSE]
}

diagnose_scout <- function(scout, final, estimate) {
  if (is.null(scout) || nrow(scout$basins) == 0) {
    return()
  }
  least <- least_elbos(scout)
  above <- max(least) - estimate$log_z
  error <- estimate$std_error
  if (is.na(error)) {
    error <- mean(final$islands$predicted_sd) # of one island
  }
  list(
    diagnostic(
      "elbo", above, rules$round_margin + rules$elbo_errors * error,
      sprintf(
        "The estimate is below a lower bound that the scout has found, by %s.",
        format(above, digits = 2)
      )
    ),
    if (is.null(final$moments)) diagnose_basins(scout, final, estimate)
  )
}

normal_sd <- function(reference) {
  if (is.null(reference$chol)) reference$sd else sqrt(rowSums(reference$chol^2))
}

least_elbos <- function(scout) {
  least <- scout$basins$elbo - rules$elbo_errors * scout$basins$elbo_error
  ifelse(is.na(least), -Inf, least)
}

# A basin whose normal alone has a part of the evidence must hold draws.
diagnose_basins <- function(scout, final, estimate) {
  x <- unconstrained_particles(final)
  w <- exp(final$log_weights)
  least <- least_elbos(scout)
  part <- exp(pmin(least - estimate$log_z, 0))
  radius <- sqrt(ncol(x)) + rules$basin_radius
  held <- vapply(scout$normals, function(reference) {
    normal <- normal_of(reference, ncol(x))
    square <- lapply(blocks_of(nrow(x), ncol(x)), function(i) {
      rowSums(from_user(normal, x, i)^2)
    })
    sum(w[unlist(square) < radius^2])
  }, 0)
  missed <- sum(part[held < part / rules$basin_part])
  diagnostic(
    "basins", missed, rules$basin_missed,
    sprintf(
      "A basin with at least %.0f %% of the evidence, found by the scout, has too few draws.",
      100 * missed
    )
  )
}

# the rounds ------------------------------------------------------------------

# What an estimate misses makes it lower. So no round, and no islands of an earlier pass,
# may have found much more.
diagnose_rounds <- function(course, sampler, estimate) {
  if (length(course$records) == 0) {
    return()
  }
  runs <- bind_rows(lapply(course$records, `[[`, "runs"))
  counts <- runs$n_particles == sampler$n_particles & runs$predicted_sd < rules$sure_round
  earlier <- if (length(course$passes) > 0) bind_rows(course$passes)
  log_z <- c(runs$log_z[counts %in% TRUE], earlier$log_z)
  error <- c(runs$predicted_sd[counts %in% TRUE], earlier$std_error)
  if (length(log_z) == 0) {
    return()
  }
  own <- if (is.na(estimate$std_error)) 0 else estimate$std_error
  value <- max((log_z - estimate$log_z - rules$round_margin) / sqrt(error^2 + own^2))
  list(diagnostic(
    "rounds", value, rules$round_errors,
    sprintf(
      "An earlier run found more evidence, by %s standard errors.",
      format(value, digits = 2)
    )
  ))
}

# Two passes that agree are evidence; one that finds more than the one before is not the
# last word. last: the estimate of the pass before, NULL in the first.
diagnose_passes <- function(last, estimate) {
  if (is.null(last)) {
    return()
  }
  error <- sqrt(last$std_error^2 + estimate$std_error^2)
  rise <- estimate$log_z - last$log_z
  list(diagnostic(
    "passes", rise, rules$rise_of_pass + rules$errors_apart * error,
    sprintf("The last pass raised the estimate by %s: the next might too.", format(rise, digits = 2))
  ))
}

# what is said ----------------------------------------------------------------

# diagnostics: may be NULL. Which have failed, as indices; whether that of a name has; and
# what is said of them.
failed <- function(diagnostics) which(diagnostics$passed == FALSE)

names_of_failed <- function(diagnostics) diagnostics$name[failed(diagnostics)]

has_failed <- function(diagnostics, name) name %in% names_of_failed(diagnostics)

what_failed <- function(diagnostics) diagnostics$says[failed(diagnostics)]

# What would help, and the diagnostics that speak for it, in the order in which it is said; some of it
# only where there is one mode. Edges say themselves what to do.
advice <- list(
  list(
    says = "Give every parameter a proper prior; of several that only their sum or difference matters for, fix one.",
    names = "proper"
  ),
  list(
    says = "If these variables are angles, measure them from another direction, so that few draws are next to
      a bound.",
    names = "mirrors"
  ),
  list(
    says = "There may be more of the target far out: start from a wide {.arg reference}, such as
      {.code reference_gaussian(sd = 10)} on the unconstrained scale, with {.code scout = FALSE}.",
    names = c("width", "rays", "lines", "basins", "elbo", "dead_islands")
  ),
  list(
    says = "Where the scales of some variables depend on others, another form of the model may help:
      see {.code vignette(\"trouble\")}.",
    names = c("ancestor_ess", "mean_gradient", "stein", "passes"), of_one_mode = TRUE
  ),
  list(
    says = "Run again with twice the {.arg n_particles}: if {.field log_z} rises by more than twice its
      error, this run missed something.",
    names = c(
      "scatter", "largest_share", "dead_islands", "estimates", "mean_gradient", "stein", "width",
      "ancestor_ess", "rays", "mirrors", "lines", "elbo", "basins", "rounds", "passes"
    )
  )
)

# What is said of a fit for which diagnostics have failed, or that has not the precision asked for.
warn_if_unreliable <- function(fit) {
  if (length(failed(fit$diagnostics)) > 0) {
    warn_of_failed(fit)
  }
  if (isTRUE(fit$std_error > fit$precision)) {
    warn_of_precision(fit)
  }
}

warn_of_failed <- function(fit) {
  names <- names_of_failed(fit$diagnostics)
  helps <- Filter(function(one) {
    any(names %in% one$names) && !(is_mixture(fit$reference) && isTRUE(one$of_one_mode))
  }, advice)
  tried <- unique(fit$runs$label[fit$runs$run == "adapt"])
  n_passes <- sum(fit$runs$run == "final" & !fit$runs$used)
  bullets <- list(
    x = verbatim(what_failed(fit$diagnostics)),
    i = if (length(tried) > 0) {
      paste0(
        "Tried so far: ", if (n_passes > 0) "{n_passes} further pass{?es}; ", "references {.val {tried}}."
      )
    },
    i = if (!fit$kernel$gradients) {
      "The default {.arg kernel} moves by gradients, and may find more."
    },
    i = if (is.null(fit$scout) && any(c("mean_gradient", "stein") %in% names)) {
      "Without the scout nothing has checked the gradient: see {.code check_gradient(target)}."
    },
    i = if (isTRUE(nrow(fit$scout$basins) == 0)) {
      "The scout has found nothing. Does the density increase without bound, for instance because its sign is
        wrong? Or is it zero at most points? Then give a point at which it is not, with
        {.code reference = reference_laplace(target, start)}."
    },
    i = vapply(helps, `[[`, "", "says")
  )
  cli::cli_warn(
    c(
      "The error of {.field log_z} is not to be trusted.",
      stats::setNames(unlist(bullets), rep(names(bullets), lengths(bullets)))
    ),
    class = warning_class("unreliable")
  )
}

warn_of_precision <- function(fit) {
  n <- nrow(fit$islands)
  needed <- format(ceiling(n * (fit$std_error / fit$precision)^2), big.mark = ",", digits = 15)
  error <- format(fit$std_error, digits = 2)
  precision <- fit$precision
  cli::cli_warn(
    c(
      "The precision asked for was not reached: with {n} islands the standard
        error is {error}, not {precision}.",
      "i" = "It would take about {needed} islands like these: raise
        {.arg max_islands}, or {.arg n_particles}."
    ),
    class = warning_class("precision")
  )
}
