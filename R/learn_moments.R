# Moments form of a conditional block: v = m(t) + exp(s(t)) z, where t are the parents, v = W^-1 u the children in
# linearly transformed coordinates, z standard normal, and m and s linear in features. For the true m and s the score
# of z is -z. So the fit minimises the sum of squares of exp(s) g + (v - m) exp(-s), where g is the score of v (a Fisher
# divergence), by the Gauss-Newton method. Called by learn_chain.R. See src/map_moments.c.

# list(scale, z, r): the scale exp(s), the standardised child and the residual, at each point. b, s: coefficients of the
# location and log scale. of_b, of_s: values of their features.
residual_of <- function(v, g, of_b, of_s, b, s) {
  scale <- exp(drop(of_s %*% s))
  z <- (v - drop(of_b %*% b)) / scale
  list(scale = scale, z = z, r = scale * g + z)
}

# The Jacobian of the residual with respect to b and s. at: of residual_of().
residual_slopes <- function(at, g, of_b, of_s) cbind(-of_b / at$scale, of_s * (at$scale * g - at$z))

# The fit of one child that starts from the coefficients b of its location and s of its log scale, which belong to the
# columns on_b and on_s of phi.
gauss_newton <- function(v, g, phi, on_b, on_s, b, s, most = 8) {
  of_b <- phi[, on_b, drop = FALSE]
  of_s <- phi[, on_s, drop = FALSE]
  is_b <- rep(c(TRUE, FALSE), c(length(on_b), length(on_s)))
  found <- damped_least_squares(
    c(b, s), function(free) residual_of(v, g, of_b, of_s, free[is_b], free[!is_b]),
    function(free, at) residual_slopes(at, g, of_b, of_s), most
  )
  c(list(b = found$free[is_b], s = found$free[!is_b], on_b = on_b, on_s = on_s), found[c("left", "at")])
}

# The fit with a location linear in the parents and a constant scale, where the search starts.
linear_child <- function(v, g, phi, n_linear) {
  linear <- seq_len(n_linear)
  gauss_newton(v, g, phi, linear, 1L, drop(least_squares(phi[, linear, drop = FALSE], v)), 0)
}

# The fit with location and log scale linear in the parents, started from the scale sqrt |(v - m) / g|, which is exact
# for a normal density. NULL if numbers overflow.
scaled_child <- function(v, g, phi, n_linear) {
  linear <- seq_len(n_linear)
  design <- phi[, linear, drop = FALSE]
  b <- drop(least_squares(design, v))
  for (iteration in 1:3) {
    m <- drop(design %*% b)
    s <- drop(least_squares(design, log((abs(v - m) + 1e-12) / (abs(g) + 1e-12)) / 2))
    scale <- exp(drop(design %*% s))
    if (!all(is.finite(c(scale^2, scale^-2)))) {
      return(NULL)
    }
    b <- drop(least_squares(design / scale, (v + scale^2 * g) / scale))
  }
  if (all(is.finite(c(b, s)))) gauss_newton(v, g, phi, linear, linear, b, s)
}

# The group of features, for the location or the log scale, with the largest gain_in(): list(on_b, on_s), the columns
# that are free with this group; NULL if no group gains.
next_features <- function(fit, g, phi, groups) {
  n <- length(g)
  if (!isTRUE(fit$left >= n * least_nats && is.finite(fit$left))) {
    return(NULL)
  }
  all <- residual_slopes(fit$at, g, phi, phi)
  present <- c(fit$on_b, ncol(phi) + fit$on_s)
  if (!all(is.finite(all[, present]))) {
    return(NULL)
  }
  decomposed <- qr(all[, present, drop = FALSE])
  Q <- qr.Q(decomposed)[, seq_len(decomposed$rank), drop = FALSE]
  r <- fit$at$r - drop(Q %*% crossprod(Q, fit$at$r))
  left <- sum(r^2)
  taken <- cross_product(Q, all)
  h <- drop(cross_product(all, r))
  # by normal equations of the new columns, scaled to unit length, after projection on the present ones
  gain_of_group <- function(group) {
    new <- setdiff(group, present)
    products <- cross_product(all[, new, drop = FALSE])
    size <- sqrt(diag(products)) + .Machine$double.xmin
    if (length(new) == 0 || !all(is.finite(size))) {
      return(0)
    }
    H <- (products - crossprod(taken[, new, drop = FALSE])) / tcrossprod(size)
    step <- solved(H + diag(least_damping, length(new)), h[new] / size)
    gain_in(left, left - sum(h[new] / size * step), length(new), n)
  }
  groups <- c(groups$location, lapply(groups$log_scale, `+`, ncol(phi)))
  gains <- vapply(groups, gain_of_group, 0)
  best <- groups[[which.max(gains)]]
  if (max(gains) > 0) {
    is_b <- best <= ncol(phi)
    list(on_b = union(fit$on_b, best[is_b]), on_s = union(fit$on_s, best[!is_b] - ncol(phi)))
  }
}

# The gain in log likelihood of n residuals, less the BIC's penalty (Schwarz, 1978), if k more features lower the sum of
# squares from `left` to `left_new`; 0 if the decrease is too small. A small constant bounds the gain of an exact fit.
gain_in <- function(left, left_new, k, n) {
  # residuals that are not finite gain nothing, and rounding may make left_new negative
  if (!isTRUE(left - left_new >= 2 * n * least_nats && is.finite(left_new))) {
    return(0)
  }
  left_new <- max(left_new, 0)
  slight <- n * least_nats / 10
  n / 2 * log((left + slight) / (left_new + slight)) - k * log(n) / 2
}

# The fit of one child by forward selection: groups of features are added one at a time, while the residual decreases.
search_child <- function(v, g, phi, n_linear, groups) {
  n <- length(v)
  fit <- linear_child(v, g, phi, n_linear)
  more <- next_features(fit, g, phi, groups)
  scaled <- if (!is.null(more)) scaled_child(v, g, phi, n_linear)
  if (isTRUE(scaled$left < fit$left)) {
    fit <- scaled
    more <- next_features(fit, g, phi, groups)
  }
  # coefficients of added features come last and start at 0
  started <- function(x, on) c(x, numeric(length(on) - length(x)))
  while (!is.null(more)) {
    richer <- gauss_newton(v, g, phi, more$on_b, more$on_s, started(fit$b, more$on_b), started(fit$s, more$on_s))
    if (!isTRUE(richer$left <= fit$left - n * least_nats)) break
    fit <- richer
    more <- next_features(fit, g, phi, groups)
  }
  fit
}

# The block of all children in the coordinates v = W^-1 u, where W is lower triangular.
fit_moments_in <- function(x, g, children, parents, W) {
  all <- grouped_features(parents, x)
  phi <- feature_values(all$features, x)
  at <- in_coordinates(W, x, g, children)
  fits <- lapply(seq_along(children), function(j) {
    search_child(at$v[, j], at$g[, j], phi, 1 + length(parents), all$groups)
  })
  new_moments(children, all$features, fits, W, ncol(x))
}

# The children and their scores in the coordinates v = W^-1 u: list(v, g).
in_coordinates <- function(W, x, g, children) {
  list(v = t(forwardsolve(W, t(x[, children, drop = FALSE]))), g = g[, children, drop = FALSE] %*% W)
}

# The block of these fits, one for each child, with the features that they use. d: the number of all coordinates.
new_moments <- function(children, features, fits, W, d) {
  of_all <- function(x, on) replace(numeric(ncol(features)), on, x)
  b <- do.call(rbind, lapply(fits, function(fit) of_all(fit$b, fit$on_b)))
  s <- do.call(rbind, lapply(fits, function(fit) of_all(fit$s, fit$on_s)))
  used <- replace(colSums(b != 0 | s != 0) > 0, 1, TRUE)
  map <- list(
    name = "moments", order = as.double(children), features = features[, used, drop = FALSE],
    location = b[, used, drop = FALSE], log_scale = s[, used, drop = FALSE]
  )
  mixed <- if (any(W != diag(nrow(W)))) {
    list(list(name = "affine", mean = numeric(d), chol = acting_on(W, children, d)))
  }
  list(form = "moments", children = children, W = W, maps = c(list(map), mixed))
}

# The block with the same features, fitted to these points.
refit_moments <- function(block, x, g) {
  map <- block$maps[[1]]
  phi <- feature_values(map$features, x)
  at <- in_coordinates(block$W, x, g, block$children)
  fits <- lapply(seq_along(block$children), function(j) {
    b <- map$location[j, ]
    s <- map$log_scale[j, ]
    gauss_newton(at$v[, j], at$g[, j], phi, which(b != 0), which(s != 0), b[b != 0], s[s != 0], 15)
  })
  new_moments(block$children, map$features, fits, block$W, ncol(x))
}

# The block in the children's own coordinates, or whitened by their precision given the parents if that has a higher
# mean log density.
search_moments <- function(x, g, children, parents) {
  own <- fit_moments_in(x, g, children, parents, diag(child_scales(x, g, children), length(children)))
  if (length(children) == 1) {
    return(own)
  }
  of_children <- natural_points(x, g, children, parents)
  L <- inverse_factor(matrix(linear_natural(of_children)$A[1, , ], length(children)))
  whitened <- if (!is.null(L)) fit_moments_in(x, g, children, parents, of_children$scale * L)
  if (!is.null(whitened) && isTRUE(mean(log_density_by(whitened, x)) > mean(log_density_by(own, x)) + least_nats)) {
    whitened
  } else {
    own
  }
}
