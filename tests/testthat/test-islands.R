# Islands: independent final runs, what their spread says, and where they run.

target <- target_gaussian(2, mean = 1)

# By MALA from a reference that is the target all estimates would be 0.
on_islands <- function(islands = 5, kernel = "klmc", ..., n_steps = 6, seed = 1) {
  smc(
    target, ...,
    n_particles = 64, n_steps = n_steps, kernel = kernel, rounds = 1, islands = islands, seed = seed
  )
}

# the table of islands --------------------------------------------------------

test_that("no ancestor has descendants in two islands", {
  fit <- on_islands()
  pooled <- internal("pool")(
    internal("hold_islands")(fit$state$records, internal("pooled_draws")(fit)), fit$reference
  )
  expect_equal(1 / pooled$shared, internal("n_genealogies")(pooled))
})

test_that("there is a row an island, and one of `runs` for all together", {
  fit <- on_islands()
  islands <- fit$islands
  expect_s3_class(islands, "tbl_df")
  expect_identical(islands$island, 1:5)
  expect_true(all(c("log_z", "ess", "barrier", "n_target_evals", "seconds") %in%
    names(islands)))
  expect_false(any(islands$biased))
  expect_length(unique(islands$log_z), 5)
  expect_equal(islands$n_target_evals, rep(64 * (nrow(fit$schedule) + 1), 5))

  final <- fit$runs[fit$runs$run == "final", ]
  expect_identical(nrow(final), 1L)
  # the scout; a race of its reference and the given one; a round at least; the islands
  expect_identical(unique(fit$runs$run), c("scout", "adapt", "final"))
  expect_identical(fit$runs$label[1:3], c(NA, "shape", "best"))
  # which is the estimate of SMC; that of the fit may be the bridge's
  by_smc <- fit$estimates[fit$estimates$method == "smc", ]
  for (column in c("log_z", "std_error", "conf_low", "conf_high")) {
    expect_identical(final[[column]], by_smc[[column]])
  }
  expect_true(is.na(final$round))
  expect_true(final$used)
  expect_false(final$biased)
  expect_equal(final$islands, 5)
  expect_equal(final$n_particles, 64)
  # with the points at which an edge is looked for, those far out, and the draws of the bridge; and with rays and lines,
  # a twentieth each of what eight islands of 1,024 particles take in two steps
  beside <- final$n_target_evals - (sum(islands$n_target_evals) + 256 + 4 * 256 + 5 * 64)
  expect_gt(beside, 0)
  expect_lte(beside, 2 * 0.05 * 8 * 1024 * (1 + 2))
  expect_equal(final$n_objective_evals, 0)
  expect_equal(final$seconds, sum(islands$seconds))
  expect_equal(final$barrier, mean(islands$barrier))
})

test_that("`steps` has the steps of every island", {
  fit <- on_islands()
  final <- fit$steps[fit$steps$run == "final", ]
  expect_identical(unique(final$island), 1:5)
  expect_true(all(is.na(final$round)))
  for (i in 1:5) {
    steps <- final[final$island == i, ]
    expect_identical(steps$step, seq_len(nrow(fit$schedule)))
    for (column in c("lambda", "step_size", "refresh_rate")) {
      expect_identical(steps[[column]], fit$schedule[[column]])
    }
    expect_identical(steps$log_z[nrow(steps)], fit$islands$log_z[i])
    expect_identical(sum(steps$n_target_evals), fit$islands$n_target_evals[i])
  }
})

# The variance that the shares of the genealogies predict, for k sources of it.
from_shares <- function(shares, n, k) {
  sqrt(max(0, 1 - (n / (n - 1))^k * (1 - sum(shares^2))))
}

test_that("each island's spread is predicted from the genealogies of its particles", {
  # where nothing was resampled each particle is one
  fit <- smc_run(target, data.frame(lambda = c(0.5, 1), step_size = 0.4),
    n_particles = 64, islands = 3, ess_threshold = 0, seed = 1
  )
  expected <- tapply(exp(fit$log_weights), fit$island, function(w) from_shares(w / sum(w), 64, 1))
  expect_equal(fit$islands$predicted_sd, as.vector(expected))
  # particles that hardly move tell of their ancestors by where they are
  for (resampling in c("ssp", "multinomial")) {
    fit <- smc_run(target, data.frame(lambda = 1:4 / 4, step_size = 1e-16),
      kernel = kernel_rwmh(1e-16), n_particles = 64, islands = 2, ess_threshold = 1,
      resampling = resampling, seed = 1
    )
    expect_true(all(fit$steps$resampled[fit$steps$step < 4]))
    for (i in 1:2) {
      mine <- fit$island == i
      w <- exp(fit$log_weights[mine])
      ancestor <- round(fit$particles[mine, 1], 5)
      expect_lt(length(unique(ancestor)), 64)
      k <- if (resampling == "multinomial") 4 else 1
      expected <- from_shares(rowsum(w / sum(w), ancestor), 64, k)
      expect_equal(fit$islands$predicted_sd[i], expected)
    }
  }
})

# The standard deviation of 200 is known to 5 %, and the prediction may be a few percent
# too high, for it is made by particles that are not quite independent.
test_that("the prediction is what islands scatter by, whatever the resampling", {
  far <- target_gaussian(10, mean = 1)
  schedule <- adapt_plain(far, n_particles = 256, n_steps = 16, seed = 1)$schedule
  for (resampling in c("ssp", "residual", "multinomial")) {
    fit <- calmly(smc_run(far, schedule,
      n_particles = 256, islands = 200, resampling = resampling, seed = 1
    ))
    expect_gte(sum(fit$steps$resampled), 200)
    ratio <- sd(fit$islands$log_z) / sqrt(mean(fit$islands$predicted_sd^2))
    limit <- errors_for(200) / sqrt(2 * 199)
    expect_gt(ratio, 1 - limit - 0.1)
    expect_lt(ratio, 1 + limit)
  }
})

test_that("one more island leaves the others unchanged", {
  adapted <- smc_adapt(target, n_particles = 64, n_steps = 6, rounds = 1, seed = 1)
  # without the passes of smc(), which go on from what all islands have found
  on_islands <- function(islands, ...) {
    calmly(smc_run(target, adapted$schedule, ...,
      n_particles = 64, islands = islands, reference = adapted$reference, seed = 1
    ))
  }
  fits <- lapply(c(1, 2, 5), on_islands)
  most <- fits[[3]]
  for (fit in fits) {
    k <- nrow(fit$islands)
    expect_identical(
      without_time(fit)$islands,
      without_time(most)$islands[seq_len(k), ]
    )
    expect_identical(fit$particles, most$particles[most$island <= k, ])
    mine <- most$steps$island <= k | is.na(most$steps$island)
    expect_identical(fit$steps, most$steps[mine, ])
  }
  # also when precision adds them
  added <- suppressWarnings(on_islands(2, precision = 1e-9, max_islands = 5))
  expect_identical(
    without_time(added)$islands,
    without_time(most)$islands
  )
  expect_identical(added$log_z, most$log_z)
  expect_identical(added$particles, most$particles)
})

test_that("islands do not share randomness, with each other or the rounds", {
  fit <- on_islands(4, kernel = kernel_mala())
  expect_identical(anyDuplicated(fit$particles[, 1]), 0L)
  expect_identical(anyDuplicated(fit$steps$acceptance), 0L)
  expect_identical(anyDuplicated(on_islands(4)$islands$log_z), 0L)
})

# the estimate and its error --------------------------------------------------

test_that("the estimate is the mean, its error by the delta method and t", {
  by_spread <- 0
  for (islands in c(2, 3, 10, 11)) {
    fit <- on_islands(islands, seed = islands)
    by_smc <- fit$estimates[1, ]
    expect_identical(by_smc$method, "smc")
    z <- exp(fit$islands$log_z)
    n <- length(z)
    expect_equal(by_smc$log_z, log(mean(z)))
    spread <- sqrt(sum((z - mean(z))^2) / (n - 1) / n) / mean(z)
    predicted <- sqrt(sum((z * fit$islands$predicted_sd)^2)) / sum(z)
    by_spread <- by_spread + (spread > predicted)
    se <- max(spread, predicted)
    expect_equal(by_smc$std_error, se)
    half <- qt(0.975, n - 1) * se
    expect_equal(c(by_smc$conf_low, by_smc$conf_high), log(mean(z)) + c(-half, half))
  }
  expect_true(by_spread %in% 1:3) # both were met
})

test_that("the estimate neither overflows nor underflows", {
  shifted <- function(by) {
    smc_run(
      target_function(
        function(x) by - rowSums(x^2) / 2, 2,
        gradient = function(x) -x, vectorized = TRUE
      ),
      data.frame(lambda = c(0.3, 1), step_size = 0.4),
      n_particles = 32, islands = 4, seed = 1
    )
  }
  plain <- shifted(0)
  for (by in c(-2000, 2000)) {
    fit <- shifted(by)
    expect_equal(fit$log_z, plain$log_z + by)
    expect_equal(fit$std_error, plain$std_error, tolerance = 1e-6)
    expect_equal(sum(exp(fit$log_weights)), 1)
  }
})

test_that("a single island has no error, and says so", {
  for (fit in list(on_islands(1), smc_adapt(target, n_particles = 64, n_steps = 4))) {
    expect_true(is.finite(fit$log_z))
    for (field in c("std_error", "conf_low", "conf_high")) {
      expect_identical(fit[[field]], NA_real_)
      expect_identical(glance(fit)[[field]], NA_real_)
      expect_true(all(is.na(fit$runs[[field]])))
    }
    expect_length(unique(fit$island), 1) # 1, or one of a further pass
  }
  expect_output(print(on_islands(1)), "unbiased; a standard error needs more islands")
})

test_that("print() and glance() have the error and the interval", {
  fit <- on_islands()
  # as many decimals as show a digit of the error, three at least
  decimals <- max(3, ceiling(-log10(fit$std_error)))
  numbers <- sprintf(
    "%.*f", decimals, c(fit$log_z, fit$std_error, fit$conf_low, fit$conf_high)
  )
  numbers <- sub("^-(0[.]0*)$", "\\1", numbers)
  expect_output(print(fit), do.call(sprintf, c(
    "log Z: +%s, standard error %s.*\ninterval: +%s to %s \\(95 %%\\)", as.list(numbers)
  )))
  n_steps <- fit$runs$n_steps[nrow(fit$runs)]
  expect_output(print(fit), sprintf("64 particles, %d step%s, 5 islands", n_steps, if (n_steps > 1) "s" else ""))
  final <- format(fit$runs$n_target_evals[nrow(fit$runs)], big.mark = ",")
  expect_output(print(fit), paste("final", final))
  expect_output(print(fit), "320 weighted \\(effective sample size [0-9]+,")
  row <- glance(fit)
  expect_identical(nrow(row), 1L)
  for (field in c("log_z", "std_error", "conf_low", "conf_high")) {
    expect_identical(row[[field]], fit[[field]])
  }
  expect_equal(row$islands, 5)
  expect_equal(row$n_target_evals, sum(fit$runs$n_target_evals))
  expect_equal(row$n_steps, nrow(fit$schedule))
})

# How often the interval covers log Z = 0 of 300. It is somewhat wider than Student's,
# for it is never narrower than predicted: were the probability 0.95, fewer than 260 would
# cover with a probability of 1e-8, and were it 0.96, all with one of 5e-6.
test_that("the interval covers the truth as often as it says", {
  schedule <- data.frame(lambda = c(0.2, 0.5, 1), step_size = c(0.7, 0.6, 0.5))
  runs <- smc_run(
    target, schedule,
    n_particles = 64, kernel = kernel_mala(), islands = 2400, seed = 1
  )
  sets <- split(runs$islands, rep(1:300, each = 8))
  covers <- vapply(sets, function(islands) {
    interval <- get("combine", asNamespace("autosmc"))(islands)
    interval$conf_low <= 0 && 0 <= interval$conf_high
  }, logical(1))
  expect_gte(sum(covers), 260)
  expect_lt(sum(covers), 300)
})

# pooled draws ----------------------------------------------------------------

test_that("draws are pooled in proportion to each island's estimate", {
  fit <- on_islands(5)
  expect_identical(fit$island, rep(1:5, each = 64))
  expect_identical(dim(fit$particles), c(320L, 2L))
  expect_identical(colnames(fit$particles), c("x1", "x2"))
  w <- exp(fit$log_weights)
  expect_equal(sum(w), 1)
  share <- as.vector(tapply(w, fit$island, sum))
  z <- exp(fit$islands$log_z)
  expect_equal(share, z / sum(z))
  # within an island they are its own
  one <- calmly(smc_run(target, fit$schedule,
    reference = fit$reference, n_particles = 64, islands = 1, seed = 1
  ))
  expect_equal(w[1:64] / share[1], exp(one$log_weights))
  expect_equal(
    fit$islands$ess,
    as.vector(share^2 / tapply(w^2, fit$island, sum))
  )
})

test_that("moments of the pooled draws are right", {
  moments <- vapply(1:20, function(seed) {
    summary <- summary(on_islands(8, seed = seed))$variables
    c(summary$mean[1], summary$sd[1])
  }, numeric(2))
  expect_mean(moments[1, ], 1, resolution = 0.1)
  expect_mean(moments[2, ], 1, resolution = 0.1)
})

# precision -------------------------------------------------------------------

test_that("islands are added until the error is small enough", {
  adapted <- on_islands(1)
  fit <- smc_run(target, adapted$schedule,
    reference = adapted$reference, n_particles = 64, precision = 0.01,
    max_islands = 200, seed = 1
  )
  n <- nrow(fit$islands)
  expect_lte(fit$std_error, 0.01)
  # each time as many as the error calls for, but at least four and at most 64
  error <- function(n) {
    first <- fit$islands[seq_len(n), ]
    z <- exp(first$log_z)
    sqrt(max(var(z), mean((z * first$predicted_sd)^2)) / n) / mean(z)
  }
  expect_identical(n > 8, error(8) > 0.01)
  stages <- 8
  while (error(max(stages)) > 0.01 && max(stages) < n) {
    now <- max(stages)
    wanted <- ceiling(now * ((error(now) / 0.01)^2 - 1))
    stages <- c(stages, now + max(4, min(wanted, 64)))
  }
  expect_equal(max(stages), n)
  expect_equal(fit$std_error, error(n))
})

test_that("no island is added where none is needed", {
  fit <- on_islands(9, precision = 10)
  plain <- on_islands(9)
  expect_lt(abs(fit$log_z - plain$log_z), 1e-12) # of other points around the mode
  expect_identical(nrow(fit$islands), 9L)
  # an error by which a search may end takes eight
  expect_identical(nrow(on_islands(1, precision = 10)$islands), 8L)
  expect_bad(on_islands(1, precision = 10, max_islands = 1), "max_islands")
})

test_that("where the precision is not reached, a warning says so", {
  expect_warning(
    fit <- on_islands(3, precision = 1e-6, max_islands = 9),
    "precision.*9 islands",
    class = "autosmc_warning_precision"
  )
  expect_identical(nrow(fit$islands), 9L)
  # and how many it takes: the error falls as the root of their number
  warning <- catch_warning(
    on_islands(9, precision = fit$std_error / 10, max_islands = 9)
  )
  expect_match(message_of(warning), "About 900 such islands")
  expect_warning(
    fit <- smc_run(
      target, data.frame(lambda = c(0.3, 1), step_size = 0.4),
      n_particles = 16, islands = 8, precision = 1e-6, max_islands = 4, seed = 1
    ),
    class = "autosmc_warning_precision"
  )
  expect_identical(nrow(fit$islands), 4L)
  expect_warning(on_islands(3, precision = 10), NA)
})

# warnings --------------------------------------------------------------------

test_that("islands that disagree are warned of, and the fit says so", {
  run <- function() {
    smc(
      target_gaussian(20, mean = 5),
      n_particles = 32, n_steps = 4, rounds = 0, seed = 1
    )
  }
  warning <- catch_warning(run())
  expect_s3_class(warning, "autosmc_warning_unreliable")
  expect_match(message_of(warning), "twice the `n_particles`", fixed = TRUE)
  fit <- calmly(run())
  expect_gt(sd(fit$islands$log_z), 1)
  findings <- fit$diagnostics$says[!fit$diagnostics$passed]
  expect_true(all(c("scatter", "largest_share") %in%
    fit$diagnostics$name[!fit$diagnostics$passed]))
  for (finding in findings) {
    expect_match(gsub("\\s+", " ", conditionMessage(warning)), finding, fixed = TRUE)
    expect_match(printed_text(fit), paste("warning:", finding), fixed = TRUE)
  }
  # and still there is a fit, with its error
  expect_true(is.finite(fit$std_error))
  # not where they agree
  expect_warning(fit <- on_islands(8), NA)
  expect_false(any(grepl("warning", capture.output(print(fit)))))
})

# replicates ------------------------------------------------------------------

test_that("smc_replicate() has a row a run, with fresh randomness", {
  fit <- on_islands()
  runs <- smc_replicate(fit, 7, seed = 3)
  expect_s3_class(runs, "tbl_df")
  expect_identical(names(runs), c(
    "replicate", "log_z", "ess", "barrier", "n_target_evals", "seconds"
  ))
  expect_identical(runs$replicate, 1:7)
  expect_identical(anyDuplicated(c(runs$log_z, fit$islands$log_z)), 0L)
  expect_equal(runs$n_target_evals, rep(64 * (nrow(fit$schedule) + 1), 7))
  expect_true(all(runs$ess >= 1 & runs$ess <= 64))
  expect_identical(nrow(smc_replicate(fit, 1)), 1L)
})

test_that("smc_replicate() is the final run of the fit, with another seed", {
  for (kernel in list(kernel_klmc(), kernel_mala())) {
    fit <- on_islands(kernel = kernel)
    runs <- smc_replicate(fit, 3, seed = 9)
    again <- smc_run(
      target, fit$schedule,
      reference = fit$reference, kernel = kernel, n_particles = 64, islands = 3,
      seed = 9
    )
    expect_identical(runs$log_z, again$islands$log_z)
  }
})

test_that("smc_replicate() works on the fits of all verbs, and is unbiased", {
  adapted <- smc_adapt(target, n_particles = 64, n_steps = 6, kernel = "klmc", seed = 1)
  run <- smc_run(
    target, adapted$schedule,
    reference = adapted$reference, n_particles = 64, seed = 1
  )
  expect_mean(exp(smc_replicate(adapted, 300, seed = 1)$log_z), 1, 0.1)
  expect_identical(
    smc_replicate(run, 4, seed = 2)[c("log_z", "ess")],
    smc_replicate(adapted, 4, seed = 2)[c("log_z", "ess")]
  )
})

without_seconds <- function(runs) runs[names(runs) != "seconds"]

test_that("smc_replicate() draws once from R's generator, or not at all", {
  fit <- on_islands()
  set.seed(3)
  runif(1)
  once <- .Random.seed
  set.seed(3)
  first <- smc_replicate(fit, 3)
  expect_identical(.Random.seed, once)
  second <- smc_replicate(fit, 3)
  expect_false(any(first$log_z == second$log_z))
  set.seed(3)
  expect_identical(without_seconds(smc_replicate(fit, 3)), without_seconds(first))
  after <- .Random.seed
  seeded <- smc_replicate(fit, 3, seed = 1)
  expect_identical(.Random.seed, after)
  expect_identical(
    without_seconds(smc_replicate(fit, 5, seed = 1))[1:3, ],
    without_seconds(seeded)
  )
})

test_that("smc_replicate() names a wrong argument", {
  fit <- on_islands()
  for (bad in list(0, -1, 1.5, NA, NULL, "a")) {
    expect_bad_undrawn(smc_replicate(fit, bad), "n")
  }
  for (bad in list(NULL, 1, fit$steps)) {
    expect_bad_undrawn(smc_replicate(bad, 2), "fit")
  }
  expect_bad(smc_replicate(fit, 2, seed = -1), "seed")
  expect_bad_undrawn(smc_replicate(fit), "n")
  expect_bad_undrawn(smc_replicate(), "fit")
})

# randomness and settings -----------------------------------------------------

test_that("the whole default smc() draws once, or not at all", {
  quick <- function(...) smc(target, n_particles = 32, n_steps = 4, ...)
  set.seed(3)
  runif(1)
  once <- .Random.seed
  set.seed(3)
  fit <- quick()
  expect_identical(.Random.seed, once)
  again <- quick(seed = fit$seed)
  expect_identical(.Random.seed, once)
  expect_identical(without_time(again), without_time(fit))
  set.seed(3)
  smc_adapt(target, n_particles = 32, n_steps = 4)
  expect_identical(.Random.seed, once)
  set.seed(3)
  calmly(smc_run(target, fit$schedule, n_particles = 32, islands = 3))
  expect_identical(.Random.seed, once)
})

test_that("every setting is in the fit", {
  fit <- smc(
    target,
    n_particles = 48, n_steps = 5, rounds = 1, whiten = FALSE, max_steps = 77,
    islands = 8, precision = 2, max_islands = 9, kernel = kernel_lmc(),
    reference = reference_gaussian(0.1), tuner = tuner_kl(20),
    resampling = "systematic", ess_threshold = 0.7, seed = 12
  )
  expect_identical(fit$target, target)
  expect_equal(fit$n_particles, 48)
  expect_equal(fit$rounds, c(1, 1))
  expect_identical(fit$whiten, FALSE)
  expect_equal(fit$max_steps, 77)
  expect_identical(fit$precision, 2)
  expect_equal(fit$max_islands, 9)
  expect_identical(fit$kernel, kernel_lmc())
  expect_identical(fit$reference, reference_gaussian(0.1))
  expect_identical(fit$tuner, tuner_kl(20))
  expect_identical(fit$resampling, "systematic")
  expect_identical(fit$ess_threshold, 0.7)
  expect_identical(fit$seed, 12)
  expect_identical(nrow(fit$islands), 8L)
  expect_identical(anyDuplicated(names(fit)), 0L)
})

test_that("the defaults are in the fit", {
  fit <- smc(target, n_particles = 32, n_steps = 4, seed = 1)
  expect_equal(fit$rounds, c(1, 8))
  expect_true(fit$whiten)
  expect_equal(fit$max_steps, 64)
  expect_true("precision" %in% names(fit))
  expect_null(fit$precision)
  expect_equal(fit$max_islands, 64)
  expect_identical(nrow(fit$islands), 8L)
  # KLMC, but from a reference that fits HMC
  expect_identical(fit$kernel, kernel_hmc())
  from_given <- smc(target, n_particles = 32, n_steps = 4, whiten = FALSE, scout = FALSE, seed = 1)
  expect_identical(from_given$kernel, kernel_klmc())
  expect_identical(fit$tuner, tuner_kl())
  expect_identical(formals(smc)$n_steps, 64)
  # a standard error of 0.01 and 1,000 draws are aimed at where nothing else says how many particles there are
  aims <- function(...) unlist(smc(target, seed = 1, ...)[c("n_particles", "precision", "draws")])
  expect_equal(aims(), c(n_particles = 128, precision = 0.01, draws = 1000))
  expect_equal(aims(precision = 0.02), c(n_particles = 128, precision = 0.02, draws = 1000))
  expect_equal(aims(precision = NULL), c(n_particles = 1024))
  expect_equal(aims(islands = 2), c(n_particles = 1024))
  expect_equal(aims(n_particles = 256, precision = 0.1), c(n_particles = 256, precision = 0.1))
  expect_equal(aims(rounds = 0), c(n_particles = 1024))
  expect_equal(formals(smc_run)$islands, 1)
})

test_that("a wrong argument about islands is named, and nothing is drawn", {
  wrong <- list(
    islands = list(0, -1, 1.5, NA, NULL, "a", Inf, c(1, 2)),
    precision = list(0, -0.1, NA, "a", Inf, c(0.1, 0.2)),
    max_islands = list(0, 1.5, NA, NULL, "a")
  )
  schedule <- data.frame(lambda = 1, step_size = 0.3)
  for (name in names(wrong)) {
    for (bad in wrong[[name]]) {
      given <- setNames(list(bad), name)
      expect_bad_undrawn(do.call(smc, c(list(target), given)), name)
      expect_bad_undrawn(do.call(smc_run, c(list(target, schedule), given)), name)
    }
  }
  expect_bad_undrawn(smc_adapt(target, islands = 3), "islands")
  expect_bad_undrawn(smc_run(target, schedule, rounds = 1), "rounds")
})

# workers ---------------------------------------------------------------------

# All that `code` gives in this process, and by two workers.
both_ways <- function(code) {
  skip_if_not_installed("future")
  code <- substitute(code)
  here <- parent.frame()
  old <- future::plan(future::sequential)
  on.exit(future::plan(old))
  set.seed(3)
  sequential <- list(eval(code, here), .Random.seed)
  future::plan(future::multisession, workers = 2)
  set.seed(3)
  parallel <- to_workers(list(eval(code, here), .Random.seed))
  list(sequential = sequential, parallel = parallel)
}

expect_both_ways <- function(both) expect_identical(both$parallel, both$sequential)

# Fresh for each target, so that one call starts the workers once.
everything <- function(target) {
  fit <- smc(
    target,
    n_particles = 48, n_steps = 5, rounds = 1, islands = 4,
    precision = 1e-6, max_islands = 7
  )
  list(without_time(fit), without_seconds(smc_replicate(fit, 3)))
}

test_that("workers give identical results, and leave R's generator alone", {
  in_r <- local({
    centre <- c(0.5, -1) # found by the workers too
    target_function(
      function(x) -sum((x - centre)^2) / 2 - sum(x^4) / 10, 2,
      gradient = function(x) centre - x - 0.4 * x^3
    )
  })
  targets <- list(in_r, target_gaussian(3, mean = 1)) # the latter with data for its routine
  both <- both_ways(suppressWarnings(lapply(targets, everything)))
  expect_both_ways(both)
  methods <- lapply(both$sequential[[1]], function(of_target) of_target[[1]]$estimates$method)
  # none is needed from a reference that is the target
  expect_identical(methods, list(c("smc", "bridge"), "smc"))
})

test_that("workers load the library of a compiled target", {
  native_library()
  compiled <- target_native(
    "normal", "autosmc_test",
    dim = 3, init = "normal_init", data = c(1, -2, 0.5)
  )
  expect_both_ways(both_ways(suppressWarnings(everything(compiled))))
})

test_that("an error of a worker is the error it would have been", {
  fails <- target_function(
    function(x) if (x[1] > 1) stop("no more") else -sum(x^2) / 2, 2,
    gradient = function(x) -x
  )
  both <- both_ways({
    error <- catch(smc(
      fails,
      n_particles = 16, n_steps = 3, kernel = kernel_lmc(0.3), seed = 1
    ))
    list(class(error), error$step, error$run, conditionMessage(error$parent))
  })
  expect_both_ways(both)
  expect_true("autosmc_error_target" %in% both$parallel[[1]][[1]])
})

test_that("workers have what the user's functions use of the workspace", {
  skip_if_not_installed("future")
  in_workspace <- function(code) eval(code, globalenv())
  in_workspace(quote({
    autosmc_centre <- 0.5
    autosmc_off <- function(x) x - autosmc_centre
    autosmc_density <- function(x) {
      stopifnot(is.function(mean_se)) # of an attached package
      -sum(autosmc_off(x)^2) / 2
    }
    autosmc_gradient <- function(x) -autosmc_off(x)
  }))
  on.exit(in_workspace(quote(rm(
    autosmc_centre, autosmc_off, autosmc_density, autosmc_gradient
  ))))
  skip_if_not_installed("ggplot2")
  if (!"package:ggplot2" %in% search()) {
    suppressPackageStartupMessages(library("ggplot2", character.only = TRUE))
    on.exit(detach("package:ggplot2"), add = TRUE)
  }
  mine <- in_workspace(quote(
    autosmc::target_function(autosmc_density, 1, gradient = autosmc_gradient)
  ))
  both <- both_ways({
    fit <- calmly(smc_run(mine, data.frame(lambda = c(0.5, 1), step_size = 0.5),
      n_particles = 16, islands = 3, seed = 1
    ))
    list(without_time(fit)$islands, without_seconds(smc_replicate(fit, 3, seed = 2)))
  })
  expect_both_ways(both)
})

# islands in which all die ----------------------------------------------------

edge <- target_function(
  function(x) ifelse(x[, 1] > 1.2, dnorm(x[, 1], log = TRUE), -Inf),
  dim = 1, vectorized = TRUE
)
at_edge <- function(...) {
  calmly(smc_run(edge, data.frame(lambda = 1, step_size = 1), ...,
    kernel = kernel_rwmh(), n_particles = 16
  ))
}

test_that("an island in which all die counts as zero, and biases nothing", {
  many <- at_edge(islands = 1000, seed = 1)
  expect_mean(exp(many$islands$log_z), pnorm(-1.2), resolution = 0.02)

  fit <- at_edge(islands = 20, seed = 1)
  of_dead <- fit$islands$log_z == -Inf
  expect_gt(sum(of_dead), 0)
  expect_equal(fit$log_z, log(mean(exp(fit$islands$log_z))))
  expect_setequal(fit$island, fit$islands$island[!of_dead])
  expect_identical(nrow(fit$particles), 16L * sum(!of_dead))
  expect_equal(sum(exp(fit$log_weights)), 1)
  expect_true(all(is.finite(fit$particles)))
  expect_identical(nrow(fit$schedule), 1L)
  expect_output(print(fit), "log Z")
})

test_that("smc_replicate() has a row for a run in which all die", {
  runs <- smc_replicate(at_edge(islands = 4, seed = 1), 1000, seed = 1)
  expect_identical(runs$replicate, 1:1000)
  dead <- runs$log_z == -Inf
  # none of 16 draws beyond the edge: a probability of 0.143
  expect_mean(as.numeric(dead), pnorm(1.2)^16, resolution = 0.08)
  expect_identical(runs$ess[dead], rep(0, sum(dead)))
  expect_true(all(is.na(runs$barrier[dead]) & is.na(runs$seconds[dead])))
  expect_true(all(runs$ess[!dead] >= 1) && !anyNA(runs[!dead, ]))
  expect_equal(runs$n_target_evals[!dead], rep(32, sum(!dead)))
  expect_true(all(runs$n_target_evals[dead] >= 16 & runs$n_target_evals[dead] <= 32))
})

test_that("islands that are held keep nothing twice", {
  run <- function(island) {
    list(
      dead = FALSE, steps = NULL, runs = NULL, log_weights = numeric(5),
      particles = matrix(island + 0, 5, 2), coordinates = matrix(-island - 0, 5, 2),
      origins = 1:5
    )
  }
  held <- internal("hold_islands")()
  internal("pool_islands")(held, 1:2, run)
  internal("pool_islands")(held, 1:2, function(i) {
    if (i == 1) list(dead = list(step = 1)) else run(3)
  })
  expect_equal(held$draws$coordinates, matrix(rep(-(1:3), each = 5), 15, 2))
  expect_equal(held$draws$origins, 5 + 1:15)
  expect_null(unlist(lapply(held$records, `[[`, "particles")))
})

test_that("what is made of the pooled coordinates is what the islands had", {
  bounded <- target_function(function(x) sum(dgamma(x, 2, 3, log = TRUE)), 3, lower = 0)
  fits <- list(
    calmly(smc(target_funnel(), islands = 2, seed = 1)),
    smc(bounded, n_particles = 300, islands = 2, rounds = 1, kernel = "rwmh", seed = 2),
    smc_run(bounded, data.frame(lambda = c(0.5, 1), step_size = 0.1),
      kernel = "rwmh", n_particles = 300, islands = 2, seed = 3
    )
  )
  expect_gt(length(internal("maps_of")(fits[[1]]$reference, 10)), 1)
  for (fit in fits) {
    sampler <- internal("sampler_of_fit")(fit, fit$seed)
    path <- as.list(fit$schedule)
    run <- internal("run_sampler")(sampler, path, "final", fit$state$start + 1)
    of_second <- fit$island == fit$islands$island[2]
    expect_identical(fit$particles[of_second, ], run$particles)
    expect_identical(fit$state$draws$unconstrained[of_second, ], run$unconstrained)
  }
})

test_that("what is made by blocks is what is made at once", {
  n <- 1.3e5
  x <- matrix(sin(seq_len(10 * n)), n)
  rows <- which(x[, 1] > -0.9)
  expect_gt(length(rows) * 10, internal("numbers_in_block"))
  over_columns <- internal("over_columns")
  over_rows <- internal("over_rows")
  columns <- over_columns(x, rows, function(x, j) colSums(x) + j)
  expect_identical(columns, colSums(x[rows, ]) + 1:10)
  for (m in c(n, 5)) {
    all <- over_rows(x[1:m, ], function(x, i) rowSums(x) + i)
    expect_identical(all, rowSums(x[1:m, ]) + 1:m)
  }
  n <- length(rows)
  some <- function(i) x[rows[i], , drop = FALSE]
  expect_identical(internal("rows_by")(n, 10, some), x[rows, ])
  expect_identical(internal("rows_by")(5, 10, some), x[rows[1:5], ])
})
