# Whether two fits are the same to the last bit, but for the time they took.
is_same <- function(a, b) {
  parts <- c("estimates", "particles", "log_weights", "schedule", "steps", "diagnostics")
  identical(unclass(a)[parts], unclass(b)[parts])
}
