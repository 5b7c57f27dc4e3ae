# Operations on blocks of columns or rows of a large matrix. An operation on all draws of all islands at once would need
# as much memory again as the draws; in blocks it needs that of one block. Results do not depend on the blocks.

# Numbers in a block (4 MB). A smaller matrix is one block.
numbers_in_block <- 2^19

# f(x, j) of a block of columns with indices j, or f(x, i) of a block of rows, for all blocks: one vector, an element a
# column or row. over_columns() uses only these `rows` of x.
over_columns <- function(x, rows, f) {
  blocks <- blocks_of(ncol(x), length(rows))
  unlist(lapply(blocks, function(j) f(x[rows, j, drop = FALSE], j)))
}

over_rows <- function(x, f) {
  blocks <- blocks_of(nrow(x), ncol(x))
  unlist(lapply(blocks, function(i) f(rows_of_block(x, i), i)))
}

# x[i, ], without a copy if these are all rows.
rows_of_block <- function(x, i) if (length(i) == nrow(x)) x else x[i, , drop = FALSE]

# The n x d matrix whose rows i are f(i), computed by blocks of rows.
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

# The indices of n columns (or rows) in blocks: a list of vectors. of_numbers: the length of a column. least: the least
# number of columns in a block.
blocks_of <- function(n, of_numbers, least = 1) {
  size <- max(least, floor(numbers_in_block / of_numbers))
  if (n <= size) {
    return(list(seq_len(n)))
  }
  lapply(seq(1, n, by = size), function(first) seq(first, min(n, first + size - 1)))
}

# Lets the user interrupt. R itself checks only once in a thousand calls, which can take minutes with large matrices.
look_for_interrupt <- function() Sys.sleep(0)

# base::sweep() for the columns of a matrix, in C: MARGIN must be 2.
sweep <- function(x, MARGIN, STATS, FUN = "-") { # nolint: the names of base's
  if (is.character(FUN) && FUN %in% arithmetic && is.double(x) && is.double(STATS)) {
    .Call(r_sweep, x, rep_len(STATS, ncol(x)), FUN)
  } else {
    match.fun(FUN)(x, rep(STATS, each = nrow(x)))
  }
}

arithmetic <- c("-", "+", "*", "/")

# w (x - centre) for these rows of x (NULL: all), in one pass. centre: an element for each column; w: for each row.
scaled_rows <- function(x, w, centre, rows = NULL) .Call(r_scaled_rows, x, rows, centre, w)

# The column sums of w * x^2.
weighted_squares <- function(x, w) .Call(r_weighted_sums, x, w, TRUE, NULL, NULL)

# Weighted column means of x minus `centre`, and weighted standard deviations, over these rows (NULL: all).
weighted_mean <- function(x, w, rows = NULL, centre = NULL) .Call(r_weighted_sums, x, w, FALSE, centre, rows)

weighted_sd <- function(x, w, rows = NULL) {
  sqrt(.Call(r_weighted_sums, x, w, TRUE, weighted_mean(x, w, rows), rows))
}
