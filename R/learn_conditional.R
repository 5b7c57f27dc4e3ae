# Conditional references: location and scale of some coordinates depend on others, the
# conditioning variables, as those of a funnel on its neck or of a banana on its length.
# See src/map_conditional.c.

# Of the logarithm of the size of a standard normal.
log_size_variance <- pi^2 / 8

# How the coordinates of weighted particles of mean 0 depend on some of them, as
# condition_on() returns it. Conditioning variables are found one after the other, as long
# as each makes the particles likelier. points: list(x, g, w), with the gradients of the
# log target at x, or NULL; n: how many independent draws they are worth by their weights;
# genealogies: by their genealogies; known: the conditional part of the reference so far, or
# NULL. NULL where no such reference does better than the normal distribution with the factor L.
fit_conditional <- function(points, L, n, genealogies, known = NULL) {
  again <- if (is_neck(known)) fit_again(known, points, n, genealogies)
  if (isTRUE(again$left < rules$nothing_left)) {
    return(again) # as exact as any
  }

  x <- points$x
  w <- points$w
  z <- whitened(L, x)
  sd <- sqrt(weighted_squares(x, w))
  # Correlations that are there by chance hide what is small in the neck of a funnel:
  # the coordinates as they are may show it better.
  views <- list(
    list(z = z, g = if (!is.null(points$g)) multiply(points$g, L)),
    list(z = sweep(x, 2, sd, "/"), g = if (!is.null(points$g)) sweep(points$g, 2, sd, "*"))
  )
  normal <- normal_in_points(points, L, genealogies)
  best <- list(criterion = sum(w * log_normal(from_user(normal, x), normal$L)))
  find <- function() {
    unique(c(
      find_scaling(x, w, views, best$conditioning, n), find_bending(w, views, best$conditioning, n)
    ))
  }
  found <- find()
  neck <- find_neck(points, views[[1]], found, n, genealogies)
  if (is_exact(neck)) {
    return(neck)
  }
  repeat {
    next_best <- likeliest(lapply(found, function(k) {
      with_knees(condition_on(points, c(best$conditioning, k), n, genealogies), points, n, genealogies)
    }))
    if (is.null(next_best) || next_best$criterion <= best$criterion) {
      best <- likeliest(list(best, neck))
      return(if (!is.null(best$conditioning)) best)
    }
    best <- next_best
    views <- list(best[c("z", "g")])
    found <- find()
  }
}

# How likely a conditional fit makes particles that it was not fitted to: the mean log density of
# each half under the fit made again from the other, and under a normal distribution from the
# other, in the mean of both ways: c(fit, normal). Of many shapes that are tried some fit a few
# genealogies by chance. NA where the halves are too small to tell.
held_out <- function(fit, points, n, genealogies) {
  densities <- vapply(c(TRUE, FALSE), function(first) {
    fitted <- half_of(points, points$is_first == first)
    other <- half_of(points, points$is_first != first)
    again <- if (!is.null(fitted)) fit_again(fit, fitted, n / 2, genealogies / 2)
    if (is.null(again) || is.null(other)) {
      return(c(fit = NA_real_, normal = NA))
    }
    x <- sweep(other$x, 2, other$mean - fitted$mean, "+")
    normal <- normal_in_points(fitted, fit_scale(fitted$x, fitted$w), genealogies / 2)
    c(
      fit = sum(other$w * log_density_of(again, x)),
      normal = sum(other$w * log_normal(from_user(normal, x), normal$L))
    )
  }, c(fit = 0, normal = 0))
  rowMeans(densities, na.rm = TRUE)
}

# Some of the points, of mean 0; NULL where they are too few.
half_of <- function(points, rows) {
  w <- points$w[rows] / sum(points$w[rows])
  if (!any(rows) || !isTRUE(1 / sum(w^2) > max(rules$least_ess, ncol(points$x)))) {
    return(NULL)
  }
  x <- points$x[rows, , drop = FALSE]
  mean <- weighted_sums(x, w)
  list(
    x = sweep(x, 2, mean), g = if (!is.null(points$g)) points$g[rows, , drop = FALSE],
    w = w, mean = points$mean + mean
  )
}

# A fit of the same kind on the same variables; of a neck, with the same slope.
fit_again <- function(fit, points, n, genealogies, slopes = fit$slope_found) {
  if (!is_neck(fit)) {
    return(condition_on(points, fit$conditioning, n, genealogies, knees_of(fit)))
  }
  if (!is.null(points$g)) neck_on(points, fit$conditioning, n, genealogies, slopes)
}

# The log density of a fit at x, as distances from the mean of its points, but for a constant.
log_density_of <- function(fit, x) {
  at <- before_maps(c(conditional_maps(fit), list(list(name = "affine", mean = fit$centre, chol = fit$L))), x)
  at$log_jacobian - rowSums(at$x^2) / 2
}

# A normal distribution by gradients, as conditional ones are fitted: that by moments, with
# the factor L, is closer to these very particles, but only to them where their genealogies
# are few.
normal_in_points <- function(points, L, genealogies) {
  normal <- if (!is.null(points$g)) {
    normal_by_gradients(points$x, points$g, points$w, genealogies)
  }
  if (is.null(normal)) list(mean = numeric(ncol(points$x)), L = L) else normal
}

# The coordinates with the strongest linear relation to the logarithms of the others' scales,
# in one of their views: to all of them together, as in a funnel, and to a single one, as
# where each has a neck of its own. None where it is weak, or may be chance.
find_scaling <- function(x, w, views, conditioning, n) {
  free <- setdiff(seq_len(ncol(x)), conditioning)
  followers <- length(free) - 1
  if (followers < 1) {
    return(NULL)
  }
  x <- sweep(x, 2, weighted_sums(x, w))[, free, drop = FALSE]
  explained <- lapply(views, function(view) {
    log_scale <- log_scales(view$z, view$g)[, free, drop = FALSE]
    log_scale <- sweep(log_scale, 2, weighted_sums(log_scale, w))
    noise <- if (is.null(view$g)) log_size_variance else weighted_squares(log_scale, w)
    variance <- crossprod(w * x, log_scale)^2 / weighted_squares(x, w)
    diag(variance) <- 0
    share <- sweep(variance, 2, noise, "/")
    large <- function(part) part >= rules$least_log_scale
    list(
      all = rowSums(share) * large(rowMeans(variance)),
      single = row_max(share * large(variance))
    )
  })
  strongest <- function(kind, least) {
    value <- do.call(pmax, lapply(explained, `[[`, kind))
    best <- which.max(value)
    if (isTRUE(value[best] > least)) free[best]
  }
  # n times the sum is chi-squared where there is no relation
  chance <- (followers + rules$chance_sds * sqrt(2 * followers)) / n
  unique(c(
    strongest("all", max(chance, rules$least_explained * followers)),
    strongest("single", max(chance_of_largest(n, length(free)^2), rules$least_explained))
  ))
}

row_max <- function(x) apply(x, 1, max)

# What the largest of so many shares of variance may be by chance.
chance_of_largest <- function(n, many) (1 + rules$chance_sds * sqrt(2)) / n * log(max(2, many))

# The coordinate whose square explains most of another one's variance; NULL when it is
# little, or may be chance. Whitened coordinates have no linear relations left.
find_bending <- function(w, views, conditioning, n) {
  z <- views[[1]]$z
  free <- setdiff(seq_len(ncol(z)), conditioning)
  if (length(free) < 2) {
    return(NULL)
  }
  z <- sweep(z, 2, weighted_sums(z, w))[, free, drop = FALSE]
  square <- z^2
  square <- sweep(square, 2, weighted_sums(square, w))
  slope <- colSums(w * z * square) / weighted_squares(z, w) # of a skew coordinate on itself
  square <- square - sweep(z, 2, slope, "*")
  part <- crossprod(w * square, z)^2 /
    tcrossprod(weighted_squares(square, w), weighted_squares(z, w))
  diag(part) <- 0
  best <- which(part == max(part), arr.ind = TRUE)[1, 1]
  if (isTRUE(max(part) > max(chance_of_largest(n, length(part)), rules$least_bend))) free[best]
}

# The particles given some of their coordinates, the conditioning variables:
# x = centre + L u, where
# u_j = exp(slope_j . z_D) (z_j + offset_j + shift_j . z_D + curve_j . (b(z_D) - 1)),
# D are the conditioning variables, b are bends with these knees, and z has unit variance. L has the factor of these and
# the others', and nothing between them. Location and log scale are found in turn, the
# location by weighted least squares and the log scale by regression of log_scales() of what
# is left. The weights matter: where the scale is small the location must be right to
# a fraction of it. `criterion` is the mean log density, less what as many parameters gain
# by chance (Schwarz).
condition_on <- function(points, conditioning, n, genealogies, knees = NULL) {
  x <- points$x
  w <- points$w
  d <- ncol(x)
  conditioning <- sort(conditioning) # or their factor is not triangular in all coordinates
  followers <- setdiff(seq_len(d), conditioning)
  among_conditioning <- fit_scale(x[, conditioning, drop = FALSE], w)
  if (is.null(among_conditioning)) {
    return(NULL)
  }
  L <- matrix(0, d, d)
  L[conditioning, conditioning] <- among_conditioning
  z_conditioning <- whitened(among_conditioning, x[, conditioning, drop = FALSE])
  design <- cbind(1, z_conditioning)
  # the constant last: where the scale hardly changes the others make it up, see regress()
  bends <- bends_at(z_conditioning, knees) - 1
  bent <- cbind(z_conditioning, bends, 1)
  location <- matrix(0, 1 + ncol(bent), d)
  log_scale <- matrix(0, ncol(design), d)
  for (sweep in seq_len(rules$location_sweeps)) {
    # the scale that the others have in common must not count in their correlations
    common <- exp(drop(design %*% rowMeans(log_scale[, followers, drop = FALSE])))
    rest <- rest_of(points, followers, common, bent)
    if (is.null(rest$L)) {
      return(NULL)
    }
    L[followers, followers] <- rest$L
    u <- whitened(L, x)
    g <- if (!is.null(points$g)) multiply(points$g, L)
    for (j in followers) {
      scale <- exp(drop(design %*% log_scale[, j]))
      if (!are_normal_numbers(scale)) {
        return(NULL)
      }
      at <- regress_briefly(cbind(1, scale * bent), u[, j], precisions(w, scale), genealogies)
      location[, j] <- at$coefficients
      # least squares draws the line to points of high leverage: make up for it
      off <- at$residuals / sqrt(1 - at$leverage)
      log_scale[, j] <- regress_briefly(design, log_scales(off, g[, j]), w, n)$coefficients
    }
    log_scale[1, ] <- 0 # L has the constant
  }
  centred <- sweep(u, 2, location[1, ])
  z <- centred * exp(-design %*% log_scale) - bent %*% location[-1, , drop = FALSE]
  scale <- sqrt(weighted_squares(z, w))
  scale[conditioning] <- 1
  z <- sweep(z, 2, scale, "/")
  if (!is.null(g)) {
    g <- sweep(g * exp(design %*% log_scale), 2, scale, "*") # but for the conditioning variables
  }
  rows <- 1 + seq_along(conditioning)
  fit <- list(
    kind = "linear",
    conditioning = conditioning,
    z = z,
    g = g,
    centre = drop(L %*% location[1, ]),
    L = L %*% diag(scale, d),
    offset = location[nrow(location), ] / scale,
    shift = t(location[rows, , drop = FALSE]) / scale,
    curve = t(location[max(rows) + seq_len(ncol(bends)), , drop = FALSE]) / scale,
    slope = t(log_scale[-1, , drop = FALSE])
  )
  fit[names(knees)] <- knees
  fit$n_parameters <- sum(location != 0) + sum(log_scale != 0) + 2 * sum(knees$width > 0)
  fit$criterion <-
    sum(w * (log_normal(z, fit$L) - rowSums(design %*% log_scale))) -
    fit$n_parameters * log(n) / (2 * n)
  if (is_finite(fit[setdiff(names(fit), c("g", "kind"))])) fit
}

# regress() for a vector y, without the slopes that may as well be 0 (by Schwarz's
# criterion): they would do harm where the line goes on and the particles do not. Columns that
# nearly make each other up would have coefficients that are large and cancel; or they may seem
# needless each, though not all of them are: then they go one by one, the least needed first.
regress_briefly <- function(design, y, weights, n) {
  full <- regress(design, y, weights, rules$collinear)
  needless <- which(!is_needed(full, weights, n))
  brief <- regress_without(design, y, weights, needless)
  rise <- log(sum(weights * brief$residuals^2) / sum(weights * full$residuals^2))
  if (length(needless) > 1 && isTRUE(rise > length(needless) * log(n) / n)) {
    gone <- integer(0)
    brief <- full
    while (length(needless) > 0) {
      size <- brief$coefficients[needless]^2 / pmax(brief$spread[needless], rules$least_square)
      gone <- c(gone, needless[which.min(size)])
      brief <- regress_without(design, y, weights, gone)
      needless <- setdiff(which(!is_needed(brief, weights, n)), gone)
    }
  }
  brief[c("coefficients", "residuals", "leverage")]
}

# Whether coefficients of regress() are more than chance; the first, a constant, always is.
is_needed <- function(fit, weights, n) {
  variance <- sum(weights * fit$residuals^2) * fit$spread / n
  replace(fit$coefficients^2 > log(n) * variance, 1, TRUE)
}

regress_without <- function(design, y, weights, gone) {
  kept <- setdiff(seq_len(ncol(design)), gone)
  fit <- regress(design[, kept, drop = FALSE], y, weights, rules$collinear)
  all <- function(x) replace(numeric(ncol(design)), kept, x)
  fit$coefficients <- all(fit$coefficients)
  fit$spread <- all(fit$spread)
  fit
}

# A fit, or where it bends the same with knees, as many as make the particles likelier.
with_knees <- function(fit, points, n, genealogies) {
  if (!any(fit$curve != 0)) {
    return(fit)
  }
  knees <- list(
    bent = seq_along(fit$conditioning), width = as.numeric(colSums(fit$curve != 0) > 0),
    place = numeric(length(fit$conditioning))
  )
  repeat {
    knees <- place_knees(knees, fit, points)
    next_fit <- condition_on(points, fit$conditioning, n, genealogies, knees)
    if (is.null(next_fit) || !is_worth_knees(next_fit, fit, n, genealogies)) {
      return(fit)
    }
    fit <- next_fit
    if (length(knees$bent) >= rules$most_bends) {
      return(fit)
    }
    knees <- one_more_knee(knees, fit, points)
  }
}
