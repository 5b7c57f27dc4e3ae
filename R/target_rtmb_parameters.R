# The variables of a target with a list of parameters (target_rtmb()): a list of `names`, one for each element, and
# `parameter`, the parameter to which each belongs.

check_parameters <- function(parameters) {
  check_given(parameters, "parameters")
  if (!is.list(parameters) || length(parameters) == 0) {
    abort_argument(parameters, "parameters", "a named list of numbers")
  }
  if (!rlang::is_dictionaryish(parameters)) {
    abort("{.arg parameters} must have a name for each element, no two the same.")
  }
  for (name in names(parameters)) {
    value <- parameters[[name]]
    if (!is.numeric(value) || !all(is.finite(value))) {
      abort_argument(value, paste0("parameters$", name), "of finite numbers")
    }
    storage.mode(parameters[[name]]) <- "double"
  }
  if (sum(lengths(parameters)) == 0) abort("{.arg parameters} must have at least one element.")
  parameters
}

variables_of <- function(parameters) {
  list(
    names = unlist(Map(element_names, names(parameters), parameters), use.names = FALSE),
    parameter = rep(names(parameters), lengths(parameters))
  )
}

# "sigma" for a number, "beta[1]" for a vector's element, "Sigma[2,1]" for a matrix's.
element_names <- function(name, value) {
  if (length(value) == 1 && is.null(dim(value))) {
    return(name)
  }
  shape <- if (is.null(dim(value))) length(value) else dim(value)
  index <- arrayInd(seq_along(value), shape)
  sprintf("%s[%s]", rep(name, length(value)), apply(index, 1, paste, collapse = ","))
}

# `lower` and `upper` for each variable.
variable_bounds <- function(lower, upper, variables) {
  check_bounds(
    spread_bound(lower, -Inf, "lower", variables),
    spread_bound(upper, Inf, "upper", variables),
    variables$names
  )
}

# A bound for each variable from a named one; a bound without names does not change. none: for variables not named.
spread_bound <- function(x, none, arg, variables) {
  if (is.null(names(x)) && !is.list(x)) {
    return(x)
  }
  bound <- rep(none, length(variables$names))
  for (k in seq_along(x)) {
    name <- names(x)[k]
    at <- which(variables$parameter %in% name | variables$names %in% name)
    if (length(at) == 0) {
      abort(c(
        "{.arg {arg}} must have names of parameters or variables; {.val {name}} is neither.",
        "i" = "The parameters are {.val {unique(variables$parameter)}}."
      ))
    }
    value <- x[[k]]
    if (!is.numeric(value) || anyNA(value) || !length(value) %in% c(1, length(at))) {
      size <- paste(unique(c(1, length(at))), collapse = " or ")
      abort_argument(value, paste0(arg, "$", name), paste("numbers, of length", size))
    }
    bound[at] <- value
  }
  bound
}

check_inside <- function(parameters, variables, bounds) {
  x <- unlist(parameters, use.names = FALSE)
  outside <- which(x <= bounds$lower | x >= bounds$upper)[1]
  if (!is.na(outside)) {
    abort("{.arg parameters} must be inside the bounds; {.field {variables$names[outside]}} =
      {format(x[outside])} is not.")
  }
}
