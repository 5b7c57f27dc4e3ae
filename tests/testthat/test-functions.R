# helpers ------------------------------------------------------------------

# A banana, with its log density and gradient in each form they may have.
density <- function(p) -p[["x"]]^2 / 2 - (p[["y"]] - p[["x"]]^2)^2 / 2
gradient <- function(p) {
  away <- p[["y"]] - p[["x"]]^2
  c(-p[["x"]] + 2 * p[["x"]] * away, -away)
}
density_of_rows <- function(p) -p[, "x"]^2 / 2 - (p[, "y"] - p[, "x"]^2)^2 / 2
gradient_of_rows <- function(p) {
  away <- p[, "y"] - p[, "x"]^2
  cbind(-p[, "x"] + 2 * p[, "x"] * away, -away)
}
symbolic <- deriv(
  ~ -x^2 / 2 - (y - x^2)^2 / 2,
  c("x", "y"),
  function(x, y) NULL
)

variables <- c("x", "y")
in_one_form <- function(f, g = NULL, vectorized = FALSE) {
  target_function(f, 2, gradient = g, vectorized = vectorized, names = variables)
}
scalar <- in_one_form(density, gradient)

run <- function(target, ...) {
  calmly(smc_plain(
    target, ...,
    n_particles = 64, n_steps = 6, kernel = kernel_lmc(0.3), seed = 1
  ))
}

expect_same_run <- function(target, tolerance = 1e-10) {
  fit <- run(target)
  reference <- run(scalar)
  expect_equal(fit$log_z, reference$log_z, tolerance = tolerance)
  expect_equal(fit$particles, reference$particles, tolerance = tolerance)
}

# forms of one target --------------------------------------------------------

test_that("a vectorised function is the same target as a scalar one", {
  expect_same_run(in_one_form(density_of_rows, gradient_of_rows, TRUE))
})

test_that("the gradient may be an attribute, as stats::deriv() makes it", {
  expect_same_run(in_one_form(function(p) symbolic(p[["x"]], p[["y"]])))
  expect_same_run(in_one_form(function(p) symbolic(p["x"], p["y"])))
  expect_same_run(in_one_form(
    function(p) symbolic(p[, "x"], p[, "y"]),
    vectorized = TRUE
  ))
})

test_that("a gradient function is preferred to the attribute", {
  wrong <- function(p) structure(density(p), gradient = c(1e3, 1e3))
  expect_same_run(in_one_form(wrong, gradient))
})

test_that("without a gradient, central differences are near it", {
  suppressMessages({
    expect_same_run(in_one_form(density), 1e-6)
    expect_same_run(in_one_form(density_of_rows, vectorized = TRUE), 1e-6)
  })
})

test_that("central differences hold far from the origin", {
  far <- target_function(function(x) -(x - 1e6)^2 / 2, 1)
  suppressMessages(value <- evaluate_target(far, matrix(1e6 + 3)))
  expect_equal(drop(value$gradient), -3, tolerance = 1e-6)
})

test_that("central differences are right in small and large units", {
  # of a Gumbel density, at points from next to 0 to eight units off
  at <- c(-2, -0.3, 0.001, 0.7, 8)
  for (unit in 10^seq(-6, 9, 3)) {
    target <- target_function(function(x) -x / unit - exp(-x / unit), 1)
    suppressMessages(value <- evaluate_target(target, matrix(unit * at)))
    expect_equal(unit * drop(value$gradient), exp(-at) - 1)
  }
  # a variable that is 0 does not show its unit
  target <- target_function(function(x) -(x - 1)^2, 1)
  expect_equal(drop(suppressMessages(evaluate_target(target, matrix(0))$gradient)), 2, tolerance = 1e-9)
})

test_that("without a gradient the evidence of a regression is the same in any unit of its covariate", {
  set.seed(1)
  z <- runif(40)
  y <- rpois(40, exp(0.5 + 1.5 * z))
  log_z <- vapply(c(1, 1e8), function(unit) {
    log_density <- function(b) {
      sum(dpois(y, exp(b[1] + b[2] * unit * z), log = TRUE)) + sum(dnorm(b, 0, c(5, 5 / unit), log = TRUE))
    }
    fit <- suppressMessages(calmly(smc(target_function(log_density, 2), n_particles = 128, islands = 4, seed = 1)))
    c(fit$log_z, fit$std_error)
  }, numeric(2))
  expect_lt(abs(diff(log_z[1, ])), 4 * sqrt(sum(log_z[2, ]^2)))
  expect_lt(max(log_z[2, ]), 0.05)
})

test_that("a bare function is a target, with the arguments of one", {
  bare <- run(density, dim = 2, gradient = gradient, names = variables)
  expect_identical(bare$particles, run(scalar)$particles)
  target <- as_target(density, dim = 2, gradient = gradient, names = variables)
  expect_s3_class(target, "smc_target")
  expect_identical(run(target)$particles, run(scalar)$particles)
  expect_identical(as_target(target), target)
  expect_bad(as_target(), "x")
  expect_match(message_of(catch(as_target("model.stan"))), "`target_stan()`", fixed = TRUE)
  schedule <- data.frame(lambda = c(0.2, 1), step_size = 0.3)
  fit <- calmly(smc_run(
    density, schedule,
    dim = 2, gradient = gradient, names = variables,
    n_particles = 16, kernel = kernel_lmc(), seed = 1
  ))
  expect_identical(colnames(fit$particles), variables)
})

test_that("one variable is a number, or a matrix of one column", {
  number <- target_function(
    function(x) -x^2 / 2, 1,
    gradient = function(x) -x
  )
  column <- target_function(
    function(x) -x[, 1]^2 / 2, 1,
    gradient = function(x) -x, vectorized = TRUE
  )
  plain <- target_function(
    function(x) -x^2 / 2, 1,
    gradient = function(x) -x[, 1], vectorized = TRUE
  )
  reference <- run(number)
  expect_equal(run(column)$particles, reference$particles)
  expect_equal(run(plain)$particles, reference$particles)
  expect_identical(colnames(reference$particles), "x")
})

test_that("integers and one-column results are numbers too", {
  flat <- target_function(
    function(x) 0L, 2,
    gradient = function(x) c(0L, 0L)
  )
  expect_true(is.finite(run(flat)$log_z))
  matrices <- in_one_form(
    function(p) cbind(density_of_rows(p)), gradient_of_rows, TRUE
  )
  expect_same_run(matrices)
})

# what the functions are given ----------------------------------------------

test_that("a scalar function sees a named numeric vector", {
  seen <- NULL
  look <- function(p) {
    seen <<- p
    density(p)
  }
  run(in_one_form(look, gradient))
  expect_type(seen, "double")
  expect_identical(names(seen), variables)
  expect_null(dim(seen))
})

test_that("a vectorised function sees all points, with named columns", {
  seen <- NULL
  look <- function(p) {
    seen <<- c(seen, list(p))
    density_of_rows(p)
  }
  run(in_one_form(look, gradient_of_rows, TRUE))
  # at the start and at each step
  expect_identical(vapply(seen, nrow, 0L), rep(64L, 7))
  expect_identical(unique(lapply(seen, colnames)), list(variables))
})

test_that("variables are called x1, x2, ... by default, and x when alone", {
  seen <- NULL
  look <- function(x) {
    seen <<- names(x)
    -sum(x^2) / 2
  }
  run(look, dim = 3, gradient = normal_gradient)
  expect_identical(seen, c("x1", "x2", "x3"))
  run(look, dim = 1, gradient = normal_gradient)
  expect_identical(seen, "x")
})

test_that("a function that changes its argument changes nothing else", {
  careless <- function(p) {
    value <- density(p)
    p[] <- 0
    value
  }
  expect_same_run(in_one_form(careless, gradient))
})

test_that("the gradient is asked for at the points of the densities", {
  last <- NULL
  f <- function(p) {
    last <<- p
    density_of_rows(p)
  }
  same <- logical()
  g <- function(p) {
    same <<- c(same, identical(p, last))
    gradient_of_rows(p)
  }
  run(in_one_form(f, g, TRUE))
  expect_identical(same, rep(TRUE, 7))
})

test_that("the points that a scalar function keeps stay as they were", {
  x <- matrix(rnorm(40), 20, dimnames = list(NULL, variables))
  seen <- list()
  f <- function(p) {
    seen <<- c(seen, list(p))
    0
  }
  evaluate_target(in_one_form(f, function(p) p), unname(x))
  expect_identical(do.call(rbind, seen), x)
})

test_that("an error, a warning and an interrupt pass at any call of a scalar function", {
  x <- matrix(0, 20, 2)
  interrupt <- structure(list(), class = c("interrupt", "condition"))
  for (condition in list(simpleError("no"), simpleWarning("hm"), interrupt)) {
    for (last in c(1, 7, 20)) {
      calls <- 0
      f <- function(p) {
        calls <<- calls + 1
        if (calls == last) stop(condition)
        0
      }
      caught <- tryCatch(
        evaluate_located(in_one_form(f, gradient), x, "scout"),
        condition = identity
      )
      if (inherits(condition, "error")) {
        expect_s3_class(caught, "autosmc_error_located")
        caught <- caught$parent
      }
      expect_identical(caught, condition)
      expect_identical(calls, last)
    }
  }
})

test_that("scalar functions give what a loop in R does, to the last bit", {
  x <- matrix(rnorm(10240), 1024)
  bare <- list(
    log_density = apply(x, 1, normal_density), gradient = t(apply(x, 1, normal_gradient))
  )
  expect_identical(evaluate_target(normal_target(10), x), c(bare, n_calls = 1024))
})

test_that("a function may ask for the same target, and look at its point afterwards", {
  inner <- 0
  f <- function(p) {
    if (inner == 0) {
      inner <<- 1
      evaluate_target(target, matrix(9, 3, 2))
      inner <<- 0
    }
    sum(p)
  }
  target <- in_one_form(f, function(p) p)
  x <- matrix(1:8 / 8, 4)
  expect_identical(evaluate_target(target, x, gradient = FALSE)$log_density, rowSums(x))
})

# the message about central differences --------------------------------------

messages_of <- function(code) {
  heard <- list()
  withCallingHandlers(code, message = function(m) {
    heard[[length(heard) + 1]] <<- m
    invokeRestart("muffleMessage")
  })
  heard
}

test_that("what central differences cost is said once a call of smc()", {
  heard <- messages_of(quick_smc(density, dim = 2, names = variables))
  expect_length(heard, 1)
  expect_s3_class(heard[[1]], "autosmc_message_gradient")
  expect_match(message_of(heard[[1]]), "4 further calls")
  again <- messages_of(quick_smc(density, dim = 2, names = variables))
  expect_length(again, 1)
})

test_that("nothing is said when there is a gradient", {
  expect_length(messages_of(run(scalar)), 0)
})

test_that("central differences make 2 d further calls a point", {
  calls <- 0
  f <- function(x) {
    calls <<- calls + 1
    -sum(x^2) / 2
  }
  fit <- suppressMessages(run(f, dim = 3))
  expect_identical(calls, 7 * fit$runs$n_target_evals)
})

# wrong shapes ----------------------------------------------------------------

expect_wrong_density <- function(f, regexp, vectorized = FALSE) {
  error <- catch(quick_smc(
    f,
    dim = 2, gradient = normal_gradient, vectorized = vectorized
  ))
  expect_s3_class(error, "autosmc_error_target")
  expect_s3_class(error, "autosmc_error")
  expect_match(message_of(error$parent), regexp)
  expect_match(message_of(error$parent), "`log_density` must return")
}

test_that("a scalar log density that is not one number is rejected", {
  expect_wrong_density(function(x) c(1, 2), "a number; it returned")
  expect_wrong_density(function(x) numeric(), "a number; it returned")
  expect_wrong_density(function(x) matrix(0, 2, 2), "2 x 2 double matrix")
  expect_wrong_density(function(x) "much", "\"much\"")
  expect_wrong_density(function(x) NULL, "NULL")
  expect_wrong_density(function(x) list(1), "list")
  expect_wrong_density(function(x) TRUE, "TRUE")
  expect_wrong_density(function(x) 1i, "1i")
  expect_wrong_density(function(x) sum, "a function")
  expect_wrong_density(function(x) factor("a"), "factor")
})

test_that("a vectorised log density that is not n numbers is rejected", {
  vectorised <- function(f, regexp) expect_wrong_density(f, regexp, TRUE)
  vectorised(function(x) 1, "16 numbers, one per row;\\s+it\\s+returned 1")
  vectorised(function(x) x, "16 x 2 double matrix")
  vectorised(function(x) as.character(x[, 1]), "character vector of\\s+length 16")
  vectorised(function(x) NULL, "NULL")
  vectorised(function(x) as.list(x[, 1]), "list")
})

test_that("an error about a value says what the function was given", {
  message_of <- function(...) conditionMessage(catch(quick_smc(..., gradient = normal_gradient))$parent)
  expect_match(message_of(function(x) 1, dim = 2, vectorized = TRUE), "given a 16 x 2 double\\s+matrix")
  said <- message_of(function(x) c(1, 2), dim = 2)
  expect_match(said, "one point, a vector of\\s+length\\s+2")
  expect_match(said, "vectorized = TRUE", fixed = TRUE)
  expect_identical(
    vapply(c(1, 8, 11, 12, 18, 80, 110), function(n) describe(matrix(0, n, 2)), ""),
    sprintf(
      "%s %d x 2 double matrix", c("a", "an", "an", "a", "an", "an", "a"),
      c(1L, 8L, 11L, 12L, 18L, 80L, 110L)
    )
  )
})

# All of these are right for two points and more.
one_row_is_lost <- list(
  "apply()" = function(x) -rowSums(apply(x, 2, function(column) column)^2) / 2,
  "sapply()" = function(x) -rowSums(sapply(1:2, function(j) x[, j])^2) / 2,
  "a selection of rows" = function(x) -rowSums(x[is.finite(x[, 1]), ]^2) / 2
)

test_that("a vectorised function that fails at a single point is told why", {
  for (f in one_row_is_lost) {
    with_gradient <- function(x) -x
    gradient_fails <- function(x) f(x) * 0 - x
    for (functions in list(
      list(what = "`log_density` failed", f, NULL),
      list(what = "`log_density` failed", f, with_gradient),
      list(what = "The gradient of `log_density` failed", function(x) -rowSums(x^2) / 2, gradient_fails)
    )) {
      target <- target_function(
        functions[[2]],
        dim = 2, gradient = functions[[3]], vectorized = TRUE
      )
      error <- catch(suppressMessages(evaluate_located(target, matrix(1, 1, 2), "scout")))
      expect_s3_class(error, "autosmc_error_located")
      single <- error$parent
      expect_s3_class(single, "autosmc_error_target")
      expect_match(message_of(single), functions$what, fixed = TRUE)
      expect_match(message_of(single), "at a single\\s+point")
      expect_match(message_of(single), "a 1 x 2 double\\s+matrix")
      expect_match(message_of(single), "drop = FALSE", fixed = TRUE)
      expect_match(message_of(single$parent), "two dimensions")
    }
  }
})

test_that("so is one whose value has another length there", {
  f <- function(x) if (nrow(x) == 1) c(1, 2) else -rowSums(x^2) / 2
  target <- target_function(f, dim = 2, gradient = function(x) -x, vectorized = TRUE)
  error <- catch(evaluate_located(target, matrix(1, 1, 2), "scout"))
  expect_match(
    message_of(error$parent),
    "must return a number; it returned c\\(1, 2\\).*1 x 2 double\\s+matrix.*drop = FALSE"
  )
})

test_that("smc() says so in the scout", {
  error <- catch(suppressMessages(
    smc(one_row_is_lost[[1]], dim = 2, vectorized = TRUE, n_particles = 16, seed = 1)
  ))
  expect_s3_class(error, "autosmc_error_target")
  expect_match(message_of(error), "in the scout")
  expect_match(message_of(error$parent), "drop = FALSE", fixed = TRUE)
})

test_that("errors at a single point that are no accidents of shape pass on too", {
  deep <- function(x) deep(x)
  for (f in list(function(x) stop("mine"), deep)) {
    target <- target_function(f, dim = 2, gradient = function(x) -x, vectorized = TRUE)
    error <- catch(evaluate_located(target, matrix(1, 1, 2), "scout"))
    expect_s3_class(error, "autosmc_error_located")
  }
})

test_that("an error at the first call of a function says what it is called with", {
  one <- "one point, a numeric vector of length 2"
  all <- "all points, an n x 2 matrix with a row each"
  first <- function(what, given, vectorized, other) {
    sprintf(
      "run\\. . %s failed at its first call, with %s\\. With `vectorized = %s` it is called with %s\\.",
      what, given, vectorized, other
    )
  }
  # the functions, what is said of them, and their own error
  wrong <- list(
    list(
      list(function(x) -rowSums(x^2) / 2), first("`log_density`", one, TRUE, all), "two dimensions"
    ),
    list(
      list(normal_density, gradient = function(x) -x[, 1:2]),
      first("The gradient of `log_density`", one, TRUE, all), "dimensions"
    ),
    list(
      list(function(x) drop(-x %*% x), vectorized = TRUE),
      first("`log_density`", all, FALSE, one), "conformable"
    )
  )
  adapts <- function(target) smc_adapt(target, n_particles = 16)
  for (case in wrong) {
    for (run in list(smc, smc_scout, adapts)) {
      error <- catch(suppressMessages(run(do.call(target_function, c(case[[1]], dim = 2)))))
      expect_match(message_of(error), case[[2]])
      expect_match(conditionMessage(error$parent), case[[3]])
      expect_false(inherits(error$parent, "autosmc_error"))
    }
  }
  # of a reference too, and where there is no scout
  reference <- reference_function(function(n) matrix(0, n, 2), wrong[[1]][[1]][[1]])
  error <- catch(quick_run(target_gaussian(2), reference = reference))
  expect_match(message_of(error), "The reference failed.*`reference\\$log_density` failed at its first call")
  error <- catch(quick_run(wrong[[1]][[1]][[1]], dim = 2, gradient = normal_gradient))
  expect_match(message_of(error), "`log_density` failed at its first call, with one point")
})

test_that("where a function has worked before, the error has the point, and what may be returned", {
  for (last in c(2, 20)) {
    calls <- 0
    f <- function(x) {
      calls <<- calls + 1
      if (calls == last) {
        seen <<- x
        stop("no more")
      }
      normal_density(x)
    }
    seen <- NULL
    error <- catch(quick_run(f, dim = 2, gradient = normal_gradient, names = c("a", "b")))
    expect_identical(conditionMessage(error$parent), "no more")
    expect_no_match(message_of(error), "first call")
    said <- message_of(error)
    expect_match(said, "`log_density` failed at \\(a = .*, b = .*\\), after it had worked at other points")
    expect_match(said, "let `log_density` return `-Inf`", fixed = TRUE)
    a <- as.numeric(sub(".*\\(a = ([^,]*),.*", "\\1", said))
    expect_equal(a, seen[["a"]], tolerance = 0.01)
  }
  # of many variables the first, and of all points none
  wide <- local({
    calls <- 0
    function(x) if ((calls <<- calls + 1) > 1) stop("no more") else normal_density(x)
  })
  error <- catch(quick_run(wide, dim = 6, gradient = normal_gradient))
  expect_match(message_of(error), "x4 = [^,]*, \\.\\.\\.\\), after it had worked")
  all_points <- local({
    calls <- 0
    function(x) if ((calls <<- calls + 1) > 1) stop("no more") else -rowSums(x^2) / 2
  })
  error <- catch(quick_run(all_points, dim = 2, gradient = function(x) -x, vectorized = TRUE))
  expect_match(message_of(error), "`log_density` failed now, after it had worked at other points")
})

expect_wrong_gradient <- function(g, regexp, vectorized = FALSE) {
  f <- if (vectorized) function(x) -rowSums(x^2) / 2 else normal_density
  as_function <- catch(quick_smc(
    f,
    dim = 2, gradient = g, vectorized = vectorized
  ))
  with_attribute <- function(x) {
    value <- f(x)
    attr(value, "gradient") <- g(x)
    value
  }
  errors <- list(as_function)
  if (!is.null(g(matrix(0, 16, 2)))) {
    errors[[2]] <- catch(quick_smc(
      with_attribute,
      dim = 2, vectorized = vectorized
    ))
  }
  for (error in errors) {
    expect_s3_class(error, "autosmc_error_target")
    expect_match(message_of(error$parent), "The gradient of `log_density` must\\s+be")
    expect_match(message_of(error$parent), regexp)
  }
}

test_that("a gradient of the wrong shape is rejected", {
  expect_wrong_gradient(function(x) 1, "length 2; it is 1")
  expect_wrong_gradient(function(x) c(1, 2, 3), "length 2; it is")
  expect_wrong_gradient(function(x) matrix(0, 2, 2), "2 x 2\\s+double matrix")
  expect_wrong_gradient(function(x) c("a", "b"), "character")
  expect_wrong_gradient(function(x) NULL, "NULL")
  expect_wrong_gradient(function(x) list(1, 2), "list")
})

test_that("a vectorised gradient of the wrong shape is rejected", {
  vectorised <- function(g, regexp) expect_wrong_gradient(g, regexp, TRUE)
  vectorised(function(x) t(x), "16 rows.*2\\s+columns; it is a 2 x 16")
  vectorised(function(x) x[, 1], "vector\\s+of\\s+length 16")
  vectorised(function(x) x[-1, ], "15 x 2")
  vectorised(function(x) as.data.frame(x), "data.frame")
  vectorised(function(x) c(x), "vector\\s+of\\s+length 32")
})

test_that("a log density of +Inf is warned of, once in a fit", {
  density_at <- function(target, ...) {
    evaluate_target(target, rbind(...), gradient = FALSE)$log_density
  }
  wrong <- function(x) if (x[1] > 3) Inf else -sum(x^2) / 2
  target <- target_function(wrong, dim = 2, gradient = function(x) -x)
  expect_warning(
    expect_identical(density_at(target, c(4, 0)), Inf),
    "`log_density` returned Inf at some points",
    class = "autosmc_warning_infinite"
  )
  warnings <- 0
  withCallingHandlers(
    smc(target, n_particles = 128, n_steps = 8, islands = 4, seed = 1),
    autosmc_warning_infinite = function(w) {
      warnings <<- warnings + 1
      tryInvokeRestart("muffleWarning")
    },
    autosmc_warning_unreliable = function(w) tryInvokeRestart("muffleWarning")
  )
  expect_identical(warnings, 1)
  by_rows <- target_function(
    function(x) ifelse(x[, 1] > 3, Inf, -rowSums(x^2) / 2),
    dim = 2, vectorized = TRUE
  )
  expect_warning(density_at(by_rows, c(0, 0), c(4, 0)), class = "autosmc_warning_infinite")
  expect_no_warning(density_at(by_rows, c(0, 0)))
  # the edge of a gamma distribution is no mistake
  gamma <- target_function(function(x) dgamma(x, 0.1, log = TRUE), dim = 1, lower = 0)
  expect_no_warning(expect_identical(density_at(gamma, 0), Inf))
  log_normal <- target_function(function(x) dlnorm(x, log = TRUE), dim = 1, lower = 0)
  expect_no_warning(density_at(log_normal, 5e-324))
  # what is no number, or impossible, is part of life
  expect_no_warning(density_at(target_function(function(x) NaN, dim = 1), 0))
  expect_no_warning(density_at(target_function(function(x) -Inf, dim = 1), 0))
})

test_that("the end of a limit of time is no fault of the function", {
  calls <- 0
  limited <- function(at) {
    calls <<- 0
    function(x) {
      calls <<- calls + 1
      if (calls == at) stop("reached elapsed time limit", call. = FALSE)
      -sum(x^2) / 2
    }
  }
  for (at in c(1, 40)) {
    error <- catch(smc(limited(at), dim = 2, gradient = function(x) -x, n_particles = 16, seed = 1))
    expect_identical(conditionMessage(error), "reached elapsed time limit")
    expect_false(inherits(error, "autosmc_error"))
  }
})

test_that("where a function makes a fit of its own that fails, both say where", {
  calls <- 0
  inner <- function() smc(function(y) stop("deep"), dim = 1, gradient = function(y) -y, n_particles = 16)
  outer <- function(x) {
    calls <<- calls + 1
    if (calls == 40) inner()
    -sum(x^2) / 2
  }
  error <- catch(smc(outer, dim = 2, gradient = function(x) -x, n_particles = 16, seed = 1))
  expect_match(message_of(error), "had worked at other points")
  expect_match(message_of(error$parent), "failed at its first call, with one point, a numeric vector of length 1")
  expect_identical(conditionMessage(error$parent$parent), "deep")
})

# what is meant ------------------------------------------------------------------

test_that("names tell the dimension, and so does a start", {
  expect_identical(target_function(normal_density, names = c("a", "b"))$dim, 2L)
  start <- reference_laplace(normal_density, start = c(1, 2), gradient = normal_gradient)
  expect_equal(start$mean, c(0, 0), tolerance = 1e-6)
  expect_match(message_of(catch(target_function(normal_density))), "or their `names`", fixed = TRUE)
})

test_that("a function with data is told where these go", {
  expect_match(
    message_of(catch(smc(function(x, d) 0, dim = 1, data = 1))), "`target_rtmb()` takes `data`", fixed = TRUE
  )
})

test_that("a document that knitr makes has the same message once", {
  old <- options(knitr.in.progress = TRUE)
  on.exit(options(old))
  make <- function() smc_scout(function(x) -sum((x - 3)^4), dim = 3, seed = 1)
  expect_message(make(), class = "autosmc_message_gradient")
  expect_no_message(make())
})

test_that("a negative log density is asked about before anything is sampled", {
  rising <- target_function(function(x) sum(x^2) / 2, 2, gradient = function(x) x)
  error <- catch(suppressWarnings(smc(rising, seed = 1)))
  expect_s3_class(error, "autosmc_error_mode")
  expect_match(message_of(error), "Is it the negative log density", fixed = TRUE)
})
