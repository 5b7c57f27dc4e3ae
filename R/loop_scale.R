# The scale on which the variables of a target are sampled, where that is not the one of its bounds: what loop_angles.R,
# loop_truncated.R and loop_ratios.R have found.

# Points that tell of most variables that another scale is none for them.
few_scale_points <- 2

# Variables that are logits of places between two bounds: by the target's bounds; or perhaps by those that a
# program has, whose variables are all without bounds here.
may_be_logits <- function(target) has_two_bounds(target) | (!is.null(target$outputs) & !is_bounded(target))

with_scale <- function(sampler, scale) {
  sampler$target[names(scale)] <- scale
  sampler$evaluators <- interface_of_run(sampler)
  sampler
}

# list(scale, counts) of a sampler that has been scouted: what find(evaluate) returns, a list of one of these or NULL;
# and what it took, n_target_evals, n_impossible and seconds. NULL where there are no such variables, or the user has
# given a reference, which is a distribution on the scale as it is.
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
