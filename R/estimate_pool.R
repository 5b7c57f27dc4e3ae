# Pooling of islands: the draws of all islands in one matrix, weighted by the islands' estimates. Called by
# run_islands().

# An estimate with its 95 % confidence interval, by Student's t with `df` degrees of freedom.
interval <- function(log_z, std_error, df) {
  half <- if (is.na(std_error)) NA_real_ else stats::qt(0.975, df) * std_error
  list(log_z = log_z, std_error = std_error, conf_low = log_z - half, conf_high = log_z + half)
}

# The parts of a record that are not pooled.
of_island_alone <- function(record) {
  alone <- c("dead", "steps", "runs", "log_weights", "all", "shared", "mean", "within")
  record[intersect(names(record), alone)]
}

# An environment for pooled islands: their `records` without the pooled parts, and the pooled `draws`. Where only part
# of the particles have gradients and coordinates, `draws$all` has all of them. Draws are added in place, without a
# copy.
hold_islands <- function(records = list(), draws = list()) {
  list2env(list(records = records, draws = draws), parent = emptyenv())
}

# Adds the islands with these numbers. record_of: a function that returns the record of one of them. It is called when
# the one before has been pooled, so that the draws of only one island are in memory twice.
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
    # islands in which all particles died have no draws
    n_each <- lengths(lapply(held$records, function(record) (if (name == "all") record$all else record)$log_weights))
    n <- sum(n_each)
    if (NROW(held$draws[[name]]) > n) held$draws[[name]] <- take_rows(held$draws[[name]], seq_len(n))
  }
}

# Appends the draws of an island to those of n others, and returns its record without them. most: the number of islands
# for which memory is reserved.
pool_record <- function(held, record, n, most) {
  if (!is.null(record$origins)) {
    # the initial particles of different islands get different numbers
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

# The pooled matrix or vector of `n_islands` islands with x appended; NULL where both are NULL. At the first island of a
# call memory for `most` islands is reserved, into which the others are written.
put_after <- function(pooled, x, n_islands, most) {
  if (is.null(x)) {
    return(pooled)
  }
  n_rows <- most * NROW(x)
  if (is.null(pooled)) with_room(x, n_rows) else .Call(r_put_rows, with_room(pooled, n_rows), n_islands * NROW(x), x)
}

# x, a matrix or a vector, extended to n rows, of which the further ones are not yet set.
with_room <- function(x, n) if (NROW(x) == n) x else .Call(r_with_room, x, n)

# The draws pooled with weights in proportion to each island's estimate: list(islands, steps, ...), with a table with a
# row for each island, the steps of all, and the pooled particles as in a record, also in `all`, with the `island` of
# each, or their `moments`. Islands in which all particles died only have a row in the table. start: the number of the
# first island.
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
      # two draws of different islands have no common ancestor
      shared = sum(exp(2 * log_share) * vapply(living, `[[`, 0, "shared"))
    ),
    draws, weighed(living), list(reference = reference)
  )
}

# A table with a row for each island.
islands_table <- function(records, start = 1) {
  runs <- unclass(bind_rows(lapply(records, `[[`, "runs")))
  runs$run <- NULL
  as_table(c(list(island = as.integer(start - 1 + seq_along(records))), runs))
}
