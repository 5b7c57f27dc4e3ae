# Blocks of a chain: maps that make some variables, the children, standard normal given others, their parents. A block
# is fitted by least squares on scores (gradients of the log density), and kept where the log density of held-out points
# is higher. fit_levels() and fit_leaves() make chains of them.

# A gain in mean held-out log density counts if it is above so many of its standard errors.
sure_gain <- 2
# The gain of a single point is cut at so many median absolute deviations above the median gain.
most_point_gain <- 20
# The search for further features ends after so many without a gain, one after the other.
most_misses <- 2

with_block <- function(state, block, parents = integer()) {
  at <- inverse_maps(block$maps, state$points$x, state$points$g)
  state$points[c("x", "g")] <- at[c("x", "g")]
  state$points$pattern <- NULL # of the coordinates before
  state$log_jacobian <- state$log_jacobian + at$log_jacobian
  state$blocks <- c(state$blocks, list(block))
  state$parents <- union(state$parents, parents)
  state
}

# Of each held-out point the log density under the blocks, and half the mean square of the score residuals.
held_out <- function(state, variables) {
  test <- state$points$test
  z <- state$points$x[test, variables, drop = FALSE]
  off <- state$points$g[test, variables, drop = FALSE] + z
  list(each = state$log_jacobian[test] - rowSums(z^2) / 2, nats = mean(rowSums(off^2)) / 2)
}

# The maps from the coordinates of the whole chain to those of the points: the last block comes first.
chain_maps <- function(blocks) do.call(c, lapply(rev(blocks), `[[`, "maps"))

rows_of_points <- function(points, rows) {
  list(x = points$x[rows, , drop = FALSE], g = points$g[rows, , drop = FALSE])
}

# A block with a normal distribution of its parents, fitted to the training half: list(block, each, nats, z, off), with
# the log density of each held-out point of the variables `left`, half the mean square of their score residuals, and
# coordinates and score residuals of the training points. NULL where there is no normal distribution.
trial_of <- function(block, points, left) {
  both <- c(points$train, points$test)
  n <- length(points$train)
  at <- inverse_maps(block$maps, points$x[both, , drop = FALSE], points$g[both, , drop = FALSE])
  parents <- setdiff(left, block$children)
  log_jacobian <- at$log_jacobian
  if (length(parents) > 0) {
    if (!all(is.finite(at$x), is.finite(at$g))) {
      return(NULL)
    }
    normal <- normal_block(at$x[seq_len(n), , drop = FALSE], at$g[seq_len(n), , drop = FALSE], parents)
    if (is.null(normal)) {
      return(NULL)
    }
    at <- inverse_maps(normal$maps, at$x, at$g)
    log_jacobian <- log_jacobian + at$log_jacobian
  }
  test <- n + seq_along(points$test)
  z <- at$x[test, left, drop = FALSE]
  off <- at$g[test, left, drop = FALSE] + z
  each <- log_jacobian[test] - rowSums(z^2) / 2
  if (!all(is.finite(each), is.finite(off))) {
    return(NULL)
  }
  list(
    block = block, each = each, nats = mean(rowSums(off^2)) / 2,
    z = at$x[seq_len(n), , drop = FALSE], off = at$g[seq_len(n), , drop = FALSE] + at$x[seq_len(n), , drop = FALSE]
  )
}

# The normal distribution of these variables by points and scores, as a block without parents.
normal_block <- function(x, g, variables) {
  n <- nrow(x)
  normal <- normal_by_gradients(
    x[, variables, drop = FALSE], g[, variables, drop = FALSE], rep(1 / n, n), n
  )
  if (!is.null(normal)) as_block(normal, variables, ncol(x))
}

# The same by the moments of the points alone, which are right also where the density has an edge.
moments_normal <- function(x, variables) {
  normal <- moments_of(x[, variables, drop = FALSE], rep(1 / nrow(x), nrow(x)))
  if (!is.null(normal)) as_block(normal, variables, ncol(x))
}

as_block <- function(normal, variables, d) {
  L <- if (is.matrix(normal$L)) normal$L else diag(normal$L, length(variables))
  acting <- list(mean = replace(numeric(d), variables, normal$mean), L = acting_on(L, variables, d))
  list(form = "normal", children = variables, maps = list(affine_of(acting)))
}

# The gain in mean log density of held-out points, or 0 where it is not significant.
gain_over <- function(new, old) {
  gain <- new - old
  middle <- stats::median(gain)
  gain <- pmin(gain, middle + most_point_gain * (stats::mad(gain) + 1e-9))
  error <- stats::sd(gain) / sqrt(length(gain))
  if (isTRUE(mean(gain) > max(least_nats, sure_gain * error))) mean(gain) else 0
}

# Trials of both forms of block; of moments form only where the natural form leaves any score residual. Even a small one
# matters: exponentials may follow a curve between the points, and diverge from it beyond them.
trials_with <- function(points, train, left, parents, children = setdiff(left, parents)) {
  natural <- natural_trial(points, train, left, children, parents)
  moments <- if (is.null(natural) || natural$nats > length(left) * rules$nothing_left) {
    search_moments(train$x, train$g, children, parents)
  }
  moments <- if (!is.null(moments)) trial_of(moments, points, left)
  # if nothing is left of the scores, a higher density under the other form is chance
  is_right <- !is.null(natural) && !is.null(moments) && moments$nats < min(least_nats, natural$nats)
  without_null(list(if (!is_right) natural, moments))
}

# The trial of the best block of natural form, by held-out log density or another `worth` of a trial; NULL for none.
natural_trial <- function(points, train, left, children, parents, worth = function(trial) mean(trial$each)) {
  of_children <- natural_points(train$x, train$g, children, parents, points$pattern)
  # copies of a single draw have no scale
  block <- if (fourth_powers_finite(of_children$u, of_children$score)) natural_start(of_children)
  best <- NULL
  misses <- 0
  while (!is.null(block) && misses < most_misses) {
    trial <- if (!is.null(block$maps)) trial_of(block, points, left)
    if (!is.null(trial) && (is.null(best) || worth(trial) > worth(best) + least_nats)) {
      best <- trial
      misses <- 0
    } else {
      misses <- misses + 1
    }
    if (!is.null(best) && best$nats < least_nats) break
    block <- richer_natural(block, of_children)
  }
  best
}

# The block of a trial, fitted again to all points unless the held-out log density falls.
refitted <- function(trial, points, left) {
  again <- refit_block(trial$block, points)
  new <- if (!is.null(again)) trial_of(again, points, left)
  if (!is.null(new) && isTRUE(mean(new$each) >= mean(trial$each) - least_nats)) again else trial$block
}

# A block fitted again to all points, with the same features; NULL where there is none.
refit_block <- function(block, points) {
  switch(block$form,
    natural = refit_natural(block, points$x, points$g),
    moments = refit_moments(block, points$x, points$g),
    margins = margins_block(points$x, points$g, block$children),
    normal = normal_block(points$x, points$g, block$children)
  )
}
