# The comparison of two records, of adapting runs or of islands: by their evidence first, by their cost second.

# Whether a record replaces the best one so far, which is NULL at first. An estimate that misses mass is too low, so the
# higher one is better whatever its cost. Where the estimates do not differ significantly, the first candidates keep
# their order of preference, and a later reference replaces the best one unless it costs more.
replaces_best <- function(record, best) {
  if (is_dead(record) || is.null(best)) {
    return(!is_dead(record))
  }
  if (is_higher(record, best, 0)) {
    return(TRUE)
  }
  # adapting runs have a small bias, and the best of several of them is selected by chance too
  margin <- if (is_of_islands(record)) 0 else if (is_of_islands(best)) rules$margin else rules$fall
  if (is_higher(best, record, margin)) {
    return(FALSE)
  }
  record$reason != "first" && (!are_comparable(record, best) || !costs_more(record, best))
}

# Whether no other first candidate need be run: this one has reached the target in a single step, the scout has found
# one basin, and the user has given no reference.
ends_race <- function(record, is_better, sampler) {
  is_better && record$reason == "first" && record$is_fitted && nrow(record$steps) == 1 &&
    is.null(sampler$scout$references$cover) && has_default_reference(sampler)
}

# Whether the first estimate is significantly higher, by more than the margin. An estimate from draws with essentially a
# single ancestor is unreliable and never counts as higher.
is_higher <- function(record, other, margin) {
  error <- sqrt(record$runs$predicted_sd^2 + other$runs$predicted_sd^2)
  rise <- record$runs$log_z - other$runs$log_z
  !is_one_genealogy(record) && isTRUE(rise > margin + rules$errors_apart * error)
}

is_one_genealogy <- function(record) record$shared > rules$one_genealogy

is_of_islands <- function(record) isTRUE(record$of_islands)

# Whether the costs of two records are comparable. The barrier of a run with few particles covers only what these have
# reached; it depends on the kernel, except for adjusted kernels; and islands have shorter steps than adapting runs.
are_comparable <- function(record, best) {
  if (is_of_islands(record) || is_of_islands(best)) {
    return(is_of_islands(record) && is_of_islands(best))
  }
  record$runs$n_particles <= best$runs$n_particles &&
    (record$runs$kernel == best$runs$kernel || record$kernel$adjusted && best$kernel$adjusted)
}

# Whether a record costs significantly more: by its barrier, or for islands by their standard error.
costs_more <- function(record, best) {
  if (is_of_islands(record)) {
    isTRUE(record$std_error > rules$spoilt * best$std_error)
  } else {
    record$runs$barrier > rules$equal_barrier * best$runs$barrier
  }
}

# Whether another round is likely to help: as long as the barrier falls or the particles are wider than the reference,
# unless the reference is exact; and after a rejected reference as long as another rung is allowed.
needs_another_round <- function(record, before, is_better, allowed) {
  if (!is_better) {
    return(length(allowed) > 0)
  }
  !is_exact_reference(record$reference) && (
    is.null(before) || !are_comparable(record, before) ||
      record$runs$barrier < rules$lower_barrier * before$runs$barrier || is_too_wide(record)
  )
}

# Whether particles are significantly wider than a normal reference in some direction.
is_too_wide <- function(record) {
  if (!inherits(record$reference, "smc_reference_gaussian")) {
    return(FALSE)
  }
  chance <- rules$errors_seen * sqrt(2 / n_genealogies(record))
  widest(record) > 1 + chance
}
