# The scale of variables between two bounds. On that of the logit the density of most falls off smoothly. But where a
# variable is normal given the others and the bounds cut this off, as they cut a level that moves freely between them,
# the density beside the bounds becomes a long thin tail of each variable, which no reference fits. Its own scale then suits
# better: the target is what the edges leave of a normal distribution. See src/map_bounds.c.

# Places between the bounds that tell whether a variable is normal given the others: five have two third differences.
n_truncated_places <- 5
# Draws of a normal distribution that tell which part of it is between the bounds, and the least
# part: of 8,192 draws 400 are left there, which leave an error of 0.05.
n_inside_draws <- 256

# Only where the kernel is left to us: one that does not reject is not for edges.
find_truncated <- function(sampler) {
  if (isTRUE(sampler$chooses_kernel)) {
    variables <- which(may_be_logits(sampler$target))
    find_scale_of_bounded(sampler, "truncated", truncated_key, variables, function(evaluate) {
      d <- sampler$target$dim
      normal <- normal_between(evaluate, scattered_starts(d, few_scale_points), variables)
      if (length(normal) > 0) list(truncated = as.double(seq_len(d) %in% normal))
    })
  }
}

# Those of these variables along which, from each of some points where that is known, the log density on their own scale
# is a parabola, or a line: third differences are rounding.
normal_between <- function(evaluate, points, variables) {
  place <- seq_len(n_truncated_places) / (n_truncated_places + 1)
  values <- vapply(place, function(p) {
    at <- evaluate(moved_to(points, variables, stats::qlogis(p)), gradient = FALSE)$log_density
    at - log(p * (1 - p)) # the change of scale
  }, double(nrow(points) * length(variables)))
  third <- apply(values, 1, function(f) max(abs(diff(f, differences = 3))) <= same_at_ends * (1 + max(abs(f))))
  is_known <- matrix(rowSums(values > -Inf) == ncol(values), nrow(points))
  is_normal <- matrix(third %in% TRUE, nrow(points))
  variables[colSums(is_known) > 0 & colSums(is_known & !is_normal) == 0]
}

# Whether what the scout has found is no less near to the target on the scale of the first sampler, for all that their
# ELBOs tell: there the variables are known to be normal given the others. And whether enough of it is
# inside the edges.
is_as_near <- function(other, sampler) {
  if (length(other$scout$normals) == 0) {
    return(FALSE)
  }
  here <- nearest_found(other$scout)
  there <- nearest_found(sampler$scout)
  error <- sqrt(here$elbo_error^2 + there$elbo_error^2)
  if (!isTRUE(there$elbo - here$elbo < rules$errors_apart * error)) {
    return(FALSE)
  }
  z <- with_seed(seed_of_run(other$seed, truncated_key), draw_standard(n_inside_draws, other$target$dim))
  u <- through_maps(reference_maps(here$reference, other$target$dim), z)$x
  is_outside <- abs(u[, other$target$truncated > 0, drop = FALSE]) >= 2 # as src/map_bounds.c has it
  mean(rowSums(is_outside) == 0) > rules$least_inside
}

# The best normal of a scout; or the shape that others are exactly normal in, where its ELBO is higher.
nearest_found <- function(scout) {
  normal <- c(row_of(scout$basins, 1), list(reference = scout$normals[[1]]))
  if (!isTRUE(scout$marginal$elbo > normal$elbo)) {
    return(normal)
  }
  shape <- scout$references$shape
  shape$inflation <- NULL
  c(scout$marginal, list(reference = shape))
}
