# Checks of values read from a checkpoint. The functions that the `*_restorer()` functions make return NULL, or raise an
# error, where a stored value cannot be the result of such a run. They are the argument `restore` of open_entry().

# Largest relative difference of a real number between machines: far above rounding, and below any change by a user.
same_setting <- 1e-6

# Whether x has the type, length, dimensions and names of another value, and recursively its elements.
has_form <- function(x, like) {
  if (is.list(like)) {
    is.list(x) && length(x) == length(like) && identical(names(x), names(like)) && all(unlist(Map(has_form, x, like)))
  } else {
    typeof(x) == typeof(like) && length(x) == length(like) && identical(dim(x), dim(like))
  }
}

# A record as it is stored: without the reference, which the sampler has, and without what with_images() computes.
stored_record <- function(record) {
  record[setdiff(names(record), c("reference", if (!is.null(record$coordinates)) made_by_maps))]
}

record_restorer <- function(sampler, path, run, index) {
  function(record) {
    is_valid <- is.list(record) && are_steps_of(record, sampler, path, run, index) &&
      if (is_dead(record)) is_death(record, sampler, run) else is_island(record, sampler, run)
    if (is_valid) {
      record$reference <- sampler$reference
      with_images(record, sampler$target)
    }
  }
}

# Whether the tables of a record can be those of this run.
are_steps_of <- function(record, sampler, path, run, index) {
  n <- NROW(record$steps)
  most <- max(path$n_steps, length(path$lambda))
  like <- tables_like(sampler, run, index, n, is_dead(record))
  own <- c("run", "round", "island", "step")
  of_run <- c("run", "round", "biased", "n_particles", "n_steps")
  n <= most && has_form(record[c("steps", "runs")], like) &&
    identical(record$steps[own], like$steps[own]) && identical(record$runs[of_run], like$runs[of_run]) &&
    (is_dead(record) || is.finite(record$runs$log_z) && is.list(check_schedule_frame(record$steps, sampler$kernel)))
}

# The tables of a run with `n_steps` steps, with zeros for its results.
tables_like <- function(sampler, run, index, n_steps, is_dead) {
  trace <- lapply(stats::setNames(nm = step_columns), function(name) numeric(n_steps))
  trace$n_objective_evals <- trace$tuner_status <- integer(n_steps)
  trace$resampled <- logical(n_steps)
  result <- list(
    status = if (is_dead) status_dead else 0, n_done = n_steps, n_evals = 0, n_calls = 0, n_impossible = 0,
    trace = trace
  )
  steps <- steps_table(result, run, index)
  list(steps = steps, runs = runs_table(result, run, index, sampler, steps, seconds = 0, shared = 0))
}

is_death <- function(record, sampler, run) {
  death <- record$dead
  n <- NROW(death$at)
  n <= sampler$n_particles &&
    has_form(death, list(step = 0L, run = "", at = matrix(0, n, sampler$target$dim))) &&
    death$run == run && death$step %in% 0:(nrow(record$steps) + 1) && length(record) == 3
}

# Whether the particles, or moments, of a record have the right numbers and possible values.
is_island <- function(record, sampler, run) {
  d <- sampler$target$dim
  parts <- without_null(record[setdiff(names(record), c("dead", "steps", "runs"))])
  keep <- keep_of(sampler, run)
  if (keep == "moments") {
    k <- length(record$mean)
    like <- list(
      shared = 0, mean = numeric(k),
      covariance = if (is.null(sampler$target$outputs)) matrix(0, k, k) else numeric(k),
      points = matrix(0, NROW(record$points), d)
    )
    return(k > 0 && nrow(like$points) %in% 1:4 && has_form(parts, like) && is_finite(parts))
  }
  n <- n_kept(sampler, keep)
  matrices <- c("coordinates", if (sampler$kernel$gradients) "gradients")
  like <- c(
    list(log_weights = numeric(n[1]), shared = 0),
    lapply(stats::setNames(nm = matrices), function(name) matrix(0, n[1], d)),
    list(log_target = numeric(n[1]), origins = integer(n[1])),
    if (n[2] > 0) list(all = list(particles = matrix(0, n[2], d), log_weights = numeric(n[2])))
  )
  are_weights <- function(x) !anyNA(x) && abs(sum(exp(x)) - 1) < same_setting
  setequal(names(parts), names(like)) && has_form(parts[names(like)], like) &&
    are_weights(record$log_weights) && (n[2] == 0 || are_weights(record$all$log_weights)) &&
    all(is.finite(record$coordinates)) && all(record$origins %in% 0:sampler$n_particles) &&
    record$shared > 0 && record$shared <= 1 + same_setting
}

numbers_restorer <- function(n) function(x) if (has_form(x, numeric(n))) x

# For the result of find_scale_of_bounded().
scale_restorer <- function(sampler) {
  d <- sampler$target$dim
  function(found) {
    counts <- c(as.list(zero_counts), seconds = 0)
    of_each <- found$scale[setdiff(names(found$scale), "sums")]
    are_valid <- all(names(found$scale) %in% scale_names) && all(vapply(of_each, function(x) {
      has_form(x, numeric(d)) && all(abs(x) <= 1)
    }, NA)) && all(is.finite(constrain(with_scale_of(sampler$target, found$scale), numeric(d))))
    if (are_valid && has_form(found$counts, counts) && is_finite(found$counts)) found
  }
}

# For the result of the scout. Its references are checked by evaluating their maps in the compiled code.
scout_restorer <- function(sampler) {
  d <- sampler$target$dim
  is_reference <- function(reference) {
    image <- forward_maps(maps_of(check_reference(reference, sampler$target), d), matrix(0, 1, d))$x
    are_parts <- function(mixture) {
      k <- length(mixture$weights)
      like <- list(weights = numeric(k), means = matrix(0, d, k), factors = array(0, c(d, d, k)))
      has_form(mixture, like) && is_finite(mixture) && all(mixture$weights > 0)
    }
    is_plain <- is.null(reference$mixture) && is.null(reference$basins) && is.null(reference$copies)
    !is_function_reference(reference) && all(is.finite(image)) && if (is_mixture(reference)) {
      are_parts(reference$mixture) && are_parts(reference$basins) && are_copies(reference$copies, d)
    } else {
      is_plain
    }
  }
  function(scout) {
    k <- length(scout$normals)
    counts <- scout[c("n_dropped", names(zero_counts), "seconds")]
    is_valid <- inherits(scout, "smc_scout") &&
      has_form(scout$basins, list(elbo = numeric(k), elbo_error = numeric(k), n_paths = numeric(k))) &&
      all(names(scout$references) %in% c("best", "shape", "cover")) &&
      all(vapply(c(scout$normals, scout$references), is_reference, NA)) &&
      has_form(scout$standard_elbo, 0) && all(vapply(counts, is_number, NA))
    if (is_valid) scout
  }
}

# Whether `copies` is NULL or the valid copies of a reference in d variables (see learn_copies.R).
are_copies <- function(copies, d) {
  n <- NROW(copies$frame)
  is.null(copies) || has_form(copies, list(frame = matrix(0, n, d), moves = copies$moves)) &&
    isTRUE(all.equal(crossprod(copies$frame), diag(d))) && is.matrix(copies$moves) && is.numeric(copies$moves) &&
    all(apply(abs(copies$moves), 1, function(move) setequal(move, seq_len(n)) && length(move) == n))
}
