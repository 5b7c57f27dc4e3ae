# Necks by gradients. Where the other coordinates are normal given the variables, their
# gradients are linear in them, with coefficients that are known functions of the variables:
# least squares finds these exactly, from points anywhere.

# The necks that gradients show on each of the variables, without a level and with one: a list
# of the `exact` one, or NULL; and of what was tried, each a list of the variables that a neck is
# `on`, and of the neck, `linear`.
necks_by_gradients <- function(points, variables, n) {
  tried <- list()
  for (k in variables) {
    single <- precision_on(points, k)
    level <- find_level(points, k, single)
    of_k <- list(list(on = k, linear = neck_by_gradients(points, k, n, best = single)))
    if (!is.null(level)) {
      on <- c(k, level)
      of_k[[2]] <- list(on = on, linear = neck_by_gradients(points, on, n))
    }
    exact <- least_exact(lapply(of_k, `[[`, "linear"))
    if (!is.null(exact)) {
      return(list(exact = exact))
    }
    tried <- c(tried, of_k)
  }
  list(tried = tried)
}

# Of the fits that count as exact that which leaves least, or the first that leaves next to
# nothing; NULL for none.
least_exact <- function(fits) least_left(Filter(is_exact, fits), rules$nothing_left)

# A neck on these variables for others that are normal given them, with the precision
# A exp(-2 rate t_1) + B exp(-2 rate t_2), where t_1 are values of the variable and t_2 of the
# level, if there is one. From A and B follow axes, centres and pulls. slopes: as of neck_on();
# best: of precision_on(). NULL where A + B is no precision, or where hardly anything depends on
# the variables.
neck_by_gradients <- function(points, variables, n, slopes = rules$neck_slopes,
                              best = precision_on(points, variables, slopes)) {
  others <- setdiff(seq_len(ncol(points$x)), variables)
  line <- line_of(points, variables)
  L <- if (!is.null(best)) inverse_factor(best$A + best$B)
  if (is.null(L)) {
    return(NULL)
  }
  part <- eigen(crossprod(L, best$A %*% L), symmetric = TRUE) # of A in the precision
  by_axis <- function(x) drop(crossprod(part$vectors, crossprod(L, x)))
  frame <- new_frame(points, others, line, L, part$vectors)
  # where one part of the precision is next to nothing, location and scale follow the other
  share <- pmin(pmax(part$values, rules$least_share), 1 - rules$least_share)
  bends <- share == part$values
  low <- share == rules$least_share # nothing of A
  at_A <- by_axis(best$a) / part$values
  at_B <- by_axis(best$b) / (1 - part$values)
  neck <- list(
    rate = best$rate, centre = (stats::qlogis(share) + best$log_ratio) / (2 * best$rate),
    bend = rep(1, length(others)), by_gradients = TRUE,
    slope = rep(best$rate * any(line$level != 0), length(others)),
    origin = ifelse(low, at_B, at_A), pull = ifelse(bends, at_B - at_A, 0)
  )
  neck$half_log_share <- half_log_shares(line, neck)
  neck$log_scale <- neck$half_log_share + outer(line$level, neck$slope)
  if (!any(weighted_sd(neck$log_scale, points$w)^2 > rules$least_log_scale)) {
    return(NULL)
  }
  neck_in_all(neck, frame, points, others, line, n)
}

# The factor of the inverse of a precision; NULL where that is none.
inverse_factor <- function(precision) {
  tryCatch(factor_of_inverse(chol(precision)), error = function(e) NULL)
}

# The precision of all others given these variables; NULL for none.
precision_on <- function(points, variables, slopes = rules$neck_slopes) {
  others <- setdiff(seq_len(ncol(points$x)), variables)
  best_precision(points, others, line_of(points, variables), slopes)
}

# That by the rate that leaves least.
best_precision <- function(points, others, line, slopes) {
  if (length(others) > 0 && !is.null(line)) {
    least_left(lapply(slopes * line$sd, precision_by_gradients, points, others, line))
  }
}

# The gradients as -(A x - a) exp(-2 rate t_1) - (B x - b) exp(-2 rate t_2), both exponentials
# over their means, whose logarithms differ by log_ratio. With a level, what depends on neither
# variable, as that of priors, goes to a matrix of its own: A and B would have a part of it
# otherwise. NULL where there is none.
precision_by_gradients <- function(rate, points, others, line) {
  powers <- cbind(-2 * rate * (line$u[, 1] + line$level), -2 * rate * line$level)
  found <- regress_gradients(points, others, if (any(line$level != 0)) cbind(powers, 0) else powers)
  if (is.null(found)) {
    return(NULL)
  }
  symmetric <- function(i) {
    x <- matrix(found$coefficients[-1, i, ], length(others))
    -(x + t(x)) / 2
  }
  list(
    rate = rate, left = found$left, log_ratio = found$log_mean[2] - found$log_mean[1],
    A = symmetric(1), a = found$coefficients[1, 1, ],
    B = symmetric(2), b = found$coefficients[1, 2, ],
    residuals = found$residuals, square = found$square, part = found$part
  )
}

# The coordinate that, as the logarithm of a scale, explains most of what a normal distribution
# leaves of the gradients. NULL for none.
find_scale <- function(points) {
  all <- seq_len(ncol(points$x))
  normal <- regress_gradients(points, all, matrix(0, nrow(points$x), 1))
  if (!is.null(normal)) scale_of_part(points, all, normal, normal$part(1))
}

# The coordinate of the others that explains most of what a neck on k leaves of the gradients:
# there a change of its own precision shows first. best: of precision_on(). NULL for none.
find_level <- function(points, k, best = precision_on(points, k)) {
  others <- setdiff(seq_len(ncol(points$x)), k)
  if (length(others) >= 2 && !is.null(best)) {
    scale_of_part(points, others, best, best$part(2))
  }
}

# The coordinate of the others with which, as the logarithm of its scale, a part of what least
# squares explain of the gradients changes most. Gradients count by their mean squares, since
# they have units.
scale_of_part <- function(points, others, found, part) {
  x <- points$x[, others, drop = FALSE]
  over_square <- function(product) rowSums(sweep(product, 2, found$square, "/"))
  explained <- colSums(points$w * x * over_square(found$residuals * part))^2 /
    colSums(points$w * x^2 * over_square(part^2))
  others[which.max(explained)]
}

# Least squares of the gradients of some coordinates on these coordinates and a constant, with
# coefficients that change from point to point as the exponentials of `powers`, a column each,
# over their means. A list of the share `left` of the gradients' mean square that is not
# explained; coefficients, an array, 1 + coordinates x powers x gradients; residuals, and
# part(i), what the power i explains, a column a gradient, both over the size of the precision,
# and `square`, the mean squares of the gradients over it; and log_mean, of the exponentials.
# NULL where there are too few points, or too few at which one of the powers is more than rounding
# beside its largest, as far down a neck, or gradients are all 0.
regress_gradients <- function(points, others, powers) {
  p <- 1 + length(others)
  if (nrow(points$x) < rules$points_per_coefficient * ncol(powers) * p) {
    return(NULL)
  }
  mean <- colSums(points$w * exp(powers))
  each <- sweep(exp(powers), 2, mean, "/")
  size <- rowSums(each) # gradients are about as large
  each <- each / size
  each[each < smallest_factor] <- 0
  root <- sqrt(points$w)
  enough <- points_of_power(each * root) >= p
  if (!isTRUE(all(enough))) {
    return(NULL) # also where an exponential is beyond the range of numbers
  }
  x <- cbind(1, points$x[, others, drop = FALSE])
  g <- points$g[, others, drop = FALSE] / size
  design <- do.call(cbind, lapply(seq_len(ncol(powers)), function(i) each[, i] * x))
  by <- tryCatch(least_squares(design * root, g * root), error = function(e) NULL)
  if (is.null(by)) {
    return(NULL)
  }
  rows <- function(i) (i - 1) * p + seq_len(p)
  residuals <- g - multiply(design, by)
  square <- weighted_squares(g, points$w)
  left <- mean(weighted_squares(residuals, points$w) / square)
  if (is.finite(left)) {
    list(
      left = left, coefficients = array(by, c(p, ncol(powers), p - 1)),
      residuals = residuals, square = square, log_mean = log(mean),
      part = function(i) multiply(design[, rows(i)], by[rows(i), , drop = FALSE])
    )
  }
}

# At how many points a power counts in least squares, by the tolerance of qr().
points_of_power <- function(each) {
  colSums(sweep(each, 2, apply(each, 2, max), "/") > 1e-7)
}

# Products of smaller numbers are subnormal, which processors compute ten times as slowly.
smallest_factor <- .Machine$double.xmin^(1 / 3)
