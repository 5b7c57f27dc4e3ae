# The bridge estimate: its parts by hand, its law, and what it costs.

rules <- internal("rules")
solve_bridge <- internal("solve_bridge")
draw_bridge <- internal("draw_bridge")
log_bridge <- internal("log_bridge")

# An estimate's row.
by <- function(fit, method) fit$estimates[fit$estimates$method == method, ]

# the equation ----------------------------------------------------------------

test_that("where target and distribution are proportional, the estimate is exact", {
  set.seed(1)
  w <- rexp(40)
  solved <- solve_bridge(
    rep(3, 30), rep(3, 40), log(w / sum(w)), rep(1:20, 2), rep(1:4, each = 10)
  )
  expect_equal(solved$log_z, 3)
  expect_lt(solved$variance, 1e-20)
})

test_that("the estimate solves the equation of Meng and Wong", {
  set.seed(2)
  y <- rnorm(100)
  x <- rnorm(60, 0.3, 1.2)
  w <- rexp(60)
  w <- w / sum(w)
  log_ratio <- function(z) dnorm(z, 0.3, 1.2, log = TRUE) + 5 - dnorm(z, log = TRUE)
  solved <- solve_bridge(log_ratio(y), log_ratio(x), log(w), 1:60, rep(1:4, 15))
  n <- c(100, 1 / sum(w^2))
  s <- n / sum(n)
  excess <- function(log_r) {
    l <- exp(log_ratio(c(y, x)) - log_r)
    up <- mean((l / (s[2] * l + s[1]))[1:100])
    up - sum(w * (1 / (s[2] * l + s[1]))[101:160])
  }
  expect_equal(solved$log_z, uniroot(excess, c(0, 10), tol = 1e-12)$root, tolerance = 1e-6)
  # particles of one genealogy count as one, and so do those of an island
  by_sum <- function(origins, island) {
    n <- c(100, 1 / sum(rowsum(w, origins)^2))
    s <- n / sum(n)
    solved <- solve_bridge(log_ratio(y), log_ratio(x), log(w), origins, island)
    l <- exp(log_ratio(c(y, x)) - solved$log_z)
    of_y <- (l / (s[2] * l + s[1]))[1:100]
    of_x <- (1 / (s[2] * l + s[1]))[101:160]
    off <- w * (of_x / sum(w * of_x) - 1)
    k <- length(unique(island))
    sums <- c(sum(rowsum(off, origins)^2), sum(rowsum(off, island)^2) * k / (k - 1))
    expect_equal(solved$variance, var(of_y / mean(of_y)) / 100 + max(sums), tolerance = 1e-6)
    which.max(sums)
  }
  # in the order of x, islands differ most
  expect_identical(by_sum(1:60, rep(1:4, each = 15)[rank(x)]), 2L)
  expect_identical(by_sum(rep(1:12, each = 5)[rank(x)], rep(1:2, 30)[rank(x)]), 1L)
  # draws at which the target is impossible count, as zeros
  some <- solve_bridge(
    c(log_ratio(y), rep(-Inf, 100)), log_ratio(x), log(w), 1:60, rep(1:4, 15)
  )
  expect_true(is.finite(some$log_z) && is.finite(some$variance))
  expect_lt(some$log_z, solved$log_z)
})

# the distribution ------------------------------------------------------------

test_that("the log density is that of what is drawn", {
  set.seed(3)
  L <- rbind(c(2, 0), c(0.5, 0.7))
  middles <- list(
    list(mean = c(1, -1), L = L), list(mean = c(1, -1), L = c(2, 0.7)),
    list(mean = c(1, -1), L = L, df = 4)
  )
  wide <- list(mean = c(0.5, -1), L = 1.5 * L, df = 3)
  n <- 20000
  for (middle in middles) {
    x <- draw_bridge(middle, n)
    expect_identical(dim(x), c(as.integer(n), 2L))
    y <- draw_bridge(wide, n)
    ratio <- exp(log_bridge(middle, y) - log_bridge(wide, y))
    expect_mean(ratio, 1, resolution = 0.1)
    expect_mean(ratio * y[, 1], 1, resolution = 0.2)
    expect_mean(x[, 1], 1, resolution = 0.3)
    expect_mean(x[, 2], -1, resolution = 0.3)
  }
  expect_equal(
    log_bridge(middles[[2]], x[1:5, ]),
    dnorm(x[1:5, 1], 1, 2, log = TRUE) + dnorm(x[1:5, 2], -1, 0.7, log = TRUE)
  )
})

# the estimate ----------------------------------------------------------------

# Draws of a logistic regression with two coefficients; its evidence by quadrature.
covariate <- c(-1.8, -1.1, -0.6, -0.2, 0.1, 0.5, 0.9, 1.4, 2.1)
success <- c(0, 0, 1, 0, 1, 0, 1, 1, 1)
logistic <- target_function(
  function(x) {
    eta <- cbind(1, covariate) %*% t(x)
    colSums(success * eta - log1p(exp(eta))) + rowSums(dnorm(x, 0, 2, log = TRUE))
  }, 2,
  gradient = function(x) {
    eta <- cbind(1, covariate) %*% t(x)
    t(crossprod(cbind(1, covariate), success - plogis(eta))) - x / 4
  },
  vectorized = TRUE
)
log_z_logistic <- local({
  grid <- seq(-14, 14, by = 0.05)
  at <- as.matrix(expand.grid(grid, grid))
  log(sum(exp(evaluate_target(logistic, at, gradient = FALSE)$log_density)) * 0.05^2)
})

test_that("the bridge covers the evidence as often as it says", {
  fits <- lapply(1:20, function(seed) {
    calmly(smc(logistic, n_particles = 64, n_steps = 8, rounds = 1, seed = seed))
  })
  estimates <- do.call(rbind, lapply(fits, by, "bridge"))
  expect_identical(nrow(estimates), 20L)
  islands <- vapply(fits, function(fit) nrow(fit$islands), 0L)
  # normal values, from Student's t with as many degrees of freedom as the intervals have
  z <- qnorm(pt((estimates$log_z - log_z_logistic) / estimates$std_error, islands - 2))
  expect_lt(abs(mean(z)) * sqrt(20), errors_for(Inf))
  expect_lt(sum(z^2), qchisq(1 - chance, 20))
  # nor is the error much too large
  expect_gt(sum(z^2), qchisq(chance, 20))
  half <- (estimates$conf_high - estimates$conf_low) / 2
  expect_equal(half, qt(0.975, islands - 2) * estimates$std_error)
  # it is closer than SMC is, by so much that it is the estimate of the fit
  by_smc <- do.call(rbind, lapply(fits, by, "smc"))
  expect_lt(median(estimates$std_error), internal("rules")$bridge_gain * median(by_smc$std_error))
  # twice as close where the way from the reference is long, as among the 32 variables of a process, and
  # the kernel adds to SMC's errors
  long <- lapply(1:6, function(seed) {
    calmly(smc(target_brownian(), n_particles = 128, kernel = "klmc", seed = seed))
  })
  on_long <- function(method) vapply(long, function(fit) by(fit, method)$std_error, 0)
  expect_lt(median(on_long("bridge")), median(on_long("smc")) / 2)
  for (fit in fits) {
    gains <- by(fit, "bridge")$std_error < 0.75 * by(fit, "smc")$std_error
    best <- by(fit, if (gains) "bridge" else "smc")
    seen <- max(fit$diagnostics$shift)
    for (column in c("log_z", if (seen == 0) c("std_error", "conf_low", "conf_high"))) {
      expect_identical(fit[[column]], best[[column]])
    }
    expect_equal(fit$std_error, sqrt(best$std_error^2 + seen^2))
  }
})

test_that("of a normal target it is exact, and claims no more than draws are good for", {
  fits <- lapply(1:3, function(seed) smc(target_gaussian(3, mean = 2), n_particles = 512, kernel = "klmc", seed = seed))
  on_fits <- function(method) vapply(fits, function(fit) by(fit, method)$std_error, 0)
  expect_gt(min(on_fits("smc")), 3e-4)
  # but where a half of the draws is wider than the target by more than chance, as may be once
  expect_equal(median(on_fits("bridge")), rules$least_bridge_error, tolerance = 0.01)
  expect_lt(median(abs(vapply(fits, `[[`, 0, "log_z"))), 1e-10)
  # so is SMC where the kernel adds nothing to its weights, but for rounding
  fit <- smc(target_gaussian(3, mean = 2), n_particles = 512, seed = 1)
  expect_identical(fit$kernel, kernel_hmc())
  expect_identical(by(fit, "smc")$std_error, least_error)
  expect_lt(abs(by(fit, "smc")$log_z), least_error)
  expect_identical(fit$log_z, by(fit, "smc")$log_z)
})

test_that("it is reported where it gains a quarter of the error", {
  headline <- function(...) {
    estimates <- data.frame(method = c("smc", "bridge")[seq_along(c(...))], log_z = 0, std_error = c(...))
    internal("headline")(estimates)$method
  }
  expect_identical(headline(0.1, 0.07), "bridge")
  expect_identical(headline(0.1, 0.08), "smc")
  expect_identical(headline(0.1, 0.2), "smc")
  expect_identical(headline(0.1), "smc")
  expect_identical(headline(NA_real_), "smc")
  expect_identical(headline(0.1, NA), "smc")
})

# What is evaluated, call by call: `points` holds the numbers. Fails at call `fails_at`.
counted <- function(fails_at = Inf) {
  calls <- new.env()
  calls$points <- integer()
  calls$target <- target_function(
    function(x) {
      calls$points <- c(calls$points, nrow(x))
      if (length(calls$points) == fails_at) stop("no more")
      -rowSums(x^2) / 2 - rowSums(x^4) / 40
    }, 2,
    gradient = function(x) -x - x^3 / 10,
    vectorized = TRUE
  )
  calls
}

small <- function(target, ..., n_particles = 32, seed = 1) {
  calmly(smc(target, ..., n_particles = n_particles, n_steps = 4, rounds = 1, seed = seed))
}

test_that("all its evaluations are counted, and those of SMC alone are as they were", {
  for (islands in c(3, 4, 7)) {
    calls <- counted()
    fit <- small(calls$target, islands = islands)
    expect_equal(sum(fit$runs$n_target_evals), sum(calls$points))
    final <- fit$runs[nrow(fit$runs), ]
    n_draws <- if (islands < 4) 0 else length(fit$log_weights)
    expect_equal(final$n_target_evals, sum(fit$islands$n_target_evals) + 64 + 4 * 48 + n_draws)
    expect_equal(final$log_z, by(fit, "smc")$log_z)
  }
})

test_that("it needs four islands that live, whitening, and an adaptation", {
  target <- counted()$target
  methods <- function(fit) fit$estimates$method
  expect_identical(methods(small(target, islands = 3)), "smc")
  four <- small(target, islands = 4)
  expect_identical(methods(four), c("smc", "bridge"))
  expect_identical(methods(small(target, whiten = FALSE)), "smc")
  expect_identical(methods(smc_run(target, four$schedule,
    reference = four$reference, n_particles = 32, islands = 4, seed = 1
  )), "smc")
  expect_named(four$estimates, c("method", "log_z", "std_error", "conf_low", "conf_high"))
})

# Four islands of `target`, pooled.
on_islands <- function(target) {
  sampler <- sampler_for(target, n_particles = 32, reference = reference_gaussian(sd = 1.2))
  path <- list(lambda = c(0.5, 1), step_size = c(0.3, 0.3), refresh_rate = c(0.9, 0.9))
  final <- internal("run_islands")(
    sampler, path, list(islands = 4, precision = NULL, bridges = FALSE)
  )
  list(sampler = sampler, final = final)
}

test_that("islands that died do not count", {
  on <- on_islands(counted()$target)
  made <- internal("bridge")(on$sampler, on$final)
  expect_true(is.finite(made$estimate$log_z))
  expect_equal(made$n_target_evals, 128)
  lives <- on$final$island != 2
  for (name in c("coordinates", "gradients")) {
    on$final[[name]] <- on$final[[name]][lives, ]
  }
  for (name in c("log_target", "log_weights", "origins", "island")) {
    on$final[[name]] <- on$final[[name]][lives]
  }
  made <- internal("bridge")(on$sampler, on$final)
  expect_null(made$estimate)
  expect_equal(made$n_target_evals, 0)
})

test_that("each half of the islands is bridged to a fit and to draws of its own", {
  on <- on_islands(counted()$target)
  fitted <- bridged <- drawn <- list()
  fit_bridge <- internal("fit_bridge")
  spies <- list(
    fit_bridge = function(final, rows) {
      fitted <<- c(fitted, list(unique(final$island[rows])))
      fit_bridge(final, rows)
    },
    solve_bridge = function(log_y, log_x, log_weights, origins, island) {
      bridged <<- c(bridged, list(unique(island)))
      solve_bridge(log_y, log_x, log_weights, origins, island)
    },
    draw_bridge = function(middle, n) {
      x <- draw_bridge(middle, n)
      drawn <<- c(drawn, list(internal("from_user")(middle, x)))
      x
    }
  )
  with_internals(spies, internal("bridge")(on$sampler, on$final))
  expect_identical(fitted, list(c(1L, 3L), c(2L, 4L)))
  expect_identical(bridged, rev(fitted))
  expect_length(intersect(drawn[[1]], drawn[[2]]), 0)
})

test_that("`log_target` is the log target in the coordinates of the reference", {
  on <- on_islands(counted()$target)
  maps <- internal("reference_maps")(on$final$reference, 2)
  evaluated <- internal("evaluate_target")(
    on$sampler$target, on$final$coordinates,
    unconstrained = TRUE, maps = maps
  )
  expect_equal(on$final$log_target, evaluated$log_density)
  expect_equal(unname(on$final$gradients), unname(evaluated$gradient))
})

test_that("where no distribution can be fitted there is no estimate", {
  on <- on_islands(counted()$target)
  # all the weight is on one particle of each half
  on$final$log_weights[] <- -1e4
  on$final$log_weights[c(1, 40)] <- log(0.5)
  on$final$gradients <- NULL
  made <- internal("bridge")(on$sampler, on$final)
  expect_null(made$estimate)
})

test_that("an error of the target at a draw of the bridge says where it was", {
  calls <- counted()
  small(calls$target, islands = 4)
  # the last calls are the two halves of the bridge, and the searches for an edge and far out
  n <- length(calls$points)
  expect_equal(calls$points[n - 6:0], c(64, 64, 64, rep(48, 4)))
  for (at in n - 6:5) {
    error <- catch(small(counted(at)$target, islands = 4))
    expect_s3_class(error, "autosmc_error_target")
    expect_identical(error$run, "bridge")
    expect_match(message_of(error), "draw for the bridge estimate", fixed = TRUE)
    expect_match(message_of(error$parent), "no more", fixed = TRUE)
  }
})

test_that("it draws nothing from R's generator", {
  target <- counted()$target
  set.seed(9)
  before <- .Random.seed
  small(target, islands = 4)
  expect_identical(.Random.seed, before)
})

test_that("`precision` is that of the estimate which is reported", {
  target <- counted()$target
  eight <- small(target, islands = 8)
  bridged <- by(eight, "bridge")$std_error
  expect_lt(bridged, by(eight, "smc")$std_error)
  # no island is added where the bridge is precise enough and SMC is not
  between <- (bridged + by(eight, "smc")$std_error) / 2
  fit <- small(target, islands = 8, precision = between)
  expect_identical(nrow(fit$islands), 8L)
  # where it is not, a bridge is made each time
  calls <- counted()
  fit <- small(calls$target, islands = 8, precision = bridged / 1.5, max_islands = 400)
  n <- nrow(fit$islands)
  expect_gt(n, 8)
  expect_lte(fit$std_error, bridged / 1.5)
  expect_equal(sum(fit$runs$n_target_evals), sum(calls$points))
  # a call for each half
  halves <- function(n) 32 * c(ceiling(n / 2), floor(n / 2))
  expect_true(all(c(halves(8), halves(n)) %in% calls$points))
})
