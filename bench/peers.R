# smc() beside other ways to the evidence in R, on five models of known evidence, 4 seeds
# each: `Rscript bench/peers.R [MODEL...]`. Each way is run as its own pages say, by its
# defaults:
#
# * `smc`, of a Stan program by its defaults, and `smc draws`, which starts from the draws
#   of rstan's sampler;
# * `bridge normal` and `bridge warp3`: those draws (four chains of 2,000 iterations), and
#   bridgesampling with the Stan program's log density;
# * `BayesianTools`: its SMC sampler (1,000 particles, 10 iterations), and the evidence by
#   marginalLikelihood(method = "Bridge") from its draws;
# * `Laplace`: the mode and the Hessian of RTMB's tape, bounded variables on the log scale.
#
# `rmse` is the error of log Z over the seeds, `mean_error` its mean, `claimed` the median of
# what the method says of it (NA where it says nothing), `evaluations` those of the log
# density or of its gradient, `seconds` those of processor time, with the sampling that
# bridgesampling needs, and without compiling. A package that is missing is left out.
source("bench/common.R")

softly <- function(code) suppressWarnings(suppressMessages(code))
normals <- function(x, mean = 0, sd = 1) sum(dnorm(x, mean, sd, log = TRUE))

# Models: the `data` of the Stan program of that name; `exact`, the log evidence; and, on
# the scale of the parameters, `log_density` (a function of a list) for RTMB, `parameters`,
# `positive` (names), `log_prior` (of a vector) and `draw_prior` (one draw) for
# BayesianTools.

x_cars <- cars$speed - mean(cars$speed)
y_cars <- cars$dist
exact_regression <- local({
  n <- length(y_cars)
  prior_variance <- diag(c(4, 1))
  design <- cbind(1, x_cars)
  variance <- solve(solve(prior_variance) + crossprod(design))
  location <- variance %*% (solve(prior_variance, c(40, 0)) + crossprod(design, y_cars))
  squares <- sum((y_cars - design %*% location)^2) +
    sum((location - c(40, 0))^2 / diag(prior_variance))
  shape <- 2 + n / 2
  -n / 2 * log(2 * pi) + log(det(variance) / det(prior_variance)) / 2 +
    2 * log(200) - lgamma(2) + lgamma(shape) - shape * log(200 + squares / 2)
})

schools <- list(
  J = 8, y = c(28, 8, -3, 7, -1, 1, 18, 12), sigma = c(15, 10, 16, 11, 9, 11, 10, 18)
)
log_half_cauchy <- function(x) log(2 / (pi * 5)) - log1p((x / 5)^2)

brownian <- list(
  N = 30, M = 20, seen = c(1:10, 21:30),
  y = c(
    0.21592641, 0.118771404, -0.07945447, 0.037677474, -0.27885845, -0.1484156,
    -0.3250906, -0.22957903, -0.44110894, -0.09830782, -0.8786016, -0.83736074,
    -0.7384849, -0.8939254, -0.7774566, -0.70238715, -0.87771565, -0.51853573,
    -0.6948214, -0.6202789
  )
)
log_lognormal <- function(x) dnorm(log(x), 0, 2, log = TRUE) - log(x)
log_path <- function(x, a, b) {
  log_lognormal(a) + log_lognormal(b) + normals(x, c(0, x[-30]), a)
}

features <- unname(cbind(scale(as.matrix(sonar[1:60])), 1))
is_rock <- sonar$Class == "R"
signed <- features * ifelse(is_rock, 1, -1)

models <- list(
  regression = list(
    data = list(N = length(y_cars), x = x_cars, y = y_cars),
    exact = exact_regression,
    parameters = list(a = 40, b = 3, tau = 0.005), positive = "tau",
    log_density = function(p) {
      sd <- 1 / sqrt(p$tau)
      normals(y_cars, p$a + p$b * x_cars, sd) + normals(p$a, 40, 2 * sd) +
        normals(p$b, 0, sd) + log(200) * 2 + log(p$tau) - 200 * p$tau
    },
    log_prior = function(p) {
      sd <- 1 / sqrt(p[3])
      normals(p[1], 40, 2 * sd) + normals(p[2], 0, sd) + dgamma(p[3], 2, 200, log = TRUE)
    },
    draw_prior = function() {
      tau <- rgamma(1, 2, 200)
      c(rnorm(2, c(40, 0), c(2, 1) / sqrt(tau)), tau)
    }
  ),
  eight_schools = list(
    data = schools,
    exact = -32.0043, # quadrature, as in bench/stan.R
    parameters = list(mu = 0, tau = 1, z = numeric(8)), positive = "tau",
    log_density = function(p) {
      normals(schools$y, p$mu + p$tau * p$z, schools$sigma) + normals(p$z) +
        normals(p$mu, 0, 5) + log_half_cauchy(p$tau)
    },
    log_prior = function(p) normals(p[1], 0, 5) + log_half_cauchy(p[2]) + normals(p[3:10]),
    draw_prior = function() c(rnorm(1, 0, 5), abs(rcauchy(1, 0, 5)), rnorm(8))
  ),
  normal = list(
    data = list(),
    exact = 0, # N(3, I) in ten dimensions; the prior for BayesianTools is N(0, I)
    parameters = list(x = numeric(10)), positive = character(),
    log_density = function(p) normals(p$x, 3),
    log_prior = function(p) normals(p),
    draw_prior = function() rnorm(10)
  ),
  brownian = list(
    data = brownian,
    exact = 1.188, # as in bench/evidence.R
    parameters = list(x = rep(-0.5, 30), a = 0.1, b = 0.1), positive = c("a", "b"),
    log_density = function(p) {
      log_lognormal(p$a) + log_lognormal(p$b) + normals(p$x[1], 0, p$a) +
        normals(p$x[2:30], p$x[1:29], p$a) +
        normals(brownian$y, p$x[brownian$seen], p$b)
    },
    log_prior = function(p) log_path(p[1:30], p[31], p[32]),
    draw_prior = function() {
      scales <- exp(rnorm(2, 0, 2))
      c(cumsum(rnorm(30, 0, scales[1])), scales)
    }
  ),
  sonar = list(
    data = list(N = 208, K = 61, x = features, y = is_rock),
    exact = -108.357, # as in bench/evidence.R
    parameters = list(beta = numeric(61)), positive = character(),
    log_density = function(p) normals(p$beta) - sum(log1p(exp(-signed %*% p$beta))),
    log_prior = function(p) normals(p),
    draw_prior = function() rnorm(61)
  )
)

# the ways --------------------------------------------------------------------
# Each returns c(log_z, claimed, evaluations).

by_smc <- function(target, seed, reference = reference_gaussian(), ...) {
  fit <- softly(smc(target, seed = seed, reference = reference, ...))
  c(fit$log_z, fit$std_error, sum(fit$runs$n_target_evals))
}

# Of rstan's draws: list(target, evaluations, seconds).
draw_by_rstan <- function(compiled, model, seed) {
  seconds <- seconds_of(
    fit <- softly(rstan::sampling(compiled, model$data, seed = seed, refresh = 0))
  )
  steps <- vapply(rstan::get_sampler_params(fit), function(p) sum(p[, "n_leapfrog__"]), 0)
  list(
    target = as_target(fit, data = model$data), evaluations = sum(steps), seconds = seconds
  )
}

by_bridge <- function(drawn, seed, method) {
  evaluations <- 0
  log_density <- function(x, data) { # of a single point
    evaluations <<- evaluations + 1
    autosmc:::evaluate_target(
      drawn$target, rbind(x),
      gradient = FALSE, unconstrained = TRUE
    )$log_density
  }
  samples <- autosmc:::unconstrained_draws(drawn$target)
  colnames(samples) <- paste0("u", seq_len(ncol(samples)))
  any_bound <- function(bound) stats::setNames(rep(bound, ncol(samples)), colnames(samples))
  set.seed(seed)
  bridge <- bridgesampling::bridge_sampler(
    samples, log_density,
    data = NULL, lb = any_bound(-Inf), ub = any_bound(Inf),
    method = method, silent = TRUE
  )
  claimed <- if (method == "normal") bridgesampling::error_measures(bridge)$cv else NA
  c(bridge$logml, claimed, drawn$evaluations + evaluations)
}

by_bayesian_tools <- function(model, seed) {
  evaluations <- 0
  n <- length(unlist(model$parameters))
  positive <- rep(names(model$parameters), lengths(model$parameters)) %in% model$positive
  log_likelihood <- function(x) {
    evaluations <<- evaluations + 1
    model$log_density(utils::relist(x, model$parameters)) - model$log_prior(x)
  }
  draw <- function(n = 1) t(replicate(n, model$draw_prior()))
  setup <- BayesianTools::createBayesianSetup(
    log_likelihood,
    prior = BayesianTools::createPrior(
      density = model$log_prior, sampler = draw,
      lower = ifelse(positive, 0, -Inf), upper = rep(Inf, n)
    )
  )
  set.seed(seed)
  out <- softly(BayesianTools::runMCMC(setup, "SMC", list(initialParticles = 1000)))
  utils::capture.output(
    z <- softly(BayesianTools::marginalLikelihood(out, method = "Bridge"))
  )
  c(z$ln.ML, NA, evaluations)
}

# The positive parameters by their logarithms, with the log Jacobian.
by_laplace <- function(model) {
  start <- model$parameters
  start[model$positive] <- lapply(start[model$positive], log)
  evaluations <- 0
  tape <- RTMB::MakeADFun(function(p) {
    jacobian <- 0
    for (name in model$positive) {
      jacobian <- jacobian + p[[name]]
      p[[name]] <- exp(p[[name]])
    }
    -model$log_density(p) - jacobian
  }, start, silent = TRUE)
  counted <- function(f) {
    function(x) {
      evaluations <<- evaluations + 1
      f(x)
    }
  }
  found <- stats::nlminb(
    tape$par, counted(tape$fn), counted(tape$gr), control = list(iter.max = 1000, eval.max = 1000)
  )
  hessian <- tape$he(found$par)
  log_det <- as.numeric(determinant(hessian)$modulus)
  is_mode <- all(eigen(hessian, TRUE, only.values = TRUE)$values > 0)
  log_z <- -found$objective + length(found$par) / 2 * log(2 * pi) - log_det / 2
  c(if (is_mode) log_z else NA, NA, evaluations)
}

seconds_of <- function(code) sum(system.time(code)[c(1, 2, 4, 5)])

# one table -------------------------------------------------------------------

has <- function(package) requireNamespace(package, quietly = TRUE)
seeds <- 1:4

rows_of <- function(name) {
  model <- models[[name]]
  file <- file.path("bench", "stan", paste0(name, ".stan"))
  target <- target_stan(file, model$data)
  compiled <- if (has("rstan")) softly(rstan::stan_model(file))
  rows <- list()
  add <- function(method, run, before = function(seed) 0) {
    out <- vapply(seeds, function(seed) {
      value <- rep(NA_real_, 3)
      seconds <- seconds_of(value <- tryCatch(run(seed), error = function(e) {
        message(name, ", ", method, ": ", conditionMessage(e))
        value
      }))
      c(value, seconds + before(seed))
    }, numeric(4))
    error <- out[1, ] - model$exact
    row <- data.frame(
      model = name, method = method, exact = model$exact,
      rmse = sqrt(mean(error^2)), mean_error = mean(error), claimed = median(out[2, ]),
      evaluations = median(out[3, ]), seconds = median(out[4, ])
    )
    print(row, digits = 4)
    rows[[length(rows) + 1]] <<- row
  }
  add("smc", function(seed) by_smc(target, seed))
  if (has("rstan")) {
    drawn <- lapply(seeds, function(seed) draw_by_rstan(compiled, model, seed))
    sampling <- function(seed) drawn[[seed]]$seconds
    add("smc draws", function(seed) {
      value <- by_smc(drawn[[seed]]$target, seed, "draws", scout = FALSE)
      value + c(0, 0, drawn[[seed]]$evaluations)
    }, sampling)
    if (has("bridgesampling")) {
      add("bridge normal", function(s) by_bridge(drawn[[s]], s, "normal"), sampling)
      add("bridge warp3", function(s) by_bridge(drawn[[s]], s, "warp3"), sampling)
    }
  }
  if (has("BayesianTools")) {
    add("BayesianTools", function(seed) by_bayesian_tools(model, seed))
  }
  if (has("RTMB")) {
    library(RTMB)
    add("Laplace", function(seed) by_laplace(model))
  }
  do.call(rbind, rows)
}

names <- commandArgs(TRUE)
if (length(names) == 0) names <- names(models)
table <- do.call(rbind, lapply(names, rows_of))
file <- "bench/results/peers.csv"
if (file.exists(file)) { # of the models that were not named
  kept <- read.csv(file)
  table <- rbind(kept[!kept$model %in% names, ], table)
}
table[-(1:2)] <- lapply(table[-(1:2)], signif, 6)
write.csv(table, file, row.names = FALSE, quote = FALSE)
