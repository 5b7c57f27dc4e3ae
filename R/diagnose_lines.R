# Diagnostic of lines: whether the target has mass beyond the draws along one variable, estimated by integrals of the
# density along lines parallel to the axis. It finds long thin tails, for example of a shape parameter whose likelihood
# is flat at large values. Rays miss these, since all variables move along a ray.

# Lines for each part of a tail at first; the number of parts depends on the share of the evaluations for them.
few_lines <- 8
# Lines for a part in which these find more than their error.
many_lines <- 64
# Factor by which their number grows as long as the rise is above zero and within its limit.
times_as_many <- 4
# Places on a line within the part, and beyond it up to some fifty times the length of the part.
n_within_part <- 3
n_beyond_part <- 8
# Distance of the places beyond, in the logarithm of 1 + their distance in units of the part.
step_beyond_part <- 0.5

# Lines are laid along variables on the unconstrained scale. Where some variables of the reference depend on others,
# lines are also laid along the coordinates of the reference, on whose images the children move with their parents.
# Where the children are exactly normal given the parents, all lines are along the parents, and the children follow.
#
# Let e be the far limit of a part. The ratio of the evidence beyond e to the evidence in the part is the mean, over
# lines through draws in the part, of the integral of the density beyond e over its integral in the part. One part lies
# between the places that a tenth and a hundredth of the draws exceed, the next one ends at the place that a thousandth
# exceeds, where a tail may begin in which few draws lie: see parts_of_ends().
#
# Each part first has a few lines. Those with the clearest rise have many, whose estimate replaces the first one: the
# largest of the first estimates is biased upwards. More lines follow where the error leaves open whether there is a
# rise.
#
# Returns list(rise, error, name, points): the rise of log Z over the value that the draws show, its standard error, the
# name of the variable, and where many lines were used points beyond the part, as of look_along_rays(), but on the
# unconstrained scale. NULL where no part has a finite rise, or there are too few draws.
look_along_lines <- function(seen, evaluate) {
  final <- seen$final
  sampler <- seen$sampler
  spent <- n_spent(seen)
  n <- n_line_parts(sampler, spent)
  weighty <- rows_with_weight(final$log_weights)
  if (length(weighty$rows) < least_draws_for_probes) {
    return(NULL)
  }
  draws <- line_draws(final, weighty)
  ends <- do.call(c, lapply(draws, longest_ends, line_variables(final), ceiling(n / length(draws))))
  with_seed(seed_of_run(sampler$seed, lines_key), {
    found <- lapply(parts_of_ends(ends, n), beyond_part, few_lines, evaluate)
    likely <- clearest_parts(found, n_parts_with_many_lines(spent), seen$estimate)
    if (length(likely) > 0) found <- lapply(likely, beyond_part, many_lines, evaluate)
    found <- surest_rise(found)
    if (length(likely) > 0 && !is.null(found)) {
      found <- with_more_lines(found, more_lines(spent), seen$estimate, evaluate)
      found$points <- points_beyond(found, evaluate, sampler$kernel$gradients)
    }
    if (!is.null(found)) {
      c(found[c("rise", "error", "points")], list(name = sampler$target$names[found$part$variable]))
    }
  })
}

# The draws on each scale along whose axes lines are laid: lists of the points x, their weights w, the maps from this
# scale to the unconstrained one, and the number n of independent draws.
line_draws <- function(final, weighty) {
  n <- n_independent(weighty$w, final$origins[weighty$rows])
  draws <- function(x, maps) list(x = take_rows(x, weighty$rows), w = weighty$w, maps = maps, n = n)
  reference <- final$reference
  bends <- length(conditioning_of(reference)) > 0
  exact <- change_maps(changes_of(reference))
  without_null(list(
    if (bends) draws(final$coordinates, maps_of(reference, ncol(final$coordinates))),
    if (!bends || !is.null(reference$maps)) draws(inverse_maps(exact, unconstrained_particles(final))$x, exact)
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

# Whether more lines may decide about a rise. They reduce the part of the error that is due to lines, not that of draws.
more_lines_may_decide <- function(found, estimate) may_be_more(found, found$of_lines, estimate, found$of_draws)

# The parts, n at most, with the largest rise in units of its error, among those for which more lines may decide.
clearest_parts <- function(found, n, estimate) {
  found <- Filter(function(one) more_lines_may_decide(one, estimate), found)
  surely <- vapply(found, function(one) one$rise / one$error, 0)
  lapply(utils::head(found[order(surely, decreasing = TRUE)], n), `[[`, "part")
}

# What was found, estimated again with these increasing numbers of lines until the rise exceeds its limit or more lines
# would not help.
with_more_lines <- function(found, numbers, estimate, evaluate) {
  for (n in numbers) {
    if (!more_lines_may_decide(found, estimate) || found$rise > limit_of_rise(found, estimate)) break
    found <- beyond_part(found$part, n, evaluate)
  }
  found
}

# The rise of log Z by mass beyond a part, by n lines: list(rise, error, of_lines, of_draws, part, f, rows, ratio,
# lines). The error has the parts `of_lines` and `of_draws`; `f`, `rows`, `ratio` and `lines` (list(f, z)) are for
# points_there(). The density at the draw itself, which is known to be high, enters the integral of the cell in which it
# lies.
beyond_part <- function(part, n, evaluate) {
  draws <- part$draws
  t <- part$side * draws$x[, part$variable]
  within <- which(t >= part$from & t < part$to)
  share <- sum(draws$w[within])
  beyond <- sum(draws$w[t >= part$to])
  chosen <- within[systematic_rows(draws$w[within] / share, n)]
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

# The squared standard error of the mean of values at draws, clustered by draw: values at the same draw are dependent.
squared_error <- function(values, draws) {
  of_draw <- rowsum(values - mean(values), draws)
  n <- nrow(of_draw)
  n / (n - 1) * sum(of_draw^2) / length(values)^2
}

# Places on n lines: list(t, log_width, is_beyond, cells), with a row of `t` for each line. Cells of equal width cover
# the part; beyond it their width grows with the distance. A random offset on each line makes it unlikely that all lines
# miss a narrow peak. `log_width` has the logarithms of the widths, `cells` the lower limits of the cells in the part.
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

# A point beyond the part on each line, on the unconstrained scale, with the gradients there where they are wanted.
points_beyond <- function(found, evaluate, gradients) {
  points <- points_there(found, found$lines)
  points$z <- forward_maps(found$part$draws$maps, points$z)$x
  if (gradients) points$g <- evaluate(points$z)$gradient
  points
}

# The number of parts with a few lines, given the evaluations of the islands: at most two parts of both tails of each
# variable and of each coordinate.
n_line_parts <- function(sampler, spent) {
  min(8 * sampler$target$dim, floor(rules$share_beside * spent / few_lines / n_line_evals()))
}

n_line_evals <- function() 1 + n_within_part + n_beyond_part

# The number of parts with many lines, given the evaluations of the islands.
n_parts_with_many_lines <- function(spent) max(1, floor(rules$share_of_found * spent / many_lines / n_line_evals()))

# The numbers of lines for a part about which `many_lines` do not decide: they grow by a factor up to the share allowed.
more_lines <- function(spent) {
  times <- floor(log(n_parts_with_many_lines(spent), times_as_many))
  many_lines * times_as_many^seq_len(times)
}

# The largest number of evaluations of the lines, including the gradients at the points found.
most_line_evals <- function(sampler, spent) {
  n <- n_line_parts(sampler, spent)
  more <- more_lines(spent)
  lines <- n * few_lines + n_parts_with_many_lines(spent) * many_lines + sum(more)
  if (n > 0) lines * n_line_evals() + max(many_lines, more) * sampler$kernel$gradients else 0
}
