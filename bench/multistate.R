# Whether an estimate from draws at several temperatures (Shirts and Chodera, 2008) has a smaller
# error than the bridge, which takes those of the reference and of the target alone. The
# reference is the scout's best normal distribution; the draws of each temperature are of runs of
# their own, so that they share no ancestors, as those of one run do.
source("bench/suite.R")
source("bench/models.R")

temperatures <- c(0, 0.125, 0.25, 0.5, 1)
estimates <- list(bridge = c(1, 5), three = c(1, 3, 5), five = 1:5)
n_draws <- 2048

shapes <- suite_models("shapes")
cases <- list(
  sonar = list(target = target_sonar, truth = truths$sonar),
  schools = shapes[["schools_log-normal_non_centred"]],
  gamma_poisson = shapes[["gamma_poisson_d5"]]
)

log_standard <- function(z) -rowSums(z^2) / 2 - ncol(z) / 2 * log(2 * pi)

# The target in the coordinates in which the scout's best normal is standard.
in_reference <- function(target) {
  normal <- autosmc:::normal_of(smc_scout(target, seed = 1)$references$best, target$dim)
  evaluate <- autosmc:::counted_density(target)
  at <- function(z, gradient) evaluate(autosmc:::to_user(normal, z), gradient)
  list(
    dim = target$dim,
    log_density = function(z) at(z, FALSE)$log_density + autosmc:::log_det(normal),
    gradient = function(z) autosmc:::pull_back_rows(normal, at(z, TRUE)$gradient)
  )
}

# Draws at a temperature, as list(reference, target, weight): the two log densities at them.
draws_at <- function(p, temperature, seed) {
  z <- matrix(rnorm(n_draws * p$dim), n_draws)
  weight <- rep(1 / n_draws, n_draws)
  if (temperature > 0) {
    tempered <- target_function(
      function(z) (1 - temperature) * log_standard(z) + temperature * p$log_density(z), p$dim,
      gradient = function(z) -(1 - temperature) * z + temperature * p$gradient(z),
      vectorized = TRUE
    )
    fit <- suppressWarnings(smc(
      tempered,
      whiten = FALSE, rounds = 0, n_steps = 8, n_particles = n_draws / 4, islands = 4,
      kernel = kernel_mala(), seed = seed
    ))
    z <- fit$particles
    weight <- exp(fit$log_weights)
  }
  list(reference = log_standard(z), target = p$log_density(z), weight = weight)
}

# Log Z of the last of the temperatures, by iteration; that of the first is 0. Weighted draws count
# for as many as they are worth.
multistate <- function(draws, temperatures) {
  all <- function(what) unlist(lapply(draws, `[[`, what))
  worth <- vapply(draws, function(x) 1 / sum(x$weight^2), 0)
  log_count <- log(all("weight") * rep(worth, lengths(lapply(draws, `[[`, "weight"))))
  u <- outer(all("reference"), 1 - temperatures) + outer(all("target"), temperatures)
  log_z <- 0 * temperatures
  for (iteration in 1:2000) {
    mixture <- apply(sweep(u, 2, log(worth) - log_z, "+"), 1, log_sum_exp)
    now <- apply(log_count + u - mixture, 2, log_sum_exp)
    now <- now - now[1]
    if (max(abs(now - log_z)) < 1e-9) break
    log_z <- now
  }
  now[length(now)]
}

rows_of <- function(name) {
  p <- in_reference(cases[[name]]$target())
  errors <- replicate_seeds(1:16, function(seed) {
    set.seed(seed)
    draws <- lapply(seq_along(temperatures), function(i) {
      draws_at(p, temperatures[i], 100 * seed + i)
    })
    vapply(estimates, function(i) multistate(draws[i], temperatures[i]), 0) - cases[[name]]$truth
  })
  data.frame(
    model = name, estimate = names(estimates), temperatures = lengths(estimates),
    mean_error = colMeans(errors), rms_error = sqrt(colMeans(errors^2)), row.names = NULL
  )
}

results <- do.call(rbind, lapply(names(cases), rows_of))
print(results, digits = 3)
write.csv(results, results_file("multistate"), row.names = FALSE)
