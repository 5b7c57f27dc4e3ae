# What fits of necks share: coordinates along the neck, the line of its opening, and the fit for all variables.

# Whether a fit explains the gradients of all that depends on its variables: then it is right also
# where no point has been.
is_exact <- function(fit) isTRUE(fit$left < rules$linear_gradients)

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
  line <- list(variables = variables, coordinates = coordinates, L = L)
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

# The others u in the axes L Q, and their gradients; `flexible` is what their location may depend
# on before their scale is known, in units of `common`.
new_frame <- function(points, others, line, L, Q, common = 1) {
  list(
    L = L, Q = Q, flexible = common * flexible_location(line),
    u = multiply(whitened(L, points$x[, others, drop = FALSE]), Q),
    g = multiply(multiply(points$g[, others, drop = FALSE], L), Q)
  )
}

flexible_location <- function(line) cbind(1, line$u, line$u[, 1]^2 - 1)

half_log_shares <- function(line, neck) {
  outer(line$u[, 1], neck$centre, half_log_share, rate = neck$rate)
}

half_log_share <- function(z_k, centre, rate) {
  stats::plogis(2 * rate * (z_k - centre), log.p = TRUE) / 2
}

# The fit for all coordinates, as condition_on() returns it; `slope_found`, the rate by the
# variable as it is; and `left`, the share of the gradients' mean square that is not explained.
neck_in_all <- function(neck, frame, points, others, line, n) {
  d <- ncol(points$x)
  share <- exp(2 * neck$half_log_share)
  location <- sweep(sweep(share, 2, neck$pull, "*"), 2, neck$origin, "+")
  z <- (frame$u - location) * exp(-neck$log_scale)
  scale <- sqrt(weighted_squares(z, points$w))
  if (neck$by_gradients) {
    # as of a match with gradients: exact from points that are no draws
    scale <- sqrt(scale / sqrt(weighted_squares(frame$g * exp(neck$log_scale), points$w)))
  }
  of_others <- function(x, of_variables = 0) replace(rep(of_variables, d), others, x)
  L <- axes <- matrix(0, d, d)
  L[line$coordinates, line$coordinates] <- line$L
  L[others, others] <- frame$L
  axes[line$coordinates, line$variables] <- line$axes
  axes[others, others] <- frame$Q
  fit <- list(
    kind = "neck", conditioning = line$variables, rate = neck$rate,
    slope_found = neck$rate / line$sd,
    centre_of_share = of_others(neck$centre), bend = of_others(neck$bend),
    pull = of_others(neck$pull), scale = of_others(scale, 1), axes = axes,
    slope = if (any(neck$slope != 0)) outer(of_others(neck$slope), line$level_by),
    L = L, centre = drop(L %*% axes %*% of_others(neck$origin)),
    z = matrix(0, nrow(points$x), d), g = matrix(0, nrow(points$x), d)
  )
  fit$z[, line$variables] <- line$u
  fit$z[, others] <- sweep(z, 2, scale, "/")
  fit$g[, others] <- sweep(frame$g * exp(neck$log_scale), 2, scale, "*") # but for the variables
  log_density <- log_normal(fit$z, fit$L) - rowSums(neck$log_scale) - sum(log(scale))
  n_parameters <- sum(neck$bend) + sum(neck$pull != 0) + 1 # centres, pulls, the rate
  fit$criterion <- sum(points$w * log_density) - n_parameters * log(n) / (2 * n)
  # gradients are -z where the fit is exact
  left <- weighted_squares(fit$z + fit$g, points$w) / weighted_squares(fit$g, points$w)
  fit$left <- mean(left[others])
  if (is_finite(fit[names(fit) != "kind"])) fit
}
