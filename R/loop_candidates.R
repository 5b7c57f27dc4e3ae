# Candidates: references that may be run next, each with the reason and the predicted cost. Called by the loop in
# loop.R.

# A candidate, a list:
# * `reference`; `label`: its name in tables; `rung`: of learn_rungs.R, by which it was fitted, NULL for none;
# * `is_fitted`: FALSE for the reference that the user gave;
# * `reason`: "first" for a small first run, "full" for a run along the whole path, "fit" for the reference of another
#   fit, "round" for one fitted to the best record, "islands" for one fitted to islands, "longer" for the same reference
#   with more steps, and "larger" for the same with more particles;
# * `kernel`, `path`, `n_particles`; `cost`: predicted evaluations, for `n_steps` steps.
new_candidate <- function(course, reference, reason, label, is_fitted = TRUE, rung = NULL,
                          path = NULL, n_particles = course$sampler$n_particles) {
  kernel <- kernel_for(course, reference, is_fitted, reason)
  n_steps <- if (reason == "longer") length(path$lambda) else steps_of_best(course)
  list(
    reference = reference, reason = reason, label = label, rung = rung, is_fitted = is_fitted, kernel = kernel,
    path = if (is.null(path)) short_path(course$path, kernel, is_fitted) else path,
    n_particles = n_particles, cost = run_evaluations(course, n_steps, n_particles), n_steps = n_steps
  )
}

# The kernel of a run, where it is chosen automatically. From the user's reference, which may be far away, KLMC: it
# keeps its direction, and its weights correct steps that would be rejected. From a fitted reference HMC, whose weights
# do not depend on the moves; also for truncated targets, and for longer runs after KLMC draws of small effective sample
# size. Where gradients are finite differences, in few variables, pCN, which needs no gradients.
kernel_for <- function(course, reference, is_fitted, reason) {
  sampler <- course$sampler
  if (!isTRUE(sampler$chooses_kernel)) {
    return(sampler$kernel)
  }
  is_dear <- has_differences(course$scout) && sampler$target$dim <= largest_pcn
  if (is_dear && is_fitted && !is_mixture(reference)) {
    return(kernel_pcn())
  }
  suits <- is_fitted || is_exact_reference(reference) || is_truncated(sampler$target) || reason == "longer" ||
    reason == "fit" && course$given_fit$kernel$adjusted
  if (suits) kernel_hmc() else sampler$kernel
}

# Largest number of variables for this choice of pCN, which moves slowly in many variables.
largest_pcn <- 10

# Whether gradients are finite differences, by the scout: it then has a place for a check, but no gradient to check.
has_differences <- function(scout) !is.null(scout$gradient_place) && is.na(scout$gradient)

# The path of a first run. From a fitted reference with an adjusted kernel, temperatures are found by the effective
# sample size: a single step if the reference is the target. Otherwise it has `race_steps` steps at most.
short_path <- function(path, kernel, is_fitted) {
  if (is.null(path$adaptive_ess)) {
    most <- length(path$lambda)
    if (is_fitted && kernel$adjusted) {
      return(list(adaptive_ess = rules$race_ess, n_steps = most))
    }
    path$lambda <- schedule_power(min(rules$race_steps, most))[-1]
  }
  path
}

# The number of particles of a first run: at least those that the tuner uses.
n_of_race <- function(sampler) min(sampler$n_particles, max(rules$race_particles, sampler$tuner$n_subsample))

# first candidates --------------------------------------------------------------

# A small run from each available reference, in the order of preference: that fitted to given draws, the mixture that
# covers all basins, the form fitted to gradients around the best basin, the normal distribution of this basin, and the
# user's reference, unless it is the default and too far away. The user's reference alone is run along the full path.
first_candidates <- function(course) {
  sampler <- course$sampler
  if (!is.null(course$given_fit)) {
    return(list(from_fit(course)))
  }
  given <- sampler$reference
  found <- rev(course$scout$references)
  given <- if (length(found) == 0 || !is_too_far(course$scout) || !has_default_reference(sampler)) given
  references <- without_null(if (is_of_draws(given)) c(list(draws = given), found) else c(found, list(given = given)))
  if (identical(names(references), "given")) {
    return(list(full_candidate(course)))
  }
  Map(function(reference, label) {
    new_candidate(course, reference, "first", label, label != "given", n_particles = n_of_race(sampler))
  }, references, names(references))
}

# Whether the standard normal distribution is so far from the target that no particle keeps a weight after one step of a
# small run, by the difference between the ELBO of the best basin and its own.
is_too_far <- function(scout) {
  isTRUE(max(scout$basins$elbo, -Inf) - scout$standard_elbo > rules$race_steps * log(rules$race_particles))
}

affords_candidate <- function(course, candidate) {
  affords(course, candidate$reason, candidate$cost, candidate$n_steps)
}

# A small run from the reference of another fit, along the path of that fit if the kernel is the same. Where that path
# is unknown or has failed, a new one is found and tuned, with `race_steps` steps at most.
from_fit <- function(course) {
  candidate <- new_candidate(course, course$sampler$reference, "fit", "fit", n_particles = n_of_race(course$sampler))
  before <- course$given_fit
  if (!is.null(before$path) && identical(before$kernel, candidate$kernel)) {
    candidate$path <- before$path
  } else if (!is.null(candidate$path$n_steps)) {
    candidate$path$n_steps <- min(candidate$path$n_steps, rules$race_steps)
  }
  candidate
}

# Whether a round may lower the barrier enough: if the barrier of the given fit is much lower, and more than one step is
# needed.
is_farther <- function(record, before) {
  barrier <- record$runs$barrier
  barrier * rules$steps_per_barrier > 1 && rules$lower_barrier * barrier > before$barrier
}

# A run along the given path, from the user's reference or that of a record.
full_candidate <- function(course, record = NULL) {
  reference <- if (is.null(record)) course$sampler$reference else record$reference
  is_fitted <- if (is.null(record)) is_of_draws(reference) else record$is_fitted
  label <- if (is.null(record)) "given" else record$runs$label
  new_candidate(course, reference, "full", label, is_fitted, path = course$path)
}

# candidates after a run --------------------------------------------------------

# The course with the candidate that follows the last run. `before` is the best record before it, and `is_better` says
# whether it was replaced. The best first candidate is run again along the full path if it is the user's reference, or
# its draws have a single ancestor. Then rounds follow as long as they help, within the planned numbers.
with_next <- function(course, record, before, is_better) {
  best <- course$best
  if (is.null(best) && record$reason == "full") {
    abort_dead(record, course$sampler)
  }
  if (record$reason == "fit" && (is.null(best) || is_one_genealogy(best))) {
    course["best"] <- list(NULL)
    if (is.null(course$given_fit$path)) {
      course$fails <- "no particles reach the target"
    } else {
      course$given_fit["path"] <- list(NULL)
      course$candidates <- list(from_fit(course))
    }
    return(course)
  }
  if (record$reason == "first" && (is.null(best) || !best$is_fitted || is_one_genealogy(best))) {
    course["best"] <- list(NULL)
    course$candidates <- list(full_candidate(course, best))
    return(course)
  }
  if (record$reason == "first") {
    tell_poor_draws(course)
    course$candidates <- without_null(list(combined_candidate(course)))
    if (length(course$candidates) > 0) return(course)
  }
  is_round <- record$reason == "round"
  course$n_rounds <- if (is_round) course$n_rounds + 1 else 0
  if (!is_better && is_round) course$allowed <- if (!is.null(record$rung)) below(record$rung, course$allowed)
  if (is_better && record$reason %in% c("islands", "larger")) course$allowed <- names(rungs)
  goes_on <- switch(record$reason,
    round = course$n_rounds < course$plan$rounds[1] ||
      needs_another_round(record, before, is_better, allowed_now(course)),
    islands = ,
    larger = is_better,
    longer = FALSE,
    fit = course$plan$rounds[1] > 0 || is_farther(record, course$given_fit),
    first = course$plan$rounds[1] > 1 || !is_exact_reference(best$reference) || nrow(best$steps) > 1,
    TRUE
  )
  if (goes_on && course$n_rounds < course$plan$rounds[2] && affords(course, "round")) {
    course$candidates <- list(next_round(course))
  }
  course
}

# A candidate with a mixture of the best first run and another first run, if that has found a relevant part of the
# evidence elsewhere. NULL where there is none, or a mixture has been run already.
combined_candidate <- function(course) {
  best <- course$best
  lost <- Filter(function(record) record$reason == "first" && !is_dead(record), course$records)
  has_mixture <- any(vapply(lost, function(record) is_mixture(record$reference), NA))
  here <- if (!has_mixture) weighted_factor(best, rows_with_weight(best$log_weights))
  if (is.null(here)) {
    return(NULL)
  }
  there <- without_null(lapply(lost, normal_elsewhere, here))
  there <- Filter(function(normal) normal$elbo - best$runs$log_z > log(rules$least_rise), there)
  if (length(there) > 0) {
    here$elbo <- best$runs$log_z
    reference <- new_mixture_reference(list(here, best_of(there, function(normal) normal$elbo)))
    new_candidate(course, reference, "first", "both", n_particles = n_of_race(course$sampler))
  }
}

# The normal distribution of a record's draws that are far from the normal distribution `here`, with the logarithm of
# their evidence as `elbo`; NULL where they are too few.
normal_elsewhere <- function(record, here) {
  weighty <- rows_with_weight(record$log_weights)
  x <- unconstrained_particles(record)[weighty$rows, , drop = FALSE]
  w <- weighty$w * (rowSums(from_user(here, x)^2) > (sqrt(ncol(x)) + basin_radius)^2)
  normal <- moments_of(x, w / sum(w))
  if (!is.null(normal)) c(normal, list(elbo = record$runs$log_z + log(sum(w))))
}

# Tells the user where given draws led to less evidence than another reference.
tell_poor_draws <- function(course) {
  of_draws <- Filter(function(record) is_of_draws(record$reference), course$records)
  is_poor <- function(record) is_dead(record) || is_higher(course$best, record, rules$fall)
  if (any(vapply(of_draws, is_poor, NA))) {
    inform_once("draws", c(
      "i" = "The run from the draws in {.arg reference} found less evidence than another run: are they of this
        model, on its scale, and of all its modes?"
    ))
  }
}

# A candidate with a reference fitted to the best record, and temperatures spread by its barrier. If none can be fitted,
# the same reference is run again with at least as many steps.
next_round <- function(course) {
  best <- course$best
  plan <- course$plan
  path <- course$path
  proposal <- propose_next(course, best, allowed_now(course))
  reference <- if (is.null(proposal)) best$reference else proposal$reference
  if (is.null(path$adaptive_ess)) {
    least <- if (plan$whiten && is.null(proposal)) nrow(best$steps) else least_steps
    # one step where the reference is the target: the barrier is then due to the kernel alone
    n_steps <- if (is_exact_reference(reference)) 1
    path$lambda <- barrier_schedule(best$steps, n_steps, plan$max_steps, least)[-1]
  }
  is_fitted <- !is.null(proposal) || best$is_fitted
  label <- if (is.null(proposal)) best$runs$label else proposal$rung
  new_candidate(course, reference, "round", label, is_fitted, proposal$rung, path)
}

# As propose(), with a seed that depends on the number of runs so far.
propose_next <- function(course, record, allowed) {
  density <- affordable_density(course)
  seed <- seed_of_run(course$sampler$seed, fit_key - length(course$records))
  with_seed(seed, propose(with_differences(record, density), allowed, density))
}

# For a record of a kernel without gradients: the record with the gradients at its particles, if these are not more than
# the points that a fit uses. density: of affordable_density().
with_differences <- function(record, density) {
  is_known <- !is.null(record$gradients) || !is.null(record$target_gradients)
  x <- unconstrained_particles(record)
  if (is_known || is.null(density) || nrow(x) > n_shape_points(ncol(x))) {
    return(record)
  }
  at <- density(x)
  if (any(at$log_density > -Inf)) record$target_gradients <- at$gradient
  record
}

# The rungs that are allowed for the next reference. After a reference with maps or a mixture only shapes are, since a
# normal distribution may lose what they describe. After the user's reference shapes are not allowed: the first
# particles are too far from the target to show dependence between variables.
allowed_now <- function(course) {
  reference <- course$best$reference
  if (!course$best$is_fitted) {
    setdiff(course$allowed, shapes)
  } else if (is_plain(reference) && !is_mixture(reference) && !is_exact_reference(reference)) {
    course$allowed
  } else {
    intersect(course$allowed, shapes)
  }
}

# candidates after islands ------------------------------------------------------

# The course with the candidates that follow from the islands and their diagnostics: a better reference, and the same
# one with more particles, where their number may still grow, or else with more steps. There are none where the call
# does not adapt, or after too many passes. Islands from a given fit must pass all diagnostics, or the course fails.
with_further <- function(course, islands, may_fit, may_lengthen) {
  plan <- course$plan
  if (!plan$whiten || plan$rounds[2] == 0 || length(course$passes) >= rules$most_further_passes) {
    return(course)
  }
  failed <- names_of_failed(course$result$diagnostics)
  if (!is.null(course$given_fit) && length(failed) > 0) {
    course$fails <- sprintf("diagnostics fail (%s)", toString(failed))
    return(course)
  }
  record <- with_remedies(course$best, course$result)
  if (isTRUE(record$has_edges) && isTRUE(course$sampler$chooses_kernel)) {
    course$sampler$kernel <- kernel_hmc() # rejects moves across an edge
  }
  grows <- islands$grows && misses_precision(course, islands)
  if (grows) course <- with_larger_islands(course)
  fitted <- if (may_fit) fitted_to_islands(course, record)
  # a better reference is tried before more particles, since it costs less
  if (islands$grows && !grows && is.null(fitted) && is_too_small(course)) {
    grows <- TRUE
    course <- with_larger_islands(course)
  }
  candidates <- without_null(list(
    fitted, if (grows) repeated(course, "larger", nrow(course$best$steps)) else if (may_lengthen) lengthened(course)
  ))
  course$candidates <- Filter(function(candidate) affords_candidate(course, candidate), candidates)
  course
}

# A candidate with a reference fitted to the islands: of another shape or, after the first pass, of the same shape,
# which a single round determines only roughly; or of any form that can be fitted, where a diagnostic has failed. NULL
# for a given fit's reference, after a settled number of passes without a rise of the estimate, and where all
# diagnostics pass and the reference is exact or the error of the bridge is small.
fitted_to_islands <- function(course, record) {
  result <- course$result
  estimate <- result$estimate
  is_rough <- course$n_passes == 1 && !is_plain(record$reference)
  enough <- (if (is_rough) rules$sure_shape else rules$sure_bridge) *
    sqrt(default_particles / course$sampler$n_particles)
  is_sure <- is_exact_reference(record$reference) || estimate$method == "bridge" && estimate$std_error < enough
  has_settled <- record$reason == "fit" ||
    course$n_passes > rules$sure_passes && !has_failed(result$diagnostics, "passes")
  if (has_settled || is_sure && length(failed(result$diagnostics)) == 0) {
    return(NULL)
  }
  proposal <- propose_next(course, record, shapes)
  if (is.null(proposal) || !is_rough && proposal$gain <= rules$least_shape_gain) {
    if (all(names_of_failed(result$diagnostics) == "ancestor_ess")) {
      return(NULL)
    }
    if (is.null(proposal)) proposal <- propose_next(course, record, setdiff(names(rungs), shapes))
  }
  if (!is.null(proposal)) new_candidate(course, proposal$reference, "islands", proposal$rung, rung = proposal$rung)
}

# A candidate with the same reference and more steps, where a diagnostic has failed. One longer pass is enough, if it
# agrees with the one before and `ancestor_ess` passes. NULL for none.
lengthened <- function(course) {
  best <- course$best
  diagnostics <- course$result$diagnostics
  # more steps do not make a posterior proper
  may_be_cured <- setdiff(names_of_failed(diagnostics), "proper")
  agrees <- best$reason == "longer" && !any(has_failed(diagnostics, c("passes", "ancestor_ess")))
  n_steps <- min(rules$longer * nrow(best$steps), course$plan$max_steps)
  if (length(may_be_cured) > 0 && !agrees && n_steps > nrow(best$steps)) repeated(course, "longer", n_steps)
}

# A candidate with the same reference and this number of steps.
repeated <- function(course, reason, n_steps) {
  best <- course$best
  path <- course$path
  path$adaptive_ess <- path$n_steps <- NULL
  path$lambda <- barrier_schedule(best$steps, n_steps, n_steps)[-1]
  new_candidate(course, best$reference, reason, reason, path = path)
}

with_larger_islands <- function(course) {
  course$sampler$n_particles <- rules$longer * course$sampler$n_particles
  course
}

# Whether the requested precision needs more islands than have been run.
misses_precision <- function(course, islands) {
  final <- course$result$final
  n_needed(final, nrow(final$islands), islands) > nrow(final$islands)
}

# Whether a diagnostic other than `passes` fails, with fewer particles than the default.
is_too_small <- function(course) {
  length(setdiff(names_of_failed(course$result$diagnostics), "passes")) > 0 &&
    course$sampler$n_particles < default_particles
}
