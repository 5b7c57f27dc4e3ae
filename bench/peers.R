# smc() beside other ways to the evidence in R, on eight models of known evidence, four seeds
# each. Each way is run as its own pages say, by its defaults:
#
# * `smc`, of a Stan program by its defaults;
# * `stan`: rstan's sampler (four chains of 2,000 iterations). From its draws come
#   `bridge normal` and `bridge warp3`, by bridgesampling with the log density of the Stan
#   program, and `smc draws`, by smc(reference = "draws");
# * `BayesianTools`: its SMC sampler (1,000 particles, 10 iterations), and the evidence by
#   marginalLikelihood(method = "Bridge") from its draws;
# * `ernest`: nested sampling (500 live points);
# * `Laplace`: the mode and the Hessian of RTMB's tape, bounded variables on the log scale.
#
# Rscript bench/peers.R [MODEL...] [WAY...] runs what is named, all models or all ways where
# none is: `Rscript bench/peers.R smc` renews the rows of smc() alone, and keeps the others.
# What takes a package that is missing is left out, with a message.
#
# In the table `failed` is the number of seeds that gave no estimate, which nested sampling does
# not either where it has not ended after `most_seconds` of processor time; `rmse` is the error of log Z
# over the others, `mean_error` its mean, `claimed` the median of what the method says of it
# (NA where it says nothing), `evaluations` those of the log density or of its gradient,
# `seconds` those of processor time, with the sampling that bridgesampling needs, and without
# compiling.
source("bench/common.R")
source("bench/programs.R")

softly <- function(code) suppressWarnings(suppressMessages(code))
normals <- function(x, mean = 0, sd = 1) sum(dnorm(x, mean, sd, log = TRUE))

# Models: the `data` of the Stan program of that name; `exact`, the log evidence; on the scale
# of the parameters `log_density` (a function of a list, with all constants of the Stan
# program), `parameters` and `positive` (names). For the ways that ask for a prior,
# `from_cube`, a function of independent uniform numbers, makes a draw from it, and `log_prior`
# is its normalised density; the log likelihood is what is left of the log density.

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

# The Stan program has the whole Cauchy density on the positive half.
log_cauchy <- function(x) -log(pi * 5) - log1p((x / 5)^2)

brownian <- list(
  N = 30, M = 20, seen = c(1:10, 21:30),
  y = c(
    0.21592641, 0.118771404, -0.07945447, 0.037677474, -0.27885845, -0.1484156,
    -0.3250906, -0.22957903, -0.44110894, -0.09830782, -0.8786016, -0.83736074,
    -0.7384849, -0.8939254, -0.7774566, -0.70238715, -0.87771565, -0.51853573,
    -0.6948214, -0.6202789
  )
)
log_lognormal <- function(x, mean = 0, sd = 2) dnorm(log(x), mean, sd, log = TRUE) - log(x)
log_path <- function(x, a, b) {
  log_lognormal(a) + log_lognormal(b) + normals(x, c(0, x[-30]), a)
}

signed <- features * ifelse(programs$sonar$data$y, 1, -1)

distance <- outer(gp$x, gp$x, "-")^2
identity <- diag(gp$N)
log_exponential <- function(x, rate) log(rate) - rate * x
log_lines <- function(p) {
  normals(p[1], 24, 5) + normals(p[2], 0, 2) + sum(log_exponential(p[3:4], 0.5)) +
    normals(p[-(1:4)])
}

models <- list(
  regression = list(
    data = list(N = length(y_cars), x = x_cars, y = y_cars),
    exact = function() exact_regression,
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
    from_cube = function(u) {
      tau <- qgamma(u[3], 2, 200)
      c(qnorm(u[1:2], c(40, 0), c(2, 1) / sqrt(tau)), tau)
    }
  ),
  eight_schools = list(
    data = schools,
    exact = exact_schools,
    parameters = list(mu = 0, tau = 1, z = numeric(8)), positive = "tau",
    log_density = function(p) {
      normals(schools$y, p$mu + p$tau * p$z, schools$sigma) + normals(p$z) +
        normals(p$mu, 0, 5) + log_cauchy(p$tau)
    },
    log_prior = function(p) {
      normals(p[1], 0, 5) + log(2) + log_cauchy(p[2]) + normals(p[3:10])
    },
    from_cube = function(u) c(qnorm(u[1], 0, 5), qcauchy((1 + u[2]) / 2, 0, 5), qnorm(u[3:10]))
  ),
  normal = list(
    data = list(),
    exact = function() 0, # N(3, I) in ten dimensions; the prior is N(0, I)
    parameters = list(x = numeric(10)), positive = character(),
    log_density = function(p) normals(p$x, 3),
    log_prior = function(p) normals(p),
    from_cube = qnorm
  ),
  brownian = list(
    data = brownian,
    exact = function() truths$brownian,
    parameters = list(x = rep(-0.5, 30), a = 0.1, b = 0.1), positive = c("a", "b"),
    log_density = function(p) {
      log_lognormal(p$a) + log_lognormal(p$b) + normals(p$x[1], 0, p$a) +
        normals(p$x[2:30], p$x[1:29], p$a) +
        normals(brownian$y, p$x[brownian$seen], p$b)
    },
    log_prior = function(p) log_path(p[1:30], p[31], p[32]),
    from_cube = function(u) {
      scales <- qlnorm(u[31:32], 0, 2)
      c(cumsum(qnorm(u[1:30], 0, scales[1])), scales)
    }
  ),
  sonar = list(
    data = programs$sonar$data,
    exact = programs$sonar$exact,
    parameters = list(beta = numeric(61)), positive = character(),
    log_density = function(p) normals(p$beta) - sum(log1p(exp(-signed %*% p$beta))),
    log_prior = function(p) normals(p),
    from_cube = qnorm
  ),
  gp = list(
    data = gp,
    exact = exact_gp,
    parameters = list(rho = 1, alpha = 1, sigma = 0.4), positive = c("rho", "alpha", "sigma"),
    log_density = function(p) {
      K <- p$alpha^2 * exp(-distance / (2 * p$rho^2)) + p$sigma^2 * identity
      -gp$N / 2 * log(2 * pi) - determinant(K)$modulus / 2 - sum(gp$y * solve(K, gp$y)) / 2 +
        sum(log_lognormal(c(p$rho, p$alpha, p$sigma), c(0, 0, -1), 0.5))
    },
    log_prior = function(p) sum(log_lognormal(p, c(0, 0, -1), 0.5)),
    from_cube = function(u) qlnorm(u, c(0, 0, -1), 0.5)
  ),
  multilevel = list(
    data = children,
    exact = exact_multilevel,
    parameters = list(a = 24, b = 0.5, tau = 1, sigma = 1, z = numeric(27)),
    positive = c("tau", "sigma"),
    log_density = function(p) {
      line <- p$a + p$b * children$x + p$tau * p$z[children$group]
      normals(children$y, line, p$sigma) + log_lines(c(p$a, p$b, p$tau, p$sigma, p$z))
    },
    log_prior = log_lines,
    from_cube = function(u) {
      c(qnorm(u[1:2], c(24, 0), c(5, 2)), qexp(u[3:4], 0.5), qnorm(u[-(1:4)]))
    }
  ),
  ode = list(
    data = decay,
    exact = exact_ode,
    parameters = list(rate = 0.3, sigma = 0.4), positive = c("rate", "sigma"),
    # the solution, which the Stan program finds by its solver
    log_density = function(p) {
      normals(decay$y, 10 * exp(-p$rate * decay$t), p$sigma) +
        sum(log_lognormal(c(p$rate, p$sigma), -1, 1))
    },
    log_prior = function(p) sum(log_lognormal(p, -1, 1)),
    from_cube = function(u) qlnorm(u, -1, 1)
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
  # looked up once, since that takes longer than a call
  evaluators <- autosmc:::with_addresses(autosmc:::target_interface(drawn$target))
  log_density <- function(x, data) { # of a single point
    evaluations <<- evaluations + 1
    autosmc:::evaluate_target(
      drawn$target, rbind(x),
      gradient = FALSE, unconstrained = TRUE, evaluators = evaluators
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

# The log likelihood, a function of a vector, and how often it was called.
counted_likelihood <- function(model) {
  evaluations <- 0
  name <- rep(names(model$parameters), lengths(model$parameters))
  places <- split(seq_along(name), factor(name, names(model$parameters)))
  list(
    at = function(x) {
      evaluations <<- evaluations + 1
      # relist() would take most of the time
      model$log_density(lapply(places, function(i) x[i])) - model$log_prior(x)
    },
    count = function() evaluations
  )
}

by_bayesian_tools <- function(model, seed) {
  n <- length(unlist(model$parameters))
  positive <- rep(names(model$parameters), lengths(model$parameters)) %in% model$positive
  likelihood <- counted_likelihood(model)
  setup <- BayesianTools::createBayesianSetup(
    likelihood$at,
    prior = BayesianTools::createPrior(
      density = model$log_prior,
      sampler = function(m = 1) t(replicate(m, model$from_cube(runif(n)))),
      lower = ifelse(positive, 0, -Inf), upper = rep(Inf, n)
    )
  )
  set.seed(seed)
  out <- softly(BayesianTools::runMCMC(setup, "SMC", list(initialParticles = 1000)))
  utils::capture.output(
    z <- softly(BayesianTools::marginalLikelihood(out, method = "Bridge"))
  )
  c(z$ln.ML, NA, likelihood$count())
}

most_seconds <- 300

by_ernest <- function(model, seed) {
  setTimeLimit(cpu = most_seconds, transient = TRUE)
  on.exit(setTimeLimit())
  n <- length(unlist(model$parameters))
  likelihood <- counted_likelihood(model)
  prior <- ernest::create_prior(point_fn = model$from_cube, names = paste0("p", seq_len(n)))
  sampler <- softly(ernest::ernest_sampler(likelihood$at, prior, seed = seed))
  run <- softly(ernest::generate(sampler, show_progress = FALSE))
  last <- function(x) x[length(x)]
  c(last(run$log_evidence), last(run$log_evidence_err), likelihood$count())
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
    tape$par, counted(tape$fn), counted(tape$gr),
    control = list(iter.max = 1000, eval.max = 1000)
  )
  hessian <- tape$he(found$par)
  log_det <- as.numeric(determinant(hessian)$modulus)
  is_mode <- all(eigen(hessian, TRUE, only.values = TRUE)$values > 0)
  log_z <- -found$objective + length(found$par) / 2 * log(2 * pi) - log_det / 2
  c(if (is_mode) log_z else NA, NA, evaluations)
}

seconds_of <- function(code) sum(system.time(code)[c(1, 2, 4, 5)])

# one table -------------------------------------------------------------------

needs <- list(
  smc = character(), stan = c("rstan", "bridgesampling"), BayesianTools = "BayesianTools",
  ernest = "ernest", Laplace = "RTMB"
)
rows_of_way <- list(stan = c("smc draws", "bridge normal", "bridge warp3"))
seeds <- 1:4

# run: a function of a seed, as above. before: seconds that were spent before, by seed.
row_of <- function(name, method, run, before = numeric(length(seeds))) {
  exact <- models[[name]]$exact()
  out <- vapply(seeds, function(seed) {
    value <- rep(NA_real_, 3)
    seconds <- seconds_of(value <- tryCatch(run(seed), error = function(e) {
      message(name, ", ", method, ": ", conditionMessage(e))
      value
    }))
    cat(sprintf("%s, %s, seed %d: log Z %.4f (%.4f)\n", name, method, seed, value[1], value[2]))
    c(value, seconds + before[seed])
  }, numeric(4))
  ok <- is.finite(out[1, ])
  error <- out[1, ok] - exact
  row <- data.frame(
    model = name, method = method, exact = exact, failed = sum(!ok),
    rmse = sqrt(mean(error^2)), mean_error = mean(error), claimed = median(out[2, ok]),
    evaluations = median(out[3, ok]), seconds = median(out[4, ])
  )
  print(row, digits = 4)
  row
}

rows_of <- function(name, way) {
  model <- models[[name]]
  file <- file.path("bench", "stan", paste0(name, ".stan"))
  if (way == "smc") {
    target <- target_stan(file, model$data)
    row_of(name, way, function(seed) by_smc(target, seed))
  } else if (way == "stan") {
    compiled <- softly(rstan::stan_model(file))
    drawn <- lapply(seeds, function(seed) draw_by_rstan(compiled, model, seed))
    seconds <- vapply(drawn, `[[`, 0, "seconds")
    rbind(
      row_of(name, "smc draws", function(seed) {
        value <- by_smc(drawn[[seed]]$target, seed, "draws", scout = FALSE)
        value + c(0, 0, drawn[[seed]]$evaluations)
      }, seconds),
      row_of(name, "bridge normal", function(s) by_bridge(drawn[[s]], s, "normal"), seconds),
      row_of(name, "bridge warp3", function(s) by_bridge(drawn[[s]], s, "warp3"), seconds)
    )
  } else if (way == "BayesianTools") {
    row_of(name, way, function(seed) by_bayesian_tools(model, seed))
  } else if (way == "ernest") {
    row_of(name, way, function(seed) by_ernest(model, seed))
  } else {
    library(RTMB)
    row_of(name, way, function(seed) by_laplace(model))
  }
}

# In the order of the table.
methods <- unlist(lapply(names(needs), function(way) {
  if (is.null(rows_of_way[[way]])) way else rows_of_way[[way]]
}))

asked <- commandArgs(TRUE)
unknown <- setdiff(asked, c(names(models), names(needs)))
if (length(unknown) > 0) stop("neither a model nor a way: ", toString(unknown))
named <- function(all) if (any(asked %in% all)) intersect(all, asked) else all
for (way in named(names(needs))) {
  missing <- Filter(function(p) !requireNamespace(p, quietly = TRUE), needs[[way]])
  if (length(missing) > 0) {
    message(way, " is left out: ", toString(missing), " is not installed")
  } else {
    for (name in named(names(models))) { # each is kept as it is done
      keep_rows(rows_of(name, way), "peers", list(model = names(models), method = methods))
    }
  }
}
