# What Laplace's approximation of the integral over random effects makes of the evidence, and the correction of that.

# Draws at which the integral is computed: at first, and at most.
few_ratios <- 64
most_ratios <- 512

# Of an estimate of the evidence of a target whose effects are integrated out by Laplace's approximation, and of the
# draws: a list of its `log_z` and `std_error`, the `correction` of the first, its `correction_error`, and in words the
# `method` of the integral. Where there is no correction, it is NA, and the method says why. NULL for other targets.
laplace_of <- function(target, estimate, draws, seed) {
  if (is.null(target$effects)) {
    return(NULL)
  }
  found <- with_seed(seed_of_run(seed, effects_key), integrate_effects(target$effects, estimate$std_error, draws))
  c(estimate[c("log_z", "std_error")], found)
}

integrate_effects <- function(effects, wanted, draws) {
  none <- function(why) list(correction = NA_real_, correction_error = NA_real_, method = why)
  if (effects$method == "laplace") {
    return(none("Laplace's approximation"))
  }
  if (NROW(draws$particles) == 0 || is.na(wanted)) {
    return(none("Laplace's approximation, as there are no draws of several islands"))
  }
  record_model(effects$model)
  component <- effect_components(effects$model)
  size <- tabulate(component)
  if (!isTRUE(max(size) <= most_connected)) {
    return(none(laplace_because(size)))
  }
  ratios <- function(n) {
    rows <- resample_systematic(draws$log_weights, n)
    log_ratio <- vapply(rows, function(row) log_laplace_ratio(effects$model, draws$particles[row, ], component), 0)
    mean_of_ratios(log_ratio, draws$island[rows])
  }
  found <- ratios(few_ratios)
  n <- few_ratios * (2 * found$correction_error / wanted)^2
  if (isTRUE(n > few_ratios)) found <- ratios(min(ceiling(n), most_ratios))
  if (is.nan(found$correction)) {
    return(none("Laplace's approximation, as the integral over an effect does not settle"))
  }
  c(found, list(method = in_words(size)))
}

# The log of the mean of ratios at draws of equal weight, with the standard error that independent draws would have or
# that islands show, whichever is larger.
mean_of_ratios <- function(log_ratio, island) {
  largest <- max(log_ratio)
  ratio <- exp(log_ratio - largest)
  n <- length(ratio)
  off <- rowsum(ratio - mean(ratio), island) / n
  error <- sqrt(max(stats::var(ratio) / n, sum(off^2) * length(off) / (length(off) - 1), na.rm = TRUE))
  list(correction = largest + log(mean(ratio)), correction_error = max(error / mean(ratio), least_error))
}

# The estimate of the exact evidence, or that of Laplace's, where there is no correction.
with_correction <- function(estimate, laplace) {
  if (!isTRUE(is.finite(laplace$correction))) {
    return(estimate)
  }
  half <- estimate$conf_high - estimate$log_z
  estimate$log_z <- estimate$log_z + laplace$correction
  estimate$std_error <- sqrt(laplace$std_error^2 + laplace$correction_error^2)
  half <- half * estimate$std_error / laplace$std_error
  estimate$conf_low <- estimate$log_z - half
  estimate$conf_high <- estimate$log_z + half
  estimate
}

# "2,000 components of 1 effect" and the like, with the range of sizes.
in_words <- function(size) {
  sizes <- paste(unique(range(size)), collapse = " to ")
  effects <- paste(sizes, if (max(size) == 1) "effect" else "effects")
  paste(count_of(length(size), "component"), "of", effects, "by quadrature")
}

laplace_because <- function(size) {
  if (length(size) == 0) {
    return("Laplace's approximation, as effects are within the objective (`intern = TRUE`)")
  }
  paste0(
    if (length(size) == 1) "one component" else paste("a component"), " of ", count(max(size)),
    " effects, by Laplace's approximation"
  )
}
