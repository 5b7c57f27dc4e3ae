# Leaves of a chain: one variable at a time becomes standard normal given its neighbours, the variables that it depends
# on by second derivatives, in the order of elimination of a sparse factorisation (minimum degree). Time series with
# curved transitions need it, in which each variable is a curve of the one before. fit_chain() calls fit_leaves().

# Largest number of neighbours of a leaf: curves in more parents are not fitted.
most_neighbours <- 2
# Leaves that fit leave hardly anything of the scores; these are kept if they leave less than this share of what levels
# do.
most_left <- 0.5

# The state of fit_chain() with a block for each leaf, and levels for the other variables. NULL where levels alone leave
# little of the scores, where the pattern is not known or full, or where leaves do not both raise the held-out log
# density and leave much less of the scores. The neighbours of leaves are not `parents`, whose variance a reference
# inflates: nearly all variables would be.
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
  if (isTRUE(by_leaves$nats < most_left * by_levels$nats) && gain_over(by_leaves$each, by_levels$each) > 0) leaves
}

# The best block of a variable with the fewest neighbours, given these. NULL where all variables have too many
# neighbours, or none.
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

# The graph of dependence after elimination of a variable, whose neighbours then depend on each other.
eliminated <- function(graph, variable) {
  at <- match(variable, rownames(graph))
  neighbours <- graph[at, ]
  graph[neighbours, neighbours] <- TRUE
  graph[-at, -at, drop = FALSE]
}
