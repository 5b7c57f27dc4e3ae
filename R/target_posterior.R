# Posteriors from a likelihood and a prior.

#' A target from a likelihood and a prior
#'
#' The posterior of a Bayesian model: its log density is `log_likelihood(x) + log_prior(x)`. If the prior is normalised
#' and the likelihood has all its constants, `log_z` of [smc()] is the log evidence (log marginal likelihood) of the
#' model. There is no argument for data: the functions use variables of the environment in which they were defined.
#'
#' Each part has its own gradient, in any of the forms of [target_function()]. A part without one is differentiated by
#' central differences, with `2 dim` further calls of this part alone, and a message says so.
#'
#' @param log_likelihood,log_prior functions: the log likelihood, and the log density of the prior. Each takes a numeric
#'   vector of length `dim` and returns a number or, with `vectorized = TRUE`, takes an `n x dim` matrix with one point
#'   per row and returns `n` numbers. Both are called at all points. The values may have the gradient in their attribute
#'   `"gradient"`.
#' @param dim the dimension (positive integer).
#' @param gradient the gradients: a list of the functions `likelihood` and `prior`, or of one of them; or NULL. Each is
#'   a function of the same argument that returns a numeric vector of length `dim` (vectorised: an `n x dim` matrix).
#' @param vectorized whether all the functions take all points at once (TRUE or FALSE).
#' @param names,lower,upper,types,prior,response,nobs names, bounds and types of the variables, the prior and the
#'   observations, as in [target_function()].
#' @return A target: an object of class `smc_target`.
#' @inheritSection target_function Errors
#' @seealso [reference_function()], for a path that starts from the prior.
#' @examples
#' # seven successes in ten trials, and a beta prior; the log evidence is
#' lchoose(10, 7) + lbeta(9, 5) - lbeta(2, 2)
#' target <- target_posterior(
#'   log_likelihood = function(p) dbinom(7, 10, p, log = TRUE),
#'   log_prior = function(p) dbeta(p, 2, 2, log = TRUE),
#'   dim = 1,
#'   gradient = list(
#'     likelihood = function(p) 7 / p - 3 / (1 - p),
#'     prior = function(p) 1 / p - 1 / (1 - p)
#'   ),
#'   vectorized = TRUE, names = "p", lower = 0, upper = 1
#' )
#' target
#' smc(target, n_steps = 4, n_particles = 32, rounds = 1, seed = 1)
#' @export
target_posterior <- function(
  log_likelihood, log_prior, dim, gradient = NULL, vectorized = FALSE, names = NULL, lower = -Inf, upper = Inf,
  types = NULL, prior = NULL, response = NULL, nobs = NULL
) {
  gradient <- check_gradients(gradient)
  sum_target(
    list(
      new_term(log_likelihood, gradient$likelihood, "log_likelihood", "gradient$likelihood"),
      new_term(log_prior, gradient$prior, "log_prior", "gradient$prior")
    ),
    dim, vectorized, list(names = names, lower = lower, upper = upper, types = types),
    prior, observations(response, nobs), "posterior of R functions"
  )
}

# The list of gradients, or an error; new_term() checks its elements.
check_gradients <- function(gradient) {
  is_of_parts <- is.list(gradient) && rlang::is_dictionaryish(gradient) &&
    all(names(gradient) %in% c("likelihood", "prior"))
  if (!is.null(gradient) && !is_of_parts) {
    abort_argument(gradient, "gradient", "NULL, or a list of the functions `likelihood` and `prior` or of one of them")
  }
  gradient
}
