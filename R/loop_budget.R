# The budget of a call: the number of evaluations of the target, `max_evals`. The cost of the islands is known in
# advance and set aside. The cost of an adapting run is predicted from the best one. The loop asks affords() before each
# step.

# An error for a limit that is too small for any fit, before the target is evaluated.
check_max_evals <- function(sampler, path, plan) {
  least <- least_evaluations(sampler, path, plan)
  if (plan$max_evals < least) {
    given <- count(plan$max_evals)
    takes <- if (needs_adapting(sampler$kernel, path)) {
      "A first run and one island of {sampler$n_particles} particles take at least this number of evaluations of the
        target; most fits take several times as many."
    } else {
      "One island of {sampler$n_particles} particles takes this number of evaluations of the target."
    }
    abort(c(
      "{.arg max_evals} must be at least {count(ceiling(least))}, not {given}.",
      "i" = takes,
      "i" = "Give more, or fewer {.arg n_particles}."
    ))
  }
}

# A lower bound of the cost of a fit: the first points of the scout, the smallest possible first run without the
# searches of its tuner, and one island along the same path. A path with fewer steps is found only where much more is
# affordable.
least_evaluations <- function(sampler, path, plan) {
  island <- function(n_steps) islands_evaluations(1, sampler, n_steps, plan)
  if (!needs_adapting(sampler$kernel, path)) {
    return(island(length(path$lambda)))
  }
  scouts <- plan$scout && sampler$kernel$gradients && is.null(sampler$given_fit)
  is_race <- scouts || is_of_draws(sampler$reference) || !is.null(sampler$given_fit)
  n_particles <- min(sampler$n_particles, if (is_race) rules$race_particles)
  may_adjust <- isTRUE(sampler$chooses_kernel) || sampler$kernel$adjusted
  n_steps <- if (!is.null(path$adaptive_ess) || is_race && may_adjust) {
    1
  } else {
    min(length(path$lambda), if (is_race) rules$race_steps)
  }
  run <- n_particles * (1 + n_moves(sampler) * n_steps)
  run + island(n_steps) + if (scouts) rules$n_starts else 0
}

warn_of_omissions <- function(fit) {
  limit <- limit_of(fit)
  what <- fit$truncated
  warn("budget", c(
    "{.arg {limit}} has left out {what}.",
    "!" = if (is.na(fit$std_error)) "With one island the error of {.field log_z} is not known.",
    "i" = "Give more, or fewer {.arg n_particles}."
  ))
}

limit_of <- function(fit) if (isTRUE(is.finite(fit$max_seconds))) "max_seconds" else "max_evals"

# An environment for what the limit has left out: `what`, in words, named by the parts of a fit.
new_omissions <- function() list2env(list(what = character()), parent = emptyenv())

leave_out <- function(sampler, part, words) sampler$omissions$what[[part]] <- words

# Least number of steps: one temperature between reference and target.
least_steps <- 2

# Least number of particles that is chosen automatically: fewer do not show tails.
fewest_particles <- 32
# Least number of islands in a search for a precision: the estimated error of fewer may be small by chance, and would
# end the search.
fewest_islands <- 8
# Largest number of particles at the start of such a search.
first_particles <- 128

# The number of particles at the start of a search for a precision or for independent draws (NULL for none): enough that
# the fewest islands have as many particles together as draws are wanted.
particles_for <- function(draws) {
  n <- if (is.null(draws)) Inf else check_count(draws, "draws") / fewest_islands
  min(first_particles, max(fewest_particles, 2^ceiling(log2(n))))
}

# The number of particles, where it is chosen automatically, for which the limit pays for a complete fit. Adaptation is
# assumed to cost as much as the islands along the path of a first candidate.
particles_within <- function(max_evals, n_particles, islands) {
  afforded <- floor(max_evals / (2 * islands * (rules$race_steps + 2)))
  min(n_particles, max(fewest_particles, afforded))
}

# Evaluations so far: those of the surrogate for an integral over random effects, of the scout, of all adapting runs, of
# fits of references, and of the islands of all passes.
evaluations_spent <- function(course) {
  of_runs <- vapply(course$records, function(record) record$runs$n_target_evals, 0)
  of_passes <- vapply(c(course$passes, list(course$result$row)), function(row) sum(row$n_target_evals), 0)
  at_first <- c(course$surrogate$n_target_evals, course$scout$n_target_evals)
  sum(at_first, of_runs, of_passes, probes_of(course)[["n_target_evals"]])
}

# Evaluations at further points by fits of references.
probes_of <- function(course) {
  before <- if (is.null(course$probes)) zero_counts else course$probes
  if (is.null(course$density)) before else before + course$density("count")
}

# The largest cost of n islands along a path of `n_steps` steps, with the bridge, the diagnostics and the integral over
# random effects at the fewest draws. In a search for a precision the bridge is computed again after each addition of
# islands: two bridges are set aside for each island, and no island is added beyond that.
islands_evaluations <- function(n, sampler, n_steps, plan, course = NULL) {
  runs <- n * sampler$n_particles * (1 + n_moves(sampler) * n_steps)
  bridge <- n * sampler$n_particles * (1 + plan$seeks)
  # each ratio may also need an evaluation of the sampled density
  ratios <- if (is_corrected(sampler$target$effects)) 2 * few_ratios else 0
  runs + bridge + most_diagnostic_evals(sampler, runs, course) + ratios
}

# The predicted cost of an adapting run with `n_steps` steps, in proportion to that of the best one.
run_evaluations <- function(course, n_steps, n_particles = course$sampler$n_particles) {
  best <- course$best
  per_step <- if (is.null(best)) 1 else best$runs$n_target_evals / best$runs$n_particles / nrow(best$steps)
  rules$dearer_run * n_particles * per_step * n_steps
}

# Whether a part of the fit with this cost leaves enough for the islands; if not, it is recorded as left out.
affords <- function(course, part, cost = run_evaluations(course, n_steps), n_steps = steps_of_best(course)) {
  is_afforded <- is.infinite(course$plan$max_evals) || cost <= left_beside_islands(course, n_steps)
  if (!is_afforded) leave_out(course$sampler, part, parts_left_out[[part]])
  is_afforded
}

parts_left_out <- c(
  scale = "another scale of bounded variables", first = "other first candidates", round = "further rounds",
  islands = "further passes", longer = "longer passes", larger = "larger islands"
)

# Evaluations that are left after those of the islands are set aside.
left_beside_islands <- function(course, n_steps) {
  plan <- course$plan
  plan$max_evals - evaluations_spent(course) -
    islands_evaluations(plan$n_islands, course$sampler, n_steps, plan, course)
}

# The number of steps of the best record; before there is one, that of a first run from a fitted reference.
steps_of_best <- function(course) {
  if (is.null(course$best)) rules$race_steps else nrow(course$best$steps)
}

# The target's density, limited to the evaluations that are not needed for a run and the islands; NULL for none.
affordable_density <- function(course) {
  most <- rules$most_probe_evals
  if (is.finite(course$plan$max_evals)) {
    n_steps <- steps_of_best(course)
    most <- min(most, floor(left_beside_islands(course, n_steps) - run_evaluations(course, n_steps)))
  }
  if (!is.null(course$density) && most > 0) limited_density(course$density, most)
}

# The settings of the islands, with their numbers reduced to what the limit allows; an error if it allows none.
affordable_islands <- function(islands, sampler, path, course, plan) {
  if (is.infinite(plan$max_evals)) {
    return(islands)
  }
  spent <- evaluations_spent(course)
  needed <- function(n) spent + islands_evaluations(n, sampler, length(path$lambda), plan, course)
  most <- floor((plan$max_evals - spent) / (sampler$n_particles * (1 + n_moves(sampler) * length(path$lambda))))
  n <- max(0, min(most, if (plan$seeks) islands$max_islands else islands$islands))
  while (n > 0 && needed(n) > plan$max_evals) n <- n - 1
  if (n == 0) {
    abort(
      c(
        "{.arg max_evals} is too small: adaptation has taken {count(ceiling(spent))} evaluations of
          the target, and an island takes {count(ceiling(needed(1) - spent))} more.",
        "i" = "Give at least {count(ceiling(needed(1)))} for one island, and
          {count(ceiling(needed(plan$n_islands)))} for {plan$n_islands}; or fewer
          {.arg n_particles}.",
        "i" = if (isTRUE(plan$is_timed)) "{.arg max_seconds} pays for {count(plan$max_evals)}."
      ),
      "budget",
      runs = bind_rows(lapply(course$records, `[[`, "runs"))
    )
  }
  if (n < islands$islands) {
    leave_out(sampler, "n_islands", sprintf("%d of %d islands", islands$islands - n, islands$islands))
  }
  islands$islands <- min(islands$islands, n)
  islands$max_islands <- min(islands$max_islands, n)
  islands$max_bridged <- 2 * n
  islands
}
