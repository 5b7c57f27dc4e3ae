# The kernels in R: arguments, defaults, what is in a fit, and what is asked of a
# target.

every_kernel <- list(
  klmc = kernel_klmc(),
  lmc = kernel_lmc(),
  lmc_independent = kernel_lmc(first_backward = "independent"),
  lmc_forward = kernel_lmc(backward = "forward"),
  mala = kernel_mala(),
  mala_acceptance = kernel_mala(objective = "acceptance", n_moves = 2),
  rwmh = kernel_rwmh(),
  pcn = kernel_pcn(),
  hmc = kernel_hmc(),
  hmc_esjd = kernel_hmc(objective = "esjd", n_moves = 2),
  rwmh_acceptance = kernel_rwmh(objective = "acceptance", n_moves = 3)
)
is_adjusted <- function(kernel) kernel$name %in% c("mala", "rwmh", "pcn", "hmc")

small_target <- target_gaussian(2, mean = 1, sd = 0.7)
small_fit <- function(..., target = small_target, n_particles = 64,
                      n_steps = 6, seed = 1) {
  calmly(smc_plain(target, ..., n_particles = n_particles, n_steps = n_steps, seed = seed))
}

# arguments -------------------------------------------------------------------

test_that("kernel_klmc() names a wrong argument", {
  for (bad in list(-1, 0, NA, Inf, "a", numeric(), c(1, -1))) {
    expect_bad(kernel_klmc(bad, 0.5), "step_size")
  }
  for (bad in list(-1, 0, 1.1, NA, Inf, "a", numeric())) {
    expect_bad(kernel_klmc(refresh_rate = bad), "refresh_rate")
    expect_bad(kernel_klmc(0.1, bad), "refresh_rate")
  }
  expect_bad(kernel_klmc(refresh_rate = c(0.1, 0.9)), "refresh_rate")
  expect_bad(kernel_klmc(0.1), "refresh_rate")
  for (bad in list(NULL, numeric(), 0, 2, NA, "a", c(0.5, 0.5), (1:17) / 17)) {
    expect_bad(kernel_klmc(refresh_grid = bad), "refresh_grid")
  }
  expect_bad(small_fit(kernel = kernel_klmc(c(0.1, 0.2), 0.5)), "step_size")
  expect_bad(small_fit(kernel = kernel_klmc(0.1, c(0.5, 0.6))), "refresh_rate")
  expect_s3_class(kernel_klmc(refresh_grid = (1:16) / 16), "smc_kernel")
  expect_s3_class(kernel_klmc(0.1, 1), "smc_kernel")
})

for (name in c("kernel_mala", "kernel_rwmh", "kernel_hmc")) {
  test_that(paste0(name, "() names a wrong argument"), {
    make <- get(name, asNamespace("autosmc"))
    for (bad in list(-1, 0, NA, "a", numeric())) {
      expect_bad(make(bad), "step_size")
    }
    for (bad in list("esj", 1, NULL, NA_character_)) {
      expect_bad(make(objective = bad), "objective")
    }
    for (bad in list(0, 1, -0.1, 1.5, NA, "a", c(0.2, 0.3), NULL)) {
      expect_bad(make(target_acceptance = bad), "target_acceptance")
    }
    for (bad in list(0, -1, 1.5, NA, "a", NULL, 4096, c(1, 2))) {
      expect_bad(make(n_moves = bad), "n_moves")
    }
    expect_s3_class(make(n_moves = 4095), "smc_kernel")
  })
}

test_that("kernel_hmc() names a wrong rate", {
  for (bad in list(-1, 0, 1.1, NA, Inf, "a", numeric(), NULL)) {
    expect_bad(kernel_hmc(refresh_rate = bad), "refresh_rate")
  }
  expect_bad(kernel_hmc(refresh_rate = c(0.1, 0.9)), "refresh_rate")
  expect_bad(small_fit(kernel = kernel_hmc(0.1, c(0.5, 0.6))), "refresh_rate")
})

test_that("kernel_lmc() and tuner_kl() name a wrong choice", {
  for (bad in list("paper", 1, NULL)) {
    expect_bad(kernel_lmc(first_backward = bad), "first_backward")
    expect_bad(tuner_kl(search = bad), "search")
  }
})

test_that("the kernels print", {
  expect_output(print(kernel_klmc()), "KLMC.*step size: tuned.*rate: tuned")
  expect_output(print(kernel_klmc(0.1, 0.5)), "step size: 0.1\nrefresh rate: 0.5")
  expect_output(print(kernel_mala()), "MALA")
  expect_output(print(kernel_rwmh(2)), "RWMH\nstep size: 2")
  expect_output(print(tuner_kl(search = "golden")), "golden")
  expect_output(print(small_fit()), "sampler: +KLMC")
})

# defaults --------------------------------------------------------------------

test_that("KLMC is the default", {
  fit <- small_fit()
  expect_identical(fit$kernel$name, "klmc")
  klmc <- small_fit(kernel = kernel_klmc())
  expect_identical(without_time(fit), without_time(klmc))
  expect_identical(adapt_plain(small_target, n_steps = 2)$kernel$name, "klmc")
})

test_that("the parabolic search is the default", {
  explicit <- small_fit(tuner = tuner_kl(search = "parabolic"))
  expect_identical(explicit$steps, small_fit()$steps)
  golden <- small_fit(tuner = tuner_kl(search = "golden"))
  expect_gt(
    golden$runs$n_objective_evals[1],
    1.5 * explicit$runs$n_objective_evals[1]
  )
})

# what is in a fit ------------------------------------------------------------

for (name in names(every_kernel)) {
  kernel <- every_kernel[[name]]

  test_that(paste("columns of a fit, and its final run repeated:", name), {
    fit <- small_fit(kernel = kernel)
    expect_true(all(c("refresh_rate", "acceptance") %in% names(fit$steps)))
    expect_true("refresh_rate" %in% names(fit$schedule))
    expect_type(fit$steps$refresh_rate, "double")
    expect_type(fit$steps$acceptance, "double")
    if (kernel$name == "klmc") {
      expect_true(all(fit$steps$refresh_rate %in% c(0.1, 0.9)))
    } else if (kernel$name == "hmc") {
      expect_true(all(fit$steps$refresh_rate == 0.5))
    } else {
      expect_true(all(is.na(fit$steps$refresh_rate)))
    }
    if (is_adjusted(kernel)) {
      expect_true(all(fit$steps$acceptance > 0 & fit$steps$acceptance < 1))
    } else {
      expect_true(all(is.na(fit$steps$acceptance)))
    }
    # plain NA: R says NaN for what went wrong
    expect_false(any(is.nan(unlist(fit$steps[c("refresh_rate", "acceptance")]))))

    final <- fit$steps[fit$steps$run == "final", ]
    adapt <- fit$steps[fit$steps$run == "adapt", ]
    parameters <- c("step", "lambda", "step_size", "refresh_rate")
    expect_identical(final[parameters], adapt[parameters])
    again <- smc_run(
      small_target, fit$schedule,
      kernel = kernel, n_particles = 64, seed = fit$seed
    )
    expect_identical(again$log_z, fit$log_z)
    expect_identical(again$particles, fit$particles)
    expect_identical(again$log_weights, fit$log_weights)
    expect_identical(again$steps, final)
    expect_identical(again$schedule, fit$schedule)
    expect_identical(glance(fit)$kernel, kernel$name)
  })
}

test_that("the kernel of smc_run() follows from the schedule", {
  schedule <- data.frame(lambda = c(0.3, 1), step_size = 0.4)
  run <- function(schedule) {
    smc_run(small_target, schedule, n_particles = 16, seed = 1)
  }
  expect_identical(run(schedule)$kernel$name, "lmc")
  expect_identical(run(cbind(schedule, refresh_rate = NA))$kernel$name, "lmc")
  with_rates <- cbind(schedule, refresh_rate = 0.5)
  expect_identical(run(with_rates)$kernel$name, "klmc")
  start <- data.frame(lambda = 0, step_size = NA, refresh_rate = NA)
  with_start <- run(rbind(start, with_rates))
  expect_identical(with_start$kernel$name, "klmc")
  expect_identical(with_start$log_z, run(with_rates)$log_z)
  fit <- small_fit()
  expect_identical(
    smc_run(small_target, fit$schedule, n_particles = 64, seed = 1)$log_z,
    fit$log_z
  )
  lmc <- small_fit(kernel = kernel_lmc())
  expect_identical(
    smc_run(small_target, lmc$schedule, n_particles = 64, seed = 1)$log_z,
    lmc$log_z
  )
})

test_that("kernel and schedule must not differ", {
  schedule <- data.frame(
    lambda = c(0.3, 1), step_size = c(0.4, 0.3), refresh_rate = c(0.5, 0.6)
  )
  run <- function(kernel, schedule) {
    smc_run(small_target, schedule, kernel = kernel, n_particles = 16, seed = 1)
  }
  differ <- function(kernel, argument) {
    error <- catch(run(kernel, schedule))
    expect_s3_class(error, "autosmc_error_input")
    message <- gsub("\\s+", " ", conditionMessage(error))
    expect_match(message, paste0(argument, ".*differ"))
  }
  differ(kernel_lmc(0.4), "step_size")
  differ(kernel_lmc(c(0.3, 0.4)), "step_size")
  differ(kernel_mala(0.4), "step_size")
  differ(kernel_rwmh(0.4), "step_size")
  differ(kernel_klmc(0.4, 0.5), "step_size")
  differ(kernel_klmc(c(0.4, 0.3), 0.5), "refresh_rate")
  differ(kernel_klmc(refresh_rate = 0.5), "refresh_rate")
  same <- run(kernel_klmc(c(0.4, 0.3), c(0.5, 0.6)), schedule)
  expect_identical(same$log_z, run(kernel_klmc(), schedule)$log_z)
  expect_identical(
    run(kernel_mala(c(0.4, 0.3)), schedule)$log_z,
    run(kernel_mala(), schedule)$log_z
  )
})

test_that("KLMC needs the rates of its schedule", {
  run <- function(schedule) {
    smc_run(small_target, schedule, kernel = kernel_klmc(), n_particles = 16)
  }
  schedule <- data.frame(lambda = c(0.3, 1), step_size = 0.4)
  expect_error(run(schedule), "refresh_rate", class = "autosmc_error_input")
  for (rate in list(NA, c(0.5, NA), 0, 2, "a")) {
    expect_error(
      run(cbind(schedule, refresh_rate = rate)),
      "refresh_rate",
      class = "autosmc_error_input"
    )
  }
})

test_that("a refreshment rate is one of the grid, or the one that was given", {
  grid <- c(0.6, 0.2, 1)
  fit <- small_fit(kernel = kernel_klmc(refresh_grid = grid), n_steps = 12)
  expect_true(all(fit$steps$refresh_rate %in% grid))
  expect_gt(length(unique(fit$schedule$refresh_rate)), 1)
  one <- small_fit(kernel = kernel_klmc(refresh_grid = 0.3))
  expect_identical(unique(one$steps$refresh_rate), 0.3)
  given <- small_fit(kernel = kernel_klmc(refresh_rate = 0.3))
  expect_identical(unique(given$steps$refresh_rate), 0.3)
  expect_identical(given$steps, one$steps)
  expect_true(all(given$steps$tuner_status %in% c("converged", NA)))
  expect_gt(length(unique(given$schedule$step_size)), 1)
})

test_that("KLMC's parameters may be given, for all steps or for each", {
  one <- small_fit(kernel = kernel_klmc(0.5, 0.3))
  expect_identical(one$runs$run, "final")
  expect_false(one$runs$biased)
  each <- small_fit(kernel = kernel_klmc(rep(0.5, 6), rep(0.3, 6)))
  expect_identical(each$particles, one$particles)
  rates <- (1:6) / 10
  varied <- small_fit(kernel = kernel_klmc(0.5, rates))
  expect_identical(varied$steps$refresh_rate, rates)
  expect_false(identical(varied$log_z, one$log_z))
})

# what is asked of a target ---------------------------------------------------

# A Gaussian that records the points of its two functions.
recording_target <- function(gradient = TRUE) {
  seen <- new.env()
  seen$density <- seen$gradient <- list()
  target <- target_function(
    function(x) {
      seen$density <- c(seen$density, list(x))
      -rowSums((x - 1)^2)
    },
    dim = 2,
    gradient = if (gradient) {
      function(x) {
        seen$gradient <- c(seen$gradient, list(x))
        -2 * (x - 1)
      }
    },
    vectorized = TRUE
  )
  count <- function(points) as.double(sum(vapply(points, nrow, integer(1))))
  list(
    target = target,
    seen = seen,
    densities = function() count(seen$density),
    gradients = function() count(seen$gradient)
  )
}

untuned <- list(
  klmc = kernel_klmc(0.4, 0.5),
  lmc = kernel_lmc(0.4),
  lmc_independent = kernel_lmc(0.4, first_backward = "independent"),
  lmc_forward = kernel_lmc(0.4, "forward"),
  mala = kernel_mala(0.4),
  mala_moves = kernel_mala(0.4, n_moves = 4),
  rwmh = kernel_rwmh(0.4),
  rwmh_moves = kernel_rwmh(0.4, n_moves = 4),
  pcn = kernel_pcn(0.4),
  hmc = kernel_hmc(0.4),
  hmc_moves = kernel_hmc(0.4, n_moves = 4)
)

for (name in names(untuned)) {
  test_that(paste("an untuned run makes N (n_moves T + 1) evaluations:", name), {
    kernel <- untuned[[name]]
    recording <- recording_target()
    fit <- small_fit(kernel = kernel, target = recording$target)
    moves <- if (grepl("moves", name)) 4 else 1
    expected <- 64 * (moves * 6 + 1)
    expect_identical(recording$densities(), expected)
    expect_identical(
      recording$gradients(),
      if (kernel$gradients) expected else 0
    )
    expect_equal(fit$runs$n_target_evals, expected)
    expect_equal(
      fit$steps$n_target_evals,
      64 * moves + 64 * (fit$steps$step == 1)
    )
    expect_equal(fit$runs$n_objective_evals, 0)
  })
}

for (name in names(every_kernel)) {
  for (search in c("parabolic", "golden")) {
    test_that(sprintf(
      "a tuned run makes B more an objective, none twice: %s, %s", name, search
    ), {
      kernel <- every_kernel[[name]]
      recording <- recording_target()
      fit <- adapt_plain(
        recording$target,
        n_particles = 64, n_steps = 6, kernel = kernel,
        tuner = tuner_kl(20, search = search), seed = 1
      )
      moves <- kernel$options$n_moves
      objectives <- fit$steps$n_objective_evals
      expect_true(all(objectives >= 3))
      expected <- 64 * (moves * 6 + 1) + 20 * sum(objectives)
      expect_identical(recording$densities(), expected)
      expect_equal(fit$runs$n_target_evals, expected)
      expect_equal(
        fit$steps$n_target_evals,
        64 * moves + 64 * (fit$steps$step == 1) + 20 * objectives
      )

      # with L_0 = q the backward density at t = 1 needs no gradient
      densities_only <- if (!kernel$gradients) {
        expected
      } else if (name == "lmc") {
        20 * objectives[1]
      } else {
        0
      }
      expect_identical(recording$gradients(), expected - densities_only)

      # an objective is evaluated at the trial's points, which its parameters fix;
      # at t = 1 all particles differ
      points <- Filter(function(x) nrow(x) == 20, recording$seen$density)
      expect_length(points, sum(objectives))
      expect_false(anyDuplicated(lapply(points, signif, 8)) > 0)
    })
  }
}

test_that("RWMH neither needs a gradient nor speaks of it", {
  without <- recording_target(gradient = FALSE)
  expect_message(
    fit <- small_fit(kernel = kernel_rwmh(), target = without$target),
    NA
  )
  expect_equal(without$densities(), sum(fit$runs$n_target_evals))
  with <- recording_target()
  same <- small_fit(kernel = kernel_rwmh(), target = with$target)
  expect_identical(with$gradients(), 0)
  expect_identical(same$particles, fit$particles)
  # and at a gradient that stops it does not stop
  stops <- target_function(
    normal_density, 2,
    gradient = function(x) stop("no gradient")
  )
  expect_true(is.finite(small_fit(kernel = kernel_rwmh(), target = stops)$log_z))
  expect_s3_class(
    catch(small_fit(kernel = kernel_mala(), target = stops)),
    "autosmc_error_target"
  )
  expect_message(
    small_fit(kernel = kernel_mala(), target = without$target),
    class = "autosmc_message_gradient"
  )
})

# odd cases -------------------------------------------------------------------

test_that("every kernel does with one variable, one step and two particles", {
  for (kernel in every_kernel) {
    fit <- smc_plain(
      target_gaussian(1, mean = 1),
      n_particles = 2, n_steps = 1, kernel = kernel, seed = 1
    )
    expect_identical(dim(fit$particles), c(2L, 1L))
    expect_true(is.finite(fit$log_z))
    expect_true(all(fit$schedule$step_size > 0))
  }
})

test_that("every kernel says when all particles are dead", {
  nowhere <- target_function(
    function(x) rep(-Inf, nrow(x)), 2,
    gradient = function(x) -x, vectorized = TRUE
  )
  for (kernel in every_kernel) {
    error <- catch(small_fit(kernel = kernel, target = nowhere))
    expect_s3_class(error, "autosmc_error_degenerate")
    expect_identical(error$step, 1L)
  }
})

test_that("adjusted kernels weigh and resample before they move", {
  # a target far off: the weights are those of the particles before the move, so
  # that the first step's do not depend on the step size
  far <- target_gaussian(2, mean = 4)
  first_ess <- function(kernel) {
    small_fit(kernel = kernel, target = far, n_steps = 2)$steps$ess[1]
  }
  expect_identical(first_ess(kernel_mala(0.1)), first_ess(kernel_mala(1)))
  expect_identical(first_ess(kernel_mala(0.1)), first_ess(kernel_rwmh(1)))
  # duplicates after resampling are moved apart
  fit <- small_fit(kernel = kernel_rwmh(0.05), target = far, n_steps = 12)
  expect_true(any(fit$steps$resampled))
  expect_false(anyDuplicated(
    small_fit(
      kernel = kernel_rwmh(0.05, n_moves = 30), target = far, n_steps = 12
    )$particles
  ) > 0)
})

test_that("a kernel says what it does", {
  does <- function(kernel) unlist(kernel[c("gradients", "refreshes", "adjusted")])
  expect_identical(unname(does(kernel_klmc())), c(TRUE, TRUE, FALSE))
  expect_identical(unname(does(kernel_lmc())), c(TRUE, FALSE, FALSE))
  expect_identical(unname(does(kernel_mala())), c(TRUE, FALSE, TRUE))
  expect_identical(unname(does(kernel_rwmh())), c(FALSE, FALSE, TRUE))
  # as the core has it: what a run fills in
  for (kernel in list(kernel_klmc(), kernel_lmc(), kernel_mala(), kernel_rwmh())) {
    asked <- FALSE
    gradient <- function(x) {
      asked <<- TRUE
      -x
    }
    target <- target_function(normal_density, 2, gradient = gradient)
    steps <- smc_plain(target, kernel = kernel, n_particles = 16, n_steps = 2, seed = 1)$steps
    expect_identical(asked, kernel$gradients)
    expect_identical(anyNA(steps$refresh_rate), !kernel$refreshes)
    expect_identical(anyNA(steps$acceptance), !kernel$adjusted)
  }
})
