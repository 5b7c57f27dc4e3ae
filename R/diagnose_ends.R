# Tails of the draws along each coordinate, for the diagnostic of lines: which tails are longest, and into which parts
# they are divided by quantiles.

# The coordinates along which lines are laid: the parents of the reference, on which others depend, or else all. NULL
# for more than `largest_dense` coordinates without parents.
line_variables <- function(final) {
  d <- ncol(final$coordinates)
  given <- given_last(final$reference)
  if (!is.null(given)) given else if (d <= rules$largest_dense) seq_len(d)
}

# Both tails of each of these coordinates: lists of the draws, as of line_draws(), the variable and the side.
ends_along <- function(draws, variables) {
  both <- expand.grid(variable = variables, side = c(-1, 1))
  Map(function(variable, side) list(draws = draws, variable = variable, side = side), both$variable, both$side)
}

# The n longest tails, by length_of_end() of a thinned sample of the draws.
longest_ends <- function(draws, variables, n) {
  ends <- ends_along(draws, variables)
  some <- thin_draws(draws, rules$least_rows)
  lengths <- vapply(ends, function(end) length_of_end(some$x[, end$variable], some$w, end$side), 0)
  ends[sort(utils::head(order(lengths, decreasing = TRUE), n))]
}

# As thin_rows(), for draws of line_draws().
thin_draws <- function(draws, n) {
  some <- thin_rows(list(rows = seq_along(draws$w), w = draws$w), n)
  replace(draws, c("x", "w"), list(take_rows(draws$x, some$rows), some$w))
}

# Parts of the tails, n at most, each with its limits `from` and `to`: first, for each tail, the part between the places
# that a tenth and a hundredth of the draws exceed, then the part up to the place that a thousandth exceeds.
parts_of_ends <- function(ends, n) {
  places <- lapply(ends, function(end) places_of(end$draws$x[, end$variable], end$draws$w, end$side))
  parts <- unlist(lapply(2:3, function(i) {
    Map(function(end, places) c(end, from = places[i], to = places[i + 1]), ends, places)
  }), recursive = FALSE)
  utils::head(Filter(function(part) part$to > part$from, parts), n)
}

# Of x, or of -x where side is -1, with weights w: the median, and the quantiles that a tenth, a hundredth and a
# thousandth of the draws exceed.
places_of <- function(x, w, side) {
  ranked <- order(x)
  shares <- c(0.5, sort(tail_shares, decreasing = TRUE))
  side * x[ranked][invert_distribution(w[ranked], if (side < 0) shares else 1 - shares)]
}

# The distance between the places that a tenth and a thousandth of the draws exceed, in units of the distance from the
# median to the first of them; 0 where this unit is 0.
length_of_end <- function(x, w, side) {
  places <- places_of(x, w, side)
  unit <- places[2] - places[1]
  if (unit > 0) (places[4] - places[2]) / unit else 0
}
