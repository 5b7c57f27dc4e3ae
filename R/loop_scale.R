# Other scales for variables with two bounds than the logit: see loop_angles.R and loop_truncated.R, which call this
# file, and loop_ratios.R.

# Points that rule out another scale for most variables.
few_scale_points <- 2

# Whether each variable is the logit of a place between two bounds, by the target's bounds, or may be one, if it is an
# unbounded variable of a program, whose bounds are not known.
may_be_logits <- function(target) has_two_bounds(target) | (!is.null(target$outputs) & !is_bounded(target))

with_scale <- function(sampler, scale) {
  sampler$target[names(scale)] <- scale
  sampler$evaluators <- interface_of_run(sampler)
  sampler
}

# Searches for another scale after the scout: list(scale, counts), with the value of find(evaluate), a list of elements
# of the target or NULL, and its cost, n_target_evals, n_impossible and seconds. NULL where there are no such variables,
# or the user has given a reference, which is a distribution on the original scale.
find_scale_of_bounded <- function(sampler, name, key, variables, find) {
  target <- sampler$target
  may_change <- !has_scale(target, c("turn", "truncated")) && length(variables) > 0 &&
    length(sampler$scout$normals) > 0 && has_default_reference(sampler)
  if (may_change) {
    origin <- function(...) matrix(0, 1, target$dim)
    remember(sampler, name, settings_of_target(sampler), scale_restorer(sampler), origin, {
      started <- seconds_now()
      evaluate <- counted_density(target, over_batches(sampler)$evaluators)
      scale <- with_seed(seed_of_run(sampler$seed, key), find(evaluate))
      seconds <- seconds_now() - started
      list(scale = scale, counts = c(as.list(evaluate("count")), seconds = seconds))
    })
  }
}
