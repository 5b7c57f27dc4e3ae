# check_evidence(): simulation-based calibration of posterior model probabilities (Schad et al., 2022).

#' Are the posterior probabilities of models calibrated?
#'
#' Repeatedly, a model is drawn by its prior probability, parameters and data are drawn from it, and all models are
#' fitted to these data. If all evidences are right, the posterior probabilities are calibrated: among data sets for
#' which a model has the posterior probability 0.2, it is the true model in a fifth (Schad et al., 2022). The same data
#' sets show how large Bayes factors can be expected to be with so many observations.
#'
#' *Mean.* The mean posterior probability of a model should be its prior probability. This mean is insensitive to some
#' errors of the evidence.
#'
#' *Shift.* The amount by which `log_z` of a model is too high, relative to the other models, is estimated by maximum
#' likelihood with Firth's correction. Its standard error is one over the root of the sum of `p * (1 - p)`: data sets
#' that leave no doubt of the model give no information on small errors.
#'
#' *Slope.* The log Bayes factors must be multiplied by `slope` to be calibrated. Monte Carlo errors that differ from
#' data set to data set, as those of evidences with large standard errors do, make the slope smaller than 1.
#'
#' *Test.* Each shift and the slope have a score statistic. `p_value` is that of the largest of them, by simulation: the
#' true models are drawn by the posterior probabilities, so that it is valid for any number of data sets. `seen` is the
#' error of `log_z` that the test detects, at the level 0.05, with a probability of 0.8.
#'
#' A fit that fails is an error in the table `fits`, and the check does not pass. Its data set has no posterior
#' probabilities, and is left out of the three comparisons. These remain valid, since whether a fit fails depends on the
#' true model only through the data. The table `bayes_factors` counts failures in a separate column.
#'
#' @param models a list, with names, of two or more models, each a list of two functions: `simulate`, without arguments,
#'   which draws parameters from the prior and data given the parameters, and returns the data; and `target`, a function
#'   of the data that returns a target, or what [as_target()] takes. It may also return a fit, or a known evidence, such
#'   as `c(log_z = -12.3, std_error = 0)`. A model may also be a `brmsfit`, see section Models of brms.
#' @param prior_prob as of [compare_evidence()].
#' @param n number of data sets (positive integer).
#' @param ... arguments of [smc()] and [as_target()], as in [smc_all()].
#' @param seed,progress as of [smc_all()].
#' @param checkpoint NULL, or the path of a folder (string) from which an interrupted call resumes, also with a larger
#'   `n`. It has a file for each data set, and the fits of priors of brms.
#' @return A list of class `smc_calibration`:
#'
#' * `fits`, a data frame with a row for each data set and model: `data` (number), `true` (name of the true model),
#'   `model`, `log_z`, `std_error`, `converged`, `post_prob`, and `error`, the message of a fit that failed (else NA);
#' * `models`, with a row for each model: `model`, `prior_prob`, `mean_prob` and `mean_error`, the mean posterior
#'   probability and its standard error, `shift` and `shift_error`, and `seen`;
#' * `slope` and `slope_error`; `p_value`; `n_failed`, the number of fits that failed; `passed`, whether there are none
#'   and `p_value` is at least 0.05;
#' * `bins`, ten intervals of the posterior probability: `n`, the number of probabilities in the interval, `mean_prob`,
#'   their mean, `share_true`, the share of them whose model is the true one, and `low` and `high`, the 95 % binomial
#'   interval of this share;
#' * `bayes_factors`, with a row for each true model: `n`, the number of its data sets; `above_10`, `between` and
#'   `below_0.1`, the shares of data sets in which the Bayes factor of the true model over the best of the others is
#'   above 10, in between, or below 1/10 (misleading); `failed`, the share without a Bayes factor; and quantiles of its
#'   log10.
#'
#'   `plot()` and `ggplot2::autoplot()` show the bins with their 95 % intervals, and the median and the central 90 %
#'   interval of the Bayes factors.
#' @section Models of brms: A `brmsfit`, such as `brm(y ~ x, data, prior = prior, empty = TRUE)`, gives its formula, its
#'   priors, which must be proper, and its data except the response. Parameters are drawn from its prior: the draws of a
#'   fit with `sample_prior = "only"`, and for any other `brmsfit` those of [smc()] without the likelihood. The response
#'   is brms's prediction for one of these draws. All models must have the same response, a single variable.
#' @section Errors: `autosmc_error_input` for wrong arguments, and any error that `simulate` raises.
#'   `autosmc_error_mismatch` when the folder belongs to another check.
#' @source Schad, Nicenboim, Burkner, Betancourt and Vasishth (2022), *Workflow techniques for the robust use of Bayes
#'   factors*, Psychological Methods. Firth (1993), *Bias reduction of maximum likelihood estimates*, Biometrika 80.
#' @examples
#' # eight observations with a mean that is 0 or has a normal prior; both evidences are known
#' mean_model <- function(sd) {
#'   list(
#'     simulate = function() rnorm(8, rnorm(1, 0, sd)),
#'     target = function(y) {
#'       variance <- diag(8) + sd^2
#'       log_det <- determinant(2 * pi * variance)$modulus
#'       c(log_z = -sum(y * solve(variance, y), log_det) / 2, std_error = 0)
#'     }
#'   )
#' }
#' check <- check_evidence(list(null = mean_model(0), effect = mean_model(1)), n = 200, seed = 1)
#' check
#' plot(check)
#' @export
check_evidence <- function(models, prior_prob = NULL, n = 100, ..., seed = NULL, checkpoint = NULL,
                           progress = interactive()) {
  models <- check_simulated(models)
  prior_prob <- check_prior_prob(prior_prob, names(models))
  n <- check_n(n, "n")
  check_flag(progress, "progress")
  given <- list(...)
  arguments <- split_arguments(given)
  run <- with_seed_of_call(list(checkpoint = check_folder(checkpoint)), seed)
  seeds <- draw_seeds(run$seed, n)
  settings <- if (!is.null(checkpoint)) {
    list(
      seed = format(run$seed, digits = 15), models = fingerprint(models),
      prior_prob = prior_prob, `...` = fingerprint(given)
    )
  }
  k <- length(models)
  like <- list(true = 0L, log_z = numeric(k), std_error = numeric(k), converged = logical(k), error = character(k))
  restore <- function(x) if (has_form(x, like)) x
  rows <- lapply(seq_len(n), function(i) recall(run, run_name("data", i), settings, restore, function(...) NULL))
  left <- which(vapply(rows, is.null, NA))
  by_brms <- if (length(left) > 0) which(vapply(models, inherits, NA, "brmsfit"))
  models[by_brms] <- lapply(by_brms, function(i) model_of_brms(models[[i]], i, run))
  once_each(over_jobs(
    seeds[left], function(seed) fit_data_set(seed, models, prior_prob, arguments),
    c("models", "prior_prob", "arguments"), user_functions(list(models, arguments)),
    function(i, row) {
      rows[[left[i]]] <<- row
      store(run, run_name("data", left[i]), settings, row, NULL)
    },
    if (progress) "Data sets"
  ))
  calibration_of(rows, names(models), prior_prob, seed_of_run(run$seed, models_key))
}

# A data set drawn from one of the models, and the fits of all models to it: list(true, log_z, std_error, converged,
# error), the index of the true model and a vector for each other element. Each fit starts from the beginning: data sets
# drawn from the prior differ so much that the fit of another one saves no evaluations.
fit_data_set <- function(seed, models, prior_prob, arguments) {
  seeds <- draw_seeds(seed, length(models))
  drawn <- with_seed(seed, {
    true <- sample.int(length(models), 1, prob = prior_prob)
    list(true = true, data = models[[true]]$simulate())
  })
  fits <- Map(function(model, seed) {
    attempt({
      target <- model$target(drawn$data)
      if (is.null(known_evidence(target)) && !inherits(target, c("bridge", "bridge_list"))) {
        target <- do.call(as_target, c(list(target), arguments$target), quote = TRUE)
        target <- do.call(smc, c(list(target, seed = seed, progress = FALSE), arguments$smc), quote = TRUE)
      }
      evidence_of(target, "target")
    })
  }, models, seeds)
  rows <- lapply(fits, function(fit) {
    if (inherits(fit, "error")) {
      list(log_z = NA_real_, std_error = NA_real_, converged = NA, error = conditionMessage(fit))
    } else {
      c(fit[c("log_z", "std_error", "converged")], error = NA_character_)
    }
  })
  c(list(true = drawn$true), as.list(bind_rows(rows)))
}

check_simulated <- function(models) {
  check_given(models, "models")
  is_model <- function(x) {
    inherits(x, "brmsfit") || is.list(x) && is.function(x[["simulate"]]) && is.function(x[["target"]])
  }
  if (!identical(class(models), "list") || length(models) < 2 || !all(vapply(models, is_model, NA))) {
    expected <- "a list of at least two models, each a brmsfit or a list of the functions `simulate` and `target`"
    abort_argument(models, "models", expected)
  }
  names <- names(models)
  if (is.null(names)) names <- paste("model", seq_along(models))
  if (anyNA(names) || !all(nzchar(names)) || anyDuplicated(names)) {
    abort("{.arg models} must have a different name for each model.")
  }
  stats::setNames(models, names)
}

# The functions `simulate` and `target` of a model of brms: responses are predicted at draws from its prior, and replace
# those in its data. run: a list of `seed` and `checkpoint`. index: the number of the model, by which the folder of the
# fit of its prior is named.
model_of_brms <- function(x, index, run) {
  response <- x$formula$formula[[2]]
  if (is.call(response) && identical(response[[1]], quote(`|`))) response <- response[[2]]
  if (!is.name(response)) {
    given <- deparse1(response)
    abort("{.arg models}: the response of a {.cls brmsfit} must be one variable, not {.code {given}}.")
  }
  response <- as.character(response)
  is_drawn <- identical(attr(x$prior, "sample_prior"), "only") && methods::is(x$fit, "stanfit")
  drawn <- if (is_drawn) x else drawn_from_prior(x, index, run)
  n <- nrow(as.matrix(drawn))
  x["fit"] <- list(NULL)
  attr(x$prior, "sample_prior") <- "no"
  own <- x$data[[response]]
  list(
    simulate = function() {
      y <- drop(getExportedValue("brms", "posterior_predict")(drawn, draw_ids = sample.int(n, 1)))
      if (is.factor(own)) y[] <- levels(own)[y + identical(x$family$family, "bernoulli")]
      if (is.factor(own)) factor(y, levels(own), ordered = is.ordered(own)) else y
    },
    target = function(y) {
      x$data[[response]] <- y
      x
    }
  )
}

drawn_from_prior <- function(x, index, run) {
  x["fit"] <- list(NULL)
  attr(x$prior, "sample_prior") <- "only"
  target <- as_target(x)
  if (length(target$improper) > 0) {
    improper <- target$improper
    abort("{.arg models} must have proper priors; in a {.cls brmsfit} those of {.field {improper}} are improper.")
  }
  folder <- if (!is.null(run$checkpoint)) file.path(run$checkpoint, run_name("prior", index))
  as_brmsfit(smc(target, seed = run$seed, checkpoint = folder, progress = FALSE))
}
