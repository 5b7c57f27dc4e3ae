# Changes of variables: the chain that leads to a space.

changes_of <- function(reference) as.list(reference$changes)

# Those of variables that are normal given others, level by level: the last one from the core's standard
# coordinates comes first. An empty list for none.
precisions_of <- function(reference) rev(changes_of(reference))

has_exact_precisions <- function(reference) length(changes_of(reference)) > 0

# The coordinates that are given at all levels, or NULL.
given_last <- function(reference) unlist(lapply(utils::tail(changes_of(reference), 1), `[[`, "given"))

# The points after one change after the other, with their gradients where there are any.
changed <- function(points, changes) {
  at <- inverse_maps(change_maps(changes), sweep(points$x, 2, points$mean, "+"), points$g)
  points$mean <- weighted_mean(at$x, points$w)
  points$x <- sweep(at$x, 2, points$mean)
  points["g"] <- list(at$g)
  points
}
