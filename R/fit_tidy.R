# Methods for the generics of broom: tidy(), glance() and augment().

#' Tables of a fit: tidy(), glance() and augment()
#'
#' The columns of the table of parameters are named as in broom, with dots (`std.error`, `conf.low`); all other columns
#' are named with underscores, as everywhere in this package.
#'
#' @param x a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param what which table (string): `"parameters"`, `"steps"`, `"runs"`, `"islands"` or `"diagnostics"`.
#' @param conf.int whether the table of the parameters has intervals (TRUE or FALSE).
#' @param conf.level the probability of these intervals (number in (0, 1)).
#' @param ... not used.
#' @return `tidy()`: a data frame. `"parameters"`: a row for each variable, with `term`, `estimate` (the posterior
#'   mean), `std.error` (the posterior standard deviation) and, with `conf.int`, `conf.low` and `conf.high` (the
#'   quantiles that bound the central interval). `"steps"`: `fit$steps`, a row for each run and step. `"runs"`:
#'   `fit$runs`, a row for each round, and one for the final islands together. `"islands"`: `fit$islands`, a row for
#'   each island. `"diagnostics"`: `fit$diagnostics`, a row for each diagnostic.
#'
#'   `glance()`: a data frame of one row with `log_z`, `std_error`, `sampling_error`, `conf_low`, `conf_high` (of the
#'   estimate that the fit reports, see [estimates]), `biased`, `laplace` (whether `log_z` is that of Laplace's
#'   approximation of an integral over random effects), `correction` and `correction_error` (the difference of `log_z`
#'   and that approximation, and its standard error; NA if there is none), `kernel`, `dim`, `n_particles`, `n_steps`,
#'   `islands`, `converged` (whether all diagnostics have passed; NA if there are none), `ess_mean`,
#'   `n_objective_evals`, `n_target_evals`, `n_calls` (of all runs together), `seconds` (of the whole call) and `seed`.
#'   `ess_mean` is the effective sample size of the posterior means: the harmonic mean over variables of
#'   `(sd / mcse)^2`, at most Kish's effective sample size of the weights, and NA for one island. Kish's effective
#'   sample size, the `ess` of the steps and islands, ignores that particles share ancestors, and can be several times
#'   as high.
#'
#'   `augment()`: a data frame with a row for each particle: the target's variables, `.island`, `.weight` (the weights
#'   of all islands together sum to one) and `.log_weight`.
#' @section Errors: `autosmc_error_input` when an argument is not what it should be, and for
#'   the `"islands"` of a fit that has none.
#' @seealso [summary.smc_fit()] for `mcse`, the Monte Carlo standard error of a posterior mean.
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' tidy(fit)
#' tidy(fit, conf.int = TRUE, conf.level = 0.9)
#' tidy(fit, "runs")
#' glance(fit)
#' augment(fit)
#' @name tidy.smc_fit
NULL

#' @importFrom generics augment glance tidy
#' @export
generics::tidy

#' @export
generics::glance

#' @export
generics::augment

#' @rdname tidy.smc_fit
#' @export
tidy.smc_fit <- function(x, what = c("parameters", "steps", "runs", "islands", "diagnostics"), conf.int = FALSE,
                         conf.level = 0.95, ...) {
  what <- check_choice(what, "what")
  conf.int <- check_flag(conf.int, "conf.int")
  check_number(conf.level, "conf.level", 0, 1, open = TRUE)
  check_dots_empty(...)
  if (what == "parameters") {
    return(parameters_table(x, if (conf.int) conf.level))
  }
  if (what == "islands" && is.null(x$islands)) {
    abort("{.code what = \"islands\"} needs a fit with islands, of {.fn smc} or {.fn smc_run}.")
  }
  x[[what]]
}

# level: of the intervals; NULL for none.
parameters_table <- function(fit, level) {
  moments <- weighted_moments(fit)
  table <- tibble::tibble(term = colnames(fit$particles), estimate = moments$mean, std.error = moments$sd)
  if (!is.null(level)) {
    quantiles <- weighted_quantiles(fit, central(level))
    table$conf.low <- quantiles[1, ]
    table$conf.high <- quantiles[2, ]
  }
  table
}

# The probabilities that bound the central interval.
central <- function(level) (1 + c(-1, 1) * level) / 2

#' @rdname tidy.smc_fit
#' @export
augment.smc_fit <- function(x, ...) {
  check_dots_empty(...)
  check_has_draws(x)
  draws <- tibble::as_tibble(x$particles)
  tibble::tibble(draws, .island = x$island, .weight = exp(x$log_weights), .log_weight = x$log_weights)
}

#' @rdname tidy.smc_fit
#' @export
glance.smc_fit <- function(x, ...) {
  check_dots_empty(...)
  runs <- x$runs
  last <- last_run(x)
  of_laplace <- function(name) if (is.list(x$laplace)) x$laplace[[name]] else NA_real_
  tibble::tibble(
    log_z = x$log_z, std_error = x$std_error, sampling_error = x$sampling_error,
    conf_low = x$conf_low, conf_high = x$conf_high, biased = last$biased, laplace = is_laplace(x),
    correction = of_laplace("correction"), correction_error = of_laplace("correction_error"),
    kernel = x$kernel$name, dim = x$target$dim, n_particles = last$n_particles, n_steps = last$n_steps,
    islands = last$islands, converged = converged(x), ess_mean = ess_mean(x),
    n_objective_evals = sum(runs$n_objective_evals), n_target_evals = sum(runs$n_target_evals),
    n_calls = sum(runs$n_calls), seconds = x$seconds, seed = x$seed
  )
}

converged <- function(fit) if (NROW(fit$diagnostics) > 0) all(fit$diagnostics$passed) else NA
