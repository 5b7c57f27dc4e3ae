# Diagnostics: what speaks against an estimate. Each is a number with a limit beyond
# which the estimate is not to be trusted, a sentence that says so, and advice on what would help.

# Those that there are, in the order in which they ask and judge. To add one, write it and put it here.
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

# What would help, by the names that diagnostics `advise`, in the order in which it is said. Some is said only where
# there is one mode. Edges and mirrors say themselves what to do.
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

# What the diagnostics find at points beside the draws of islands: list(found, count), what each has found, and what all
# of that took, as of counted_density(). Only where the verb has adapted, and may go on, is the target asked for more
# than the islands.
ask_diagnostics <- function(sampler, final, course) {
  if (is.null(course) || !is.null(final$moments)) {
    return(list(found = list(), count = zero_counts))
  }
  evaluate <- counted_density(sampler$target, over_batches(sampler)$evaluators)
  seen <- what_is_seen(sampler, final, course)
  seen$contradicts <- contradict_gradients(seen) # asked by two
  found <- lapply(Filter(function(one) !is.null(one$ask), diagnostics()), function(one) {
    # the fit is there, and is not given up where the target fails at these points
    tryCatch(one$ask(seen, evaluate), autosmc_error_target = function(e) NULL)
  })
  list(found = found, count = evaluate("count"))
}

# A table with a row for each diagnostic that applies; NULL for none.
judge_diagnostics <- function(sampler, final, course, found) {
  seen <- what_is_seen(sampler, final, course, found)
  applies <- Filter(function(one) is.null(final$moments) || !one$needs_draws, diagnostics())
  rows <- without_null(Map(function(one, name) one$judge(seen, found[[name]]), applies, names(applies)))
  if (length(rows) > 0) bind_rows(Map(c, name = names(rows), rows))
}

what_is_seen <- function(sampler, final, course, found = list()) {
  list(sampler = sampler, final = final, estimate = headline(final$estimates), course = course, found = found)
}

# The most that diagnostics ask for, after islands that have taken so many evaluations.
most_asked <- function(sampler, spent, course) {
  if (is.null(course)) {
    return(0)
  }
  spent <- counted(spent, sampler, course)
  sum(vapply(diagnostics(), function(one) one$most(sampler, spent, course), 0))
}

# A record of the islands with what is to be learnt from the diagnostics that have failed.
remedied <- function(record, result) {
  for (name in names_of_failed(result$diagnostics)) {
    record <- diagnostics()[[name]]$remedy(record, result$found[[name]])
  }
  record
}
