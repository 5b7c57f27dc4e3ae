# Rounds: runs that tune, each from a better reference than the one before, with
# temperatures spread anew.

# A path has at least one temperature between reference and target.
least_steps <- 2

# adapt: what the arguments of smc() ask for -----------------------------------

# step_fraction, scout: only where the verb has them.
check_plan <- function(rounds, whiten, scout, max_steps, step_fraction, max_evals = Inf) {
  if (!identical(max_evals, Inf)) {
    max_evals <- check_number(max_evals, "max_evals", min = 1)
  }
  plan <- list(
    rounds = check_n_rounds(rounds),
    whiten = check_flag(whiten, "whiten"),
    scout = check_flag(scout, "scout"),
    max_steps = check_n(max_steps, "max_steps", min = 2),
    max_evals = max_evals
  )
  if (!missing(step_fraction)) {
    if (!is_number(step_fraction) || step_fraction <= 0 || step_fraction > 1) {
      abort_argument(step_fraction, "step_fraction", "a number above 0 and at most 1")
    }
    plan$step_fraction <- as.double(step_fraction)
  }
  plan
}

# At least and at most so many; one number is both.
check_n_rounds <- function(rounds) {
  if (length(rounds) != 2) {
    return(rep(check_count(rounds, "rounds", min = 0), 2))
  }
  rounds <- c(
    check_count(rounds[1], "rounds", min = 0),
    check_count(rounds[2], "rounds", min = 0)
  )
  if (rounds[1] > rounds[2]) {
    given <- deparse(rounds)
    abort("{.arg rounds} must be the least and the most, in this order, not {given}.", "input")
  }
  rounds
}

# the course of adaptation ----------------------------------------------------
# It is a list: `records`, all runs so far; `used`, which of them later ones may start from;
# `best`, the last of these; `allowed`, the rungs that may still be fitted; `scout`; and after
# further passes `passes`, rows for the islands of those before, and `estimate`, of the last
# of these.

# The sampler with what a `scout` finds, where there is to be one, on the scale that this asks for.
scouted <- function(sampler, plan) {
  if (!plan$scout || !sampler$kernel$gradients) {
    return(sampler)
  }
  scout <- function(sampler, name) {
    remember(
      sampler, name, settings_of_target(sampler), scout_restorer(sampler), points_of_scout,
      scout_target(
        sampler$target, rules$n_starts, sampler$seed, over_batches(sampler)$evaluators,
        affordable_probes(list(), sampler, plan)
      )
    )
  }
  sampler <- with_ratios(sampler)
  sampler$scout <- scout(sampler, "scout")
  act_on_scout(sampler$target, sampler$scout)
  sampler <- rescaled(sampler, find_turn, scout, plan)
  rescaled(sampler, find_truncated, scout, plan, is_as_near)
}

# The sampler on another scale of its bounded variables, where find() finds one, and it suits: there is another scout
# there. What all this has cost is the scout's, and is not begun where it may cost more than there is.
rescaled <- function(sampler, find, scout, plan, suits = function(other, sampler) TRUE) {
  besides <- 2 * sampler$scout$n_target_evals
  found <- if (affords_run(list(scout = sampler$scout), sampler, plan, besides = besides)) find(sampler)
  if (is.null(found)) {
    return(sampler)
  }
  counts <- Map(`+`, found$counts, sampler$scout[names(found$counts)])
  if (!is.null(found$scale)) {
    other <- with_scale(sampler, found$scale)
    other$scout <- scout(other, paste0("scout-", names(found$scale)))
    counts <- Map(`+`, counts, other$scout[names(counts)])
    if (suits(other, sampler)) sampler <- other
  }
  sampler$scout[names(counts)] <- counts
  sampler
}

# Race, rounds, of a sampler that has `scouted`. Returns the course.
adapt <- function(sampler, path, plan) {
  course <- list(
    records = list(), used = NULL, allowed = if (plan$whiten) names(rungs),
    steps_per_barrier = rules$steps_per_barrier,
    density = if (sampler$kernel$gradients) {
      counted_density(sampler$target, over_batches(sampler)$evaluators)
    }
  )
  course$scout <- sampler$scout
  course <- if (length(course$scout$references) > 0 || is_of_draws(sampler$reference)) {
    race(course, sampler, path)
  } else {
    first_round(course, sampler, path, "given")
  }
  repeat_rounds(course, sampler, path, plan)
}

# A run from the given reference, along the given path.
first_round <- function(course, sampler, path, label) {
  record <- tuned_run(course, sampler, path, label)
  if (is_dead(record)) {
    abort_dead(record, sampler)
  }
  course$best <- record
  keep(course, record, used = TRUE)
}

tuned_run <- function(course, sampler, path, label) {
  sampler$kernel <- kernel_for(sampler, label)
  record <- run_sampler(over_batches(sampler), path, "adapt", length(course$records))
  sampler$pace$per_evaluation <- record$runs$seconds / record$runs$n_target_evals
  named <- list(label = label, kernel = sampler$kernel$name)
  record$runs <- as_table(c(unclass(record$runs), named))
  record$kernel <- sampler$kernel
  record
}

# The kernel of a run, where that is left to us. From the reference that was given the way may be
# long: KLMC keeps its direction. From one that fits the target MALA, whose weights are those of the
# path alone, takes half the steps for the same error, and rejects a step that is too long. In many
# variables its steps are short, and it is for where draws of KLMC are worth little; for where the
# reference is the target, from which it is exact; and for mixtures: one length of steps does not fit
# basins of different widths, and where it is too long, KLMC loses the particles; and at edges, which it rejects.
kernel_for <- function(sampler, label) {
  reference <- sampler$reference
  suits <- label == "longer" || is_exact_reference(reference) || is_mixture(reference) ||
    is_truncated(sampler$target) ||
    label != "given" && sampler$target$dim <= rules$largest_adjusted
  if (isTRUE(sampler$chooses_kernel) && suits) kernel_mala() else sampler$kernel
}

keep <- function(course, record, used) {
  course$records <- c(course$records, list(record))
  course$used <- c(course$used, used)
  course
}

# the race --------------------------------------------------------------------

# A small run from each candidate, in the order of preference: what fits the draws that the
# target has, what covers all basins, what is right around the best of them by its gradients, what
# fits this basin, the user's own reference.
# What an estimate misses makes it lower: one further down wins where its estimate is higher
# by more than the errors of the two. The winner is run again in full, along the path as it
# was given, where it is the user's, or rests on a single genealogy.
race <- function(course, sampler, path) {
  candidates <- rev(course$scout$references)
  candidates <- if (is_of_draws(sampler$reference)) {
    c(list(draws = sampler$reference), candidates)
  } else {
    c(candidates, list(given = sampler$reference))
  }
  small <- sampler
  # as many as the tuner asks for
  least <- complete_tuner(sampler)$n_subsample
  small$n_particles <- min(sampler$n_particles, max(rules$race_particles, least))
  winner <- NULL
  for (label in names(candidates)) {
    small$reference <- candidates[[label]]
    record <- tuned_run(course, small, race_path(path, small, label), label)
    course <- keep(course, record, used = FALSE)
    if (!is_dead(record) && (is.null(winner) || rises(winner, record))) {
      winner <- record
    }
  }
  if (is.null(winner) || winner$runs$label == "given") {
    return(first_round(course, sampler, path, "given"))
  }
  if (is_one_genealogy(winner)) {
    sampler$reference <- winner$reference
    return(first_round(course, sampler, path, winner$runs$label))
  }
  course$used[winner$runs$round + 1] <- TRUE
  course$best <- winner
  course
}

# The path of a first run from a reference that fits the target. Where weights do not depend on the
# moves each step goes as far as the weights allow: that is one step from the target itself. Else a few
# steps do; from a reference that covers several basins it takes more.
race_path <- function(path, sampler, label) {
  if (!is.null(path$adaptive_ess)) {
    return(path)
  }
  most <- length(path$lambda)
  if (label != "given" && kernel_for(sampler, label)$adjusted) {
    return(list(adaptive_ess = rules$race_ess, n_steps = most))
  }
  n_steps <- if (label == "cover") rules$cover_steps else rules$race_steps
  path$lambda <- schedule_power(min(n_steps, most))[-1]
  path
}

# Whether the estimate of the second record proves the first to have missed something: it
# is higher by more than their errors and a margin, and does not rest on one genealogy.
rises <- function(from, to, margin = 0) {
  !is_one_genealogy(to) && is_higher(to, from, margin)
}

is_one_genealogy <- function(record) record$runs$predicted_sd > rules$one_genealogy

# Whether the estimate of the first is higher by more than their errors and a margin.
is_higher <- function(record, other, margin) {
  error <- sqrt(record$runs$predicted_sd^2 + other$runs$predicted_sd^2)
  record$runs$log_z - other$runs$log_z > margin + rules$errors_apart * error
}

# the rounds ------------------------------------------------------------------

# Rounds, at least and at most as many as planned, as long as they help. Where no scale
# can be fitted the number of steps is kept.
repeat_rounds <- function(course, sampler, path, plan) {
  for (round in seq_len(plan$rounds[2])) {
    if (!affords_run(course, sampler, plan)) {
      break
    }
    course <- one_round(course, sampler, path, plan)
    if (round >= plan$rounds[1] && !course$deserves_another) {
      break
    }
  }
  course
}

one_round <- function(course, sampler, path, plan) {
  best <- course$best
  density <- affordable_density(course, sampler, plan)
  proposal <- propose(best, allowed_now(course, sampler), density)
  sampler$reference <- if (is.null(proposal)) best$reference else proposal$reference
  if (is.null(path$adaptive_ess)) {
    keeps_scale <- plan$whiten && (is.null(proposal) || proposal$rung == "location")
    least <- if (keeps_scale) nrow(best$steps) else least_steps
    # where the reference is the target there is no way, and the barrier is the kernel's alone
    n_steps <- if (is_exact_reference(sampler$reference)) least_steps
    path$lambda <- barrier_schedule(
      best$steps, n_steps, plan$max_steps, least, course$steps_per_barrier
    )[-1]
  }
  label <- if (is.null(proposal)) best$runs$label else proposal$rung
  record <- tuned_run(course, sampler, path, label)
  used <- is_no_worse(record, best)
  if (!used) {
    course$allowed <- if (!is.null(proposal)) below(proposal$rung, course$allowed)
  }
  course$deserves_another <- deserves_another(record, best, used, allowed_now(course, sampler))
  if (used) {
    course$best <- record
  }
  keep(course, record, used)
}

# A shape that was found stays, and so do several basins, of which a normal distribution might
# leave some behind. From where the user started, the first particles are too far off to show what
# depends on what.
allowed_now <- function(course, sampler) {
  reference <- course$best$reference
  if (is_given(reference, sampler)) {
    setdiff(course$allowed, shapes)
  } else if (is_plain(reference) && !is_mixture(reference) && !is_exact_reference(reference)) {
    course$allowed
  } else {
    intersect(course$allowed, shapes)
  }
}

# Whether another round is worth its cost: as long as the barrier falls, or the particles
# are wider than the reference, unless that is the target already; and when a fit was rejected, as
# long as there is another.
deserves_another <- function(record, best, used, allowed) {
  if (!used) {
    return(length(allowed) > 0)
  }
  if (is_exact_reference(record$reference)) {
    return(FALSE)
  }
  is_beginning(record, best) ||
    record$runs$barrier < rules$lower_barrier * best$runs$barrier ||
    is_too_wide(record)
}

# Whether particles are wider than a normal reference somewhere, by more than chance.
is_too_wide <- function(record) {
  if (!inherits(record$reference, "smc_reference_gaussian")) {
    return(FALSE)
  }
  chance <- rules$width_errors * sqrt(2 / n_genealogies(record))
  widest(record) > 1 + chance
}

# Whether a round is used: its particles live, its barrier is no higher than the
# best one's, but for chance; and its estimate has not fallen by more than the errors, as
# it does when a reference leaves out a part of the target.
is_no_worse <- function(record, best) {
  if (is_dead(record) || is_higher(best, record, rules$fall)) {
    return(FALSE)
  }
  is_beginning(record, best) ||
    record$runs$barrier <= rules$equal_barrier * best$runs$barrier
}

# Whether the barriers of two runs cannot be compared: that of a small run is of the part that
# its few particles saw, and each kernel has its own.
is_beginning <- function(record, best) {
  record$runs$n_particles > best$runs$n_particles || record$runs$kernel != best$runs$kernel
}

is_plain <- function(reference) {
  is_function_reference(reference) || is_normal(reference) || is_mixture(reference)
}
