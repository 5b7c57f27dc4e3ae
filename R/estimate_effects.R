# The evidence of models whose random effects are integrated out. The sampled density uses Laplace's approximation of
# the integral, times a surrogate of its correction where there is one. Importance ratios at some of the draws lead from
# its evidence to the exact one and to that by Laplace's approximation. Called when a fit is made.

# First and largest number of draws at which the integral is computed.
few_ratios <- 64
most_ratios <- 512

# estimate: that of the sampled density; precision: the requested standard error, or NULL; most: the number of
# evaluations that are left. Returns the `estimate` to report, and for a target with effects: `laplace`, a list of
# `log_z` and `std_error` by Laplace's approximation, the `correction` from there to the exact evidence (NA where it is
# not computed), its `correction_error`, and the `method` of the integral in words; `khat`, the Pareto k of the ratios,
# or NULL; and `counts`, the cost.
estimate_effects <- function(target, estimate, draws, precision, seed, most) {
  effects <- target$effects
  if (is.null(effects)) {
    return(list(estimate = estimate))
  }
  began <- seconds_now()
  error <- estimate$std_error
  wanted <- if (isTRUE(error < precision)) sqrt(precision^2 - error^2) else error / 2
  integral <- counted_integral(effects)
  exact <- with_seed(seed_of_run(seed, effects_key), integrate_effects(target, integral, draws, wanted, most))
  to_laplace <- from_sampled_to_laplace(effects$surrogate, draws, exact)
  laplace <- moved_estimate(estimate, to_laplace)
  list(
    estimate = if (is.na(exact$log_z)) laplace else moved_estimate(estimate, exact),
    laplace = list(
      log_z = laplace$log_z, std_error = laplace$std_error, correction = exact$log_z - to_laplace$log_z,
      correction_error = sqrt(exact$std_error^2 + to_laplace$std_error^2), method = exact$method
    ),
    khat = exact$khat,
    counts = if (is_corrected(effects)) {
      counts_of_integrals(integral, began, replace(zero_counts, "n_target_evals", exact$n_sampled))
    }
  )
}

# The difference of the exact log evidence from that of the sampled density: a list of the difference `log_z`, NA where
# it is not computed, its `std_error` and `method`; of the draws at which the integral was computed the `rows`, and the
# log ratios to the sampled density of the `exact` integral and of `laplace`'s approximation; and `n_sampled`, the
# number of evaluations of the sampled density. integral: of counted_integral(); wanted: the requested standard error.
integrate_effects <- function(target, integral, draws, wanted, most) {
  why <- reason_for_laplace(target$effects)
  if (is.null(why) && nrow(draws$particles) == 0) why <- "since no draws were kept"
  found <- list(rows = integer(), exact = numeric(), laplace = numeric(), n_sampled = 0)
  if (is.null(why)) {
    each <- if (is.null(target$effects$surrogate$polynomial)) 1 else 2
    most <- max(1, min(most_ratios, floor(most / each)))
    at_more <- function(found, n) {
      rows <- resample_systematic(draws$log_weights, n - length(found$rows))
      x <- draws$particles[rows, , drop = FALSE]
      new <- ratios_to_sampled(target, x, apply(x, 1, integral))
      found <- list(
        rows = c(found$rows, rows), exact = c(found$exact, new$exact), laplace = c(found$laplace, new$laplace),
        n_sampled = (each - 1) * n
      )
      c(found, mean_of_ratios(found$exact, rep(1 / n, n), draws$island[found$rows]))
    }
    found <- at_more(found, min(few_ratios, most))
    n <- length(found$rows) * (found$std_error / wanted)^2
    if (isTRUE(n > length(found$rows))) found <- at_more(found, min(ceiling(n), most))
    if (!is.nan(found$log_z)) {
      return(c(found, list(khat = khat_of_ratios(found), method = components_in_words(target$effects))))
    }
    why <- "since the integral over a component does not settle"
  }
  found[c("log_z", "std_error", "method")] <- list(NA_real_, NA_real_, paste("Laplace's approximation", why))
  found
}

# The Pareto k of the ratios, from the largest fifth of them, if the error of their mean matters; else NULL.
khat_of_ratios <- function(found) {
  n <- length(found$exact)
  if (isTRUE(found$std_error > rules$sure_bridge)) tail_khat(exp(found$exact - max(found$exact)), rep(1 / n, n), 0.2)
}

# The difference of the log evidence by Laplace's approximation from that of the sampled density: a list of `log_z` and
# its `std_error`, by the surrogate at all draws and its residual at the draws where the integral was computed.
from_sampled_to_laplace <- function(surrogate, draws, exact) {
  log_ratio <- -surrogate_ratio(surrogate, draws$particles)
  means <- list(mean_of_ratios(log_ratio, exp(draws$log_weights), draws$island))
  if (!is.null(surrogate$polynomial)) {
    known <- is.finite(exact$laplace)
    rows <- exact$rows[known]
    w <- exp(normalise_log(log_ratio[rows]))
    means <- c(means, list(mean_of_ratios(exact$laplace[known] - log_ratio[rows], w, draws$island[rows])))
  }
  of <- function(name) vapply(means, `[[`, 0, name)
  list(log_z = sum(of("log_z")), std_error = sqrt(sum(of("std_error")^2)))
}

# The log of a weighted mean of ratios, `log_z`, and its standard error by the delta method: the larger one of that for
# independent draws and that between islands.
mean_of_ratios <- function(log_ratio, w, island) {
  if (isTRUE(all(log_ratio == 0))) {
    return(list(log_z = 0, std_error = 0))
  }
  largest <- max(log_ratio[w > 0])
  ratio <- ifelse(w > 0, exp(log_ratio - largest), 0)
  mean <- sum(w * ratio)
  off <- rowsum(w * (ratio - mean), island)
  n <- length(off)
  variance <- max(sum(w^2 * (ratio - mean)^2), if (n > 1) sum(off^2) * n / (n - 1))
  list(log_z = largest + log(mean), std_error = max(sqrt(variance) / mean, least_error))
}

# Whether the log Z of a fit is that by Laplace's approximation.
is_laplace <- function(fit) is.list(fit$laplace) && is.na(fit$laplace$correction)

# The method by which effects are integrated out, in words; NULL where there are none.
describe_effects <- function(fit) {
  laplace <- fit$laplace
  if (is_laplace(fit)) {
    return(paste0(laplace$method, ", with an unknown error of its own"))
  }
  if (is.list(laplace)) {
    number <- function(x) fixed(x, decimals_of_error(laplace$correction_error))
    sprintf(
      "%s; by Laplace's approximation log Z is %s by %s (%s)", laplace$method,
      if (laplace$correction > 0) "lower" else "higher", number(abs(laplace$correction)),
      number(laplace$correction_error)
    )
  }
}
