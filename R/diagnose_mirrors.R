# Mirrors: whether there is more of the target where variables with two bounds are on the other side. An angle
# next to one bound is as likely next to the other, and several such angles have a mode for each choice of
# sides, or nearly so. Particles that have never seen some of these agree with each other.

# Draws whose variables are mirrored: a part of 5 % outside is missed by one in 25; ...
few_mirrored_draws <- 64
# ... and at most, where these find something.
many_mirrored_draws <- 1024
# Variables that are mirrored.
most_mirrored <- 16

# A variable x_j is mirrored in the middle of its bounds, which changes the sign of its logit. That is a proposal T_j
# of a Metropolis algorithm, accepted with probability a_j(x), which leaves the target as it is. So no more of it
# goes out of the region where the draws are than there is outside; but for points outside that several of
# the mirrors lead back from. Where c(y) of them do, the evidence outside is to that inside at least as
#   mean over draws x inside of sum_j a_j(x) [T_j x is outside] / c(T_j x).
# The region is an ellipsoid around the mean of the draws, of a few sizes, with most of them inside.
#
# A few draws tell that there is next to nothing; where there may be something many are asked for.
#
# Returns, for the size where this says most, list(rise, error, names, may_be_angles): by how much the
# logarithm of the evidence is higher than the draws show, at least, its standard error, the variables with most of
# that, and whether these may be angles, which go on beyond a bound: whether most draws are nearer to the bounds than to
# the middle.
# NULL where nothing is known of any size, no variable has two bounds, or the draws are too few or have no covariance.
look_in_mirrors <- function(seen, evaluate) {
  final <- seen$final
  sampler <- seen$sampler
  weighty <- weighty_rows(final$log_weights)
  normal <- if (any(has_two_bounds(sampler$target))) weighted_factor(final, weighty)
  if (is.null(normal) || length(weighty$rows) < least_draws_beside) {
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

# draws: all of them, list(x, z, w, n, square), with z in the coordinates of their normal distribution.
in_mirrors <- function(n, draws, L, variables, names, evaluate) {
  chosen <- evenly_weighted(draws$w, n)
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
  sizes <- draws$square[ranked][invert_distribution(draws$w[ranked], 1 - shares_there)]
  surest_rise(lapply(sizes, beyond))
}

# at: n draws, list(x, z, square), z in the coordinates of the normal distribution with the factor L. Returns
# list(x, square, twice): the draws and, below them, their images by each variable; the squared distances of these, a
# column for the draws and one for each variable; and those of the images of images, with a row for each image.
images_of <- function(at, L, variables) {
  n <- nrow(at$x)
  axes <- whitened(L, diag(ncol(at$x))[variables, , drop = FALSE])
  # a change of x_j by -2 x_j
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

# Those with two bounds, or some of them.
mirrored_variables <- function(target) {
  variables <- which(has_two_bounds(target))
  if (length(variables) > most_mirrored) {
    variables <- sort(sample(variables, most_mirrored))
  }
  variables
}

# How many draws are mirrored, where a few have found something, after islands that have taken so many evaluations; and
# the evaluations of each, which count as those of the islands do.
n_mirrored_draws <- function(sampler, spent) {
  min(many_mirrored_draws, floor(rules$share_of_found * spent / n_mirror_evals(sampler)))
}

n_mirror_evals <- function(sampler) 1 + min(sum(has_two_bounds(sampler$target)), most_mirrored)
