# Features: functions of the parents in which the location and log scale of children are linear. Called by
# learn_moments.R. See src/map_moments.c.
#
# A feature is a column of eight numbers. It is the product of two factors of four numbers each: the index of the parent
# (0 for none), the kind of function, its rate and its centre. `features` is a matrix of such columns.

# Smallest gain in log density a point for which a feature or a block is added.
least_nats <- 0.005

factor_kinds <- c(linear = 1, square = 2, cube = 3, exponential = 4, softplus = 5)
no_factor <- numeric(4)
constant_feature <- matrix(0, 8, 1)
# Exponentials of larger arguments overflow when squared.
largest_exponent <- 350

feature_of <- function(variable, kind, rate = 1, centre = 0) {
  matrix(c(variable, factor_kinds[[kind]], rate, centre, no_factor))
}

product_of_features <- function(a, b) matrix(c(a[1:4], b[1:4]))

# The values of features at rows of x, a column for each feature.
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

# A constant feature, and a linear one for each of these coordinates, robustly standardised.
linear_features <- function(variables, x) {
  do.call(cbind, c(list(constant_feature), lapply(variables, function(k) {
    feature_of(k, "linear", 1 / spread_of(x[, k]), stats::median(x[, k]))
  })))
}

# The scaled median absolute deviation; the standard deviation if that is 0.
spread_of <- function(t) {
  spread <- stats::mad(t)
  if (spread > 0) spread else stats::sd(t) + .Machine$double.xmin
}

# Robust standard deviations of columns.
spreads <- function(x) apply(x, 2, spread_of)

# Numbers of softplus functions in a sum.
n_softplus <- c(6, 12, 24)

# list(features, groups): all features of parents, the constant and linear ones first, and the groups of columns that
# are added at once to locations or to log scales. Functions that grow faster than linearly are for locations alone.
grouped_features <- function(parents, x) {
  linear <- linear_features(parents, x)
  bent <- lapply(parents, function(k) nonlinear_features(k, x[, k]))
  curved <- c(do.call(c, bent), cross_features(linear))
  sizes <- vapply(curved, ncol, 0L)
  groups <- Map(function(end, size) end - size + seq_len(size), ncol(linear) + cumsum(sizes), sizes)
  kinds <- vapply(curved, function(f) if (f[5, 1] == 0) f[2, 1] else 0, 0)
  # a cube is added together with its square
  is_cube <- which(kinds == factor_kinds[["cube"]])
  locations <- replace(groups, is_cube, lapply(groups[is_cube], function(k) c(k - 1L, k)))
  list(
    features = do.call(cbind, c(list(linear), curved)),
    groups = list(
      location = locations,
      log_scale = c(as.list(seq_len(ncol(linear))[-1]), groups[kinds == factor_kinds[["softplus"]]])
    )
  )
}

# The nonlinear features of coordinate k, with values t, as a list of groups: powers, exponentials, and sums of softplus
# functions.
nonlinear_features <- function(k, t) {
  power <- function(kind) feature_of(k, kind, 1 / spread_of(t), stats::median(t))
  c(
    list(power("square"), power("cube"), feature_of(k, "exponential", -1), feature_of(k, "exponential", 1)),
    lapply(n_softplus, function(n) softplus_features(k, t, n))
  )
}

# n overlapping softplus functions with evenly spaced centres: sums of them approximate any smooth curve, and are linear
# beyond the outer centres.
softplus_features <- function(k, t, n) {
  ends <- stats::quantile(t, c(0.01, 0.99), names = FALSE)
  at <- seq(ends[1], ends[2], length.out = n)
  width <- if (ends[2] > ends[1]) (ends[2] - ends[1]) / (n - 1) else spread_of(t) # if nearly all draws are equal
  do.call(cbind, lapply(at, function(place) feature_of(k, "softplus", 2 / width, place)))
}

# The products of two different linear features, a list with one for each pair. linear: of linear_features().
cross_features <- function(linear) {
  pairs <- which(lower.tri(diag(ncol(linear) - 1)), arr.ind = TRUE)
  lapply(seq_len(nrow(pairs)), function(i) {
    product_of_features(linear[, 1 + pairs[i, 2]], linear[, 1 + pairs[i, 1]])
  })
}

# The coordinates that features depend on, sorted.
parents_of <- function(features) sort(setdiff(unique(c(features[c(1, 5), ])), 0))
