# More islands for a fit: the same ones, whenever and wherever they are run.

target <- target_gaussian(2, mean = 1)
schedule <- data.frame(lambda = c(0.2, 0.5, 1), step_size = c(0.7, 0.6, 0.5))
run <- function(islands, ..., of = target) {
  calmly(smc_run(of, schedule, n_particles = 32, islands = islands, seed = 1, ...))
}
quick <- function(islands, ..., seed = 1) {
  calmly(smc(
    target,
    n_particles = 64, n_steps = 6, kernel = "klmc", rounds = 1, islands = islands, seed = seed, ...
  ))
}
bent <- target_function(
  function(x) -rowSums(x^2) / 2 - rowSums(x^4) / 10, 2,
  gradient = function(x) -x - 0.4 * x^3, vectorized = TRUE
)
adapted <- smc_adapt(bent, n_particles = 64, n_steps = 6, rounds = 1, seed = 1)

# But for what the bridges and diagnostics of the shorter fit have cost.
without_cost <- function(fit) {
  fit <- without_time(fit)
  fit$runs[nrow(fit$runs), c("n_target_evals", "n_calls")] <- NA
  fit
}

# smc_extend() ------------------------------------------------------------------

test_that("8 islands and 32 more are 40 at once", {
  expect_identical(without_time(smc_extend(run(8), islands = 40)), without_time(run(40)))
  # step by step, without gradients, and on a bounded scale
  bounded <- target_function(
    function(x) dgamma(x[1], 3, log = TRUE) + dnorm(x[2], log = TRUE),
    dim = 2, gradient = function(x) c(2 / x[1] - 1, -x[2]), lower = c(0, -Inf)
  )
  for (kernel in c("klmc", "mala", "rwmh")) {
    schedule$refresh_rate <- 0.5
    of_kernel <- function(n) {
      calmly(smc_run(bounded, schedule, n_particles = 32, islands = n, kernel = kernel, seed = 2))
    }
    grown <- calmly(smc_extend(smc_extend(of_kernel(1), islands = 3), islands = 7))
    expect_identical(without_time(grown), without_time(of_kernel(7)))
  }
})

test_that("the bridge, the headline and the diagnostics are those of all islands", {
  few <- smc_extend(adapted, islands = 4)
  many <- smc_extend(adapted, islands = 12)
  grown <- smc_extend(few, islands = 12)
  expect_identical(many$estimates$method, c("smc", "bridge"))
  expect_identical(without_cost(grown), without_cost(many))
  expect_false(identical(few$estimates, many$estimates))
  # the bridge and the diagnostics of the first islands count, too
  final <- function(fit) fit$runs$n_target_evals[nrow(fit$runs)]
  beside_few <- final(few) - sum(few$islands$n_target_evals)
  expect_gte(beside_few, 4 * 64 + 64)
  expect_equal(final(grown) - final(many), beside_few)
  plain <- function(n) {
    calmly(smc(target,
      n_particles = 64, n_steps = 6, rounds = 0, whiten = FALSE, islands = n, seed = 3
    ))
  }
  expect_identical(without_cost(smc_extend(plain(2), islands = 5)), without_cost(plain(5)))
})

test_that("islands in which all died count", {
  fit <- fit_with_dead_islands()
  expect_true(any(fit$islands$log_z == -Inf))
  more <- calmly(smc_extend(fit, islands = 16))
  expect_identical(nrow(more$islands), 16L)
  expect_identical(
    without_time(calmly(smc_combine(fit, smc_islands(fit, 13:16)))), without_time(more)
  )
})

test_that("a batch of islands that all die is so many estimates of zero", {
  calls <- 0
  dead <- numeric() # the calls at which the density is zero everywhere
  dying <- target_function(function(x) {
    calls <<- calls + 1
    if (calls %in% dead) rep(-Inf, nrow(x)) else -rowSums(x^2) / 2 - rowSums(x^4) / 10
  }, 2, gradient = function(x) -x - 0.4 * x^3, vectorized = TRUE)
  of_dead <- function(fit, n_living, n) {
    expect_identical(fit$islands$log_z > -Inf, seq_len(n) <= n_living)
    z <- c(exp(fit$islands$log_z[seq_len(n_living)]), rep(0, n - n_living))
    expect_equal(fit$estimates$log_z[1], log(mean(z)))
    expect_equal(sum(exp(fit$log_weights)), 1)
    expect_identical(nrow(fit$particles), length(fit$log_weights))
    expect_setequal(fit$island, seq_len(n_living))
  }
  at_first <- function(n) {
    calls <<- 0
    dead <<- seq_len(n)
  }
  for (keep in list("draws", 8)) {
    at_first(0)
    fit <- run(4, of = dying, keep = keep)
    at_first(100)
    of_dead(calmly(smc_extend(fit, islands = 7)), 4, 7)
    at_first(100)
    of_dead(calmly(smc_combine(fit, smc_islands(fit, 5:7))), 4, 7)
    calls <- 0
    dead <- 4 * (nrow(schedule) + 1) + 1:100
    of_dead(suppressWarnings(run(4, of = dying, keep = keep, precision = 1e-3, max_islands = 10)), 4, 10)
  }
  # the bridge is that of the islands that live
  at_first(0)
  fit <- calmly(smc(dying, n_particles = 64, n_steps = 6, rounds = 1, islands = 4, seed = 1))
  at_first(2) # an island ends with the first
  more <- calmly(smc_extend(fit, islands = 6))
  of_dead(more, 4, 6)
  expect_identical(more$estimates[2, ], fit$estimates[2, ])
})

test_that("a precision is reached, or not, also where most islands die", {
  target <- target_function(function(x) ifelse(rowSums(x^2) < 0.05, 0, -Inf), 2, vectorized = TRUE)
  for (seed in 1:20) {
    fit <- catch(calmly(smc(target, n_particles = 8, precision = 0.3, max_islands = 12, seed = seed)))
    expect_true(inherits(fit, c("smc_fit", "autosmc_error_degenerate")))
  }
})

test_that("draws of other things than the sampler moves stay so", {
  doubled <- target
  doubled$outputs <- function(x) cbind(twice = 2 * x[, 1])
  more <- smc_extend(run(2, of = doubled), islands = 4)
  expect_identical(without_time(more), without_time(run(4, of = doubled)))
  expect_identical(colnames(more$particles), "twice")
})

test_that("islands of a fit of smc() go on after its own", {
  fit <- quick(4)
  more <- calmly(smc_extend(fit, islands = 7))
  expect_identical(more$islands$log_z[1:4], fit$islands$log_z)
  expect_identical(anyDuplicated(more$islands$log_z), 0L)
  expect_identical(diff(more$islands$island), rep(1L, 6))
  expect_identical(more$steps[seq_len(nrow(fit$steps)), ], fit$steps)
  expect_identical(more$schedule, fit$schedule)
  expect_equal(nrow(more$particles), 7 * 64)
})

test_that("a precision is reached in batches that do not depend on how far a fit was", {
  fit <- run(4)
  wanted <- fit$std_error / 2
  at_once <- run(4, precision = wanted, max_islands = 200)
  grown <- calmly(smc_extend(fit, precision = wanted, max_islands = 200))
  expect_identical(without_time(grown), without_time(at_once))
  expect_lte(grown$std_error, wanted)
  # nothing is run where it is reached, and no more than allowed
  expect_identical(smc_extend(grown, precision = 1)$islands, grown$islands)
  expect_warning(
    capped <- smc_extend(fit, precision = 1e-9, max_islands = 9),
    class = "autosmc_warning_precision"
  )
  expect_identical(nrow(capped$islands), 9L)
})

test_that("batches are between 4 and 64", {
  n_wanted <- get("n_wanted", asNamespace("autosmc"))
  of_error <- function(error, max_islands = 1000, grows = FALSE) {
    fit <- list(estimates = data.frame(method = "smc", std_error = error))
    n_wanted(fit, 16, list(precision = 0.1, max_islands = max_islands, grows = grows))
  }
  expect_equal(of_error(0.1), 0)
  expect_equal(of_error(0.101), 4)
  expect_equal(of_error(0.2), 48)
  expect_equal(of_error(1), 64)
  expect_equal(of_error(1, 20), 4)
  expect_equal(of_error(1, 10), 0)
  # where islands may grow none are added that would not suffice
  expect_equal(of_error(0.2, 64, grows = TRUE), 48)
  expect_equal(of_error(0.2, 63, grows = TRUE), 0)
})

test_that("what takes long is said beforehand, with progress", {
  announce <- function(n, shown = TRUE) {
    internal("announce_islands")(
      list(show_progress = shown), n, list(n_target_evals = 1e5, seconds = 2), "{n} island{?s}", 600
    )
  }
  expect_message(announce(1000), "1000 islands: 100,000,000 evaluations.*33 min", class = "autosmc_message_cost")
  expect_silent(announce(299))
  expect_silent(announce(1000, shown = FALSE))
})

test_that("what a precision will cost is said beforehand, with progress", {
  fit <- run(8)
  precision <- fit$std_error / 2
  expect_message(
    suppressWarnings(smc_extend(fit, precision = precision, max_islands = 14, progress = TRUE)),
    "6 more islands.*768 evaluations",
    class = "autosmc_message_cost"
  )
  expect_no_message(
    suppressWarnings(smc_extend(fit, precision = precision, max_islands = 14, progress = FALSE))
  )
})

test_that("update() adds islands, and makes the fit anew where there is more to change", {
  fit <- run(4)
  n <- 6
  more <- calmly(update(fit, islands = n))
  expect_identical(without_time(more), without_time(run(6)))
  expect_identical(more$call$islands, quote(n))
  expect_identical(without_time(calmly(update(more))), without_time(more))
  expect_identical(without_time(calmly(update(fit, islands = 2))), without_time(run(2)))
  # islands that there are are not run again, nor is the target called
  expect_identical(calmly(update(fit, islands = 4))$islands, fit$islands)
  other <- calmly(update(fit, islands = 6, seed = 2))
  expect_false(any(other$islands$log_z %in% more$islands$log_z))
})

# in pieces ---------------------------------------------------------------------

test_that("islands by their numbers make the same fit, in any order", {
  fit <- run(3)
  pieces <- list(smc_islands(fit, 6), smc_islands(fit, c(5, 4)), smc_islands(fit, 7:8))
  expect_output(print(pieces[[2]]), "2 island")
  expect_identical(without_time(smc_combine(fit, pieces)), without_time(smc_extend(fit, islands = 8)))
  expect_identical(without_cost(smc_combine(fit, rev(pieces))), without_cost(smc_extend(fit, islands = 8)))
  expect_identical(
    without_time(smc_combine(adapted, smc_islands(adapted, 1:5))),
    without_time(smc_extend(adapted, islands = 5))
  )
  # those of smc_run() with the same schedule, whose estimate is SMC's alone
  by_run <- calmly(smc_run(bent, adapted$schedule,
    reference = adapted$reference, n_particles = 64, islands = 5, seed = 1
  ))
  expect_identical(
    smc_combine(adapted, smc_islands(adapted, 1:5))$estimates[1, ], by_run$estimates
  )
})

test_that("fits that were saved, and their islands, work in another session", {
  file <- tempfile()
  on.exit(unlink(file))
  fit <- run(2)
  saveRDS(list(fit, smc_islands(fit, 3)), file)
  back <- readRDS(file)
  expect_identical(
    without_time(smc_combine(back[[1]], back[[2]])), without_time(smc_extend(fit, islands = 3))
  )
})

test_that("what does not belong together is an error that names what differs", {
  fit <- run(2)
  third <- smc_islands(fit, 3)
  differs <- function(other, class = "autosmc_error_mismatch") {
    error <- catch(smc_combine(fit, other))
    expect_s3_class(error, class)
    error$differs
  }
  seeded <- calmly(smc_run(target, schedule, n_particles = 32, islands = 2, seed = 9))
  expect_identical(differs(smc_islands(seeded, 3)), "seed")
  steps <- schedule
  steps$step_size[2] <- 0.65
  steps <- calmly(smc_run(target, steps, n_particles = 32, islands = 2, seed = 1))
  expect_identical(differs(smc_islands(steps, 3)), "schedule")
  larger <- calmly(smc_run(target, schedule, n_particles = 33, islands = 2, seed = 1))
  expect_identical(differs(smc_islands(larger, 3)), "n_particles")
  expect_identical(differs(smc_islands(run(2, reference = reference_gaussian(1)), 3)), "reference")
  expect_identical(differs(smc_islands(run(2, of = target_gaussian(2, mean = 1.1)), 3)), "target")
  expect_identical(differs(smc_islands(run(2, kernel = "mala"), 3)), "kernel")
  edited <- function(name, value) {
    entry <- internal("read_entry")(third$entries[[1]])
    entry$settings[[name]] <- value
    body <- serialize(entry, NULL, xdr = FALSE)
    third$entries[[1]] <- c(internal("entry_mark"), charToRaw(internal("hash_of")(body)), body)
    third
  }
  expect_identical(differs(edited("version", "0.0.1")), "version")
  expect_match(message_of(catch(smc_combine(fit, edited("version", "0.0.1")))), "0.0.1")
  # text that comes from elsewhere is shown, and not run
  pwned <- tempfile()
  code <- sprintf("{file.create('%s')}", pwned)
  expect_match(message_of(catch(smc_combine(fit, edited("resampling", code)))), "{file.create('", fixed = TRUE)
  expect_false(file.exists(pwned))
  # of version 0.1.0
  old <- third
  old$entries <- list(list(settings = list(version = "0.1.0"), value = list()))
  expect_identical(differs(old), "version")

  expect_bad(smc_combine(fit, list(third, third)), "islands")
  expect_bad(smc_combine(fit, smc_islands(fit, 2)), "islands")
  expect_bad(smc_combine(fit, smc_islands(fit, 4)), "islands")
  missing <- conditionMessage(catch(smc_combine(fit, smc_islands(fit, 4:5))))
  expect_match(missing, "island 3 is missing", fixed = TRUE)
  missing <- conditionMessage(catch(smc_combine(fit, smc_islands(fit, 5))))
  expect_match(missing, "islands 3 and 4 are missing", fixed = TRUE)
  expect_bad(smc_combine(fit, list(third, 1)), "islands")
  expect_bad(smc_combine(fit, 1), "islands")
})

test_that("a fit of an older version prints, and is not extended", {
  old <- readRDS(test_path("fits", "0.1.0.rds"))
  expect_output(print(old), "log Z:.*standard error.*verdict:")
  expect_output(print(summary(old)), "log Z:.*mcse")
  expect_identical(names(coef(old)), old$target$names)
  expect_identical(dim(as.data.frame(old)), dim(old$particles))
  calls <- list(
    quote(smc_extend(old, islands = 4)), quote(smc_islands(old, 4)), quote(smc_combine(old, smc_islands(run(3), 4))),
    quote(smc_replicate(old, 2)), quote(update(old, islands = 4)), quote(plot(old, "maps"))
  )
  of_parts <- list(
    quote(smc(old$target)), quote(check_gradient(old$target)), quote(update(old, n_particles = 64)),
    quote(smc(target_funnel(2), reference = old$reference))
  )
  expect_old <- function(call, made_by) {
    error <- catch(eval(call))
    expect_s3_class(error, "autosmc_error_mismatch")
    expect_identical(error$differs, "version")
    expect_match(message_of(error), paste0(made_by, ", and this is"), fixed = TRUE)
  }
  for (call in calls) expect_old(call, "autosmc 0.1.0")
  for (call in of_parts) expect_old(call, "an older version of autosmc")
})

test_that("islands that were damaged, or changed, are an error", {
  fit <- run(2)
  piece <- smc_islands(fit, 3:4)
  n <- length(piece$entries[[2]])
  for (at in ceiling(n * 1:50 / 50)) {
    damaged <- piece
    damaged$entries[[2]][at] <- xor(damaged$entries[[2]][at], as.raw(4))
    expect_bad(smc_combine(fit, damaged), "islands")
    expect_match(message_of(catch(smc_combine(fit, damaged))), "island 4 is damaged")
  }
  expect_output(print(damaged), "damaged")
  swapped <- piece
  swapped$which <- 4:3
  expect_identical(catch(smc_combine(fit, swapped))$differs, "run")
  for (which in list(3, "a", NULL, c(3, 3), list(3, 4), 3:4 + 0.5)) {
    piece$which <- which
    expect_bad(smc_combine(fit, piece), "islands")
  }
  piece$entries <- 1:2
  expect_bad(smc_combine(fit, piece), "islands")
})

test_that("a wrong argument is named", {
  fit <- run(3)
  for (bad in list(2, 0, 3.5, NA, "a", c(4, 5))) {
    expect_bad_undrawn(smc_extend(fit, islands = bad), "islands")
  }
  expect_bad_undrawn(smc_extend(fit), "islands")
  for (bad in list(0, 1e-17, -1, NA, "a")) expect_bad_undrawn(smc_extend(fit, precision = bad), "precision")
  for (bad in list(0, 1.5, c(4, 4), NA, "a", numeric(), 2^16)) {
    expect_bad_undrawn(smc_islands(fit, bad), "which")
  }
  expect_bad_undrawn(smc_islands(fit), "which")
  for (bad in list(1, NULL, fit$steps)) {
    expect_bad_undrawn(smc_extend(bad, islands = 4), "fit")
    expect_bad_undrawn(smc_islands(bad, 4), "fit")
    expect_bad_undrawn(smc_combine(bad, list()), "fit")
  }
  fit$state <- NULL
  expect_bad_undrawn(smc_extend(fit, islands = 4), "fit")
})
