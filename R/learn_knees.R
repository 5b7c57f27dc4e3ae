# How the location of coordinates bends with the variables that it depends on: see src/map_conditional.c. A square is
# right in the middle of a banana, but far out it goes on bending, where the logarithm of a sum, or what saturates, is
# straight. Several knees make up any smooth curve that is straight at its ends.

# The bends of conditioning variables z: the squares of all; or by `knees`, list(bent, width, place), the variables that
# they are functions of, and of each the width and place of its knee.
bends_at <- function(z, knees) {
  if (length(knees$bent) == 0) {
    return(z^2)
  }
  bends <- z[, knees$bent, drop = FALSE]
  for (i in seq_along(knees$bent)) {
    bends[, i] <- bend_at(bends[, i], knees$width[i], knees$place[i])
  }
  bends
}

# The square, where the width is 0, or the logarithm of a hyperbolic cosine. See src/map_conditional.c.
bend_at <- function(z, width, place) {
  if (width == 0) {
    return(z^2)
  }
  part <- abs(z - place) / (2 * width)
  8 * width^2 * (part + log1p(exp(-2 * part)) - log(2))
}

# The location of the coordinates of a conditional fit, given these values of the conditioning variables.
location_given <- function(fit, given) {
  location <- tcrossprod(given, fit$shift) + tcrossprod(bends_at(given, fit) - 1, fit$curve)
  sweep(location, 2, fit$offset, "+")
}

knees_of <- function(fit) fit[intersect(c("bent", "width", "place"), names(fit))]

# Whether particles are likelier by more than so many parameters more gain by chance (Schwarz), where particles with a
# common ancestor are one: a knee follows a few genealogies wherever they are.
is_worth_knees <- function(fit, without, n, genealogies) {
  chance <- function(n) log(n) / (2 * n)
  more <- fit$n_parameters - without$n_parameters
  fit$criterion - without$criterion > max(more, 0) * (chance(genealogies) - chance(n))
}

# The same knees where the other coordinates vary least given these: one after the other.
place_knees <- function(knees, fit, points) {
  left <- left_by_knees(fit, points)
  for (i in which(knees$width > 0)) {
    with_knee <- function(at) {
      knees$place[i] <- at[1]
      knees$width[i] <- exp(min(max(at[2], log(rules$knee_widths[1])), log(rules$knee_widths[2])))
      knees
    }
    at <- c(knees$place[i], log(knees$width[i]))
    knees <- with_knee(stats::optim(at, function(at) left(with_knee(at)), control = list(maxit = rules$knee_steps))$par)
  }
  knees
}

# The knees and the best one of several more.
one_more_knee <- function(knees, fit, points) {
  left <- left_by_knees(fit, points)
  more <- lapply(unique(knees$bent[knees$width > 0]), function(i) {
    lapply(rules$first_places, function(place) Map(c, knees, list(bent = i, width = 1, place = place)))
  })
  best_of(unlist(more, recursive = FALSE), function(knees) -left(knees))
}

# A function of knees: the sum of the logarithms of what is then left of the other coordinates' variances.
left_by_knees <- function(fit, points) {
  followers <- which(rowSums(fit$curve != 0) > 0)
  given <- fit$z[, fit$conditioning, drop = FALSE]
  y <- fit$z[, followers, drop = FALSE] + location_given(fit, given)[, followers, drop = FALSE]
  function(knees) {
    rest <- weighted_least_squares(cbind(1, given, bends_at(given, knees)), y, points$w)$residuals
    sum(log(weighted_squares(rest, points$w) + rules$least_square))
  }
}
