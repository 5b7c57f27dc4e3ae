# Batch and match: normal distributions brought closer to the target by the gradients at their own draws. A normal that
# has been tried has its `elbo`, the mean of log target - log normal over its draws, which is below the log evidence but
# for noise, with the standard error, `elbo_error`. See src/match.c.

# A batch has as many draws as dimensions, from this ...
least_batch <- 16
# ... to this.
most_batch <- 64

# Each normal after batches of draws, each of which brings it closer to the target; of
# all that it has been, the one with the highest ELBO but for its error.
refine <- function(evaluate, normals, n_batches) {
  d <- if (length(normals) > 0) length(normals[[1]]$mean)
  in_batches(evaluate, normals, min(max(least_batch, d), most_batch), n_batches)
}

# The normals with their ELBOs, all from one call of the target.
try_normals <- function(evaluate, normals, n_draws) {
  untried <- lapply(normals, function(normal) normal[setdiff(names(normal), c("elbo", "elbo_error"))])
  in_batches(evaluate, untried, n_draws, 1)
}

in_batches <- function(evaluate, normals, n_draws, n_batches) {
  if (length(normals) == 0) {
    return(normals)
  }
  is_diagonal <- length(normals[[1]]$mean) > rules$largest_dense
  refined <- .Call(r_refine, evaluate, normals, n_draws, n_batches, is_diagonal)
  Map(function(normal, now) replace(normal, names(now), now), normals, refined)
}
