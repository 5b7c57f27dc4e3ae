# Passes: what the islands' draws ask for, and which pass the fit reports.

# A result as passes() compares them, by its one estimate.
estimated <- function(log_z, std_error, method = "smc") {
  list(final = list(estimates = data.frame(
    method = method, log_z = log_z, std_error = std_error
  )))
}

test_that("a pass is spoilt where its error has doubled, and it has found no more", {
  spoilt <- internal("has_spoilt")
  before <- estimated(0, 0.1)
  expect_false(spoilt(estimated(-3, 0.19), before))
  expect_true(spoilt(estimated(-3, 0.21), before))
  # two of both errors' root mean square, 0.22
  expect_true(spoilt(estimated(0.44, 0.2001), before))
  expect_false(spoilt(estimated(0.46, 0.2001), before))
  # without an error nothing is known
  expect_false(spoilt(estimated(0, NA_real_), before))
  expect_false(spoilt(estimated(0, 1), estimated(0, NA_real_)))
  # by the estimates that are reported
  bridged <- function(of_smc, of_bridge) {
    estimated(c(0, 0), c(of_smc, of_bridge), c("smc", "bridge"))
  }
  expect_true(spoilt(bridged(0.1, 0.03), bridged(0.1, 0.01)))
  expect_false(spoilt(bridged(0.1, 0.09), bridged(0.06, 0.05)))
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

test_that("a further pass is made where the bridge is not sure, or a diagnostic failed", {
  normal <- islands_of(reference_gaussian(sd = 2))
  shape <- internal("propose")(internal("as_round")(normal), "shape")$reference
  expect_s3_class(shape, "smc_reference")
  shape$mean <- c(0.3, 0) # so that a better one can be fitted
  shaped <- islands_of(shape)
  # what is proposed after a pass whose estimate is this, and whose diagnostics failed so
  proposed <- function(result, error, pass, failed = NULL, method = "bridge") {
    result$final$estimates <- data.frame(method = method, log_z = 0, std_error = error)
    result$diagnostics <- data.frame(
      name = c("edges", "passes"), passed = !c("edges", "passes") %in% failed
    )
    internal("reshape")(result, pass)$rung
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
  result$final$estimates <- data.frame(method = "smc", log_z = 0, std_error = 0.1)
  rung <- function(passed) {
    result$diagnostics <- data.frame(name = "edges", passed = passed)
    internal("reshape")(result, 1)$rung
  }
  expect_null(rung(TRUE))
  expect_identical(rung(FALSE), "normal")
})

test_that("a pass that is spoilt is dropped, and the one before is the fit", {
  fit_with <- function(verdict) {
    # one further pass, whatever the draws say, from the same reference
    is_first <- TRUE
    once <- function(result, pass, density) {
      if (is_first) {
        is_first <<- FALSE
        list(reference = result$sampler$reference, rung = "shape")
      }
    }
    with_internals(
      list(
        reshape = once, rises = function(...) FALSE,
        has_spoilt = function(result, before) verdict
      ),
      calmly(smc(banana, n_particles = 128, n_steps = 8, islands = 4, seed = 1))
    )
  }
  passes_of <- function(fit) fit$runs[fit$runs$run == "final", ]
  kept <- passes_of(fit_with(FALSE))
  expect_identical(kept$used, c(FALSE, TRUE))
  fit <- fit_with(TRUE)
  dropped <- passes_of(fit)
  # the second one has cost as much, and the first one is reported
  expect_identical(dropped$used, c(FALSE, TRUE))
  expect_identical(dropped$log_z, kept$log_z[2:1])
  expect_identical(dropped$n_target_evals, kept$n_target_evals[2:1])
  expect_identical(fit$islands$island, 1:4)
})

# more steps --------------------------------------------------------------------

test_that("draws that are worth little, and what has failed, ask for more steps, and again where that has not helped", {
  result <- islands_of(reference_gaussian(sd = 2))
  result$course <- list(best = list(runs = data.frame(label = "normal")))
  longer <- function(failed = NULL, max_steps = 64, ancestor_ess = 0.14) {
    result$diagnostics <- data.frame(
      name = c("passes", "proper", "ancestor_ess"), value = c(0, 0, ancestor_ess),
      passed = !c("passes", "proper", "ancestor_ess") %in% failed
    )
    internal("lengthen")(result, result$course, list(max_steps = max_steps, max_evals = Inf))
  }
  proposal <- longer()
  expect_identical(proposal$rung, "longer")
  expect_identical(proposal$reference, result$final$reference)
  expect_length(proposal$lambda, 32)
  expect_false(is.unsorted(c(0, proposal$lambda), strictly = TRUE))
  expect_identical(proposal$lambda[32], 1)
  expect_length(longer(max_steps = 20)$lambda, 20)
  expect_null(longer(max_steps = 8))
  expect_null(longer(ancestor_ess = 0.16))
  expect_length(longer("passes", ancestor_ess = 0.16)$lambda, 32)
  expect_null(longer("proper", ancestor_ess = 0.16))
  result$course$best$runs$label <- "longer"
  expect_null(longer())
  expect_null(longer("proper"))
  expect_length(longer("ancestor_ess", ancestor_ess = 0.01)$lambda, 32)
  expect_length(longer("passes")$lambda, 32)
})

test_that("a longer pass has four times the steps, fresh islands, and the last word", {
  thin <- function(...) {
    list(internal("diagnostic")("ancestor_ess", 0.01, 0.05, "They are worth little.", beyond = "below"))
  }
  fit_with <- function(..., max_steps = 4, has_spoilt = function(...) FALSE, reshape = function(...) NULL) {
    with_internals(
      list(
        diagnose_ancestor_ess = thin, diagnose_passes = function(...) NULL,
        rises = function(from, ...) identical(from$runs$label, "rejected"),
        reshape = reshape, has_spoilt = has_spoilt
      ),
      smc(banana, n_particles = 128, n_steps = 8, max_steps = max_steps, islands = 4, seed = 1, ...)
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
  dropped <- calmly(fit_with(has_spoilt = function(result, before) TRUE))
  islands <- dropped$runs[dropped$runs$run == "final", ]
  expect_identical(islands$n_steps[islands$used], fit$runs$n_steps[fit$runs$run == "final"][1])
  expect_identical(dropped$islands$island, 1:4)
  expect_identical(islands$used, c(FALSE, TRUE))

  # nor is it left out where a better reference was tried first, and rejected
  rejected <- calmly(fit_with(reshape = function(result, ...) {
    list(reference = result$final$reference, rung = "rejected")
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
  enough <- sum(fit$runs$n_target_evals)
  poor <- calmly(fit_with(max_evals = 0.75 * enough))
  expect_false("longer" %in% poor$runs$label)
  expect_lte(sum(poor$runs$n_target_evals), 0.75 * enough)
  expect_identical(poor$runs$islands[poor$runs$used & poor$runs$run == "final"], 4L)
})
