# What a diagnostic is: a number with a limit, and what is said where it is beyond.

# says: what is wrong where it fails, NA where it passes. beyond: whether the value is not to be trusted above its
# limit, or below it.
diagnostic <- function(name, value, limit, says, beyond = c("above", "below")) {
  above <- match.arg(beyond) == "above"
  failed <- is.finite(limit) && !is.na(value) && if (above) value > limit else value < limit
  says <- if (failed) gsub("\\s+", " ", says) else NA_character_
  list(name = name, value = value, limit = limit, passed = !failed, says = says)
}

# The rows of x, each moved by `by` along a column of its own.
moved_along <- function(x, along, by) {
  own <- cbind(seq_along(along), along)
  x[own] <- x[own] + by
  x
}

# Of what rays, mirrors or lines find beside the draws.
limit_of_rise <- function(found, estimate) {
  own <- if (is.na(estimate$std_error)) 0 else estimate$std_error
  max(rules$most_of_rays, own) + rules$errors_of_rays * found$error
}

# diagnostics: may be NULL. Which have failed, as indices; whether that of a name has; and
# what is said of them.
failed <- function(diagnostics) which(diagnostics$passed == FALSE)

names_of_failed <- function(diagnostics) diagnostics$name[failed(diagnostics)]

has_failed <- function(diagnostics, name) name %in% names_of_failed(diagnostics)

what_failed <- function(diagnostics) diagnostics$says[failed(diagnostics)]
