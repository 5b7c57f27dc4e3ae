# The settings of evidence_curve(), one number or two each: a matrix with a row for each.

# The columns of a curve other than its settings.
curve_columns <- c(
  "log_z", "std_error", "log_bf", "log_bf_error", "from", "anchor", "khat", "verdict", "n_target_evals"
)
settings_in <- function(curve) setdiff(names(curve), curve_columns)

# The settings as a matrix, a row each, in ascending order. names: the columns that are expected, "value" for one
# setting; NULL if they are not known yet.
check_curve_settings <- function(values, names = NULL) {
  check_given(values, "values")
  is_table <- is.data.frame(values)
  if (is_table && !is.null(names) && setequal(names(values), names)) values <- values[names]
  columns <- if (is_table) as.list(values) else list(value = values)
  expected <- if (is.null(names)) is_table == (length(columns) == 2) else identical(names(columns), names)
  is_numbers <- function(x) is.numeric(x) && !is.object(x) && length(x) > 0 && all(is.finite(x))
  x <- if (expected && all(vapply(columns, is_numbers, NA))) do.call(cbind, lapply(columns, as.double))
  if (is.null(x) || anyDuplicated(x) > 0) {
    numbers <- "different finite numbers"
    abort_argument(values, "values", if (length(names) == 2) {
      sprintf("a data frame of `%s` and `%s`, %s", names[1], names[2], numbers)
    } else {
      paste0(numbers, if (is.null(names)) ", or a data frame of two columns of them")
    })
  }
  if (is_table && (anyDuplicated(names(columns)) > 0 || any(c(curve_columns, "value", "") %in% names(columns)))) {
    abort(c(
      "The columns of {.arg values} must be named as the arguments of {.arg target}.",
      "i" = "These names are taken by the curve itself: {.field {c(curve_columns, 'value')}}."
    ))
  }
  x[ascending(x), , drop = FALSE]
}

ascending <- function(x) do.call(order, unname(as.data.frame(x)))

# The setting in use, a named number or two; NULL is the setting in the middle.
check_used <- function(used, values) {
  if (is.null(used)) {
    places <- lapply(as.data.frame(values), function(x) match(x, sort(unique(x))))
    from_middle <- lapply(places, function(place) abs(place - (max(place) + 1) / 2))
    return(values[which.min(Reduce(`+`, from_middle)), ])
  }
  if (ncol(values) == 1) {
    return(c(value = check_number(used, "used")))
  }
  given <- unlist(used)
  if (!is.numeric(given) || length(given) != 2 || !setequal(names(given), colnames(values)) || !all(is.finite(given))) {
    abort_argument(used, "used", "a number for each of the two settings, with its name")
  }
  given[colnames(values)]
}

format_setting <- function(value) {
  text <- format_each(value)
  if (length(value) == 1) text else paste(names(value), "=", text, collapse = ", ")
}

format_each <- function(x) vapply(x, format, "")

is_positive <- function(values) all(values > 0)

# Settings are compared on a logarithmic scale if all are positive.
log_if_positive <- function(x) if (is_positive(x)) log(x) else x

# The differences of the rows of `at` from a setting, as fractions of the range, in the shape of `at`.
offsets <- function(at, value) {
  do.call(cbind, lapply(seq_along(value), function(j) {
    x <- log_if_positive(c(value[[j]], at[, j]))
    (x[-1] - x[1]) / max(diff(range(x)), .Machine$double.xmin)
  }))
}

# The indices of the rows of `at` that are nearest to a setting, one on each side of it, or with two settings one in
# each quadrant around it; the nearest comes first, and NA last if a side or quadrant is empty.
nearest_around <- function(at, value) {
  off <- offsets(at, value)
  by_distance <- order(rowSums(off^2))
  sides <- as.matrix(expand.grid(rep(list(c(-1, 1)), ncol(off))))
  in_order <- t(off[by_distance, , drop = FALSE])
  nearest <- apply(sides, 1, function(side) by_distance[colSums(in_order * side < 0) == 0][1])
  c(intersect(by_distance, nearest), if (anyNA(nearest)) NA)
}

# Strings by which rows of numbers are compared.
row_keys <- function(x) do.call(paste, as.data.frame(x))
