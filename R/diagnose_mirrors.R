# Diagnostic of mirrors: whether the target has mass where variables with two bounds are reflected in the middle of
# their bounds. An angle near one bound is about as likely near the other one, and several angles have up to one mode
# for each choice of sides. Islands that have all missed some of these modes agree with each other.

# Draws that are reflected at first: a share of 5 % outside is missed with probability 1/25.
few_mirrored_draws <- 64
# Largest number of draws that are reflected where the first ones find something.
many_mirrored_draws <- 1024
# Largest number of variables that are reflected.
most_mirrored <- 16

# Reflecting variable x_j, that is, changing the sign of its logit, is a Metropolis proposal T_j with the acceptance
# probability a_j(x), which leaves the target invariant. So the mass that it moves out of a region is at most the mass
# outside, if each point y outside is divided among the c(y) reflections that lead back into the region. Hence the ratio
# of the evidence outside to the evidence inside is at least
#   the mean, over draws x inside, of sum_j a_j(x) [T_j x is outside] / c(T_j x).
# The region is an ellipsoid around the mean of the draws, in a few sizes, each of which contains most of the draws. If
# few draws show any mass outside, many draws are used.
#
# Returns, for the size with the clearest rise, list(rise, error, names, may_be_angles): a lower bound of the rise of
# log Z over the value that the draws show, its standard error, the variables that contribute most, and whether these
# may be angles, that is, whether most draws are nearer to the bounds than to the middle. NULL where no variable has two
# bounds, no size has a finite rise, or the draws are too few or have a singular covariance.
look_in_mirrors <- function(seen, evaluate) {
  final <- seen$final
  sampler <- seen$sampler
  weighty <- rows_with_weight(final$log_weights)
  normal <- if (any(has_two_bounds(sampler$target))) weighted_factor(final, weighty)
  if (is.null(normal) || length(weighty$rows) < least_draws_for_probes) {
    return(NULL)
  }
  draws <- list(
    x = unconstrained_particles(final)[weighty$rows, , drop = FALSE],
    z = whitened(normal$L, normal$centred), w = weighty$w,
    n = n_independent(weighty$w, final$origins[weighty$rows])
  )
  draws$square <- rowSums(draws$z^2)
  variables <- with_seed(seed_of_run(sampler$seed, mirrors_key), mirrored_variables(sampler$target))
  look <- function(n) in_mirrors(n, draws, normal$L, variables, sampler$target$names, evaluate)
  found <- look(few_mirrored_draws)
  if (isTRUE(found$rise > 0)) look(n_mirrored_draws(sampler, n_spent(seen))) else found
}

mirrors_diagnostic <- new_diagnostic(
  advise = "particles",
  ask = look_in_mirrors,
  most = function(sampler, spent, course) {
    draws <- if (any(has_two_bounds(sampler$target))) few_mirrored_draws + n_mirrored_draws(sampler, spent) else 0
    draws * n_mirror_evals(sampler)
  },
  judge = function(seen, found) {
    says <- "Reflecting %s within the bounds reaches mass that no draw has visited, which raises the estimate by at
      least "
    turn <- " If these are angles, measure them from another direction, so that few draws are next to a bound."
    judge_beside(seen, found, c(sprintf(says, format_names(found$names)), paste0(".", if (found$may_be_angles) turn)))
  }
)

# The result of look_in_mirrors() by n of the draws. draws: list(x, z, w, n, square), with the whitened draws z, their
# squared lengths, and the number n of independent draws. L: the Cholesky factor of their covariance.
in_mirrors <- function(n, draws, L, variables, names, evaluate) {
  chosen <- systematic_rows(draws$w, n)
  images <- images_of(list(
    x = draws$x[chosen, , drop = FALSE], z = draws$z[chosen, , drop = FALSE], square = draws$square[chosen]
  ), L, variables)
  log_density <- matrix(evaluate(images$x, gradient = FALSE)$log_density, n)
  accepted <- exp(pmin(log_density[, -1, drop = FALSE] - log_density[, 1], 0))
  beyond <- function(size) {
    inside <- images$square[, 1] <= size
    lead_back <- matrix(rowSums(images$twice <= size), n)
    out <- accepted * (images$square[, -1, drop = FALSE] > size) / pmax(lead_back, 1)
    out <- out[inside, , drop = FALSE]
    most <- colSums(out) >= max(colSums(out)) / 2
    c(
      rise_by(rowSums(out), sum(draws$w[draws$square > size]), draws$n),
      list(
        names = names[variables[most]],
        may_be_angles = mean(abs(images$x[seq_len(n), variables[most]]) > stats::qlogis(3 / 4)) > 1 / 2
      )
    )
  }
  ranked <- order(draws$square)
  sizes <- draws$square[ranked][invert_distribution(draws$w[ranked], 1 - tail_shares)]
  surest_rise(lapply(sizes, beyond))
}

# The images of draws under the reflections. at: n draws, list(x, z, square), as in in_mirrors(). Returns
# list(x, square, twice): the draws and, below them, their images by each variable; the squared distances from the mean,
# a column for the draws and one for each variable; and those of the images of the images, a row for each image.
images_of <- function(at, L, variables) {
  n <- nrow(at$x)
  axes <- whitened(L, diag(ncol(at$x))[variables, , drop = FALSE])
  # the squared distances after x_j changes by -2 x_j
  squares <- function(at) {
    x <- at$x[, variables, drop = FALSE]
    at$square - 4 * x * tcrossprod(at$z, axes) + 4 * sweep(x^2, 2, rowSums(axes^2), "*")
  }
  square <- squares(at)
  of <- rep(seq_len(n), length(variables))
  by <- rep(seq_along(variables), each = n)
  image <- list(x = at$x[of, , drop = FALSE], square = c(square))
  mirrored <- cbind(seq_along(of), variables[by])
  image$z <- at$z[of, , drop = FALSE] - 2 * image$x[mirrored] * axes[by, , drop = FALSE]
  image$x[mirrored] <- -image$x[mirrored]
  list(x = rbind(at$x, image$x), square = cbind(at$square, square), twice = squares(image))
}

# The variables with two bounds, or a random choice of `most_mirrored` of them.
mirrored_variables <- function(target) {
  variables <- which(has_two_bounds(target))
  if (length(variables) > most_mirrored) {
    variables <- sort(sample(variables, most_mirrored))
  }
  variables
}

# The number of draws that are reflected where a few have found something, given the evaluations of the islands.
n_mirrored_draws <- function(sampler, spent) {
  min(many_mirrored_draws, floor(rules$share_of_found * spent / n_mirror_evals(sampler)))
}

# Evaluations for each draw.
n_mirror_evals <- function(sampler) 1 + min(sum(has_two_bounds(sampler$target)), most_mirrored)
