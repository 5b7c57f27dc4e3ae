# Targets that are R functions.

#' A target from R functions
#'
#' @param log_density a function: the log density, up to a constant that is what
#'   [smc()] estimates. Of a numeric vector of length `dim`, with a number as
#'   its value; or with `vectorized = TRUE`, of an `n x dim` matrix with a row a
#'   point, with `n` numbers as its value. `NaN` and `-Inf` are allowed and mean
#'   that the point is impossible; so do numbers of 1e15 and more, and of -1e15 and
#'   less, which have no digits left behind the point: subtract a constant from such a
#'   density. The value may carry the gradient in its attribute `"gradient"`, as the
#'   functions made by [stats::deriv()] do.
#' @param dim the dimension (whole number, at most 10 million); by default as many as there are `names`. 0 is for a model
#'   without parameters, whose evidence is the value of the function (see [smc()]).
#' @param gradient a function of the same argument: the gradient, a numeric
#'   vector of length `dim` (vectorised: an `n x dim` matrix); or NULL. Without a
#'   gradient here and in the attribute, central differences are used, at
#'   `2 dim` further calls an evaluation, and a message says so once a run. Their step is 6e-6 of each
#'   variable.
#' @param vectorized whether the functions take all points at once (TRUE or
#'   FALSE). Much faster, since R's overhead is paid once and not once a point.
#' @param names names of the variables (character vector of length `dim`, no two
#'   the same, and none empty or the name of a column of draws, such as `.weight` and
#'   `.draw`); NULL for `x1`, `x2`, .... They are the names of the vector, or of the
#'   matrix's columns, that the functions are given.
#' @param lower,upper bounds of the variables: a number for all of them, or a numeric vector
#'   of length `dim`, with `-Inf` and `Inf` for none; or a named vector, such as
#'   `c(sigma = 0)`, of those that are bounded. See the section Bounds.
#' @param types NULL; or a list such as `list(w = "simplex", R = "correlation")`, with the types of variables of several
#'   elements. See the section Types.
#' @param prior NULL; or the prior, a list of the functions `log_density`, normalised, and `sample`, of the number of draws,
#'   as in [reference_function()]. It is a part of the log density, which stays as it is; for what takes a prior by itself, as
#'   `reference = "prior"` of [smc()] does.
#' @param response,nobs the observations (numeric vector, factor, matrix or data frame) and how many there are (whole
#'   number); NULL for not known. They say what the target is about, and are used for nothing else:
#'   [compare_evidence()] and its like warn of models of different observations.
#' @return A target: an object of class `smc_target`.
#' @section Bounds: The sampler moves a bounded variable on an unconstrained scale:
#'   with one bound, as the logarithm of its distance from it,
#'   `log(x - lower)` or `log(upper - x)`; with two, as the logit
#'   `log((x - lower) / (upper - x))`. The log Jacobian is added to the log
#'   density, and its derivative to the gradient. The functions, the draws and `log_z` are
#'   on the scale of `x`. Only [reference_gaussian()] and [reference_student()] are on the
#'   unconstrained scale.
#'
#'   The functions are given points strictly inside the bounds: a point that rounding would
#'   put on a bound becomes the nearest number inside. Floating-point numbers are densest
#'   around 0, so a variable with much of its mass next to a bound is best bounded by 0.
#'
#'   *Angles.* If the density has the same value at both bounds of a variable, whatever the others
#'   are, [smc()] treats it as an angle, which continues from one bound to the other. If most of the
#'   posterior lies next to these bounds, the unconstrained scale is the logit of the place between
#'   two points on the far side of the circle instead. The functions, the draws and `log_z` are not
#'   affected.
#'
#'   *Truncated normal variables.* A variable with two bounds may be normal given the others, as a
#'   coefficient with a uniform prior is in a linear model. If [smc()] finds this, and no worse a
#'   normal approximation of the target, the variable keeps its own scale, in quarters of the width
#'   from the middle, and the target ends at the bounds: on the logit scale it would have long thin
#'   tails.
#'
#'   `fit$maps` says where either was found, and a reference taken from such a fit has the same
#'   scale in [smc_run()]. Neither is looked for without a scout or with a given `reference`, nor
#'   the second with a given `kernel`.
#'
#'   *Half-normal and exponential variables.* On the logarithmic scale their density falls off
#'   steeply on the side away from the bound. There [kernel_lmc()], and [kernel_klmc()] with steps
#'   as long as they are tuned, lose a few percent of the evidence: see section Kernels of
#'   [smc_rounds]. The functions may also be called with values so large that they warn of `NaNs
#'   produced`; such points count as impossible.
#' @section Types: A variable `w` of several elements, which `names` has as `w[1]`, `w[2]` and so on, may have a type:
#'
#'   * `"simplex"`: positive numbers that sum to 1;
#'   * `"ordered"`: numbers that increase, and `"positive_ordered"`, which are positive, too;
#'   * `"correlation"`: all elements of a correlation matrix, `R[1,1]`, `R[2,1]` and so on.
#'
#'   The functions are given all elements, the draws have them, and `dim` and `names` count them. The sampler moves fewer
#'   unconstrained variables, as Stan does, and adds the log Jacobian: so `dim` of the target, and `reference_gaussian()`, are
#'   about these. The density is that of the first K - 1 of the K elements of a simplex, as that of a Dirichlet distribution is,
#'   and of the correlations below the diagonal. A prior of independent elements is not normalised for an order: it lacks
#'   the factor K!, `lfactorial(K)` on the logarithmic scale. Gradients are by all elements, as if each could be changed alone.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong. In
#'   a run, of class `autosmc_error_target` when a function returns a value of a
#'   wrong type or shape, or raises an error itself: the error names the step,
#'   and the function's own error is its `parent`. Where a function fails at its first
#'   call, the error says what it is called with; later, at which point it failed. Let a function
#'   return `-Inf` if the density cannot be computed, for instance since a matrix is not positive definite.
#' @section A single point: With `vectorized = TRUE` the functions are also given
#'   matrices of one row. R makes vectors of those easily, in `x[i, ]` and in what [apply()]
#'   and [sapply()] return; `drop = FALSE` or [matrix()] prevents that. An error at a single
#'   point says so, and has the function's own error as its `parent`.
#' @seealso [target_posterior()] for a likelihood and a prior; [target_native()]
#'   for compiled routines.
#' @examples
#' # a Gaussian, one point at a time; its log evidence is 3 / 2 * log(2 * pi) = 2.757
#' log_density <- function(x) -sum(x^2) / 2
#' target <- target_function(log_density, dim = 3, gradient = function(x) -x)
#' target
#' smc(target, n_steps = 4, n_particles = 16, rounds = 1, seed = 1)
#'
#' # all points at once
#' target_function(
#'   function(x) -rowSums(x^2) / 2,
#'   dim = 3,
#'   gradient = function(x) -x,
#'   vectorized = TRUE
#' )
#'
#' # a positive variable, all points at once; the evidence is gamma(3) = 2
#' target <- target_function(
#'   function(x) 2 * log(x) - x,
#'   dim = 1, gradient = function(x) 2 / x - 1, lower = 0, vectorized = TRUE
#' )
#' exp(smc(target, n_steps = 4, n_particles = 64, rounds = 1, seed = 1)$log_z)
#'
#' # the gradient by symbolic differentiation
#' banana <- deriv(
#'   ~ -x^2 / 2 - (y - x^2)^2 / 2,
#'   c("x", "y"),
#'   function(x, y) NULL
#' )
#' target_function(
#'   function(p) banana(p[, "x"], p[, "y"]),
#'   dim = 2,
#'   vectorized = TRUE,
#'   names = c("x", "y")
#' )
#' @export
target_function <- function(
  log_density,
  dim,
  gradient = NULL,
  vectorized = FALSE,
  names = NULL,
  lower = -Inf,
  upper = Inf,
  types = NULL,
  prior = NULL,
  response = NULL,
  nobs = NULL
) {
  sum_target(
    list(new_term(log_density, gradient, "log_density", "gradient")),
    dim,
    vectorized,
    names,
    lower,
    upper,
    types,
    prior,
    observations(response, nobs),
    label = "R function"
  )
}

# A target whose log density is the sum of `terms`.
sum_target <- function(terms, dim, vectorized, names, lower, upper, types, prior, observed, label) {
  if (missing(dim)) {
    dim <- length(names)
    if (dim == 0) {
      arg <- terms[[1]]$arg
      abort(
        c(
          "{.arg dim} is missing.",
          "i" = "It must be a positive whole number: how many variables
            {.arg {arg}} has. Their {.arg names} tell it, too."
        ),
        "input"
      )
    }
  }
  dim <- check_dim(dim, min = 0)
  check_flag(vectorized, "vectorized")
  names <- check_names(names, dim)
  bounds <- check_bounds(lower, upper, names)
  tell_uniform(lapply(terms, `[[`, "log_density"), bounds)
  types <- type_blocks(types, list(names = names, parameter = sub("\\[.*", "", names)))
  if (!is.null(types)) {
    names <- types$free
    bounds <- free_bounds(bounds, types)
  }
  target <- new_target(
    length(names),
    names,
    label = if (vectorized) paste("vectorised", label) else label,
    terms = terms,
    vectorized = vectorized,
    observed = observed,
    prior = check_prior(prior),
    lower = bounds$lower,
    upper = bounds$upper,
    class = "smc_target_function"
  )
  with_types(target, types)
}

check_prior <- function(prior) {
  if (is.null(prior)) {
    return(NULL)
  }
  if (!is.list(prior) || !setequal(names(prior), c("log_density", "sample"))) {
    abort_argument(prior, "prior", "NULL, or a list of the functions `log_density` and `sample`")
  }
  Map(check_function, prior, paste0("prior$", names(prior)))
}

# A density with a hard edge costs much where the variable has no bound there.
tell_uniform <- function(functions, bounds) {
  has_uniform <- any(vapply(functions, function(f) "dunif" %in% all.names(body(f)), NA))
  if (has_uniform && !any(is.finite(bounds$lower) & is.finite(bounds$upper))) {
    cli::cli_inform(
      c("i" = "The density has a {.fn dunif}: give the ends of the uniform distribution as {.arg lower} and {.arg upper} too.
        The sampler then keeps between them."),
      class = "autosmc_message_bounds"
    )
  }
}

# One of the user's log densities with its gradient, or NULL, and the names of the
# arguments that they were given in.
new_term <- function(log_density, gradient, arg, gradient_arg) {
  list(
    log_density = check_function(log_density, arg),
    gradient = check_function(gradient, gradient_arg, or_null = TRUE),
    arg = arg,
    gradient_arg = gradient_arg
  )
}

#' @export
target_interface.smc_target_function <- function(target) {
  c(
    list(dim = target$dim, evaluate = target_evaluator(target)),
    interface_bounds(target)
  )
}

# evaluation ------------------------------------------------------------------
# An evaluator is a function of `x` (n x d) and `gradient` (whether it is
# wanted). It returns list(log_density = n doubles, gradient = n x d doubles or
# NULL), and has checked both.

target_evaluator <- function(target) {
  shared <- target[c("dim", "names", "vectorized", "lower", "upper")]
  sum_evaluator(lapply(target$terms, c, shared), target$types)
}

# terms: of new_term(), each with `dim`, `names`, `vectorized`, `lower` and `upper`. Those
# without a gradient are differentiated by differences, and one message names them all. types: see types.R.
sum_evaluator <- function(terms, types = NULL) {
  callers <- if (is.null(types)) {
    lapply(terms, function(term) list(density = density_caller(term), slope = slope_caller(term)))
  } else {
    Map(typed_callers, terms, list(types), seq_along(terms) == 1)
  }
  densities <- lapply(callers, `[[`, "density")
  slopes <- lapply(callers, `[[`, "slope")
  told <- FALSE
  function(x, gradient) {
    values <- lapply(densities, function(density) density(x))
    if (gradient) {
      gradients <- Map(function(slope, value) slope(x, value$gradient), slopes, values)
      without <- vapply(gradients, is.null, NA)
      if (any(without) && !told) {
        told <<- TRUE
        tell_differences(terms[without])
      }
      gradients[without] <- Map(
        function(term, density) central_difference(term, density, x),
        terms[without], densities[without]
      )
    }
    list(
      log_density = Reduce(`+`, lapply(values, `[[`, "log_density")),
      gradient = if (gradient) Reduce(`+`, gradients)
    )
  }
}

# The log densities, and the gradients if the values carry them.
density_caller <- function(term) {
  values <- checked_densities(term)
  has_warned <- FALSE # a warning takes longer than many calls
  function(x) {
    at <- values(x)
    infinite <- if (!has_warned) which(at$log_density == Inf)
    if (length(infinite) > 0 && !all(is_on_bound(term, x[infinite, , drop = FALSE]))) {
      has_warned <<- TRUE
      warn_of_infinite(term$arg)
    }
    at
  }
}

checked_densities <- function(term) {
  call <- caller(term$log_density, term, "{.arg {arg}}")
  all_points <- function(x) {
    value <- call(x)
    gradient <- attr(value, "gradient", exact = TRUE)
    if (!is.null(gradient)) {
      gradient <- check_gradient_value(gradient, x, term$arg)
    }
    list(log_density = check_log_density(value, x, term$arg), gradient = gradient)
  }
  one_by_one <- function(x) {
    values <- call(x)
    log_density <- bind_points(values, 1L, x, term, check_log_density)
    list(log_density = as.vector(log_density), gradient = bind_carried(values, x, term))
  }
  if (term$vectorized) all_points else one_by_one
}

# The gradients at x: of the user's function or, where there is none, those that came with
# the values, which are NULL where none did.
slope_caller <- function(term) {
  if (is.null(term$gradient)) {
    return(function(x, carried) carried)
  }
  call <- caller(term$gradient, term, "The gradient of {.arg {arg}}")
  all_points <- function(x, carried) check_gradient_value(call(x), x, term$arg)
  one_by_one <- function(x, carried) {
    bind_points(call(x), term$dim, x, term, check_gradient_value)
  }
  if (term$vectorized) all_points else one_by_one
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
  call <- if (term$vectorized) {
    function(x) at_all_points(f, x, term, what)
  } else {
    at_each_point
  }
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

# The values at the rows of x as the rows of a matrix. They are checked all at once in compiled
# code, and one after another where one of them is not what they mostly are, plain numbers.
bind_points <- function(values, n_columns, x, term, check) {
  bound <- .Call(r_bind_points, values, n_columns)
  if (is.null(bound)) {
    checked <- lapply(seq_along(values), function(i) {
      check(values[[i]], point(x, i, term$names), term$arg)
    })
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
bind_carried <- function(values, x, term) {
  if (!.Call(r_carries_gradient, values)) {
    return(NULL)
  }
  gradients <- lapply(values, attr, "gradient", exact = TRUE)
  gradients[lengths(gradients) == 0] <- list(rep(NaN, term$dim))
  bind_points(gradients, term$dim, x, term, check_gradient_value)
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
      abort(
        c(paste(what, "failed at a single point."), say_given(x)),
        "target",
        parent = in_utf8(e)
      )
    }
  }))
}

# Marks an error of a user's function itself, with what may help, for rethrow_at_step(). What has a place in a run
# already is of another run, which the function has made.
hint_at <- function(e, hint) {
  is_own <- inherits(e, "autosmc_error") && !inherits(e, "autosmc_error_located")
  if (!is_own && leaves_room(e)) {
    abort("{hint}", c("hint", "target"), parent = in_utf8(e))
  }
}

# A function that has never worked may be one of all points where it should be of one, or the other
# way.
first_call_hint <- function(term, what) {
  arg <- term$arg
  shapes <- c(
    sprintf("one point, a numeric vector of length %d", term$dim),
    sprintf("all points, an n x %d matrix with a row each", term$dim)
  )
  if (term$vectorized) {
    shapes <- rev(shapes)
  }
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
  cli::cli_warn(
    c(
      "{.arg {arg}} returned {.val {Inf}} at some points, which count as impossible.",
      "i" = "Where the density is zero its logarithm is {.code -Inf}. Is there a division by zero, or
        a minus before the log of zero?"
    ),
    class = warning_class("infinite")
  )
}

tell_differences <- function(terms) {
  args <- vapply(terms, `[[`, "", "arg")
  gradient_args <- vapply(terms, `[[`, "", "gradient_arg")
  n <- length(terms)
  calls <- 2 * terms[[1]]$dim
  tell(
    c(
      "i" = "No gradient{cli::qty(n)}{?/s} of {.arg {args}} {?was/were} given:
        {cli::qty(n)}{?it is/they are} approximated by central differences, at {calls}
        further calls {cli::qty(n)}{?/of each }for every evaluation.",
      "i" = "Give the {cli::qty(n)}gradient{?s} as {.arg {gradient_args}}, or use
        {.fn target_rtmb}, which derives {cli::qty(n)}{?it/them}."
    ),
    class = "autosmc_message_gradient"
  )
}

# Over ways in proportion to the variable, whose unit is anyone's choice, but for where it is next to 0. A variable that
# is 0 does not show its unit, and 1 is taken. Near a bound they are shorter, so as not to cross it; nor the largest number there is.
central_difference <- function(term, density, x) {
  part <- .Machine$double.eps^(1 / 3) # errors of rounding and of curvature are about the same
  lower <- pmax(term$lower, -.Machine$double.xmax)
  upper <- pmin(term$upper, .Machine$double.xmax)
  slope <- x
  for (j in seq_len(term$dim)) {
    unit <- ifelse(x[, j] == 0, 1, abs(x[, j]))
    width <- part * pmin(
      pmax(part, unit),
      x[, j] - lower[j],
      upper[j] - x[, j]
    )
    right <- left <- x
    right[, j] <- x[, j] + width
    left[, j] <- x[, j] - width
    rise <- density(right)$log_density - density(left)$log_density
    slope[, j] <- rise / (right[, j] - left[, j])
  }
  slope
}

# checks of what the functions return -----------------------------------------

# x: what the function was given, the matrix of all points or the vector of one.

check_log_density <- function(value, x, arg) {
  n <- n_points(x)
  if (length(value) != n || !(is.numeric(value) || is_all_na(value))) {
    expected <- if (n == 1) "a number" else paste(n, "numbers, one a row")
    given <- describe(value)
    abort(
      c("{.arg {arg}} must return {expected}; it returned {given}.", say_given(x)),
      "target"
    )
  }
  as.double(value)
}

check_gradient_value <- function(value, x, arg) {
  n <- n_points(x)
  d <- length(x) / n
  fits <- length(value) == n * d &&
    (n == 1 || d == 1 || is.matrix(value) && nrow(value) == n)
  if (!fits || !(is.numeric(value) || is_all_na(value))) {
    expected <- if (n == 1) {
      paste("a numeric vector of length", d)
    } else {
      sprintf("a numeric matrix of %d rows, one a point, and %d columns", n, d)
    }
    given <- describe(value)
    abort(
      c("The gradient of {.arg {arg}} must be {expected}; it is {given}.", say_given(x)),
      "target"
    )
  }
  as.double(value)
}

n_points <- function(x) if (is.matrix(x)) nrow(x) else 1

# Lines of an error message: what a function was given, and how R loses its rows.
say_given <- function(x) {
  if (!is.matrix(x)) {
    return(c(
      "i" = sprintf("The function was given one point, a vector of length %d.", length(x)),
      "i" = "A function of all points, a row each, takes {.code vectorized = TRUE}."
    ))
  }
  shape <- sprintf("The function was given %s, a row a point.", describe(x))
  if (nrow(x) > 1) {
    return(c("i" = shape))
  }
  c(
    "i" = shape,
    "i" = "R makes a vector of a single row or column, as in {.code x[i, ]} and what
      {.fn apply} and {.fn sapply} return: {.code drop = FALSE} or {.fn matrix} keeps the
      matrix."
  )
}

# A plain NA is logical in R, but means a missing number.
is_all_na <- function(x) is.logical(x) && all(is.na(x))
