# A chain of blocks in which points become standard normal: children given parents, then these as children in their
# turn, then the margins. Scores fit, held-out log density decides.

# Standard errors of the gain on held-out points.
sure_gain <- 2
# Gains of single points are cut at so many median deviations above their median.
most_point_gain <- 20
# Parents that are tried in full, where the first ones gain nothing.
n_tried_parents <- 3
# Points of each half that are searched.
most_search <- 800
# Features that are tried in vain, one after the other, before the search for more ends.
most_misses <- 2
# Blocks after those of parents.
most_rest <- 6

# points: list(x, g, train, test), of equal_points(), perhaps with the `pattern` of pattern_among(). Returns
# list(blocks, maps, points, log_jacobian, parents): the maps lead from the coordinates in which the points are nearly
# standard normal, those of `points`, to their own; the log Jacobian is that of each point. NULL where points have no
# normal distribution, or those of a half are too few for one by their scores.
fit_chain <- function(points, variables) {
  if (length(points$train) < points_per_coefficient * (1 + length(variables))) {
    return(NULL)
  }
  points[c("train", "test")] <- lapply(points[c("train", "test")], utils::head, most_search)
  state <- list(points = points, blocks = list(), log_jacobian = numeric(nrow(points$x)), parents = integer())
  levels <- fit_levels(state, variables)
  if (is.null(levels)) {
    return(NULL)
  }
  leaves <- fit_leaves(state, levels, variables)
  state <- fit_rest(if (is.null(leaves)) levels else leaves, variables)
  c(state, list(maps = chain_maps(state$blocks)))
}

# The state with blocks for the variables that are left: a block of children given their parents, then one of these, ...
fit_levels <- function(state, left) {
  while (length(left) > 0) {
    level <- fit_level(state$points, left)
    if (is.null(level)) {
      return(NULL)
    }
    state <- with_block(state, level$block, level$parents)
    left <- level$parents
  }
  state
}

with_block <- function(state, block, parents = integer()) {
  at <- before_maps(block$maps, state$points$x, state$points$g)
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

# From z to x: the last block comes first.
chain_maps <- function(blocks) do.call(c, lapply(rev(blocks), `[[`, "maps"))

rows_of_points <- function(points, rows) {
  list(x = points$x[rows, , drop = FALSE], g = points$g[rows, , drop = FALSE])
}

# The log density of each held-out point of the variables `left` under a block and then a normal distribution of the
# parents, the block and that fitted to the other half; and half the mean square of score residuals.
trial_of <- function(block, points, left) {
  both <- c(points$train, points$test)
  n <- length(points$train)
  at <- before_maps(block$maps, points$x[both, , drop = FALSE], points$g[both, , drop = FALSE])
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
    at <- before_maps(normal$maps, at$x, at$g)
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

# The normal distribution of these variables, as a block without parents.
normal_block <- function(x, g, variables) {
  n <- nrow(x)
  normal <- normal_by_gradients(
    x[, variables, drop = FALSE], g[, variables, drop = FALSE], rep(1 / n, n), n
  )
  if (!is.null(normal)) as_block(normal, variables, ncol(x))
}

# The same by the moments of the points alone, which an edge does not mislead.
moments_normal <- function(x, variables) {
  normal <- moments_of(x[, variables, drop = FALSE], rep(1 / nrow(x), nrow(x)))
  if (!is.null(normal)) as_block(normal, variables, ncol(x))
}

as_block <- function(normal, variables, d) {
  L <- if (is.matrix(normal$L)) normal$L else diag(normal$L, length(variables))
  acting <- list(mean = replace(numeric(d), variables, normal$mean), L = acting_on(L, variables, d))
  list(form = "normal", children = variables, maps = list(affine_of(acting)))
}

# The gain in mean log density of held-out points, where that is sure; else 0.
gain_over <- function(new, old) {
  gain <- new - old
  middle <- stats::median(gain)
  gain <- pmin(gain, middle + most_point_gain * (stats::mad(gain) + 1e-9))
  error <- stats::sd(gain) / sqrt(length(gain))
  if (isTRUE(mean(gain) > max(least_nats, sure_gain * error))) mean(gain) else 0
}

# Variables that may be parents, those first that take the largest share of the residual scores of the others; only
# those that take enough.
# trial: of trial_of().
ranked_parents <- function(trial, x, left, parents) {
  rest <- setdiff(left, parents)
  E <- trial$off[, left, drop = FALSE]
  cap <- rep(4 * spreads(E), each = nrow(E))
  E <- pmax(pmin(E, cap), -cap)
  Z <- trial$z[, left, drop = FALSE]
  nats <- vapply(rest, function(k) {
    children <- which(!left %in% c(k, parents))
    nats_taken(x[, k], Z[, children, drop = FALSE], E[, children, drop = FALSE])
  }, 0)
  of_each <- colSums(E^2)[match(rest, left)] / 2 / nrow(E)
  worth <- min(rules$least_coupled, rules$share_coupled * sum(E^2) / 2 / nrow(E))
  ranked <- order(nats / (sum(of_each) - of_each), decreasing = TRUE)
  rest[ranked[nats[ranked] > max(worth, least_nats)]]
}

# Half the mean squares of columns of E that a curve in t, and z times a parabola, take away, where that is more than
# so many coefficients take by chance.
nats_taken <- function(t, Z, E) {
  n <- length(t)
  s <- (t - stats::median(t)) / spread_of(t)
  powers <- outer(pmax(pmin(s, 5), -5), 0:4, `^`)
  curve <- qr(cbind(powers[, 1:3], feature_values(knees_of(1, t, n_knees[1]), as.matrix(t))))
  Q <- qr.Q(curve)[, seq_len(curve$rank), drop = FALSE]
  of_E <- cross_product(Q, E)
  of_z <- lapply(1:3, function(i) cross_product(Q * powers[, i], Z))
  # products of z times powers, with each other and with E, less what the curve has taken: a row a column of z
  gram <- array(cross_product(Z^2, powers)[, c(1:3, 2:4, 3:5)], c(ncol(Z), 3, 3))
  h <- cross_product(Z * E, powers[, 1:3])
  for (i in 1:3) {
    h[, i] <- h[, i] - colSums(of_z[[i]] * of_E)
    gram[, i, i] <- gram[, i, i] * (1 + 1e-9) + .Machine$double.xmin # what is left may be rounding
    for (j in 1:3) gram[, i, j] <- gram[, i, j] - colSums(of_z[[i]] * of_z[[j]])
  }
  taken <- colSums(of_E^2)
  for (i in 1:3) {
    taken <- taken + h[, i]^2 / gram[, i, i]
    for (j in setdiff(2:3, seq_len(i))) {
      factor <- gram[, i, j] / gram[, i, i]
      h[, j] <- h[, j] - factor * h[, i]
      gram[, j, ] <- gram[, j, ] - factor * gram[, i, ]
    }
  }
  total <- colSums(E^2) + .Machine$double.xmin
  is_sure <- -n * log(pmax(1 - taken / total, 1e-12)) > (curve$rank + 3) * log(n)
  sum(taken[is_sure]) / 2 / n
}

# The children of these variables given the parents that they depend on most: list(block, parents). The first parents
# that are tried are those on which most variables depend; then there is one more at a time.
fit_level <- function(points, left) {
  train <- rows_of_points(points, points$train)
  current <- trial_of(NULL, points, left)
  if (is.null(current)) {
    return(NULL)
  }
  hubs <- hubs_of(points$pattern, left)
  better <- if (length(hubs) > 0) trial_given(list(hubs), current, points, train, left)
  if (!is.null(better)) current <- better
  while (length(left) - length(current$parents) > 1 && current$nats > least_nats) {
    ranked <- utils::head(ranked_parents(current, train$x, left, current$parents), n_tried_parents)
    better <- trial_given(lapply(ranked, function(k) c(current$parents, k)), current, points, train, left)
    if (is.null(better)) break
    current <- better
  }
  block <- if (is.null(current$block)) {
    normal_block(points$x, points$g, left)
  } else {
    refitted(current, points, left)
  }
  if (!is.null(block)) list(block = block, parents = current$parents)
}

# The likeliest trial given the first of these sets of parents with which the gain over the current one is sure; NULL
# for none.
trial_given <- function(sets, current, points, train, left) {
  for (parents in sets) {
    trials <- trials_with(points, train, left, parents)
    best <- best_of(trials, function(trial) mean(trial$each))
    if (!is.null(best) && gain_over(best$each, current$each) > 0) {
      best$parents <- parents
      return(best)
    }
  }
}

# The variables that depend on more than half of the others, where these mostly do not depend on each other; none where
# that is not known.
hubs_of <- function(pattern, left) {
  if (is.null(pattern)) {
    return(integer())
  }
  share <- function(among) (rowSums(among) - 1) / (nrow(among) - 1)
  is_hub <- share(pattern[left, left, drop = FALSE]) > most_filled
  children <- left[!is_hub]
  if (isTRUE(mean(share(pattern[children, children, drop = FALSE])) <= most_filled)) left[is_hub] else integer()
}

# Blocks of both forms: the second only where the first leaves something. Less than what a block is worth counts, too:
# exponentials that follow a curve where the points are, and lead away from it beyond them.
trials_with <- function(points, train, left, parents, children = setdiff(left, parents)) {
  natural <- natural_trial(points, train, left, children, parents)
  moments <- if (is.null(natural) || natural$nats > length(left) * rules$nothing_left) {
    search_moments(train$x, train$g, children, parents)
  }
  moments <- if (!is.null(moments)) trial_of(moments, points, left)
  # where nothing is left of the scores, what is likelier is so by the chance of the draws
  is_right <- !is.null(natural) && !is.null(moments) && moments$nats < min(least_nats, natural$nats)
  without_null(list(if (!is_right) natural, moments))
}

# The best of the blocks of natural form, by the log density of held-out points, or else by this `worth` of a trial;
# NULL for none.
natural_trial <- function(points, train, left, children, parents, worth = function(trial) mean(trial$each)) {
  of_children <- natural_points(train$x, train$g, children, parents, points$pattern)
  # copies of one draw have no scale
  block <- if (have_fourth_powers(of_children$u, of_children$score)) natural_start(of_children)
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

# The block of a trial fitted to all points, unless that is worse on the held-out ones.
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

# the rest --------------------------------------------------------------------

# Blocks for what is left once all are nearly standard normal: margins, another normal distribution, curves. state: of
# fit_chain().
fit_rest <- function(state, variables) {
  for (pass in seq_len(most_rest)) {
    points <- state$points
    test <- points$test
    z <- points$x[test, variables, drop = FALSE]
    now <- -rowSums(z^2) / 2
    if (mean(rowSums((z + points$g[test, variables, drop = FALSE])^2)) / 2 < least_nats) break
    train <- rows_of_points(points, points$train)
    density <- function(block) log_density_by(block, points$x[test, , drop = FALSE], variables)
    blocks <- without_null(rest_blocks(train, variables))
    gains <- vapply(blocks, function(block) gain_over(density(block), now), 0)
    if (!any(gains > 0)) break
    block <- blocks[[which.max(gains)]]
    again <- refit_block(block, points)
    if (!is.null(again) && isTRUE(mean(density(again)) >= mean(density(block)))) block <- again
    state <- with_block(state, block)
  }
  state
}

rest_blocks <- function(train, variables) {
  curves <- if (length(variables) > 1) {
    of_all <- list(z = train$x, off = train$x + train$g)
    parents <- utils::head(ranked_parents(of_all, train$x, variables, integer()), 2)
    lapply(parents, function(k) {
      children <- setdiff(variables, k)
      fit_moments_in(train$x, train$g, children, k, diag(length(children)))
    })
  }
  edged <- apply(train$g[, variables, drop = FALSE], 2, has_edge)
  c(
    list(margins_block(train$x, train$g, variables), normal_block(train$x, train$g, variables)),
    if (any(edged)) list(moments_normal(train$x, variables)), curves
  )
}
