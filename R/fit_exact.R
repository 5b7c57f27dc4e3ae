# Fits of models without parameters, whose evidence is one value of the density.

# A fit without runs. n: the number of draws of the generated quantities of a Stan program.
fit_without_variables <- function(target, n, seed, call) {
  started <- seconds_now()
  seed <- check_seed(seed)
  n <- check_count(n, "n_particles", min = 2)
  log_z <- evaluate_located(target, matrix(0, 1, 0), "final", gradient = FALSE)$log_density
  if (!is.finite(log_z)) {
    abort("The log density of a target without variables must be finite; it is {log_z}.", "degenerate")
  }
  estimate <- interval(log_z, 0, Inf)
  log_weights <- rep(-log(n), n)
  counts <- list(n_target_evals = 1, n_impossible = 0, n_calls = 1, seconds = seconds_now() - started)
  row <- c(row_of_counts("final", counts), estimate, list(biased = FALSE, n_particles = n, n_steps = 0L, islands = 1L))
  structure(
    c(
      estimate,
      list(
        sampling_error = 0,
        estimates = as_table(c(method = "exact", estimate)),
        particles = outputs_of(target, matrix(0, n, 0, dimnames = list(NULL, character())), log_weights),
        log_weights = log_weights,
        island = rep(1L, n),
        schedule = new_table(lambda = numeric(), step_size = numeric(), refresh_rate = numeric(), kernel = character()),
        steps = bind_rows(list()),
        runs = runs_of(list(row)),
        logml = log_z,
        improper = character(),
        target = target, n_particles = n, kernel = check_kernel("klmc"), reference = reference_gaussian(), seed = seed,
        call = call, session = session_facts(), seconds = seconds_now() - started
      )
    ),
    class = c("smc_fit", "bridge")
  )
}

is_exact_fit <- function(fit) fit$target$dim == 0

check_has_runs <- function(fit) {
  if (is_exact_fit(fit)) {
    abort("A model without parameters has no runs to show; see {.fn report}.")
  }
}
