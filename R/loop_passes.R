# Passes: adaptation, then the islands, which are run for the estimate; and where their
# draws show that there is more to learn, they count as a last round, and adaptation
# goes on from them to other islands.

# Returns list(sampler, course, final, rays, mirrors, lines, diagnostics) of the last pass.
passes <- function(sampler, path, plan, islands) {
  sampler <- scouted(sampler, plan)
  course <- adapt(sampler, path, plan)
  before <- NULL # the result of the pass before
  n_shaped <- 0 # passes since a reference with a shape was found
  for (pass in seq_len(1 + rules$most_further_passes)) {
    course <- forget_draws(course) # no more is fitted to them
    result <- run_pass(sampler, course, plan, islands, pass)
    course$n_final_evals <- sum(course$n_final_evals, final_row(result)$n_target_evals)
    if (n_shaped > 0 || !is_plain(result$sampler$reference)) {
      n_shaped <- n_shaped + 1
    }
    is_spoilt <- !is.null(before) && has_spoilt(result, before)
    may_lengthen <- !is_spoilt || !is_longer(course)
    if (is_spoilt) {
      course$passes[[pass - 1]] <- final_row(result, used = FALSE)
      course$best <- before$course$best
      result <- before
    }
    proposal <- if (pass <= rules$most_further_passes) {
      propose_pass(
        result, course, plan, if (n_shaped > 0) n_shaped else pass,
        may_reshape = !is_spoilt, may_lengthen = may_lengthen
      )
    }
    if (is.null(proposal)) {
      break
    }
    if (isTRUE(sampler$chooses_kernel) && has_failed(result$diagnostics, "edges")) {
      sampler$kernel <- kernel_mala() # which rejects what would cross an edge
    }
    course <- go_on(course, result, proposal, sampler, path, plan)
    # where what was fitted is no better, more steps may be
    if (!course$reshaped && may_lengthen && proposal$rung != "longer") {
      course <- go_on(course, result, lengthen(result, course, plan), sampler, path, plan)
    }
    if (!course$reshaped) {
      break
    }
    before <- result
    course$passes <- c(course$passes, list(final_row(result, used = FALSE)))
    course$estimate <- headline(result$final$estimates)
  }
  result$course <- course
  result
}

# A course without the particles of its runs, and all that there is of each of these.
forget_draws <- function(course) {
  of_run <- function(record) {
    record[setdiff(names(record), c("particles", "log_weights", of_draws))]
  }
  course$records <- lapply(course$records, of_run)
  course$best <- of_run(course$best)
  course
}

# The islands from the best round, each pass with streams of its own, and what speaks against them.
run_pass <- function(sampler, course, plan, islands, pass) {
  of_best <- sampler_of_best(sampler, course)
  path <- final_path(course$best, sampler, plan)
  final <- run_islands(
    of_best, path, affordable_islands(islands, of_best, path, course, plan),
    start = 1 + (pass - 1) * islands_apart
  )
  conclude(of_best, final, course)
}

# What a further pass would run from: a better reference, or the same one with more steps. NULL where
# neither is called for or affordable. pass: as of reshape().
propose_pass <- function(result, course, plan, pass, may_reshape, may_lengthen) {
  may_go_on <- plan$whiten && plan$rounds[2] > 0 && affords_run(course, result$sampler, plan)
  proposal <- if (may_go_on && may_reshape) {
    reshape(result, pass, affordable_density(course, result$sampler, plan))
  }
  if (is.null(proposal) && may_go_on && may_lengthen) {
    lengthen(result, course, plan)
  } else {
    proposal
  }
}

# Whether the reference of a pass is worse than that of the one before: its error is several
# times as large, and it has found no more evidence.
has_spoilt <- function(result, before) {
  now <- headline(result$final$estimates)
  last <- headline(before$final$estimates)
  error <- sqrt(now$std_error^2 + last$std_error^2)
  isTRUE(now$std_error > rules$spoilt * last$std_error) &&
    now$log_z - last$log_z < rules$errors_apart * error
}

# The islands of a sampler, and what speaks against them.
conclude <- function(sampler, final, course = NULL) {
  # where the verb has no further passes, the target is not asked for more than the islands
  asks_more <- !is.null(course) && is.null(final$moments)
  rays <- if (asks_more) look_along_rays(sampler, final)
  mirrors <- if (asks_more) look_in_mirrors(sampler, final)
  lines <- if (asks_more) look_along_lines(sampler, final)
  list(
    sampler = sampler,
    course = course,
    final = final,
    rays = rays,
    mirrors = mirrors,
    lines = lines,
    diagnostics = diagnose(sampler, course, final, rays, mirrors, lines)
  )
}

# The sampler with the reference and the kernel of the best round.
sampler_of_best <- function(sampler, course) {
  sampler$reference <- course$best$reference
  sampler$kernel <- course$best$kernel
  sampler
}

# What the islands run with, from the best round. The longer the steps of KLMC, the more
# evidence it loses, without a sign, where a density bends sharply: so they are shortened,
# and more where the best reference is one for tails, necks or bends. Not on a long way from
# the reference that was given, which needs them. There the rates of refreshment are left, too.
# Elsewhere the target is nearly standard normal in the reference's coordinates, and the motion is
# critically damped: the tuner, which sees one step at a time, is all but indifferent to the rate, and
# where it takes a low one the copies that resampling has made of a particle stay together.
final_path <- function(best, sampler, plan) {
  path <- as.list(best$steps)
  if (best$kernel$refreshes && !is_given(best$reference, sampler)) {
    shorter <- if (is_plain(best$reference)) 1 else rules$shaped_fraction
    path$step_size <- shorter * plan$step_fraction * path$step_size
    if (is.null(best$kernel$refresh_rate)) {
      path$refresh_rate <- sqrt(1 - exp(-2 * rules$damping * path$step_size))
    }
  }
  path
}

# further passes --------------------------------------------------------------

# A reference that the draws of the islands ask for: of another shape, or after the first
# pass of the same one, which the particles of a single round have shown only roughly; or,
# where a diagnostic has failed, the best that can be fitted. There is no more to learn
# where the reference is the target, where the bridge is sure of its estimate, or after a pass in
# which this has not risen.
# pass: its number, counted from the first whose reference has a shape. A proposal as of
# propose(), or NULL.
reshape <- function(result, pass, density = NULL) {
  estimate <- headline(result$final$estimates)
  is_rough <- pass == 1 && !is_plain(result$final$reference)
  enough <- if (is_rough) rules$sure_shape else rules$sure_bridge
  is_sure <- is_exact_reference(result$final$reference) ||
    estimate$method == "bridge" && estimate$std_error < enough
  if (is_sure && length(failed(result$diagnostics)) == 0) {
    return(NULL)
  }
  if (pass > rules$sure_passes && !has_failed(result$diagnostics, "passes")) {
    return(NULL)
  }
  record <- as_round(result)
  if (has_failed(result$diagnostics, "rays")) {
    nested <- fit_nested(record, result$rays)
    if (!is.null(nested)) {
      return(nested)
    }
    record <- with_found(record, result$rays)
  }
  if (has_failed(result$diagnostics, "lines")) {
    record <- with_points_beyond(record, result$lines)
  }
  proposal <- propose(record, shapes, density)
  if (!is.null(proposal) && (is_rough || gains_enough(proposal))) {
    return(proposal)
  }
  if (any(names_of_failed(result$diagnostics) != "ancestor_ess")) {
    if (is.null(proposal)) propose(record, setdiff(names(rungs), shapes)) else proposal
  }
}

# Whether a shape is worth a pass.
gains_enough <- function(proposal) proposal$gain > rules$least_shape_gain

# The same reference with more steps, where a diagnostic has failed, or the draws are worth little, and nothing better
# can be fitted to them: well before the diagnostic `ancestor_ess` fails, since two passes that agree are
# evidence. Then one longer pass is enough, but where `ancestor_ess` fails still. A proposal as of propose(), with the
# `lambda` of its path; or NULL.
lengthen <- function(result, course, plan) {
  ancestor_ess <- result$diagnostics$value[result$diagnostics$name == "ancestor_ess"]
  # an integral that is infinite stays so
  may_be_cured <- setdiff(names_of_failed(result$diagnostics), "proper")
  is_poor <- isTRUE(ancestor_ess < rules$sure_ancestor_ess) || length(may_be_cured) > 0
  agrees <- is_longer(course) && !any(has_failed(result$diagnostics, c("passes", "ancestor_ess")))
  steps <- as_round(result)$steps
  n_steps <- min(rules$longer * nrow(steps), plan$max_steps)
  if (is_poor && !agrees && n_steps > nrow(steps) &&
    affords_run(course, result$sampler, plan, n_steps)) {
    list(
      reference = result$final$reference, rung = "longer",
      lambda = barrier_schedule(steps, n_steps, n_steps)[-1]
    )
  }
}

is_longer <- function(course) identical(course$best$runs$label, "longer")

with_reference <- function(sampler, reference) {
  sampler$reference <- reference
  sampler
}

# The islands as a round.
as_round <- function(result) {
  final <- result$final
  record <- final[c(
    "particles", "unconstrained", "coordinates", "gradients", "log_weights", "origins",
    "reference"
  )]
  record$steps <- as_table(steps_of_first(final))
  record$runs <- row_of(final$islands, 1)
  estimate <- headline(final$estimates)
  record$runs$log_z <- estimate$log_z
  if (nrow(final$islands) > 1) {
    # several islands do not come from one genealogy, however large their error
    record$runs$predicted_sd <- min(estimate$std_error, rules$one_genealogy)
  }
  record$runs$label <- "islands"
  record$dead <- FALSE
  record
}

# Steps for each unit of the barrier that rounds like the next one meet: where its kernel is that of
# the best round, the islands' steps were shorter than those of that round, and so was the barrier
# that they have met.
steps_per_barrier <- function(islands, best, next_round) {
  ratio <- mean(islands$barrier[islands$log_z > -Inf]) / best$runs$barrier
  is_shorter <- identical(next_round$kernel, best$runs$kernel) && isTRUE(ratio < 1)
  rules$steps_per_barrier * if (is_shorter) ratio else 1
}

# A run from the proposal; where its estimate is no lower, rounds from it as before. A
# rejected one leaves the course as it is, but for its record; and so does none.
go_on <- function(course, result, proposal, sampler, path, plan) {
  if (is.null(proposal)) {
    return(course)
  }
  islands <- as_round(result)
  from_proposal <- with_reference(sampler, proposal$reference)
  first_path <- race_path(path, from_proposal, proposal$rung)
  if (!is.null(proposal$lambda)) {
    first_path$lambda <- proposal$lambda
    first_path$adaptive_ess <- first_path$n_steps <- NULL
  }
  record <- tuned_run(course, from_proposal, first_path, proposal$rung)
  course$steps_per_barrier <- steps_per_barrier(result$final$islands, course$best, record$runs)
  course$reshaped <- !is_dead(record) && !rises(record, islands, rules$fall_reshaped)
  course <- keep(course, record, used = course$reshaped)
  if (course$reshaped) {
    course$best <- record
    course$allowed <- names(rungs)
    if (is.null(proposal$lambda)) course <- repeat_rounds(course, sampler, path, plan)
  }
  course
}

# The steps of the first of the islands that live, as a list of columns.
steps_of_first <- function(final) {
  row_of(final$steps, final$steps$island == final$steps$island[1])
}

# The islands of a pass together, with the evaluations of bridge and diagnostics.
final_row <- function(result, used = TRUE) {
  islands <- result$final$islands
  label <- result$course$best$runs$label
  row <- row_of(islands, 1)
  row$run <- "final"
  row$used <- used
  row$label <- if (is.null(label)) "given" else label
  row$kernel <- result$sampler$kernel$name
  by_smc <- row_of(result$final$estimates, 1)
  by_smc$method <- NULL
  row[names(by_smc)] <- by_smc
  row$islands <- nrow(islands)
  row$barrier <- mean(islands$barrier, na.rm = TRUE)
  sums <- c("n_objective_evals", "n_target_evals", "n_impossible", "seconds")
  row[sums] <- lapply(unclass(islands)[sums], sum, na.rm = TRUE)
  asked <- c(
    edges = n_edge_trials(result$sampler, result$course),
    proper = n_proper_trials(result$sampler, result$course),
    rays = n_rays(result$sampler, row$n_target_evals) * n_ray_evals(result$sampler)
  )
  row$n_target_evals <- row$n_target_evals + result$final$n_bridge_evals +
    sum(asked[names(asked) %in% result$diagnostics$name], result$mirrors$n_target_evals, result$lines$n_target_evals)
  row
}
