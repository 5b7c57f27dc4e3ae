# A fit again and again, with other seeds.

#' Repeat the unbiased run of a fit
#'
#' Runs the sampler again and again with the schedule and the reference of a fit
#' and with fresh randomness, to see how its estimates scatter.
#'
#' @param fit a fit of [smc()], [smc_adapt()] or [smc_run()].
#' @param n number of runs (positive integer).
#' @inheritParams smc
#' @return A data frame with a row a run: `replicate`, `log_z`, `ess` (of the final particles), `barrier`,
#'   `n_target_evals` and `seconds`. A run that loses all its particles is an estimate of zero: its `log_z` is -Inf and
#'   its `ess` 0, its `barrier` and `seconds` are NA.
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
