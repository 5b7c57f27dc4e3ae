# evidence_curve(): the evidence as a function of a setting, such as the scale of a prior. Few settings are fitted; the
# others are reweighted from the draws of these fits, with their densities as control variates (Owen and Zhou, 2000).

#' Log evidence over a range of settings
#'
#' How the evidence, or a Bayes factor, depends on one or two settings of the model, such as the scale of a prior. The
#' target is fitted at the setting in use, and from there at the ends of the range (see [smc_rounds], section From
#' another fit). In between, the draws of the fits on either side are reweighted; the target is fitted again only where
#' the importance weights are unreliable.
#'
#' The draws of the fits on both sides are treated as draws of one mixture, so that the tails of the wider setting are
#' represented. Their weights are the ratios of the density at the setting to that of the mixture, and the densities of
#' the fits, whose evidences are known, are control variates (Owen and Zhou, 2000). The Pareto k of the weights, `khat`,
#' must be at most 0.7 (Vehtari et al., 2024). Nothing is reweighted beyond the fitted settings: the draws may miss the
#' tails of a wider setting, and `khat` would not show it. The target is fitted, too, if bounds or types of variables
#' differ, if the density has an edge near the draws, if the fits have fewer than 1,112 draws together, if the effective
#' sample size of the weights is below a hundred, or if the error would be above the `precision` asked for.
#'
#' Two settings are given as a data frame, such as `expand.grid(scale = c(0.5, 1, 2), df = c(1, 4))`. Its corners are
#' fitted, and each other setting is reweighted from the nearest fits in the quadrants around it.
#'
#' @param target a function of the setting, a number, that returns a target, or what [as_target()] converts. With two
#'   settings it is a function of both, whose arguments have the names of the columns of `values`. The variables and the
#'   data must be the same at all settings.
#' @param values the settings (numeric vector of different numbers, or data frame of two columns, in any design); for
#'   `refine_curve()`, further settings, or NULL.
#' @param against the model to compare with, for log Bayes factors: a fit, a known log evidence (number, or as in
#'   [compare_evidence()]), or another curve that has all `values`. NULL for log evidences alone.
#' @param ... further arguments of [smc()] for all fits, such as `precision`, but no `reference`.
#' @param used the setting in use (number, or two with names), which is fitted first; NULL for the middle of `values`.
#' @param seed as in [smc()]; each further fit has the next number.
#' @param curve a curve of `evidence_curve()`.
#' @param n number of points to add (positive integer) to a curve of one setting, one after another, each in the
#'   interval at whose ends the curve bends most.
#' @return A tibble of class `evidence_curve`, with a row for each setting, in ascending order:
#'
#' * `value`, the setting, or two columns with the names of the settings; `log_z` and `std_error`, the log evidence and
#'   its standard error;
#' * `log_bf` and `log_bf_error`, only with `against`: the log Bayes factor of the target over `against`, and its error;
#' * `from`: `"cold"`, fitted from the beginning, `"warm"`, fitted from a neighbour, or `"reweighted"`;
#' * `anchor`: the setting of the fit with the largest weight in the row, its own setting if it was fitted (number; with
#'   two settings text, the name in `attr(curve, "fits")`);
#' * `khat`: the Pareto k of the weights, also if a fit replaced them (Inf where there were none);
#' * `verdict`: `"passed"`, or the names of the failed diagnostics, of the fit at the anchor;
#' * `n_target_evals`: the evaluations of the target for this row.
#'
#'   The squared error of a reweighted row is the weighted sum of those of the fits, and that of the mean weight. The
#'   rows share fits and draws, so that their errors are correlated: the shape of the curve is more precise than its
#'   level, and the band of a plot does not apply to differences within the curve.
#'
#'   `plot()` and `ggplot2::autoplot()` show the curve with a band of two standard errors, fitted settings as filled
#'   points, the setting in use as a vertical line, and with `against` a line at 0. With two settings there is a line
#'   over the first for each value of the second. `attr(curve, "fits")` has the fits, named by their settings.
#' @section Errors: Of class `autosmc_error_input` when an argument is not what it should be; when the prior is improper
#'   at a setting (see [smc()]), unless a fit `against` has an improper prior of the same parameters; when the density
#'   does not fall off; and when the variables are not the same at all settings.
#' @source Owen and Zhou (2000), *Safe and effective importance sampling*, Journal of the American Statistical
#'   Association 95. Vehtari, Simpson, Gelman, Yao and Gabry (2024), *Pareto smoothed importance sampling*,
#'   Journal of Machine Learning Research 25.
#' @examples
#' # the mean of five observations has the prior N(0, scale^2), or is 0
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
  values <- check_curve_settings(values)
  used <- check_used(used, values)
  settings <- list(...)
  check_no_reference(...)
  state <- list(
    target = target, settings = settings, used = used, seed = check_seed(seed), against = evidence_against(against),
    values = NULL, fits = list(), at = NULL, pool = list(), rows = list()
  )
  state <- with_settings(with_setting(state, used), values)
  warn_of_against(state, against)
  curve_of(state)
}

#' @rdname evidence_curve
#' @export
refine_curve <- function(curve, n = 5, values = NULL) {
  check_class(curve, "curve", "evidence_curve", "evidence_curve()")
  state <- attr(curve, "state")
  state$fits <- unname(attr(curve, "fits"))
  if (!is.null(values)) {
    return(curve_of(with_settings(state, check_curve_settings(values, names(state$used)))))
  }
  for (i in seq_len(check_count(n, "n"))) state <- with_setting(state, middle_of_largest_bend(curve_of(state)))
  curve_of(state)
}

# The midpoint of the interval at whose ends the curve deviates most from the chords between their neighbours, with its
# width as a factor; on a logarithmic scale if all settings are positive.
middle_of_largest_bend <- function(curve) {
  n <- nrow(curve)
  if (n < 2 || length(settings_in(curve)) > 1) {
    abort("{.arg values} must be given for a curve of two settings, and for one that has a single point.")
  }
  x <- log_if_positive(curve$value)
  inner <- seq_len(n - 2) + 1
  share <- (x[inner] - x[inner - 1]) / (x[inner + 1] - x[inner - 1])
  chord <- (1 - share) * curve$log_z[inner - 1] + share * curve$log_z[inner + 1]
  bend <- c(0, abs(curve$log_z[inner] - chord), 0)
  at <- which.max((bend[-1] + bend[-n]) * diff(x))
  middle <- mean(x[at + 0:1])
  c(value = if (is_positive(curve$value)) exp(middle) else middle)
}

# The state with further settings: first those at the ends of the range, then the others, each time by their distance
# from the setting in use.
with_settings <- function(state, values) {
  values <- values[!row_keys(values) %in% row_keys(state$values), , drop = FALSE]
  all <- rbind(state$values, values)
  n_before <- nrow(state$values)
  is_end <- vapply(n_before + seq_len(nrow(values)), function(i) {
    anyNA(nearest_around(all[-i, , drop = FALSE], all[i, ]))
  }, NA)
  distance <- rowSums(offsets(values, state$used)^2)
  for (i in order(!is_end, distance)) state <- with_setting(state, values[i, ])
  state
}

# one setting ---------------------------------------------------------------------

# The state with a row for another setting: reweighted from the fits around it, or fitted from the nearest one. A state
# has its `fits`, at the settings `at`; the `pool` of their draws, see with_draws_of_last(); and the `values` of its
# `rows`.
with_setting <- function(state, value) {
  target <- target_at_setting(state, value)
  row <- reweight_setting(state, target, value)
  if (!isTRUE(row$khat <= largest_khat) || isTRUE(row$std_error > state$settings$precision)) {
    fit <- fit_at(state, value, target, if (length(state$fits) > 0) state$fits[[nearest_around(state$at, value)[1]]])
    abort_if_improper(fit, value)
    n_before <- n_in_pool(state)
    state$fits <- c(state$fits, list(fit))
    state$at <- rbind(state$at, value, deparse.level = 0)
    state <- with_draws_of_last(state)
    row[c("log_z", "std_error", "anchor")] <- list(fit$log_z, fit$std_error, length(state$fits))
    row$from <- if (any(fit$runs$label %in% "fit" & fit$runs$used)) "warm" else "cold"
    row$n_target_evals <- row$n_target_evals + sum(fit$runs$n_target_evals) + n_in_pool(state) - n_before
  }
  failed <- names_of_failed(state$fits[[row$anchor]]$diagnostics)
  row$verdict <- if (length(failed) > 0) toString(failed) else "passed"
  state$rows <- c(state$rows, list(row))
  state$values <- rbind(state$values, value, deparse.level = 0)
  state
}

target_at_setting <- function(state, value) {
  arguments <- if (length(value) == 1) list(value[[1]]) else as.list(value)
  target <- tryCatch(as_target(do.call(state$target, arguments)), error = function(e) {
    abort("{.arg target} has failed at the setting {format_setting(value)}.", parent = e)
  })
  first <- if (length(state$fits) > 0) state$fits[[1]]$target
  if (!is.null(first) && !identical(target$names, first$names)) {
    other <- format_setting(state$at[1, ])
    abort("{.arg target} has other variables at the setting {format_setting(value)} than at {other}.")
  }
  improper <- target$improper
  if (length(improper) > 0 && !setequal(improper, state$against$improper)) {
    abort("{.arg target} has improper priors at the setting {format_setting(value)}: of {.field {improper}}.")
  }
  target
}

# The fit at a setting. from: the fit that it starts from, or NULL.
fit_at <- function(state, value, target, from) {
  seed <- (state$seed + length(state$fits)) %% 2^32
  reference <- without_null(list(reference = from))
  fit <- tryCatch(
    do.call(smc, c(list(target, seed = seed), reference, state$settings), quote = TRUE),
    autosmc_error = function(e) {
      class <- sub("autosmc_error_", "", setdiff(class(e), "autosmc_error")[1])
      abort("{.arg target} cannot be fitted at the setting {format_setting(value)}.", class, parent = e)
    }
  )
  fit$call <- quote(smc()) # the actual call contains the fit before
  fit
}

abort_if_improper <- function(fit, value) {
  if (has_failed(fit$diagnostics, "proper")) {
    says <- verbatim(fit$diagnostics$says[fit$diagnostics$name == "proper"])
    abort(c("The setting {format_setting(value)} is refused.", "x" = says))
  }
}

# reweighting ---------------------------------------------------------------------

# Largest number of draws of a fit that are reweighted: those of two fits suffice for khat.
max_draws_of_fit <- 600
# Least number of draws of all fits around a setting: with fewer, the tail from which khat is estimated has less than a
# hundred draws.
min_draws_around <- 1112
# Largest relative variance of the mean weight, that of a hundred independent draws: above it, its estimate is
# unreliable.
max_relative_variance <- 0.01

# The state with the draws of its last fit in the pool, unless they cannot be reweighted: a list of the draws on the
# unconstrained scale, `x`, their `origins`, the normalised `log_density` of each fit of the pool at them (a column a
# fit), and the `number` of the fit.
with_draws_of_last <- function(state) {
  fit <- state$fits[[length(state$fits)]]
  edges <- fit$diagnostics$value[fit$diagnostics$name == "edges"]
  if (length(fit$log_weights) == 0 || isTRUE(edges > 0) || !has_reference_for(state$fits[[1]], fit$target)) {
    return(state)
  }
  held <- hold_islands(fit$state$records, pooled_draws(fit))
  final <- with_images(pool(held, fit$reference, fit$state$start), fit$target)
  rows <- systematic_rows(exp(normalise_log(final$log_weights)), min(max_draws_of_fit, length(fit$log_weights)))
  own <- list(
    number = length(state$fits), x = unconstrained_particles(final)[rows, , drop = FALSE], origins = final$origins[rows]
  )
  state$pool <- c(state$pool, list(own))
  fits <- state$fits[of_pool(state, "number")]
  k <- length(fits)
  for (i in seq_len(k)) {
    draws <- state$pool[[i]]
    normalised <- function(fit) log_density_at_draws(fit$target, fits[[i]], draws) - fit$log_z
    new <- do.call(cbind, lapply(fits[if (i < k) k else seq_len(k)], normalised))
    state$pool[[i]]$log_density <- cbind(draws$log_density, new)
  }
  state
}

of_pool <- function(state, name) unlist(lapply(state$pool, `[[`, name))

n_in_pool <- function(state) length(of_pool(state, "log_density"))

# The log density of a target at the draws of a fit, on the unconstrained scale of this fit.
log_density_at_draws <- function(target, fit, draws) {
  evaluate_target(with_scale_of(target, fit$target), draws$x, FALSE, unconstrained = TRUE)$log_density
}

# The row of a setting, reweighted from the fits around it; its log_z is NA if it is not between fits, or if these do
# not suffice. `anchor`: the number of the fit with the largest weight.
reweight_setting <- function(state, target, value) {
  row <- list(
    log_z = NA_real_, std_error = NA_real_, khat = Inf, anchor = NA_integer_, from = "reweighted", n_target_evals = 0
  )
  numbers <- of_pool(state, "number")
  around <- if (length(numbers) > 0) nearest_around(state$at[numbers, , drop = FALSE], value) else NA
  pool <- state$pool[around]
  n <- sum(lengths(lapply(pool, `[[`, "origins")))
  if (anyNA(around) || n < min_draws_around || !has_reference_for(state$fits[[1]], target)) {
    return(row)
  }
  row$n_target_evals <- n
  found <- evidence_by_regression(target, state$fits[numbers[around]], pool, around)
  if (!is.null(found)) {
    row[c("log_z", "std_error", "khat")] <- found[c("log_z", "std_error", "khat")]
    row$anchor <- numbers[around[found$largest]]
  }
  row
}

# The evidence of a target by importance sampling from the mixture of some fits, with their densities as control
# variates (Owen and Zhou, 2000): the density over that of the mixture is regressed on the normalised densities of the
# fits, and the evidence is the sum of the coefficients. draws: those of the fits, the elements `around` of the pool;
# the error treats draws with a common ancestor as one cluster. list(log_z, std_error, khat, largest), with the index of
# the fit that has the largest coefficient; NULL where the weights are too variable.
evidence_by_regression <- function(target, fits, draws, around) {
  n_each <- lengths(lapply(draws, `[[`, "origins"))
  n <- sum(n_each)
  parts <- do.call(rbind, lapply(draws, function(one) one$log_density[, around, drop = FALSE]))
  most <- apply(parts, 1, max)
  parts <- exp(parts - most)
  mixture <- drop(parts %*% n_each) / n
  ratio <- unlist(Map(log_density_at_draws, list(target), fits, draws)) - most - log(mixture)
  ratio[is.na(ratio)] <- -Inf
  w <- exp(ratio - max(ratio))
  if (anyNA(w)) {
    return()
  }
  regression <- stats::lm.fit(parts / mixture, w)
  part <- regression$coefficients
  part[is.na(part)] <- 0 # densities that are collinear
  z <- sum(part)
  origins <- paste(rep(around, n_each), unlist(lapply(draws, `[[`, "origins")))
  variance <- sum(rowsum(regression$residuals, origins)^2) / (n * z)^2
  # equal weights have no tail
  khat <- if (isTRUE(variance < least_error^2)) -Inf else tail_khat(w, rep(1 / n, n))
  if (isTRUE(z > 0 && variance < max_relative_variance) && !is.na(khat)) {
    of_fits <- part / z * vapply(fits, `[[`, 0, "std_error")
    list(
      log_z = max(ratio) + log(z), std_error = sqrt(sum(of_fits^2) + variance), khat = khat, largest = which.max(part)
    )
  }
}

# the table -----------------------------------------------------------------------

# The evidence to compare with: list(log_z, std_error, improper) of one model, or list(values, log_z, std_error) of a
# curve; NULL for none.
evidence_against <- function(against) {
  if (is.null(against)) {
    return()
  }
  if (inherits(against, "evidence_curve")) {
    return(c(list(values = as.data.frame(against)[settings_in(against)]), unclass(against)[c("log_z", "std_error")]))
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
  rows <- unclass(bind_rows(state$rows))
  against <- state$against
  if (!is.null(against)) {
    at <- if (is.null(against$values)) 1 else match(row_keys(state$values), row_keys(against$values))
    if (anyNA(at)) {
      abort("{.arg against} has no setting {format_setting(state$values[which(is.na(at))[1], ])}.")
    }
    rows$log_bf <- rows$log_z - against$log_z[at]
    rows$log_bf_error <- sqrt(rows$std_error^2 + against$std_error[at]^2)
  }
  labels <- apply(state$at, 1, function(value) paste(format_each(value), collapse = ", "))
  rows$anchor <- if (ncol(state$at) == 1) state$at[rows$anchor, 1] else labels[rows$anchor]
  columns <- c(as.data.frame(state$values), rows[intersect(curve_columns, names(rows))])
  columns <- lapply(columns, `[`, ascending(state$values))
  fits <- stats::setNames(state$fits, labels)
  state$fits <- NULL
  tibble::new_tibble(columns, nrow = nrow(state$values), class = "evidence_curve", fits = fits, state = state)
}

# A subset that lacks columns of a curve is a plain tibble.
#' @export
`[.evidence_curve` <- function(x, ...) {
  part <- NextMethod()
  needed <- setdiff(names(x), c("log_bf", "log_bf_error"))
  if (is.data.frame(part) && !all(needed %in% names(part))) plain_tibble(part) else part
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
  if (from[["reweighted"]] > 0) cat("Reweighted settings share the errors of the fits around them.\n")
  invisible(x)
}

#' @export
format.evidence_curve <- function(x, ...) {
  decimals <- decimals_of_error(x$std_error)
  table <- as.data.frame(x)[settings_in(x)]
  for (name in intersect(c("log_z", "std_error", "log_bf", "log_bf_error"), names(x))) {
    table[[name]] <- fixed(x[[name]], decimals)
  }
  khat <- ifelse(is.finite(x$khat), fixed(x$khat, 2), "")
  data.frame(table, from = x$from, anchor = x$anchor, khat = khat, verdict = x$verdict, check.names = FALSE)
}
