# The integral over the random effects of a model object, exact where Laplace's approximation of it is not.

# The model at the parameters x: the `mode` of the effects given these, their Hessian there, `curvature`, and the
# `score`, a function of effects: the gradient of the negative log density by them.
effects_at <- function(model, x) {
  model$fn(x)
  all <- model$env$last.par
  random <- model$env$random
  curvature <- model$env$spHess(all, random = TRUE)
  # a copy, since TMB fills the same matrix anew at each call, with which Matrix keeps a factor
  curvature@x <- curvature@x + 0
  curvature@factors <- list()
  list(
    mode = all[random], curvature = curvature,
    score = function(u) as.double(model$env$f(replace(all, random, u), order = 1))[random]
  )
}

# Above it a component is not integrated over: too few directions would tell its integral.
most_connected <- 10

# size: of the components; none where the effects are integrated out within the objective.
is_integrable <- function(size) length(size) > 0 && max(size) <= most_connected

why_not_integrable <- function(size) {
  if (length(size) == 0) {
    return("as the objective itself has it (`intern = TRUE`)")
  }
  paste("of", if (length(size) > 1) "a component" else "one component", "of", count(max(size)), "effects")
}

# "2,000 components of 1 effect, by quadrature" and the like, with the range of sizes.
components_in_words <- function(size) {
  sizes <- paste(unique(range(size)), collapse = " to ")
  effects <- if (max(size) > 1) "effects" else "effect"
  sprintf("%s of %s %s, by quadrature", count_of(length(size), "component"), sizes, effects)
}

# The number of the component of each effect that the density falls apart into, given the parameters; none where the
# effects are integrated out within the objective. Tapes of the model may be missing, and are recorded.
effect_components <- function(model) {
  record_model(model)
  if (is.null(model$env$random)) {
    return(integer())
  }
  connected_components(model$env$spHess(model$env$par, random = TRUE))
}

# The number of the connected component of each effect, in the graph of the entries of a symmetric sparse matrix. Each
# has the least number that its neighbours have, until none changes; numbers of numbers make that quick in chains.
connected_components <- function(curvature) {
  entries <- methods::as(curvature, "TsparseMatrix")
  from <- c(entries@i, entries@j) + 1L
  to <- c(entries@j, entries@i) + 1L
  number <- seq_len(nrow(curvature))
  repeat {
    least <- number[to]
    order <- order(least, decreasing = TRUE) # of those for the same effect the last is kept
    new <- number
    new[from[order]] <- pmin(number[from], least)[order]
    new <- new[new]
    if (identical(new, number)) {
      return(match(number, unique(number)))
    }
    number <- new
  }
}

# How many rays lead from the mode of each component: both ways along a line, or round a circle, or along the axes of
# a rotated frame.
rays_of <- function(size) if (size == 1) 2 else 4 * size

# n directions for a component of `size` effects, a column each, evenly spread and rotated at random.
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

# The log of the ratio of the integral over the effects to Laplace's approximation, at the parameters x. Given
# these the density is a product over components. In coordinates in which Laplace's approximation of each is
# standard normal, its integral is a mean over directions of integrals along rays from the mode (Monahan and Genz,
# 1997), and the log density along a ray is the integral of its slope. One gradient has the slopes of all components.
# NaN where an integral along a ray does not settle, or there is no mode.
log_laplace_ratio <- function(model, x, component) {
  tryCatch(log_ratio_at(effects_at(model, x), component), error = function(e) NaN)
}

log_ratio_at <- function(at, component) {
  size <- tabulate(component)
  n_rays <- rays_of(max(size))
  z <- matrix(rep_len(c(1, -1), n_rays), length(component), n_rays, byrow = TRUE)
  members <- split(seq_along(component), component)
  for (k in which(size > 1)) z[members[[k]], ] <- directions(size[k], n_rays)
  factor <- Matrix::Cholesky(at$curvature, LDL = FALSE)
  for (system in c("P", "Lt", "Pt")) z <- Matrix::solve(factor, z, system = system)
  integrals <- apply(as.matrix(z), 2, function(direction) {
    slope <- function(r) c(rowsum(direction * at$score(at$mode + r[component] * direction), component))
    ray_integral(slope, size)
  })
  sum(log(rowMeans(matrix(integrals, length(size)))))
}

# Integrals of r^(size - 1) exp(-f(r)) from 0 on, as multiples of those of a standard normal f, by the slopes of f, for
# all components at once. The nodes are doubled until all integrals settle.
ray_integral <- function(slope, size) {
  end <- ray_ends(slope, size)
  if (anyNA(end)) {
    return(NaN * size)
  }
  unit <- 2^(size / 2 - 1) * gamma(size / 2)
  excess <- NULL # of the slopes over those of a standard normal
  before <- NaN
  for (n in ray_nodes) {
    nodes <- chebyshev_nodes(n)
    known <- if (is.null(excess)) integer() else seq(1, n, by = 2)
    new <- matrix(0, length(size), n)
    new[, known] <- excess
    for (j in setdiff(seq_len(n), known)) new[, j] <- slope(end * nodes[j]) - end * nodes[j]
    excess <- new
    n_fine <- 2 * n - 1
    r <- outer(end, chebyshev_nodes(n_fine))
    log_density <- -r^2 / 2 - end * excess %*% running_integral(n, n_fine)
    weights <- running_integral(n_fine, 2)[, 2]
    value <- end / unit * drop((r^(size - 1) * exp(log_density)) %*% weights)
    if (isTRUE(sum(abs(value / before - 1)) < ray_change)) {
      return(value)
    }
    before <- value
  }
  NaN * value
}

# Numbers of nodes, each of which contain those before. The last doubling squares the error, so that the change by it
# is far above the error that is left.
ray_nodes <- c(9, 17, 33, 65, 129, 257)
ray_change <- 1e-3

# How far the rays go: to where the integrand has lost so many nats. NaN where a tail is heavier than all of these
# steps reach.
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

# In [0, 1].
chebyshev_nodes <- function(n) (1 - cos(pi * seq(0, 1, length.out = n))) / 2

# The matrix that takes values at n Chebyshev nodes to integrals from 0 to each of m of them, of the polynomial through
# the values.
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

# what is sampled -------------------------------------------------------------

#' @export
evaluation.smc_target_effects <- function(target) {
  laplace <- NextMethod()
  surrogate <- target$effects$surrogate
  if (is.null(surrogate)) {
    return(laplace)
  }
  list(evaluate = function(x, gradient) {
    out <- laplace$evaluate(x, gradient)
    added <- surrogate_at(surrogate, x)
    out$log_density <- out$log_density + added$log_density
    if (gradient) out$gradient <- out$gradient + as.double(added$gradient)
    out
  })
}

# A surrogate of log_laplace_ratio(), and its gradient: a sum of cubics of the standardised unconstrained variables,
# constant beyond the points that it was fitted to. 0 where there is none.
surrogate_at <- function(surrogate, x) {
  if (is.null(surrogate)) {
    return(list(log_density = numeric(nrow(x)), gradient = 0 * x))
  }
  u <- before_maps(surrogate$maps, x)$x
  z <- sweep(u, 2, surrogate$centre) %*% t(surrogate$scale)
  is_near <- abs(z) < surrogate$reach
  z <- pmax(pmin(z, surrogate$reach), -surrogate$reach)
  slope <- is_near * (rep(surrogate$linear, each = nrow(z)) + rep(2 * surrogate$square, each = nrow(z)) * z +
    rep(3 * surrogate$cube, each = nrow(z)) * z^2)
  slope <- slope %*% surrogate$scale
  cubics <- cbind(z, z^2, z^3) %*% c(surrogate$linear, surrogate$square, surrogate$cube)
  on_user_scale <- function(g) through_maps(surrogate$maps, u, g)$g
  list(
    log_density = drop(surrogate$constant + cubics),
    gradient = on_user_scale(slope) - on_user_scale(0 * slope)
  )
}
