# Diagnostics: what speaks against an estimate. Each is a number with a limit beyond
# which the estimate is not to be trusted, a sentence that says so, and advice on what would help.

# Those that there are, in the order in which they ask and judge. To add one, write it and put it here.
diagnostics <- function() {
  list(
    scatter = scatter_diagnostic, largest_share = share_diagnostic, dead_islands = dead_diagnostic,
    estimates = estimates_diagnostic, edges = edges_diagnostic, mean_gradient = mean_gradient_diagnostic,
    stein = stein_diagnostic, width = width_diagnostic, ancestor_ess = ancestor_ess_diagnostic,
    proper = proper_diagnostic, rays = rays_diagnostic, mirrors = mirrors_diagnostic, lines = lines_diagnostic,
    elbo = elbo_diagnostic, basins = basins_diagnostic, rounds = rounds_diagnostic, passes = passes_diagnostic
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

# What the diagnostics say of islands: list(diagnostics, found, n_target_evals), a table with a row for each that applies,
# NULL for none, what they have found, and what that took. The target is asked where the verb has adapted: it may go on.
diagnose <- function(sampler, final, course = NULL) {
  has_draws <- is.null(final$moments)
  evaluate <- if (!is.null(course) && has_draws) counted_density(sampler$target, over_batches(sampler)$evaluators)
  seen <- list(sampler = sampler, final = final, estimate = headline(final$estimates), course = course, found = list())
  rows <- list()
  for (name in names(diagnostics())) {
    one <- diagnostics()[[name]]
    if (has_draws || !one$needs_draws) {
      seen$found[[name]] <- if (!is.null(evaluate) && !is.null(one$ask)) {
        # the fit is there, and is not given up where the target fails at these points
        tryCatch(one$ask(seen, evaluate), autosmc_error_target = function(e) NULL)
      }
      row <- one$judge(seen, seen$found[[name]])
      rows <- c(rows, if (!is.null(row)) list(c(name = name, row)))
    }
  }
  list(
    diagnostics = if (length(rows) > 0) bind_rows(rows), found = seen$found,
    n_target_evals = if (is.null(evaluate)) 0 else evaluate("count")[["n_target_evals"]]
  )
}

# The most that diagnostics ask for, after islands that have taken so many evaluations.
most_asked <- function(sampler, spent, course) {
  if (is.null(course)) 0 else sum(vapply(diagnostics(), function(one) one$most(sampler, spent, course), 0))
}

# A record of the islands with what is to be learnt from the diagnostics that have failed.
remedied <- function(record, result) {
  for (name in names_of_failed(result$diagnostics)) {
    record <- diagnostics()[[name]]$remedy(record, result$found[[name]])
  }
  record
}
