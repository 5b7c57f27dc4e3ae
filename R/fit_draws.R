# Methods of fits for the packages posterior and coda, and the draws behind them.

#' Draws of a fit, for posterior and bayesplot
#'
#' Methods for the generics of the package posterior, which convert a fit to draws in its formats.
#' [posterior::summarise_draws()] and the plots of bayesplot also take the fit itself.
#'
#' Without weights, every island is a chain: its particles are resampled to draws of equal weight, as many as there are
#' particles, or as were kept (`keep` of [smc()]). Resampling is systematic and not random: a fit always has the same
#' draws. The draws are in the order of the particles, in which descendants of a common ancestor are neighbours. Their
#' dependence appears as autocorrelation, so that the effective sample sizes and Monte Carlo errors of posterior account
#' for it, to within some 20 %. Do not permute the draws: these errors would then be too small. An island in which all
#' particles died has no draws.
#'
#' In posterior all chains have equal weight, whereas [summary.smc_fit()] weights each island in proportion to its
#' estimate of the evidence. Both are consistent, and differ little unless the islands disagree (then `rhat` is high,
#' and [smc()] has warned). The weighted draws are those of `weights = TRUE`.
#'
#' @param x a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param ... for `as_draws()` and `as_draws_array()` not used; for the other formats `weights`, `generated`, `fold` and
#'   `effects`; for `subset_draws()` its arguments.
#' @param weights FALSE for draws of equal weight; TRUE for the particles of all islands together, as one chain, with
#'   their weights, see [posterior::weight_draws()]. Few functions of posterior use weights:
#'   [posterior::resample_draws()] does, [posterior::summarise_draws()] does not.
#' @param generated whether the draws include all generated quantities of a Stan program (TRUE or FALSE), or the names
#'   of some (character vector, such as `"y_rep"`). Quantities of more than 100 elements are not in the fit, unless
#'   `include` of [target_stan()] names them, and are computed on request. The program of a saved fit is compiled again
#'   if necessary.
#' @param fold whether draws are mapped to one copy of each mode, if the density is invariant to permutations of labels
#'   or changes of sign, as `shape` in the printed fit says (TRUE or FALSE). [coef()][coef.smc_fit] and
#'   [summary()][summary.smc_fit] always do this: otherwise the means of all labels would be equal.
#' @param effects whether the draws include the random effects, if [smc()] has integrated them out exactly (TRUE or
#'   FALSE), or the number of such draws (positive integer). They take time, so TRUE gives some 400: draws of the
#'   parameters, evenly spread over each island, and for each a draw of the effects, by inversion of the distribution
#'   function along the rays by which they are integrated out, see [as_target()], section Random effects. Within islands
#'   the draws are resampled in proportion to the exact over the sampled likelihood, so that they are draws of the exact
#'   density; a few are repeated.
#' @return `as_draws()`, `as_draws_array()`: a `draws_array` of the target's variables. The others: the same draws in
#'   their format. With `weights`, `.log_weight` is a further, hidden variable. `variables()`, `nvariables()`,
#'   `ndraws()`, `nchains()`, `niterations()` and `subset_draws()` refer to the draws of equal weight.
#' @section Errors: `autosmc_error_input` for any other argument, and for a fit that has kept moments only.
#' @examplesIf requireNamespace("posterior", quietly = TRUE)
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' draws <- posterior::as_draws_df(fit)
#' posterior::summarise_draws(draws)
#'
#' weighted <- posterior::as_draws_matrix(fit, weights = TRUE)
#' colSums(weights(weighted) * weighted[, c("x1", "x2")])
#' @name as_draws.smc_fit
NULL

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws
as_draws.smc_fit <- function(x, ..., weights = FALSE, generated = FALSE, fold = FALSE, effects = FALSE) {
  check_dots_empty(...)
  if (!isFALSE(effects)) {
    if (!isFALSE(weights) || !isFALSE(generated) || !isFALSE(fold)) {
      abort("{.arg effects} cannot be used together with {.arg weights}, {.arg generated} or {.arg fold}.")
    }
    n <- if (isTRUE(effects)) few_with_effects else check_count(effects, "effects")
    return(as_chains(draws_with_effects(x, n), nchains.smc_fit(x)))
  }
  if (check_flag(fold, "fold")) x <- folded(x)
  if (check_flag(weights, "weights")) {
    weighted_draws(x, generated)
  } else {
    as_chains(as.matrix(x, generated = generated), nchains.smc_fit(x))
  }
}

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_array
as_draws_array.smc_fit <- as_draws.smc_fit

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_df
as_draws_df.smc_fit <- function(x, ...) posterior::as_draws_df(as_draws.smc_fit(x, ...))

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_matrix
as_draws_matrix.smc_fit <- function(x, ...) posterior::as_draws_matrix(as_draws.smc_fit(x, ...))

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_list
as_draws_list.smc_fit <- function(x, ...) posterior::as_draws_list(as_draws.smc_fit(x, ...))

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::as_draws_rvars
as_draws_rvars.smc_fit <- function(x, ...) posterior::as_draws_rvars(as_draws.smc_fit(x, ...))

# dimensions and subsets --------------------------------------------------------------

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::variables
variables.smc_fit <- function(x, ...) colnames(x$particles)

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::nvariables
nvariables.smc_fit <- function(x, ...) ncol(x$particles)

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::ndraws
ndraws.smc_fit <- function(x) nrow(x$particles)

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::nchains
nchains.smc_fit <- function(x) length(unique(x$island))

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::niterations
niterations.smc_fit <- function(x) nrow(x$particles) / max(nchains.smc_fit(x), 1)

#' @rdname as_draws.smc_fit
#' @exportS3Method posterior::subset_draws
subset_draws.smc_fit <- function(x, ...) posterior::subset_draws(as_draws.smc_fit(x), ...)

# coda and loo ------------------------------------------------------------------------

#' Fits in coda, loo and bridgesampling
#'
#' Methods for generics of other packages, which use the draws of a fit.
#'
#' `loo()` and `waic()` are for Stan programs that compute `log_lik`, the log likelihood of each observation, and for
#' fits of brms. For other models [predict.smc_fit()] makes the matrix of log likelihoods that `loo::loo()` takes.
#' `bridge_sampler()` estimates the evidence by the package bridgesampling, from the draws of the fit and its log
#' density, on the unconstrained scale of [unconstrain()], as a comparison with the estimate of the fit.
#'
#' @param x,samples a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param ... further arguments of the methods for arrays of [loo::loo()] and
#'   [loo::waic()], of [coda::mcmc()], and of `bridgesampling::bridge_sampler()`.
#' @return `as.mcmc.list()`: a chain for each island; `as.mcmc()`: the draws of a fit with one
#'   island. The others: the same as for matrices.
#' @section Errors: `autosmc_error_input` when the draws have no `log_lik`; for `as.mcmc()`,
#'   when there are several islands; and for `bridge_sampler()`, when the draws are those
#'   of a Stan program, which are not on the scale on which it is sampled.
#' @examplesIf requireNamespace("coda", quietly = TRUE)
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' chains <- coda::as.mcmc.list(fit)
#' coda::effectiveSize(chains)
#' @examplesIf requireNamespace("bridgesampling", quietly = TRUE)
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' bridgesampling::bridge_sampler(fit, silent = TRUE)
#' @name loo.smc_fit
NULL

#' @rdname loo.smc_fit
#' @exportS3Method coda::as.mcmc.list
as.mcmc.list.smc_fit <- function(x, ...) {
  draws <- as.array(x)
  chains <- lapply(seq_len(dim(draws)[2]), function(i) {
    coda::mcmc(matrix(draws[, i, ], dim(draws)[1], dimnames = dimnames(draws)[c(1, 3)]), ...)
  })
  coda::mcmc.list(chains)
}

#' @rdname loo.smc_fit
#' @exportS3Method coda::as.mcmc
as.mcmc.smc_fit <- function(x, ...) {
  chains <- as.mcmc.list.smc_fit(x, ...)
  if (length(chains) > 1) {
    abort("The fit has several islands, a chain each: use {.fn as.mcmc.list}.")
  }
  chains[[1]]
}

#' @exportS3Method posterior::as_draws
as_draws.smc_target <- function(x, ...) {
  abort("A target has no draws: sample it with {.fn smc}, and take the fit.")
}

# internals -------------------------------------------------------------------

# The rows of the particles that systematic resampling within each island selects, island by island: draws of equal
# weight.
equal_rows <- function(fit) {
  check_has_draws(fit)
  kept <- lapply(split(seq_along(fit$island), fit$island), function(rows) {
    rows[resample_systematic(normalise_log(fit$log_weights[rows]))]
  })
  unlist(kept, use.names = FALSE)
}

# The particles with their weights; those of weight zero, whose values are arbitrary, are replaced by the heaviest one.
weighted_draws <- function(fit, generated) {
  check_has_draws(fit)
  rows <- replace(seq_along(fit$island), exp(fit$log_weights) == 0, which.max(fit$log_weights))
  draws <- as_chains(with_generated(fit$particles, fit, rows, generated), n_chains = 1L)
  posterior::weight_draws(draws, fit$log_weights, log = TRUE)
}

# The draws with further columns, the generated quantities that are not in the fit, at these rows of its particles.
# generated: TRUE for all, FALSE for none, or the names of some, without indices.
with_generated <- function(draws, fit, rows, generated) {
  names <- generated_names(fit, generated)
  if (length(names) == 0) {
    return(draws)
  }
  # cbind() would make a further copy
  all <- matrix(0, nrow(draws), ncol(draws) + length(names), dimnames = list(NULL, c(colnames(draws), names)))
  own <- seq_len(ncol(draws))
  all[, own] <- draws
  all[, -own] <- generated_at(fit, rows, names)
  all
}

generated_names <- function(fit, generated) {
  later <- fit$target$later
  if (!is.character(generated)) {
    return(if (check_flag(generated, "generated")) later)
  }
  unknown <- setdiff(generated, base_names(c(later, colnames(fit$particles))))
  if (length(unknown) > 0) {
    known <- if (length(later) > 0) paste("such as", toString(unique(base_names(later)))) else "of which there are none"
    abort_argument(unknown, "generated", paste0("TRUE, FALSE or names of generated quantities, ", known))
  }
  later[base_names(later) %in% generated]
}

generated_at <- function(fit, rows, names) {
  check_has_state(fit, "its generated quantities cannot be computed")
  u <- if (is_exact_fit(fit)) matrix(0, nrow(fit$particles), 0) else state_draws(fit)
  fit$target$outputs(u[rows, , drop = FALSE], names)
}

# The default number of draws with random effects.
few_with_effects <- 400

# About n draws of the parameters and effects, a row a draw, island by island: evenly spread draws of the parameters,
# with a draw of the effects conditional on each, resampled within islands in proportion to the exact over the sampled
# density.
draws_with_effects <- function(fit, n) {
  effects <- fit$target$effects
  if (is.null(effects)) {
    abort("{.arg effects}: the model has no random effects that are integrated out.")
  }
  if (is_laplace(fit)) {
    abort("{.arg effects}: they were integrated out by {fit$laplace$method}, which gives no draws of them.")
  }
  by_island <- matrix(equal_rows(fit), ncol = nchains.smc_fit(fit))
  n_each <- min(nrow(by_island), ceiling(n / ncol(by_island)))
  rows <- by_island[round((seq_len(n_each) - 0.5) * nrow(by_island) / n_each + 0.5), , drop = FALSE]
  x <- fit$particles[rows, , drop = FALSE]
  integral <- counted_integral(effects)
  found <- with_seed(seed_of_run(fit$seed, effects_draws_key), apply(x, 1, integral, with_draw = TRUE))
  excess <- matrix(ratios_to_sampled(fit$target, x, found)$exact, n_each)
  excess[is.nan(excess)] <- -Inf
  kept <- apply(excess, 2, function(log_ratio) resample_systematic(normalise_log(log_ratio)))
  kept <- c(kept + rep((seq_len(ncol(rows)) - 1) * n_each, each = n_each))
  drawn <- t(found[-(1:2), , drop = FALSE])
  colnames(drawn) <- tmb_variables(effects$model, effects$model$env$.random)$names
  cbind(x, drawn)[kept, , drop = FALSE]
}

# A draws_array of a matrix of draws with the chains below each other. Only attributes are set, so that R does not copy
# the draws.
as_chains <- function(particles, n_chains) {
  shape <- c(nrow(particles) %/% n_chains, n_chains, ncol(particles))
  attributes(particles) <- list(dim = shape, dimnames = list(NULL, NULL, colnames(particles)))
  posterior::as_draws_array(particles)
}

# Names of variables; "tau" stands for all elements of a vector or matrix tau.
check_variables <- function(variables, names, arg = "variables") {
  if (!is.character(variables) || length(variables) == 0) {
    abort_argument(variables, arg, "NULL or names of variables")
  }
  variables <- unlist(lapply(variables, function(variable) {
    elements <- names[startsWith(names, paste0(variable, "["))]
    if (variable %in% names || length(elements) == 0) variable else elements
  }))
  unknown <- setdiff(variables, names)
  if (length(unknown) > 0) {
    abort(c(
      "{.arg {arg}} must be names of variables; there is no {.val {unknown}}.",
      "i" = "The variable{?s} {?is/are} {.val {names}}."
    ))
  }
  unique(variables)
}
