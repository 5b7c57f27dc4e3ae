# Work in other processes, under the user's plan of the future package: islands, a future
# each; and the points of expensive evaluations in the runs that tune. Results that have
# arrived are kept; a task whose worker was lost is run again.

# islands -----------------------------------------------------------------------

# The records of islands by their numbers, in this process or by workers. The random
# streams belong to the islands, so the results are the same. f: run_sampler(), or a
# function of the package that returns a part of what it does.
lapply_islands <- function(sampler, indices, path, f = run_sampler) {
  if (pays_for_workers(sampler, length(indices), path)) {
    over_workers(sampler, indices, path, f)
  } else {
    lapply(indices, f, sampler = sampler, path = path, run = "final")
  }
}

# A function, as run_sampler() is one, that gives these records by their numbers: this, or where there
# are workers, one that gives each of theirs once, so that it need not stay with the others.
islands_in_turn <- function(sampler, indices, path) {
  if (!pays_for_workers(sampler, length(indices), path)) {
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

# Whether so many islands are for workers. Where a run has told how long an evaluation takes, not those that
# are done here before workers would have loaded what they need.
pays_for_workers <- function(sampler, n, path) {
  if (!in_parallel(n)) {
    return(FALSE)
  }
  n_evals <- n * sampler$n_particles * (1 + length(path$lambda))
  saved <- sampler$pace$per_evaluation * n_evals * (1 - 1 / min(n, future::nbrOfWorkers()))
  !isTRUE(saved <= rules$loading_seconds)
}

in_parallel <- function(n) {
  n > 1 && isNamespaceLoaded("future") && !inherits(future::plan(), "sequential")
}

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
  give_up <- function(error) abort_lost(error, without_null(records))
  left <- which(vapply(records, is.null, NA))
  spread(left, function(i) send(indices[i]), collect, give_up)
  records
}

# expensive evaluations ---------------------------------------------------------

# The sampler of a run that tunes: where the target is a function of one point, and a batch
# of points takes long, workers take a share of the points. Each point's value is the same
# wherever it is computed.
over_batches <- function(sampler) {
  if (isFALSE(sampler$target$vectorized) && in_parallel(2)) {
    functions <- user_functions(sampler["target"])
    sampler$evaluators$evaluate <- spread_evaluator(
      sampler$evaluators$evaluate, functions, sampler$pace
    )
  }
  sampler
}

# What is known of the workers while a call lasts. first: the futures by which they load what they
# need; asked: when these were started, or looked at; late: by how many seconds the last few shares
# came later than their points take; per_evaluation: seconds, of the last run that tuned.
new_pace <- function() {
  list2env(
    list(first = NULL, asked = -Inf, is_ready = FALSE, late = 0, per_evaluation = NULL),
    parent = emptyenv()
  )
}

# evaluate: of (x, gradient), see target_evaluator(). The time that a point takes is measured
# in this process first.
spread_evaluator <- function(evaluate, functions, pace) {
  force(evaluate)
  task <- function(given) if (!is.null(given)) evaluate(given$x, given$gradient)
  # to look for what the functions need takes time, too: only where something is sent
  delayedAssign("send", sender(task_alone(task, "evaluate"), functions))
  ask <- function() send(NULL)
  per_point <- ended <- NULL
  here <- function(x, gradient) {
    started <- seconds_now()
    value <- evaluate(x, gradient)
    ended <<- seconds_now()
    per_point <<- (ended - started) / nrow(x)
    value
  }
  by_shares <- function(x, gradient) {
    n <- shares(nrow(x), per_point, stats::median(pace$late), future::nbrOfWorkers())
    if (length(n) == 1 || !are_ready(pace, length(n) - 1, ask)) {
      return(here(x, gradient))
    }
    started <- seconds_now()
    value <- evaluate_shares(send, here, x, gradient, n)
    learn_lateness(pace, seconds_now() - started, ended - started, n[2] * per_point)
    value
  }
  function(x, gradient) {
    if (!is.null(per_point)) {
      return(by_shares(x, gradient))
    }
    if (nrow(x) < 2) {
      return(here(x, gradient))
    }
    first <- here(x[1, , drop = FALSE], gradient)
    bind_values(list(first, by_shares(x[-1, , drop = FALSE], gradient)))
  }
}

# How many of n points are computed here, and how many by each of some workers, so that all
# are done at the same time: the shares of the workers come late by so many seconds. To start
# one takes this process some time, too, so that with k shares, this one's among them, it takes
# late + (n per_point - late) / k + (k - 1) future_seconds.
shares <- function(n, per_point, late, n_workers) {
  k <- min(n_workers, n, floor(sqrt(max(0, n * per_point - late) / rules$future_seconds)))
  if (k < 2) {
    return(n)
  }
  own <- round((n + (k - 1) * late / per_point) / k)
  c(own, tabulate(rep_len(seq_len(k - 1), n - own)))
}

# What a batch says of how late the shares of workers come, in seconds from its start: until all were
# there, until this process had done its own, and what the points of a worker take.
learn_lateness <- function(pace, took, own, points) {
  has_waited <- took - own > rules$future_seconds
  late <- if (has_waited) took - points else rules$less_late * stats::median(pace$late)
  pace$late <- utils::tail(c(pace$late, max(0, late)), rules$n_late)
}

# Whether so many workers have loaded what they need. That takes a second, which is not waited
# for: they are asked to compute nothing, and whether they have done it only from time to time,
# since that takes a hundredth of a second.
are_ready <- function(pace, n, ask) {
  if (!pace$is_ready && seconds_now() - pace$asked > rules$ready_seconds) {
    if (is.null(pace$first)) {
      pace$first <- lapply(seq_len(n), function(i) try_future(ask()))
    } else if (all(vapply(pace$first, has_ended, NA))) {
      # one that was lost is found again by what it is asked next
      lapply(pace$first, function(future) check_worker(try_future(future::value(future), future)))
      pace$is_ready <- TRUE
    }
    pace$asked <- seconds_now()
  }
  pace$is_ready
}

# The first share of the rows of x is computed here, each other one by a worker.
evaluate_shares <- function(send, here, x, gradient, n) {
  rows <- split(seq_len(nrow(x)), rep(seq_along(n), n))
  of_share <- function(i) x[rows[[i]], , drop = FALSE]
  values <- vector("list", length(n))
  spread(
    seq_along(n)[-1],
    function(i) send(list(x = of_share(i), gradient = gradient)),
    function(i, value) values[[i]] <<- value,
    abort_lost_share,
    meanwhile = function() values[[1]] <<- here(of_share(1), gradient)
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
# a task was lost too often. meanwhile: what this process does once they are started; then it
# waits for one after another, which is quicker than to ask which are done.
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

# With a share of the points of an evaluation.
abort_lost_share <- function(error) {
  abort("A worker was lost {rules$most_tries} times with the same points.", "worker", parent = error)
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
