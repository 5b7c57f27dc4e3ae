# Islands: runs that differ in nothing but their key, and the estimate that they make
# together.

# How many islands: a number, or as many as a precision takes. max_bridged: for how many
# bridges may be made in all, where they are made again as islands are added.
check_islands <- function(islands, precision, max_islands) {
  most <- rules$islands_apart - 1 # more would meet those of a further pass
  islands <- check_count(islands, "islands", max = most)
  max_islands <- check_count(max_islands, "max_islands", max = most)
  if (!is.null(precision)) {
    precision <- check_number(precision, "precision", min = 0, open = TRUE)
    max_islands <- check_count(max_islands, "max_islands", min = 2, max = most)
    islands <- min(max(islands, 4L), max_islands) # fewer say little of an error
  }
  list(
    islands = islands, precision = precision, max_islands = max_islands, max_bridged = Inf
  )
}

# That matrices can have the draws of so many islands, with their coordinates and gradients.
check_n_draws <- function(sampler, islands) {
  n <- n_kept(sampler)
  if (sampler$keep != "moments" && (islands + 1) * max(n) > .Machine$integer.max) {
    abort_memory(8 * islands * sampler$target$dim * (max(n) + 2 * n[1]))
  }
}

# The final runs along a path, as pool() returns them, with their `estimates`. start: the
# number of the first. held: islands that there are already, as of hold_islands().
run_islands <- function(sampler, path, islands, start = 1, held = hold_islands()) {
  n_evaluated <- n_bridged <- 0
  n_more <- islands$islands - length(held$records)
  repeat {
    indices <- start - 1 + length(held$records) + seq_len(n_more)
    record_of <- islands_in_turn(sampler, indices, path)
    pool_islands(held, indices, record_of, sampler = sampler, path = path, run = "final")
    final <- estimate_evidence(sampler, held, start, islands$bridges)
    n <- length(held$records)
    n_evaluated <- n_evaluated + final$n_bridge_evals
    n_bridged <- n_bridged + n
    n_more <- n_wanted(final, n, islands)
    if (n_more <= 0 || n_bridged + n + n_more > islands$max_bridged) {
      break
    }
    announce_islands(sampler, n_more, final$islands)
    final <- NULL # with draws that are also held
  }
  if (all_dead(held$records)) {
    abort_dead(held$records[[1]], sampler)
  }
  final <- with_images(final, sampler$target)
  final$n_bridge_evals <- n_evaluated
  final$start <- start
  final$records <- held$records
  final
}

# What of a record is not pooled.
of_island_alone <- function(record) {
  alone <- c("dead", "steps", "runs", "log_weights", "all", "shared", "mean", "within")
  record[intersect(names(record), alone)]
}

# How many islands are added to n for a precision that is not reached yet: as many as the
# error so far calls for, within limits.
n_wanted <- function(final, n, islands) {
  if (is.null(islands$precision)) {
    return(0)
  }
  error <- headline(final$estimates)$std_error
  if (isTRUE(error <= islands$precision)) {
    return(0)
  }
  needed <- if (is.finite(error)) ceiling(n * ((error / islands$precision)^2 - 1)) else n
  batch <- min(max(rules$fewest_added, needed), rules$most_added)
  max(min(batch, islands$max_islands - n), 0)
}

# What further islands will cost, before they are run.
announce_islands <- function(sampler, n, islands) {
  if (!isTRUE(sampler$show_progress) || is.null(islands)) {
    return()
  }
  each <- function(column) mean(islands[[column]], na.rm = TRUE)
  evaluations <- count(round(n * each("n_target_evals")))
  time <- duration(n * each("seconds"))
  cli::cli_inform(
    c("i" = "{n} more island{?s} for the precision: {evaluations} evaluations of the target,
      about {time} of computing."),
    class = "autosmc_message_cost"
  )
}

all_dead <- function(records) all(vapply(records, is_dead, NA))

# pooled draws ------------------------------------------------------------------

# Islands that are held together: their `records`, without what is pooled, and the pooled `draws`, of
# which `all` are the particles where the others are of a part of them. An environment, so that nothing
# else holds these, and they are added to in place.
hold_islands <- function(records = list(), draws = list()) {
  list2env(list(records = records, draws = draws), parent = emptyenv())
}

# Adds islands with these numbers. record_of: the record of each. It is asked for when the one before is
# pooled, so that no more than one is there twice.
pool_islands <- function(held, indices, record_of, ...) {
  n <- n_living(held$records)
  most <- n + length(indices)
  new <- list()
  for (index in indices) {
    record <- record_of(index, ...)
    is_large <- length(record$all$particles) >= rules$large_island
    record <- pool_record(held, record, n, most)
    if (is_large && most > 1) gc() # R would wait until there is half as much again
    n <- n + !is_dead(record)
    new <- c(new, list(record))
  }
  held$records <- lapply(add_up_covariances(c(held$records, new)), of_island_alone)
  for (name in names(held$draws)) {
    n_draws <- sum(vapply(held$records, function(record) n_weights(record, name), 0))
    held$draws[name] <- list(first_rows(held$draws[[name]], n_draws))
  }
}

# How many draws an island has; none where all died.
n_weights <- function(record, name) {
  length(if (name == "all") record$all$log_weights else record$log_weights)
}

# Puts the draws of an island after those of n others, and returns its record without them. most: for how
# many living islands there is to be room.
pool_record <- function(held, record, n, most) {
  if (!is.null(record$origins)) {
    # the first particles of each island get numbers of their own
    record$origins <- record$origins + (n + 1L) * length(record$origins)
  }
  for (name in c("particles", of_draws)) {
    pooled <- if (!name %in% made_by_maps) put_after(held$draws[[name]], record[[name]], n, most)
    held$draws[name] <- list(pooled)
  }
  held$draws$all <- put_after(held$draws$all, record$all$particles, n, most)
  record$all$particles <- NULL
  record[setdiff(names(record), c("particles", of_draws))]
}

# What is made of the pooled coordinates when the islands are all there, and takes no memory before.
made_by_maps <- c("particles", "unconstrained")

# Pooled draws with these, which are to the last bit those that the islands had.
with_images <- function(final, target) {
  if (!is.null(final$coordinates)) {
    x <- through_maps(maps_of(final$reference, target$dim), final$coordinates)$x
    scale <- scale_maps(target)
    final["unconstrained"] <- list(if (!is.null(scale)) x)
    final$particles <- name_columns(through_maps(scale, x)$x, target$names)
  }
  final
}

n_living <- function(records) sum(!vapply(records, is_dead, NA))

# What is pooled of so many islands, and below it the same of one more; NULL for nothing. What there is
# of the first of a call gets room for all of them, which the others are written into.
put_after <- function(pooled, x, n_islands, most) {
  if (is.null(x)) {
    return(pooled)
  }
  n_rows <- most * NROW(x)
  if (is.null(pooled)) {
    return(with_room(x, n_rows))
  }
  .Call(r_put_rows, with_room(pooled, n_rows), n_islands * NROW(x), x)
}

# A matrix, or a vector, with n rows, of which the first are those of x, and the others are yet to be
# written.
with_room <- function(x, n) if (NROW(x) == n) x else .Call(r_with_room, x, n)

# The first n rows, where there is room for more.
first_rows <- function(x, n) if (NROW(x) > n) take_rows(x, seq_len(n)) else x

# Draws are pooled with weights in proportion to each island's estimate. Returns
# list(islands, steps, ...): a table with a row an island, the steps of all, and the
# pooled particles as a record has them, also in `all`, with the `island` of each, or their
# `moments`; islands in which all died add nothing but their row.
pool <- function(held, reference, start = 1) {
  islands <- islands_table(held$records, start)
  alive <- which(!vapply(held$records, is_dead, NA))
  living <- held$records[alive]
  log_share <- normalise_log(islands$log_z)[alive]
  weighed <- function(draws) {
    weights <- Map(`+`, lapply(draws, `[[`, "log_weights"), log_share)
    list(log_weights = unlist(weights), island = rep(islands$island[alive], lengths(weights)))
  }
  draws <- held$draws
  if (!is.null(draws$all)) {
    draws$all <- c(list(particles = draws$all), weighed(lapply(living, `[[`, "all")))
  }
  c(
    list(
      islands = islands,
      steps = bind_rows(lapply(living, `[[`, "steps")),
      moments = pool_moments(living),
      # no ancestor has descendants in two islands
      shared = sum(exp(2 * log_share) * vapply(living, `[[`, 0, "shared"))
    ),
    draws,
    weighed(living),
    list(reference = reference)
  )
}

# A row an island. start: the number of the first.
islands_table <- function(records, start = 1) {
  runs <- unclass(bind_rows(lapply(records, `[[`, "runs")))
  runs$run <- NULL
  as_table(c(list(island = as.integer(start - 1 + seq_along(records))), runs))
}

#' Repeat the unbiased run of a fit
#'
#' Runs the sampler again and again with the schedule and the reference of a fit
#' and with fresh randomness, to see how its estimates scatter.
#'
#' @param fit a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param n number of runs (positive integer).
#' @param seed a whole number from 0 to 2^32 - 1; NULL to draw one from R's
#'   generator.
#' @return A data frame with a row a run: `replicate`, `log_z`, `ess` (of the final
#'   particles), `barrier`, `n_target_evals` and `seconds`. A run that loses all its
#'   particles is an estimate of zero: its `log_z` is -Inf and its `ess` 0, its
#'   `barrier` and `seconds` are NA.
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1),
#'   n_particles = 128, n_steps = 8, islands = 1, seed = 1
#' )
#' smc_replicate(fit, 5, seed = 2)
#' @export
smc_replicate <- function(fit, n, seed = NULL) {
  check_class(fit, "fit", "smc_fit", "smc()")
  check_version(fit, "its runs cannot be repeated")
  n <- check_n(n, "n")
  sampler <- sampler_of_fit(fit, seed)
  records <- once_each(
    lapply_islands(sampler, seq_len(n), as.list(fit$schedule), row_of_run)
  )
  columns <- c("log_z", "ess", "barrier", "n_target_evals", "seconds")
  tibble::tibble(
    replicate = seq_len(n),
    bind_rows(lapply(records, `[[`, "runs"))[columns]
  )
}

# All that smc_replicate() needs of a run, and what comes back from a worker.
row_of_run <- function(...) run_sampler(...)["runs"]
