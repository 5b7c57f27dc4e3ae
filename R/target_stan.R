# Stan programs as targets: compiled routines, whose `outputs` are what the program declares.

#' A target from a Stan program
#'
#' The posterior of a Stan program with its data, with Stan's exact gradients and
#' at compiled speed. The program is translated by Stan's own compiler and compiled
#' once, which takes about half a minute; [stan_cache()] says where it is kept.
#'
#' The log density has all its constants, so that `log_z` of [smc()] is the log evidence where the program's priors are
#' proper: `y ~ normal(mu, 1)` and `target += normal_lpdf(y | mu, 1)` are the same, and so are `_lpdf` and `_lupdf`. A
#' flat prior, as of a parameter that the model block does not mention, has no evidence unless the parameter is bounded
#' on both sides; there its density counts as 1, not as one over the width. A warning of class `autosmc_warning_prior`
#' names the parameters without a prior, as the statements of the program tell, and so do the fit (`fit$improper`) and
#' comparisons of it. A parameter that has a prior in some of its elements only, or an improper one that is written out,
#' such as `target += -log(sigma)`, is not named.
#'
#' The sampler works on Stan's unconstrained scale, with the log Jacobian of the transformations; so does the
#' `reference`. Draws come back as the program declares them. If no `reference` is given, an element of a
#' `positive_ordered` vector is sampled as the logarithm of its ratio to the element before, less 1.
#'
#' Stan makes a `unit_vector[K]` from `K` standard normal variables, divided by their
#' length, and leaves out their constants. With a density that is normalised on the sphere,
#' `log_z` is too large by `(K / 2 - 1) * log(2) + lgamma(K / 2)`, which is 0 for `K` = 2.
#'
#' @param model the program: the path of a `.stan` file, or the text of a program (string). Or a compiled program: a
#'   `stanmodel` of the package rstan, of which the text is taken; or the path of a library that [stan_cache()] lists.
#'   Files that the program includes are looked for beside it.
#' @param data the data: a list with an element for each variable of the data block, or the path of a JSON file as
#'   CmdStan has it (string). Numbers are of R's ordinary types, whole ones also for `int`; arrays of vectors or
#'   matrices are arrays with the dimensions in the order of the declaration, or lists of equal elements. The parts of a
#'   tuple `x` are elements `x.1`, `x.2` of the list. Elements that the program does not declare are ignored.
#' @param include names of the parameters, transformed parameters and generated
#'   quantities that draws are to have (character vector); NULL for all of them, of which generated quantities of more
#'   than 100 elements, such as `log_lik`, are made when they are asked for: see [as_draws.smc_fit()].
#' @param response,nobs the observations, as in [target_function()]; NULL for the data `y`, `Y` or
#'   `N`, where the program declares them.
#' @param seed seed of the program's own random numbers, in transformed data and in
#'   generated quantities (a whole number from 0 to 2^32 - 1).
#' @return A target: an object of class `smc_target`. Besides what every target has, its element `outputs` is a function
#'   that turns an `n x dim` matrix of points on the unconstrained scale into a matrix with `n` rows and a named column
#'   for every number that `include` selects, such as `"beta[1]"` or `"Sigma[2,1]"`; its second argument, `names`, may
#'   be the names of some columns.
#' @section Points at which the program throws: A point at which a check fails, a matrix is not positive definite, a
#'   solver gives up, or the program calls `reject()`, has log density -Inf: it is impossible, and the others go on. How
#'   many there were is in the column `n_impossible` of a fit's `runs`. Where no point is possible the run ends in an
#'   error that has the program's own message. An index out of range or `fatal_error()` stops the run with an error.
#'   Where generated quantities throw, they are NaN, with a warning.
#' @section Interrupts: Ctrl-C, or a limit of time, ends a run between two points. On Linux and macOS Ctrl-C is also seen
#'   at each statement of the program, so that endless loops are left at once. What runs within a single function of
#'   Stan's own goes on to its end, and so does a whole point on Windows.
#' @section Old programs: A program that Stan's compiler refuses because it is of an old version, as those that brms
#'   wrote before 2.19 are, is brought up to date: arrays (`int y[N]`), assignments (`<-`), comments (`#`),
#'   `increment_log_prob()`, densities such as `normal_log()`, and functions that have another name now. A message says
#'   what was changed. What remains is an error with the line that the compiler names.
#' @section Printing: What the program prints is shown, each different line once, and at most 20 lines.
#' @section Errors: `autosmc_error_package` when a package is missing that it takes to compile: BH, QuickJSR, RcppEigen,
#'   RcppParallel or StanHeaders. `autosmc_error_input` when the program does not parse (with the message of Stan's
#'   compiler), when data are missing or are not as declared, when they fail a check of the program, and when `include`
#'   names what is not there. `autosmc_error_mismatch` when a library that was given as `model` has changed since.
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
  stan_target(stan_program(model), data, include, seed, response, nobs)
}

# rename: a function of the names of all columns of draws, that returns those of some under other names, in the order
# in which they are to come: c(old = "new").
stan_target <- function(
  program, data, include = NULL, seed = 1, response = NULL, nobs = NULL, rename = function(names) character()
) {
  check_normalised(program)
  seed <- check_seed(check_number(seed, "seed"))
  given <- data
  data <- list(values = stan_values(data), seed = seed, print = print_once(), file = program$file)
  if (is.null(program$library)) {
    program <- without_glm(program)
    check_declared(data$values, program)
    program$library <- cached_library(program)
  }
  described <- as_input_error(call_stan(program, "describe", data))
  columns <- select_columns(described, include)
  renamed <- rename(columns$names)
  columns <- rename_columns(columns, renamed)
  target <- new_target(
    length(described$unconstrained),
    renamed_as(bracketed(described$unconstrained), renamed),
    label = paste0("Stan program `", program$name, "`"),
    routines = list(
      log_density = "autosmc_stan_log_density", init = "autosmc_stan_init",
      release = "autosmc_stan_release", settle = "autosmc_stan_settle"
    ),
    thread_safe = call_stan(program, "is_thread_safe"),
    data = data,
    program = program,
    parameters = renamed_as(bracketed(described$outputs[seq_len(described$n_parameters)]), renamed),
    renamed = renamed,
    observed = observations(response, nobs, declared_data(data$values, program)),
    class = c("smc_target_stan", "smc_target_native")
  )
  target$outputs <- stan_outputs(program$name, columns, function(x, wanted) {
    call_stan(program, "outputs", data, x, wanted$blocks, wanted$which)
  })
  target[c("at_once", "later")] <- columns[c("at_once", "later")]
  target$why <- function(unconstrained) {
    said <- call_stan(program, "why", data, unconstrained)
    if (!is.null(said)) without_class(said)
  }
  target$improper <- name_coefficients(improper_parameters(target), target$names, given)
  warn_of_flat_priors(target)
  tell_constants(target)
  target
}

#' @export
evaluation.smc_target_stan <- function(target) {
  c(unclass(target)[c("data", "thread_safe", "routines")], list(library = stan_library(target$program)))
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
    abort(c(
      "The compiled Stan program {.file {path}} has been damaged since it was compiled.",
      "i" = "Give the program itself to {.fn target_stan}."
    ))
  }
  library <- file_record(path)
  list(name = library$dll, file = paste0(library$dll, ".stan"), library = library$path, sum = library$sum)
}

# The library of a program as a record, see target_libraries.R. What this session has not loaded is looked for anew, and
# compiled again if need be: a target may come from another machine. The namespace of RcppParallel is loaded first: it
# has the TBB that the library was linked to, and R would crash as it ends if that were unloaded before.
stan_library <- function(program) {
  path <- program$library
  if (!is.null(program$code) && is.null(loaded_library(library_name(path), path))) {
    path <- cached_library(program)
  }
  list(dll = library_name(path), path = path, sum = program$sum, namespace = "RcppParallel")
}

# `.Call()` by another name: R CMD check looks for the routine in this package otherwise.
call_routine <- .Call

# The answer of a routine of a program's library.
call_stan <- function(program, name, ...) {
  info <- open_library(stan_library(program))
  routine <- find_routine("autosmc_stan_interface", info)
  if (!identical(call_routine(routine), stan_interface)) {
    path <- info[["path"]]
    abort("{.arg model}: the library {.file {path}} was compiled by another version of autosmc. Compile the program
      again.")
  }
  routine <- find_routine(paste0("autosmc_stan_", name), info)
  call_routine(routine, ...)
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

# Shows every line once, of the many points and runs in which a program prints it. A program that prints a parameter
# never prints the same twice: after so many lines it is not listened to any more.
print_once <- function(most = 20) {
  shown <- character()
  function(text) {
    if (length(shown) < most) {
      lines <- setdiff(strsplit(text, "\n", fixed = TRUE)[[1]], shown)
      lines <- utils::head(lines, most - length(shown))
      shown <<- c(shown, lines)
      if (length(shown) == most) lines <- c(lines, "(What else the Stan program prints is not shown.)")
      cat(sprintf("%s\n", lines), sep = "")
    }
    invisible()
  }
}
