# Work in other processes, under the user's plan of the future package: islands, a future
# each; and the points of expensive evaluations in the runs that tune. Results that have
# arrived are kept; a task whose worker was lost is run again.

# islands -----------------------------------------------------------------------

# The records of islands by their numbers, in this process or by workers. The random
# streams belong to the islands, so the results are the same. f: run_sampler(), or a
# function of the package that returns a part of what it does.
lapply_islands <- function(sampler, indices, path, f = run_sampler) {
  if (in_parallel(length(indices))) {
    over_workers(sampler, indices, path, f)
  } else {
    lapply(indices, f, sampler = sampler, path = path, run = "final")
  }
}

# A function, as run_sampler() is one, that gives these records by their numbers: this, or where there
# are workers, one that gives each of theirs once, so that it need not stay with the others.
islands_in_turn <- function(sampler, indices, path) {
  if (!in_parallel(length(indices))) {
    return(run_sampler)
  }
  records <- over_workers(sampler, indices, path, run_sampler)
  function(index, ...) {
    i <- match(index, indices)
    record <- records[[i]]
    records[i] <<- list(NULL)
    record
  }
}

in_parallel <- function(n) {
  n > 1 && isNamespaceLoaded("future") && !inherits(future::plan(), "sequential")
}

over_workers <- function(sampler, indices, path, f) {
  settings <- if (!is.null(sampler$checkpoint)) settings_of_run(sampler, path)
  records <- lapply(indices, function(index) {
    recall(sampler, run_name("final", index), settings)
  })
  show <- function() {
    show_done(sampler$progress, sum(!vapply(records, is.null, NA)), length(records))
  }
  collect <- function(i, record) {
    records[[i]] <<- record
    store(sampler, run_name("final", indices[i]), settings, record, points_of(record, sampler))
    show()
  }
  functions <- user_functions(sampler[c("target", "reference")])
  plain <- sampler[setdiff(names(sampler), c("progress", "checkpoint"))]
  task <- function(index) f(sampler = plain, path = path, run = "final", index = index)
  send <- sender(task_alone(task, c("f", "plain", "path")), functions)
  show()
  give_up <- function(error) abort_lost(error, Filter(Negate(is.null), records))
  left <- which(vapply(records, is.null, NA))
  spread(left, function(i) send(indices[i]), collect, give_up)
  records
}

# expensive evaluations ---------------------------------------------------------

# The sampler of a run that tunes: where the target is a function of one point, and a batch
# of points takes long, the points are spread over the workers. Each point's value is the
# same wherever it is computed.
over_batches <- function(sampler) {
  if (isFALSE(sampler$target$vectorized) && in_parallel(2)) {
    functions <- user_functions(sampler["target"])
    sampler$evaluators$evaluate <- spread_evaluator(sampler$evaluators$evaluate, functions)
  }
  sampler
}

# evaluate: of (x, gradient), see target_evaluator(). The time that a point takes is measured
# in this process first.
spread_evaluator <- function(evaluate, functions) {
  task <- function(given) evaluate(given$x, given$gradient)
  send <- sender(task_alone(task, "evaluate"), functions)
  per_point <- NULL
  slower <- c() # seconds that these batches would have taken here
  now <- function() proc.time()[["elapsed"]]
  here <- function(x, gradient) {
    started <- now()
    value <- evaluate(x, gradient)
    per_point <<- (now() - started) / nrow(x)
    value
  }
  there <- function(x, gradient, n_chunks) {
    started <- now()
    value <- evaluate_chunks(send, x, gradient, n_chunks)
    seconds <- per_point * nrow(x)
    slower <<- if (now() - started > seconds) c(slower, seconds) else slower[slower < seconds]
    value
  }
  by_time <- function(x, gradient) {
    n <- n_chunks(per_point * nrow(x), nrow(x), future::nbrOfWorkers(), slower)
    if (n > 1) there(x, gradient, n) else here(x, gradient)
  }
  function(x, gradient) {
    if (!is.null(per_point)) {
      return(by_time(x, gradient))
    }
    if (nrow(x) < 2) {
      return(here(x, gradient))
    }
    first <- here(x[1, , drop = FALSE], gradient)
    bind_values(list(first, by_time(x[-1, , drop = FALSE], gradient)))
  }
}

# How many parts of n points are the fastest, if all points take so many seconds here: futures
# are started one after another, so that k parts take seconds / k + k * future_seconds. But
# workers are slower while they load packages, and where futures take long to start: what takes
# no longer than the batches with which they were `slower` a few times is not sent any more.
n_chunks <- function(seconds, n, n_workers, slower) {
  if (sum(slower >= seconds) >= rules$most_slower) {
    return(1)
  }
  min(n_workers, n, floor(sqrt(seconds / rules$future_seconds)))
}

# The rows of x in n parts, each by a worker.
evaluate_chunks <- function(send, x, gradient, n) {
  rows <- split(seq_len(nrow(x)), sort(rep_len(seq_len(n), nrow(x))))
  values <- vector("list", n)
  spread(
    seq_len(n),
    function(i) send(list(x = x[rows[[i]], , drop = FALSE], gradient = gradient)),
    function(i, value) values[[i]] <<- value,
    function(error) abort_lost(error, list()),
    in_order = TRUE
  )
  bind_values(values)
}

bind_values <- function(values) {
  list(
    log_density = unlist(lapply(values, `[[`, "log_density")),
    gradient = do.call(rbind, lapply(values, `[[`, "gradient"))
  )
}

# what is sent ------------------------------------------------------------------

# A function that starts the future of a task, from the task's number or other input. The
# task travels as one vector of bytes, which a worker unpacks only if it has the package. All
# that is sent is in the function that the worker calls: each of the future's own globals
# would take a message and an answer. functions: those of the user that the task calls.
sender <- function(task, functions) {
  needed <- needed_by_functions(functions)
  sent <- list(
    globals = needed$globals,
    task = serialize(task, NULL, xdr = FALSE),
    version = as.character(utils::packageVersion("autosmc"))
  )
  function(given) {
    start <- task_alone(
      function() on_worker(sent, given), c("on_worker", "sent", "given"), baseenv()
    )
    future::future(
      as.call(list(start)),
      substitute = FALSE, globals = list(), packages = needed$packages, seed = NULL
    )
  }
}

# A function with these variables of its environment, and no others. parent: the namespace of
# the package, or baseenv() for what runs where the package may be missing.
task_alone <- function(task, names, parent = topenv()) {
  variables <- mget(names, environment(task), inherits = TRUE)
  environment(task) <- list2env(variables, parent = parent)
  task
}

# What a worker does. The user's variables go where the user's functions look for them.
on_worker <- function(sent, given) {
  if (requireNamespace("autosmc", quietly = TRUE) &&
    utils::packageVersion("autosmc") == sent$version) {
    list2env(sent$globals, globalenv())
    unserialize(sent$task)(given)
  } else {
    structure(list(
      host = Sys.info()[["nodename"]],
      paths = .libPaths(),
      version = if (isNamespaceLoaded("autosmc")) {
        as.character(utils::packageVersion("autosmc"))
      }
    ), class = "autosmc_unfit_worker")
  }
}
environment(on_worker) <- baseenv() # the worker may not have the package

# The functions in a list of lists that do not belong to a package.
user_functions <- function(x) {
  if (is.list(x)) {
    return(unlist(lapply(unclass(x), user_functions), use.names = FALSE))
  }
  if (is.function(x) && !is.primitive(x) && !isNamespace(topenv(environment(x)))) x
}

# What functions use of the user's workspace, which does not travel with them to another
# process: a list of its variables, and the names of the packages that are attached there.
needed_by_functions <- function(functions) {
  names <- sprintf("f%d", seq_along(functions))
  here <- list2env(stats::setNames(as.list(functions), names), parent = baseenv())
  calls <- as.call(lapply(c("list", names), as.name))
  found <- future::getGlobalsAndPackages(calls, envir = here)
  own <- intersect(names(found$globals), ls(globalenv(), all.names = TRUE))
  list(globals = mget(own, globalenv()), packages = found$packages)
}

# the queue ---------------------------------------------------------------------

# Runs tasks, which are numbers, a future each, as many at a time as there are workers.
# send: starts one. collect: takes its number and value. give_up: ends with an error, when
# a task was lost too often. in_order: whether to wait for one after another, which is quicker
# than to ask which are done.
spread <- function(tasks, send, collect, give_up, in_order = FALSE) {
  queue <- list(waiting = tasks, active = list(), lost = c())
  on.exit(leave(queue$active)) # after an error or an interrupt
  while (length(queue$waiting) + length(queue$active) > 0) {
    queue <- fill(queue, send)
    for (name in if (in_order) names(queue$active) else finished(queue$active)) {
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
    if (any(table(queue$lost) >= rules$most_tries)) {
      give_up(value)
    }
  }
}

# Starts as many tasks as there are free workers. After a loss the others come back first;
# then the plan is set up anew, since not all versions of future replace a lost worker.
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
  plan <- future::plan("list") # in a variable: plan() looks at the expression
  future::plan(plan, .skip = FALSE)
}

# Ends the workers of futures whose values are not needed any more, where that is possible;
# others end when their futures do. The plan is set up anew, so that the next call does not
# wait for these.
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

# The next call would warn of a future that has failed, unless its value was asked for before.
forget <- function(future) {
  value <- function() future::value(future, stdout = FALSE, signal = FALSE)
  tryCatch(suppressWarnings(if (future::resolved(future)) value()), error = identity)
}

# Of the plans of future itself. A worker of cluster() may be on another machine.
end_worker <- function(future) {
  if (inherits(future, "MultisessionFuture")) {
    worker <- future$workers[[future$node]]
    tools::pskill(worker$session_info$process$pid)
  } else if (inherits(future, "MulticoreFuture")) {
    tools::pskill(future$job$pid)
  }
}

# The names of futures that have come to an end, which are waited for.
finished <- function(active) {
  started <- proc.time()[["elapsed"]]
  repeat {
    done <- vapply(active, function(future) {
      !isFALSE(try_future(future::resolved(future), future))
    }, NA)
    if (any(done)) {
      return(names(active)[done])
    }
    waited <- proc.time()[["elapsed"]] - started
    Sys.sleep(min(max(0.001, waited / 20), 0.1))
  }
}

# The value of `code`, or the error of future itself: a worker was lost. future: what the
# code is about, where it may be such an error.
try_future <- function(code, future = NULL) {
  if (inherits(future, "FutureError")) {
    return(future)
  }
  tryCatch(code, FutureError = function(e) e)
}

# errors ------------------------------------------------------------------------

# value: what a worker gave, which may be why it cannot take part.
check_worker <- function(value) {
  if (!inherits(value, "autosmc_unfit_worker")) {
    return()
  }
  own <- as.character(utils::packageVersion("autosmc"))
  problem <- if (is.null(value$version)) {
    "has no package autosmc"
  } else {
    paste("has version", value$version, "of autosmc, and this session", own)
  }
  abort(
    c(
      "The worker on {value$host} {problem}.",
      "i" = "It looks in {.file {value$paths}}. Install autosmc there, or give the worker
        this session's {.fn .libPaths}."
    ),
    "worker",
    host = value$host,
    paths = value$paths
  )
}

# records: of the islands that came back.
abort_lost <- function(error, records) {
  n <- length(records)
  abort(
    c(
      "A worker was lost {rules$most_tries} times with the same island; {n} island{?s} came
        back.",
      "i" = "What came back is in the error's {.field records}; with {.arg checkpoint} it
        is kept for the next call."
    ),
    "worker",
    parent = error,
    records = records
  )
}
