# Batch and match (Cai et al., 2024): normal distributions fitted to the gradients of the target at their own draws.
# Each then has its `elbo`, the mean of log target - log normal over its draws, whose expectation is at most the log
# evidence, and `elbo_error`, its standard error. Called by the scout. See src/match.c.

# A batch has as many draws as dimensions, but at least and at most so many.
least_batch <- 16
most_batch <- 64

# Each normal after `n_batches` updates by batch and match: of its iterates the one with the highest ELBO, less the
# standard error.
refine <- function(evaluate, normals, n_batches) {
  d <- if (length(normals) > 0) length(normals[[1]]$mean)
  in_batches(evaluate, normals, min(max(least_batch, d), most_batch), n_batches)
}

# The normals unchanged, with new ELBOs, all from one call of the target.
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
