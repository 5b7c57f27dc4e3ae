# The log density of a target for the scout, the diagnostics and other searches, with a count of evaluations.

# Whether the target has its own gradients, rather than differences. If only the value of a function can tell, it is
# called at the first row of `u`.
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

# Whether this needs a call: the value of a function may carry a gradient in its attribute.
gradient_needs_call <- function(target) {
  inherits(target, "smc_target_function") && any(vapply(target$terms, function(term) is.null(term$gradient), NA))
}

zero_counts <- c(n_target_evals = 0, n_impossible = 0, n_calls = 0)

# Returns a function of an n x d matrix x on the unconstrained scale or, with `maps`, in the coordinates of a reference.
# Its value is list(log_density, gradient, undefined). Points with a log density or gradient that is not finite have log
# density -Inf and gradient 0; `undefined` is TRUE where the target returned +Inf or NaN.
# far: whether points of log density below -1e15 count as possible if their gradient is not 0. Sums with such numbers
# are rounding errors, but quasi-Newton paths can start there. width: half-widths of central differences, one for each
# coordinate, for targets without gradients; NULL for the target's default.
# For x = "count" it returns the numbers of points, impossible points and calls so far; for gradient = "own",
# has_own_gradient().
counted_density <- function(target, evaluators = target_interface(target)) {
  evaluators <- with_addresses(evaluators) # once, not at each call
  count <- zero_counts
  has_own <- NULL
  is_own <- function(x) {
    if (is.null(has_own)) {
      has_own <<- has_own_gradient(target, x)
      asked <- gradient_needs_call(target)
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
    if (gradient && is.null(value$gradient)) value$gradient <- difference_gradient(width, x, ask)
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

# The gradient at the rows of x by central differences of half-width `width`, 0 for coordinates with width NA.
# ask: a function of (x, gradient), from counted_density().
difference_gradient <- function(width, x, ask) {
  slopes <- vapply(seq_along(width), function(j) {
    if (is.na(width[j])) {
      return(numeric(nrow(x)))
    }
    moved <- function(step) {
      x[, j] <- x[, j] + step
      ask(x, gradient = FALSE)$log_density
    }
    (moved(width[j]) - moved(-width[j])) / (2 * width[j])
  }, numeric(nrow(x)))
  matrix(slopes, nrow(x))
}
