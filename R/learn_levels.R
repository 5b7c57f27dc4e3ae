# Levels of a chain: at each level all remaining variables but a few become standard normal given these few, their
# parents, which are the variables of the next level. fit_chain() calls fit_levels().

# Candidates for a parent that are tried with a full fit, until one gains.
n_tried_parents <- 3

# The state of fit_chain() with blocks for these variables, level by level. NULL where a level has no normal
# distribution.
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

# One level: list(block, parents). First the hubs are tried as parents, then one parent more at a time, as long as the
# held-out log density rises.
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

# The best trial with the first of these sets of parents that gains over the current trial; NULL for none.
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

# Hubs: variables that depend on more than half of the others, if these mostly do not depend on each other. None where
# the pattern of dependence is not known.
hubs_of <- function(pattern, left) {
  if (is.null(pattern)) {
    return(integer())
  }
  share <- function(among) (rowSums(among) - 1) / (nrow(among) - 1)
  is_hub <- share(pattern[left, left, drop = FALSE]) > most_filled
  children <- left[!is_hub]
  if (isTRUE(mean(share(pattern[children, children, drop = FALSE])) <= most_filled)) left[is_hub] else integer()
}

# Candidates for parents, sorted by the share of the other variables' score residuals that a function of the candidate
# explains; only those that explain enough. trial: of trial_of(); parents: those that there are already.
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

# Half the mean square of columns of E that is explained by regression on a curve in t and on the column of Z times a
# parabola in t; only of columns where that is more than chance, by the Bayesian information criterion.
nats_taken <- function(t, Z, E) {
  n <- length(t)
  s <- (t - stats::median(t)) / spread_of(t)
  powers <- outer(pmax(pmin(s, 5), -5), 0:4, `^`)
  curve <- qr(cbind(powers[, 1:3], feature_values(softplus_features(1, t, n_softplus[1]), as.matrix(t))))
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
