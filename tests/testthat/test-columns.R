# Work on the columns of matrices of draws.

draws <- function(n, d) {
  matrix(rnorm(n * d), n, d, dimnames = if (d == 3) list(NULL, c("a", "b", "c")))
}

test_that("columns are swept as by base's sweep()", {
  set.seed(1)
  for (d in c(1, 3, 8)) {
    x <- draws(11, d)
    by <- rnorm(d)
    for (f in list("-", "+", "*", "/", "<", ">=", `-`)) {
      expect_identical(sweep(x, 2, by, f), base::sweep(x, 2, by, f))
    }
    expect_identical(sweep(x, 2, 2), base::sweep(x, 2, 2))
  }
  x <- matrix(c(0.1, -2, 1 / 3, 1e-9, 7, 1e9), 2, dimnames = list(NULL, c("a", "b", "c")))
  for (f in list("-", "+", "*", "/", "<", `-`)) {
    expect_identical(sweep(x, 2, c(3, 1 / 7, -1), f), base::sweep(x, 2, c(3, 1 / 7, -1), f))
  }
  none <- x[integer(), ]
  expect_identical(sweep(none, 2, 1:3), base::sweep(none, 2, 1:3))
  expect_identical(sweep(none, 2, 1:3 / 2), base::sweep(none, 2, 1:3 / 2))
  expect_equal(sweep(matrix(1:6, 3), 2, 1:2), base::sweep(matrix(1:6, 3), 2, 1:2))
  odd <- sweep(matrix(c(NaN, Inf, 1, NA), 2), 2, c(1, Inf))
  expect_identical(is.nan(odd), matrix(c(TRUE, FALSE, FALSE, FALSE), 2))
  expect_identical(odd[2, 1], Inf)
})

test_that("scaled rows are those of sweep()", {
  set.seed(2)
  x <- draws(12, 4)
  centre <- rnorm(4)
  w <- runif(12)
  expect_identical(scaled_rows(x, w, centre), w * base::sweep(x, 2, centre))
  rows <- c(2L, 3L, 11L)
  of_rows <- w[1:3] * base::sweep(x[rows, ], 2, centre)
  expect_identical(scaled_rows(x, w[1:3], centre, rows), of_rows)
  expect_identical(scaled_rows(x, numeric(), centre, integer()), x[integer(), ])
})

test_that("weighted sums of columns are those of colSums()", {
  set.seed(2)
  w <- rexp(500)
  for (d in c(1, 3)) {
    x <- draws(500, d)
    expect_equal(weighted_mean(x, w), colSums(w * x), tolerance = 1e-15)
    expect_equal(weighted_squares(x, w), colSums(w * x^2), tolerance = 1e-15)
  }
  expect_identical(names(weighted_mean(draws(500, 3), w)), c("a", "b", "c"))
  expect_identical(weighted_mean(draws(0, 2), numeric()), c(0, 0))
  rows <- which(x[, 1] > 0)
  w <- w[rows]
  mean <- weighted_mean(x[rows, ], w)
  expect_identical(weighted_mean(x, w, rows), mean)
  sd <- sqrt(weighted_squares(sweep(x[rows, ], 2, mean), w))
  expect_identical(weighted_sd(x, w, rows), sd)
  expect_identical(weighted_sd(x[rows, ], w), sd)
})

test_that("weights are those of the plain formulas", {
  set.seed(5)
  x <- 800 + 20 * rnorm(500)
  x[c(7, 90)] <- -Inf
  w <- exp(x - max(x))
  rows <- which(w > 1e-12)
  expect_lt(length(rows), 490)
  expect_identical(rows_with_weight(x), list(rows = rows, w = w[rows] / sum(w[rows])))
  for (none in list(numeric(), c(0, NaN, 1), rep(-Inf, 3))) {
    expect_identical(rows_with_weight(none), list(rows = integer(), w = numeric()))
  }
})

test_that("rows are centred and multiplied as they would be one after the other", {
  set.seed(6)
  x <- draws(3000, 3)
  by <- draws(3, 2)
  rows <- which(x[, 1] > -1)
  mean <- weighted_mean(x, rep(1 / 3000, 3000))
  product <- multiply(sweep(x[rows, ], 2, mean), by)
  expect_identical(.Call(r_multiply_rows, x, rows, mean, by), product)
  expect_identical(.Call(r_multiply_rows, x, NULL, NULL, by), multiply(x, by))
})

test_that("groups are added up as by rowsum(), and numbered as they appear", {
  set.seed(4)
  w <- rexp(1000)
  group <- sample(c(7:60, 90L), 1000, TRUE)
  expect_identical(concentration(w, group), sum(rowsum(w, group)^2))
  expect_identical(concentration(numeric(), integer()), 0)
  expect_identical(.Call(r_number_groups, group), match(group, unique(group)))
})

test_that("means over their errors count the draws of a group as one", {
  set.seed(3)
  x <- draws(60, 3)
  y <- draws(60, 3)
  w <- rexp(60)
  w <- w / sum(w)
  group <- sample(12, 60, TRUE)
  group <- match(group, unique(group))
  by_hand <- function(terms) {
    sums <- rowsum(w * terms, group)
    mean <- colSums(sums)
    unname(mean / sqrt(colSums((sums - outer(drop(rowsum(w, group)), mean))^2)))
  }
  expect_equal(t_values(x, w, group), by_hand(x))
  expect_equal(t_values(x, w, group, y), by_hand(x * y + 1))
  rows <- sample(60, 60, TRUE)
  expect_identical(t_values(x, w, group, rows = rows), t_values(x[rows, ], w, group))
  # without an error there is no t value
  expect_identical(t_values(x[1:4, ], rep(1 / 4, 4), rep(1L, 4)), c(0, 0, 0))
})

test_that("rows are written only where there is room for them", {
  put <- function(x, first, y) .Call(get("r_put_rows", asNamespace("autosmc")), x, first, y)
  room <- function() matrix(0, 4, 2)
  expect_identical(put(room(), 2, matrix(1, 2, 2)), matrix(c(0, 0, 1, 1), 4, 2))
  for (bad in list(
    list(3, matrix(1, 2, 2)), list(-1, matrix(1, 2, 2)), list(NaN, matrix(1, 2, 2)),
    list(0, matrix(1, 2, 3)), list(0, matrix(1, 2, 1)), list(0, matrix(1L, 2, 2))
  )) {
    expect_error(put(room(), bad[[1]], bad[[2]]), "internal error")
  }
})
