# smc_append(): the fit of a model with more data, and the predictive evidence of these.

#' Add data to a fit
#'
#' Fits a model to old data y1 and new data y2 together, starting from its fit to y1, and returns the log predictive
#' evidence of the new data as well: log p(y2 | y1).
#'
#' The target with all data is fitted by `smc(target, reference = fit)`, see [smc_rounds], section From another fit. The
#' log predictive evidence is the difference of the two log evidences, and its squared error is the sum of theirs. The
#' evidence of all data does not depend on how they were divided into batches, and errors do not accumulate over
#' batches: log p(y1) and log p(y2 | y1) add up to log p(y1, y2), and [sum()][log_evidence] of the two has only the
#' error of the latter.
#'
#' The constant of an improper prior cancels from log p(y2 | y1), as long as the posterior given y1 is proper.
#'
#' @param fit a fit of [smc()] or `smc_append()`.
#' @param target the same model with the old and the new data, as in [smc()].
#' @param ... further arguments of [smc()], such as `precision`, except `reference`.
#' @param seed as in [smc()], but another one than that of `fit`.
#' @return A fit of all data, as [smc()] returns it, with the log predictive evidence as `predictive`, a number of
#'   class `log_evidence` with its `std_error` (see [log_evidence()]).
#' @section Errors: Of class `autosmc_error_input` when an argument is not what it should be.
#' @seealso `update(fit, target = )`, which fits a new target from the beginning.
#' @examples
#' # observations of a mean with a standard normal prior
#' y <- c(0.4, 1.2, -0.3, 0.9, 1.5)
#' model <- function(y) {
#'   target_function(
#'     function(mu) dnorm(mu, log = TRUE) + rowSums(dnorm(outer(c(mu), y, "-"), log = TRUE)),
#'     dim = 1, gradient = function(mu) sum(y) - length(y) * mu - mu, vectorized = TRUE, names = "mu"
#'   )
#' }
#' first <- smc(model(y[1:3]), n_particles = 128, seed = 1)
#' all <- smc_append(first, model(y), n_particles = 128, seed = 2)
#' all$predictive
#' sum(log_evidence(first), all$predictive)
#' @export
smc_append <- function(fit, target, ..., seed = NULL) {
  call <- call_of("smc_append", match.call())
  check_class(fit, "fit", "smc_fit", "smc()")
  check_no_reference(...)
  all <- smc(target, ..., reference = fit, seed = seed)
  before <- log_evidence(fit)
  less <- new_log_evidence(-as.numeric(before), lapply(attr(before, "parts"), `-`))
  all$predictive <- sum(log_evidence(all), less)
  all$call <- call
  all
}
