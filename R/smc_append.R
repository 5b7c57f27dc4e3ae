# More data for a model that has been fitted.

#' Add data to a fit
#'
#' The fit of a target with more data, which starts from the fit of the same model with fewer, and the predictive
#' evidence of what is new: log p(y2 | y1), the log density of the new data given the old.
#'
#' The target with all data is fitted by `smc(target, reference = fit)`, see [smc_rounds], section From another fit. The
#' predictive evidence is the difference of the two log evidences, and its squared error the sum of theirs. So the
#' evidence of all data does not depend on how they were divided, and errors do not add up from batch to batch. The sum
#' of log p(y1) and log p(y2 | y1) is log p(y1, y2), and [sum()][log_evidence] of the two has the error of this alone.
#'
#' An improper prior leaves log p(y2 | y1) as it is, as long as the posterior given y1 is proper.
#'
#' @param fit a fit of [smc()] or `smc_append()`.
#' @param target the same model with the new data and the old, as in [smc()].
#' @param ... further arguments of [smc()], such as `precision`.
#' @param seed as in [smc()], but not that of `fit`.
#' @return A fit of all data, as [smc()] returns it, with the log predictive evidence as `predictive`, a number of
#'   class `log_evidence` with its `std_error` (see [log_evidence()]).
#' @section Errors: Of class `autosmc_error_input` when an argument is not what it should be.
#' @seealso `update(fit, target = )`, which does not start from the fit.
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
