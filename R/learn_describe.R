# The shape of a posterior in words, as the reference that was fitted to it has it: which
# variables depend on which, and which have tails.

# A sentence each, NULL where the reference is normal or not fitted.
describe_maps <- function(reference, target) {
  names <- coordinate_names(target)
  c(
    describe_angles(target),
    describe_truncated(target),
    describe_ratios(target),
    if (is_mixture(reference)) {
      # the last component covers all others
      sprintf("a mixture of %d normal distributions", length(reference$mixture$weights) - 1)
    },
    if (is_student_reference(reference)) {
      degrees <- if (reference$df == 1) "degree" else "degrees"
      sprintf(
        "heavy tails in all directions (Student t, %s %s of freedom)",
        format(reference$df, digits = 3), degrees
      )
    },
    describe_dependence(reference, names),
    unique(unlist(lapply(reference$changes, describe_change, names))), # polynomials after a precision say the same
    describe_tails(reference$tails)
  )
}

# On the unconstrained scale a positive variable is its logarithm, and one between bounds the logit
# of its place between them.
coordinate_names <- function(target) {
  of_bounds <- function(is_so) rep_len(is_so, target$dim)
  is_positive <- of_bounds(target$lower == 0 & target$upper == Inf)
  is_between <- has_two_bounds(target)
  names <- ifelse(is_positive, sprintf("log(%s)", target$names), target$names)
  ifelse(is_between, sprintf("logit(%s)", target$names), names)
}

describe_angles <- function(target) {
  turned <- target$names[target$turn > 0]
  if (length(turned) > 0) {
    sprintf(
      "%s %s: the density continues from one bound to the other, and the draws lie near these",
      format_names(turned), if (length(turned) > 1) "are angles" else "is an angle"
    )
  }
}

describe_truncated <- function(target) {
  if (is_truncated(target)) {
    truncated <- target$names[target$truncated > 0]
    sprintf(
      "%s %s normal given the others, truncated at the bounds",
      format_names(truncated), if (length(truncated) > 1) "are" else "is"
    )
  }
}

describe_ratios <- function(target) {
  ratios <- target$names[target$ratio > 0]
  if (length(ratios) > 0) {
    verb <- if (length(ratios) > 1) "are" else "is"
    sprintf("%s %s transformed to the log ratio to the variable before", format_names(ratios), verb)
  }
}

describe_dependence <- function(reference, names) {
  fixed <- conditioning_of(reference)
  conditional <- reference$conditional
  # what is normal given several is told in one sentence
  told <- if (length(fixed) == 1) fixed else conditional$conditioning
  sentences <- lapply(intersect(moved_coordinates(reference), told), function(k) {
    is_of_neck <- is_neck(conditional) && k %in% conditional$conditioning
    by <- if (is_of_neck) conditional$conditioning else k
    changed <- changed_along(reference, k, length(names))
    others <- function(change) setdiff(which(change > rules$least_described), fixed)
    c(
      depends_sentence("scale", names[others(changed$scale)], names[by], "depends on"),
      # where all is normal given others, that these move its location says little
      if (k %in% conditional$conditioning) {
        depends_sentence("location", names[others(changed$location)], names[by], "bends with")
      }
    )
  })
  unlist(sentences)
}

# The coordinates on which others depend: the conditioning variables, and those that are given.
conditioning_of <- function(reference) {
  union(reference$conditional$conditioning, given_last(reference))
}

# But for the second variable of a neck, the level, which goes with the first.
moved_coordinates <- function(reference) {
  conditional <- reference$conditional
  setdiff(conditioning_of(reference), if (is_neck(conditional)) conditional$conditioning[-1])
}

depends_sentence <- function(what, of, on, verb) {
  if (length(of) > 0) {
    sprintf("%s of %s %s %s", what, several(of), verb, paste(on, collapse = " and "))
  }
}

describe_change <- function(change, names) {
  if (is_precision(change)) {
    describe_precision(change, names)
  } else if (is_products(change)) {
    describe_multiples(sort(change$order), scales_of(change), names)
  } else {
    describe_multiples(multiples_in(change), change$conditioning, names)
  }
}

describe_precision <- function(precision, names) {
  verb <- if (length(precision$order) == 1) "is" else "are"
  given <- paste(names[precision$given], collapse = ", ")
  normal <- if (isTRUE(precision$near)) "nearly normal" else "normal"
  sprintf("%s %s %s given %s", several(names[sort(precision$order)]), verb, normal, given)
}

describe_multiples <- function(multiples, set_by, names) {
  verb <- if (length(multiples) == 1) "multiplies" else "multiply"
  scales <- if (length(set_by) == 1) "a scale that %s sets" else "scales that %s set"
  paste(several(names[multiples]), verb, sprintf(scales, paste(names[set_by], collapse = ", ")))
}

describe_tails <- function(tails) {
  if (is.null(tails)) {
    return(NULL)
  }
  heavy <- sum(tails$tail < 1)
  skew <- sum(tails$skew != 0)
  c(
    if (heavy > 0) paste("heavy tails along", count_of(heavy, "direction")),
    if (skew > 0) paste("skew along", count_of(skew, "direction"))
  )
}

# How much the scale of each variable changes from one standard deviation below the middle of
# coordinate k to one above, as a logarithm, and how much its location bends, in units of its
# scale. Points come with their mirror images, so that nothing bends by chance.
changed_along <- function(reference, k, d) {
  z <- with_seed(1, opposite_draws(rules$n_described, d))
  z[, conditioning_of(reference)] <- 0
  at <- lapply(c(-1, 0, 1), function(z_k) {
    z[, k] <- z_k
    x <- through_maps(reference_maps(reference, d), z)$x
    list(mean = colMeans(x), sd = apply(x, 2, stats::sd))
  })
  bend <- abs(at[[1]]$mean + at[[3]]$mean - 2 * at[[2]]$mean) / 2
  list(scale = abs(log(at[[3]]$sd / at[[1]]$sd)), location = bend / at[[2]]$sd)
}

# The coordinate on which most depends, the variable that depends most on it, and the
# coordinate of the reference that has most of this variable: a vector of three.
clearest_pair <- function(reference, d) {
  fixed <- conditioning_of(reference)
  pairs <- lapply(moved_coordinates(reference), function(k) {
    changed <- Reduce(`+`, changed_along(reference, k, d))
    changed[fixed] <- 0
    c(k, which.max(changed), max(changed))
  })
  pair <- pairs[[which.max(vapply(pairs, `[`, 0, 3))]]
  axes <- if (is_neck(reference$conditional)) reference$conditional$axes else diag(d)
  share <- abs(normal_of(reference, d)$L %*% axes)
  share[, fixed] <- 0
  c(pair[1:2], which.max(share[pair[2], ]))
}
