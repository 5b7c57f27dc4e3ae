# Diagnostics: each passes on a good fit, and fails where it should.

# What these diagnostics say, a list of rows; those that do not apply are left out.
diagnosed <- function(names, ...) {
  rows <- lapply(stats::setNames(nm = names), judge_of, ...)
  Filter(Negate(is.null), rows)
}
warn_if_unreliable <- internal("warn_if_unreliable")

# MALA would be exact, and islands would not scatter
good_fit <- smc(target_gaussian(3, mean = 1), n_steps = 16, kernel = "klmc", seed = 1)

# Islands from the target itself: their coordinates z are standard normal, the gradients -z.
sampler_of <- function(target) sampler_for(target, 512, reference = reference_gaussian(1))
sampler <- sampler_of(target_gaussian(3, mean = 1))
path <- list(lambda = c(0.5, 1), step_size = c(0.3, 0.3), refresh_rate = c(0.9, 0.9))
final <- internal("run_islands")(sampler, path, list(
  islands = 4, precision = NULL, bridges = FALSE
))
estimate <- list(log_z = 0, std_error = 0.02)

test_that("all pass on a good fit, and its verdict says so", {
  diagnostics <- good_fit$diagnostics
  expect_s3_class(diagnostics, "tbl_df")
  expect_named(diagnostics, c("name", "value", "limit", "passed", "shift", "says"))
  expect_identical(diagnostics$name, c(
    "scatter", "largest_share", "dead_islands", "estimates", "edges", "mean_gradient", "stein", "width",
    "proper", "rays", "lines", "elbo", "basins", "rounds"
  ))
  expect_true(all(diagnostics$passed))
  expect_true(all(is.na(diagnostics$says)))
  expect_true(all(diagnostics$value <= diagnostics$limit))
  expect_identical(glance(good_fit)$converged, TRUE)
  expect_false(any(grepl("warning", capture.output(print(good_fit)))))
})

test_that("one that fails is the verdict, and is printed and warned of", {
  for (i in seq_len(nrow(good_fit$diagnostics))) {
    fit <- good_fit
    fit$diagnostics$passed[i] <- FALSE
    says <- paste("This is what", fit$diagnostics$name[i], "says.")
    fit$diagnostics$says[i] <- says
    expect_identical(glance(fit)$converged, FALSE)
    expect_match(printed_text(fit), paste("warning:", says), fixed = TRUE)
    expect_warning(
      warn_if_unreliable(fit),
      class = "autosmc_warning_unreliable"
    )
  }
})

test_that("the warning says what was tried, and what may help where this has failed", {
  warned <- function(names, fit = good_fit) {
    fit$diagnostics$passed <- !fit$diagnostics$name %in% names
    message_of(catch_warning(warn_if_unreliable(fit)))
  }
  tried <- unique(good_fit$runs$label[good_fit$runs$run == "adapt"])
  expect_true("best" %in% tried)
  expect_match(warned("stein"), "Tried so far: references .*best")
  expect_match(warned("stein"), "another form")
  modes <- good_fit
  class(modes$reference) <- c("smc_reference_mixture", "smc_reference")
  expect_no_match(warned("stein", modes), "another form")
  expect_match(warned("stein", modes), "twice the `n_particles`", fixed = TRUE)
  expect_no_match(warned("stein"), "scout = FALSE", fixed = TRUE)
  expect_no_match(warned("stein"), "check_gradient")
  expect_match(warned("rays"), "scout = FALSE", fixed = TRUE)
  expect_match(warned("proper"), "proper prior")
  expect_no_match(warned("proper"), "twice the", fixed = TRUE)
  expect_match(warned(c("scatter", "stein")), "twice the `n_particles`", fixed = TRUE)
  # edges say what to do themselves
  advised <- unlist(lapply(internal("diagnostics")(), `[[`, "advise"))
  expect_setequal(unique(advised), names(internal("advice")))
  fit <- good_fit
  fit$diagnostics$passed[1] <- FALSE
  fit$diagnostics$says[1] <- "Along theta{1}."
  expect_warning(warn_if_unreliable(fit), "Along theta{1}.", fixed = TRUE)
  fit$kernel <- kernel_rwmh()
  expect_warning(warn_if_unreliable(fit), "moves by gradients")
  fit$scout$basins <- fit$scout$basins[0, ]
  expect_warning(warn_if_unreliable(fit), "its sign is wrong.*reference_laplace")
})

test_that("where there are no islands, or no diagnostic applies, there is no verdict", {
  adapted <- smc_adapt(target_gaussian(2), n_particles = 16, n_steps = 2, seed = 1)
  expect_null(adapted$diagnostics)
  expect_identical(glance(adapted)$converged, NA)
  expect_output(print(adapted), "biased")
  reference <- reference_function(
    function(n) matrix(rnorm(n), n), function(x) dnorm(x, log = TRUE), function(x) -x
  )
  alone <- smc_run(normal_target(1), data.frame(lambda = 1, step_size = 1),
    kernel = kernel_rwmh(), reference = reference, n_particles = 16, seed = 1
  )
  expect_null(alone$diagnostics)
  expect_identical(glance(alone)$converged, NA)
  expect_output(print(alone), "log Z")
})

# islands ---------------------------------------------------------------------

# Of islands with these estimates, each predicted to scatter by 0.1.
of_islands <- function(log_z, predicted_sd = ifelse(log_z > -Inf, 0.1, NA)) {
  islands <- data.frame(log_z = log_z, predicted_sd = predicted_sd)
  diagnosed(c("scatter", "largest_share", "dead_islands"), list(islands = islands))
}

failed_of <- function(rows) {
  as.character(names(rows)[!vapply(rows, `[[`, NA, "passed")])
}

test_that("islands that scatter more than they predict are seen", {
  expect_identical(failed_of(of_islands(rep(c(-0.1, 0.1), 4))), character())
  apart <- of_islands(rep(c(-0.3, 0.3), 8)) # their standard deviation is 0.3098
  expect_identical(failed_of(apart), "scatter")
  expect_equal(apart$scatter$value, 3.098, tolerance = 1e-3)
  expect_match(apart$scatter$says, "scatter 3.1 times as much")
  # of two it happens by chance
  expect_identical(failed_of(of_islands(c(0, 0.3))), character())
  # dead ones do not scatter
  expect_identical(failed_of(of_islands(c(0.1, -0.1, 0.1, -0.1, -Inf))), "dead_islands")
  # nor is rounding scatter
  expect_identical(failed_of(of_islands(c(0, 1e-12, 0, 0), 1e-12)), character())
})

test_that("where no scatter is predicted there is nothing to compare with", {
  expect_false("scatter" %in% names(of_islands(c(0, 0.3), 0)))
  # as after many multinomial resamplings
  fits <- lapply(1:20, function(seed) {
    calmly(smc_run(target_gaussian(2), data.frame(lambda = 1:16 / 16, step_size = 0.5),
      kernel = kernel_mala(), n_particles = 16, islands = 2, ess_threshold = 1,
      resampling = "multinomial", seed = seed
    ))
  })
  none <- vapply(fits, function(fit) all(fit$islands$predicted_sd == 0), NA)
  expect_true(any(none))
  for (fit in fits) {
    expect_identical("scatter" %in% fit$diagnostics$name, any(fit$islands$predicted_sd > 0))
    expect_true(all(is.finite(fit$diagnostics$value)))
    expect_false(any(grepl("Inf", fit$diagnostics$says)))
  }
})

test_that("an island that makes up the mean is seen", {
  rows <- of_islands(c(0, 0, 0, 0, log(12))) # three times the others' sum
  expect_true("largest_share" %in% failed_of(rows))
  expect_equal(rows$largest_share$value, 0.75)
  expect_match(rows$largest_share$says, "One of the 5 islands makes up 75 %", fixed = TRUE)
  # of fewer than four islands one may have the half
  expect_false("largest_share" %in% names(of_islands(c(0, 0.1, 0.25))))
})

test_that("islands that lost all particles are seen", {
  rows <- of_islands(c(0.1, -0.1, -Inf, 0.1, -0.1, -Inf))
  expect_identical(failed_of(rows), "dead_islands")
  expect_identical(rows$dead_islands$says, "2 of 6 islands lost all particles.")
  expect_identical(failed_of(of_islands(c(0, -Inf))), "dead_islands")
  # of one there is nothing to be said
  expect_length(of_islands(0), 0)
})

# draws -----------------------------------------------------------------------

test_that("draws without a limit are seen, whatever the scout found", {
  proper <- function(scout, final) {
    asked <- ask_of("proper", final, course = list(scout = scout), sampler = sampler)
    diagnosed("proper", final, found = asked$found)
  }
  nothing <- list(normals = list())
  narrow <- list(normals = list(reference_gaussian(0, 2)))
  expect_identical(failed_of(proper(nothing, final)), character())
  expect_identical(failed_of(proper(narrow, final)), character())
  expect_identical(failed_of(proper(list(normals = list(reference_gaussian(0, 1e14))), final)), "proper")
  final$particles <- 1e14 * final$particles
  expect_identical(failed_of(proper(nothing, final)), "proper")
  expect_identical(failed_of(proper(narrow, final)), "proper")
  expect_length(proper(NULL, final), 0)
})

test_that("a sum alone that is known leaves a difference free, which rounding ends, in any unit", {
  y <- qnorm(ppoints(50), 3, 1)
  proper <- function(seed, unit = 1, ends = 0) {
    free <- target_function(
      function(x) rowSums(dnorm(outer(unit * rowSums(x), y, "-"), log = TRUE)) - ends^2 * x[, 1]^2 / 2, 2,
      gradient = function(x) unit * (sum(y) - 50 * unit * rowSums(x)) - ends^2 * cbind(x[, 1], 0), vectorized = TRUE
    )
    subset(calmly(smc(free, n_particles = 128, seed = seed))$diagnostics, name == "proper")
  }
  for (seed in 1:3) expect_match(proper(seed)$says, "along x1 - x2", fixed = TRUE)
  for (unit in c(1e-4, 1e4)) expect_match(proper(1, unit)$says, "along x1 - x2", fixed = TRUE)
  # a prior ends it, whose standard deviation is 1e7 times that of the sum
  expect_true(proper(1, 1e4, ends = 1e-3 * sqrt(50))$passed)
})

test_that("draws of a bounded variable that go to where numbers end are seen", {
  fit_with <- function(log_prior, slope) {
    target <- target_function(
      function(x) -x[, 1]^2 / 2 + log_prior(x[, 2]), 2,
      gradient = function(x) cbind(-x[, 1], slope(x[, 2])), vectorized = TRUE, lower = c(-Inf, 0)
    )
    suppressWarnings(smc(target, n_particles = 256, seed = 1))$diagnostics
  }
  improper <- fit_with(function(s) -log(s), function(s) -1 / s)
  expect_identical(improper$passed[improper$name == "proper"], FALSE)
  half_cauchy <- fit_with(function(s) -log1p(s^2), function(s) -2 * s / (1 + s^2))
  expect_identical(half_cauchy$passed[half_cauchy$name == "proper"], TRUE)
})

test_that("a density that never falls off along a variable is seen, and heavy tails are not", {
  is_proper <- function(log_density) {
    target <- target_function(function(x) {
      log_density(x[, 2]) - x[, 1]^2 / 2
    }, 2, vectorized = TRUE)
    fit <- suppressMessages(suppressWarnings(smc(target, n_particles = 256, seed = 1)))
    fit$diagnostics$passed[fit$diagnostics$name == "proper"]
  }
  expect_false(is_proper(function(u) plogis(u, log.p = TRUE))) # flat to one side
  expect_false(is_proper(function(u) plogis(-u, log.p = TRUE)))
  expect_true(is_proper(function(u) -log1p(u^2)))
  # a softmax whose constant is free
  counts <- 3:5
  log_sum <- function(x) {
    most <- do.call(pmax, as.data.frame(x))
    most + log(rowSums(exp(x - most)))
  }
  free <- target_function(
    function(x) drop(x %*% counts) - 12 * log_sum(x), 3,
    gradient = function(x) rep(counts, each = nrow(x)) - 12 * exp(x - log_sum(x)), vectorized = TRUE
  )
  for (seed in 1:2) {
    proper <- subset(calmly(smc(free, seed = seed))$diagnostics, name == "proper")
    expect_match(proper$says, "along x1 + x2 + x3", fixed = TRUE)
  }
  expect_true(is_proper(function(u) plogis(u, log.p = TRUE) + 0.05 * pmin(-u, 0)))
})

test_that("a density that is given in the place of its logarithm is asked about", {
  given <- target_function(
    function(x) dnorm(x[, 1], 3) * dexp(x[, 2]), names = c("mu", "sigma"), lower = c(sigma = 0),
    gradient = function(x) cbind(3 - x[, 1], -1) * dnorm(x[, 1], 3) * dexp(x[, 2]), vectorized = TRUE
  )
  proper <- subset(calmly(smc(given, n_particles = 128, seed = 1))$diagnostics, name == "proper")
  expect_match(proper$says, "Or is the log density given the density itself?", fixed = TRUE)
})

test_that("a density that is constant until arithmetic ends is seen, and one that says where it ends is not", {
  counts <- c(5, 9, 2)
  set.seed(1)
  n <- nrow(final$particles)
  others <- log(matrix(rgamma(3 * n, rep(counts, each = n)), n)) # a softmax of these is Dirichlet
  says <- function(log_density, lower, upper) {
    sampler <- sampler_of(target_function(log_density, 4, vectorized = TRUE))
    centred <- others - rowMeans(others)
    final$particles <- unname(cbind(centred + runif(n, lower, upper), rnorm(n)))
    asked <- ask_of("proper", final, course = list(scout = list()), sampler = sampler)
    diagnosed("proper", final, found = asked$found)$proper$says
  }
  of_counts <- function(x) drop(x[, 1:3] %*% counts) + dnorm(x[, 4], log = TRUE)
  naive <- function(x) of_counts(x) - sum(counts) * log(rowSums(exp(x[, 1:3])))
  expect_match(suppressWarnings(says(naive, -740, 705)), "along x1 + x2 + x3", fixed = TRUE)
  ends <- function(outside, size) {
    function(x) {
      most <- do.call(pmax, as.data.frame(x[, 1:3]))
      value <- of_counts(x) - sum(counts) * (most + log(rowSums(exp(x[, 1:3] - most))))
      ifelse(abs(rowSums(x[, 1:3])) > 3 * size, outside, value)
    }
  }
  expect_identical(says(ends(-Inf, 700), -700, 700), NA_character_)
  expect_identical(says(ends(NaN, 1), -1, 1), NA_character_)
})

# Whether a fit to means of groups passes: these are known with errors s, and are normal with the mean
# mu, which is N(0, 20), and the standard deviation tau: x = (means, mu, log tau), or with tau itself.
# log_prior and slope are of log tau.
groups_pass <- function(y, s, log_prior, slope, of_tau = FALSE, seed = 1) {
  J <- length(y)
  # the means less y, and less mu, by their errors, and log tau
  parts <- function(x) {
    log_tau <- if (of_tau) log(x[, J + 2]) else x[, J + 2]
    means <- x[, 1:J, drop = FALSE]
    list(
      own = sweep(sweep(means, 2, y), 2, s, "/"), shared = (means - x[, J + 1]) * exp(-log_tau),
      log_tau = log_tau
    )
  }
  target <- target_function(
    function(x) {
      at <- parts(x)
      log_prior(at$log_tau) - (J + of_tau) * at$log_tau -
        rowSums(at$own^2 + at$shared^2) / 2 - x[, J + 1]^2 / 800
    }, J + 2,
    gradient = function(x) {
      at <- parts(x)
      of_means <- at$shared * exp(-at$log_tau)
      by_log_tau <- rowSums(at$shared^2) - J - of_tau + slope(at$log_tau)
      cbind(
        -sweep(at$own, 2, s, "/") - of_means, rowSums(of_means) - x[, J + 1] / 400,
        if (of_tau) by_log_tau / x[, J + 2] else by_log_tau
      )
    },
    vectorized = TRUE, lower = c(rep(-Inf, J + 1), if (of_tau) 0 else -Inf)
  )
  fit <- suppressMessages(suppressWarnings(smc(target, n_particles = 512, seed = seed)))
  fit$diagnostics$passed[fit$diagnostics$name == "proper"]
}

test_that("a scale of effects without a proper prior is seen, where effects move with it", {
  flat <- function(u) 0 * u
  half_cauchy <- list(
    function(u) u - log1p(exp(2 * u) / 25),
    function(u) 1 - 2 * plogis(2 * u - log(25))
  )
  y <- c(28, 8, -3, 7, -1, 1, 18, 12)
  s <- c(15, 10, 16, 11, 9, 11, 10, 18)
  for (of_tau in c(FALSE, TRUE)) {
    # the draws go down to where the precision is rounding, whether or not the last reference has it; some one in twelve
    # fits is of draws that do not
    misses <- vapply(1:3, function(seed) groups_pass(y, s, flat, flat, of_tau, seed), NA)
    expect_lte(sum(misses), 1)
    expect_true(groups_pass(y, s, half_cauchy[[1]], half_cauchy[[2]], of_tau))
  }
  # few draws go down, but the density does not fall off
  apart <- c(-1.08, 0.54, 0.81, -1.35, 1.26, -0.27)
  expect_false(groups_pass(apart, rep(0.5, 6), flat, flat))
  expect_true(groups_pass(apart, rep(0.5, 6), half_cauchy[[1]], half_cauchy[[2]]))
})

test_that("where the target fails far out, nothing is said", {
  target <- target_function(function(x) {
    if (any(abs(x) > 20)) stop("too far")
    -rowSums(x^2) / 2
  }, 3, gradient = function(x) -x, vectorized = TRUE)
  sampler <- sampler_of(target)
  scout <- list(normals = list(reference_gaussian()))
  expect_null(ask_of("proper", final, course = list(scout = scout), sampler = sampler)$found)
})

test_that("what draws are known as is looked at, where that is something else", {
  some_draws <- internal("some_draws")
  final <- list(particles = cbind(c(1, 500, 3), 1:3), log_weights = log(c(0.5, 0.5, 0)))
  target <- list(
    parameters = "sigma",
    outputs = function(x) {
      cli::cli_warn("not everywhere", class = "autosmc_warning_outputs")
      cbind(sigma = exp(x[, 1]), of_no_interest = 1e300)
    }
  )
  expect_no_warning(x <- some_draws(final, target))
  expect_identical(colnames(x), "sigma")
  expect_equal(mean(x > 1e100), 0.5)
})

# The same islands, of which every draw is moved to `scale` z + `shift`.
moved <- function(scale = 1, shift = 0) {
  final$coordinates <- scale * final$coordinates + shift
  final$gradients <- -final$coordinates
  final
}

test_that("the record is what it was taken for", {
  expect_equal(unname(final$coordinates), unname(final$particles) - 1)
  expect_equal(unname(final$gradients), unname(-final$coordinates))
})

# The standard error of a mean of the 2,048 draws is at least 0.022.
test_that("draws that are off show in the mean gradient, those too wide in Stein's identity", {
  of_gradients <- c("mean_gradient", "stein")
  failed_gradients <- function(final) failed_of(diagnosed(of_gradients, final, sampler = sampler))
  expect_identical(failed_gradients(final), character())
  expect_identical(failed_gradients(moved()), character())
  expect_identical(failed_gradients(moved(shift = 0.3)), "mean_gradient")
  expect_identical(failed_gradients(moved(scale = 1.4)), "stein")
  expect_identical(failed_gradients(moved(scale = 0.7)), "stein")
  final$gradients <- NULL
  expect_length(diagnosed(of_gradients, final, sampler = sampler), 0)
})

test_that("draws wider than a normal reference are seen", {
  width <- function(final) diagnosed("width", final)$width
  expect_true(width(final)$passed)
  expect_true(width(moved(scale = 1.8))$passed)
  expect_false(width(moved(scale = 2.5))$passed) # a variance of 6
  final$reference <- reference_function(identity, identity, identity)
  expect_null(width(final))
})

test_that("draws that are worth few independent ones are seen, where the error is large", {
  # n of 400 draws descend from as many, evenly
  of_draws <- function(n, error = 0.03, is_fitted = TRUE, log_z = 0, passes = list()) {
    final <- list(
      islands = data.frame(log_z = c(0, -Inf), n_particles = 400), shared = 1 / n,
      estimates = data.frame(log_z = log_z)
    )
    course <- list(best = list(is_fitted = is_fitted), passes = passes)
    diagnosed("ancestor_ess", final, list(log_z = 0, std_error = error), course)
  }
  expect_identical(failed_of(of_draws(50)), character())
  thin <- of_draws(40)
  expect_identical(failed_of(thin), "ancestor_ess")
  expect_equal(thin$ancestor_ess$value, 0.1)
  expect_match(thin$ancestor_ess$says, "The 400 draws have only about 40 ancestors", fixed = TRUE)
  expect_length(of_draws(16, error = 0.019), 0)
  expect_length(of_draws(16, error = NA_real_), 0)
  # from the reference that was given all may well descend from a few
  expect_length(of_draws(16, is_fitted = FALSE), 0)
  expect_length(diagnosed("ancestor_ess"), 0)
  # any higher estimate is what may be missed
  expect_identical(of_draws(50, log_z = c(0, 0.3))$ancestor_ess$shift, 0)
  expect_identical(of_draws(40)$ancestor_ess$shift, 0)
  expect_identical(of_draws(40, log_z = c(0.3, 0))$ancestor_ess$shift, 0.3)
  expect_identical(of_draws(40, passes = list(list(log_z = 0.4), list(log_z = -9)))$ancestor_ess$shift, 0.4)
})

# edges -----------------------------------------------------------------------

test_that("an edge is seen, and where the kernel may be chosen it is HMC", {
  points <- 0
  density <- function(x) {
    points <<- points + nrow(x)
    ifelse(x[, 1] > 0, -x[, 1], -Inf)
  }
  exponential <- target_function(density, 1,
    gradient = function(x) matrix(-1, nrow(x), 1), vectorized = TRUE
  )
  run <- function(...) {
    calmly(smc(exponential, ..., n_particles = 512, n_steps = 16, seed = 1))
  }
  fit <- run(kernel = kernel_klmc())
  edges <- fit$diagnostics[fit$diagnostics$name == "edges", ]
  expect_false(edges$passed)
  # half of the trials go down by one standard deviation: P(x < 1) / 2 = 0.316
  expect_lt(abs(edges$value - 0.316), 0.13)
  expect_match(edges$says, "along x: give the bounds", fixed = TRUE)
  expect_identical(fit$kernel$name, "klmc")
  expect_identical(glance(fit)$converged, FALSE)

  points <- 0
  # as from a reference that was given, where the first kernel is KLMC
  chosen <- with_internals(list(kernel_for = function(course, ...) course$sampler$kernel), run())
  # the islands of the first pass are a row of their own, which was not used
  finals <- chosen$runs[chosen$runs$run == "final", ]
  expect_gt(nrow(finals), 1)
  expect_identical(finals$used, rep(c(FALSE, TRUE), c(nrow(finals) - 1, 1)))
  expect_identical(finals$kernel[1], "klmc")
  expect_identical(finals$log_z[nrow(finals)], chosen$estimates$log_z[1])
  # and all that was evaluated counts
  expect_equal(sum(chosen$runs$n_target_evals), points)
  expect_identical(chosen$kernel$name, "hmc")
  # it rejects what would cross it; but of gradients there nothing is to be expected
  expect_true(chosen$diagnostics$passed[chosen$diagnostics$name == "edges"])
  expect_false(any(c("mean_gradient", "stein") %in% chosen$diagnostics$name))
  expect_log_z(chosen, 0)

  # with the bound there is none
  bounded <- target_function(function(x) -x[, 1], 1,
    gradient = function(x) matrix(-1, nrow(x), 1), vectorized = TRUE, lower = 0
  )
  fit <- calmly(smc(bounded, n_particles = 512, n_steps = 16, kernel = "klmc", seed = 1))
  expect_true(fit$diagnostics$passed[fit$diagnostics$name == "edges"])
})

# jumps -----------------------------------------------------------------------

# Twice as dense, and twice again, in steps, beyond a place along the sum of two normal variables.
stepped <- function(jump) {
  target_function(
    function(x) rowSums(dnorm(x, log = TRUE)) + jump * (rowSums(x) > 1), 2,
    gradient = function(x) -x, vectorized = TRUE
  )
}
log_z_of_steps <- function(jump) log(pnorm(1 / sqrt(2)) + exp(jump) * pnorm(-1 / sqrt(2)))

test_that("a density that jumps is right and passes, and its jump is told", {
  for (jump in c(1, -3)) {
    expect_no_warning(fit <- smc(stepped(jump), precision = 0.005, seed = 1), class = "autosmc_warning")
    expect_log_z(fit, log_z_of_steps(jump), 0.05)
    expect_equal(fit$diagnostics$value[fit$diagnostics$name == "jumps"], abs(jump), tolerance = 1e-4)
    expect_false(any(c("mean_gradient", "stein") %in% fit$diagnostics$name))
  }
  # where moves are not rejected it is a reason to reject them
  fit <- calmly(smc(stepped(1), kernel = kernel_klmc(), n_particles = 256, seed = 1))
  expect_match(fit$diagnostics$says[fit$diagnostics$name == "jumps"], "The log density jumps, by 1", fixed = TRUE)
})

test_that("what is smooth does not jump, however steep or kinked", {
  largest_jump <- function(f, g) {
    set.seed(1)
    x <- matrix(rnorm(128), 64)
    evaluate <- function(x, gradient) list(log_density = f(x), gradient = g(x))
    internal("largest_jump")(x[1:32, ], x[33:64, ], evaluate)
  }
  steep <- 1e3
  expect_identical(largest_jump(function(x) steep * tanh(steep * x[, 1]), function(x) {
    cbind(steep^2 / cosh(steep * x[, 1])^2, 0)
  }), 0)
  expect_identical(largest_jump(function(x) -abs(x[, 1]), function(x) cbind(-sign(x[, 1]), 0)), 0)
  # a gradient that is wrong
  expect_identical(largest_jump(function(x) -rowSums(x^2) / 2, function(x) -2 * x), 0)
  # an edge is none
  expect_identical(largest_jump(function(x) ifelse(x[, 1] > 0, -x[, 1], -Inf), function(x) cbind(-1, 0 * x[, 1])), 0)
  # nor is a step in a valley, where next to no draws are
  expect_identical(largest_jump(
    function(x) 1e4 * abs(x[, 1]) + 3 * (x[, 1] > 0), function(x) cbind(1e4 * sign(x[, 1]), 0)
  ), 0)
  expect_equal(largest_jump(function(x) 5 * (x[, 1] > 0.3), function(x) 0 * x), 5)
})

# the scout -------------------------------------------------------------------

# What is said of normals with these means (of 3 variables each) and ELBOs.
of_scout <- function(means, elbos) {
  scout <- list(
    basins = tibble::tibble(elbo = elbos, elbo_error = 0.01),
    normals = lapply(means, reference_gaussian)
  )
  diagnosed(c("elbo", "basins"), final, estimate, list(scout = scout))
}

test_that("evidence that the scout has proved is not to be missed", {
  expect_identical(failed_of(of_scout(1, -0.05)), character())
  # 0.13 beyond its own error is more than three of 0.02 and the margin of 0.05
  high <- of_scout(1, 0.16)
  expect_identical(failed_of(high), "elbo")
  expect_equal(high$elbo$value, 0.13)
  expect_identical(failed_of(of_scout(1, 0.12)), character())
  expect_equal(high$elbo$shift, 0.13)
  expect_length(diagnosed(c("elbo", "basins"), final, estimate), 0)
})

test_that("a basin with a part of the evidence must hold draws", {
  rows <- of_scout(c(1, 50), c(-0.5, -1))
  expect_identical(failed_of(rows), "basins")
  expect_equal(rows$basins$value, exp(-1.03))
  expect_equal(rows$basins$shift, log1p(exp(-1.03)))
  # one with next to none needs no draws
  expect_identical(failed_of(of_scout(c(1, 50), c(-0.05, -10))), character())
})

# the rounds ------------------------------------------------------------------

test_that("more evidence of an earlier run is seen, where its estimate counts", {
  of_round <- function(log_z, predicted_sd = 0.05, n_particles = 512, passes = NULL) {
    runs <- data.frame(log_z = log_z, predicted_sd = predicted_sd, n_particles = n_particles)
    course <- list(records = list(list(runs = runs)), passes = passes)
    final <- list(estimates = data.frame(estimate))
    failed_of(diagnosed("rounds", final, estimate, course, sampler = sampler))
  }
  expect_identical(of_round(0.1), character())
  expect_identical(of_round(-5), character())
  expect_identical(of_round(0.5), "rounds")
  # one of few particles does not count, nor one from a single genealogy, nor a dead one
  expect_identical(of_round(0.5, n_particles = 256), character())
  expect_identical(of_round(5, predicted_sd = 0.9), character())
  expect_identical(of_round(-Inf, predicted_sd = NA), character())
  # the islands of an earlier pass do
  earlier <- function(log_z) list(data.frame(log_z = log_z, std_error = 0.03))
  expect_identical(of_round(0, passes = earlier(0.5)), "rounds")
  expect_identical(of_round(0, passes = earlier(0.1)), character())
})

# the estimates ---------------------------------------------------------------

test_that("two estimates that are too far apart for their errors are seen", {
  of_estimates <- function(log_z, std_error) {
    diagnosed("estimates", list(estimates = data.frame(log_z = log_z, std_error = std_error)))
  }
  # the error of the difference is 0.05
  expect_identical(failed_of(of_estimates(c(0, 0.19), c(0.04, 0.03))), character())
  apart <- of_estimates(c(0, 0.21), c(0.04, 0.03))
  expect_identical(failed_of(apart), "estimates")
  expect_equal(apart$estimates$value, 4.2)
  expect_equal(apart$estimates$shift, 0.21)
  expect_match(apart$estimates$says, "differ by 4.2 standard errors", fixed = TRUE)
  expect_identical(failed_of(of_estimates(c(0.21, 0), c(0.04, 0.03))), "estimates")
  # of one there is nothing to be said
  expect_length(of_estimates(0, 0.1), 0)
})

test_that("of two estimates that contradict each other the higher one heads, and the error counts the difference", {
  method_of <- function(log_z, std_error) {
    internal("headline")(data.frame(method = c("smc", "bridge"), log_z = log_z, std_error = std_error))$method
  }
  # the bridge where its error is clearly the smaller one, ...
  expect_identical(method_of(c(0, 0.1), c(0.1, 0.03)), "bridge")
  expect_identical(method_of(c(0, 0.1), c(0.1, 0.08)), "smc")
  # ... but what is missed makes an estimate lower
  expect_identical(method_of(c(2, 0), c(0.1, 0.03)), "smc")
  expect_identical(method_of(c(0, 2), c(0.1, 0.1)), "bridge")
  expect_identical(method_of(c(0, 2), c(0.1, NA)), "smc")
})

test_that("the error counts the largest shift that was seen, and chance alone where there is none", {
  expect_identical(good_fit$std_error, good_fit$sampling_error)
  expect_no_match(printed_text(good_fit), "Monte Carlo error")
  counted <- function(shift) {
    internal("with_shift")(list(log_z = 1, std_error = 0.3, conf_low = 0.4, conf_high = 1.6), data.frame(shift = shift))
  }
  expect_equal(counted(c(0, 0))$std_error, 0.3)
  seen <- counted(c(0.1, 0, 0.4))
  expect_equal(c(seen$std_error, seen$sampling_error, seen$conf_low, seen$conf_high), c(0.5, 0.3, 0, 2))
  expect_identical(counted(NULL)$std_error, 0.3)
  fit <- good_fit
  fit[names(seen)] <- seen
  expect_identical(glance(fit)$std_error, 0.5)
  expect_identical(glance(fit)$sampling_error, 0.3)
  expect_match(printed_text(fit), "standard error 0.500, of which Monte Carlo error 0.300", fixed = TRUE)
  expect_match(unclass(report(fit)), "Monte Carlo error 0.300", fixed = TRUE)
  expect_identical(compare_evidence(fit, c(log_z = 0, std_error = 0))$std_error[1], 0.5)
})

test_that("a last pass that raised the estimate is seen", {
  of_passes <- function(before, now, std_error = 0.03) {
    as_estimate <- function(log_z) list(log_z = log_z, std_error = std_error)
    diagnosed("passes", estimate = as_estimate(now), course = list(estimate = as_estimate(before)))
  }
  # two errors of the difference and the margin are 0.105
  expect_identical(failed_of(of_passes(0, 0.10)), character())
  risen <- of_passes(0, 0.11)
  expect_identical(failed_of(risen), "passes")
  expect_equal(risen$passes$value, 0.11)
  expect_match(risen$passes$says, "raised the estimate by 0.11", fixed = TRUE)
  # one that fell is none that may rise further
  expect_identical(failed_of(of_passes(0, -1)), character())
  # without an error no rise can be told from chance
  expect_identical(failed_of(of_passes(0, 5, NA_real_)), character())
  expect_length(diagnosed("passes"), 0)
})

test_that("particles of one genealogy count as one draw in the means of the gradients", {
  set.seed(6)
  x <- matrix(rnorm(200, 0.2), 100)
  t_values <- function(rows) {
    internal("t_values")(x[rows, ], rep(1 / length(rows), length(rows)), rows)
  }
  once <- t_values(1:100)
  expect_equal(once, colMeans(x) / (apply(x, 2, sd) * sqrt(99) / 100))
  expect_equal(t_values(rep(1:100, 10)), once)
})
