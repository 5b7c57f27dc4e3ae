# Small runs, and what is said of them in several files.

# testthat looks for differences, to show them, even where there are none, and takes
# milliseconds for it. Most of the suite's expectations are of these two kinds.
expect_identical <- function(object, expected, ...) {
  if (identical(object, expected)) {
    return(succeed())
  }
  testthat::expect_identical(
    object, expected, ...,
    label = deparse1(substitute(object)), expected.label = deparse1(substitute(expected))
  )
}

expect_true <- function(object, info = NULL, label = deparse1(substitute(object))) {
  if (isTRUE(object)) succeed() else testthat::expect_true(object, info = info, label = label)
}

# What the package does not export: for the few seams that laws are tested by.
internal <- function(name) get(name, asNamespace("autosmc"))

# A standard normal in d dimensions: its log evidence is d / 2 log(2 pi).
normal_density <- function(x) -sum(x^2) / 2
normal_gradient <- function(x) -x

normal_target <- function(dim = 2, ...) {
  target_function(normal_density, dim, gradient = normal_gradient, ...)
}

# What is printed of an object, in one line.
printed_text <- function(x, ...) {
  gsub("\\s+", " ", paste(utils::capture.output(print(x, ...)), collapse = " "))
}

# The paper's method: one adapting run, and with smc() one final run.
smc_plain <- function(...) {
  smc(..., rounds = 0, whiten = FALSE, islands = 1)
}

adapt_plain <- function(...) smc_adapt(..., rounds = 0, whiten = FALSE)

# The sampler of an adapting run, as the stages of smc() get it.
sampler_for <- function(target, n_particles = 128, kernel = kernel_klmc(),
                        reference = reference_gaussian(), seed = 1) {
  internal("new_sampler")(target, list(
    n_particles = n_particles, kernel = kernel, reference = reference,
    tuner = tuner_kl(), resampling = "ssp", ess_threshold = 0.5, seed = seed,
    progress = FALSE
  ))
}

# The record of one such run.
record_for <- function(target, ..., n_steps = 16) {
  path <- list(lambda = schedule_power(n_steps)[-1])
  internal("run_sampler")(sampler_for(target, ...), path, "adapt", 0)
}

# What a diagnostic sees of islands, `final`, and of what led to them.
seen_by_diagnostics <- function(final = list(), estimate = list(log_z = 0, std_error = 0.02), course = NULL, ...) {
  list(final = final, estimate = estimate, course = course, ...)
}

# The row of a diagnostic.
judge_of <- function(name, ..., found = NULL) internal("diagnostics")()[[name]]$judge(seen_by_diagnostics(...), found)

# What a diagnostic finds beside the draws of islands; NULL where the target fails. And how many points it asks for.
ask_of <- function(name, ..., sampler) {
  evaluate <- internal("counted_density")(sampler$target)
  ask <- internal("diagnostics")()[[name]]$ask
  found <- tryCatch(ask(seen_by_diagnostics(..., sampler = sampler), evaluate), autosmc_error_target = function(e) NULL)
  list(found = found, n_target_evals = evaluate("count")[["n_target_evals"]])
}

# A run too small to be good, and quick.
quick_smc <- function(target, ..., kernel = kernel_lmc(), seed = 1) {
  calmly(
    smc_plain(target, ..., n_particles = 16, n_steps = 3, kernel = kernel, seed = seed)
  )
}

# Step sizes given, so that nothing is tuned: n_steps + 1 calls.
quick_run <- function(target, ..., step_size = 0.5) {
  quick_smc(target, ..., kernel = kernel_lmc(step_size))
}

# All of a fit, or of a part of it, that the seed governs.
without_time <- function(x) {
  if (!is.list(x) || is.function(x)) {
    return(x)
  }
  x[names(x) %in% c("seconds", "call")] <- NULL
  if (is.data.frame(x) || inherits(x, "smc_target")) x else replace(x, TRUE, lapply(x, without_time))
}

# Evaluates `code` with other objects in the package.
with_internals <- function(objects, code) {
  before <- lapply(stats::setNames(nm = names(objects)), get, asNamespace("autosmc"))
  put <- function(objects) {
    Map(utils::assignInNamespace, names(objects), objects, MoreArgs = list(ns = "autosmc"))
  }
  on.exit(put(before))
  put(objects)
  code
}

# What an error says, in one line. Where a message is broken into lines depends on the width of
# the console, and on the length of paths.
message_of <- function(error) gsub("\\s+", " ", conditionMessage(error))

expect_error <- function(object, regexp = NULL, class = NULL, ...) {
  error <- testthat::expect_error(object, class = class)
  if (!is.null(regexp)) expect_match(message_of(error), regexp, ...)
  invisible(error)
}

catch <- function(code) tryCatch(code, error = identity)

catch_warning <- function(code) tryCatch(code, warning = identity)

expect_usable_session <- function() {
  expect_true(is.finite(quick_run(target_funnel(2))$log_z))
}

# That targets of 110 copies of a library are all there where R has room for 100 libraries. make: the name of the
# function that makes a target of a path and the data.
expect_room <- function(library, make, data) {
  folder <- tempfile("autosmc-many-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  paths <- file.path(folder, paste0("model", 1:110, .Platform$dynlib.ext))
  file.copy(rep(library, 110), paths)
  given <- tempfile(fileext = ".rds", tmpdir = folder)
  saveRDS(list(paths = paths, make = make, data = data, libraries = .libPaths()), given)
  script <- tempfile(fileext = ".R", tmpdir = folder)
  writeLines(c(
    sprintf("given <- readRDS(%s)", deparse1(given)),
    ".libPaths(given$libraries)",
    "evaluate <- autosmc:::evaluate_target",
    "targets <- lapply(given$paths, getExportedValue(\"autosmc\", given$make), given$data)",
    "values <- vapply(targets, function(target) evaluate(target, cbind(1, 1))$log_density, 0)",
    "cat(length(getLoadedDLLs()) <= 100, length(unique(values)), sum(is.finite(values)))"
  ), script)
  said <- system2(
    file.path(R.home("bin"), "Rscript"), shQuote(script),
    stdout = TRUE, stderr = TRUE, env = "R_MAX_NUM_DLLS=100"
  )
  expect_match(said, "TRUE 1 110", fixed = TRUE, all = FALSE)
}

# An error about an argument, which names it.
expect_bad <- function(code, argument) {
  error <- catch(code)
  expect_s3_class(error, "autosmc_error_input")
  expect_s3_class(error, "autosmc_error")
  expect_match(message_of(error), sprintf("`%s`", argument), fixed = TRUE)
}

# The same, and nothing is drawn from R's generator on the way to it.
expect_bad_undrawn <- function(code, argument) {
  set.seed(5)
  before <- .Random.seed
  expect_bad(code, argument)
  expect_identical(.Random.seed, before)
}

# Laws hold within a limit that chance alone exceeds with this probability, a comparison.
# There are less than a thousand in the suite, so a right program fails it less than once
# in 10^5 machines: another BLAS, or another compiler, is another run.
chance <- 1e-8

# How many standard errors that is, of an error from n independent values.
errors_for <- function(n = Inf) qt(1 - chance / 2, n - 1)

# An estimate with this standard error is `truth`; and the limit is so small that a difference of `resolution`
# would be seen. n: as of errors_for().
expect_estimate <- function(value, error, truth, resolution, n = Inf) {
  limit <- errors_for(n) * error
  expect_lt(max(limit), resolution)
  expect_lt(max(abs(value - truth) / limit), 1)
}

# The mean of `x`, of independent values.
expect_mean <- function(x, value, resolution) {
  expect_estimate(mean(x), sd(x) / sqrt(length(x)), value, resolution, length(x))
}

# The log evidence of a fit, or the mean of several. Its error is never less than the islands predict each by
# itself, from all their particles, so that few islands are no reason for a wider limit.
expect_log_z <- function(fits, value, resolution = 0.1) {
  if (inherits(fits, "smc_fit")) fits <- list(fits)
  error <- vapply(fits, `[[`, 0, "std_error")
  log_z <- vapply(fits, `[[`, 0, "log_z")
  expect_estimate(mean(log_z), sqrt(sum(error^2)) / length(fits), value, resolution)
}

# A call that was cut off before its last island goes on with a target that is made anew, and comes to the same; with
# another target it is an error. make, again, change: functions that make a target.
expect_resumed <- function(make, change, again = make) {
  dir <- tempfile("runs")
  on.exit(unlink(dir, recursive = TRUE))
  run <- function(target) {
    fit <- calmly(smc(target, n_particles = 32, n_steps = 4, rounds = 1, islands = 4, seed = 1, checkpoint = dir))
    fit[c("estimates", "particles", "log_weights")]
  }
  whole <- run(make())
  unlink(file.path(dir, c("final-4.smc", list.files(dir, "bridge"))))
  expect_identical(run(again()), whole)
  error <- catch(run(change()))
  expect_s3_class(error, "autosmc_error_mismatch")
  expect_identical(error$differs, "target")
}

# All evaluations of the target.
spent <- function(fit) sum(fit$runs$n_target_evals)

# What an unreliable estimate is warned of is not what most tests are about, nor heavy tails of the draws.
calmly <- function(code) {
  suppressWarnings(code, classes = c("autosmc_warning_unreliable", "autosmc_warning_moments"))
}

# Nor that random effects are integrated out.
quiet_laplace <- function(code) suppressMessages(code, classes = "autosmc_message_laplace")

# 7 successes of 10, with a Beta(2, 3) prior for their probability; and its evidence.
beta_binomial <- target_posterior(
  function(p) dbinom(7, 10, p, log = TRUE),
  function(p) dbeta(p, 2, 3, log = TRUE),
  dim = 1,
  gradient = list(
    likelihood = function(p) 7 / p - 3 / (1 - p),
    prior = function(p) 1 / p - 2 / (1 - p)
  ),
  vectorized = TRUE, names = "p", lower = 0, upper = 1
)
log_z_beta_binomial <- lbeta(2 + 7, 3 + 3) - lbeta(2, 3) + lchoose(10, 7)

# Twelve islands, of which some are dead and some are not.
fit_with_dead_islands <- function() {
  edge <- target_function(
    function(x) if (x > 1.2) dnorm(x, log = TRUE) else -Inf,
    dim = 1
  )
  calmly(smc_run(
    edge, data.frame(lambda = 1, step_size = 1),
    kernel = kernel_rwmh(), n_particles = 16, islands = 12, seed = 2
  ))
}

# Normal distributions with these means (a row each), standard deviations and weights.
mixture_target <- function(means, sds, weights) {
  d <- ncol(means)
  parts <- function(x) {
    vapply(seq_along(sds), function(k) {
      log(weights[k]) - rowSums(sweep(x, 2, means[k, ])^2) / (2 * sds[k]^2) -
        d * log(sds[k]) - d / 2 * log(2 * pi)
    }, numeric(nrow(x)))
  }
  total <- function(at) log(rowSums(exp(at - apply(at, 1, max)))) + apply(at, 1, max)
  target_function(
    function(x) total(matrix(parts(x), nrow(x))), d,
    gradient = function(x) {
      at <- matrix(parts(x), nrow(x))
      share <- exp(at - total(at))
      Reduce(`+`, lapply(seq_along(sds), function(k) {
        -share[, k] * sweep(x, 2, means[k, ]) / sds[k]^2
      }))
    },
    vectorized = TRUE
  )
}

# Under a plan of future islands go to workers also where they would be done here sooner.
to_workers <- function(code) {
  with_internals(list(loading_seconds = -1), code)
}

with_threads <- function(n, code) {
  before <- options(autosmc.threads = n)
  on.exit(options(before))
  code
}
