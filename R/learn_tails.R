# References with skew coordinates or heavy tails, by the sinh-arcsinh transformation of
# Jones and Pewsey (2009). See src/map_tails.c.

# Location, scale, skew and tail of each column of weighted points z, of mean 0 and
# variance 1, where they make it likelier than the normal distribution does, by more than
# two parameters gain by chance (Schwarz); n: how many independent draws the points are
# worth; columns: those that may have tails. Returns the list of the map's parameters and the
# `gain` in mean log density; NULL where no column gains.
fit_tails <- function(z, w, n, columns = seq_len(ncol(z))) {
  fits <- lapply(seq_len(ncol(z)), function(j) {
    if (!j %in% columns || looks_normal(z[, j], w, n)) {
      list(gain = -Inf)
    } else {
      fit_sinh_arcsinh(z[, j], w)
    }
  })
  gain <- vapply(fits, `[[`, 0, "gain") - log(n) / n
  needed <- which(gain > 0)
  if (length(needed) == 0) {
    return(NULL)
  }
  theta <- matrix(c(0, 0, 0, 0), 4, ncol(z))
  theta[, needed] <- vapply(fits[needed], `[[`, numeric(4), "theta")
  list(
    location = theta[1, ], scale = exp(theta[2, ]), skew = theta[3, ],
    tail = exp(theta[4, ]), gain = sum(gain[needed])
  )
}

# Whether skewness and kurtosis are what chance gives n draws from a normal distribution.
looks_normal <- function(z, w, n) {
  z <- z - sum(w * z)
  z <- z / sqrt(sum(w * z^2))
  skewness <- sum(w * z^3) / sqrt(6 / n)
  kurtosis <- (sum(w * z^4) - 3) / sqrt(24 / n)
  isTRUE(abs(skewness) < rules$odd_moment && kurtosis < rules$odd_moment)
}

# By maximum likelihood: theta = (location, log scale, skew, log tail), and how much mean
# log density it gains over the normal distribution.
fit_sinh_arcsinh <- function(z, w) {
  found <- stats::optim(
    c(0, 0, 0, 0),
    function(theta) -sum(w * log_sinh_arcsinh(z, theta)$value),
    function(theta) -colSums(w * log_sinh_arcsinh(z, theta)$gradient),
    method = "L-BFGS-B",
    lower = c(-rules$widest_tails, log(rules$heaviest_tail)),
    upper = c(rules$widest_tails, 0)
  )
  list(theta = found$par, gain = -found$value + (sum(w * z^2) + log(2 * pi)) / 2)
}

# The log density, and its gradient by theta, a row a point.
log_sinh_arcsinh <- function(z, theta) {
  scale <- exp(theta[2])
  tail <- exp(theta[4])
  t <- (z - theta[1]) / scale
  angle <- asinh(t)
  v <- tail * angle - theta[3] # asinh of the normal coordinate
  by_v <- tanh(v) - sinh(v) * cosh(v)
  root <- 1 + t^2
  by_t <- by_v * tail / sqrt(root) - t / root
  list(
    value = -sinh(v)^2 / 2 + theta[4] + log(cosh(v)) - log(root) / 2 - theta[2] -
      log(2 * pi) / 2,
    gradient = cbind(-by_t / scale, -t * by_t - 1, -by_v, by_v * tail * angle + 1)
  )
}

# The skew of columns of z that are nearly standard normal, by gradients g of the log density there: that of
# sinh-arcsinh distributions with normal tails whose gradients are nearest to these (Hyvarinen, 2005), where so much
# of them is not left by chance. Gradients tell it from far fewer points than moments do. The parameters as of
# fit_tails(); NULL where no column has any.
fit_skew <- function(z, g) {
  theta <- vapply(seq_len(ncol(z)), function(j) fit_skew_of(z[, j], g[, j]), numeric(3))
  if (any(theta[3, ] != 0)) {
    list(location = theta[1, ], scale = exp(theta[2, ]), skew = theta[3, ], tail = rep(1, ncol(z)))
  }
}

# Location, log scale and skew; 0 where there is none.
fit_skew_of <- function(z, g) {
  left_by <- function(theta) {
    tails <- list(location = theta[1], scale = exp(theta[2]), skew = theta[3], tail = 1)
    at <- before_maps(tails_maps(tails), as.matrix(z), as.matrix(g))
    left <- sum((at$x + at$g)^2)
    if (is.finite(left)) left else .Machine$double.xmax
  }
  by_skew <- stats::.lm.fit(cbind(1, z, slope_by_skew(z)), z + g)
  normal <- stats::.lm.fit(cbind(1, z), z + g)
  is_less <- function(left) isTRUE(length(z) * log(sum(normal$residuals^2) / left) > rules$odd_moment^2)
  if (is_less(sum(by_skew$residuals^2))) {
    most <- rules$widest_tails
    first <- pmax(pmin(c(0, 0, by_skew$coefficients[3]), most), -most)
    found <- stats::optim(first, left_by, method = "L-BFGS-B", lower = -most, upper = most)
    if (is_less(found$value)) return(found$par)
  }
  numeric(3)
}

# How the gradient of a log density that is standard normal without it changes with a small skew.
slope_by_skew <- function(z) (1 + 2 * z^2) / sqrt(1 + z^2) - (1 + z^2)^-1.5
