# The next reference, fitted to the particles of a run. Called by the loop after each run.
#
# A rung is a way to fit it: a list with `fit`, a function of the record of a run and of the result of fit_shape(),
# which is evaluated lazily. It returns list(reference, gain), or NULL if it cannot be fitted or would change nothing.
# `rungs` are in ascending order of preference.

rungs <- list(
  normal = list(fit = function(record, shape) fit_normal(record)),
  shape = list(fit = function(record, shape) shape),
  basins = list(fit = function(record, shape) fit_basins(record, shape))
)

# The rungs whose references are not normal.
shapes <- c("shape", "basins")

# The fit of the highest of the allowed rungs that can be fitted to a record: list(reference, rung, gain), where a
# normal distribution has no gain; NULL for none. density: of counted_density(); NULL to fit without further
# evaluations.
propose <- function(record, allowed, density = NULL, shape = fit_shape(record, density)) {
  for (rung in rev(intersect(names(rungs), allowed))) {
    fit <- rungs[[rung]]$fit(record, shape)
    if (!is.null(fit)) {
      return(c(fit, rung = rung))
    }
  }
}

# The allowed rungs below one that was rejected.
below <- function(rung, allowed) intersect(allowed, names(rungs)[seq_len(match(rung, names(rungs)) - 1)])

# the rungs -------------------------------------------------------------------

# A normal distribution, fitted to particles and gradients in the coordinates of the run; to particles alone if the
# kernel has no gradients or the reference is not normal. NULL if the effective sample size is too small.
fit_normal <- function(record) {
  weighty <- rows_with_weight(record$log_weights)
  if (1 / sum(weighty$w^2) < rules$least_ess) {
    return(NULL)
  }
  normal <- if (!is.null(record$gradients) && is_normal(record$reference)) {
    inner <- normal_by_gradients(record$coordinates, record$gradients, weighty$w, n_genealogies(record), weighty$rows)
    if (!is.null(inner)) compose(normal_of(record$reference, length(inner$mean)), inner)
  } else {
    weighted_factor(record, weighty)
  }
  if (!is.null(normal)) list(reference = as_reference(inflated(normal)))
}

# A mixture of two normal distributions with the same centre, if the record has them as `nested`. If the reference is a
# mixture already, the mixture refitted, if it has a higher criterion than a normal distribution and fit_shape() gains
# nothing. The gain is over a reference of the same kind, and so 0.
fit_basins <- function(record, shape = fit_shape(record)) {
  if (!is.null(record$nested)) {
    return(list(reference = new_mixture_reference(record$nested), gain = Inf))
  }
  if (!is_mixture(record$reference)) {
    return(NULL)
  }
  again <- refit_mixture(record)
  # the shape takes longest to fit, and so is evaluated last
  if (again$criterion > again$normal_criterion && !isTRUE(shape$gain > 0)) {
    list(reference = again$reference, gain = 0)
  }
}

# The largest variance of the weighted particles along a coordinate, where the reference has variance 1.
widest <- function(record) {
  weighty <- rows_with_weight(record$log_weights)
  max(weighted_sd(record$coordinates, weighty$w, weighty$rows))^2
}
