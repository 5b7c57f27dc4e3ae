# Features: functions of the coordinates that others depend on. See src/map_moments.c.
#
# A feature is a column of eight numbers, two factors one below the other: the number of the coordinate (0 for none),
# the kind of function, its rate and its centre. `features` is a matrix of such columns.

# Nats that are worth a feature or a block.
least_nats <- 0.005

factor_kinds <- c(linear = 1, square = 2, cube = 3, exponential = 4, softplus = 5)
no_factor <- numeric(4)
constant_feature <- matrix(0, 8, 1)
# Exponentials of larger arguments overflow once they are squared.
largest_exponent <- 350

feature_of <- function(variable, kind, rate = 1, centre = 0) {
  matrix(c(variable, factor_kinds[[kind]], rate, centre, no_factor))
}

product_of_features <- function(a, b) matrix(c(a[1:4], b[1:4]))

# The values at rows of x, a column a feature.
feature_values <- function(features, x) {
  factor_at <- function(f) {
    if (f[1] == 0) {
      return(rep(1, nrow(x)))
    }
    y <- f[3] * (x[, f[1]] - f[4])
    switch(f[2], y, y^2, y^3, exp(pmax(pmin(y, largest_exponent), -largest_exponent)), pmax(y, 0) + log1p(exp(-abs(y))))
  }
  values <- apply(features, 2, function(f) if (f[5] == 0) factor_at(f[1:4]) else factor_at(f[1:4]) * factor_at(f[5:8]))
  matrix(values, nrow(x))
}

# A constant, and each of these coordinates.
linear_features <- function(variables, x) {
  do.call(cbind, c(list(constant_feature), lapply(variables, function(k) {
    feature_of(k, "linear", 1 / spread_of(x[, k]), stats::median(x[, k]))
  })))
}

spread_of <- function(t) {
  spread <- stats::mad(t)
  if (spread > 0) spread else stats::sd(t) + .Machine$double.xmin
}

# Places of the knees of softplus functions, as quantiles of a coordinate, and their rates over one by its spread.
knots <- c(0.02, 0.2, 0.5, 0.8, 0.98)
knee_rates <- c(1.5, 4)

# Those of coordinate k, with values t, that are not linear in it.
bent_features <- function(k, t) {
  unit <- 1 / spread_of(t)
  at <- stats::quantile(t, knots, names = FALSE)
  power <- function(kind) feature_of(k, kind, unit, stats::median(t))
  softplus <- function(sign) {
    of_rate <- function(rate) lapply(at, function(place) feature_of(k, "softplus", sign * rate * unit, place))
    do.call(c, lapply(knee_rates, of_rate))
  }
  exponentials <- list(feature_of(k, "exponential", -1), feature_of(k, "exponential", 1))
  do.call(cbind, c(list(power("square"), power("cube")), softplus(1), exponentials, softplus(-1)))
}

# Products of two coordinates, of linear_features().
cross_features <- function(linear) {
  pairs <- which(lower.tri(diag(ncol(linear) - 1)), arr.ind = TRUE)
  do.call(cbind, lapply(seq_len(nrow(pairs)), function(i) {
    product_of_features(linear[, 1 + pairs[i, 2]], linear[, 1 + pairs[i, 1]])
  }))
}

# In which a log scale may be linear, and a location: what grows faster than a coordinate is for locations alone, and
# softplus functions that fall are for scales, since with those that rise they are linear.
are_of_scales <- function(features) {
  features[5, ] == 0 & (features[1, ] == 0 | features[2, ] %in% factor_kinds[c("linear", "softplus")])
}

are_of_locations <- function(features) !(features[2, ] == factor_kinds[["softplus"]] & features[3, ] < 0)

# The coordinates that features depend on.
parents_of <- function(features) sort(setdiff(unique(c(features[c(1, 5), ])), 0))
