# The evidence where random effects are integrated out. What is sampled has Laplace's approximation of the integral,
# times the surrogate of its correction where there is one. Ratios at draws lead from there to the exact evidence and to
# Laplace's.

# Draws at which the integral is computed: at first, and at most.
few_ratios <- 64
most_ratios <- 512

# estimate: of what was sampled. precision: the standard error that is asked for, or NULL. Returns the `estimate` to
# report, and for a target with effects `laplace`, a list: `log_z` and `std_error` of Laplace's approximation, the
# `correction` that leads from there to the exact evidence, NA where it is not made, its `correction_error`, and in
# words the `method` of the integral.
estimate_effects <- function(target, estimate, draws, precision, seed) {
  effects <- target$effects
  if (is.null(effects)) {
    return(list(estimate = estimate))
  }
  log_ratio <- surrogate_at(effects$surrogate, draws$particles)$log_density
  to_laplace <- mean_of_ratios(-log_ratio, exp(draws$log_weights), draws$island)
  error <- estimate$std_error
  wanted <- if (isTRUE(error < precision)) sqrt(precision^2 - error^2) else error / 2
  exact <- with_seed(seed_of_run(seed, effects_key), integrate_effects(effects, draws, log_ratio, wanted))
  laplace <- moved_estimate(estimate, to_laplace)
  list(
    estimate = if (is.na(exact$log_z)) laplace else moved_estimate(estimate, exact),
    laplace = list(
      log_z = laplace$log_z, std_error = laplace$std_error, correction = exact$log_z - to_laplace$log_z,
      correction_error = sqrt(exact$std_error^2 + to_laplace$std_error^2), method = exact$method
    )
  )
}

# From what was sampled to the exact evidence: a list of the difference `log_z`, its `std_error` and the `method`.
# log_ratio: the surrogate at the draws. wanted: the standard error.
integrate_effects <- function(effects, draws, log_ratio, wanted) {
  laplace <- function(why) list(log_z = NA_real_, std_error = NA_real_, method = paste("Laplace's approximation", why))
  if (effects$method == "laplace") {
    return(laplace("as asked for"))
  }
  if (nrow(draws$particles) == 0) {
    return(laplace("since no draws were kept"))
  }
  component <- effect_components(effects$model)
  size <- tabulate(component)
  if (!is_integrable(size)) {
    return(laplace(why_not_integrable(size)))
  }
  ratios <- function(n) {
    rows <- resample_systematic(draws$log_weights, n)
    exact <- vapply(rows, function(row) log_laplace_ratio(effects$model, draws$particles[row, ], component), 0)
    mean_of_ratios(exact - log_ratio[rows], rep(1 / n, n), draws$island[rows])
  }
  found <- ratios(few_ratios)
  n <- few_ratios * (found$std_error / wanted)^2
  if (isTRUE(n > few_ratios)) found <- ratios(min(ceiling(n), most_ratios))
  if (is.nan(found$log_z)) {
    return(laplace("since the integral over a component does not settle"))
  }
  c(found, list(method = components_in_words(size)))
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
    return(paste0(laplace$method, ", with an unknown error"))
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
