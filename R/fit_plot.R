# Plots of a fit. ggplot2 (fit_autoplot.R) and R's own graphics (fit_plot_base.R) draw the same tables, of
# fit_plot_data.R.

#' Plots of a fit
#'
#' `plot()` draws with R's own graphics, `autoplot()` makes the same plot with ggplot2.
#'
#' * `"overview"`, to look at first: the islands' estimates and the diagnostics, if there are any, and histograms of the
#'   first four variables.
#' * `"run"`: a panel each, by step, for the temperature, the logarithm of the step size (on the scale of the
#'   reference), the refreshment rate or the acceptance probability, the effective sample size (ESS) as a fraction of
#'   the particles, the cumulative barrier, and log Z up to that step. A line for each round of adaptation, and a thin
#'   black line for each final island; the refreshment rate and the ESS are points.
#' * `"islands"`: the islands' estimates of log Z (`-Inf` at the left edge if all particles died); below them the
#'   estimate of the fit with its 95 % interval, and if that is the bridge estimate, the estimate by SMC as well.
#' * `"diagnostics"`: a bar for each, its value as a fraction of its limit (the inverse for those that fail below it),
#'   cut off at 2, between its name and whether it has passed. A bar beyond the line has failed. See [diagnostics].
#' * `"barrier"`: the cumulative barrier against the temperature, with the same lines: where it rises steeply, many
#'   steps are needed.
#' * `"draws"`: weighted histograms of the draws, without the outermost 0.1 % on either side. Constants, such as zeros
#'   of a matrix, are left out.
#' * `"maps"`: the effect of the fitted reference. The pair of variables in which one depends most on the other, first
#'   on the unconstrained scale, then in the coordinates in which particles move. In these it should be a round cloud;
#'   both axes have the same scale. `fit$maps` says in words which variables depend on which.
#'
#' @param x,object a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param what which plot: one of `"overview"`, `"run"`, `"islands"`, `"diagnostics"`,
#'   `"barrier"`, `"draws"` and `"maps"`.
#' @param variables for `what = "draws"` and `"overview"`, which variables (character vector
#'   of names, `"tau"` for all of `tau[1]`, `tau[2]`, ...); NULL for the first six, or four, that vary.
#' @param main a title (string); NULL for none.
#' @param ... not used.
#' @return `plot()`: the fit, invisibly. `autoplot()`: a ggplot, to which scales, themes and titles can be added.
#' @section Errors: Of class `autosmc_error_input`, when an argument is not what it should be; for `"islands"`, if there
#'   are fewer than two; for `"diagnostics"`, if there are none; and for `"maps"`, if no variable depends on another.
#' @source The barrier: Syed, Bouchard-Cote, Chern and Doucet (2024), *Optimised annealed sequential Monte Carlo
#'   samplers*. The colours: Okabe and Ito (2008), *Color universal design*; the line types differ as well.
#' @examples
#' target <- target_gaussian(2, mean = 2)
#' fit <- smc(target, n_particles = 128, n_steps = 8, seed = 1)
#' plot(fit)
#' plot(fit, "run")
#' plot(fit, "draws", variables = "x2")
#'
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' ggplot2::autoplot(fit, "islands")
#' @export
plot.smc_fit <- function(x, what = "overview", variables = NULL, ..., main = NULL) {
  check_dots_empty(...)
  draw_view("base", x, what, variables, main)
  invisible(x)
}

#' @rdname plot.smc_fit
#' @method autoplot smc_fit
#' @rawNamespace S3method(ggplot2::autoplot, smc_fit)
autoplot.smc_fit <- function(object, what = "overview", variables = NULL, ...) {
  check_dots_empty(...)
  draw_view("gg", object, what, variables)
}

# For each plot: the function that makes its table, of a fit (and names of variables), and those that draw it.
views <- function() {
  list(
    overview = list(data = overview_data, base = base_overview, gg = gg_overview),
    run = list(data = run_data, base = base_run, gg = gg_run),
    islands = list(data = islands_data, base = base_islands, gg = gg_islands),
    diagnostics = list(data = diagnostics_data, base = base_diagnostics, gg = gg_diagnostics),
    barrier = list(data = barrier_data, base = base_barrier, gg = gg_barrier),
    draws = list(data = draws_data, base = base_draws, gg = gg_draws),
    maps = list(data = maps_data, base = base_maps, gg = gg_maps)
  )
}

draw_view <- function(graphics, fit, what, variables, ...) {
  check_has_runs(fit)
  views <- views()
  what <- check_choice(what, "what", names(views))
  if (what %in% c("overview", "draws")) {
    data <- views[[what]]$data(fit, variables)
  } else if (is.null(variables)) {
    data <- views[[what]]$data(fit)
  } else {
    abort("{.arg variables} goes with {.code what = \"draws\"} or {.code \"overview\"} only.")
  }
  views[[what]][[graphics]](data, ...)
}

# ggplot2 ---------------------------------------------------------------------

utils::globalVariables(".data") # the data of a layer, within aes()

#' @export
plot.smc_evidence <- function(x, ..., main = NULL) {
  check_dots_empty(...)
  base_evidence(evidence_data(x), main)
  invisible(x)
}

#' @method autoplot smc_evidence
#' @rawNamespace S3method(ggplot2::autoplot, smc_evidence)
autoplot.smc_evidence <- function(object, ...) {
  check_dots_empty(...)
  gg_evidence(evidence_data(object))
}
