# Log weights, systematic resampling, and small numerical helpers.

# Particles with a weight below this fraction of the largest one are left out of fits: their values are arbitrary, and
# one far away would dominate.
least_weight <- 1e-12

# The element of a list (without NULLs) for which value() is largest; NULL for an empty list.
best_of <- function(fits, value) {
  fits <- without_null(fits)
  if (length(fits) > 0) fits[[which.max(vapply(fits, value, 0))]]
}

# The solution of A x = h; 0 if A is singular to machine precision.
solved <- function(A, h) tryCatch(solve(A, h), error = function(e) 0 * h)

# Whether all numbers in a list are finite.
is_finite <- function(parts) all(is.finite(unlist(parts, use.names = FALSE)))

# n indices by systematic resampling, in ascending order. The grid is centred, not shifted at random.
resample_systematic <- function(log_weights, n = length(log_weights)) {
  invert_distribution(exp(log_weights), (seq_len(n) - 0.5) / n)
}

# The first index at which the cumulative weights reach the probability p; never one of zero weight.
invert_distribution <- function(w, p) {
  cumulative <- cumsum(w)
  total <- cumulative[length(w)]
  findInterval(p * total, cumulative, left.open = TRUE) + 1L
}

# list(rows, w): the particles above `least_weight`, and their normalised weights.
rows_with_weight <- function(log_weights) .Call(r_weighty_rows, log_weights, least_weight)

# The sum of the squared total weights of groups, which are whole numbers in a small range.
concentration <- function(w, groups) .Call(r_concentration, w, groups)

# n rows in proportion to the weights w, which sum to one, on a centred grid.
systematic_rows <- function(w, n) {
  pmin(findInterval((seq_len(n) - 0.5) / n, cumsum(w)) + 1, length(w))
}

# Log weights whose exponentials sum to one.
normalise_log <- function(log_weights) {
  shifted <- log_weights - max(log_weights)
  shifted - log(sum(exp(shifted)))
}

# The clock for all timings.
seconds_now <- function() proc.time()[["elapsed"]]
