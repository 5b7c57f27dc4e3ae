# Islands held together: their records, and the draws of all of them in one matrix.

# By Student's t, of 95 %.
interval <- function(log_z, std_error, df) {
  half <- if (is.na(std_error)) NA_real_ else stats::qt(0.975, df) * std_error
  list(log_z = log_z, std_error = std_error, conf_low = log_z - half, conf_high = log_z + half)
}

# What of a record is not pooled.
of_island_alone <- function(record) {
  alone <- c("dead", "steps", "runs", "log_weights", "all", "shared", "mean", "within")
  record[intersect(names(record), alone)]
}

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
    is_large <- length(record$all$particles) >= large_run
    record <- pool_record(held, record, n, most)
    if (is_large) gc()
    n <- n + !is_dead(record)
    new <- c(new, list(record))
  }
  held$records <- lapply(add_up_covariances(c(held$records, new)), of_island_alone)
  for (name in names(held$draws)) {
    # of an island in which all died there are none
    n_each <- lengths(lapply(held$records, function(record) (if (name == "all") record$all else record)$log_weights))
    n <- sum(n_each)
    if (NROW(held$draws[[name]]) > n) held$draws[[name]] <- take_rows(held$draws[[name]], seq_len(n))
  }
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

# What is pooled of so many islands, and below it the same of one more; NULL for nothing. What there is
# of the first of a call gets room for all of them, which the others are written into.
put_after <- function(pooled, x, n_islands, most) {
  if (is.null(x)) {
    return(pooled)
  }
  n_rows <- most * NROW(x)
  if (is.null(pooled)) with_room(x, n_rows) else .Call(r_put_rows, with_room(pooled, n_rows), n_islands * NROW(x), x)
}

# A matrix, or a vector, with n rows, of which the first are those of x, and the others are yet to be
# written.
with_room <- function(x, n) if (NROW(x) == n) x else .Call(r_with_room, x, n)

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
      islands = islands, steps = bind_rows(lapply(living, `[[`, "steps")), moments = pool_moments(living),
      # no ancestor has descendants in two islands
      shared = sum(exp(2 * log_share) * vapply(living, `[[`, 0, "shared"))
    ),
    draws, weighed(living), list(reference = reference)
  )
}

# A row an island. start: the number of the first.
islands_table <- function(records, start = 1) {
  runs <- unclass(bind_rows(lapply(records, `[[`, "runs")))
  runs$run <- NULL
  as_table(c(list(island = as.integer(start - 1 + seq_along(records))), runs))
}
