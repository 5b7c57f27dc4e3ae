# The progress line: one for the whole call of smc() and the like, shared by its rounds and islands.

# The first islands of successive passes have numbers that differ by this, so that no random streams are shared.
islands_apart <- 2^16

# Opens the line, which closes when the function with the frame .envir returns or fails. n_rounds, n_islands: the
# expected numbers. NULL if nothing is to be shown; the functions below then do nothing.
new_progress <- function(show, n_rounds, n_islands, .envir = parent.frame()) {
  if (!show) {
    return(NULL)
  }
  progress <- new.env(parent = emptyenv())
  progress$n_of <- c(Round = n_rounds, Island = n_islands)
  progress$n_left <- n_rounds + n_islands
  progress$n_before <- 0 # steps of the runs before the present one
  progress$n_steps <- 0 # steps of the present one
  # where lines cannot overwrite each other, the time of the last one
  progress$shown <- if (cli::is_dynamic_tty()) NULL else seconds_now()
  progress$id <- cli::cli_progress_bar(
    type = "custom",
    format = "{cli::pb_status}ETA {cli::pb_eta}",
    auto_terminate = FALSE,
    .envir = .envir
  )
  progress
}

begin_run <- function(progress, run, index, n_steps) {
  if (is.null(progress)) {
    return()
  }
  name <- if (run == "adapt") "Round" else "Island"
  # rounds count from 0, and each pass has islands of its own
  i <- if (run == "adapt") index + 1 else (index - 1) %% islands_apart + 1
  progress$label <- sprintf("%s %d/%d", name, i, max(i, progress$n_of[[name]]))
  progress$n_left <- max(progress$n_left - 1, 0)
  progress$n_before <- progress$n_before + progress$n_steps
  progress$n_steps <- n_steps
}

# Shows the current step, the effective sample size as a fraction, and log Z so far. The runs to come are assumed to
# have as many steps as this one.
show_step <- function(progress, step, lambda, ess, log_z) {
  if (is.na(ess)) {
    ess <- 1 # at the start all weights are equal
  }
  show_line(
    progress,
    done = progress$n_before + max(step - 1, 0),
    total = progress$n_before + progress$n_steps * (1 + progress$n_left),
    said = sprintf(
      "%s, step %d/%d, lambda %.3f, ESS %.0f%%, log Z %.1f,",
      progress$label, step, progress$n_steps, lambda, 100 * ess, log_z
    )
  )
}

# The density of the scout (see counted_density()), which also shows the number of its evaluations.
show_asked <- function(density, progress) {
  if (is.null(progress)) {
    return(density)
  }
  function(x, ...) {
    value <- density(x, ...)
    n <- density("count")
    said <- paste0("Scout, ", count(n[["n_target_evals"]]), " evaluations", say_calls(as.list(n)), ",")
    show_line(progress, done = 0, total = 1, said = said)
    value
  }
}

# Shows how many of n islands, which other processes run, are done.
show_done <- function(progress, n_done, n) {
  before <- progress$n_before + progress$n_steps
  steps <- max(progress$n_steps, 1) # of an island, as many as the last run had
  show_line(progress, before + n_done * steps, before + n * steps, sprintf("%d of %d islands done,", n_done, n))
}

# Time between lines where a line cannot overwrite the one before.
seconds_between_lines <- 60

# Draws the bar. That of cli would leave no room for the numbers on a line of 80 characters.
show_line <- function(progress, done, total, said) {
  if (is.null(progress)) {
    return()
  }
  if (!is.null(progress$shown)) {
    if (seconds_now() < progress$shown + seconds_between_lines) {
      return()
    }
    progress$shown <- seconds_now()
  }
  width <- 8
  full <- round(width * done / total)
  bar <- sprintf("[%s%s]", strrep("=", full), strrep(" ", width - full))
  cli::cli_progress_update(set = done, total = total, status = paste(bar, said), id = progress$id)
}
