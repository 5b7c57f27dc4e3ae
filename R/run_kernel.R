# Constructors of Markov kernels for the argument `kernel`. The kernels themselves are in src/kernel_*.c.

# A kernel, a list: its `name` in the core and its `label` in print; `step_size`, NULL where it is tuned; the defaults
# of the tuner; and the `options` for the core, see src/kernel.h.
#
# ...: elements that differ from the defaults here, and from `core_options`: whether the kernel needs `gradients`,
# `refreshes` velocities, and is Metropolis-`adjusted`; `refresh_rate`, NULL where it is tuned; and `refresh_grid`, the
# rates from which it is tuned.
new_kernel <- function(name, label, step_size, tuner_defaults, ...) {
  given <- list(...)
  plain <- list(gradients = TRUE, refreshes = FALSE, adjusted = FALSE, refresh_rate = NULL, refresh_grid = NaN)
  is_option <- names(given) %in% names(core_options)
  structure(
    c(
      list(name = name, label = label, step_size = step_size),
      utils::modifyList(plain, given[!is_option], keep.null = TRUE),
      list(
        options = c(name = name, utils::modifyList(core_options, given[is_option])),
        tuner_defaults = tuner_defaults
      )
    ),
    class = "smc_kernel"
  )
}

# Defaults of the options in src/kernel.h.
core_options <- list(
  backward = "time_correct",
  first_backward = "reference",
  objective = "esjd",
  target_acceptance = 0.5,
  n_moves = 1L
)

# Settings of the tuner in Kim, Xu, Gardner and Campbell (2025), for Langevin kernels, and for kinetic ones with a
# velocity.
langevin_tuner <- list(
  regularization = 0.1,
  tolerance = 0.01,
  bracket_start = 0.1,
  bracket_growth = 2,
  backoff = -1,
  step_size_guess = exp(-10),
  step_size_anchor = 1
)
kinetic_tuner <- utils::modifyList(
  langevin_tuner,
  list(regularization = 5, bracket_start = 0.01, bracket_growth = 3, step_size_guess = exp(-7.5))
)

check_step_size <- function(step_size) {
  if (!is.null(step_size)) check_positive(step_size, "step_size")
}

check_rates <- function(x, arg, lengths = NULL) {
  x <- check_positive(x, arg, lengths)
  check_each(x, arg, x <= 1, "numbers in (0, 1]")
}

# unadjusted kernels ----------------------------------------------------------

#' Kernel: kinetic Langevin Monte Carlo
#'
#' Every particle has a velocity. The velocity is partly refreshed,
#' `v' = sqrt(1 - rho_t^2) v + rho_t noise`, and then particle and velocity make one
#' leapfrog step of size `h_t`. The weights, not rejection, correct the bias of the leapfrog
#' step. [smc()] uses it for runs from the reference that it is given. In many variables it is far more
#' efficient than [kernel_lmc()].
#'
#' The refreshment rate hardly changes the divergence of a single step, which is what the tuner sees. It matters for
#' the draws: copies of a particle, made by resampling, have the same velocity, and separate only
#' as it is refreshed. In the coordinates of a reference that [smc()] has fitted, the target is nearly
#' standard normal, and motion with friction 2 forgets its start soonest (critical damping). There the
#' islands take `rho_t = sqrt(1 - exp(-4 h_t))`, unless `refresh_rate` is given.
#'
#' @inheritParams kernel_lmc
#' @param refresh_rate NULL to choose the refreshment rates `rho_t` from
#'   `refresh_grid`; or a number in (0, 1]. With `step_size` it must be given, and may be one for every step
#'   (numeric vector of length `n_steps`).
#' @param refresh_grid the rates to choose from (numeric vector of at most 16
#'   numbers in (0, 1], no two the same); the search at the first step starts at
#'   the first.
#' @return An object of class `smc_kernel`.
#' @source Kim, Xu, Gardner and Campbell (2025), section 5.2 and algorithm 3.
#' @examples
#' smc(target_gaussian(3), kernel = kernel_klmc(), n_steps = 8, n_particles = 128, seed = 1)
#' @export
kernel_klmc <- function(
  step_size = NULL,
  refresh_rate = NULL,
  refresh_grid = c(0.1, 0.9)
) {
  step_size <- check_step_size(step_size)
  refresh_grid <- check_rates(refresh_grid, "refresh_grid", seq_len(16))
  if (anyDuplicated(refresh_grid)) {
    twice <- refresh_grid[anyDuplicated(refresh_grid)]
    abort("{.arg refresh_grid} must not repeat a rate; {twice} is there twice.")
  }
  if (!is.null(refresh_rate)) {
    refresh_rate <- check_rates(refresh_rate, "refresh_rate", if (is.null(step_size)) 1)
    refresh_grid <- refresh_rate[1]
  } else if (!is.null(step_size)) {
    abort(c(
      "{.arg refresh_rate} must be given with {.arg step_size}, it is NULL.",
      "i" = "The rate is only tuned together with the step size."
    ))
  }
  new_kernel(
    "klmc", "KLMC", step_size, kinetic_tuner,
    refreshes = TRUE, refresh_rate = refresh_rate, refresh_grid = refresh_grid
  )
}

#' Kernel: unadjusted Langevin Monte Carlo
#'
#' Moves every particle by a step of gradient ascent on the annealed log density
#' and noise: `K_t(x, .) = N(x + h_t g_t(x), 2 h_t I)`. Its bias is corrected by
#' the weights, not by rejection.
#'
#' @param step_size NULL to tune the step sizes `h_t`; or a positive number, or
#'   one for every step (numeric vector of length `n_steps`), which switches the
#'   tuning off.
#' @param backward the backward kernel that the moves are weighed against:
#'
#'   * `"time_correct"`, the kernel of the step before, with its own temperature
#'     and step size; the best of the three.
#'   * `"forward"`, the kernel of the step itself: unbiased too, but of a higher
#'     variance.
#'   * `"detailed_balance"`, the reversal of the kernel, as if it were
#'     reversible. It is not, so the estimate is biased; and the weights do not
#'     depend on the step size, so it must be given. For comparison only.
#' @param first_backward what is used as the kernel before the first step in
#'   the time-correct backward kernel: `"reference"`, the reference itself, as in
#'   the paper; or `"independent"`, the reference's own Langevin kernel with the
#'   first step's size.
#' @return An object of class `smc_kernel`.
#' @source Kim, Xu, Gardner and Campbell (2025), section 5.1, and the appendix on
#'   backward kernels.
#' @examples
#' target <- target_gaussian(2, mean = 1)
#' smc(target, kernel = kernel_lmc(step_size = 0.3), n_steps = 8, n_particles = 128, seed = 1)
#' @export
kernel_lmc <- function(
  step_size = NULL,
  backward = c("time_correct", "forward", "detailed_balance"),
  first_backward = c("reference", "independent")
) {
  step_size <- check_step_size(step_size)
  backward <- check_choice(backward, "backward")
  first_backward <- check_choice(first_backward, "first_backward")
  label <- sprintf("LMC (%s backward kernel)", gsub("_", "-", backward))
  new_kernel("lmc", label, step_size, langevin_tuner, backward = backward, first_backward = first_backward)
}

# The argument as a kernel: a kernel itself, or the name of one, for its defaults.
check_kernel <- function(kernel) {
  if (is.character(kernel)) {
    return(kernel_by_name(kernel, "kernel"))
  }
  if (!inherits(kernel, "smc_kernel")) {
    made_by <- toString(sprintf("`kernel_%s()`", kernels))
    abort_argument(kernel, "kernel", sprintf("one of %s, or made by %s", toString(dQuote(kernels, FALSE)), made_by))
  }
  kernel
}

# The kernel with this name in the core, with its defaults except for the parameters given. NULL, and parameters that
# the kernel does not have, are ignored. arg: the name of the argument in errors.
kernel_by_name <- function(name, arg, step_size = NULL, refresh_rate = NULL) {
  make <- get(paste0("kernel_", check_choice(name, arg, kernels)))
  given <- without_null(list(step_size = step_size, refresh_rate = refresh_rate))
  do.call(make, given[names(given) %in% names(formals(make))])
}

kernels <- c("klmc", "lmc", "mala", "rwmh", "pcn", "hmc")

# Whether the step size is to be tuned; an error for a kernel without step size that cannot be tuned.
is_to_be_tuned <- function(kernel) {
  if (is.null(kernel$step_size) && is_biased(kernel)) {
    abort(c(
      "{.arg step_size} must be given with the detailed-balance backward
        kernel, it is NULL.",
      "i" = "The weights do not depend on it, so there is nothing to tune."
    ))
  }
  is.null(kernel$step_size)
}

# Whether the estimate of Z is biased even with fixed parameters.
is_biased <- function(kernel) {
  kernel$options$backward == "detailed_balance"
}

# adjusted kernels ------------------------------------------------------------

#' Kernels that reject: Hamiltonian, Metropolis-adjusted Langevin, random walk, and preconditioned Crank-Nicolson
#'
#' They leave the annealed density of their step
#' invariant by rejecting some of their moves.
#'
#' * `kernel_hmc()` proposes a step of Hamiltonian Monte Carlo. Every particle has a velocity, which is partly
#'   refreshed as by [kernel_klmc()]. In the coordinates in which the reference is standard normal, position and
#'   velocity turn into each other by the angle whose tangent is `h_t`, as they would if the reference were the target;
#'   half before and half after, the velocity is kicked by what the gradient has beyond that. A rejection turns the
#'   velocity round. So all steps are accepted where the target is normal with the covariance of the reference, in any
#'   number of variables. [smc()] uses it for runs from references that it has fitted.
#' * `kernel_mala()` proposes the moves of [kernel_lmc()].
#' * `kernel_rwmh()` proposes Gaussian moves of variance `h_t`, and needs no
#'   gradients.
#' * `kernel_pcn()` proposes steps of length `h_t` of an Ornstein-Uhlenbeck process, whose
#'   invariant distribution is the reference: `exp(-h_t) z + sqrt(1 - exp(-2 h_t)) noise` in the coordinates in which
#'   this is standard normal. Long steps are independent draws from the reference. It needs no gradients.
#'
#' With a `kernel` that needs no gradients, [smc()] does not search for modes by a scout. By default it does, also where
#' gradients are finite differences, and then chooses `kernel_pcn()` where this costs less.
#'
#' The weights of such kernels do not depend on the move. So particles are weighted, and
#' resampled if need be, before they move.
#'
#' @inheritParams kernel_lmc
#' @param objective what step sizes are tuned for: `"esjd"`, the largest expected
#'   squared jump distance; or `"acceptance"`, a mean acceptance probability of
#'   `target_acceptance`.
#' @param target_acceptance the mean acceptance probability to aim at (number in
#'   (0, 1)).
#' @param n_moves how many moves are made at every step (positive integer, at
#'   most 4095). Each costs an evaluation a particle.
#' @param refresh_rate the refreshment rates `rho_t` of [kernel_klmc()]: a number in (0, 1], or with `step_size` one for
#'   every step (numeric vector of length `n_steps`).
#' @return An object of class `smc_kernel`. The mean acceptance probability of
#'   every step is in the column `acceptance` of the fit's `steps`.
#' @source Kim, Xu, Gardner and Campbell (2025), section 6.4; Buchholz, Chopin and Jacob (2021), *Adaptive tuning of
#'   Hamiltonian Monte Carlo within sequential Monte Carlo*; Horowitz (1991), Physics Letters B 268, on steps of
#'   Hamiltonian Monte Carlo; Beskos, Pinski, Sanz-Serna and Stuart (2011), *Hybrid Monte Carlo on Hilbert spaces*;
#'   Cotter, Roberts, Stuart and White (2013), *MCMC methods for functions: modifying old algorithms to make them
#'   faster*.
#' @examples
#' target <- target_gaussian(2, mean = 1)
#' fit <- smc(target, kernel = kernel_mala(), n_steps = 8, n_particles = 128, seed = 1)
#' tidy(fit, "steps")[c("step", "lambda", "step_size", "acceptance")]
#' smc(target, kernel = kernel_rwmh(n_moves = 3), n_steps = 8, n_particles = 128, seed = 1)
#' @export
kernel_mala <- function(
  step_size = NULL,
  objective = c("esjd", "acceptance"),
  target_acceptance = 0.574,
  n_moves = 1
) {
  new_adjusted("MALA", TRUE, step_size, objective, target_acceptance, n_moves)
}

#' @rdname kernel_mala
#' @export
kernel_rwmh <- function(
  step_size = NULL,
  objective = c("esjd", "acceptance"),
  target_acceptance = 0.234,
  n_moves = 1
) {
  new_adjusted("RWMH", FALSE, step_size, objective, target_acceptance, n_moves)
}

#' @rdname kernel_mala
#' @export
kernel_pcn <- function(
  step_size = NULL,
  objective = c("esjd", "acceptance"),
  target_acceptance = 0.234,
  n_moves = 1
) {
  new_adjusted("pCN", FALSE, step_size, objective, target_acceptance, n_moves)
}

#' @rdname kernel_mala
#' @export
kernel_hmc <- function(
  step_size = NULL,
  refresh_rate = 0.5,
  objective = c("acceptance", "esjd"),
  target_acceptance = 0.8,
  n_moves = 1
) {
  objective <- check_choice(objective, "objective")
  rate <- check_rates(refresh_rate, "refresh_rate", if (is.null(step_size)) 1)
  new_adjusted(
    "HMC", TRUE, step_size, objective, target_acceptance, n_moves,
    refreshes = TRUE, refresh_rate = rate, refresh_grid = rate[1]
  )
}

new_adjusted <- function(label, gradients, step_size, objective, target_acceptance, n_moves, ...) {
  new_kernel(
    tolower(label), label, check_step_size(step_size), langevin_tuner,
    gradients = gradients, adjusted = TRUE,
    objective = check_choice(objective, "objective", c("esjd", "acceptance")),
    target_acceptance = check_number(target_acceptance, "target_acceptance", min = 0, max = 1, open = TRUE),
    n_moves = check_count(n_moves, "n_moves", max = 4095),
    ...
  )
}

# printing --------------------------------------------------------------------

#' @export
print.smc_kernel <- function(x, ...) {
  cat("<smc_kernel> ", x$label, "\n", sep = "")
  cat("step size: ", format_given(x$step_size), "\n", sep = "")
  if (x$refreshes) {
    cat("refresh rate: ", format_given(x$refresh_rate), "\n", sep = "")
  }
  invisible(x)
}

format_given <- function(x) {
  n <- length(x)
  if (n == 0) {
    "tuned"
  } else if (n == 1) {
    format(x)
  } else {
    sprintf("%d given, from %s to %s", n, format(x[1]), format(x[n]))
  }
}

# Whether parameters or temperatures have to be found by an adapting run.
needs_adapting <- function(kernel, path) {
  is_to_be_tuned(kernel) || !is.null(path$adaptive_ess)
}

# Number of moves, and of evaluations, for each particle in a step.
n_moves <- function(sampler) {
  if (sampler$kernel$adjusted) sampler$kernel$options$n_moves else 1
}
