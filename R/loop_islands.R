# Islands: independent runs that differ only in their random numbers, and their pooled estimate. Called by the loop.

# Least number of islands that are added at a time for a precision: fewer hardly change the estimated error.
fewest_added <- 4
# Largest number that is added at a time, since the number needed is itself estimated from the islands so far.
most_added <- 64

# Seconds of computing beyond which the cost is announced in advance.
unannounced_seconds <- 600

# The sampler with the reference and the kernel of the best record.
sampler_of_best <- function(course) {
  sampler <- course$sampler
  sampler$reference <- course$best$reference
  sampler$kernel <- course$best$kernel
  sampler
}

# The temperatures, step sizes and refreshment rates of the islands, from the steps of the best record. From a fitted
# reference the step sizes of KLMC are shortened, and more for a reference with maps: where the density has a sharp
# bend, long steps miss evidence without a sign. The target is then nearly standard normal in the coordinates of the
# reference, and the refreshment rates make the motion critically damped. The tuner cannot choose them: its objective
# for a single step hardly depends on the rate, and at low rates copies of a particle stay together. From the user's
# reference, which may be far away, long steps are needed. The path of another fit already has these values.
final_path <- function(best, plan) {
  path <- as.list(best$steps)
  if (best$kernel$refreshes && !best$kernel$adjusted && best$is_fitted && best$reason != "fit") {
    shorter <- if (is_plain(best$reference)) 1 else rules$shaped_fraction
    path$step_size <- shorter * plan$step_fraction * path$step_size
    if (is.null(best$kernel$refresh_rate)) {
      path$refresh_rate <- sqrt(1 - exp(-2 * rules$damping * path$step_size))
    }
  }
  path
}

# The checked settings of the islands: their number, or what determines it, a `precision` or a number of independent
# `draws` (NULL for none). `asked`: which of these were given; `max_bridged`: the largest total number of islands in
# repeated bridges; `grows`: whether larger islands may replace them, in which case none are added where more than
# `max_islands` would be needed.
check_islands <- function(islands, precision, max_islands, draws = NULL) {
  most <- islands_apart - 1 # the numbers of a further pass begin there
  islands <- check_count(islands, "islands", max = most)
  max_islands <- check_count(max_islands, "max_islands", max = most)
  if (!is.null(precision)) precision <- check_number(precision, "precision", min = 1e-15)
  if (!is.null(draws)) draws <- check_count(draws, "draws")
  if (!is.null(precision) || !is.null(draws)) {
    max_islands <- check_count(max_islands, "max_islands", min = 2, max = most)
    islands <- min(max(islands, fewest_islands), max_islands)
  }
  list(
    islands = islands, precision = precision, max_islands = max_islands, draws = draws,
    asked = c("precision", "draws")[!c(is.null(precision), is.null(draws))], max_bridged = Inf, grows = FALSE
  )
}

# An error where draws are needed but not kept, or where the draws of all islands are too many for R's matrices.
check_n_draws <- function(sampler, islands) {
  if (sampler$keep == "moments" && !is.null(sampler$target$effects$surrogate)) {
    abort("{.arg keep} must not be {.val moments} here: the integral over random effects is corrected by the draws.")
  }
  n <- n_kept(sampler)
  if (sampler$keep != "moments" && (islands + 1) * max(n) > .Machine$integer.max) {
    abort_memory(8 * islands * sampler$target$dim * (max(n) + 2 * n[1]))
  }
}

# The final runs along a path, as pool() returns them, with their `estimates`. start: the number of the first island;
# held: existing islands, as of hold_islands(). Islands are added for the number of draws first, since their effective
# sample size is known without the bridge, then for the precision.
run_islands <- function(sampler, path, islands, start = 1, held = hold_islands()) {
  n_evaluated <- n_bridged <- 0
  n_more <- islands$islands - length(held$records)
  repeat {
    indices <- start - 1 + length(held$records) + seq_len(n_more)
    record_of <- islands_in_turn(sampler, indices, path)
    pool_islands(held, indices, record_of, sampler = sampler, path = path, run = "final")
    n <- length(held$records)
    final <- if (!all_dead(held$records)) pool(held, sampler$reference, start)
    n_more <- n_more_for_draws(final, n, islands, sampler$target)
    if (n_more == 0) {
      final <- estimate_evidence(sampler, final, islands$bridges)
      n_evaluated <- n_evaluated + final$n_bridge_evals
      n_bridged <- n_bridged + n
      n_more <- n_wanted(final, n, replace(islands, "draws", list(NULL)))
      if (n_more == 0 || n_bridged + n + n_more > islands$max_bridged) break
    }
    announce_islands(sampler, n_more, islands_table(held$records, start))
    final <- NULL # frees the memory of a second copy of the draws
  }
  if (all_dead(held$records)) {
    abort_dead(held$records[[1]], sampler)
  }
  final <- with_images(final, sampler$target)
  final$n_bridge_evals <- n_evaluated
  final$start <- start
  final$records <- held$records
  final
}

# The number of islands to add for independent draws alone.
n_more_for_draws <- function(final, n, islands, target) {
  if (is.null(islands$draws) || is.null(final)) {
    return(0)
  }
  n_wanted(with_images(final, target), n, replace(islands, "precision", list(NULL)))
}

# The number of islands to add to n, by the error so far and within limits.
n_wanted <- function(final, n, islands) {
  missing <- n_needed(final, n, islands) - n
  if (missing <= 0 || islands$grows && n + missing > islands$max_islands) {
    return(0)
  }
  max(min(max(fewest_added, missing), most_added, islands$max_islands - n), 0)
}

# The number of islands needed for the requested precision and independent draws, predicted from these n.
n_needed <- function(final, n, islands) {
  for_precision <- if (!is.null(islands$precision)) {
    error <- headline(final$estimates)$std_error
    if (is.finite(error)) n * (error / islands$precision)^2 else 2 * n
  }
  for_draws <- if (!is.null(islands$draws)) n * islands$draws / ess_mean(final)
  ceiling(max(0, for_precision, for_draws, na.rm = TRUE))
}

# Announces the cost of n further islands, by the table of earlier ones, if it is `least` seconds or more. what: a cli
# template that says what they are.
announce_islands <- function(sampler, n, islands, what = "{n} more island{?s} for the precision", least = 0) {
  each <- function(column) mean(islands[[column]], na.rm = TRUE)
  if (isTRUE(sampler$show_progress) && !is.null(islands) && isTRUE(n * each("seconds") >= least)) {
    evaluations <- count(round(n * each("n_target_evals")))
    time <- duration(n * each("seconds"))
    says <- paste0(what, ": {evaluations} evaluations of the target, about {time} of computing.")
    inform("cost", c("i" = says))
  }
}

# Announces the cost of a fit, if it is long, by the time of the scout's evaluations. Few fits take less than islands
# with the fewest steps and adaptation of the same cost.
announce_fit <- function(sampler, plan) {
  each <- sampler$scout$seconds / sampler$scout$n_target_evals
  least <- function(n_particles) {
    sampler$n_particles <- n_particles
    min(plan$max_evals, 2 * islands_evaluations(plan$n_islands, sampler, least_steps, plan, list(plan = plan)))
  }
  n <- least(sampler$n_particles)
  if (!isTRUE(n * each >= unannounced_seconds)) {
    return()
  }
  coarse <- least(particles_for(200))
  inform("cost", c(
    "i" = "An evaluation of the target takes about {signif(each, 2)} seconds, and a fit with {sampler$n_particles}
      particles at least {count(round(n))} of them: {duration(n * each)} of computing.",
    "i" = if (coarse < n) {
      "With {.code precision = 0.05, draws = 200} it takes at least {count(round(coarse))}: {duration(coarse * each)}."
    },
    "i" = "{.arg max_evals} or {.arg max_seconds} limits the cost of the fit."
  ))
}

# results of islands ------------------------------------------------------------

# The result of the islands `final`: a list of the `sampler`, `final`, the reported `estimate`, what diagnostics have
# `found`, the table of `diagnostics`, and the `row` of `runs`.
conclude <- function(sampler, final, course = NULL) {
  asked <- ask_diagnostics(sampler, final, course)
  list(
    sampler = sampler, final = final, estimate = headline(final$estimates), found = asked$found,
    diagnostics = judge_diagnostics(sampler, final, course, asked$found),
    row = final_row(sampler, final, asked$count, course$best$runs$label)
  )
}

spent <- c("n_target_evals", "n_calls")

# The row of the islands of a pass together, with the evaluations of bridge and diagnostics. asked: their count, as of
# counted_density().
final_row <- function(sampler, final, asked, label) {
  islands <- final$islands
  row <- row_of(islands, 1)
  row$run <- "final"
  row$used <- TRUE
  row$label <- if (is.null(label)) "given" else label
  row$kernel <- sampler$kernel$name
  by_smc <- row_of(final$estimates, 1)
  by_smc$method <- NULL
  row[names(by_smc)] <- by_smc
  row$islands <- nrow(islands)
  row$barrier <- mean(islands$barrier, na.rm = TRUE)
  sums <- c("n_objective_evals", "n_target_evals", "n_calls", "n_impossible", "seconds")
  row[sums] <- lapply(unclass(islands)[sums], sum, na.rm = TRUE)
  row[spent] <- as.list(unlist(row[spent]) + final$n_bridge_evals + asked[spent])
  row
}

unused <- function(row) replace(row, "used", FALSE)

# The islands as a record that can be the best: that of the run that tuned them, with the draws and the estimate of the
# islands, and the `std_error` that a fit would report.
record_of_islands <- function(result, best) {
  final <- result$final
  record <- final[c(
    "particles", "unconstrained", "coordinates", "gradients", "log_weights", "origins", "shared", "reference"
  )]
  record$steps <- as_table(steps_of_first(final))
  record[c("runs", "reason", "is_fitted", "kernel")] <- best[c("runs", "reason", "is_fitted", "kernel")]
  record$runs$log_z <- result$estimate$log_z
  record$runs$predicted_sd <- result$estimate$std_error
  record$std_error <- with_shift(result$estimate, result$diagnostics)$std_error
  record$dead <- FALSE
  record$of_islands <- TRUE
  record
}

# The steps of the first island with particles, as a list of columns.
steps_of_first <- function(final) {
  row_of(final$steps, final$steps$island == final$steps$island[1])
}

# The row of a run, which is all that smc_replicate() needs from a worker.
row_of_run <- function(...) run_sampler(...)["runs"]
