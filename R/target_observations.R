# What is known of the observations of a target, so that models of different data are not compared without a word.

# list(nobs, response), each NULL where it is not known; NULL where neither is. data: a list in which the response may
# be, by a name that it mostly has: that of brms, which has one for each of several, or of glmmTMB.
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
    response <- response[is.finite(response)] # brms has Inf in the place of what is missing
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

# Numbers that do not depend on the order of the observations, and that differ where their values do.
summarise_response <- function(x) {
  if (length(x) > 0) {
    c(n = length(x), mean = mean(x), sd = if (length(x) > 1) stats::sd(x) else 0, min = min(x), max = max(x))
  }
}

are_same_response <- function(a, b) {
  least <- sqrt(.Machine$double.eps) * max(abs(c(a[-1], b[-1]))) # the same numbers, computed in another way
  all(abs(a - b) <= c(0, rep(least, 4)))
}

# models: what is compared, of which fits have targets.
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
    "The models are of different data, so their evidences do not compare.", paste0(of, ": ", said),
    "Missing values may have dropped other rows from each. A response on another scale needs the log Jacobian of the
      change in its log density.", "data"
  )
}
