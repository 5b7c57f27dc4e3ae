# Targets from the model objects of TMB, RTMB, glmmTMB, sdmTMB and BayesianTools: methods of as_target().

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
    abort("The model object was made with {.code ADreport} or {.code profile}: it is not a negative log density.")
  }
  if (length(x$par) == 0) {
    abort("The model object has no free parameters that are not {.arg random}; {.fn smc} needs at least one.")
  }
  check_installed("TMB", "for a model object of TMB or RTMB")
  check_loaded(x$env$DLL)
  prior <- NULL
  if (!is.null(log_prior)) {
    prior <- prior_of_vector(log_prior, names(x$par))
    prior(x$par) # so that errors are reported now
  }
  variables <- tmb_variables(x)
  bounds <- variable_bounds(lower, upper, variables)
  model <- own_copy(x)
  start <- if (all(x$par > bounds$lower & x$par < bounds$upper)) as.numeric(x$par)
  target <- if (x$env$DLL == "RTMB" && !isTRUE(x$env$point_by_point)) {
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
  inform_once("laplace", c("i" = paste0(
    "{.field {random}} {?is/are} integrated out by Laplace's approximation", corrected, if (!is.null(why)) " ", why, "."
  )))
}

is_tmb_model <- function(x) {
  is.environment(x$env) && is.function(x$fn) && is.function(x$gr) &&
    is.numeric(x$par) && is.character(x$env$DLL)
}

# The variables of a model, list(names, parameter): the elements of parameters `of`, by default of those neither
# integrated out nor fixed by `map`. Elements with a common level of `map` are one variable with the first one's name.
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

# The names of all elements of a parameter, including those fixed by `map`.
all_element_names <- function(name, value) {
  element_names(name, if (is.null(attr(value, "map"))) value else attr(value, "shape"))
}

# A copy of the model for the target, since an evaluation changes the state of a model, such as its best point. Tapes
# are not copied; record_model() records them again.
own_copy <- function(model) {
  model <- unserialize(serialize(model, NULL))
  model$env$library <- getLoadedDLLs()[[model$env$DLL]][["path"]]
  # By default the search for the mode of the random effects starts where the previous one ended, so that values would
  # depend on earlier points. Here a gradient starts from the mode that its own point has already, and any other search
  # from the mode at the model's best point, such as the fit.
  random <- model$env$random
  if (!is.null(random)) model$env$par[random] <- model$env$last.par.best[random]
  model$env$random.start <- expression(
    if (identical(as.double(par.fixed), as.double(last.par[-random]))) last.par[random] else par[random]
  )
  model$env$newton <- plain_newton # replaces TMB::newton()
  model
}

# The mode of the random effects by Newton's method: the steps of TMB::newton() without its overhead. If a step does not
# lower the objective, or TMB no longer has the internal functions, TMB::newton() is run from the start. If it ends
# where a further step would gain more than `max_above_mode`, as where the curvature is all rounding, there is no mode.
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
  found <- TMB::newton(par, fn, gr, he, env = env, ...)
  slope <- gr(found$par)
  gain <- sum(slope * as.vector(Matrix::solve(env$L.created.by.newton, slope))) / 2
  if (!isTRUE(gain < max_above_mode)) found$value <- NaN
  found
}

# Largest gain, in nats, of a further step from what counts as a mode.
max_above_mode <- 0.01

# The log density of a model of RTMB, plus the log prior, as a tape.
tape_model <- function(model, prior) {
  record_model(model)
  tape <- RTMB::GetTape(model)
  if (!is.null(model$env$random)) tape <- tape$laplace(model$env$random, on_failure_give_warning = FALSE)
  RTMB::MakeTape(function(x) (if (is.null(prior)) 0 else prior(x)) - tape(x), unname(model$par))
}

# log_prior, a function of a list, as a function of the vector of its elements. parameter: for each, its parameter's
# name.
prior_of_vector <- function(log_prior, parameter) {
  check_function(log_prior, "log_prior")
  places <- split(seq_along(parameter), factor(parameter, unique(parameter)))
  function(x) {
    value <- tryCatch(log_prior(lapply(places, function(place) x[place])), error = function(e) {
      abort(
        c(
          "{.arg log_prior} failed: {conditionMessage(e)}",
          "i" = "It is called with one argument, a list with the elements {.field {names(places)}}."
        ),
        parent = e
      )
    })
    if (!is_recorded_number(value)) abort_argument(value, "log_prior", "a function that returns a number")
    value
  }
}

# A target that calls the functions of a model object point by point.
tmb_target <- function(model, prior, names, bounds, start) {
  functions <- tmb_functions(model, prior, bounds)
  target <- target_function(
    functions$log_density, length(names), functions$gradient,
    names = names, lower = bounds$lower, upper = bounds$upper
  )
  target$label <- paste("model object of", if (model$env$DLL == "RTMB") "RTMB" else "TMB")
  target$start <- start
  target
}

# list(log_density, gradient) of a model object. The gradient of the prior is by central differences. With random
# effects both need their mode, which takes most of the time: the value has the gradient as attribute, and `gradient` is
# NULL.
tmb_functions <- function(model, prior = NULL, bounds = NULL) {
  ask <- function(name, x) {
    record_model(model)
    -as.double(model[[name]](x))
  }
  density <- function(x) list(log_density = if (is.null(prior)) 0 else prior(x)) # of the prior, at one point
  gradient <- function(x) {
    ask("gr", x) + if (is.null(prior)) 0 else drop(central_difference(bounds, density, t(x)))
  }
  carries <- !is.null(model$env$random)
  list(
    log_density = function(x) {
      value <- ask("fn", x) + density(x)$log_density
      if (!carries) {
        value
      } else if (is.finite(value)) {
        structure(value, gradient = gradient(x))
      } else {
        structure(-Inf, gradient = NaN * x) # no mode, or a curvature that is all rounding
      }
    },
    gradient = if (!carries) gradient
  )
}

# The library of a model object may not be loaded if the object was read from a file.
check_loaded <- function(dll) {
  if (!dll %in% c("RTMB", names(getLoadedDLLs()))) {
    is_package <- nzchar(system.file(package = dll))
    how <- if (is_package) ": {.code library({dll})}" else ", with {.fn dyn.load} or by loading its package"
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
    # empty for a prior of all coefficients but the intercept if there is no other coefficient
    names[first + seq_len(max(0, last - first + 1))]
  }, as.character(data$prior_whichpar), data$prior_elstart, data$prior_elend)
  of <- function(chosen) as.character(unlist(elements[chosen]))
  # not lkj(), which is not normalised
  has_density <- data$prior_distrib != 30
  # a gamma prior is a density of the exponential of a parameter
  log_prior <- with_log_jacobian(log_prior, tmb_variables(model)$names %in% of(data$prior_distrib == 10))
  target_of_likelihood(model, "glmmTMB", of(has_density), log_prior, ...)
}

# log_prior plus the log Jacobian of exponentials: the sum of the parameters chosen by `logarithms`, a logical vector.
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
  # the first number of a prior is NA if it is not given; priors of coefficients are the rows of a matrix
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
  # a custom prior is a function of all parameters, so it may be a prior of any
  with_prior <- if (is.function(x$priors$custom)) names else unlist(has[names(has) %in% names(x$priors)[is_given]])
  target_of_likelihood(model, "sdmTMB", with_prior, log_prior, ...)
}

# The model of a fit of sdmTMB with the log Jacobians of its priors, as with `bayesian = TRUE`. With the RTMB backend
# the data are part of the function, so the model is made again. It is evaluated point by point: far from the mode the
# precision of a field is all rounding, and the tape returns a value where the search has found no mode.
with_jacobians_of_priors <- function(x) {
  if (identical(x$backend, "rtmb")) {
    data <- replace(x$tmb_data, "stan_flag", 1L)
    remake <- get("make_sdmTMB_adfun", asNamespace("sdmTMB"))
    model <- remake(data, x$tmb_params, x$tmb_map, x$tmb_random, backend = "rtmb")
    model$env$point_by_point <- TRUE
    return(model)
  }
  model <- own_copy(x$tmb_obj)
  model$env$data$stan_flag <- 1 # as all data of TMB are
  model
}

# A target from a fit by maximum likelihood, which has no evidence without a prior. with_prior: the names of the
# variables that have a prior in the model.
target_of_likelihood <- function(model, package, with_prior, log_prior, ...) {
  check_installed(package, "for its fits")
  if (length(with_prior) == 0 && is.null(log_prior)) {
    abort(c(
      "{.arg log_prior} is missing: a fit of {.pkg {package}} is a maximum of the likelihood, and without a prior there
        is no evidence.",
      "i" = "Give {.code log_prior = function(parameters)}, a function of a list with the elements
        {.field {unique(names(model$par))}}; {.code ?as_target} has an example. Or fit the model with {.code priors}."
    ))
  }
  target <- as_target.list(model, ..., log_prior = log_prior)
  target$improper <- setdiff(target$names, with_prior)
  if (!is.null(log_prior)) {
    prior <- target_function(prior_of_vector(log_prior, names(model$par)), names = target$names)
    candidates <- match(target$improper, target$names)
    target$improper <- tryCatch(flat_by_evaluation(prior, candidates), error = function(e) character())
  }
  warn_of_flat_priors(target, "in `log_prior`, or in the `priors` of the fit")
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
