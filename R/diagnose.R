# What a diagnostic is: what it asks for, what it makes of that, what would help, and what the loop does about it.

# * judge: a function of `seen`, and of what was found: a row of diagnostic(), or NULL where it does not apply. `seen` is
#   a list of the `sampler`, its islands, `final`, the `estimate` that they report, the `course` that led to them, NULL
#   for none, and all that the diagnostics before have `found`.
# * ask: a function of `seen` and of evaluate(), as of counted_density(), which returns what it finds at points of its
#   own; NULL where it asks for none.
# * most: a function of the sampler, of the evaluations that the islands have taken, and of the course, to the most that
#   `ask` may take.
# * remedy: a function of a record of the islands and of what was found, where the diagnostic has failed: the record
#   that the next reference is fitted to.
# * advise: names of sentences of `advice`.
# * needs_draws: whether it needs more of the islands than their estimates.
new_diagnostic <- function(judge, advise = character(), ask = NULL, most = function(...) 0,
                           remedy = function(record, found) record, needs_draws = TRUE) {
  list(judge = judge, ask = ask, most = most, remedy = remedy, advise = advise, needs_draws = needs_draws)
}

# A row. says: what is wrong where it fails, in parts between which the value stands, NA where it passes. shift: the
# difference of log Z that was seen, which counts where it fails; passing: what counts where it passes. beyond: whether
# the value is not to be trusted above its limit, or below it.
diagnostic <- function(value, limit, says, shift = 0, beyond = c("above", "below"), passing = 0) {
  above <- match.arg(beyond) == "above"
  failed <- is.finite(limit) && !is.na(value) && if (above) value > limit else value < limit
  says <- if (failed) gsub("\\s+", " ", paste(says, collapse = format(value, digits = 2))) else NA_character_
  list(value = value, limit = limit, passed = !failed, shift = if (failed) abs(shift) else passing, says = says)
}

# The rows of x, each moved by `by` along a column of its own.
moved_along <- function(x, along, by) {
  own <- cbind(seq_along(along), along)
  x[own] <- x[own] + by
  x
}

# Of what rays, mirrors or lines find beside the draws.
limit_of_rise <- function(found, estimate) {
  max(what_matters(estimate), rules$errors_seen * error_of_rise(found))
}

error_of_rise <- function(found) max(found$error, found$by_chance)

# The least rise of log Z that is worth a word: one below the standard error changes nothing.
what_matters <- function(estimate) max(rules$sure_bridge, estimate$std_error, na.rm = TRUE)

# Whether some rays or lines find so much that more may be sure of it, and of what matters: of the error, this part is
# theirs, and `stays` would be left.
may_be_more <- function(found, part, estimate, stays = 0) {
  limit <- limit_of_rise(list(error = stays), estimate)
  isTRUE(found$rise > found$error && found$rise + rules$errors_seen * part > limit)
}

# The row of what rays, mirrors or lines find. A rise that matters, and that they tell from less, counts before it is
# sure enough to warn of: its square, less that of its error, is an unbiased estimate of the square of the bias, which
# is part of the mean square error.
judge_beside <- function(seen, found, says) {
  if (!is.null(found$rise)) {
    error <- error_of_rise(found)
    least <- what_matters(seen$estimate)
    bias <- if (isTRUE(error < least && least < found$rise)) sqrt(found$rise^2 - error^2) else 0
    diagnostic(found$rise, limit_of_rise(found, seen$estimate), says, found$rise, passing = bias)
  }
}

# Evaluations that the islands have taken, to which what diagnostics take is in proportion.
n_spent <- function(seen) {
  counted(sum(seen$final$islands$n_target_evals, na.rm = TRUE), seen$sampler, seen$course)
}

# Particles of islands of a given number, by which diagnostics are judged.
default_particles <- 1024L

# What islands miss is no smaller where they are few or small: they count as eight of 1,024 particles and two steps at
# least, but as no more than half of what the call may take.
counted <- function(spent, sampler, course) {
  max(spent, min(8 * default_particles * (1 + 2 * n_moves(sampler)), course$plan$max_evals / 2))
}

# diagnostics: may be NULL. Which have failed, as indices; whether that of a name has; and
# what is said of them.
failed <- function(diagnostics) which(diagnostics$passed == FALSE)

names_of_failed <- function(diagnostics) diagnostics$name[failed(diagnostics)]

has_failed <- function(diagnostics, name) name %in% names_of_failed(diagnostics)

what_failed <- function(diagnostics) diagnostics$says[failed(diagnostics)]
