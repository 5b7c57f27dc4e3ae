# Folding of draws: if the density is invariant to permutations or changes of sign, each draw is mapped to the first
# copy of its basin in the reference.

# The fit with folded draws, and `folded`, these draws on the unconstrained scale, from which generated quantities are
# computed. The fit itself if there are no copies, or no draws.
folded <- function(fit) {
  if (n_copies(fit) == 0 || !is.null(fit$folded)) {
    return(fit)
  }
  target <- fit$target
  weighs <- exp(fit$log_weights) > 0
  u <- if (is.null(target$outputs)) change_scale(target, fit$particles, to_user = FALSE) else kept_draws(fit)
  frame <- normal_of(fit$reference, ncol(u))
  u[weighs, ] <- to_user(frame, fold_copies(from_user(frame, u[weighs, , drop = FALSE]), fit$reference))
  fit$folded <- u
  x <- if (is.null(target$outputs)) change_scale(target, u, to_user = TRUE) else u
  fit$particles[] <- outputs_of(target, x, fit$log_weights)
  fit
}

# The number of copies of each basin of a fit; 0 if there are none, or if the draws were not kept.
n_copies <- function(fit) {
  has_draws <- is.null(fit$moments) && (is.null(fit$target$outputs) || !is.null(kept_draws(fit)))
  if (is.null(fit$reference$copies) || !has_draws) {
    return(0)
  }
  length(unique(unlist(moves_of_basins(fit$reference$basins, fit$reference))))
}
