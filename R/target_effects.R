# The integral over the random effects of a model object of TMB or RTMB: Laplace's approximation, and the ratio of the
# exact integral to it by quadrature along rays (Monahan and Genz, 1997), by which smc() corrects the log evidence.

# The model at the parameters x: `laplace`, the log density by Laplace's approximation; `mode`, the mode of the effects
# given x; `curvature`, the Hessian of the negative log density at the mode; and two functions of the effects: `score`,
# the gradient of the negative log density, and `fall`, the negative log density less that at the mode.
effects_at <- function(effects, x) {
  model <- effects$model
  record_model(model)
  laplace <- -as.numeric(model$fn(x)) + if (is.null(effects$log_prior)) 0 else effects$log_prior(x)
  if (is.null(model$env$ADGrad)) model$env$retape_adgrad() # of gradients by the effects alone
  all <- model$env$last.par
  random <- model$env$random
  curvature <- model$env$spHess(all, random = TRUE)
  # a copy, since TMB overwrites the same matrix at each call, while Matrix caches its factor
  curvature@x <- curvature@x + 0
  curvature@factors <- list()
  ask <- function(u, ...) as.double(model$env$f(replace(all, random, u), order = 0, ...))
  least <- ask(all[random])
  list(
    laplace = laplace, mode = all[random], curvature = curvature,
    score = function(u) ask(u, type = "ADGrad")[random],
    fall = function(u) ask(u) - least
  )
}

# The sparse Cholesky factor of the precision of Laplace's approximation. It defines whitened coordinates, in which the
# approximation is standard normal. at: from effects_at(), here and below.
whitening <- function(at) Matrix::Cholesky(at$curvature, LDL = FALSE)

# Differences of effects from the mode, given the columns of z in whitened coordinates.
from_whitened <- function(factor, z) {
  for (system in c("Lt", "Pt")) z <- Matrix::solve(factor, z, system = system)
  as.matrix(z)
}

# A target in whitened coordinates: the density of the effects at given parameters, divided by the integral of Laplace's
# approximation. Its normalising constant is the ratio of the exact integral to that approximation.
#' @export
evaluation.smc_target_whitened <- function(target) {
  list(evaluate = function(x, gradient) {
    u <- effects_from(target, x)
    score <- if (gradient) apply(u, 2, target$at$score)
    for (system in c("P", "L")) if (gradient) score <- Matrix::solve(target$whitening, score, system = system)
    list(
      log_density = -apply(u, 2, target$at$fall) - target$dim / 2 * log(2 * pi),
      gradient = if (gradient) -as.double(Matrix::t(score))
    )
  })
}

# The effects at the rows of x in whitened coordinates: a column for each row.
effects_from <- function(target, x) target$at$mode + from_whitened(target$whitening, t(x))

# The largest component that is integrated by quadrature. For larger ones the directions would be too few.
max_quadrature_size <- 10

integration_method <- function(effects) {
  if (max(tabulate(effects$component)) <= max_quadrature_size) "quadrature" else "sampling"
}

# The reason, in words, why the evidence is that of Laplace's approximation; NULL if smc() corrects it.
reason_for_laplace <- function(effects) {
  if (effects$method == "laplace") {
    "as requested"
  } else if (length(effects$component) == 0) {
    "as the objective itself has it (`intern = TRUE`)"
  }
}

is_corrected <- function(effects) !is.null(effects) && is.null(reason_for_laplace(effects))

# A string such as "2,000 components of 1 effect, by quadrature", with the range of sizes.
components_in_words <- function(effects) {
  size <- tabulate(effects$component)
  sizes <- paste(count(unique(range(size))), collapse = " to ")
  sprintf(
    "%s of %s %s, by %s", count_of(length(size), "component"), sizes, if (max(size) > 1) "effects" else "effect",
    integration_method(effects)
  )
}

# The number of each effect's component. Components are independent given the parameters. Empty with `intern = TRUE`.
effect_components <- function(model) {
  record_model(model)
  if (is.null(model$env$random)) {
    return(integer())
  }
  connected_components(model$env$spHess(model$env$par, random = TRUE))
}

# The number of each effect's connected component in the graph of a symmetric sparse matrix. Each effect takes the
# smallest number of its neighbours, until none changes. Pointer jumping, new[new], makes this fast for long chains.
connected_components <- function(curvature) {
  entries <- methods::as(curvature, "TsparseMatrix")
  from <- c(entries@i, entries@j) + 1L
  to <- c(entries@j, entries@i) + 1L
  number <- seq_len(nrow(curvature))
  repeat {
    least <- number[to]
    order <- order(least, decreasing = TRUE) # if an index repeats, the last assignment holds
    new <- number
    new[from[order]] <- pmin(number[from], least)[order]
    new <- new[new]
    if (identical(new, number)) {
      return(match(number, unique(number)))
    }
    number <- new
  }
}

# The number of rays from the mode of a component: both directions of a line, 8 on a circle, or two random frames.
n_rays_for <- function(size) if (size == 1) 2 else 4 * size

# n directions for a component of `size` effects, one per column, evenly spread and rotated at random.
directions <- function(size, n) {
  if (size == 1) {
    return(t(rep_len(c(1, -1), n)))
  }
  if (size == 2) {
    angle <- 2 * pi * (stats::runif(1) + seq_len(n) / n)
    return(rbind(cos(angle), sin(angle)))
  }
  frames <- replicate(ceiling(n / (2 * size)), qr.Q(qr(draw_standard(size, size))), simplify = FALSE)
  do.call(cbind, lapply(frames, function(frame) cbind(frame, -frame)))[, seq_len(n), drop = FALSE]
}

# The log ratio of the integral over the effects to Laplace's approximation, at given parameters; NaN if an integral
# along a ray does not converge. Given the parameters, the density is a product over components. The integral over each
# is a mean over directions of integrals along rays from the mode, in whitened coordinates (Monahan and Genz, 1997). The
# log density along a ray is the integral of its slope. One gradient gives the slopes of all components.
# with_draw: whether to append a draw of the effects: a ray chosen with probability proportional to its integral, and a
# point on the ray by inversion of the distribution function. If the parameters are weighted by the ratio, parameters
# and effects together are draws from the exact density.
log_ratio_at <- function(at, component, with_draw = FALSE) {
  size <- tabulate(component)
  n_rays <- n_rays_for(max(size))
  z <- matrix(rep_len(c(1, -1), n_rays), length(component), n_rays, byrow = TRUE)
  members <- split(seq_along(component), component)
  for (k in which(size > 1)) z[members[[k]], ] <- directions(size[k], n_rays)
  factor <- whitening(at)
  z <- from_whitened(factor, Matrix::solve(factor, z, system = "P"))
  rays <- apply(z, 2, function(direction) {
    slope <- function(r) c(rowsum(direction * at$score(at$mode + r[component] * direction), component))
    ray_integral(slope, size, with_draw)
  })
  rays <- array(rays, c(length(size), 1 + with_draw, n_rays))
  integral <- matrix(rays[, 1, ], length(size))
  log_ratio <- sum(log(rowMeans(integral)))
  if (!with_draw || is.nan(log_ratio)) {
    return(c(log_ratio, if (with_draw) NaN * at$mode))
  }
  ray <- sample_columns(integral)
  r <- rays[cbind(seq_along(size), 2, ray)]
  c(log_ratio, at$mode + r[component] * z[cbind(seq_along(component), ray[component])])
}

# For each row, the index of a column drawn with probability proportional to the elements of the row.
sample_columns <- function(weights) {
  cumulated <- t(apply(weights, 1, cumsum))
  1 + rowSums(stats::runif(nrow(weights)) * cumulated[, ncol(weights)] > cumulated)
}

# Integrals of r^(size - 1) exp(-f(r)) over r > 0, relative to those for a standard normal density, for all components
# at once. slope: a function of r that returns the derivatives of f. with_draw: whether to append a draw of r from each
# density. The number of nodes is doubled until all integrals converge; NaN if they do not.
ray_integral <- function(slope, size, with_draw = FALSE) {
  end <- ray_ends(slope, size)
  if (anyNA(end)) {
    return(rep(NaN, (1 + with_draw) * length(size)))
  }
  unit <- 2^(size / 2 - 1) * gamma(size / 2)
  excess <- NULL # the slopes less those of a standard normal density
  before <- NaN
  for (n in ray_nodes) {
    nodes <- chebyshev_nodes(n)
    known <- if (is.null(excess)) integer() else seq(1, n, by = 2)
    new <- matrix(0, length(size), n)
    new[, known] <- excess
    for (j in setdiff(seq_len(n), known)) new[, j] <- slope(end * nodes[j]) - end * nodes[j]
    excess <- new
    rule <- ray_rules[[as.character(n)]]
    if (is.null(rule)) rule <- ray_rule(n)
    r <- outer(end, rule$nodes)
    log_density <- -r^2 / 2 - end * excess %*% rule$running
    density <- r^(size - 1) * exp(log_density)
    value <- end / unit * drop(density %*% rule$weights)
    if (isTRUE(sum(abs(value / before - 1)) < ray_tolerance)) {
      return(c(value, if (with_draw) end * draw_by_inversion(density)))
    }
    before <- value
  }
  rep(NaN, (1 + with_draw) * length(size))
}

# One draw from each of the densities on [0, 1] that the rows give at Chebyshev nodes.
draw_by_inversion <- function(density) {
  n_grid <- 1025
  cumulated <- density %*% running_integral(ncol(density), n_grid)
  p <- stats::runif(nrow(density)) * cumulated[, n_grid]
  at <- pmin(rowSums(cumulated <= p), n_grid - 1)
  low <- cumulated[cbind(seq_along(p), at)]
  high <- cumulated[cbind(seq_along(p), at + 1)]
  grid <- chebyshev_nodes(n_grid)
  grid[at] + (p - low) / (high - low) * (grid[at + 1] - grid[at])
}

# Numbers of nodes. Each set contains the one before. A doubling about squares the error, so the change by the last
# doubling, which must be below `ray_tolerance`, is far larger than the remaining error.
ray_nodes <- c(9, 17, 33, 65, 129, 257)
ray_tolerance <- 1e-3

# The rays end where the log of the integrand has fallen by `ray_nats`, as found at the distances `ray_steps`. The end
# is NaN if the fall is smaller at all of them, as in a heavy tail.
ray_nats <- 32
ray_steps <- c(2, 4, 6, 8, 8 * 1.5^(1:12))

ray_ends <- function(slope, size) {
  end <- fall <- before <- numeric(length(size))
  is_open <- function() !(fall - (size - 1) * log(pmax(end, 1)) > ray_nats)
  for (r in ray_steps) {
    if (!any(is_open())) break
    now <- ifelse(is_open(), r, end)
    after <- slope(now)
    fall <- fall + (now - end) * (before + after) / 2
    before <- after
    end <- now
  }
  replace(end, is_open(), NaN)
}

# n nodes in [0, 1].
chebyshev_nodes <- function(n) (1 - cos(pi * seq(0, 1, length.out = n))) / 2

# The n x m matrix that maps values at n Chebyshev nodes, as a row, to the integrals of the interpolating polynomial
# from 0 to each of m Chebyshev nodes.
running_integral <- function(n, m) {
  degree <- seq_len(n) - 1
  polynomials <- function(theta, degree) cos(outer(theta, degree))
  theta_of <- function(n) pi * (1 - seq(0, 1, length.out = n))
  antiderivative <- function(theta) {
    up <- polynomials(theta, degree + 1) / rep(2 * (degree + 1), each = length(theta))
    down <- polynomials(theta, abs(degree - 1)) / rep(2 * ifelse(degree == 1, Inf, degree - 1), each = length(theta))
    all <- up - down
    all[, 1] <- cos(theta)
    all
  }
  integrals <- antiderivative(theta_of(m))
  t(sweep(integrals, 2, antiderivative(pi)) %*% solve(polynomials(theta_of(n), degree))) / 2
}

# With n nodes and 2 n - 1 finer ones: list(nodes, running, weights), the finer nodes, the matrix that leads from values
# at the n nodes to integrals up to each finer one, and the weights with which the values at these are the integral.
ray_rule <- function(n) {
  n_fine <- 2 * n - 1
  list(
    nodes = chebyshev_nodes(n_fine), running = running_integral(n, n_fine), weights = running_integral(n_fine, 2)[, 2]
  )
}

# The rules that are mostly enough, made when the package is built.
ray_rules <- lapply(stats::setNames(nm = ray_nodes[1:4]), ray_rule)

# the sampled density ----------------------------------------------------------

#' @export
evaluation.smc_target_effects <- function(target) {
  laplace <- NextMethod()
  surrogate <- target$effects$surrogate
  if (is.null(surrogate)) {
    return(laplace)
  }
  list(evaluate = function(x, gradient) {
    if (is.null(surrogate$polynomial)) {
      return(times_ratio(laplace, surrogate, x, gradient))
    }
    at <- standardised(surrogate, x)
    near <- polynomial_share(at$z)
    has_share <- near$share > 0
    log_density <- ifelse(has_share, polynomial_at(surrogate$polynomial, at$z) - at$log_jacobian, 0)
    slope <- 0 * x
    if (gradient) slope[has_share, ] <- at$to_user(polynomial_slope(surrogate$polynomial, at$z), TRUE)[has_share, ]
    far <- which(near$share < 1)
    if (length(far) > 0) {
      other <- times_ratio(laplace, surrogate, x[far, , drop = FALSE], gradient)
      share <- near$share[far]
      if (gradient) {
        by_share <- ifelse(has_share[far], log_density[far] - other$log_density, 0)
        slope[far, ] <- share * slope[far, , drop = FALSE] + (1 - share) * matrix(other$gradient, length(far)) +
          by_share * at$to_user(near$gradient)[far, , drop = FALSE]
      }
      log_density[far] <- share * log_density[far] + (1 - share) * other$log_density
    }
    list(log_density = log_density, gradient = if (gradient) as.double(slope))
  })
}

# Laplace's approximation times the surrogate of its ratio to the exact density.
times_ratio <- function(laplace, surrogate, x, gradient) {
  out <- laplace$evaluate(x, gradient)
  added <- ratio_at(surrogate, x)
  out$log_density <- out$log_density + added$log_ratio
  if (gradient) out$gradient <- out$gradient + as.double(added$gradient)
  out
}

# A list of `z`, the rows of x in the coordinates of the surrogate; `log_jacobian`, of the map from the unconstrained to
# the user's scale; and `to_user`, which maps gradients by z to gradients by x, of functions or of log densities.
standardised <- function(surrogate, x) {
  u <- inverse_maps(surrogate$maps, x)$x
  on_user_scale <- function(g) forward_maps(surrogate$maps, u, g)$g
  list(
    z = sweep(u, 2, surrogate$centre) %*% t(surrogate$scale),
    log_jacobian = forward_maps(surrogate$maps, u)$log_jacobian,
    to_user = function(g, of_density = FALSE) {
      on_user_scale(g %*% surrogate$scale) - if (of_density) 0 else on_user_scale(0 * u)
    }
  )
}

# The surrogate of the log ratio of the exact integral to Laplace's approximation, with its gradient, at the rows of x:
# a sum of cubics in the standardised unconstrained variables, constant outside the range of the points it was fitted
# to.
ratio_at <- function(surrogate, x) {
  at <- standardised(surrogate, x)
  reach <- surrogate$reach
  z <- pmax(pmin(at$z, reach), -reach)
  each <- function(coefficients) rep(coefficients, each = nrow(z))
  slope <- each(surrogate$linear) + each(2 * surrogate$square) * z + each(3 * surrogate$cube) * z^2
  slope <- (abs(at$z) < reach) * slope
  cubics <- cbind(z, z^2, z^3) %*% c(surrogate$linear, surrogate$square, surrogate$cube)
  list(log_ratio = drop(surrogate$constant + cubics), gradient = at$to_user(slope))
}

surrogate_ratio <- function(surrogate, x) {
  if (is.null(surrogate)) numeric(nrow(x)) else ratio_at(surrogate, x)$log_ratio
}

# At the rows of x, the log ratios of the `exact` density, and of that by `laplace`, to the sampled density. found: from
# counted_integral(), a column for each row of x.
ratios_to_sampled <- function(target, x, found) {
  surrogate <- target$effects$surrogate
  laplace <- if (is.null(surrogate$polynomial)) {
    -surrogate_ratio(surrogate, x)
  } else {
    found[1, ] - evaluate_target(target, x, gradient = FALSE)$log_density
  }
  list(exact = laplace + found[2, ], laplace = laplace)
}
