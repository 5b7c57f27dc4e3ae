# Targets from the model objects of other packages.

# TMB and RTMB ----------------------------------------------------------------

#' @rdname as_target
#' @export
as_target.list <- function(
  x, ..., lower = -Inf, upper = Inf, log_prior = NULL, response = NULL, nobs = NULL, method = c("auto", "laplace")
) {
  if (!is_tmb_model(x)) abort_argument(x, "target", "a target, a function or a model object")
  check_dots_empty(...)
  method <- check_choice(method, "method", c("auto", "laplace"))
  if (isTRUE(x$env$ADreport) || !is.null(x$env$profile)) {
    abort("The model object was made with {.code ADreport} or {.code profile}, so it is not a negative log density.")
  }
  if (length(x$par) == 0) {
    abort("The model object has no parameters that are not {.arg random}: {.fn smc} samples these.")
  }
  check_installed("TMB", "for a model object of TMB or RTMB")
  check_loaded(x$env$DLL)
  prior <- NULL
  if (!is.null(log_prior)) {
    prior <- prior_of_vector(check_function(log_prior, "log_prior"), names(x$par))
    prior(x$par) # what fails is told of at once
  }
  variables <- tmb_variables(x)
  bounds <- variable_bounds(lower, upper, variables)
  model <- own_copy(x)
  start <- if (all(x$par > bounds$lower & x$par < bounds$upper)) as.numeric(x$par)
  target <- if (x$env$DLL == "RTMB") {
    record <- function() tape_model(model, prior)
    tape_target(variables$names, bounds, "model object of RTMB", start, record = record)
  } else {
    tmb_target(model, prior, variables$names, bounds, start)
  }
  target$observed <- observations(response, nobs, x$env$data)
  if (!is.null(x$env$.random)) {
    target$effects <- list(model = model, method = method, component = effect_components(model))
    target$effects$log_prior <- prior
    class(target) <- c("smc_target_effects", class(target))
    tell_laplace(x$env$.random, target$effects)
  }
  target
}

tell_laplace <- function(random, effects) {
  why <- reason_for_laplace(effects)
  corrected <- if (is.null(why)) ", for which {.fn smc} corrects the evidence"
  tell("laplace", c("i" = paste0(
    "{.field {random}} {?is/are} integrated out by Laplace's approximation", corrected, if (!is.null(why)) " ", why, "."
  )))
}

is_tmb_model <- function(x) {
  is.environment(x$env) && is.function(x$fn) && is.function(x$gr) &&
    is.numeric(x$par) && is.character(x$env$DLL)
}

# The variables of a model: the elements of those of its parameters that are neither integrated out nor fixed by `map`,
# or of others, `of`. Those with a common level of `map` are one variable, with the name of the first.
tmb_variables <- function(model, of = names(model$par)) {
  parameters <- model$env$parameters
  parts <- Map(function(name, value) {
    names <- all_element_names(name, value)
    map <- attr(value, "map")
    if (is.null(map)) names else names[match(seq_along(value) - 1, map)]
  }, names(parameters), parameters)
  parameter <- rep(names(parts), lengths(parts))
  kept <- parameter %in% of
  list(names = unlist(parts, use.names = FALSE)[kept], parameter = parameter[kept])
}

# Those that are fixed too.
all_element_names <- function(name, value) {
  element_names(name, if (is.null(attr(value, "map"))) value else attr(value, "shape"))
}

# Evaluating a model changes what it remembers, such as the best point, so the target
# has a copy. Tapes are lost in copying, and are recorded again.
own_copy <- function(model) {
  model <- unserialize(serialize(model, NULL))
  model$env$library <- getLoadedDLLs()[[model$env$DLL]][["path"]]
  # By default the search for the mode of the random effects starts where the one before
  # ended, so that values would depend on the points before. The gradient's starts at the mode of its own point, and
  # others at that of the best point that the model remembers, such as the fit.
  random <- model$env$random
  if (!is.null(random)) model$env$par[random] <- model$env$last.par.best[random]
  model$env$random.start <- expression(
    if (identical(as.double(par.fixed), as.double(last.par[-random]))) last.par[random] else par[random]
  )
  model$env$newton <- plain_newton # takes the place of TMB::newton()
  model
}

# The mode of the random effects by Newton steps, each of which lowers the objective: those of TMB::newton(), with
# little around them. Where one does not lower it, or TMB has these steps no more, that has its way from the start.
plain_newton <- function(par, fn, gr, he, env, ...) {
  tmb <- asNamespace("TMB")
  factor <- env$L.created.by.newton
  mode <- par
  before <- Inf
  has_steps <- !is.null(factor) && all(c("updateCholesky", "solveCholesky") %in% names(tmb))
  for (i in seq_len(20 * has_steps)) {
    value <- fn(mode)
    slope <- gr(mode)
    if (!isTRUE(value <= before + sqrt(.Machine$double.eps)) || !all(is.finite(slope))) break
    if (max(abs(slope)) < 1e-8) {
      return(list(par = mode, value = value))
    }
    if (!tmb$updateCholesky(factor, he(mode))) break
    mode <- mode - as.vector(tmb$solveCholesky(factor, slope))
    before <- value
  }
  TMB::newton(par, fn, gr, he, env = env, ...)
}

# The log density of a model of RTMB as a tape.
tape_model <- function(model, prior) {
  record_model(model)
  tape <- RTMB::GetTape(model)
  if (!is.null(model$env$random)) tape <- tape$laplace(model$env$random, on_failure_give_warning = FALSE)
  RTMB::MakeTape(function(x) (if (is.null(prior)) 0 else prior(x)) - tape(x), unname(model$par))
}

# A prior of a list of parameters as a function of the vector that they are in one after another.
prior_of_vector <- function(log_prior, parameter) {
  places <- split(seq_along(parameter), factor(parameter, unique(parameter)))
  function(x) {
    value <- tryCatch(log_prior(lapply(places, function(place) x[place])), error = function(e) {
      abort(
        c(
          "{.arg log_prior} failed: {conditionMessage(e)}",
          "i" = "It is called with one argument, the list of {.field {names(places)}}."
        ),
        parent = e
      )
    })
    if (!is_recorded_number(value)) abort_argument(value, "log_prior", "a function that returns a number")
    value
  }
}

# By the functions of the object, point by point.
tmb_target <- function(model, prior, names, bounds, start) {
  functions <- tmb_functions(model, prior, bounds)
  target <- target_function(
    functions$log_density, length(names), functions$gradient,
    names = names, lower = bounds$lower, upper = bounds$upper
  )
  target$label <- "model object of TMB"
  target$start <- start
  target
}

# The prior is a function of few numbers, with a gradient by differences. Of random effects most of what a log density
# takes is their mode, which the gradient at the same point shares: there the value carries it.
tmb_functions <- function(model, prior = NULL, bounds = NULL) {
  ask <- function(name, x) {
    record_model(model)
    -as.double(model[[name]](x))
  }
  density <- function(x) list(log_density = if (is.null(prior)) 0 else prior(x)) # of one point
  gradient <- function(x) {
    ask("gr", x) + if (is.null(prior)) 0 else drop(central_difference(bounds, density, t(x)))
  }
  carries <- !is.null(model$env$random)
  list(
    log_density = function(x) {
      value <- ask("fn", x) + density(x)$log_density
      if (carries) structure(value, gradient = gradient(x)) else value
    },
    gradient = if (!carries) gradient
  )
}

# An object that was read from a file may be of a library that this session has not loaded.
check_loaded <- function(dll) {
  if (!dll %in% c("RTMB", names(getLoadedDLLs()))) {
    is_package <- nzchar(system.file(package = dll))
    how <- if (is_package) ": {.code library({dll})}" else ", by {.fn dyn.load} or as the package that it is of"
    abort(c("The library {.val {dll}} of the model object is not loaded.", "i" = paste0("Load it first", how, ".")))
  }
}

# Packages that fit by TMB --------------------------------------------------------

#' @rdname as_target
#' @export
as_target.glmmTMB <- function(x, ..., log_prior = NULL) {
  model <- x$obj
  data <- model$env$data
  dispersion <- intersect(c("betadisp", "betad"), names(model$env$parameters))[1]
  vectors <- c("0" = "beta", "1" = "betazi", "2" = dispersion, "10" = "theta", "20" = "thetazi", "30" = "psi")
  elements <- Map(function(vector, first, last) {
    names <- all_element_names(vectors[[vector]], model$env$parameters[[vectors[[vector]]]])
    # none by a prior of all coefficients but the intercept, where there is no other
    names[first + seq_len(max(0, last - first + 1))]
  }, as.character(data$prior_whichpar), data$prior_elstart, data$prior_elend)
  of <- function(chosen) as.character(unlist(elements[chosen]))
  # that of lkj() is of correlations and not normalised
  has_density <- data$prior_distrib != 30
  # the density of a gamma prior is that of the exponential of a parameter
  log_prior <- with_log_jacobian(log_prior, tmb_variables(model)$names %in% of(data$prior_distrib == 10))
  target_of_likelihood(model, "glmmTMB", of(has_density), log_prior, ...)
}

# log_prior with the sum of the parameters that `logarithms` chooses of them all, or as it is.
with_log_jacobian <- function(log_prior, logarithms) {
  force(log_prior)
  if (!any(logarithms)) {
    return(log_prior)
  }
  function(parameters) {
    own <- if (is.null(log_prior)) 0 else log_prior(parameters)
    own + sum(do.call(c, unname(parameters))[logarithms])
  }
}

#' @rdname as_target
#' @export
as_target.sdmTMB <- function(x, ..., log_prior = NULL) {
  check_installed("sdmTMB", "for its fits")
  model <- with_jacobians_of_priors(x)
  names <- tmb_variables(model)$names
  # of a prior that is not given the first number is missing, of each coefficient's in a matrix
  is_given <- vapply(x$priors, function(prior) {
    is.numeric(prior) && any(is.finite(if (is.matrix(prior)) prior[, 1] else prior[1]))
  }, NA)
  coefficients <- paste0("[", x$tmb_data$priors_b_index + 1, "]")
  begins <- function(text) names[startsWith(names, text)]
  last <- begins("ln_kappa[2")
  has <- list(
    b = intersect(names, c(paste0("b_j", c("", coefficients)), paste0("b_j2", c("", coefficients)))),
    matern_s = c(begins("ln_tau_O"), begins("ln_kappa[1")),
    matern_st = c(begins("ln_tau_E"), if (length(last) > 0) last else begins("ln_kappa[")),
    phi = begins("ln_phi"), ar1_rho = begins("ar1_phi"), sigma_V = begins("ln_tau_V"),
    threshold_breakpt_slope = begins("b_threshold")
  )
  # what a function of all parameters is about is not known
  with_prior <- if (is.function(x$priors$custom)) names else unlist(has[names(has) %in% names(x$priors)[is_given]])
  target_of_likelihood(model, "sdmTMB", with_prior, log_prior, ...)
}

# The model of a fit of sdmTMB with the log Jacobians of its priors, as with `bayesian = TRUE`. That of RTMB has its data
# in its function, which is made anew.
with_jacobians_of_priors <- function(x) {
  if (identical(x$backend, "rtmb")) {
    data <- replace(x$tmb_data, "stan_flag", 1L)
    remake <- get("make_sdmTMB_adfun", asNamespace("sdmTMB"))
    return(remake(data, x$tmb_params, x$tmb_map, x$tmb_random, backend = "rtmb"))
  }
  model <- own_copy(x$tmb_obj)
  model$env$data$stan_flag <- 1L
  model
}

# A fit by maximum likelihood has no evidence without a prior. with_prior: the names of the variables that have one in
# the model.
target_of_likelihood <- function(model, package, with_prior, log_prior, ...) {
  check_installed(package, "for its fits")
  if (length(with_prior) == 0 && is.null(log_prior)) {
    abort(c(
      "{.arg log_prior} is missing: a fit of {.pkg {package}} is of a likelihood, which has no evidence without a
        prior.",
      "i" = "Give {.code log_prior = function(parameters)}, the log density of the list
        {.field {unique(names(model$par))}}; {.code ?as_target} has an example. Or fit the model with {.code priors}."
    ))
  }
  target <- as_target.list(model, ..., log_prior = log_prior)
  target$improper <- setdiff(target$names, with_prior)
  if (!is.null(log_prior)) {
    prior <- target_function(prior_of_vector(log_prior, names(model$par)), names = target$names)
    candidates <- match(target$improper, target$names)
    target$improper <- tryCatch(flat_by_numbers(prior, candidates), error = function(e) character())
  }
  warn_of_flat_priors(target, "by `log_prior`, or by the `priors` of the fit")
  target
}

# BayesianTools ---------------------------------------------------------------

#' @rdname as_target
#' @export
as_target.BayesianSetup <- function(x, ...) {
  check_dots_empty(...)
  none <- function(bound, otherwise) if (is.null(bound)) otherwise else rep_len(bound, x$numPars)
  target <- target_function(
    x$posterior$density, x$numPars,
    vectorized = TRUE, names = x$names, lower = none(x$prior$lower, -Inf), upper = none(x$prior$upper, Inf)
  )
  target$label <- "set-up of BayesianTools"
  target
}
