# Reference distributions, at temperature 0 of the path, and their constructors. They have the class `smc_reference` and
# one of the classes `smc_reference_gaussian`, `smc_reference_student`, `smc_reference_function` and
# `smc_reference_mixture`, of which only the scout and the fits make the last.

#' Reference: a normal distribution
#'
#' The distribution that particles start from, at temperature 0. A reference
#' close to the target makes for an easier path. The kernels move in coordinates
#' in which the reference is standard normal, so `sd` or `cov` is also the scale
#' on which they see each variable.
#'
#' Where a target has bounds, this is a distribution on the unconstrained scale,
#' on which a bounded variable is a logarithm or a logit (see
#' [target_function()]).
#'
#' @param mean mean (a number, or a numeric vector of length `dim`).
#' @param sd standard deviation (positive, a number or a vector of length `dim`).
#' @param cov covariance, instead of `sd` (`dim x dim` numeric matrix, symmetric
#'   and positive definite); NULL for independent variables.
#' @param chol factor of the covariance, instead of `sd` or `cov`: a lower triangular matrix
#'   `L` with a positive diagonal, where the covariance is `L L'` (so `t(chol(cov))`).
#' @return An object of class `smc_reference`.
#' @seealso [reference_laplace()] for the normal distribution at a mode;
#'   [reference_student()] for heavier tails; [reference_function()] for any other
#'   distribution.
#' @examples
#' target <- target_gaussian(2, mean = c(100, 0), sd = c(10, 1))
#' reference <- reference_gaussian(mean = c(90, 0), sd = c(20, 1))
#' smc(target, reference = reference, n_steps = 8, n_particles = 128, seed = 1)
#'
#' reference_gaussian(mean = c(90, 0), cov = rbind(c(400, 5), c(5, 1)))
#' @export
reference_gaussian <- function(mean = 0, sd = 1, cov = NULL, chol = NULL) {
  structure(
    location_and_scale(mean, sd, cov, chol, !missing(sd)),
    class = c("smc_reference_gaussian", "smc_reference")
  )
}

#' Reference: a multivariate Student t distribution
#'
#' A reference with heavier tails than [reference_gaussian()], for targets that have
#' them too. From a normal reference the tails of such a target are reached by few
#' particles, which then carry most of the weight: the estimate of `log_z` is low, and
#' its error looks smaller than it is.
#'
#' The density at `x` is proportional to
#' `(1 + (x - mean)' S^-1 (x - mean) / df)^(-(df + dim) / 2)`, where `S` is `cov`, or the
#' diagonal matrix of `sd^2`. So `sd` and `cov` are scales: the variance is
#' `S df / (df - 2)` where `df` is above 2, and infinite otherwise. The kernels move in
#' coordinates in which `S` is the identity.
#'
#' Where a target has bounds, this is a distribution on the unconstrained scale (see
#' [target_function()]).
#'
#' @param df degrees of freedom (number of at least 0.1): 1 for a Cauchy distribution; the
#'   larger, the closer to normal.
#' @param mean location (a number, or a numeric vector of length `dim`): the mean, where
#'   `df` is above 1.
#' @param sd scale (positive, a number or a vector of length `dim`).
#' @param cov scale matrix, instead of `sd` (`dim x dim` numeric matrix, symmetric and
#'   positive definite); NULL for a diagonal one.
#' @return An object of class `smc_reference`.
#' @section Later rounds, and kernels: With `whiten` in [smc()] it is the first round that starts here; the later ones
#'   start from a distribution that is fitted to the particles, unless that does worse. For a path that stays with this
#'   reference, `whiten = FALSE`. With a reference whose tails are heavier than normal, [kernel_lmc()] needs
#'   `first_backward = "independent"`: its weights have no finite variance otherwise.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong.
#' @source Kotz and Nadarajah (2004), *Multivariate t distributions and their
#'   applications*, section 1.1. Draws are normal ones divided by the square root of a
#'   chi-squared variable over `df`, which is made by the method of Marsaglia and Tsang
#'   (2000), *A simple method for generating gamma variables*.
#' @seealso [reference_gaussian()]; [reference_function()] for any other distribution.
#' @examples
#' # three Cauchy variables; log Z is 3 log(pi)
#' target <- target_function(
#'   function(x) -rowSums(log1p(x^2)),
#'   dim = 3, gradient = function(x) -2 * x / (1 + x^2), vectorized = TRUE
#' )
#' smc(target,
#'   reference = reference_student(df = 1, sd = 2), kernel = kernel_mala(),
#'   n_steps = 8, n_particles = 128, whiten = FALSE, seed = 1
#' )
#' @export
reference_student <- function(df, mean = 0, sd = 1, cov = NULL) {
  check_given(df, "df")
  structure(
    c(
      location_and_scale(mean, sd, cov, NULL, !missing(sd)),
      list(df = check_number(df, "df", min = least_df))
    ),
    class = c("smc_reference_student", "smc_reference")
  )
}

# Least degrees of freedom: with fewer, draws overflow. Squares above 1e308 have a probability of 4e-16 for 0.1, and of
# 3 % for 0.01.
least_df <- 0.1

location_and_scale <- function(mean, sd, cov, chol, sd_given) {
  given <- c(sd = sd_given, cov = !is.null(cov), chol = !is.null(chol))
  if (sum(given) > 1) {
    given <- names(given)[given]
    abort("Only one of {.arg {given}} may be given.")
  }
  if (!is.null(cov)) {
    chol <- check_covariance(cov)
  } else if (!is.null(chol)) {
    chol <- check_factor(chol)
  }
  list(
    mean = check_numeric(mean, "mean"),
    sd = if (is.null(chol)) check_positive(sd, "sd"),
    chol = chol
  )
}

check_factor <- function(chol) {
  expected <- "a lower triangular numeric matrix with a positive diagonal"
  if (!is.matrix(chol)) {
    abort_argument(chol, "chol", expected)
  }
  if (!is_square(chol) || any(diag(chol) <= 0) || any(chol[upper.tri(chol)] != 0)) {
    abort("{.arg chol} must be {expected}.")
  }
  unname(chol)
}

# The lower triangular factor L of cov = L L'.
check_covariance <- function(cov) {
  expected <- "a symmetric, positive definite numeric matrix"
  if (!is_square(cov)) {
    abort_argument(cov, "cov", expected)
  }
  upper <- factor_or_null(cov)
  if (is.null(upper) || !isSymmetric(unname(cov))) {
    abort("{.arg cov} must be {expected}.")
  }
  t(unname(upper))
}

is_square <- function(x) is.matrix(x) && is.numeric(x) && nrow(x) == ncol(x) && all(is.finite(x))

#' @export
print.smc_reference <- function(x, ...) {
  said <- if (is_function_reference(x)) {
    if (x$vectorized) "vectorised R functions" else "R functions"
  } else {
    kind <- if (is_student_reference(x)) paste("Student t, df", format(x$df)) else "normal"
    paste(kind, format_location_and_scale(x), sep = ", ")
  }
  cat("<smc_reference> ", said, "\n", sep = "")
  invisible(x)
}

format_location_and_scale <- function(reference) {
  show <- function(v) {
    if (length(v) == 1) format(v) else sprintf("%d values", length(v))
  }
  scale <- if (is.null(reference$chol)) {
    paste("sd", show(reference$sd))
  } else {
    sprintf("a %d x %d covariance", nrow(reference$chol), nrow(reference$chol))
  }
  n_normal <- length(unlist(lapply(reference$changes, `[[`, "order")))
  paste0(
    "mean ", show(reference$mean), ", ", scale,
    if (length(reference$maps) > 0) sprintf(", %d maps", length(reference$maps)),
    if (n_normal > 0) sprintf(", %d coordinates normal given the others", n_normal)
  )
}

#' Reference: any distribution, from R functions
#'
#' A reference that is not Gaussian. With the prior of a model as the reference,
#' the path tempers the likelihood:
#' `reference^(1 - lambda) * target^lambda` is
#' `prior * likelihood^lambda`.
#'
#' All functions are on the scale of the target's own functions: where it has
#' bounds, they give, and are given, values inside of them.
#'
#' @param sample a function of the number of draws, `n`: a numeric `n x dim`
#'   matrix of independent draws, a row a draw (for one variable, `n` numbers will
#'   do), made with R's generator. It is run with a seed that belongs to the run,
#'   and the state of the generator is put back after it.
#' @param log_density a function: the log density of these draws, as that of
#'   [target_function()], but *normalised*: otherwise `log_z` is wrong by the logarithm of its
#'   integral. It should be finite wherever the density of the target is positive.
#' @param gradient the gradient of `log_density`, as that of [target_function()]:
#'   a function, or NULL for the attribute `"gradient"` or central differences.
#' @param vectorized whether `log_density` and `gradient` take all points at once
#'   (TRUE or FALSE).
#' @return An object of class `smc_reference`.
#' @inheritSection reference_student Later rounds, and kernels
#' @section Cost: The functions are called wherever the target is, which does not
#'   count as an evaluation of the target.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong. In
#'   a run, of class `autosmc_error_target` when a function returns what it should
#'   not, or raises an error itself, which is then the `parent`; and when draws
#'   are not finite or not inside the target's bounds.
#' @seealso [reference_gaussian()] and [reference_student()], which are faster;
#'   [target_posterior()].
#' @examples
#' # 7 successes in 10 trials, with a Beta(2, 2) prior for their probability
#' log_likelihood <- function(p) dbinom(7, 10, p, log = TRUE)
#' log_prior <- function(p) dbeta(p, 2, 2, log = TRUE)
#' target <- target_posterior(
#'   log_likelihood, log_prior,
#'   dim = 1,
#'   gradient = list(
#'     likelihood = function(p) 7 / p - 3 / (1 - p),
#'     prior = function(p) 1 / p - 1 / (1 - p)
#'   ),
#'   vectorized = TRUE, names = "p", lower = 0, upper = 1
#' )
#' prior <- reference_function(
#'   sample = function(n) rbeta(n, 2, 2),
#'   log_density = log_prior,
#'   gradient = function(p) 1 / p - 1 / (1 - p),
#'   vectorized = TRUE
#' )
#' smc(target, reference = prior, n_steps = 8, n_particles = 128, seed = 1)$log_z
#' lbeta(2 + 7, 2 + 3) - lbeta(2, 2) + lchoose(10, 7) # the same, exactly
#' @export
reference_function <- function(
  sample,
  log_density,
  gradient = NULL,
  vectorized = FALSE
) {
  structure(
    list(
      sample = check_function(sample, "sample"),
      log_density = check_function(log_density, "log_density"),
      gradient = check_function(gradient, "gradient", or_null = TRUE),
      vectorized = check_flag(vectorized, "vectorized")
    ),
    class = c("smc_reference_function", "smc_reference")
  )
}

# draws -----------------------------------------------------------------------

# A seed for R's generator, from -(2^31 - 1) to 2^31 - 1, that differs between the keys of a seed: the factor has no
# divisor in common with 2^32 - 1.
seed_of_run <- function(seed, key) {
  (seed + 1299709 * key) %% (2^32 - 1) - (2^31 - 1)
}

# n draws from the prior of a target, on the user's scale, a row for each.
prior_draws <- function(target, n) {
  x <- target$prior$sample(n)
  check_draws(x, n, target, "prior$sample")
  matrix(x, n)
}

check_draws <- function(x, n, target, arg = "reference$sample") {
  d <- length(user_names(target))
  shaped <- if (is.matrix(x)) identical(dim(x), c(n, d)) else d == 1 && length(x) == n
  if (!is.numeric(x) || is.object(x) || !shaped) {
    abort(
      "{.arg {arg}} must return a numeric matrix of {n} rows, one a
        draw, and {d} column{?s}; it returned {describe(x)}.",
      "target"
    )
  }
  x <- unname(to_free(target$types, matrix(as.double(x), n, d)))
  inside <- is.finite(x) & sweep(x, 2, target$lower, ">=") & sweep(x, 2, target$upper, "<=")
  if (!all(inside)) {
    worst <- which(!inside, arr.ind = TRUE)[1, ]
    abort(
      "{.arg {arg}} must return finite numbers inside the target's
        bounds; in row {worst[1]} {.field {target$names[worst[2]]}} is {format(x[worst[1], worst[2]])}.",
      "target"
    )
  }
  x
}

# kinds -------------------------------------------------------------------------

is_function_reference <- function(reference) inherits(reference, "smc_reference_function")
is_student_reference <- function(reference) inherits(reference, "smc_reference_student")
is_mixture <- function(reference) inherits(reference, "smc_reference_mixture")

is_precision <- function(map) identical(map$name, "precision")
is_moments <- function(map) identical(map$name, "moments")
