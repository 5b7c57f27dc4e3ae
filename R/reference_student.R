# Student t distributions, for tails that are heavy in all directions: that which a target is, by gradients.

# Degrees of freedom from which those of a Student t are searched for by gradients.
first_df <- c(2, 1, 8)
# Steps of that search, which takes 4 to 8, ...
newton_steps <- 12
# ... halvings of a step, ...
most_newton_halvings <- 5
# ... and points for each coefficient. All are tried in the end.
points_per_bend <- 32

# The log density of a standard Student t at squared radii, but for the constant that
# log_normal() leaves out too.
log_student <- function(square, d, df) {
  lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df / 2) -
    (df + d) / 2 * log1p(square / df)
}

# A step of the EM algorithm for location and scale of weighted points; NULL where it fails.
student_step <- function(z, w, now, df) {
  square <- rowSums(from_user(now, z)^2)
  u <- w * (df + ncol(z)) / (df + square)
  mean <- colSums(u * z) / sum(u)
  upper <- tryCatch(
    chol(crossprod(sqrt(u) * sweep(z, 2, mean))),
    error = function(e) NULL
  )
  if (!is.null(upper)) list(mean = mean, L = t(upper))
}

# The Student t that the target is, by its gradients at any points; NULL where it is none. points:
# list(x, g, w, mean); L: a factor of about their covariance. At a whitened point z, with
# y = z - centre and c = 1 / (df + d), the gradient of a Student t is such that
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
  upper <- tryCatch(chol(precision), error = function(e) NULL)
  if (is.null(upper)) {
    return(NULL)
  }
  u <- tcrossprod(y, upper)
  off <- g + (df + d) * u %*% upper / (df + rowSums(u^2))
  left <- sum(points$w * rowSums(off^2)) / sum(points$w * rowSums(g^2))
  # half of a Student t has its gradients too, but not its directions
  if (isTRUE(left < rules$nothing_left) &&
    are_standard(sqrt(d / rowSums(u^2)) * u, points$w, genealogies)) {
    as_exact(with_chol(
      reference_student(df, points$mean + drop(L %*% bend$centre)), L %*% factor_of_inverse(upper)
    ))
  }
}

# Whether what a normal distribution leaves of the gradients may be that of a Student t, which is along the
# points in its own coordinates. nearest: of fit_gaussian_score(); where there is none it may be.
may_be_radial <- function(nearest, w) {
  if (is.null(nearest)) {
    return(TRUE)
  }
  along <- rowSums(nearest$off * nearest$y)^2 / rowSums(nearest$y^2)
  !isTRUE(sum(w * along) / 2 < rules$least_radial * nearest$nats)
}

# c and the centre, by least squares for the first component of the gradients, which is
# 1 + c (z - centre)'g times a linear function of z: steps of Gauss and Newton for (c, c centre),
# halved until they help. A few of the points are enough.
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
    step <- weighted_least_squares(
      cbind(now$line * along, now$bent * linear), now$residuals, w
    )$coefficients
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

# Whether two references are the same but for rounding.
are_alike <- function(one, other) {
  isTRUE(all.equal(one, other, tolerance = sqrt(rules$nothing_left)))
}
