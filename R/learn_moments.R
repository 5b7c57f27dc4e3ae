# Moments form of a conditional block: location and log scale of each child are linear in features of its parents,
# v = m(t) + exp(s(t)) z in the coordinates v = W^-1 u. Where that is so and z is standard normal, the score of z is
# -z: the residual exp(s) g + (v - m) exp(-s) is made small by the method of Gauss and Newton. See src/map_moments.c.

# Features of a child beside those that are linear.
most_features <- 8

# b: coefficients of the location; s: of the log scale. on_b, on_s: which of them are free.
residual_of <- function(v, g, phi, b, s) {
  log_scale <- drop(phi %*% s)
  z <- (v - drop(phi %*% b)) * exp(-log_scale)
  list(log_scale = log_scale, z = z, r = exp(log_scale) * g + z)
}

residual_slopes <- function(at, g, phi, on_b, on_s) {
  scale <- exp(at$log_scale)
  cbind(-phi[, on_b, drop = FALSE] / scale, phi[, on_s, drop = FALSE] * (scale * g - at$z))
}

gauss_newton <- function(v, g, phi, on_b, on_s, b, s, most = 8) {
  at <- residual_of(v, g, phi, b, s)
  left <- sum(at$r^2)
  damping <- 1e-6
  for (iteration in seq_len(most)) {
    slopes <- residual_slopes(at, g, phi, on_b, on_s)
    H <- crossprod(slopes)
    h <- -drop(crossprod(slopes, at$r))
    improved <- FALSE
    for (try in 1:6) {
      step <- tryCatch(solve(H + diag(damping * diag(H) + 1e-300, nrow(H)), h), error = function(e) NULL)
      if (!is.null(step)) {
        b_new <- replace(b, on_b, b[on_b] + step[seq_along(on_b)])
        s_new <- replace(s, on_s, s[on_s] + step[-seq_along(on_b)])
        new <- residual_of(v, g, phi, b_new, s_new)
        left_new <- sum(new$r^2)
        if (is.finite(left_new) && left_new < left) {
          improved <- TRUE
          break
        }
      }
      damping <- max(20 * damping, 1e-4)
    }
    if (!improved) break
    done <- left - left_new < 1e-7 * left
    b <- b_new
    s <- s_new
    at <- new
    left <- left_new
    damping <- damping / 10
    if (done) break
  }
  list(b = b, s = s, left = left, at = at, on_b = on_b, on_s = on_s)
}

# A normal distribution whose location is linear in the parents: the start of all.
linear_child <- function(v, g, phi, n_linear) {
  linear <- seq_len(n_linear)
  b <- coefficients_of(phi[, linear, drop = FALSE], v)
  gauss_newton(v, g, phi, linear, 1L, padded(b, ncol(phi)), numeric(ncol(phi)))
}

coefficients_of <- function(design, y) {
  b <- qr.coef(qr(design), y)
  ifelse(is.finite(b), b, 0)
}

padded <- function(b, n) c(b, numeric(n - length(b)))

# Another, where log scales are linear in the parents, too, from the scale sqrt |(v - m) / g|, which is right where the
# density is normal. NULL where it has no digits.
scaled_child <- function(v, g, phi, n_linear) {
  linear <- seq_len(n_linear)
  design <- phi[, linear, drop = FALSE]
  b <- coefficients_of(design, v)
  for (iteration in 1:3) {
    m <- drop(design %*% b)
    s <- coefficients_of(design, log((abs(v - m) + 1e-12) / (abs(g) + 1e-12)) / 2)
    scale <- exp(drop(design %*% s))
    b <- coefficients_of(design / scale, (v + scale^2 * g) / scale)
  }
  if (all(is.finite(c(b, s)))) gauss_newton(v, g, phi, linear, linear, padded(b, ncol(phi)), padded(s, ncol(phi)))
}

# The feature that takes most of the residual away, if that is enough: list(b, s), the numbers of one more.
next_feature <- function(fit, g, phi, for_b, for_s) {
  n <- length(g)
  more_b <- setdiff(which(for_b), fit$on_b)
  more_s <- setdiff(which(for_s), fit$on_s)
  if (length(more_b) + length(more_s) == 0 || fit$left < n * least_nats) {
    return(NULL)
  }
  new <- residual_slopes(fit$at, g, phi, more_b, more_s)
  new[, colSums(!is.finite(new)) > 0] <- 0
  new <- qr.resid(qr(residual_slopes(fit$at, g, phi, fit$on_b, fit$on_s)), new)
  square <- colSums(new^2)
  gain <- ifelse(square < 1e-10 * n, 0, colSums(new * fit$at$r)^2 / (square + 1e-300))
  k <- which.max(gain)
  if (gain[k] >= 2 * n * least_nats && gain[k] >= log(n) * fit$left / n) {
    list(b = more_b[k[k <= length(more_b)]], s = more_s[k[k > length(more_b)] - length(more_b)])
  }
}

# One child: features are added one at a time, as long as the residual falls.
search_child <- function(v, g, phi, n_linear, for_b, for_s) {
  n <- length(v)
  fit <- linear_child(v, g, phi, n_linear)
  more <- next_feature(fit, g, phi, for_b, for_s)
  if (is.null(more)) {
    return(fit)
  }
  scaled <- scaled_child(v, g, phi, n_linear)
  if (isTRUE(scaled$left < fit$left)) {
    fit <- scaled
    more <- next_feature(fit, g, phi, for_b, for_s)
  }
  while (!is.null(more) && length(fit$on_b) + length(fit$on_s) < most_features + 2 * n_linear) {
    richer <- gauss_newton(v, g, phi, c(fit$on_b, more$b), c(fit$on_s, more$s), fit$b, fit$s)
    if (richer$left > fit$left - n * least_nats) break
    fit <- richer
    more <- next_feature(fit, g, phi, for_b, for_s)
  }
  fit
}

# In the coordinates v = W^-1 u, W lower triangular.
fit_moments_in <- function(x, g, children, parents, W) {
  linear <- linear_features(parents, x)
  bent <- lapply(parents, function(k) bent_features(k, x[, k]))
  features <- do.call(cbind, c(list(linear), bent, list(cross_features(linear))))
  of_locations <- are_of_locations(features)
  of_scales <- are_of_scales(features)
  phi <- feature_values(features, x)
  at <- in_coordinates(W, x, g, children)
  fits <- lapply(seq_along(children), function(j) {
    search_child(at$v[, j], at$g[, j], phi, ncol(linear), of_locations, of_scales)
  })
  new_moments(x, children, features, fits, W)
}

# These children, and their scores, in the coordinates v = W^-1 u.
in_coordinates <- function(W, x, g, children) {
  list(v = t(forwardsolve(W, t(x[, children, drop = FALSE]))), g = g[, children, drop = FALSE] %*% W)
}

new_moments <- function(x, children, features, fits, W) {
  b <- do.call(rbind, lapply(fits, `[[`, "b"))
  s <- do.call(rbind, lapply(fits, `[[`, "s"))
  used <- colSums(b != 0 | s != 0) > 0
  used[1] <- TRUE
  block <- list(
    form = "moments", children = children, features = features[, used, drop = FALSE],
    b = b[, used, drop = FALSE], s = s[, used, drop = FALSE], W = W, d = ncol(x)
  )
  moments_maps(block)
}

moments_maps <- function(block) {
  d <- block$d
  map <- list(
    name = "moments", order = as.double(block$children), features = block$features, location = block$b,
    log_scale = block$s
  )
  block$maps <- c(list(map), if (any(block$W != diag(nrow(block$W)))) {
    list(list(name = "affine", mean = numeric(d), chol = acting_on(block$W, block$children, d)))
  })
  block
}

# Again to these points, with the same features.
refit_moments <- function(block, x, g) {
  phi <- feature_values(block$features, x)
  at <- in_coordinates(block$W, x, g, block$children)
  fits <- lapply(seq_along(block$children), function(j) {
    gauss_newton(
      at$v[, j], at$g[, j], phi, which(block$b[j, ] != 0), which(block$s[j, ] != 0), block$b[j, ], block$s[j, ], 15
    )
  })
  block$b <- do.call(rbind, lapply(fits, `[[`, "b"))
  block$s <- do.call(rbind, lapply(fits, `[[`, "s"))
  moments_maps(block)
}

# In the children's own coordinates, or in those in which they are independent given the parents, if that is likelier.
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
