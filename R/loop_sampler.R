# The sampler: everything that a run depends on except its temperatures and its key, as one checked list. Made by the
# verbs smc(), smc_adapt() and smc_run(), and from a fit for further runs.

resampling_schemes <- c(
  "ssp",
  "systematic",
  "stratified",
  "residual",
  "multinomial"
)

# Elements of the sampler that a fit keeps.
sampler_names <- c(
  "target",
  "n_particles",
  "kernel",
  "reference",
  "tuner",
  "resampling",
  "ess_threshold",
  "keep",
  "seed"
)

# Arguments that the verbs have in common.
options_of_verbs <- c(
  "n_particles", "kernel", "reference", "resampling", "ess_threshold", "seed", "checkpoint", "progress"
)

# options: a list of these arguments as given, with the `tuner`, `keep` (NULL for all draws) and, from smc(), the `path`
# and the `plan`, whose limit of evaluations is checked. Returns the sampler with the checked arguments, the `target`,
# and the `evaluators`: the target, and a reference of R functions, as the compiled code reads them.
new_sampler <- function(target, options) {
  check_class(options$tuner, "tuner", "smc_tuner", "tuner_kl()")
  sampler <- list(
    target = target,
    n_particles = check_count(options$n_particles, "n_particles", min = 2),
    kernel = options$kernel,
    reference = reference_meant(options$reference, target),
    tuner = options$tuner,
    resampling = check_choice(options$resampling, "resampling", resampling_schemes),
    ess_threshold = check_number(options$ess_threshold, "ess_threshold", 0, 1),
    keep = if (is.null(options$keep)) "draws" else check_keep(options$keep),
    show_progress = check_flag(options$progress, "progress"),
    started = seconds_now()
  )
  sampler$target <- with_scale_of(sampler$target, sampler$reference)
  sampler$reference[scale_names] <- NULL
  if (inherits(options$reference, "smc_fit")) sampler <- with_given_fit(sampler, options$reference, options$seed)
  complete_tuner(sampler)
  n_threads() # an error of the option is raised here
  if (!is.null(options$plan)) {
    check_max_evals(sampler, options$path, options$plan)
  }
  sampler$evaluators <- interface_of_run(sampler)
  sampler$pace <- new_pace()
  sampler$omissions <- new_omissions()
  sampler <- with_checkpoint(sampler, options$checkpoint)
  # last, so that an error above leaves R's generator as it is
  with_seed_of_call(sampler, options$seed)
}

# The sampler of a fit, for further runs; `started` is set such that their time adds to that of the fit.
sampler_of_fit <- function(fit, seed) {
  sampler <- fit[names(fit) %in% sampler_names]
  sampler$reference[scale_names] <- NULL # the target has them
  n_threads() # an error of the option is raised here
  sampler$started <- seconds_now() - fit$seconds
  sampler$seed <- check_seed(seed)
  sampler$evaluators <- interface_of_run(sampler)
  sampler$pace <- new_pace()
  sampler
}

# The reference for the user's argument: `"draws"`, `"prior"`, a fit, draws of the variables, or a reference.
reference_meant <- function(reference, target) {
  if (identical(reference, "draws")) {
    reference_of_draws(target, target$draws)
  } else if (identical(reference, "prior")) {
    reference_of_prior(target)
  } else if (inherits(reference, "smc_fit")) {
    reference_of_fit(target, reference)
  } else if (!inherits(reference, "smc_reference") && may_be_draws(reference)) {
    reference_of_draws(target, matrix_of_draws(reference))
  } else {
    check_reference(reference, target)
  }
}

reference_of_prior <- function(target) {
  if (is.null(target$prior)) {
    abort("{.arg reference} is {.val prior}, but the target was given no {.arg prior}.")
  }
  reference_function(target$prior$sample, target$prior$log_density, vectorized = isTRUE(target$vectorized))
}

has_default_reference <- function(sampler) {
  identical(sampler$reference, check_reference(reference_gaussian(), sampler$target))
}
