# The integral over the random effects at given parameters: by quadrature of small components, and of large ones by runs
# of the sampler.

# A function of the parameters x: the log density by Laplace's approximation, the log of the ratio of the exact density
# to it, or of an unbiased estimate of it, NaN where there is none; and with_draw a draw of the effects. It counts what
# it asks of the model: of "count" it gives the number of Laplace's approximations and that of gradients of the joint
# density by the effects.
counted_integral <- function(effects) {
  count <- c(n_target_evals = 0, n_joint_gradients = 0)
  path <- NULL # of runs
  function(x, with_draw = FALSE) {
    if (identical(x, "count")) {
      return(count)
    }
    count[1] <<- count[1] + 1
    tryCatch(
      {
        at <- effects_at(effects, x)
        score <- at$score
        at$score <- function(u) {
          count[2] <<- count[2] + 1
          score(u)
        }
        ratio <- if (integration_method(effects) == "quadrature") {
          log_ratio_at(at, effects$component, with_draw)
        } else {
          sampler <- sampler_of_effects(at)
          if (is.null(path)) path <<- path_of_effects(sampler)
          log_ratio_by_run(sampler, path, with_draw)
        }
        c(at$laplace, ratio)
      },
      error = function(e) rep(NaN, 2 + with_draw * length(effects$component))
    )
  }
}

# Particles of a run, ...
effects_particles <- 64
# ... and the part of them that a change of temperature leaves effective: small changes, so that few particles are
# enough.
effects_ess <- 0.85
most_effects_steps <- 256

# For runs from Laplace's approximation of the effects given the parameters to their density. at: of effects_at().
sampler_of_effects <- function(at) {
  n <- length(at$mode)
  sampler <- list(
    target = new_target(n, NULL, "effects", at = at, whitening = whitening(at), class = "smc_target_whitened"),
    n_particles = effects_particles, kernel = kernel_hmc(), reference = reference_gaussian(), tuner = tuner_kl(),
    resampling = "ssp", ess_threshold = 0.5, keep = "draws", seed = sample.int(.Machine$integer.max, 1),
    pace = new_pace()
  )
  sampler$tuner <- with_guess(sampler$tuner, sampler$kernel, n)
  sampler$evaluators <- interface_of_run(sampler)
  sampler
}

# Temperatures and step sizes, which are found once: with those that are given, runs are unbiased.
path_of_effects <- function(sampler) {
  record <- run_sampler(sampler, list(adaptive_ess = effects_ess, n_steps = most_effects_steps), "adapt", 0)
  as.list(record$steps[c("lambda", "step_size", "refresh_rate")])
}
# The log of an estimate of the ratio of the integral to Laplace's approximation, NaN where all particles died, and
# with_draw a draw of the effects: where parameters are weighed by the estimate the two are draws of the exact density.
log_ratio_by_run <- function(sampler, path, with_draw) {
  record <- run_sampler(sampler, path, "final", 1)
  if (is.list(record$dead)) {
    return(rep(NaN, 1 + with_draw * sampler$target$dim))
  }
  drawn <- if (with_draw) {
    one <- sample.int(effects_particles, 1, prob = exp(record$log_weights))
    effects_from(sampler$target, record$particles[one, , drop = FALSE])
  }
  c(record$runs$log_z, drawn)
}
