# compare_evidence(): Bayes factors and posterior model probabilities.

#' Compare models by their evidence
#'
#' Bayes factors and posterior model probabilities, with their standard errors.
#'
#' The errors of the fits are assumed to be independent: use a different `seed` for each fit, as [smc()] does by
#' default. The errors of fits of similar targets with the same seed are correlated.
#'
#' @param ... two or more fits of [smc()], [smc_adapt()] or [smc_run()], or results of
#'   `bridgesampling::bridge_sampler()`, or a list of them; all for the same data, and with
#'   log densities from which no constant has been dropped. An evidence from elsewhere is given as a result of
#'   [log_evidence()], or as numbers such as `c(log_z = -12.3, std_error = 0.1)`, with the error 0 if it is exact, or as
#'   a list or a data frame of one row with these names, such as [glance()] returns. An error, which [smc_all()] keeps
#'   in place of a failed fit, is left out with a warning that names the model.
#' @param prior_prob prior probabilities of the models: a numeric vector, not negative, that sums to one, in the order
#'   of the models or with their names; or a function of the names of the models that returns numbers proportional to
#'   the probabilities. NULL for equal probabilities. If models have failed, those of the others keep their ratios.
#' @param model_names names of the models (character vector); NULL for the names of
#'   the arguments, or the expressions given.
#' @return A data frame of class `smc_evidence`, with a row for each model in the order given:
#'
#' * `model`; `log_z` and its `std_error`, as in the fit;
#' * `log_bf`, the log Bayes factor of the model over the best one, that with the largest `log_z`, and `log_bf_error`,
#'   its standard error (both are 0 for the best model; the choice of the best model is treated as fixed); `bf`, the
#'   Bayes factor;
#' * `post_prob`, the posterior probability of the model, and `post_prob_error`, its standard error; `prior_prob`;
#' * `converged`: whether all diagnostics of the fit have passed, as in `glance()` (NA if there are none, and for an
#'   evidence from elsewhere).
#'
#'   Standard errors are computed by the delta method, which is accurate if the `std_error` of `log_z` is well below 1.
#'   They are NA if they depend on an unknown one: that of a fit with one island, or of a repeated or warped bridge
#'   sample.
#'
#'   `print()` does not show `bf` and `prior_prob`, and shows `converged` only if it is FALSE for a fit.
#'   `print(x, digits = 2)` shows two digits of the standard errors. `plot()` and `ggplot2::autoplot()` show the log
#'   Bayes factors with intervals of two standard errors, and the posterior probabilities; the model with the largest
#'   evidence comes first, then the most probable ones. Plots and `print()` show 20 models and summarise the others; the
#'   paragraph of [report()] has five. `tidy()` uses the column names of broom. A document of knitr shows the printed
#'   table; for other settings use `knitr::kable(format(x))`.
#' @section Warnings: Of class `autosmc_warning_comparison`, when an error is missing, an estimate is biased, two fits
#'   share a seed, or a model has failed. Of class `autosmc_warning_unreliable`, when diagnostics of a fit have failed.
#'   Of class `autosmc_warning_prior`, when priors are improper (`fit$improper`), unless all models have an improper
#'   prior of the same parameters, so that its constant cancels. Of class `autosmc_warning_data`, when the models are
#'   known to have different observations: another number of them, or other values of the response, in any order. The
#'   observations are known if the data of a Stan program or of an object of TMB have a `y`, `Y` or `N`, or if the
#'   target was given its `response` or `nobs` (see [target_function()]). The table keeps the last three warnings, and
#'   `print()` and [report()] repeat them.
#' @section Errors: `autosmc_error_input` for fewer than two fits, for an object that is not an evidence, and for other
#'   arguments that are not what they should be.
#' @source Kass and Raftery (1995), *Bayes factors*, Journal of the American Statistical Association 90, 773-795.
#' @seealso [smc_all()] for the fits of many models, [inclusion()] for their terms, [average_draws()] for draws over
#'   all of them, and [check_evidence()] for whether such probabilities are calibrated. [logml.smc_fit()] for the
#'   functions of the package bridgesampling.
#' @examples
#' # observations with mean mu, and two priors of mu
#' y <- c(0.4, 1.2, -0.3, 0.9, 1.5)
#' fit_with_prior <- function(sd, seed) {
#'   log_joint <- function(mu) { # of all particles, a row each
#'     dnorm(mu, 0, sd, log = TRUE) + rowSums(dnorm(outer(c(mu), y, "-"), log = TRUE))
#'   }
#'   gradient <- function(mu) -mu / sd^2 + sum(y) - length(y) * mu
#'   smc(log_joint,
#'     dim = 1, gradient = gradient, vectorized = TRUE, names = "mu",
#'     n_particles = 64, n_steps = 4, rounds = 1, seed = seed
#'   )
#' }
#' compare_evidence(vague = fit_with_prior(10, seed = 1), narrow = fit_with_prior(1, seed = 2))
#' @export
compare_evidence <- function(..., prior_prob = NULL, model_names = NULL) {
  given <- models_given(list(...), as.list(substitute(list(...)))[-1])
  models <- given$models
  labels <- check_labels(model_names, given$expressions)
  is_there <- !vapply(models, inherits, NA, "error")
  n <- sum(is_there)
  if (n < 2) {
    abort("{.fn compare_evidence} takes at least two fits to compare, not {n}.")
  }
  prior_prob <- check_prior_prob(prior_prob, labels, is_there)
  if (!all(is_there)) {
    warn("comparison", "The comparison leaves out {.val {labels[!is_there]}}: the fit failed.")
  }
  models <- models[is_there]
  labels <- labels[is_there]
  estimates <- evidences_of(models, labels)
  warn_of_comparison(labels, estimates)
  problems <- warn_of_models(labels, models, estimates)
  best <- which.max(estimates$log_z)
  posterior <- posterior_probabilities(estimates, prior_prob)
  columns <- list(
    model = labels, log_z = estimates$log_z, std_error = estimates$std_error,
    log_bf = estimates$log_z - estimates$log_z[best],
    log_bf_error = replace(sqrt(estimates$std_error^2 + estimates$std_error[best]^2), best, 0),
    bf = exp(estimates$log_z - estimates$log_z[best]),
    prior_prob = prior_prob, post_prob = posterior$estimate, post_prob_error = posterior$std_error,
    converged = estimates$converged
  )
  tibble::new_tibble(columns, problems = problems, class = "smc_evidence")
}

# A subset that lacks columns of a comparison is a plain tibble.
#' @export
`[.smc_evidence` <- function(x, ...) {
  part <- NextMethod()
  if (is.data.frame(part) && !all(evidence_columns %in% names(part))) plain_tibble(part) else part
}

#' @export
`names<-.smc_evidence` <- function(x, value) {
  if (all(evidence_columns %in% value)) NextMethod() else plain_tibble(`names<-`(unclass(x), value))
}

plain_tibble <- function(x) {
  attr(x, "fits") <- attr(x, "state") <- NULL
  class(x) <- c("tbl_df", "tbl", "data.frame")
  x
}

evidence_columns <- c(
  "model", "log_z", "std_error", "converged", "log_bf", "log_bf_error", "post_prob", "post_prob_error"
)

#' @export
print.smc_evidence <- function(x, ..., digits = NULL) {
  n_more <- nrow(x) - most_models
  if (n_more <= 0) {
    print(format(x, digits = digits), row.names = FALSE)
  } else {
    ranked <- most_probable(x)
    print(format(ranked$first, digits = digits), row.names = FALSE)
    rest <- format_probability(sum(ranked$rest$post_prob))
    cat(sprintf("and %s, of posterior probability %s together\n", count_of(n_more, "more model"), rest))
  }
  for (problem in attr(x, "problems")) print_line("warning", problem)
  invisible(x)
}

# The largest number of models in a printed table or a plot.
most_models <- 20

# A comparison in two parts: the `first` n models, the one with the largest evidence and then the most probable ones,
# and the `rest`.
most_probable <- function(comparison, n = most_models) {
  ranked <- union(which.max(comparison$log_bf), order(-comparison$post_prob, -comparison$log_bf))
  shown <- seq_along(ranked) <= n
  list(first = comparison[ranked[shown], ], rest = comparison[ranked[!shown], ])
}

# The printed table, a data frame of text.
#' @export
format.smc_evidence <- function(x, ..., digits = NULL) {
  if (!is.null(digits)) check_count(digits, "digits", max = 15)
  decimals <- decimals_of_error(c(x$std_error, x$log_bf_error), digits)
  table <- data.frame(
    model = x$model, log_z = fixed(x$log_z, decimals), std_error = fixed(x$std_error, decimals),
    log_bf = fixed(x$log_bf, decimals), std_error = fixed(x$log_bf_error, decimals),
    post_prob = format_probability(x$post_prob), std_error = formatC(x$post_prob_error, digits = 1, format = "g"),
    check.names = FALSE
  )
  if (any(x$converged %in% FALSE)) table$converged <- x$converged
  table
}

# knitr shows the printed table.
#' @exportS3Method knitr::knit_print
knit_print.smc_evidence <- function(x, ...) {
  knitr::knit_print(knitr::kable(format(x), row.names = FALSE), ...)
}

#' @export
tidy.smc_evidence <- function(x, ...) {
  check_dots_empty(...)
  new_table(
    term = x$model, estimate = x$log_bf, std.error = x$log_bf_error, bf = x$bf,
    post.prob = x$post_prob, post.prob.error = x$post_prob_error
  )
}

#' @export
glance.smc_evidence <- function(x, ...) {
  check_dots_empty(...)
  best <- which.max(x$post_prob)
  new_table(n_models = nrow(x), best = x$model[best], post_prob = x$post_prob[best])
}

evidences_of <- function(models, labels) bind_rows(Map(evidence_of, models, labels))

# The evidence of a model as a row: log_z, std_error, biased, converged, seed (NA if there is no Monte Carlo error).
# label: the name of the argument in error messages.
evidence_of <- function(x, label) {
  if (inherits(x, "smc_fit")) {
    return(new_table(
      log_z = x$log_z, std_error = x$std_error, biased = x$runs$biased[nrow(x$runs)],
      converged = converged(x), seed = if (x$std_error %in% 0) NA else x$seed
    ))
  }
  known <- known_evidence(x)
  if (is.null(known)) {
    if (!inherits(x, c("bridge", "bridge_list"))) {
      fits <- "a fit of `smc()`, a result of `bridgesampling::bridge_sampler()` or `c(log_z = , std_error = )`"
      abort_argument(x, label, fits)
    }
    check_installed("bridgesampling", "for its results")
    # bridgesampling has an error only for a single sample that is not warped
    has_error <- inherits(x, "bridge") && x$method == "normal"
    known <- c(bridgesampling::logml(x), if (has_error) bridgesampling::error_measures(x)$cv else NA_real_)
  }
  new_table(log_z = known[1], std_error = known[2], biased = NA, converged = NA, seed = NA_real_)
}

# c(log_z, std_error) of a result of log_evidence(), or of a vector or list with these names; an absent error is NA.
# NULL for anything else.
known_evidence <- function(x) {
  if (inherits(x, "log_evidence")) {
    x <- list(log_z = as.numeric(x), std_error = attr(x, "std_error"))
  }
  number <- function(name) if (name %in% names(x)) x[[name]] else NA_real_
  if (inherits(x, "bridge_list") || !is.list(x) && !is.numeric(x) || !is_number(number("log_z"))) {
    return(NULL)
  }
  error <- number("std_error")
  if (is_number(error) && error >= 0 || is.na(error)) c(number("log_z"), error)
}

# By the delta method, with d p_i / d log z_j = p_i (1(i = j) - p_j): list(estimate, std_error).
posterior_probabilities <- function(estimates, prior_prob) {
  p <- exp(normalise_log(estimates$log_z + log(prior_prob)))
  n <- length(p)
  derivative <- p * (diag(n) - matrix(p, n, n, byrow = TRUE))
  variance <- derivative^2 %*% estimates$std_error^2
  list(estimate = p, std_error = sqrt(as.vector(variance)))
}

# The models in the dots, or in a list that is the only argument, and the expressions from which they are named.
models_given <- function(models, expressions) {
  if (length(models) == 1 && is_list_of_models(models[[1]])) {
    models <- unclass(models[[1]])
    expressions <- expressions_in(expressions[[1]], models)
  }
  list(models = models, expressions = expressions)
}

is_list_of_models <- function(x) identical(class(x), "list") || inherits(x, "smc_fits")

# The expressions from which the models of a list are named: those of a call list(a, b), or NULLs with the names of the
# list.
expressions_in <- function(expression, models) {
  if (is.call(expression) && identical(expression[[1]], as.name("list"))) {
    return(as.list(expression)[-1])
  }
  stats::setNames(vector("list", length(models)), names(models))
}

# Names for the models: those given, those of the arguments, or the expressions. A call made by do.call() may contain
# the fit itself instead of an expression; its name is then "model 1" and so on.
check_labels <- function(model_names, expressions) {
  n <- length(expressions)
  if (!is.null(model_names)) {
    if (!is.character(model_names) || length(model_names) != n || anyNA(model_names)) {
      abort_argument(model_names, "model_names", paste("a character vector of length", n))
    }
    return(make.unique(model_names))
  }
  given <- rlang::names2(expressions)
  labels <- vapply(seq_len(n), function(i) {
    x <- expressions[[i]]
    if (nzchar(given[i])) given[i] else if (is.language(x)) deparse(x)[1] else paste("model", i)
  }, "")
  make.unique(labels)
}

# The prior probabilities of the models that have an evidence. is_there: whether each has one.
check_prior_prob <- function(prior_prob, labels, is_there = rep(TRUE, length(labels))) {
  n <- length(labels)
  given <- if (is.null(prior_prob)) rep(1 / n, n) else prior_prob
  is_function <- is.function(given)
  of <- if (is_function) "numbers for the names of the models" else "probabilities that sum to one"
  if (is_function) {
    given <- tryCatch(given(labels), error = function(e) {
      abort("{.arg prior_prob} fails for the names of the models.", parent = in_utf8(e))
    })
  }
  p <- check_numeric(given, "prior_prob", lengths = n, of = of)
  if (is_function) {
    p <- p / sum(p)
  } else if (!is.null(names(given))) {
    if (!setequal(names(given), labels)) {
      abort("{.arg prior_prob} must have the names of the models, {.val {labels}}, not {.val {names(given)}}.")
    }
    p <- p[match(labels, names(given))]
  }
  of_these <- sum(p[is_there])
  if (!isTRUE(all(p >= 0)) || abs(sum(p) - 1) > 1e-8 || of_these == 0) {
    abort_argument(given, "prior_prob", paste("a vector of", of))
  }
  if (all(is_there)) p else p[is_there] / of_these
}

warn_of_comparison <- function(labels, estimates) {
  without <- labels[is.na(estimates$std_error)]
  biased <- labels[estimates$biased %in% TRUE]
  seeds <- estimates$seed
  alike <- labels[!is.na(seeds) & seeds %in% seeds[duplicated(seeds)]]
  problems <- c(
    "!" = if (length(without) > 0) "{.val {without}} {?has/have} no standard error: run more {.arg islands}.",
    "!" = if (length(biased) > 0) "The estimate of {.val {biased}} is biased: use {.fn smc} or {.fn smc_run}.",
    "!" = if (length(alike) > 0) "{.val {alike}} have the same {.arg seed}: their errors are not independent."
  )
  if (length(problems) > 0) {
    problems <- c("The standard errors of the comparison are unreliable.", problems)
    warn("comparison", problems)
  }
}

# Warns of problems that make a comparison invalid, even if each evidence is accurate. Returns the sentences, which the
# comparison keeps.
warn_of_models <- function(labels, models, estimates) {
  c(
    warn_of_unconverged(labels, estimates), warn_of_improper(labels, models), warn_of_data(labels, models),
    warn_of_laplace(labels, models)
  )
}

warn_of_laplace <- function(labels, models) {
  of_laplace <- labels[vapply(models, function(x) inherits(x, "smc_fit") && is_laplace(x), NA)]
  if (length(of_laplace) > 0) {
    warn_of_problem(
      sprintf(
        "The comparison is approximate: log Z of %s is that of Laplace's approximation, whose error is unknown.",
        toString(dQuote(of_laplace, FALSE))
      ),
      advice = "Where {.arg random} effects fall into small groups, {.code method = \"auto\"} is exact.",
      class = "laplace"
    )
  }
}

# The unknown constant of an improper prior cancels if all models have improper priors of the same parameters.
warn_of_improper <- function(labels, models) {
  improper <- lapply(models, function(x) if (inherits(x, "smc_fit")) x$improper)
  which <- lapply(improper, function(x) sort(paste(x, names(x))))
  if (length(unique(which)) > 1) {
    without <- lengths(improper) > 0
    warn_of_problem(
      "The comparison means nothing: the models have improper priors of different parameters, and each of these adds an
        unknown constant to log Z.",
      sprintf("In %s: %s", labels[without], vapply(improper[without], several, "")),
      "Give these parameters proper priors.", "prior"
    )
  }
}

warn_of_unconverged <- function(labels, estimates) {
  failed <- labels[estimates$converged %in% FALSE]
  if (length(failed) > 0) {
    warn_of_problem(
      sprintf("The comparison is not to be trusted: diagnostics of %s have failed.", toString(dQuote(failed, FALSE))),
      advice = "Print the fit, or see its {.field diagnostics}.", class = "unreliable"
    )
  }
}
