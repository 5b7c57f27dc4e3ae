# Threads of the compiled code: the same results, and R on its own thread only.

# What the code gives on one, two and three threads is the same.
expect_same_on_threads <- function(code) {
  code <- substitute(code)
  here <- parent.frame()
  one <- without_time(with_threads(1, eval(code, here)))
  for (n in 2:3) {
    expect_identical(without_time(with_threads(n, eval(code, here))), one)
  }
}

test_that("every kernel gives the same fit on any number of threads", {
  target <- target_brownian()
  for (kernel in c("klmc", "lmc", "mala", "rwmh")) {
    expect_same_on_threads(
      adapt_plain(target, kernel = kernel, n_particles = 600, n_steps = 4, seed = 1)
    )
  }
})

test_that("so do all built-in targets, and maps of all kinds on the way", {
  bounded <- target_native(
    "target_funnel", "autosmc", 3,
    lower = c(-9, -Inf, -40), upper = c(9, Inf, Inf), thread_safe = TRUE
  )
  for (target in list(target_funnel(4), bounded)) {
    expect_same_on_threads(calmly(smc(target, n_particles = 256, n_steps = 8, seed = 2)))
  }
  for (target in list(target_gaussian(20, mean = 1:20), target_sonar(), target_pines(6))) {
    reference <- reference_student(8, cov = diag(target$dim) + 0.1)
    expect_same_on_threads(
      quick_smc(target, reference = reference, kernel = kernel_klmc())
    )
  }
})

test_that("R functions, and a reference of theirs, are evaluated on R's thread", {
  target <- normal_target()
  expect_same_on_threads(quick_smc(target))
  reference <- reference_function(
    function(n) matrix(2 * rnorm(2 * n), n), function(x) -sum(x^2) / 8 - log(8 * pi),
    gradient = function(x) -x / 4
  )
  expect_same_on_threads(quick_smc(target, reference = reference))
  expect_same_on_threads(quick_smc(target_gaussian(2), reference = reference))
})

test_that("a routine is called from several threads only if it may be", {
  watch <- function(thread_safe) {
    target <- target_native(
      "watched", native_library(), 3,
      init = "watched_init", data = mean_of_three, thread_safe = thread_safe
    )
    fit <- calmly(smc_plain(
      target,
      kernel = kernel_lmc(0.3), n_particles = 1024, n_steps = 4, seed = 1
    ))
    list(
      particles = fit$particles,
      totals = .Call(getNativeSymbolInfo("watched_totals", native_library()))
    )
  }
  mean_of_three <- c(1, -2, 0.5)
  not_safe <- with_threads(2, watch(FALSE))
  expect_identical(not_safe$totals, c(1L, 0L))
  safe <- with_threads(2, watch(TRUE))
  expect_identical(safe$totals[1], 2L)
  expect_gt(safe$totals[2], 0)
  expect_identical(safe$particles, not_safe$particles)
  expect_identical(with_threads(1, watch(TRUE))$totals, c(1L, 0L))
})

test_that("each thread has a context, and all are released", {
  native_library()
  counted_totals()
  run <- function(...) with_threads(3, quick_run(counted_target(..., thread_safe = TRUE)))
  run()
  totals <- counted_totals()
  expect_identical(totals[c("live", "made")], list(live = 0, made = 3))
  expect_identical(totals$points, 16 * 4)
  error <- catch(run(mode = "return_code", at = 1))
  expect_match(message_of(error), "code 42 at the start")
  expect_identical(counted_totals()[c("live", "made")], list(live = 0, made = 3))
})

# A density of which the calls are seen, and whose maps are work enough for threads.
seen_target <- function(at_call) {
  calls <- 0
  log_density <- function(x) {
    calls <<- calls + 1
    at_call(calls)
    -rowSums(x^2) / 2
  }
  target_function(log_density, 30, gradient = function(x) -x, vectorized = TRUE)
}

run_on_threads <- function(target) {
  with_threads(2, smc_plain(
    target,
    reference = reference_gaussian(cov = diag(30) + 0.1), n_particles = 4096, n_steps = 3, seed = 1
  ))
}

test_that("threads end with their run, also where it fails", {
  skip_if_not(dir.exists("/proc/self/task"), "threads are counted on Linux")
  n_alive <- function() length(list.files("/proc/self/task"))
  before <- n_alive()
  most <- 0
  fit <- run_on_threads(seen_target(function(call) most <<- max(most, n_alive())))
  expect_identical(n_alive(), before)
  expect_gt(most, before)
  error <- catch(run_on_threads(seen_target(function(call) if (call == 3) stop("no more"))))
  expect_match(message_of(error), "no more")
  expect_identical(n_alive(), before)
})

test_that("a target's function may fork the process while there are threads", {
  skip_on_os("windows")
  forks <- function(call) {
    children <- lapply(1:2, function(i) parallel::mcparallel(i))
    expect_identical(unname(parallel::mccollect(children)), list(1L, 2L))
  }
  expect_identical(
    run_on_threads(seen_target(forks))$particles,
    run_on_threads(seen_target(function(call) NULL))$particles
  )
})

test_that("a wrong number of threads is named at once", {
  fit <- quick_smc(normal_target())
  error <- with_threads("two", catch(smc_extend(fit, islands = 3)))
  expect_s3_class(error, "autosmc_error_input") # itself, not its parent
  expect_match(message_of(error), "`autosmc.threads` must be")
  for (wrong in list(0, 1.5, "two", NA, 1e6)) {
    with_threads(wrong, expect_error(
      quick_smc(normal_target()), "`autosmc.threads` must be",
      class = "autosmc_error_input"
    ))
  }
  expect_error(
    target_native("target_funnel", "autosmc", 2, thread_safe = NA), "`thread_safe`",
    class = "autosmc_error_input"
  )
})
