# Non-centred coordinates: those that a model has as multiples of a scale, as the z of
# theta_j = mu + tau z_j. What the data say of z changes with tau in several ways, and no neck has
# this form; what they say of u_j = tau z_j does not change, and in u the neck is that of the
# same model, centred. So the neck is fitted to u, and the last map of the reference divides by
# the scale.

# The best neck in coordinates of which some are multiples of a scale, one of the variables: given
# this alone, or with the level, the logarithm of another scale. NULL for none.
find_noncentred <- function(points, variables, n, genealogies) {
  best_neck(lapply(variables, function(k) {
    scale <- scale_by(points, k)
    if (!is.null(scale)) {
      level <- find_level(points, k)
      best_neck(list(
        noncentred_on(points, k, scale$rate, n, genealogies),
        if (!is.null(level)) noncentred_on(points, c(k, level), scale$rate, n, genealogies)
      ))
    }
  }))
}

# The rate by which coordinate k, as the logarithm of a scale, explains most of the gradients:
# that with which the multiples grow. NULL where there is none.
scale_by <- function(points, k) {
  tried <- lapply(rules$neck_slopes, multiples_by_gradients, points = points, variables = k)
  left <- vapply(tried, `[[`, 0, "left")
  best <- which.min(left)
  if (length(best) > 0 && is.finite(left[best]) && length(tried[[best]]$multiples) > 0) tried[[best]]
}

# The neck on these variables, and on the products of all that is a multiple of the first. The
# same list as neck_on() returns, with `noncentred`; NULL for none.
noncentred_on <- function(points, variables, rate, n, genealogies) {
  found <- multiples_by_gradients(rate, points, variables)
  if (length(found$multiples) > 0) {
    noncentred <- list(variable = variables[1], rate = rate, multiples = found$multiples)
    fit_noncentred(points, variables, noncentred, n, genealogies)
  }
}

# noncentred: the variable, the rate, and which are the multiples.
fit_noncentred <- function(points, variables, noncentred, n, genealogies) {
  u <- multiplied(points, noncentred)
  neck <- if (all(is.finite(u$x), is.finite(u$g))) neck_on(u, variables, n, genealogies)
  if (is.null(neck)) {
    return(NULL)
  }
  neck$noncentred <- noncentred
  neck$centre <- neck$centre + u$mean - points$mean
  neck$criterion <- neck$criterion + sum(points$w * u$log_jacobian)
  neck
}

# The points with their multiples times the scale, and their gradients there.
multiplied <- function(points, noncentred) {
  k <- noncentred$variable
  multiples <- noncentred$multiples
  x <- times_scale(sweep(points$x, 2, points$mean, "+"), noncentred)
  g <- points$g
  g[, k] <- g[, k] - noncentred$rate *
    rowSums(1 + sweep(points$x, 2, points$mean, "+")[, multiples, drop = FALSE] * g[, multiples, drop = FALSE])
  g[, multiples] <- g[, multiples] * exp(-noncentred$rate * x[, k])
  mean <- colSums(points$w * x)
  list(
    x = sweep(x, 2, mean), g = g, w = points$w, mean = mean,
    log_jacobian = length(multiples) * noncentred$rate * x[, k]
  )
}

times_scale <- function(x, noncentred) {
  multiples <- noncentred$multiples
  x[, multiples] <- x[, multiples] * exp(noncentred$rate * x[, noncentred$variable])
  x
}

# Which coordinates are multiples of the scale exp(rate t), where t are values of the first
# variable; the second, if there is one, is the logarithm of a level, l. For normal data and
# effects gradients are linear in all other coordinates, with coefficients that change as
# exp(-2 rate t) and exp(-2 rate l), or not at all, for effects as they are, and not at all,
# or as exp(rate (t - 2 l)) and exp(2 rate (t - l)), for multiples. Least squares tells which:
# list(left, multiples), the first the share of the gradients' mean square that is left.
multiples_by_gradients <- function(rate, points, variables) {
  others <- setdiff(seq_len(ncol(points$x)), variables)
  t <- rate * points$x[, variables[1]]
  l <- if (length(variables) > 1) rate * points$x[, variables[2]]
  powers <- list(effects = -2 * t, none = 0 * t, both = t, multiples = 2 * t)
  if (!is.null(l)) {
    powers <- list(effects = -2 * t, effects = -2 * l, none = 0 * t, both = t - 2 * l, multiples = 2 * (t - l))
  }
  x <- cbind(1, points$x[, others, drop = FALSE])
  if (nrow(x) < rules$points_per_coefficient * length(powers) * ncol(x)) {
    return(list(left = Inf))
  }
  parts <- lapply(powers, function(power) {
    of_mean <- exp(power)
    of_mean / sum(points$w * of_mean)
  })
  size <- Reduce(`+`, parts)
  g <- points$g[, others, drop = FALSE] / size
  design <- do.call(cbind, lapply(parts, function(part) part / size * x))
  by <- tryCatch(regress(design, g, points$w), error = function(e) NULL)
  if (is.null(by)) {
    return(list(left = Inf))
  }
  # how much of a coordinate's gradient depends on itself in each of these ways
  square <- colSums(points$w * design^2)
  own <- vapply(seq_along(powers), function(i) {
    row <- (i - 1) * ncol(x) + 1 + seq_along(others)
    by$coefficients[cbind(row, seq_along(others))]^2 * square[row]
  }, numeric(length(others)))
  of <- function(name) rowSums(own[, names(powers) == name, drop = FALSE])
  list(
    rate = rate, left = mean(colSums(points$w * by$residuals^2) / colSums(points$w * g^2)),
    multiples = others[of("multiples") > of("effects")]
  )
}
