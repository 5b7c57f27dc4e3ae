# smc_all(): fits of many targets, one after another or in parallel.

#' Fits of many models
#'
#' [smc()] for each target of a list. If a model fails, its error takes the place of its fit, and the others are fitted
#' nevertheless.
#'
#' Each model has its own seed, which depends only on `seed` and its place in the list. So models can be added at the
#' end of the list, and results do not depend on the number of workers. Under a plan of the package future, such as
#' `future::plan("multisession")`, each model is a future (see [reproducibility]). Before that, targets are made of
#' model objects in this process, where Stan programs are compiled one after another.
#'
#' Single fits do not warn that they are unreliable or have heavy tails. Instead, the printed table has a column
#' `converged`, and [compare_evidence()] warns.
#'
#' @param targets a list of targets, or of what [as_target()] takes: functions, fits of brms, and the like. Its names
#'   are those of the models.
#' @param ... arguments of [smc()] for all of them, such as `precision`, and of [as_target()], such as `dim` of
#'   functions.
#' @param seed a whole number from 0 to 2^32 - 1 from which the seeds of the models follow; NULL to draw one from R's
#'   generator.
#' @param checkpoint NULL, or the path of a folder (string) from which an interrupted call resumes; it has a folder for
#'   each model.
#' @inheritParams smc
#' @return A list of class `smc_fits` with the names of the models: a fit of [smc()] each, or an error.
#'   [compare_evidence()] and [average_draws()] take it, and leave errors out with a warning.
#' @section Errors: `autosmc_error_input` when `targets` is not a list, and `autosmc_error_target` when all models have
#'   failed, with the first of their errors as its `parent`. `autosmc_error_mismatch` when the folder belongs to another
#'   call, and `autosmc_error_worker` when a worker was lost three times with the same model.
#' @seealso [inclusion()], [check_evidence()]
#' @examples
#' targets <- list(wide = target_gaussian(2, sd = 2), shifted = target_gaussian(2, mean = 1))
#' fits <- smc_all(targets, n_particles = 128, n_steps = 8, seed = 1)
#' fits
#' compare_evidence(fits)
#' @export
smc_all <- function(targets, ..., seed = NULL, checkpoint = NULL, progress = interactive()) {
  check_given(targets, "targets")
  if (!identical(class(targets), "list") || length(targets) == 0) {
    abort_argument(targets, "targets", "a list of targets, with at least one")
  }
  expression <- substitute(targets)
  labels <- check_labels(NULL, expressions_in(expression, targets))
  arguments <- split_arguments(list(...))
  check_flag(progress, "progress")
  run <- with_seed_of_call(list(checkpoint = check_folder(checkpoint)), seed)
  seeds <- draw_seeds(run$seed, length(targets))
  folders <- if (!is.null(checkpoint)) file.path(run$checkpoint, sprintf("model-%d", seq_along(targets)))
  fits <- lapply(targets, function(x) attempt(do.call(as_target, c(list(x), arguments$target), quote = TRUE)))
  ready <- which(!vapply(fits, inherits, NA, "error"))
  smc_arguments <- arguments$smc
  inputs <- lapply(ready, function(i) list(target = fits[[i]], seed = seeds[i], checkpoint = folders[i]))
  once_each(over_jobs(
    inputs, function(input) attempt(do.call(smc, c(input, smc_arguments, list(progress = FALSE)), quote = TRUE)),
    "smc_arguments",
    user_functions(list(fits[ready], smc_arguments)), function(i, fit) fits[[ready[i]]] <<- fit,
    if (progress) "Models"
  ))
  if (all(vapply(fits, inherits, NA, "error"))) {
    abort("All models of {.arg targets} failed.", "target", parent = in_utf8(fits[[1]]))
  }
  given <- as.list(match.call(expand.dots = FALSE)$...)
  each <- if (is.language(expression)) expression else quote(targets)
  place <- if (is.null(names(targets))) seq_along(targets) else labels
  for (i in seq_along(fits)) {
    if (inherits(fits[[i]], "smc_fit")) {
      own <- list(target = call("[[", each, place[[i]]), seed = seeds[i], checkpoint = folders[i])
      fits[[i]]$call <- as.call(c(as.name("smc"), without_null(own), given))
    }
  }
  structure(stats::setNames(fits, labels), class = "smc_fits")
}

# n different seeds. The first ones are the same for any larger n.
draw_seeds <- function(seed, n) {
  as.double(with_seed(seed_of_run(seed, models_key), sample.int(.Machine$integer.max, n)))
}

# Arguments for smc(), and those that are for as_target().
split_arguments <- function(arguments) {
  is_own <- rlang::names2(arguments) %in% setdiff(names(formals(smc)), c("target", "..."))
  list(smc = arguments[is_own], target = arguments[!is_own])
}

# The value of `code`, or its error. Errors that are not those of the model (a foreign checkpoint, a lost worker, a time
# limit) are raised. Warnings that the fit itself records are suppressed.
attempt <- function(code) {
  of_itself <- paste0("autosmc_warning_", c("unreliable", "moments"))
  tryCatch(suppressWarnings(code, classes = of_itself), error = function(e) {
    if (inherits(e, c("autosmc_error_mismatch", "autosmc_error_worker")) || is_time_limit(e)) stop(e)
    e$trace <- NULL # which may hold the data
    e
  })
}

#' @export
print.smc_fits <- function(x, ...) {
  is_failed <- vapply(x, inherits, NA, "error")
  failed <- if (any(is_failed)) sprintf(", %d failed", sum(is_failed))
  cat("<smc_fits> ", count_of(length(x), "model"), failed, "\n", sep = "")
  fits <- unclass(x)[!is_failed]
  rows <- evidences_of(fits, names(fits))[c("log_z", "std_error", "converged")]
  rows[1:2] <- lapply(rows[1:2], fixed, decimals_of_error(rows$std_error))
  print(data.frame(model = names(fits), rows), row.names = FALSE)
  for (i in which(is_failed)) {
    said <- sprintf("%s: <%s> %s", names(x)[i], class(x[[i]])[1], gsub("\\s+", " ", conditionMessage(x[[i]])))
    cat(strwrap(said, min(getOption("width"), 80), exdent = 2), sep = "\n")
  }
  invisible(x)
}
