# The paper's comparison with end-to-end optimisation: annealing without resampling, whose
# step sizes, temperatures and (KLMC) refreshment rate are optimised together, by Adam on
# the evidence bound E[log w] of 32 particles, through the gradients of the whole path by
# RTMB; T = 32 steps, 5,000 iterations, three learning rates. As in the paper
#
# * a network of one hidden layer (32 units, ReLU) takes t / T to a step size for each
#   variable, below 0.1 for LMC and 0.25 for KLMC;
# * temperatures are cumulative sums of positive increments, from equal ones on;
# * the refreshment rate is one for all steps;
# * the reference is N(0, I); `end_to_end_vi` starts from a mean-field normal distribution
#   fitted before, by Adam on its own evidence bound.
#
# A row of results/end_to_end.csv is an estimate with 1,024 particles, which does not count;
# `n_gradients` are the gradients of the target up to there, and as many products with its
# Hessian, which count as much. Iteration 36 of the optimisation has cost as many as the
# adaptive method, 250 is a 20th of it. `adaptive` is the paper's method with as many steps.
#
#   Rscript bench/end_to_end.R [--only REGEX] [--seeds 1:4]
#   Rscript bench/end_to_end.R --check     tests the formulas: minutes
source("bench/paper_jobs.R")
library(RTMB)
# Products of matrices and sums stay whole on the tape: a seventh of the time on Sonar.
TapeConfig(atomic = "enable", vectorize = "enable")

n_steps <- 32
n_batch <- 32
n_estimate <- 1024
n_hidden <- 32
checkpoints <- c(36, 250, 1250, 5000)
learning_rates <- c(1e-2, 1e-3, 1e-4)
largest_step <- c(lmc = 0.1, klmc = 0.25)

# models ------------------------------------------------------------------------

# Each takes points, an n x d matrix of numbers or of RTMB's, to their log densities (n x 1)
# and gradients (n x d), which are written out so that RTMB differentiates them, too.
models <- list()

sum_rows <- function(x) x %*% matrix(1, ncol(x), 1)
across <- function(column, d) column %*% matrix(1, 1, d)
logistic <- function(x) 1 / (1 + exp(-x))
softplus <- function(x) log(1 + exp(-abs(x))) + (x + abs(x)) / 2

models$gaussian <- list(d = 2, f = function(x) {
  list(
    log = -sum_rows((x - 3)^2) / 2 - ncol(x) / 2 * log(2 * pi),
    gradient = 3 - x
  )
})

models$funnel <- list(d = 10, f = function(x) {
  y <- x[, 1, drop = FALSE]
  rest <- x[, -1, drop = FALSE]
  m <- ncol(rest)
  squares <- sum_rows(rest^2) * exp(-y)
  list(
    log = -y^2 / 18 - log(3) - squares / 2 - m / 2 * y - (m + 1) / 2 * log(2 * pi),
    gradient = cbind(-y / 9 + squares / 2 - m / 2, -rest * across(exp(-y), m))
  )
})

models$brownian <- local({
  observed <- c(1:10, 21:30)
  y <- c(
    0.21592641, 0.118771404, -0.07945447, 0.037677474, -0.27885845, -0.1484156, -0.3250906,
    -0.22957903, -0.44110894, -0.09830782, -0.8786016, -0.83736074, -0.7384849, -0.8939254,
    -0.7774566, -0.70238715, -0.87771565, -0.51853573, -0.6948214, -0.6202789
  )
  difference <- diag(30)
  difference[cbind(1:29, 2:30)] <- -1
  pick <- diag(30)[, observed]
  scale <- function(theta) {
    a <- softplus(theta)
    list(
      a = a, # lognormal prior, with the Jacobian of softplus
      log = -log(a) - log(2) - log(2 * pi) / 2 - log(a)^2 / 8 - softplus(-theta),
      slope = logistic(theta),
      prior_gradient = (-1 / a - log(a) / (4 * a)) * logistic(theta) + logistic(-theta)
    )
  }
  list(d = 32, f = function(x) {
    walk <- x[, 1:30, drop = FALSE]
    a <- scale(x[, 31, drop = FALSE])
    b <- scale(x[, 32, drop = FALSE])
    steps <- walk %*% difference
    errors <- matrix(1, nrow(x), 1) %*% t(y) - walk %*% pick
    s2 <- sum_rows(steps^2)
    e2 <- sum_rows(errors^2)
    list(
      log = -s2 / (2 * a$a^2) - 30 * log(a$a) - e2 / (2 * b$a^2) - 20 * log(b$a) -
        25 * log(2 * pi) + a$log + b$log,
      gradient = cbind(
        (errors * across(1 / b$a^2, 20)) %*% t(pick) -
          (steps * across(1 / a$a^2, 30)) %*% t(difference),
        (s2 / a$a^3 - 30 / a$a) * a$slope + a$prior_gradient,
        (e2 / b$a^3 - 20 / b$a) * b$slope + b$prior_gradient
      )
    )
  })
})

models$sonar <- local({
  design <- cbind(scale(as.matrix(sonar[1:60])), 1)
  is_rock <- matrix(as.double(sonar[[61]] == "R"), 1)
  list(d = 61, f = function(x) {
    eta <- x %*% t(design)
    truth <- matrix(1, nrow(x), 1) %*% is_rock
    list(
      log = sum_rows(truth * eta - softplus(eta)) - sum_rows(x^2) / 2 - 61 / 2 * log(2 * pi),
      gradient = (truth - logistic(eta)) %*% design - x
    )
  })
})

# The model in coordinates in which N(mean, sd^2) is N(0, I).
whitened <- function(model, mean, sd) {
  list(d = model$d, f = function(z) {
    ones <- matrix(1, nrow(z), 1)
    at <- model$f(ones %*% t(mean) + z * (ones %*% t(sd)))
    list(log = at$log + sum(log(sd)), gradient = at$gradient * (ones %*% t(sd)))
  })
}

# the path ------------------------------------------------------------------------

# The parameters that are optimised, as a vector: the network, temperatures, refreshment.
start_parameters <- function(d) {
  c(
    rnorm(n_hidden, sd = sqrt(2 / (1 + n_hidden))), rep(0, n_hidden),
    rnorm(n_hidden * d, sd = sqrt(2 / (d + n_hidden))), rep(0, d),
    rep(0, n_steps), 0
  )
}

read_parameters <- function(theta, d, kernel) {
  at <- 0
  take <- function(rows, columns) {
    value <- theta[at + seq_len(rows * columns)]
    at <<- at + rows * columns
    dim(value) <- c(rows, columns)
    value
  }
  time <- matrix(seq_len(n_steps) / n_steps)
  ones <- matrix(1, n_steps, 1)
  hidden <- time %*% take(1, n_hidden) + ones %*% take(1, n_hidden)
  hidden <- (hidden + abs(hidden)) / 2
  output <- hidden %*% take(n_hidden, d) + ones %*% take(1, d)
  increments <- logistic(take(n_steps, 1))
  sums <- lower.tri(diag(n_steps), diag = TRUE) %*% increments
  list(
    step_size = largest_step[[kernel]] * logistic(output),
    lambda = sums / sum(increments),
    refresh_rate = 0.98 * logistic(take(1, 1)) + 0.01
  )
}

# Standard normals for n paths: the start (twice for KLMC: velocities), and each step.
n_noise <- function(n, d, kernel) n * d * (n_steps + if (kernel == "klmc") 2 else 1)

# The log weights of n paths, n x 1.
log_weights <- function(theta, noise, n, model, kernel) {
  d <- model$d
  slab <- function(k) {
    value <- noise[(k - 1) * n * d + seq_len(n * d)]
    dim(value) <- c(n, d)
    value
  }
  p <- read_parameters(theta, d, kernel)
  path <- if (kernel == "lmc") lmc_path else klmc_path
  path(p, slab, n, model)
}

# sum of the log densities of N(0, 1)
log_normal <- function(x) -sum_rows(x^2) / 2 - ncol(x) / 2 * log(2 * pi)

# (1 - lambda) times the gradient of the reference, and lambda times that of the target
annealed_gradient <- function(x, gradient, lambda) {
  weight <- matrix(1, nrow(x), 1) %*% lambda
  across(weight, ncol(x)) * (gradient + x) - x
}

# With the time-correct backward kernel; at the first step the reference itself, which
# cancels the density of the start.
lmc_path <- function(p, slab, n, model) {
  ones <- matrix(1, n, 1)
  x <- slab(1)
  at <- model$f(x)
  total <- matrix(0, n, 1)
  for (t in seq_len(n_steps)) {
    h <- ones %*% p$step_size[t, , drop = FALSE]
    noise <- slab(t + 1)
    new <- x + h * annealed_gradient(x, at$gradient, p$lambda[t, , drop = FALSE]) +
      sqrt(2 * h) * noise
    forward <- log_normal(noise) - sum_rows(log(2 * h)) / 2
    at <- model$f(new)
    total <- total - forward
    if (t > 1) {
      before <- ones %*% p$step_size[t - 1, , drop = FALSE]
      slope <- annealed_gradient(new, at$gradient, p$lambda[t - 1, , drop = FALSE])
      back <- (x - new - before * slope) / sqrt(2 * before)
      total <- total + log_normal(back) - sum_rows(log(2 * before)) / 2
    }
    x <- new
  }
  total + at$log
}

klmc_path <- function(p, slab, n, model) {
  ones <- matrix(1, n, 1)
  x <- slab(1)
  v <- slab(2)
  at <- model$f(x)
  total <- -log_normal(x)
  rate <- ones %*% p$refresh_rate
  for (t in seq_len(n_steps)) {
    h <- ones %*% p$step_size[t, , drop = FALSE]
    lambda <- p$lambda[t, , drop = FALSE]
    half <- across(sqrt(1 - rate^2), model$d) * v + across(rate, model$d) * slab(t + 2)
    v <- half + h / 2 * annealed_gradient(x, at$gradient, lambda)
    x <- x + h * v
    at <- model$f(x)
    v <- v + h / 2 * annealed_gradient(x, at$gradient, lambda)
    total <- total + sum_rows(half^2) / 2 - sum_rows(v^2) / 2
  }
  total + at$log
}

estimate <- function(theta, model, kernel, n = n_estimate) {
  noise <- rnorm(n_noise(n, model$d, kernel))
  weights <- drop(log_weights(theta, noise, n, model, kernel))
  if (!all(is.finite(weights))) weights[!is.finite(weights)] <- -Inf
  top <- max(weights)
  if (top == -Inf) -Inf else top + log(mean(exp(weights - top)))
}

# optimisation ----------------------------------------------------------------------

# Climbs by Adam: gradient(x) is random. An iteration whose gradient is not finite is left
# out. at_checkpoint(iteration, x) is called at those given.
adam <- function(x, gradient, rate, n_iterations, checkpoints, at_checkpoint) {
  first <- second <- double(length(x))
  for (i in seq_len(n_iterations)) {
    g <- gradient(x)
    if (all(is.finite(g))) {
      first <- 0.9 * first + 0.1 * g
      second <- 0.999 * second + 0.001 * g^2
      x <- x + rate * (first / (1 - 0.9^i)) / (sqrt(second / (1 - 0.999^i)) + 1e-8)
    }
    if (i %in% checkpoints) at_checkpoint(i, x)
  }
  x
}

# The gradient of the evidence bound with fresh noise, by a tape of the whole path.
bound_gradient <- function(theta, model, kernel) {
  size <- n_noise(n_batch, model$d, kernel)
  own <- seq_along(theta)
  tape <- MakeTape(function(x) {
    sum(log_weights(x[own], x[-own], n_batch, model, kernel)) / n_batch
  }, c(theta, rnorm(size)))
  function(theta) tape$jacobian(c(theta, rnorm(size)))[own]
}

gradients_an_iteration <- 2 * n_batch * (n_steps + 1)

# A mean-field normal distribution: Adam on its evidence bound, from N(0, I).
fit_mean_field <- function(model, rate = 1e-2, n_iterations = 5000) {
  d <- model$d
  own <- seq_len(2 * d)
  tape <- MakeTape(function(x) {
    noise <- x[-own]
    dim(noise) <- c(n_batch, d)
    mean <- x[seq_len(d)]
    log_sd <- x[d + seq_len(d)]
    dim(mean) <- dim(log_sd) <- c(1, d)
    ones <- matrix(1, n_batch, 1)
    points <- ones %*% mean + noise * (ones %*% exp(log_sd))
    sum(model$f(points)$log) / n_batch + sum(log_sd)
  }, double(2 * d + n_batch * d))
  x <- adam(
    double(2 * d), function(x) tape$jacobian(c(x, rnorm(n_batch * d)))[own], rate,
    n_iterations, NULL, NULL
  )
  list(mean = x[seq_len(d)], sd = exp(x[-seq_len(d)]), n_gradients = n_batch * n_iterations)
}

# jobs ------------------------------------------------------------------------------

optimised_rows <- function(job) {
  set.seed(job$seed)
  model <- models[[job$problem]]
  before <- 0
  if (job$system == "end_to_end_vi") {
    normal <- fit_mean_field(model)
    model <- whitened(model, normal$mean, normal$sd)
    before <- normal$n_gradients
  }
  theta <- start_parameters(model$d)
  rows <- list()
  adam(
    theta, bound_gradient(theta, model, job$kernel), job$learning_rate, max(checkpoints),
    checkpoints, function(iteration, theta) {
      rows[[length(rows) + 1]] <<- cbind(
        job,
        iteration = iteration, n_gradients = before + iteration * gradients_an_iteration,
        log_z = estimate(theta, model, job$kernel), row.names = NULL
      )
    }
  )
  do.call(rbind, rows)
}

adaptive_row <- function(job) {
  value <- unless_dead(
    {
      fit <- smc_paper(
        targets[[job$problem]](),
        kernel = paper_kernels[[job$kernel]], n_steps = n_steps,
        tuner = tuner_kl(search = "golden"), seed = job$seed
      )
      c(fit$runs$n_target_evals[fit$runs$run == "adapt"], fit$log_z)
    },
    c(NA, -Inf)
  )
  cbind(job, iteration = NA, n_gradients = value[1], log_z = value[2])
}

end_to_end_jobs <- function(problem, seeds) {
  jobs <- function(system, rates, seeds) {
    expand.grid(
      problem = problem, kernel = names(paper_kernels), system = system,
      learning_rate = rates, seed = seeds, stringsAsFactors = FALSE
    )
  }
  rbind(
    jobs("adaptive", NA, seeds),
    jobs(c("end_to_end", "end_to_end_vi"), learning_rates, seeds)
  )
}

# Tests of the formulas, each against something that is known otherwise.
check_formulas <- function() {
  set.seed(1)
  for (name in names(models)) {
    model <- models[[name]]
    x <- matrix(rnorm(3 * model$d), 3) / 2
    slopes <- vapply(seq_len(model$d), function(j) {
      e <- 1e-5 * (col(x) == j)
      drop(model$f(x + e)$log - model$f(x - e)$log) / 2e-5
    }, double(3))
    agree <- all.equal(
      model$f(x)$gradient, slopes,
      tolerance = 1e-6, check.attributes = FALSE
    )
    stopifnot(isTRUE(agree))
    # the package's own targets differ at most by the order of the variables
    if (name != "funnel") {
      target <- if (name == "gaussian") target_gaussian(2, mean = 3) else targets[[name]]()
      own <- autosmc:::evaluate_target(target, x)
      stopifnot(isTRUE(all.equal(drop(model$f(x)$log), own$log_density, tolerance = 1e-8)))
    }
  }
  # With the paper's limit for LMC the weight of the first step has no variance, since its
  # backward kernel is the reference: for N(0, I) h has to be above 2 - sqrt(3) = 0.27 there.
  largest_step["lmc"] <<- 1
  for (kernel in names(paper_kernels)) {
    model <- models$gaussian
    theta <- start_parameters(model$d)
    # weights of paths are unbiased for any parameters: the mean of w is 1
    n <- 2e5
    w <- exp(drop(log_weights(theta, rnorm(n_noise(n, model$d, kernel)), n, model, kernel)))
    z <- (mean(w) - 1) / (sd(w) / sqrt(n))
    cat(kernel, "mean weight", mean(w), "in standard errors from 1:", z, "\n")
    stopifnot(abs(z) < 4.5)
    # the tape's gradient, against differences with the same noise
    noise <- rnorm(n_noise(n_batch, model$d, kernel))
    bound <- function(theta) mean(log_weights(theta, noise, n_batch, model, kernel))
    tape <- MakeTape(function(x) {
      sum(log_weights(x, noise, n_batch, model, kernel)) / n_batch
    }, theta)
    by_differences <- vapply(seq_along(theta), function(j) {
      e <- 1e-5 * (seq_along(theta) == j)
      (bound(theta + e) - bound(theta - e)) / 2e-5
    }, 0)
    agree <- all.equal(drop(tape$jacobian(theta)), by_differences, tolerance = 1e-5)
    stopifnot(isTRUE(agree))
    # optimisation raises the bound and comes near to log Z = 0
    value <- function(theta) {
      mean(log_weights(theta, rnorm(n_noise(1e4, model$d, kernel)), 1e4, model, kernel))
    }
    found <- adam(theta, bound_gradient(theta, model, kernel), 1e-2, 500, NULL, NULL)
    cat(
      kernel, "bound before", value(theta), "and after", value(found),
      "log Z", estimate(found, model, kernel), "\n"
    )
    stopifnot(value(found) > value(theta))
  }
}

if ("--check" %in% commandArgs(TRUE)) {
  check_formulas()
} else {
  options <- paper_options(seeds = "1:4")
  for (problem in grep(options$only, c("funnel", "brownian", "sonar"), value = TRUE)) {
    run_jobs(
      end_to_end_jobs(problem, options$seeds), "end_to_end",
      function(job) if (job$system == "adaptive") adaptive_row(job) else optimised_rows(job)
    )
  }
}
