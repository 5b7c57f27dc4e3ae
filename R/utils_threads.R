# The number of threads that the compiled code works on.

most_threads <- 256 # that there is room for: SMC_MOST_THREADS

n_threads <- function() {
  check_count(getOption("autosmc.threads", 1), "autosmc.threads", max = most_threads)
}
