# Targets from Stan programs: compiled routines (target_native.R) whose `outputs` are the program's variables.

#' A target from a Stan program
#'
#' The posterior of a Stan program with its data. Gradients are exact, by Stan's automatic differentiation. The program
#' is translated by Stan's own compiler and compiled once, which takes about half a minute; [stan_cache()] lists
#' compiled programs.
#'
#' The log density has all its constants, so `log_z` of [smc()] is the log evidence if the priors are proper:
#' `y ~ normal(mu, 1)` and `target += normal_lpdf(y | mu, 1)` are equivalent, and so are `_lpdf` and `_lupdf`. A
#' parameter that the model block does not mention has a flat prior. With it the evidence is undefined, unless the
#' parameter is bounded on both sides; its density then counts as 1, not as one over the width. A warning of class
#' `autosmc_warning_prior` names the parameters without a prior, and so do the fit (`fit$improper`) and comparisons of
#' fits. They are found from the statements of the program. A power such as `target += -log(sigma)` of a parameter with
#' `<lower=0>` does not count as a prior. A parameter is not named if only some of its elements lack a prior, or if
#' another improper prior is written out.
#'
#' The sampler and the `reference` work on Stan's unconstrained scale, with the log Jacobian of the transformations.
#' Draws are on the scale that the program declares. If no `reference` is given, an element of a `positive_ordered`
#' vector is sampled as the logarithm of its ratio to the previous element, less 1.
#'
#' Stan defines a `unit_vector[K]` by `K` standard normal variables, divided by their length, without the constants of
#' the normal density. With a density that is normalised on the sphere, `log_z` is too high by `(K / 2 - 1) * log(2) +
#' lgamma(K / 2)`, which is 0 for `K` = 2.
#'
#' @param model the program: the path of a `.stan` file, or the text of a program (string). Or a compiled program: a
#'   `stanmodel` of the package rstan, whose text is used; or the path of a library that [stan_cache()] lists. Files
#'   that the program includes must be in its folder.
#' @param data the data: a list with an element for each variable of the data block, or the path of a JSON file in
#'   CmdStan's format (string). Numbers are integer or double, and whole for `int`. Arrays of vectors or matrices are
#'   arrays with the dimensions in the order of the declaration, or lists of equal elements. The parts of a tuple `x`
#'   are elements `x.1`, `x.2` of the list. Elements that the program does not declare are ignored.
#' @param include names of the parameters, transformed parameters and generated quantities that draws contain (character
#'   vector); NULL for all. Then generated quantities of more than 100 elements, such as `log_lik`, are computed only on
#'   request: see [as_draws.smc_fit()].
#' @param response,nobs the observations, as in [target_function()]; NULL to take `y`, `Y` or `N` from the data that the
#'   program declares.
#' @param seed seed of the program's own random numbers, in transformed data and in
#'   generated quantities (a whole number from 0 to 2^32 - 1).
#' @return A target: an object of class `smc_target`. In addition to the elements of every target it has `outputs`, a
#'   function that turns an `n x dim` matrix of points on the unconstrained scale into a matrix with `n` rows and a
#'   named column for every number that `include` selects, such as `"beta[1]"` or `"Sigma[2,1]"`. Its second argument,
#'   `names`, selects columns by name.
#' @section Points at which the program throws: The log density of a point is -Inf if a check fails, a matrix is not
#'   positive definite, a solver fails, or the program calls `reject()`. Such a point is impossible, and the run
#'   continues with the others; the column `n_impossible` of a fit's `runs` counts them. If no point is possible, the
#'   run ends with an error that contains the program's own message. An index out of range, or `fatal_error()`, stops
#'   the run with an error. If generated quantities throw, they are NaN, with a warning.
#' @section Interrupts: Ctrl-C, or a time limit, ends a run between two points. On Linux and macOS Ctrl-C also takes
#'   effect at each statement of the program, so that it ends infinite loops. A call of one of Stan's own functions is
#'   never interrupted, nor on Windows the evaluation of a point.
#' @section Old programs: A program in an old version of Stan's language, such as those that brms wrote before 2.19, is
#'   updated if Stan's compiler rejects it: arrays (`int y[N]`), assignments (`<-`), comments (`#`),
#'   `increment_log_prob()`, densities such as `normal_log()`, and functions that have been renamed. A message lists the
#'   changes. If the compiler still rejects the program, its error names the line.
#' @section Printing: What the program prints is shown: each distinct line once, and at most 20 lines.
#' @section Errors: `autosmc_error_package` when a package that compilation needs is missing: BH, QuickJSR, RcppEigen,
#'   RcppParallel or StanHeaders. `autosmc_error_input` when the program does not parse (with the message of Stan's
#'   compiler), when data are missing or are not as declared, when they fail a check of the program, and when `include`
#'   names an unknown variable. `autosmc_error_mismatch` when a library given as `model` has changed since.
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

# rename: a function of the names of columns of draws that returns new names, c(old = "new"); these columns come first.
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

# A program: list(code, name, file, includes) of the text, names for messages, and the included files; stan_target()
# adds `library`, the path of the compiled library. If the user gives a library: list(name, file, library, sum).
stan_program <- function(model, arg = "model") {
  if (inherits(model, "stanmodel")) {
    name <- model@model_name
    file <- paste0(name, ".stan")
    return(list(code = model@model_code, name = name, file = file, includes = list()))
  }
  check_string(model, arg)
  if (endsWith(model, .Platform$dynlib.ext) && file.exists(model)) {
    return(program_of_library(model))
  }
  read_stan_program(model, arg)
}

program_of_library <- function(path) {
  if (isFALSE(is_whole(path))) {
    abort(c(
      "The compiled Stan program {.file {path}} is damaged: its checksum has changed since it was compiled.",
      "i" = "Give the Stan program to {.fn target_stan} instead."
    ))
  }
  library <- file_record(path)
  list(name = library$dll, file = paste0(library$dll, ".stan"), library = library$path, sum = library$sum)
}

# The record of a program's library, see target_libraries.R. A target may come from another machine, so a library that
# this session has not loaded is looked up in the cache, and compiled again if necessary. The namespace of RcppParallel
# is loaded first: it contains the TBB that the library is linked to, and R would crash at its end if TBB were unloaded
# before the library.
stan_library <- function(program) {
  path <- program$library
  if (!is.null(program$code) && is.null(loaded_library(library_name(path), path))) {
    path <- cached_library(program)
  }
  list(dll = library_name(path), path = path, sum = program$sum, namespace = "RcppParallel")
}

# `.Call()` under another name, since R CMD check would look for the routine in this package.
call_routine <- .Call

# The value of the routine autosmc_stan_NAME of a program's library.
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

# Adds the draws of a fit, a matrix with named columns, to the target. Only the columns of parameters are kept. Without
# draws of all parameters the target does not change.
with_draws <- function(target, draws) {
  if (all(target$parameters %in% colnames(draws))) {
    target$draws <- draws[, target$parameters, drop = FALSE]
  }
  target
}

# list(values, message): draws of the parameters on the unconstrained scale, NaN for draws that violate a constraint.
unconstrained_by_stan <- function(target, draws) {
  as_input_error(call_stan(target$program, "unconstrain", target$data, draws))
}

# A function that shows each distinct line of its text once, since a program prints at many points and runs. It shows at
# most `most` lines, since the lines of a program that prints a parameter are all distinct.
print_once <- function(most = 20) {
  shown <- character()
  function(text) {
    if (length(shown) < most) {
      lines <- setdiff(strsplit(text, "\n", fixed = TRUE)[[1]], shown)
      lines <- utils::head(lines, most - length(shown))
      shown <<- c(shown, lines)
      if (length(shown) == most) lines <- c(lines, "(Further output of the Stan program is not shown.)")
      cat(sprintf("%s\n", lines), sep = "")
    }
    invisible()
  }
}
