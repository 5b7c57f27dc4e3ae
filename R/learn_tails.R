# References with skew coordinates or heavy tails, by the sinh-arcsinh transformation of
# Jones and Pewsey (2009). See src/map_tails.c.

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
