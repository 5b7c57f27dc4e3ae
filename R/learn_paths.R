# Quasi-Newton paths: the scout's way from its starts to the modes.

# Starts near and far: normal, with standard deviations from 1 to `widest_start`. A row
# a start.
scattered_starts <- function(dim, n) {
  scale <- exp(seq(0, log(rules$widest_start), length.out = max(n, 2)))[seq_len(n)]
  matrix(stats::rnorm(n * dim), n, dim) * scale
}

# All paths go side by side, so that their points share calls of the target. They begin where log densities have no
# digits left only where they would not begin at all. Returns the
# paths that began at a point of finite density, each a list with its `points`: of
# every point x, its log density f, gradient g, and the pairs of differences up to it.
climb <- function(evaluate, starts, start) {
  at <- evaluate_starts(evaluate, starts, start)
  if (all(at$log_density == -Inf)) {
    possible <- evaluate
    evaluate <- function(x) possible(x, far = TRUE)
    at <- c(list(x = starts), evaluate(starts))
  }
  paths <- lapply(which(at$log_density > -Inf), function(i) {
    new_path(at$x[i, ], at$log_density[i], at$gradient[i, ])
  })
  for (tick in seq_len(rules$most_path_evals)) {
    active <- which(!vapply(paths, `[[`, NA, "done"))
    if (length(active) == 0) {
      break
    }
    tried <- evaluate(do.call(rbind, lapply(paths[active], trial_point)))
    for (i in seq_along(active)) {
      paths[[active[i]]] <- advance(
        paths[[active[i]]], tried$log_density[i], tried$gradient[i, ]
      )
    }
  }
  paths
}

# Starts where the target is impossible are brought nearer to 0; and where it is impossible there too, to
# the point that the model comes with. If all are impossible still, as where variables must be in order,
# others take their place.
evaluate_starts <- function(evaluate, x, start) {
  at <- bring_nearer(evaluate, c(list(x = x), evaluate(x)), x, numeric(ncol(x)))
  if (!is.null(start)) at <- bring_nearer(evaluate, at, x, start)
  if (any(at$log_density > -Inf)) at else possible_starts(evaluate, at)
}

# The starts, with possible points, as many as are found, in the places of the first. Half of the points that are
# tried have all variables moved together, since they may have to be small, all of them; and a half are in
# ascending order, or in descending order, since variables may have to be, and of eight few are by chance.
possible_starts <- function(evaluate, at) {
  found <- at$x[0, , drop = FALSE]
  n <- rules$start_batch
  for (batch in seq_len(rules$most_start_batches)) {
    x <- in_order(scattered_starts(ncol(at$x), n) + c(0, 1) * drop(scattered_starts(1, n)))
    found <- rbind(found, x[evaluate(x, gradient = FALSE)$log_density > -Inf, , drop = FALSE])
    if (nrow(found) >= nrow(at$x)) {
      break
    }
  }
  places <- seq_len(min(nrow(found), nrow(at$x)))
  at$x[places, ] <- found[places, ]
  c(at["x"], evaluate(at$x))
}

# Of every eight rows two with their values in ascending order, and two in descending order.
in_order <- function(x) {
  turn <- seq_len(nrow(x)) %% 8
  sorted <- function(rows, decreasing) {
    matrix(apply(x[rows, , drop = FALSE], 1, sort, decreasing), ncol = ncol(x), byrow = TRUE)
  }
  x[turn %in% 1:2, ] <- sorted(turn %in% 1:2, FALSE)
  x[turn %in% 3:4, ] <- sorted(turn %in% 3:4, TRUE)
  x
}

# at: list(x, log_density, gradient) of the starts, of which `x` are the first places.
bring_nearer <- function(evaluate, at, x, centre) {
  away <- sweep(x, 2, centre)
  for (attempt in seq_len(rules$most_start_halvings)) {
    bad <- which(at$log_density == -Inf)
    if (length(bad) == 0) {
      break
    }
    nearer <- sweep(away[bad, , drop = FALSE] / 2^attempt, 2, centre, "+")
    again <- evaluate(nearer)
    at$x[bad, ] <- nearer
    at$log_density[bad] <- again$log_density
    at$gradient[bad, ] <- again$gradient
  }
  at
}

new_path <- function(x, f, g) {
  path <- list(
    x = x, f = f, g = g,
    memory = list(alpha = rep(1, length(x)), s = NULL, y = NULL),
    length = 1, # of a step, as long as nothing is known of the curvature
    points = list(),
    done = FALSE
  )
  aim(remember_point(path))
}

remember_point <- function(path) {
  path$points <- c(path$points, list(path[c("x", "f", "g", "memory")]))
  path
}

# Sets out for the next point.
aim <- function(path) {
  size <- sqrt(sum(path$g^2))
  if (is.null(path$memory$s)) {
    path$direction <- if (size > 0) path$g / size * path$length else path$g
  } else {
    path$direction <- inverse_hessian_times(path$memory, path$g)
  }
  path$gain <- sum(path$direction * path$g) # to be expected, twice
  path$t <- 1
  # before anything is known of the curvature a small slope says nothing
  enough <- if (is.null(path$memory$s)) 0 else rules$path_tolerance
  path$done <- !is.finite(path$gain) || path$gain <= enough
  path
}

trial_point <- function(path) path$x + path$t * path$direction

# The path after its trial point was evaluated: there, or with a shorter step. (Armijo's
# rule; the shorter step by a parabola through what is known.)
advance <- function(path, f, g) {
  if (f >= path$f + rules$sufficient_rise * path$t * path$gain) {
    s <- path$t * path$direction
    y <- path$g - g
    if (sum(s * y) > rules$least_curvature * sqrt(sum(s^2) * sum(y^2))) {
      path$memory <- remember_pair(path$memory, s, y)
    } else {
      path$length <- 2 * path$length # not concave here: go further
    }
    path[c("x", "f", "g")] <- list(trial_point(path), f, g)
    return(aim(remember_point(path)))
  }
  shorter <- path$t * path$gain / (2 * (path$gain - (f - path$f) / path$t))
  path$t <- if (is.finite(f)) min(max(shorter, path$t / 10), path$t / 2) else path$t / 10
  path$done <- path$t < rules$shortest_step
  path
}

# The inverse Hessian of -log density, from pairs of differences s of points and y of
# gradients: the diagonal `alpha` (Zhang et al., algorithm 3) and the last pairs.
remember_pair <- function(memory, s, y) {
  alpha <- memory$alpha
  if (is.null(memory$s)) {
    alpha <- rep(sum(s * y) / sum(y^2), length(s))
  } else {
    a <- sum(y^2 * alpha)
    b <- sum(y * s)
    c <- sum(s^2 / alpha)
    updated <- 1 / (a / (b * alpha) + y^2 / b - a * s^2 / (b * c * alpha^2))
    if (all(is.finite(updated) & updated > 0)) {
      alpha <- updated
    }
  }
  last <- function(x, new) {
    x <- cbind(x, new, deparse.level = 0)
    x[, seq.int(max(1, ncol(x) - rules$n_pairs + 1), ncol(x)), drop = FALSE]
  }
  list(alpha = alpha, s = last(memory$s, s), y = last(memory$y, y))
}

# H g, by the two loops of limited-memory BFGS.
inverse_hessian_times <- function(memory, g) {
  .Call(r_inverse_hessian_times, memory$alpha, memory$s, memory$y, g)
}

# The lower triangular factor of H, by the compact form of limited-memory BFGS (Byrd,
# Nocedal and Schnabel, 1994); in many dimensions the square root of the diagonal `alpha`.
inverse_hessian_factor <- function(memory) {
  d <- length(memory$alpha)
  if (d > rules$largest_dense) {
    return(sqrt(memory$alpha))
  }
  s <- memory$s
  scaled_y <- memory$alpha * memory$y
  products <- crossprod(s, memory$y)
  inverse <- backsolve(products, diag(ncol(s))) # of its upper triangle
  middle <- diag(diag(products), ncol(s)) + crossprod(memory$y, scaled_y)
  half <- s %*% crossprod(inverse, middle %*% inverse / 2) - scaled_y %*% inverse
  H <- diag(memory$alpha, d) + tcrossprod(half, s)
  t(chol(H + tcrossprod(s, half)))
}
