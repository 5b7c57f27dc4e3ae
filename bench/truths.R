# Finds the log evidence of every model of the suites, checks it in a second way and the
# gradient by differences, and keeps all in results/truths.csv:
#
#   Rscript bench/truths.R [REGEX]
#
# With a regular expression only the models that match it (as suite/model) are done anew.
# The second way is
#   Laplace's approximation, which is exact for a normal density; or
#   importance sampling from Student's t (10 degrees of freedom), fitted to the draws of
#   a first such sample, which began at the mode; or
#   Gauss and Hermite's product rule, where the truth is itself by importance sampling.
# Variables that are normal given the others are first integrated out by Laplace's
# approximation to the density as it is coded, which is exact for them. It is tried on models of up to 20 variables (Laplace: all), and is empty where its
# standard error is above 0.05: importance sampling is no judge of modes and tails.

source("bench/suite.R")

# The density on the unconstrained scale, as the package transforms it.
free_density <- function(target) {
  f <- target$terms[[1]]$log_density
  d <- target$dim
  lower <- rep_len(target$lower, d)
  upper <- rep_len(target$upper, d)
  function(u) {
    x <- u
    jacobian <- double(nrow(u))
    for (j in seq_len(d)) {
      if (is.finite(lower[j]) && is.finite(upper[j])) {
        x[, j] <- lower[j] + (upper[j] - lower[j]) * plogis(u[, j])
        jacobian <- jacobian + log(upper[j] - lower[j]) + dlogis(u[, j], log = TRUE)
      } else if (is.finite(lower[j])) {
        x[, j] <- lower[j] + exp(u[, j])
        jacobian <- jacobian + u[, j]
      }
    }
    colnames(x) <- target$names
    list(x = x, log = as.double(f(x)) + jacobian)
  }
}

# Largest difference between gradients and central differences at `x`, relative to the
# largest component at the point; by long or by short differences, whichever fit better,
# since the former fail where the density bends sharply and the latter by rounding.
gradient_error <- function(target, x) {
  errors <- lapply(c(2e-3, 1e-5), function(step) difference_error(target, x, step))
  worst <- do.call(pmin, errors)
  max(worst[is.finite(worst)])
}

difference_error <- function(target, x, step) {
  f <- target$terms[[1]]$log_density
  g <- attr(f(x), "gradient")
  numeric <- x
  spread <- pmax(apply(x, 2, sd), 1e-3 * abs(colMeans(x)), 1e-8)
  for (j in seq_len(ncol(x))) {
    # four points: the error is of the order of the fourth power of the distance
    h <- step * spread[j]
    at <- function(k) {
      x[, j] <- x[, j] + k * h
      as.double(f(x))
    }
    numeric[, j] <- (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
  }
  size <- do.call(pmax, as.data.frame(cbind(abs(g), 1e-8)))
  # differences know no better than the rounding of the log density
  noise <- outer(1e-14 * abs(as.double(f(x))), 1 / (step * spread))
  pmax(abs(numeric - g) - noise, 0) / size
}

log_t <- function(u, root, df) {
  d <- ncol(root)
  const <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) -
    sum(log(diag(root)))
  const - (df + d) / 2 * log1p(rowSums(u^2) / df)
}

# list(log_z, se, draws) of n draws from t(centre, cov)
importance <- function(density, centre, cov, n, df = 10) {
  d <- length(centre)
  root <- chol(cov)
  logs <- double(0)
  kept <- NULL
  for (i in seq_len(ceiling(n / 1e5))) {
    m <- min(n, 1e5)
    u <- matrix(rnorm(m * d), m) / sqrt(rchisq(m, df) / df)
    at <- u %*% root + by_row(centre, m)
    log_w <- density(at)$log - log_t(u, root, df)
    log_w[is.na(log_w)] <- -Inf
    logs <- c(logs, log_w)
    if (is.null(kept)) kept <- at
  }
  w <- exp(logs - max(logs))
  list(
    log_z = max(logs) + log(mean(w)), se = sd(w) / mean(w) / sqrt(length(w)),
    draws = kept, weights = w[seq_len(nrow(kept))]
  )
}

find_mode <- function(density, d) {
  negative <- function(u) {
    value <- -density(matrix(u, 1))$log
    if (is.finite(value)) value else 1e300
  }
  found <- lapply(1:3, function(i) {
    u <- rnorm(d, 0, c(0.1, 1, 3)[i])
    for (round in 1:2) {
      fit <- optim(u, negative, method = "BFGS", control = list(maxit = 300, reltol = 1e-12))
      u <- fit$par
    }
    fit
  })
  found[[which.min(vapply(found, `[[`, 0, "value"))]]$par
}

# Student's t at the mode, fitted four times to the draws of the one before: list(log_z,
# se, draws, weights, mode, cov), the last two of the mode.
fitted_importance <- function(density, d, n, mode = find_mode(density, d)) {
  hessian <- optimHess(mode, function(u) -density(matrix(u, 1))$log)
  e <- eigen(hessian, symmetric = TRUE)
  v <- 1 / pmax(e$values, max(e$values) * 1e-12)
  cov <- e$vectors %*% (v * t(e$vectors))
  result <- importance(density, mode, cov, 3e4)
  for (i in 1:4) {
    # weights cut at the 30th largest, lest a few draws make the fit
    w <- pmin(result$weights, sort(result$weights, decreasing = TRUE)[30])
    fit <- cov.wt(result$draws, w / sum(w))
    result <- importance(density, fit$center, 1.2 * fit$cov, if (i < 4) 3e4 else n)
  }
  c(result, list(mode = mode, cov = cov))
}

sampled_truth <- function(target, n = 4e5) {
  result <- fitted_importance(free_density(target), target$dim, n)
  stopifnot(result$se < 0.005)
  result$log_z
}

# The sum over the labellings of a mixture of two: that of the mode next to `start`, and
# that with its components exchanged. Each is sampled from a t of its own.
two_labellings_truth <- function(target, start) {
  density <- free_density(target)
  parts <- lapply(list(start, c(-start[1], start[3:2], start[5:4])), function(at) {
    fit <- optim(at, function(u) min(-density(matrix(u, 1))$log, 1e300), method = "BFGS")
    fitted_importance(density, 5, 2e5, fit$par)
  })
  stopifnot(parts[[1]]$se < 0.005, parts[[2]]$se < 0.5)
  log_sum_exp(c(parts[[1]]$log_z, parts[[2]]$log_z))
}

# A product of Gauss and Hermite's rules in the principal axes at `mode`.
gauss_hermite <- function(density, mode, cov) {
  d <- length(mode)
  k <- c(81, 81, 41, 25, 15, 11, 7)[d]
  J <- matrix(0, k, k)
  off <- cbind(seq_len(k - 1), seq_len(k - 1) + 1)
  J[off] <- J[off[, 2:1]] <- sqrt(seq_len(k - 1))
  e <- eigen(J, symmetric = TRUE)
  nodes <- e$values
  logs <- log(e$vectors[1, ]^2) - dnorm(nodes, log = TRUE)
  u <- as.matrix(expand.grid(rep(list(nodes), d)))
  log_w <- rowSums(as.matrix(expand.grid(rep(list(logs), d))))
  root <- chol(1.2 * cov)
  blocks <- split(seq_len(nrow(u)), ceiling(seq_len(nrow(u)) / 1e5))
  values <- unlist(lapply(blocks, function(i) {
    density(u[i, , drop = FALSE] %*% root + by_row(mode, length(i)))$log + log_w[i]
  }))
  log_sum_exp(values[is.finite(values)]) + sum(log(diag(root)))
}

# Variables that are normal and independent given the others, or none.
normal_given_others <- function(model, target) {
  d <- target$dim
  if (model$class %in% c("banana", "funnel")) {
    2:d
  } else if (model$class %in% c("hierarchy", "process") && !grepl("logit|counts|durations", model$name)) {
    grep("^(theta|z|beta)[0-9]+$", target$names)
  } else {
    integer()
  }
}

# The density of the others: from any point one Newton step in the variables of `block`,
# with second derivatives from the gradients, and Laplace's approximation, which is exact.
integrate_block <- function(target, block) {
  f <- target$terms[[1]]$log_density
  d <- target$dim
  function(u) {
    x <- matrix(0, nrow(u), d, dimnames = list(NULL, target$names))
    x[, -block] <- u
    g0 <- attr(f(x), "gradient")[, block, drop = FALSE]
    x[, block] <- 1
    h <- g0 - attr(f(x), "gradient")[, block, drop = FALSE]
    x[, block] <- g0 / h
    list(
      x = x,
      log = as.double(f(x)) + length(block) / 2 * log(2 * pi) - rowSums(log(h)) / 2
    )
  }
}

second_way <- function(model, target) {
  none <- list(log_z = NA_real_, se = NA_real_, how = "", draws = NULL)
  density <- free_density(target)
  d <- target$dim
  block <- normal_given_others(model, target)
  if (length(block) > 0 && length(block) < d) {
    density <- integrate_block(target, block)
    d <- d - length(block)
  }
  if (d > 20) return(none)
  tryCatch({
    is_sampled <- startsWith(model$how, "importance")
    result <- fitted_importance(density, d, 1e5)
    if (result$se > 0.05) return(none)
    keep <- sample.int(nrow(result$draws), 20, TRUE, result$weights)
    draws <- density(result$draws[keep, , drop = FALSE])$x
    if (is_sampled) {
      list(
        log_z = gauss_hermite(density, colMeans(result$draws), cov(result$draws) / 1.25),
        se = NA_real_, how = "Gauss and Hermite", draws = draws
      )
    } else {
      list(
        log_z = result$log_z, se = result$se,
        how = paste0(if (length(block) > 0) "normal variables by Laplace, ",
          "importance sampling"),
        draws = draws
      )
    }
  }, error = function(e) none)
}

# Exact for a normal density: from any point, one Newton step.
laplace <- function(target) {
  f <- target$terms[[1]]$log_density
  d <- target$dim
  zero <- matrix(0, 1, d)
  g0 <- drop(attr(f(zero), "gradient"))
  H <- -(attr(f(diag(d)), "gradient") - by_row(g0, d))
  H <- (H + t(H)) / 2
  mode <- solve(H, g0)
  as.double(f(matrix(mode, 1))) + d / 2 * log(2 * pi) -
    as.numeric(determinant(H)$modulus) / 2
}

# One point alone has the value and the gradient that it has among others.
check_single <- function(target, x) {
  f <- target$terms[[1]]$log_density
  one <- f(x[1, , drop = FALSE])
  all <- f(x)
  stopifnot(
    length(one) == 1, identical(dim(attr(one, "gradient")), c(1L, ncol(x))),
    all.equal(as.double(one), all[1]),
    all.equal(drop(attr(one, "gradient")), attr(all, "gradient")[1, ], tolerance = 1e-6)
  )
}

check_model <- function(suite, model) {
  set.seed(1)
  target <- model$target()
  truth <- model$find_truth()
  d <- target$dim
  if (suite == "several") {
    second <- list(log_z = NA_real_, se = NA_real_, how = "", draws = NULL)
  } else if (model$class %in% c("place", "conditioning", "dimension") ||
    grepl("^gp_latent", model$name)) {
    second <- list(log_z = laplace(target), se = 0, how = "Laplace", draws = NULL)
  } else {
    second <- second_way(model, target)
  }
  u <- matrix(rnorm(20 * d), 20)
  x <- if (is.null(target$types)) free_density(target)(u)$x else exp(u) / rowSums(exp(u))
  check_single(target, x)
  errors <- gradient_error(target, x)
  if (!is.null(second$draws)) {
    colnames(second$draws) <- target$names
    errors <- c(errors, gradient_error(target, second$draws))
  }
  row <- data.frame(
    suite = suite, model = model$name, truth = signif(truth, 10), how = model$how,
    second = signif(second$log_z, 8), second_se = signif(second$se, 2),
    second_how = second$how, gradient_error = signif(max(errors), 2)
  )
  print(row, row.names = FALSE)
  row
}

main <- function(args) {
  file <- "bench/results/truths.csv"
  for (suite in suites) {
    models <- suite_models(suite)
    keys <- paste0(suite, "/", names(models))
    old <- if (file.exists(file)) read.csv(file)
    done <- paste0(old$suite, "/", old$model)
    again <- if (length(args) > 0) grepl(args[1], keys) else !keys %in% done
    if (!is.null(old)) write_rows(old[!done %in% keys[again], ], file)
    parallel::mclapply(
      models[again],
      function(model) {
        row <- tryCatch(check_model(suite, model), error = function(e) {
          message(model$name, ": ", conditionMessage(e))
        })
        if (!is.null(row)) append_rows(row, file)
      },
      mc.cores = 2, mc.preschedule = FALSE
    )
  }
  # in the order of the suites
  keys <- unlist(lapply(suites, function(suite) {
    paste0(suite, "/", names(suite_models(suite)))
  }))
  rows <- read.csv(file)
  rows <- rows[order(match(paste0(rows$suite, "/", rows$model), keys)), ]
  write_rows(rows, file)
}

write_rows <- function(rows, file) {
  unlink(file)
  append_rows(rows, file)
}

sys.source("bench/models.R", environment())
main(commandArgs(TRUE))
