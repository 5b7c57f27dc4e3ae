# The number of threads that the compiled code works on.

most_threads <- 256 # the limit in C: SMC_MOST_THREADS

# As many as `options(autosmc.threads = )` says, by default n_cores().
n_threads <- function() {
  given <- getOption("autosmc.threads")
  if (is.null(given)) n_cores() else check_count(given, "autosmc.threads", max = most_threads)
}

# The number of cores that this process may use: 1 in a fork and in a worker of the package parallel, which share the
# machine with other processes.
n_cores <- function() {
  if (!identical(cores$process, Sys.getpid())) {
    return(1L)
  }
  if (is.null(cores$available)) { # asking takes longer than a small run
    is_worker <- any(grepl("RSOCK", commandArgs(), fixed = TRUE))
    available <- if (is_worker) 1 else availableCores()
    cores$available <- min(as.integer(available), most_threads)
  }
  cores$available
}

cores <- new.env()

.onLoad <- function(...) cores$process <- Sys.getpid()
