# The verdict on two records, of runs that tune or of islands: by their evidence first, by what they cost second.

# Whether a record takes the place of the best so far, which is NULL at first. What an estimate misses makes it lower:
# so the higher one is the better, whatever it costs. Where evidence does not decide, the first candidates stand in
# the order of preference; and what was fitted to the draws of the best takes over, unless it costs more.
takes_over <- function(record, best) {
  if (is_dead(record) || is.null(best)) {
    return(!is_dead(record))
  }
  if (is_higher(record, best, 0)) {
    return(TRUE)
  }
  # islands have no bias, runs that tune a small one; and the best of several of these is so by chance, too
  margin <- if (is_of_islands(record)) 0 else if (is_of_islands(best)) rules$margin else rules$fall
  if (is_higher(best, record, margin)) {
    return(FALSE)
  }
  record$reason != "first" && (!are_comparable(record, best) || !costs_more(record, best))
}

# Whether a record leaves nothing to gain for others of the first: it has come to the target in a single step, where the
# scout has found one basin, and the user has given no reference.
ends_race <- function(record, is_better, sampler) {
  is_better && record$reason == "first" && record$is_fitted && nrow(record$steps) == 1 &&
    is.null(sampler$scout$references$cover) && has_default_reference(sampler)
}

# Whether the estimate of the first is higher by more than the errors and a margin. One that rests on a single genealogy
# is chance.
is_higher <- function(record, other, margin) {
  error <- sqrt(record$runs$predicted_sd^2 + other$runs$predicted_sd^2)
  rise <- record$runs$log_z - other$runs$log_z
  !is_one_genealogy(record) && isTRUE(rise > margin + rules$errors_apart * error)
}

is_one_genealogy <- function(record) record$shared > rules$one_genealogy

is_of_islands <- function(record) isTRUE(record$of_islands)

# Whether what two records cost can be compared: the barrier of a small run is of the part that its few particles saw,
# each kernel has its own but those whose weights do not depend on the moves, and that of islands is of shorter steps.
are_comparable <- function(record, best) {
  if (is_of_islands(record) || is_of_islands(best)) {
    return(is_of_islands(record) && is_of_islands(best))
  }
  record$runs$n_particles <= best$runs$n_particles &&
    (record$runs$kernel == best$runs$kernel || record$kernel$adjusted && best$kernel$adjusted)
}

# Beyond what may be chance: more steps for the same evaluations, or, of islands, more of them for the same error.
costs_more <- function(record, best) {
  if (is_of_islands(record)) {
    isTRUE(record$std_error > rules$spoilt * best$std_error)
  } else {
    record$runs$barrier > rules$equal_barrier * best$runs$barrier
  }
}

# Whether another round is worth its cost: as long as the barrier falls, or the particles are wider than the reference,
# unless that is the target already; and when a fit was rejected, as long as there is another.
is_worth_another <- function(record, before, is_better, allowed) {
  if (!is_better) {
    return(length(allowed) > 0)
  }
  !is_exact_reference(record$reference) && (
    is.null(before) || !are_comparable(record, before) ||
      record$runs$barrier < rules$lower_barrier * before$runs$barrier || is_too_wide(record)
  )
}

# Whether particles are wider than a normal reference somewhere, by more than chance.
is_too_wide <- function(record) {
  if (!inherits(record$reference, "smc_reference_gaussian")) {
    return(FALSE)
  }
  chance <- rules$errors_seen * sqrt(2 / n_genealogies(record))
  widest(record) > 1 + chance
}
