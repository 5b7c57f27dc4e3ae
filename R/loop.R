# The main loop of smc() and smc_adapt().

# The scout searches for the modes of the target. The references that it finds, and the one that was given, are the
# first candidates. After each run the verdict on its record decides whether it replaces the best one so far, and which
# candidates follow. When no affordable candidate is left, islands are run from the best reference. If a diagnostic
# fails, or a better reference can be fitted to their draws, further candidates follow. A course that started from
# another fit and fails is restarted without it.
#
# islands: of check_islands(); NULL where only adaptation is wanted. Returns the course.
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
      course <- after_run(course, run_candidate(course, course$candidates[[1]]))
    }
    if (!is.null(course$fails)) {
      course <- restarted_without_fit(course)
    } else if (is.null(islands) || is_of_islands(course$best)) {
      return(course)
    } else {
      course <- forget_draws(course) # to save memory: no further reference is fitted to them
      course <- with_islands(course, islands)
    }
  }
}

# The state of the loop, a list:
# * `sampler`, `path`, `plan`: as at the start; `scout`, `surrogate`: results of the scout and of the surrogate's fit;
# * `given_fit`: the fit that the course starts from, or NULL; `fails`: why that fails, in words;
# * `density`: the counted density for fits of references, NULL for kernels without gradients;
# * `candidates`: those still to be run; `records`: of all adapting runs; `used`: which of them were the best when run;
# * `best`: the record of the best run or islands; `allowed`: the rungs by which the next reference may be fitted;
#   `n_rounds`: rounds since the last start;
# * `result`: what is reported of the islands; `passes`: rows of `runs` of replaced islands; `estimate`: the one before
#   the reported one; `n_passes`: passes with references of the present kind, with or without maps.
# A restarted course takes over the `records` and `passes` of the failed one, and the evaluations of its fits, `probes`.
new_course <- function(sampler, path, plan, records = list(), passes = list(), probes = NULL) {
  course <- list(
    sampler = sampler, path = path, plan = plan, scout = sampler$scout, surrogate = sampler$surrogate,
    given_fit = sampler$given_fit, records = records, used = logical(length(records)),
    allowed = if (plan$whiten) names(rungs), n_rounds = 0,
    # the reference of a given fit has been through a pass
    passes = passes, n_passes = if (is.null(sampler$given_fit)) 0 else 1, probes = probes,
    density = if (sampler$kernel$gradients) counted_density(sampler$target, over_batches(sampler)$evaluators)
  )
  course$candidates <- first_candidates(course)
  course
}

# The course restarted without the given fit, after it has failed from there. Its runs stay in the records.
restarted_without_fit <- function(course) {
  why <- course$fails
  inform("cold", c("i" = "Starting from the fit in {.arg reference}, {why}: the target is fitted without it."))
  sampler <- without_fit(course$sampler)
  passes <- c(course$passes, if (!is.null(course$result)) list(unused(course$result$row)))
  if (is.null(sampler$scout)) sampler <- scouted(sampler, course$plan)
  new_course(sampler, course$path, course$plan, course$records, passes, probes_of(course))
}

# The record of a candidate's run, with the reason for it.
run_candidate <- function(course, candidate) {
  sampler <- course$sampler
  # the default depends on the number of particles of the fit, also where the run has fewer
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

# The course after a run. If the best record is replaced, candidates that followed from the old one are dropped. The
# first candidates are all run, until one of them leaves nothing to gain.
after_run <- function(course, record) {
  before <- course$best
  is_better <- replaces_best(record, before)
  course$records <- c(course$records, list(record))
  # of the first candidates only the best counts as used
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

# The course after a pass, that is, after running islands from the best reference and their diagnostics. These islands
# become the best record, unless those of the previous pass remain better.
with_islands <- function(course, islands) {
  sampler <- sampler_of_best(course)
  path <- final_path(course$best, course$plan)
  # without a requested precision the number of particles grows only up to the default
  islands$grows <- islands$grows && (length(islands$asked) > 0 || sampler$n_particles < default_particles)
  last <- course$result
  announce_islands(sampler, islands$islands, course$best$runs, "{n} island{?s}", unannounced_seconds)
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
  is_better <- is.null(last) || replaces_best(record, last$record)
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

# The course without the particles of its runs and their weights, coordinates and gradients.
forget_draws <- function(course) {
  of_run <- function(record) record[setdiff(names(record), c("particles", "log_weights", "all", of_draws))]
  course$records <- lapply(course$records, of_run)
  course$best <- of_run(course$best)
  course
}
