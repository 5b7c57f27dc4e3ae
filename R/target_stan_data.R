# Reads and converts the data of Stan programs: lists, environments and CmdStan's JSON files.

# A named list of the data as the library reads them: numeric arrays. An element that cannot be data is a string with
# the reason, which is reported if the program declares the element.
stan_values <- function(data) {
  if (is.character(data) && length(data) > 1) {
    abort(c(
      "{.arg data} must be a list of the data, not the names of objects.",
      "i" = "Give the objects themselves: {.code mget({deparse1(data)})}, or a {.code list()} of them."
    ))
  }
  if (is.character(data)) {
    data <- read_json(data)
  } else if (is.environment(data)) {
    data <- as.list(data)
  }
  names <- names(data)
  if (!is.list(data) || (length(data) > 0 && (is.null(names) || !all(nzchar(names))))) {
    abort_argument(data, "data", "a list with a name for every element, or the path of a JSON file")
  }
  twice <- names[anyDuplicated(names)]
  if (length(twice) > 0) abort("{.arg data}: there are two elements {.val {twice}}.")
  lapply(without_null(data), stan_value)
}

read_json <- function(file) {
  check_string(file, "data")
  check_file(file, "data")
  check_installed("jsonlite", "to read data from a JSON file")
  text <- read_text(file)
  # JSON has no NaN or Inf, so they are mostly quoted; jsonlite would turn numbers in the same array into strings
  text <- gsub("([[:,]\\s*)([-+]?(NaN|Inf(inity)?))(?=\\s*[],}])", "\\1\"\\2\"", text, perl = TRUE)
  special <- grepl("\"[-+]?(NaN|Inf(inity)?)\"\\s*[],}]", text)
  data <- tryCatch(
    as.list(jsonlite::parse_json(text, simplifyVector = !special, simplifyDataFrame = FALSE)),
    error = function(e) abort("{.arg data}: {.file {file}} is not a JSON file.", parent = e)
  )
  if (is.null(names(data))) data else untuple(rapply(data, special_number, "character", how = "replace"))
}

special_number <- function(x) if (all(grepl("^[-+]?(NaN|Inf(inity)?)$", x))) as.numeric(x) else x

# CmdStan's JSON has a tuple as an object with the names "1", "2", ..., and an array of tuples as an array of such
# objects. Stan reads a tuple `x` as the variables `x.1`, `x.2`.
untuple <- function(data) {
  parts <- Map(function(x, name) {
    n <- length(first_tuple(x))
    if (n == 0) {
      return(stats::setNames(list(x), name))
    }
    untuple(stats::setNames(lapply(seq_len(n), part_of_tuple, x = x), paste0(name, ".", seq_len(n))))
  }, data, names(data))
  do.call(c, unname(parts))
}

is_tuple <- function(x) is.list(x) && length(x) > 0 && identical(names(x), as.character(seq_along(x)))

first_tuple <- function(x) {
  while (is.list(x) && length(x) > 0 && !is_tuple(x)) x <- x[[1]]
  if (is_tuple(x)) x
}

part_of_tuple <- function(x, i) if (is_tuple(x)) x[[i]] else lapply(x, part_of_tuple, i = i)

stan_value <- function(x) {
  if (is.data.frame(x)) {
    x[] <- lapply(x, function(column) if (is.factor(column)) as.integer(column) else from_integer64(column))
    x <- as.matrix(x)
  } else if (is.list(x)) {
    x <- stack_arrays(x)
    if (is.list(x)) {
      return("must be numbers, or a list of equal arrays of numbers.")
    }
  }
  x <- from_integer64(x)
  if (is.complex(x)) x <- real_and_imaginary(x)
  if (length(x) == 0) {
    return(structure(numeric(), dim = dim(x)))
  }
  # numbers of S4 classes may represent other values than they store
  if (!is.numeric(x) && !is.logical(x) || isS4(x)) {
    return(paste0("must be numbers, not ", describe(x), ".", cure_of_class(x)))
  }
  if (any(is.na(x) & !is.nan(x))) {
    return("has missing values, which Stan does not support.")
  }
  structure(as.double(x), dim = dim(x))
}

# Converts numbers of class integer64 (package bit64) to double. They are 64-bit integers, stored in the bits of
# doubles: a lower half, and an upper half with the sign. The smallest integer is NA.
from_integer64 <- function(x) {
  if (!inherits(x, "integer64") || isS4(x)) {
    return(x)
  }
  bytes <- writeBin(as.vector(unclass(x)), raw(), endian = "little")
  halves <- matrix(readBin(bytes, "integer", 2 * length(x), endian = "little"), 2)
  halves[is.na(halves)] <- -2^31 # the bits of R's NA
  values <- halves[2, ] * 2^32 + halves[1, ] %% 2^32
  values[values == -2^63] <- NA
  structure(values, dim = dim(x))
}

# How to convert an object with a class to numbers, for error messages; NULL if there is no advice.
cure_of_class <- function(x) {
  if (is.factor(x)) {
    " as.integer() returns the numbers of its levels."
  } else if (inherits(x, "difftime")) {
    sprintf(" as.numeric(x, units = \"%s\") converts it to numbers.", attr(x, "units"))
  } else if (inherits(x, c("Date", "POSIXt"))) {
    " as.numeric() converts it to numbers."
  }
}

# Complex numbers as Stan reads them: an array with an additional last dimension for real and imaginary parts.
real_and_imaginary <- function(x) {
  shape <- if (is.null(dim(x)) && length(x) != 1) length(x) else dim(x)
  array(c(Re(x), Im(x)), c(shape, 2))
}

# Stacks the arrays of a list, if they have equal shapes, along a new first dimension; otherwise returns the list.
stack_arrays <- function(x) {
  x <- lapply(x, function(element) if (is.list(element)) stack_arrays(element) else from_integer64(element))
  shapes <- lapply(x, function(element) if (is.null(dim(element))) length(element) else dim(element))
  if (length(unique(shapes)) != 1 || !all(vapply(x, is.numeric, NA))) {
    return(x)
  }
  if (identical(shapes[[1]], 1L)) {
    return(unlist(x))
  }
  stacked <- array(unlist(x), c(shapes[[1]], length(x)))
  n <- length(dim(stacked))
  aperm(stacked, c(n, seq_len(n - 1)))
}

# The data that a program declares; all data if the text of the program is not known.
declared_data <- function(values, program) {
  if (is.null(program$code)) {
    return(values)
  }
  values[intersect(names(values), identifiers(stan_block(plain_stan_code(program), "data")))]
}

# Checks the data before the program is compiled; the compiled library checks them again. Only numbers must be present,
# since an array may have no elements.
check_declared <- function(values, program) {
  for (declaration in strsplit(stan_block(plain_stan_code(program), "data"), ";")[[1]]) {
    for (name in declared_words(declaration)[-1]) {
      value <- values[[name]]
      if (is.character(value)) abort("{.arg {name}} {verbatim(value)}")
      if (is.null(value) && !grepl("[[(]", sub("<.*>", "", declaration))) {
        declared <- if (grepl("^\\s*int\\b", declaration)) "a whole number" else "a number"
        abort("{.arg {name}} is missing; the program declares {declared}.")
      }
    }
  }
}
