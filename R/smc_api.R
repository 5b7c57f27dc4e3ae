# The R side of autosmc_run(), the sampler for the C code of other packages: api_config(), which C calls, makes a
# configuration of the caller's settings.

#' Run the sampler from C
#'
#' A package can run the sampler from its own C or C++ code, on a target that is a C routine (see [target_native()]), by
#' the function `autosmc_run()` of the header `autosmc_api.h`. R checks the settings once; no evaluation of the target
#' passes through R. The header documents the settings and the results. This page says how a package uses them.
#'
#' One call is one run. With given step sizes the run is unbiased; with `step_size` NULL it tunes them. The example
#' tunes once and runs again with the tuned step sizes, as [smc()] does with `rounds = 0` and `islands = 1`; the same
#' seeds and settings give the same numbers. All other settings are the defaults of [smc()].
#'
#' @section The package: Its `DESCRIPTION` has
#'
#'   ```
#'   Imports: autosmc
#'   LinkingTo: autosmc
#'   ```
#'
#'   and its `NAMESPACE` imports any object of autosmc, so that it is loaded, such as
#'   `importFrom(autosmc, target_native)`. A complete package of this kind, which also has a target for [smc()], is in
#'   `system.file("examples", "linked", package = "autosmc")`: copy it, and install the copy with `R CMD INSTALL`. The
#'   examples below show its C code.
#' @section Rules: `autosmc_run()` must be called on R's main thread, and checks for interrupts by the user. Failures
#'   are returned as a code with a message. An interrupt, an R error that the target raises, and a lack of memory leave
#'   it by a long jump instead. A caller that holds C++ objects, or memory that R does not free, must call it through
#'   `R_UnwindProtect()`.
#' @seealso [target_native()] for C targets that are given to [smc()].
#' @name autosmc_run
#' @examples
#' # the headers, for a compiler's option -I where there is no LinkingTo
#' dir(system.file("include", package = "autosmc"))
#' # the example package
#' linked <- system.file("examples", "linked", package = "autosmc")
#' dir(linked, recursive = TRUE)
#' writeLines(readLines(file.path(linked, "src", "linked.c")))
NULL

# The configuration of a run (see core_config()) for the fields of the header's `autosmc_settings`, a list in which a
# null pointer is NULL; all else has the defaults of smc(). If a field is wrong, an error message (string).
api_config <- function(fields) {
  tryCatch(
    {
      kernel <- kernel_by_name(fields$kernel, "kernel", fields$step_size, fields$refresh_rate)
      defaults <- lapply(formals(smc)[c("tuner", "resampling", "ess_threshold")], eval, environment())
      target <- structure(list(dim = check_count(fields$d, "d")), class = c("smc_target_caller", "smc_target"))
      given <- list(
        n_particles = fields$n_particles, kernel = kernel,
        reference = api_reference(fields), seed = fields$seed, progress = FALSE
      )
      sampler <- new_sampler(target, c(given, defaults))
      path <- check_path(api_schedule(fields), kernel)
      core_config(sampler, path, if (is_to_be_tuned(kernel)) complete_tuner(sampler), fields$run)
    },
    autosmc_error_input = function(e) gsub("\\s+", " ", cli::ansi_strip(e$message))
  )
}

# The target of a caller in C: R does not know its routine.
#' @export
evaluation.smc_target_caller <- function(target) NULL

api_schedule <- function(fields) {
  n_steps <- check_n(fields$n_steps, "n_steps")
  if (is.null(fields$lambda)) schedule_power(n_steps) else c(0, check_schedule(c(0, fields$lambda), "lambda"))
}

api_reference <- function(fields) {
  mean <- fields$reference_mean
  sd <- fields$reference_sd
  reference_gaussian(
    if (is.null(mean)) 0 else check_numeric(mean, "reference_mean"),
    if (is.null(sd)) 1 else check_positive(sd, "reference_sd")
  )
}
