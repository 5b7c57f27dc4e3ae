# The shape of a posterior in words, read off the fitted reference: which variables depend on which, and which have
# heavy tails. Called by the print method, reports and plots of a fit.

# Draws for the change of scales along a variable, with errors of 2 %; also the number of points in a scatter plot.
n_described <- 1000L

# One string for each feature of the shape; NULL for a normal distribution or a reference that was not fitted.
describe_maps <- function(reference, target) {
  names <- coordinate_names(target)
  c(
    if (!is.null(target$sums)) {
      paste(format_names(target$names[sort(unique(c(target$sums[1:2, ])))]), "are angles that are moved together")
    },
    describe_variables(
      target$names[target$turn > 0 & target$turn < 1], "is an angle", "are angles",
      ": the density continues from one bound to the other, and the draws lie near these"
    ),
    describe_variables(
      target$names[target$truncated > 0], "is", "are", " normal given the others, truncated at the bounds"
    ),
    describe_variables(
      target$names[target$ratio > 0], "is", "are", " transformed to the log of the ratio to the previous variable"
    ),
    if (is_mixture(reference)) describe_basins(reference, target),
    if (is_student_reference(reference)) {
      sprintf(
        "heavy tails in all directions (Student t, %s %s of freedom)",
        format(reference$df, digits = 3), if (reference$df == 1) "degree" else "degrees"
      )
    },
    unlist(lapply(unique(lapply(moments_in(reference), `[`, c("order", "features"))), describe_moments, names)),
    unlist(lapply(precisions_in(reference), describe_precision, names)),
    describe_tails(Find(is_tails, reference$maps))
  )
}

describe_basins <- function(reference, target) {
  basins <- length(reference$basins$weights)
  if (is.null(reference$copies)) {
    return(sprintf("a mixture of %d normal distributions", basins))
  }
  used <- unique(unlist(moves_of_basins(reference$basins, reference)))
  moves <- reference$copies$moves[used, , drop = FALSE]
  elements <- if (is.null(target$parameters)) target$names else target$parameters
  permuted <- elements[colSums(abs(moves) != col(moves)) > 0]
  flipped <- elements[colSums(moves < 0) > 0]
  vectors <- function(names) format_names(unique(sub("[[].*", "", names)))
  how <- c(
    if (length(permuted) > 0) paste(vectors(permuted), "permuted"),
    if (length(flipped) > 0) paste("signs of", vectors(flipped), "changed")
  )
  sprintf(
    "%d copies (%s) of %s", nrow(moves), paste(how, collapse = ", "),
    if (basins == 1) "a normal distribution" else sprintf("a mixture of %d normal distributions", basins)
  )
}

# The maps of one kind in a reference, those nearest to the user's coordinates first.
precisions_in <- function(reference) Filter(is_precision, c(changes_of(reference), rev(reference$maps)))
moments_in <- function(reference) Filter(is_moments, rev(reference$maps))
is_tails <- function(map) identical(map$name, "tails")

# Names on the unconstrained scale: the logarithm of a positive variable, and the logit of the relative position of a
# variable with two bounds.
coordinate_names <- function(target) {
  is_positive <- rep_len(target$lower == 0 & target$upper == Inf, target$dim)
  is_between <- has_two_bounds(target)
  names <- ifelse(is_positive, sprintf("log(%s)", target$names), target$names)
  ifelse(is_between, sprintf("logit(%s)", target$names), names)
}

# "a, b are REST"; NULL without names. one, several: the verb in singular and plural, with what follows it.
describe_variables <- function(names, one, several, rest) {
  if (length(names) > 0) paste0(format_names(names), " ", if (length(names) > 1) several else one, rest)
}

# The coordinates that are parents, sorted.
conditioning_of <- function(reference) {
  of_moments <- lapply(moments_in(reference), function(map) parents_of(map$features))
  sort(unique(as.integer(unlist(c(lapply(precisions_in(reference), `[[`, "given"), of_moments)))))
}

# Children whose location and scale depend on parents by a map of conditional moments.
describe_moments <- function(map, names) {
  parents <- paste(names[parents_of(map$features)], collapse = " and ")
  sprintf("location and scale of %s depend on %s", several(names[sort(map$order)]), parents)
}

describe_precision <- function(precision, names) {
  verb <- if (length(precision$order) == 1) "is" else "are"
  given <- paste(names[precision$given], collapse = ", ")
  normal <- if (is.null(precision$kind)) "nearly normal" else "normal"
  sprintf("%s %s %s given %s", several(names[sort(precision$order)]), verb, normal, given)
}

describe_tails <- function(tails) {
  heavy <- sum(tails$tail < 1)
  skew <- sum(tails$skew != 0)
  c(
    if (heavy > 0) paste("heavy tails along", count_of(heavy, "direction")),
    if (skew > 0) paste("skew along", count_of(skew, "direction"))
  )
}

# For each variable the absolute log ratio of its scales one standard deviation above and below the centre of coordinate
# k, and the curvature of its location, in units of its scale: list(scale, location). Antithetic draws keep the
# curvature free of noise.
changed_along <- function(reference, k, d) {
  z <- opposite_draws(n_described, d)
  z[, conditioning_of(reference)] <- 0
  at <- lapply(c(-1, 0, 1), function(z_k) {
    z[, k] <- z_k
    x <- forward_maps(reference_maps(reference, d), z)$x
    list(mean = colMeans(x), sd = apply(x, 2, stats::sd))
  })
  bend <- abs(at[[1]]$mean + at[[3]]$mean - 2 * at[[2]]$mean) / 2
  list(scale = abs(log(at[[3]]$sd / at[[1]]$sd)), location = bend / at[[2]]$sd)
}

# For a plot: the parent on which other variables depend most, the variable that depends most on it, and the coordinate
# of the reference for that variable.
clearest_pair <- function(reference, d) {
  fixed <- conditioning_of(reference)
  pairs <- lapply(fixed, function(k) {
    changed <- Reduce(`+`, changed_along(reference, k, d))
    changed[fixed] <- 0
    c(k, which.max(changed), max(changed))
  })
  pair <- pairs[[which.max(vapply(pairs, `[`, 0, 3))]]
  pair[c(1, 2, 2)]
}
