# Mirrors: what variables with two bounds show on the other side.

# Two independent angles between -pi and pi, most likely at the bounds: a quarter of the target for each choice
# of sides. The logits have the density of cosines times that of logistic variables.
angles <- function(d = 2, strength = 4, log_factor = 0) {
  target_function(
    function(x) log_factor - strength * rowSums(cos(x)), d,
    vectorized = TRUE, gradient = function(x) strength * sin(x), lower = -pi, upper = pi
  )
}

sampler_of <- function(target) sampler_for(target, 64, kernel_mala(), seed = 2)

# Exact draws of the angles, with logits of these signs only, in as many islands as make `n_evals` worth it.
final_of <- function(n, signs, strength = 4, n_evals = 1e6) {
  x <- matrix(0, 0, 2)
  while (nrow(x) < n) {
    tried <- matrix(runif(8 * n, -pi, pi), ncol = 2)
    tried <- tried[runif(4 * n) < exp(-strength * (rowSums(cos(tried)) + 2)), ]
    kept <- apply(sign(tried), 1, function(s) any(colSums(t(signs) == s) == 2))
    x <- rbind(x, tried[kept, ])
  }
  x <- x[seq_len(n), ]
  list(
    islands = data.frame(n_target_evals = n_evals), particles = x,
    unconstrained = qlogis((x + pi) / (2 * pi)), log_weights = rep(-log(n), n), origins = seq_len(n)
  )
}

all_signs <- as.matrix(expand.grid(c(-1, 1), c(-1, 1)))
look <- function(sampler, final) ask_of("mirrors", final, sampler = sampler)$found
limit_of <- function(found) internal("limit_of_rise")(found, list(std_error = NA))

test_that("they tell no more than what is missing, and nearly all that one mirror leads to", {
  sampler <- sampler_of(angles())
  set.seed(1)
  asked <- ask_of("mirrors", final_of(4000, all_signs[4, , drop = FALSE]), sampler = sampler)
  one <- asked$found
  # each of the two mirrors leads out of the quarter, to another, but for the draws that are so near to the
  # middle that their images are among the draws
  expect_lt(one$rise, log(3) + 4 * one$error)
  again <- replicate(3, look(sampler, final_of(4000, all_signs[4, , drop = FALSE]))$rise)
  expect_gt(mean(c(one$rise, again)), log(3) - 0.05)
  expect_gt(one$rise, limit_of(one))
  expect_identical(one$names, sampler$target$names)
  three <- look(sampler, final_of(4000, all_signs[-1, ]))
  expect_lt(three$rise, log(4 / 3) + 4 * three$error)
  # few and then many draws, and two images of each
  expect_equal(
    asked$n_target_evals, 3 * (few_mirrored_draws + many_mirrored_draws)
  )
})

test_that("in the mirrors of draws that have seen all there is no more", {
  set.seed(2)
  all <- look(sampler_of(angles()), final_of(4000, all_signs))
  expect_lt(all$rise, limit_of(all))
  expect_lt(all$error, 0.01)
  # nor is there where bounds are far
  set.seed(3)
  x <- matrix(rbeta(8000, 30, 20), ncol = 2)
  away <- target_function(function(x) rowSums(dbeta(x, 30, 20, log = TRUE)), 2, vectorized = TRUE, lower = 0, upper = 1)
  final <- list(
    islands = data.frame(n_target_evals = 1e6), particles = x, unconstrained = qlogis(x),
    log_weights = rep(-log(4000), 4000), origins = 1:4000
  )
  asked <- ask_of("mirrors", final, sampler = sampler_of(away))
  expect_lt(asked$found$rise, 0)
  expect_equal(asked$n_target_evals, 3 * few_mirrored_draws)
})

test_that("distances of images, and of their images, are those of the points themselves", {
  set.seed(4)
  d <- 5
  normal <- list(mean = rnorm(d), L = t(chol(crossprod(matrix(rnorm(d^2), d)))))
  x <- matrix(rnorm(7 * d), 7)
  z <- internal("from_user")(normal, x)
  square_of <- function(x) rowSums(internal("from_user")(normal, x)^2)
  images <- internal("images_of")(list(x = x, z = z, square = rowSums(z^2)), normal$L, c(2, 5))
  mirrored <- function(x, j) {
    x[, j] <- -x[, j]
    x
  }
  expect_equal(images$x, rbind(x, mirrored(x, 2), mirrored(x, 5)))
  expect_equal(images$square, cbind(square_of(x), square_of(mirrored(x, 2)), square_of(mirrored(x, 5))))
  of_images <- images$x[-(1:7), ]
  expect_equal(images$twice, cbind(square_of(mirrored(of_images, 2)), square_of(mirrored(of_images, 5))))
})

test_that("there are none without two bounds, and where the target fails", {
  sampler <- sampler_of(angles())
  set.seed(5)
  final <- final_of(1000, all_signs)
  expect_null(look(sampler_of(target_function(function(x) -rowSums(exp(x)), 2, vectorized = TRUE, lower = 0)), final))
  failing <- target_function(function(x) stop("never"), 2, vectorized = TRUE, lower = -pi, upper = pi)
  expect_null(look(sampler_of(failing), final))
  # of many variables some are mirrored
  many <- internal("mirrored_variables")(angles(40))
  expect_length(unique(many), most_mirrored)
  expect_false(is.unsorted(many))
})

test_that("a walk on the circle across the bounds is right, and warned of where it may not be turned", {
  # ten directions, each near the one before and near to what was seen
  d <- 10
  near <- c(8, 2.5)
  set.seed(41)
  seen <- cumsum(c(0, rnorm(d - 1, 0, 0.3))) + rnorm(d, 0, 0.6)
  walk_around <- function(centre) {
    steps <- function(x) x[, -1, drop = FALSE] - x[, -d, drop = FALSE]
    off <- function(x) sweep(x, 2, seen + centre)
    target_function(
      function(x) near[1] * rowSums(cos(steps(x))) + near[2] * rowSums(cos(off(x))), d,
      vectorized = TRUE, lower = -pi, upper = pi,
      gradient = function(x) {
        pull <- near[1] * sin(steps(x))
        -near[2] * sin(off(x)) - cbind(0, pull) + cbind(pull, 0)
      }
    )
  }
  # log Z by sums over a grid
  grid <- 2 * pi * (1:400) / 400
  own <- lapply(seen, function(y) exp(near[2] * cos(grid - y)) * 2 * pi / 400)
  step <- exp(near[1] * cos(outer(grid, grid, "-")))
  truth <- log(sum(Reduce(function(at, next_one) next_one * drop(step %*% at), own)))
  mirrors_of <- function(fit) fit$diagnostics[fit$diagnostics$name == "mirrors", ]
  fits <- lapply(1:3, function(seed) {
    suppressWarnings(smc(walk_around(pi), reference = reference_gaussian(sd = 2), seed = seed))
  })
  warned <- Filter(function(fit) !mirrors_of(fit)$passed, fits)
  expect_gt(length(warned), 0)
  for (across in warned) {
    mirrors <- mirrors_of(across)
    # what they say is true
    expect_lt(across$log_z + mirrors$value, truth + 5 * across$sampling_error)
    # and so the error counts it
    expect_equal(across$std_error, sqrt(across$sampling_error^2 + max(across$diagnostics$shift)^2))
    expect_lt(abs(across$log_z - truth), 3 * across$std_error)
    expect_match(mirrors$says, "If these are angles, measure them from another direction", fixed = TRUE)
  }
  for (turned in list(smc(walk_around(pi), seed = 1), smc(walk_around(0), seed = 1))) {
    expect_true(all(turned$diagnostics$passed))
    expect_log_z(turned, truth)
  }
})

test_that("only next to bounds variables may be angles", {
  # a mode at `at` and one at -at in each of two variables, of which the draws have seen one
  says <- function(at) {
    target <- target_function(
      function(x) rowSums(log(exp(-(x - at)^2 / 0.02) + exp(-(x + at)^2 / 0.02))), 2,
      vectorized = TRUE, gradient = function(x) x, lower = -pi, upper = pi
    )
    n <- 2000
    x <- matrix(rnorm(2 * n, at, 0.1), n)
    found <- look(sampler_of(target), list(
      islands = data.frame(n_target_evals = 1e6), particles = x, unconstrained = unconstrain(target, x),
      log_weights = rep(-log(n), n), origins = seq_len(n)
    ))
    judge_of("mirrors", estimate = list(std_error = NA), found = found)$says
  }
  expect_match(says(2.5), "reaches mass that no draw has visited.*If these are angles")
  expect_match(says(0.5), "reaches mass that no draw has visited[^.]*[.][0-9]+[.]$")
})
