# Fits: the next reference, from what a run has drawn.
#
# A rung of the ladder is a way to fit one: a list with `fit`, a function of a record, and of the
# `shape` of fit_shape(), which is looked for when it is first asked for. It returns a reference,
# or NULL where it cannot be fitted or would change nothing.
# To add a rung, write one and put it into `rungs`, in the order of what it can follow.

rungs <- list(
  location = list(fit = function(record, shape) fit_location(record)),
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

# The same reference in another location, the mean of the target; not where it is not
# normal, or where particles are twice as wide somewhere: then it would leave a part of
# the target behind.
fit_location <- function(record) {
  weighty <- weighty_rows(record$log_weights)
  if (!is_normal(record$reference) || is.null(record$gradients) ||
    1 / sum(weighty$w^2) < rules$least_ess) {
    return(NULL)
  }
  rows <- function(x) x[weighty$rows, , drop = FALSE]
  z <- rows(record$coordinates)
  variance <- weighted_squares(z, weighty$w) - weighted_sums(z, weighty$w)^2
  mean <- controlled_mean(z, rows(record$gradients), weighty$w)
  if (!all(is.finite(mean)) || any(variance > rules$widest_moved)) {
    return(NULL)
  }
  normal <- normal_of(record$reference, length(mean))
  reference <- record$reference
  reference$mean <- drop(to_user(normal, t(mean)))
  list(reference = reference)
}

# The means of weighted rows, each with the column of `controls`, of true mean zero, that
# belongs to it as a control variate, where that varies and its squares are finite
# (Mira, Solgi and Imparato, 2013).
controlled_mean <- function(x, controls, w) {
  off <- weighted_sums(controls, w)
  centred <- sweep(controls, 2, off)
  variance <- weighted_squares(centred, w)
  varies <- variance > rounding_of_square * off^2
  slope <- colSums(w * centred * x) / variance
  correction <- slope * off
  weighted_sums(x, w) - ifelse(varies & is.finite(correction), correction, 0)
}

# A normal distribution: from particles and gradients together, in the coordinates of the run, where the kernel has
# these; else from particles alone.
fit_normal <- function(record) {
  weighty <- weighty_rows(record$log_weights)
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
  weighty <- weighty_rows(record$log_weights)
  max(weighted_sd(record$coordinates, weighty$w, weighty$rows))^2
}
