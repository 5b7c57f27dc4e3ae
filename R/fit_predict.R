# predict(): functions of the variables, evaluated at the draws.

#' Predictions and other functions of the variables
#'
#' Evaluates a function at the draws, and summarises its values. A log density does not determine predictions, so you
#' give the function: a mean response, a ratio of two parameters, a new observation drawn at random, or the log
#' likelihood of each observation.
#'
#' @param object a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param newdata the second argument of `fun`, any object; left out if `fun` takes only the draw. For a fit of a
#'   `brmsfit` without `fun`, the `newdata` of brms.
#' @param fun a function of a draw, a named numeric vector, that returns numbers, the same number of them for every
#'   draw.
#' @param summary whether to summarise (TRUE or FALSE).
#' @param conf.level the probability of the intervals (number in (0, 1)).
#' @param ... not used, but by brms.
#' @return For a fit of a `brmsfit` without `fun`, the predictions of brms. Otherwise, with `summary`, a data frame with
#'   a row for each returned number and the columns of `tidy(fit, conf.int = TRUE)`, where `term` is the name or index
#'   of the number. Without `summary`, a matrix with a row for each draw of [as.matrix.smc_fit()], and a column for each
#'   number.
#' @section Errors: `autosmc_error_input` when `fun` returns anything but finite numbers, or not always the same number
#'   of them.
#' @examples
#' # a regression line, and its value at two speeds
#' residuals_at <- function(p) t(cars$dist - t(p %*% rbind(1, cars$speed)))
#' line <- function(p) {
#'   rowSums(dnorm(residuals_at(p), 0, 15, log = TRUE)) + rowSums(dnorm(p, 0, 20, log = TRUE))
#' }
#' gradient <- function(p) residuals_at(p) %*% cbind(1, cars$speed) / 15^2 - p / 20^2
#' fit <- smc(line,
#'   dim = 2, gradient = gradient, vectorized = TRUE, names = c("a", "b"),
#'   n_particles = 64, n_steps = 4, rounds = 1, seed = 1
#' )
#' predict(fit, c(10, 20), function(p, speed) p[["a"]] + p[["b"]] * speed)
#'
#' # for the package loo: log likelihoods, a row for each draw
#' log_lik <- predict(fit, cars, summary = FALSE, fun = function(p, data) {
#'   dnorm(data$dist, p[["a"]] + p[["b"]] * data$speed, 15, log = TRUE)
#' })
#' dim(log_lik)
#' @importFrom stats predict
#' @export
predict.smc_fit <- function(object, newdata, fun, summary = TRUE, conf.level = 0.95, ...) {
  check_has_draws(object)
  if (missing(fun) && is_of_brmsfit(object)) {
    given <- if (!missing(newdata)) list(newdata = newdata)
    settings <- list(summary = summary, probs = central(conf.level), ...)
    return(do.call(predict, c(list(as_brmsfit(object)), given, settings)))
  }
  if (missing(fun)) {
    abort(c(
      "{.arg fun} is missing: a function of a draw that returns the predictions,
        {.code predict(fit, fun = function(p) ...)}.",
      "i" = "A log density does not tell how observations depend on its variables."
    ))
  }
  check_function(fun, "fun")
  summary <- check_flag(summary, "summary")
  check_number(conf.level, "conf.level", 0, 1, open = TRUE)
  check_dots_empty(...)
  of_draw <- if (missing(newdata)) fun else function(draw) fun(draw, newdata)
  if (summary) {
    weighty <- object$log_weights > -Inf
    object$particles <- at_draws(object$particles[weighty, , drop = FALSE], of_draw)
    object$log_weights <- object$log_weights[weighty]
    parameters_table(object, conf.level)
  } else {
    at_draws(as.matrix(object), of_draw)
  }
}

# The values of a function at the draws: a matrix, a row a draw.
at_draws <- function(draws, fun) {
  values <- lapply(seq_len(nrow(draws)), function(i) {
    value <- tryCatch(fun(draws[i, ]), error = function(e) {
      abort("{.arg fun} failed at a draw.", parent = e)
    })
    if (!is.numeric(value) || length(value) == 0 || !all(is.finite(value))) {
      abort_argument(value, "fun", "a function that returns finite numbers")
    }
    value
  })
  if (length(unique(lengths(values))) > 1) {
    abort("{.arg fun} must return the same number of values for every draw.")
  }
  names <- names(values[[1]])
  table <- do.call(rbind, lapply(values, as.vector))
  name_columns(table, if (is.null(names)) as.character(seq_len(ncol(table))) else names)
}
