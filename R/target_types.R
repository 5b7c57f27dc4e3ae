# Variables with a type, such as simplexes, ordered vectors and correlation matrices, for targets that are R functions
# or tapes. As in Stan, the sampler moves unconstrained variables, and the log Jacobian is added to the log density. The
# user's functions and the draws have the elements of the type.

# For each type: `free(K)` is the number of unconstrained variables of K elements, NULL if a type cannot have K
# elements. `forward` takes a list of unconstrained variables and returns list(x, log_jacobian), where x is a list of
# elements, and for symmetric matrices `rows`, those of the Cholesky factor. Each variable is a vector of values at
# several points, or one number recorded by RTMB, so that the same code serves both. `inverse` maps a matrix with a
# point in each row back.
type_maps <- list(
  # Coordinates of log(x) in an orthonormal basis of the vectors that sum to zero (isometric log-ratio transform). The
  # density is with respect to the first K - 1 elements.
  simplex = list(
    free = function(K) if (K > 1) K - 1,
    forward = function(u) {
      # the product with zero_sum_basis() by running sums
      j <- seq_along(u)
      v <- Map(`/`, u, sqrt(j * (j + 1)))
      z <- Map(`-`, c(rev(running_sums(rev(v))), 0), c(0, Map(`*`, v, j)))
      total <- log_sum_exp(z)
      log_x <- lapply(z, function(zk) zk - total)
      list(x = lapply(log_x, exp), log_jacobian = add_up(log_x) + log(length(z)) / 2)
    },
    inverse = function(x) log(x) %*% zero_sum_basis(ncol(x))
  ),
  ordered = list(
    free = function(K) if (K > 0) K,
    forward = function(u) list(x = running_sums(c(u[1], lapply(u[-1], exp))), log_jacobian = add_up(u[-1])),
    inverse = function(x) cbind(x[, 1], log(t(diff(t(x)))))
  ),
  positive_ordered = list(
    free = function(K) if (K > 0) K,
    forward = function(u) list(x = running_sums(lapply(u, exp)), log_jacobian = add_up(u)),
    inverse = function(x) log(cbind(x[, 1], t(diff(t(x)))))
  ),
  # The direction of a vector of standard normal variables. The log Jacobian includes their normalised density, so that
  # the integral over the length of the vector is 1.
  unit_vector = list(
    free = function(K) if (K > 1) K,
    forward = function(u) {
      square <- add_up(lapply(u, function(v) v^2))
      K <- length(u)
      list(
        x = lapply(u, function(v) v / sqrt(square)),
        log_jacobian = -square / 2 - (K / 2 - 1) * log(2) - lgamma(K / 2)
      )
    },
    inverse = function(x) ifelse(abs(rowSums(x^2) - 1) < 1e-6, 1, NaN) * x
  ),
  # Matrices, by columns. The density of a correlation matrix is with respect to the elements below the diagonal, that
  # of a covariance matrix also with respect to the diagonal, and that of a Cholesky factor to its free elements.
  correlation = list(
    free = function(K) if (K >= 4) free_of_matrix(K, with_diagonal = FALSE),
    forward = function(u) {
      made <- rows_by_partial_correlations(u)
      n <- length(made$rows)
      weight <- unlist(lapply(2:n, function(i) (n - seq_len(i - 1) - 1) / 2 + 1))
      x <- products_of_rows(made$rows, diagonal = made$rows[[1]][[1]])
      list(x = x, log_jacobian = add_up(Map(`*`, made$log_rest, weight)), rows = made$rows)
    },
    inverse = function(x) by_row(x, function(R) partial_correlations(t(chol(R))))
  ),
  cholesky_correlation = list(
    free = function(K) if (K >= 4) free_of_matrix(K, with_diagonal = FALSE),
    forward = function(u) {
      made <- rows_by_partial_correlations(u)
      list(x = triangle_of_rows(made$rows), log_jacobian = add_up(made$log_rest) + add_up(made$log_left) / 2)
    },
    inverse = function(x) by_row(x, partial_correlations)
  ),
  covariance = list(
    free = function(K) free_of_matrix(K, with_diagonal = TRUE),
    forward = function(u) {
      made <- rows_by_logarithms(u)
      n <- length(made$rows)
      weighted <- Map(`*`, made$log_diagonal, n - seq_len(n) + 2)
      list(x = products_of_rows(made$rows), log_jacobian = add_up(weighted) + n * log(2), rows = made$rows)
    },
    inverse = function(x) by_row(x, function(S) free_elements(t(chol(S))))
  ),
  cholesky_covariance = list(
    free = function(K) free_of_matrix(K, with_diagonal = TRUE),
    forward = function(u) {
      made <- rows_by_logarithms(u)
      list(x = triangle_of_rows(made$rows), log_jacobian = add_up(made$log_diagonal))
    },
    inverse = function(x) by_row(x, free_elements)
  )
)

# matrices --------------------------------------------------------------------
# A lower triangular factor is a list of rows; row i is a list of i elements.

free_of_matrix <- function(K, with_diagonal) {
  n <- sqrt(K)
  if (n == round(n)) n * (n - 1) / 2 + with_diagonal * n
}

n_rows_of <- function(u, with_diagonal) (sqrt(1 + 8 * length(u)) + if (with_diagonal) -1 else 1) / 2

# The factor of a correlation matrix from partial correlations given the previous variables, the hyperbolic tangents of
# u (Lewandowski, Kurowicka and Joe, 2009).
rows_by_partial_correlations <- function(u) {
  log_rest <- lapply(u, function(v) 2 * (log(2) - log_sum_exp(list(v, -v)))) # of 1 - tanh(v)^2
  rows <- list(list(1 + 0 * u[[1]]))
  log_left <- list()
  for (i in 2:n_rows_of(u, with_diagonal = FALSE)) {
    of_row <- length(log_left) + seq_len(i - 1)
    left <- running_sums(c(list(0 * u[[1]]), log_rest[of_row])) # log of 1 minus the previous squares of the row
    rows[[i]] <- c(Map(function(v, l) tanh(v) * exp(l / 2), u[of_row], left[-i]), list(exp(left[[i]] / 2)))
    log_left <- c(log_left, left[-i])
  }
  list(rows = rows, log_rest = log_rest, log_left = log_left)
}

# The factor of a covariance matrix from its elements, with the logarithm of the diagonal element last in each row.
rows_by_logarithms <- function(u) {
  n <- n_rows_of(u, with_diagonal = TRUE)
  last <- cumsum(seq_len(n))
  rows <- lapply(seq_len(n), function(i) c(u[last[i] - rev(seq_len(i - 1))], list(exp(u[[last[i]]]))))
  list(rows = rows, log_diagonal = u[last])
}

# The elements of L L', by columns. diagonal: the diagonal elements if they are known, otherwise NULL.
products_of_rows <- function(rows, diagonal = NULL) {
  pairs <- expand.grid(i = seq_along(rows), j = seq_along(rows))
  Map(function(i, j) {
    if (i == j && !is.null(diagonal)) {
      diagonal
    } else {
      add_up(Map(`*`, rows[[min(i, j)]], rows[[max(i, j)]][seq_len(min(i, j))]))
    }
  }, pairs$i, pairs$j)
}

triangle_of_rows <- function(rows) {
  pairs <- expand.grid(i = seq_along(rows), j = seq_along(rows))
  Map(function(i, j) if (i >= j) rows[[i]][[j]] else 0 * rows[[1]][[1]], pairs$i, pairs$j)
}

# Applies f to each row of x as a square matrix, and returns a matrix with a row for each value.
by_row <- function(x, f) {
  n <- sqrt(ncol(x))
  matrix(apply(x, 1, function(row) f(matrix(row, n))), nrow(x), byrow = TRUE)
}

# From a factor L back to unconstrained variables: for correlations, and below for covariances.
partial_correlations <- function(L) {
  left <- sqrt(1 - t(apply(cbind(0, L[, -ncol(L), drop = FALSE])^2, 1, cumsum)))
  atanh(t(L / left)[upper.tri(L)])
}

free_elements <- function(L) {
  diag(L) <- log(diag(L))
  t(L)[upper.tri(L, diag = TRUE)]
}

# K x (K - 1), with orthonormal columns that sum to zero.
zero_sum_basis <- function(K) {
  basis <- -unname(stats::contr.helmert(K))
  sweep(basis, 2, sqrt(colSums(basis^2)), "/")
}

add_up <- function(terms) Reduce(`+`, terms, 0)

running_sums <- function(terms) {
  for (k in seq_along(terms)[-1]) terms[[k]] <- terms[[k - 1]] + terms[[k]]
  terms
}

# RTMB's own function for recorded numbers. Otherwise the maximum (of real parts) is subtracted first.
log_sum_exp <- function(z) {
  if (inherits(z[[1]], "advector")) {
    return(Reduce(RTMB::logspace_add, z))
  }
  most <- do.call(pmax, lapply(z, Re))
  most + log(add_up(lapply(z, function(zk) exp(zk - most))))
}

# blocks ----------------------------------------------------------------------
# The types of a target: list(names, free, blocks, plain). `names` are the user's variables, `free` the unconstrained
# ones. `blocks` has list(type, elements, free) for each typed variable: its positions among the user's and among the
# unconstrained variables. `plain` has these positions for all variables without a type. types: the user's argument.
type_blocks <- function(types, names) {
  given <- base::names(types)
  base <- base_names(names)
  known <- unique(base)
  if (!is.list(types) && !is.character(types) || is.null(given) || anyDuplicated(given) || !all(given %in% known)) {
    abort(c(
      "{.arg types} must be a list such as {.code list(w = \"simplex\")}, named by variables.",
      "i" = "These are {.val {known}}. The elements of {.field w} are called {.val {c('w[1]', 'w[2]')}}."
    ))
  }
  parts <- lapply(known, function(name) {
    elements <- which(base == name)
    if (!name %in% given) {
      return(list(elements = elements, names = names[elements]))
    }
    type <- check_choice(types[[name]], paste0("types$", name), names(type_maps))
    n <- type_maps[[type]]$free(length(elements))
    if (is.null(n)) {
      abort("{.arg types}: {.field {name}} has {count_of(length(elements), 'element')}, so it cannot be a {type}.")
    }
    list(type = type, elements = elements, names = sprintf("%s[%d]", name, seq_len(n)))
  })
  last <- cumsum(lengths(lapply(parts, `[[`, "names")))
  parts <- Map(function(part, last) c(part, list(free = seq(to = last, length.out = length(part$names)))), parts, last)
  typed <- vapply(parts, function(part) !is.null(part$type), NA)
  positions <- function(which, of) unlist(lapply(parts[which], `[[`, of))
  list(
    names = names, free = unlist(lapply(parts, `[[`, "names")), blocks = parts[typed],
    plain = list(elements = positions(!typed, "elements"), free = positions(!typed, "free"))
  )
}

# The bounds of the unconstrained variables from those of the user's variables.
free_bounds <- function(bounds, types) {
  typed <- unlist(lapply(types$blocks, `[[`, "elements"))
  free_bound <- function(x, none, arg) {
    if (any(x[typed] != none)) {
      abort("{.arg {arg}}: {.field {types$names[typed[x[typed] != none][1]]}} has a type, so it cannot have bounds.")
    }
    replace(rep(none, length(types$free)), types$plain$free, x[types$plain$elements])
  }
  list(lower = free_bound(bounds$lower, -Inf, "lower"), upper = free_bound(bounds$upper, Inf, "upper"))
}

# list(x, log_jacobian, rows) from a list u of unconstrained variables. Variables without a type do not change.
map_types <- function(types, u) {
  x <- vector("list", length(types$names))
  x[types$plain$elements] <- u[types$plain$free]
  log_jacobian <- 0
  rows <- list()
  for (block in types$blocks) {
    made <- type_maps[[block$type]]$forward(u[block$free])
    x[block$elements] <- made$x
    log_jacobian <- log_jacobian + made$log_jacobian
    rows <- c(rows, made$rows)
  }
  list(x = x, log_jacobian = log_jacobian, rows = rows)
}

columns_of <- function(x) lapply(seq_len(ncol(x)), function(j) x[, j])

# list(x, log_jacobian, possible) at the rows of u. A point is not possible if rounding makes a matrix singular: the
# user's functions may fail at its Cholesky decomposition. Without types x is u, here and below.
from_free <- function(types, u) {
  if (is.null(types)) {
    return(list(x = u))
  }
  made <- map_types(types, columns_of(u))
  own_share <- lapply(made$rows, function(row) row[[length(row)]]^2 / add_up(lapply(row, function(x) x^2)))
  list(
    x = name_columns(do.call(cbind, made$x), types$names), log_jacobian = made$log_jacobian,
    possible = Reduce(`&`, lapply(own_share, function(share) share > 1e-12), rep(TRUE, nrow(u)))
  )
}

to_free <- function(types, x) {
  if (is.null(types)) {
    return(x)
  }
  u <- matrix(NA_real_, nrow(x), length(types$free), dimnames = list(NULL, types$free))
  u[, types$plain$free] <- x[, types$plain$elements]
  for (block in types$blocks) {
    # NaN for points that are not of the type
    inverse <- function(x) suppressWarnings(type_maps[[block$type]]$inverse(x))
    elements <- x[, block$elements, drop = FALSE]
    u[, block$free] <- tryCatch(inverse(elements), error = function(e) {
      one_by_one(inverse, elements, length(block$free))
    })
  }
  u
}

# The rows of f(x), NaN for rows at which f fails, for instance because they are not a correlation matrix.
one_by_one <- function(f, x, n) {
  rows <- lapply(seq_len(nrow(x)), function(i) {
    tryCatch(f(x[i, , drop = FALSE]), error = function(e) matrix(NaN, 1, n))
  })
  do.call(rbind, rows)
}

# The gradient of f(x(u)) + log Jacobian with respect to u, from that of f with respect to x. Derivatives of the maps
# are by a complex step (Squire and Trapp, 1998), which is accurate to rounding since the maps are analytic.
pull_back_types <- function(types, u, gradient, with_jacobian) {
  step <- 1e-100
  columns <- columns_of(u)
  out <- matrix(0, nrow(u), ncol(u))
  out[, types$plain$free] <- gradient[, types$plain$elements]
  for (block in types$blocks) {
    for (j in seq_along(block$free)) {
      moved <- columns[block$free]
      moved[[j]] <- moved[[j]] + step * 1i
      made <- type_maps[[block$type]]$forward(moved)
      slope <- do.call(cbind, lapply(made$x, function(x) Im(x) / step))
      out[, block$free[j]] <- rowSums(gradient[, block$elements, drop = FALSE] * slope) +
        if (with_jacobian) Im(made$log_jacobian) / step else 0
    }
  }
  out
}

outputs_of_types <- function(types) {
  force(types)
  function(u) from_free(types, u)$x
}
