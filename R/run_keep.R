# Reduction of the particles of an island to what a fit keeps, the argument `keep`: all of them, a number of draws, or
# the moments of the variables. Called by run_sampler().

# The checked argument: "draws", "moments", or a number of draws.
check_keep <- function(keep) {
  if (is.character(keep)) {
    check_choice(keep, "keep", c("draws", "moments"))
  } else if (is_number(keep)) {
    check_count(keep, "keep")
  } else {
    abort_argument(keep, "keep", "\"draws\", \"moments\" or a number of draws")
  }
}

# What is kept of a run: all draws of an adapting run; of an island what the sampler says.
keep_of <- function(sampler, run) if (run == "final") sampler$keep else "draws"

# The record of a run, reduced to what is kept. A record that is already reduced stays as it is.
reduce_record <- function(record, sampler, keep = sampler$keep) {
  if (is_dead(record) || !is.null(record$mean)) {
    return(record)
  }
  record <- judged_record(record)
  if (keep == "moments") {
    only_moments(record, sampler)
  } else if (keep == "draws") {
    record
  } else if (keep < length(record$log_weights)) {
    thin_record(record[setdiff(names(record), "all")], keep)
  } else {
    record$all <- if (!is.null(record$all)) thin_record(record$all, keep)
    record
  }
}

# The number of particles in a record that keeps draws, and the number in its `all`, 0 for none.
n_kept <- function(sampler, keep = sampler$keep) {
  n <- c(min(sampler$n_particles, rules$most_judged), sampler$n_particles)
  if (n[1] == n[2]) n[2] <- 0
  if (is.numeric(keep)) {
    n <- if (keep < n[1]) c(keep, 0) else pmin(n, c(Inf, keep))
  }
  n
}

# For the bridge, the diagnostics and the fits, which need three times the memory of the particles, at most
# `most_judged` particles are used. The record is thinned to these, and has the `particles` and `log_weights` of all in
# `all`.
judged_record <- function(record) {
  if (length(record$log_weights) > rules$most_judged) {
    all <- record[c("particles", "log_weights")]
    record <- thin_record(record, rules$most_judged)
    record$all <- all
  }
  record
}

# The record with n draws of equal weight, by systematic resampling without random numbers. Particles are in the order
# of their ancestors, so the draws are spread over the genealogies.
thin_record <- function(record, n) {
  if (n >= length(record$log_weights)) {
    return(record)
  }
  rows <- resample_systematic(record$log_weights, n)
  of_particles <- intersect(names(record), c("particles", "log_weights", of_draws))
  record[of_particles] <- lapply(record[of_particles], take_rows, rows)
  if (!is.null(record$origins)) {
    record$origins <- match(record$origins, record$origins) # from 1 to n, as pool_record() requires
  }
  record$log_weights <- rep(-log(n), n)
  record
}

# Rows of a matrix, or elements of a vector.
take_rows <- function(x, rows) if (is.matrix(x)) x[rows, , drop = FALSE] else x[rows]

# The particles and weights of all draws of a record, also of a thinned one.
all_draws <- function(record) if (is.null(record$all)) record else record$all

# moments -----------------------------------------------------------------------

# The record with the `mean` and `covariance` of the target's variables, and the `points` of points_of(), instead of the
# particles. For the outputs of a program, which may be many, `covariance` has only the variances.
only_moments <- function(record, sampler) {
  all <- all_draws(record)
  w <- exp(all$log_weights)
  x <- outputs_of(sampler$target, all$particles, all$log_weights)
  mean <- unname(weighted_mean(x, w))
  c(
    record[c("dead", "steps", "runs", "reference", "shared")],
    list(
      mean = mean,
      covariance = if (is.null(sampler$target$outputs)) {
        weighted_covariance(x, w, mean)
      } else {
        stats::setNames(weighted_squares(sweep(x, 2, mean), w), colnames(x))
      },
      points = points_of(record, sampler)
    )
  )
}

# Covariance matrices are much larger than all else that is kept. So only the sum of those of the islands is kept, each
# weighted by the island's estimate, in the record of the last island with particles. It is `within`, a list of the
# `sum` and the log of the `scale` by which it must be multiplied.
add_up_covariances <- function(records) {
  within <- NULL
  for (i in which(!vapply(records, is_dead, NA))) {
    record <- records[[i]]
    if (is.null(within) || !is.null(record$within)) {
      within <- record$within
    }
    if (!is.null(record$covariance)) {
      if (is.null(within)) within <- list(sum = 0, scale = -Inf)
      within <- add_covariance(within, record$covariance, record$runs$log_z)
    }
    records[[i]][c("covariance", "within")] <- NULL
    last <- i
  }
  if (!is.null(within)) {
    records[[last]]$within <- within
  }
  records
}

add_covariance <- function(within, covariance, log_z) {
  scale <- max(within$scale, log_z)
  list(
    sum = exp(within$scale - scale) * within$sum + exp(log_z - scale) * covariance,
    scale = scale
  )
}

# The moments of all islands together: `mean`, `covariance`, and `means`, with a row for each island with particles.
# NULL where draws are kept.
pool_moments <- function(living) {
  if (is.null(living[[1]]$mean)) {
    return(NULL)
  }
  log_z <- vapply(living, function(record) record$runs$log_z, 0)
  share <- exp(normalise_log(log_z))
  within <- living[[length(living)]]$within
  means <- do.call(rbind, lapply(living, `[[`, "mean"))
  has_all <- is.matrix(within$sum)
  colnames(means) <- if (has_all) colnames(within$sum) else names(within$sum)
  mean <- colSums(share * means)
  scale <- exp(within$scale - max(log_z)) / sum(exp(log_z - max(log_z)))
  between <- sqrt(share) * sweep(means, 2, mean)
  list(
    mean = mean,
    covariance = scale * within$sum + if (has_all) crossprod(between) else colSums(between^2),
    means = means
  )
}

# of a fit ----------------------------------------------------------------------

# Whether a fit can be extended with this `keep`; NULL for that of the fit.
can_keep <- function(fit, keep) is.null(keep) || fit$keep == "draws" || fit$keep == keep

# An error where a fit has kept no draws.
check_has_draws <- function(fit) {
  if (!is.null(fit$moments)) {
    available <- if (is.matrix(fit$moments$covariance)) "{.fn coef}, {.fn vcov}" else "{.fn coef}"
    abort(c(
      "The fit has no draws: of its islands only the moments were kept.",
      "i" = paste(available, "and {.fn summary} are available. For draws fit again, with a number as {.arg keep}.")
    ))
  }
}

# Four particles on the unconstrained scale, or its origin where all have died: points at which a checkpoint compares
# the target.
points_of <- function(record, sampler) {
  if (!is.null(record$points)) {
    return(record$points) # where only moments are kept
  }
  if (is.null(record$particles)) {
    return(matrix(0, 1, sampler$target$dim))
  }
  x <- unconstrained_particles(record)
  unname(x[unique(round(seq(1, nrow(x), length.out = 4))), , drop = FALSE])
}

# Elements of a record with a row for each draw, apart from the particles and weights.
of_draws <- c("unconstrained", "coordinates", "gradients", "log_target", "origins")
