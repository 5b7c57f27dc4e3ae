# Symmetries of a density, such as the label switching of a mixture model: permutations and sign changes that leave the
# density unchanged. Each mode then has a copy under each symmetry. Symmetries are found by colour refinement, read off
# second derivatives and confirmed by evaluation. Called by the scout and by mixtures as references.
#
# A symmetry acts on the elements of the variables as declared. On the unconstrained scale it is the orthogonal map
# x -> F'P F x. The `frame` F has orthonormal columns. It is the identity except for simplexes, which have one element
# more than unconstrained variables (see element_frame()). The signed permutation P is stored as a row of `moves`: the
# index of the element that comes to each place, negative if its sign changes.

# Largest number of symmetries: the permutations of seven labels.
most_copies <- 5040
# Points at which a density must be equal before and after a symmetry, up to a relative rounding error.
n_symmetry_points <- 5
rounding_of_density <- 1e-9
# Rounding error of second derivatives by differences, relative to the largest.
rounding_of_curvature <- 1e-5
# Width for these differences; curvature_around() takes a tenth of it as its step.
width_of_curvature <- 1e-3
# Attempts to find a point of finite density at which elements of one colour are equal; rounds of colour refinement.
most_equal_points <- 20
most_rounds_of_colours <- 5

# The symmetries of a density that move some of the `normals` of its basins, as list(frame, moves). The first row of
# `moves` is the identity. NULL for none.
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
    # too many: leave out those that fix the mean of every normal
    stays <- function(move) all(vapply(normals, function(normal) is_fixed(normal, frame, move), NA))
    moves <- group_of(Filter(Negate(stays), generators), nrow(frame))
  }
  copies <- list(frame = frame, moves = moves)
  if (NROW(moves) > 1 && any(lengths(lapply(normals, distinct_moves, copies)) > 1)) copies
}

# The points x (a row each) moved by a symmetry.
moved_by <- function(x, frame, move) {
  y <- x %*% t(frame)
  sweep(y[, abs(move), drop = FALSE], 2, sign(move), "*") %*% frame
}

# Whether a symmetry moves the mean of a normal distribution by less than the distance between basins.
is_fixed <- function(normal, frame, move) {
  distance_from(normal, list(mean = drop(moved_by(t(normal$mean), frame, move)))) < rules$basin_distance
}

# The images of a point under all symmetries, a row each.
copies_of_point <- function(x, copies) {
  y <- drop(copies$frame %*% x)
  moved <- matrix(y[abs(copies$moves)], nrow(copies$moves)) * sign(copies$moves)
  moved %*% copies$frame
}

# The indices of rows of `moves` that give the distinct copies of a basin: one representative of each coset of its
# stabiliser.
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

# The normals, in the order given, without those that are copies of an earlier one.
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

# The copies of a normal distribution under the symmetries with these indices.
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

# The product of each row of `moves` with the move `second`, which is applied last.
after_all <- function(second, moves) {
  sweep(moves[, abs(second), drop = FALSE], 2, sign(second), "*")
}

inverse_of <- function(move) replace(move, abs(move), sign(move) * seq_along(move))

# The group generated by a list of moves on n elements, a row each; NULL if it has more than `most_copies` elements.
group_of <- function(generators, n) {
  moves <- matrix(seq_len(n), 1)
  last <- moves # added by the last step
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

# list(colour, at): an integer for each element, equal for those that may be exchangeable, and a point at which elements
# of the same colour have the same value. NULL if no such point of finite density is found.
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

# A random point at which elements of the same colour are equal, around their mean, and the gradient there; NULL if no
# attempt has a finite density.
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

# Group numbers of the values x: equal for values that differ by rounding only.
numbers_apart <- function(x) {
  order <- order(x)
  apart <- diff(x[order]) > rounding_of_curvature * max(abs(x))
  replace(x, order, cumsum(c(1, apart)))
}

curvature_between <- function(density, at) curvature_around(density, at, width_of_curvature)$hessian

# The permutation that exchanges elements i and j together with the elements coupled to them; NULL where there is none.
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

# Returns a function: whether the density is the same after a move, at random points around `middle`.
keeps_density <- function(evaluate, frame, middle) {
  x <- sweep(matrix(stats::rnorm(n_symmetry_points * length(middle)), n_symmetry_points), 2, middle, "+")
  value <- evaluate(x)$log_density
  known <- is.finite(value)
  function(move) {
    there <- evaluate(moved_by(x, frame, move))$log_density
    any(known) && all(abs(there - value)[known] <= rounding_of_density * pmax(1, abs(value[known])))
  }
}

# The sign changes that leave the density unchanged: a list of moves. Where the elements that change sign are 0, so are
# their gradients. Elements coupled by second derivatives there change sign together.
flips_of <- function(density, frame, centre, is_same) {
  is_whole <- rowSums(frame != 0) == 1 & rowSums(abs(frame)) == 1 # not an element of a simplex
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

# The connected components of a graph with the adjacency matrix `edges`: a list of vectors of indices.
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
