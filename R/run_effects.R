# The integral over the random effects at given parameters: by quadrature for small components, and by SMC runs for
# large ones. Called by estimate_effects() and for draws of the effects.

# A function of the parameters x that returns the log density by Laplace's approximation, the log ratio of the exact
# density, or an unbiased estimate of it, to this approximation (NaN where there is none), and with `with_draw` a draw
# of the effects. For x = "count" it returns the numbers of Laplace approximations and of gradients of the joint
# density.
counted_integral <- function(effects) {
  count <- c(n_target_evals = 0, n_joint_gradients = 0)
  path <- NULL # that of all runs, found by the first one
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

# Particles of a run over effects.
effects_particles <- 64
# Relative effective sample size after a change of temperature: the changes are small, so few particles are enough.
effects_ess <- 0.85
# Largest number of steps of such a run.
most_effects_steps <- 256

# The sampler for runs from Laplace's approximation of the effects given the parameters to their exact density. at: of
# effects_at().
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

# Temperatures and step sizes from one adapting run. The later runs, for which they are fixed, are unbiased.
path_of_effects <- function(sampler) {
  record <- run_sampler(sampler, list(adaptive_ess = effects_ess, n_steps = most_effects_steps), "adapt", 0)
  as.list(record$steps[c("lambda", "step_size", "refresh_rate")])
}

# The log of an unbiased estimate of the ratio of the integral to Laplace's approximation, NaN where all particles died,
# and with `with_draw` a draw of the effects. If parameters are weighted by the estimate, parameters and effects
# together are draws from the exact density.
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
