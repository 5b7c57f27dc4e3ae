# Data of Stan programs.

# The data as the library reads them: numeric arrays; or a string that says why an
# element cannot be data, should the program ask for it.
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
    abort_argument(data, "data", "a list of which every element has a name, or the path of a JSON file")
  }
  twice <- names[anyDuplicated(names)]
  if (length(twice) > 0) abort("{.arg data}: {.val {twice}} is there twice.")
  lapply(without_null(data), stan_value)
}

read_json <- function(file) {
  check_string(file, "data")
  check_file(file, "data")
  check_installed("jsonlite", "to read data from a JSON file")
  text <- read_text(file)
  # what is no number in JSON stands in quotation marks, mostly; jsonlite would make strings of numbers beside these
  text <- gsub("([[:,]\\s*)([-+]?(NaN|Inf(inity)?))(?=\\s*[],}])", "\\1\"\\2\"", text, perl = TRUE)
  special <- grepl("\"[-+]?(NaN|Inf(inity)?)\"\\s*[],}]", text)
  data <- tryCatch(
    as.list(jsonlite::parse_json(text, simplifyVector = !special, simplifyDataFrame = FALSE)),
    error = function(e) abort("{.arg data}: {.file {file}} is no JSON file.", parent = e)
  )
  if (is.null(names(data))) data else untuple(rapply(data, special_number, "character", how = "replace"))
}

# NaN and infinite numbers as CmdStan writes them; other strings as they are.
special_number <- function(x) if (all(grepl("^[-+]?(NaN|Inf(inity)?)$", x))) as.numeric(x) else x

# CmdStan has a tuple as an object with the names "1", "2", ..., and an array of tuples as an array of such objects.
# Stan itself asks for the parts `x.1`, `x.2` of the tuple `x`.
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
  # numbers of S4 classes mean something else than they are stored as
  if (!is.numeric(x) && !is.logical(x) || isS4(x)) {
    return(paste0("must be numbers, not ", describe(x), ".", cure_of_class(x)))
  }
  if (any(is.na(x) & !is.nan(x))) {
    return("has missing values, which Stan does not know.")
  }
  structure(as.double(x), dim = dim(x))
}

# Numbers of the package bit64, which are 64 bits that R takes for those of a double: the lower half of each, and the
# upper one with the sign. The lowest is NA.
from_integer64 <- function(x) {
  if (!inherits(x, "integer64") || isS4(x)) {
    return(x)
  }
  bytes <- writeBin(as.vector(unclass(x)), raw(), endian = "little")
  halves <- matrix(readBin(bytes, "integer", 2 * length(x), endian = "little"), 2)
  halves[is.na(halves)] <- -2^31 # which no integer of R is
  values <- halves[2, ] * 2^32 + halves[1, ] %% 2^32
  values[values == -2^63] <- NA
  structure(values, dim = dim(x))
}

# How to make numbers of what has a class, where there are several ways.
cure_of_class <- function(x) {
  if (is.factor(x)) {
    " as.integer() makes numbers of its levels."
  } else if (inherits(x, "difftime")) {
    sprintf(" as.numeric(x, units = \"%s\") makes numbers of it.", attr(x, "units"))
  } else if (inherits(x, c("Date", "POSIXt"))) {
    " as.numeric() makes numbers of it."
  }
}

# Stan's complex numbers are arrays with one dimension more.
real_and_imaginary <- function(x) {
  shape <- if (is.null(dim(x)) && length(x) != 1) length(x) else dim(x)
  array(c(Re(x), Im(x)), c(shape, 2))
}

# Equal arrays in a list, along a new first dimension; anything else as it is.
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

# Those of the data that a program asks for, where it is known.
declared_data <- function(values, program) {
  if (is.null(program$code)) {
    return(values)
  }
  values[intersect(names(values), identifiers(stan_block(plain_stan_code(program), "data")))]
}

# What the library would say of the data, but before it is compiled. An array without elements may be missing.
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
