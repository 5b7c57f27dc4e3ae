# Positive numbers in order, and the marginal density of coordinates that all others are normal given.

# Effects with the smaller of two scales in order, each observed with the larger one as its error; the variables of the
# scales are as a Stan program has them, and have N(0, 1) priors.
p <- 10
y <- c(-2.1, 0.4, 1.3, -0.7, 2.6, 0.1, -1.4, 3.0, -0.2, 0.8)
log_in_order <- function(x) {
  s <- exp(x[, 1])
  e <- exp(x[, 2])
  u <- x[, -(1:2), drop = FALSE]
  off <- sweep(u, 2, y)
  noise <- s + e
  value <- -(x[, 1]^2 + x[, 2]^2) / 2 - log(2 * pi) - p * log(2 * pi) - p * log(s) - rowSums(u^2) / (2 * s^2) -
    p * log(noise) - rowSums(off^2) / (2 * noise^2)
  by_noise <- -p / noise + rowSums(off^2) / noise^3
  structure(value, gradient = cbind(
    -x[, 1] - p + rowSums(u^2) / s^2 + s * by_noise, -x[, 2] + e * by_noise, -u / s^2 - off / noise^2,
    deparse.level = 0
  ))
}
in_order <- function(outputs = NULL) {
  target <- target_function(log_in_order, p + 2,
    vectorized = TRUE, names = c("s[1]", "s[2]", paste0("u[", seq_len(p), "]"))
  )
  target$outputs <- outputs
  target
}
as_declared <- function(x) {
  x[, 1:2] <- exp(x[, 1:2])
  x[, 2] <- x[, 1] + x[, 2]
  colnames(x) <- in_order()$names
  x
}

test_that("numbers in order are found by what a program makes of its variables", {
  find_ratios <- internal("find_ratios")
  expect_identical(which(find_ratios(in_order(as_declared))), 2L)
  expect_null(find_ratios(in_order()))
  # numbers that are only positive, in order but not positive, or not told
  others <- list(
    function(x) exp(as_declared(log(abs(x)))),
    function(x) replace(as_declared(x), seq_len(2 * nrow(x)), cbind(x[, 1], x[, 1] + exp(x[, 2]))),
    function(x) as_declared(x)[, -1],
    function(x) NaN * as_declared(x)
  )
  for (outputs in others) expect_false(any(find_ratios(in_order(outputs))))
})

test_that("scales in order have their evidence", {
  # given the scales y is normal
  grid <- as.matrix(expand.grid(seq(-6, 6, by = 0.02), seq(-6, 6, by = 0.02)))
  variance <- exp(2 * grid[, 1]) + (exp(grid[, 1]) + exp(grid[, 2]))^2
  log_density <- -rowSums(grid^2) / 2 - log(2 * pi) - p / 2 * log(2 * pi * variance) - sum(y^2) / (2 * variance)
  log_z <- log(sum(exp(log_density)) * 0.02^2)
  fit <- calmly(smc(in_order(as_declared), seed = 1))
  expect_identical(which(fit$target$ratio > 0), 2L)
  expect_identical(fit$maps[1], "s[2] is transformed to the log of the ratio to the previous variable")
  expect_match(fit$maps, "10 variables \\(u\\[1\\], .*\\) are normal given s\\[1\\], s\\[2\\]", all = FALSE)
  expect_log_z(fit, log_z, 0.05)
  expect_true(all(fit$particles[, "s[2]"] > fit$particles[, "s[1]"]))
  # runs on from it are on the same scale; a reference of the user's is on that of the program
  again <- calmly(smc_run(in_order(as_declared), fit$schedule, reference = fit$reference, kernel = fit$kernel, seed = 2))
  expect_identical(again$target$ratio, fit$target$ratio)
  given <- calmly(smc(in_order(as_declared), reference = reference_gaussian(sd = 2), seed = 1))
  expect_null(given$target$ratio)
})

# t ~ N(3, 0.1^2); u_j ~ N(0, exp(2 t)), with the upper half of u_1 cut off.
m <- 20
log_cut <- function(x, is_cut = TRUE) {
  t <- x[, 1]
  u <- x[, -1, drop = FALSE]
  value <- -(t - 3)^2 / 0.02 - m * t - rowSums(u^2) * exp(-2 * t) / 2
  if (is_cut) value[u[, 1] > -0.5] <- -Inf
  q <- exp(-2 * t)
  structure(value, gradient = cbind(-(t - 3) / 0.01 - m + q * rowSums(u^2), -q * u, deparse.level = 0))
}
scale_and_effects <- function(is_cut) target_function(function(x) log_cut(x, is_cut), m + 1, vectorized = TRUE)

test_that("a scale far away is found by the marginal density, whatever the effects", {
  for (is_cut in c(FALSE, TRUE)) {
    given_t <- function(t) exp(-(t - 3)^2 / 0.02) * if (is_cut) pnorm(-0.5 * exp(-t)) else 1
    truth <- m / 2 * log(2 * pi) + log(integrate(given_t, 2, 4, rel.tol = 1e-10)$value)
    expect_log_z(calmly(smc(scale_and_effects(is_cut), seed = 1)), truth)
  }
})
