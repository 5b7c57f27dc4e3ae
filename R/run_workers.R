# Parallel computing under the user's plan of the future package: one future for each island or other job, and for
# shares of points (see run_batches.R). Results that have arrived are kept; a task whose worker was lost is run again.

# Seconds that workers take to load the package, as measured: islands run in parallel only if they save more.
loading_seconds <- 0.5

# islands -----------------------------------------------------------------------

# The records of the islands with these numbers, from this process or from workers. Random numbers belong to the
# islands, so the results are the same. f: run_sampler(), or a function that returns a part of its record.
lapply_islands <- function(sampler, indices, path, f = run_sampler) {
  lapply(indices, islands_in_turn(sampler, indices, path, f), sampler = sampler, path = path, run = "final")
}

# A function like f that returns each of these records once by its number. With workers, all records are computed
# before; each is forgotten when it has been returned, to save memory.
islands_in_turn <- function(sampler, indices, path, f = run_sampler) {
  if (!pays_for_workers(sampler, length(indices), path)) {
    return(f)
  }
  records <- over_workers(sampler, indices, path, f)
  function(index, ...) {
    i <- match(index, indices)
    record <- records[[i]]
    records[i] <<- list(NULL)
    record
  }
}

# Whether n islands should run in parallel: not if, by the time of an evaluation in an adapting run, this would save
# less time than workers take to load the package.
pays_for_workers <- function(sampler, n, path) {
  if (!in_parallel(n)) {
    return(FALSE)
  }
  n_evals <- n * sampler$n_particles * (1 + length(path$lambda))
  saved <- sampler$pace$per_evaluation * n_evals * (1 - 1 / min(n, future::nbrOfWorkers()))
  !isTRUE(saved <= loading_seconds)
}

# Whether n > 1 tasks can run in parallel, under the user's plan.
in_parallel <- function(n) {
  n > 1 && isNamespaceLoaded("future") && !inherits(future::plan(), "sequential")
}

# The records of these islands from workers, except those in the checkpoint.
over_workers <- function(sampler, indices, path, f) {
  settings <- if (!is.null(sampler$checkpoint)) settings_of_run(sampler, path)
  records <- lapply(indices, function(index) {
    recall(sampler, run_name("final", index), settings, record_restorer(sampler, path, "final", index))
  })
  show <- function() {
    show_done(sampler$progress, sum(!vapply(records, is.null, NA)), length(records))
  }
  collect <- function(i, record) {
    records[[i]] <<- record
    store(sampler, run_name("final", indices[i]), settings, stored_record(record), points_of(record, sampler))
    show()
  }
  functions <- user_functions(sampler[c("target", "reference")])
  plain <- sampler[setdiff(names(sampler), c("progress", "checkpoint", "pace"))]
  task <- function(index) f(sampler = plain, path = path, run = "final", index = index)
  send <- sender(task_alone(task, c("f", "plain", "path")), functions)
  show()
  give_up <- function(error) {
    back <- without_null(records)
    abort_lost(
      error, sprintf("island; %s came back.", count_of(length(back), "island")),
      "What came back is in the error's {.field records}; with {.arg checkpoint} it is kept for the next call.",
      records = back
    )
  }
  left <- which(vapply(records, is.null, NA))
  spread(left, function(i) send(indices[i]), collect, give_up)
  records
}

# jobs --------------------------------------------------------------------------

# Calls collect(i, value) with the value of f for each input when it is available, computed in this process or in one
# future each. names: the variables in the environment of f that it uses; functions: those of the user that f calls;
# what: a name of the jobs for the progress bar, NULL for none.
over_jobs <- function(inputs, f, names, functions, collect, what = NULL) {
  n <- length(inputs)
  bar <- if (!is.null(what)) cli::cli_progress_bar(what, total = n)
  done <- function(i, value) {
    collect(i, value)
    if (!is.null(bar)) cli::cli_progress_update(id = bar)
  }
  if (in_parallel(n)) {
    send <- sender(task_alone(f, names), functions)
    spread(seq_len(n), function(i) send(inputs[[i]]), done, function(error) {
      abort_lost(error, "model or data.", "With {.arg checkpoint} what came back is kept for the next call.")
    })
  } else {
    for (i in seq_len(n)) done(i, f(inputs[[i]]))
  }
}

# what is sent ------------------------------------------------------------------

# A function that starts the future of a task for a given input. The task is sent as one vector of bytes, which a worker
# unpacks only if it has the package. Everything is sent in the function that the worker calls, since each global
# variable of a future would take a message and an answer. functions: those of the user that the task calls.
sender <- function(task, functions) {
  needed <- needed_by_functions(functions)
  sent <- list(
    globals = needed$globals,
    task = serialize(task, NULL, xdr = FALSE),
    version = own_version()
  )
  function(given) {
    start <- task_alone(function() on_worker(sent, given), c("on_worker", "sent", "given"), baseenv())
    future::future(
      as.call(list(start)),
      substitute = FALSE, globals = list(), packages = needed$packages, seed = NULL
    )
  }
}

# The function `task` with a new environment that has only these variables. parent: the namespace of the package, or
# baseenv() for functions that may run without the package.
task_alone <- function(task, names, parent = topenv()) {
  variables <- mget(names, environment(task), inherits = TRUE)
  environment(task) <- list2env(variables, parent = parent)
  task
}

# Runs on a worker: the value of the task, or an object of class `autosmc_unfit_worker` where the version of the package
# is not the same. The user's variables are put into the global environment, where the user's functions find them.
on_worker <- function(sent, given) {
  if (requireNamespace("autosmc", quietly = TRUE) && getNamespaceVersion("autosmc") == sent$version) {
    list2env(sent$globals, globalenv())
    unserialize(sent$task)(given)
  } else {
    structure(list(
      host = Sys.info()[["nodename"]],
      paths = .libPaths(),
      version = if (isNamespaceLoaded("autosmc")) unname(getNamespaceVersion("autosmc"))
    ), class = "autosmc_unfit_worker")
  }
}
environment(on_worker) <- baseenv() # the worker may not have the package

# The functions in nested lists that do not belong to a package.
user_functions <- function(x) {
  if (is.list(x)) {
    return(unlist(lapply(unclass(x), user_functions), use.names = FALSE))
  }
  if (is.function(x) && !is.primitive(x) && !isNamespace(topenv(environment(x)))) x
}

# What functions use from the global environment, which is not serialised with them: list(globals, packages), with its
# variables and the names of attached packages.
needed_by_functions <- function(functions) {
  names <- sprintf("f%d", seq_along(functions))
  here <- list2env(stats::setNames(as.list(functions), names), parent = baseenv())
  calls <- as.call(lapply(c("list", names), as.name))
  found <- future::getGlobalsAndPackages(calls, envir = here)
  own <- intersect(names(found$globals), ls(globalenv(), all.names = TRUE))
  list(globals = mget(own, globalenv()), packages = found$packages)
}

# errors ------------------------------------------------------------------------

# An error where a task was lost too often. task: the task in words.
abort_lost <- function(error, task, advice = NULL, ...) {
  abort(
    c(paste("A worker was lost {most_tries} times with the same", task), "i" = advice),
    "worker",
    parent = error,
    ...
  )
}
