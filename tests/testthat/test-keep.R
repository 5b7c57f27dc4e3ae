# What is kept of islands: all draws, a number of them, or moments.

target <- target_gaussian(3, mean = 1:3)
schedule <- data.frame(lambda = c(0.2, 0.5, 1), step_size = c(0.7, 0.6, 0.5))
run <- function(islands, keep, ...) {
  calmly(smc_run(target, schedule,
    n_particles = 64, islands = islands, keep = keep, seed = 1, ...
  ))
}
fit <- calmly(smc(target, n_particles = 32, n_steps = 4, rounds = 1, islands = 4, seed = 1))
extend <- function(...) calmly(smc_extend(...))

# But for the calls, and what the bridges and edge trials of the shorter fit have cost.
same <- function(a, b) {
  plain <- function(fit) {
    fit <- without_time(fit)
    fit[c("call", "max_islands")] <- NULL
    fit$runs[nrow(fit$runs), c("n_target_evals", "n_calls")] <- NA
    fit
  }
  expect_identical(plain(a), plain(b))
}

test_that("islands can be added whatever is kept, and are the same", {
  all <- extend(fit, islands = 8)
  for (keep in list(20, "moments")) {
    same(extend(run(3, keep), islands = 9), run(9, keep))
    few <- extend(fit, keep = keep)
    expect_identical(few$estimates, fit$estimates)
    expect_identical(few$diagnostics, fit$diagnostics)
    same(few, calmly(smc(target,
      n_particles = 32, n_steps = 4, rounds = 1, islands = 4, seed = 1, keep = keep
    )))
    # the old islands are reduced as the new ones are
    many <- extend(few, islands = 8)
    same(extend(fit, islands = 8, keep = keep), many)
    same(extend(extend(few, islands = 5), islands = 8), many)
    same(calmly(update(few, islands = 8)), many)
    pieces <- list(smc_islands(few, 7:8), smc_islands(few, 5:6))
    same(calmly(smc_combine(few, pieces)), many)
    expect_identical(many$estimates[1, ], all$estimates[1, ])
    expect_identical(many$islands$log_z, all$islands$log_z)
  }
})

test_that("islands of a fit without any are kept as asked for", {
  adapted <- calmly(smc_adapt(target, n_particles = 32, n_steps = 4, rounds = 1, seed = 1))
  all <- extend(adapted, islands = 6)
  same(calmly(update(adapted, islands = 6)), all)
  for (keep in list(20, "moments")) {
    kept <- extend(adapted, islands = 6, keep = keep)
    expect_identical(kept$islands$log_z, all$islands$log_z)
    expect_equal(nrow(kept$particles), if (keep == 20) 6 * 20 else 0)
  }
})

test_that("moments are those of all draws", {
  all <- run(9, "draws")
  moments <- run(9, "moments")
  expect_equal(coef(moments), coef(all))
  expect_equal(vcov(moments), vcov(all))
  columns <- c("variable", "mean", "sd", "mcse")
  expect_equal(summary(moments)$variables[columns], summary(all)$variables[columns])
  expect_equal(glance(moments)$ess_mean, glance(all)$ess_mean)
  expect_true(all(is.na(summary(moments)$variables$median)))
  # some islands dead, and all weights far from each other
  dead <- fit_with_dead_islands()
  reduced <- extend(dead, keep = "moments")
  expect_equal(coef(reduced), coef(dead))
  expect_equal(vcov(reduced), vcov(dead))
  expect_equal(summary(reduced)$variables$mcse, summary(dead)$variables$mcse)
  same(extend(reduced, islands = 16), extend(dead, islands = 16, keep = "moments"))
})

test_that("without draws, what needs them says so", {
  moments <- run(4, "moments")
  expect_identical(dim(moments$particles), c(0L, 3L))
  for (needs in list(
    as.matrix, as.array, weights, confint, augment,
    function(x) predict(x, fun = sum), function(x) plot(x, "draws")
  )) {
    error <- catch(needs(moments))
    expect_s3_class(error, "autosmc_error_input")
    expect_match(conditionMessage(error), "has no draws")
  }
  expect_match(printed_text(moments), "moments only \\(effective sample size")
  expect_match(printed_text(report(moments)), "256 draws, of which the moments are kept")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_silent(plot(moments))
})

test_that("draws that are kept are spread over the weights, and weigh the same", {
  all <- run(40, "draws")
  few <- run(40, 16)
  expect_identical(nrow(few$particles), 40L * 16L)
  # a subset, with the islands' weights
  rows <- function(fit) paste(fit$island, fit$particles[, 1])
  expect_true(all(rows(few) %in% rows(all)))
  share <- function(fit) as.vector(rowsum(weights(fit), fit$island))
  expect_equal(share(few), share(all))
  # the mean of an island's draws is the weighted mean, but for noise without a direction
  off <- rowsum(weights(few) * few$particles[, 1], few$island) / share(few) -
    rowsum(weights(all) * all$particles[, 1], all$island) / share(all)
  expect_mean(off, 0, 0.5)
  # more than there are is all of them
  same(`[[<-`(run(2, 1000), "keep", "draws"), run(2, "draws"))
})

test_that("a fit that is kept small is small", {
  d <- 60
  wide <- target_gaussian(d)
  each <- function(keep) {
    size <- function(n) {
      as.numeric(object.size(calmly(smc_run(wide, schedule,
        n_particles = 128, islands = n, keep = keep, seed = 1
      ))))
    }
    (size(8) - size(4)) / 4
  }
  # of each draw its variables, coordinates and gradients; and rows of the tables
  tables <- each(1)
  expect_lt(each(16), tables + 15 * 8 * (3 * d + 6))
  # two means, and no covariance matrix
  expect_lt(each("moments"), tables + 2 * 8 * d)
})

test_that("islands in files and by workers are reduced too", {
  dir <- tempfile("runs")
  on.exit(unlink(dir, recursive = TRUE))
  for (keep in list(20, "moments")) {
    unlink(dir, recursive = TRUE)
    kept <- run(4, keep, checkpoint = dir)
    same(kept, run(4, keep))
    same(run(6, keep, checkpoint = dir), run(6, keep))
    error <- catch(run(4, 10, checkpoint = dir))
    expect_s3_class(error, "autosmc_error_mismatch")
    expect_identical(error$differs, "keep")
  }
})

test_that("what is not possible is an error", {
  expect_bad(run(2, "all"), "keep")
  expect_bad(run(2, 0), "keep")
  expect_bad(run(2, TRUE), "keep")
  for (keep in list("draws", "moments", 30)) {
    error <- catch(smc_extend(run(2, 20), keep = keep))
    expect_s3_class(error, "autosmc_error_input")
    expect_match(conditionMessage(error), "have kept 20, which cannot be changed")
  }
  expect_identical(smc_extend(run(2, 20), keep = 20)$keep, 20L)
  expect_bad(smc_extend(fit), "keep")
})

# very many particles -----------------------------------------------------------

n_judged <- autosmc:::rules$most_judged
bounded <- target_function(
  function(x) -(log(x[, 1]) - 1)^2 / 2 - log(x[, 1]) - (x[, 2] - log(x[, 1]))^2 / 2, 2,
  gradient = function(x) {
    off <- x[, 2] - log(x[, 1])
    cbind((off - log(x[, 1])) / x[, 1], -off)
  },
  names = c("scale", "effect"), lower = c(0, -Inf), vectorized = TRUE
)
many <- function(islands, keep = "draws", seed = 1, ...) {
  calmly(smc_run(bounded, schedule,
    n_particles = n_judged + 800, islands = islands, keep = keep, seed = seed, ...
  ))
}

test_that("of very many particles a part is judged, and all are draws", {
  fit <- many(4)
  n <- 4 * (n_judged + 800)
  expect_identical(dim(fit$particles), c(as.integer(n), 2L))
  expect_identical(colnames(fit$particles), c("scale", "effect"))
  expect_equal(sum(weights(fit)), 1)
  expect_identical(as.vector(table(fit$island)), rep(as.integer(n / 4), 4))
  expect_equal(as.vector(rowsum(weights(fit), fit$island)), exp(fit$islands$log_z) / sum(exp(fit$islands$log_z)))
  expect_identical(nrow(fit$state$draws$coordinates), 4L * as.integer(n_judged))
  # what is judged are some of the draws, with the same mean but for noise
  judged <- autosmc:::pool(
    autosmc:::hold_islands(fit$state$records, autosmc:::pooled_draws(fit)), fit$reference
  )
  expect_true(all(judged$particles[, 1] %in% fit$particles[, 1]))
  expect_equal(exp(judged$log_weights), rep(
    as.vector(rowsum(weights(fit), fit$island)) / n_judged,
    each = n_judged
  ))
  of_islands <- function(x, w, island) rowsum(w * x, island) / as.vector(rowsum(w, island))
  off <- of_islands(log(judged$particles[, 1]), exp(judged$log_weights), judged$island) -
    of_islands(log(fit$particles[, 1]), weights(fit), fit$island)
  expect_lt(max(abs(off)), 5 / sqrt(n_judged))
  # log Z is log(2 pi)
  expect_log_z(c(list(fit), lapply(2:4, function(seed) many(4, seed = seed))), log(2 * pi))
})

test_that("islands of very many particles are the same however they are added", {
  nearly_all <- n_judged + 300
  for (keep in list("draws", nearly_all, 20, "moments")) {
    all <- many(5, keep)
    same(extend(many(3, keep), islands = 5), all)
    same(calmly(smc_combine(many(3, keep), smc_islands(many(3, keep), 5:4))), all)
    reduced <- extend(many(5), keep = keep)
    kept <- c("particles", "log_weights", "island", "moments")
    expect_identical(reduced[kept], all[kept])
    expect_identical(reduced$state$draws, all$state$draws)
  }
  expect_identical(nrow(many(2, nearly_all)$particles), 2L * as.integer(nearly_all))
  expect_equal(coef(many(5, "moments")), coef(many(5)))
  dir <- tempfile("runs")
  on.exit(unlink(dir, recursive = TRUE))
  same(many(2, checkpoint = dir), many(2))
  same(many(3, checkpoint = dir), many(3))
})
