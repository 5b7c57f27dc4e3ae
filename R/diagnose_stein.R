# Diagnostics by Stein's identities, which relate draws from a density to the gradients of its logarithm.

# Least number of independent draws for a standard error: from 20 it is known to a sixth.
least_genealogies <- 20

# Under the target the gradient g of its log density has mean 0, and (y - mean) g' has mean -I, unless the density has
# edges. Sample means are compared with their standard errors; for the second identity in coordinates y in which the
# draws have covariance I.
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
      # in a few blocks of columns, since each block reads all draws
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

# Whether draws and gradients violate Stein's identities, before edges and jumps are considered.
contradict_gradients <- function(seen) {
  fails <- function(one) isFALSE(one$judge(seen, NULL)$passed)
  fails(mean_gradient_diagnostic) || fails(stein_diagnostic)
}

# The rows of the draws with their weights and genealogies; NULL where there are no gradients, where edges or jumps
# invalidate Stein's identities, or where there are too few genealogies for standard errors.
weighty_gradients <- function(seen) {
  if (!is.null(seen$final$gradients) && !has_edges(seen) && n_genealogies(seen$final) >= least_genealogies) {
    weighty <- rows_with_weight(seen$final$log_weights)
    c(weighty, list(genealogies = .Call(r_number_groups, seen$final$origins[weighty$rows])))
  }
}

# The weighted means of the columns of x, or where y is given of x y + 1, over their standard errors. rows: NULL for
# all. Particles of the same genealogy, numbered from 1, count as one draw.
t_values <- function(x, w, genealogies, y = NULL, rows = NULL) {
  .Call(r_t_values, x, y, w, genealogies, rows)
}

# Two functions of column numbers: the draws `y`, transformed to mean 0 and covariance I, and the `gradients` there. In
# more than `largest_dense` dimensions only the variances are made 1. NULL where the covariance is singular.
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
