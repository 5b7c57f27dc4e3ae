# Batch and match: normal distributions brought closer to the target by the gradients at their own draws.

# The normal with its `elbo`, the mean of log target - log normal over draws z from it, which is below the log
# evidence but for noise; with the standard error, `elbo_error`. Where some of the draws are impossible it
# is that of the normal on the possible part alone.
with_elbo <- function(normal, z, log_density) {
  ok <- log_density > -Inf
  z <- z[ok, , drop = FALSE]
  ratio <- log_density[ok] + rowSums(z^2) / 2 + ncol(z) / 2 * log(2 * pi) + log_det(normal)
  is_enough <- length(ratio) > 1 # for an error
  share <- mean(ok)
  normal$elbo <- if (is_enough) mean(ratio) + log(share) else -Inf
  normal$elbo_error <- if (is_enough) {
    sqrt(stats::var(ratio) / length(ratio) + (1 - share) / length(ratio))
  } else {
    NaN
  }
  normal
}

# Of many normals the one with the highest ELBO is the luckiest. The error counts against
# it: where a normal fits, there is none.
is_better <- function(a, b) {
  a$elbo > -Inf && (b$elbo == -Inf || a$elbo - a$elbo_error > b$elbo - b$elbo_error)
}

# The normals with their ELBOs, all from one call of the target.
try_normals <- function(evaluate, normals, n_draws) {
  draws <- lapply(normals, draw_normal, n_draws)
  if (length(draws) == 0) {
    return(list())
  }
  value <- evaluate(do.call(rbind, lapply(draws, `[[`, "x")))
  for (i in seq_along(normals)) {
    rows <- (i - 1) * n_draws + seq_len(n_draws)
    normals[[i]] <- with_elbo(normals[[i]], draws[[i]]$z, value$log_density[rows])
  }
  normals
}

# Each normal after batches of draws, each of which brings it closer to the target; of
# all that it has been, the one with the highest ELBO but for its error.
refine <- function(evaluate, normals, n_batches) {
  if (length(normals) == 0) {
    return(normals)
  }
  d <- length(normals[[1]]$mean)
  n <- min(max(rules$least_batch, d), rules$most_batch)
  now <- best <- normals
  for (t in seq_len(n_batches)) {
    draws <- lapply(now, draw_normal, n)
    value <- evaluate(do.call(rbind, lapply(draws, `[[`, "x")))
    for (i in seq_along(now)) {
      rows <- (i - 1) * n + seq_len(n)
      now[[i]] <- with_elbo(now[[i]], draws[[i]]$z, value$log_density[rows])
      # at first it is the same one, and its new ELBO is not what it was chosen by
      if (is_better(now[[i]], best[[i]]) || (t == 1 && now[[i]]$elbo > -Inf)) {
        best[[i]] <- now[[i]]
      }
      ok <- value$log_density[rows] > -Inf
      now[[i]] <- batch_step(
        now[[i]], draws[[i]]$z[ok, , drop = FALSE],
        value$gradient[rows[ok], , drop = FALSE], n * d / (t + 1)
      )
    }
  }
  best
}

# One step; where too few draws are possible the normal is narrowed instead.
batch_step <- function(normal, z, g, lambda) {
  matched <- if (nrow(z) >= 4) {
    match_normal(z, pull_back_rows(normal, g), rep(1 / nrow(z), nrow(z)), lambda)
  }
  if (is.null(matched)) {
    normal$L <- normal$L / 2
    return(normal)
  }
  compose(normal, matched)
}
