# A target is a batched log density with its gradient: a list of class `smc_target` with `dim`, `names`, `lower`,
# `upper`, `label` and elements of its kind. Each kind has its own file, R/target_*.R, and method of evaluation().

# types: the user's argument (see R/target_types.R), or NULL. With types, `names` and bounds of the target are those of
# the unconstrained variables, and its elements `parameters` and `outputs` are on the user's scale.
new_target <- function(dim, names, label, ..., lower = -Inf, upper = Inf, types = NULL, class) {
  names <- check_names(names, dim)
  bounds <- check_bounds(lower, upper, names)
  typed <- NULL
  if (!is.null(types)) {
    types <- type_blocks(types, names)
    bounds <- free_bounds(bounds, types)
    names <- types$free
    typed <- list(types = types, parameters = types$names, outputs = outputs_of_types(types))
  }
  structure(
    c(list(dim = length(names), names = names), bounds, list(label = label, ...), typed),
    class = c(class, "smc_target")
  )
}

#' Turn an object into a target
#'
#' [smc()] and related functions call this on their first argument, which may be a plain function, as in
#' `smc(f, dim = 3)`, or a model object of some other packages.
#'
#' @param x a target; or a function of a numeric vector that returns the log density
#'   (see [target_function()]); or a model object: see the sections below.
#' @param ... for a function, the other arguments of [target_function()]; `dim` is required.
#' @param lower,upper bounds of a model's variables, as in [target_rtmb()]: a number, or a named list or vector.
#' @param log_prior a function of a list of the parameters, such as `beta` and `theta`, that returns a log density
#'   (number). It is added to the log density of the model. NULL if the model already contains its priors. See the
#'   section on glmmTMB.
#' @param response,nobs the observations, as in [target_function()]; NULL to take them from the elements `y`, `Y`, `N`
#'   or, for glmmTMB, `yobs` of the model's data.
#' @param method how random effects of RTMB, TMB, glmmTMB and sdmTMB are integrated out: `"auto"`, exactly where
#'   possible, or `"laplace"`, by Laplace's approximation alone. See the section Random effects.
#' @return A target: an object of class `smc_target`.
#' @section RTMB and TMB: The objects of `RTMB::MakeADFun()` and `TMB::MakeADFun()`, whose function is the negative log
#'   density. For `log_z` to be a log evidence, it must contain all constants and priors. The density is with respect to
#'   the parameters as they are declared: if one is a logarithm, the function must include the log Jacobian. It is
#'   simpler to declare the parameter on its own scale with `lower = c(sigma = 0)`.
#'
#'   The variables are the elements of `x$par`, named `beta[1]`, `beta[2]` and so on. Parameters fixed by `map` stay
#'   fixed. Parameters in `random` are integrated out: see the section Random effects.
#'
#'   The target holds a copy of the object, so `x` does not change. If the density is zero at all points that [smc()]
#'   tries first, it starts from `x$par`. Objects of RTMB are evaluated as in [target_rtmb()]; those of TMB, and
#'   fits of sdmTMB, point by point with `x$fn()` and `x$gr()`, which is slower.
#' @section Random effects: With `random` effects the target is Laplace's approximation to the marginal density of the
#'   other parameters, and [smc()] corrects the evidence for its error. Given the other parameters, the effects form
#'   independent components, such as the intercept and slope of a group. These are found from the second derivatives.
#'
#'   *Quadrature.* The integral over a component of at most ten effects is a mean over directions of integrals along
#'   rays from its mode (Monahan and Genz, 1997), in coordinates in which Laplace's approximation is standard normal.
#'   The derivative of the log density along a ray is integrated at Chebyshev nodes. Their number is doubled until all
#'   integrals converge. A component of one effect has two directions, and its integral is exact up to rounding. For
#'   larger components the directions are evenly spread and rotated at random, so that the estimate of the likelihood
#'   is unbiased. One gradient serves all components: a likelihood takes about 80 gradients for single effects and
#'   about 300 for pairs.
#'
#'   *Sampling.* If a component is larger, as in a time series, a random field or with crossed groups, the integral over
#'   all effects is estimated by an SMC run with 64 particles. Its reference is Laplace's approximation to the density
#'   of the effects given the other parameters, in coordinates in which this is standard normal. Particles move by
#'   [kernel_hmc()]. Temperatures and step sizes are tuned once and then kept, so that each estimate is unbiased, and so
#'   is the mean of their ratios to Laplace's approximation (importance sampling with random weights, Fearnhead et al.,
#'   2008). A likelihood takes about 500 gradients, more with more effects, and the log of its estimate has a standard
#'   deviation of 0.2 to 0.4. So 64 likelihoods bring the error of log Z to 0.05 or less. The default `precision` of
#'   0.01 is seldom reached; `precision = 0.1` is faster.
#'
#'   `smc()` computes the log ratio of the exact likelihood to Laplace's approximation at some points around the mode,
#'   and fits a cubic in each parameter to it. The sampled density is Laplace's approximation times this surrogate. Near
#'   the mode a polynomial replaces both, if it agrees with them at held-out points. The exact evidence is that of the
#'   sampled density times the mean ratio of the exact to the sampled density at 64 to 512 draws. Its standard error is
#'   included in that of `log_z`. The draws, [estimates], islands and runs of the fit are those of the sampled density;
#'   `as_draws(fit, effects = TRUE)` returns draws of the exact one, with the effects (see [as_draws.smc_fit()]). The
#'   printed fit says how the effects were integrated out. `fit$laplace` is a list with `log_z` and `std_error` by
#'   Laplace's approximation, the `correction` from there to `fit$log_z`, its `correction_error`, and the `method`;
#'   [glance()][glance.smc_fit] returns the last two numbers, too.
#'
#'   An evaluation of the target, in `n_target_evals` and `max_evals`, is one of the sampled density, by Laplace's
#'   approximation or by the polynomial, with or without gradient. In `fit$runs` the row `"surrogate"` has the cost of
#'   fitting the surrogate, and the row `"correction"` that of the exact integrals at draws. Laplace's approximations,
#'   each with its search for the mode, count in `n_target_evals`. Gradients of the joint density with respect to the
#'   effects count in `n_joint_gradients`, a column that other fits do not have, but not towards `max_evals`: one takes
#'   a small part of the time of Laplace's approximation.
#'
#'   If an integral does not converge, for instance because of heavy tails, or with `method = "laplace"`, `log_z` is
#'   that of Laplace's approximation. Its error is unknown and not included in the interval: printed fits and [report()]
#'   say so, and [compare_evidence()] warns. If a component has several modes, part of its mass may be missed.
#' @section glmmTMB and sdmTMB: These packages maximise a likelihood, so `log_prior` is needed, unless the model was
#'   fitted with `priors`. It is the log prior density of the parameters of the objective, `x$obj$par` or
#'   `x$tmb_obj$par`. Coefficients are `beta`. The logarithms of the standard deviations of groups are the first
#'   elements of `theta`, so a prior of a standard deviation must be multiplied by the Jacobian, which is the standard
#'   deviation itself. For example, with a N(0, 10) prior for the intercept, and a half-t prior with 3 degrees of
#'   freedom and scale 2.5 for one standard deviation:
#'
#'   ```r
#'   fit <- glmmTMB(count ~ 1 + (1 | spray), data = InsectSprays, family = poisson)
#'   log_prior <- function(parameters) {
#'     sd <- exp(parameters$theta)
#'     half_t <- log(2) + dt(sd / 2.5, df = 3, log = TRUE) - log(2.5)
#'     log_jacobian <- parameters$theta # log(sd)
#'     sum(dnorm(parameters$beta, 0, 10, log = TRUE)) + half_t + log_jacobian
#'   }
#'   smc(fit, log_prior = log_prior)
#'   smc(fit, log_prior = log_prior, method = "laplace") # what glmmTMB maximises, times the prior
#'   ```
#'
#'   Effects are integrated out (see the section Random effects). For the normal family Laplace's approximation is
#'   exact.
#'
#'   A warning of class `autosmc_warning_prior` names the parameters without a prior, and so does `fit$improper`. In
#'   glmmTMB, `gamma()` is a prior of the exponential of a parameter, so its log Jacobian is added; `lkj()` is not
#'   normalised, and its parameters are treated as having no prior. The log Jacobians of sdmTMB's priors are added, as
#'   with `bayesian = TRUE`. sdmTMB does not normalise a truncated prior, so with `halfnormal()` for `phi` `log_z` is
#'   too low by log(2).
#' @section BayesianTools: The objects of `BayesianTools::createBayesianSetup()`. They have no gradient, so it is
#'   approximated by central differences. The bounds are those of the prior. BayesianTools does not normalise a prior
#'   that `createPrior()` truncates, and the evidence is not corrected for this.
#' @section Models of other packages: A package supports a class of models by a method that returns a target, such as
#'   that for class `"proportion"` in the examples. The method is registered by `S3method(autosmc::as_target,
#'   proportion)` in `NAMESPACE`, which roxygen2 writes for `@exportS3Method autosmc::as_target`; autosmc need only be
#'   suggested. Then `smc(model)` accepts such a model. Arguments of the method are passed to [smc()] by name.
#' @section Errors: Of class `autosmc_error_input` when there is no method for `x`, when an
#'   argument is wrong, and when the library of a model object of TMB is not loaded.
#' @source Monahan and Genz (1997), *Spherical-radial integration rules for Bayesian computation*. Fearnhead,
#'   Papaspiliopoulos and Roberts (2008), *Particle filters for partially observed diffusions*.
#' @seealso [target_function()], [target_rtmb()] and [target_native()], with which methods make their targets.
#' @examples
#' as_target(function(x) -sum(x^2) / 2, dim = 3)
#'
#' # a method for a new class: proportions, with a uniform prior
#' as_target.proportion <- function(x, ...) {
#'   target_function(
#'     function(p) dbinom(x$successes, x$trials, p, log = TRUE),
#'     dim = 1, gradient = function(p) x$successes / p - (x$trials - x$successes) / (1 - p),
#'     vectorized = TRUE, names = "p", lower = 0, upper = 1
#'   )
#' }
#' model <- structure(list(successes = 7, trials = 10), class = "proportion")
#' as_target(model)
#' fit <- smc(as_target(model), n_steps = 4, n_particles = 64, rounds = 1, seed = 1)
#' c(log_evidence(fit), exact = -log(11))
#'
#' # `vignette("models")` has a model object of RTMB
#' @export
as_target <- function(x, ...) {
  check_given(x, "x")
  UseMethod("as_target")
}

#' @export
as_target.default <- function(x, ...) {
  given <- if (is.character(x)) "text" else describe(x)
  abort(c(
    "{.arg target} must be a target, a function or a model object, not {given}.",
    "i" = if (is.character(x)) "For a Stan program there is {.fn target_stan}."
  ))
}

#' @export
as_target.smc_target <- function(x, ...) {
  check_dots_empty(...)
  x
}

#' @export
print.smc_target <- function(x, ...) {
  cat("<smc_target> ", x$label, "\n", sep = "")
  cat("dimension: ", x$dim, " (", format_names(x$names), ")\n", sep = "")
  if (!is.null(x$effects)) {
    cat("integrated out: ", format_names(unique(x$effects$model$env$.random)), "\n", sep = "")
  }
  if (is_bounded(x)) cat("bounds: ", format_names(format_bounds(x)), "\n", sep = "")
  if (!is.null(x$types)) cat("types: ", toString(format_types(x$types)), "\n", sep = "")
  invisible(x)
}

format_names <- function(names, most = 4) {
  if (length(names) > most) names <- c(names[seq_len(most - 1)], "...", names[length(names)])
  paste(names, collapse = ", ")
}

# One string for each bounded variable, such as "0 < x < 1".
format_bounds <- function(target) {
  bound <- function(x, before, after) ifelse(is.finite(x), paste0(before, formatC(x, format = "g"), after), "")
  text <- paste0(bound(target$lower, "", " < "), target$names, bound(target$upper, " < ", ""))
  text[text != target$names]
}

is_bounded <- function(target) any(is.finite(c(target$lower, target$upper)))

# the interface ------------------------------------------------------------------

# The list by which compiled code evaluates a target: `dim`, the bounds, and the value of evaluation(): `evaluate`, an R
# function of (x, gradient), or the names of compiled routines, which with_addresses() replaces by their addresses.
target_interface <- function(target) c(list(dim = target$dim), evaluation(target), interface_bounds(target))

evaluation <- function(target) UseMethod("evaluation")

# NULL if no variable is transformed: there are neither bounds nor any of `scale_names`.
interface_bounds <- function(target) {
  if (is_bounded(target) || has_scale(target)) {
    unclass(target)[intersect(c("lower", "upper", scale_names), names(target))]
  }
}

# list(log_density, gradient, ...) at the rows of x. With unconstrained = TRUE, x and the gradient are on the
# unconstrained scale, and the log density includes the log Jacobian. With `maps`, those of a reference, x is in the
# coordinates of the reference. evaluators: from interface_of_run() within a run, so that its messages are shown once.
evaluate_target <- function(
  target, x, gradient = TRUE, unconstrained = FALSE, maps = list(), evaluators = target_interface(target)
) {
  storage.mode(x) <- "double"
  interface <- c(with_addresses(evaluators), list(maps = maps))
  if (!unconstrained) interface[c("lower", "upper")] <- NULL
  .Call(r_evaluate, interface, x, gradient, n_threads())
}

# The same on the unconstrained scale, outside the steps of a run. Errors of the target name `part` (string).
evaluate_located <- function(target, x, part, ...) {
  located(part, evaluate_target(target, x, unconstrained = TRUE, ...))
}

# Evaluates `code`; errors name `part`. After a stack overflow only tryCatch(), which unwinds the stack, can raise one.
located <- function(part, code) {
  rethrow <- function(e) rethrow_at_step(e, 0L, part)
  withCallingHandlers(tryCatch(code, stackOverflowError = rethrow), error = if_raised(rethrow))
}

# One logical value for each variable. Truncated variables keep their own scale, so for them it is FALSE.
has_two_bounds <- function(target) {
  is_so <- rep_len(is.finite(target$lower) & is.finite(target$upper), target$dim)
  if (is_truncated(target)) is_so & target$truncated == 0 else is_so
}

# The elements of a target that describe the scale of its variables: `turn` and `sums` for angles (loop_angles.R);
# `truncated`, 1 for bounded variables on their own scale and 0 for others; and `ratio`, 1 for ratios (loop_ratios.R)
# and 0 for others. An element that does not apply is NULL.
scale_names <- c("turn", "sums", "truncated", "ratio")

has_scale <- function(target, names = scale_names) !is.null(unlist(unclass(target)[names]))

# x, a target or reference, with its scale replaced by that of `other`, a target, reference or list.
with_scale_of <- function(x, other) {
  scale <- without_null(unclass(other)[scale_names])
  x[scale_names] <- NULL
  x[names(scale)] <- scale
  x
}

check_target <- function(target, ...) {
  target <- check_any_target(target, ...)
  if (target$dim == 0) {
    abort("{.arg target} has no variables, so there is nothing to sample. {.fn smc} computes its evidence.")
  }
  target
}

check_any_target <- function(target, ...) {
  if (missing(target)) {
    abort(c(
      "{.arg target} is missing: a target, or a function with {.arg dim}.",
      "i" = if ("log_density" %in% names(list(...))) {
        "Give the function as {.arg target}, or first and without a name."
      }
    ))
  }
  as_target(target, ...)
}

# Addresses are valid only within one process, so they are looked up for every run.
with_addresses <- function(interface) {
  if (is.null(interface$routines)) {
    return(interface)
  }
  info <- open_library(interface$library)
  addresses <- lapply(interface$routines, function(symbol) {
    if (!is.null(symbol)) find_routine(symbol, info)
  })
  interface[c("routines", "library")] <- NULL
  c(interface, addresses)
}

is_truncated <- function(target) any(target$truncated > 0)

format_types <- function(types) {
  vapply(types$blocks, function(block) paste(base_names(types$names[block$elements[1]]), block$type), "")
}
