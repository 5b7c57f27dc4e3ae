# What a fit keeps of an island's particles: all of them, a number of draws, or the moments
# of the variables. All else of a fit is made from what is kept.

# "draws", "moments", or a number of draws.
check_keep <- function(keep) {
  if (is.character(keep)) {
    check_choice(keep, "keep", c("draws", "moments"))
  } else if (is_number(keep)) {
    check_count(keep, "keep")
  } else {
    abort_argument(keep, "keep", "\"draws\", \"moments\" or a number of draws")
  }
}

# Of a run that tunes, the draws; of an island, what the sampler is to keep.
keep_of <- function(sampler, run) if (run == "final") sampler$keep else "draws"

# The record of a run without what is not kept. One that is reduced already stays as it is.
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

# How many particles the record of a run has that keeps draws, and how many there are in its `all`.
n_kept <- function(sampler, keep = sampler$keep) {
  n <- c(min(sampler$n_particles, rules$most_judged), sampler$n_particles)
  if (n[1] == n[2]) n[2] <- 0
  if (is.numeric(keep)) {
    n <- if (keep < n[1]) c(keep, 0) else pmin(n, c(Inf, keep))
  }
  n
}

# Of very many particles a part is enough for the bridge, the diagnostics and the fits, which need
# three times the memory that the particles take. The record becomes one of this part, and has in `all`
# the `particles` and `log_weights` of all.
judged_record <- function(record) {
  if (length(record$log_weights) > rules$most_judged) {
    all <- record[c("particles", "log_weights")]
    record <- thin_record(record, rules$most_judged)
    record$all <- all
  }
  record
}

# As many draws as asked for, each particle about as often as its weight says, so that they
# all weigh the same. Nothing of it is random: particles stand in the order in which they
# began, so that the draws are spread over the genealogies.
thin_record <- function(record, n) {
  if (n >= length(record$log_weights)) {
    return(record)
  }
  rows <- resample_systematic(record$log_weights, n)
  of_particles <- intersect(names(record), c("particles", "log_weights", of_draws))
  record[of_particles] <- lapply(record[of_particles], take_rows, rows)
  if (!is.null(record$origins)) {
    record$origins <- match(record$origins, record$origins) # within 1 to n: see pool_record()
  }
  record$log_weights <- rep(-log(n), n)
  record
}

# Of a matrix, or of a vector.
take_rows <- function(x, rows) if (is.matrix(x)) x[rows, , drop = FALSE] else x[rows]

# All draws of a record, where the rest of it is of a part of them.
all_draws <- function(record) if (is.null(record$all)) record else record$all

# moments -----------------------------------------------------------------------

# `mean` and `covariance` of the target's variables, and the `points` of points_of(), in place
# of the particles. Of what a program makes of its variables, which may be very many numbers, it is the variances.
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

# A covariance matrix is much larger than all else that is kept. So those of islands are
# added up, in their order, each in proportion to the island's estimate, and the sum is kept
# with the last of them that lives. It is `within`, a list of the `sum` and the log of the
# `scale` by which it must be multiplied.
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

# The moments of all islands together: `mean`, `covariance`, and `means`, those of the
# living islands, a row each. NULL where there are draws.
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

# Whether a fit can be extended with this `keep`; NULL is its own.
can_keep <- function(fit, keep) is.null(keep) || fit$keep == "draws" || fit$keep == keep

# An error where a fit has kept no draws.
check_has_draws <- function(fit) {
  if (!is.null(fit$moments)) {
    needs <- if (is.matrix(fit$moments$covariance)) "{.fn coef}, {.fn vcov}" else "{.fn coef}"
    abort(c(
      "The fit has no draws: of its islands only the moments were kept.",
      "i" = paste(needs, "and {.fn summary} need no more; for draws let {.arg keep} be a number.")
    ))
  }
}

# Four particles, or the origin of the unconstrained scale where all have died.
points_of <- function(record, sampler) {
  if (!is.null(record$points)) {
    return(record$points) # of an island of which no particles are kept
  }
  if (is.null(record$particles)) {
    return(matrix(0, 1, sampler$target$dim))
  }
  x <- unconstrained_particles(record)
  unname(x[unique(round(seq(1, nrow(x), length.out = 4))), , drop = FALSE])
}

# What is pooled of the draws of islands, beside their particles.
of_draws <- c("unconstrained", "coordinates", "gradients", "log_target", "origins")
