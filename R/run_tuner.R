# Settings of the tuner, the argument `tuner`. The tuner itself is in src/tuner.c.

#' Tuner: greedy minimisation of the incremental divergence
#'
#' At each step, the parameters of the kernel are chosen to minimise an estimate
#' of the incremental Kullback-Leibler divergence between the proposal and the
#' target path. It is made with a few of the particles and with noise that is
#' kept fixed, so that a search on the line finds its minimum, over the logarithm
#' of the step size: a bracket is found by steps that grow, and narrowed by
#' the parabola through its points or by
#' golden section. The defaults serve for all targets.
#'
#' A default of NULL stands for a value that depends on the search and on the kernel:
#'
#' | argument            | `"parabolic"` | `"golden"`, KLMC | `"golden"`, others |
#' |:--------------------|--------------:|-----------------:|-------------------:|
#' | `tolerance`         | 0.2           | 0.01             | 0.01               |
#' | `bracket`           | 0.1, 2        | 0.01, 3          | 0.1, 2             |
#'
#' | argument            | KLMC          | others           |
#' |:--------------------|--------------:|-----------------:|
#' | `regularization`    | 5             | 0.1              |
#' | `backoff`           | -1            | -1               |
#' | `step_size_guess`   | exp(-7.5)     | exp(-10)         |
#' | `step_size_anchor`  | 1             | 1                |
#'
#' Those of `"golden"` are the paper's. The parabolic search takes less than half as many
#' evaluations of the objective, and the estimates of the evidence scatter no more: an
#' objective that is estimated with a hundred particles does not determine its minimum to
#' a hundredth.
#'
#' @param n_subsample how many particles the objective is estimated with
#'   (positive integer, at most `n_particles`). One evaluation of the objective
#'   costs as many evaluations of the target. By default a quarter of the particles of [smc()], but 32 at least, and
#'   128 at most.
#' @param regularization weight `tau` of the penalty
#'   `tau (log h_t - log h_(t-1))^2` (number, not negative), which keeps the step
#'   sizes of neighbouring steps together.
#' @param search how the bracket is narrowed: `"parabolic"`, to the vertex of the
#'   parabola through its three points, or `"golden"`, by golden section as in the
#'   paper.
#' @param tolerance the width of the bracket, on the log scale, at which the search stops
#'   (number of at least 1e-8).
#' @param bracket the first step of the search for a bracket, on the log scale, and the
#'   factor by which its steps grow (two numbers: a positive one, and one above 1).
#' @param backoff step on the log scale with which a first step size is sought at
#'   which the objective is finite (number, not 0).
#' @param step_size_guess where the search starts at the first step (positive
#'   number). Where it is not given, runs of [smc()] from a reference that was fitted start at
#'   `dim^(-1 / 3)`.
#' @param step_size_anchor the step size towards which the penalty pulls the first one
#'   (positive number).
#' @return An object of class `smc_tuner`.
#' @source Kim, Xu, Gardner and Campbell (2025), algorithms 1 to 7.
#'   Every search is bounded; on reaching a bound it keeps the best step size it
#'   has seen, and says so in the column `tuner_status` of the fit's `steps`. Roberts and Rosenthal (1998), *Optimal
#'   scaling of discrete approximations to Langevin diffusions*, for `dim^(-1 / 3)`.
#' @examples
#' tuner_kl(n_subsample = 64)
#' @export
tuner_kl <- function(
  n_subsample = NULL,
  search = c("parabolic", "golden"),
  regularization = NULL,
  tolerance = NULL,
  bracket = NULL,
  backoff = NULL,
  step_size_guess = NULL,
  step_size_anchor = NULL
) {
  unless_null <- function(x, check, ...) if (!is.null(x)) check(x, ...)
  number <- function(x, arg, ...) unless_null(x, check_number, arg, ...)
  positive <- function(x, arg) number(x, arg, min = 0, open = TRUE)
  if (!is.null(bracket)) {
    bracket <- check_numeric(bracket, "bracket", lengths = 2)
    if (bracket[1] <= 0 || bracket[2] <= 1) {
      abort_argument(bracket, "bracket", "a positive number and a number above 1")
    }
  }
  if (identical(backoff, 0)) {
    abort_argument(backoff, "backoff", "a number other than 0")
  }
  structure(
    list(
      n_subsample = unless_null(n_subsample, check_count, "n_subsample"),
      search = check_choice(search, "search"),
      regularization = number(regularization, "regularization", min = 0),
      tolerance = number(tolerance, "tolerance", min = least_tolerance),
      bracket_start = bracket[1],
      bracket_growth = bracket[2],
      backoff = number(backoff, "backoff"),
      step_size_guess = positive(step_size_guess, "step_size_guess"),
      step_size_anchor = positive(step_size_anchor, "step_size_anchor")
    ),
    class = "smc_tuner"
  )
}

# The default number of particles for the objective: a quarter, between 32 and 128. More than 128 hardly improve the
# step size; with more than a quarter, most evaluations of a run would be for the tuner.
default_subsample <- function(n_particles) min(n_particles, max(32, min(128, n_particles %/% 4)))

# Least tolerance: the core treats log step sizes that differ by less than 1e-10 as equal.
least_tolerance <- 1e-8

# The tuner's settings for the kernel and the number of particles of a sampler, with all defaults filled in.
complete_tuner <- function(settings) {
  tuner <- settings$tuner
  n_particles <- settings$n_particles
  complete <- settings$kernel$tuner_defaults
  if (tuner$search == "parabolic") {
    complete[c("tolerance", "bracket_start", "bracket_growth")] <- c(0.2, 0.1, 2)
  }
  given <- without_null(unclass(tuner))
  complete[names(given)] <- given
  complete$refresh_grid <- settings$kernel$refresh_grid
  if (is.null(tuner$n_subsample)) {
    complete$n_subsample <- default_subsample(n_particles)
  }
  if (complete$n_subsample > n_particles) {
    abort("{.arg n_subsample} must be at most {.arg n_particles}, which is {n_particles}, not {complete$n_subsample}.")
  }
  complete
}

# The tuner for a fitted reference, in whose coordinates the target is nearly standard normal, with a first step size if
# none is given. The best step size of MALA is about dim^(-1/3) (Roberts and Rosenthal, 1998), and a search from there
# takes half as long. For HMC it is 1, a rotation by an eighth of a circle. That of pCN is large, since its objective is
# flat.
with_guess <- function(tuner, kernel, dim) {
  if (is.null(tuner$step_size_guess)) tuner$step_size_guess <- switch(kernel$name, pcn = 3, hmc = 1, dim^(-1 / 3))
  tuner
}

#' @export
print.smc_tuner <- function(x, ...) {
  cat("<smc_tuner>\n")
  for (name in names(x)) {
    value <- if (is.null(x[[name]])) "chosen by the run" else format(x[[name]])
    cat(name, ": ", value, "\n", sep = "")
  }
  invisible(x)
}

# Names of the values of the core's `smc_search_status`, in their order.
tuner_statuses <- c("converged", "at_limit", "exhausted", "infeasible", "failed")
