# smc_replicate(): the run of a fit, repeated with fresh random numbers.

#' Repeat the unbiased run of a fit
#'
#' Runs the sampler repeatedly with the schedule and the reference of a fit and with fresh random numbers, to show the
#' variability of its estimates.
#'
#' @param fit a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param n number of runs (positive integer).
#' @inheritParams smc
#' @return A data frame with a row for each run: `replicate`, `log_z`, `ess` (of the final particles), `barrier`,
#'   `n_target_evals` and `seconds`. A run that loses all its particles estimates an evidence of 0: its `log_z` is -Inf,
#'   its `ess` is 0, and its `barrier` and `seconds` are NA.
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1),
#'   n_particles = 128, n_steps = 8, islands = 1, seed = 1
#' )
#' smc_replicate(fit, 5, seed = 2)
#' @export
smc_replicate <- function(fit, n, seed = NULL) {
  check_class(fit, "fit", "smc_fit", "smc()")
  check_version(fit, "its runs cannot be repeated")
  n <- check_n(n, "n")
  sampler <- sampler_of_fit(fit, seed)
  records <- once_each(lapply_islands(sampler, seq_len(n), as.list(fit$schedule), row_of_run))
  columns <- c("log_z", "ess", "barrier", "n_target_evals", "seconds")
  tibble::tibble(replicate = seq_len(n), bind_rows(lapply(records, `[[`, "runs"))[columns])
}
