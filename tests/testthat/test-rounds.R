# Rounds of adaptation: barriers, references, and what they are good for.

expect_rises <- function(schedule, n_steps = length(schedule) - 1) {
  expect_length(schedule, n_steps + 1)
  expect_identical(schedule[c(1, n_steps + 1)], c(0, 1))
  expect_true(all(diff(schedule) > 0))
}

# the next schedule -----------------------------------------------------------

# A barrier that is known at every temperature, as the steps of a run.
known_barrier <- function(lambda) 4 * log1p(20 * lambda) + lambda
known_steps <- function(n_steps = 100) {
  lambda <- schedule_power(n_steps)[-1]
  steps_of(lambda, known_barrier(lambda))
}

# Steps of an exact kernel, short ones, that has met this cumulative barrier.
steps_of <- function(lambda, barrier) {
  data.frame(lambda = lambda, length = diff(c(0, barrier)), barrier = barrier)
}

next_schedule <- internal("barrier_schedule")

test_that("the next schedule has steps of equal lengths", {
  total <- known_barrier(1)
  for (n_steps in c(2, 5, 20, 60)) {
    schedule <- next_schedule(known_steps(), n_steps, 256)
    expect_rises(schedule, n_steps)
    increments <- diff(known_barrier(schedule))
    expect_equal(increments, rep(total / n_steps, n_steps), tolerance = 0.01)
  }
})

test_that("the next schedule is as long as twice the barrier, up to a limit", {
  total <- known_barrier(1)
  expect_rises(next_schedule(known_steps(), NULL, 256), ceiling(2 * total))
  expect_rises(next_schedule(known_steps(), NULL, 7), 7)
  scaled <- function(size) {
    steps <- known_steps()
    steps[-1] <- steps[-1] * size / total
    next_schedule(steps, NULL, 256)
  }
  expect_rises(scaled(0.01), 2)
  expect_rises(scaled(1), 2)
  expect_rises(scaled(1.01), 3)
  expect_rises(scaled(1e5), 256)
})

test_that("what an inexact kernel adds to each step makes more steps, but no other places", {
  added <- exact <- known_steps()
  added$barrier <- exact$barrier + 0.05 * seq_len(nrow(exact))
  expect_identical(next_schedule(added, 20, 256), next_schedule(exact, 20, 256))
  expect_rises(next_schedule(added, NULL, 256), ceiling(2 * (known_barrier(1) + 5)))
})

test_that("from the target itself only the kernel is met, and steps are spread evenly", {
  # with a reference that is the target every temperature is the same distribution
  fit <- smc_adapt(
    target_gaussian(3),
    n_particles = 256, n_steps = 8, rounds = 0, whiten = FALSE, seed = 1
  )
  expect_lt(max(fit$steps$length), 1e-12) # rounding
  expect_true(all(fit$steps$lcb > 0.01))
  wide <- smc_adapt(
    target_gaussian(3),
    reference = reference_gaussian(sd = 1.01),
    n_particles = 256, n_steps = 8, rounds = 0, whiten = FALSE, seed = 1
  )
  # between normal distributions so near each other the path has the same speed everywhere
  expect_equal(schedule_barrier(wide, n_steps = 4), (0:4) / 4, tolerance = 0.05)
})

# From N(0, s^2 I) to N(0, I) the precision is 1 - k (1 - lambda), with k = 1 - 1 / s^2, and
# log p - log q is -k / 2 times a sum of squares.
test_that("the length of a step is as the normal distribution has it", {
  d <- 4
  s <- 1.6
  for (kernel in list(kernel_klmc(), kernel_mala())) {
    fit <- smc_adapt(
      target_gaussian(d),
      kernel = kernel, reference = reference_gaussian(sd = s),
      n_particles = 4096, n_steps = 8, rounds = 0, whiten = FALSE, seed = 1
    )
    k <- 1 - 1 / s^2
    lambda <- fit$steps$lambda
    expected <- diff(c(0, lambda)) * k / 2 * sqrt(2 * d) / (1 - k * (1 - lambda))
    # a standard deviation of n squares summed over d; n is at least the last effective sample size,
    # by half, for what resampling has made alike
    error <- sqrt((2 + 12 / d) / 4 / (min(fit$steps$ess) / 2))
    expect_lt(max(abs(fit$steps$length / expected - 1)), errors_for(Inf) * error)
  }
})

test_that("a flat way, or a flat part, leaves a schedule", {
  lambda <- (1:5) / 5
  flat <- steps_of(lambda, barrier = rep(0, 5))
  expect_rises(next_schedule(flat, NULL, 256), 2)
  expect_rises(next_schedule(flat, 10, 256), 10)
  expect_rises(next_schedule(steps_of(1, 3), NULL, 256))
  for (barrier in list(c(0, 0, 1, 2, 3), c(1, 1, 1, 2, 3), c(1, 1, 2, 2, 4))) {
    steps <- steps_of(lambda, barrier)
    expect_rises(next_schedule(steps, NULL, 256))
    expect_rises(next_schedule(steps, 12, 256), 12)
  }
})

test_that("schedule_barrier() works on the fits of all verbs", {
  target <- target_gaussian(3, mean = 2)
  adapted <- smc_adapt(target, n_particles = 64, n_steps = 8, seed = 1)
  fits <- list(
    smc(target, n_particles = 64, n_steps = 8, islands = 3, seed = 1),
    adapted,
    smc_run(
      target, adapted$schedule,
      reference = adapted$reference, n_particles = 64, islands = 2, seed = 1
    )
  )
  for (fit in fits) {
    schedule <- schedule_barrier(fit)
    expect_rises(schedule)
    built_on <- max(fit$runs$round[fit$runs$used], na.rm = TRUE, -1)
    last <- fit$steps$run[nrow(fit$steps)]
    one_run <- subset(fit$steps, run == last & ifelse(is.na(round),
      island == min(island, na.rm = TRUE), round == built_on
    ))
    expect_identical(anyDuplicated(one_run$step), 0L)
    expected <- next_schedule(one_run, NULL, 64)
    expect_identical(schedule, expected)
    for (n in c(9, 70)) expect_rises(schedule_barrier(fit, n_steps = n), n)
    expect_rises(schedule_barrier(fit, max_steps = 2), 2)
    again <- smc_adapt(
      target,
      schedule = schedule, n_particles = 64, rounds = 0, seed = 2
    )
    expect_identical(again$schedule$lambda, schedule[-1])
  }
})

test_that("`barrier` is the sum of `lcb`, run by run", {
  fit <- smc(
    target_gaussian(3, mean = 2),
    n_particles = 64, n_steps = 8, islands = 3, seed = 1
  )
  which <- paste(fit$steps$run, fit$steps$round, fit$steps$island)
  of <- function(run) fit$runs$barrier[fit$runs$run == run]
  expect_length(unique(which), length(of("adapt")) + 3)
  expect_true(all(fit$steps$lcb >= 0))
  expect_equal(fit$steps$barrier, ave(fit$steps$lcb, which, FUN = cumsum))
  ends <- !duplicated(which, fromLast = TRUE)
  expect_equal(fit$steps$barrier[ends], c(of("adapt"), fit$islands$barrier))
  expect_equal(fit$runs$barrier[fit$runs$run == "final" & fit$runs$used], mean(fit$islands$barrier))
})

test_that("the temperatures of a round make its steps more equal", {
  # those of the first round are far too close at the start
  unevenness <- vapply(1:6, function(seed) {
    fit <- smc_adapt(
      target_gaussian(10, mean = 4),
      n_particles = 512, schedule = schedule_power(40, 4), rounds = 1,
      whiten = FALSE, kernel = kernel_mala(), seed = seed
    )
    lcb <- split(fit$steps$lcb, fit$steps$round)
    vapply(lcb, function(x) sd(x) / mean(x), numeric(1))
  }, numeric(2))
  expect_true(all(unevenness[1, ] > 0.5))
  # of 40 seeds the mean is 0.10 and the standard deviation 0.025: four of them, and four errors of the mean
  expect_true(all(unevenness[2, ] < 0.2))
  expect_lt(mean(unevenness[2, ]), 0.14)
})

# references with a covariance ------------------------------------------------

correlated <- rbind(c(2, 0.9, 0), c(0.9, 1, -0.3), c(0, -0.3, 0.5))
centre <- c(1, -1, 0.5)
precision_of <- solve(correlated)
from_centre <- function(x) sweep(x, 2, centre)
correlated_target <- target_function( # the evidence is 1
  function(x) {
    -rowSums((from_centre(x) %*% precision_of) * from_centre(x)) / 2 -
      log(det(2 * pi * correlated)) / 2
  }, 3,
  gradient = function(x) -from_centre(x) %*% precision_of, vectorized = TRUE
)

test_that("with a covariance for reference the evidence is right", {
  references <- list(
    reference_gaussian(centre + 0.3, cov = 1.5 * correlated),
    reference_gaussian(cov = rbind(c(6, -1, 0.5), c(-1, 4, 1), c(0.5, 1, 2)))
  )
  for (reference in references) {
    fit <- calmly(smc_run(
      correlated_target,
      data.frame(lambda = schedule_power(8)[-1], step_size = 0.3, refresh_rate = 0.9),
      reference = reference, n_particles = 256, islands = 60, seed = 1
    ))
    expect_log_z(fit, 0)
    w <- exp(fit$log_weights)
    expect_equal(colSums(w * fit$particles), centre,
      tolerance = 0.05, ignore_attr = TRUE
    )
    expect_equal(
      crossprod(sqrt(w) * from_centre(fit$particles)), correlated,
      tolerance = 0.1, ignore_attr = TRUE
    )
  }
})

test_that("a diagonal covariance and its standard deviations are the same", {
  sd <- c(1.3, 0.4, 2.1)
  run <- function(reference, kernel) {
    calmly(smc_plain(
      correlated_target,
      reference = reference, kernel = kernel, n_particles = 64, n_steps = 6,
      seed = 1
    ))
  }
  for (kernel in list(kernel_klmc(0.2, 0.9), kernel_lmc(0.1), kernel_mala(0.3))) {
    by_sd <- run(reference_gaussian(centre, sd = sd), kernel)
    by_cov <- run(reference_gaussian(centre, cov = diag(sd^2)), kernel)
    expect_equal(by_sd$log_z, by_cov$log_z, tolerance = 1e-8)
    expect_equal(by_sd$particles, by_cov$particles, tolerance = 1e-8)
  }
})

test_that("a reference fitted to the target makes all weights equal", {
  fit <- smc_run(
    correlated_target, data.frame(lambda = 1, step_size = 0.5),
    reference = reference_gaussian(centre, cov = correlated),
    kernel = kernel_mala(), n_particles = 64, seed = 1
  )
  expect_equal(fit$log_z, 0, tolerance = 1e-10)
  expect_equal(fit$log_weights, rep(-log(64), 64), tolerance = 1e-10)
})

test_that("a wrong covariance is named", {
  wrong <- list(
    matrix(c(1, 0.5, 0.4, 1), 2), # not symmetric
    matrix(c(1, 2, 2, 1), 2), # not positive definite
    matrix(c(1, 1, 1, 1), 2), # nor this
    matrix(c(1, NA, NA, 1), 2), matrix(c(Inf, 0, 0, 1), 2),
    matrix(1:6, 2), matrix("a", 2, 2), c(1, 2), 1, "a", list(1)
  )
  for (cov in wrong) {
    expect_bad(reference_gaussian(cov = cov), "cov")
  }
  expect_bad(reference_gaussian(sd = 1, cov = diag(2)), "cov")
  expect_bad(reference_gaussian(sd = 1, cov = diag(2)), "sd")
  for (verb in list(smc, smc_adapt)) {
    expect_bad_undrawn(
      verb(target_gaussian(3), reference = reference_gaussian(cov = diag(2))),
      "cov"
    )
    expect_bad_undrawn(
      verb(target_gaussian(2), reference = reference_gaussian(1:3, cov = diag(2))),
      "mean"
    )
  }
  expect_output(
    print(reference_gaussian(cov = diag(2))),
    "mean 0, a 2 x 2 covariance"
  )
  named <- diag(2)
  dimnames(named) <- list(c("a", "b"), c("a", "b"))
  expect_identical(reference_gaussian(cov = named), reference_gaussian(cov = diag(2)))
})

# rounds ----------------------------------------------------------------------

small_target <- target_gaussian(4, mean = 2)
in_rounds <- function(rounds = 2, seed = 1, ..., verb = smc_adapt, scout = FALSE) {
  verb(small_target, ...,
    n_particles = 128, n_steps = 12, rounds = rounds, scout = scout, seed = seed
  )
}

# A course of adaptation, with all its records.
course_of <- function(target, rounds, ..., scout = FALSE, n_steps = 12, seed = 1) {
  internal("find_evidence")(
    sampler_for(target, ..., seed = seed),
    list(lambda = schedule_power(n_steps)[-1]),
    list(
      rounds = rounds, whiten = TRUE, scout = scout, max_steps = 64, max_evals = Inf
    )
  )
}

# the race --------------------------------------------------------------------

# A race of the reference `found`, as the scout's, and of `given`.
race_of <- function(found, given, target, n_particles = 512) {
  sampler <- sampler_for(target, n_particles = n_particles, reference = given)
  sampler$scout <- list(references = list(best = found))
  internal("find_evidence")(
    sampler, list(lambda = schedule_power(24)[-1]),
    list(rounds = c(0, 0), whiten = TRUE, scout = FALSE, max_steps = 64, max_evals = Inf)
  )
}

race_rows <- function(course) {
  rows <- lapply(course$records, function(r) {
    as.data.frame(r$runs)[c("label", "n_particles", "n_steps", "predicted_sd")]
  })
  cbind(do.call(rbind, rows), used = course$used)
}

# From far off nothing lives: a normal variable that cannot be negative.
positive <- target_function(
  function(x) ifelse(x[, 1] > 0, dnorm(x[, 1], 5, log = TRUE), -Inf), 1,
  gradient = function(x) 5 - x, vectorized = TRUE
)
near <- reference_gaussian(5)
far <- reference_gaussian(-100)

test_that("a race is short, and the reference given must find more to win it", {
  rows <- race_rows(course <- race_of(near, reference_gaussian(8), positive))
  expect_identical(rows$label, c("best", "given"))
  expect_identical(rows$n_particles, c(256L, 256L))
  expect_identical(rows$n_steps, c(16L, 16L))
  expect_identical(rows$used, c(TRUE, FALSE))
  expect_identical(course$best$reference, near)
})

test_that("what dies in a race loses it", {
  rows <- race_rows(course <- race_of(near, far, positive))
  expect_identical(rows$used, c(TRUE, FALSE))
  expect_identical(course$best$reference, near)
  # where it is the given one that lives, its own path is run as it was given
  rows <- race_rows(course <- race_of(far, near, positive))
  expect_identical(rows$label, c("best", "given", "given"))
  expect_identical(rows$used, c(FALSE, TRUE, TRUE))
  expect_identical(c(rows$n_particles[3], rows$n_steps[3]), c(512L, 24L))
  expect_identical(course$best$reference, near)
  error <- catch(race_of(far, far, positive))
  expect_s3_class(error, "autosmc_error_degenerate")
})

# A record of a run that tuned.
of_run <- function(log_z, predicted_sd = 0.1, barrier = 1, reason = "round", kernel = "mala", n_particles = 512,
                   shared = 0.01) {
  list(dead = FALSE, reason = reason, shared = shared, runs = list(
    log_z = log_z, predicted_sd = predicted_sd, barrier = barrier, kernel = kernel, n_particles = n_particles
  ), kernel = kernel_by_name(kernel, "kernel"))
}

test_that("a verdict is by evidence first, and by cost second", {
  replaces_best <- internal("replaces_best")
  best <- of_run(0)
  # evidence that is higher by two errors, 0.283, whatever it costs; and the other way round, where
  # the best of several runs may be high by 0.5
  expect_true(replaces_best(of_run(0.29, barrier = 9), best))
  expect_false(replaces_best(of_run(0.28, barrier = 9), best))
  expect_false(replaces_best(of_run(-0.79, barrier = 0.1), best))
  expect_true(replaces_best(of_run(-0.78, barrier = 0.1), best))
  # however high: the estimate of a single genealogy is chance
  expect_false(replaces_best(of_run(100, barrier = 9, shared = 0.9), best))
  expect_true(replaces_best(of_run(0), of_run(100, shared = 0.9)))
  # a barrier may be higher by chance, ...
  expect_true(replaces_best(of_run(0, barrier = 1.04), best))
  expect_false(replaces_best(of_run(0, barrier = 1.06), best))
  # ... and those of small runs, or of another kernel, cannot be compared
  expect_true(replaces_best(of_run(0, barrier = 9, kernel = "klmc"), best))
  expect_true(replaces_best(of_run(0, barrier = 9), of_run(0, n_particles = 256)))
  # the first candidates must find more than those before them
  expect_false(replaces_best(of_run(0, barrier = 0.1, reason = "first"), best))
  expect_true(replaces_best(of_run(1, barrier = 9, reason = "first"), best))
  # what died never does, and the first that lives does
  expect_false(replaces_best(list(dead = list(step = 1)), NULL))
  expect_true(replaces_best(of_run(0), NULL))
})

test_that("a winner that rests on one genealogy runs again, with all particles and steps", {
  course <- race_of(
    reference_gaussian(30, sd = 0.3), reference_gaussian(200, sd = 0.1), target_gaussian(10)
  )
  rows <- race_rows(course)
  expect_gt(rows$predicted_sd[1], 0.7)
  expect_identical(rows$label, c("best", "given", "best"))
  expect_identical(rows$used, c(TRUE, FALSE, TRUE))
  expect_identical(c(rows$n_particles[3], rows$n_steps[3]), c(512L, 24L))
  expect_identical(course$best, course$records[[3]])
})

test_that("each round is recorded", {
  fit <- in_rounds(rounds = 3)
  expect_identical(fit$runs$round, 0:3)
  expect_identical(fit$runs$run, rep("adapt", 4))
  expect_true(all(fit$runs$biased))
  expect_equal(fit$runs$islands, rep(1, 4))
  expect_true(fit$runs$used[1])
  expect_identical(unique(fit$steps$round), 0:3)
  expect_true(all(is.na(fit$steps$island)))
  n_steps <- as.vector(table(fit$steps$round))
  expect_equal(fit$runs$n_steps, n_steps)
  expect_equal(n_steps[1], 12)
  by_round <- function(x) as.vector(tapply(x, fit$steps$round, sum))
  expect_equal(fit$runs$n_target_evals, by_round(fit$steps$n_target_evals))
  expect_equal(fit$runs$n_objective_evals, by_round(fit$steps$n_objective_evals))
  last <- cumsum(n_steps)
  expect_equal(fit$runs$log_z, fit$steps$log_z[last])
  expect_null(fit$islands)
  expect_identical(in_rounds(rounds = 0)$runs$round, 0L)
})

test_that("one more round leaves those before it unchanged", {
  three <- in_rounds(rounds = 3)
  one <- in_rounds(rounds = 1)
  expect_identical(one$steps, three$steps[three$steps$round <= 1, ])
})

test_that("rounds go on while they help, from the least to the most", {
  for (seed in 1:3) {
    for (whiten in c(TRUE, FALSE)) {
      made <- in_rounds(rounds = c(1, 5), seed, whiten = whiten)
      one <- in_rounds(rounds = 1, seed, whiten = whiten)
      expect_identical(made$steps[made$steps$round <= 1, ], one$steps)
    }
  }
  went_on <- 0
  for (seed in 1:4) {
    course <- course_of(target_funnel(), c(1, 5), n_particles = 512, n_steps = 32, seed = seed)
    runs <- do.call(rbind, lapply(course$records, `[[`, "runs"))
    n <- nrow(runs)
    expect_lte(n, 6)
    too_wide <- vapply(course$records, internal("is_too_wide"), NA)
    for (r in seq_len(n)[-1]) {
      before <- max(which(course$used[seq_len(r - 1)]))
      helped <- !course$used[r] || too_wide[r] || runs$barrier[r] < 0.8 * runs$barrier[before]
      went_on <- went_on + (r < n)
      # nothing but the limit, or nothing left to fit, ends rounds that help
      if (r < n) {
        expect_true(helped)
      } else {
        expect_true(!helped || n == 6 || length(course$allowed) == 0)
      }
    }
  }
  expect_gt(went_on, 0)
  expect_identical(in_rounds(rounds = c(3, 3))$steps, in_rounds(rounds = 3)$steps)
  expect_true(nrow(in_rounds(rounds = c(4, 5))$runs) %in% 5:6)
})

test_that("every round has randomness of its own", {
  # with nothing to learn between them, rounds differ by their randomness only
  fit <- smc_adapt(
    target_gaussian(1),
    n_particles = 64, schedule = (0:2) / 2, whiten = FALSE,
    kernel = kernel_mala(), seed = 1
  )
  acceptance <- fit$steps$acceptance
  expect_length(unique(acceptance), length(acceptance))
})

test_that("each round's reference is fitted to the best one before", {
  propose <- internal("propose")
  for (seed in 1:3) {
    course <- course_of(small_target, c(2, 2), n_particles = 128, seed = seed)
    records <- course$records
    expect_identical(records[[1]]$reference, reference_gaussian())
    expect_true(course$used[2])
    # no shape from where the user started
    first <- propose(records[[1]], "normal")
    expect_identical(records[[2]]$reference, first$reference)
    expect_identical(
      records[[2]]$steps$lambda,
      next_schedule(records[[1]]$steps, NULL, 64)[-1]
    )
    second <- propose(records[[2]], c("normal", "shape"))
    expect_identical(records[[3]]$reference, second$reference)
    # which is the target: one step is enough
    expect_identical(records[[3]]$steps$lambda, 1)
    fit <- in_rounds(2, seed, kernel = "klmc")
    expect_identical(fit$reference, records[[max(which(course$used))]]$reference)
  }
})

test_that("HMC moves from references that fit, KLMC from what was given", {
  fitted <- reference_gaussian(c(1, 2))
  exact <- internal("as_exact")(fitted)
  name_of <- function(reference = fitted, chooses = TRUE, is_fitted = TRUE, reason = "round") {
    sampler <- list(target = list(dim = 2), kernel = kernel_klmc(), chooses_kernel = chooses)
    internal("kernel_for")(list(sampler = sampler), reference, is_fitted, reason)$name
  }
  expect_identical(name_of(), "hmc")
  expect_identical(name_of(chooses = FALSE), "klmc")
  expect_identical(name_of(is_fitted = FALSE), "klmc")
  # also where it is exact, or where KLMC did not move the particles
  expect_identical(name_of(exact, is_fitted = FALSE), "hmc")
  expect_identical(name_of(is_fitted = FALSE, reason = "longer"), "hmc")
  expect_identical(name_of(exact, chooses = FALSE), "klmc")
})

test_that("a first run by HMC takes as many steps as the weights need", {
  short_path <- internal("short_path")
  rules <- internal("rules")
  path <- list(lambda = schedule_power(64)[-1])
  expect_identical(
    short_path(path, kernel_mala(), TRUE), list(adaptive_ess = rules$race_ess, n_steps = 64L)
  )
  # others are given theirs, and no more than the schedule has
  expect_length(short_path(path, kernel_mala(), FALSE)$lambda, rules$race_steps)
  expect_length(short_path(path, kernel_klmc(), TRUE)$lambda, rules$race_steps)
  expect_length(short_path(list(lambda = 1), kernel_klmc(), TRUE)$lambda, 1)
  adaptive <- list(adaptive_ess = 0.5, n_steps = 9L)
  expect_identical(short_path(adaptive, kernel_mala(), TRUE), adaptive)

  # each step but the last leaves just that part of the effective sample size
  fit <- smc_adapt(target_funnel(4), n_particles = 512, seed = 4)
  first <- fit$runs[fit$runs$label %in% "best", ]
  steps <- fit$steps[fit$steps$round %in% first$round, ]
  n <- nrow(steps)
  expect_gt(n, 1)
  expect_lt(n, rules$race_steps)
  expect_equal(steps$lambda[n], 1)
  expect_false(anyNA(steps$acceptance)) # of HMC
  ess <- steps$ess / first$n_particles
  expect_gte(min(ess), rules$race_ess)
  expect_lt(max(ess[-n]), rules$race_ess + 0.001)
})

test_that("no round is made after one from the target itself", {
  is_exact <- internal("is_exact_reference")
  for (seed in 1:3) {
    course <- course_of(small_target, c(1, 8), n_particles = 128, seed = seed)
    exact <- vapply(course$records, function(record) is_exact(record$reference), NA)
    expect_identical(which(exact), length(exact))
    expect_true(course$used[length(exact)])
  }
})

test_that("after a fit that is rejected only lower rungs are tried", {
  below <- internal("below")
  all <- c("normal", "shape")
  expect_identical(below("shape", all), "normal")
  expect_identical(below("normal", all), character())
  rejected <- 0
  for (seed in 1:8) {
    course <- course_of(target_funnel(4), c(1, 5), n_particles = 24, seed = seed)
    label <- vapply(course$records, function(r) r$runs$label, "")
    for (r in which(!course$used)) {
      rejected <- rejected + 1
      later <- label[-seq_len(r)]
      expect_true(all(match(later, all, 0) < match(label[r], all, 0) | later == "given"))
    }
  }
  expect_gt(rejected, 0)
})

test_that("no shape follows the given reference, and nothing but shapes follows a shape", {
  normal <- reference_gaussian(1, cov = diag(2))
  shaped <- normal
  shaped$maps <- list(list(name = "tails", location = c(0, 0), scale = c(1, 1), skew = c(1, 0), tail = c(1, 1)))
  all <- names(internal("rungs"))
  allowed <- function(reference, allowed = all, is_fitted = TRUE) {
    internal("allowed_now")(list(allowed = allowed, best = list(reference = reference, is_fitted = is_fitted)))
  }
  expect_setequal(allowed(normal, is_fitted = FALSE), setdiff(all, c("shape", "basins")))
  expect_identical(allowed(normal), all)
  expect_identical(allowed(reference_student(3)), c("shape", "basins"))
  expect_identical(allowed(shaped), c("shape", "basins"))
  mixture <- internal("new_mixture_reference")(lapply(c(-5, 5), function(x) {
    list(mean = c(x, 0), L = diag(2), elbo = 0)
  }))
  expect_identical(allowed(mixture), c("shape", "basins"))
  # what was rejected stays so
  expect_identical(allowed(shaped, "normal"), character())
  expect_null(allowed(normal, NULL))
  # a shape that was rejected leaves nothing to try after a shape, but all else after a normal
  another <- function(best, rejected) {
    internal("needs_another_round")(NULL, NULL, FALSE, allowed(best, internal("below")(rejected, all)))
  }
  expect_false(another(shaped, "shape"))
  expect_true(another(normal, "shape"))
})

test_that("without whitening the reference stays", {
  given <- reference_gaussian(0.5, sd = 2)
  fit <- in_rounds(whiten = FALSE, reference = given)
  expect_identical(fit$reference, given)
  expect_identical(in_rounds(0, reference = given)$reference, given)
  fit <- in_rounds(whiten = FALSE, reference = given, verb = smc)
  expect_identical(fit$reference, given)
})

test_that("whitening and rounds lower the barrier of a Gaussian far off", {
  fit <- smc_adapt(
    target_gaussian(8, mean = 5, sd = 0.5),
    n_particles = 256, n_steps = 32, rounds = 2, scout = FALSE, seed = 1
  )
  expect_true(fit$runs$used[2])
  best <- max(which(fit$runs$used))
  expect_lt(fit$runs$barrier[best], fit$runs$barrier[1] / 3)
  expect_lt(fit$runs$n_steps[best], 32)
  expect_equal(fit$reference$mean, rep(5, 8), tolerance = 0.1)
})

# The rule in other words: the last round that had no higher barrier than the best so far,
# and an estimate that had not fallen.
expected_used <- function(records) {
  best <- records[[1]]$runs
  used <- rep(TRUE, length(records))
  for (r in seq_along(records)[-1]) {
    now <- records[[r]]$runs
    error <- sqrt(now$predicted_sd^2 + best$predicted_sd^2)
    fallen <- best$log_z - now$log_z > 0.5 + 2 * error
    used[r] <- !fallen && now$barrier <= 1.05 * best$barrier
    if (used[r]) best <- now
  }
  used
}

test_that("a worse round is rejected", {
  rejected <- 0
  for (seed in 1:8) {
    course <- course_of(target_funnel(4), c(2, 4), n_particles = 24, seed = seed)
    expect_identical(course$used, expected_used(course$records))
    rejected <- rejected + sum(!course$used)
  }
  expect_gt(rejected, 0)
})

test_that("the islands have the reference and a fraction of the steps of the last round used", {
  labels <- character()
  for (seed in 1:4) {
    fit <- calmly(smc(
      target_funnel(4),
      n_particles = 64, n_steps = 12, islands = 1, seed = seed
    ))
    built_on <- fit$runs[max(which(fit$runs$used & fit$runs$run == "adapt")), ]
    fraction <- switch(built_on$label,
      given = 1,
      shape = 0.75 * 2 / 3,
      0.75
    )
    # HMC rejects what is too long
    if (built_on$kernel == "hmc") fraction <- 1
    tuned <- fit$steps[fit$steps$round %in% built_on$round, ]
    expect_equal(fit$schedule$step_size, fraction * tuned$step_size)
    expect_identical(fit$schedule$lambda, tuned$lambda)
    is_damped <- built_on$kernel == "klmc" && built_on$label != "given"
    rate <- if (is_damped) sqrt(1 - exp(-4 * fit$schedule$step_size)) else tuned$refresh_rate
    expect_equal(fit$schedule$refresh_rate, rate)
    expect_identical(fit$runs$label[nrow(fit$runs)], built_on$label)
    labels <- c(labels, built_on$label)
  }
  expect_true(any(labels == "shape"))
})

test_that("the islands keep a rate of refreshment that was given", {
  fit <- smc(
    target_gaussian(2, mean = 3),
    kernel = kernel_klmc(refresh_rate = 0.3), n_particles = 64, n_steps = 8, islands = 2, seed = 1
  )
  expect_identical(unique(fit$schedule$refresh_rate), 0.3)
  expect_identical(unique(fit$steps$refresh_rate), 0.3)
})

# A coordinate of a standard normal and its velocity, a linear map with noise: how fast it comes to
# rest is the spectral radius of the map.
test_that("friction 2 brings a standard normal to rest soonest", {
  for (h in c(0.05, 0.2, 0.4)) {
    radius <- function(damping) {
      kept <- exp(-damping * h)
      leapfrog <- rbind(c(1 - h^2 / 2, h), c(-h + h^3 / 4, 1 - h^2 / 2))
      max(Mod(eigen(leapfrog %*% diag(c(1, kept)))$values))
    }
    best <- optimize(radius, c(0.5, 6))$minimum
    # but for the error of the leapfrog step
    expect_lt(abs(best - internal("rules")$damping), h^2)
    expect_lt(radius(internal("rules")$damping), min(radius(1), radius(4)))
  }
})

test_that("max_steps holds in the rounds after the first", {
  fit <- in_rounds(max_steps = 3)
  expect_identical(fit$runs$n_steps[1], 12L)
  expect_true(all(fit$runs$n_steps[-1] <= 3))
  # LMC's barrier grows with the number of steps
  lmc <- smc_adapt(
    small_target,
    n_particles = 64, n_steps = 32, rounds = 3, whiten = FALSE,
    max_steps = 40, kernel = kernel_lmc(), seed = 1
  )
  expect_true(all(lmc$runs$n_steps <= 40))
})

test_that("the final run repeats with schedule, reference and seed of the fit", {
  for (kernel in list(kernel_klmc(), kernel_lmc(), kernel_mala(n_moves = 2))) {
    # without a further pass, whose islands have streams of their own
    fits <- lapply(1:3, function(seed) in_rounds(verb = smc, kernel = kernel, islands = 3, seed = seed))
    fit <- Find(function(fit) fit$island[1] == 1L, fits)
    if (kernel$name == "klmc") {
      expect_false(identical(fit$reference, reference_gaussian()))
    }
    again <- smc_run(
      small_target, fit$schedule,
      reference = fit$reference, kernel = kernel, seed = fit$seed,
      n_particles = 128, islands = 3
    )
    same <- c("particles", "log_weights", "island", "schedule", "reference")
    expect_identical(again[same], fit[same])
    expect_identical(again$estimates, fit$estimates) # of so few islands SMC's alone
    expect_identical(again$steps, fit$steps[fit$steps$run == "final", ])
    expect_identical(without_time(again)$islands, without_time(fit)$islands)
  }
})

test_that("step sizes that are given leave nothing to adapt", {
  fit <- calmly(in_rounds(verb = smc, kernel = kernel_klmc(0.3, 0.9), islands = 2))
  expect_identical(fit$runs$run, "final")
  expect_identical(fit$reference, reference_gaussian())
  expect_bad_undrawn(in_rounds(kernel = kernel_klmc(0.3, 0.9)), "kernel")
})

test_that("LMC weighed by detailed balance takes step sizes, says each verb", {
  kernel <- kernel_lmc(backward = "detailed_balance")
  expect_s3_class(kernel, "smc_kernel")
  expect_bad_undrawn(smc(small_target, kernel = kernel), "step_size")
  expect_bad_undrawn(smc_adapt(small_target, kernel = kernel), "step_size")
  schedule <- data.frame(lambda = c(0.3, 1), step_size = 0.2)
  fit <- calmly(smc_run(
    small_target, schedule,
    kernel = kernel, n_particles = 16, seed = 1
  ))
  expect_true(fit$runs$biased)
})

# what is unbiased still ------------------------------------------------------

# Full covariances (128 particles) and diagonal ones (20).
for (n in c(20, 128)) {
  test_that(paste("after whitening the islands are unbiased, particles:", n), {
    z <- vapply(1:20, function(seed) {
      fit <- calmly(smc(
        small_target,
        n_particles = n, n_steps = 12, islands = 12, kernel = "klmc", seed = seed
      ))
      exp(fit$islands$log_z)
    }, numeric(12))
    expect_mean(as.vector(z), 1, resolution = 0.3)
  })
}

# models ----------------------------------------------------------------------

# 0.3 N(-4, I) + 0.7 N(4, I), of which the evidence is 1.
bimodal <- local({
  d <- 5
  parts <- function(x) {
    cbind(log(0.3) - rowSums((x + 4)^2) / 2, log(0.7) - rowSums((x - 4)^2) / 2) -
      d / 2 * log(2 * pi)
  }
  target_function(
    function(x) {
      p <- parts(x)
      largest <- pmax(p[, 1], p[, 2])
      largest + log(rowSums(exp(p - largest)))
    }, d,
    gradient = function(x) {
      p <- parts(x)
      left <- 1 / (1 + exp(p[, 2] - p[, 1]))
      -left * (x + 4) - (1 - left) * (x - 4)
    },
    vectorized = TRUE
  )
})

# A weighted mean over islands, with its standard error by the delta method.
island_mean <- function(fit, x) {
  w <- exp(fit$log_weights)
  share <- tapply(w, fit$island, sum)
  mean <- sum(w * x)
  n <- length(share)
  residual <- tapply(w * x, fit$island, sum) - share * mean
  c(mean = mean, se = sqrt(n / (n - 1) * sum(residual^2)))
}

# Without whitening the usual error of log Z is 0.04, and that of the weight 0.3 of the smaller mode is as large.
for (whiten in c(TRUE, FALSE)) {
  test_that(paste("both modes are found with their weights, whitening:", whiten), {
    fit <- calmly(smc(
      bimodal,
      n_particles = 512, n_steps = 32, whiten = whiten, islands = 32, seed = 1
    ))
    expect_log_z(fit, 0, if (whiten) 0.1 else 0.25)
    left <- island_mean(fit, rowMeans(fit$particles) < 0)
    expect_estimate(left[["mean"]], left[["se"]], 0.3, 0.3, n = 32)
    for (i in fit$islands$island) { # no island has lost a mode
      x <- fit$particles[fit$island == i, 1]
      expect_true(any(x < -2) && any(x > 2))
    }
  })
}

# Student's t with 5 degrees of freedom in 3 dimensions: its tails are heavier than
# those of any reference.
heavy_tailed <- local({
  constant <- lgamma(4) - lgamma(2.5) - 1.5 * log(5 * pi)
  target_function(
    function(x) constant - 4 * log1p(rowSums(x^2) / 5), 3,
    gradient = function(x) -8 * x / (5 + rowSums(x^2)), vectorized = TRUE
  )
})

for (whiten in c(TRUE, FALSE)) {
  test_that(paste("a target with heavy tails, whitening:", whiten), {
    fit <- calmly(smc(
      heavy_tailed,
      n_particles = 512, n_steps = 32, whiten = whiten, islands = 16, seed = 1
    ))
    expect_log_z(fit, 0)
  })
}

# temperatures found on the way -----------------------------------------------

adaptive_fit <- function(..., ess = 0.5, verb = smc, kernel = kernel_mala(),
                         max_steps = 1000, seed = 1, target = small_target) {
  calmly(verb(
    target, ...,
    n_particles = 128, kernel = kernel, scout = FALSE,
    schedule = schedule_adaptive(ess, max_steps), seed = seed
  ))
}

test_that("temperatures are found that keep the effective sample size", {
  for (kernel in list(kernel_mala(), kernel_rwmh(), kernel_mala(0.3))) {
    for (ess in c(0.3, 0.5, 0.9)) {
      fit <- adaptive_fit(
        ess = ess, kernel = kernel, rounds = 0, verb = smc_adapt
      )
      steps <- fit$steps
      n <- nrow(steps)
      expect_rises(c(0, steps$lambda), n)
      expect_equal(steps$ess[-n], rep(ess * 128, n - 1), tolerance = 0.01)
      expect_gte(steps$ess[n], ess * 128 * 0.99)
      expect_identical(steps$resampled, rep(c(TRUE, FALSE), c(n - 1, 1)))
      expect_identical(fit$schedule$lambda, steps$lambda)
    }
  }
})

test_that("more is asked for, more steps are made, up to max_steps", {
  n_steps <- function(...) nrow(adaptive_fit(..., rounds = 0)$schedule)
  expect_lt(n_steps(ess = 0.3), n_steps(ess = 0.9))
  expect_equal(n_steps(ess = 0.99, max_steps = 4), 4)
  expect_equal(n_steps(ess = 0.99, max_steps = 1), 1)
})

test_that("temperatures are found with step sizes that are given", {
  for (rounds in c(0, 2)) {
    fit <- adaptive_fit(kernel = kernel_rwmh(0.5), rounds = rounds)
    expect_identical(fit$runs$run, c(rep("adapt", rounds + 1), "final"))
    expect_identical(fit$runs$biased, c(rep(TRUE, rounds + 1), FALSE))
    expect_true(all(fit$schedule$step_size == 0.5))
    expect_true(all(is.na(fit$steps$tuner_status)))
    adapted <- adaptive_fit(
      kernel = kernel_rwmh(0.5), rounds = rounds, verb = smc_adapt
    )
    expect_identical(adapted$schedule, fit$schedule)
  }
})

test_that("temperatures are found anew in every round", {
  fit <- adaptive_fit(rounds = 2)
  expect_identical(fit$runs$round, c(0:2, NA))
  adapt <- fit$steps[fit$steps$run == "adapt", ]
  for (steps in split(adapt, adapt$round)) {
    n <- nrow(steps)
    expect_rises(c(0, steps$lambda), n)
    expect_equal(steps$ess[-n], rep(64, n - 1), tolerance = 0.01)
  }
  final <- fit$steps[fit$steps$run == "final" & fit$steps$island == 2, ]
  expect_identical(final$lambda, fit$schedule$lambda)
})

for (rounds in c(0, 2)) {
  test_that(paste("the runs after it are unbiased, rounds:", rounds), {
    # from a reference that is the target every estimate would be exact
    logistic <- target_function(
      function(x) rowSums(dlogis(x, 2, log = TRUE)), 2,
      gradient = function(x) -tanh((x - 2) / 2), vectorized = TRUE
    )
    z <- vapply(1:20, function(seed) {
      exp(adaptive_fit(
        islands = 12, rounds = rounds, seed = seed, target = logistic
      )$islands$log_z)
    }, numeric(12))
    expect_mean(as.vector(z), 1, resolution = 0.25)
  })
}

test_that("kernels whose weights depend on the move cannot have it", {
  for (kernel in list(kernel_klmc(), kernel_lmc(), kernel_lmc(0.1))) {
    for (verb in list(smc, smc_adapt)) {
      error <- catch(adaptive_fit(kernel = kernel, verb = verb))
      expect_s3_class(error, "autosmc_error_input")
      expect_match(message_of(error), "schedule_adaptive()", fixed = TRUE)
    }
  }
  expect_bad_undrawn(
    smc_run(small_target, schedule_adaptive(), kernel = kernel_mala()),
    "schedule"
  )
})

test_that("schedule_adaptive() and schedule_barrier() name a wrong argument", {
  for (bad in list(0, 1, -1, 2, NA, NULL, "a", c(0.1, 0.2))) {
    expect_bad(schedule_adaptive(bad), "ess")
  }
  for (bad in list(0, 1.5, NA, NULL, "a", Inf)) {
    expect_bad(schedule_adaptive(0.5, bad), "max_steps")
  }
  fit <- calmly(quick_smc(small_target))
  for (bad in list(NULL, 1, list(), fit$steps)) {
    expect_bad(schedule_barrier(bad), "fit")
  }
  for (bad in list(0, 1.5, NA, "a")) {
    expect_bad(schedule_barrier(fit, n_steps = bad), "n_steps")
  }
  for (bad in list(1, 2.5, NA, NULL, "a")) {
    expect_bad(schedule_barrier(fit, max_steps = bad), "max_steps")
  }
  expect_output(print(schedule_adaptive(0.7)), "0.7.*1000")
})

test_that("the verbs name a wrong argument about rounds", {
  wrong <- list(
    rounds = list(-1, 1.5, NA, NULL, "a", Inf, c(2, 1), c(1, NA), c(1, 2.5), 1:3),
    whiten = list(NA, NULL, 1, "yes", c(TRUE, FALSE)),
    max_steps = list(1, 0, 2.5, NA, NULL, "a")
  )
  for (name in names(wrong)) {
    for (bad in wrong[[name]]) {
      arguments <- c(list(small_target), setNames(list(bad), name))
      for (verb in list(smc, smc_adapt)) {
        expect_bad_undrawn(do.call(verb, arguments), name)
      }
    }
  }
})

# rules -----------------------------------------------------------------------

test_that("the last steps of a schedule may have had nothing in the way", {
  steps <- data.frame(lambda = c(0.1, 0.4, 0.8, 1), barrier = c(1, 2, 3, 3))
  expect_silent(schedule <- barrier_schedule(steps, 10, 256))
  expect_length(schedule, 11)
  expect_true(all(diff(schedule) > 0))
  expect_equal(schedule[c(1, 11)], c(0, 1))
})

test_that("LMC, whose barrier grows with the steps, keeps to a limit of them", {
  fit <- smc_adapt(target_gaussian(16, mean = 3),
    kernel = kernel_lmc(), scout = FALSE, seed = 3
  )
  expect_true(all(fit$runs$n_steps <= 64))
  expect_true(fit$runs$used[2])
})

# the steps of the islands ----------------------------------------------------

test_that("islands of KLMC run with a fraction of the tuned steps, others do not", {
  steps_of <- function(..., kernel = "klmc") {
    fit <- calmly(smc(target_gaussian(2, mean = 1),
      n_particles = 64, n_steps = 6, islands = 2, kernel = kernel, seed = 1, ...
    ))
    built_on <- max(fit$runs$round[fit$runs$used], na.rm = TRUE)
    tuned <- fit$steps$step_size[fit$steps$round %in% built_on]
    list(ratio = fit$schedule$step_size / tuned, fraction = fit$step_fraction)
  }
  expect_identical(steps_of(whiten = FALSE, rounds = 0)$ratio, rep(1, 6))
  expect_identical(steps_of(whiten = FALSE, rounds = 0)$fraction, 1)
  halves <- steps_of(step_fraction = 0.5)$ratio
  expect_equal(halves, rep(0.5, length(halves)))
  # from the reference that was given the steps stay as they are
  expect_identical(steps_of(rounds = 0, step_fraction = 0.5)$ratio, rep(1, 6))
  expect_true(all(steps_of(whiten = FALSE, step_fraction = 0.5)$ratio == 1))
  default <- steps_of()
  expect_equal(default$ratio, rep(0.75, length(default$ratio)))
  expect_identical(default$fraction, 0.75)
  for (kernel in list(kernel_lmc(), kernel_mala())) {
    whole <- steps_of(kernel = kernel)
    expect_true(all(whole$ratio == 1))
    expect_identical(whole$fraction, 1)
  }
  expect_bad_undrawn(smc(target_gaussian(2), step_fraction = 0), "step_fraction")
  expect_bad_undrawn(smc(target_gaussian(2), step_fraction = 1.5), "step_fraction")
  expect_bad_undrawn(smc(target_gaussian(2), step_fraction = NULL), "step_fraction")
  expect_bad_undrawn(smc(target_gaussian(2), rounds = "a"), "rounds")
})

test_that("shorter steps find what longer ones lose without a sign", {
  # an exponential variable, on the log scale a cliff on one side: Z = 1
  waiting <- target_function(
    function(x) -drop(x), 1, function(x) 0 * x - 1,
    vectorized = TRUE, lower = 0
  )
  fits <- lapply(1:3, function(seed) {
    smc_adapt(
      waiting,
      n_particles = 256, kernel = "klmc", rounds = 1, scout = FALSE, seed = seed
    )
  })
  # the median, for what makes the mean unbiased are values too rare to be met
  median_z <- function(fraction) {
    z <- lapply(fits, function(fit) {
      fit$schedule$step_size <- fraction * fit$schedule$step_size
      islands <- calmly(smc_run(waiting, fit$schedule,
        reference = fit$reference, n_particles = 256, islands = 100, seed = 2
      ))
      exp(islands$islands$log_z)
    })
    c(median(unlist(z)), 1.2533 * mad(unlist(z)) / sqrt(300)) # with its standard error
  }
  long <- median_z(1)
  short <- median_z(0.75)
  # some 4 % are lost with the one, and less than a quarter of that with the other
  expect_lt(short[2], 0.003)
  expect_lt(abs(short[1] - 1), 0.01 + errors_for(300) * short[2])
  expect_lt(long[1], short[1] - errors_for(300) * sqrt(long[2]^2 + short[2]^2))
})

test_that("a square with edges that are not given has the right evidence, and no warning", {
  inside <- function(x) rowSums(x < 0 | x > 1) == 0
  square <- target_function(
    function(x) ifelse(inside(x), 0, -Inf), 2,
    gradient = function(x) 0 * x, vectorized = TRUE
  )
  for (seed in 1:3) {
    fit <- expect_no_warning(smc(square, seed = seed), class = "autosmc_warning_unreliable")
    expect_log_z(fit, 0)
  }
})
