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

# Features in which pulls are linear without a search: a constant, and each of these coordinates.
linear_features <- function(variables, x) {
  do.call(cbind, c(list(constant_feature), lapply(variables, function(k) {
    feature_of(k, "linear", 1 / spread_of(x[, k]), stats::median(x[, k]))
  })))
}

spread_of <- function(t) {
  spread <- stats::mad(t)
  if (spread > 0) spread else stats::sd(t) + .Machine$double.xmin
}

pull_features <- function(k, t) {
  cbind(
    feature_of(k, "square", 1 / spread_of(t), stats::median(t)),
    feature_of(k, "cube", 1 / spread_of(t), stats::median(t))
  )
}

# Places of the knees of softplus functions, as quantiles of a coordinate, and their rates over one by its spread.
knots <- c(0.02, 0.2, 0.5, 0.8, 0.98)
knee_rates <- c(1.5, 4)

softplus_features <- function(k, t, sign) {
  at <- stats::quantile(t, knots, names = FALSE)
  of_rate <- function(rate) lapply(at, function(place) feature_of(k, "softplus", sign * rate / spread_of(t), place))
  do.call(cbind, do.call(c, lapply(knee_rates, of_rate)))
}

# Those of one coordinate in which a location, and the logarithm of a scale, may be linear.
location_features <- function(k, t) {
  cbind(
    feature_of(k, "linear", 1 / spread_of(t), stats::median(t)), pull_features(k, t), softplus_features(k, t, 1),
    feature_of(k, "exponential", -1), feature_of(k, "exponential", 1)
  )
}

log_scale_features <- function(k, t) {
  cbind(
    feature_of(k, "linear", 1 / spread_of(t), stats::median(t)),
    softplus_features(k, t, 1), softplus_features(k, t, -1)
  )
}

# The coordinates that features depend on.
parents_of <- function(features) sort(setdiff(unique(c(features[c(1, 5), ])), 0))
