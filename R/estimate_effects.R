# The evidence where random effects are integrated out. What is sampled has Laplace's approximation of the integral,
# times the surrogate of its correction where there is one. Ratios at draws lead from there to the exact evidence and to
# Laplace's.

# Draws at which the integral is computed: at first, and at most.
few_ratios <- 64
most_ratios <- 512

# estimate: of what was sampled. precision: the standard error that is asked for, or NULL. most: ratios, by what is left
# of evaluations; NULL for any. Returns the `estimate` to report, and for a target with effects `laplace`, a list: `log_z` and `std_error`
# of Laplace's approximation, the `correction` that leads from there to the exact evidence, NA where it is not made, its
# `correction_error`, and in words the `method` of the integral; and `counts`, what it has cost.
estimate_effects <- function(target, estimate, draws, precision, seed, most) {
  effects <- target$effects
  if (is.null(effects)) {
    return(list(estimate = estimate))
  }
  began <- seconds_now()
  log_ratio <- surrogate_at(effects$surrogate, draws$particles)$log_density
  to_laplace <- mean_of_ratios(-log_ratio, exp(draws$log_weights), draws$island)
  error <- estimate$std_error
  wanted <- if (isTRUE(error < precision)) sqrt(precision^2 - error^2) else error / 2
  ratio <- counted_ratio(effects)
  exact <- with_seed(seed_of_run(seed, effects_key), integrate_effects(effects, ratio, draws, log_ratio, wanted, most))
  laplace <- moved_estimate(estimate, to_laplace)
  list(
    estimate = if (is.na(exact$log_z)) laplace else moved_estimate(estimate, exact),
    laplace = list(
      log_z = laplace$log_z, std_error = laplace$std_error, correction = exact$log_z - to_laplace$log_z,
      correction_error = sqrt(exact$std_error^2 + to_laplace$std_error^2), method = exact$method
    ),
    counts = if (is_corrected(effects)) counts_of_ratios(ratio, began)
  )
}

# From what was sampled to the exact evidence: a list of the difference `log_z`, its `std_error` and the `method`.
# ratio: of counted_ratio(). log_ratio: the surrogate at the draws. wanted: the standard error.
integrate_effects <- function(effects, ratio, draws, log_ratio, wanted, most) {
  why <- why_laplace(effects)
  if (is.null(why) && nrow(draws$particles) == 0) why <- "since no draws were kept"
  if (is.null(why)) {
    found <- list(rows = integer(), log_ratio = numeric())
    at_more <- function(found, n) {
      rows <- resample_systematic(draws$log_weights, n - length(found$rows))
      new <- vapply(rows, function(row) ratio(draws$particles[row, ]), 0) - log_ratio[rows]
      found <- list(rows = c(found$rows, rows), log_ratio = c(found$log_ratio, new))
      c(found, mean_of_ratios(found$log_ratio, rep(1 / n, n), draws$island[found$rows]))
    }
    found <- at_more(found, min(few_ratios, most))
    n <- length(found$rows) * (found$std_error / wanted)^2
    if (isTRUE(n > length(found$rows))) found <- at_more(found, min(ceiling(n), most_ratios, most))
    if (!is.nan(found$log_z)) {
      return(c(found[c("log_z", "std_error")], list(method = components_in_words(tabulate(effects$component)))))
    }
    why <- "since the integral over a component does not settle"
  }
  list(log_z = NA_real_, std_error = NA_real_, method = paste("Laplace's approximation", why))
}

# The log of a weighted mean of ratios, and its standard error by the delta method: that of independent draws or that
# which islands show, whichever is larger.
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

# Whether log Z of a fit is that of Laplace's approximation.
is_laplace <- function(fit) is.list(fit$laplace) && is.na(fit$laplace$correction)

# How effects are integrated out, in words; NULL where there are none.
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
