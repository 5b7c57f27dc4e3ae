# Draws in the formats of the package posterior.

#' Draws of a fit, for posterior, bayesplot and loo
#'
#' Methods for the generics of the package posterior, with which a fit becomes draws for
#' all that works on these: [posterior::summarise_draws()], the plots of bayesplot, and
#' by way of a log likelihood computed from the draws, [loo::loo()].
#'
#' Without weights, every island is resampled within itself, to as many draws as it
#' has particles, and is a chain. Islands are independent, so `rhat` compares what
#' should be alike. Resampling is systematic, without any randomness: a fit has the
#' same draws whenever it is asked. The draws of a chain stand in the order of the
#' particles, in which copies of a particle, and the descendants of a common ancestor,
#' are neighbours. What they share is then seen as autocorrelation, so that the effective
#' sample sizes and Monte Carlo errors of posterior account for it: they agree, to
#' within some 20 %, with the spread of the islands. Permuted, the draws would look
#' better than they are.
#'
#' Chains count alike in posterior, where the estimate of [summary.smc_fit()] and
#' [augment.smc_fit()] weighs each island in proportion to its estimate of the
#' evidence. Both are consistent, and differ little unless the islands disagree
#' (then `rhat` is high, and [smc()] has warned). For the weighted estimate itself
#' take `weights = TRUE`.
#'
#' An island in which all particles died has no draws: chains are the living islands,
#' in their order.
#'
#' @param x a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param ... not used.
#' @param weights FALSE for draws that all weigh the same; TRUE for the particles of
#'   all islands together with their weights, see [posterior::weight_draws()]. These
#'   are one chain. Few functions of posterior look at weights:
#'   [posterior::resample_draws()] does, [posterior::summarise_draws()] does not.
#' @return `as_draws()`, `as_draws_array()`: a `draws_array` with `n_particles`
#'   iterations, a chain an island, and the target's variables. The others: the same
#'   draws in their format. With `weights`, `.log_weight` is a further, hidden variable.
#' @section Errors: `autosmc_error_input` for any other argument. For some of the
#'   variables or chains, apply [posterior::subset_draws()] to the result.
#' @examplesIf requireNamespace("posterior", quietly = TRUE)
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 256, n_steps = 8, rounds = 0)
#' draws <- posterior::as_draws_df(fit)
#' posterior::summarise_draws(draws)
#'
#' weighted <- posterior::as_draws_matrix(fit, weights = TRUE)
#' colSums(weights(weighted) * weighted[, c("x1", "x2")])
#' @name as_draws.smc_fit
NULL

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws
as_draws.smc_fit <- function(x, ..., weights = FALSE) {
  check_dots_empty(...)
  if (check_flag(weights, "weights")) weighted_draws(x) else resampled_draws(x)
}

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_array
as_draws_array.smc_fit <- as_draws.smc_fit

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_df
as_draws_df.smc_fit <- function(x, ..., weights = FALSE) {
  posterior::as_draws_df(as_draws.smc_fit(x, ..., weights = weights))
}

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_matrix
as_draws_matrix.smc_fit <- function(x, ..., weights = FALSE) {
  posterior::as_draws_matrix(as_draws.smc_fit(x, ..., weights = weights))
}

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_list
as_draws_list.smc_fit <- function(x, ..., weights = FALSE) {
  posterior::as_draws_list(as_draws.smc_fit(x, ..., weights = weights))
}

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_rvars
as_draws_rvars.smc_fit <- function(x, ..., weights = FALSE) {
  posterior::as_draws_rvars(as_draws.smc_fit(x, ..., weights = weights))
}

#' @exportS3Method posterior::as_draws
as_draws.smc_target <- function(x, ...) {
  abort("A target has no draws: sample it with {.fn smc}, and take the fit.", "input")
}

# internals -------------------------------------------------------------------

resampled_draws <- function(fit) {
  islands <- split(seq_along(fit$island), fit$island)
  kept <- lapply(islands, function(rows) {
    rows[resample_systematic(normalise_log(fit$log_weights[rows]))]
  })
  as_chains(fit$particles[unlist(kept), , drop = FALSE], n_chains = length(islands))
}

weighted_draws <- function(fit) {
  draws <- as_chains(fit$particles, n_chains = 1L)
  posterior::weight_draws(draws, fit$log_weights, log = TRUE)
}

# particles: a row a draw, the chains below each other.
as_chains <- function(particles, n_chains) {
  n <- nrow(particles) %/% n_chains
  names <- list(NULL, NULL, colnames(particles))
  draws <- array(particles, c(n, n_chains, ncol(particles)), names)
  posterior::as_draws_array(draws)
}

# As many indices as there are weights, in ascending order. The grid of points is
# centred instead of shifted at random.
resample_systematic <- function(log_weights) {
  n <- length(log_weights)
  invert_distribution(exp(log_weights), (seq_len(n) - 0.5) / n)
}

# The first index at which the cumulated weights reach the probability p; never one
# of zero weight.
invert_distribution <- function(w, p) {
  cumulative <- cumsum(w)
  total <- cumulative[length(w)]
  findInterval(p * total, cumulative, left.open = TRUE) + 1L
}
