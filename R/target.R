# A target is a list of class `smc_target` with `dim`, `names`, `lower`, `upper`, `label`
# and what its kind needs. Each kind has a file of its own, R/target_*.R, and a method of evaluation().

# types: as they are given (see R/target_types.R). The variables are then the unconstrained ones, and the target has
# `types`, and `parameters` and `outputs`, which are the user's.
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
#' [smc()] and its like call this on what they are given, so that a bare function can be
#' sampled, `smc(f, dim = 3)`, and so can the models of some other packages.
#'
#' @param x a target; or a function of a numeric vector that returns the log density
#'   (see [target_function()]); or a model object: see the sections below.
#' @param ... for a function, the other arguments of [target_function()], of which `dim` is needed.
#' @param lower,upper bounds of a model's variables, as in [target_rtmb()]: a number, or a named list or vector.
#' @param log_prior a function of a list of the parameters, `beta`, `theta` and the like, that returns a log density
#'   (number), which is added to that of the model; NULL where priors are in the model already. See the section on
#'   glmmTMB.
#' @param response,nobs the observations, as in [target_function()]; NULL for what the data of the model have as `y`,
#'   `Y`, `N` or, by glmmTMB, `yobs`.
#' @param method how random effects of RTMB, TMB, glmmTMB and sdmTMB are integrated out: `"auto"`, exactly where that can
#'   be done, or `"laplace"`, by Laplace's approximation alone. See the section Random effects.
#' @return A target: an object of class `smc_target`.
#' @section RTMB and TMB: The objects of `RTMB::MakeADFun()` and `TMB::MakeADFun()`, whose function is the negative log
#'   density. Constants count, and priors must be in it, for `log_z` to be a log evidence. The density is that of the
#'   parameters as they are: for one on the logarithmic scale, say, the function has the log Jacobian in it; better is
#'   to have it on its own scale, and `lower = c(sigma = 0)`.
#'
#'   The variables are the elements of `x$par`, named `beta[1]`, `beta[2]` and so on. Parameters fixed by `map` stay
#'   fixed; those of `random` are integrated out: see the section Random effects.
#'
#'   The target has a copy of the object, so that `x` stays as it is; its `par` helps where the target is impossible at
#'   all points that [smc()] tries by itself. Objects of RTMB without `random` are evaluated as those of
#'   [target_rtmb()]; all others point by point by `x$fn()` and `x$gr()`, which is slower.
#' @section Random effects: The target with `random` effects is the marginal density of the other parameters by
#'   Laplace's approximation, and [smc()] corrects the evidence for that. Given the other parameters the effects fall
#'   into independent components, such as the intercepts and slopes of groups, as their second derivatives show.
#'
#'   *Quadrature.* The integral over a component of at most ten effects is a mean over directions of integrals along
#'   rays from its mode (Monahan and Genz, 1997), in coordinates in which Laplace's approximation is standard normal.
#'   The slope of the log density along a ray is integrated at Chebyshev nodes, which are doubled until all integrals
#'   settle. A component of one effect has two directions, and its integral is exact up to rounding; those of larger
#'   ones are evenly spread and rotated at random, which leaves the integral of the likelihood unbiased. One gradient
#'   serves all components: a likelihood takes about 80 of them for single effects and some 300 for pairs.
#'
#'   *Sampling.* Where a component is larger, as in a time series, a random field or with crossed groups, the integral
#'   over all effects is estimated by a run of 64 particles from Laplace's approximation to their density given the
#'   other parameters, in coordinates in which the former is standard normal. Particles move by [kernel_hmc()].
#'   Temperatures and step sizes are found once and then kept, so that each estimate is unbiased, and so is the mean of
#'   their ratios to Laplace's approximation (importance sampling with random weights, Fearnhead et al., 2008). A
#'   likelihood takes some 500 gradients, more with more effects, and the log of its estimate has a standard deviation
#'   of 0.2 to 0.4. So 64 of them bring the error of log Z to 0.05 or less; the default `precision` of 0.01 is seldom
#'   reached, and `precision = 0.1` takes a part of the time.
#'
#'   `smc()` computes the log of the ratio of the exact to Laplace's likelihood at some points around the mode, and fits
#'   cubics of each parameter to it. Laplace's approximation times this surrogate is what is sampled, or near its mode a
#'   polynomial in its place, where that agrees with it at points that it was not fitted to. The exact evidence is that
#'   of the sampled density times the mean of the ratio of the exact to it, at 64 to 512 draws, whose error is counted.
#'   The draws are those of the sampled density, and so are [estimates], islands and runs of the fit;
#'   `as_draws(fit, effects = TRUE)` has draws of the exact one, with the effects (see [as_draws.smc_fit()]). What is
#'   printed says how the effects were integrated out. `fit$laplace` is a list with `log_z` and `std_error` by
#'   Laplace's approximation, the `correction` from there to `fit$log_z`, its `correction_error`, and the `method`;
#'   [glance()][glance.smc_fit] has the last two numbers, too.
#'
#'   An evaluation of the target, in `n_target_evals` and `max_evals`, is one of the sampled density, by Laplace's
#'   approximation or by the polynomial, with its gradient or without. In `fit$runs` the row `"surrogate"` has what the
#'   surrogate has taken, and the row `"correction"` what the exact integrals at draws have: Laplace's approximations
#'   are among `n_target_evals`, each with its search for a mode; `n_joint_gradients`, which other fits do not have, are
#'   the gradients of the joint density by the effects. One of these takes a small part of the time of Laplace's
#'   approximation, and `max_evals` does not count them.
#'
#'   Where an integral does not settle, as in heavy tails, or with `method = "laplace"`, `log_z` is that of Laplace's
#'   approximation, by an error that is not known and that the interval does not count: printed fits and [report()] say
#'   so, and [compare_evidence()] warns. A component with several modes may be missed in part.
#' @section glmmTMB and sdmTMB: Their fits are of a likelihood, so `log_prior` is needed, unless the model was fitted
#'   with `priors`. It is the prior of the parameters as the objective has them, `x$obj$par` or `x$tmb_obj$par`:
#'   coefficients are `beta`, and standard deviations of groups are logarithms, the first elements of `theta`, so that
#'   a prior of a standard deviation must be multiplied by its Jacobian, the standard deviation itself. With an
#'   intercept that is N(0, 10), and a half-t with 3 degrees of freedom and scale 2.5 for one standard deviation:
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
#'   Effects are integrated out, see the section Random effects; for the normal family Laplace's approximation is exact.
#'
#'   Parameters without a prior are named by a warning of class `autosmc_warning_prior`, and are in `fit$improper`. The
#'   `gamma()` of glmmTMB is a prior of the exponential of a parameter, whose log Jacobian is added; its `lkj()` is not
#'   normalised, and counts as none. The log Jacobians of sdmTMB's priors are added as with `bayesian = TRUE`; it does
#'   not normalise a prior for bounds, so that with `halfnormal()` for `phi` `log_z` is low by log(2).
#' @section BayesianTools: The objects of `BayesianTools::createBayesianSetup()`. They have no gradient, so it is
#'   approximated by central differences. The bounds are those of the prior. BayesianTools does not normalise a prior
#'   that `createPrior()` truncates, and the evidence is that of the prior as it is.
#' @section Models of other packages: A package adds a class of models by a method that returns a target, as the one for
#'   models of class `"proportion"` in the examples. It is registered by `S3method(autosmc::as_target, proportion)` in
#'   `NAMESPACE`, which roxygen2 makes of `@exportS3Method autosmc::as_target`; autosmc need only be suggested. From
#'   then on `smc(model)` takes such a model. The method's own arguments are given to [smc()] by name.
#' @section Errors: Of class `autosmc_error_input` when there is no method for `x`, when an
#'   argument is wrong, and when the library of a model object of TMB is not loaded.
#' @source Monahan and Genz (1997), *Spherical-radial integration rules for Bayesian computation*. Fearnhead,
#'   Papaspiliopoulos and Roberts (2008), *Particle filters for partially observed diffusions*.
#' @seealso [target_function()], [target_rtmb()] and [target_native()], which methods make their targets with.
#' @examples
#' as_target(function(x) -sum(x^2) / 2, dim = 3)
#'
#' # a class of one's own: proportions, with a uniform prior
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

# "0 < x < 1" and the like, of the variables that are bounded.
format_bounds <- function(target) {
  bound <- function(x, before, after) ifelse(is.finite(x), paste0(before, formatC(x, format = "g"), after), "")
  text <- paste0(bound(target$lower, "", " < "), target$names, bound(target$upper, " < ", ""))
  text[text != target$names]
}

is_bounded <- function(target) any(is.finite(c(target$lower, target$upper)))

# the interface ------------------------------------------------------------------

# What the compiled code is given of a target: `dim`, interface_bounds(), and what the methods of evaluation() give:
# either `evaluate`, an R function of (x, gradient), or the names of compiled routines, in whose place with_addresses()
# puts their addresses.
target_interface <- function(target) c(list(dim = target$dim), evaluation(target), interface_bounds(target))

evaluation <- function(target) UseMethod("evaluation")

# Nothing where there are no bounds, and no other scale: then no variable is transformed.
interface_bounds <- function(target) {
  if (is_bounded(target) || has_scale(target)) {
    unclass(target)[intersect(c("lower", "upper", scale_names), names(target))]
  }
}

# The log density, and gradient, at the rows of x: on the user's scale; or as the sampler
# sees them, where x and the gradient are unconstrained and the log density has the log
# Jacobian; or in the coordinates of a reference, by its maps.
# evaluators: of interface_of_run(), whose messages come once.
evaluate_target <- function(
  target, x, gradient = TRUE, unconstrained = FALSE, maps = list(), evaluators = target_interface(target)
) {
  storage.mode(x) <- "double"
  interface <- c(with_addresses(evaluators), list(maps = maps))
  if (!unconstrained) interface[c("lower", "upper")] <- NULL
  .Call(r_evaluate, interface, x, gradient, n_threads())
}

# The same on the unconstrained scale, for a part of a run that is no step: errors of the target say which.
evaluate_located <- function(target, x, part, ...) {
  located(part, evaluate_target(target, x, unconstrained = TRUE, ...))
}

# There is room for another error only when a stack that has overflowed has been left.
located <- function(part, code) {
  rethrow <- function(e) rethrow_at_step(e, 0L, part)
  withCallingHandlers(tryCatch(code, stackOverflowError = rethrow), error = if_raised(rethrow))
}

# Those that are truncated have none on the unconstrained scale.
has_two_bounds <- function(target) {
  is_so <- rep_len(is.finite(target$lower) & is.finite(target$upper), target$dim)
  if (is_truncated(target)) is_so & target$truncated == 0 else is_so
}

# What of a target is about the scale of its variables: `turn` and `sums` (loop_angles.R), `truncated`, 1 for bounded
# variables on their own scale and 0 for others, and `ratio`, 1 for ratios (loop_ratios.R) and 0 for others. NULL where
# there are none.
scale_names <- c("turn", "sums", "truncated", "ratio")

has_scale <- function(target, names = scale_names) !is.null(unlist(unclass(target)[names]))

# x, a target or a reference, with the scale that another of these, or a list, has, and no other.
with_scale_of <- function(x, other) {
  scale <- without_null(unclass(other)[scale_names])
  x[scale_names] <- NULL
  x[names(scale)] <- scale
  x
}

# A target with variables to sample.
check_target <- function(target, ...) {
  target <- check_any_target(target, ...)
  if (target$dim == 0) {
    abort("{.arg target} has no variables, so there is nothing to run: {.fn smc} gives its evidence.")
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

# Addresses outlive neither a session nor the way to another process, so they are looked up for every run.
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

# "w simplex" and the like.
format_types <- function(types) {
  vapply(types$blocks, function(block) paste(base_names(types$names[block$elements[1]]), block$type), "")
}
