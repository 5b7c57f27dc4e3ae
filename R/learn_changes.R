# The precision maps of a reference: its `changes`, each of which makes some variables standard normal given others.

changes_of <- function(reference) as.list(reference$changes)

# The same, ordered from the user's end of the chain of maps to the sampler's.
precisions_of <- function(reference) rev(changes_of(reference))

has_exact_precisions <- function(reference) length(changes_of(reference)) > 0

# The coordinates that are parents at the last level, and so at all levels; NULL without changes.
given_last <- function(reference) unlist(lapply(utils::tail(changes_of(reference), 1), `[[`, "given"))

# The centred points after the changes, applied in turn, with their gradients (NULL for none) and their new mean.
changed <- function(points, changes) {
  at <- inverse_maps(change_maps(changes), sweep(points$x, 2, points$mean, "+"), points$g)
  points$mean <- weighted_mean(at$x, points$w)
  points$x <- sweep(at$x, 2, points$mean)
  points["g"] <- list(at$g)
  points
}
