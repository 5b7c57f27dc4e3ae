# inclusion() and average_draws(): Bayesian model averaging over the models of a comparison.

#' Which terms belong in the model
#'
#' For each term of the compared models, the posterior probability of the models that contain it, and its inclusion
#' Bayes factor: the ratio of posterior to prior odds that the model contains the term.
#'
#' The standard errors come from those of the evidences, by the delta method, as in [compare_evidence()]. A term that is
#' in all models, or in none, has probability 1 or 0 whatever the data, and no Bayes factor.
#'
#' @param comparison a result of [compare_evidence()].
#' @param terms the terms of each model: a logical matrix, or data frame, with a row for each model and a column for
#'   each term; or a list with an element for each model, which is a formula, a fit of brms, or the fit that [smc()]
#'   made of one. Rows and elements are matched to the models by their names; without names they must be in the order of
#'   the models.
#' @return A data frame with a row for each term: `term`; `n_models`, the number of models that contain it;
#'   `prior_prob`, `post_prob` and `post_prob_error`, the total probability of these models, with its standard error;
#'   `log_bf`, `bf` and `log_bf_error`, the inclusion Bayes factor with the standard error of its logarithm. Terms of
#'   formulas are named as by [terms()]; terms of a distributional parameter of brms have its name before them:
#'   `sigma: x`.
#' @section Errors: `autosmc_error_input` if `comparison` is not a comparison, or `terms` do not match its models.
#' @seealso [average_draws()] for the size of the effects.
#' @examples
#' # known evidences; fits of smc() are given in the same way
#' known <- list(
#'   none = c(log_z = -12.1, std_error = 0.02), age = c(log_z = -9.8, std_error = 0.03),
#'   sex = c(log_z = -12.9, std_error = 0.02), both = c(log_z = -10.3, std_error = 0.03)
#' )
#' comparison <- compare_evidence(known)
#' inclusion(comparison, list(none = y ~ 1, age = y ~ age, sex = y ~ sex, both = y ~ age + sex))
#' @export
inclusion <- function(comparison, terms) {
  check_class(comparison, "comparison", "smc_evidence", "compare_evidence()")
  has <- check_terms(terms, comparison$model)
  possible <- comparison$prior_prob > 0
  prior <- log(comparison$prior_prob[possible])
  posterior <- normalise_log(comparison$log_z[possible] + prior)
  variance <- comparison$std_error[possible]^2
  bind_rows(lapply(colnames(has), function(term) {
    inside <- has[possible, term]
    log_total <- function(log_p) if (length(log_p) > 0) log_sum_exp(as.list(log_p)) else -Inf
    log_odds <- function(log_p) log_total(log_p[inside]) - log_total(log_p[!inside])
    # the probability of each model among those that agree with it on the term
    share <- exp(posterior - ifelse(inside, log_total(posterior[inside]), log_total(posterior[!inside])))
    error <- sqrt(sum(share^2 * variance))
    p <- stats::plogis(log_odds(posterior))
    log_bf <- if (is.finite(log_odds(prior))) log_odds(posterior) - log_odds(prior) else NA_real_
    list(
      term = term, n_models = sum(has[, term]), prior_prob = exp(log_total(prior[inside])), post_prob = p,
      post_prob_error = p * (1 - p) * error, log_bf = log_bf, bf = exp(log_bf),
      log_bf_error = if (is.na(log_bf)) NA_real_ else error
    )
  }))
}

# Whether each model contains each term: a logical matrix, a row a model.
check_terms <- function(terms, models) {
  check_given(terms, "terms")
  if (is.list(terms) && !is.data.frame(terms)) {
    each <- lapply(in_order_of(terms, models, names(terms), length(terms)), term_labels)
    all <- unique(unlist(each))
    has <- matrix(unlist(lapply(each, function(own) all %in% own)), length(models), byrow = TRUE)
    return(name_columns(has, all))
  }
  # automatic row names are not names of models
  if (is.data.frame(terms)) terms <- as.matrix(terms, rownames.force = is.character(attr(terms, "row.names")))
  if (!is.logical(terms) || !is.matrix(terms) || anyNA(terms) || is.null(colnames(terms))) {
    abort_argument(terms, "terms", "a list of formulas or fits, or a logical matrix with names of its columns")
  }
  terms[in_order_of(seq_len(nrow(terms)), models, rownames(terms), nrow(terms)), , drop = FALSE]
}

# The elements of x in the order of the models: matched by `names`, or as they are if there are no names.
in_order_of <- function(x, models, names, n) {
  if (!is.null(names) && all(models %in% names)) {
    x[match(models, names)]
  } else if (is.null(names) && n == length(models)) {
    x
  } else {
    abort("{.arg terms} must match the models {.val {models}}, by these names, or by their number without names; there
      {?is/are} {n}{if (!is.null(names)) ' with other names'}.")
  }
}

# The names of the terms of a model; those of interactions are sorted, so that `a:b` and `b:a` are the same.
term_labels <- function(x) {
  if (inherits(x, "smc_fit")) x <- x$target$brmsfit
  if (inherits(x, "brmsfit")) x <- x$formula
  labels_of <- function(formula) {
    labels <- tryCatch(attr(stats::terms(formula), "term.labels"), error = function(e) abort_terms(formula))
    is_plain <- !grepl("[(|]", labels)
    labels[is_plain] <- vapply(strsplit(labels[is_plain], ":"), function(parts) paste(sort(parts), collapse = ":"), "")
    labels
  }
  if (inherits(x, "brmsformula")) {
    others <- lapply(x$pforms, labels_of)
    of_others <- paste(rep(names(others), lengths(others)), unlist(others), sep = ": ", recycle0 = TRUE)
    c(labels_of(x$formula), of_others)
  } else if (inherits(x, "formula")) {
    labels_of(x)
  } else {
    abort_terms(x)
  }
}

abort_terms <- function(x) abort_argument(x, "terms", "a list of formulas or fits of brms")

#' Draws averaged over models
#'
#' Draws from the posterior over all models together: a model is drawn by its posterior probability, and then its
#' variables by its own posterior.
#'
#' A variable is assumed to have the same meaning in all models that have a variable of its name. In draws of the other
#' models it is 0: so the draws of an effect have a point mass at zero, the posterior probability that the effect is
#' absent, and its mean is shrunk towards 0. If absence does not mean 0, as for a scale or a degree of freedom, leave
#' the variable out, or use only the draws of the models that have it.
#'
#' Models and draws are resampled systematically, without randomness: the shares of the models are their probabilities
#' up to rounding. The errors of these probabilities are those of [compare_evidence()].
#'
#' @param fits a list of fits of [smc()], or the result of [smc_all()].
#' @param variables names of variables (character vector, `"tau"` for all of `tau[1]`, `tau[2]`, ...); NULL for the
#'   variables of at least two models.
#' @param prior_prob as of [compare_evidence()].
#' @param n_draws number of draws (positive integer).
#' @return A data frame with a row a draw: `.model`, the name of its model, and the variables.
#'   `posterior::as_draws_df(draws[-1])` has them for the package posterior.
#' @section Errors: `autosmc_error_input` for fewer than two fits, for fits that have kept moments only, and for unknown
#'   names of variables. Warnings are those of [compare_evidence()].
#' @seealso [inclusion()]
#' @examples
#' y <- c(0.4, 1.2, -0.3, 0.9, 1.5)
#' null <- target_function(
#'   function(x) sum(dnorm(y, 0, x, log = TRUE)) + dexp(x, log = TRUE),
#'   dim = 1, names = "sigma", lower = 0
#' )
#' shifted <- target_function(
#'   function(x) {
#'     sum(dnorm(y, x[1], x[2], log = TRUE)) + dnorm(x[1], log = TRUE) + dexp(x[2], log = TRUE)
#'   },
#'   dim = 2, names = c("mu", "sigma"), lower = c(sigma = 0)
#' )
#' fits <- smc_all(list(null = null, shifted = shifted),
#'   n_particles = 64, n_steps = 4, rounds = 0, seed = 1
#' )
#' draws <- average_draws(fits, c("mu", "sigma"))
#' colMeans(draws[-1])
#' mean(draws$mu == 0) # the posterior probability of the model without mu
#' @export
average_draws <- function(fits, variables = NULL, prior_prob = NULL, n_draws = 4096) {
  check_given(fits, "fits")
  if (!is_list_of_models(fits)) {
    abort_argument(fits, "fits", "a list of fits")
  }
  n_draws <- check_n(n_draws, "n_draws")
  comparison <- compare_evidence(fits, prior_prob = prior_prob)
  fits <- Filter(function(fit) !inherits(fit, "error"), unclass(fits))
  lapply(fits, check_class, "fits", "smc_fit", "smc()")
  lapply(fits, check_has_draws)
  names <- unlist(lapply(fits, function(fit) colnames(fit$particles)))
  variables <- if (is.null(variables)) unique(names[duplicated(names)]) else check_variables(variables, unique(names))
  model <- resample_systematic(log(comparison$post_prob), n_draws)
  parts <- lapply(unique(model), function(i) {
    fit <- fits[[i]]
    rows <- resample_systematic(fit$log_weights, sum(model == i))
    part <- matrix(0, length(rows), length(variables), dimnames = list(NULL, variables))
    own <- intersect(variables, colnames(fit$particles))
    part[, own] <- fit$particles[rows, own]
    part
  })
  tibble::tibble(.model = comparison$model[model], tibble::as_tibble(do.call(rbind, parts)))
}
