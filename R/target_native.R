# Targets that are compiled routines, the built-in ones among them.

#' A target from a compiled routine
#'
#' A C (or C++, Fortran, Rust) routine in a shared library, with the signature of the header `autosmc.h` that comes with
#' the package: it is handed all points at once and fills in log densities and gradients. R is not involved in an
#' evaluation, so this is the fastest way to bring a model.
#'
#' @param log_density the routine (string): a function of type `autosmc_target_fn`. Or what [getNativeSymbolInfo()]
#'   returns, such as the objects that `useDynLib(package, .registration = TRUE)` makes; then `dll` is not needed.
#'   `init` may be given so too.
#' @param dll the library (string): the name of a library loaded with [dyn.load()], without its path and ending, or of
#'   an installed package. What [dyn.load()] returns will do as well.
#' @param dim the dimension (positive integer, at most 10 million).
#' @param init NULL; or a routine of the same library (string) of type `autosmc_init_fn` that turns the R object `data`
#'   into the context that `log_density` is given. It is called at the start of every run, once for each thread that
#'   calls the routine. Or two routines (two strings, or a list of two): the second, of type `autosmc_release_fn`, frees
#'   a context. It is called as often at the end of every run, also after an error or an interrupt.
#' @param data any R object, for `init`. It needs `init`.
#' @param names names of the variables (character vector of length `dim`); NULL for `x1`, `x2`, ....
#' @param lower,upper bounds of the variables, as in [target_function()]: the
#'   routine sees points strictly inside of them.
#' @param response,nobs the observations, as in [target_function()].
#' @param thread_safe whether the routine may be called from several threads at once (TRUE or
#'   FALSE). See the section Threads.
#' @return A target: an object of class `smc_target`.
#' @section The C file: This one, `normal.c`, is complete: independent normals around means that are handed over from R.
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
#'   A package instead says `LinkingTo: autosmc` in its `DESCRIPTION`, and
#'   registers the routine with `R_registerRoutines()`.
#'
#'   A context that is allocated with `malloc()` in `init` is freed by the
#'   second routine of `init`; one from `R_alloc()` frees itself. Routines are called on R's main
#'   thread and may call R, and `Rf_error()` too, unless the target is `thread_safe`.
#' @section Threads: With several threads (see [reproducibility]) a run works on all of them: they draw random numbers,
#'   transform particles and weigh them, each thread those of one block of particles after another. A routine is called
#'   on the main thread, for all points at once, unless `thread_safe = TRUE` says that it may be called for several
#'   blocks at once, on any thread. Such a routine neither calls R nor writes to variables that calls share. It may
#'   write to its context all the same: `init` is called, on the main thread, once for each thread, and no two calls at
#'   a time are given the same context. The results are the same for any number of threads, if the result for a point
#'   does not depend on the points beside it.
#' @section Errors: Of class `autosmc_error_input` when a library or a routine is not found, or when several libraries
#'   of the name are loaded; of class `autosmc_error_mismatch` when the library is no longer what it was when the target
#'   was made. In a run, of class `autosmc_error_target` when the routine returns something other than 0 (the code and
#'   the step are in the message) or raises an R error.
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
  if (missing(dll)) abort("{.arg dll} is missing: the library that {.arg log_density} is in.")
  library <- library_record(check_library(dll))
  if (missing(dim)) abort("{.arg dim} is missing: it must be a positive whole number.")
  dim <- check_n(dim, "dim", min = 0)
  check_flag(thread_safe, "thread_safe")
  if (is.null(init) && !is.null(data)) abort("{.arg data} needs {.arg init}, the routine that it is for.")
  target <- new_target(
    dim, names, sprintf("routine `%s` of `%s`", routines$log_density, library$dll),
    routines = routines, library = library, data = data, thread_safe = thread_safe,
    observed = observations(response, nobs), lower = lower, upper = upper, class = "smc_target_native"
  )
  check_own_routines(with_addresses(target_interface(target)), routines, target) # to find out now what is not there
  target
}

# That routines are in the library itself: names such as "printf" are found in what it is linked to.
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

# A loaded library (a DLLInfo); a package is loaded if need be.
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
      "i" = "Give the name of a library loaded with {.fn dyn.load}, without its path and ending, or of an installed
        package with compiled code."
    ))
  }
  if (length(found) > 1) {
    abort(c(
      "{.arg dll}: several libraries are loaded as {.val {dll}}: {.file {paths}}.",
      "i" = "Give what {.fn dyn.load} returned of the one that you mean, or unload the others."
    ))
  }
  loaded[[found]]
}

# The name of a routine.
check_routine <- function(x, arg) check_string(if (inherits(x, "NativeSymbolInfo")) x$name else x, arg)

# list(init, release): the names of the routines that make a context and free it, or NULL.
check_init <- function(init) {
  if (is.null(init) || inherits(init, "NativeSymbolInfo")) init <- list(init)
  if (!is.vector(init) || !length(init) %in% 1:2) {
    abort_argument(init, "init", "NULL, or one routine or two")
  }
  check <- function(x) if (!is.null(x)) check_routine(x, "init")
  list(init = check(init[[1]]), release = if (length(init) == 2) check(init[[2]]))
}
