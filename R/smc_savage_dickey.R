# savage_dickey(): the posterior density at a point, by conditional densities (Chen, 1994), over the prior density.

#' Bayes factor of a point: the Savage-Dickey ratio
#'
#' The Bayes factor of a model in which parameters have fixed values, such as `a = 0`, against the model of the fit, in
#' which they are free: the posterior density at these values over the prior density there.
#'
#' The posterior density is estimated by conditional densities (Chen, 1994). With `b` for all other parameters, and
#' `g(a, b)` for the target, it is the mean over the draws of `w(a | b) g(a0, b) / g(a, b)`, for any conditional
#' density `w`. The closer `w` is to the conditional posterior density, the smaller is the error. Here `w` is normal on
#' the unconstrained scale, truncated at 1.5 standard deviations. Its mean and the logarithm of its standard deviation
#' are linear in `b`, and are fitted to the draws of one half of the islands for those of the other half. Several
#' parameters have one such density each, given the parameters before. The error comes from the spread of the islands.
#'
#' In the tails, or if `a` and `b` are strongly correlated, few draws dominate the mean, and the Pareto k of the ratios
#' is large. If it is above 0.7, or cannot be estimated from the draws, the target with `a` fixed is sampled by [smc()]
#' instead, with as many particles and islands as the fit, and the posterior density is a ratio of two evidences. The
#' same is done if no other parameters are left.
#'
#' @section When it is a Bayes factor: The smaller model must have the prior of `b` that the larger one has given
#'   `a = a0`. This holds if `a` and `b` are independent under the prior, and `b` has the same prior in both models. If
#'   the smaller model has another prior `p0(b)`, multiply by the factor of Verdinelli and Wasserman (1995): the mean of
#'   `p0(b) / p(b | a0)` over draws of the smaller posterior. It is often simpler to fit that model, and to use
#'   [compare_evidence()]. Note that conditioning on `a = a0` depends on the parametrisation: `a - b = 0` and
#'   `a / b = 1` are the same restriction, but imply different priors of `b`.
#' @param fit a fit of [smc()] or [smc_run()].
#' @param ... the point: a number for each parameter that is fixed, such as `a = 0`, or `"beta[2]" = 0` for an element
#'   of a vector. `beta = 0` fixes all its elements. Each value must be inside the bounds of its parameter, which must
#'   have a coordinate of its own on the unconstrained scale. Parameters whose bounds depend on others have none, nor
#'   have most elements of ordered vectors, simplexes and correlation matrices.
#' @param prior_density the density of the prior at the point (positive number), on the scale of the draws; or a
#'   function that returns it, of the values of the point in their order, such as `dcauchy`.
#' @param seed the seed of [smc()], if it samples the target with the point fixed; NULL to draw one from R's generator.
#' @param progress whether [smc()] then shows its progress (TRUE or FALSE).
#' @return A list of class `smc_point`:
#'
#' * `point`, as text;
#' * `log_bf`, the log Bayes factor of the point against the model of the fit, and `log_bf_error`, its standard error; a
#'   negative value is evidence against the point;
#' * `posterior_density` with `posterior_error`, its standard error, and `prior_density`;
#' * `log_z`, the log evidence of the smaller model, and its `std_error`, for [compare_evidence()] with models other
#'   than that of `fit`, with which its error is correlated;
#' * `method`: `"draws"`, or `"fit"` if the target with the point fixed was sampled;
#' * `khat`, the Pareto k of the ratios (NA if there are too few draws, or no other parameters);
#' * `n_target_evals`, the number of additional evaluations of the target.
#'
#'   `glance()` makes a data frame of one row.
#' @section Errors: `autosmc_error_input` when an argument is not what it should be, among them values on a bound or
#'   beyond it, and parameters that have no coordinate of their own.
#' @source Chen (1994), *Importance-weighted marginal Bayesian posterior density estimation*, Journal of the American
#'   Statistical Association 89, 818-824. Verdinelli and Wasserman (1995), Journal of the American
#'   Statistical Association 90, 614-618, on generalised Savage-Dickey ratios.
#' @seealso [restrict()] for inequalities.
#' @examples
#' # is the mean of these differences 0? The prior of the mean is normal, that of the standard
#' # deviation exponential
#' y <- c(0.7, -1.6, -0.2, 1.3, 0.8, 1.9, 0.1, 1.4)
#' target <- target_function(
#'   function(p) {
#'     sum(dnorm(y, p[1], p[2], log = TRUE)) + dnorm(p[1], log = TRUE) + dexp(p[2], log = TRUE)
#'   },
#'   gradient = function(p) {
#'     z <- (y - p[1]) / p[2]
#'     c(sum(z) / p[2] - p[1], (sum(z^2) - length(y)) / p[2] - 1)
#'   },
#'   names = c("mu", "sigma"), lower = c(sigma = 0)
#' )
#' fit <- smc(target, n_particles = 256, n_steps = 8, seed = 1)
#' savage_dickey(fit, mu = 0, prior_density = dnorm)
#' @export
savage_dickey <- function(fit, ..., prior_density, seed = NULL, progress = interactive()) {
  check_class(fit, "fit", "smc_fit", "smc()")
  check_version(fit, "its target cannot be evaluated")
  check_has_draws(fit)
  point <- check_point(list(...), colnames(fit$particles))
  log_prior <- log(check_prior_density(prior_density, point))
  if (!is.null(seed)) check_seed(seed)
  check_flag(progress, "progress")
  draws <- weighted_unconstrained_draws(fit)
  place <- locate_point(point, fit$target, draws$u)
  found <- density_by_draws(fit, draws, place)
  if (!isTRUE(found$khat <= largest_khat)) {
    found <- density_by_fit(fit, place, found, seed, progress)
  }
  density <- exp(found$log_density)
  structure(
    list(
      point = paste(names(point), "=", format(point, digits = 7, trim = TRUE), collapse = ", "),
      log_bf = found$log_density - log_prior, log_bf_error = found$error,
      posterior_density = density, posterior_error = density * found$error, prior_density = exp(log_prior),
      log_z = fit$log_z + found$log_density - log_prior, std_error = found$log_z_error,
      method = found$method, khat = found$khat, n_target_evals = found$n_target_evals
    ),
    class = c("smc_point", "smc_bayes_factor")
  )
}

# The conditional density w is truncated at so many standard deviations (87 % of a normal distribution): further out,
# densities differ most, and the ratios would have a heavy tail, though they contribute little to the mean.
w_cut <- 1.5
# Iterations of the fit of the standard deviations of w.
w_steps <- 3

#' @export
print.smc_point <- function(x, ...) {
  cat("<smc_point> ", x$point, "\n", sep = "")
  print_line(
    "density", format_estimate(x$posterior_density, x$posterior_error), "; of the prior ", short(x$prior_density)
  )
  print_bayes_factor(x, "point against free")
  print_line(
    "method", if (x$method == "fit") "the target with the point was sampled" else "ratios at the draws",
    if (!is.na(x$khat)) sprintf(" (Pareto k %s)", fixed(x$khat, 2)),
    ", ", count_of(x$n_target_evals, "evaluation")
  )
  invisible(x)
}

# the point -----------------------------------------------------------------------

# The draws with non-negligible weight on the unconstrained scale: list(u, rows, w), with their rows in fit$particles.
weighted_unconstrained_draws <- function(fit) {
  x <- fit$particles
  if (!is.null(fit$target$outputs)) {
    check_has_state(fit, "its draws on the unconstrained scale are not there")
    x <- state_draws(fit)
  }
  weighty <- rows_with_weight(fit$log_weights)
  c(list(u = change_scale(fit$target, x[weighty$rows, , drop = FALSE], to_user = FALSE)), weighty)
}

# The point as a numeric vector named by variables, the elements of a vector one by one.
check_point <- function(point, names) {
  if (length(point) == 0 || is.null(names(point)) || !all(nzchar(names(point)))) {
    abort("A point must be given by the names of parameters, such as {.code a = 0}.")
  }
  values <- Map(function(value, name) {
    elements <- check_variables(name, names, "...")
    value <- check_numeric(value, name, lengths = c(1, length(elements)))
    stats::setNames(rep_len(value, length(elements)), elements)
  }, point, names(point))
  point <- unlist(unname(values))
  if (anyDuplicated(names(point))) {
    twice <- names(point)[anyDuplicated(names(point))]
    abort("{.field {twice}} must have one value; two are given.")
  }
  point
}

check_prior_density <- function(prior_density, point) {
  check_given(
    prior_density, "prior_density", "Give the prior density at the point, or its function, such as {.fn dnorm}."
  )
  if (is.function(prior_density)) {
    prior_density <- tryCatch(do.call(prior_density, unname(as.list(point))), error = function(e) {
      abort("{.arg prior_density} failed at the point.", parent = in_utf8(e))
    })
  }
  check_number(prior_density, "prior_density", min = 0, open = TRUE)
}

# The point on the unconstrained scale: list(column, at, log_slope), the coordinates of its parameters, their values,
# and the log derivatives of the parameters by these coordinates. The transform is found by evaluation, since those of
# Stan programs are not known in closed form.
locate_point <- function(point, target, u) {
  places <- Map(function(value, name) {
    variable <- function(u) {
      x <- name_columns(change_scale(target, u, to_user = TRUE), target$names)
      suppressWarnings((if (is.null(target$outputs)) x else kept_outputs(target, x))[, name])
    }
    column <- column_of(variable, u)
    if (length(column) != 1) {
      abort("{.field {name}} cannot be fixed: it has no coordinate of its own on the unconstrained scale.")
    }
    found <- solve_coordinate(function(at) variable(rbind(replace(u[1, ], column, at))), value, u[, column])
    if (is.null(found)) {
      abort("{.field {name}} must be inside its bounds, and not close to one; {value} is not.")
    }
    c(column = column, found)
  }, point, names(point))
  place <- as.list(as.data.frame(do.call(rbind, places)))
  if (anyDuplicated(place$column)) {
    abort("{.field {names(point)}} cannot be fixed together: some are functions of the others.")
  }
  place
}

# The coordinates on which a variable depends: those that change it when they are replaced by those of another draw.
column_of <- function(variable, u) {
  d <- ncol(u)
  moved <- matrix(u[1, ], d + 1, d, byrow = TRUE)
  moved[cbind(seq_len(d) + 1, seq_len(d))] <- apply(u, 2, function(x) x[x != x[1]][1])
  x <- variable(moved)
  which(x[-1] != x[1])
}

# The coordinate at which a monotone function f has a value, and the log of its slope there: c(at, log_slope). NULL if
# there is none, or if the slope is 0 up to rounding, as on a bound. draws: draws of the coordinate.
solve_coordinate <- function(f, value, draws) {
  slope <- function(at) {
    h <- 1e-5 * max(1, abs(at))
    abs(f(at + h) - f(at - h)) / (2 * h)
  }
  none <- function(condition) NULL
  at <- tryCatch(
    stats::uniroot(function(at) f(at) - value, range(draws), extendInt = "yes", tol = .Machine$double.eps)$root,
    error = none, warning = none
  )
  if (!is.null(at) && isTRUE(slope(at) > sqrt(.Machine$double.eps) * slope(draws[1]))) {
    c(at = at, log_slope = log(slope(at)))
  }
}

# Points with the coordinates of `place`, of locate_point(), fixed.
fix_point <- function(u, place) {
  u[, place$column] <- rep(place$at, each = nrow(u))
  u
}

# by draws --------------------------------------------------------------------------

# The posterior density at a point as a mean of ratios over the draws: list(log_density, error, log_z_error, method,
# khat, n_target_evals). If it cannot be computed, list(khat, n_target_evals).
density_by_draws <- function(fit, draws, place) {
  u <- draws$u
  if (length(place$column) == ncol(u)) {
    return(list(khat = NA_real_, n_target_evals = 0))
  }
  evaluate <- counted_density(fit$target)
  log_target <- function(u) evaluate(u, gradient = FALSE)$log_density
  log_ratios <- log_target(fix_point(u, place)) - log_target(u) +
    log_w(u, draws$w, fit$island[draws$rows], place$column)
  most <- max(log_ratios)
  n_target_evals <- evaluate("count")[["n_target_evals"]]
  if (!is.finite(most)) {
    return(list(khat = Inf, n_target_evals = n_target_evals))
  }
  ratios <- numeric(nrow(fit$particles))
  ratios[draws$rows] <- exp(log_ratios - most)
  found <- mean_at_draws(fit, ratios)
  list(
    log_density = log(found$mean) + most - sum(place$log_slope), error = found$error / found$mean,
    log_z_error = found$log_z_error, method = "draws", khat = tail_khat(exp(log_ratios - most), draws$w),
    n_target_evals = n_target_evals
  )
}

# The log of the density w of these columns given the others, at each draw: fitted to one half of the islands for the
# draws of the other half.
log_w <- function(u, w, island, columns) {
  if (length(unique(island)) == 1) island <- seq_along(island)
  odd <- island %in% unique(island)[c(TRUE, FALSE)]
  halves <- list(which(odd), which(!odd))
  log_density <- numeric(nrow(u))
  for (k in seq_along(columns)) {
    design <- cbind(1, scale(u[, -columns[k:length(columns)], drop = FALSE]))
    for (half in 1:2) {
      rows <- halves[[3 - half]]
      log_density[rows] <- log_density[rows] + log_normal_given(u[, columns[k]], design, w, halves[[half]], rows)
    }
  }
  log_density
}

# The log density of x, at these rows, under a truncated normal distribution. Its mean and log standard deviation are
# linear in the columns of the design; they are fitted by maximum likelihood, without the truncation, to other rows.
log_normal_given <- function(x, design, w, fitted_to, rows) {
  X <- design[fitted_to, , drop = FALSE]
  w <- w[fitted_to]
  log_sd <- numeric(length(fitted_to))
  for (i in seq_len(w_steps)) {
    mean <- weighted_least_squares(X, cbind(x[fitted_to]), w * exp(-2 * log_sd))
    if (i == 1) log_sd[] <- log(sum(w * mean$residuals^2) / sum(w)) / 2
    square <- drop(mean$residuals)^2 * exp(-2 * log_sd)
    scale <- weighted_least_squares(X, cbind(log_sd + (square - 1) / 2), w)
    log_sd <- drop(multiply(X, scale$coefficients))
  }
  at <- design[rows, , drop = FALSE]
  log_sd <- drop(multiply(at, scale$coefficients))
  z <- (x[rows] - drop(multiply(at, mean$coefficients))) * exp(-log_sd)
  within <- stats::pnorm(w_cut) - stats::pnorm(-w_cut)
  ifelse(abs(z) < w_cut, stats::dnorm(z, log = TRUE) - log_sd - log(within), -Inf)
}

# by a fit ----------------------------------------------------------------------------

# The posterior density at a point as the evidence of the target with the point fixed over that of the fit; a list as of
# density_by_draws(), whose result is `tried`.
density_by_fit <- function(fit, place, tried, seed, progress) {
  settings <- c("n_particles", "rounds", "whiten", "max_steps", "tuner", "resampling", "ess_threshold")
  smaller <- do.call(smc, c(
    list(target_at(fit$target, place), islands = max(1, NROW(fit$islands)), seed = seed, progress = progress),
    fit[intersect(names(fit), settings)]
  ))
  list(
    log_density = smaller$log_z - fit$log_z - sum(place$log_slope),
    error = sqrt(smaller$std_error^2 + fit$std_error^2), log_z_error = smaller$std_error,
    method = "fit", khat = tried$khat,
    n_target_evals = tried$n_target_evals + sum(smaller$runs$n_target_evals)
  )
}

# The target on its unconstrained scale with the coordinates of `place` fixed.
target_at <- function(target, place) {
  evaluators <- target_interface(target)
  columns <- place$column
  target_function(
    function(x) {
      u <- matrix(0, nrow(x), target$dim)
      u[, -columns] <- x
      value <- evaluate_target(target, fix_point(u, place), unconstrained = TRUE, evaluators = evaluators)
      structure(value$log_density, gradient = value$gradient[, -columns, drop = FALSE])
    },
    dim = target$dim - length(columns), vectorized = TRUE, names = target$names[-columns]
  )
}
