# Passes: what the islands' draws ask for, and which pass the fit reports.

# Islands as a verdict compares them with those of the pass before.
of_islands <- function(log_z, sampling_error, std_error = sampling_error) {
  list(
    dead = FALSE, of_islands = TRUE, reason = "round", shared = 0.01, std_error = std_error,
    runs = list(log_z = log_z, predicted_sd = sampling_error)
  )
}

test_that("islands take over from those of the pass before, unless they miss something, or have twice the error", {
  replaces_best <- internal("replaces_best")
  before <- of_islands(0, 0.1)
  expect_true(replaces_best(of_islands(0, 0.19), before))
  expect_false(replaces_best(of_islands(0, 0.21), before))
  # two of both errors' root mean square, 0.22
  expect_false(replaces_best(of_islands(0.44, 0.2001), before))
  expect_true(replaces_best(of_islands(0.46, 0.2001), before))
  expect_true(replaces_best(of_islands(-0.28, 0.1), before))
  expect_false(replaces_best(of_islands(-0.29, 0.1), before))
  # what a failed diagnostic has seen is part of the error, but no reason for one that is lower
  expect_true(replaces_best(of_islands(0.1, 0.1), of_islands(0, 0.01, 0.1)))
  expect_false(replaces_best(of_islands(-0.1, 0.01), of_islands(0, 0.01, 0.1)))
  # a run that tunes may be lower by its bias, too
  expect_true(replaces_best(replace(of_islands(-0.3, 0.1), "of_islands", FALSE), before))
  # without an error nothing is known
  expect_true(replaces_best(of_islands(0, NA_real_), before))
  expect_true(replaces_best(of_islands(0, 1), of_islands(0, NA_real_)))
})

# Islands of a banana, from N(0, 2^2), which a shape fits better.
banana <- target_function(
  function(x) dnorm(x[, 1], log = TRUE) + dnorm(x[, 2], x[, 1]^2, 0.5, log = TRUE), 2,
  gradient = function(x) {
    off <- 4 * (x[, 2] - x[, 1]^2)
    cbind(2 * x[, 1] * off - x[, 1], -off)
  },
  vectorized = TRUE
)

islands_of <- function(reference, target = banana) {
  sampler <- sampler_for(target, n_particles = 256, reference = reference)
  path <- list(lambda = (1:8) / 8, step_size = rep(0.1, 8), refresh_rate = rep(0.9, 8))
  final <- internal("run_islands")(
    sampler, path, list(islands = 6, precision = NULL, bridges = FALSE)
  )
  list(sampler = sampler, final = final)
}

# A course after a pass with this number, whose diagnostics of these names have `failed`, and whose estimate has an
# error that would be `error` with the particles of the default, four times as many.
course_after <- function(result, error, pass = 1, failed = NULL, method = "bridge", reason = "round", max_steps = 64) {
  names <- c("edges", "passes", "proper", "ancestor_ess")
  result$estimate <- list(method = method, log_z = 0, std_error = 2 * error)
  result$diagnostics <- data.frame(name = names, passed = !names %in% failed)
  best <- internal("record_of_islands")(result, list(
    runs = list(label = "shape", n_particles = 256, n_target_evals = 1e4), reason = reason, is_fitted = TRUE
  ))
  list(
    sampler = result$sampler, path = list(lambda = 1), result = result, best = best, n_passes = pass,
    plan = list(max_evals = Inf, max_steps = max_steps)
  )
}

test_that("a further pass is made where the bridge is not sure, or a diagnostic failed", {
  normal <- islands_of(reference_gaussian(sd = 2))
  course <- course_after(normal, 1)
  shape <- internal("propose")(course$best, "shape")$reference
  expect_s3_class(shape, "smc_reference")
  shape$mean <- c(0.3, 0) # so that a better one can be fitted
  shaped <- islands_of(shape)
  proposed <- function(...) {
    course <- course_after(...)
    internal("fitted_to_islands")(course, course$best)$label
  }
  expect_identical(proposed(normal, 0.011, 1), "shape")
  expect_null(proposed(normal, 0.009, 1))
  # the error of SMC may be small by chance
  expect_identical(proposed(normal, 0.009, 1, method = "smc"), "shape")
  expect_identical(proposed(normal, 0.009, 1, "edges"), "shape")
  # a first shape is surer only where the bridge claims less, and then for the same shape
  expect_identical(proposed(shaped, 0.0021, 1), "shape")
  expect_null(proposed(shaped, 0.0019, 1))
  expect_null(proposed(shaped, 0.0021, 2))
  # after two passes only while the estimate rises
  expect_null(proposed(normal, 0.011, 3))
  expect_null(proposed(normal, 0.011, 3, "edges"))
  expect_identical(proposed(normal, 0.011, 3, "passes"), "shape")
})

test_that("where no shape is found a failed diagnostic asks for a normal reference", {
  result <- islands_of(reference_gaussian(sd = 2), target_gaussian(2, mean = 1))
  result$final["gradients"] <- list(NULL) # which show that the target is normal
  label <- function(failed) {
    course <- course_after(result, 0.1, failed = failed, method = "smc")
    internal("fitted_to_islands")(course, course$best)$label
  }
  expect_null(label(NULL))
  expect_identical(label("edges"), "normal")
})

test_that("a pass that does not take over is dropped, and the one before is the fit", {
  replaces_best <- internal("replaces_best")
  fit_with <- function(verdict) {
    # one further pass, whatever the draws say, from the same reference
    is_first <- TRUE
    once <- function(course, record) {
      if (is_first) {
        is_first <<- FALSE
        internal("new_candidate")(course, record$reference, "islands", "shape", rung = "shape")
      }
    }
    with_internals(
      list(
        fitted_to_islands = once, lengthened = function(...) NULL,
        replaces_best = function(record, best) {
          if (isTRUE(record$of_islands)) verdict else isTRUE(best$of_islands) || replaces_best(record, best)
        }
      ),
      calmly(smc(banana, n_particles = 128, n_steps = 8, islands = 4, seed = 1))
    )
  }
  passes_of <- function(fit) fit$runs[fit$runs$run == "final", ]
  kept <- passes_of(fit_with(TRUE))
  expect_identical(kept$used, c(FALSE, TRUE))
  fit <- fit_with(FALSE)
  dropped <- passes_of(fit)
  # the second one has cost as much, and the first one is reported
  expect_identical(dropped$used, c(FALSE, TRUE))
  expect_identical(dropped$log_z, kept$log_z[2:1])
  expect_identical(dropped$n_target_evals, kept$n_target_evals[2:1])
  expect_identical(fit$islands$island, 1:4)
})

# more steps --------------------------------------------------------------------

test_that("what has failed asks for more steps, and again where that has not helped", {
  result <- islands_of(reference_gaussian(sd = 2))
  longer <- function(failed = "ancestor_ess", max_steps = 64, reason = "round") {
    course <- course_after(result, 0.1, failed = failed, reason = reason, max_steps = max_steps)
    candidate <- internal("lengthened")(course)
    if (!is.null(candidate)) {
      expect_identical(candidate$reason, "longer")
      expect_identical(candidate$reference, result$final$reference)
    }
    candidate$path$lambda
  }
  lambda <- longer()
  expect_length(lambda, 32)
  expect_false(is.unsorted(c(0, lambda), strictly = TRUE))
  expect_identical(lambda[32], 1)
  expect_length(longer(max_steps = 20), 20)
  expect_null(longer(max_steps = 8))
  expect_null(longer(NULL))
  expect_length(longer("passes"), 32)
  expect_null(longer("proper"))
  expect_null(longer("edges", reason = "longer"))
  expect_length(longer("ancestor_ess", reason = "longer"), 32)
  expect_length(longer("passes", reason = "longer"), 32)
})

test_that("a longer pass has four times the steps, fresh islands, and the last word", {
  all <- internal("diagnostics")()
  all$ancestor_ess$judge <- function(...) {
    internal("diagnostic")(0.01, 0.05, "They are worth little.", beyond = "below")
  }
  all$passes$judge <- function(...) NULL
  replaces_best <- internal("replaces_best")
  # islands as `keeps` says, after them what was not "rejected", and before them what the verdict says
  fit_with <- function(..., max_steps = 4, keeps = TRUE, fitted = function(...) NULL) {
    verdict <- function(record, best) {
      if (isTRUE(record$of_islands)) {
        keeps
      } else if (isTRUE(best$of_islands)) {
        record$runs$label != "rejected"
      } else {
        replaces_best(record, best)
      }
    }
    with_internals(
      list(diagnostics = function() all, replaces_best = verdict, fitted_to_islands = fitted),
      smc(banana, n_particles = 128, n_steps = 8, max_steps = max_steps, islands = 4, seed = 2, ...)
    )
  }
  expect_warning(fit <- fit_with(), "They are worth little", class = "autosmc_warning_unreliable")
  islands <- fit$runs[fit$runs$run == "final", ]
  expect_identical(islands$used, c(FALSE, TRUE))
  expect_identical(islands$n_steps[2], 4L * islands$n_steps[1])
  run <- fit$runs[fit$runs$label %in% "longer" & fit$runs$run == "adapt", ]
  expect_identical(run$n_steps, islands$n_steps[2])
  expect_identical(fit$islands$island, 65536L + 1:4)

  # where it has spoilt the estimate the pass before stays, with its own steps, and no other is tried
  dropped <- calmly(fit_with(keeps = FALSE))
  islands <- dropped$runs[dropped$runs$run == "final", ]
  expect_identical(islands$n_steps[islands$used], fit$runs$n_steps[fit$runs$run == "final"][1])
  expect_identical(dropped$islands$island, 1:4)
  expect_identical(islands$used, c(FALSE, TRUE))

  # nor is it left out where a better reference was tried first, and rejected
  rejected <- calmly(fit_with(fitted = function(course, record) {
    internal("new_candidate")(course, record$reference, "islands", "rejected", rung = "shape")
  }))
  tried <- rejected$runs[rejected$runs$run == "adapt", ]
  expect_identical(any(tried$used[tried$label == "rejected"]), FALSE)
  expect_identical(tried$used[tried$label == "longer"], TRUE)
  expect_identical(rejected$runs$used[rejected$runs$run == "final"], c(FALSE, TRUE))

  # they are still worth little: so it goes on, up to the most steps
  further <- calmly(fit_with(max_steps = 10))
  islands <- further$runs[further$runs$run == "final", ]
  expect_identical(islands$n_steps, c(fit$runs$n_steps[fit$runs$run == "final"], 10L))
  expect_identical(islands$used, c(FALSE, FALSE, TRUE))

  # and only where there are evaluations left for all islands
  taken <- function(labels) sum(fit$runs$n_target_evals[fit$runs$label %in% labels])
  enough <- taken(c(NA, "shape")) + taken("longer") / 2
  poor <- suppressWarnings(calmly(fit_with(max_evals = enough)), classes = "autosmc_warning_budget")
  expect_true("longer" %in% names(poor$truncated))
  expect_false("longer" %in% poor$runs$label)
  expect_lte(sum(poor$runs$n_target_evals), enough)
  expect_identical(poor$runs$islands[poor$runs$used & poor$runs$run == "final"], 4L)
})
