# Targets that are compiled routines of the type autosmc_target_fn (inst/include/autosmc.h), with the built-in ones.

#' A target from a compiled routine
#'
#' A C (or C++, Fortran, Rust) routine in a shared library, with the signature of the header `autosmc.h` that comes with
#' the package: it receives all points at once and fills in log densities and gradients. R is not involved in an
#' evaluation, so this is the fastest kind of target.
#'
#' @param log_density the routine (string): a function of type `autosmc_target_fn`. Or the value of
#'   [getNativeSymbolInfo()], or an object made by `useDynLib(package, .registration = TRUE)`; then `dll` is not needed.
#'   `init` may be given in these forms, too.
#' @param dll the library (string): the name of a library loaded with [dyn.load()], without path and extension, or of an
#'   installed package. Or the value of [dyn.load()].
#' @param dim the dimension (whole number, at most 10 million); 0 for a model without parameters.
#' @param init NULL; or a routine of the same library (string) of type `autosmc_init_fn` that turns the R object `data`
#'   into the context that is passed to `log_density`. It is called at the start of every run, once for each thread that
#'   calls the routine. Or two routines (two strings, or a list of two): the second, of type `autosmc_release_fn`, frees
#'   a context. It is called once for each context at the end of every run, also after an error or an interrupt.
#' @param data any R object, passed to `init`, which must be given then.
#' @param names names of the variables (character vector of length `dim`); NULL for `x1`, `x2`, ....
#' @param lower,upper bounds of the variables, as in [target_function()]: the
#'   routine receives points strictly inside them.
#' @param response,nobs the observations, as in [target_function()].
#' @param thread_safe whether the routine may be called from several threads at once (TRUE or
#'   FALSE). See the section Threads.
#' @return A target: an object of class `smc_target`.
#' @section The C file: A complete example, `normal.c`: independent normals with means that are passed from R.
#'
#'   ```c
#'   #include <Rinternals.h>
#'   #include <autosmc.h>
#'
#'   /* data: a double vector of length d; it outlives the run */
#'   void *normal_init(SEXP data) { return REAL(data); }
#'
#'   int normal(void *data, int d, int n, const double *x, double *logp,
#'              double *grad) {
#'     const double *mean = data;
#'     for (int k = 0; k < n; k++) { /* particle k is column k of x */
#'       logp[k] = 0.0;
#'       for (int i = 0; i < d; i++) {
#'         double r = x[i + d * k] - mean[i];
#'         logp[k] -= 0.5 * r * r;
#'         if (grad)
#'           grad[i + d * k] = -r;
#'       }
#'     }
#'     return 0; /* any other value stops the run with an error */
#'   }
#'   ```
#'
#'   It is compiled, loaded and sampled with
#'
#'   ```r
#'   include <- system.file("include", package = "autosmc")
#'   Sys.setenv(PKG_CPPFLAGS = paste0("-I", shQuote(include)))
#'   system2("R", c("CMD", "SHLIB", "normal.c"))
#'   dyn.load(paste0("normal", .Platform$dynlib.ext))
#'   smc(target_native("normal", "normal", dim = 3, init = "normal_init",
#'                     data = c(1, 2, 3)))
#'   ```
#'
#'   A package has `LinkingTo: autosmc` in its `DESCRIPTION` instead, and registers the routine with
#'   `R_registerRoutines()`.
#'
#'   A context that `init` allocates with `malloc()` must be freed by the second routine of `init`; memory from
#'   `R_alloc()` is freed by R. Unless the target is `thread_safe`, routines are called on R's main thread and may call
#'   R, including `Rf_error()`.
#' @section Threads: With several threads (see [reproducibility]) the particles of a run are divided into blocks, and
#'   each thread draws random numbers, transforms particles and computes weights for one block after another. By default
#'   a routine is called on the main thread, for all points at once. With `thread_safe = TRUE` it may be called for
#'   several blocks at the same time, on any thread. Such a routine must not call R, nor write to variables that calls
#'   share. It may write to its context, since `init` is called once for each thread (on the main thread), and no two
#'   simultaneous calls receive the same context. The results are the same for any number of threads if the result for a
#'   point does not depend on the other points of a call.
#' @section Errors: Of class `autosmc_error_input` when a library or a routine is not found, or when several loaded
#'   libraries have the name; of class `autosmc_error_mismatch` when the library has changed since the target was made.
#'   In a run, of class `autosmc_error_target` when the routine returns a value other than 0 (the message has the value
#'   and the step) or raises an R error.
#' @seealso [target_function()] for R functions; [autosmc_run] to run the sampler from C; `vignette("models")`.
#' @examples
#' # the package's own targets are compiled routines of this kind
#' target <- target_native("target_funnel", dll = "autosmc", dim = 2)
#' smc(target, n_steps = 8, n_particles = 128, rounds = 1, seed = 1)
#' @export
target_native <- function(
  log_density, dll, dim, init = NULL, data = NULL, names = NULL, lower = -Inf, upper = Inf, thread_safe = FALSE,
  response = NULL, nobs = NULL
) {
  check_given(log_density, "log_density")
  if (inherits(log_density, "NativeSymbolInfo")) dll <- log_density$dll
  routines <- c(list(log_density = check_routine(log_density, "log_density")), check_init(init))
  if (missing(dll)) abort("{.arg dll} is missing: the library that contains {.arg log_density}.")
  library <- library_record(check_library(dll))
  if (missing(dim)) abort("{.arg dim} is missing: it must be a positive whole number.")
  dim <- check_n(dim, "dim", min = 0)
  check_flag(thread_safe, "thread_safe")
  if (is.null(init) && !is.null(data)) abort("{.arg data} needs {.arg init}, the routine that receives it.")
  target <- new_target(
    dim, names, sprintf("routine `%s` of `%s`", routines$log_density, library$dll),
    routines = routines, library = library, data = data, thread_safe = thread_safe,
    observed = observations(response, nobs), lower = lower, upper = upper, class = "smc_target_native"
  )
  check_own_routines(with_addresses(target_interface(target)), routines, target) # so that errors are reported now
  target
}

# An error if a routine is not in the library itself but in one that it is linked to, as "printf" is.
check_own_routines <- function(addresses, routines, target) {
  path <- normalizePath(open_library(target$library)[["path"]], mustWork = FALSE)
  for (name in names(without_null(routines))) {
    file <- .Call(r_file_of_routine, addresses[[name]])
    if (!is.na(file) && !identical(normalizePath(file), path)) {
      abort("{.arg {name}}: the routine {.val {routines[[name]]}} is not in the library {.val {target$library$dll}}, but
        in {.file {file}}.")
    }
  }
}

# A built-in target: the routines target_NAME and target_NAME_init.
builtin_target <- function(name, dim, data = NULL, names = NULL, label) {
  routine <- paste0("target_", name)
  target <- target_native(
    routine, own_library(), dim,
    init = if (!is.null(data)) paste0(routine, "_init"), data = data, names = names, thread_safe = TRUE
  )
  target$label <- label
  target
}

#' @export
evaluation.smc_target_native <- function(target) {
  unclass(target)[c("data", "thread_safe", "routines", "library")]
}

# libraries and routines ------------------------------------------------------

# The loaded library that `dll` names (a DLLInfo). If it names a package, this is loaded.
check_library <- function(dll) {
  path <- if (inherits(dll, "DLLInfo")) dll[["path"]]
  if (!is.null(path)) dll <- dll[["name"]]
  check_string(dll, "dll")
  if (!dll %in% names(getLoadedDLLs())) suppressWarnings(requireNamespace(dll, quietly = TRUE))
  loaded <- getLoadedDLLs()
  loaded <- loaded[names(loaded) == dll]
  paths <- vapply(loaded, `[[`, "", "path")
  found <- if (is.null(path)) seq_along(paths) else which(paths == path)
  if (length(found) == 0) {
    abort(c(
      "{.arg dll}: there is no library {.val {dll}}.",
      "i" = "Give the name of a library loaded with {.fn dyn.load}, without path and extension, or of an installed
        package with compiled code."
    ))
  }
  if (length(found) > 1) {
    abort(c(
      "{.arg dll}: several libraries are loaded as {.val {dll}}: {.file {paths}}.",
      "i" = "Give the value of {.fn dyn.load} for the one that you mean, or unload the others."
    ))
  }
  loaded[[found]]
}

# The name of a routine.
check_routine <- function(x, arg) check_string(if (inherits(x, "NativeSymbolInfo")) x$name else x, arg)

# list(init, release): the names of the routines that make and free a context, each NULL if not given.
check_init <- function(init) {
  if (is.null(init) || inherits(init, "NativeSymbolInfo")) init <- list(init)
  if (!is.vector(init) || !length(init) %in% 1:2) {
    abort_argument(init, "init", "NULL, or one routine or two")
  }
  check <- function(x) if (!is.null(x)) check_routine(x, "init")
  list(init = check(init[[1]]), release = if (length(init) == 2) check(init[[2]]))
}
