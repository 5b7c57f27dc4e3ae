# Evaluation of targets that are R functions. An evaluator is a function of `x` (n x d) and of whether the gradient is
# wanted, and returns list(log_density, gradient, n_calls), which it has checked: `n_calls` is how many points a
# function was asked for, differences included; where there are several functions, the one that was asked for the most.

terms_of <- function(target) lapply(target$terms, c, target[c("dim", "names", "vectorized", "lower", "upper")])

# terms: of new_term(), each with `dim`, `names`, `vectorized`, `lower` and `upper`. Those
# without a gradient are differentiated by differences, and one message names them all. types: see target_types.R.
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

# A list(density, slope) of functions for each term.
term_callers <- function(terms, types) {
  if (is.null(types)) {
    lapply(terms, function(term) list(density = density_caller(term), slope = slope_caller(term)))
  } else {
    Map(typed_callers, terms, list(types), seq_along(terms) == 1)
  }
}

# The log densities, and the gradients if the values carry them.
density_caller <- function(term) {
  call <- caller(term$log_density, term, "{.arg {arg}}")
  has_warned <- FALSE # a warning takes longer than many calls
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

# The gradients at x: of the user's function or, where there is none, those that came with
# the values, which are NULL where none did.
slope_caller <- function(term) {
  if (is.null(term$gradient)) {
    return(function(x, carried) carried)
  }
  call <- caller(term$gradient, term, "The gradient of {.arg {arg}}")
  function(x, carried) checked_values(call(x), term$dim, x, term, check_gradient_value)
}

# A function of x that calls f, one of the functions of a term, and returns what f does: a list
# of the values at the rows of x, where f is one of a single point. what: f, in an error.
caller <- function(f, term, what) {
  force(f)
  has_worked <- FALSE
  under_way <- NULL # the environment that has the point `at`
  # compiled: a loop in R, which takes the rows and names them one after another, costs as
  # much as the calls of a cheap function
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

# What a caller() has returned. The values at single points become the rows of a matrix. They are checked all at once in
# compiled code, and one after another where one of them is not what they mostly are, plain numbers.
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

# The gradients that some of the values carry, NaN for the others; NULL where none does.
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

# f(x). A function that takes all points must take a single one too. One that fails there
# has mostly lost a dimension on the way, and R's own error would not say so.
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

# Marks an error of a user's function itself, with what may help, for rethrow_at_step(). What has a place in a run
# already is of another run, which the function has made.
hint_at <- function(e, hint) {
  is_own <- inherits(e, "autosmc_error") && !inherits(e, "autosmc_error_located")
  if (!is_own && leaves_room(e)) abort("{hint}", c("hint", "target"), parent = in_utf8(e))
}

# A function that has never worked may be one of all points where it should be of one, or the other way.
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

# One that has worked may have come to a point at which it cannot. at: that point, where it is known.
later_call_hint <- function(at, term, what) {
  arg <- term$arg
  where <- if (is.null(at)) "now" else paste("at", say_point(at))
  cli::format_inline(
    what, " failed {where}, and had worked at other points. Where the density cannot be computed, ",
    "let {.arg {arg}} return {.code -Inf}: such a point is impossible."
  )
}

# The first of its coordinates.
say_point <- function(at, most = 4) {
  some <- utils::head(at, most)
  said <- paste(names(some), "=", format(some, digits = 3, trim = TRUE), collapse = ", ")
  paste0("(", said, if (length(at) > most) ", ...", ")")
}

# A stack that has overflowed leaves no room for a handler.
leaves_room <- function(e) !inherits(e, "stackOverflowError")

# Points that rounding has put on a bound, or next to it, where densities such as that of a gamma
# distribution may well be infinite.
is_on_bound <- function(term, x) {
  off <- pmin(abs(sweep(x, 2, term$lower)), abs(sweep(x, 2, term$upper)))
  rowSums(off < .Machine$double.xmin) > 0
}

# Elsewhere a density of +Inf is mostly a division by zero, or a log of zero that has lost its sign.
# No particle can stay at such a point.
warn_of_infinite <- function(arg) {
  warn("infinite", c(
    "{.arg {arg}} returned {.val {Inf}} at some points, which count as impossible.",
    "i" = "Where the density is zero its logarithm is {.code -Inf}. Is there a division by zero, or
      a minus before the log of zero?"
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

# Over ways in proportion to the variable, whose unit is anyone's choice, but for where it is next to 0. A variable that
# is 0 does not show its unit, and 1 is taken. Near a bound they are shorter, so as not to cross it; nor the largest
# number there is.
central_difference <- function(term, density, x) {
  part <- .Machine$double.eps^(1 / 3) # errors of rounding and of curvature are about the same
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

# The callers of a term of R functions, as density_caller() and slope_caller() have them, for unconstrained variables:
# all points are mapped together, whatever the functions take. The Jacobian counts once: with_jacobian says whether
# here.
typed_callers <- function(term, types, with_jacobian) {
  plain <- types$plain
  term$dim <- length(types$names)
  user_bound <- function(bound, none) replace(rep(none, term$dim), plain$elements, bound[plain$free])
  term$lower <- user_bound(term$lower, -Inf)
  term$upper <- user_bound(term$upper, Inf)
  term$names <- types$names
  density <- density_caller(term)
  slope <- slope_caller(term)
  # what a function returns at the possible ones of the points, and which these are
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
