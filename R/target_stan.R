# Stan programs as targets: compiled routines, whose `outputs` are what the program
# declares.

#' A target from a Stan program
#'
#' The posterior of a Stan program with its data, with Stan's exact gradients and
#' at compiled speed. The program is translated by Stan's own compiler and compiled
#' once, which takes about half a minute; [stan_cache()] says where it is kept.
#'
#' The log density has all its constants, so that `log_z` of [smc()] is the log
#' evidence where the program's priors are proper: `y ~ normal(mu, 1)` and
#' `target += normal_lpdf(y | mu, 1)` are the same, and so are `_lpdf` and
#' `_lupdf`. A flat prior, as of a parameter that the model block does not mention,
#' has no evidence unless the parameter is bounded on both sides; there its density
#' counts as 1, not as one over the width. A warning of class `autosmc_warning_prior` names the parameters without a
#' prior, as the statements of the program tell, and so do the fit (`fit$improper`) and comparisons of it. A parameter that has
#' a prior in some of its elements only, or an improper one that is written out, such as
#' `target += -log(sigma)`, is not named.
#'
#' The sampler works on Stan's unconstrained scale, with the log Jacobian of the
#' transformations; so does the `reference`. Draws come back as the program
#' declares them. If no `reference` is given, an element of a `positive_ordered`
#' vector is sampled as the logarithm of its ratio to the element before, less 1.
#'
#' Stan makes a `unit_vector[K]` from `K` standard normal variables, divided by their
#' length, and leaves out their constants. With a density that is normalised on the sphere,
#' `log_z` is too large by `(K / 2 - 1) * log(2) + lgamma(K / 2)`, which is 0 for `K` = 2.
#'
#' @param model the program: the path of a `.stan` file, or the text of a program
#'   (string). Or a compiled program: a `stanmodel` of the package rstan, of
#'   which the text is taken; or the path of a library that [stan_cache()] lists. Files
#'   that the program includes are looked for beside it.
#' @param data the data: a list with an element for each variable of the data block,
#'   or the path of a JSON file as CmdStan has it (string). Numbers are of R's ordinary
#'   types, whole ones also for `int`; arrays of vectors or matrices are arrays with
#'   the dimensions in the order of the declaration, or lists of equal elements. The
#'   parts of a tuple `x` are elements `x.1`, `x.2` of the list.
#'   Elements that the program does not declare are ignored.
#' @param include names of the parameters, transformed parameters and generated
#'   quantities that draws are to have (character vector); NULL for all of them.
#' @param response,nobs the observations, as in [target_function()]; NULL for the data `y`, `Y` or
#'   `N`, where the program declares them.
#' @param seed seed of the program's own random numbers, in transformed data and in
#'   generated quantities (a whole number from 0 to 2^32 - 1).
#' @return A target: an object of class `smc_target`. Besides what every target has, its
#'   element `outputs` is a function that turns an `n x dim` matrix of points on the
#'   unconstrained scale into a matrix with `n` rows and a named column for every
#'   number that `include` selects, such as `"beta[1]"` or `"Sigma[2,1]"`.
#' @section Points at which the program throws: A point at which a check fails, a
#'   matrix is not positive definite, a solver gives up, or the program calls
#'   `reject()`, has log density -Inf: it is impossible, and the others go on. How many
#'   there were is in the column `n_impossible` of a fit's `runs`. Where no point is possible
#'   the run ends in an error that has the program's own message. An
#'   index out of range or `fatal_error()` stops the run with an error.
#'   Where generated quantities throw, they are NaN, with a warning.
#' @section Old programs: A program that Stan's compiler refuses because it is of an old version, as those that brms wrote
#'   before 2.19 are, is brought up to date: arrays (`int y[N]`), assignments (`<-`), comments (`#`),
#'   `increment_log_prob()`, densities such as `normal_log()`, and functions that have another name now. A message says
#'   what was changed. What remains is an error with the line that the compiler names.
#' @section Printing: What the program prints is shown, each different line once, and at
#'   most 20 lines.
#' @section Errors: `autosmc_error_package` when a package is missing that it takes to
#'   compile: BH, QuickJSR, RcppEigen, RcppParallel or StanHeaders.
#'   `autosmc_error_input` when the program does not parse (with the message of Stan's
#'   compiler), when data are missing or are not as declared, when they fail a check of
#'   the program, and when `include` names what is not there.
#'   `autosmc_error_mismatch` when a library that was given as `model` has changed since.
#' @seealso [target_native()] for routines in C; `vignette("models")`.
#' @examplesIf length(find.package(c("BH", "QuickJSR", "RcppEigen", "RcppParallel", "StanHeaders"), quiet = TRUE)) == 5
#' # compiling takes a minute
#' \donttest{
#' \dontshow{
#' cache <- Sys.getenv("R_USER_CACHE_DIR", NA)
#' Sys.setenv(R_USER_CACHE_DIR = tempdir())
#' }
#' target <- target_stan("
#'   data { int N; vector[N] y; }
#'   parameters { real mu; real<lower=0> sigma; }
#'   model { mu ~ normal(0, 10); sigma ~ exponential(1); y ~ normal(mu, sigma); }
#' ", list(N = 5, y = c(4.1, 5.3, 3.8, 4.6, 5.0)))
#' smc(target)
#' \dontshow{
#' if (is.na(cache)) Sys.unsetenv("R_USER_CACHE_DIR") else Sys.setenv(R_USER_CACHE_DIR = cache)
#' }
#' }
#' @export
target_stan <- function(model, data = list(), include = NULL, seed = 1, response = NULL, nobs = NULL) {
  check_given(model, "model")
  program <- stan_program(model)
  check_normalised(program)
  seed <- check_seed(check_number(seed, "seed"))
  given <- data
  data <- list(
    values = stan_values(data),
    seed = seed,
    print = print_once(),
    file = program$file
  )
  if (is.null(program$library)) {
    program$library <- cached_library(program)
  }
  described <- as_input_error(call_stan(program, "describe", data))
  columns <- select_columns(described, include)
  target <- new_target(
    length(described$unconstrained),
    bracketed(described$unconstrained),
    label = paste0("Stan program `", program$name, "`"),
    routines = list(
      log_density = "autosmc_stan_log_density",
      init = "autosmc_stan_init",
      release = "autosmc_stan_release"
    ),
    data = data,
    program = program,
    parameters = bracketed(described$outputs[seq_len(described$n_parameters)]),
    observed = observations(response, nobs, declared_data(data$values, program)),
    class = c("smc_target_stan", "smc_target_native")
  )
  target$outputs <- stan_outputs(program$name, columns, function(x) {
    call_stan(program, "outputs", data, x, columns$blocks)
  })
  target$why <- function(unconstrained) {
    said <- call_stan(program, "why", data, unconstrained)
    if (!is.null(said)) without_class(said)
  }
  target$improper <- name_coefficients(improper_parameters(target), target$names, given)
  warn_of_flat_priors(target)
  tell_thresholds(target)
  target
}

#' @export
target_interface.smc_target_stan <- function(target) {
  library <- stan_library(target$program)
  c(unclass(target)[c("dim", "data", "routines")], interface_bounds(target), list(library = library))
}

# the library -----------------------------------------------------------------

# What a program is: list(code, name, file, includes, library), of which a library that the
# user has named has but name, path and `sum`.
stan_program <- function(model) {
  if (inherits(model, "stanmodel")) {
    name <- model@model_name
    file <- paste0(name, ".stan")
    return(list(code = model@model_code, name = name, file = file, includes = list()))
  }
  check_string(model, "model")
  if (endsWith(model, .Platform$dynlib.ext) && file.exists(model)) {
    return(program_of_library(model))
  }
  read_stan_program(model)
}

# Of a library of which nothing else is known.
program_of_library <- function(path) {
  if (isFALSE(is_whole(path))) {
    abort(
      c(
        "The compiled Stan program {.file {path}} has been damaged since it was compiled.",
        "i" = "Give the program itself to {.fn target_stan}."
      ),
      "input"
    )
  }
  library <- file_record(path)
  list(name = library$dll, file = paste0(library$dll, ".stan"), library = library$path, sum = library$sum)
}

# The library of a program as a record, see libraries.R. What this session has not loaded is looked for anew, and
# compiled again if need be: a target may come from another machine. The namespace of RcppParallel is loaded first: it
# has the TBB that the library was linked to, and R would crash as it ends if that were unloaded before.
stan_library <- function(program) {
  path <- program$library
  if (!is.null(program$code) && is.null(loaded_library(first_name(path), path))) {
    path <- cached_library(program)
  }
  list(dll = first_name(path), path = path, sum = program$sum, namespace = "RcppParallel")
}

# The answer of a routine of a program's library.
call_stan <- function(program, name, ...) {
  info <- open_library(stan_library(program))
  routine <- find_routine("autosmc_stan_interface", info)
  if (!identical(.Call(routine), stan_interface)) {
    path <- info[["path"]]
    abort(
      "{.arg model}: the library {.file {path}} was compiled by another version of
        autosmc. Compile the program again.",
      "input"
    )
  }
  routine <- find_routine(paste0("autosmc_stan_", name), info)
  .Call(routine, ...)
}
utils::suppressForeignCheck("routine")

# An error of a routine that was asked by .Call() is about what it was given. Stan puts the
# name of a class before what a check says of data.
as_input_error <- function(code) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "autosmc_error")) stop(e)
    abort_verbatim(without_class(conditionMessage(e)), "input")
  })
}

without_class <- function(said) {
  sub("^autosmc_stan_program[^ ]*: ", "", sub("^Exception: ", "", said))
}

# data ------------------------------------------------------------------------

# The data as the library reads them: numeric arrays; or a string that says why an
# element cannot be data, should the program ask for it.
stan_values <- function(data) {
  if (is.character(data) && length(data) > 1) {
    abort(
      c(
        "{.arg data} must be a list of the data, not the names of objects.",
        "i" = "Give the objects themselves: {.code mget({deparse1(data)})}, or a {.code list()} of them."
      ),
      "input"
    )
  }
  if (is.character(data)) {
    data <- read_json(data)
  } else if (is.environment(data)) {
    data <- as.list(data)
  }
  names <- names(data)
  if (!is.list(data) || (length(data) > 0 && (is.null(names) || !all(nzchar(names))))) {
    abort_argument(
      data, "data", "a list of which every element has a name, or the path of a JSON file"
    )
  }
  twice <- names[anyDuplicated(names)]
  if (length(twice) > 0) {
    abort("{.arg data}: {.val {twice}} is there twice.", "input")
  }
  lapply(without_null(data), stan_value)
}

read_json <- function(file) {
  check_string(file, "data")
  if (!utils::file_test("-f", file)) {
    abort("{.arg data}: there is no file {.file {file}}.", "input")
  }
  check_installed("jsonlite", "to read data from a JSON file")
  text <- read_text(file)
  # what is no number in JSON stands in quotation marks, mostly; jsonlite would make strings of numbers beside these
  text <- gsub("([[:,]\\s*)([-+]?(NaN|Inf(inity)?))(?=\\s*[],}])", "\\1\"\\2\"", text, perl = TRUE)
  special <- grepl("\"[-+]?(NaN|Inf(inity)?)\"\\s*[],}]", text)
  data <- tryCatch(
    as.list(jsonlite::parse_json(text, simplifyVector = !special, simplifyDataFrame = FALSE)),
    error = function(e) {
      abort("{.arg data}: {.file {file}} is no JSON file.", "input", parent = e)
    }
  )
  if (is.null(names(data))) {
    return(data)
  }
  untuple(rapply(data, special_number, "character", how = "replace"))
}

# NaN and infinite numbers as CmdStan writes them; other strings as they are.
special_number <- function(x) {
  if (all(grepl("^[-+]?(NaN|Inf(inity)?)$", x))) as.numeric(x) else x
}

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

part_of_tuple <- function(x, i) {
  if (is_tuple(x)) x[[i]] else lapply(x, part_of_tuple, i = i)
}

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
  if (is.complex(x)) {
    x <- real_and_imaginary(x)
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

# Numbers of the package bit64, which are 64 bits that R takes for those of a double: the lower half of each, and the upper
# one with the sign. The lowest is NA.
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
  shapes <- lapply(x, function(element) {
    if (is.null(dim(element))) length(element) else dim(element)
  })
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

# outputs ---------------------------------------------------------------------

# "beta.1" and "Sigma.2.1" are Stan's names of what R users know as "beta[1]" and
# "Sigma[2,1]".
bracketed <- function(names) {
  indexed <- grepl(".", names, fixed = TRUE)
  opened <- sub(".", "[", names[indexed], fixed = TRUE)
  names[indexed] <- paste0(gsub(".", ",", opened, fixed = TRUE), "]")
  names
}

# Which columns draws are to have: list(names, which, blocks), `which` among those of the
# blocks that are needed, `blocks` whether transformed parameters and generated
# quantities are.
select_columns <- function(described, include) {
  names <- bracketed(described$outputs)
  n <- length(names)
  block <- rep(1:3, c(
    described$n_parameters,
    described$n_transformed,
    n - described$n_parameters - described$n_transformed
  ))
  keep <- rep(TRUE, n)
  if (!is.null(include)) {
    variables <- sub("[.:].*", "", described$outputs)
    if (!is.character(include) || length(include) == 0) {
      abort_argument(include, "include", "NULL or a character vector")
    }
    unknown <- setdiff(include, variables)
    if (length(unknown) > 0) {
      known <- unique(variables)
      abort(
        "{.arg include}: the program has no {.val {unknown}}, but {.val {known}}.",
        "input"
      )
    }
    keep <- variables %in% include
  }
  blocks <- 2:3 %in% block[keep]
  made <- block %in% c(1, (2:3)[blocks])
  list(names = names[keep], which = which(keep[made]), blocks = blocks)
}

# The function `outputs` of a target. ask: a function of a matrix, which the program's
# library answers with list(values, failed, message).
stan_outputs <- function(name, columns, ask) {
  force(name)
  force(columns)
  function(unconstrained) {
    storage.mode(unconstrained) <- "double"
    result <- as_input_error(ask(unconstrained))
    failed <- result$failed
    if (failed > 0) {
      n <- nrow(unconstrained)
      reason <- result$message
      cli::cli_warn(
        c(
          "The Stan program {.field {name}} failed at {failed} of {n} points;
            their generated quantities are NaN.",
          "x" = "The first time: {reason}"
        ),
        class = warning_class("outputs")
      )
    }
    name_columns(result$values[, columns$which, drop = FALSE], columns$names)
  }
}

# draws -----------------------------------------------------------------------

# The target with the draws of a fit: a matrix with a row a draw and named columns, of
# which those of the parameters are kept. Without any where a parameter is missing.
with_draws <- function(target, draws) {
  if (all(target$parameters %in% colnames(draws))) {
    target$draws <- draws[, target$parameters, drop = FALSE]
  }
  target
}

# list(values, message): draws of the parameters on the unconstrained scale, NaN where they cannot be that.
unconstrained_by_stan <- function(target, draws) {
  as_input_error(call_stan(target$program, "unconstrain", target$data, draws))
}

# Shows every line once, of the many points and runs in which a program prints it. A
# program that prints a parameter never prints the same twice: after so many lines it is
# not listened to any more.
print_once <- function(most = 20) {
  shown <- character()
  function(text) {
    if (length(shown) < most) {
      lines <- setdiff(strsplit(text, "\n", fixed = TRUE)[[1]], shown)
      lines <- utils::head(lines, most - length(shown))
      shown <<- c(shown, lines)
      if (length(shown) == most) {
        lines <- c(lines, "(What else the Stan program prints is not shown.)")
      }
      cat(sprintf("%s\n", lines), sep = "")
    }
    invisible()
  }
}
