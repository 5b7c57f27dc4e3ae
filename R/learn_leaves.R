# Chains of single children: where second derivatives show that most variables do not depend on each other, one variable
# at a time becomes standard normal given the variables that it depends on, as in the factorisation of a sparse matrix.
# Bent chains need it, in which each variable is a curve of the one before. fit_chain() calls it.

# Neighbours given which a variable may be a child: curves in more parents are not fitted.
most_neighbours <- 2

# The state with a block for each variable that has few neighbours, and levels for the others. NULL where the levels alone
# leave less than a trial is worth, where the pattern is not known or full, or where the held-out log density is not
# surely higher and the scores left not smaller. The variables that a leaf depends on are not among the `parents` of the
# state, whose tails a reference widens: nearly all would be.
fit_leaves <- function(state, levels, variables) {
  graph <- state$points$pattern[variables, variables, drop = FALSE]
  by_levels <- held_out(levels, variables)
  if (is.null(graph) || all(graph) || !isTRUE(by_levels$nats > rules$least_coupled * length(variables))) {
    return(NULL)
  }
  dimnames(graph) <- list(variables, variables)
  left <- variables
  while (length(left) > 1) {
    leaf <- best_leaf(state$points, left, graph)
    if (is.null(leaf)) break
    state <- with_block(state, leaf)
    graph <- eliminated(graph, leaf$children)
    left <- setdiff(left, leaf$children)
  }
  leaves <- if (length(left) < length(variables)) fit_levels(state, left)
  if (is.null(leaves)) {
    return(NULL)
  }
  by_leaves <- held_out(leaves, variables)
  if (isTRUE(by_leaves$nats < by_levels$nats) && gain_over(by_leaves$each, by_levels$each) > 0) leaves
}

# The block of the likeliest trial of one of the variables that have the fewest neighbours, if any, as a child of these.
# NULL where all have too many, or none.
best_leaf <- function(points, left, graph) {
  degrees <- rowSums(graph) - 1
  fewest <- min(degrees[degrees > 0], Inf)
  if (fewest > most_neighbours) {
    return(NULL)
  }
  train <- rows_of_points(points, points$train)
  trials <- lapply(left[degrees == fewest], function(child) {
    parents <- setdiff(left[graph[as.character(child), ]], child)
    trials_with(points, train, left, parents, child)
  })
  best <- best_of(do.call(c, trials), function(trial) mean(trial$each))
  if (!is.null(best)) refitted(best, points, left)
}

# The graph without a variable, whose neighbours then depend on each other.
eliminated <- function(graph, variable) {
  at <- match(variable, rownames(graph))
  neighbours <- graph[at, ]
  graph[neighbours, neighbours] <- TRUE
  graph[-at, -at, drop = FALSE]
}
