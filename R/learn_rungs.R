# Fits: the next reference, from what a run has drawn.
#
# A rung of the ladder is a way to fit one: a list with `fit`, a function of a record, and of the
# `shape` of fit_shape(), which is looked for when it is first asked for. It returns a reference,
# or NULL where it cannot be fitted or would change nothing.
# To add a rung, write one and put it into `rungs`, in the order of what it can follow.

rungs <- list(
  normal = list(fit = function(record, shape) fit_normal(record)),
  shape = list(fit = function(record, shape) shape),
  basins = list(fit = function(record, shape) fit_basins(record, shape))
)

# The rungs whose references are not normal.
shapes <- c("shape", "basins")

# The highest rung of those allowed that can be fitted to a record:
# list(reference, rung, gain); NULL for none. density: the target's, of counted_density(), where it may
# be asked for that.
propose <- function(record, allowed, density = NULL, shape = fit_shape(record, density)) {
  for (rung in rev(intersect(names(rungs), allowed))) {
    fit <- rungs[[rung]]$fit(record, shape)
    if (!is.null(fit)) {
      return(c(fit, rung = rung))
    }
  }
}

# The rungs below one that was rejected.
below <- function(rung, allowed) {
  intersect(allowed, names(rungs)[seq_len(match(rung, names(rungs)) - 1)])
}

# the rungs -------------------------------------------------------------------

# A normal distribution: from particles and gradients together, in the coordinates of the run, where the kernel has
# these; else from particles alone.
fit_normal <- function(record) {
  weighty <- rows_with_weight(record$log_weights)
  if (1 / sum(weighty$w^2) < rules$least_ess) {
    return(NULL)
  }
  normal <- if (!is.null(record$gradients) && is_normal(record$reference)) {
    inner <- normal_by_gradients(
      record$coordinates, record$gradients, weighty$w, n_genealogies(record), weighty$rows
    )
    if (!is.null(inner)) compose(normal_of(record$reference, length(inner$mean)), inner)
  } else {
    weighted_factor(record, weighty)
  }
  if (!is.null(normal)) list(reference = as_reference(inflated(normal)))
}

# A mixture of two normal distributions around the same centre, where the record has these; or a mixture again, where
# the particles are likelier so than in any other shape. The gain is over a reference of the same kind, and so 0.
fit_basins <- function(record, shape = fit_shape(record)) {
  if (!is.null(record$nested)) {
    return(list(reference = new_mixture_reference(record$nested), gain = Inf))
  }
  if (!is_mixture(record$reference)) {
    return(NULL)
  }
  again <- refit_mixture(record)
  # the search for a shape takes longest, and so comes last
  if (again$criterion > again$normal_criterion && !isTRUE(shape$gain > 0)) {
    list(reference = again$reference, gain = 0)
  }
}

# The largest variance of weighted particles, in coordinates in which the reference has
# variance 1.
widest <- function(record) {
  weighty <- rows_with_weight(record$log_weights)
  max(weighted_sd(record$coordinates, weighty$w, weighty$rows))^2
}
