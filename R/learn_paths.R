# Quasi-Newton paths: the scout's way from its starts to the modes. See src/scout.c.

# Paths start from scales of 1 to this: data in raw units have coefficients in the hundreds.
widest_start <- 100
# Most points of a quasi-Newton path. Most paths end sooner, and eight that do not cost a
# hundredth of a fit.
most_path_evals <- 150
# A start where the target is impossible is halved so often: 2^-30 of it is 0 within 1e-7.
most_start_halvings <- 30
# Points of a batch, and batches, that are tried if all starts are impossible: six variables in
# random order are in the required one at one point of 720.
start_batch <- 512
most_start_batches <- 8
# A path ends where its next step can gain no more log density than the least error that a fit
# claims (`least_bridge_error`).
path_tolerance <- 1e-4

# Starts near and far: normal, with standard deviations from 1 to `widest_start`. A row
# a start.
scattered_starts <- function(dim, n) {
  scale <- exp(seq(0, log(widest_start), length.out = max(n, 2)))[seq_len(n)]
  matrix(stats::rnorm(n * dim), n, dim) * scale
}

# All paths go side by side, so that their points share calls of the target. They begin where log densities have no
# digits left only where they would not begin at all. Returns the paths that began at a point of finite density, each a
# list with its end `x`, the log density `f` there, and its `points`.
climb <- function(evaluate, starts, start) {
  at <- evaluate_starts(evaluate, starts, start)
  if (all(at$log_density == -Inf)) {
    possible <- evaluate
    evaluate <- function(x, gradient = TRUE) possible(x, gradient, far = TRUE)
    at <- c(list(x = starts), evaluate(starts))
  }
  .Call(r_climb, evaluate, rows_of(at, at$log_density > -Inf), most_path_evals, path_tolerance)
}

# Starts where the target is impossible are brought nearer to 0; and where it is impossible there too, to
# the point that the model comes with. If all are impossible still, as where variables must be in order,
# others take their place.
evaluate_starts <- function(evaluate, x, start) {
  at <- bring_nearer(evaluate, c(list(x = x), evaluate(x)), x, numeric(ncol(x)))
  if (!is.null(start)) at <- bring_nearer(evaluate, at, x, start)
  if (any(at$log_density > -Inf)) at else possible_starts(evaluate, at)
}

# The starts, with possible points, as many as are found, in the places of the first. Half of the points that are
# tried have all variables moved together, since they may have to be small, all of them; and a half are in
# ascending order, or in descending order, since variables may have to be, and of eight few are by chance.
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

# Of every eight rows two with their values in ascending order, and two in descending order.
in_order <- function(x) {
  turn <- seq_len(nrow(x)) %% 8
  sorted <- function(rows, decreasing) {
    matrix(apply(x[rows, , drop = FALSE], 1, sort, decreasing), ncol = ncol(x), byrow = TRUE)
  }
  x[turn %in% 1:2, ] <- sorted(turn %in% 1:2, FALSE)
  x[turn %in% 3:4, ] <- sorted(turn %in% 3:4, TRUE)
  x
}

# at: list(x, log_density, gradient) of the starts, of which `x` are the first places.
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

# Some of points with their densities, as functions like counted_density() return them.
rows_of <- function(at, rows) {
  list(
    x = at$x[rows, , drop = FALSE],
    log_density = at$log_density[rows],
    gradient = at$gradient[rows, , drop = FALSE]
  )
}
