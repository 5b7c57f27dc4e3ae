# Ends of variables: how far the draws go along each, and the parts of an end beyond which there may be more.

# Those along which lines go: the ones given which others are normal, or all of them.
lined_variables <- function(final) {
  d <- ncol(final$coordinates)
  given <- given_last(final$reference)
  if (!is.null(given)) given else if (d <= rules$largest_dense) seq_len(d)
}

# The ends of these variables: lists of draws, as of lined_draws(), variable and side.
ends_along <- function(draws, variables) {
  both <- expand.grid(variable = variables, side = c(-1, 1))
  Map(function(variable, side) list(draws = draws, variable = variable, side = side), both$variable, both$side)
}

# The n longest of them, as some of the draws show them.
longest_ends <- function(draws, variables, n) {
  ends <- ends_along(draws, variables)
  some <- thinned_draws(draws, rules$least_rows)
  lengths <- vapply(ends, function(end) length_of_end(some$x[, end$variable], some$w, end$side), 0)
  ends[sort(utils::head(order(lengths, decreasing = TRUE), n))]
}

# As thinned(), of such draws.
thinned_draws <- function(draws, n) {
  some <- thinned(list(rows = seq_along(draws$w), w = draws$w), n)
  replace(draws, c("x", "w"), list(take_rows(draws$x, some$rows), some$w))
}

# The parts of ends, n at most, with from and to: first of each from where a tenth of the draws are beyond to where a
# hundredth is, then from there to a thousandth.
parts_of_ends <- function(ends, n) {
  places <- lapply(ends, function(end) places_of(end$draws$x[, end$variable], end$draws$w, end$side))
  parts <- unlist(lapply(2:3, function(i) {
    Map(function(end, places) c(end, from = places[i], to = places[i + 1]), ends, places)
  }), recursive = FALSE)
  utils::head(Filter(function(part) part$to > part$from, parts), n)
}

# Of x, or of -x, with weights w: the median, and the places that a tenth, a hundredth and a thousandth are beyond.
places_of <- function(x, w, side) {
  ranked <- order(x)
  shares <- c(0.5, sort(shares_there, decreasing = TRUE))
  side * x[ranked][invert_distribution(w[ranked], if (side < 0) shares else 1 - shares)]
}

# How far it is from the first of these places to the last, in units of what is between the median and the first; 0
# where that is nothing.
length_of_end <- function(x, w, side) {
  places <- places_of(x, w, side)
  unit <- places[2] - places[1]
  if (unit > 0) (places[4] - places[2]) / unit else 0
}
