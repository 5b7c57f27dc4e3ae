# Parallel evaluation of expensive targets: the points of a batch are divided between this process and workers of the
# future package. Used by adapting runs, the scout and the diagnostics.

# Seconds of this process for starting a future and taking its value, as measured.
future_seconds <- 0.005
# Seconds between two checks whether workers are ready.
ready_seconds <- 0.2
# Number of latest batches whose median predicts the delay of workers, so that a single late one has no effect.
n_late <- 5
# Factor for the predicted delay after a batch in which this process did not wait.
less_late <- 0.8

# The sampler with parallel evaluation, for a target that is a function of one point. Results do not depend on where a
# point is evaluated.
over_batches <- function(sampler) {
  if (isFALSE(sampler$target$vectorized) && in_parallel(2)) {
    functions <- user_functions(sampler["target"])
    sampler$evaluators$evaluate <- spread_evaluator(sampler$evaluators$evaluate, functions, sampler$pace)
  }
  sampler
}

# An environment with the state of the workers during a call. first: the futures by which they load the package; asked:
# the time when these were last checked; late: seconds by which the last few shares came later than their points take;
# per_evaluation: seconds for an evaluation in the last adapting run.
new_pace <- function() {
  list2env(
    list(first = NULL, asked = -Inf, is_ready = FALSE, late = 0, per_evaluation = NULL),
    parent = emptyenv()
  )
}

# An evaluator like `evaluate`, a function of (x, gradient), see target_evaluate.R, that shares the points with workers.
# The time for a point is first measured in this process. functions: those of the user that the evaluator calls.
spread_evaluator <- function(evaluate, functions, pace) {
  force(evaluate)
  task <- function(given) if (!is.null(given)) evaluate(given$x, given$gradient)
  # delayed, since the search for what the functions need takes time
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

# The number of points for this process, followed by those for each worker, so that all end at the same time although
# the workers' shares arrive `late` seconds late. Since starting a future takes time, k shares, including that of this
# process, take late + (n per_point - late) / k + (k - 1) future_seconds; k minimises this.
shares <- function(n, per_point, late, n_workers) {
  k <- min(n_workers, n, floor(sqrt(max(0, n * per_point - late) / future_seconds)))
  if (k < 2) {
    return(n)
  }
  own <- round((n + (k - 1) * late / per_point) / k)
  c(own, tabulate(rep_len(seq_len(k - 1), n - own)))
}

# Updates the delay of workers after a batch. took, own: seconds until all shares had arrived, and until this process
# had finished its own; points: seconds that a worker's points take.
learn_lateness <- function(pace, took, own, points) {
  has_waited <- took - own > future_seconds
  late <- if (has_waited) took - points else less_late * stats::median(pace$late)
  pace$late <- utils::tail(c(pace$late, max(0, late)), n_late)
}

# Whether n workers have loaded the package, by an empty task for each. Loading takes a second, during which this
# process does not wait. The check takes a hundredth of a second, and is made only from time to time.
are_ready <- function(pace, n, ask) {
  if (!pace$is_ready && seconds_now() - pace$asked > ready_seconds) {
    if (is.null(pace$first)) {
      pace$first <- lapply(seq_len(n), function(i) try_future(ask()))
    } else if (all(vapply(pace$first, has_ended, NA))) {
      # a lost worker is noticed by its next task
      lapply(pace$first, function(future) check_worker(try_future(future::value(future), future)))
      pace$is_ready <- TRUE
    }
    pace$asked <- seconds_now()
  }
  pace$is_ready
}

# The values at the rows of x, of which the first share is computed here, each other one by a worker. n: their numbers.
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
