# the shape of the result ---------------------------------------------------

steps_columns <- c(
  "run", "step", "lambda", "step_size", "ess", "resampled", "log_z",
  "n_objective_evals", "n_target_evals", "tuner_status"
)
runs_columns <- c(
  "run", "log_z", "biased", "n_particles", "n_steps", "n_objective_evals",
  "n_target_evals", "n_impossible", "seconds"
)

small_smc <- function(target = target_gaussian(2, mean = 1), ...,
                      n_particles = 64, n_steps = 8, kernel = kernel_lmc()) {
  smc_plain(target, ..., n_particles = n_particles, n_steps = n_steps, kernel = kernel)
}

test_that("a fit has what its page says", {
  fit <- small_smc(seed = 1)
  expect_s3_class(fit, "smc_fit")
  expect_type(fit$log_z, "double")
  expect_length(fit$log_z, 1)
  expect_identical(dim(fit$particles), c(64L, 2L))
  expect_identical(colnames(fit$particles), c("x1", "x2"))
  expect_length(fit$log_weights, 64)
  expect_equal(sum(exp(fit$log_weights)), 1)
  expect_identical(fit$seed, 1)
})

test_that("`schedule` has a row a step", {
  fit <- small_smc(seed = 1)
  expect_s3_class(fit$schedule, "data.frame")
  expect_true(all(c("lambda", "step_size") %in% names(fit$schedule)))
  expect_identical(fit$schedule$lambda, schedule_power(8)[-1])
  expect_true(all(fit$schedule$step_size > 0))
})

test_that("`steps` has a row a run and step", {
  steps <- small_smc(seed = 1)$steps
  expect_s3_class(steps, "tbl_df")
  expect_true(all(steps_columns %in% names(steps)))
  expect_identical(steps$run, rep(c("adapt", "final"), each = 8))
  expect_identical(steps$step, rep(1:8, 2))
  expect_identical(steps$lambda, rep(schedule_power(8)[-1], 2))
  expect_type(steps$resampled, "logical")
  expect_true(all(steps$ess >= 1 & steps$ess <= 64 + 1e-9))
  adapt <- steps$run == "adapt"
  expect_identical(steps$step_size[adapt], steps$step_size[!adapt])
  expect_true(all(steps$n_objective_evals[adapt] > 0))
  expect_true(all(steps$n_objective_evals[!adapt] == 0))
  expect_true(all(steps$tuner_status[adapt] == "converged"))
  expect_true(all(is.na(steps$tuner_status[!adapt])))
})

test_that("a step resamples when its effective sample size is low", {
  steps <- small_smc(target_gaussian(2, mean = 8), n_steps = 4, seed = 1)$steps
  last <- steps$step == 4
  expect_identical(steps$resampled[!last], steps$ess[!last] < 32)
  expect_true(any(steps$resampled))
  expect_false(any(steps$resampled[last]))
})

test_that("`runs` counts the points without a finite log density", {
  count <- 0
  target <- target_function(
    function(x) {
      value <- ifelse(x[, 1] < 0, -Inf, -rowSums(x^2) / 2)
      count <<- count + sum(!is.finite(value))
      value
    },
    dim = 2, gradient = function(x) -x, vectorized = TRUE
  )
  fit <- calmly(smc_adapt(target, n_particles = 64, n_steps = 8, rounds = 1, seed = 1))
  expect_identical(fit$runs$run[1], "scout")
  expect_true(all(fit$runs$n_impossible > 0))
  # the check of the gradient asks for points of its own
  expect_lte(sum(fit$runs$n_impossible), count)
  fit <- calmly(smc_plain(target, n_particles = 64, n_steps = 8, seed = 1))
  count <- 0
  again <- calmly(smc_run(
    target, fit$schedule, reference = fit$reference, n_particles = 64, seed = 1
  ))
  expect_identical(sum(again$runs$n_impossible), count)
  expect_identical(small_smc(seed = 1)$runs$n_impossible, c(0, 0))
})

test_that("a particle without weight has no part in the draws, wherever it is", {
  x <- rbind(c(1, 2), c(Inf, NaN), c(3, 5), c(-Inf, 1))
  log_weights <- c(log(c(0.25, 0, 0.75)), -800)
  target <- normal_target(2)
  expect_identical(outputs_of(target, x, log_weights), x[c(1, 3, 3, 3), ])
  expect_identical(outputs_of(target, x, rep(NaN, 4)), x) # all have died
  # of a half-normal, with quantities that are not defined for the other half
  target <- target_function(
    function(x) ifelse(x[, 1] < 0, -Inf, -rowSums(x^2) / 2),
    dim = 2, gradient = function(x) -x, vectorized = TRUE
  )
  target$outputs <- function(u) {
    stopifnot(u[, 1] >= 0)
    cbind(log = log(u[, 1]))
  }
  fit <- calmly(smc_plain(target, n_particles = 64, n_steps = 8, seed = 1))
  expect_true(any(fit$log_weights == -Inf))
  expect_true(all(is.finite(c(coef(fit), vcov(fit)))))
})

test_that("`runs` has a row a run and agrees with `steps`", {
  fit <- small_smc(seed = 1)
  runs <- fit$runs
  expect_s3_class(runs, "tbl_df")
  expect_true(all(runs_columns %in% names(runs)))
  expect_identical(runs$run, c("adapt", "final"))
  expect_identical(runs$biased, c(TRUE, FALSE))
  expect_equal(runs$n_particles, c(64, 64))
  expect_equal(runs$n_steps, c(8, 8))
  expect_true(all(runs$seconds >= 0))
  ends <- fit$steps[fit$steps$step == 8, ]
  expect_identical(runs$log_z, ends$log_z)
  expect_identical(fit$log_z, runs$log_z[2])
  by_run <- function(x) as.vector(tapply(x, fit$steps$run, sum)[runs$run])
  # with the points at which an edge is looked for
  expect_equal(runs$n_target_evals, by_run(fit$steps$n_target_evals) + c(0, 256))
  expect_equal(runs$n_objective_evals, by_run(fit$steps$n_objective_evals))
})

test_that("each verb makes its own runs", {
  target <- target_gaussian(2, mean = 1)
  adapted <- adapt_plain(
    target,
    n_particles = 64, n_steps = 8, kernel = kernel_lmc(), seed = 1
  )
  expect_identical(adapted$runs$run, "adapt")
  expect_true(adapted$runs$biased)
  run <- smc_run(
    target, adapted$schedule,
    n_particles = 64, kernel = kernel_lmc(), seed = 1
  )
  expect_identical(run$runs$run, "final")
  expect_false(run$runs$biased)
  expect_equal(run$schedule, adapted$schedule)
})

test_that("a single variable, one step and two particles will do", {
  fit <- small_smc(normal_target(1), n_particles = 2, n_steps = 1, seed = 1)
  expect_identical(dim(fit$particles), c(2L, 1L))
  expect_identical(colnames(fit$particles), "x")
  expect_true(is.finite(fit$log_z))
})

# printing and summaries ----------------------------------------------------

test_that("a fit prints what matters", {
  fit <- small_smc(seed = 1)
  expect_output(print(fit), "Gaussian, 2 variables")
  expect_output(print(fit), sprintf("log Z: +%.3f", fit$log_z))
  expect_output(print(fit), "unbiased")
  expect_output(print(fit), "64 particles, 8 steps")
  total <- format(sum(fit$runs$n_target_evals), big.mark = ",")
  # the time of the whole call, with what comes between the runs
  fit$seconds <- 12.25
  expect_output(print(fit), sprintf("cost: +%s evaluations, 12.25 s [(]adapt ", total))
  expect_identical(glance(fit)$seconds, 12.25)
  expect_output(print(fit), "variable +mean +sd +q5 +median +q95 *\n +x1 ")
  lines <- capture.output(printed <- withVisible(print(fit)))
  expect_match(tail(lines, 1), "^verdict: ")
  expect_false(any(grepl("schedule", lines)))
  expect_output(print(fit, schedule = TRUE), "schedule:\n step +lambda +step_size")
  expect_bad(print(fit, schedule = 2), "schedule")
  expect_false(printed$visible)
  expect_identical(printed$value, fit)
})

test_that("no line of a fit is wider than the screen", {
  fit <- small_smc(seed = 1)
  fit$runs$n_target_evals <- 123456789
  fit$diagnostics <- tibble::tibble(
    name = "a", value = 1, limit = 0, passed = FALSE,
    says = paste(rep("There is much\n  to say.", 10), collapse = " ")
  )
  for (width in c(60, 80)) {
    old <- options(width = width)
    lines <- capture.output(print(fit))
    options(old)
    expect_lte(max(nchar(lines)), width)
  }
  expect_match(printed_text(fit), "final 123,456,789)", fixed = TRUE)
  expect_match(printed_text(fit), "much to say. There is", fixed = TRUE)
})

test_that("the last line says whether to trust the estimate", {
  verdict <- function(fit) tail(capture.output(print(fit)), 1)
  fit <- small_smc(seed = 1)
  fit$diagnostics <- tibble::tibble(
    name = c("a", "b", "c"), value = 1, limit = c(2, 0, 0), passed = c(TRUE, FALSE, FALSE),
    says = c("Well.", "This is wrong.", "So is that.")
  )
  expect_match(verdict(fit), "not to be trusted, 2 of 3 diagnostics failed")
  expect_output(print(fit), "warning: +This is wrong.\nwarning: +So is that.\nverdict")
  fit$diagnostics <- fit$diagnostics[1, ]
  expect_match(verdict(fit), "has passed")
  fit$diagnostics$passed <- TRUE
  fit$diagnostics <- rbind(fit$diagnostics, fit$diagnostics)
  expect_match(verdict(fit), "all 2 diagnostics passed")
  fit$diagnostics <- NULL
  expect_match(verdict(fit), "no diagnostics")
})

test_that("only some of many variables are printed, and all in a summary", {
  fit <- calmly(smc_run(target_gaussian(9), data.frame(lambda = 1, step_size = 0.1),
    n_particles = 16, islands = 2, seed = 1
  ))
  expect_output(print(fit), "x6 .*\n \\.\\.\\. and 3 more")
  text <- capture.output(print(summary(fit)))
  expect_true(all(vapply(sprintf(" x%d ", 1:9), function(x) any(grepl(x, text)), NA)))
})

test_that("variables that are constant or not a number are printed too", {
  fit <- small_smc(seed = 1)
  fit$particles <- cbind(fit$particles, one = 1, none = NaN)
  expect_output(print(fit), "one +1.00 +0 +1.00 +1.00 +1.00 *\n +none +NaN +NaN ")
})

test_that("numbers are printed in one format a column, and never as -0.000", {
  fixed <- get("fixed", asNamespace("autosmc"))
  expect_identical(fixed(c(-1e-9, 1e-9, -0.5, NA), 3), c("0.000", "0.000", "-0.500", "NA"))
  expect_identical(fixed(c(-0.2, 1.26), 0:1), c("0", "1.3"))
  expect_identical(fixed(c(-3e41, 1e9 - 1, NA), 0), c("-3.000e+41", "999999999", "NA"))
  fit <- small_smc(seed = 1)
  fit$schedule$lambda <- c(4.06e-4, 0.0013, 0.02, 0.1, 0.2, 0.3, 0.6476, 1)
  text <- capture.output(print(summary(fit)))
  expect_true(any(grepl("^ +1 0.000406 ", text)))
  expect_true(any(grepl("^ +8 1.000000 ", text)))
  # an error that is small shows
  fit$log_z <- -0.00012
  fit$std_error <- fit$conf_high <- 0.00021
  fit$conf_low <- -0.00001
  expect_output(print(fit), "log Z: +-0.0001, standard error 0.0002\ninterval: 0.0000 to 0.0002")
})

test_that("a tuned run is printed as biased", {
  adapted <- adapt_plain(
    normal_target(),
    n_particles = 16, n_steps = 3, kernel = kernel_lmc(),
    seed = 1
  )
  expect_output(print(adapted), "\\(biased\\)")
})

test_that("a summary has weighted means, deviations and quantiles", {
  fit <- small_smc(seed = 1)
  summary <- summary(fit)
  w <- exp(fit$log_weights)
  x <- fit$particles[, "x2"]
  row <- summary$variables[summary$variables$variable == "x2", ]
  expect_equal(row$mean, sum(w * x))
  expect_equal(row$sd, sqrt(sum(w * (x - sum(w * x))^2)))
  expect_equal(sum(w[x <= row$median]), 0.5, tolerance = 2 * max(w))
  expect_equal(sum(w[x <= row$q5]), 0.05, tolerance = 2 * max(w) / 0.05)
  expect_true(row$q5 < row$median && row$median < row$q95)
  expect_output(print(summary), "variable +mean +sd +q5 +median +q95 +mcse")
})

test_that("a column of draws that has NaN has no mean and no quantiles", {
  fit <- small_smc(seed = 1)
  fit$particles[3, "x1"] <- NaN # as where a generated quantity failed
  row <- summary(fit)$variables[1, c("mean", "sd", "q5", "median", "q95")]
  expect_true(all(is.nan(unlist(row))))
})

test_that("quantiles invert the weighted distribution function", {
  fit <- small_smc(seed = 1)
  fit$log_weights[fit$particles[, "x1"] > 2] <- -Inf # none of these can be one
  w <- exp(fit$log_weights)
  x <- fit$particles[, "x1"]
  for (p in c(0.001, 0.3, 0.5, 0.999)) {
    level <- abs(2 * p - 1) + 1e-12
    bounds <- tidy(fit, conf.int = TRUE, conf.level = level)
    below <- vapply(x, function(at) sum(w[x <= at]) / sum(w), 0)
    expected <- min(x[below >= (1 + sign(p - 0.5) * level) / 2])
    expect_identical(if (p < 0.5) bounds$conf.low[1] else bounds$conf.high[1], expected)
  }
})

on_islands <- function(seed, islands = 8, target = target_gaussian(2, mean = 1)) {
  smc_run(
    target, data.frame(lambda = c(0.2, 0.5, 1), step_size = c(0.7, 0.6, 0.5)),
    kernel = kernel_mala(), n_particles = 64, islands = islands, seed = seed
  )
}

# The variance of 150 estimates is known to 12 %, their mean squared error by eight islands
# each to 4 %: chance stays below six times the 12 % of the logarithm of their ratio.
test_that("`mcse` is how much the mean scatters", {
  summaries <- lapply(1:150, function(seed) {
    summary(calmly(on_islands(seed)))$variables
  })
  means <- vapply(summaries, `[[`, numeric(2), "mean")
  errors <- vapply(summaries, `[[`, numeric(2), "mcse")
  ratio <- rowMeans(errors^2) / apply(means, 1, var)
  expect_lt(max(abs(log(ratio))), 0.72)
  # there is nothing to learn it from in one island
  expect_true(all(is.na(summary(on_islands(1, 1))$variables$mcse)))
  expect_true(all(is.na(summary(small_smc(seed = 1))$variables$mcse)))
})

test_that("`mcse` is by the delta method, and counts islands in which all died", {
  fit <- fit_with_dead_islands()
  z <- exp(fit$islands$log_z)
  expect_true(any(z == 0) && sum(z > 0) > 1)
  own <- vapply(1:12, function(k) {
    mine <- fit$island == k
    w <- exp(fit$log_weights[mine])
    if (any(mine)) sum(w * fit$particles[mine, ]) / sum(w) else 0
  }, 0)
  ratio <- sum(z * own) / sum(z)
  row <- summary(fit)$variables
  expect_equal(row$mean, ratio)
  # of mean(a) / mean(z), the gradient and the covariance of both
  gradient <- c(1, -ratio) / mean(z)
  covariance <- cov(cbind(z * own, z)) / 12
  expect_equal(row$mcse, as.vector(sqrt(gradient %*% covariance %*% gradient)))
})

test_that("tidy() has a table of variables, of steps, of runs and of islands", {
  fit <- on_islands(1)
  expect_identical(tidy(fit, "steps"), fit$steps)
  expect_identical(generics::tidy(fit, what = "runs"), fit$runs)
  expect_identical(tidy(fit, "islands"), fit$islands)
  # as broom has them
  plain <- tidy(fit)
  expect_s3_class(plain, "tbl_df")
  expect_named(plain, c("term", "estimate", "std.error"))
  narrow <- tidy(fit, conf.int = TRUE, conf.level = 0.9)
  expect_named(narrow, c("term", "estimate", "std.error", "conf.low", "conf.high"))
  summary <- summary(fit)$variables
  same <- c("variable", "mean", "sd", "q5", "q95")
  expect_equal(narrow, setNames(summary[same], names(narrow)))
  wide <- tidy(fit, conf.int = TRUE)
  expect_true(all(wide$conf.low < narrow$conf.low))
  expect_true(all(wide$conf.high > narrow$conf.high))
})

test_that("augment() has a row a particle, with its weight", {
  fit <- on_islands(1)
  table <- augment(fit)
  expect_s3_class(table, "tbl_df")
  expect_named(table, c("x1", "x2", ".island", ".weight", ".log_weight"))
  expect_identical(table$x2, unname(fit$particles[, "x2"]))
  expect_identical(table$.island, rep(1:8, each = 64))
  expect_equal(sum(table$.weight), 1)
  expect_identical(exp(table$.log_weight), table$.weight)
  expect_equal(sum(table$.weight * table$x1), summary(fit)$variables$mean[1])
})

test_that("a wrong argument of the tables is named", {
  fit <- small_smc(seed = 1)
  for (bad in list("step", NULL, 1, c("steps", "runs"))) {
    expect_bad(tidy(fit, bad), "what")
  }
  for (bad in list(0, 1, 95, NA, "a", NULL, c(0.5, 0.9))) {
    expect_bad(tidy(fit, conf.level = bad), "conf.level")
  }
  expect_bad(tidy(fit, conf.int = 1), "conf.int")
  expect_bad(tidy(fit, conf_level = 0.9), "conf_level")
  expect_error(tidy(adapt_plain(normal_target(), n_particles = 16, n_steps = 2), "islands"),
    "needs a fit with islands",
    class = "autosmc_error_input"
  )
  expect_bad(augment(fit, data = 1), "data")
  expect_bad(glance(fit, conf_level = 0.9), "conf_level")
  expect_bad(summary(fit, probs = 0.9), "probs")
})

test_that("glance() has one row", {
  fit <- small_smc(seed = 1)
  row <- glance(fit)
  expect_identical(nrow(row), 1L)
  expect_identical(row$log_z, fit$log_z)
  expect_false(row$biased)
  expect_equal(row$n_target_evals, sum(fit$runs$n_target_evals))
  expect_identical(row$ess_mean, NA_real_)
})

test_that("`ess_mean` is how many independent draws would do, at most Kish's", {
  fit <- calmly(on_islands(1, target = target_gaussian(5, mean = 1)))
  v <- summary(fit)$variables
  expect_equal(glance(fit)$ess_mean, 1 / mean((v$mcse / v$sd)^2))
  expect_output(
    print(fit),
    sprintf("weighted \\(effective sample size %g,", signif(glance(fit)$ess_mean, 2))
  )
  # islands that agree in their means more than by chance
  kish <- 1 / sum(exp(2 * fit$log_weights))
  fit$particles <- fit$particles - ave(fit$particles, fit$island, col(fit$particles))
  expect_gt(1 / mean((summary(fit)$variables$mcse / v$sd)^2), kish)
  expect_identical(glance(fit)$ess_mean, kish)
  # of one island nothing is known
  alone <- on_islands(1, 1)
  expect_output(print(alone), "64 weighted *\n")
})

# The mean squared error of 60 fits' means in five variables of variance one is known
# to 8 %, by 300 squares, and the mean of what `ess_mean` says to 7 %. The weights alone
# say five times less, because they do not see that particles share ancestors.
test_that("means scatter as `ess_mean` says, where particles share ancestors", {
  target <- target_gaussian(5, mean = 2)
  schedule <- adapt_plain(target, n_particles = 256, n_steps = 10, tuner = tuner_kl(128), seed = 1)$schedule
  fits <- lapply(1:60, function(seed) {
    calmly(smc_run(target, schedule, n_particles = 128, islands = 8, seed = seed))
  })
  actual <- mean(vapply(fits, function(fit) summary(fit)$variables$mean - 2, 1:5 / 5)^2)
  said <- mean(vapply(fits, function(fit) 1 / glance(fit)$ess_mean, 0))
  by_weights <- mean(vapply(fits, function(fit) sum(exp(2 * fit$log_weights)), 0))
  expect_estimate(log(said / actual), sqrt(0.08^2 + 0.07^2), 0, 0.7)
  expect_gt(actual, 4 * by_weights)
})

test_that("settings print", {
  expect_output(print(kernel_lmc()), "LMC")
  expect_output(print(tuner_kl(64)), "n_subsample: 64")
  expect_output(print(reference_gaussian(1, 2)), "mean 1, sd 2")
  expect_output(print(normal_target(3)), "dimension: 3")
})

# what a run costs ----------------------------------------------------------

# A normal target that counts the points at which it was evaluated.
counting_target <- function(vectorized) {
  points <- 0
  target <- target_function(
    function(x) {
      points <<- points + if (vectorized) nrow(x) else 1
      if (vectorized) -rowSums(x^2) / 2 else -sum(x^2) / 2
    },
    dim = 2,
    gradient = normal_gradient,
    vectorized = vectorized
  )
  list(target = target, points = function() points)
}

test_that("an untuned run makes exactly N (T + 1) evaluations", {
  for (vectorized in c(FALSE, TRUE)) {
    counting <- counting_target(vectorized)
    fit <- small_smc(counting$target, kernel = kernel_lmc(0.3), seed = 1)
    expect_identical(counting$points(), 64 * 9)
    expect_equal(fit$runs$n_target_evals, 64 * 9)
    expect_equal(fit$islands$n_target_evals, 64 * 9)
    expect_equal(sum(fit$steps$n_target_evals), 64 * 9)
    expect_equal(fit$runs$n_objective_evals, 0)
  }
})

test_that("a tuned run makes B more for every evaluation of its objective", {
  for (vectorized in c(FALSE, TRUE)) {
    counting <- counting_target(vectorized)
    fit <- small_smc(counting$target, tuner = tuner_kl(20), seed = 1)
    expected <- 64 * 9 + 20 * fit$runs$n_objective_evals + c(0, 256)
    expect_equal(fit$runs$n_target_evals, expected)
    expect_identical(counting$points(), sum(expected))
    steps <- fit$steps
    start <- 64 * (steps$step == 1)
    expect_equal(
      steps$n_target_evals,
      64 + start + 20 * steps$n_objective_evals
    )
  }
})

test_that("a compiled target is evaluated as often", {
  target <- counted_target()
  counted_totals()
  fit <- small_smc(target, tuner = tuner_kl(20), seed = 1)
  totals <- counted_totals()
  expected <- 64 * 9 + 20 * fit$runs$n_objective_evals + c(0, 256)
  expect_equal(totals$points, sum(expected))
  expect_equal(fit$runs$n_target_evals, expected)
  expect_identical(totals$made, 3) # one a run, and one for the edges
  expect_identical(totals$live, 0)

  small_smc(target, kernel = kernel_lmc(0.3), seed = 1)
  expect_identical(counted_totals()$points, 64 * 9)
})

# randomness ----------------------------------------------------------------

test_that("the same seed gives the same fit, two seeds differ", {
  target <- target_gaussian(2, mean = 1)
  first <- small_smc(target, seed = 7)
  again <- small_smc(target, seed = 7)
  other <- small_smc(target, seed = 8)
  expect_identical(without_time(first), without_time(again))
  expect_false(any(first$particles == other$particles))
  expect_false(first$log_z == other$log_z)
})

test_that("set.seed() governs, and a fit knows its seed", {
  target <- target_gaussian(2, mean = 1)
  set.seed(3)
  first <- small_smc(target)
  second <- small_smc(target)
  set.seed(3)
  again <- small_smc(target)
  expect_identical(without_time(first), without_time(again))
  expect_false(first$log_z == second$log_z)
  repeated <- small_smc(target, seed = first$seed)
  expect_identical(without_time(first), without_time(repeated))
})

test_that("smc() draws exactly once from R's generator, or not at all", {
  target <- target_gaussian(2, mean = 1)
  set.seed(3)
  runif(1)
  once <- .Random.seed
  set.seed(3)
  small_smc(target)
  expect_identical(.Random.seed, once)
  small_smc(target, seed = 1)
  expect_identical(.Random.seed, once)
})

test_that("the two runs of a fit have different randomness", {
  fit <- small_smc(seed = 1)
  adapted <- adapt_plain(
    target_gaussian(2, mean = 1),
    n_particles = 64, n_steps = 8,
    kernel = kernel_lmc(), seed = 1
  )
  expect_false(any(fit$particles == adapted$particles))
})

test_that("each half with a fit's seed repeats its run", {
  target <- target_gaussian(2, mean = 1)
  fit <- small_smc(target, seed = 7)
  final <- smc_run(
    target, fit$schedule,
    n_particles = 64, kernel = kernel_lmc(),
    seed = fit$seed
  )
  expect_identical(final$particles, fit$particles)
  expect_identical(final$log_weights, fit$log_weights)
  expect_identical(final$steps, fit$steps[fit$steps$run == "final", ])
  adapted <- adapt_plain(
    target,
    n_particles = 64, n_steps = 8, kernel = kernel_lmc(),
    seed = fit$seed
  )
  expect_identical(adapted$steps, fit$steps[fit$steps$run == "adapt", ])
})

# Where all step sizes of the islands are those of adaptation, or a fraction of them. The
# draws are plainly normal, so that there is no further pass.
test_that("smc() is its halves", {
  target <- target_gaussian(3, mean = 2)
  for (kernel in list(kernel_klmc(), kernel_lmc(), kernel_mala())) {
    settings <- list(target, n_particles = 256, n_steps = 8, kernel = kernel, seed = 4)
    fit <- do.call(smc, c(settings, islands = 3))
    expect_identical(sum(fit$runs$run == "final"), 1L) # of a single pass
    adapted <- do.call(smc_adapt, settings)
    expect_false(identical(adapted$reference, reference_gaussian()))
    schedule <- adapted$schedule
    if (kernel$name == "klmc") {
      schedule$step_size <- fit$step_fraction * schedule$step_size
      schedule$refresh_rate <- sqrt(1 - exp(-4 * schedule$step_size))
    }
    run <- smc_run(target, schedule,
      reference = adapted$reference, kernel = kernel, n_particles = 256, islands = 3, seed = 4
    )
    expect_identical(without_time(fit)$islands, without_time(run)$islands)
    expect_identical(fit$particles, run$particles)
    expect_identical(fit$steps[fit$steps$run == "adapt", ], adapted$steps)
    expect_identical(fit$log_z, run$log_z)
  }
})

# Outside a thin shell the density is zero: of the 256 particles that start some four are in it. Of those that start
# from a later reference there may be none.
test_that("a round in which all particles die is a rejected round, no error", {
  shell <- target_function(
    function(x) ifelse(abs(sqrt(rowSums(x^2)) - sqrt(2)) < 0.01, 0, -Inf), 2,
    gradient = function(x) 0 * x, vectorized = TRUE
  )
  n_dead <- 0
  for (seed in 1:10) {
    adapted <- catch(smc_adapt(shell, n_particles = 256, n_steps = 4, rounds = 3, kernel = kernel_rwmh(), seed = seed))
    if (inherits(adapted, "error")) {
      # the first one that dies leaves nothing
      expect_s3_class(adapted, "autosmc_error_degenerate")
      next
    }
    runs <- adapted$runs
    expect_identical(runs$round, 0:3)
    dead <- runs[runs$log_z == -Inf, ]
    n_dead <- n_dead + nrow(dead)
    expect_false(any(dead$used))
    expect_true(all(dead$round > 0))
    # its evaluations count, and it has no time to tell of
    expect_true(all(dead$n_target_evals >= 256))
    expect_true(is.finite(adapted$log_z))
    expect_identical(adapted$log_z, tail(runs$log_z[runs$used], 1))
  }
  expect_gt(n_dead, 0)
})

# schedules and step sizes --------------------------------------------------

test_that("smc_run() takes a schedule with or without a row for the start", {
  run <- function(schedule) {
    smc_run(
      target_gaussian(2, mean = 1), schedule,
      n_particles = 16, kernel = kernel_lmc(), seed = 1
    )
  }
  plain <- data.frame(lambda = c(0.2, 1), step_size = c(0.6, 0.3))
  with_start <- rbind(data.frame(lambda = 0, step_size = NA), plain)
  expect_identical(without_time(run(plain)), without_time(run(with_start)))
  expect_identical(
    without_time(run(plain)),
    without_time(run(tibble::as_tibble(plain)))
  )
})

test_that("smc_run() moves by the kernel that the schedule names", {
  target <- target_gaussian(2, mean = 1)
  for (kernel in list(kernel_klmc(), kernel_lmc(), kernel_mala(), kernel_rwmh())) {
    fit <- smc_plain(target, n_particles = 32, n_steps = 3, kernel = kernel, seed = 1)
    # from a file, too
    file <- tempfile(fileext = ".csv")
    write.csv(fit$schedule, file, row.names = FALSE)
    saved <- read.csv(file, stringsAsFactors = TRUE)
    again <- calmly(smc_run(target, saved, n_particles = 32, seed = 1))
    expect_identical(again$kernel$name, kernel$name)
    expect_equal(again$particles, fit$particles)
    # one that is asked for goes before
    other <- calmly(
      smc_run(target, saved, n_particles = 32, kernel = kernel_mala(n_moves = 2), seed = 1)
    )
    expect_identical(other$kernel$label, "MALA")
  }
  plain <- data.frame(lambda = c(0.3, 1), step_size = 0.5)
  expect_identical(calmly(smc_run(target, plain, n_particles = 8))$kernel$name, "lmc")
  plain$refresh_rate <- 0.5
  expect_identical(calmly(smc_run(target, plain, n_particles = 8))$kernel$name, "klmc")
  for (bad in list("nuts", 1, c("lmc", "mala"), TRUE)) {
    plain$kernel <- bad
    expect_bad_undrawn(smc_run(target, plain), "schedule$kernel")
  }
})

test_that("a step size or one a step switches the tuning off", {
  target <- target_gaussian(2, mean = 1)
  one <- small_smc(target, kernel = kernel_lmc(0.3), seed = 1)
  many <- small_smc(target, kernel = kernel_lmc(rep(0.3, 8)), seed = 1)
  expect_identical(one$runs$run, "final")
  expect_false(one$runs$biased)
  expect_identical(one$schedule$step_size, rep(0.3, 8))
  expect_identical(one$particles, many$particles)
  given <- small_smc(target, kernel = kernel_lmc((8:1) / 10), seed = 1)
  expect_identical(given$steps$step_size, (8:1) / 10)
})

test_that("LMC weighed by detailed balance is flagged as biased", {
  kernel <- kernel_lmc(0.3, backward = "detailed_balance")
  fit <- small_smc(kernel = kernel, seed = 1)
  expect_true(fit$runs$biased)
})

test_that("`schedule` and `n_steps` agree", {
  fit <- smc_plain(
    target_gaussian(2),
    schedule = c(0, 0.1, 1), n_particles = 16,
    kernel = kernel_lmc(), seed = 1
  )
  expect_identical(fit$schedule$lambda, c(0.1, 1))
  expect_equal(fit$runs$n_steps, c(2, 2))
  expect_identical(schedule_power(4), c(0, 1, 4, 9, 16) / 16)
  expect_identical(schedule_power(4, power = 1), (0:4) / 4)
})

test_that("the default sub-sample is lowered to the number of particles", {
  fit <- small_smc(n_particles = 32, seed = 1)
  adapt <- fit$runs[1, ]
  expect_equal(adapt$n_target_evals, 32 * (9 + adapt$n_objective_evals))
})

test_that("a reference of functions takes part in the race", {
  reference <- reference_function(
    function(n) matrix(rnorm(n, 1, 2), n),
    function(x) dnorm(x, 1, 2, log = TRUE),
    function(x) (1 - x) / 4
  )
  fit <- calmly(smc(normal_target(1),
    reference = reference, n_particles = 128, n_steps = 8, islands = 4, seed = 1
  ))
  expect_true(all(c("best", "given") %in% fit$runs$label))
  expect_log_z(fit, log(2 * pi) / 2)
})

test_that("a progress bar can be had", {
  with_bar <- small_smc(progress = TRUE, seed = 1)
  without <- small_smc(progress = FALSE, seed = 1)
  expect_identical(with_bar$particles, without$particles)
})
