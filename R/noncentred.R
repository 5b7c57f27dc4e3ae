# Non-centred coordinates: those that a model has as multiples of a scale, as the z of
# theta_j = mu + tau z_j. What the data say of z changes with tau in several ways, and no neck has
# this form; what they say of u_j = tau z_j does not change, and in u the neck is that of the
# same model, centred. So the neck is fitted to u, and the last map of the reference divides by
# the scale.

# That of noncentred_by_gradients() by which of the variables the scale of the multiples is, where
# there are two: the neck itself is the same either way.
noncentred_on_either <- function(points, variables, n) {
  least_left(lapply(
    unique(list(variables, rev(variables))), noncentred_by_gradients,
    points = points, n = n
  ))
}

# The neck that gradients show for coordinates of which some are multiples of a scale, the first
# of the variables. The same list as neck_by_gradients() returns, with `noncentred`, a list of the
# variable, the rate by which it is the logarithm of the scale, and the multiples. NULL for none.
noncentred_by_gradients <- function(variables, points, n) {
  noncentred <- least_left(lapply(
    rules$neck_slopes, multiples_by_gradients, points, variables
  ))
  if (length(noncentred$multiples) > 0) {
    in_products(noncentred, points, function(products) neck_by_gradients(products, variables, n))
  }
}

# A neck that is fitted to points of which the multiples are replaced by their products with
# the scale, for the points as they are.
in_products <- function(noncentred, points, fit) {
  products <- multiplied(points, noncentred)
  neck <- if (all(is.finite(products$x), is.finite(products$g))) fit(products)
  if (!is.null(neck)) {
    neck$noncentred <- noncentred[c("variable", "rate", "multiples")]
    neck$centre <- neck$centre + products$mean - points$mean
    neck$criterion <- neck$criterion + sum(points$w * products$log_jacobian)
    neck
  }
}

# The points, and the gradients of their log density, with the products; log_jacobian, at each.
multiplied <- function(points, noncentred) {
  k <- noncentred$variable
  multiples <- noncentred$multiples
  x <- sweep(points$x, 2, points$mean, "+")
  g <- points$g
  own <- rowSums(x[, multiples, drop = FALSE] * g[, multiples, drop = FALSE])
  g[, k] <- g[, k] - noncentred$rate * (own + length(multiples))
  g[, multiples] <- g[, multiples] * exp(-noncentred$rate * x[, k])
  x <- times_scale(x, noncentred)
  mean <- colSums(points$w * x)
  list(
    x = sweep(x, 2, mean), g = g, w = points$w, mean = mean,
    log_jacobian = log_jacobian_of(x, noncentred)
  )
}

times_scale <- function(x, noncentred) {
  multiples <- noncentred$multiples
  x[, multiples] <- x[, multiples] * exp(noncentred$rate * x[, noncentred$variable])
  x
}

log_jacobian_of <- function(x, noncentred) {
  length(noncentred$multiples) * noncentred$rate * x[, noncentred$variable]
}

# Which coordinates are multiples of the scale exp(rate t), where t are values of the first
# variable; the second, if there is one, is the logarithm l of another scale, that of the data.
# For normal data and effects, the coefficients of gradients change as exp(-2 rate t) and
# exp(-2 rate l) for effects as they are; for multiples as exp(rate (t - 2 l)) and
# exp(2 rate (t - l)), or not at all. Least squares tells which; what is left of the gradients
# where a fit counts as exact is too little to tell.
# list(left, variable, rate, multiples), where `left` is the share of the gradients' mean square
# that is left; NULL where there are too few points.
multiples_by_gradients <- function(rate, points, variables) {
  others <- setdiff(seq_len(ncol(points$x)), variables)
  t <- rate * points$x[, variables[1]]
  l <- if (length(variables) > 1) rate * points$x[, variables[2]] else 0 * t
  powers <- cbind(
    centred = -2 * t, both = t - 2 * l, multiple = 2 * (t - l), neither = 0 * t,
    centred = if (length(variables) > 1) -2 * l
  )
  found <- if (length(others) > 0) regress_gradients(points, others, powers)
  if (is.null(found)) {
    return(NULL)
  }
  own <- function(name) rowSums(found$own[, colnames(powers) == name, drop = FALSE])
  list(
    left = found$left, variable = variables[1], rate = rate,
    multiples = others[own("multiple") > pmax(own("centred"), rules$linear_gradients)]
  )
}
