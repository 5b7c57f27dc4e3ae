# The Stan programs of the tests, compiled once, into a cache of the tests' own.

stan <- new.env()

stan_file <- function(name) test_path("stan", paste0(name, ".stan"))

# Why Stan programs cannot be compiled here (a string), or NULL.
why_no_stan <- function() {
  if (!nzchar(Sys.which("make"))) {
    return("there is no `make`")
  }
  tryCatch(
    {
      check_stan_packages()
      NULL
    },
    autosmc_error_package = function(e) conditionMessage(e)
  )
}

use_stan_cache <- function() {
  if (!is.null(stan$cache)) {
    return()
  }
  stan$before <- Sys.getenv("R_USER_CACHE_DIR", NA)
  stan$cache <- tempfile("autosmc-cache-")
  Sys.setenv(R_USER_CACHE_DIR = stan$cache)
}

leave_stan_cache <- function() {
  if (is.null(stan$cache)) {
    return()
  }
  if (is.na(stan$before)) {
    Sys.unsetenv("R_USER_CACHE_DIR")
  } else {
    Sys.setenv(R_USER_CACHE_DIR = stan$before)
  }
  unlink(stan$cache, recursive = TRUE)
  stan$cache <- NULL
}

write_file <- function(lines, fileext = "") {
  file <- tempfile("autosmc-", fileext = fileext)
  writeLines(lines, file)
  file
}

# A session that compiles a program; its output goes to the file that is returned, and ends in "done" or in an error.
compile_elsewhere <- function(program) {
  log <- tempfile("autosmc-compile-")
  code <- sprintf(
    ".libPaths(%s); autosmc:::cached_library(autosmc:::read_stan_program(%s)); message('done')",
    deparse1(.libPaths()), deparse1(normalizePath(program))
  )
  rscript <- file.path(R.home("bin"), "Rscript")
  system2(rscript, shQuote(write_file(code, ".R")), stdout = log, stderr = log, wait = FALSE)
  log
}

# The last line of a log, once there is one. `meanwhile()` is called from time to time.
wait_for <- function(log, meanwhile = function() NULL, seconds = 3600) {
  deadline <- Sys.time() + seconds
  # the other session may not have made it yet
  last <- function() if (file.exists(log)) utils::tail(readLines(log, warn = FALSE), 1)
  while (!any(grepl("^done|halted", last())) && Sys.time() < deadline) {
    meanwhile()
    Sys.sleep(0.1)
  }
  last()
}

# Data of tasks.stan.
task_data <- function(...) {
  data <- list(
    K = 1, S = 0, B = 0, N = 4, y = c(0.3, 1.9, 0.8, 1.2), X = array(1:12, c(2, 2, 3)),
    whole = c(3L, -1L, 0L, 7L), z = c(1 + 2i, 3 - 1i), increment = 0, task = 0,
    prior_only = 0
  )
  utils::modifyList(data, list(...))
}

task_target <- function(..., include = NULL) {
  target_stan(stan_file("tasks"), task_data(...), include = include)
}

# Data of kinds.stan, in which `place` is a tuple.
kinds_data <- list(place.1 = 3, place.2 = c(0.5, 1), counts = c(1L, 3L), at = c(0.5, 1.5))

kinds_target <- function(...) target_stan(stan_file("kinds"), kinds_data, ...)

# The constant that kinds.stan adds to its log density in words of old versions of Stan.
old_words <- function(counts = kinds_data$counts, at = kinds_data$at) {
  dnorm(at[1], 0, 2, log = TRUE) + sum(dpois(counts, exp(c(0.5, at[2])), log = TRUE)) + dexp(at[1], log = TRUE) +
    2 * log(3) + exp(-1 / 8) + 2 * sum(at) + pnorm(0.5, lower.tail = FALSE, log.p = TRUE)
}

# log of the evidence of y ~ N(mu, 1), mu ~ N(0, 4), and the posterior of mu.
task_posterior <- function(y = task_data()$y) {
  n <- length(y)
  variance <- 1 / (n + 1 / 4)
  mean <- variance * sum(y)
  log_z <- sum(dnorm(y, log = TRUE)) + log(variance / 4) / 2 + mean^2 / variance / 2
  list(mean = mean, sd = sqrt(variance), log_z = log_z)
}

# The log of the integral over mu and the unconstrained p, on a grid that is fine and
# wide enough for ten digits.
integrate_task <- function(target) {
  at <- task_posterior()
  mu <- at$mean + at$sd * seq(-9, 9, by = 0.05)
  u <- seq(-12, 12, by = 0.05)
  grid <- as.matrix(expand.grid(mu, u))
  log_density <- evaluate_target(target, grid, gradient = FALSE)$log_density
  largest <- max(log_density)
  largest + log(sum(exp(log_density - largest)) * at$sd * 0.05 * 0.05)
}

# Gradients against differences of the log density, at the rows of x.
expect_gradient <- function(target, x, tolerance = 1e-6) {
  width <- 1e-5
  found <- evaluate_target(target, x)$gradient
  value <- function(x) evaluate_target(target, x, gradient = FALSE)$log_density
  for (j in seq_len(ncol(x))) {
    step <- width * (col(x) == j)
    slope <- (value(x + step) - value(x - step)) / (2 * width)
    expect_equal(found[, j], slope, tolerance = tolerance)
  }
}
