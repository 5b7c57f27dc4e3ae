# Targets from the model objects of other packages.

# TMB and RTMB ----------------------------------------------------------------

#' @rdname as_target
#' @export
as_target.list <- function(x, ..., lower = -Inf, upper = Inf, response = NULL, nobs = NULL) {
  if (!is_tmb_model(x)) {
    abort_argument(x, "target", "a target, a function or a model object")
  }
  check_dots_empty(...)
  if (isTRUE(x$env$ADreport) || !is.null(x$env$profile)) {
    abort(
      "The model object was made with {.code ADreport} or {.code profile}, so it is not
        a negative log density.",
      "input"
    )
  }
  check_installed("TMB", "for a model object of TMB or RTMB")
  variables <- tmb_variables(x)
  bounds <- variable_bounds(lower, upper, variables)
  tell_laplace(x)
  model <- own_copy(x)
  start <- if (all(x$par > bounds$lower & x$par < bounds$upper)) as.numeric(x$par)
  target <- if (x$env$DLL == "RTMB") {
    tape_target(
      function() tape_model(model), variables$names, bounds, "model object of RTMB", start
    )
  } else {
    functions <- tmb_functions(model)
    target <- target_function(
      functions$log_density,
      length(variables$names),
      functions$gradient,
      names = variables$names,
      lower = bounds$lower,
      upper = bounds$upper
    )
    target$label <- "model object of TMB"
    target$start <- start
    target
  }
  target$observed <- observations(response, nobs, x$env$data)
  target
}

tell_laplace <- function(model) {
  random <- model$env$.random
  if (!is.null(random)) {
    tell(
      c("i" = "{.field {random}} {?is/are} integrated out by Laplace's approximation, as
        {.arg random} in the model object: the evidence is approximate."),
      class = "autosmc_message_laplace"
    )
  }
}

is_tmb_model <- function(x) {
  is.environment(x$env) && is.function(x$fn) && is.function(x$gr) &&
    is.numeric(x$par) && is.character(x$env$DLL)
}

# The variables of a model: the elements of its parameters that are neither fixed by
# `map` nor integrated out. Those with a common level of `map` are one variable, with
# the name of the first.
tmb_variables <- function(model) {
  parameters <- model$env$parameters
  parts <- Map(tmb_element_names, names(parameters), parameters)
  parameter <- rep(names(parts), lengths(parts))
  kept <- parameter %in% names(model$par)
  list(names = unlist(parts, use.names = FALSE)[kept], parameter = parameter[kept])
}

tmb_element_names <- function(name, value) {
  map <- attr(value, "map")
  if (is.null(map)) {
    element_names(name, value)
  } else {
    element_names(name, attr(value, "shape"))[match(seq_along(value) - 1, map)]
  }
}

# Evaluating a model changes what it remembers, such as the best point, so the target
# has a copy. Tapes are lost in copying, and are recorded again.
own_copy <- function(model) {
  model <- unserialize(serialize(model, NULL))
  # By default the search for the mode of the random effects starts where the one before
  # ended, so that values would depend on the points before.
  model$env$random.start <- expression(par[random])
  model
}

record_model <- function(model) {
  model$env$beSilent()
  model$env$retape(set.defaults = FALSE)
}

# The log density of a model of RTMB as a tape.
tape_model <- function(model) {
  record_model(model)
  tape <- RTMB::GetTape(model)
  if (!is.null(model$env$random)) {
    tape <- tape$laplace(model$env$random, on_failure_give_warning = FALSE)
  }
  RTMB::MakeTape(function(x) -tape(x), unname(model$par))
}

# The functions of a model of TMB. Where its tapes are missing they are recorded, and its
# library is loaded: without tapes its functions may crash R.
tmb_functions <- function(model) {
  dll <- model$env$DLL
  path <- getLoadedDLLs()[[dll]][["path"]]
  ready_in <- NULL
  get_ready <- function() {
    loadNamespace("TMB")
    if (!dll %in% names(getLoadedDLLs())) {
      dyn.load(path)
    }
    record_model(model)
    ready_in <<- session
  }
  negative <- function(name) {
    force(name)
    function(x) {
      if (!identical(ready_in, session)) {
        get_ready()
      }
      -as.double(model[[name]](x))
    }
  }
  list(log_density = negative("fn"), gradient = negative("gr"))
}

# BayesianTools ---------------------------------------------------------------

#' @rdname as_target
#' @export
as_target.BayesianSetup <- function(x, ...) {
  check_dots_empty(...)
  none <- function(bound, otherwise) {
    if (is.null(bound)) otherwise else rep_len(bound, x$numPars)
  }
  target <- target_function(
    x$posterior$density,
    x$numPars,
    vectorized = TRUE,
    names = x$names,
    lower = none(x$prior$lower, -Inf),
    upper = none(x$prior$upper, Inf)
  )
  target$label <- "set-up of BayesianTools"
  target
}
