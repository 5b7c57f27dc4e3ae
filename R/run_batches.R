# The points of expensive evaluations, shared among processes.

# Seconds of this process that it takes to start a future and to take its value: measured.
future_seconds <- 0.005
# Seconds after which workers are asked again whether they are ready.
ready_seconds <- 0.2
# The last shares of workers that tell how late the next will come: the median of so many is not
# that of a single one that was late by chance.
n_late <- 5
# Lower the lateness estimate by a fifth after an early result.
less_late <- 0.8

# The sampler of a run that tunes: where the target is a function of one point, and a batch
# of points takes long, workers take a share of the points. Each point's value is the same
# wherever it is computed.
over_batches <- function(sampler) {
  if (isFALSE(sampler$target$vectorized) && in_parallel(2)) {
    functions <- user_functions(sampler["target"])
    sampler$evaluators$evaluate <- spread_evaluator(sampler$evaluators$evaluate, functions, sampler$pace)
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

# evaluate: of (x, gradient), see target_evaluate.R. The time that a point takes is measured
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
    if (!is.null(per_point) || nrow(x) < 2) { # a single point is not shared
      return(by_shares(x, gradient))
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
  k <- min(n_workers, n, floor(sqrt(max(0, n * per_point - late) / future_seconds)))
  if (k < 2) {
    return(n)
  }
  own <- round((n + (k - 1) * late / per_point) / k)
  c(own, tabulate(rep_len(seq_len(k - 1), n - own)))
}

# What a batch says of how late the shares of workers come, in seconds from its start: until all were
# there, until this process had done its own, and what the points of a worker take.
learn_lateness <- function(pace, took, own, points) {
  has_waited <- took - own > future_seconds
  late <- if (has_waited) took - points else less_late * stats::median(pace$late)
  pace$late <- utils::tail(c(pace$late, max(0, late)), n_late)
}

# Whether so many workers have loaded what they need. That takes a second, which is not waited
# for: they are asked to compute nothing, and whether they have done it only from time to time,
# since that takes a hundredth of a second.
are_ready <- function(pace, n, ask) {
  if (!pace$is_ready && seconds_now() - pace$asked > ready_seconds) {
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
    function(error) abort_lost(error, "points."),
    meanwhile = function() values[[1]] <<- here(of_share(1), gradient)
  )
  bind_values(values)
}

bind_values <- function(values) {
  list(
    log_density = unlist(lapply(values, `[[`, "log_density")),
    gradient = do.call(rbind, lapply(values, `[[`, "gradient")),
    n_calls = sum(unlist(lapply(values, `[[`, "n_calls")))
  )
}
