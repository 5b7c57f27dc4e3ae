# Positive numbers in order, as the scales of a model may have to be. Stan's variables for them are the logs of the
# first and of the differences. Powers of sums of exponentials are no products of functions of one variable each, as
# the terms of a precision are (see learn_precision.R). So the sampler moves the log of the ratio of each number to
# the one before, less 1, which has the same density and the same evidence; see src/map_bounds.c.

# Points that tell what a program makes of its variables: what holds at one by chance does not at
# another.
n_ratio_points <- 3

# The sampler on this scale, where the target has such variables; not where the user has given a reference, which is a
# distribution on the scale as it is.
with_ratios <- function(sampler) {
  is_ratio <- if (has_default_reference(sampler)) {
    with_seed(seed_of_run(sampler$seed, ratios_key), find_ratios(sampler$target))
  }
  if (any(is_ratio)) with_scale(sampler, list(ratio = as.double(is_ratio))) else sampler
}

# Whether each variable is the log of the difference between a positive number and the one before it, by what the
# program makes of some points. NULL where it tells nothing.
find_ratios <- function(target) {
  bases <- base_names(target$names)
  if (is.null(target$outputs) || anyDuplicated(bases) == 0) {
    return(NULL)
  }
  u <- draw_standard(n_ratio_points, target$dim)
  made <- suppressWarnings(target$outputs(u))
  s <- matrix(NA_real_, nrow(u), target$dim)
  is_made <- target$names %in% colnames(made)
  s[, is_made] <- made[, target$names[is_made]]
  is_ratio <- is_positive <- logical(target$dim)
  for (i in seq_len(target$dim)) {
    is_positive[i] <- are_same(s[, i], exp(u[, i]))
    if (i > 1 && is_positive[i - 1] && bases[i] == bases[i - 1]) {
      is_ratio[i] <- are_same(s[, i] - s[, i - 1], exp(u[, i]))
      is_positive[i] <- is_positive[i] || is_ratio[i]
    }
  }
  is_ratio
}

are_same <- function(a, b) isTRUE(all(abs(a - b) <= same_at_ends * abs(b)))
