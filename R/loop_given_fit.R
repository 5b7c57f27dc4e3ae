# A fit of a similar target as the `reference`. Its reference is likely to suit this target too, so it is run first,
# with the kernel and path of that fit, without a scout. If it fails, the target is fitted as if it had not been given.

# The reference of a fit, if both targets have the same variables on the same scale. For fewer variables, or another
# scale, a reference is fitted to the fit's draws. For further variables it is a placeholder for complete_reference().
reference_of_fit <- function(target, fit) {
  check_version(fit, "it is no reference any more")
  reference <- if (has_reference_for(fit, target)) {
    fit$reference
  } else if (length(shared_variables(fit, target)) > 0) {
    reference_gaussian()
  } else {
    reference_of_draws(target, matrix_of_draws(fit))
  }
  reference$fitted_to <- NULL
  reference
}

has_reference_for <- function(fit, target) {
  of_variables <- c("names", "lower", "upper", "types")
  is_fitted <- !isFALSE(fit$state$course$best$is_fitted) && !is_function_reference(fit$reference)
  is_fitted && identical(unclass(fit$target)[of_variables], unclass(target)[of_variables])
}

# The variables that a fit shares with a target that has further ones, if they are on the same scale; NULL for none.
shared_variables <- function(fit, target) {
  own <- fit$target
  shared <- intersect(target$names, own$names)
  is_same <- is.null(own$types) && is.null(target$types) && !has_scale(own) && is.null(fit$moments) &&
    identical(limits_of(own, shared), limits_of(target, shared))
  if (is_same && length(shared) < target$dim) shared
}

limits_of <- function(target, variables) {
  lapply(unclass(target)[c("lower", "upper")], function(x) rep_len(x, target$dim)[match(variables, target$names)])
}

# The fit's draws of the shared variables on the unconstrained scale; NULL for none.
draws_for <- function(target, fit) {
  shared <- if (!has_reference_for(fit, target)) shared_variables(fit, target)
  if (length(shared) > 0) {
    u <- unconstrained_draws(fit$target, matrix_of_draws(fit))$values
    name_columns(u, fit$target$names)[, shared, drop = FALSE]
  }
}

# The sampler with a reference for all variables: fitted to the draws of the given fit, completed for further variables
# by conditional draws from the scout's best normal distribution. Where there is none, or the target's scale was
# changed, the given fit is dropped.
complete_reference <- function(sampler) {
  shared <- match(colnames(sampler$given_fit$draws), sampler$target$names)
  found <- sampler$scout$references$best
  x <- if (!is.null(found) && !has_scale(sampler$target)) {
    with_seed(
      seed_of_run(sampler$seed, fit_key),
      with_further_variables(sampler$given_fit$draws, shared, normal_of(found, sampler$target$dim))
    )
  }
  fitted <- if (!is.null(x)) fitted_to_points(x)
  if (is.null(fitted)) {
    sampler$given_fit <- NULL
  } else {
    sampler$reference <- fitted$reference
    sampler$given_fit$draws <- NULL # a fit does not keep them
  }
  sampler
}

# Draws of all variables: the `given` ones in the columns `shared`, the others from the normal distribution given these.
with_further_variables <- function(given, shared, normal) {
  covariance <- if (is.matrix(normal$L)) tcrossprod(normal$L) else diag(normal$L^2)
  slope <- solve(covariance[shared, shared, drop = FALSE], covariance[shared, -shared, drop = FALSE])
  left <- chol(covariance[-shared, -shared, drop = FALSE] - covariance[-shared, shared, drop = FALSE] %*% slope)
  z <- draw_standard(nrow(given), ncol(left))
  x <- matrix(0, nrow(given), length(normal$mean))
  x[, shared] <- given
  x[, -shared] <- sweep(sweep(given, 2, normal$mean[shared]) %*% slope + z %*% left, 2, normal$mean[-shared], "+")
  x
}

# The sampler with `given_fit`, what is used of the fit given as the reference: the `kernel` of its islands, their
# `path` if it starts from the same reference, the `barrier` of its last used run, and `draws` of shared variables, if
# the target has further ones.
with_given_fit <- function(sampler, fit, seed) {
  # with the same seed the reference would depend on the random numbers of the islands
  if (is_number(seed) && seed == fit$seed) {
    abort("{.arg seed} must differ from the seed of the fit in {.arg reference}, {seed}.")
  }
  used <- fit$runs$barrier[fit$runs$used & !is.na(fit$runs$barrier)]
  path <- as.list(fit$schedule[c("lambda", "step_size", if (fit$kernel$refreshes) "refresh_rate")])
  sampler$given_fit <- list(
    kernel = fit$kernel, path = if (has_reference_for(fit, sampler$target)) path, barrier = used[length(used)],
    draws = draws_for(sampler$target, fit)
  )
  sampler
}

# The sampler without the given fit, with the default reference.
without_fit <- function(sampler) {
  sampler$reference <- check_reference(reference_gaussian(), sampler$target)
  sampler$given_fit <- NULL
  sampler$target <- with_scale_of(sampler$target, sampler$reference)
  sampler$evaluators <- interface_of_run(sampler)
  sampler
}
