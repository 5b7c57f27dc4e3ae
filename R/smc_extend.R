# More islands for a fit that there is: in this session, or by their numbers, anywhere.

#' More islands for a fit
#'
#' Adds islands to a fit, which is a smaller standard error without another adaptation. Islands are numbered, and each
#' is the same whenever and wherever it is run: a fit with 8 islands that is extended to 40 is the fit that 40 islands
#' at once would have given, as long as all draws are kept.
#'
#' `smc_extend()` runs them in this session, under a plan of future in parallel. `update(fit, islands = 40)` is the
#' same. `smc_islands()` runs islands by their numbers in any session, on any machine, and `smc_combine()` puts them
#' together: in a job array each task has the fit, runs its own islands and saves them.
#'
#' The islands of a fit of [smc()] can suggest a better reference, from which `smc()` then
#' adapts again. `smc_extend()` adds islands of the last kind, and adapts no further. So
#' `smc()` with 40 islands may have gone on where `smc()` with 8 has not.
#'
#' @param fit a fit of [smc()], [smc_run()] or [smc_adapt()]; the latter has no islands yet.
#' @param islands for `smc_extend()`, how many there are to be in all (whole number of at least as many as there are).
#'   For `smc_combine()`, what `smc_islands()` has returned, or a list of such objects, in any order.
#' @param precision a standard error of `log_z` (number of at least 1e-15) for which islands are
#'   added, as far as `max_islands` allows. With `n` islands and an error `se` it takes about
#'   `n (se / precision)^2` of them: the next batch is what is missing to that, between 4
#'   and 64 islands. With `progress` a message says beforehand how many evaluations that is.
#' @param max_islands the most islands in all (positive integer); NULL for 1024.
#' @param keep what is kept of the islands, those that there are as well: NULL for the same as before; for a fit that
#'   has all draws as in [smc()], which allows to add islands in nearly constant memory (see [reproducibility]).
#' @param which numbers of islands (whole numbers): the first of a fit is 1, and a fit with 8 is continued by the ninth.
#' @inheritParams smc
#' @return `smc_extend()` and `smc_combine()`: an object of class `smc_fit`, as [smc()] returns it, of all islands
#'   together. What is not the same as if all had been run at once is the time, and the evaluations of the bridge and
#'   the diagnostics, which are made again: the row `"final"` of `runs` counts them.
#'
#'   `smc_islands()`: an object of class `smc_islands`, to be saved with [saveRDS()], say.
#' @section Errors: `autosmc_error_input` when an argument is not what it should be; among
#'   them islands that are missing, or are there twice. `autosmc_error_mismatch` when islands
#'   belong to another fit: with another seed, schedule, reference, target or version of
#'   autosmc, and when another version has made `fit`. The field `differs` names what is different.
#' @seealso `vignette("large")`.
#' @examples
#' target <- target_gaussian(2, mean = 3)
#' fit <- smc(target, n_particles = 128, n_steps = 8, islands = 4, seed = 1)
#' smc_extend(fit, islands = 6)
#'
#' # the same in pieces, each of which may run elsewhere
#' fifth <- smc_islands(fit, 5)
#' sixth <- smc_islands(fit, 6)
#' smc_combine(fit, list(fifth, sixth))
#' @export
smc_extend <- function(fit, islands = NULL, precision = NULL, max_islands = NULL, keep = NULL, checkpoint = NULL,
                       progress = interactive()) {
  check_extendable(fit)
  n <- length(fit$state$records)
  if (is.null(islands) && is.null(precision) && is.null(keep)) {
    abort("{.arg islands}, {.arg precision} or {.arg keep} must be given.")
  }
  wanted <- check_wanted(fit, islands, precision, max_islands)
  sampler <- sampler_of_fit(fit, fit$seed)
  sampler$keep <- check_kept(fit, keep)
  check_n_draws(sampler, wanted$islands)
  sampler <- with_checkpoint(sampler, checkpoint)
  sampler$show_progress <- check_flag(progress, "progress")
  given <- list(islands = islands, precision = precision, max_islands = max_islands, keep = keep)
  call <- call_extended(fit$call, given)
  fit <- reduce_fit(fit, sampler$keep)
  if (wanted$islands == n) {
    more <- n_wanted(fit, n, wanted)
    if (more == 0) {
      aims <- c("precision", "max_islands", "asked")
      fit[aims] <- wanted[aims]
      fit$call <- call
      warn_if_unreliable(fit)
      return(fit)
    }
    announce_islands(sampler, more, fit$islands)
    wanted$islands <- as.integer(n + more)
  }
  sampler$progress <- new_progress(sampler$show_progress, 0, wanted$islands - n)
  once_each(extended(fit, sampler, list(), wanted, call))
}

#' @rdname smc_extend
#' @export
smc_islands <- function(fit, which, progress = interactive()) {
  check_extendable(fit)
  check_given(which, "which")
  if (!are_island_numbers(which)) {
    abort_argument(which, "which", "different positive whole numbers")
  }
  which <- as.integer(which)
  sampler <- with_fingerprint(sampler_of_fit(fit, fit$seed))
  sampler$show_progress <- check_flag(progress, "progress")
  sampler$progress <- new_progress(sampler$show_progress, 0, length(which))
  path <- as.list(fit$schedule)
  numbers <- fit$state$start - 1 + which
  records <- once_each(lapply_islands(sampler, numbers, path))
  settings <- settings_of_run(sampler, path)
  entries <- Map(function(record, number) {
    new_entry(sampler, run_name("final", number), settings, stored_record(record), points_of(record, sampler))
  }, records, numbers)
  structure(list(which = which, entries = entries), class = "smc_islands")
}

#' @rdname smc_extend
#' @export
smc_combine <- function(fit, islands) {
  check_extendable(fit)
  check_given(islands, "islands")
  if (inherits(islands, "smc_islands")) islands <- list(islands)
  if (!is.list(islands) || length(islands) == 0 || !all(vapply(islands, inherits, NA, "smc_islands"))) {
    abort_argument(islands, "islands", "made by `smc_islands()`, or a list of such objects")
  }
  which <- unlist(lapply(islands, numbers_of_islands))
  n <- length(fit$state$records)
  check_complete(which, n)
  sampler <- with_fingerprint(sampler_of_fit(fit, fit$seed))
  path <- as.list(fit$schedule)
  settings <- settings_of_run(sampler, path)
  once_each({
    entries <- unlist(lapply(islands, `[[`, "entries"), recursive = FALSE)
    records <- Map(function(entry, which) {
      number <- fit$state$start - 1 + which
      record <- open_entry(
        entry, sampler, run_name("final", number), settings, record_restorer(sampler, path, "final", number), points_of,
        sprintf("Island %d", which)
      )
      if (is.null(record)) {
        abort("{.arg islands}: island {which} is damaged. Run it again.")
      }
      record
    }, entries, which)
    extended(fit, sampler, records[order(which)], check_wanted(fit, n + length(records)), fit$call)
  })
}

#' @export
print.smc_islands <- function(x, ...) {
  log_z <- lapply(x$entries, function(entry) read_entry(entry)$value$runs$log_z)
  cat("<smc_islands> ", length(log_z), " island(s)\n", sep = "")
  shown <- ifelse(lengths(log_z) == 1, as.character(lapply(log_z, format)), "damaged")
  print(data.frame(island = x$which, log_z = shown), row.names = FALSE)
  invisible(x)
}

# what a fit is extended from ---------------------------------------------------

# The fit with more islands, of which there are these records, and as many again as are wanted.
extended <- function(fit, sampler, records, wanted, call) {
  wanted$bridges <- fit$state$bridges
  held <- hold_islands(fit$state$records, pooled_draws(fit))
  pool_islands(held, seq_along(records), function(i) records[[i]])
  final <- run_islands(sampler, as.list(fit$schedule), wanted, fit$state$start, held)
  final$n_bridge_evals <- final$n_bridge_evals + n_besides_islands(fit)
  course <- fit$state$course
  corrections <- lapply(which(fit$runs$run == "correction"), function(i) row_of(fit$runs, i))
  result <- c(conclude(sampler, final, course), list(course = course, corrections = corrections))
  plan <- intersect(names(fit), plan_names)
  left_out <- fit$truncated[names(fit$truncated) != "n_islands"]
  new_fit(sampler, result, c(fit[plan], wanted, list(truncated = left_out)), call)
}

# The call that would have made the fit at once. given: NULL for what was not asked for.
call_extended <- function(call, given) {
  if (call[[1]] != "smc_adapt") {
    call[c("precision", "max_islands")] <- NULL
    given <- without_null(given)
    call[names(given)] <- given
  }
  call
}

# What the fit's bridge and diagnostics have taken.
n_besides_islands <- function(fit) {
  if (is.null(fit$islands)) 0 else unlist(last_run(fit)[spent]) - colSums(fit$islands[spent], na.rm = TRUE)
}

# checks ------------------------------------------------------------------------

check_extendable <- function(fit) {
  check_class(fit, "fit", "smc_fit", "smc()")
  check_has_state(fit, "islands cannot be added")
}

# As of check_islands(), and at least as many as there are. NULL: not asked for.
check_wanted <- function(fit, islands, precision = NULL, max_islands = NULL) {
  n <- length(fit$state$records)
  if (!is.null(islands)) islands <- check_count(islands, "islands", min = max(n, 1))
  if (is.null(max_islands)) {
    max_islands <- if (is.null(precision) && !is.null(fit$max_islands)) fit$max_islands else 1024L
  }
  wanted <- check_islands(if (is.null(islands)) max(n, 1) else islands, precision, max_islands)
  wanted$islands <- max(wanted$islands, n)
  wanted
}

# What a fit's islands are to keep; NULL is what they do.
check_kept <- function(fit, keep) {
  if (is.null(keep)) {
    return(fit$keep)
  }
  keep <- check_keep(keep)
  if (!can_keep(fit, keep)) {
    kept <- fit$keep
    abort(c(
      "The islands of {.arg fit} have kept {kept}, which cannot be changed to {keep}.",
      "i" = "Only a fit that has kept all draws can be given another {.arg keep}."
    ))
  }
  keep
}

are_island_numbers <- function(which) {
  is.numeric(which) && length(which) > 0 && all(is.finite(which)) && !anyDuplicated(which) &&
    all(which == round(which) & which >= 1 & which < islands_apart)
}

# The numbers of what smc_islands() has made.
numbers_of_islands <- function(islands) {
  which <- islands$which
  if (!are_island_numbers(which) || !is.list(islands$entries) || length(islands$entries) != length(which)) {
    abort("{.arg islands} must be as `smc_islands()` has made them; they have been changed.")
  }
  as.integer(which)
}

# The numbers of islands that are to follow the first n.
check_complete <- function(which, n) {
  twice <- as.character(sort(unique(c(which[duplicated(which)], which[which <= n]))))
  missing <- as.character(setdiff(seq_len(max(n, which)), c(seq_len(n), which)))
  if (length(twice) > 0) {
    abort("{.arg islands} is there twice: island{cli::qty(twice)}{?s} {twice}.")
  }
  if (length(missing) > 0) {
    abort("{.arg islands} is not complete: island{cli::qty(missing)}{?s} {missing} {?is/are} missing.")
  }
}

#' @rdname coef.smc_fit
#' @export
update.smc_fit <- function(object, ...) {
  changes <- as.list(substitute(list(...)))[-1]
  if (sum(nzchar(names(changes))) < length(changes)) {
    abort("{.fn update} takes the arguments to change by their names.")
  }
  fit <- grown(object, changes, parent.frame())
  call <- if (is.null(fit)) object$call else fit$call
  call[names(changes)] <- changes
  if (is.null(fit)) {
    verb <- get(as.character(call[[1]]), topenv())
    arguments <- as.list(call)[-1]
    # the target as it is, and not its expression, unless the changes concern it; without
    # what belonged to the expression of a function
    own <- setdiff(names(formals(verb)), c("target", "..."))
    if (all(names(changes) %in% own)) arguments <- c(list(target = object$target), arguments[names(arguments) %in% own])
    fit <- eval(as.call(c(verb, arguments)), parent.frame())
  }
  fit$call <- call
  fit
}

# The fit with more islands, where the changes ask for no more than that; or NULL.
grown <- function(fit, changes, frame) {
  n <- length(fit$state$records)
  of_islands <- c("islands", "precision", "max_islands", "keep", "checkpoint", "progress")
  if (!all(names(changes) %in% of_islands) || isTRUE(is.finite(fit$max_evals))) {
    return(NULL)
  }
  if (!"checkpoint" %in% names(changes)) {
    changes$checkpoint <- fit$call$checkpoint
  }
  given <- lapply(changes, eval, frame)
  grows <- if (is.null(given$islands)) {
    !is.null(given$precision) || !is.null(given$keep)
  } else {
    is_number(given$islands) && given$islands >= n
  }
  if (grows && can_keep(fit, given$keep)) do.call(smc_extend, c(list(fit), given))
}
