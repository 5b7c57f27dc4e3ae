# Warnings of a fit: diagnostics have failed, or the precision or the draws asked for were not reached.

warn_if_unreliable <- function(fit) {
  if (length(failed(fit$diagnostics)) > 0) warn_of_failed(fit)
  for (aim in intersect(names(missed_aims(fit)), fit$asked)) warn_of_missed(fit, aim)
}

# The aims that the islands have not reached, named by their arguments.
missed_aims <- function(fit) {
  c(
    precision = if (isTRUE(fit$sampling_error > fit$precision)) fit$precision,
    draws = if (isTRUE(ess_mean(fit) < fit$draws)) fit$draws
  )
}

warn_of_failed <- function(fit) {
  names <- names_of_failed(fit$diagnostics)
  helps <- unique(unlist(lapply(diagnostics()[names], `[[`, "advise")))
  if (is_mixture(fit$reference)) helps <- setdiff(helps, advice_of_one_mode)
  tried <- unique(fit$runs$label[fit$runs$run == "adapt"])
  n_passes <- sum(fit$runs$run == "final" & !fit$runs$used)
  bullets <- list(
    x = verbatim(what_failed(fit$diagnostics)),
    i = if (length(tried) > 0) {
      paste0("Tried so far: ", if (n_passes > 0) "{n_passes} further pass{?es}; ", "references {.val {tried}}.")
    },
    i = if (!fit$kernel$gradients) "The default {.arg kernel} moves by gradients, and may find more.",
    i = if (is.null(fit$scout) && any(c("mean_gradient", "stein") %in% names)) {
      "Without the scout nothing has checked the gradient: see {.code check_gradient(target)}."
    },
    i = if (isTRUE(nrow(fit$scout$basins) == 0)) {
      "The scout has found no mode. Does the density increase without bound, for instance because its sign is wrong? Or
        is it zero at most points? Then give a point at which it is positive, with
        {.code reference = reference_laplace(target, start)}."
    },
    i = unname(advice[names(advice) %in% helps])
  )
  warn("unreliable", c(
    "The error of {.field log_z} is not to be trusted.",
    stats::setNames(unlist(bullets), rep(names(bullets), lengths(bullets)))
  ))
}

warn_of_missed <- function(fit, aim) {
  n <- nrow(fit$islands)
  if (aim == "precision") {
    error <- format(fit$sampling_error, digits = 2)
    reached <- "with {n} islands the standard error is {error}, not {fit$precision}."
    needed <- format(ceiling(n * (fit$sampling_error / fit$precision)^2), big.mark = ",", digits = 15)
  } else {
    ess <- ess_mean(fit)
    reached <- "those of {n} islands have an effective sample size of {count(floor(ess))}, not {count(fit$draws)}."
    needed <- count(ceiling(n * fit$draws / ess))
  }
  warn("precision", c(
    paste("The", aim, "asked for", if (aim == "draws") "were" else "was", "not reached:", reached),
    "i" = "About {needed} such islands would be needed: raise {.arg max_islands}, or {.arg n_particles}."
  ))
}
