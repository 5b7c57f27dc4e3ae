# Settings of a curve of evidences, one or two: a matrix, a row a setting.

# What a curve has beside its settings.
curve_columns <- c(
  "log_z", "std_error", "log_bf", "log_bf_error", "from", "anchor", "khat", "verdict", "n_target_evals"
)
settings_in <- function(curve) setdiff(names(curve), curve_columns)

# A matrix, a row a setting in ascending order. names: those of a data frame that is expected, or "value".
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
    abort("{.arg values} must have the names of the arguments of {.arg target}, other than those of a curve.")
  }
  x[ascending(x), , drop = FALSE]
}

ascending <- function(x) do.call(order, unname(as.data.frame(x)))

# That in the middle, if none is given.
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

said_setting <- function(value) {
  text <- format_each(value)
  if (length(value) == 1) text else paste(names(value), "=", text, collapse = ", ")
}

format_each <- function(x) vapply(x, format, "")

is_positive <- function(values) all(values > 0)

# Values of a setting on a scale on which they are compared.
even <- function(x) if (is_positive(x)) log(x) else x

# How far the rows of `at` are from a setting, in parts of their range.
offsets <- function(at, value) {
  do.call(cbind, lapply(seq_along(value), function(j) {
    x <- even(c(value[[j]], at[, j]))
    (x[-1] - x[1]) / max(diff(range(x)), .Machine$double.xmin)
  }))
}

# Of the rows of `at` the nearest one on each side of a setting, or in each quadrant around two, the nearest first; NA
# where there is none.
nearest_around <- function(at, value) {
  off <- offsets(at, value)
  by_distance <- order(rowSums(off^2))
  sides <- as.matrix(expand.grid(rep(list(c(-1, 1)), ncol(off))))
  in_order <- t(off[by_distance, , drop = FALSE])
  nearest <- apply(sides, 1, function(side) by_distance[colSums(in_order * side < 0) == 0][1])
  c(intersect(by_distance, nearest), if (anyNA(nearest)) NA)
}

# By which rows of numbers are compared.
said_rows <- function(x) do.call(paste, as.data.frame(x))
