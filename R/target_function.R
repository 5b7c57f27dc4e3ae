# Targets that are R functions, possibly a sum of several, such as a likelihood and a prior.

#' A target from R functions
#'
#' @param log_density a function that returns the log density; its normalising constant is what [smc()] estimates. It
#'   takes a numeric vector of length `dim` and returns a number or, with `vectorized = TRUE`, takes an `n x dim` matrix
#'   with one point per row and returns `n` numbers. `NaN` and `-Inf` mean that the point is impossible. So do numbers
#'   of 1e15 and more, and of -1e15 and less, whose decimals are lost to rounding: subtract a constant from such a
#'   density. The value may have the gradient in its attribute `"gradient"`, as for functions made by [stats::deriv()].
#' @param dim the dimension (whole number, at most 10 million); by default the number of `names`. Use 0 for a model
#'   without parameters, whose evidence is the value of the function (see [smc()]).
#' @param gradient a function of the same argument that returns the gradient, a numeric vector of length `dim`
#'   (vectorised: an `n x dim` matrix); or NULL. Without a gradient here or in the attribute, central differences are
#'   used, which take `2 dim` further calls per evaluation; a message says so once per run. Their step is 6e-6 of each
#'   variable.
#' @param vectorized whether the functions take all points at once (TRUE or FALSE), which is much faster.
#' @param names names of the variables (character vector of length `dim`); NULL for `x1`, `x2`, .... They must be unique
#'   and not empty, and must not be names of columns of draws, such as `.weight` and `.draw`. The functions receive a
#'   vector, or a matrix with columns, of these names.
#' @param lower,upper bounds of the variables: a number for all of them, or a numeric vector
#'   of length `dim`, with `-Inf` and `Inf` for none; or a named vector, such as
#'   `c(sigma = 0)`, of those that are bounded. See the section Bounds.
#' @param types NULL; or a list such as `list(w = "simplex", R = "correlation")`, with the types of variables of several
#'   elements. See the section Types.
#' @param prior NULL; or the prior, a list of the function `log_density`, normalised, and the function `sample` of the
#'   number of draws, as in [reference_function()]. The log density of the target must contain the prior already. This
#'   argument serves what needs the prior alone, such as `reference = "prior"` of [smc()].
#' @param response,nobs the observations (numeric vector, factor, matrix or data frame) and their number (whole number);
#'   NULL if not known. They are used only to identify the data: [compare_evidence()] and related functions warn if
#'   models have different observations.
#' @return A target: an object of class `smc_target`.
#' @section Bounds: The sampler moves a bounded variable on an unconstrained scale: with one bound, as the logarithm of
#'   its distance from it, `log(x - lower)` or `log(upper - x)`; with two, as the logit
#'   `log((x - lower) / (upper - x))`. The log Jacobian is added to the log density, and its derivative to the gradient.
#'   The functions, the draws and `log_z` are on the scale of `x`. Only [reference_gaussian()] and [reference_student()]
#'   are on the unconstrained scale.
#'
#'   The functions are given points strictly inside the bounds: a point that rounding would
#'   put on a bound becomes the nearest number inside. Floating-point numbers are densest
#'   around 0, so a variable with much of its mass next to a bound is best bounded by 0.
#'
#'   *Angles.* If the density has the same value at both bounds of a variable, for all values of the others, [smc()]
#'   treats the variable as an angle, so that its two bounds are the same point of a circle. If most of the posterior
#'   lies near this point, the circle is cut on the opposite side instead, and the unconstrained scale is the logit of
#'   the position between the two sides of the cut. If angles depend on each other, for instance if the data determine
#'   mainly the sum of two, the sampler moves integer combinations that depend less on each other, such as the sum and
#'   one of the two. The functions, the draws and `log_z` are not affected.
#'
#'   *Truncated normal variables.* A variable with two bounds may be normal given the others, such as a coefficient with
#'   a uniform prior in a linear model. If [smc()] finds this, and the normal approximation of the target is not worse,
#'   the variable keeps its own scale, centred at the midpoint of the bounds in units of a quarter of the width, and the
#'   target is truncated at the bounds. On the logit scale it would have long thin tails.
#'
#'   `fit$maps` says whether either was found, and a reference taken from such a fit has the same scale in [smc_run()].
#'   Without a scout, or with a given `reference`, [smc()] looks for neither; with a given `kernel`, not for truncated
#'   normal variables.
#'
#'   *Half-normal and exponential variables.* On the logarithmic scale their density falls off steeply on the side away
#'   from the bound. There [kernel_lmc()], and [kernel_klmc()] at its tuned step sizes, lose a few percent of the
#'   evidence: see section Kernels of [smc_rounds]. The functions may also be called with values so large that they warn
#'   of `NaNs produced`; such points count as impossible.
#' @section Types: A variable `w` of several elements, which `names` has as `w[1]`, `w[2]` and so on, may have a type:
#'
#'   * `"simplex"`: positive numbers that sum to 1;
#'   * `"ordered"`: numbers that increase, and `"positive_ordered"`, which are positive, too;
#'   * `"correlation"`, `"covariance"`: all elements of such a matrix, `R[1,1]`, `R[2,1]` and so on;
#'   * `"cholesky_correlation"`, `"cholesky_covariance"`: all elements of its lower triangular factor, with the zeros;
#'   * `"unit_vector"`: numbers whose squares sum to 1.
#'
#'   The functions receive all elements, draws contain all elements, and the arguments `dim` and `names` count them. The
#'   sampler moves fewer, unconstrained variables, as Stan does, and adds the log Jacobian. The element `dim` of the
#'   target, and `reference_gaussian()`, refer to the unconstrained variables. The density is with respect to the first
#'   K - 1 of the K elements of a simplex, as for a Dirichlet distribution; the correlations below the diagonal; the
#'   covariances on and below the diagonal; the free elements of a Cholesky factor; and the surface of the sphere. For
#'   ordered elements a prior of K independent ones is not normalised: it lacks the factor K!, or `lfactorial(K)` on the
#'   logarithmic scale. Gradients are with respect to all elements, as if each could change alone.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong. In a run, of class `autosmc_error_target`
#'   when a function returns a value of a wrong type or shape, or raises an error itself: the error names the step, and
#'   the function's own error is its `parent`. If a function fails at its first call, the error says how it was called;
#'   if later, at which point it failed. Let a function return `-Inf` if the density cannot be computed, for instance
#'   because a matrix is not positive definite.
#' @section A single point: With `vectorized = TRUE` the functions are also called with matrices of one row. R may turn
#'   these into vectors, in `x[i, ]` and in the values of [apply()] and [sapply()]; `drop = FALSE` or [matrix()]
#'   prevents this. An error at a single point says so, and has the function's own error as its `parent`.
#' @seealso [target_posterior()] for a likelihood and a prior; [target_native()] for compiled routines.
#' @examples
#' # a Gaussian, one point at a time; its log evidence is 3 / 2 * log(2 * pi) = 2.757
#' log_density <- function(x) -sum(x^2) / 2
#' target <- target_function(log_density, dim = 3, gradient = function(x) -x)
#' target
#' smc(target, n_steps = 4, n_particles = 16, rounds = 1, seed = 1)
#'
#' # a positive variable, all points at once; the evidence is gamma(3) = 2
#' target <- target_function(
#'   function(x) 2 * log(x) - x,
#'   dim = 1, gradient = function(x) 2 / x - 1, lower = 0, vectorized = TRUE
#' )
#' exp(smc(target, n_steps = 4, n_particles = 64, rounds = 1, seed = 1)$log_z)
#'
#' # a gradient by symbolic differentiation
#' banana <- deriv(~ -x^2 / 2 - (y - x^2)^2 / 2, c("x", "y"), function(x, y) NULL)
#' target_function(function(p) banana(p[, "x"], p[, "y"]), names = c("x", "y"), vectorized = TRUE)
#' @export
target_function <- function(
  log_density, dim, gradient = NULL, vectorized = FALSE, names = NULL, lower = -Inf, upper = Inf, types = NULL,
  prior = NULL, response = NULL, nobs = NULL
) {
  sum_target(
    list(new_term(log_density, gradient, "log_density", "gradient")),
    dim, vectorized, list(names = names, lower = lower, upper = upper, types = types),
    prior, observations(response, nobs), "R function"
  )
}

# A target whose log density is the sum of `terms`. variables: list(names, lower, upper, types), as given.
sum_target <- function(terms, dim, vectorized, variables, prior, observed, label) {
  if (missing(dim)) {
    dim <- length(variables$names)
    if (dim == 0) {
      abort(c(
        "{.arg dim} is missing.",
        "i" = "Give the number of variables of {.arg {terms[[1]]$arg}} (a positive whole number),
          or their {.arg names}."
      ))
    }
  }
  dim <- check_n(dim, "dim", min = 0)
  check_flag(vectorized, "vectorized")
  target <- new_target(
    dim, variables$names, if (vectorized) paste("vectorised", label) else label,
    terms = terms, vectorized = vectorized, observed = observed, prior = check_prior(prior),
    lower = variables$lower, upper = variables$upper, types = variables$types, class = "smc_target_function"
  )
  suggest_bounds(target)
  target
}

check_prior <- function(prior) {
  if (is.null(prior)) {
    return(NULL)
  }
  if (!is.list(prior) || !setequal(names(prior), c("log_density", "sample"))) {
    abort_argument(prior, "prior", "NULL, or a list of the functions `log_density` and `sample`")
  }
  Map(check_function, prior, paste0("prior$", names(prior)))
}

# A density that jumps to zero where a variable has no bound is expensive to sample.
suggest_bounds <- function(target) {
  n_uniform <- sum(vapply(target$terms, function(term) sum(all.names(body(term$log_density)) == "dunif"), 0))
  if (n_uniform > sum(is.finite(target$lower) & is.finite(target$upper))) {
    inform("bounds", c(
      "i" = "The density calls {.fn dunif}: give the ends of the uniform distribution as {.arg lower} and
        {.arg upper} too. The sampler then stays between them."
    ))
  }
}

# One of the user's log densities with its gradient (or NULL), and the names of the arguments for error messages.
new_term <- function(log_density, gradient, arg, gradient_arg) {
  list(
    log_density = check_function(log_density, arg),
    gradient = check_function(gradient, gradient_arg, or_null = TRUE), arg = arg, gradient_arg = gradient_arg
  )
}

#' @export
evaluation.smc_target_function <- function(target) {
  list(evaluate = sum_evaluator(terms_of(target), target$types))
}

#' @export
as_target.function <- function(
  x, ..., dim, gradient = NULL, vectorized = FALSE, names = NULL, lower = -Inf, upper = Inf, types = NULL,
  prior = NULL, response = NULL, nobs = NULL
) {
  if ("data" %in% ...names()) {
    abort(c(
      "A function is called with the variables alone, so there is no argument {.arg data}.",
      "i" = "The function can use the variables of the environment in which it was defined. {.fn target_rtmb} takes
        {.arg data} for a function of parameters and data, and {.fn target_stan} for a Stan program."
    ))
  }
  check_dots_empty(...)
  target_function(x, dim, gradient, vectorized, names, lower, upper, types, prior, response, nobs)
}
