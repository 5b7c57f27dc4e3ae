# Levels: variables that are normal given others, of which some are normal given the rest, and so on, as
# in a chain.

internal <- function(name) get(name, asNamespace("autosmc"))

# x1 ~ N(1, 0.7), and each of the next is N(the square of the one before, 0.2): its integral is 1.
chain_sd <- 0.2
log_chain <- function(x) {
  before <- x[, -ncol(x), drop = FALSE]
  dnorm(x[, 1], 1, 0.7, log = TRUE) + rowSums(dnorm(x[, -1, drop = FALSE], before^2, chain_sd, log = TRUE))
}

chain_slopes <- function(x) {
  d <- ncol(x)
  off <- (x[, -1, drop = FALSE] - x[, -d, drop = FALSE]^2) / chain_sd^2
  g <- cbind((1 - x[, 1]) / 0.7^2, -off)
  g[, -d] <- g[, -d] + 2 * x[, -d] * off
  g
}

chain_target <- function(d, gradient = NULL) target_function(log_chain, d, gradient, vectorized = TRUE)

# Draws of it, with the density and gradients of a target.
chain_points <- function(target, n = 200) {
  d <- target$dim
  x <- matrix(rnorm(n, 1, 0.7), n, d)
  for (j in seq_len(d)[-1]) x[, j] <- rnorm(n, x[, j - 1]^2, chain_sd)
  density <- internal("counted_density")(target)
  list(
    points = list(
      x = sweep(x, 2, colMeans(x)), g = suppressMessages(density(x))$gradient, w = rep(1 / n, n), mean = colMeans(x),
      genealogies = n
    ),
    density = density
  )
}

test_that("levels are found one after the other, with a gradient or without", {
  for (gradient in list(chain_slopes, NULL)) {
    set.seed(1)
    at <- chain_points(chain_target(4, gradient))
    space <- suppressMessages(internal("exact_space")(at$points, list(), at$density))
    expect_identical(lapply(space$changes, `[[`, "order"), list(4L, 3L, 2L))
    expect_identical(lapply(space$changes, `[[`, "given"), list(1:3, 1:2, 1L))
    expect_setequal(space$exact, 2:4)
    # what is left is the density of the first, also where no draw has been
    marginal <- internal("marginal_density")(space, at$density)
    far <- matrix(seq(-4, 4, 0.5))
    expect_equal(marginal(far, gradient = FALSE)$log_density, dnorm(far[, 1], 1, 0.7, log = TRUE), tolerance = 1e-12)
    # the next fit has the same, without asking for it
    expect_identical(internal("exact_space")(at$points, space$changes, NULL)$exact, space$exact)
  }
})

test_that("through the maps of all levels standard normal numbers become draws", {
  set.seed(2)
  at <- chain_points(chain_target(4, chain_slopes))
  space <- internal("exact_space")(at$points, list(), at$density)
  maps <- internal("change_maps")(space$changes, 4)
  z <- matrix(rnorm(4 * 50), 50)
  x <- internal("through_each")(maps, list(z = z))$z
  by_hand <- z
  for (j in 2:4) by_hand[, j] <- by_hand[, j - 1]^2 + chain_sd * z[, j]
  expect_equal(x, by_hand)
  # the core's are the same: it has the density there, with the log Jacobian
  there <- at$density(z, maps = maps)
  expect_equal(there$log_density, log_chain(x) + 3 * log(chain_sd))
  expect_equal(there$gradient[, -1], -z[, -1])
  # nothing of a precision is lost on the way
  precisions <- rev(space$changes)
  expect_equal(internal("least_part_left")(precisions, z), rep(1, 50))
  expect_equal(internal("least_part_left")(list(), z), rep(Inf, 50))
})

test_that("what is exact is told where gradients by short differences have no digits at a few draws", {
  set.seed(3)
  at <- chain_points(chain_target(3))
  space <- suppressMessages(internal("exact_space")(at$points, list(), at$density))
  at$points$g[which.max(at$points$x[, 3]), ] <- 1e6
  expect_null(internal("exact_space")(at$points, space$changes, NULL))
  again <- internal("exact_space")(at$points, space$changes, at$density)
  expect_identical(again$exact, space$exact)
  # but not where it is wrong
  wrong <- space$changes
  wrong[[1]]$pull <- 1.1 * wrong[[1]]$pull
  expect_null(internal("exact_after")(at$points, wrong, at$density))
})

test_that("a precision that is a sum of positive terms is right wherever it is asked for", {
  # of x ~ N(0, exp(t)) given t ~ N(0, 1)
  set.seed(4)
  funnel <- function(x) {
    log_density <- dnorm(x[, 1], log = TRUE) + rowSums(dnorm(x[, -1], 0, exp(x[, 1]), log = TRUE))
    by_t <- -x[, 1] + rowSums(x[, -1]^2 * exp(-2 * x[, 1]) - 1)
    structure(log_density, gradient = cbind(by_t, -x[, -1] * exp(-2 * x[, 1]), deparse.level = 0))
  }
  at <- matrix(rnorm(100 * 3), 100)
  found <- internal("find_precision")(probes_at(at, funnel), density_of(funnel))
  expect_identical(found$given, 1L)
  far <- rbind(c(30, 0, 0), c(-30, 0, 0))
  expect_equal(internal("part_left")(found, far), c(1, 1))
  pivots <- internal("pivots_at")(found, internal("factors_at")(found, far))
  expect_equal(log(pivots), cbind(c(-60, 60), c(-60, 60)))
})

test_that("a precision from which an elimination takes something keeps its bound", {
  # two effects u ~ N(mu, exp(t)), mu ~ N(0, 1), t ~ N(0, 1): x = (t, mu, u)
  set.seed(5)
  effects <- function(x) {
    off <- (x[, 3:4] - x[, 2]) * exp(-2 * x[, 1])
    by_t <- -x[, 1] + rowSums((x[, 3:4] - x[, 2]) * off - 1)
    structure(
      rowSums(dnorm(x[, 1:2], log = TRUE)) + rowSums(dnorm(x[, 3:4], x[, 2], exp(x[, 1]), log = TRUE)),
      gradient = cbind(by_t, rowSums(off) - x[, 2], -off, deparse.level = 0)
    )
  }
  found <- internal("find_precision")(probes_at(matrix(rnorm(100 * 4), 100), effects), density_of(effects))
  # one effect comes first; it takes from the mean, and this from the other effect
  expect_identical(found$order[2], 2L)
  expect_identical(found$least > .Machine$double.xmin, c(FALSE, TRUE, TRUE))
})

test_that("smc() has the evidence of chains of squares and of funnels", {
  fit <- calmly(smc(chain_target(4, chain_slopes), n_particles = 256, islands = 4, seed = 1))
  expect_match(fit$maps, "x3 is normal given x1, x2", all = FALSE, fixed = TRUE)
  expect_log_z(fit, 0, 0.02) # -0.2 and worse without levels

  funnels <- function(x) {
    d <- ncol(x)
    dnorm(x[, 1], log = TRUE) + rowSums(dnorm(x[, -1, drop = FALSE], 0, exp(x[, -d, drop = FALSE] / 2), log = TRUE))
  }
  fit <- suppressMessages(calmly(
    smc(target_function(funnels, 4, vectorized = TRUE), n_particles = 256, islands = 4, seed = 1)
  ))
  expect_log_z(fit, 0, 0.02)
})

test_that("nothing is fitted to draws whose fourth powers are beyond all numbers", {
  x <- matrix(c(rnorm(199), 1e100), 100)
  record <- list(
    particles = x, coordinates = x, gradients = -x, log_weights = numeric(100), origins = 1:100,
    reference = reference_gaussian()
  )
  expect_null(internal("fit_shape")(record))
})
