# bad input -------------------------------------------------------------------

# The error is of the package, about an argument, and says what is wrong.
expect_input_error <- function(code, regexp) {
  error <- catch(code)
  expect_s3_class(error, "autosmc_error_input")
  expect_s3_class(error, "autosmc_error")
  expect_match(gsub("\\s+", " ", conditionMessage(error)), regexp)
}

test_that("a target must be one", {
  expect_input_error(smc_plain("f", dim = 2), "`target` must be .* not text")
  expect_input_error(smc_plain(NULL), "`target` must be .* not NULL")
  expect_input_error(
    target_function("f", 2),
    "`log_density` must be a function, not \"f\""
  )
  expect_input_error(
    target_function(sum, 2, gradient = 1),
    "`gradient` must be a function or NULL, not 1"
  )
  expect_input_error(
    target_function(sum, 2, vectorized = "yes"),
    "`vectorized` must be TRUE or FALSE, not \"yes\""
  )
  expect_input_error(
    target_function(sum, 2, names = "a"),
    "`names` must be a character vector of length 2"
  )
  expect_input_error(
    target_function(sum, 2, names = c("a", "a")),
    "`names` must be unique; \"a\""
  )
})

test_that("a function that is given by another name is told where it belongs", {
  expect_input_error(smc(log_density = sum, dim = 2), "`target` is missing.*first and without a name")
  expect_input_error(smc(dim = 2), "`target` is missing: a target, or a function with `dim`[.]$")
})

test_that("`dim` must be there, and a positive whole number", {
  expect_input_error(smc_plain(sum), "`dim` is missing.*positive whole number")
  expect_input_error(target_function(sum), "`dim` is missing")
  whole <- "`dim` must be a whole number from 0 to 10000000, not"
  for (dim in list(-1, 1.5, "2", NA, NULL, c(1, 2), Inf, NaN, list(2), 1e7 + 1, 1.7e9)) {
    expect_input_error(smc_plain(sum, dim = dim), whole)
  }
})

test_that("a schedule must rise from 0 to 1", {
  wrong <- list(
    c(0, 0.5), c(0.1, 1), c(0, 0.5, 0.5, 1), c(0, 0.7, 0.3, 1), c(0, NA, 1),
    c(0, 1, 2), c(-1, 0, 1), 1, numeric(), NULL, "power", c(1, 0)
  )
  for (schedule in wrong) {
    for (verb in list(smc, smc_adapt)) {
      expect_input_error(
        verb(target_funnel(2), schedule = schedule),
        "`schedule` must be a numeric vector that rises.*from 0 to 1, not"
      )
    }
  }
  expect_input_error(
    smc_plain(target_funnel(2), schedule = c(0, 0.5, 1), n_steps = 3),
    "`schedule` must have `n_steps` \\+ 1 = 4 temperatures, not 3"
  )
  expect_input_error(schedule_power(0), "`n_steps` must be .* not 0")
  expect_input_error(schedule_power(4, -1), "`power` must be .* not -1")
})

test_that("a schedule data frame must have its columns, in order", {
  run <- function(...) smc_run(target_funnel(2), data.frame(...))
  expect_input_error(smc_run(target_funnel(2)), "`schedule` is missing")
  expect_input_error(
    smc_run(target_funnel(2), c(0, 1)),
    "`schedule` must be a data frame"
  )
  expect_input_error(run(lambda = 1), "`schedule` must have .*step_size")
  expect_input_error(run(step_size = 1), "`schedule` must have .*lambda")
  rises <- "`schedule\\$lambda` must be .*rises.*from 0 to 1"
  expect_input_error(run(lambda = c(0.5, 0.9), step_size = 1), rises)
  expect_input_error(run(lambda = c(0.5, 0.4, 1), step_size = 1), rises)
  expect_input_error(run(lambda = c(0.5, NA, 1), step_size = 1), rises)
  expect_input_error(run(lambda = numeric(), step_size = numeric()), rises)
  positive <- "`schedule\\$step_size` must .*positive"
  expect_input_error(run(lambda = c(0.5, 1), step_size = c(1, -1)), positive)
  expect_input_error(run(lambda = c(0.5, 1), step_size = c(NA, 1)), positive)
})

test_that("a column of a schedule has one number a row", {
  steps <- data.frame(lambda = c(0.5, 1), step_size = 1, refresh_rate = 1)
  put <- function(name, column) {
    steps[[name]] <- column
    steps
  }
  columns <- list(
    matrix(c(0.5, 1, 0.7, 1), 2), matrix(c(0.5, 1)), array(c(0.5, 1), 2),
    data.frame(x = c(0.5, 1)), list(0.5, 1), factor(c(0.5, 1)), c("0.5", "1"), c(NA, NA)
  )
  for (column in columns) {
    for (name in names(steps)) {
      expect_input_error(
        smc_run(target_funnel(2), put(name, column), kernel = kernel_klmc()),
        sprintf("`schedule\\$%s` must be a numeric vector, one number a row", name)
      )
    }
  }
})

test_that("step sizes must be positive, one or one a step", {
  expect_input_error(kernel_lmc(-1), "`step_size` must .*positive.* is -1")
  expect_input_error(kernel_lmc(c(1, 0)), "element 2 is 0")
  expect_input_error(kernel_lmc(NA), "`step_size` must .* not NA")
  expect_input_error(kernel_lmc("big"), "`step_size` must .* not \"big\"")
  expect_input_error(kernel_lmc(numeric()), "`step_size` must be a vector of positive")
  expect_input_error(
    smc_plain(target_funnel(2), n_steps = 3, kernel = kernel_lmc(c(1, 1))),
    "`step_size` must .*length 1 or 3, not "
  )
  expect_input_error(
    adapt_plain(target_funnel(2), kernel = kernel_lmc(1)),
    "`kernel` has given step sizes"
  )
})

test_that("the tuner's settings are checked", {
  expect_input_error(
    smc_plain(
      target_funnel(2),
      n_particles = 16, kernel = kernel_lmc(), tuner = tuner_kl(17)
    ),
    "`n_subsample` must be at most `n_particles`, which is 16, not 17"
  )
  expect_input_error(tuner_kl(0), "`n_subsample` must be .* not 0")
  expect_input_error(tuner_kl(regularization = -1), "`regularization` .* not -1")
  expect_input_error(tuner_kl(tolerance = 0), "`tolerance` .* at least 1e-08, not 0")
  expect_input_error(tuner_kl(tolerance = 1e-17), "`tolerance` .* not 1e-17")
  expect_input_error(tuner_kl(bracket = "a"), "`bracket` .* \"a\"")
  expect_input_error(tuner_kl(bracket = 0.1), "`bracket` .* not 0.1")
  expect_input_error(tuner_kl(bracket = c(0, 2)), "`bracket` .* not")
  expect_input_error(tuner_kl(bracket = c(0.1, 1)), "`bracket` .* not")
  expect_identical(tuner_kl(bracket = c(0.2, 3))[["bracket_growth"]], 3)
  expect_input_error(tuner_kl(backoff = 0), "`backoff` .* not 0")
  expect_input_error(tuner_kl(step_size_guess = 0), "`step_size_guess` .* not 0")
  expect_input_error(tuner_kl(step_size_anchor = NA), "`step_size_anchor` .* NA")
})

test_that("the finest tolerance comes to an end", {
  for (search in c("parabolic", "golden")) {
    fit <- adapt_plain(target_funnel(2),
      n_particles = 16, n_steps = 3, tuner = tuner_kl(8, search, tolerance = 1e-8), seed = 1
    )
    expect_identical(fit$steps$tuner_status %in% c("converged", "exhausted"), rep(TRUE, 3))
  }
})

test_that("variables are not called as the columns of draws are", {
  taken <- c(".weight", ".log_weight", ".island", ".chain", ".iteration", ".draw", "")
  fit <- quick_run(target_gaussian(1))
  columns <- names(augment(fit))
  if (requireNamespace("posterior", quietly = TRUE)) columns <- c(columns, names(posterior::as_draws_df(fit)))
  expect_identical(setdiff(columns, c("x", "x1", taken)), character())
  for (name in taken) {
    expect_input_error(
      target_function(sum, 2, names = c("x", name)),
      sprintf("`names` must not have \"%s\" among them", gsub(".", "\\.", name, fixed = TRUE))
    )
  }
  expect_identical(target_function(sum, 2, names = c("weight", ".x"))$names, c("weight", ".x"))
})

test_that("more than a machine can do is refused before it is begun", {
  target <- target_gaussian(2)
  schedule <- data.frame(lambda = 1, step_size = 0.5)
  fit <- smc_run(target, schedule, n_particles = 16, islands = 4, seed = 1)
  for (many in c(65536, 1e9)) {
    expect_bad_undrawn(smc(target, islands = many), "islands")
    expect_bad_undrawn(smc_run(target, schedule, islands = many), "islands")
    expect_bad_undrawn(smc_extend(fit, islands = many), "islands")
    expect_bad_undrawn(smc_extend(fit, precision = 1e-3, max_islands = many), "max_islands")
  }
  expect_bad_undrawn(smc(target, n_steps = 1e9), "n_steps")
  expect_bad_undrawn(smc(target, max_steps = 1e9), "max_steps")
  expect_bad_undrawn(schedule_power(1e9), "n_steps")
  expect_bad_undrawn(schedule_adaptive(max_steps = 1e9), "max_steps")
  expect_bad_undrawn(smc_replicate(fit, 1e9), "n")
  expect_bad_undrawn(smc_scout(target, n_starts = 1e9), "n_starts")
  expect_bad(target_pines(1e9), "side")
  # draws of which there would be more than a matrix can have rows
  error <- catch(smc_run(target, schedule, n_particles = 1e5, islands = 65535))
  expect_s3_class(error, "autosmc_error_memory")
})

test_that("the largest numbers end in a fit or an error of a class", {
  schedule <- data.frame(lambda = 1, step_size = 0.5)
  far <- target_gaussian(2, mean = 1e308)
  calls <- list(
    function() smc(far, n_particles = 16),
    function() smc(far, n_particles = 16, reference = reference_gaussian(mean = 1e308)),
    function() smc_run(target_gaussian(2), schedule, reference = reference_gaussian(mean = 1e308), n_particles = 16),
    function() smc_run(target_gaussian(2), schedule, precision = 1e308, n_particles = 16)
  )
  for (call in calls) {
    result <- catch(suppressWarnings(call()))
    expect_true(inherits(result, c("smc_fit", "autosmc_error")))
  }
  # less than rounding leaves of any estimate
  expect_bad_undrawn(smc(target_gaussian(2), precision = 1e-308), "precision")
})

test_that("a text that is none is no path", {
  for (bad in list("\xff\xfe", structure("a\xff", Encoding = "bytes"))) {
    Encoding(bad) <- "bytes"
    expect_bad_undrawn(smc(target_gaussian(2), checkpoint = bad), "checkpoint")
  }
  expect_no_warning(expect_bad_undrawn(smc(target_gaussian(2), checkpoint = strrep("a", 5000)), "checkpoint"))
})

test_that("a run too large for any memory says how large", {
  # beyond what can be counted, and beyond what there are addresses for
  sizes <- list(c(1e5, 2e9), c(1e4, 1e9))
  for (size in sizes) {
    for (verb in list(smc, smc_adapt)) {
      error <- catch(verb(normal_target(size[1]), n_particles = size[2], scout = FALSE))
      expect_s3_class(error, "autosmc_error_memory")
      expect_s3_class(error, "autosmc_error")
      expect_match(message_of(error), "The run needs [0-9.]+ [PT]B of memory")
      # positions, velocities and gradients, of the particles and of where they move to
      expect_gt(error$bytes, 6 * 8 * prod(size))
    }
  }
  expect_usable_session()
})

test_that("a run takes the memory that it is said to take", {
  skip_if_not(capabilities("profmem"), "R does not tell what it allocates")
  run <- function(n) {
    schedule <- data.frame(lambda = 1:2 / 2, step_size = 0.5)
    smc_run(target_gaussian(5), schedule, n_particles = n, keep = "moments", seed = 1)
  }
  n <- 2e5
  said <- catch(run(2e9))$bytes / 2e9
  # all that is at least as large as a matrix of the particles, whenever it is freed: moments are made in blocks
  file <- tempfile()
  utils::Rprofmem(file, threshold = 8 * 5 * n - 1)
  tryCatch(run(n), finally = utils::Rprofmem(NULL))
  bytes <- as.numeric(sub(" *:.*", "", grep("^[0-9]", readLines(file), value = TRUE)))
  expect_gt(length(bytes), 1)
  expect_lt(abs(sum(bytes) / (n * said) - 1), 0.01)
})

test_that("the other arguments of the verbs are checked", {
  bad <- function(regexp, ...) {
    expect_input_error(smc_plain(target_gaussian(2), ...), regexp)
  }
  bad("`n_particles` must be .* not 1", n_particles = 1)
  bad("`n_particles` must be .* not \"many\"", n_particles = "many")
  bad("`n_steps` must be .* not 0", n_steps = 0)
  bad("`n_steps` must be .* not 2.5", n_steps = 2.5)
  bad("`kernel` must be one of \"klmc\".* not \"nuts\"", kernel = "nuts")
  bad("`reference` must be made by .* not \"normal\"", reference = "normal")
  bad("`reference` has no draws of x1 and x2", reference = 1)
  bad("`tuner` must be made by .* not 1", tuner = 1)
  bad("`resampling` must be one of \"ssp\".* not \"none\"", resampling = "none")
  bad("`ess_threshold` must be .* not 2", ess_threshold = 2)
  bad("`ess_threshold` must be .* not NA", ess_threshold = NA)
  bad("`seed` must be .* not -1", seed = -1)
  bad("`seed` must be .* not 1.5", seed = 1.5)
  bad("`seed` must be .* not 4294967296", seed = 2^32)
  bad("`progress` must be TRUE or FALSE, not 1", progress = 1)
  bad("`mean` must .*length 1 or 2, not ",
    reference = reference_gaussian(mean = 1:3)
  )
  bad("Unknown argument: `n_particle`.*mean `n_particles` instead", n_particle = 16)
  expect_input_error(smc_plain(function(x) -x^2, dims = 1), "`dims`.*mean `dim` instead")
  bad("Unknown argument: `colour`\\.$", colour = 16)
  bad("an argument without a name, 16: give it its name", 16)
  expect_input_error(reference_gaussian(sd = 0), "`sd` must .*positive.* is 0")
  expect_input_error(reference_gaussian(mean = NA), "`mean` must be .* not NA")
  expect_input_error(kernel_lmc(backward = "up"), "`backward` must be one of")
  expect_input_error(
    smc_plain(target_gaussian(2), kernel = kernel_lmc(backward = "detailed_balance")),
    "`step_size` must be given"
  )
  expect_usable_session()
})

# errors of the target --------------------------------------------------------

# A normal target that stops when it is called the k-th time.
failing_function <- function(k, fail = function() stop("no more")) {
  calls <- 0
  target_function(
    function(x) {
      calls <<- calls + 1
      if (calls == k) fail()
      -rowSums(x^2) / 2
    },
    dim = 2,
    gradient = function(x) -x,
    vectorized = TRUE
  )
}

# Says where in which run it was, and its fields say the same.
expect_located <- function(error) {
  expect_s3_class(error, "autosmc_error_target")
  expect_s3_class(error, "autosmc_error")
  where <- if (error$step == 0) {
    sprintf("at the start of the %s run", error$run)
  } else {
    sprintf("at step %d of the %s run", error$step, error$run)
  }
  expect_match(gsub("\\s+", " ", conditionMessage(error)), where, fixed = TRUE)
}

test_that("an error of an R function is passed on, with the step", {
  mine <- function() {
    stop(structure(
      class = c("my_error", "error", "condition"),
      list(message = "no more", call = NULL)
    ))
  }
  error <- catch(quick_run(failing_function(3, mine)))
  expect_located(error)
  expect_identical(error$step, 2L)
  expect_identical(error$run, "final")
  expect_s3_class(error$parent, "my_error")
  expect_identical(conditionMessage(error$parent), "no more")
  expect_usable_session()
})

test_that("an error of a scalar function or of a gradient is passed on", {
  calls <- 0
  count_and_stop <- function(value) {
    calls <<- calls + 1
    if (calls == 40) stop("no more")
    value
  }
  in_density <- function(x) count_and_stop(-sum(x^2) / 2)
  error <- catch(quick_run(in_density, dim = 2, gradient = normal_gradient))
  expect_located(error)
  expect_identical(error$step, 2L) # 16 points a call
  calls <- 0
  in_gradient <- function(x) count_and_stop(-x)
  error <- catch(quick_run(normal_density, dim = 2, gradient = in_gradient))
  expect_located(error)
  expect_identical(error$step, 2L)
  expect_match(message_of(error$parent), "no more")
})

test_that("errors in another encoding, and of an overflowing stack, are of the target too", {
  recurse <- function(x) recurse(x)
  faults <- list(
    function() stop("f\xfcr"), function() stop(rawToChar(as.raw(c(0x6e, 0xff)))),
    function() recurse(1)
  )
  for (fail in faults) {
    error <- catch(quick_run(failing_function(3, fail)))
    expect_located(error)
    expect_identical(error$step, 2L)
    expect_true(validUTF8(conditionMessage(error$parent)))
    expect_s3_class(
      catch(smc(failing_function(1, fail), n_particles = 16)),
      "autosmc_error_target"
    )
  }
})

test_that("an error in the scout's search is one of the target", {
  fails <- failing_function(1)
  for (search in list(function() smc(fails, n_particles = 16), function() smc_scout(fails))) {
    fails <- failing_function(1)
    error <- catch(search())
    expect_s3_class(error, "autosmc_error_target")
    expect_identical(error$run, "scout")
    expect_match(message_of(error), "failed in the scout")
    expect_identical(conditionMessage(error$parent), "no more")
  }
})

# In a process of its own: here testthat's handler takes every error that is signalled.
test_that("an error that is only signalled ends nothing", {
  script <- tempfile(fileext = ".R")
  result <- tempfile(fileext = ".rds")
  on.exit(unlink(c(script, result)))
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "library(autosmc)",
    "signal <- function() signalCondition(simpleError('x'))",
    "density <- function(x) {",
    "  signal()",
    "  -sum(x^2) / 2",
    "}",
    "reference <- reference_function(",
    "  function(n) matrix(rnorm(n), n),",
    "  function(x) {",
    "    signal()",
    "    dnorm(x, log = TRUE)",
    "  }, function(x) -x)",
    "fit <- smc(density, dim = 1, gradient = function(x) -x, reference = reference,",
    "  n_particles = 64, n_steps = 4, islands = 2, seed = 1)",
    "raised <- tryCatch(quick <- smc_run(function(x) stop('y'),",
    "  data.frame(lambda = 1, step_size = 1), dim = 1, gradient = function(x) -x),",
    "  error = identity)",
    sprintf("saveRDS(list(fit$log_z, class(raised)), %s)", deparse(result))
  ), script)
  said <- system2(r_program("Rscript"), script, stdout = TRUE, stderr = TRUE)
  expect_true(file.exists(result), info = toString(said))
  values <- readRDS(result)
  expect_lt(abs(values[[1]] - log(2 * pi) / 2), 0.5)
  expect_true("autosmc_error_target" %in% values[[2]])
})

test_that("warnings of a target do not stop a run", {
  f <- function(x) {
    warning("beware")
    -sum(x^2) / 2
  }
  heard <- character()
  fit <- withCallingHandlers(
    quick_run(f, dim = 2, gradient = normal_gradient),
    warning = function(w) {
      heard <<- c(heard, conditionMessage(w))
      invokeRestart("muffleWarning")
    }
  )
  expect_identical(heard, "beware") # once, and no other
  quiet <- quick_run(normal_density, dim = 2, gradient = normal_gradient)
  expect_identical(fit$log_z, quiet$log_z)
})

tuned_run <- function(target, n_particles = 16) {
  adapt_plain(
    target,
    n_particles = n_particles, n_steps = 16, kernel = kernel_lmc(), seed = 1
  )
}

failing <- list(
  "an R function that stops" = function(k) failing_function(k),
  "a routine that returns a code" = function(k) {
    counted_target(mode = "return_code", at = k)
  },
  "a routine that raises an error" = function(k) {
    counted_target(mode = "raise_error", at = k)
  }
)

for (kind in names(failing)) {
  test_that(paste("each evaluation may fail:", kind), {
    native_library()
    make <- failing[[kind]]
    steps <- integer()
    for (k in c(1:15, 20, 30, 50)) {
      error <- catch(tuned_run(make(k)))
      expect_located(error)
      steps <- c(steps, error$step)
      expect_identical(counted_totals()$live, 0)
    }
    expect_identical(steps[1], 0L)
    expect_false(is.unsorted(steps))
    expect_gt(steps[length(steps)], 1)
    expect_usable_session()
  })
}

bytes_in_use <- function() {
  invisible(gc(full = TRUE))
  sum(gc(full = TRUE)[, 1] * c(56, 8))
}

# Of the whole process, R's heap and C's: Linux says it, elsewhere it is 0.
resident_bytes <- function() {
  if (!file.exists("/proc/self/statm")) {
    return(0)
  }
  pages <- scan("/proc/self/statm", quiet = TRUE)
  4096 * pages[2]
}

# cli itself keeps about 1 kB an error; a lost workspace would be over 100 kB. What R
# still holds of other tests comes and goes by megabytes, a leak is there every time.
for (kind in names(failing)) {
  test_that(paste("memory does not grow with errors:", kind), {
    native_library()
    make <- failing[[kind]]
    # 1 is the start, 10 in the first search, 50 well after it
    fail <- function(n) {
      for (i in seq_len(n)) {
        for (k in c(1, 10, 50)) catch(tuned_run(make(k), n_particles = 1000))
      }
    }
    in_use <- function() c(r = bytes_in_use(), process = resident_bytes())
    fail(3)
    growth <- vapply(1:3, function(i) {
      before <- in_use()
      fail(3)
      in_use() - before
    }, c(r = 0, process = 0))
    least <- apply(growth, 1, min) / 9 # an error
    expect_lt(least[["r"]], 4e3)
    expect_lt(least[["process"]], 70e3)
    expect_identical(counted_totals()$live, 0)
  })
}

# particles that die ----------------------------------------------------------

test_that("impossible points kill their own particles only", {
  for (impossible in list(-Inf, NaN, NA_real_, NA, Inf)) {
    half <- function(x) if (x[1] > 0) -sum(x^2) / 2 else impossible
    fit <- suppressWarnings(
      quick_run(half, dim = 2, gradient = normal_gradient),
      classes = "autosmc_warning_infinite"
    )
    expect_true(is.finite(fit$log_z))
    dead <- fit$particles[, 1] <= 0
    expect_true(any(dead))
    expect_identical(fit$log_weights == -Inf, unname(dead))
  }
})

test_that("log densities without digits behind the point are impossible", {
  shifted <- function(by) function(x) -sum(x^2) / 2 + by
  run <- function(by) quick_run(target_function(shifted(by), 2, gradient = normal_gradient))
  for (by in c(1e14, -1e14)) {
    expect_lt(abs(run(by)$log_z / by - 1), 1e-12)
  }
  for (by in c(1.1e15, 1e17, -1.1e15, -1e17)) {
    expect_s3_class(catch(run(by)), "autosmc_error_degenerate")
  }
  # and where it is so for some of the points, for these
  some <- function(x) -sum(x^2) / 2 + if (x[1] > 0) 1e16 else 0
  fit <- calmly(smc_plain(target_function(some, 2, gradient = normal_gradient),
    kernel = kernel_mala(), n_particles = 64, n_steps = 4, seed = 1
  ))
  expect_lt(fit$log_z, log(2 * pi))
})

test_that("a compiled target's NaN and -Inf kill a particle too", {
  error <- catch(quick_run(counted_target(mode = "kill_all", at = 4)))
  expect_s3_class(error, "autosmc_error_degenerate")
  expect_identical(counted_totals()$live, 0)
})

test_that("when all are dead the error says where, what to try, and the trace", {
  calls <- 0
  dies <- function(x) {
    calls <<- calls + 1
    if (calls > 3) rep(-Inf, nrow(x)) else -rowSums(x^2) / 2
  }
  target <- target_function(
    dies, 2,
    gradient = function(x) -x, vectorized = TRUE
  )
  error <- catch(quick_run(target))
  expect_s3_class(error, "autosmc_error_degenerate")
  expect_s3_class(error, "autosmc_error")
  message <- gsub("\\s+", " ", conditionMessage(error))
  expect_match(message, "at step 3 of the final run")
  expect_match(message, "`n_steps`")
  expect_match(message, "`reference`")
  expect_match(message, "`n_particles`")
  expect_identical(error$step, 3L)
  expect_identical(error$run, "final")
  expect_identical(error$trace$step, 1:2)
  expect_true(all(is.finite(error$trace$log_z)))
  expect_usable_session()
})

test_that("a target that is nowhere possible says so at step 1", {
  for (nowhere in list(-Inf, NaN, NA)) {
    error <- catch(quick_smc(
      function(x) nowhere,
      dim = 2, gradient = normal_gradient
    ))
    expect_s3_class(error, "autosmc_error_degenerate")
    expect_identical(error$step, 1L)
    expect_identical(nrow(error$trace), 0L)
    # more particles would not help
    expect_match(message_of(error), "reference_laplace")
    expect_no_match(message_of(error), "n_particles")
    expect_identical(grepl("data for NA", message_of(error)), is.na(nowhere))
  }
})

test_that("when all are dead the error says what the log densities were", {
  says <- function(log_density, ...) {
    target <- target_function(log_density, 2, gradient = function(x) 0 * x, vectorized = TRUE)
    suppressWarnings(
      message_of(catch(quick_run(target, ...))),
      classes = "autosmc_warning_infinite"
    )
  }
  expect_match(says(function(x) 0 * x[, 1] + Inf), "is [+]Inf at 16 of 16 particles")
  expect_match(says(function(x) 0 * x[, 1] - Inf), "is -Inf at 16 of 16")
  expect_match(says(function(x) 0 * x[, 1] + NA), "is NaN at 16 of 16")
  expect_match(says(function(x) 0 * x[, 1] - 1e16), "is 1e15 or more in size at 16 of 16")
  both <- says(function(x) suppressWarnings(log(-abs(x[, 1]) * (x[, 1] > 0)))) # or log(0)
  expect_match(both, "is -Inf at [0-9]+ and NaN at [0-9]+ of 16")
  expect_no_match(both, "too long")
  # one that cannot be evaluated again, or is possible then
  calls <- 0
  later <- function(then) {
    calls <<- 0
    says(function(x) {
      calls <<- calls + 1
      if (calls > 4) then(x) else if (calls > 3) 0 * x[, 1] - Inf else -rowSums(x^2) / 2
    })
  }
  expect_match(later(function(x) stop("not again")), "is NaN or infinite at every particle")
  expect_match(later(function(x) 0 * x[, 1]), "finite at 16 of 16.*the step was too long")
})

# interrupts ------------------------------------------------------------------

# An R process with three runs that last for five minutes, one after the other. Each says
# when it starts, and when it was interrupted. Returns a function that gives
# the process's id.
start_interruptible <- function(library, folder) {
  script <- file.path(folder, "child.R")
  dump <- function(x) paste(deparse(x), collapse = "\n")
  writeLines(c(
    sprintf(".libPaths(%s)", dump(.libPaths())),
    "library(autosmc)",
    sprintf("dll <- dyn.load(%s)", dump(library)),
    sprintf("setwd(%s)", dump(folder)),
    # written under another name first, so that it is whole when it is seen
    "write <- function(x, name) {",
    "  saveRDS(x, 'new.rds')",
    "  if (is.numeric(x)) writeLines(format(x, digits = 17), 'new.rds')",
    "  file.rename('new.rds', name)",
    "}",
    "write(Sys.getpid(), 'pid')",
    "target <- target_native('counted', dll, 2, data = c(3, 5),",
    "  init = c('counted_init', 'counted_release'))",
    "for (i in 1:3) tryCatch({",
    "  write(0, paste0('ready', i))",
    "  smc(target, n_particles = 16, n_steps = 60000,",
    "    kernel = kernel_lmc(1), islands = 1, seed = 1)",
    "}, interrupt = function(e) {",
    "  write(as.numeric(Sys.time()), paste0('stopped', i))",
    "})",
    "totals <- .Call(getNativeSymbolInfo('counted_totals', dll))",
    "fit <- smc(target_funnel(2), n_particles = 16, n_steps = 3,",
    "  kernel = kernel_lmc(1), islands = 1, seed = 1)",
    "write(list(live = totals[1], points = totals[3], log_z = fit$log_z), 'done')"
  ), script)
  log <- file.path(folder, "log")
  system2(r_program("Rscript"), script, stdout = log, stderr = log, wait = FALSE)
  function() {
    await(file.path(folder, "pid"))
    scan(file.path(folder, "pid"), quiet = TRUE)
  }
}

# Until a file is there: minutes, for a machine that is busy with other things.
await <- function(file, seconds = 300) {
  deadline <- Sys.time() + seconds
  while (!file.exists(file)) {
    if (Sys.time() > deadline) {
      log <- file.path(dirname(file), "log")
      stop(basename(file), " is not there: ", toString(readLines(log)))
    }
    Sys.sleep(0.01)
  }
}

test_that("a time limit stops a compiled run, and the context is released", {
  skip_on_os("windows") # the test target sleeps by POSIX's nanosleep()
  target <- counted_target(mode = "sleep", at = 2)
  limited <- function() {
    on.exit(setTimeLimit())
    setTimeLimit(elapsed = 0.3, transient = TRUE)
    smc_plain(target, n_particles = 16, n_steps = 5000, kernel = kernel_lmc(1), seed = 1)
  }
  counted_totals()
  error <- catch(limited())
  expect_match(conditionMessage(error), "elapsed time limit")
  expect_false(inherits(error, "autosmc_error")) # it is R's own
  totals <- counted_totals()
  expect_identical(totals$live, 0)
  # of 5000 steps of 2 ms each, few were made: a tenth, even if R looks but each second
  expect_lt(totals$points, 16 * 500)
  expect_usable_session()
})

test_that("Ctrl-C stops a run, and R goes on", {
  skip_on_os("windows") # SIGINT cannot be sent to another process there
  library <- native_library()
  folder <- tempfile("interrupt-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  in_folder <- function(name) file.path(folder, name)
  child <- start_interruptible(library[["path"]], folder)
  on.exit(
    if (!file.exists(in_folder("done"))) tools::pskill(child()),
    add = TRUE,
    after = FALSE
  )
  for (i in 1:3) {
    await(in_folder(paste0("ready", i)))
    Sys.sleep(0.2) # to be in the middle of the run
    expect_false(file.exists(in_folder(paste0("stopped", i))))
    tools::pskill(child(), tools::SIGINT)
    await(in_folder(paste0("stopped", i)))
  }
  await(in_folder("done"))
  result <- readRDS(in_folder("done"))
  expect_identical(result$live, 0)
  expect_true(is.finite(result$log_z))
  # each was far from its last step, which five minutes would take
  expect_lt(result$points, 16 * 60000)
})
