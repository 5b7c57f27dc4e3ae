# The algorithm: what smc() and smc_adapt() do.

# The scout looks for the target. What it finds, and the reference that was given, are the first candidates. A
# candidate is run, and the verdict on its record says whether it takes the place of the best so far, and which
# candidates follow. When none is left that is worth its cost, islands are run from the best. If diagnostics find
# fault with these, or there is more to learn from their draws, that adds candidates, and the loop goes on. What began
# with another fit begins again without it, if it fails.
#
# islands: of check_islands(); NULL where adaptation is all that is asked for. Returns the course.
find_evidence <- function(sampler, path, plan, islands = NULL) {
  sampler <- with_surrogate(sampler)
  plan$max_seconds <- max(plan$max_seconds - sum(sampler$surrogate$seconds), 1e-3)
  sampler <- scouted(sampler, plan)
  plan <- within_limit(plan, sampler$scout)
  if (isTRUE(plan$may_shrink)) {
    sampler$n_particles <- particles_within(plan$max_evals, sampler$n_particles, plan$n_islands)
  }
  if (!is.null(islands)) announce_fit(sampler, plan)
  course <- new_course(sampler, path, plan)
  repeat {
    while (length(course$candidates) > 0) {
      course <- judged(course, run_candidate(course, course$candidates[[1]]))
    }
    if (!is.null(course$fails)) {
      course <- begun_again(course)
    } else if (is.null(islands) || is_of_islands(course$best)) {
      return(course)
    } else {
      course <- forget_draws(course) # no more is fitted to them, and nobody else may hold them while islands run
      course <- with_islands(course, islands)
    }
  }
}

# The course of the loop, a list: the `sampler`, `path` and `plan` that it began with; what the `scout` has found, and
# what the `surrogate` of an integral over random effects has cost; the `given_fit` that it starts from, if it does,
# and why it `fails` from there, in words; `candidates` that are still to be run; the `records` of all runs, and which
# of them were `used`, since they were the best so far; the `best`, a record of one run or of islands; the rungs that
# are `allowed` to follow it, and the number of rounds since the last start, `n_rounds`. Of islands: the `result` that
# is reported, with its row of `runs`; rows of `passes` whose islands others have replaced; the `estimate` before the
# reported one; and `n_passes`, the number of passes with references of the last kind. Of a course that goes on from
# another one: its `records`, `passes`, and what it took for `probes`.
new_course <- function(sampler, path, plan, records = list(), passes = list(), probes = NULL) {
  course <- list(
    sampler = sampler, path = path, plan = plan, scout = sampler$scout, surrogate = sampler$surrogate,
    given_fit = sampler$given_fit, records = records, used = logical(length(records)),
    allowed = if (plan$whiten) names(rungs), n_rounds = 0,
    # the shape of a fit's reference has been through a pass
    passes = passes, n_passes = if (is.null(sampler$given_fit)) 0 else 1, probes = probes,
    density = if (sampler$kernel$gradients) counted_density(sampler$target, over_batches(sampler)$evaluators)
  )
  course$candidates <- first_candidates(course)
  course
}

# The course from the beginning, after one from another fit has failed. The runs of that stay in the records, and count.
begun_again <- function(course) {
  why <- course$fails
  inform("cold", c("i" = "From the fit that is the {.arg reference}, {why}: the target is fitted without it."))
  sampler <- without_fit(course$sampler)
  passes <- c(course$passes, if (!is.null(course$result)) list(unused(course$result$row)))
  if (is.null(sampler$scout)) sampler <- scouted(sampler, course$plan)
  new_course(sampler, course$path, course$plan, course$records, passes, probes_of(course))
}

run_candidate <- function(course, candidate) {
  sampler <- course$sampler
  # by the particles of the fit, also where the run has fewer
  if (is.null(sampler$tuner$n_subsample)) sampler$tuner$n_subsample <- default_subsample(sampler$n_particles)
  of_run <- c("reference", "kernel", "n_particles")
  sampler[of_run] <- candidate[of_run]
  if (candidate$is_fitted) sampler$tuner <- with_guess(sampler$tuner, sampler$kernel, sampler$target$dim)
  record <- run_sampler(over_batches(sampler), candidate$path, "adapt", length(course$records))
  sampler$pace$per_evaluation <- record$runs$seconds / record$runs$n_target_evals
  named <- list(label = candidate$label, kernel = candidate$kernel$name)
  record$runs <- as_table(c(unclass(record$runs), named))
  of_candidate <- c("reason", "is_fitted", "kernel", "rung")
  record[of_candidate] <- candidate[of_candidate]
  record
}

# The course after a run. Candidates that the best before has led to are out of date where another has taken its place;
# the first ones all compete until one of them leaves nothing to gain.
judged <- function(course, record) {
  before <- course$best
  is_better <- takes_over(record, before)
  course$records <- c(course$records, list(record))
  # of the first ones only the winner is used
  course$used <- c(course$used & !(is_better && record$reason == "first"), is_better)
  if (is_better) course$best <- record
  is_decided <- ends_race(record, is_better, course$sampler)
  is_left <- function(candidate) {
    (if (candidate$reason == "first") !is_decided else !is_better) &&
      (is.null(course$best) || affords_candidate(course, candidate))
  }
  course$candidates <- Filter(is_left, course$candidates[-1])
  if (length(course$candidates) > 0) course else with_next(course, record, before, is_better)
}

# The course after a pass: the islands from the best, and what speaks against them. They are the best then, unless
# those of the pass before are.
with_islands <- function(course, islands) {
  sampler <- sampler_of_best(course)
  path <- final_path(course$best, course$plan)
  # for the default precision alone not without end
  islands$grows <- islands$grows && (length(islands$asked) > 0 || sampler$n_particles < default_particles)
  last <- course$result
  announce_islands(sampler, islands$islands, course$best$runs, "{n} island{?s}", longest_untold)
  if (!is.null(last)) {
    course$passes <- c(course$passes, list(unused(last$row)))
    course["result"] <- list(NULL)
  }
  final <- run_islands(
    sampler, path, affordable_islands(islands, sampler, path, course, course$plan),
    start = 1 + length(course$passes) * islands_apart
  )
  is_new_kind <- !is.null(last) && is_plain(last$final$reference) && !is_plain(final$reference)
  course$n_passes <- if (is_new_kind) 1 else course$n_passes + 1
  before <- course$estimate
  if (!is.null(last)) course$estimate <- last$estimate
  result <- conclude(sampler, final, course)
  record <- record_of_islands(result, course$best)
  is_better <- is.null(last) || takes_over(record, last$record)
  if (is_better) {
    course$result <- c(result, list(record = record))
  } else {
    course$passes[[length(course$passes)]] <- unused(result$row)
    course$estimate <- before
    course$result <- last
    course$result$diagnostics <- judge_diagnostics(last$sampler, last$final, course, last$found)
  }
  course$best <- course$result$record
  with_further(course, islands, may_fit = is_better, may_lengthen = is_better || record$reason != "longer")
}

# A course without the particles of its runs, and all that there is of each of these.
forget_draws <- function(course) {
  of_run <- function(record) record[setdiff(names(record), c("particles", "log_weights", "all", of_draws))]
  course$records <- lapply(course$records, of_run)
  course$best <- of_run(course$best)
  course
}
