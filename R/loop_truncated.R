# Truncated normal variables: variables with two bounds that are sampled on their own scale. On the logit scale most
# densities fall off smoothly. But if a variable is normal given the others and truncated at its bounds, the density
# near the bounds becomes a long thin tail, which no reference fits. On its own scale the target is a truncated normal
# distribution. See src/map_bounds.c. Called by scouted().

# Places between the bounds at which third differences of the log density are computed; five have two of them.
n_truncated_places <- 5
# Draws from a normal distribution that estimate its share within the bounds.
n_inside_draws <- 256

# The result of find_scale_of_bounded() for truncated variables. NULL where the user has chosen the kernel: an
# unadjusted one does not suit edges.
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

# The variables along which, from each of these points at which it is finite, the log density on their own scale is a
# parabola or a line, that is, has third differences of 0 up to rounding.
normal_between <- function(evaluate, points, variables) {
  place <- seq_len(n_truncated_places) / (n_truncated_places + 1)
  values <- vapply(place, function(p) {
    at <- evaluate(moved_to(points, variables, stats::qlogis(p)), gradient = FALSE)$log_density
    at - log(p * (1 - p)) # minus the log Jacobian of the logit
  }, double(nrow(points) * length(variables)))
  third <- apply(values, 1, function(f) max(abs(diff(f, differences = 3))) <= same_at_ends * (1 + max(abs(f))))
  is_known <- matrix(rowSums(values > -Inf) == ncol(values), nrow(points))
  is_normal <- matrix(third %in% TRUE, nrow(points))
  variables[colSums(is_known) > 0 & colSums(is_known & !is_normal) == 0]
}

# Whether the scale of the sampler `other` suits: its ELBO is not significantly below that of `sampler`, and enough of
# the scout's distribution lies within the bounds.
suits_truncated <- function(other, sampler) {
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
  u <- forward_maps(reference_maps(here$reference, other$target$dim), z)$x
  is_outside <- abs(u[, other$target$truncated > 0, drop = FALSE]) >= 2 # the bounds in src/map_bounds.c
  mean(rowSums(is_outside) == 0) > rules$least_inside
}

# The scout's best normal distribution, or its conditional form with exactly normal children, if its ELBO is higher: a
# list with `elbo`, `elbo_error` and `reference`.
nearest_found <- function(scout) {
  normal <- c(row_of(scout$basins, 1), list(reference = scout$normals[[1]]))
  if (!isTRUE(scout$marginal$elbo > normal$elbo)) {
    return(normal)
  }
  shape <- scout$references$shape
  shape$inflation <- NULL
  c(scout$marginal, list(reference = shape))
}
