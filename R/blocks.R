# Work on some columns or rows of a large matrix at a time. A sum or a product of all draws of
# all islands takes as much memory as these; by blocks it takes that of a block. All that is done
# so gives each column, or each row, the same result by itself as with the others.

# Numbers in a block: 4 MB of them. A matrix that is smaller is one block.
numbers_in_block <- 2^19

# What f(x, j) says of each column, or f(x, i) of each row, as one vector. f is given some of the
# columns, or of the rows, and where they stand. rows: which rows of x there are.
over_columns <- function(x, rows, f) {
  blocks <- blocks_of(ncol(x), length(rows))
  unlist(lapply(blocks, function(j) f(x[rows, j, drop = FALSE], j)))
}

over_rows <- function(x, rows, f) {
  blocks <- blocks_of(length(rows), ncol(x))
  unlist(lapply(blocks, function(i) f(x[rows[i], , drop = FALSE], i)))
}

# The matrix of what f(x, j) makes of the columns, or f(x, i) of the rows. more: rows that f adds.
map_columns <- function(x, rows, f, more = 0) {
  y <- matrix(0, length(rows) + more, ncol(x))
  for (j in blocks_of(ncol(x), length(rows))) {
    y[, j] <- f(x[rows, j, drop = FALSE], j)
  }
  y
}

map_rows <- function(x, rows, f) {
  y <- matrix(0, length(rows), ncol(x))
  for (i in blocks_of(length(rows), ncol(x))) {
    y[i, ] <- f(x[rows[i], , drop = FALSE], i)
  }
  y
}

# The numbers of n columns, or rows, of so many numbers each, a vector a block.
blocks_of <- function(n, of_numbers) {
  size <- max(1, floor(numbers_in_block / of_numbers))
  if (n <= size) {
    return(list(seq_len(n)))
  }
  lapply(seq(1, n, by = size), function(first) seq(first, min(n, first + size - 1)))
}

# base's sweep() for the columns of a matrix alone, with the same results, in a tenth of its time.
sweep <- function(x, MARGIN, STATS, FUN = "-") { # nolint: the names of base's
  if (is.character(FUN) && FUN %in% arithmetic && is.double(x) && is.double(STATS)) {
    .Call(r_sweep, x, rep_len(STATS, ncol(x)), FUN)
  } else {
    match.fun(FUN)(x, rep(STATS, each = nrow(x)))
  }
}

arithmetic <- c("-", "+", "*", "/")

# The sums of the columns of w * x, and of w * x^2.
weighted_sums <- function(x, w) .Call(r_weighted_sums, x, w, FALSE)

weighted_squares <- function(x, w) .Call(r_weighted_sums, x, w, TRUE)

# Of weighted rows of x: the means of the columns, and their standard deviations.
weighted_mean <- function(x, w, rows = seq_len(nrow(x))) {
  over_columns(x, rows, function(x, j) weighted_sums(x, w))
}

weighted_sd <- function(x, w, rows = seq_len(nrow(x))) {
  over_columns(x, rows, function(x, j) {
    sqrt(weighted_squares(sweep(x, 2, weighted_sums(x, w)), w))
  })
}

# Their covariance, of which the means are these. The blocks are added up, and so its rounding, alone
# of all this, depends on them.
weighted_covariance <- function(x, w, mean, rows = seq_len(nrow(x))) {
  sum <- matrix(0, ncol(x), ncol(x), dimnames = list(colnames(x), colnames(x)))
  for (i in blocks_of(length(rows), ncol(x))) {
    sum <- sum + cross_product(sqrt(w[i]) * sweep(x[rows[i], , drop = FALSE], 2, mean))
  }
  sum
}
