# Copies: a density that is invariant to permutations of labels or changes of signs has several copies of each mode, and
# one of them determines all others.
#
# A symmetry permutes the elements of the variables as they are declared, or changes signs. On the unconstrained scale
# it is an orthogonal map y = F'P F x: the columns of the `frame` F have length 1, and it is the identity but for
# simplexes, whose elements are one more than the variables that move (see element_frame()). P is written as a row of
# `moves`: the number of the element that comes to each place, negative where its sign changes.

# Largest number of copies of a mode, that for seven labels.
most_copies <- 5040
# Points at which a density is compared after a symmetry, and the relative rounding error up to which it is the same.
n_symmetry_points <- 5
rounding_of_density <- 1e-9
# Second derivatives by differences that a symmetry makes equal differ by at most this share of the largest.
rounding_of_curvature <- 1e-5
# Width of these differences; curvature_around() uses a tenth of it.
width_of_curvature <- 1e-3
# Points tried in search of one at which all elements are equal, and rounds in which elements are distinguished.
most_equal_points <- 20
most_rounds_of_colours <- 5

# The symmetries of a density that move some of the normal distributions of its basins: list(frame, moves), of which the
# first move is the identity; NULL for none.
copies_of <- function(target, evaluate, normals) {
  if (length(normals) < 2 || target$dim > rules$largest_dense) {
    return(NULL)
  }
  frame <- element_frame(target)
  density <- function(y) {
    at <- evaluate(y %*% frame)
    list(log_density = at$log_density, gradient = at$gradient %*% t(frame))
  }
  middle <- normals[[1]]$mean
  centre <- drop(frame %*% middle)
  is_same <- keeps_density(evaluate, frame, middle)
  generators <- c(permutations_of(density, centre, is_same), flips_of(density, frame, centre, is_same))
  moves <- group_of(generators, nrow(frame))
  if (is.null(moves)) {
    # too many: without those under which the basins stay where they are
    stays <- function(move) all(vapply(normals, function(normal) is_fixed(normal, frame, move), NA))
    moves <- group_of(Filter(Negate(stays), generators), nrow(frame))
  }
  copies <- list(frame = frame, moves = moves)
  if (NROW(moves) > 1 && any(lengths(lapply(normals, distinct_moves, copies)) > 1)) copies
}

# The points x, a row for each, after a symmetry.
moved_by <- function(x, frame, move) {
  y <- x %*% t(frame)
  sweep(y[, abs(move), drop = FALSE], 2, sign(move), "*") %*% frame
}

is_fixed <- function(normal, frame, move) {
  distance_from(normal, list(mean = drop(moved_by(t(normal$mean), frame, move)))) < rules$basin_distance
}

# A point after each symmetry, a row for each.
copies_of_point <- function(x, copies) {
  y <- drop(copies$frame %*% x)
  moved <- matrix(y[abs(copies$moves)], nrow(copies$moves)) * sign(copies$moves)
  moved %*% copies$frame
}

# The symmetries, as numbers of rows of `moves`, that lead a basin to different places.
distinct_moves <- function(normal, copies) {
  if (is.null(copies)) {
    return(1L)
  }
  key <- function(moves) apply(moves, 1, paste, collapse = " ")
  stays <- rowSums(from_user(normal, copies_of_point(normal$mean, copies))^2) < rules$basin_distance^2
  stable <- copies$moves[stays, , drop = FALSE]
  keys <- key(copies$moves)
  left <- rep(TRUE, length(keys))
  for (k in seq_along(keys)) {
    if (left[k]) {
      same <- match(key(after_all(copies$moves[k, ], stable)), keys)
      left[same[same > k]] <- FALSE
    }
  }
  which(left)
}

# Of normal distributions that are copies of each other, the best one.
without_copies <- function(normals, copies) {
  if (is.null(copies)) {
    return(normals)
  }
  kept <- list()
  for (normal in normals) {
    means <- copies_of_point(normal$mean, copies)
    is_copy <- vapply(kept, function(best) any(rowSums(from_user(best, means)^2) < rules$basin_distance^2), NA)
    if (!any(is_copy)) kept <- c(kept, list(normal))
  }
  kept
}

# A normal distribution after each of these moves, numbers of rows.
copies_of_normal <- function(normal, moves, copies) {
  if (is.null(copies)) {
    return(list(normal))
  }
  lapply(moves, function(k) {
    moved <- function(x) moved_by(x, copies$frame, copies$moves[k, ])
    list(mean = drop(moved(t(normal$mean))), L = factor_of_square(moved(t(normal$L))))
  })
}

# groups ----------------------------------------------------------------------

# The composition of each row of `moves` with a move.
after_all <- function(second, moves) {
  sweep(moves[, abs(second), drop = FALSE], 2, sign(second), "*")
}

inverse_of <- function(move) replace(move, abs(move), sign(move) * seq_along(move))

# The group that moves generate, a row for each element; NULL where there are too many.
group_of <- function(generators, n) {
  moves <- matrix(seq_len(n), 1)
  last <- moves # those that the last step has added
  while (length(generators) > 0 && nrow(last) > 0) {
    n_before <- nrow(moves)
    longer <- unique(do.call(rbind, lapply(generators, after_all, last)))
    moves <- unique(rbind(moves, longer))
    if (nrow(moves) > most_copies) {
      return(NULL)
    }
    last <- moves[-seq_len(n_before), , drop = FALSE]
  }
  moves
}

# what is symmetric -----------------------------------------------------------
# Elements that a symmetry exchanges have the same gradient where they are all equal, and pairs of them the same second
# derivatives. Elements therefore get colours, and candidate permutations are read off the second derivatives; is_same()
# then compares the density at some points.

permutations_of <- function(density, centre, is_same) {
  coloured <- exchange_colours(density, centre)
  if (is.null(coloured)) {
    return(list())
  }
  colour <- coloured$colour
  curvature <- curvature_between(density, coloured$at)
  generators <- list()
  linked <- seq_along(colour) # elements that are known to be exchangeable
  pairs <- which(outer(colour, colour, "==") & upper.tri(diag(length(colour))), arr.ind = TRUE)
  for (k in seq_len(nrow(pairs))) {
    i <- pairs[k, 1]
    j <- pairs[k, 2]
    move <- if (linked[i] != linked[j]) exchange(i, j, colour, curvature)
    if (!is.null(move) && is_same(move)) {
      generators <- c(generators, list(move))
      for (l in which(move != seq_along(move))) linked[linked == linked[l]] <- linked[move[l]]
    }
  }
  generators
}

# list(colour, at): a number for each element, the same for those that may be exchanged, and a point at which elements
# of the same colour have the same value; NULL where the density is not finite at such points.
exchange_colours <- function(density, centre) {
  colour <- rep(1, length(centre))
  for (round in seq_len(most_rounds_of_colours)) {
    place <- equal_point(density, colour, centre)
    if (is.null(place)) {
      return(NULL)
    }
    split <- numbers_apart(place$gradient)
    finer <- as.integer(interaction(colour, split, drop = TRUE))
    if (round > 1 && max(finer) == max(colour)) {
      break
    }
    colour <- finer
  }
  list(colour = colour, at = place$at)
}

# A random point at which elements of the same colour have the same value, around the mean of these, and the gradient
# there.
equal_point <- function(density, colour, centre) {
  middle <- tapply(centre, colour, mean)
  for (attempt in seq_len(most_equal_points)) {
    values <- middle + stats::rnorm(length(middle))
    at <- values[colour]
    here <- density(t(at))
    if (is.finite(here$log_density) && all(is.finite(here$gradient))) {
      return(list(at = at, gradient = here$gradient[1, ]))
    }
  }
}

# Numbers of classes of values that are equal up to rounding.
numbers_apart <- function(x) {
  order <- order(x)
  apart <- diff(x[order]) > rounding_of_curvature * max(abs(x))
  replace(x, order, cumsum(c(1, apart)))
}

curvature_between <- function(density, at) curvature_around(density, at, width_of_curvature)$hessian

# The permutation that exchanges elements i and j, and all that belongs to them; NULL where there is none.
exchange <- function(i, j, colour, curvature) {
  is_same <- function(a, b) abs(a - b) <= rounding_of_curvature * max(abs(curvature))
  move <- seq_along(colour)
  move[c(i, j)] <- c(j, i)
  for (k in setdiff(seq_along(colour), c(i, j))) {
    if (!isTRUE(is_same(curvature[i, k], curvature[j, k]))) {
      partners <- which(
        colour == colour[k] & is_same(curvature[j, ], curvature[i, k]) & is_same(curvature[i, ], curvature[j, k])
      )
      move[k] <- c(setdiff(partners, c(i, j)), NA)[1]
    }
  }
  if (!anyNA(move) && !anyDuplicated(move)) move
}

# Whether a density is the same after a move at some points around `middle`.
keeps_density <- function(evaluate, frame, middle) {
  x <- sweep(matrix(stats::rnorm(n_symmetry_points * length(middle)), n_symmetry_points), 2, middle, "+")
  value <- evaluate(x)$log_density
  known <- is.finite(value)
  function(move) {
    there <- evaluate(moved_by(x, frame, move))$log_density
    any(known) && all(abs(there - value)[known] <= rounding_of_density * pmax(1, abs(value[known])))
  }
}

# Changes of signs. At a point where elements whose signs change together are 0, their gradients are 0, and so are
# second derivatives by one of them and one of the others.
flips_of <- function(density, frame, centre, is_same) {
  is_whole <- rowSums(frame != 0) == 1 & rowSums(abs(frame)) == 1 # no element of a simplex
  at <- centre + stats::rnorm(length(centre))
  repeat {
    flipped <- which(is_whole)
    here <- density(t(replace(at, flipped, 0)))
    if (length(flipped) == 0 || !is.finite(here$log_density)) {
      return(list())
    }
    stays <- abs(here$gradient[1, flipped]) > rounding_of_curvature * max(1, abs(here$gradient))
    if (!isTRUE(any(stays))) {
      break
    }
    is_whole[flipped[stays]] <- FALSE
  }
  curvature <- curvature_between(density, replace(at, flipped, 0))[flipped, flipped, drop = FALSE]
  together <- components_of(abs(curvature) > rounding_of_curvature * max(abs(curvature), 1))
  moves <- lapply(together, function(part) {
    move <- seq_along(centre)
    move[flipped[part]] <- -move[flipped[part]]
    move
  })
  Filter(is_same, moves)
}

# The connected components of a graph with these `edges`, a logical matrix: a list of vectors of numbers.
components_of <- function(edges) {
  part <- seq_len(nrow(edges))
  repeat {
    joined <- vapply(seq_along(part), function(i) min(part[i], part[edges[i, ]]), 0)
    if (identical(joined, as.numeric(part))) {
      return(unname(split(seq_along(part), part)))
    }
    part <- joined
  }
}
