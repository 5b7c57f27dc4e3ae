# The number of threads that the compiled code works on.

# The option. In a process that was forked from one with threads, as those of mclapply() are,
# there is only one: what is left of the others' bookkeeping would be waited for for ever.
n_threads <- function() {
  n <- check_count(getOption("autosmc.threads", 1), "autosmc.threads", max = 1024)
  if (Sys.getpid() == process$id) n else 1L
}

process <- new.env() # in which the package was loaded

.onLoad <- function(libname, pkgname) {
  process$id <- Sys.getpid()
}
