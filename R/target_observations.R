# A summary of the observations of a target. compare_evidence() uses it to warn if models have different data.

# list(nobs, response), each NULL if not known; NULL if neither is known. data: a list that may contain the response
# under a usual name, `y` or `Y`, or that of glmmTMB or of brms, which has one for each of several responses.
observations <- function(response = NULL, nobs = NULL, data = list()) {
  nobs <- if (!is.null(nobs)) check_count(nobs, "nobs", min = 0) else if (is_number(data[["N"]])) data[["N"]]
  if (is.null(response)) {
    of_brms <- grep("^Y_", names(data), value = TRUE)
    found <- without_null(unclass(data)[c(intersect(c("yobs", "y", "Y"), names(data))[1], of_brms)])
    response <- unlist(Filter(is.numeric, found))
  } else {
    response <- check_response(response)
  }
  if (!is.null(response)) {
    response <- response[is.finite(response)] # brms has Inf for missing values
    if (is.null(nobs)) nobs <- length(response)
    response <- summarise_response(response)
  }
  if (!is.null(nobs)) list(nobs = as.double(nobs), response = response)
}

check_response <- function(response) {
  values <- if (is.data.frame(response)) data.matrix(response) else response
  if (is.character(values)) values <- factor(values)
  if (!is.factor(values) && !is.numeric(values) && !is.logical(values)) {
    abort_argument(response, "response", "a vector, a matrix or a data frame of observations")
  }
  as.double(values)
}

# Statistics that identify the response but do not depend on the order of the observations; NULL if there are none.
summarise_response <- function(x) {
  if (length(x) > 0) {
    c(n = length(x), mean = mean(x), sd = if (length(x) > 1) stats::sd(x) else 0, min = min(x), max = max(x))
  }
}

are_same_response <- function(a, b) {
  least <- sqrt(.Machine$double.eps) * max(abs(c(a[-1], b[-1]))) # rounding errors
  all(abs(a - b) <= c(0, rep(least, 4)))
}

# Warns if the compared models have different observations. models: fits, or other objects, for which nothing is known.
warn_of_data <- function(labels, models) {
  observed <- lapply(models, function(x) if (inherits(x, "smc_fit")) x$target$observed)
  by_response <- !vapply(observed, function(o) is.null(o$response), NA)
  responses <- lapply(observed[by_response], `[[`, "response")
  others <- vapply(responses, function(r) !are_same_response(r, responses[[1]]), NA)
  nobs <- unlist(lapply(observed, `[[`, "nobs"))
  if (any(others)) {
    of <- labels[by_response]
    said <- vapply(responses, function(r) {
      sprintf("%s, from %s to %s, mean %s", count_of(r[["n"]], "value"), format(r[["min"]], digits = 4),
        format(r[["max"]], digits = 4), format(r[["mean"]], digits = 4))
    }, "")
  } else if (length(unique(nobs)) > 1) {
    of <- labels[lengths(observed) > 0]
    said <- vapply(nobs, count_of, "", "observation")
  } else {
    return()
  }
  warn_of_problem(
    "The models have different data, so their evidences are not comparable.", paste0(of, ": ", said),
    "Each model may have dropped different rows with missing values. If one has a transformed response, add the log
      Jacobian of the transformation to its log density.", "data"
  )
}
