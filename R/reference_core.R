# References and their maps in the form that the compiled core reads. Called by run_sampler() and the fits of
# references.

maps_of <- function(reference, dim) {
  if (is_function_reference(reference)) list() else reference_maps(reference, dim)
}

# The reference as the core reads it, a list: `maps` from z to the unconstrained scale, in this order, each with its
# `name` in the core and its parameters (no map for the identity); the degrees of freedom `df` of a Student t; a
# `mixture` (see learn_mixture.R); and for R functions `reference`, the list `evaluate` from interface_of_run() with
# draws.
interface_reference <- function(settings, evaluate, key) {
  reference <- settings$reference
  if (is_function_reference(reference)) {
    evaluate$start <- reference_draws(settings, key)
    return(list(maps = list(), reference = evaluate))
  }
  c(
    list(maps = reference_maps(reference, settings$target$dim)),
    reference[intersect(c("df", "mixture"), names(reference))]
  )
}

# The reference itself, after a check of its class, its version and its dimension.
check_reference <- function(reference, target) {
  check_class(
    reference, "reference", "smc_reference",
    "reference_gaussian()`, `reference_student()` or `reference_function()"
  )
  if (!is_function_reference(reference)) {
    is_old <- vapply(reference$changes, function(map) is.null(map$name), NA)
    if (any(is_old)) abort_version("reference", "its maps are others")
    reference_maps(reference, target$dim)
  }
  reference
}

is_of_draws <- function(reference) identical(reference$fitted_to, "draws")

# The maps of a reference for a target of this dimension. See learn_rungs.R for those of fitted references.
reference_maps <- function(reference, dim) {
  inflation <- reference$inflation
  inflating <- if (!is.null(inflation)) list(name = "affine", mean = numeric(dim), sd = inflation)
  without_null(c(list(inflating), reference$maps, list(affine_map(reference, dim)), change_maps(reference$changes)))
}

# The map x = mean + L z; NULL for the identity.
affine_map <- function(reference, dim) {
  mean <- check_numeric(reference$mean, "mean", lengths = c(1, dim))
  chol <- reference$chol
  if (!is.null(chol)) {
    if (nrow(chol) != dim) {
      abort("{.arg cov} or {.arg chol} must be {dim} x {dim}, not {nrow(chol)} x {ncol(chol)}.")
    }
    return(list(name = "affine", mean = rep_len(mean, dim), chol = chol))
  }
  sd <- check_positive(reference$sd, "sd", lengths = c(1, dim))
  if (any(mean != 0) || any(sd != 1)) {
    list(name = "affine", mean = rep_len(mean, dim), sd = rep_len(sd, dim))
  }
}

# The log density and gradient of a reference of R functions, in the form of target_interface(); NULL for others.
reference_evaluator <- function(reference, target) {
  if (!is_function_reference(reference)) {
    return(NULL)
  }
  shared <- target[c("dim", "names", "lower", "upper")]
  term <- new_term(reference$log_density, reference$gradient, "reference$log_density", "gradient")
  evaluate <- sum_evaluator(list(c(term, reference["vectorized"], shared)), target$types)
  list(evaluate = function(x, gradient) blame_reference(evaluate(x, gradient)))
}

# Turns errors of a reference's functions into ones with the class "reference", for rethrow_at_step().
blame_reference <- function(code) {
  withCallingHandlers(code, error = if_raised(function(e) {
    abort("The reference failed.", c("reference", "target"), parent = in_utf8(e))
  }))
}

# Draws from a reference of R functions for the start of a run, on the user's scale.
reference_draws <- function(settings, key) {
  n <- settings$n_particles
  blame_reference({
    x <- with_seed(seed_of_run(settings$seed, key), settings$reference$sample(n))
    check_draws(x, n, settings$target)
  })
}

# The maps of changes of variables, the last change first. A change may have a `basis` in which it is diagonal, with
# orthogonal axes and a triangular factor.
change_maps <- function(changes) {
  do.call(c, lapply(rev(changes), function(change) {
    basis <- change$basis
    of_basis <- if (length(basis) > 0) {
      list(
        list(name = "rotation", axes = basis$axes),
        list(name = "affine", mean = numeric(nrow(basis$chol)), chol = basis$chol)
      )
    }
    c(list(change), of_basis)
  }))
}

# The list of the sinh-arcsinh map with these parameters; NULL for none.
tails_maps <- function(tails) if (!is.null(tails)) list(c(name = "tails", tails))

# The affine map of a normal distribution list(mean, L).
affine_of <- function(normal) {
  c(list(name = "affine", mean = normal$mean), if (is.matrix(normal$L)) list(chol = normal$L) else list(sd = normal$L))
}

# The target's interface, the same for all runs of a call, with that of a reference of R functions as `reference`.
interface_of_run <- function(settings) {
  interface <- target_interface(settings$target)
  interface$reference <- reference_evaluator(settings$reference, settings$target)
  interface
}
