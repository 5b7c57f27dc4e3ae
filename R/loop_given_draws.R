# Draws of another program as the `reference`: a reference is fitted to them. Called by new_sampler().

# The reference fitted to draws of the variables, a matrix with named columns.
reference_of_draws <- function(target, draws) {
  if (is.null(draws)) {
    abort(c(
      "{.arg reference} is {.val draws}, but the target has no draws.",
      "i" = "Targets of Stan's fits have draws, if all parameters were kept. Otherwise give the draws as a matrix."
    ))
  }
  draws <- unconstrained_draws(target, draws)
  x <- draws$values
  n <- nrow(x)
  n_lost <- draws$n - n
  reason <- draws$message
  why <- c(
    "x" = if (n_lost > 0) {
      "{n_lost} of {draws$n} draws {cli::qty(n_lost)}{?has/have} values that are missing or
        that the parameters cannot have, such as values beyond a bound, or on it after rounding."
    },
    "x" = if (!is.null(reason)) "The first of them: {reason}"
  )
  if (n == 0) {
    abort(c("None of the draws has values that the parameters can have.", why))
  }
  fitted <- fitted_to_points(x)
  if (is.null(fitted)) {
    abort(c("{n} draw{?s} {?is/are} too few for a reference in {target$dim} dimension{?s}.", why))
  }
  if (n_lost > 0) inform_once("draws", c("Some draws in {.arg reference} are not used.", why))
  fitted$reference$fitted_to <- "draws"
  fitted$reference
}

# As propose(), for rows of equal weight; NULL where they are too few.
fitted_to_points <- function(x) {
  n <- nrow(x)
  record <- list(
    particles = x, log_weights = rep(-log(n), n), origins = seq_len(n), reference = reference_gaussian()
  )
  propose(record, c("normal", "shape"))
}

# A matrix with a row for each draw and named columns, from a fit (resampled by the weights), draws of posterior or
# coda, a stanfit, a matrix, a data frame, an array of iterations x chains x variables, a list of chains as of NIMBLE,
# or the result of jags.samples() of rjags.
matrix_of_draws <- function(x) {
  if (inherits(x, "smc_fit")) {
    check_has_draws(x)
    return(as.matrix(x))
  }
  if (inherits(x, "stanfit")) {
    return(draws_of_stanfit(x))
  }
  if (inherits(x, "draws")) {
    check_installed("posterior", "for its draws")
    x <- unclass(posterior::as_draws_matrix(x))
  }
  if (inherits(x, "mcarray")) x <- list(x)
  if (is.list(x) && !is.data.frame(x)) {
    if (!is.null(x$samples)) x <- x$samples
    if (all(vapply(x, inherits, NA, "mcarray"))) {
      return(do.call(cbind, lapply(x, matrix_of_mcarray)))
    }
    chains <- if (is.list(x)) lapply(x, as.matrix) else list(as.matrix(x))
    if (length(unique(lapply(chains, colnames))) != 1) {
      abort_argument(x, "reference", "a reference, a fit, or draws: a matrix or chains with the same variables")
    }
    return(do.call(rbind, chains))
  }
  if (length(dim(x)) == 3) {
    x <- matrix(x, ncol = dim(x)[3], dimnames = list(NULL, dimnames(x)[[3]]))
  }
  if (is.data.frame(x)) matrix_of_numbers(x) else as.matrix(x)
}

# An mcarray of rjags: the elements of a variable x iterations x chains.
matrix_of_mcarray <- function(x) {
  own <- dim(x)[seq_len(length(dim(x)) - 2)]
  name <- attr(x, "varname")
  name_columns(t(matrix(x, prod(own))), if (prod(own) == 1) name else element_names(name, array(0, own)))
}

# The numeric columns of a data frame as a matrix; the names of the others, such as factors, are its attribute `others`.
matrix_of_numbers <- function(x) {
  is_number <- vapply(x, function(column) is.numeric(column) || is.logical(column), NA)
  structure(data.matrix(x[is_number]), others = names(x)[!is_number])
}

may_be_draws <- function(x) is.list(x) || is.numeric(x) || isS4(x)

# The columns of the target's variables, in their order. Further columns are dropped, and spaces in names are ignored.
columns_of_variables <- function(draws, names) {
  given <- gsub(" ", "", colnames(draws), fixed = TRUE)
  if (length(given) == 0 && ncol(draws) == length(names)) {
    if (length(names) > 1) {
      inform_once(
        "draws",
        "The columns of {.arg reference} have no names: they are taken as {.field {names}}, in this order."
      )
    }
    return(draws)
  }
  missing <- setdiff(names, given)
  no_numbers <- intersect(missing, attr(draws, "others"))
  if (length(missing) > 0) {
    abort(c(
      "{.arg reference} has no draws of {.field {missing}}.",
      "x" = if (length(no_numbers) > 0) "The column{?s} {.field {no_numbers}} {?is/are} not numeric.",
      "i" = if (length(given) > 0) {
        "It has draws of {.field {utils::head(given, 20)}}. For a target made from a function, {.arg names} gives the
          names of its variables, in their order."
      } else {
        "Its columns have no names."
      }
    ))
  }
  draws[, match(names, given), drop = FALSE]
}

# Draws on the unconstrained scale, without those outside the support, which rounding can cause: list(values, n,
# message), with the number of draws given, and what a Stan program says of the first one that was left out.
unconstrained_draws <- function(target, draws) {
  if (!is.null(target$outputs) && is.null(target$parameters)) {
    abort("{.arg reference}: draws of {target$label} cannot be transformed to its unconstrained scale.")
  }
  draws <- columns_of_variables(draws, if (is.null(target$parameters)) target$names else target$parameters)
  storage.mode(draws) <- "double"
  n <- nrow(draws)
  if (inherits(target, "smc_target_stan")) {
    u <- unconstrained_by_stan(target, draws)
  } else {
    draws <- draws[is.finite(rowSums(draws)), , drop = FALSE]
    if (!is.null(target$types)) draws <- to_free(target$types, draws)
    inside <- !colSums(t(draws) <= target$lower | t(draws) >= target$upper)
    u <- list(values = change_scale(target, draws[inside %in% TRUE, , drop = FALSE], to_user = FALSE))
  }
  list(values = unname(u$values[is.finite(rowSums(u$values)), , drop = FALSE]), n = n, message = u$message)
}
