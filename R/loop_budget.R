# The budget: how many evaluations of the target a call of smc() may take (`max_evals`).
# The cost of islands is known in advance, and is set aside. The cost of a run that tunes is
# predicted from the last one.

# A limit that pays for no fit is refused before the target is asked.
check_max_evals <- function(sampler, path, plan) {
  least <- least_evaluations(sampler, path, plan)
  if (plan$max_evals < least) {
    given <- count(plan$max_evals)
    takes <- if (needs_adapting(sampler$kernel, path)) {
      "A first run and one island of {sampler$n_particles} particles take as many evaluations of the
        target at the least, and most fits several times as many."
    } else {
      "One island of {sampler$n_particles} particles takes as many evaluations of the target."
    }
    abort(
      c(
        "{.arg max_evals} must be at least {count(ceiling(least))}, not {given}.",
        "i" = takes,
        "i" = "Give more, or fewer {.arg n_particles}."
      ),
      "input"
    )
  }
}

# No fit takes less: the first points of the scout, the smallest run that may be the first, without
# the searches of its tuner, and one island along the same path. A path with fewer steps is found only
# where much more is left than such an island takes.
least_evaluations <- function(sampler, path, plan) {
  island <- function(n_steps) island_evaluations(sampler, n_steps, plan)
  if (!needs_adapting(sampler$kernel, path)) {
    return(island(length(path$lambda)))
  }
  scouts <- plan$scout && sampler$kernel$gradients
  is_race <- scouts || is_of_draws(sampler$reference)
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

warn_of_one_island <- function(n_islands) {
  cli::cli_warn(
    c(
      "{.arg max_evals} has left one of {n_islands} islands: the error of {.field log_z} is not
        known.",
      "i" = "Give more, or fewer {.arg n_particles}."
    ),
    class = warning_class("budget")
  )
}

# Evaluations that a step takes for each particle.
n_moves <- function(sampler) {
  if (sampler$kernel$adjusted) sampler$kernel$options$n_moves else 1
}

# The cost so far: the scout, all rounds, and the islands of earlier passes.
evaluations_spent <- function(course) {
  of_runs <- vapply(course$records, function(record) record$runs$n_target_evals, 0)
  sum(course$scout$n_target_evals, of_runs, course$n_final_evals, n_probe_evals(course))
}

# Of fits that ask for the density beside the draws.
n_probe_evals <- function(course) {
  if (!is.null(course$density)) course$density("count")[["n_target_evals"]] else 0
}

# The most that an island costs along a path of so many steps, with its part of the bridge
# and the rays, mirrors and lines. With a precision the bridge is made again whenever islands have been
# added: two bridges are set aside for each island, and no island is added beyond that.
island_evaluations <- function(sampler, n_steps, plan) {
  run <- sampler$n_particles * (1 + n_moves(sampler) * n_steps)
  if (plan$seeks_precision) {
    beside <- (rules$share_of_rays + most_share_of_lines()) * run + most_mirror_evals(sampler, run)
    return(run + 2 * sampler$n_particles + beside)
  }
  of_all <- plan$n_islands * run
  rays <- n_rays(sampler, of_all) * n_ray_evals(sampler)
  beside <- rays + most_mirror_evals(sampler, of_all) + most_line_evals(sampler, of_all)
  run + sampler$n_particles + beside / plan$n_islands
}

# What the diagnostics ask for besides, however many islands there are.
trial_evaluations <- function(sampler, course) {
  n_edge_trials(sampler, course) + n_proper_trials(sampler, course)
}

# Whether another run that tunes, with so many steps, leaves enough for the islands; `besides`: and so
# many evaluations more.
affords_run <- function(course, sampler, plan, n_steps = steps_of_best(course), besides = 0) {
  if (is.infinite(plan$max_evals)) {
    return(TRUE)
  }
  best <- course$best
  per_particle <- if (is.null(best)) {
    n_steps
  } else {
    best$runs$n_target_evals / best$runs$n_particles * n_steps / nrow(best$steps)
  }
  run <- rules$dearer_run * sampler$n_particles * per_particle
  islands <- plan$n_islands * island_evaluations(sampler, n_steps, plan) +
    trial_evaluations(sampler, course)
  evaluations_spent(course) + run + besides + islands <= plan$max_evals
}

# Before there is one, those of a first run from a fitted reference.
steps_of_best <- function(course) {
  if (is.null(course$best)) rules$race_steps else nrow(course$best$steps)
}

# How many evaluations fits may ask for: none where these would not leave enough for a run.
affordable_probes <- function(course, sampler, plan) {
  most <- rules$most_probe_evals
  if (affords_run(course, sampler, plan, besides = most)) most else 0
}

# The target's density for as many; NULL for none.
affordable_density <- function(course, sampler, plan) {
  most <- affordable_probes(course, sampler, plan)
  if (!is.null(course$density) && most > 0) limited_density(course$density, most)
}

# As many of the islands asked for as there are evaluations left.
affordable_islands <- function(islands, sampler, path, course, plan) {
  if (is.infinite(plan$max_evals)) {
    return(islands)
  }
  spent <- evaluations_spent(course)
  each <- island_evaluations(sampler, length(path$lambda), plan)
  trials <- trial_evaluations(sampler, course)
  n <- floor((plan$max_evals - spent - trials) / each)
  if (n < 1) {
    abort(
      c(
        "{.arg max_evals} is too small: adaptation has taken {count(ceiling(spent))} evaluations of
          the target, and an island takes {count(ceiling(trials + each))} more.",
        "i" = "Give at least {count(ceiling(spent + trials + each))} for one island, and
          {count(ceiling(spent + trials + plan$n_islands * each))} for {plan$n_islands}; or fewer
          {.arg n_particles}."
      ),
      "input"
    )
  }
  islands$islands <- min(islands$islands, n)
  islands$max_islands <- min(islands$max_islands, n)
  islands$max_bridged <- 2 * n
  islands
}
