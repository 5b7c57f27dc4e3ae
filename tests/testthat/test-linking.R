# The package that is an example of building on this one, and the C interface that
# it uses.

# an example package ----------------------------------------------------------

# Installs inst/examples/linked into a folder of its own, and loads it.
install_linked <- function(folder) {
  dir.create(folder)
  file.copy(
    system.file("examples", "linked", package = "autosmc"), folder,
    recursive = TRUE
  )
  old <- Sys.getenv("R_LIBS", NA)
  on.exit(if (is.na(old)) Sys.unsetenv("R_LIBS") else Sys.setenv(R_LIBS = old))
  Sys.setenv(R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep))
  library <- file.path(folder, "library")
  dir.create(library)
  options <- c("--no-multiarch", "--no-test-load", paste0("--library=", library))
  log <- suppressWarnings(system2(
    r_program("R"),
    c("CMD", "INSTALL", options, file.path(folder, "linked")),
    stdout = TRUE, stderr = TRUE
  ))
  if (!is.null(attr(log, "status"))) {
    stop("the example package does not install:\n", paste(log, collapse = "\n"))
  }
  name <- "linked" # which no repository has
  loadNamespace(name, lib.loc = library)
}

folder <- tempfile("autosmc-linked-")
linked <- install_linked(folder)

mean_of_three <- c(1, -2, 0.5)

# The same as log_evidence() of the example package.
as_in_r <- function(target, seed = 1) {
  smc_plain(target, n_particles = 256, n_steps = 16, seed = seed)
}

test_that("its target in C goes to smc(), its run in C is the same to the last bit", {
  from_c <- linked$log_evidence_normal(mean_of_three, seed = 1)
  expect_identical(from_c, as_in_r(linked$target_normal(mean_of_three))$log_z)
  largest <- 2^32 - 1
  expect_identical(
    linked$log_evidence_normal(mean_of_three, largest),
    as_in_r(linked$target_normal(mean_of_three), largest)$log_z
  )
})

test_that("its estimate from C is unbiased", {
  log_z <- vapply(1:40, function(seed) {
    linked$log_evidence_normal(mean_of_three, seed)
  }, 0)
  expect_mean(exp(log_z - 1.5 * log(2 * pi)), 1, resolution = 0.1)
})

test_that("its target's failure comes back, by either way", {
  bad <- c(1, NaN)
  expect_error(
    linked$log_evidence_normal(bad, 1),
    "the target returned the code 7 at step 0",
    fixed = TRUE
  )
  error <- catch(as_in_r(linked$target_normal(bad)))
  expect_s3_class(error, "autosmc_error_target")
  expect_match(message_of(error), "code 7 at the start")
})

# the interface ---------------------------------------------------------------

api <- compile_library(test_path("native", "api_test.c"))
modes <- c("normal", "impossible", "return_code", "raise_error")

# Runs with settings that are changed from a small default, and with a target that
# does what `mode` says from its call `after` + 1 on.
api_run <- function(..., mode = "normal", after = 0) {
  settings <- list(
    kernel = "klmc", d = 2L, n_particles = 32L, n_steps = 4L, seed = 3, run = 1
  )
  settings <- utils::modifyList(settings, list(...))
  mode <- as.integer(c(match(mode, modes) - 1, after))
  out <- .Call(getNativeSymbolInfo("api_test", api), settings, mode)
  names <- c(
    "status", "log_z", "n_evals", "step", "failure", "message", "particles",
    "log_weights", "step_size", "refresh_rate"
  )
  stats::setNames(out, names)
}

# Its target in R, added up in the same order.
shifted_normal <- target_function(
  function(x) (0 - 0.5 * (x[, 1] - 1)^2) - 0.5 * (x[, 2] - 1)^2, 2,
  gradient = function(x) 1 - x, vectorized = TRUE
)

expect_same_run <- function(from_c, fit) {
  expect_identical(from_c[c("status", "message", "step")], list(
    status = 0L, message = "", step = nrow(fit$schedule)
  ))
  expect_identical(from_c$log_z, fit$log_z)
  expect_identical(from_c$n_evals, sum(fit$steps$n_target_evals))
  expect_identical(from_c$step_size, fit$schedule$step_size)
  rates <- fit$schedule$refresh_rate
  expect_identical(from_c$refresh_rate, ifelse(is.na(rates), NaN, rates))
  expect_identical(matrix(from_c$particles, 2), unname(t(fit$particles)))
  expect_equal(from_c$log_weights, fit$log_weights, tolerance = 1e-14)
  expect_equal(sum(exp(from_c$log_weights)), 1, tolerance = 1e-14)
}

test_that("every kernel runs as in R, tuned and with what the tuning has found", {
  kernels <- list(
    klmc = kernel_klmc(), lmc = kernel_lmc(), mala = kernel_mala(),
    rwmh = kernel_rwmh()
  )
  for (name in names(kernels)) {
    kernel <- kernels[[name]]
    adapted <- adapt_plain(
      shifted_normal,
      n_particles = 32, n_steps = 4, kernel = kernel, seed = 3
    )
    tuned <- api_run(kernel = name, run = 2^31)
    expect_same_run(tuned, adapted)
    run <- api_run(
      kernel = name,
      step_size = tuned$step_size, refresh_rate = tuned$refresh_rate
    )
    expect_same_run(run, calmly(smc_run(
      shifted_normal, adapted$schedule,
      n_particles = 32, kernel = kernel, seed = 3
    )))
  }
})

test_that("reference and temperatures are heeded", {
  lambda <- c(0.1, 0.5, 0.6, 1)
  mean <- c(2, -1)
  sd <- c(1.5, 0.5)
  step_size <- c(0.4, 0.3, 0.3, 0.2)
  fit <- calmly(smc_run(
    shifted_normal, data.frame(lambda, step_size),
    n_particles = 32, reference = reference_gaussian(mean, sd), seed = 3
  ))
  given <- api_run(
    kernel = "lmc", lambda = lambda, step_size = step_size,
    reference_mean = mean, reference_sd = sd
  )
  expect_same_run(given, fit)
  # each of the two alone
  for (reference in list(list(mean = mean), list(sd = sd))) {
    fit <- calmly(smc_run(
      shifted_normal, data.frame(lambda, step_size),
      n_particles = 32, reference = do.call(reference_gaussian, reference), seed = 3
    ))
    names(reference) <- paste0("reference_", names(reference))
    same <- list(kernel = "lmc", lambda = lambda, step_size = step_size)
    expect_same_run(do.call(api_run, c(same, reference)), fit)
  }
})

# failures --------------------------------------------------------------------

# Nothing is written to the arrays.
expect_failure_of_run <- function(out, status, message, step = 0L, failure = 0L) {
  expect_identical(out$status, status)
  expect_match(out$message, message, fixed = TRUE)
  expect_identical(out[c("step", "failure")], list(step = step, failure = failure))
  arrays <- c("particles", "log_weights", "step_size", "refresh_rate")
  expect_identical(unique(unlist(out[arrays])), -1)
}

test_that("the target's code comes back, with the step", {
  steps <- list(step_size = rep(0.3, 4), kernel = "lmc", mode = "return_code")
  out <- do.call(api_run, c(steps, after = 3))
  expect_failure_of_run(out, 1L, "returned the code 42 at step 3", 3L, 42L)
  expect_identical(out$log_z, NaN)
  expect_identical(out$n_evals, 4 * 32) # the last of them were asked for in vain
})

test_that("an estimate of zero is one", {
  out <- api_run(mode = "impossible", kernel = "lmc", step_size = rep(0.3, 4))
  expect_failure_of_run(out, 2L, "no particle is left at step 1", step = 1L)
  expect_identical(out$log_z, -Inf)
})

test_that("an R error of the target's passes, and the next run is as ever", {
  before <- api_run()
  expect_error(api_run(mode = "raise_error", after = 2), "raised by the target")
  expect_identical(api_run(), before)
})

test_that("settings that are wrong are named", {
  bad <- function(message, ...) {
    out <- api_run(...)
    expect_failure_of_run(out, 3L, message)
    expect_identical(out[c("log_z", "n_evals")], list(log_z = NaN, n_evals = 0))
  }
  bad("`kernel` must be one of", kernel = "nuts")
  bad("`kernel` must be one of", kernel = NULL)
  bad("`d` must be a positive whole number, not 0", d = 0L)
  bad("`n_particles` must be a whole number of at least 2, not 1", n_particles = 1L)
  bad("`n_steps` must be a whole number from 1 to 10000000, not -1", n_steps = -1L)
  bad("`lambda` must be a numeric vector that rises", lambda = c(0.2, 0.1, 0.5, 1))
  bad("`lambda` must be a numeric vector that rises", lambda = c(0.2, 0.4, 0.5, 0.9))
  bad(
    "`step_size` must contain positive numbers only; element 3 is -1.",
    kernel = "lmc", step_size = c(1, 1, -1, 1)
  )
  bad("`refresh_rate` must be given with `step_size`", step_size = rep(1, 4))
  bad(
    "`refresh_rate` must contain numbers in (0, 1] only; element 2 is 1.5.",
    step_size = rep(1, 4), refresh_rate = c(1, 1.5, 1, 1)
  )
  bad("`reference_mean` must be a vector of finite", reference_mean = c(0, NaN))
  bad("`reference_sd` must contain positive numbers only", reference_sd = c(1, 0))
})

test_that("a run too large for any memory is rejected", {
  for (size in list(c(1677628839, 152718392), c(2147483647, 2147483647), c(1e5, 2e9))) {
    settings <- list(
      kernel = "rwmh", d = size[1], n_particles = size[2], n_steps = 2L, seed = 3, run = 1
    )
    # without arrays for the results, nor the last field of the settings
    none <- c(-.Machine$sizeof.pointer, 0L)
    out <- .Call(getNativeSymbolInfo("api_test_sizes", api), settings, as.integer(none))
    expect_identical(out[[1]], 3L)
    expect_match(out[[2]], "the run takes [0-9.e+]+ bytes of memory")
  }
})

test_that("callers of an older version go on, of a later one are told", {
  sized <- function(...) {
    settings <- list(
      kernel = "rwmh", d = 2L, n_particles = 32L, n_steps = 4L, seed = 3, run = 1
    )
    .Call(getNativeSymbolInfo("api_test_sizes", api), settings, as.integer(c(...)))
  }
  # as they are here, with a last field that is wrong
  expect_match(sized(0, 0)[[2]], "`reference_sd`", fixed = TRUE)
  # shorter by the last field, a pointer, which then is not read
  older <- sized(-.Machine$sizeof.pointer, 0)
  expect_identical(older[[3]], api_run(kernel = "rwmh")$log_z)
  later <- list(3L, "the caller was compiled for a later version of autosmc", NaN)
  expect_identical(sized(8, 0), later)
  expect_identical(sized(0, 8), later)
})

# the headers -----------------------------------------------------------------

test_that("the headers compile on their own, as C and as C++, without a warning", {
  config <- function(name) {
    system2(r_program("R"), c("CMD", "config", name), stdout = TRUE)
  }
  include <- c(
    paste0("-I", shQuote(system.file("include", package = "autosmc"))),
    paste("-isystem", shQuote(R.home("include")))
  )
  source <- tempfile()
  on.exit(unlink(source))
  writeLines("#include <autosmc_api.h>
    int call(autosmc_target_fn target);
    int call(autosmc_target_fn target) {
      autosmc_settings settings;
      autosmc_result result;
      settings.d = 1;
      return autosmc_run(target, NULL, &settings, &result);
    }", source)
  for (language in list(c("c", "CC"), c("c++", "CXX"))) {
    log <- suppressWarnings(system2(
      strsplit(config(language[2]), " ")[[1]][1],
      c(
        "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
        include, "-x", language[1], source
      ),
      stdout = TRUE, stderr = TRUE
    ))
    expect_identical(as.character(log), character())
  }
})

# Done with what was loaded.
path <- getNamespaceInfo(linked, "path")
unloadNamespace("linked")
library.dynam.unload("linked", path)
dyn.unload(api[["path"]])
unlink(c(folder, dirname(api[["path"]])), recursive = TRUE)
