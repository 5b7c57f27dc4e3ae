# References with a neck that opens: on one side of a variable the scale of the others falls
# with it, on the other nothing depends on it, as in hierarchies that are written as they
# are. See src/map_neck.c and src/map_rotation.c.

# The particles given one of their coordinates, k:
# x = centre + L Q u, u_j = scale_j z_j W_j^(bend_j / 2) + pull_j W_j, with the share
# W_j = 1 / (1 + exp(-2 rate (z_k - centre_j))). Q turns the others to the axes along which
# their scale changes. points, n, genealogies: as for fit_conditional(), with gradients. The
# same list as condition_on() has, but for the parameters of the map; NULL where there is
# no such reference.
neck_on <- function(points, k, n, genealogies) {
  others <- setdiff(seq_len(ncol(points$x)), k)
  sd <- sqrt(sum(points$w * points$x[, k]^2))
  z_k <- points$x[, k] / sd
  x <- points$x[, others, drop = FALSE]
  g <- points$g[, others, drop = FALSE]
  neck <- NULL
  for (sweep in seq_len(rules$location_sweeps)) {
    frame <- frame_of(x, g, points$w, z_k, neck$log_scale)
    if (is.null(frame)) {
      return(NULL)
    }
    neck <- fit_neck(frame, points$w, z_k, sd, neck, n, genealogies)
  }
  z <- (frame$u - neck$location) * exp(-neck$log_scale)
  scale <- sqrt(colSums(points$w * z^2))
  fit <- neck_in_all(neck, frame, scale, sd, k)
  fit$z <- matrix(z_k, nrow(x), ncol(x) + 1)
  fit$z[, others] <- sweep(z, 2, scale, "/")
  log_density <- log_normal(fit$z, fit$L) - rowSums(neck$log_scale) - sum(log(scale))
  fit$criterion <- sum(points$w * log_density) - neck$n_parameters * log(n) / (2 * n)
  if (all(is.finite(unlist(fit[names(fit) != "kind"])))) fit
}

# Axes for the others: x = L Q u, where u has variance 1 given z_k on average, and Q are the
# axes along which it changes. log_scale: as far as it is known, NULL at first.
frame_of <- function(x, g, w, z_k, log_scale) {
  common <- if (is.null(log_scale)) rep(1, nrow(x)) else exp(rowMeans(log_scale))
  flexible <- common * cbind(1, z_k, z_k^2 - 1)
  rest <- regress(cbind(1, flexible), x, precisions(w, common))$residuals / common
  slopes <- g * common
  L <- factor_of(rest, slopes, w)
  if (is.null(L)) {
    return(NULL)
  }
  Q <- turning_axes(whitened(L, rest), slopes %*% L, w, z_k)
  list(L = L, Q = Q, u = whitened(L, x) %*% Q, g = g %*% L %*% Q, flexible = flexible)
}

# For a normal z of covariance exp(2 S t) the gradient is -exp(-2 S t) z, so that of
# z + g = 2 sinh(S t) e and z - g = 2 cosh(S t) e, with e standard normal, the one is about
# S t times the other. The eigenvectors of S.
turning_axes <- function(z, g, w, t) {
  product <- crossprod((z + g) * (w * t), z - g)
  eigen(product + t(product), symmetric = TRUE)$vectors
}

# Share, scale and location in the axes of the frame. neck: of the sweep before, or NULL.
fit_neck <- function(frame, w, z_k, sd, neck, n, genealogies) {
  d <- ncol(frame$u)
  off <- vapply(seq_len(d), function(j) {
    design <- if (is.null(neck)) frame$flexible else cbind(1, exp(2 * neck$half_log_share[, j]))
    at <- regress_briefly(
      design, frame$u[, j], scale_precisions(w, neck$log_scale[, j]), genealogies
    )
    at$residuals / sqrt(1 - at$leverage)
  }, numeric(length(w)))
  log_scale <- log_scales(off, frame$g)
  neck <- best_share(log_scale, w, z_k, sd, n)
  neck$log_scale <- sweep(neck$half_log_share, 2, neck$bend, "*")
  neck$location <- matrix(0, length(w), d)
  neck$pull <- neck$origin <- numeric(d)
  for (j in seq_len(d)) {
    at <- regress_briefly(
      cbind(1, exp(2 * neck$half_log_share[, j])), frame$u[, j],
      scale_precisions(w, neck$log_scale[, j]), genealogies
    )
    neck$origin[j] <- at$coefficients[1]
    neck$pull[j] <- at$coefficients[2]
    neck$location[, j] <- frame$u[, j] - at$residuals
  }
  neck$n_parameters <- sum(neck$bend) + sum(neck$pull != 0) + 1 # centres, pulls, the rate
  neck
}

scale_precisions <- function(w, log_scale) {
  if (is.null(log_scale)) w else precisions(w, exp(log_scale))
}

# Half the logarithms of the shares, by the rate and the centres that explain most of the
# log scales, and which of these do depend on the variable: list(rate, centre, bend,
# half_log_share).
best_share <- function(log_scale, w, z_k, sd, n) {
  centred <- function(x) sweep(x, 2, colSums(w * x))
  log_scale <- centred(log_scale)
  without <- colSums(w * log_scale^2)
  tried <- lapply(rules$neck_slopes * sd, function(rate) {
    by <- centred(outer(z_k, rules$neck_centres, half_log_share, rate = rate))
    # mean squares of what is left, a row a coordinate, a column a centre
    left <- outer(without, colSums(w * by^2), `+`) - 2 * crossprod(w * log_scale, by)
    best <- max.col(-left, ties.method = "first")
    left <- left[cbind(seq_along(best), best)]
    bends <- without > exp(log(n) / n) * left
    list(
      rate = rate, centre = rules$neck_centres[best], bend = as.numeric(bends),
      explained = sum((without - left)[bends])
    )
  })
  best <- tried[[which.max(vapply(tried, `[[`, 0, "explained"))]]
  best$half_log_share <- vapply(best$centre, function(centre) {
    half_log_share(z_k, centre, best$rate)
  }, numeric(length(z_k)))
  best
}

half_log_share <- function(z_k, centre, rate) {
  stats::plogis(2 * rate * (z_k - centre), log.p = TRUE) / 2
}

# The parameters for all coordinates.
neck_in_all <- function(neck, frame, scale, sd, k) {
  d <- length(scale) + 1
  others <- setdiff(seq_len(d), k)
  of_others <- function(x, of_k = 0) replace(rep(of_k, d), others, x)
  block <- function(of_k, of_others) {
    all <- matrix(0, d, d)
    all[k, k] <- of_k
    all[others, others] <- of_others
    all
  }
  L <- block(sd, frame$L)
  axes <- block(1, frame$Q)
  list(
    kind = "neck", conditioning = k, rate = neck$rate,
    centre_of_share = of_others(neck$centre), bend = of_others(neck$bend),
    pull = of_others(neck$pull), scale = of_others(scale, 1), axes = axes,
    L = L, centre = drop(L %*% axes %*% of_others(neck$origin))
  )
}
