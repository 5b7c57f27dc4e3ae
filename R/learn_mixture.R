# Mixtures of normal distributions as references, for targets with several modes. The components are the normal
# distributions of the basins, and one with their common mean and covariance, which covers the mass between them.
# Refitted by the EM algorithm. Called by the scout, the rungs and the loop. See src/reference.c.

# The mixture for `normals`, which have their ELBOs and are sorted, the best first. Its coordinates are those of the
# covering normal distribution. The weight of a basin is the mean of its share by ELBO and an equal share, since ELBOs
# are rough. Of basins that are copies of each other under a symmetry `basins` has one, and `mixture` all.
new_mixture_reference <- function(normals, copies = NULL) {
  normals <- without_copies(normals, copies)
  moves <- lapply(normals, distinct_moves, copies)
  n_copies <- lengths(moves)
  frame <- inflated(covering(unlist(Map(copies_of_normal, normals, moves, list(copies)), recursive = FALSE)))
  by_elbo <- exp(normalise_log(vapply(normals, `[[`, 0, "elbo") + log(n_copies)))
  weights <- (by_elbo + n_copies / sum(n_copies)) / 2
  inner <- lapply(normals, function(normal) {
    list(mean = drop(from_user(frame, t(normal$mean))), L = forwardsolve(frame$L, normal$L))
  })
  reference <- with_chol(reference_gaussian(frame$mean), frame$L)
  class(reference) <- c("smc_reference_mixture", "smc_reference")
  reference$copies <- copies
  with_basins(reference, as_mixture(inner, weights))
}

# The reference with these basins, and the mixture of all their copies.
with_basins <- function(reference, basins) {
  reference$basins <- basins
  all <- with_all_copies(basins, reference)
  wide <- lapply(seq_along(all$weights), function(k) inflated(component(all, k)))
  reference$mixture <- with_cover(wide, all$weights)
  reference
}

# The mixture with the covering normal distribution, standard in the reference's coordinates, as the last component.
with_cover <- function(normals, weights) {
  d <- length(normals[[1]]$mean)
  standard <- list(mean = numeric(d), L = diag(d))
  as_mixture(c(normals, list(standard)), c((1 - rules$covering_part) * weights / sum(weights), rules$covering_part))
}

# The mixture as the C core reads it: `factors` are the inverses of the Cholesky factors L, also lower triangular.
as_mixture <- function(normals, weights) {
  d <- length(normals[[1]]$mean)
  list(
    weights = weights / sum(weights),
    means = matrix(vapply(normals, `[[`, numeric(d), "mean"), d),
    factors = array(
      vapply(normals, function(normal) forwardsolve(normal$L, diag(d)), matrix(0, d, d)),
      c(d, d, length(normals))
    )
  )
}

#' @export
print.smc_reference_mixture <- function(x, ...) {
  cat("<smc_reference> mixture of ", length(x$mixture$weights), " normal distributions, ",
    format_location_and_scale(x), "\n",
    sep = ""
  )
  invisible(x)
}

# Component k as list(mean, L).
component <- function(mixture, k) {
  W <- matrix(mixture$factors[, , k], nrow(mixture$means))
  list(mean = mixture$means[, k], L = forwardsolve(W, diag(nrow(W))))
}

# The logarithms of weight times density, a column for each component, without the constant that log_normal() leaves
# out.
log_components <- function(mixture, z) {
  parts <- vapply(seq_along(mixture$weights), function(k) {
    normal <- component(mixture, k)
    log(mixture$weights[k]) + log_normal(from_user(normal, z), normal)
  }, numeric(nrow(z)))
  matrix(parts, nrow(z))
}

log_mixture <- function(mixture, z) {
  parts <- log_components(mixture, z)
  largest <- do.call(pmax, as.data.frame(parts))
  largest + log(rowSums(exp(parts - largest)))
}

draw_mixture <- function(mixture, n) {
  of <- sample.int(length(mixture$weights), n, replace = TRUE, prob = mixture$weights)
  z <- matrix(stats::rnorm(n * nrow(mixture$means)), n)
  for (k in unique(of)) {
    z[of == k, ] <- to_user(component(mixture, k), z[of == k, , drop = FALSE])
  }
  z
}

# For each basin of a reference the indices of the symmetries that give its distinct copies.
moves_of_basins <- function(basins, reference) {
  frame <- normal_of(reference, nrow(basins$means))
  lapply(seq_along(basins$weights), function(k) {
    distinct_moves(compose(frame, component(basins, k)), reference$copies)
  })
}

# The basins of a reference with all their copies, in its coordinates. The copies of a basin are adjacent.
with_all_copies <- function(basins, reference, moves = moves_of_basins(basins, reference)) {
  copies <- reference$copies
  if (is.null(copies)) {
    return(basins)
  }
  frame <- normal_of(reference, nrow(basins$means))
  normals <- lapply(seq_along(basins$weights), function(k) compose(frame, component(basins, k)))
  inner <- lapply(unlist(Map(copies_of_normal, normals, moves, list(copies)), recursive = FALSE), function(normal) {
    list(mean = drop(from_user(frame, t(normal$mean))), L = forwardsolve(frame$L, normal$L))
  })
  as_mixture(inner, rep(basins$weights / lengths(moves), lengths(moves)))
}

# Points in the coordinates of a reference, each moved from the copy of a basin to which it most likely belongs to that
# basin.
fold_copies <- function(z, reference) {
  copies <- reference$copies
  frame <- normal_of(reference, ncol(z))
  moves <- moves_of_basins(reference$basins, reference)
  all <- with_all_copies(reference$basins, reference, moves)
  of <- unlist(moves)[max.col(log_components(all, z), "first")]
  for (k in unique(of)) {
    back <- inverse_of(copies$moves[k, ])
    z[of == k, ] <- from_user(frame, moved_by(to_user(frame, z[of == k, , drop = FALSE]), copies$frame, back))
  }
  z
}

# The basins of a reference refitted to weighted points in its coordinates, after fold_copies().
refit_basins <- function(reference, z, w) {
  fit_mixture(reference$basins, if (is.null(reference$copies)) z else fold_copies(z, reference), w)
}

# The same, with all copies.
refit_all_copies <- function(reference, z, w) with_all_copies(refit_basins(reference, z, w), reference)

# The reference with its mixture fitted to a record's particles; with their mean log density on the unconstrained scale,
# less Schwarz's penalty for the parameters beyond those of one normal distribution, and that under this distribution.
refit_mixture <- function(record) {
  weighty <- rows_with_weight(record$log_weights)
  w <- weighty$w
  z <- record$coordinates[weighty$rows, , drop = FALSE]
  d <- ncol(z)
  n <- 1 / sum(w^2)
  reference <- record$reference
  frame <- normal_of(reference, d)
  basins <- refit_basins(reference, z, w)
  n_parameters <- (length(basins$weights) - 1) * (1 + d + d * (d + 1) / 2)
  normal <- moments_of(z, w)
  of_frame <- log_det(frame)
  list(
    reference = with_basins(reference, basins),
    criterion = sum(w * log_mixture(with_all_copies(basins, reference), z)) - of_frame -
      n_parameters * log(n) / (2 * n),
    normal_criterion = if (is.null(normal)) {
      -Inf
    } else {
      sum(w * log_normal(from_user(normal, z), normal)) - of_frame
    }
  )
}

# The mixture fitted to weighted points by the EM algorithm. Components to which too few points belong are dropped.
fit_mixture <- function(mixture, z, w) {
  for (step in seq_len(em_steps)) {
    parts <- log_components(mixture, z)
    belongs <- exp(parts - log_mixture(mixture, z)) * w
    normals <- lapply(seq_len(ncol(belongs)), function(k) moments_of(z, belongs[, k] / sum(belongs[, k])))
    found <- !vapply(normals, is.null, NA)
    if (!any(found)) {
      return(mixture)
    }
    mixture <- as_mixture(normals[found], colSums(belongs)[found])
  }
  mixture
}

# The normal distribution with the mean and covariance of the equally weighted mixture of `normals`.
covering <- function(normals) {
  means <- do.call(rbind, lapply(normals, `[[`, "mean"))
  mean <- colMeans(means)
  between <- sweep(means, 2, mean) / sqrt(nrow(means))
  if (length(mean) > rules$largest_dense) {
    within <- Reduce(`+`, lapply(normals, variances)) / length(normals)
    return(list(mean = mean, L = sqrt(within + colSums(between^2))))
  }
  within <- do.call(rbind, lapply(normals, function(n) t(n$L))) / sqrt(length(normals))
  list(mean = mean, L = factor_of_square(rbind(within, between)))
}
