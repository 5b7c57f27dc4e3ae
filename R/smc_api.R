# The sampler for the C code of other packages.

#' Run the sampler from C
#'
#' A package can run the sampler from its own C or C++ code, on a target that is a C routine (see [target_native()]), by
#' the function `autosmc_run()` of the header `autosmc_api.h`. R checks the settings once; no evaluation of the target
#' passes through R. The header documents the settings and the results; this page shows how the parts fit together.
#'
#' One call is one run. With step sizes that are given the run is unbiased; with `step_size` NULL it tunes them. To tune
#' once, and to run again with what was found, as in the example, is what [smc()] does with `rounds = 0` and `islands =
#' 1`; the same seeds and settings give the same numbers. Everything else is as in [smc()] by default.
#'
#' @section The package: Its `DESCRIPTION` has
#'
#'   ```
#'   Imports: autosmc
#'   LinkingTo: autosmc
#'   ```
#'
#'   and its `NAMESPACE` imports something of autosmc, so that it is loaded: `importFrom(autosmc, target_native)`, say.
#'   A whole package of this kind, which tunes the sampler and runs it again with what was found, and has a target for
#'   [smc()] besides, is in `system.file("examples", "linked", package = "autosmc")`: copy it from there, and install
#'   the copy with `R CMD INSTALL`. The examples below show its C code.
#' @section Rules: `autosmc_run()` is called on R's main thread, and looks for the user's interrupt. Failures are
#'   returned as a code with a message. An interrupt, an R error that the target raises, and a lack of memory leave it
#'   by a long jump instead. A caller that holds C++ objects, or memory that R does not free, calls it through
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

# What core_config() makes of the fields of the header's `autosmc_settings` (a list;
# NULL for what is a null pointer), with the defaults of smc() for all else; or the
# message (string) that says what is wrong with them.
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

# A target whose routine only the caller knows.
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
