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
#' counts as 1, not as one over the width.
#'
#' The sampler works on Stan's unconstrained scale, with the log Jacobian of the
#' transformations; so does the `reference`. Draws come back as the program
#' declares them. Only where no `reference` is given, elements of a `positive_ordered`
#' vector move by the logarithm of their ratio to the one before, less 1.
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
#'   or the path of a JSON file with such a list (string). Numbers are of R's ordinary
#'   types, whole ones also for `int`; arrays of vectors or matrices are arrays with
#'   the dimensions in the order of the declaration, or lists of equal elements. The
#'   parts of a tuple `x` are elements `x.1`, `x.2` of the list.
#'   Elements that the program does not declare are ignored.
#' @param include names of the parameters, transformed parameters and generated
#'   quantities that draws are to have (character vector); NULL for all of them.
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
#' @section Printing: What the program prints is shown, each different line once, and at
#'   most 20 lines.
#' @section Errors: `autosmc_error_package` when a package is missing that it takes to
#'   compile: BH, QuickJSR, RcppEigen, RcppParallel or StanHeaders.
#'   `autosmc_error_input` when the program does not parse (with the message of Stan's
#'   compiler), when data are missing or are not as declared, when they fail a check of
#'   the program, when it has no parameters, and when `include` names what is not there.
#' @seealso [target_native()] for routines in C; `vignette("models")`.
#' @examples
#' # not run, since compiling takes longer than an example should
#' \dontrun{
#' target <- target_stan("
#'   data { int N; vector[N] y; }
#'   parameters { real mu; real<lower=0> sigma; }
#'   model { mu ~ normal(0, 10); sigma ~ exponential(1); y ~ normal(mu, sigma); }
#' ", list(N = 5, y = c(4.1, 5.3, 3.8, 4.6, 5.0)))
#' smc(target)
#' }
#' @export
target_stan <- function(model, data = list(), include = NULL, seed = 1) {
  check_given(model, "model")
  program <- stan_program(model)
  seed <- check_seed(check_number(seed, "seed"))
  data <- list(
    values = stan_values(data),
    seed = seed,
    print = print_once()
  )
  if (is.null(program$library)) {
    program$library <- cached_library(program)
  }
  library <- load_stan_library(program)
  described <- as_input_error(
    .Call(stan_routine("autosmc_stan_describe", library), data)
  )
  if (length(described$unconstrained) == 0) {
    abort(
      "The Stan program {.field {program$name}} has no parameters: there is nothing to
        sample.",
      "input"
    )
  }
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
    class = c("smc_target_stan", "smc_target_native")
  )
  target$outputs <- stan_outputs(program$name, columns, function(x) {
    library <- load_stan_library(program)
    .Call(stan_routine("autosmc_stan_outputs", library), data, x, columns$blocks)
  })
  target$why <- function(unconstrained) {
    library <- load_stan_library(program)
    said <- .Call(stan_routine("autosmc_stan_why", library), data, unconstrained)
    if (!is.null(said)) without_class(said)
  }
  warn_of_flat_priors(target)
  target
}

#' @export
target_interface.smc_target_stan <- function(target) {
  library <- load_stan_library(target$program)
  c(unclass(target)[c("dim", "data", "routines")], interface_bounds(target), library)
}

# the library -----------------------------------------------------------------

# What a program is: list(code, name, file, includes, library), of which a library that the
# user has named has but name and path.
stan_program <- function(model) {
  if (inherits(model, "stanmodel")) {
    name <- model@model_name
    file <- paste0(name, ".stan")
    return(list(code = model@model_code, name = name, file = file, includes = list()))
  }
  check_string(model, "model")
  if (endsWith(model, .Platform$dynlib.ext) && file.exists(model)) {
    return(list(name = first_name(model), library = normalizePath(model)))
  }
  read_stan_program(model)
}

first_name <- function(library) sub("[.][^.]*$", "", basename(library))

# The library, loaded, as target_interface() tells of it, and compiled again where it has
# been removed or damaged since. The namespace of RcppParallel is loaded first: it has the TBB
# that the library was linked to, and R would crash as it ends if that were unloaded before.
load_stan_library <- function(program) {
  path <- program$library
  if (!first_name(path) %in% names(getLoadedDLLs())) {
    if (is.null(program$code)) {
      check_library_file(path)
    } else if (!isTRUE(is_whole(path))) {
      path <- cached_library(program)
    }
  }
  library <- list(dll = first_name(path), path = path, namespace = "RcppParallel")
  tryCatch(load_library(library), error = function(e) {
    cure <- if (is.null(program$code)) {
      "Give the program itself to {.fn target_stan}."
    } else {
      "Remove it, and it is compiled again."
    }
    abort(
      c("The compiled Stan program {.file {path}} cannot be loaded.", "i" = cure),
      "input",
      parent = e
    )
  })
  interface <- .Call(stan_routine("autosmc_stan_interface", library))
  if (!identical(interface, stan_interface)) {
    abort(
      "{.arg model}: the library {.file {path}} was compiled by another version of
        autosmc. Compile the program again.",
      "input"
    )
  }
  library
}

# That the library of a program of which nothing else is known can be loaded.
check_library_file <- function(path) {
  fault <- if (!file.exists(path)) {
    "is no longer there"
  } else if (isFALSE(is_whole(path))) {
    "has been damaged since it was compiled"
  }
  if (!is.null(fault)) {
    abort(
      c(
        "The compiled Stan program {.file {path}} {fault}.",
        "i" = "Give the program itself to {.fn target_stan}."
      ),
      "input"
    )
  }
}

stan_routine <- function(symbol, library) find_routine(symbol, library$dll)

# An error of a routine that was asked by .Call() is about what it was given. Stan puts the
# name of a class before what a check says of data.
as_input_error <- function(code) {
  tryCatch(code, autosmc_error = function(e) stop(e), error = function(e) {
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
  tryCatch(
    as.list(jsonlite::fromJSON(file)),
    error = function(e) {
      abort("{.arg data}: {.file {file}} is no JSON file.", "input", parent = e)
    }
  )
}

stan_value <- function(x) {
  if (is.data.frame(x)) {
    x <- as.matrix(x)
  } else if (is.list(x)) {
    x <- stack_arrays(x)
    if (is.list(x)) {
      return("must be numbers, or a list of equal arrays of numbers.")
    }
  }
  if (is.complex(x)) {
    x <- real_and_imaginary(x)
  }
  if (!is.numeric(x) && !is.logical(x)) {
    return(paste0("must be numbers, not ", describe(x), ".", cure_of_class(x)))
  }
  if (anyNA(x)) {
    return("has missing values, which Stan does not know.")
  }
  structure(as.double(x), dim = dim(x))
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
  x <- lapply(x, function(element) if (is.list(element)) stack_arrays(element) else element)
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

# The draws of a target on the unconstrained scale, those left out that are no values of
# the parameters, as rounding can make them: list(values, n, message), with how many there were, and what Stan says of
# the first that was left out.
unconstrained_draws <- function(target) {
  library <- load_stan_library(target$program)
  result <- as_input_error(.Call(
    stan_routine("autosmc_stan_unconstrain", library), target$data, target$draws
  ))
  list(
    values = result$values[is.finite(rowSums(result$values)), , drop = FALSE],
    n = nrow(result$values), message = result$message
  )
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
