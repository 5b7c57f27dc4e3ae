# Diagnostics by what the scout has found: improper densities, evidence bounds, and basins without draws.

# A normal vector is longer than sqrt(d) + 3 by a chance below 1e-4.
basin_radius <- 3
# Draws among which values are looked for that are where numbers end.
n_sizes <- 128
# Draws from which each direction is tried to either side, most of which decide.
draws_each_way <- 8
# Standard deviations of the draws between which a density that never falls off is seen: beyond what
# most draws reach, and not so far that exponentials of a log scale end.
far_out <- c(5, 25)
# Standard deviations between which a density that is constant has the same values at most draws, wherever it ends: of a
# uniform distribution no more than one in seven draws is so near to an end.
next_to <- 0.5
# A width that no density which is constant to rounding has by chance, and at which arithmetic may end: exp(x) is
# infinite from log(.Machine$double.xmax), exp(2 * x) from half of that.
width_of_numbers <- log(.Machine$double.xmax) / 2
# Parts of these distances, of which the longest is taken where a precision is still known:
# between 0.5 and 2.7 standard deviations a normal distribution still falls by a factor of 30, the
# inverse of the distance by one of 5.
shorter_far_out <- 0.8^(0:10)
# Part of a diagonal entry of a precision that is left to rounding: the coefficients have an error
# of 2e-15, so that there are four digits left.
least_digits_left <- 1e-11

# A density that does not fall off somewhere is wide in the scout's normal distribution, or in the
# draws; or these have gone to where numbers end, as those of a scale do,
# or of a probability, on which a prior has no limit: its logarithm is no wider than a thousand. Or it
# does not fall off along a variable, of a scale together with its effects. NULL where the target
# fails so far out.
proper_diagnostic <- new_diagnostic(
  advise = "prior",
  most = function(sampler, spent, course) n_proper_trials(sampler, course),
  # the direction in which the density never falls off, in words, the draws among scales, and whether something says
  # that it is improper
  ask = function(seen, evaluate) {
    course <- seen$course
    final <- seen$final
    target <- seen$sampler$target
    n <- n_proper_trials(seen$sampler, course)
    if (n == 0) {
      return(NULL)
    }
    some <- thinned(weighty_rows(final$log_weights), rules$least_rows)
    space <- space_of_scales(final, some)
    if (length(space$precisions) == 0) {
      space <- space_by_earlier(course, final, some, otherwise = space)
    }
    never_falls <- endless_direction(n / 4, target, space, evaluate)
    x <- take_rows(unconstrained_particles(final), some$rows)
    of_draws <- central_sd(x, some$w)
    sd <- c(
      if (length(course$scout$normals) > 0) normal_sd(course$scout$normals[[1]]),
      of_draws, width_over_narrowest(scale(x, scale = of_draws), some$w)
    )
    widest <- if (max(log10(sd)) > rules$widest_proper) widest_direction(space)
    if (!nzchar(never_falls) && !is.null(widest)) {
      never_falls <- say_direction(Inf, widest, target)
    }
    is_improper <- nzchar(never_falls) || is_at_end(final, target) || loses_digits(space)
    size <- max(log10(sd), if (is_improper) rules$largest_size)
    list(
      size = size, never_falls = never_falls,
      is_density = size > rules$widest_proper && is_density(final, target, some$rows)
    )
  },
  judge = function(seen, found) {
    if (!is.null(found)) {
      diagnostic(
        found$size, rules$widest_proper,
        sprintf(
          "The density does not fall off %s: the posterior may be improper, and then has no evidence.%s",
          if (nzchar(found$never_falls)) found$never_falls else "in some direction",
          if (found$is_density) " Or is the log density given the density itself?" else ""
        )
      )
    }
  }
)

# The standard deviations of a normal distribution with four fifths of the draws in its middle: tails do not matter.
central_sd <- function(x, w) {
  ways <- apply(x, 2, function(column) places_of(column, w, 1)[2] + places_of(column, w, -1)[2])
  ways / (2 * stats::qnorm(0.9))
}

# How many times as wide as a sum of their variables, z, each in its standard deviation, is where it is narrowest, the
# draws are: of a free difference of two, whose sum is known, the unit does not matter, but how many digits it leaves to
# the sum. 1 where there are too few draws to tell.
width_over_narrowest <- function(z, w) {
  d <- ncol(z)
  if (d < 2 || d > rules$largest_dense || !all(is.finite(z)) || sum(!duplicated(z[, 1])) <= d) {
    return(1)
  }
  narrowest <- svd(z, nu = 0)$v[, d]
  max(abs(narrowest)) / central_sd(z %*% narrowest, w)
}

# Whether values at draws are those of a density: it is never negative, and 0 but for rounding far out, where most draws
# of its exponential are.
is_density <- function(final, target, rows) {
  z <- take_rows(final$coordinates, rows)
  maps <- c(maps_of(final$reference, ncol(z)), scale_maps(target))
  log_jacobian <- through_maps(maps, z)$log_jacobian
  size <- (final$log_target[rows] - log_jacobian) / (1 + abs(log_jacobian))
  rounding <- sqrt(.Machine$double.eps)
  isTRUE(min(size) > -rounding && min(size) < rounding)
}

# Whether a part of the draws is where numbers end, of a variable that has no finite range: one that has may well have
# most of its mass next to 0.
is_at_end <- function(final, target) {
  size <- log10(abs(some_draws(final, target)))
  varies <- apply(size, 2, max) > apply(size, 2, min) # not the zeros of a factor
  is_beyond <- size > largest_square | size < -rules$largest_size
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

# The same by the last reference of an earlier run that had precisions which are exact: particles that went on from it
# may have led to a reference that has none. `otherwise` where there was none.
space_by_earlier <- function(course, final, some, otherwise) {
  reference <- Find(has_exact_precisions, lapply(course$records, `[[`, "reference"), right = TRUE)
  if (is.null(reference)) {
    return(otherwise)
  }
  mean <- weighted_mean(otherwise$x, some$w)
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
  left <- least_part_left(space$precisions, take_rows(space$x, evenly_weighted(space$w, n_sizes)))
  mean(left < least_digits_left) > rules$part_beyond &&
    mean(left > sqrt(least_digits_left)) > rules$part_beyond
}

# The direction along which, from most draws to one side, the density falls so slowly that its integral has no end, in
# words; "" for none. The directions are the variables, and that in which the draws are widest, as those of a softmax
# are along the sum of its variables.
endless_direction <- function(n, target, space, evaluate) {
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
  tried <- lapply(c(0, next_to, far_out), function(r) {
    evaluate(moved(part * r), gradient = FALSE, maps = space$maps)
  })
  values <- vapply(tried, `[[`, numeric(n), "log_density")
  uniform_width <- sqrt(12) * c(sd, if (!is.null(widest)) max(abs(widest)))[along]
  is_wide <- uniform_width > width_of_numbers
  never_ends <- is_endless(values[, -2], part) | is_wide & is_constant(values) & tried[[4]]$undefined
  share <- tapply(part > 0 & never_ends, side * along, mean)
  found <- abs(as.integer(names(share)[which(share > 0.5)]))
  if (length(found) == 0) "" else say_direction(min(found), widest, target)
}

# A standard deviation of the draws in the direction in which they are widest; NULL where that is a variable, or there
# are too many of them.
widest_direction <- function(space) {
  d <- ncol(space$x)
  if (d > 1 && d <= rules$largest_dense) {
    covariance <- weighted_covariance(space$x, space$w, weighted_mean(space$x, space$w))
    if (all(is.finite(covariance))) {
      first <- eigen(covariance, symmetric = TRUE)
      sqrt(max(first$values[1], 0)) * simple_direction(first$vectors[, 1])
    }
  }
}

# With coefficients of one digit where these are nearly so: draws do not tell a direction as exactly as the density
# may be flat along it, as that of a softmax along the sum of its variables.
simple_direction <- function(direction) {
  largest <- direction[which.max(abs(direction))]
  simple <- round(direction / largest, 1)
  if (max(abs(simple - direction / largest)) > 1e-3) direction else simple * largest
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
  near <- tried[, 2]
  far <- tried[, 3]
  is.finite(near) & is.finite(far) & far - near > -diff(log(far_out)) &
    far - tried[, 1] + log(part * far_out[2]) > log(rules$least_bridge_error)
}

# Whether the density is the same at draws and next to them, but for rounding. One that is constant until it is
# infinite, or no number, does not say where it ends: arithmetic does, as where a log of a sum of exponentials is taken
# as it stands. One that is -Inf there says so.
is_constant <- function(tried) {
  own <- tried[, 1]
  is.finite(own) & abs(tried[, 2] - own) <= sqrt(.Machine$double.eps) * pmax(abs(own), 1)
}

# The longest part of the distance after which draws are still where their precision is known; 0 for
# none.
part_in_reach <- function(space, moved, n) {
  part <- numeric(n)
  for (shorter in shorter_far_out) {
    rows <- which(part == 0)
    if (length(rows) == 0) {
      break
    }
    there <- moved(shorter * max(far_out))[rows, , drop = FALSE]
    part[rows[least_part_left(space$precisions, there) > least_digits_left]] <- shorter
  }
  part
}

# Evaluations of the target, four a draw, which count as those of the islands do.
n_proper_trials <- function(sampler, course) {
  if (is.null(course$scout) && is.null(course$given_fit)) {
    return(0)
  }
  n_ways <- 2 * (sampler$target$dim + 1)
  4 * max(n_ways, min(n_trials(course), draws_each_way * n_ways))
}

# Values of the target's variables, a column each, at some of the draws, by their weights. Of a
# program's they are its parameters, not what it makes of them.
some_draws <- function(final, target) {
  weighty <- weighty_rows(final$log_weights)
  rows <- weighty$rows[evenly_weighted(weighty$w, n_sizes)]
  x <- final$particles[rows, , drop = FALSE]
  if (is.null(target$outputs)) {
    return(x)
  }
  # what fails there is told of when the fit is made
  x <- suppressWarnings(target$outputs(x), classes = "autosmc_warning_outputs")
  x[, colnames(x) %in% target$parameters, drop = FALSE]
}

elbo_diagnostic <- new_diagnostic(
  advise = c("far_out", "particles"), needs_draws = FALSE,
  judge = function(seen, found) {
    if (!has_basins(seen)) {
      return()
    }
    above <- max(least_elbos(seen$course$scout)) - seen$estimate$log_z
    error <- seen$estimate$std_error
    if (is.na(error)) {
      error <- mean(seen$final$islands$predicted_sd) # of one island
    }
    says <- c("The estimate is below a lower bound that the scout has found, by ", ".")
    diagnostic(above, rules$margin + rules$errors_seen * error, says, shift = above)
  }
)

has_basins <- function(seen) NROW(seen$course$scout$basins) > 0

least_elbos <- function(scout) {
  least <- scout$basins$elbo - rules$errors_seen * scout$basins$elbo_error
  ifelse(is.na(least), -Inf, least)
}

# A basin whose normal alone has a part of the evidence must hold draws.
basins_diagnostic <- new_diagnostic(
  advise = c("far_out", "particles"),
  judge = function(seen, found) {
    if (!has_basins(seen)) {
      return()
    }
    x <- unconstrained_particles(seen$final)
    w <- exp(seen$final$log_weights)
    part <- exp(pmin(least_elbos(seen$course$scout) - seen$estimate$log_z, 0))
    radius <- sqrt(ncol(x)) + basin_radius
    held <- vapply(seen$course$scout$normals, function(reference) {
      normal <- normal_of(reference, ncol(x))
      square <- lapply(blocks_of(nrow(x), ncol(x)), function(i) rowSums(from_user(normal, x, i)^2))
      sum(w[unlist(square) < radius^2])
    }, 0)
    missed <- sum(part[held < part / rules$basin_part])
    diagnostic(
      missed, rules$least_rise,
      sprintf(
        "A basin with at least %.0f %% of the evidence, found by the scout, has too few draws.",
        100 * missed
      ),
      shift = log1p(missed)
    )
  }
)
