# Targets that are R functions.

#' A target from R functions
#'
#' @param log_density a function: the log density, up to a constant that is what [smc()] estimates. Of a numeric vector
#'   of length `dim`, with a number as its value; or with `vectorized = TRUE`, of an `n x dim` matrix with a row a
#'   point, with `n` numbers as its value. `NaN` and `-Inf` are allowed and mean that the point is impossible; so do
#'   numbers of 1e15 and more, and of -1e15 and less, which have no digits left behind the point: subtract a constant
#'   from such a density. The value may carry the gradient in its attribute `"gradient"`, as the functions made by
#'   [stats::deriv()] do.
#' @param dim the dimension (whole number, at most 10 million); by default as many as there are `names`. 0 is for a
#'   model without parameters, whose evidence is the value of the function (see [smc()]).
#' @param gradient a function of the same argument: the gradient, a numeric vector of length `dim` (vectorised: an
#'   `n x dim` matrix); or NULL. Without a gradient here and in the attribute, central differences are used, at `2 dim`
#'   further calls an evaluation, and a message says so once a run. Their step is 6e-6 of each variable.
#' @param vectorized whether the functions take all points at once (TRUE or
#'   FALSE). Much faster, since R's overhead is paid once and not once a point.
#' @param names names of the variables (character vector of length `dim`, no two the same, and none empty or the name of
#'   a column of draws, such as `.weight` and `.draw`); NULL for `x1`, `x2`, .... They are the names of the vector, or
#'   of the matrix's columns, that the functions are given.
#' @param lower,upper bounds of the variables: a number for all of them, or a numeric vector
#'   of length `dim`, with `-Inf` and `Inf` for none; or a named vector, such as
#'   `c(sigma = 0)`, of those that are bounded. See the section Bounds.
#' @param types NULL; or a list such as `list(w = "simplex", R = "correlation")`, with the types of variables of several
#'   elements. See the section Types.
#' @param prior NULL; or the prior, a list of the functions `log_density`, normalised, and `sample`, of the number of
#'   draws, as in [reference_function()]. It is a part of the log density, which stays as it is; for what takes a
#'   prior by itself, as `reference = "prior"` of [smc()] does.
#' @param response,nobs the observations (numeric vector, factor, matrix or data frame) and how many there are (whole
#'   number); NULL for not known. They say what the target is about, and are used for nothing else:
#'   [compare_evidence()] and its like warn of models of different observations.
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
#'   *Angles.* If the density has the same value at both bounds of a variable, whatever the others
#'   are, [smc()] treats it as an angle, which continues from one bound to the other. If most of the
#'   posterior lies next to these bounds, the unconstrained scale is the logit of the place between
#'   two points on the far side of the circle instead. If angles depend on each other, as two do of which mainly
#'   the sum is known, the sampler moves integer combinations of them that depend less on each other: the sum,
#'   and one of the two. The functions, the draws and `log_z` are not affected.
#'
#'   *Truncated normal variables.* A variable with two bounds may be normal given the others, as a coefficient with a
#'   uniform prior is in a linear model. If [smc()] finds this, and no worse a normal approximation of the target, the
#'   variable keeps its own scale, in quarters of the width from the middle, and the target ends at the bounds: on the
#'   logit scale it would have long thin tails.
#'
#'   `fit$maps` says where either was found, and a reference taken from such a fit has the same scale in [smc_run()].
#'   Neither is looked for without a scout or with a given `reference`, nor the second with a given `kernel`.
#'
#'   *Half-normal and exponential variables.* On the logarithmic scale their density falls off steeply on the side away
#'   from the bound. There [kernel_lmc()], and [kernel_klmc()] with steps as long as they are tuned, lose a few percent
#'   of the evidence: see section Kernels of [smc_rounds]. The functions may also be called with values so large that
#'   they warn of `NaNs produced`; such points count as impossible.
#' @section Types: A variable `w` of several elements, which `names` has as `w[1]`, `w[2]` and so on, may have a type:
#'
#'   * `"simplex"`: positive numbers that sum to 1;
#'   * `"ordered"`: numbers that increase, and `"positive_ordered"`, which are positive, too;
#'   * `"correlation"`, `"covariance"`: all elements of such a matrix, `R[1,1]`, `R[2,1]` and so on;
#'   * `"cholesky_correlation"`, `"cholesky_covariance"`: all elements of its lower triangular factor, with the zeros;
#'   * `"unit_vector"`: numbers whose squares sum to 1.
#'
#'   The functions are given all elements, the draws have them, and `dim` and `names` count them. The sampler moves
#'   fewer unconstrained variables, as Stan does, and adds the log Jacobian: so `dim` of the target, and
#'   `reference_gaussian()`, are about these. The density is that of the first K - 1 of the K elements of a simplex,
#'   as that of a Dirichlet distribution is; of the correlations below the diagonal; of the covariances on and below it;
#'   of the elements of a Cholesky factor that are free; and by the surface of the sphere. A prior of independent
#'   elements is not normalised for an order: it lacks the factor K!, `lfactorial(K)` on the logarithmic scale.
#'   Gradients are by all elements, as if each could be changed alone.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong. In a run, of class `autosmc_error_target`
#'   when a function returns a value of a wrong type or shape, or raises an error itself: the error names the step, and
#'   the function's own error is its `parent`. Where a function fails at its first call, the error says what it is
#'   called with; later, at which point it failed. Let a function return `-Inf` if the density cannot be computed, for
#'   instance since a matrix is not positive definite.
#' @section A single point: With `vectorized = TRUE` the functions are also given matrices of one row. R makes vectors
#'   of those easily, in `x[i, ]` and in what [apply()] and [sapply()] return; `drop = FALSE` or [matrix()] prevents
#'   that. An error at a single point says so, and has the function's own error as its `parent`.
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
#' # the gradient by symbolic differentiation
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
        "i" = "It must be a positive whole number: how many variables
          {.arg {terms[[1]]$arg}} has. Their {.arg names} tell it, too."
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
  tell_uniform(target)
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

# A density with a hard edge costs much where the variable has no bound there.
tell_uniform <- function(target) {
  n_uniform <- sum(vapply(target$terms, function(term) sum(all.names(body(term$log_density)) == "dunif"), 0))
  if (n_uniform > sum(is.finite(target$lower) & is.finite(target$upper))) {
    inform("bounds", c(
      "i" = "The density has a {.fn dunif}: give the ends of the uniform distribution as {.arg lower} and
        {.arg upper} too. The sampler then keeps between them."
    ))
  }
}

# One of the user's log densities with its gradient, or NULL, and the names of the arguments that they were given in.
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
      "A function has no {.arg data} of its own here: it is called with the variables alone.",
      "i" = "It sees the data that are around where it was written. {.fn target_rtmb} takes {.arg data}, for a
        function of parameters and data, and {.fn target_stan} for a Stan program."
    ))
  }
  check_dots_empty(...)
  target_function(x, dim, gradient, vectorized, names, lower, upper, types, prior, response, nobs)
}
