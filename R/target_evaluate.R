# Evaluation of targets that are R functions. An evaluator is a function of x (n x d) and of whether the gradient is
# wanted. It returns list(log_density, gradient, n_calls), with checked values. `n_calls` is the number of points at
# which the function was called, including those for central differences; the maximum if there are several functions.

terms_of <- function(target) lapply(target$terms, c, target[c("dim", "names", "vectorized", "lower", "upper")])

# The evaluator of a sum of terms, from terms_of(). Terms without a gradient are differentiated by central differences,
# and one message names them all. types: see target_types.R.
sum_evaluator <- function(terms, types = NULL) {
  callers <- term_callers(terms, types)
  densities <- lapply(callers, `[[`, "density")
  slopes <- lapply(callers, `[[`, "slope")
  told <- FALSE
  function(x, gradient) {
    n_calls <- numeric(length(terms))
    ask <- function(i, x) {
      value <- densities[[i]](x)
      n_calls[i] <<- n_calls[i] + value$n_calls
      value
    }
    values <- lapply(seq_along(terms), ask, x)
    if (gradient) {
      gradients <- Map(function(slope, value) slope(x, value$gradient), slopes, values)
      without <- vapply(gradients, is.null, NA)
      if (any(without) && !told) {
        told <<- TRUE
        tell_differences(terms[without])
      }
      gradients[without] <- lapply(which(without), function(i) central_difference(terms[[i]], function(x) ask(i, x), x))
    }
    list(
      log_density = Reduce(`+`, lapply(values, `[[`, "log_density")),
      gradient = if (gradient) Reduce(`+`, gradients),
      n_calls = max(n_calls)
    )
  }
}

# list(density, slope), two functions, for each term.
term_callers <- function(terms, types) {
  if (is.null(types)) {
    lapply(terms, function(term) list(density = density_caller(term), slope = slope_caller(term)))
  } else {
    Map(typed_callers, terms, list(types), seq_along(terms) == 1)
  }
}

# A function of x that returns the log densities, and the gradients that the values have in their attributes.
density_caller <- function(term) {
  call <- caller(term$log_density, term, "{.arg {arg}}")
  has_warned <- FALSE # one warning only, since it takes longer than many calls
  function(x) {
    values <- call(x)
    gradient <- carried_gradients(values, x, term)
    log_density <- as.vector(checked_values(values, 1L, x, term, check_log_density))
    infinite <- if (!has_warned) which(log_density == Inf)
    if (length(infinite) > 0 && !all(is_on_bound(term, x[infinite, , drop = FALSE]))) {
      has_warned <<- TRUE
      warn_of_infinite(term$arg)
    }
    list(log_density = log_density, gradient = gradient, n_calls = nrow(x))
  }
}

# A function of x and of the gradients that came with the values (`carried`, NULL for none). It returns the gradients of
# the user's gradient function or, if there is none, `carried`.
slope_caller <- function(term) {
  if (is.null(term$gradient)) {
    return(function(x, carried) carried)
  }
  call <- caller(term$gradient, term, "The gradient of {.arg {arg}}")
  function(x, carried) checked_values(call(x), term$dim, x, term, check_gradient_value)
}

# A function of x that calls f, one of the functions of a term. Its value is that of f or, if f takes a single point,
# the list of values at the rows of x. what: the name of f in error messages.
caller <- function(f, term, what) {
  force(f)
  has_worked <- FALSE
  under_way <- NULL # the environment of the current call, in which `at` is the point
  # in compiled code, since a loop over rows in R would cost as much as the calls of a cheap function
  at_each_point <- function(x) {
    at <- NULL
    under_way <<- environment()
    .Call(r_at_each_point, quote(f(at)), environment(), x, term$names)
  }
  call <- if (term$vectorized) function(x) at_all_points(f, x, term, what) else at_each_point
  function(x) {
    explain <- function(e) {
      at <- if (!term$vectorized) under_way$at
      is_first <- !has_worked && (term$vectorized || identical(at, point(x, 1, term$names)))
      hint_at(e, if (is_first) first_call_hint(term, what) else later_call_hint(at, term, what))
    }
    value <- withCallingHandlers(call(x), error = if_raised(explain))
    has_worked <<- TRUE
    under_way <<- NULL
    value
  }
}

# Checks what a caller() has returned. Values at single points become the rows of a matrix: in compiled code if all are
# plain numbers, and otherwise after `check` of each.
checked_values <- function(values, n_columns, x, term, check) {
  if (term$vectorized) {
    return(check(values, x, term$arg))
  }
  bound <- .Call(r_bind_points, values, n_columns)
  if (is.null(bound)) {
    checked <- lapply(seq_along(values), function(i) check(values[[i]], point(x, i, term$names), term$arg))
    bound <- .Call(r_bind_points, checked, n_columns)
  }
  bound
}

point <- function(x, i, names) {
  row <- x[i, ]
  names(row) <- names
  row
}

# The gradients in the attributes of the values, NaN for values without one; NULL if no value has one.
carried_gradients <- function(values, x, term) {
  if (term$vectorized) {
    gradients <- attr(values, "gradient", exact = TRUE)
  } else if (.Call(r_carries_gradient, values)) {
    gradients <- lapply(values, attr, "gradient", exact = TRUE)
    gradients[lengths(gradients) == 0] <- list(rep(NaN, term$dim))
  } else {
    gradients <- NULL
  }
  if (!is.null(gradients)) checked_values(gradients, term$dim, x, term, check_gradient_value)
}

# f(x) for a vectorised function. If it fails for a single point, the likely cause is a matrix that has become a vector.
# R's own error would not say so, hence this one.
at_all_points <- function(f, x, term, what) {
  colnames(x) <- term$names
  if (nrow(x) > 1) {
    return(f(x))
  }
  arg <- term$arg
  withCallingHandlers(f(x), error = if_raised(function(e) {
    if (leaves_room(e)) {
      abort(c(paste(what, "failed at a single point."), say_given(x)), "target", parent = in_utf8(e))
    }
  }))
}

# Raises an error of a user's function again, with a hint, for rethrow_at_step(). An error of class
# autosmc_error_located is left as it is: it comes from another run, which the function has started.
hint_at <- function(e, hint) {
  is_own <- inherits(e, "autosmc_error") && !inherits(e, "autosmc_error_located")
  if (!is_own && leaves_room(e)) abort("{hint}", c("hint", "target"), parent = in_utf8(e))
}

# The hint for a function that fails at its first call: `vectorized` may be wrong.
first_call_hint <- function(term, what) {
  arg <- term$arg
  shapes <- c(
    sprintf("one point, a numeric vector of length %d", term$dim),
    sprintf("all points, an n x %d matrix with a row each", term$dim)
  )
  if (term$vectorized) shapes <- rev(shapes)
  other <- !term$vectorized
  cli::format_inline(
    what, " failed at its first call, with {shapes[1]}. ",
    "With {.code vectorized = {other}} it is called with {shapes[2]}."
  )
}

# The hint for a function that fails later, at a particular point. at: this point, NULL if not known.
later_call_hint <- function(at, term, what) {
  arg <- term$arg
  where <- if (is.null(at)) "now" else paste("at", say_point(at))
  cli::format_inline(
    what, " failed {where}, after it had worked at other points. If the density cannot be computed at a point, ",
    "let {.arg {arg}} return {.code -Inf}: the point then counts as impossible."
  )
}

# A string with the first coordinates of a point.
say_point <- function(at, most = 4) {
  some <- utils::head(at, most)
  said <- paste(names(some), "=", format(some, digits = 3, trim = TRUE), collapse = ", ")
  paste0("(", said, if (length(at) > most) ", ...", ")")
}

# FALSE for a stack overflow, after which no handler can run.
leaves_room <- function(e) !inherits(e, "stackOverflowError")

# Whether rounding has put each point on a bound or next to it, where the density may truly be infinite, as that of a
# gamma distribution may.
is_on_bound <- function(term, x) {
  off <- pmin(abs(sweep(x, 2, term$lower)), abs(sweep(x, 2, term$upper)))
  rowSums(off < .Machine$double.xmin) > 0
}

# Away from bounds a log density of +Inf is usually a mistake: a division by zero, or minus the log of zero. Such points
# count as impossible.
warn_of_infinite <- function(arg) {
  warn("infinite", c(
    "{.arg {arg}} returned {.val {Inf}} at some points, which count as impossible.",
    "i" = "If the density is zero, its logarithm is {.code -Inf}. Is there a division by zero, or a minus
      before the log of zero?"
  ))
}

tell_differences <- function(terms) {
  args <- vapply(terms, `[[`, "", "arg")
  gradient_args <- vapply(terms, `[[`, "", "gradient_arg")
  n <- length(terms)
  calls <- 2 * terms[[1]]$dim
  inform_once("gradient", c(
    "i" = "No gradient{cli::qty(n)}{?/s} of {.arg {args}} {?was/were} given:
      {cli::qty(n)}{?it is/they are} approximated by central differences, at {calls}
      further calls {cli::qty(n)}{?/of each }for every evaluation.",
    "i" = "Give the {cli::qty(n)}gradient{?s} as {.arg {gradient_args}}, or use
      {.fn target_rtmb}, which derives {cli::qty(n)}{?it/them}."
  ))
}

# The gradient of density() at the rows of x by central differences. Steps are proportional to the variable, since its
# unit is arbitrary, but bounded below near 0; for a variable that is exactly 0 they are relative to 1. They are shorter
# near a bound and near the largest number, so as not to cross them.
central_difference <- function(term, density, x) {
  part <- .Machine$double.eps^(1 / 3) # balances rounding and truncation errors
  lower <- rep(pmax(term$lower, -.Machine$double.xmax), each = nrow(x))
  upper <- rep(pmin(term$upper, .Machine$double.xmax), each = nrow(x))
  unit <- abs(x)
  unit[unit == 0] <- 1
  width <- part * pmin(pmax(unit, part), x - lower, upper - x)
  slope <- x
  for (j in seq_len(ncol(x))) {
    right <- left <- x
    right[, j] <- x[, j] + width[, j]
    left[, j] <- x[, j] - width[, j]
    rise <- density(right)$log_density - density(left)$log_density
    slope[, j] <- rise / (right[, j] - left[, j])
  }
  slope
}

# list(density, slope) for a term with types: as density_caller() and slope_caller(), but of unconstrained variables.
# All points are mapped together. with_jacobian: whether to add the log Jacobian, which only the first term of a sum
# does.
typed_callers <- function(term, types, with_jacobian) {
  plain <- types$plain
  term$dim <- length(types$names)
  user_bound <- function(bound, none) replace(rep(none, term$dim), plain$elements, bound[plain$free])
  term$lower <- user_bound(term$lower, -Inf)
  term$upper <- user_bound(term$upper, Inf)
  term$names <- types$names
  density <- density_caller(term)
  slope <- slope_caller(term)
  # the value of f at the possible points, and which points these are
  ask <- function(u, f) {
    made <- from_free(types, u)
    possible <- made$possible %in% TRUE
    value <- if (any(possible)) f(made$x[possible, , drop = FALSE])
    list(value = value, possible = possible, log_jacobian = if (with_jacobian) made$log_jacobian else 0)
  }
  pulled <- function(u, possible, gradient) {
    if (!is.null(gradient)) {
      all <- matrix(NaN, nrow(u), term$dim)
      all[possible, ] <- gradient
      pull_back_types(types, u, all, with_jacobian)
    }
  }
  list(
    density = function(u) {
      at <- ask(u, density)
      log_density <- rep(-Inf, nrow(u))
      log_density[at$possible] <- at$value$log_density
      list(
        log_density = log_density + at$log_jacobian, gradient = pulled(u, at$possible, at$value$gradient),
        n_calls = sum(at$possible)
      )
    },
    slope = if (is.null(term$gradient)) {
      slope
    } else {
      function(u, carried) {
        at <- ask(u, function(x) slope(x, NULL))
        pulled(u, at$possible, if (is.null(at$value)) numeric(0) else at$value)
      }
    }
  )
}
