# Ordered positive numbers, such as ordered scales. Stan's unconstrained variables for them are the logs of the first
# one and of the differences. Powers of the numbers are then not products of functions of one variable each, as the
# terms of a conditional precision must be (see learn_precision.R). So the sampler uses the log of the ratio of each
# number to the one before, less 1. This is a change of variables that leaves the evidence as it is: see
# src/map_bounds.c. Called by scouted().

# Points at which the program's transformation is compared, so that no identity holds at all of them by chance.
n_ratio_points <- 3

# The sampler on this scale, where the target has such variables. A reference given by the user is a distribution on the
# original scale, which is then kept.
with_ratios <- function(sampler) {
  is_ratio <- if (has_default_reference(sampler)) {
    with_seed(seed_of_run(sampler$seed, ratios_key), find_ratios(sampler$target))
  }
  if (any(is_ratio)) with_scale(sampler, list(ratio = as.double(is_ratio))) else sampler
}

# Whether each variable is the log of the difference between a positive number and the one before it, by the program's
# outputs at some points. NULL where there are no outputs or no vectors.
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
