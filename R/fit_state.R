# `fit$state`: what smc_extend() needs to add islands, without copies of what the fit has already.

# A list of the `records` of the islands, without their pooled draws; the pooled `draws`, without those in the fit
# itself; the number at which islands `start`; whether there is a bridge estimate; and the parts of the `course` of
# adaptation that diagnostics and tables use.
state_of_fit <- function(result, sampler, bridges) {
  course <- result$course
  if (!is.null(course)) {
    brief <- function(record) {
      c(record[c("steps", "runs")], if (has_exact_precisions(record$reference)) record["reference"])
    }
    probes <- probes_of(course)
    told <- c("scout", "surrogate", "given_fit", "records", "used", "best", "passes", "estimate")
    course <- course[intersect(names(course), told)]
    course$records <- lapply(course$records, brief)
    course$best <- list(runs = course$best$runs["label"], is_fitted = course$best$is_fitted)
    course$probes <- probes
  }
  final <- result$final
  c(
    state_of_islands(final, as.list(final$records), sampler$target),
    list(start = if (is.null(final)) 1 else final$start, bridges = bridges, course = course)
  )
}

state_of_islands <- function(final, records, target) {
  draws <- final[intersect(names(final), c("particles", of_draws, "all"))]
  draws$all <- final$all$particles
  if (is.null(target$outputs)) draws[[drawn(final)]] <- NULL # they are in the fit itself
  list(records = records, draws = draws)
}

# The element of a record with the draws of the fit.
drawn <- function(record) if (is.null(record$all)) "particles" else "all"

# The draws of all islands of a fit, as pool_islands() returns them.
pooled_draws <- function(fit) {
  draws <- fit$state$draws
  living <- Filter(Negate(is_dead), fit$state$records)
  if (length(living) > 0 && is.null(fit$moments)) {
    own <- drawn(living[[1]])
    if (is.null(draws[[own]])) draws[[own]] <- fit$particles
  }
  draws
}

# The draws on the unconstrained scale from which the `outputs` of a target are computed; NULL if the fit has none.
kept_draws <- function(fit) {
  if (!is.null(fit$folded)) {
    return(fit$folded)
  }
  pooled <- pooled_draws(fit)
  if (is.null(pooled$all)) pooled$particles else pooled$all
}

# The same; an error if there are none.
state_draws <- function(fit) {
  u <- kept_draws(fit)
  if (is.null(u)) {
    abort("Draws on the unconstrained scale are those of a fit with islands, of {.fn smc} or {.fn smc_run}.")
  }
  u
}

# The record of an island, with its draws from the pooled ones: the inverse of pool_record().
whole_record <- function(fit, i) {
  record <- fit$state$records[[i]]
  record$reference <- fit$reference
  if (is_dead(record) || !is.null(record$mean)) {
    return(record)
  }
  n_before <- n_living(fit$state$records[seq_len(i)]) - 1L
  rows_of_island <- function(x, n) take_rows(x, n_before * n + seq_len(n))
  pooled <- pooled_draws(fit)
  n <- length(record$log_weights)
  own <- lapply(pooled[setdiff(names(pooled), "all")], rows_of_island, n)
  own$origins <- own$origins - (n_before + 1L) * n
  record$all$particles <- if (!is.null(pooled$all)) {
    rows_of_island(pooled$all, length(record$all$log_weights))
  }
  c(record, own)
}

# so: what does not work without the state.
check_has_state <- function(fit, so) {
  check_version(fit, so)
  if (is.null(fit$state)) {
    abort("{.arg fit} has no {.field state}: {so}.")
  }
}

# The elements of a fit that describe the draws of a record, or of pooled islands.
draws_of <- function(record, target) {
  all <- all_draws(record)
  list(
    particles = if (is.null(record$moments)) {
      outputs_of(target, all$particles, all$log_weights)
    } else {
      t(record$moments$mean)[0, , drop = FALSE]
    },
    log_weights = all$log_weights, island = all$island, moments = record$moments
  )
}

# The versions and libraries on which the last digits of a fit depend.
session_facts <- function() {
  list(
    autosmc = own_version(),
    r = paste(R.version$major, R.version$minor, sep = "."),
    platform = R.version$platform,
    blas = unname(extSoftVersion()["BLAS"]),
    lapack = La_version()
  )
}

# The fit with fewer draws of its islands, or only their moments. Estimates and diagnostics remain.
reduce_fit <- function(fit, keep) {
  if (keep == fit$keep) {
    return(fit)
  }
  fit$keep <- keep
  if (length(fit$state$records) == 0) {
    return(fit) # of smc_adapt(), which has no islands yet
  }
  held <- hold_islands()
  pool_islands(held, seq_along(fit$state$records), function(i) reduce_record(whole_record(fit, i), fit))
  final <- with_images(pool(held, fit$reference, fit$state$start), fit$target)
  draws <- draws_of(final, fit$target)
  fit[names(draws)] <- draws
  of_islands <- state_of_islands(final, held$records, fit$target)
  fit$state[names(of_islands)] <- of_islands
  fit
}
