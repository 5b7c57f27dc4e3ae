# Diagnostics: what speaks against an estimate. Each is a number with a limit beyond
# which the estimate is not to be trusted, a sentence that says so, and advice on what would help.

# A row a diagnostic: `name`, `value`, `limit`, `passed`, and what is said where it has not
# passed. NULL where none applies.
diagnose <- function(sampler, course, final, rays = NULL, mirrors = NULL, lines = NULL) {
  by_smc <- row_of(final$estimates, 1)
  has_draws <- is.null(final$moments)
  edges <- if (has_draws) look_for_edges(sampler, course, final)
  has_edges <- is_truncated(sampler$target) || isTRUE(edges$share > rules$largest_edge)
  rows <- c(
    diagnose_islands(final$islands),
    diagnose_estimates(final$estimates),
    if (has_draws) diagnose_gradients(final, has_edges),
    if (has_draws) diagnose_draws(final),
    if (has_draws) diagnose_ancestor_ess(course, final),
    diagnose_edges(edges, sampler$kernel),
    if (has_draws) diagnose_proper(sampler, course, final),
    diagnose_rays(rays, headline(final$estimates)),
    diagnose_mirrors(mirrors, headline(final$estimates)),
    diagnose_lines(lines, headline(final$estimates)),
    diagnose_scout(course$scout, final, headline(final$estimates)),
    diagnose_rounds(course, sampler, by_smc),
    diagnose_passes(course$estimate, headline(final$estimates))
  )
  rows <- without_null(rows)
  if (length(rows) > 0) bind_rows(rows)
}

# the draws -------------------------------------------------------------------

diagnose_draws <- function(final) {
  if (!inherits(final$reference, "smc_reference_gaussian")) {
    return()
  }
  variance <- widest(final)
  list(diagnostic(
    "width", variance, rules$widest,
    sprintf("The draws have %s times the variance of the reference.", format(variance, digits = 2))
  ))
}

# From a reference that fits, many draws have an ancestor of their own. Where few have, the
# islands' estimates are skew: most are too low, and scatter less than they are off. A small error
# of the bridge shows that nothing is missed all the same.
diagnose_ancestor_ess <- function(course, final) {
  is_fitted <- !is.null(course$best) && course$best$runs$label != "given"
  if (!is_fitted || !isTRUE(headline(final$estimates)$std_error > rules$sure_enough)) {
    return()
  }
  n <- 1 / final$shared
  all <- sum(final$islands$n_particles[final$islands$log_z > -Inf])
  few <- round(n)
  list(diagnostic(
    "ancestor_ess", n / all, rules$least_ancestor_ess,
    sprintf("The %s draws have only about %s ancestor%s.", count(all), count(few), if (few > 1) "s" else ""),
    beyond = "below"
  ))
}

# Whether the density ends near many draws: points one standard deviation away from some of
# them, along one variable each, are tried. The share of them at which there is none, and the names of
# these variables; NULL where it is not looked for.
look_for_edges <- function(sampler, course, final) {
  n <- n_edge_trials(sampler, course)
  if (n == 0) {
    return()
  }
  weighty <- weighty_rows(final$log_weights)
  x <- unconstrained_particles(final)
  d <- ncol(x)
  sd <- weighted_sd(x, weighty$w, weighty$rows)
  along <- rep_len(seq_len(d), n)
  tried <- with_seed(seed_of_run(sampler$seed, edge_key), {
    side <- sample(rep_len(c(-1, 1), n))
    rows <- weighty$rows[sample.int(length(weighty$rows), n, TRUE, weighty$w)]
    evaluate_located(
      sampler$target, moved_along(x[rows, , drop = FALSE], along, side * sd[along]), "edges",
      gradient = FALSE, evaluators = over_batches(sampler)$evaluators
    )$log_density
  })
  beyond <- !is.finite(tried)
  list(share = mean(beyond), names = unique(sampler$target$names[along[beyond]]))
}

# Kernels that reject moves do so at an edge, too.
diagnose_edges <- function(edges, kernel) {
  if (!is.null(edges)) {
    list(diagnostic(
      "edges", edges$share, if (kernel$adjusted) Inf else rules$largest_edge,
      sprintf(
        "The density ends abruptly next to the draws, along %s: give the bounds as `lower` and `upper`.",
        format_names(edges$names)
      )
    ))
  }
}

# Evaluations of the target, which count as those of the islands do. Without gradients an edge
# does no harm.
n_edge_trials <- function(sampler, course) {
  if (is.null(course) || !sampler$kernel$gradients) 0 else max(edge_trials, 2 * sampler$target$dim)
}

# Whether rays through the draws, reflections of them or lines along a variable reach mass beyond the draws; see
# look_along_rays(), look_in_mirrors() and look_along_lines(). says: a function of the rise, in words.
diagnose_beside <- function(name, found, estimate, says) {
  if (!is.null(found$rise)) {
    list(diagnostic(name, found$rise, limit_of_rise(found, estimate), says(format(found$rise, digits = 2))))
  }
}

diagnose_rays <- function(rays, estimate) {
  diagnose_beside("rays", rays, estimate, function(rise) {
    sprintf("Rays through the draws reach mass that no draw has visited, which raises the estimate by %s.", rise)
  })
}

diagnose_mirrors <- function(mirrors, estimate) {
  diagnose_beside("mirrors", mirrors, estimate, function(rise) {
    sprintf(
      "Reflecting %s within the bounds reaches mass that no draw has visited, which raises the estimate by at
        least %s.%s",
      format_names(mirrors$names), rise,
      if (mirrors$may_be_angles) {
        " If these are angles, measure them from another direction, so that few draws are next to a bound."
      } else {
        ""
      }
    )
  })
}

diagnose_lines <- function(lines, estimate) {
  diagnose_beside("lines", lines, estimate, function(rise) {
    sprintf(
      "Lines along %s reach mass beyond all draws, which raises the estimate by %s.", lines$name, rise
    )
  })
}
