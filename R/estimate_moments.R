# Whether the draws tell means and standard deviations. Far out a density may fall like a power: the draws then have
# a mean of squares, as any numbers have, but the next million have another, and the target may have none. The log
# evidence and quantiles are not affected.

# Decimal logarithm of a value whose square is no number any more.
largest_square <- 150
# Points that tell whether a variable stays in a finite range, and by which part it may grow from afar to ten times as
# far: what grows like a logarithm does so by a third.
n_range_points <- 32
same_range <- 0.01
# Draws in a tail that tell its shape: to 0.1, for an exponential one.
least_in_tail <- 100

# The variables whose standard deviations, or even means, cannot be estimated from the draws: a table with a row for
# each of these, `variable`, `khat`, the shape of its heavier tail, and `mean_ok`, whether the mean can be. NULL for a
# fit without draws.
heavy_tails <- function(fit) {
  if (!is.null(fit$moments)) {
    return()
  }
  weighty <- weighty_rows(fit$log_weights)
  most <- most_of_shape(1 / sum(weighty$w^2))
  some <- thinned(weighty, rules$most_judged)
  khat <- vapply(seq_len(ncol(fit$particles)), function(j) heavier_tail(fit$particles[some$rows, j], some$w), 0)
  heavy <- which(khat > most / 2)
  if (length(heavy) > 0) {
    heavy <- heavy[!colnames(fit$particles)[heavy] %in% of_finite_range(fit$target)]
  }
  new_table(variable = colnames(fit$particles)[heavy], khat = khat[heavy], mean_ok = khat[heavy] <= most)
}

# The names of those variables that stay in a finite range wherever the sampler goes, as what has two bounds does,
# and probabilities, angles and correlations of programs: those whose values are no larger from afar than from ten times
# as far.
of_finite_range <- function(target) {
  size <- function(scale) {
    points <- scale * sin(outer(seq_len(n_range_points), seq_len(target$dim)^2))
    x <- if (is.null(target$outputs)) {
      change_scale(target, points, to_user = TRUE)
    } else {
      # where a program fails nothing is known
      suppressWarnings(kept_outputs(target, points), classes = "autosmc_warning_outputs")
    }
    apply(abs(x), 2, max)
  }
  near <- size(10 * widest_start)
  far <- size(100 * widest_start)
  variables <- if (is.null(target$outputs)) target$names else names(far)
  variables[which(far < 10^largest_square & far <= near * (1 + same_range))]
}

# The largest shape k of a tail of h with which n draws tell the mean of h in practice (Vehtari, Simpson, Gelman, Yao
# and Gabry, 2024); there is a mean where k is below 1. The tail of squares is twice as heavy as that of x.
most_of_shape <- function(n) 1 - 1 / log10(n)

# Of the shapes of the lower and the upper tail of x, with weights w, the larger one; NA where neither is known.
heavier_tail <- function(x, w) {
  shapes <- if (all(is.finite(x))) c(shape_of_tail(x, w), shape_of_tail(-x, w))
  if (all(is.na(shapes))) NA_real_ else max(shapes, na.rm = TRUE)
}

# The shape of the upper tail of x: that of a generalised Pareto distribution of what exceeds a quantile. NA for too
# few draws, for a tail that is a single value, and for one that ends before such a distribution does: a small mode
# apart is no tail.
shape_of_tail <- function(x, w) {
  ranked <- order(x, decreasing = TRUE)
  first <- invert_distribution(w[ranked], rules$part_of_tail)
  tail <- rev(ranked[seq_len(first)])
  excess <- x[tail] - x[ranked[first]]
  beyond <- excess > 0
  n <- sum(w[tail][beyond]) / sum(w^2)
  if (n < least_in_tail) {
    return(NA_real_)
  }
  pareto <- fit_pareto(excess[beyond], w[tail][beyond] / sum(w[tail][beyond]), n)
  # a tail that ends is not heavy, wherever its last draw is
  if (isTRUE(pareto$shape <= 0)) {
    return(pareto$shape)
  }
  # the chance that the largest of n such draws is below this one
  chance <- (1 - (1 + pareto$shape * max(excess) / pareto$scale)^(-1 / pareto$shape))^n
  if (isTRUE(chance >= rules$tail_level)) pareto$shape else NA_real_
}

# The generalised Pareto distribution of positive x, in ascending order, with weights w that are worth n draws (Zhang
# and Stephens, 2009): list(shape, scale). Its theta, -shape / scale, is the mean of the profile likelihood over a
# grid, and the shape the likeliest one given theta. The grid is theirs.
fit_pareto <- function(x, w, n) {
  m <- 30 + floor(sqrt(n))
  quartile <- x[invert_distribution(w, 0.25)]
  theta <- 1 / x[length(x)] + (1 - sqrt(m / (seq_len(m) - 0.5))) / (3 * quartile)
  shape_given <- function(theta) drop(log1p(-outer(theta, x)) %*% w)
  shape <- shape_given(theta)
  log_likelihood <- n * (log(-theta / shape) - shape - 1)
  theta <- sum(exp(normalise_log(log_likelihood)) * theta)
  shape <- shape_given(theta)
  list(shape = shape, scale = -shape / theta)
}

# A sentence for the variables of which not even the mean can be told, and one for the others; NULL for none.
describe_heavy <- function(heavy) {
  if (NROW(heavy) == 0) {
    return()
  }
  says <- function(which, moments) {
    if (any(which)) {
      sprintf(
        "Heavy tails: the draws do not determine the %s of %s (Pareto k %s %s).", moments,
        format_names(heavy$variable[which]), if (sum(which) == 1) "=" else "up to", fixed(max(heavy$khat[which]), 1)
      )
    }
  }
  c(says(!heavy$mean_ok, "mean and standard deviation"), says(heavy$mean_ok, "standard deviation"))
}

warn_of_heavy_tails <- function(fit) {
  says <- describe_heavy(fit$heavy_tails[fit$heavy_tails$mean_ok %in% FALSE, ])
  if (length(says) > 0) {
    cli::cli_warn(
      c(
        stats::setNames(verbatim(says), c("", rep("!", length(says) - 1))),
        "i" = "Report medians and quantiles of these variables instead. The log evidence is not affected."
      ),
      class = warning_class("moments")
    )
  }
}
