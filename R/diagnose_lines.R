# Lines: whether there is more of the target beyond the draws along a variable. A tail that is long and thin, as that
# of a shape parameter at large values of which the likelihood is flat, is left by rays, along which all variables
# move away from their means. On lines along the variable the others stay where they are at a draw.

# Lines for each part of an end of a variable, of as many parts as the share of the evaluations pays for; ...
few_lines <- 8
# ... where these find more than their error, so many lines estimate it; ...
many_lines <- 64
# ... and as long as that is above zero and within its limit, so many times as many.
times_as_many <- 4
# Places on a line within the part, and beyond it, up to fifty times as far.
n_within_part <- 3
n_beyond_part <- 8
step_beyond_part <- 0.5

# Lines are along variables on the unconstrained scale; and, where some of a reference depend on others, along its
# coordinates, so that they bend as it does: as a scale moves, its effects follow, and on a curve all that comes after.
# If others are exactly normal given some, lines are along these alone, and the others follow. The evidence beyond a place e of a
# coordinate is to that of a part before e as the mean, over lines through draws in this part, of the integral of the
# density along the line beyond e to that in the part. A part goes from where a tenth of the draws are beyond to where a
# hundredth is: of a larger share beyond too little is known. Another goes from there to where a thousandth is beyond: a
# few draws may be where a tail begins of which the others know nothing.
#
# A few lines for each part, and many where these find what may matter, which alone tell how much it is: of many parts
# one would be far off by chance. Where these find something, but with an error that leaves open whether there is
# anything, more lines decide.
#
# Returns list(rise, error, name, points): by how much the logarithm of the evidence is higher than the draws show, and
# its standard error, the variable, and where there are many lines points beyond the part, as of look_along_rays(), but
# on the unconstrained scale. NULL where nothing is known of any part, or the draws are too few.
look_along_lines <- function(seen, evaluate) {
  final <- seen$final
  sampler <- seen$sampler
  spent <- n_spent(seen)
  n <- n_lined_parts(sampler, spent)
  weighty <- weighty_rows(final$log_weights)
  if (length(weighty$rows) < least_draws_beside) {
    return(NULL)
  }
  draws <- lined_draws(final, weighty)
  ends <- do.call(c, lapply(draws, longest_ends, lined_variables(final), ceiling(n / length(draws))))
  with_seed(seed_of_run(sampler$seed, lines_key), {
    found <- lapply(parts_of_ends(ends, n), beyond_part, few_lines, evaluate)
    likely <- likeliest(found, n_followed(spent), seen$estimate)
    if (length(likely) > 0) found <- lapply(likely, beyond_part, many_lines, evaluate)
    found <- surest_rise(found)
    if (length(likely) > 0 && !is.null(found)) {
      found <- beyond_by_more(found, more_lines(spent), seen$estimate, evaluate)
      found$points <- points_beyond(found, evaluate, sampler$kernel$gradients)
    }
    if (!is.null(found)) {
      c(found[c("rise", "error", "points")], list(name = sampler$target$names[found$part$variable]))
    }
  })
}

# These draws in all coordinates along which lines go, each a list of x, w, the maps from there to the unconstrained
# scale, and how many of the draws are independent, n.
lined_draws <- function(final, weighty) {
  n <- n_independent(weighty$w, final$origins[weighty$rows])
  draws <- function(x, maps) list(x = take_rows(x, weighty$rows), w = weighty$w, maps = maps, n = n)
  reference <- final$reference
  bends <- length(conditioning_of(reference)) > 0
  exact <- change_maps(changes_of(reference))
  without_null(list(
    if (bends) draws(final$coordinates, maps_of(reference, ncol(final$coordinates))),
    if (!bends || !is.null(reference$maps)) draws(before_maps(exact, unconstrained_particles(final))$x, exact)
  ))
}

lines_diagnostic <- new_diagnostic(
  advise = c("far_out", "particles"),
  ask = look_along_lines,
  most = function(sampler, spent, course) most_line_evals(sampler, spent),
  judge = function(seen, found) {
    says <- sprintf("Lines along %s reach mass beyond all draws, which raises the estimate by ", found$name)
    judge_beside(seen, found, c(says, "."))
  },
  remedy = function(record, found) with_points_beyond(record, found)
)

# More lines leave the error of the draws as it is.
more_lines_may <- function(found, estimate) may_be_more(found, found$of_lines, estimate, found$of_draws)

# The parts, n at most, beyond which a few lines have most surely found something.
likeliest <- function(found, n, estimate) {
  found <- Filter(function(one) more_lines_may(one, estimate), found)
  surely <- vapply(found, function(one) one$rise / one$error, 0)
  lapply(utils::head(found[order(surely, decreasing = TRUE)], n), `[[`, "part")
}

# What so many lines have found, or the first of these larger numbers that decides whether the estimate misses anything:
# more lines have a smaller error, and so a lower limit.
beyond_by_more <- function(found, numbers, estimate, evaluate) {
  for (n in numbers) {
    if (!more_lines_may(found, estimate) || found$rise > limit_of_rise(found, estimate)) break
    found <- beyond_part(found$part, n, evaluate)
  }
  found
}

# What is beyond a part, by n lines: list(rise, error, of_lines, of_draws, part, of), with both parts of the error, and
# for points_there() f along the lines beyond, a row each, rows and ratio, and of all lines f and z. Each line has the
# draw itself as its first place. Where draws beyond are too few by chance, the lines tell how many there would be.
beyond_part <- function(part, n, evaluate) {
  draws <- part$draws
  t <- part$side * draws$x[, part$variable]
  within <- which(t >= part$from & t < part$to)
  share <- sum(draws$w[within])
  beyond <- sum(draws$w[t >= part$to])
  chosen <- within[evenly_weighted(draws$w[within] / share, n)]
  on <- places_on_lines(part, n)
  x <- draws$x[rep(chosen, 1 + ncol(on$t)), , drop = FALSE]
  x[, part$variable] <- part$side * c(t[chosen], on$t)
  log_p <- matrix(evaluate(x, gradient = FALSE, maps = draws$maps)$log_density, n)
  own <- cbind(seq_len(n), findInterval(t[chosen], on$cells))
  log_f <- log_p[, -1, drop = FALSE] + on$log_width
  log_f[own] <- pmax(log_f[own], log_p[, 1] + on$log_width[own])
  f <- exp(log_f - apply(log_f, 1, max))
  f_beyond <- f * rep(on$is_beyond, each = n)
  ratio <- rowSums(f_beyond) / rowSums(f - f_beyond)
  told <- share * mean(ratio)
  gained <- told - beyond
  of_draws <- sqrt((mean(ratio)^2 * share * (1 - share) + max(told, beyond)) / draws$n) / (1 + gained)
  of_lines <- share * sqrt(squared_error(ratio, chosen)) / (1 + gained)
  list(
    rise = log1p(gained), error = sqrt(of_lines^2 + of_draws^2), of_lines = of_lines, of_draws = of_draws, part = part,
    f = f_beyond, rows = seq_len(n), ratio = ratio, lines = list(f = f, z = x[-seq_len(n), , drop = FALSE])
  )
}

# The squared standard error of the mean of values at draws. Values at the same draw are not independent.
squared_error <- function(values, draws) {
  of_draw <- rowsum(values - mean(values), draws)
  n <- nrow(of_draw)
  n / (n - 1) * sum(of_draw^2) / length(values)^2
}

# Places on n lines, a row each: equal cells in the part, and beyond it such as grow with the distance, up to fifty
# times the length of the part. Those of a line begin at random in their cells, so that what is narrow is not missed by
# all: list(t, log_width, is_beyond, cells), with the places where the cells of the part begin.
places_on_lines <- function(part, n) {
  unit <- part$to - part$from
  offset <- stats::runif(n)
  first <- (seq_len(n_within_part) - 1) / n_within_part
  within <- outer(offset / n_within_part, first, `+`)
  log_far <- outer(offset, seq_len(n_beyond_part) - 1, `+`) * step_beyond_part
  width <- cbind(0 * within + 1 / n_within_part, exp(log_far) * step_beyond_part)
  list(
    t = cbind(part$from + unit * within, part$to + unit * expm1(log_far)), log_width = log(unit * width),
    is_beyond = rep(c(FALSE, TRUE), c(n_within_part, n_beyond_part)), cells = part$from + unit * first
  )
}

# A point on each line, on the unconstrained scale, and the gradients there.
points_beyond <- function(found, evaluate, gradients) {
  points <- points_there(found, found$lines)
  points$z <- through_maps(found$part$draws$maps, points$z)$x
  if (gradients) points$g <- evaluate(points$z)$gradient
  points
}

# How many parts have a few lines after islands that have taken so many evaluations: at most both of two ends of each
# variable and of each coordinate.
n_lined_parts <- function(sampler, spent) {
  min(8 * sampler$target$dim, floor(rules$share_beside * spent / few_lines / n_line_evals()))
}

n_line_evals <- function() 1 + n_within_part + n_beyond_part

# Of how many parts there are many lines, after islands that have taken so many evaluations.
n_followed <- function(spent) max(1, floor(rules$share_of_found * spent / many_lines / n_line_evals()))

# How many lines there are of a part where many do not decide: several times as many as before, while there may be.
more_lines <- function(spent) {
  times <- floor(log(n_followed(spent), times_as_many))
  many_lines * times_as_many^seq_len(times)
}

# What the lines take at most, which counts as what the islands do. The last lead to gradients.
most_line_evals <- function(sampler, spent) {
  n <- n_lined_parts(sampler, spent)
  more <- more_lines(spent)
  lines <- n * few_lines + n_followed(spent) * many_lines + sum(more)
  if (n > 0) lines * n_line_evals() + max(many_lines, more) * sampler$kernel$gradients else 0
}
