# Work on some columns or rows of a large matrix at a time. A sum or a product of all draws of
# all islands takes as much memory as these; by blocks it takes that of a block. All that is done
# so gives each column, or each row, the same result by itself as with the others.

# Numbers in a block: 4 MB of them. A matrix that is smaller is one block.
numbers_in_block <- 2^19

# What f(x, j) says of each column, or f(x, i) of each row, as one vector. f is given some of the
# columns, or of the rows, and where they stand. rows: which rows of x the columns have.
over_columns <- function(x, rows, f) {
  blocks <- blocks_of(ncol(x), length(rows))
  unlist(lapply(blocks, function(j) f(x[rows, j, drop = FALSE], j)))
}

over_rows <- function(x, f) {
  blocks <- blocks_of(nrow(x), ncol(x))
  unlist(lapply(blocks, function(i) f(rows_of_block(x, i), i)))
}

# These rows of x; where they are all, without a copy.
rows_of_block <- function(x, i) if (length(i) == nrow(x)) x else x[i, , drop = FALSE]

# The n x d matrix of which f(i) makes some rows.
rows_by <- function(n, d, f) {
  blocks <- blocks_of(n, d)
  if (length(blocks) == 1) {
    return(f(blocks[[1]]))
  }
  y <- matrix(0, n, d)
  for (i in blocks) {
    y[i, ] <- f(i)
  }
  y
}

# The numbers of n columns, or rows, of so many numbers each, a vector a block. least: how many there
# are in a block at least, where the larger ones are worth their memory.
blocks_of <- function(n, of_numbers, least = 1) {
  size <- max(least, floor(numbers_in_block / of_numbers))
  if (n <= size) {
    return(list(seq_len(n)))
  }
  lapply(seq(1, n, by = size), function(first) seq(first, min(n, first + size - 1)))
}

# R looks for an interrupt only once in a thousand calls, which may be minutes where each is of a large matrix.
look_for_interrupt <- function() Sys.sleep(0)

# base's sweep() for the columns of a matrix alone, with the same results, in a tenth of its time.
sweep <- function(x, MARGIN, STATS, FUN = "-") { # nolint: the names of base's
  if (is.character(FUN) && FUN %in% arithmetic && is.double(x) && is.double(STATS)) {
    .Call(r_sweep, x, rep_len(STATS, ncol(x)), FUN)
  } else {
    match.fun(FUN)(x, rep(STATS, each = nrow(x)))
  }
}

arithmetic <- c("-", "+", "*", "/")

# w (x - centre), of some rows of x, of which NULL are all, in one pass. centre: an element for each column of
# x; w: one for each of the rows.
scaled_rows <- function(x, w, centre, rows = NULL) .Call(r_scaled_rows, x, rows, centre, w)

# The sums of the columns of w * x^2.
weighted_squares <- function(x, w) .Call(r_weighted_sums, x, w, TRUE, NULL, NULL)

# Of weighted rows of x, of which NULL are all: the means of the columns, less `centre`, and their standard deviations.
weighted_mean <- function(x, w, rows = NULL, centre = NULL) .Call(r_weighted_sums, x, w, FALSE, centre, rows)

weighted_sd <- function(x, w, rows = NULL) {
  sqrt(.Call(r_weighted_sums, x, w, TRUE, weighted_mean(x, w, rows), rows))
}
