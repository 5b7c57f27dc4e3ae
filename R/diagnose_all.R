# All diagnostics of a fit. Each compares a number with a limit, says in a sentence what is wrong where the limit is
# exceeded, and gives advice. conclude() in loop_islands.R calls them after the final runs; diagnose.R has the
# interface.

# The diagnostics, in the order in which they are evaluated.
diagnostics <- function() {
  list(
    scatter = scatter_diagnostic, largest_share = share_diagnostic, dead_islands = dead_diagnostic,
    estimates = estimates_diagnostic, edges = edges_diagnostic, jumps = jumps_diagnostic,
    mean_gradient = mean_gradient_diagnostic, stein = stein_diagnostic, width = width_diagnostic,
    ancestor_ess = ancestor_ess_diagnostic, proper = proper_diagnostic, rays = rays_diagnostic,
    mirrors = mirrors_diagnostic, lines = lines_diagnostic, elbo = elbo_diagnostic, basins = basins_diagnostic,
    rounds = rounds_diagnostic, passes = passes_diagnostic, correction = correction_diagnostic
  )
}

# Advice, by the names in `advise` of the diagnostics, in the order in which it is printed. `advice_of_one_mode` is
# printed only where the scout has found a single mode. Edges and mirrors have their advice in their own sentence.
advice <- c(
  prior = "Give every parameter a proper prior; of several that only their sum or difference matters for, fix one.",
  far_out = "There may be more of the target far out: start from a wide {.arg reference}, such as
    {.code reference_gaussian(sd = 10)} on the unconstrained scale, with {.code scout = FALSE}.",
  form = "Where the scales of some variables depend on others, another form of the model may help:
    see {.code vignette(\"trouble\")}.",
  particles = "Run again with twice the {.arg n_particles}: if {.field log_z} rises by more than twice its
    error, this run missed something."
)
advice_of_one_mode <- "form"

# Evaluates the target at further points for the diagnostics that need them: list(found, count), with what each has
# found and the number of evaluations, as counted_density() gives it. Nothing is evaluated where there is no course,
# that is, where the call does not adapt, or where only moments were kept.
ask_diagnostics <- function(sampler, final, course) {
  if (is.null(course) || !is.null(final$moments)) {
    return(list(found = list(), count = zero_counts))
  }
  evaluate <- counted_density(sampler$target, over_batches(sampler)$evaluators)
  seen <- diagnostic_inputs(sampler, final, course)
  seen$contradicts <- contradict_gradients(seen) # for edges and jumps
  found <- lapply(Filter(function(one) !is.null(one$ask), diagnostics()), function(one) {
    # an error of the target at these points does not end the fit
    tryCatch(one$ask(seen, evaluate), autosmc_error_target = function(e) NULL)
  })
  list(found = found, count = evaluate("count"))
}

# A table with a row for each diagnostic that applies; NULL for none.
judge_diagnostics <- function(sampler, final, course, found) {
  seen <- diagnostic_inputs(sampler, final, course, found)
  applies <- Filter(function(one) is.null(final$moments) || !one$needs_draws, diagnostics())
  rows <- without_null(Map(function(one, name) one$judge(seen, found[[name]]), applies, names(applies)))
  if (length(rows) > 0) bind_rows(Map(c, name = names(rows), rows))
}

# The argument `seen` of the diagnostics' functions: see new_diagnostic().
diagnostic_inputs <- function(sampler, final, course, found = list()) {
  list(sampler = sampler, final = final, estimate = headline(final$estimates), course = course, found = found)
}

# The largest number of evaluations that the diagnostics may need after islands that took `spent` evaluations.
most_diagnostic_evals <- function(sampler, spent, course) {
  if (is.null(course)) {
    return(0)
  }
  spent <- counted(spent, sampler, course)
  sum(vapply(diagnostics(), function(one) one$most(sampler, spent, course), 0))
}

# The record of the islands with the additions of the failed diagnostics, to which the next reference is fitted.
with_remedies <- function(record, result) {
  for (name in names_of_failed(result$diagnostics)) {
    record <- diagnostics()[[name]]$remedy(record, result$found[[name]])
  }
  record
}
