# Progress: one line for a whole call of a verb. The rounds and islands of the call
# take turns on it, so that they do not flash by as bars of their own.

# Islands of later passes are numbered so far apart that their random streams differ.
islands_apart <- 2^16

# Opens the line, which closes with the verb's frame, however that ends. n_rounds,
# n_islands: how many are foreseen. NULL where nothing is to be shown; the functions below
# do nothing then.
new_progress <- function(show, n_rounds, n_islands, .envir = parent.frame()) {
  if (!show) {
    return(NULL)
  }
  progress <- new.env(parent = emptyenv())
  progress$n_of <- c(Round = n_rounds, Island = n_islands)
  progress$n_left <- n_rounds + n_islands
  progress$n_before <- 0 # steps of the runs before the present one
  progress$n_steps <- 0 # steps of the present one
  progress$shown <- if (cli::is_dynamic_tty()) NULL else seconds_now() # where lines cannot overwrite each other
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

# The step under way; the effective sample size, as a fraction, and log Z so far.
# Runs that are still to come are taken to have as many steps as this one.
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

# The scout's density, of counted_density(), which shows how many points it has been asked for.
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

# Islands that are run by other processes: how many of them are done.
show_done <- function(progress, n_done, n) {
  before <- progress$n_before + progress$n_steps
  steps <- max(progress$n_steps, 1) # of an island, as many as the last run had
  show_line(progress, before + n_done * steps, before + n * steps, sprintf("%d of %d islands done,", n_done, n))
}

# In seconds: so often there is a line where it does not overwrite the last.
between_lines <- 60

# cli's own bar leaves no room for the numbers on a line of 80 characters.
show_line <- function(progress, done, total, said) {
  if (is.null(progress)) {
    return()
  }
  if (!is.null(progress$shown)) {
    if (seconds_now() < progress$shown + between_lines) {
      return()
    }
    progress$shown <- seconds_now()
  }
  width <- 8
  full <- round(width * done / total)
  bar <- sprintf("[%s%s]", strrep("=", full), strrep(" ", width - full))
  cli::cli_progress_update(set = done, total = total, status = paste(bar, said), id = progress$id)
}
