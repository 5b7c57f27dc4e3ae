# Candidates: what may be run next, why, and what that would cost.

# A list of the `reference`; the `reason` why it is tried: it is one of the "first", to be run in "full" since a small
# run does not tell enough, that of another "fit", fitted to the best in a "round", or to the draws of the "islands",
# runs "longer" than these, or is "larger", with more particles; its `label`, to be read; the `rung` by which it was
# fitted, NULL for none; whether it is_fitted, or the one that the user gave; `kernel`, `path` and `n_particles`; and the
# evaluations that it may `cost`, from so many `n_steps`.
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

# The kernel of a run, where that is left to us. From the reference that was given the way may be long: KLMC keeps its
# direction, and its weights correct steps that would be rejected. From one that fits the target HMC, whose weights are
# those of the path alone; and at edges, and where the draws of KLMC are worth little. Where gradients are differences, a
# move without one costs a part of the calls; but in many variables it leads nowhere.
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

# Variables in which such a walk still gets somewhere.
largest_pcn <- 10

# Whether the scout has found that gradients are differences: it has a place to check them, and nothing to check.
has_differences <- function(scout) !is.null(scout$gradient_place) && is.na(scout$gradient)

# The path of a first run. Where weights do not depend on the moves, from a reference that fits, each step goes as far
# as the weights allow: that is one step from the target itself. Else a few steps do.
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

# As many particles as the tuner asks for.
n_of_race <- function(sampler) min(sampler$n_particles, max(rules$race_particles, sampler$tuner$n_subsample))

# the first ones ----------------------------------------------------------------

# A small run from each reference that there is, in the order of preference: what fits the draws that the
# target has, what covers all basins, what is right around the best of them by its gradients, what
# fits this basin, and the reference that is given, unless it is the default and too far. Where that is alone it is run
# in full.
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
    return(list(in_full(course)))
  }
  Map(function(reference, label) {
    new_candidate(course, reference, "first", label, label != "given", n_particles = n_of_race(sampler))
  }, references, names(references))
}

# Whether the standard normal distribution is so far from the target, by the ELBO of the best basin over its own, that
# not one of the particles is worth anything after a step of a small run.
is_too_far <- function(scout) {
  isTRUE(max(scout$basins$elbo, -Inf) - scout$standard_elbo > rules$race_steps * log(rules$race_particles))
}

affords_candidate <- function(course, candidate) {
  affords(course, candidate$reason, candidate$cost, candidate$n_steps)
}

# A small run from the reference of another fit, along the same path, if the kernel is the same; or, where this does not
# lead to the target, one that finds and tunes a path of its own, if that is not too long.
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

# Whether a round from there is worth its cost: whether the barrier would fall enough if it became that of the fit
# again, and a single step is not all that there is.
is_farther <- function(record, before) {
  barrier <- record$runs$barrier
  barrier * rules$steps_per_barrier > 1 && rules$lower_barrier * barrier > before$barrier
}

# Along the path as it was given: from the user's reference, or that of a record.
in_full <- function(course, record = NULL) {
  reference <- if (is.null(record)) course$sampler$reference else record$reference
  is_fitted <- if (is.null(record)) is_of_draws(reference) else record$is_fitted
  label <- if (is.null(record)) "given" else record$runs$label
  new_candidate(course, reference, "full", label, is_fitted, path = course$path)
}

# what follows a run ------------------------------------------------------------

# The course with the candidate that follows the last one, a record that was judged better than the best before or not.
# Of the first ones the winner is run again in full where it is the user's, or rests on a single genealogy. Then come
# rounds, at least and at most as many as planned, as long as they help.
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
    course$candidates <- list(in_full(course, best))
    return(course)
  }
  if (record$reason == "first") {
    tell_poor_draws(course)
    course$candidates <- without_null(list(of_both(course)))
    if (length(course$candidates) > 0) return(course)
  }
  is_round <- record$reason == "round"
  course$n_rounds <- if (is_round) course$n_rounds + 1 else 0
  if (!is_better && is_round) course$allowed <- if (!is.null(record$rung)) below(record$rung, course$allowed)
  if (is_better && record$reason %in% c("islands", "larger")) course$allowed <- names(rungs)
  goes_on <- switch(record$reason,
    round = course$n_rounds < course$plan$rounds[1] || is_worth_another(record, before, is_better, allowed_now(course)),
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

# A mixture of the best of the first and of one that lost, whose draws are elsewhere with a part of the evidence that
# matters: each has missed what the other has found. NULL for none, and where a mixture has been run already.
of_both <- function(course) {
  best <- course$best
  lost <- Filter(function(record) record$reason == "first" && !is_dead(record), course$records)
  has_mixture <- any(vapply(lost, function(record) is_mixture(record$reference), NA))
  here <- if (!has_mixture) weighted_factor(best, weighty_rows(best$log_weights))
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

# The normal distribution of the draws of a record that are out of reach of another one, with the logarithm of their
# evidence; NULL where they are too few.
normal_elsewhere <- function(record, here) {
  weighty <- weighty_rows(record$log_weights)
  x <- unconstrained_particles(record)[weighty$rows, , drop = FALSE]
  w <- weighty$w * (rowSums(from_user(here, x)^2) > (sqrt(ncol(x)) + basin_radius)^2)
  normal <- moments_of(x, w / sum(w))
  if (!is.null(normal)) c(normal, list(elbo = record$runs$log_z + log(sum(w))))
}

# Draws that were given may be those of another model, or of some of the modes.
tell_poor_draws <- function(course) {
  of_draws <- Filter(function(record) is_of_draws(record$reference), course$records)
  is_poor <- function(record) is_dead(record) || is_higher(course$best, record, rules$fall)
  if (any(vapply(of_draws, is_poor, NA))) {
    tell("draws", c(
      "i" = "From the draws that are the {.arg reference} less evidence was found than from elsewhere: are they of this
        model, on its scale, and of all its modes?"
    ))
  }
}

# A reference that is fitted to the best, or the same again, with temperatures spread anew. Where none can be fitted the
# number of steps is kept.
next_round <- function(course) {
  best <- course$best
  plan <- course$plan
  path <- course$path
  proposal <- propose_next(course, best, allowed_now(course))
  reference <- if (is.null(proposal)) best$reference else proposal$reference
  if (is.null(path$adaptive_ess)) {
    least <- if (plan$whiten && is.null(proposal)) nrow(best$steps) else least_steps
    # where the reference is the target there is no way, and the barrier is the kernel's alone
    n_steps <- if (is_exact_reference(reference)) 1
    path$lambda <- barrier_schedule(best$steps, n_steps, plan$max_steps, least)[-1]
  }
  is_fitted <- !is.null(proposal) || best$is_fitted
  label <- if (is.null(proposal)) best$runs$label else proposal$rung
  new_candidate(course, reference, "round", label, is_fitted, proposal$rung, path)
}

# As propose(), with the randomness of this place in the course.
propose_next <- function(course, record, allowed) {
  density <- affordable_density(course)
  seed <- seed_of_run(course$sampler$seed, fit_key - length(course$records))
  with_seed(seed, propose(with_differences(record, density), allowed, density))
}

# A record of a kernel that asks for no gradients with those at its particles, where there are no more of these than
# fits take. density: of affordable_density().
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

# A shape that was found stays, and so do several basins, of which a normal distribution might
# leave some behind. From where the user started, the first particles are too far off to show what
# depends on what.
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

# what follows islands ----------------------------------------------------------

# The course with the candidates that the draws of the islands, the best, and their diagnostics ask for: a better
# reference, and the same one with more particles, where these may still grow, or else with more steps. All are left out
# where the call does not adapt, or after too many passes. Islands from another fit have to pass all diagnostics.
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
    course$sampler$kernel <- kernel_hmc() # which rejects what would cross an edge
  }
  grows <- islands$grows && misses_precision(course, islands)
  if (grows) course <- with_larger_islands(course)
  fitted <- if (may_fit) fitted_to_islands(course, record)
  # a better reference comes first, which costs less
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

# A reference of another shape, or after the first pass of the same one, which the particles of a single round have
# shown only roughly; or, where a diagnostic has failed, the best that can be fitted. There is no more to learn where
# the reference is the target, or that of another fit, where the bridge is sure of its estimate, or after a pass in
# which this has not risen. NULL for none.
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

# The same reference with more steps, where a diagnostic has failed and nothing better can be fitted to the draws.
# Then one longer pass is enough, if it agrees with the one before, but where `ancestor_ess` fails still. NULL for
# none.
lengthened <- function(course) {
  best <- course$best
  diagnostics <- course$result$diagnostics
  # an integral that is infinite stays so
  may_be_cured <- setdiff(names_of_failed(diagnostics), "proper")
  agrees <- best$reason == "longer" && !any(has_failed(diagnostics, c("passes", "ancestor_ess")))
  n_steps <- min(rules$longer * nrow(best$steps), course$plan$max_steps)
  if (length(may_be_cured) > 0 && !agrees && n_steps > nrow(best$steps)) repeated(course, "longer", n_steps)
}

# The same reference, with so many steps.
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

# Whether more islands would be needed for the precision than there may be.
misses_precision <- function(course, islands) {
  final <- course$result$final
  n_needed(final, nrow(final$islands), islands) > nrow(final$islands)
}

# Whether diagnostics fail of fewer particles than islands of a given number have. That passes differ says nothing of
# the last.
is_too_small <- function(course) {
  length(setdiff(names_of_failed(course$result$diagnostics), "passes")) > 0 &&
    course$sampler$n_particles < default_particles
}
