# Checks of arguments. Each returns the argument, converted to the type in which it is used, or raises an error of class
# autosmc_error_input that names the argument, `arg`.

# For arguments without a default. what: a sentence that says what to give.
check_given <- function(x, arg, what = NULL) {
  if (missing(x)) {
    abort(c("{.arg {arg}} is missing, with no default.", "i" = what))
  }
}

is_number <- function(x) is.numeric(x) && length(x) == 1 && is.finite(x)

check_count <- function(x, arg, min = 1, max = .Machine$integer.max) {
  check_given(x, arg)
  if (!is_number(x) || x != round(x) || x < min || x > max) {
    expected <- if (max < .Machine$integer.max || is_number(x) && x > max) {
      sprintf("a whole number from %d to %d", as.integer(min), as.integer(max))
    } else if (min == 1) {
      "a positive whole number"
    } else if (min == 0) {
      "a whole number of at least 0"
    } else {
      paste("a whole number of at least", min)
    }
    abort_argument(x, arg, expected)
  }
  as.integer(x)
}

# A number of variables, steps or draws. Above 1e7, names and tables would take gigabytes, and R could run out of memory
# before it raises an error.
check_n <- function(n, arg, min = 1) check_count(n, arg, min, max = 1e7)

check_number <- function(x, arg, min = -Inf, max = Inf, open = FALSE) {
  inside <- is_number(x) &&
    if (open) x > min && x < max else x >= min && x <= max
  if (!inside) {
    abort_argument(x, arg, describe_range(min, max, open))
  }
  as.double(x)
}

describe_range <- function(min, max, open) {
  if (min == 0 && max == Inf) {
    if (open) "a positive number" else "a number of at least 0"
  } else if (max == Inf) {
    if (min == -Inf) "a number" else paste("a number", if (open) "above" else "of at least", min)
  } else if (min == -Inf) {
    paste("a number", if (open) "below" else "of at most", max)
  } else {
    paste("a number between", min, "and", max)
  }
}

# A finite numeric vector of one of the given lengths (NULL: any). of: what its elements are, for the message.
check_numeric <- function(x, arg, lengths = NULL, of = "finite numbers") {
  fits <- is.numeric(x) &&
    all(is.finite(x)) &&
    length(x) > 0 &&
    (is.null(lengths) || length(x) %in% lengths)
  if (!fits) {
    size <- if (length(unique(lengths)) > 2) {
      sprintf(" of a length from %d to %d", min(lengths), max(lengths))
    } else if (!is.null(lengths)) {
      paste(" of length", paste(unique(lengths), collapse = " or "))
    }
    abort_argument(x, arg, paste0("a vector of ", of, size))
  }
  as.double(x)
}

check_positive <- function(x, arg, lengths = NULL) {
  of <- "positive numbers"
  x <- check_numeric(x, arg, lengths, of)
  check_each(x, arg, x > 0, of)
}

# is_right: a logical vector, whether each element of x is valid. of: what elements must be, for the message.
check_each <- function(x, arg, is_right, of) {
  first <- which(!is_right)[1]
  if (!is.na(first)) {
    abort("{.arg {arg}} must contain {of} only; element {first} is {format(x[first])}.")
  }
  x
}

# `lower` and `upper` of a target's variables: a list of both, one number a variable.
check_bounds <- function(lower, upper, names) {
  lower <- check_bound(lower, -Inf, "lower", names)
  upper <- check_bound(upper, Inf, "upper", names)
  crossed <- which(!(lower < upper))[1]
  if (!is.na(crossed)) {
    at <- format(c(lower[crossed], upper[crossed]))
    abort("{.arg lower} must be below {.arg upper}; for {.field {names[crossed]}} they are {at[1]} and {at[2]}.")
  }
  list(lower = lower, upper = upper)
}

# A bound given as one number, one for each variable, or by names; variables that are not named have the bound `none`.
check_bound <- function(x, none, arg, names) {
  dim <- length(names)
  is_named <- !is.null(names(x))
  if (!is.numeric(x) || anyNA(x) || !is_named && !length(x) %in% c(1, dim)) {
    size <- paste(unique(c(1, dim)), collapse = " or ")
    abort_argument(x, arg, paste("numbers, of length", size))
  }
  if (!is_named) {
    return(rep_len(as.double(x), dim))
  }
  given <- names(x)
  unknown <- unique(c(setdiff(given, names), given[duplicated(given)]))
  if (length(unknown) > 0) {
    abort(c(
      "The names of {.arg {arg}} must be names of variables, each at most once; {.val {unknown}} {?is/are} not.",
      "i" = "The variables are {.val {names}}."
    ))
  }
  replace(rep(none, dim), match(given, names), x)
}

check_flag <- function(x, arg) {
  if (!is.logical(x) || length(x) != 1 || is.na(x)) {
    abort_argument(x, arg, "TRUE or FALSE")
  }
  x
}

check_string <- function(x, arg) {
  check_given(x, arg)
  if (!is.character(x) || length(x) != 1 || is.na(x) || Encoding(x) == "bytes" || !validEnc(x) || !nzchar(x)) {
    abort_argument(x, arg, "a string")
  }
  x
}

# One of `choices`: by default, the vector that is the default of the caller's argument `arg`, whose first is used if
# the argument is missing.
check_choice <- function(x, arg, choices = eval(formals(sys.function(sys.parent()))[[arg]])) {
  if (identical(x, choices)) {
    return(choices[1])
  }
  if (!is.character(x) || length(x) != 1 || !x %in% choices) {
    abort_argument(x, arg, paste("one of", toString(dQuote(choices, FALSE))))
  }
  x
}

check_function <- function(x, arg, or_null = FALSE) {
  check_given(x, arg, "It must be a function.")
  if (!is.function(x) && !(or_null && is.null(x))) {
    abort_argument(x, arg, if (or_null) "a function or NULL" else "a function")
  }
  x
}

check_class <- function(x, arg, class, made_by) {
  check_given(x, arg)
  if (!inherits(x, class)) {
    abort_argument(x, arg, paste0("made by `", made_by, "`"))
  }
  x
}

# Columns that augment() and as_draws_df() add, so that no variable may have these names.
reserved_names <- c(".weight", ".log_weight", ".island", ".chain", ".iteration", ".draw")

# Names of the variables; by default x1, x2, ...
check_names <- function(names, dim) {
  if (is.null(names)) {
    return(if (dim == 1) "x" else sprintf("x%d", seq_len(dim)))
  }
  if (!is.character(names) || length(names) != dim || anyNA(names)) {
    abort_argument(names, "names", paste("a character vector of length", dim))
  }
  taken <- names %in% c("", reserved_names)
  if (any(taken)) {
    abort(c(
      "{.arg names} must not have {.val {names[taken][1]}} among them.",
      "i" = "These names are reserved: \"\" and {.val {reserved_names}}."
    ))
  }
  if (anyDuplicated(names)) {
    twice <- names[anyDuplicated(names)]
    abort("{.arg names} must be unique; {.val {twice}} is there twice.")
  }
  names
}

# The names of the arguments of all functions of the package on the call stack that have dots.
called_with_dots <- function() {
  arguments <- lapply(seq_len(sys.nframe()), function(which) {
    f <- sys.function(which)
    if (identical(environment(f), topenv())) names(formals(f))
  })
  setdiff(unlist(Filter(function(a) "..." %in% a, arguments)), "...")
}

# The name in `known` that is closest to a misspelt one, if at most a third of its letters differ; else NULL.
closest_name <- function(name, known) {
  edits <- drop(utils::adist(name, known, ignore.case = TRUE))
  if (isTRUE(min(edits, Inf) <= nchar(name) / 3)) known[which.min(edits)]
}

# An error if there is any argument in the dots, with a suggestion for a misspelt name.
check_dots_empty <- function(...) {
  if (...length() > 0) {
    given <- ...names()
    named <- given[nzchar(given)]
    if (length(named) > 0) {
      meant <- closest_name(named[1], called_with_dots())
      abort(c(
        "Unknown argument: {.arg {named}}.",
        "i" = if (!is.null(meant)) "Did you mean {.arg {meant}} instead of {.arg {named[1]}}?"
      ))
    }
    abort("There is an argument without a name, {describe(...elt(1))}: give it its name.")
  }
}

# An error if a suggested package is not installed. purpose: what it is needed for, such as "to write a page".
check_installed <- function(package, purpose) {
  if (!requireNamespace(package, quietly = TRUE)) {
    install <- sprintf("install.packages(\"%s\")", package)
    abort(
      "The package {.pkg {package}} is needed {purpose}: {.code {install}}.",
      "package"
    )
  }
}

# The C core calls this if R cannot allocate the `bytes` of memory that a run needs.
abort_memory <- function(bytes) {
  size <- format(structure(bytes, class = "object_size"), units = "auto", standard = "SI")
  abort(
    c(
      "The run needs {size} of memory, which is more than there is.",
      "i" = "Use fewer particles ({.arg n_particles}) or fewer islands. R functions of a target need further memory."
    ),
    "memory",
    bytes = bytes
  )
}

# A seed as a double; NULL is drawn from R's generator, by exactly one draw.
check_seed <- function(seed) {
  if (is.null(seed)) {
    return(floor(stats::runif(1) * 2^31))
  }
  if (!is_number(seed) || seed != round(seed) || seed < 0 || seed >= 2^32) {
    abort_argument(seed, "seed", "NULL or a whole number from 0 to 2^32 - 1")
  }
  as.double(seed)
}

own_version <- function() unname(getNamespaceVersion("autosmc"))

# An error for an argument `arg` that another version of the package has made (made_by; NULL: unknown). so: what does
# not work therefore; advice: what to do.
abort_version <- function(arg, so, advice = "Make it anew.", made_by = NULL) {
  made_by <- if (is.null(made_by)) "an older version of autosmc" else paste("autosmc", made_by)
  abort(
    c("{.arg {arg}} was made by {made_by}, and this is {own_version()}: {so}.", "i" = advice),
    "mismatch",
    differs = "version"
  )
}

# An error if another version has made the fit: its state and its runs may differ. so: what does not work therefore.
check_version <- function(fit, so) {
  made_by <- fit$session$autosmc
  if (!identical(made_by, own_version())) {
    abort_version("fit", so, "Its estimate and its draws remain valid. For more, fit the model again.", made_by)
  }
}

# An error if `reference` is among the arguments that are passed on to smc().
check_no_reference <- function(...) {
  if ("reference" %in% ...names()) {
    abort("{.arg reference} cannot be given: it is the fit of a similar target.")
  }
}
