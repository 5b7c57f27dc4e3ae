# Where the time goes, as ratios that are measured in one session, each pair in turn (medians). Run it
# on a machine that does nothing else, with one thread of BLAS (OPENBLAS_NUM_THREADS=1). A row of
# results/cost.csv is a ratio of `seconds` over `beside`:
#
#   share     a run with a fixed schedule: of a target that costs nothing, over that of the target
#   floor     the same run: of the target, over its evaluations and the normals alone, in C
#   threads   runs with a fixed schedule: by one thread, over by two
#   cores     the same runs by one thread, or calls of the same function: of one process alone, over those
#             of two at once, which share nothing: what two could gain on this machine at most
#   workers   fits by the defaults, of an R function that takes 1 or 0.1 ms a point: by this process,
#             over by two workers of the future package, which are there already, as R starts them
#             and with connections that do not wait (see vignette("large"))
#   version   processor time of whole default fits: of the installed package, over that of an older
#             version in a library of its own; and the same an evaluation, since an older version
#             does not make as many
#
#   Rscript bench/cost.R [own] [threads] [workers] [version --old LIBRARY]
#
# All of them where none is named; `own` is share and floor, and `threads` cores, too.
source("bench/common.R")

args <- commandArgs(TRUE)
old_library <- option_of(args, "--old", NULL)

cost_row <- function(measure, case, times) {
  data.frame(measure, case, seconds = times[1], beside = times[2], ratio = times[1] / times[2])
}

schedules <- list(
  lmc = data.frame(lambda = schedule_power(64), step_size = 0.001),
  klmc = data.frame(lambda = schedule_power(64), step_size = 0.02, refresh_rate = 0.5)
)

# Without the time that a warning takes to be put into words: the target that costs nothing gives cause
# for some, and they would be a third of its runs by KLMC.
elapsed <- function(target, schedule, seed, n = 1024) {
  gc()
  suppressWarnings(smc_run(target, schedule, n_particles = n, seed = seed))$seconds
}

# The mean of five: the clock has milliseconds, and a run may take no more than twenty.
mean_of_five <- function(f) mean(replicate(5, f()))

# the sampler's own work ----------------------------------------------------------

load_own_work <- function() {
  sources <- c("bench/free_target.c", "bench/normals_alone.c", "src/normals.c")
  load_routines("own_work", sources, include = normalizePath("src"))
}

seconds_of_normals <- function(dim, n_steps, n = 1024) {
  system.time(.Call("normals_alone", dim, n, n_steps))[["elapsed"]]
}

own <- data.frame(name = rep(c("sonar", "brownian"), each = 2), kernel = names(schedules))

# The target's evaluations are what a run takes longer than one of the target that costs nothing.
own_rows <- function(name, kernel) {
  target <- targets[[name]]()
  schedule <- schedules[[kernel]]
  free <- target_native("free_target", "own_work", dim = target$dim)
  times <- vapply(1:21, function(seed) {
    c(
      run = mean_of_five(function() elapsed(target, schedule, seed)),
      free = mean_of_five(function() elapsed(free, schedule, seed)),
      normals = mean_of_five(function() seconds_of_normals(target$dim, nrow(schedule) + 1))
    )
  }, c(run = 0, free = 0, normals = 0))
  median_of <- apply(times, 1, median)
  floor <- median_of["run"] - median_of["free"] + median_of["normals"]
  case <- paste(name, kernel)
  rbind(
    cost_row("share", case, unname(median_of[c("free", "run")])),
    cost_row("floor", case, unname(c(median_of["run"], floor)))
  )
}

# Where f() returns the seconds that it took: what it takes on the whole when two processes do it at once.
by_two_at_once <- function(f) 1 / sum(1 / unlist(parallel::mclapply(1:2, function(core) f(), mc.cores = 2)))

# threads -------------------------------------------------------------------------

threaded <- list(
  sonar = list(target = target_sonar, n = 1024, steps = 64, runs = 12),
  pines = list(target = target_pines, n = 1024, steps = 8, runs = 3),
  gaussian_100 = list(target = function() target_gaussian(100), n = 16384, steps = 64, runs = 4),
  # of a short run R's own work is a larger part: it collects its memory twice
  gaussian_100_short = list(
    target = function() target_gaussian(100), n = 16384, steps = 16, runs = 12
  )
)

# Seconds of a run by so many threads: the mean of some in a row, after two that are not counted. In
# a process of its own, since where its memory lies makes a difference, too.
time_runs <- function(name, n_threads) {
  case <- threaded[[name]]
  options(autosmc.threads = n_threads)
  target <- case$target()
  schedule <- data.frame(
    lambda = schedule_power(case$steps), step_size = 0.01, refresh_rate = 0.5
  )
  run <- function(seed) {
    suppressWarnings(smc_run(target, schedule, n_particles = case$n, seed = seed))
  }
  for (seed in 1:2) run(seed)
  cat(system.time(for (seed in seq_len(case$runs)) run(seed))[["elapsed"]] / case$runs, "\n")
}

threads_rows <- function(name) {
  process <- function(n_threads) numbers_by("cost.R", c("--runs", name, "--by", n_threads))
  times <- vapply(1:7, function(i) {
    both <- by_two_at_once(function() process(1))
    c(process(1), process(2), both)
  }, double(3))
  medians <- apply(times, 1, median)
  rbind(
    cost_row("threads", name, medians[c(1, 2)]),
    cost_row("cores", name, medians[c(1, 3)])
  )
}

# workers ---------------------------------------------------------------------------

# An R function that counts to n_turns each time.
slow_log_density <- function(n_turns) {
  force(n_turns)
  function(x) {
    for (i in seq_len(n_turns)) NULL
    -sum(x^2) / 2
  }
}

turns_of <- function(milliseconds) {
  n_turns <- 2e7
  log_density <- slow_log_density(n_turns)
  log_density(0) # is compiled
  round(n_turns * milliseconds / 1000 / system.time(log_density(0))[["elapsed"]])
}

# Seconds of a fit; the plan's workers are there before.
seconds_of_fit <- function(target, seed) {
  for (future in lapply(1:2, future::future)) future::value(future)
  system.time(suppressWarnings(smc(target, seed = seed)))[["elapsed"]]
}

workers_rows <- function(milliseconds, connection, case) {
  options(socketOptions = if (connection == "no delay") "no-delay")
  log_density <- slow_log_density(turns_of(milliseconds))
  target <- target_function(log_density, 3, gradient = function(x) -x)
  times <- vapply(1:3, function(seed) {
    future::plan("sequential")
    loops <- seconds_of_loops(log_density, ceiling(2000 / milliseconds))
    alone <- seconds_of_fit(target, seed)
    future::plan("multisession", workers = 2)
    c(alone, seconds_of_fit(target, seed), loops)
  }, double(4))
  future::plan("sequential")
  medians <- apply(times, 1, median)
  rbind(cost_row("workers", case, medians[1:2]), cost_row("cores", case, medians[3:4]))
}

# Seconds of n calls by one process alone, and by two at once.
seconds_of_loops <- function(log_density, n) {
  loop <- function() system.time(for (i in seq_len(n)) log_density(0))[["elapsed"]]
  c(loop(), by_two_at_once(loop))
}

on_workers <- expand.grid(
  milliseconds = c(1, 0.1), connection = c("delay", "no delay"), stringsAsFactors = FALSE
)
on_workers$case <- paste(on_workers$milliseconds, "ms", on_workers$connection)

# versions --------------------------------------------------------------------------

fitted <- list(
  gaussian_10 = function() target_gaussian(10), funnel = target_funnel,
  brownian = target_brownian, gaussian_100 = function() target_gaussian(100),
  sonar = target_sonar
)

# Processor seconds and evaluations of a fit, the means of five, after two that are not counted. Of a
# single short one half or more would be whether R has just collected its memory; and before it does so
# for the first time, pages of memory that are new take as long as the fit.
time_fits <- function(name) {
  target <- fitted[[name]]()
  for (seed in 6:7) suppressWarnings(smc(target, seed = seed))
  evals <- 0
  time <- system.time(for (seed in 1:5) {
    evals <- evals + sum(suppressWarnings(smc(target, seed = seed))$runs$n_target_evals)
  })
  cat(sum(time[1:2]) / 5, evals / 5, "\n")
}

version_rows <- function(name) {
  fits_by <- function(library) numbers_by("cost.R", c("--fits", name), library)
  both <- vapply(1:3, function(i) c(fits_by(NULL), fits_by(old_library)), double(4))
  medians <- apply(both, 1, median)
  each <- apply(both[c(1, 3), ] / both[c(2, 4), ], 1, median)
  rbind(
    cost_row("version", name, medians[c(1, 3)]),
    cost_row("version per evaluation", name, each)
  )
}

rows_of <- list(
  own = function() {
    load_own_work()
    Map(own_rows, own$name, own$kernel)
  },
  threads = function() lapply(names(threaded), threads_rows),
  workers = function() do.call(Map, c(workers_rows, on_workers)),
  version = function() if (!is.null(old_library)) lapply(names(fitted), version_rows)
)
key <- list(
  measure = c("share", "floor", "threads", "cores", "workers", "version", "version per evaluation"),
  case = unique(c(paste(own$name, own$kernel), names(threaded), on_workers$case, names(fitted)))
)

if ("--fits" %in% args) {
  time_fits(option_of(args, "--fits", NULL))
} else if ("--runs" %in% args) {
  time_runs(option_of(args, "--runs", NULL), as.integer(option_of(args, "--by", NULL)))
} else {
  chosen <- intersect(names(rows_of), args)
  if (length(chosen) == 0) chosen <- names(rows_of)
  cat("BLAS:", extSoftVersion()[["BLAS"]], "\n")
  for (name in chosen) {
    rows <- do.call(rbind, rows_of[[name]]())
    if (!is.null(rows)) keep_rows(rows, "cost", key)
  }
}
