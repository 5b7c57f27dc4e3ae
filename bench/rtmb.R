# Microseconds an evaluation of RTMB's tapes, as target_rtmb() makes them; of the same
# model in R, vectorised by hand over the points; and of RTMB's own functions, point by
# point. The forms take turns in one session, so that their ratios can be relied on where
# the times cannot. Run it with one thread of BLAS (OPENBLAS_NUM_THREADS=1).
source("bench/common.R")
suppressPackageStartupMessages(library(RTMB))

n_points <- 1024
rounds <- 11

# Models: a log density of a list; the same, and its gradient, of a matrix with a row a
# point; parameters; the points' scale; and how many evaluations are timed together.
schools <- local({
  y <- c(28, 8, -3, 7, -1, 1, 18, 12)
  se <- c(15, 10, 16, 11, 9, 11, 10, 18)
  eta <- 3:10
  residuals <- function(x) {
    rep(y, each = nrow(x)) - x[, 1] - exp(x[, 2]) * x[, eta]
  }
  variances <- function(x) rep(se^2, each = nrow(x))
  list(
    name = "eight schools",
    log_density = function(p) {
      sum(dnorm(y, p$mu + exp(p$log_tau) * p$eta, se, log = TRUE)) +
        sum(dnorm(p$eta, log = TRUE)) + dnorm(p$mu, 0, 5, log = TRUE) +
        dnorm(p$log_tau, 0, 1, log = TRUE)
    },
    all_points = function(x) {
      -rowSums(residuals(x)^2 / variances(x)) / 2 - sum(log(se)) -
        9 * log(2 * pi) - log(5) -
        (rowSums(x[, eta]^2) + x[, 1]^2 / 25 + x[, 2]^2) / 2
    },
    gradient = function(x) {
      slope <- residuals(x) / variances(x)
      tau <- exp(x[, 2])
      cbind(
        rowSums(slope) - x[, 1] / 25,
        tau * rowSums(slope * x[, eta]) - x[, 2],
        tau * slope - x[, eta]
      )
    },
    parameters = list(mu = 0, log_tau = 0, eta = numeric(8)),
    sd = 1,
    repeats = 40
  )
})

logistic <- local({
  set.seed(1)
  design <- matrix(rnorm(208 * 60), 208)
  positive <- runif(208) < 0.5
  signed <- design * ifelse(positive, 1, -1)
  list(
    name = "logistic regression, d = 60",
    log_density = function(p) {
      sum(dnorm(p$beta, log = TRUE)) - sum(log1p(exp(-signed %*% p$beta)))
    },
    all_points = function(x) {
      -rowSums(x^2) / 2 - 30 * log(2 * pi) -
        rowSums(log1p(exp(-tcrossprod(x, signed))))
    },
    gradient = function(x) {
      plogis(-tcrossprod(x, signed)) %*% signed - x
    },
    parameters = list(beta = numeric(60)),
    sd = 0.25,
    repeats = 4
  )
})

forms_of <- function(model) {
  tape <- target_rtmb(model$log_density, model$parameters)
  all_points <- target_function(model$all_points,
    dim = tape$dim, gradient = model$gradient, vectorized = TRUE
  )
  object <- MakeADFun(function(p) -model$log_density(p), model$parameters, silent = TRUE)
  one_by_one <- target_function(function(x) -object$fn(x),
    dim = tape$dim, gradient = function(x) -object$gr(x)
  )
  list(tape = tape, vectorised = all_points, "fn and gr" = one_by_one)
}

evaluate <- function(target, x, gradient) {
  autosmc:::evaluate_target(target, x, gradient)
}

# A row a form: medians over rounds, of which each has points of its own.
times <- function(model) {
  forms <- forms_of(model)
  points <- function() {
    matrix(rnorm(n_points * forms$tape$dim, sd = model$sd), n_points)
  }
  x <- points()
  expected <- evaluate(forms$tape, x, TRUE)
  for (form in forms) {
    stopifnot(all.equal(evaluate(form, x, TRUE), expected))
    evaluate(form, x, FALSE)
  }
  seconds <- replicate(rounds, {
    x <- points()
    vapply(forms, function(form) {
      vapply(c(FALSE, TRUE), function(gradient) {
        time <- system.time(
          for (i in seq_len(model$repeats)) evaluate(form, x, gradient)
        )
        time[["user.self"]] / model$repeats
      }, 0)
    }, numeric(2))
  })
  microseconds <- apply(seconds, 1:2, median) / n_points * 1e6
  data.frame(
    model = model$name,
    form = names(forms),
    value = microseconds[1, ],
    with_gradient = microseconds[2, ],
    ratio_value = microseconds[1, ] / microseconds[1, 1],
    ratio_with_gradient = microseconds[2, ] / microseconds[2, 1]
  )
}

cat("BLAS:", extSoftVersion()[["BLAS"]], "\n")
keep(do.call(rbind, lapply(list(schools, logistic), times)), "rtmb")
