# Passes: adaptation, then the islands, which are run for the estimate; and where their
# draws show that there is more to be learnt, they count as a last round, and adaptation
# goes on from them to other islands.

# Returns list(sampler, course, final, estimate, diagnostics) of the last pass.
passes <- function(sampler, path, plan, islands) {
  course <- adapt(sampler, path, plan)
  for (pass in seq_len(1 + rules$most_passes_after)) {
    result <- one_pass(
      with_reference(sampler, course$best$reference),
      final_path(course$best, sampler$reference, sampler$kernel, plan$step_fraction),
      islands, course,
      start = 1 + (pass - 1) * rules$islands_apart
    )
    proposal <- if (plan$whiten && pass <= rules$most_passes_after) reshape(result)
    if (is.null(proposal)) {
      break
    }
    course <- go_on(course, result, proposal, sampler, path, plan)
    if (!course$reshaped) {
      break
    }
  }
  result$course <- course
  result
}

# The islands from the reference of the sampler, and what is to be said of them.
one_pass <- function(sampler, path, islands, course = NULL, start = 1) {
  final <- run_islands(sampler, path, islands, start)
  estimate <- combine(final$islands)
  list(
    sampler = sampler,
    course = course,
    final = final,
    estimate = estimate,
    diagnostics = diagnose(sampler, course, final, estimate)
  )
}

with_reference <- function(sampler, reference) {
  sampler$reference <- reference
  sampler
}

# A reference of another shape, that the draws of the islands ask for: a proposal as of
# propose(), or NULL.
reshape <- function(result) {
  record <- as_round(result)
  proposal <- propose(record, "shape")
  if (!is.null(proposal) && proposal$gain > rules$least_shape_gain) proposal
}

# The islands as a round.
as_round <- function(result) {
  final <- result$final
  record <- final[c(
    "particles", "unconstrained", "coordinates", "gradients", "log_weights", "origins",
    "reference"
  )]
  record$steps <- final$steps[final$steps$island == final$island[1], ]
  record$runs <- final$islands[1, ]
  record$runs$log_z <- result$estimate$log_z
  record$runs$predicted_sd <- result$estimate$std_error
  record$runs$label <- "islands"
  record$dead <- FALSE
  record
}

# A run from the proposal; where it is no worse, rounds from it as before. The rejected
# leaves the course as it is, but for its record.
go_on <- function(course, result, proposal, sampler, path, plan) {
  islands <- as_round(result)
  sampler$reference <- proposal$reference
  path$lambda <- schedule_power(min(rules$race_steps, length(path$lambda)))[-1]
  record <- tuned_run(course, sampler, path, proposal$rung)
  course$reshaped <- !is_dead(record) && !rises(record, islands, rules$fall_reshaped)
  course <- keep(course, record, used = course$reshaped)
  if (course$reshaped) {
    course$best <- record
    course$allowed <- names(rungs)
    course <- repeat_rounds(course, sampler, path, plan)
  }
  course
}
