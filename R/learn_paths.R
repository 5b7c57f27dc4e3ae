# Paths of quasi-Newton optimisation (L-BFGS, as in Pathfinder) from overdispersed starts to the modes. Called by
# find_basins(). See src/scout.c.

# Largest standard deviation of starts; the smallest is 1. Data in raw units have coefficients in the hundreds.
widest_start <- 100
# Largest number of points of a path. Most paths end sooner, and eight that do not cost a hundredth of a fit.
most_path_evals <- 150
# Largest number of halvings of a start where the density is 0: 2^-30 of it is 0 within 1e-7.
most_start_halvings <- 30
# If the density is 0 at all starts, so many batches of so many points are tried: six variables in random order have the
# required order at one point of 720.
start_batch <- 512
most_start_batches <- 8
# A path ends when its next step can gain at most this log density: the smallest error that a fit reports
# (`least_bridge_error`).
path_tolerance <- 1e-4

# n normal starts, a row each, with standard deviations evenly spaced in the logarithm from 1 to `widest_start`.
scattered_starts <- function(dim, n) {
  scale <- exp(seq(0, log(widest_start), length.out = max(n, 2)))[seq_len(n)]
  matrix(stats::rnorm(n * dim), n, dim) * scale
}

# Runs all paths in parallel, so that their points share calls of the target. If no start is possible otherwise, log
# densities so low that they have no digits left are admitted (far = TRUE). Returns the paths that began at a point of
# finite log density, each a list with its end `x`, the log density `f` there, and its `points`.
climb <- function(evaluate, starts, start) {
  at <- evaluate_starts(evaluate, starts, start)
  if (all(at$log_density == -Inf)) {
    possible <- evaluate
    evaluate <- function(x, gradient = TRUE) possible(x, gradient, far = TRUE)
    at <- c(list(x = starts), evaluate(starts))
  }
  .Call(r_climb, evaluate, rows_of(at, at$log_density > -Inf), most_path_evals, path_tolerance)
}

# Evaluates the starts x. Those of density 0 are moved towards 0; if that fails, towards the model's own start. If all
# have density 0 still, as with ordered variables, possible_starts() replaces them.
evaluate_starts <- function(evaluate, x, start) {
  at <- bring_nearer(evaluate, c(list(x = x), evaluate(x)), x, numeric(ncol(x)))
  if (!is.null(start)) at <- bring_nearer(evaluate, at, x, start)
  if (any(at$log_density > -Inf)) at else possible_starts(evaluate, at)
}

# The starts, the first ones replaced by random points of positive density, as many as are found. Half of the points
# tried have a common random shift, for models whose variables must all be small or large. Half are sorted, in ascending
# or descending order, since random points of eight variables are rarely sorted.
possible_starts <- function(evaluate, at) {
  found <- at$x[0, , drop = FALSE]
  n <- start_batch
  for (batch in seq_len(most_start_batches)) {
    x <- in_order(scattered_starts(ncol(at$x), n) + c(0, 1) * drop(scattered_starts(1, n)))
    found <- rbind(found, x[evaluate(x, gradient = FALSE)$log_density > -Inf, , drop = FALSE])
    if (nrow(found) >= nrow(at$x)) {
      break
    }
  }
  places <- seq_len(min(nrow(found), nrow(at$x)))
  at$x[places, ] <- found[places, ]
  c(at["x"], evaluate(at$x))
}

# The matrix with two of every eight rows sorted in ascending order, and two in descending order.
in_order <- function(x) {
  turn <- seq_len(nrow(x)) %% 8
  sorted <- function(rows, decreasing) {
    matrix(apply(x[rows, , drop = FALSE], 1, sort, decreasing), ncol = ncol(x), byrow = TRUE)
  }
  x[turn %in% 1:2, ] <- sorted(turn %in% 1:2, FALSE)
  x[turn %in% 3:4, ] <- sorted(turn %in% 3:4, TRUE)
  x
}

# The starts with those of density 0 moved towards `centre` by repeated halving. at: list(x, log_density, gradient) of
# the current starts. x: the original ones.
bring_nearer <- function(evaluate, at, x, centre) {
  away <- sweep(x, 2, centre)
  for (attempt in seq_len(most_start_halvings)) {
    bad <- which(at$log_density == -Inf)
    if (length(bad) == 0) {
      break
    }
    nearer <- sweep(away[bad, , drop = FALSE] / 2^attempt, 2, centre, "+")
    again <- evaluate(nearer)
    at$x[bad, ] <- nearer
    at$log_density[bad] <- again$log_density
    at$gradient[bad, ] <- again$gradient
  }
  at
}

# Some rows of evaluated points: list(x, log_density, gradient).
rows_of <- function(at, rows) {
  list(x = at$x[rows, , drop = FALSE], log_density = at$log_density[rows], gradient = at$gradient[rows, , drop = FALSE])
}
