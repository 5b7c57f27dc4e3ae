# Errors over many models: all subsets of three predictors of `swiss` under Zellner's g-prior, for which the evidences
# are known in closed form. 30 seeds each: how often two standard errors hold the closed form of the inclusion
# probabilities and Bayes factors. Runs are small, so that the errors are large. `Rscript bench/many.R` renews the table.
source("bench/common.R")

y <- swiss$Fertility - mean(swiss$Fertility)
X <- scale(as.matrix(swiss[c("Agriculture", "Examination", "Infant.Mortality")]), scale = FALSE)
sigma <- 12 # known
g <- nrow(X)
has <- as.matrix(expand.grid(rep(list(c(FALSE, TRUE)), ncol(X))))
dimnames(has) <- list(paste0("model_", seq_len(nrow(has))), colnames(X))

# y ~ N(X b, sigma^2), b ~ N(0, g sigma^2 (X'X)^-1)
model_with <- function(columns) {
  X <- X[, columns, drop = FALSE]
  n <- length(y)
  variance <- diag(n) * sigma^2
  if (!any(columns)) {
    return(list(exact = sum(dnorm(y, 0, sigma, log = TRUE))))
  }
  variance <- variance + g * sigma^2 * X %*% solve(crossprod(X), t(X))
  log_z <- -(determinant(2 * pi * variance)$modulus[1] + sum(y * solve(variance, y))) / 2
  precision <- crossprod(X) / sigma^2
  constant <- sum(dnorm(y, 0, sigma, log = TRUE)) - ncol(X) / 2 * log(2 * pi * g) +
    determinant(precision)$modulus[1] / 2
  pull <- drop(crossprod(X, y)) / sigma^2
  target <- target_function(
    function(b) constant + drop(b %*% pull) - rowSums((b %*% precision) * b) * (1 + 1 / g) / 2,
    dim = ncol(X), gradient = function(b) rep(pull, each = nrow(b)) - b %*% precision * (1 + 1 / g),
    vectorized = TRUE, names = colnames(X)
  )
  list(exact = log_z, target = target)
}
models <- apply(has, 1, model_with)
known <- lapply(models, function(model) c(log_z = model$exact, std_error = 0))
exact <- inclusion(compare_evidence(known), has)

# Random walks from a wide reference, without fitted ones: for these the evidence would be exact.
path <- data.frame(lambda = c(0.02, 0.1, 0.3, 0.6, 1), step_size = c(0.3, 0.2, 0.15, 0.1, 0.1))
run <- function(seed) {
  fits <- known
  for (i in seq_along(models)[-1]) {
    scale <- sqrt(diag(solve(crossprod(X[, has[i, ], drop = FALSE])))) * sigma
    fits[[i]] <- suppressWarnings(smc_run(
      models[[i]]$target, path,
      kernel = kernel_rwmh(n_moves = 4), reference = reference_gaussian(0, 6 * scale), n_particles = 128,
      islands = 8, seed = 100 * seed + i
    ))
  }
  found <- inclusion(suppressWarnings(compare_evidence(fits)), has)
  data.frame(
    seed = seed, term = found$term, p_error = found$post_prob - exact$post_prob, p_claimed = found$post_prob_error,
    bf_error = found$log_bf - exact$log_bf, bf_claimed = found$log_bf_error
  )
}
# Errors and claimed errors, a row a seed and quantity.
runs <- replicate_seeds(1:30, run)

# Of calibration: the mean of eight observations is 0 or N(0, 1), and log Z of the second model is 0.5 too high.
mean_model <- function(sd, by) {
  variance <- diag(8) + sd^2
  list(
    simulate = function() rnorm(8, rnorm(1, 0, sd)),
    target = function(y) {
      log_z <- -(determinant(2 * pi * variance)$modulus[1] + sum(y * solve(variance, y))) / 2
      c(log_z = log_z + by, std_error = 0)
    }
  )
}
checks <- replicate_seeds(1:30, function(seed) {
  check <- check_evidence(list(mean_model(0, 0), mean_model(1, 0.5)), n = 100, seed = seed)
  data.frame(seed = seed, error = check$models$shift[2] - 0.5, claimed = check$models$shift_error[2])
})

# An error of the size that a check without one says it would have seen: is it seen four times in five?
power <- replicate_seeds(1:200, function(seed) {
  seen <- max(check_evidence(list(mean_model(0, 0), mean_model(1, 0)), n = 100, seed = seed)$models$seen)
  check <- check_evidence(list(mean_model(0, 0), mean_model(1, seen)), n = 100, seed = seed + 1000)
  data.frame(seen = seen, is_seen = check$p_value < 0.05)
})

row_of <- function(quantity, term, error, claimed) {
  held <- sum(abs(error) < 2 * claimed)
  interval <- binom.test(held, length(error))$conf.int
  data.frame(
    quantity = quantity, term = term, fits = length(error), mean_error = mean(error),
    rms_error = sqrt(mean(error^2)), rms_claimed = sqrt(mean(claimed^2)), covered = held / length(error),
    low = interval[1], high = interval[2]
  )
}
rows <- lapply(split(runs, runs$term), function(own) {
  term <- own$term[1]
  rbind(
    row_of("inclusion probability", term, own$p_error, own$p_claimed),
    row_of("log inclusion Bayes factor", term, own$bf_error, own$bf_claimed)
  )
})
rows <- c(rows, list(row_of("shift of log Z", "100 data sets", checks$error, checks$claimed)))
interval <- binom.test(sum(power$is_seen), nrow(power))$conf.int
rows <- c(rows, list(data.frame(
  quantity = "error of log Z that is seen", term = "100 data sets", fits = nrow(power), mean_error = NA, rms_error = NA,
  rms_claimed = mean(power$seen), covered = mean(power$is_seen), low = interval[1], high = interval[2]
)))
keep(with_provenance(do.call(rbind, unname(rows))), "many")
