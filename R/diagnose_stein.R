# Stein's identities: the gradient of the log density has mean 0 over the draws, and its product with them mean -I.

# Independent draws from which a standard error can be told: from 20 to a sixth.
least_genealogies <- 20

# Under the target the gradient g of its log density has mean 0, and (y - mean) g' has
# mean -I; but not where the density ends abruptly. Both are compared with their standard errors, in coordinates y in
# which the draws have covariance I.
mean_gradient_diagnostic <- new_diagnostic(
  advise = c("form", "particles"),
  judge = function(seen, found) {
    draws <- weighty_gradients(seen)
    if (!is.null(draws)) {
      gradients <- seen$final$gradients
      most <- max(abs(t_values(gradients, draws$w, draws$genealogies, rows = draws$rows)))
      limit <- stats::qnorm(rules$gradient_level / (2 * ncol(gradients)), lower.tail = FALSE)
      diagnostic(most, limit, c("The mean gradient at the draws is ", " standard errors from zero."))
    }
  }
)

stein_diagnostic <- new_diagnostic(
  advise = c("form", "particles"),
  judge = function(seen, found) {
    draws <- weighty_gradients(seen)
    scaled <- if (!is.null(draws)) scaled_draws(seen$final, draws)
    if (!is.null(scaled)) {
      # a few parts: each goes through all draws
      d <- ncol(seen$final$coordinates)
      t <- lapply(blocks_of(d, length(draws$rows), least = ceiling(d / 8)), function(j) {
        t_values(scaled$y(j), draws$w, draws$genealogies, scaled$gradients(j))
      })
      value <- sqrt(mean(unlist(t)^2))
      says <- c("Draws and gradients violate Stein's identity (by ", " standard errors).")
      diagnostic(value, rules$stein, says)
    }
  }
)

# Whether there are edges or jumps, so that draws and gradients need not satisfy Stein's identities.
has_edges <- function(seen) {
  is_truncated(seen$sampler$target) || isTRUE(seen$found$edges$share > rules$largest_edge) ||
    isTRUE(seen$found$jumps > 0)
}

# Whether draws and gradients contradict each other, unless edges or jumps explain it.
contradict_gradients <- function(seen) {
  fails <- function(one) isFALSE(one$judge(seen, NULL)$passed)
  fails(mean_gradient_diagnostic) || fails(stein_diagnostic)
}

# The rows of the draws, with weights and genealogies, of which there are gradients that tell something.
weighty_gradients <- function(seen) {
  # with few genealogies the standard errors are not known themselves
  if (!is.null(seen$final$gradients) && !has_edges(seen) && n_genealogies(seen$final) >= least_genealogies) {
    weighty <- weighty_rows(seen$final$log_weights)
    c(weighty, list(genealogies = .Call(r_number_groups, seen$final$origins[weighty$rows])))
  }
}

# The weighted means of some rows of x, of which NULL are all, or where there is y, of x y + 1, over
# their standard errors. Particles that descend from the same first one, with the same number from 1
# on, count as one draw.
t_values <- function(x, w, genealogies, y = NULL, rows = NULL) {
  .Call(r_t_values, x, y, w, genealogies, rows)
}

# Functions of some columns for draws y that have mean 0 and covariance I, and the gradients there;
# in many dimensions with variances 1 alone. NULL where the draws have no covariance.
scaled_draws <- function(final, weighty) {
  rows <- weighty$rows
  w <- weighty$w
  z <- final$coordinates
  d <- ncol(z)
  mean <- weighted_mean(z, w, rows)
  if (d > rules$largest_dense) {
    sd <- weighted_sd(z, w, rows)
    return(list(
      y = function(j) sweep(sweep(z[rows, j, drop = FALSE], 2, mean[j]), 2, sd[j], "/"),
      gradients = function(j) sweep(final$gradients[rows, j, drop = FALSE], 2, sd[j], "*")
    ))
  }
  upper <- factor_or_null(weighted_covariance(z, w, mean, rows))
  if (!is.null(upper)) {
    inverse <- backsolve(upper, diag(d))
    list(
      y = function(j) .Call(r_multiply_rows, z, rows, mean, inverse[, j, drop = FALSE]),
      gradients = function(j) {
        .Call(r_multiply_rows, final$gradients, rows, NULL, t(upper[j, , drop = FALSE]))
      }
    )
  }
}
