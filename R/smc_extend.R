# smc_extend(), smc_islands(), smc_combine() and update(): further islands for a fit, in this session or elsewhere.

#' More islands for a fit
#'
#' Adds islands to a fit, for a smaller standard error without another adaptation. Islands are numbered, and an island
#' of a given number is the same whenever and wherever it is run: a fit with 8 islands that is extended to 40 is the fit
#' of 40 islands at once, as long as all draws are kept.
#'
#' `smc_extend()` runs the islands in this session, in parallel under a plan of the package future.
#' `update(fit, islands = 40)` does the same. `smc_islands()` runs islands by their numbers in any session, on any
#' machine, and `smc_combine()` adds them to the fit: in a job array each task reads the fit, runs its own islands and
#' saves them.
#'
#' `smc()` may adapt again if the draws of its islands suggest a better reference. `smc_extend()` does not: it adds
#' islands with the tuned sampler of the fit. So `smc()` with 40 islands may adapt once more where `smc()` with 8 does
#' not.
#'
#' @param fit a fit of [smc()], [smc_run()] or [smc_adapt()]; the latter has no islands yet.
#' @param islands for `smc_extend()`, the total number of islands (whole number, not below the present number). For
#'   `smc_combine()`, a result of `smc_islands()`, or a list of these, in any order.
#' @param precision the standard error of `log_z` to reach (number of at least 1e-15): islands are added until it is
#'   reached or there are `max_islands`. With `n` islands and an error `se` about `n (se / precision)^2` are needed,
#'   which are run in batches of 4 to 64. With `progress` a message says beforehand how many evaluations a batch takes.
#' @param max_islands the largest total number of islands (positive integer); NULL for 1024.
#' @param keep what is kept of all islands, old and new: NULL for the same as before. For a fit that has all draws it
#'   may be any `keep` of [smc()]; islands are then added in nearly constant memory (see [reproducibility]).
#' @param which numbers of islands (whole numbers). A fit with 8 islands has those numbered 1 to 8; the next is 9.
#' @inheritParams smc
#' @return `smc_extend()` and `smc_combine()`: an object of class `smc_fit`, as [smc()] returns it, of all islands
#'   together. It differs from a fit of all islands at once only in the time and the evaluations, since the bridge and
#'   the diagnostics are computed again: the row `"final"` of `runs` counts these evaluations.
#'
#'   `smc_islands()`: an object of class `smc_islands`, which [saveRDS()] can save.
#' @section Errors: `autosmc_error_input` when an argument is not what it should be, and when islands are missing or
#'   given twice. `autosmc_error_mismatch` when islands belong to another fit (with another seed, schedule, reference,
#'   target or version of autosmc), and when another version has made `fit`. The field `differs` names the difference.
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
  once_each(add_islands(fit, sampler, list(), wanted, call))
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
    add_islands(fit, sampler, records[order(which)], check_wanted(fit, n + length(records)), fit$call)
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

# extension of a fit --------------------------------------------------------------

# The fit with more islands: `records` are those that have been run already; the others, up to the number in `wanted`
# (see check_islands()), are run here. call: that of the new fit.
add_islands <- function(fit, sampler, records, wanted, call) {
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

# The call of a fit with all islands at once. given: the new arguments, NULL for those that were not given.
call_extended <- function(call, given) {
  if (call[[1]] != "smc_adapt") {
    call[c("precision", "max_islands")] <- NULL
    given <- without_null(given)
    call[names(given)] <- given
  }
  call
}

# The evaluations that the bridge and the diagnostics of a fit have taken.
n_besides_islands <- function(fit) {
  if (is.null(fit$islands)) 0 else unlist(last_run(fit)[spent]) - colSums(fit$islands[spent], na.rm = TRUE)
}

# checks ------------------------------------------------------------------------

check_extendable <- function(fit) {
  check_class(fit, "fit", "smc_fit", "smc()")
  check_has_state(fit, "islands cannot be added")
}

# The number of islands and its limits, as check_islands() returns them; at least the present number. NULL: not given.
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

# The new `keep` of a fit; NULL keeps the present one.
check_kept <- function(fit, keep) {
  if (is.null(keep)) {
    return(fit$keep)
  }
  keep <- check_keep(keep)
  if (!can_keep(fit, keep)) {
    kept <- fit$keep
    abort(c(
      "The islands of {.arg fit} have kept {kept}, which cannot be changed to {keep}.",
      "i" = "{.arg keep} can be changed only for a fit that has kept all draws."
    ))
  }
  keep
}

are_island_numbers <- function(which) {
  is.numeric(which) && length(which) > 0 && all(is.finite(which)) && !anyDuplicated(which) &&
    all(which == round(which) & which >= 1 & which < islands_apart)
}

# The numbers of the islands in a result of smc_islands().
numbers_of_islands <- function(islands) {
  which <- islands$which
  if (!are_island_numbers(which) || !is.list(islands$entries) || length(islands$entries) != length(which)) {
    abort("{.arg islands} must be results of `smc_islands()`, unchanged; these have been changed.")
  }
  as.integer(which)
}

# Whether islands with these numbers, and no others, continue the first n.
check_complete <- function(which, n) {
  twice <- as.character(sort(unique(c(which[duplicated(which)], which[which <= n]))))
  missing <- as.character(setdiff(seq_len(max(n, which)), c(seq_len(n), which)))
  if (length(twice) > 0) {
    abort("{.arg islands} must have each island once; given twice: island{cli::qty(twice)}{?s} {twice}.")
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
  fit <- extend_if_possible(object, changes, parent.frame())
  call <- if (is.null(fit)) object$call else fit$call
  call[names(changes)] <- changes
  if (is.null(fit)) {
    verb <- get(as.character(call[[1]]), topenv())
    arguments <- as.list(call)[-1]
    # unless the changes concern the target, it is that of the fit, not its expression in the call, and arguments of
    # target_function() are dropped
    own <- setdiff(names(formals(verb)), c("target", "..."))
    if (all(names(changes) %in% own)) arguments <- c(list(target = object$target), arguments[names(arguments) %in% own])
    fit <- eval(as.call(c(verb, arguments)), parent.frame())
  }
  fit$call <- call
  fit
}

# The fit with more islands, if the changes ask for nothing else; or NULL.
extend_if_possible <- function(fit, changes, frame) {
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
