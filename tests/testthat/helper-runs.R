# Small runs, and what is said of them in several files.

# A standard normal in d dimensions: its log evidence is d / 2 log(2 pi).
normal_density <- function(x) -sum(x^2) / 2
normal_gradient <- function(x) -x

normal_target <- function(dim = 2, ...) {
  target_function(normal_density, dim, gradient = normal_gradient, ...)
}

# The paper's method: one adapting run, and with smc() one final run.
smc_plain <- function(...) {
  smc(..., rounds = 0, whiten = FALSE, islands = 1)
}

adapt_plain <- function(...) smc_adapt(..., rounds = 0, whiten = FALSE)

# A run too small to be good, and quick.
quick_smc <- function(target, ..., kernel = kernel_lmc(), seed = 1) {
  smc_plain(target, ..., n_particles = 16, n_steps = 3, kernel = kernel, seed = seed)
}

# Step sizes given, so that nothing is tuned: n_steps + 1 calls.
quick_run <- function(target, ..., step_size = 0.5) {
  quick_smc(target, ..., kernel = kernel_lmc(step_size))
}

# All of a fit that the seed governs.
without_time <- function(fit) {
  fit$runs$seconds <- NULL
  fit$islands$seconds <- NULL
  fit
}

catch <- function(code) tryCatch(code, error = identity)

expect_usable_session <- function() {
  expect_true(is.finite(quick_run(target_funnel(2))$log_z))
}
