# The evidence as a function of a setting: of a prior's width, mostly.

#' Log evidence over a range of settings
#'
#' How the evidence, or a Bayes factor, depends on a setting of the model, such as the scale of a prior. The target is
#' fitted at the setting that is used. From there on, in both directions, the draws of the nearest fit are reweighted
#' to the next setting, and only where these weights are not reliable is that fitted, too, from the fit before (see
#' [smc_rounds], section From another fit).
#'
#' Weights are the ratios of the densities at two settings. Their mean is the ratio of the evidences, as long as no
#' setting has mass where the fitted one has none. Their Pareto k, `khat`, must be at most 0.5: beyond, they have no
#' variance, and their mean no error that could be told (Vehtari et al., 2024). Close to that the estimate tends to be
#' low, by up to two of its errors. They are not asked for where bounds or types of variables differ, where the density
#' has an edge beside the draws, or where a fit has fewer than 512 draws; and if `precision` is given, they must reach
#' it.
#'
#' @param target a function of a number, the setting, that returns a target, or what [as_target()] converts. The
#'   variables and the data are the same at all settings.
#' @param values the settings (numeric vector of different numbers); of `refine_curve()`, those to be added, or NULL.
#' @param against the model to compare with, for log Bayes factors: a fit, a known log evidence (number, or as in
#'   [compare_evidence()]), or another curve that has all `values`. NULL for log evidences alone.
#' @param ... further arguments of [smc()] for all fits, such as `precision`, but no `reference`.
#' @param used the setting that is used (number), which is fitted first; NULL for the middle of `values`.
#' @param seed as in [smc()]; each further fit has the next number.
#' @param curve a curve, of `evidence_curve()`.
#' @param n number of settings to add (positive integer), one after another, each in the interval beside which the
#'   curve bends most.
#' @return A tibble of class `evidence_curve`, a row a setting in ascending order:
#'
#' * `value`, the setting; `log_z` and `std_error`, the log evidence and its standard error;
#' * `log_bf` and `log_bf_error`, only with `against`: the log Bayes factor of the target over that, and its error;
#' * `from`: `"cold"`, fitted from the beginning, `"warm"`, fitted from a neighbour, or `"reweighted"`;
#' * `anchor`: the setting of the fit whose draws these are, the row's own if it was fitted;
#' * `khat`: the Pareto k of the weights, also where a fit took their place (Inf where there were none);
#' * `verdict`: `"passed"`, or the names of diagnostics that have failed, of the fit at the anchor;
#' * `n_target_evals`: how many evaluations of the target the row has taken.
#'
#'   The squared error of a reweighted row is the sum of those of the fit and of the mean weight. Rows of one anchor
#'   share its draws: they are correlated, so that the shape of the curve is better known than its level, and the band
#'   of a plot says nothing of differences within it.
#'
#'   `plot()` and `ggplot2::autoplot()` show the curve with a band of two standard errors, fitted settings as filled
#'   points, the setting that is used as a vertical line, and with `against` a line at 0. `attr(curve, "fits")` has the
#'   fits, named by their settings.
#' @section Errors: Of class `autosmc_error_input` when an argument is not what it should be; for a setting at which the
#'   prior is improper (see [smc()]), unless it is so of the same parameters in a fit `against`, or the density does not
#'   fall off; and for variables that are not the same at all settings.
#' @source Vehtari, Simpson, Gelman, Yao and Gabry (2024), *Pareto smoothed importance sampling*, Journal of Machine
#'   Learning Research 25.
#' @examples
#' # the mean of five observations, with a prior N(0, scale^2), against a mean of 0
#' y <- c(0.4, 1.2, -0.3, 0.9, 1.5)
#' model <- function(scale) {
#'   target_function(
#'     function(mu) dnorm(mu, 0, scale, log = TRUE) + rowSums(dnorm(outer(c(mu), y, "-"), log = TRUE)),
#'     dim = 1, gradient = function(mu) sum(y) - length(y) * mu - mu / scale^2,
#'     vectorized = TRUE, names = "mu"
#'   )
#' }
#' null <- sum(dnorm(y, log = TRUE))
#' curve <- evidence_curve(model, c(0.5, 1, 2), against = null, n_particles = 256, seed = 1)
#' curve
#' plot(curve)
#' refine_curve(curve, 1)
#' @export
evidence_curve <- function(target, values, against = NULL, ..., used = NULL, seed = NULL) {
  target <- check_function(target, "target")
  values <- check_curve_values(values)
  used <- if (is.null(used)) values[(length(values) + 1) %/% 2] else check_number(used, "used")
  settings <- list(...)
  check_no_reference(...)
  state <- list(
    target = target, settings = settings, used = used, seed = check_seed(seed), against = against_of(against),
    fits = list(), anchors = list(), rows = list()
  )
  state <- Reduce(with_setting, c(used, setdiff(values[order(abs(rank(values) - sum(values <= used)))], used)), state)
  warn_of_against(state, against)
  curve_of(state)
}

#' @rdname evidence_curve
#' @export
refine_curve <- function(curve, n = 5, values = NULL) {
  check_class(curve, "curve", "evidence_curve", "evidence_curve()")
  state <- attr(curve, "state")
  state$fits <- attr(curve, "fits")
  if (!is.null(values)) {
    return(curve_of(Reduce(with_setting, setdiff(check_curve_values(values), curve$value), state)))
  }
  for (i in seq_len(check_count(n, "n"))) state <- with_setting(state, most_bent(curve_of(state)))
  curve_of(state)
}

# The middle of the interval at whose ends the curve is furthest from the chords between the settings beside them; on a
# logarithmic scale, if settings are positive.
most_bent <- function(curve) {
  n <- nrow(curve)
  if (n < 2) abort("{.arg curve} has a single setting: which {.arg values} are to be added?", "input")
  x <- if (is_positive(curve$value)) log(curve$value) else curve$value
  inner <- seq_len(n - 2) + 1
  share <- (x[inner] - x[inner - 1]) / (x[inner + 1] - x[inner - 1])
  chord <- (1 - share) * curve$log_z[inner - 1] + share * curve$log_z[inner + 1]
  bend <- c(0, abs(curve$log_z[inner] - chord), 0)
  at <- which.max((bend[-1] + bend[-n]) * diff(x))
  middle <- mean(x[at + 0:1])
  if (is_positive(curve$value)) exp(middle) else middle
}

is_positive <- function(values) all(values > 0)

# one setting ---------------------------------------------------------------------

# The state with a row for another setting: reweighted from the nearest fits, at most one on each side, or fitted from
# the one of these with the better weights. A state has its `fits` and, in the same order, their `anchors`, as of
# new_anchor().
with_setting <- function(state, value) {
  target <- target_with(state, value)
  at <- vapply(state$anchors, `[[`, 0, "value")
  nearest <- c(utils::tail(which(at < value), 1), utils::head(which(at > value), 1))
  tried <- lapply(nearest, function(i) reweighted(state$anchors[[i]], state$fits[[i]], target))
  khat <- vapply(tried, `[[`, 0, "khat")
  error <- ifelse(khat <= most_khat, vapply(tried, `[[`, 0, "std_error"), Inf)
  cost <- sum(vapply(tried, `[[`, 0, "n_target_evals"))
  precision <- state$settings$precision
  if (any(is.finite(error)) && (is.null(precision) || min(error) <= precision)) {
    best <- which.min(error)
    row <- c(tried[[best]][c("log_z", "std_error", "khat")], from = "reweighted", anchor = at[nearest[best]])
    fit <- state$fits[[nearest[best]]]
  } else {
    fit <- fit_at(state, target, state$fits[nearest[which.min(khat)]])
    refuse_improper(fit, value)
    anchor <- new_anchor(fit, value)
    row <- list(
      log_z = fit$log_z, std_error = fit$std_error, khat = min(khat[is.finite(khat)], Inf),
      from = if (any(fit$runs$label %in% "fit" & fit$runs$used)) "warm" else "cold", anchor = value
    )
    cost <- cost + sum(fit$runs$n_target_evals) + length(anchor$log_density)
    place <- sum(at < value)
    state$fits <- append(state$fits, list(fit), place)
    state$anchors <- append(state$anchors, list(anchor), place)
  }
  failed <- names_of_failed(fit$diagnostics)
  row <- c(row, value = value, verdict = if (length(failed) > 0) toString(failed) else "passed", n_target_evals = cost)
  state$rows <- c(state$rows, list(row))
  state
}

target_with <- function(state, value) {
  target <- tryCatch(as_target(state$target(value)), error = function(e) {
    abort("{.arg target} has failed at the setting {value}.", "input", parent = e)
  })
  first <- if (length(state$fits) > 0) state$fits[[1]]$target
  if (!is.null(first) && !identical(target$names, first$names)) {
    abort("{.arg target} has other variables at the setting {value} than at {state$anchors[[1]]$value}.", "input")
  }
  improper <- target$improper
  if (length(improper) > 0 && !setequal(improper, state$against$improper)) {
    abort("{.arg target} has improper priors at the setting {value}: of {.field {improper}}.", "input")
  }
  target
}

# from: a list of a fit, or of none.
fit_at <- function(state, target, from) {
  seed <- (state$seed + length(state$fits)) %% 2^32
  reference <- if (length(from) > 0) list(reference = from[[1]])
  fit <- do.call(smc, c(list(target, seed = seed), reference, state$settings), quote = TRUE)
  fit$call <- quote(smc()) # which has the fit before in it
  fit
}

refuse_improper <- function(fit, value) {
  if (has_failed(fit$diagnostics, "proper")) {
    says <- verbatim(fit$diagnostics$says[fit$diagnostics$name == "proper"])
    abort(c("The setting {value} is refused.", "x" = says), "input")
  }
}

# reweighting ---------------------------------------------------------------------

# Draws that are reweighted, at most: these tell a ratio to a hundredth where weights vary by half of their mean.
most_reweighted <- 4096
# Fewer have no tail of a hundred.
least_reweighted <- 512
# Pareto k up to which weights have a variance, and so their mean an error.
most_khat <- 0.5

# Of a fit at a setting, `value`, the draws that are to be reweighted: on the unconstrained scale, `x`, with the
# `log_density` of the fit's own target and the `origins`. No draws where these tell nothing of other settings.
new_anchor <- function(fit, value) {
  anchor <- list(value = value)
  edges <- fit$diagnostics$value[fit$diagnostics$name == "edges"]
  n <- min(most_reweighted, length(fit$log_weights))
  if (n < least_reweighted || isTRUE(edges > 0)) {
    return(anchor)
  }
  held <- hold_islands(fit$state$records, pooled_draws(fit))
  final <- with_images(pool(held, fit$reference, fit$state$start), fit$target)
  rows <- evenly_weighted(exp(normalise_log(final$log_weights)), n)
  anchor$x <- unconstrained_particles(final)[rows, , drop = FALSE]
  anchor$origins <- final$origins[rows]
  anchor$log_density <- density_at(fit$target, anchor$x)
  anchor
}

density_at <- function(target, x) evaluate_target(target, x, FALSE, unconstrained = TRUE)$log_density

# list(log_z, std_error, khat, n_target_evals) of a target by the draws of another fit; where nothing can be told, khat
# is Inf. Draws of the same ancestor are taken together for the error.
reweighted <- function(anchor, fit, target) {
  nothing <- list(log_z = NA_real_, std_error = NA_real_, khat = Inf, n_target_evals = 0)
  if (is.null(anchor$x) || !has_reference_for(fit, target)) {
    return(nothing)
  }
  n <- nrow(anchor$x)
  nothing$n_target_evals <- n
  ratio <- density_at(with_scale_of(target, fit$target), anchor$x) - anchor$log_density
  ratio[is.na(ratio)] <- -Inf
  if (max(ratio) == -Inf) {
    return(nothing)
  }
  w <- exp(ratio - max(ratio))
  off <- rowsum(w / sum(w) - 1 / n, anchor$origins)
  list(
    log_z = fit$log_z + max(ratio) + log(mean(w)), std_error = sqrt(fit$std_error^2 + sum(off^2)),
    khat = khat_of(w), n_target_evals = n
  )
}

# Of weights: -Inf where they are all the same.
khat_of <- function(w) {
  n <- length(w)
  khat <- tail_khat(w, rep(1 / n, n))
  if (is.finite(khat)) khat else if (stats::sd(w) < least_error * mean(w)) -Inf else Inf
}

# the table -----------------------------------------------------------------------

# list(log_z, std_error, improper), of one model or of a curve that has `value`, too; NULL for none.
against_of <- function(against) {
  if (is.null(against)) {
    return()
  }
  if (inherits(against, "evidence_curve")) {
    return(against[c("value", "log_z", "std_error")])
  }
  if (is_number(against) && !inherits(against, "log_evidence")) against <- c(log_z = against, std_error = 0)
  c(as.list(evidence_of(against, "against")), list(improper = if (inherits(against, "smc_fit")) against$improper))
}

warn_of_against <- function(state, against) {
  if (inherits(against, "smc_fit")) {
    models <- list(state$fits[[1]], against)
    warn_of_models(c("target", "against"), models, evidences_of(models, c("target", "against")))
  }
}

curve_of <- function(state) {
  rows <- bind_rows(lapply(state$rows, function(row) row[c(
    "value", "log_z", "std_error", "from", "anchor", "khat", "verdict", "n_target_evals"
  )]))
  columns <- unclass(rows)[names(rows)]
  columns <- lapply(columns, `[`, order(columns$value))
  against <- state$against
  if (!is.null(against)) {
    at <- if (is.null(against$value)) 1 else match(columns$value, against$value)
    if (anyNA(at)) {
      abort("{.arg against} has no setting {columns$value[is.na(at)][1]}.", "input")
    }
    bf <- list(
      log_bf = columns$log_z - against$log_z[at],
      log_bf_error = sqrt(columns$std_error^2 + against$std_error[at]^2)
    )
    columns <- append(columns, bf, after = 3)
  }
  fits <- stats::setNames(state$fits, vapply(state$anchors, function(anchor) format(anchor$value), ""))
  state$fits <- NULL
  tibble::new_tibble(columns, nrow = length(columns$value), class = "evidence_curve", fits = fits, state = state)
}

# A part without some of the columns is a tibble like any other.
#' @export
`[.evidence_curve` <- function(x, ...) {
  part <- NextMethod()
  is_curve <- is.data.frame(part) && all(setdiff(names(x), c("log_bf", "log_bf_error")) %in% names(part))
  if (is_curve || !is.data.frame(part)) {
    return(part)
  }
  attr(part, "fits") <- attr(part, "state") <- NULL
  plain_tibble(part)
}

#' @export
print.evidence_curve <- function(x, ...) {
  print(format(x), row.names = FALSE)
  from <- table(factor(x$from, c("cold", "warm", "reweighted")))
  cat(
    "\n", count_of(sum(x$n_target_evals), "evaluation"), ": ", from[["cold"]], " cold, ", from[["warm"]], " warm, ",
    from[["reweighted"]], " reweighted\n",
    sep = ""
  )
  if (from[["reweighted"]] > 0) cat("Reweighted settings share the error of the fit at their anchor.\n")
  invisible(x)
}

#' @export
format.evidence_curve <- function(x, ...) {
  decimals <- decimals_of_error(x$std_error)
  table <- data.frame(value = x$value)
  for (name in intersect(c("log_z", "std_error", "log_bf", "log_bf_error"), names(x))) {
    table[[name]] <- fixed(x[[name]], decimals)
  }
  table$from <- x$from
  table$anchor <- x$anchor
  table$khat <- ifelse(is.finite(x$khat), fixed(x$khat, 2), "")
  table$verdict <- x$verdict
  table
}

# Different numbers, in ascending order.
check_curve_values <- function(values) {
  check_given(values, "values")
  is_fine <- is.numeric(values) && !is.object(values) && length(values) > 0 && all(is.finite(values))
  if (!is_fine || anyDuplicated(values) > 0) {
    abort_argument(values, "values", "different finite numbers")
  }
  sort(as.double(values))
}
