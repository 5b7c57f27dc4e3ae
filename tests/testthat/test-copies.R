# Densities that are the same when labels are permuted, or signs changed.

# Three normal components with means and weights of their own, on data that tell them apart. place: the means of
# the priors of the means.
labels <- function(place = c(0, 0, 0), names = sprintf("mu[%d]", 1:3), types = list(w = "simplex")) {
  y <- c(-7 + (-14:15) / 8, (-10:9) / 8, 6 + (-12:12) / 8)
  # a list of the components' densities of the data, a row a point
  at <- function(x) lapply(1:3, function(k) x[, 3 + k] * matrix(dnorm(rep(y, each = nrow(x)), x[, k]), nrow(x)))
  target_function(
    function(x) {
      colSums(dnorm(t(x[, 1:3, drop = FALSE]), place, 5, log = TRUE)) + log(2) + rowSums(log(Reduce(`+`, at(x))))
    },
    gradient = function(x) {
      parts <- at(x)
      shares <- lapply(parts, `/`, Reduce(`+`, parts))
      slopes <- vapply(1:3, function(k) drop(shares[[k]] %*% y) - rowSums(shares[[k]]) * x[, k], numeric(nrow(x)))
      counts <- vapply(shares, rowSums, numeric(nrow(x)))
      cbind(matrix(slopes, nrow(x)) - sweep(x[, 1:3, drop = FALSE], 2, place) / 25, matrix(counts, nrow(x)) / x[, 4:6])
    }, vectorized = TRUE,
    names = c(names, sprintf("w[%d]", 1:3)), types = types
  )
}

fits_of <- function(target, seeds = 1:3) lapply(seeds, function(seed) calmly(smc(target, n_particles = 256, seed = seed)))

# One label order at a time: the evidence of a part of the space.
in_order <- fits_of(labels(types = list(mu = "ordered", w = "simplex")))
by_label <- fits_of(labels())

test_that("one mode tells of all its copies, whatever the variables are called", {
  whole <- mean(vapply(in_order, `[[`, 0, "log_z")) + log(6)
  for (fits in list(by_label, fits_of(labels(names = c("a", "z", "b"))))) {
    expect_log_z(fits, whole, resolution = 0.05)
    for (fit in fits) {
      expect_match(fit$maps, "^6 copies", all = FALSE)
      # each label has each place in as many of the draws
      share <- colSums(exp(fit$log_weights) * (fit$particles[, 1:3] < -4))
      expect_lt(max(abs(share - 1 / 3)), 0.1)
    }
  }
})

test_that("folded, the labels of draws have one order, and nothing else changes", {
  # labels in the order of their means, of three fits of eight islands
  by_mean <- function(fit) {
    variables <- summary(fit)$variables
    rows <- order(variables$mean[1:3])
    variables[c(rows, rows + 3), ]
  }
  of_fits <- function(fits, column) vapply(lapply(fits, by_mean), `[[`, numeric(6), column)
  sd <- rowMeans(of_fits(in_order, "sd"))
  off <- rowMeans(of_fits(by_label, "mean")) - rowMeans(of_fits(in_order, "mean"))
  error <- sqrt(rowSums(of_fits(by_label, "mcse")^2) + rowSums(of_fits(in_order, "mcse")^2)) / 3
  expect_estimate(off / sd, error / sd, 0, resolution = 1, n = 24)

  fit <- by_label[[1]]
  all <- summary(fit)$variables
  rows <- order(all$mean[1:3])
  expect_identical(coef(fit), stats::setNames(all$mean, all$variable))
  expect_equal(vcov(fit), stats::cov.wt(internal("folded")(fit)$particles, exp(fit$log_weights), method = "ML")$cov)

  skip_if_not_installed("posterior")
  draws <- function(...) unclass(posterior::as_draws_matrix(fit, ...))
  folded <- draws(fold = TRUE)
  # a component, a column, is the same as before, in another place
  components <- function(x, i) t(apply(unname(x), 1, function(row) row[i + order(row[1:3])]))
  for (i in c(0, 3)) expect_equal(components(folded, i), components(draws(), i))
  expect_false(any(apply(folded[, rows], 1, is.unsorted)))
  expect_output(print(fit), "folded onto one of\\s+6 copies")
  # without the draws that are moved, and with nothing to fold
  fit$state <- NULL
  expect_identical(coef(fit), internal("weighted_moments")(fit)$mean, ignore_attr = TRUE)
  expect_identical(posterior::as_draws(in_order[[1]], fold = TRUE), posterior::as_draws(in_order[[1]]))
})

test_that("labels with priors of their own are no copies of each other", {
  expect_match(fits_of(labels(c(0, 0, 1e-3)), seeds = 1)[[1]]$maps, "^2 copies", all = FALSE)
  expect_no_match(fits_of(labels(c(0, 1e-3, 2e-3)), seeds = 1)[[1]]$maps, "copies")
})

test_that("signs that change together make copies", {
  off <- function(x) x[, 1] * x[, 2] - 4
  log_density <- function(x) -x[, 1]^2 / 2 - x[, 2]^2 - 4 * sqrt(1 + off(x)^2)
  target <- target_function(log_density, 2,
    gradient = function(x) cbind(-x[, 1], -2 * x[, 2]) - 4 * off(x) / sqrt(1 + off(x)^2) * x[, 2:1],
    vectorized = TRUE
  )
  step <- 0.02
  grid <- as.matrix(expand.grid(seq(-8, 8, step), seq(-8, 8, step)))
  truth <- log(sum(exp(log_density(grid))) * step^2)
  fits <- fits_of(target)
  expect_log_z(fits, truth)
  expect_match(fits[[1]]$maps, "2 copies (signs of x1, x2 changed)", fixed = TRUE, all = FALSE)
})

test_that("a target that fails where variables are equal is sampled without its copies", {
  square <- function(x, at) rowSums(sweep(x, 2, at)^2)
  both <- function(x) cbind(-square(x, c(-5, 5)), -square(x, c(5, -5)))
  target <- target_function(
    function(x) {
      if (any(x[, 1] == x[, 2])) stop("singular")
      log(rowSums(exp(both(x) / 2))) - log(4 * pi)
    }, 2,
    gradient = function(x) {
      share <- 1 / (1 + exp(10 * (x[, 1] - x[, 2])))
      -x + (2 * share - 1) * rep(c(-5, 5), each = nrow(x))
    }, vectorized = TRUE
  )
  fits <- fits_of(target)
  expect_log_z(fits, 0)
  expect_no_match(fits[[1]]$maps, "copies")
})
