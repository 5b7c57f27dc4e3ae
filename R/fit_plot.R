# Plots of a fit. ggplot2 and R's own graphics draw the same data frames, which
# hold everything but the looks, so the two cannot disagree.

#' Plots of a fit
#'
#' `plot()` draws with R's own graphics, `autoplot()` makes the same plot with ggplot2.
#'
#' * `"overview"`: what to look at first. The islands' estimates, the diagnostics, and the
#'   histograms of the first four variables; the first two where there are any.
#' * `"run"`: a panel each, by step, for the temperature, the logarithm of the step size (on the scale of the
#'   reference), the refreshment rate or the acceptance probability, the effective sample size (ESS) as a fraction of
#'   the particles, the cumulative barrier, and log Z up to that step. A line for each round of adaptation, and a thin
#'   black one for each final island; the refreshment rate and the ESS, which jump, are points.
#' * `"islands"`: the islands' estimates of log Z (`-Inf` at the left edge where all particles died) above the estimate
#'   of the fit with its 95 % interval, and where that is the bridge, that by SMC.
#' * `"diagnostics"`: a bar each, as a fraction of its limit (the inverse for those that fail below it), cut off at 2,
#'   between its name and whether it has passed. Those that have failed are beyond the line. [diagnostics] explains them.
#' * `"barrier"`: the cumulative barrier against the temperature, with the same lines:
#'   where it rises steeply the path is hard.
#' * `"draws"`: weighted histograms of the draws, without the outermost 0.1 % on either side. What is constant, such
#'   as zeros of a matrix, has none.
#' * `"maps"`: what the fitted reference has made of the draws. The pair of variables of which
#'   one depends most on the other, as it is (on the unconstrained scale, which the axes name) and in the
#'   coordinates in which particles move, where it should look like a round cloud: both axes have the same scale
#'   there. `fit$maps` says in words what depends on what.
#'
#' @param x,object a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param what which plot: one of `"overview"`, `"run"`, `"islands"`, `"diagnostics"`,
#'   `"barrier"`, `"draws"` and `"maps"`.
#' @param variables for `what = "draws"` and `"overview"`, which variables (character vector
#'   of names, `"tau"` for all of `tau[1]`, `tau[2]`, ...); NULL for the first six, or four, that vary.
#' @param main a title (string); NULL for none.
#' @param ... not used.
#' @return `plot()`: the fit, invisibly. `autoplot()`: a ggplot, to which scales, themes and titles can be added.
#' @section Errors: Of class `autosmc_error_input`, when an argument is not what it
#'   should be, for the `"islands"` of a fit with fewer than two, for the `"diagnostics"`
#'   of one that has none, and for the `"maps"` of one in which no variable depends on another.
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

# The table that each view shows, of a fit and the names of variables, and how either kind of graphics draws it.
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
