# How many evaluations of the target a call may take.

target <- target_gaussian(3, mean = 2)
small <- function(..., seed = 1) {
  suppressWarnings(smc(target, n_particles = 128, ..., seed = seed))
}
# not normal, so that islands are most of a fit
logistic <- target_function(
  function(x) rowSums(dlogis(x, 2, log = TRUE)), 3,
  gradient = function(x) -tanh((x - 2) / 2), vectorized = TRUE
)

test_that("max_evals is respected, whatever it leaves out", {
  of_logistic <- function(...) {
    suppressWarnings(smc(logistic, n_particles = 512, ..., seed = 1))
  }
  free <- of_logistic()
  for (part in c(0.95, 0.85, 0.75)) {
    limit <- floor(part * spent(free))
    fit <- of_logistic(max_evals = limit)
    expect_lte(spent(fit), limit)
    expect_true(nrow(fit$islands) >= 1)
    expect_gt(length(fit$truncated), 0)
    expect_output(print(fit), "left out: ")
  }
  expect_identical(free$truncated, character())
})

test_that("particles are fewer before parts of a fit are left out, where their number is left to us", {
  free <- suppressWarnings(smc(logistic, seed = 1))
  expect_equal(free$n_particles, 128)
  fit <- suppressWarnings(smc(logistic, max_evals = spent(free) / 2, seed = 1))
  expect_lte(spent(fit), spent(free) / 2)
  expect_lt(fit$n_particles, 128)
  expect_gte(fit$n_particles, 32)
  expect_gte(nrow(fit$islands), 8)
  expect_log_z(fit, 0, resolution = 0.1)
})

test_that("a limit that is not reached changes nothing", {
  free <- small()
  expect_identical(small(max_evals = 1e7)$estimates, free$estimates)
  expect_identical(small(max_evals = Inf)$estimates, free$estimates)
})

test_that("fewer islands are run where there is not enough for all", {
  kernel <- kernel_klmc(step_size = 0.3, refresh_rate = 0.5)
  one <- function(...) small(kernel = kernel, n_steps = 10, ...)
  # without adaptation there is no bridge: an island takes 128 * 11
  expect_equal(nrow(one()$islands), 8)
  limit <- 5 * 128 * 12
  fit <- one(max_evals = limit)
  expect_equal(nrow(fit$islands), 5)
  expect_equal(spent(fit), 5 * 128 * 11)
  # 12 are set aside for each, as for one with a bridge
  expect_equal(nrow(one(max_evals = 7 * 128 * 12)$islands), 7)
  expect_equal(nrow(one(max_evals = 7 * 128 * 12 - 1)$islands), 6)
})

test_that("a precision is sought within the limit", {
  seek <- function(...) {
    suppressWarnings(smc(
      logistic,
      n_particles = 512, precision = 1e-4, max_islands = 32, seed = 1, ...
    ))
  }
  free <- seek()
  fit <- seek(max_evals = spent(free) / 2)
  expect_lte(spent(fit), spent(free) / 2)
})

test_that("a limit pays for a fit of a small model where it takes a fifth of the usual", {
  limit <- floor(spent(smc(logistic, seed = 1)) / 5)
  for (seed in 1:3) {
    fit <- suppressWarnings(smc(logistic, max_evals = limit, seed = seed))
    expect_lte(spent(fit), limit)
    expect_lt(fit$scout$n_target_evals, 1500)
    expect_true("the search for further modes" %in% fit$truncated)
    expect_log_z(fit, 0, resolution = 0.5)
  }
})

test_that("a limit of seconds becomes one of evaluations", {
  calls <- 0
  slow <- target_function(
    function(x) {
      calls <<- calls + 1
      Sys.sleep(0.002)
      normal_density(x)
    },
    dim = 3, gradient = normal_gradient
  )
  warning <- NULL
  fit <- withCallingHandlers(smc(slow, max_seconds = 10, seed = 1), autosmc_warning_budget = function(w) {
    warning <<- w
    tryInvokeRestart("muffleWarning")
  })
  expect_equal(spent(fit), calls)
  expect_lte(spent(fit), fit$max_evals)
  expect_lte(fit$max_evals, 10 / 0.002)
  expect_match(message_of(warning), "max_seconds` has left out the search for further modes", fixed = TRUE)
  expect_match(printed_text(fit), "to keep to max_seconds", fixed = TRUE)
  expect_log_z(fit, 1.5 * log(2 * pi), resolution = 0.5)

  # where there is time enough nothing is left out
  ample <- smc(target, max_seconds = 1e4, seed = 1)
  expect_identical(ample$truncated, character())
  for (bad in list(0, -1, NA, "long", c(1, 2))) {
    expect_error(small(max_seconds = bad), "max_seconds", class = "autosmc_error_input")
  }
  expect_error(small(max_seconds = 10, kernel = "rwmh"), "max_seconds.*max_evals", class = "autosmc_error_input")
})

# The number that an error asks for.
asked_for <- function(error, before, after) {
  said <- sub(paste0(".*", before, " ([0-9,]+)", after, ".*"), "\\1", message_of(error))
  as.numeric(gsub(",", "", said))
}

test_that("a limit that not even one island keeps is an error", {
  # enough for the first points of the scout, a small run and an island, and not for the rest
  refused <- expect_error(
    smc(logistic, max_evals = 1300, seed = 1), "max_evals.*too small",
    class = "autosmc_error_budget"
  )
  expect_identical(refused$runs$label, "best")
  # what it asks for is enough
  least <- asked_for(refused, "at least", " for one")
  warning <- NULL
  fit <- suppressWarnings(withCallingHandlers(
    smc(logistic, max_evals = least, seed = 1),
    autosmc_warning_budget = function(w) warning <<- message_of(w)
  ))
  expect_identical(nrow(fit$islands), 1L)
  expect_match(warning, "7 of 8 islands", fixed = TRUE)
  expect_match(warning, "With one island the error of log_z is not known", fixed = TRUE)
  expect_identical(fit$truncated[["n_islands"]], "7 of 8 islands")
  for (bad in list(0, -1, NA, "many", c(1, 2))) {
    expect_error(small(max_evals = bad), "max_evals", class = "autosmc_error_input")
  }
})

test_that("a limit that pays for no fit is refused before the target is asked, with the least that may", {
  calls <- 0
  asked <- target_function(
    function(x) {
      calls <<- calls + 1
      normal_density(x)
    },
    dim = 3, gradient = normal_gradient
  )
  expected <- list(
    # 8 starts, a run in the race and an island along its 16 steps, with the bridge and 1 % of rays
    list(n_particles = 512, 8 + 256 * 17 + 512 * 18, rays = TRUE),
    # a full run and an island
    list(n_particles = 32, scout = FALSE, n_steps = 10, 32 * 11 + 32 * 12),
    list(n_particles = 32, kernel = kernel_rwmh(n_moves = 3), n_steps = 2, 32 * 7 + 32 * 8),
    list(n_particles = 32, scout = FALSE, schedule = schedule_adaptive(), kernel = "mala", 32 * 2 + 32 * 3),
    # nothing to tune
    list(n_particles = 32, n_steps = 5, kernel = kernel_lmc(0.1), 32 * 7)
  )
  for (case in expected) {
    least <- case[[which(names(case) == "")]]
    settings <- case[!names(case) %in% c("", "rays")]
    limited <- function(max_evals, ...) {
      do.call(smc, c(list(asked, max_evals = max_evals), settings, list(...)))
    }
    expect_bad_undrawn(limited(10), "max_evals")
    error <- catch(limited(10))
    expect_match(message_of(error), "`max_evals` must be at least [0-9,]+, not 10\\.")
    said <- asked_for(error, "at least", ",")
    if (isTRUE(case$rays)) {
      expect_gte(said, least)
      expect_lt(said, 1.1 * least)
    } else {
      expect_identical(said, least)
    }
    expect_error(limited(said - 1), "max_evals", class = "autosmc_error_input")
    expect_identical(calls, 0)
    # this one is let in
    catch(suppressWarnings(limited(said, seed = 1)))
    expect_gt(calls, 0)
    calls <- 0
  }
})

test_that("no fit takes less than the least", {
  for (kernel in list("klmc", "mala", "rwmh", kernel_lmc(0.3))) {
    for (scout in c(TRUE, FALSE)) {
      fit <- function(...) small(kernel = kernel, n_steps = 6, scout = scout, islands = 1, ...)
      least <- asked_for(catch(fit(max_evals = 1)), "at least", ",")
      expect_gte(spent(suppressMessages(fit())), least - 128) # which the bridge may not take
    }
  }
})

# what is set aside -------------------------------------------------------------

# A fit, and what affordable_islands() was given on the way.
given <- NULL
watched <- internal("affordable_islands")
fit <- with_internals(
  list(affordable_islands = function(islands, sampler, path, course, plan) {
    given <<- list(sampler = sampler, n_steps = length(path$lambda), course = course, plan = plan)
    watched(islands, sampler, path, course, plan)
  }),
  smc(logistic, n_particles = 1024, seed = 2)
)
set_aside <- function() {
  internal("islands_evaluations")(given$plan$n_islands, given$sampler, given$n_steps, given$plan, given$course)
}

test_that("what is set aside for islands is what they take, with bridge and diagnostics", {
  expect_true(all(c("edges", "rays") %in% fit$diagnostics$name))
  last <- fit$runs[nrow(fit$runs), ]
  # many lines are looked along only at ends where a few have found something, and more only at one where these do not
  # decide; the last with gradients
  of_islands <- internal("counted")(last$islands * last$n_particles * (1 + last$n_steps), given$sampler, given$course)
  n_parts_with_many_lines <- internal("n_parts_with_many_lines")(of_islands)
  more <- internal("more_lines")(of_islands)
  at_ends <- function(n_ends, numbers) (64 * n_ends + sum(numbers)) * internal("n_line_evals")() + max(64, numbers)
  by_number <- lapply(0:length(more), function(k) at_ends(seq_len(n_parts_with_many_lines), utils::head(more, k)))
  jumps <- internal("n_jump_lines")(given$course) * internal("jump_evals") # draws and gradients agree
  edges <- 256 - 64 # which no draw is near
  # a few rays, and more where these find something
  each <- internal("n_ray_evals")(given$sampler)
  more_rays <- internal("n_rays")(given$sampler, of_islands) * each - 8
  # and a few in coordinates of their own where the reference is curved, which this one is not
  few_rays <- internal("few_rays") * (each - 1)
  taken <- last$n_target_evals - (set_aside() - at_ends(n_parts_with_many_lines, more) - jumps - edges - few_rays)
  expect_true(taken %in% c(outer(c(0, unlist(by_number)), c(0, more_rays), `-`)))
})

test_that("a run is made only where as much as the last one took is left beside the islands", {
  course <- given$course
  affords <- function(max_evals) {
    course$plan$max_evals <- max_evals
    internal("affords")(course, "round")
  }
  least <- internal("evaluations_spent")(course) + set_aside() + course$best$runs$n_target_evals
  expect_identical(course$best$runs$n_particles, 1024L)
  expect_false(affords(least - 1))
  expect_true(affords(10 * least))
  expect_true(affords(Inf))
})

# what is said -----------------------------------------------------------------

test_that("what a slow target will cost is said after the scout, and what it would cost with less precision", {
  announce <- function(seconds, max_evals = Inf) {
    sampler <- given$sampler
    sampler$scout <- list(seconds = seconds, n_target_evals = 1000)
    plan <- given$plan
    plan$max_evals <- max_evals
    internal("announce_fit")(sampler, plan)
  }
  expect_message(
    announce(150), "0.15 seconds.*1024 particles at least [0-9,]+ of them: [0-9.]+ hours",
    class = "autosmc_message_cost"
  )
  expect_message(announce(150, max_evals = 12000), "12,000 of them: 30 minutes")
  said <- expect_message(announce(150), "precision = 0.05, draws = 200")
  least <- regmatches(said$message, gregexpr("(?<=at least )[0-9,]+", gsub("\\s+", " ", said$message), perl = TRUE))[[1]]
  least <- as.numeric(gsub(",", "", least))
  expect_lt(least[2], least[1])
  expect_silent(announce(0.1))
})

test_that("calls of a function are counted where they are spent, and shown", {
  calls <- 0
  counts <- function(f) {
    function(x) {
      calls <<- calls + 1
      f(x)
    }
  }
  plain <- counts(function(x) -sum((x - 1)^2) / 2)
  simplex <- list(dim = 3, names = sprintf("w[%d]", 1:3), types = list(w = "simplex"))
  targets <- list(
    target_function(plain, 2),
    target_function(plain, 2, gradient = function(x) 1 - x),
    target_function(plain, 2, lower = c(0, -Inf), names = c("a", "b")),
    do.call(target_function, c(list(counts(function(w) sum(2 * log(w)))), simplex)),
    target_posterior(plain, function(x) -sum(x^2) / 2, dim = 2)
  )
  for (target in targets) {
    for (kernel in c("klmc", "rwmh")) {
      calls <- 0
      fit <- suppressMessages(smc(target, kernel = kernel, seed = 1, precision = 0.1, draws = 100))
      expect_identical(glance(fit)$n_calls, calls)
      expect_equal(sum(fit$runs$n_calls), calls)
      is_dear <- calls > sum(fit$runs$n_target_evals)
      expect_identical(any(grepl("calls of the function", capture.output(print(fit)))), is_dear)
      expect_match(unclass(report(fit)), format(calls, big.mark = ","), fixed = TRUE)
      more <- suppressMessages(smc_extend(fit, islands = nrow(fit$islands) + 2))
      expect_identical(glance(more)$n_calls, calls)
    }
  }
  calls <- 0
  scout <- suppressMessages(smc_scout(targets[[1]], seed = 1))
  expect_identical(scout$n_calls, calls)
  expect_output(print(scout), paste0("(", format(calls, big.mark = ","), " calls"), fixed = TRUE)
})

# precision ---------------------------------------------------------------------

test_that("a fit starts small, and grows only where it must for its precision", {
  seek <- function(...) suppressMessages(suppressWarnings(smc(logistic, seed = 2, ...)))
  plain <- seek(n_particles = 1024)
  small <- seek()
  expect_equal(small$n_particles, 128)
  expect_lte(small$sampling_error, 0.01)
  expect_log_z(small, 0, resolution = 0.1)
  expect_lt(spent(small), spent(plain) / 2)

  # more islands than there may be would be needed: four times as many particles are cheaper
  precision <- small$sampling_error / 4
  larger <- seek(precision = precision, max_islands = 16)
  expect_true("larger" %in% larger$runs$label)
  expect_true(larger$n_particles %in% (128 * 4^(1:4)))
  expect_lte(larger$sampling_error, precision)
  expect_log_z(larger, 0, resolution = 0.02)

  # where the number of particles is given it stays
  expect_equal(seek(precision = precision, max_islands = 16, n_particles = 256)$n_particles, 256)
})

test_that("islands are added for draws", {
  seek <- function(draws) suppressWarnings(smc(logistic, draws = draws, n_particles = 64, max_islands = 200, seed = 1))
  few <- seek(100)
  expect_equal(nrow(few$islands), 8)
  many <- seek(3000)
  expect_gt(nrow(many$islands), 3000 / 64)
  expect_gte(glance(many)$ess_mean, 3000)
  expect_warning(
    smc(logistic, draws = 3000, n_particles = 64, max_islands = 8, seed = 1),
    "effective sample size of [0-9,]+, not 3,000",
    class = "autosmc_warning_precision"
  )
  expect_bad(seek(0), "draws")
})
