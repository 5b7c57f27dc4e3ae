# The scout in the loop: the search for modes, and the choice of the scale of bounded variables. Called by
# find_evidence().

# The sampler with its `scout`, on the scale that suits its variables. There is no scout where the plan has none, for
# kernels without gradients, and where a fit with all variables is given.
scouted <- function(sampler, plan) {
  lacks_variables <- !is.null(sampler$given_fit$draws)
  if (!plan$scout || !sampler$kernel$gradients || !is.null(sampler$given_fit) && !lacks_variables) {
    return(if (lacks_variables) complete_reference(sampler) else sampler)
  }
  scout <- function(sampler, name) {
    remember(
      sampler, name, settings_of_target(sampler), scout_restorer(sampler), points_of_scout,
      scout_target(
        sampler$target, rules$n_starts, sampler$seed, over_batches(sampler)$evaluators, plan, sampler$progress
      )
    )
  }
  sampler <- with_ratios(sampler)
  sampler$scout <- scout(sampler, "scout")
  plan <- within_limit(plan, sampler$scout)
  if (sampler$scout$is_cut) leave_out(sampler, "search", "the search for further modes")
  signal_scout_problems(sampler$target, sampler$scout)
  sampler <- rescaled(sampler, find_turn, scout, plan)
  sampler <- rescaled(sampler, find_truncated, scout, plan, suits_truncated)
  if (lacks_variables) complete_reference(sampler) else sampler
}

# The plan with the limits that the scout has set, such as evaluations for `max_seconds`.
within_limit <- function(plan, scout) replace(plan, names(scout$limit), scout$limit)

# The sampler on another scale of its bounded variables, if find() finds one, and if after a further scout on it the
# function `suits` accepts it. The cost is added to that of the scout. Nothing is tried where it may exceed the budget.
rescaled <- function(sampler, find, scout, plan, suits = function(other, sampler) TRUE) {
  course <- list(sampler = sampler, plan = plan, scout = sampler$scout, surrogate = sampler$surrogate)
  cost <- 2 * sampler$scout$n_target_evals + run_evaluations(course, steps_of_best(course))
  may_change <- any(may_be_logits(sampler$target))
  found <- if (may_change && affords(course, "scale", cost)) find(sampler)
  if (is.null(found)) {
    return(sampler)
  }
  counts <- Map(`+`, found$counts, sampler$scout[names(found$counts)])
  if (!is.null(found$scale)) {
    other <- with_scale(sampler, found$scale)
    other$scout <- scout(other, paste0("scout-", names(found$scale)[1]))
    counts <- Map(`+`, counts, other$scout[names(counts)])
    if (suits(other, sampler)) sampler <- other
  }
  sampler$scout[names(counts)] <- counts
  sampler
}
