# A chain of blocks, maps after which the points are nearly standard normal: levels of children given parents or, where
# these leave much, single children; then margins, another normal distribution, and curves. chain_in() calls
# fit_chain().

# Largest number of points in each half, for training and held out.
most_search <- 800
# Largest number of blocks after levels or leaves.
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
