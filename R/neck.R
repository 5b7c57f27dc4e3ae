# References with a neck that opens: on one side of a variable the scale of the others falls
# with it, on the other nothing depends on it, as in hierarchies that are written as they
# are. See src/map_neck.c and src/map_rotation.c.

# The likeliest neck on one of the variables found, or on that with which the others turn;
# NULL for none.
likeliest_neck <- function(points, view, found, n, genealogies) {
  if (is.null(points$g) || ncol(points$x) < 2) {
    return(NULL)
  }
  tried <- unique(c(found, find_turning(view, points$w)))
  likeliest(lapply(tried, function(k) neck_on(points, k, n, genealogies)))
}

# The particles given one of their coordinates, k:
# x = centre + L Q u, u_j = scale_j z_j W_j^(bend_j / 2) + pull_j W_j, with the share
# W_j = 1 / (1 + exp(-2 rate (z_k - centre_j))). Q turns the others to the axes along which
# their scale changes. points, n, genealogies: as for fit_conditional(), with gradients. The
# same list as condition_on() has, but for the parameters of the map; NULL where there is
# no such reference.
neck_on <- function(points, k, n, genealogies) {
  if (n < rules$points_per_dimension * ncol(points$x)) {
    return(NULL) # a match by gradients is exact from one point a dimension on
  }
  others <- setdiff(seq_len(ncol(points$x)), k)
  sd <- sqrt(sum(points$w * points$x[, k]^2))
  z_k <- points$x[, k] / sd
  neck <- NULL
  for (sweep in seq_len(rules$location_sweeps)) {
    frame <- frame_of(points, others, z_k, neck$log_scale)
    if (is.null(frame)) {
      return(NULL)
    }
    neck <- fit_neck(frame, points$w, z_k, sd, neck, n, genealogies)
    if (all(neck$bend == 0)) {
      return(NULL)
    }
  }
  z <- (frame$u - neck$location) * exp(-neck$log_scale)
  scale <- sqrt(colSums(points$w * z^2))
  fit <- neck_in_all(neck, frame, scale, sd, k)
  fit$z <- matrix(z_k, nrow(points$x), ncol(points$x))
  fit$z[, others] <- sweep(z, 2, scale, "/")
  log_density <- log_normal(fit$z, fit$L) - rowSums(neck$log_scale) - sum(log(scale))
  fit$criterion <- sum(points$w * log_density) - neck$n_parameters * log(n) / (2 * n)
  if (all(is.finite(unlist(fit[names(fit) != "kind"])))) fit
}

# Axes for the others: x = L Q u, where u has variance 1 given z_k on average, and Q are the
# axes along which it changes. log_scale: as far as it is known, NULL at first.
frame_of <- function(points, others, z_k, log_scale) {
  common <- if (is.null(log_scale)) rep(1, length(z_k)) else exp(rowMeans(log_scale))
  if (any(common == 0)) {
    return(NULL) # a point further down the neck than numbers go
  }
  flexible <- cbind(1, z_k, z_k^2 - 1)
  rest <- rest_of(points, others, common, flexible)
  if (is.null(rest$L)) {
    return(NULL)
  }
  L <- rest$L
  turning <- turning_by(whitened(L, rest$z), rest$g %*% L, points$w, z_k)
  Q <- eigen(turning + t(turning), symmetric = TRUE)$vectors
  list(
    L = L, Q = Q, flexible = common * flexible,
    u = whitened(L, points$x[, others, drop = FALSE]) %*% Q,
    g = points$g[, others, drop = FALSE] %*% L %*% Q
  )
}

# How the covariance of z changes with t. For a normal z of covariance exp(2 S t) the
# gradient is -exp(-2 S t) z, so that of z + g = 2 sinh(S t) e and z - g = 2 cosh(S t) e,
# with e standard normal, the one is about S t times the other: their moments are about a
# multiple of S, and have its eigenvectors, the axes along which the covariance changes.
turning_by <- function(z, g, w, t) crossprod((z + g) * (w * t), z - g)

# The coordinate with which the covariance of all others changes most, along any axes.
find_turning <- function(view, w) {
  changes <- vapply(seq_len(ncol(view$z)), function(k) {
    sum(turning_by(view$z[, -k, drop = FALSE], view$g[, -k, drop = FALSE], w, view$z[, k])^2)
  }, 0)
  which.max(changes)
}

# Share, scale and location in the axes of the frame. neck: of the sweep before, or NULL.
fit_neck <- function(frame, w, z_k, sd, neck, n, genealogies) {
  before <- if (is.null(neck)) {
    regress(cbind(1, frame$flexible), frame$u, w)
  } else {
    fit_lines(exp(2 * neck$half_log_share), frame$u, w, neck$log_scale, genealogies)
  }
  off <- before$residuals / sqrt(1 - before$leverage)
  neck <- best_share(log_scales(off, frame$g), w, z_k, sd, n)
  neck$log_scale <- sweep(neck$half_log_share, 2, neck$bend, "*")
  lines <- fit_lines(exp(2 * neck$half_log_share), frame$u, w, neck$log_scale, genealogies)
  neck$origin <- lines$origin
  neck$pull <- lines$slope
  neck$location <- frame$u - lines$residuals
  neck$n_parameters <- sum(neck$bend) + sum(neck$pull != 0) + 1 # centres, pulls, the rate
  neck
}

# Each column of y on that of x by weighted least squares, with weights w over the squared
# scales. A slope that may as well be 0 is (by Schwarz's criterion): see regress_briefly().
fit_lines <- function(x, y, w, log_scale, n) {
  log_w <- log(w) - 2 * log_scale
  w <- exp(sweep(log_w, 2, apply(log_w, 2, max)))
  w <- sweep(w, 2, colSums(w), "/")
  mean_x <- colSums(w * x)
  x <- sweep(x, 2, mean_x)
  mean_y <- colSums(w * y)
  y <- sweep(y, 2, mean_y)
  square <- colSums(w * x^2)
  slope <- colSums(w * x * y) / square
  residuals <- y - sweep(x, 2, slope, "*")
  needed <- slope^2 > log(n) * colSums(w * residuals^2) / (n * square)
  slope <- ifelse(needed %in% TRUE, slope, 0) # NaN where x does not vary
  list(
    origin = mean_y - slope * mean_x,
    slope = slope,
    residuals = y - sweep(x, 2, slope, "*"),
    leverage = pmin(
      w * (1 + sweep(x^2, 2, (slope != 0) / pmax(square, rules$least_square), "*")),
      rules$most_leverage
    )
  )
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
    bends <- without > exp(log(n) / n) * left & without - left > rules$least_log_scale
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
