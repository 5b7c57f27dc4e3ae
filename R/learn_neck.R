# References with a neck that opens: on one side of a variable the scale of the others falls
# with it, on the other nothing depends on it, as in hierarchies that are written as they
# are; or where two scales are unknown, between the one and the other. See src/map_neck.c,
# src/map_rotation.c, and for the second scale src/map_conditional.c. Where gradients do not
# tell all of it, by least squares (neck_gradients.R), it is fitted here, by moments.

# The best neck on one of the variables found, or on that with which the others turn, or on
# the difference of one with the logarithm of another scale. NULL for none.
find_neck <- function(points, view, found, n, genealogies) {
  if (is.null(points$g) || ncol(points$x) < 2) {
    return(NULL)
  }
  variables <- unique(c(found, find_turning(view, points$w), find_scale(points)))
  by_gradients <- necks_by_gradients(points, variables, n)
  if (!is.null(by_gradients$exact)) {
    return(by_gradients$exact)
  }
  tried <- by_gradients$tried
  fit <- function(try) neck_on(points, try$on, n, genealogies, linear = try$linear)
  has_level <- lengths(lapply(tried, `[[`, "on")) == 2
  neck <- likeliest(lapply(tried[!has_level], fit))
  with_level <- Filter(function(try) try$on[1] %in% neck$conditioning, tried[has_level])
  likeliest(c(list(neck), lapply(with_level, fit)))
}

# The particles given one of their coordinates, k = variables[1], or given two, of which the
# second, the level, is the logarithm of another scale:
# x = centre + L Q u, u_j = scale_j exp(slope_j . u_D) z_j W_j^(bend_j / 2) + pull_j W_j,
# with the share W_j = 1 / (1 + exp(-2 rate (u_k - centre_j))), where u_k is the variable, or
# its difference with the level, in standard deviations, and D are the variables. The slopes
# are 0, or those of exp(rate * level): then the scale is that of the variable at one end of
# the neck, and that of the level at the other. Q turns the others to the axes along which
# their scale changes. Given the scales of effects, or of innovations, and of the noise with
# which these are measured this is exact. points, n, genealogies: as for fit_conditional(),
# with gradients. The same list as condition_on() has, but for the parameters of the map; NULL
# where there is no such reference. slopes: rates that are tried, by the variable as it is.
# linear: of neck_by_gradients().
neck_on <- function(points, variables, n, genealogies, slopes = rules$neck_slopes,
                    linear = neck_by_gradients(points, variables, n, slopes)) {
  others <- setdiff(seq_len(ncol(points$x)), variables)
  line <- line_of(points, variables)
  if (length(others) == 0 || is.null(line)) {
    return(NULL)
  }
  # a match by gradients is exact from one point a dimension on
  if (is_exact(linear) || n < rules$points_per_dimension * ncol(points$x)) {
    return(linear)
  }
  frame <- if (isTRUE(linear$left < rules$nearly_linear)) {
    of_others <- function(x) x[others, others, drop = FALSE]
    new_frame(points, others, line, of_others(linear$L), of_others(linear$axes))
  }
  likeliest(list(linear, neck_by_moments(points, others, line, n, genealogies, slopes, frame)))
}

# Location and scale, and the frame where it is not given, in turn.
neck_by_moments <- function(points, others, line, n, genealogies, slopes, given) {
  neck <- NULL
  line$shares <- lapply(slopes * line$sd, shares_by, line = line, w = points$w)
  for (sweep in seq_len(rules$location_sweeps)) {
    frame <- if (is.null(given)) frame_of(points, others, line, neck$log_scale) else given
    if (is.null(frame)) {
      return(NULL)
    }
    neck <- fit_neck(frame, points$w, line, neck, n, genealogies)
    if (all(neck$bend == 0)) {
      return(NULL)
    }
  }
  neck$by_gradients <- FALSE
  neck_in_all(neck, frame, points, others, line, n)
}

# Axes for the others: x = L Q u, where u has variance 1 given the variables on average, and Q
# are the axes along which it changes. log_scale: as far as it is known, NULL at first.
frame_of <- function(points, others, line, log_scale) {
  t <- line$u[, 1]
  common <- if (is.null(log_scale)) rep(1, length(t)) else exp(rowMeans(log_scale))
  rest <- rest_of(points, others, common, flexible_location(line))
  if (is.null(rest$L)) {
    return(NULL)
  }
  L <- rest$L
  turning <- turning_by(whitened(L, rest$z), multiply(rest$g, L), points$w, t)
  Q <- eigen(turning + t(turning), symmetric = TRUE)$vectors
  new_frame(points, others, line, L, Q, common)
}

# How the covariance of z changes with t. For a normal z of covariance exp(2 S t) the
# gradient is -exp(-2 S t) z, so that of z + g = 2 sinh(S t) e and z - g = 2 cosh(S t) e,
# with e standard normal, the one is about S t times the other: their moments are about a
# multiple of S, and have its eigenvectors, the axes along which the covariance changes.
turning_by <- function(z, g, w, t) cross_product((z + g) * (w * t), z - g)

# The coordinate with which the covariance of all others changes most, along any axes.
find_turning <- function(view, w) {
  plus <- view$z + view$g
  minus <- view$z - view$g
  changes <- vapply(seq_len(ncol(view$z)), function(k) {
    sum(cross_product(plus * (w * view$z[, k]), minus)[-k, -k]^2)
  }, 0)
  which.max(changes)
}

# Share, scale and location in the axes of the frame. neck: of the sweep before, or NULL.
fit_neck <- function(frame, w, line, neck, n, genealogies) {
  before <- if (is.null(neck)) {
    regress(cbind(1, frame$flexible), frame$u, w)
  } else {
    fit_lines(exp(2 * neck$half_log_share), frame$u, w, neck$log_scale, genealogies)
  }
  off <- before$residuals / sqrt(1 - before$leverage)
  neck <- best_share(log_scales(off, frame$g), w, line, n)
  lines <- fit_lines(exp(2 * neck$half_log_share), frame$u, w, neck$log_scale, genealogies)
  neck$origin <- lines$origin
  neck$pull <- lines$slope
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
# log scales, with the level or without it; and which of these do depend on the share:
# list(rate, centre, bend, slope, log_scale, half_log_share).
best_share <- function(log_scale, w, line, n) {
  log_scale <- sweep(log_scale, 2, weighted_sums(log_scale, w))
  without <- weighted_squares(log_scale, w)
  weighted <- w * log_scale
  n_centres <- length(rules$neck_centres)
  tried <- lapply(line$shares, function(share) {
    # mean squares of what is left, a row a coordinate, a column a centre
    left <- outer(without, share$square, `+`) - 2 * crossprod(weighted, share$by)
    best <- max.col(-left, ties.method = "first")
    left <- left[cbind(seq_along(best), best)]
    bends <- without > exp(log(n) / n) * left & without - left > rules$least_log_scale
    list(
      rate = share$rate, centre = rules$neck_centres[1 + (best - 1) %% n_centres],
      bend = as.numeric(bends), slope = share$rate * (bends & best > n_centres),
      explained = sum((without - left)[bends])
    )
  })
  best <- tried[[which.max(vapply(tried, `[[`, 0, "explained"))]]
  best$half_log_share <- half_log_shares(line, best)
  best$log_scale <- sweep(best$half_log_share, 2, best$bend, "*") + outer(line$level, best$slope)
  best
}

# What is tried for one rate: half the logarithms of the shares with all centres, and once more
# with the level where there is one, a column each, of mean 0; and their mean squares.
shares_by <- function(rate, line, w) {
  by <- outer(line$u[, 1], rules$neck_centres, half_log_share, rate = rate)
  if (any(line$level != 0)) by <- cbind(by, by + rate * line$level)
  by <- sweep(by, 2, weighted_sums(by, w))
  list(rate = rate, by = by, square = weighted_squares(by, w))
}
