# Non-centred coordinates: those that a model has as multiples of a scale, as the z of
# theta_j = mu + tau z_j. Where the data say much of the products u_j = tau z_j, these are nearer
# to a normal distribution, or to a neck, than z is. So shapes are fitted to products as well (see
# spaces.R); the last maps of a reference that is fitted to them divide by the scales.
#
# Gradients tell which coordinates these are. Let z be standard normal a priori, known to the
# likelihood as exp(rate t) z alone, and f be the gradient of the likelihood by that product. Then
# the gradient is g = -z + exp(rate t) f by z, and by t it is
#   h(t) + rate sum z exp(rate t) f = h(t) + rate sum z (g + z),
# where h is that of the prior of t. So but for h the gradient by t follows from those by the
# multiples, whatever the likelihood.

# The scales of points, and their multiples: a list of changes of variables, one for each scale; empty for none, and
# where there are too few points.
find_multiples <- function(points) {
  d <- ncol(points$x)
  if (is.null(points$g) || nrow(points$x) < rules$points_per_coefficient * (d + n_prior_slopes)) {
    return(list())
  }
  root <- sqrt(points$w)
  z <- sweep(points$x, 2, points$mean, "+")
  g <- root * points$g
  pulls <- z * (g + root * z)
  squares <- crossprod(pulls)
  by_gradients <- crossprod(pulls, g)
  if (!all(is.finite(squares))) {
    return(list())
  }
  # of a coordinate whose gradient is -z but for rounding the data say nothing
  told <- diag(squares) > rules$rounding * colSums(points$w * z^4)
  found <- lapply(seq_len(d), function(k) {
    others <- which(told & seq_len(d) != k)
    prior <- prior_slopes(z[, k], root)
    if (length(others) > 0 && !is.null(prior)) {
      multiples_of(k, others, g[, k], pulls, squares, by_gradients[, k], prior)
    }
  })
  lapply(without_null(found), new_multiples, d)
}

# The map to them from products, which take their place: a change of variables (see spaces.R).
new_multiples <- function(found, d) {
  list(
    name = "conditional", conditioning = found$variable, shift = matrix(0, d, 1),
    slope = as.matrix(replace(numeric(d), found$multiples, -found$rate))
  )
}

# Which of the others are multiples of a scale of which coordinate k is the logarithm, times a
# rate, and which share of the mean square of g is `left`; NULL for none. All are times the roots
# of the weights: g, the gradient by k; pulls, z (g + z), a column a coordinate, their products
# `squares`, and those with g, `by_gradient`; prior, of prior_slopes().
multiples_of <- function(k, others, g, pulls, squares, by_gradient, prior) {
  # least squares of g on the others' pulls and the prior, which is projected out
  by_prior <- crossprod(prior, pulls)[, others, drop = FALSE]
  coefficients <- solve_ridged(
    squares[others, others, drop = FALSE] - crossprod(by_prior),
    by_gradient[others] - crossprod(by_prior, crossprod(prior, g)),
    sqrt(diag(squares)[others])
  )
  least_left(lapply(rules$neck_slopes, function(rate) {
    multiples <- others[abs(coefficients - rate) < rules$same_rate * abs(rate)]
    if (length(multiples) == 0) {
      return(NULL)
    }
    rest <- g - rate * rowSums(pulls[, multiples, drop = FALSE])
    left <- sum((rest - prior %*% crossprod(prior, rest))^2) / sum(g^2)
    if (isTRUE(left < rules$linear_gradients)) {
      list(variable = k, rate = rate, multiples = multiples, left = left)
    }
  }))
}

# What the gradient of a prior of the logarithm t of a scale may be made of, as orthonormal
# columns: polynomials, and exp(t) and exp(2 t), of which those of exponential and half-normal
# distributions are made. NULL where t is no logarithm: its exponential is beyond all numbers.
prior_slopes <- function(t, root) {
  powers <- outer((t - mean(t)) / stats::sd(t), 0:(n_prior_slopes - 3), `^`)
  slopes <- root * cbind(powers, exp(t), exp(2 * t))
  size <- colSums(slopes^2)
  if (all(is.finite(size))) {
    # an exponential next to 0 has no digits
    decomposed <- qr(slopes[, size > .Machine$double.xmin, drop = FALSE])
    qr.Q(decomposed)[, seq_len(decomposed$rank), drop = FALSE]
  }
}

n_prior_slopes <- 7

# The solution of the equations of least squares, in columns of these scales. What a column has
# beside others, and beside what was projected out, may be rounding: then its coefficient is next
# to 0.
solve_ridged <- function(square, right, scale) {
  ridge <- diag(sqrt(rules$rounding), length(scale))
  drop(solve(square / outer(scale, scale) + ridge, right / scale)) / scale
}
