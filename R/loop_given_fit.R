# A fit of a neighbouring target as the start of a path. Its reference is likely to fit this target, too: so that is
# tried first, alone, and as the fit has run it. Only where it fails is the target looked for.

# The reference of a fit, which is that of its target no longer; of fewer variables, or of the same on another scale,
# one that is fitted to its draws, as to those of any program; and of further variables one that is yet to be completed.
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

# The variables that a fit shares with a target that has further ones, if they are on the same scale.
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

# Draws of these variables on the unconstrained scale; NULL for none.
draws_for <- function(target, fit) {
  shared <- if (!has_reference_for(fit, target)) shared_variables(fit, target)
  if (length(shared) > 0) {
    u <- unconstrained_draws(fit$target, matrix_of_draws(fit))$values
    name_columns(u, fit$target$names)[, shared, drop = FALSE]
  }
}

# The sampler with a reference that is fitted to the draws of a fit, and for further variables to draws given these
# from the best normal distribution that the scout has found. Without one, or on another scale, there is no fit to
# start from.
completed <- function(sampler) {
  shared <- match(colnames(sampler$given_fit$draws), sampler$target$names)
  found <- sampler$scout$references$best
  x <- if (!is.null(found) && !has_scale(sampler$target)) {
    with_seed(
      seed_of_run(sampler$seed, fit_key),
      with_others(sampler$given_fit$draws, shared, normal_of(found, sampler$target$dim))
    )
  }
  fitted <- if (!is.null(x)) fitted_to_points(x)
  if (is.null(fitted)) {
    sampler$given_fit <- NULL
  } else {
    sampler$reference <- fitted$reference
    sampler$given_fit$draws <- NULL # which no fit is to keep
  }
  sampler
}

# These columns of draws with the others, from a normal distribution given these.
with_others <- function(given, shared, normal) {
  covariance <- if (is.matrix(normal$L)) tcrossprod(normal$L) else diag(normal$L^2)
  slope <- solve(covariance[shared, shared, drop = FALSE], covariance[shared, -shared, drop = FALSE])
  left <- chol(covariance[-shared, -shared, drop = FALSE] - covariance[-shared, shared, drop = FALSE] %*% slope)
  z <- draw_standard(nrow(given), ncol(left))
  x <- matrix(0, nrow(given), length(normal$mean))
  x[, shared] <- given
  x[, -shared] <- sweep(sweep(given, 2, normal$mean[shared]) %*% slope + z %*% left, 2, normal$mean[-shared], "+")
  x
}

# The sampler with what is to be known of the fit that its reference is taken from, `given_fit`: the `kernel` of its
# islands, their `path`, if that leads from the same reference, and their `barrier`; and `draws` of some variables, if
# there are further ones.
beside_fit <- function(sampler, fit, seed) {
  # a reference that was fitted to draws of the same random numbers is not independent of islands
  if (is_number(seed) && seed == fit$seed) {
    abort("{.arg seed} must not be that of the fit that is the {.arg reference}, {seed}.")
  }
  used <- fit$runs$barrier[fit$runs$used & !is.na(fit$runs$barrier)]
  path <- as.list(fit$schedule[c("lambda", "step_size", if (fit$kernel$refreshes) "refresh_rate")])
  sampler$given_fit <- list(
    kernel = fit$kernel, path = if (has_reference_for(fit, sampler$target)) path, barrier = used[length(used)],
    draws = draws_for(sampler$target, fit)
  )
  sampler
}

# The sampler that there would have been without it.
without_fit <- function(sampler) {
  sampler$reference <- check_reference(reference_gaussian(), sampler$target)
  sampler$given_fit <- NULL
  sampler$target <- with_scale_of(sampler$target, sampler$reference)
  sampler$evaluators <- interface_of_run(sampler)
  sampler
}
