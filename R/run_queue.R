# A queue of tasks for workers of the future package, which repeats tasks whose worker was lost.

# Number of attempts at a task: if one in a hundred workers is lost by accident, three are lost with the same task once
# in a million.
most_tries <- 3

# Runs numbered tasks, one in each future, as many at a time as there are workers. send: starts the task with this
# number; collect: called with the number and the value of each; give_up: raises an error when a task was lost too
# often; meanwhile: a function for this process to call once the tasks are started. With it the tasks are awaited in
# order, which is quicker than to ask which are done.
spread <- function(tasks, send, collect, give_up, meanwhile = NULL) {
  queue <- list(waiting = tasks, active = list(), lost = c())
  on.exit(leave(queue$active)) # after an error or an interrupt
  if (!is.null(meanwhile)) {
    queue <- fill(queue, send)
    meanwhile()
  }
  while (length(queue$waiting) + length(queue$active) > 0) {
    queue <- fill(queue, send)
    for (name in if (is.null(meanwhile)) finished(queue$active) else names(queue$active)) {
      value <- try_future(future::value(queue$active[[name]]), queue$active[[name]])
      queue$active[[name]] <- NULL
      if (inherits(value, "FutureError")) {
        queue$waiting <- c(queue$waiting, as.numeric(name))
        queue$lost <- c(queue$lost, name)
        queue$is_broken <- TRUE
      } else {
        check_worker(value)
        collect(as.numeric(name), value)
      }
    }
    if (any(table(queue$lost) >= most_tries)) {
      give_up(value)
    }
  }
}

# Starts as many tasks as there are free workers. After a loss the running tasks are awaited first. Then the plan is set
# up again, since not all versions of future replace a lost worker.
fill <- function(queue, send) {
  if (isTRUE(queue$is_broken)) {
    if (length(queue$active) > 0) {
      return(queue)
    }
    renew_plan()
    queue$is_broken <- FALSE
  }
  n_free <- max(future::nbrOfWorkers() - length(queue$active), 0)
  for (task in utils::head(queue$waiting, n_free)) {
    queue$active[[as.character(task)]] <- try_future(send(task))
  }
  queue$waiting <- setdiff(queue$waiting, names(queue$active))
  queue
}

renew_plan <- function() {
  plan <- future::plan("list") # in a variable, since plan() inspects the expression
  future::plan(plan, .skip = FALSE)
}

# Ends the workers of futures whose values are not needed, where that is possible; others end with their futures. The
# plan is set up again, so that the next call does not wait for them.
leave <- function(active) {
  active <- Filter(function(future) inherits(future, "Future"), active)
  if (length(active) == 0) {
    return()
  }
  if ("cancel" %in% getNamespaceExports("future")) {
    getExportedValue("future", "cancel")(active)
  } else {
    lapply(active, end_worker)
  }
  lapply(active, forget)
  renew_plan()
}

# Takes the value of a future, since otherwise the next call would warn of a future that has failed.
forget <- function(future) {
  value <- function() future::value(future, stdout = FALSE, signal = FALSE)
  tryCatch(suppressWarnings(if (future::resolved(future)) value()), error = identity)
}

# Ends the worker of a future. Only for multisession and multicore plans: a worker of a cluster may be on another
# machine.
end_worker <- function(future) {
  if (inherits(future, "MultisessionFuture")) {
    worker <- future$workers[[future$node]]
    tools::pskill(worker$session_info$process$pid)
  } else if (inherits(future, "MulticoreFuture")) {
    tools::pskill(future$job$pid)
  }
}

# Waits until at least one future has ended, and returns the names of those that have.
finished <- function(active) {
  started <- seconds_now()
  repeat {
    done <- vapply(active, has_ended, NA)
    if (any(done)) {
      return(names(active)[done])
    }
    waited <- seconds_now() - started
    Sys.sleep(min(max(0.001, waited / 20), 0.1))
  }
}

has_ended <- function(future) !isFALSE(try_future(future::resolved(future), future))

# The value of `code`, or the error of the future package if a worker was lost. future: the future that `code` uses, or
# such an error in its place, which is then returned.
try_future <- function(code, future = NULL) {
  if (inherits(future, "FutureError")) {
    return(future)
  }
  tryCatch(code, FutureError = function(e) e)
}

# An error if the value shows that the worker does not have this version of the package.
check_worker <- function(value) {
  if (!inherits(value, "autosmc_unfit_worker")) {
    return()
  }
  problem <- if (is.null(value$version)) {
    "has no package autosmc"
  } else {
    paste("has version", value$version, "of autosmc, and this session", own_version())
  }
  abort(
    c(
      "The worker on {value$host} {problem}.",
      "i" = "Its libraries are {.file {value$paths}}. Install this version of autosmc there, or give the worker
        this session's {.fn .libPaths}."
    ),
    "worker",
    host = value$host,
    paths = value$paths
  )
}
