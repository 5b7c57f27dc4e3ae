# smc() by its defaults, four seeds a target, a row a fit. Afterwards run
# `Rscript bench/tables.R`, for bench/README.md.
source("bench/common.R")

# The regression of vignette("models"), whose prior is conjugate.
x <- cars$speed - mean(cars$speed)
y <- cars$dist
regression <- function() {
  target_rtmb(
    function(p) {
      sd <- 1 / sqrt(p$tau)
      sum(dnorm(y, p$beta[1] + p$beta[2] * x, sd, log = TRUE)) +
        sum(dnorm(p$beta, c(40, 0), c(2, 1) * sd, log = TRUE)) +
        dgamma(p$tau, shape = 2, scale = 1 / 200, log = TRUE)
    },
    parameters = list(beta = c(0, 0), tau = 1),
    lower = c(tau = 0)
  )
}
regression_truth <- function() {
  prior <- diag(c(4, 1))
  design <- cbind(1, x)
  variance <- solve(solve(prior) + crossprod(design))
  location <- variance %*% (solve(prior, c(40, 0)) + crossprod(design, y))
  squares <- sum((y - design %*% location)^2) + sum((location - c(40, 0))^2 / diag(prior))
  shape <- 2 + length(y) / 2
  -length(y) / 2 * log(2 * pi) + log(det(variance) / det(prior)) / 2 +
    2 * log(200) - lgamma(2) + lgamma(shape) - shape * log(200 + squares / 2)
}

cases <- list(
  Brownian = list(targets$brownian, truths$brownian),
  Sonar = list(targets$sonar, truths$sonar),
  Funnel = list(targets$funnel, truths$funnel)
)
for (d in c(2, 32, 64, 128)) {
  cases[[sprintf("N(3, I) d = %d", d)]] <- list(local({
    dim <- d
    function() target_gaussian(dim, mean = 3)
  }), 0)
}
cases$cars <- list(regression, regression_truth())

rows <- lapply(names(cases), function(name) {
  target <- cases[[name]][[1]]()
  fits <- parallel::mclapply(1:4, function(seed) {
    warned <- FALSE
    fit <- withCallingHandlers(smc(target, seed = seed), warning = function(w) {
      warned <<- warned || doubts_evidence(w)
      tryInvokeRestart("muffleWarning")
    })
    data.frame(
      target = sub(",", "", name), d = target$dim, truth = cases[[name]][[2]],
      seed = seed, log_z = fit$log_z, std_error = fit$std_error,
      smc_std_error = fit$estimates$std_error[fit$estimates$method == "smc"],
      n_target_evals = sum(fit$runs$n_target_evals), warned = warned
    )
  }, mc.cores = if (.Platform$OS.type == "windows") 1 else parallel::detectCores())
  do.call(rbind, fits)
})
keep(do.call(rbind, rows), "defaults")
