# restrict(): Bayes factors of inequality restrictions by the encompassing prior approach (Klugkist et al., 2005); and
# what it shares with savage_dickey().

#' Bayes factor of a restricted model
#'
#' The Bayes factor of a model with restricted parameters, such as `a > 0` or an order of rates, against the model of
#' the fit. The prior of the restricted model is proportional to the prior of the fit where the restrictions hold, and 0
#' elsewhere (encompassing prior). Its Bayes factor is then the posterior probability of the restrictions over their
#' prior probability.
#'
#' The posterior probability is a mean over the weighted draws. Its standard error comes from the spread of the islands,
#' or from the effective sample size of the weights, if that error is larger. If the draws that satisfy the restrictions
#' have together less weight than one effective draw, only a bound of the probability is known: with `n` effective draws
#' of which none satisfies them it is `3 / n`, with a probability of 95 %. The bound is returned instead of the
#' estimate, and errors are NA. The same holds for draws of the prior.
#'
#' @param fit a fit of [smc()] or [smc_run()].
#' @param ... restrictions: expressions in the variables of the draws that are TRUE or FALSE at each draw, such as
#'   `a > 0` or `b < a`; all must hold. An element of a vector is `beta[1]`, and `beta` stands for all of its elements.
#'   Other objects are looked up in the calling environment.
#' @param prior the prior probability of the restrictions (number above 0 and at most 1); or independent draws of the
#'   prior, a matrix, a data frame or draws of the package posterior, with the same names; or a fit of the prior. NULL
#'   for 100,000 draws of the `prior` that the target was given.
#' @return A list of class `smc_restriction`:
#'
#' * `restriction`, the restrictions as text;
#' * `posterior_prob` and `prior_prob`, their probabilities, with standard errors `posterior_error` and
#'   `prior_error` (0 for a prior probability that is given);
#' * `log_bf`, the log Bayes factor of the restricted model against the model of the fit, and `log_bf_error`;
#' * `log_z`, the log evidence of the restricted model, and `std_error`. If the fit reports the estimate by SMC, the
#'   error accounts for the correlation of the islands' evidences with their shares of draws within the restrictions;
#' * `bound`: `"upper"` if `posterior_prob` is a bound, so that `log_bf` is an upper bound; `"lower"` if `prior_prob` is
#'   a bound, so that `log_bf` is a lower bound; otherwise NA.
#'
#'   [compare_evidence()] takes it together with fits of other models. Do not compare it with `fit` itself in this way:
#'   the two share the error of `fit`, which `log_bf_error` does not contain. `glance()` makes a data frame of one row.
#' @section Errors: `autosmc_error_input` when an argument is not what it should be, and when neither draws of the
#'   posterior nor draws of the prior satisfy the restrictions.
#' @source Klugkist, Kato and Hoijtink (2005), *Bayesian model selection using encompassing priors*, Statistica
#'   Neerlandica 59, 57-69.
#' @seealso [savage_dickey()] for equalities, such as `a = 0`.
#' @examples
#' # are three rates in ascending order? Under their common prior all orders have equal probability
#' deaths <- c(11, 18, 24)
#' target <- target_function(
#'   function(rate) sum(dpois(deaths, rate, log = TRUE) + dgamma(rate, 2, 0.1, log = TRUE)),
#'   gradient = function(rate) (deaths + 1) / rate - 1.1, names = paste0("rate[", 1:3, "]"), lower = 0
#' )
#' fit <- smc(target, n_particles = 256, n_steps = 8, seed = 1)
#' restrict(fit, rate[1] < rate[2], rate[2] < rate[3], prior = 1 / 6)
#' @export
restrict <- function(fit, ..., prior = NULL) {
  check_class(fit, "fit", "smc_fit", "smc()")
  restrictions <- check_restrictions(rlang::enquos(...))
  if (is.null(prior)) prior <- draws_of_prior(fit$target, fit$seed)
  posterior <- probability_of(fit, restrictions)
  prior <- prior_probability(prior, restrictions)
  if (posterior$is_bound && prior$is_bound) {
    abort("No draws, neither of the posterior nor of the prior, satisfy the restrictions.")
  }
  structure(
    list(
      restriction = toString(lapply(restrictions, function(q) deparse1(rlang::quo_get_expr(q)))),
      posterior_prob = posterior$prob, posterior_error = posterior$error,
      prior_prob = prior$prob, prior_error = prior$error,
      log_bf = log(posterior$prob) - log(prior$prob),
      log_bf_error = sqrt((posterior$error / posterior$prob)^2 + (prior$error / prior$prob)^2),
      log_z = fit$log_z + log(posterior$prob) - log(prior$prob),
      std_error = sqrt(posterior$log_z_error^2 + (prior$error / prior$prob)^2),
      bound = if (posterior$is_bound) "upper" else if (prior$is_bound) "lower" else NA_character_
    ),
    class = c("smc_restriction", "smc_bayes_factor")
  )
}

#' @export
print.smc_restriction <- function(x, ...) {
  cat("<smc_restriction> ", x$restriction, "\n", sep = "")
  below <- function(bound) if (x$bound %in% bound) "below "
  print_line(
    "holds", "with probability ", below("upper"), format_estimate(x$posterior_prob, x$posterior_error),
    "; under the prior ", below("lower"), format_estimate(x$prior_prob, x$prior_error)
  )
  print_bayes_factor(x, "restricted against free", switch(x$bound, upper = "below ", lower = "above "))
  invisible(x)
}

#' @export
glance.smc_bayes_factor <- function(x, ...) {
  check_dots_empty(...)
  as_table(unclass(x))
}

# The lines on the Bayes factor and the evidence. of: the two models, in words; about: "below " or "above " a bound.
print_bayes_factor <- function(x, of, about = NULL) {
  number <- function(value, error) {
    decimals <- decimals_of_error(error)
    paste0(about, fixed(value, decimals), format_error(fixed(error, decimals), error))
  }
  print_line("log BF", number(x$log_bf, x$log_bf_error), ", ", of)
  print_line("log Z", number(x$log_z, x$std_error))
}

# A number of any size, and its error if there is one.
format_estimate <- function(value, error) paste0(short(value), format_error(short(error, 1), error))
format_error <- function(text, error) if (is.finite(error) && error > 0) paste(", standard error", text)
short <- function(x, digits = 4) format(x, digits = digits)

# probabilities -----------------------------------------------------------------

# The probability of the restrictions under the draws of a fit: list(prob, error, log_z_error, is_bound), with the error
# of log Z + log(prob).
probability_of <- function(fit, restrictions, arg = "fit") {
  check_has_draws(fit)
  inside <- satisfied(restrictions, fit$particles, arg)
  by_weights <- 1 / sum(exp(2 * fit$log_weights)) # Kish's effective sample size
  prob <- sum(exp(fit$log_weights)[inside])
  found <- proportion(prob, min(ess_mean(fit), by_weights, na.rm = TRUE))
  if (!found$is_bound) {
    found[c("prob", "error", "log_z_error")] <-
      mean_at_draws(fit, as.double(inside), least = proportion(prob, by_weights)$error)
  }
  found
}

# 100,000 draws of the prior that the target was given.
draws_of_prior <- function(target, seed) {
  if (is.null(target$prior)) {
    abort(c(
      "{.arg prior} is missing.",
      "i" = "Give the prior probability, or draws of the prior; or make the target with its {.arg prior}, as
        {.fn target_function} and {.fn target_rtmb} take it."
    ))
  }
  x <- with_seed(seed_of_run(seed, prior_key), prior_draws(target, 100000L))
  colnames(x) <- if (is.null(target$parameters)) target$names else target$parameters
  x
}

# The prior probability of the restrictions: list(prob, error, is_bound). prior: a number, a fit, or draws.
prior_probability <- function(prior, restrictions) {
  if (inherits(prior, "smc_fit")) {
    return(probability_of(prior, restrictions, "prior"))
  }
  if (length(prior) == 1 && is.numeric(prior) && is.null(dim(prior))) {
    if (!is_number(prior) || prior <= 0 || prior > 1) {
      abort_argument(prior, "prior", "a number above 0 and at most 1")
    }
    return(list(prob = as.double(prior), error = 0, is_bound = FALSE))
  }
  draws <- tryCatch(matrix_of_draws(prior), error = function(e) NULL)
  if (!is.numeric(draws) || is.null(colnames(draws)) || nrow(draws) == 0) {
    abort_argument(prior, "prior", "a probability, a fit, or draws of the prior with the names of the variables")
  }
  inside <- satisfied(restrictions, draws, "prior")
  proportion(mean(inside), length(inside))
}

# The probability that a proportion `prob` of n draws estimates. The standard error is computed with one more success
# and one more failure, so that it is not 0 if all succeed. With less than one success, a 95 % upper bound.
proportion <- function(prob, n) {
  if (n * prob < 1) {
    bound <- min(1, stats::qgamma(0.95, n * prob + 1) / n)
    return(list(prob = bound, error = NA_real_, log_z_error = NA_real_, is_bound = TRUE))
  }
  more <- (n * prob + 1) / (n + 2)
  list(prob = prob, error = sqrt(more * (1 - more) / n), log_z_error = NA_real_, is_bound = FALSE)
}

# The mean of non-negative numbers x at the draws, its standard error, and that of the log of Z times this mean:
# list(mean, error, log_z_error). least: a lower limit of the error.
mean_at_draws <- function(fit, x, least = 0) {
  w <- exp(fit$log_weights)
  mean <- sum(w * x)
  fit$particles <- cbind(x)
  error <- max(mcse_mean(fit, mean), least)
  sampling_error <- sqrt(fit$sampling_error^2 + (error / mean)^2)
  if (!is_bridged(fit) && !is.na(error)) {
    sums <- rowsum(cbind(w * x, w), fit$island)
    living <- match(rownames(sums), fit$islands$island)
    fit$islands$log_z[living] <- fit$islands$log_z[living] + log(sums[, 1] / sums[, 2])
    sampling_error <- max(combine(fit$islands)$std_error, least / mean)
  }
  shift2 <- fit$std_error^2 - fit$sampling_error^2
  list(mean = mean, error = error, log_z_error = sqrt(sampling_error^2 + shift2))
}

# restrictions ------------------------------------------------------------------

check_restrictions <- function(restrictions) {
  named <- setdiff(names(restrictions), "")
  if (length(named) > 0) {
    abort(c(
      "A restriction must not have a name, as in {.code a > 0}; {.arg {named}} is a name.",
      "i" = "For a point, such as {.code a = 0}, see {.fn savage_dickey}."
    ))
  }
  if (length(restrictions) == 0) {
    abort("A restriction must be given, such as {.code a > 0}.")
  }
  restrictions
}

# Whether each draw, a row with named columns, satisfies all restrictions. arg: the argument from which the draws come.
satisfied <- function(restrictions, draws, arg) {
  each <- lapply(restrictions, function(restriction) {
    expression <- rlang::quo_get_expr(restriction)
    text <- deparse1(expression)
    expression <- with_elements(expression, colnames(draws))
    value <- tryCatch(
      rlang::eval_tidy(rlang::quo_set_expr(restriction, expression), mask_of(draws, all.names(expression))),
      error = function(e) {
        known <- utils::head(colnames(draws), 20)
        abort(c(
          "{.code {text}} cannot be evaluated at the draws of {.arg {arg}}.",
          "i" = "Their variables are {.field {known}}."
        ), parent = e)
      }
    )
    if (!is.logical(value) || NROW(value) != nrow(draws) || anyNA(value)) {
      given <- if (is.logical(value) && anyNA(value)) "missing" else describe(value)
      abort("{.code {text}} must be TRUE or FALSE at each of the {nrow(draws)} draws of {.arg {arg}}, not {given}.")
    }
    rowSums(!as.matrix(value)) == 0
  })
  Reduce(`&`, each)
}

# The expression with `beta[1]` replaced by the name of the variable "beta[1]".
with_elements <- function(expression, names) {
  if (!is.call(expression)) {
    return(expression)
  }
  name <- if (identical(expression[[1]], quote(`[`))) gsub(" ", "", deparse1(expression), fixed = TRUE)
  if (isTRUE(name %in% names)) {
    return(as.name(name))
  }
  for (i in seq_along(expression)[-1]) {
    if (is.call(expression[[i]])) expression[[i]] <- with_elements(expression[[i]], names)
  }
  expression
}

# The variables with these names as a list: a column of the draws, or for a vector the matrix of its elements.
mask_of <- function(draws, names) {
  of_vector <- base_names(colnames(draws))
  names <- intersect(names, c(colnames(draws), of_vector))
  lapply(stats::setNames(nm = names), function(name) {
    if (name %in% colnames(draws)) draws[, name] else draws[, of_vector == name, drop = FALSE]
  })
}
