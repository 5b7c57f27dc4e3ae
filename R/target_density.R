# The density of a target as searches see it: for many points at once, counted, with -Inf where it is impossible.

# Whether the gradients are the target's own, and not differences themselves; `u` has a point in its first row.
has_own_gradient <- function(target, u) {
  if (!inherits(target, "smc_target_function")) {
    return(TRUE)
  }
  x <- change_scale(target, u[1, , drop = FALSE], to_user = TRUE)
  terms <- terms_of(target)
  located("scout", all(mapply(function(term, callers) {
    !is.null(term$gradient) || !is.null(callers$density(x)$gradient)
  }, terms, term_callers(terms, target$types))))
}

# Whether a call of the target must tell.
is_told_by_call <- function(target) {
  inherits(target, "smc_target_function") && any(vapply(target$terms, function(term) is.null(term$gradient), NA))
}

no_counts <- c(n_target_evals = 0, n_impossible = 0, n_calls = 0)

# A function of an n x d matrix on the unconstrained scale, or before these maps, and of whether the gradient
# is wanted: list(log_density, gradient, undefined), where what is not finite, or has no finite gradient, has log
# density -Inf and gradient 0; undefined is whether the target said so by +Inf or no number.
# far: whether points of log density below -1e15 count, where they have a slope: sums with
# such numbers are rounding errors, but paths climb from there. width: over which ways the gradient is to be taken by
# differences where the target has none of its own, one a coordinate; NULL for those of the target.
# Of "count" it gives how many points it was asked for, how many were impossible, and how many calls that took; with
# gradient = "own" whether gradients are the target's own.
counted_density <- function(target, evaluators = target_interface(target)) {
  evaluators <- with_addresses(evaluators) # once, not at each call
  count <- no_counts
  has_own <- NULL
  is_own <- function(x) {
    if (is.null(has_own)) {
      has_own <<- has_own_gradient(target, x)
      asked <- is_told_by_call(target)
      count <<- count + c(asked, 0, asked)
    }
    has_own
  }
  function(x, gradient = TRUE, maps = NULL, far = FALSE, width = NULL) {
    if (identical(x, "count")) {
      return(count)
    }
    if (nrow(x) == 0) {
      return(list(log_density = numeric(), gradient = x))
    }
    x[!is.finite(x)] <- 0
    if (identical(gradient, "own")) {
      return(is_own(x))
    }
    ask <- function(x, gradient) {
      look_for_interrupt()
      value <- evaluate_located(target, x, "scout", gradient = gradient, maps = maps, evaluators = evaluators)
      count[["n_calls"]] <<- count[["n_calls"]] + value$n_calls
      value
    }
    value <- ask(x, gradient && (is.null(width) || is_own(x)))
    if (gradient && is.null(value$gradient)) value$gradient <- slopes_over(width, x, ask)
    ok <- is.finite(value$log_density) & abs(value$log_density) < 1e15
    count <<- count + c(nrow(x), sum(!ok), 0)
    value$undefined <- is.na(value$log_density) | value$log_density == Inf
    if (gradient) {
      if (far) ok <- ok | (is.finite(value$log_density) & value$log_density < 0 & rowSums(value$gradient != 0) > 0)
      ok <- ok & is.finite(rowSums(value$gradient))
      value$gradient[!ok, ] <- 0
    }
    value$log_density[!ok] <- -Inf
    value
  }
}

# The gradient at x by differences over these ways to either side; 0 along coordinates with none, NA.
# ask: of counted_density().
slopes_over <- function(width, x, ask) {
  slopes <- vapply(seq_along(width), function(j) {
    if (is.na(width[j])) {
      return(numeric(nrow(x)))
    }
    moved <- function(way) {
      x[, j] <- x[, j] + way
      ask(x, gradient = FALSE)$log_density
    }
    (moved(width[j]) - moved(-width[j])) / (2 * width[j])
  }, numeric(nrow(x)))
  matrix(slopes, nrow(x))
}
