# Multivariate Student t references, for tails that are heavy in all directions: fitted to draws by maximum likelihood,
# or exactly to gradients. Called by the rungs in learn_rungs.R and by the bridge.

# Steps of the EM algorithm for a Student t, which converges fast from the normal distribution.
em_steps <- 8
# Degrees of freedom from which the search by gradients starts.
first_df <- c(2, 1, 8)
# Largest number of its Gauss-Newton steps; most searches take 4 to 8.
newton_steps <- 12
# Largest number of halvings of a step.
most_newton_halvings <- 5
# Points for each coefficient in the search. The result is checked at all points.
points_per_bend <- 32

# by draws ----------------------------------------------------------------------

new_student_reference <- function(mean, chol, df) with_chol(reference_student(df, mean), chol)

# A Student t for weighted rows of mean 0 by maximum likelihood: the degrees of freedom from a grid by the radii alone,
# then location and scale by the EM algorithm. Returns list(mean, L, df, criterion), NULL where a normal distribution
# with the factor L fits as well. n: the number of genealogies.
fit_student <- function(x, w, L, n) {
  z <- whitened(L, x)
  d <- ncol(z)
  if (n < rules$genealogies_per_dimension * d) {
    return(NULL) # the covariance is too uncertain to show tails
  }
  square <- rowSums(z^2)
  radial <- lapply(rules$student_df, function(df) radial_student(square, w, d, df))
  best <- radial[[which.max(vapply(radial, `[[`, 0, "log_density"))]]
  # The normal distribution is rescaled too, since shrinkage may have widened the covariance of few draws. The Student t
  # has one more parameter, the degrees of freedom.
  normal <- -d / 2 * (1 + log(sum(w * square) / d))
  if (best$log_density - log(n) / (2 * n) <= normal) {
    return(NULL)
  }
  inner <- list(mean = rep(0, d), L = diag(sqrt(best$scale2), d))
  for (i in seq_len(em_steps)) {
    inner <- student_step(z, w, inner, best$df)
    if (is.null(inner)) {
      return(NULL)
    }
  }
  y <- from_user(inner, z)
  list(
    mean = drop(L %*% inner$mean),
    L = L %*% inner$L,
    df = best$df,
    criterion = sum(w * log_student(rowSums(y^2), d, best$df)) -
      sum(log(diag(inner$L))) - sum(log(diag(L))) - log(n) / n
  )
}

# The log density of a standard Student t at squared radii, without the constant -d / 2 log(2 pi).
log_student <- function(square, d, df) {
  lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df / 2) -
    (df + d) / 2 * log1p(square / df)
}

# The scale for these degrees of freedom by the squared radii, with its mean log density.
radial_student <- function(square, w, d, df) {
  scale2 <- sum(w * square) / d
  for (i in seq_len(em_steps)) {
    scale2 <- sum(w * square * (df + d) / (df + square / scale2)) / d
  }
  list(
    df = df, scale2 = scale2,
    log_density = sum(w * log_student(square / scale2, d, df)) - d / 2 * log(scale2)
  )
}

student_step <- function(z, w, now, df) {
  square <- rowSums(from_user(now, z)^2)
  u <- w * (df + ncol(z)) / (df + square)
  mean <- colSums(u * z) / sum(u)
  upper <- factor_or_null(crossprod(sqrt(u) * sweep(z, 2, mean)))
  if (!is.null(upper)) list(mean = mean, L = t(upper))
}

# by gradients --------------------------------------------------------------------

# The Student t as a reference that is marked as exact, if the target is one by its gradients at the points; else NULL.
# points: list(x, g, w, mean); L: a factor of about their covariance. At a whitened point z, with y = z - centre and
# c = 1 / (df + d), the gradient of a Student t satisfies
#   g = -(df + d) P y / (df + y'Py) = -(df + d) / df (1 + c y'g) P y.
exact_student <- function(points, L, genealogies) {
  d <- ncol(points$x)
  if (is.null(points$g) || nrow(points$x) < points_per_coefficient * 2 * (1 + d)) {
    return(NULL)
  }
  z <- whitened(L, points$x)
  g <- multiply(points$g, L)
  bend <- student_bend(z, g, points$w)
  df <- 1 / bend$c - d
  if (!all(is.finite(c(df, bend$centre))) || df < least_df) {
    return(NULL)
  }
  y <- sweep(z, 2, bend$centre)
  slopes <- weighted_least_squares(y * (1 + bend$c * rowSums(y * g)), g, points$w)$coefficients
  precision <- -df / (df + d) * (slopes + t(slopes)) / 2
  upper <- factor_or_null(precision)
  if (is.null(upper)) {
    return(NULL)
  }
  u <- tcrossprod(y, upper)
  off <- g + (df + d) * u %*% upper / (df + rowSums(u^2))
  left <- sum(points$w * rowSums(off^2)) / sum(points$w * rowSums(g^2))
  # half of a Student t has the same gradients, but not uniform directions
  if (isTRUE(left < rules$nothing_left) &&
    are_standard(sqrt(d / rowSums(u^2)) * u, points$w, genealogies)) {
    as_exact(new_student_reference(points$mean + drop(L %*% bend$centre), L %*% factor_of_inverse(upper), df))
  }
}

# Whether the residuals of the gradients of a normal fit may be those of a Student t, which are radial in its whitened
# coordinates. nearest: of fit_gaussian_score(); TRUE where it is NULL.
may_be_radial <- function(nearest, w) {
  if (is.null(nearest)) {
    return(TRUE)
  }
  along <- rowSums(nearest$off * nearest$y)^2 / rowSums(nearest$y^2)
  !isTRUE(sum(w * along) / 2 < rules$least_radial * nearest$nats)
}

# list(c, centre), by least squares for the first component of the gradients, which is 1 + c (z - centre)'g times a
# linear function of z. Gauss-Newton steps for (c, c centre) are halved until they reduce the residual. A subset of the
# points is enough.
student_bend <- function(z, g, w) {
  d <- ncol(z)
  rows <- unique(round(seq(1, nrow(z), length.out = points_per_bend * 2 * (1 + d))))
  w <- w[rows]
  along <- cbind(rowSums(z * g), -g)[rows, , drop = FALSE]
  linear <- cbind(1, z[rows, , drop = FALSE])
  g <- g[rows, 1, drop = FALSE]
  at <- function(theta) {
    bent <- 1 + drop(along %*% theta)
    if (!all(is.finite(bent))) {
      return(list(left = Inf))
    }
    fit <- weighted_least_squares(bent * linear, g, w)
    list(
      theta = theta, bent = bent, line = drop(linear %*% fit$coefficients),
      residuals = fit$residuals, left = sum(w * fit$residuals^2)
    )
  }
  starts <- lapply(first_df, function(df) at(c(1 / (d + df), numeric(d))))
  ends <- lapply(starts, descend, at, along, linear, w)
  best <- ends[[which.min(vapply(ends, `[[`, 0, "left"))]]
  list(c = best$theta[1], centre = best$theta[-1] / best$theta[1])
}

descend <- function(now, at, along, linear, w) {
  d <- length(now$theta) - 1
  for (i in seq_len(newton_steps)) {
    step <- weighted_least_squares(cbind(now$line * along, now$bent * linear), now$residuals, w)$coefficients
    for (part in 2^-(0:most_newton_halvings)) {
      tried <- at(now$theta + part * step[seq_len(1 + d)])
      if (isTRUE(tried$left < now$left)) break
    }
    if (!isTRUE(tried$left < now$left)) {
      break
    }
    now <- tried
  }
  now
}

# Whether two references are the same up to rounding.
are_alike <- function(one, other) {
  isTRUE(all.equal(one, other, tolerance = sqrt(rules$nothing_left)))
}
