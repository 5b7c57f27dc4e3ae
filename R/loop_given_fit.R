# A fit of a neighbouring target as the start of a path. Its reference is likely to fit this target, too: so that is
# tried first, alone, and as the fit has run it. Only where it fails is the target looked for.

# The reference of a fit, which is that of its target no longer; of other variables, or of the same on another scale,
# one that is fitted to its draws, as to those of any program.
reference_of_fit <- function(target, fit) {
  check_version(fit, "it is no reference any more")
  reference <- if (has_reference_for(fit, target)) fit$reference else reference_of_draws(target, matrix_of_draws(fit))
  reference$fitted_to <- NULL
  reference
}

has_reference_for <- function(fit, target) {
  of_variables <- c("names", "lower", "upper", "types")
  is_fitted <- !isFALSE(fit$state$course$best$is_fitted) && !is_function_reference(fit$reference)
  is_fitted && identical(unclass(fit$target)[of_variables], unclass(target)[of_variables])
}

# The sampler with what is to be known of the fit that its reference is taken from, `given_fit`: the `kernel` of its
# islands, their `path`, if that leads from the same reference, and their `barrier`.
beside_fit <- function(sampler, fit, seed) {
  # a reference that was fitted to draws of the same random numbers is not independent of islands
  if (is_number(seed) && seed == fit$seed) {
    abort("{.arg seed} must not be that of the fit that is the {.arg reference}, {seed}.", "input")
  }
  used <- fit$runs$barrier[fit$runs$used & !is.na(fit$runs$barrier)]
  path <- as.list(fit$schedule[c("lambda", "step_size", if (fit$kernel$refreshes) "refresh_rate")])
  sampler$given_fit <- list(
    kernel = fit$kernel, path = if (has_reference_for(fit, sampler$target)) path, barrier = used[length(used)]
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
