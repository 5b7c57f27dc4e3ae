# References with a neck that opens: on one side of a variable the scale of the others falls
# with it, on the other nothing depends on it, as in hierarchies that are written as they
# are. See src/map_neck.c and src/map_rotation.c.

# The likeliest neck on one of the variables found, or on that with which the others turn; and
# where scales still depend on something, on its difference with that. NULL for none.
likeliest_neck <- function(points, view, found, n, genealogies) {
  if (is.null(points$g) || ncol(points$x) < 2) {
    return(NULL)
  }
  tried <- unique(c(found, find_turning(view, points$w)))
  neck <- likeliest(lapply(tried, function(k) neck_on(points, k, n, genealogies)))
  if (is.null(neck)) {
    return(NULL)
  }
  left <- find_scaling(points$x, points$w, list(neck[c("z", "g")]), neck$conditioning, n)
  likeliest(c(list(neck), lapply(left, function(level) {
    neck_on(points, c(neck$conditioning, level), n, genealogies)
  })))
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
# where there is no such reference.
neck_on <- function(points, variables, n, genealogies) {
  others <- setdiff(seq_len(ncol(points$x)), variables)
  line <- line_of(points, variables)
  # a match by gradients is exact from one point a dimension on
  if (n < rules$points_per_dimension * ncol(points$x) || length(others) == 0 || is.null(line)) {
    return(NULL)
  }
  likeliest(list(
    neck_in(NULL, points, variables, line, n, genealogies),
    if (n >= 2 * rules$points_per_dimension * ncol(points$x)) {
      frame <- frame_by_precision(points, others, line)
      if (!is.null(frame)) neck_in(frame, points, variables, line, n, genealogies)
    }
  ))
}

# The same in a frame; in that by moments, made anew in each sweep, where it is NULL.
neck_in <- function(frame, points, variables, line, n, genealogies) {
  d <- ncol(points$x)
  others <- setdiff(seq_len(d), variables)
  by_moments <- is.null(frame)
  neck <- NULL
  for (sweep in seq_len(rules$location_sweeps)) {
    if (by_moments) {
      frame <- frame_of(points, others, line, neck$log_scale)
    }
    if (is.null(frame)) {
      return(NULL)
    }
    neck <- fit_neck(frame, points$w, line, neck, n, genealogies)
    if (all(neck$bend == 0)) {
      return(NULL)
    }
  }
  z <- (frame$u - neck$location) * exp(-neck$log_scale)
  scale <- sqrt(colSums(points$w * z^2))
  fit <- neck_in_all(neck, frame, scale, line, variables)
  in_all <- function(of_variables, of_others) {
    all <- matrix(0, nrow(points$x), d)
    all[, variables] <- of_variables
    all[, others] <- of_others
    all
  }
  fit$z <- in_all(line$u, sweep(z, 2, scale, "/"))
  # but for the variables
  fit$g <- in_all(0, sweep(frame$g * exp(neck$log_scale), 2, scale, "*"))
  log_density <- log_normal(fit$z, fit$L) - rowSums(neck$log_scale) - sum(log(scale))
  fit$criterion <- sum(points$w * log_density) - neck$n_parameters * log(n) / (2 * n)
  if (all(is.finite(unlist(fit[names(fit) != "kind"])))) fit
}

# The variables of a neck, in the order of coordinates: x = L axes u, where the first column of
# u is the variable, or its difference with the level, in units of its standard deviation `sd`.
# `level` is the level in the same units, 0 where there is none; level_by: what it is of u. NULL
# where there is no such.
line_of <- function(points, variables) {
  coordinates <- sort(variables)
  x <- points$x[, coordinates, drop = FALSE]
  L <- fit_scale(x, points$w)
  if (is.null(L)) {
    return(NULL)
  }
  line <- list(coordinates = coordinates, L = L)
  if (length(variables) == 1) {
    return(c(line, list(u = x / L[1], sd = L[1], axes = diag(1), level = 0 * x[, 1], level_by = 0)))
  }
  is_level <- coordinates == variables[2]
  difference <- drop(crossprod(L, ifelse(is_level, -1, 1)))
  sd <- sqrt(sum(difference^2))
  along <- difference / sd
  axes <- cbind(along, c(-along[2], along[1]), deparse.level = 0)
  c(line, list(
    u = whitened(L, x) %*% axes, sd = sd, axes = axes,
    level = x[, is_level] / sd, level_by = drop(L[is_level, ] %*% axes) / sd
  ))
}

# Axes for the others: x = L Q u, where u has variance 1 given the variables on average, and Q
# are the axes along which it changes. log_scale: as far as it is known, NULL at first.
frame_of <- function(points, others, line, log_scale) {
  t <- line$u[, 1]
  common <- if (is.null(log_scale)) rep(1, length(t)) else exp(rowMeans(log_scale))
  if (any(common == 0)) {
    return(NULL) # a point further down the neck than numbers go
  }
  flexible <- cbind(1, line$u, t^2 - 1)
  rest <- rest_of(points, others, common, flexible)
  if (is.null(rest$L)) {
    return(NULL)
  }
  L <- rest$L
  turning <- turning_by(whitened(L, rest$z), rest$g %*% L, points$w, t)
  Q <- eigen(turning + t(turning), symmetric = TRUE)$vectors
  list(
    L = L, Q = Q, flexible = common * flexible,
    u = whitened(L, points$x[, others, drop = FALSE]) %*% Q,
    g = points$g[, others, drop = FALSE] %*% L %*% Q
  )
}

# The same for others that are normal given the variables, with the precision
# A exp(-2 rate t_1) + B exp(-2 rate t_2), where t_1 are values of the variable and t_2 of the
# level: then gradients are linear in them, and least squares finds A and B from any points.
# NULL where there is no such frame.
frame_by_precision <- function(points, others, line) {
  tried <- lapply(rules$neck_slopes * line$sd, precision_by_gradients, points, others, line)
  best <- unlist(tried[which.min(lapply(tried, `[[`, "left"))], recursive = FALSE)
  L <- tryCatch(t(chol(chol2inv(chol(best$first + best$second)))), error = function(e) NULL)
  if (is.null(L)) {
    return(NULL)
  }
  Q <- eigen(crossprod(L, best$first %*% L), symmetric = TRUE)$vectors
  list(
    L = L, Q = Q, flexible = cbind(1, line$u, line$u[, 1]^2 - 1),
    u = whitened(L, points$x[, others, drop = FALSE]) %*% Q,
    g = points$g[, others, drop = FALSE] %*% L %*% Q
  )
}

# The two parts of the precision, A and B, at the mean of the exponentials; and the share of
# the gradients' mean square that is left.
precision_by_gradients <- function(rate, points, others, line) {
  part <- function(at) {
    precision <- exp(-2 * rate * at)
    precision / sum(points$w * precision)
  }
  first <- part(line$u[, 1] + line$level)
  second <- part(line$level)
  # gradients are about as large as the precision
  x <- cbind(1, points$x[, others, drop = FALSE]) / (first + second)
  g <- points$g[, others, drop = FALSE] / (first + second)
  design <- cbind(first * x, second * x)
  if (!all(is.finite(design), is.finite(g))) {
    return(list(left = Inf))
  }
  by <- regress(design, g, points$w)
  of_part <- function(rows) -(by$coefficients[rows, ] + t(by$coefficients[rows, ])) / 2
  list(
    first = of_part(1 + seq_along(others)),
    second = of_part(ncol(x) + 1 + seq_along(others)),
    left = mean(colSums(points$w * by$residuals^2) / colSums(points$w * g^2))
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
# log scales, with the level or without it; and which of these do depend on the share:
# list(rate, centre, bend, slope, log_scale, half_log_share).
best_share <- function(log_scale, w, line, n) {
  t <- line$u[, 1]
  centred <- function(x) sweep(x, 2, colSums(w * x))
  log_scale <- centred(log_scale)
  without <- colSums(w * log_scale^2)
  n_centres <- length(rules$neck_centres)
  tried <- lapply(rules$neck_slopes * line$sd, function(rate) {
    by <- outer(t, rules$neck_centres, half_log_share, rate = rate)
    if (any(line$level != 0)) by <- cbind(by, by + rate * line$level)
    by <- centred(by)
    # mean squares of what is left, a row a coordinate, a column a centre
    left <- outer(without, colSums(w * by^2), `+`) - 2 * crossprod(w * log_scale, by)
    best <- max.col(-left, ties.method = "first")
    left <- left[cbind(seq_along(best), best)]
    bends <- without > exp(log(n) / n) * left & without - left > rules$least_log_scale
    list(
      rate = rate, centre = rules$neck_centres[1 + (best - 1) %% n_centres],
      bend = as.numeric(bends), slope = rate * (bends & best > n_centres),
      explained = sum((without - left)[bends])
    )
  })
  best <- tried[[which.max(vapply(tried, `[[`, 0, "explained"))]]
  best$half_log_share <- vapply(best$centre, function(centre) {
    half_log_share(t, centre, best$rate)
  }, numeric(length(t)))
  best$log_scale <- sweep(best$half_log_share, 2, best$bend, "*") + outer(line$level, best$slope)
  best
}

half_log_share <- function(z_k, centre, rate) {
  stats::plogis(2 * rate * (z_k - centre), log.p = TRUE) / 2
}

# The parameters for all coordinates.
neck_in_all <- function(neck, frame, scale, line, variables) {
  d <- length(scale) + length(variables)
  others <- setdiff(seq_len(d), variables)
  of_others <- function(x, of_variables = 0) replace(rep(of_variables, d), others, x)
  L <- axes <- matrix(0, d, d)
  L[line$coordinates, line$coordinates] <- line$L
  L[others, others] <- frame$L
  axes[line$coordinates, variables] <- line$axes
  axes[others, others] <- frame$Q
  list(
    kind = "neck", conditioning = variables, rate = neck$rate,
    centre_of_share = of_others(neck$centre), bend = of_others(neck$bend),
    pull = of_others(neck$pull), scale = of_others(scale, 1), axes = axes,
    slope = if (any(neck$slope != 0)) outer(of_others(neck$slope), line$level_by),
    L = L, centre = drop(L %*% axes %*% of_others(neck$origin))
  )
}
