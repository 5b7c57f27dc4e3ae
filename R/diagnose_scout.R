# Diagnostics with the help of the scout: improper densities, lower bounds of the evidence, and basins without draws.

# A standard normal vector in d dimensions is longer than sqrt(d) + 3 with probability below 1e-4.
basin_radius <- 3
# Number of draws at which sizes of values and lost digits are looked for.
n_sizes <- 128
# Draws for each direction and side. Most of them must show that the density does not fall off.
draws_each_way <- 8
# Distances from a draw, in standard deviations, between which the fall of the density is measured: further than most
# draws, but not so far that exponentials of a log scale overflow.
far_distances <- c(5, 25)
# Distance, in standard deviations, at which a constant density is compared with its value at the draw. Under a uniform
# distribution at most one in seven draws is so near to an end.
constant_distance <- 0.5
# Width beyond which a density that is constant up to rounding may have its end by overflow alone: exp(x) is infinite
# from log(.Machine$double.xmax) on, exp(2 * x) from half of that.
overflow_width <- log(.Machine$double.xmax) / 2
# Factors by which the distances are shortened until the precision there is accurate. Between the shortest ones, 0.5 and
# 2.7 standard deviations, a normal density still falls by a factor of 30, the inverse of the distance by one of 5.
distance_factors <- 0.8^(0:10)
# Least ratio of a diagonal entry of a precision to the terms that it is the sum of. The terms have a relative error of
# 2e-15, so four digits are left.
least_digits_left <- 1e-11

# Whether the posterior is improper. The signs are: a standard deviation of the scout's normal distribution or of the
# draws beyond `widest_proper`; draws near overflow or underflow, as of a scale or a probability whose prior is improper
# (the logarithm itself is then no wider than a thousand); and a density that does not fall off along a variable or,
# where others depend on it, along the variable together with them. The value is the decimal logarithm of the largest
# width, or `largest_size` for the other signs. NULL where the target raises an error at the points tried.
proper_diagnostic <- new_diagnostic(
  advise = "prior",
  most = function(sampler, spent, course) n_proper_trials(sampler, course),
  # `size`, the value; `never_falls`, the direction in which the density does not fall off, in words, "" for none; and
  # `is_density`, whether the target seems to return the density instead of its logarithm
  ask = function(seen, evaluate) {
    course <- seen$course
    final <- seen$final
    target <- seen$sampler$target
    n <- n_proper_trials(seen$sampler, course)
    if (n == 0) {
      return(NULL)
    }
    some <- thin_rows(rows_with_weight(final$log_weights), rules$least_rows)
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

# Standard deviations from the distance between the 10 % and the 90 % quantile, as of a normal distribution.
central_sd <- function(x, w) {
  ways <- apply(x, 2, function(column) places_of(column, w, 1)[2] + places_of(column, w, -1)[2])
  ways / (2 * stats::qnorm(0.9))
}

# The width of the standardised variables z relative to their narrowest linear combination. It is large where, for
# example, the sum of two variables is known and their difference is not, whatever the units: few digits are then left
# for the sum. 1 where there are too few draws.
width_over_narrowest <- function(z, w) {
  d <- ncol(z)
  if (d < 2 || d > rules$largest_dense || !all(is.finite(z)) || sum(!duplicated(z[, 1])) <= d) {
    return(1)
  }
  narrowest <- svd(z, nu = 0)$v[, d]
  max(abs(narrowest)) / central_sd(z %*% narrowest, w)
}

# Whether the log density looks like a density: its values at the draws are never negative, and some are 0 up to
# rounding.
is_density <- function(final, target, rows) {
  z <- take_rows(final$coordinates, rows)
  maps <- c(maps_of(final$reference, ncol(z)), scale_maps(target))
  log_jacobian <- forward_maps(maps, z)$log_jacobian
  size <- (final$log_target[rows] - log_jacobian) / (1 + abs(log_jacobian))
  rounding <- sqrt(.Machine$double.eps)
  isTRUE(min(size) > -rounding && min(size) < rounding)
}

# Whether more than `part_beyond` of the draws of a variable are near overflow or underflow. Variables with a finite
# range do not count: they may have most of their mass next to 0.
is_at_end <- function(final, target) {
  size <- log10(abs(some_draws(final, target)))
  varies <- apply(size, 2, max) > apply(size, 2, min) # constant zeros of a Cholesky factor do not count
  is_beyond <- size > largest_square | size < -rules$largest_size
  variables <- if (is.null(target$outputs)) target$names else colnames(size)
  beyond <- variables[which(varies & colMeans(is_beyond) > rules$part_beyond)]
  length(beyond) > 0 && !all(beyond %in% of_finite_range(target))
}

# The draws on the scale on which the fall of the density is tested: list(x, w, maps, precisions), with the maps from
# there to the unconstrained scale. Where the reference has conditional precisions, the children are standard normal on
# this scale: they move with their parents, and the density along a parent is its marginal one.
space_of_scales <- function(final, some) {
  precisions <- precisions_of(final$reference)
  if (length(precisions) == 0) {
    return(list(x = take_rows(unconstrained_particles(final), some$rows), w = some$w, maps = list()))
  }
  z <- take_rows(final$coordinates, some$rows)
  maps <- maps_of(final$reference, ncol(z))
  before <- seq_along(maps) < match(precisions[[1]]$name, vapply(maps, `[[`, "", "name"))
  list(
    x = forward_maps(maps[before], z)$x, w = some$w, maps = maps[!before],
    precisions = precisions
  )
}

# The same by the last earlier reference with exact conditional precisions; `otherwise` where there is none. The final
# reference may have none although an earlier one did.
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

# Whether at more than `part_beyond` of the draws a precision has lost its digits to rounding, and at as many others it
# is accurate. A density that does not fall off as a scale goes to zero leads to such draws.
loses_digits <- function(space) {
  left <- least_part_left(space$precisions, take_rows(space$x, systematic_rows(space$w, n_sizes)))
  mean(left < least_digits_left) > rules$part_beyond &&
    mean(left > sqrt(least_digits_left)) > rules$part_beyond
}

# The direction along which, from most draws to one side, the density falls so slowly that its integral diverges, in
# words; "" for none. The directions are the variables, and the one in which the draws are widest (for a softmax, the
# sum of its variables). n: the number of points.
endless_direction <- function(n, target, space, evaluate) {
  sd <- weighted_sd(space$x, space$w)
  d <- length(sd)
  widest <- widest_direction(space)
  draws <- take_rows(space$x, systematic_rows(space$w, n))
  n_directions <- d + !is.null(widest)
  along <- rep_len(seq_len(n_directions), n)
  side <- rep_len(rep(c(-1, 1), each = n_directions), n)
  moved <- function(r) {
    own <- along <= d
    x <- moved_along(draws, pmin(along, d), ifelse(own, side * r * sd[along], 0))
    if (all(own)) x else x + outer(ifelse(own, 0, side * r), widest)
  }
  part <- part_in_reach(space, moved, n)
  tried <- lapply(c(0, constant_distance, far_distances), function(r) {
    evaluate(moved(part * r), gradient = FALSE, maps = space$maps)
  })
  values <- vapply(tried, `[[`, numeric(n), "log_density")
  uniform_width <- sqrt(12) * c(sd, if (!is.null(widest)) max(abs(widest)))[along]
  is_wide <- uniform_width > overflow_width
  never_ends <- is_endless(values[, -2], part) | is_wide & is_constant(values) & tried[[4]]$undefined
  share <- tapply(part > 0 & never_ends, side * along, mean)
  found <- abs(as.integer(names(share)[which(share > 0.5)]))
  if (length(found) == 0) "" else say_direction(min(found), widest, target)
}

# The direction in which the draws are widest, with their standard deviation as its length; NULL where there is one
# variable, or there are more than `largest_dense`.
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

# The direction with coefficients rounded to one digit where they are nearly so. The direction estimated from draws is
# less exact than one along which the density is constant, such as the sum of the variables of a softmax.
simple_direction <- function(direction) {
  largest <- direction[which.max(abs(direction))]
  simple <- round(direction / largest, 1)
  if (max(abs(simple - direction / largest)) > 1e-3) direction else simple * largest
}

# A direction in words: that of variable number `which`, or for a larger number the widest one, without small terms.
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

# Whether the density falls no faster than the inverse of the distance, and is large enough far out to matter. tried:
# the log density at the draws, and at both distances times the factor `part`.
is_endless <- function(tried, part) {
  near <- tried[, 2]
  far <- tried[, 3]
  is.finite(near) & is.finite(far) & far - near > -diff(log(far_distances)) &
    far - tried[, 1] + log(part * far_distances[2]) > log(rules$least_bridge_error)
}

# Whether the density at the draws and at `constant_distance` from them is the same up to rounding. A constant density
# that becomes NaN or infinite far out ends by overflow, for example of a sum of exponentials, not by a bound; one that
# is -Inf there ends by its own definition.
is_constant <- function(tried) {
  own <- tried[, 1]
  is.finite(own) & abs(tried[, 2] - own) <= sqrt(.Machine$double.eps) * pmax(abs(own), 1)
}

# For each draw, the largest of the distance factors at which the precision is still accurate; 0 for none.
part_in_reach <- function(space, moved, n) {
  part <- numeric(n)
  for (factor in distance_factors) {
    rows <- which(part == 0)
    if (length(rows) == 0) {
      break
    }
    there <- moved(factor * max(far_distances))[rows, , drop = FALSE]
    part[rows[least_part_left(space$precisions, there) > least_digits_left]] <- factor
  }
  part
}

# Evaluations of the target, four for each draw; 0 where there is neither a scout nor a given fit.
n_proper_trials <- function(sampler, course) {
  if (is.null(course$scout) && is.null(course$given_fit)) {
    return(0)
  }
  n_ways <- 2 * (sampler$target$dim + 1)
  4 * max(n_ways, min(n_trials(course), draws_each_way * n_ways))
}

# Values of the target's variables, a column each, at some of the draws. For a program these are its parameters, without
# transformed parameters and generated quantities.
some_draws <- function(final, target) {
  weighty <- rows_with_weight(final$log_weights)
  rows <- weighty$rows[systematic_rows(weighty$w, n_sizes)]
  x <- final$particles[rows, , drop = FALSE]
  if (is.null(target$outputs)) {
    return(x)
  }
  # the warning about failures is given when the fit is made
  x <- suppressWarnings(target$outputs(x), classes = "autosmc_warning_outputs")
  x[, colnames(x) %in% target$parameters, drop = FALSE]
}

# The estimate should not be below the evidence lower bounds of the scout's normal distributions.
elbo_diagnostic <- new_diagnostic(
  advise = c("far_out", "particles"), needs_draws = FALSE,
  judge = function(seen, found) {
    if (!has_basins(seen)) {
      return()
    }
    above <- max(least_elbos(seen$course$scout)) - seen$estimate$log_z
    error <- seen$estimate$std_error
    if (is.na(error)) {
      error <- mean(seen$final$islands$predicted_sd) # there is one island
    }
    says <- c("The estimate is below a lower bound that the scout has found, by ", ".")
    diagnostic(above, rules$margin + rules$errors_seen * error, says, shift = above)
  }
)

has_basins <- function(seen) NROW(seen$course$scout$basins) > 0

# Lower confidence limits of the evidence lower bounds; -Inf where a bound has no error.
least_elbos <- function(scout) {
  least <- scout$basins$elbo - rules$errors_seen * scout$basins$elbo_error
  ifelse(is.na(least), -Inf, least)
}

# Each basin of the scout must contain draws in proportion to its evidence lower bound. The value is the share of the
# evidence in basins with too few draws.
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
