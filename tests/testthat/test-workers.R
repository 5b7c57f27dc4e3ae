# Islands in other processes: what is lost is run again, and what cannot work says why.

schedule <- data.frame(lambda = c(0.2, 0.5, 1), step_size = c(0.7, 0.6, 0.5))
n_calls <- nrow(schedule) + 1

run <- function(target, islands = 6, ...) {
  smc_run(target, schedule, n_particles = 32, islands = islands, seed = 1, ...)
}

# The plan stays from test to test, as in a session: starting workers takes seconds. Those
# that die are replaced.
with_workers <- function(code) {
  skip_if_not_installed("future")
  if (!inherits(future::plan(), "multisession")) {
    future::plan(future::multisession, workers = 2)
  }
  code
}

# Writes a line for each call; once, or always, a worker ends itself instead.
deadly <- function(log, die) {
  main <- Sys.getpid()
  target_function(
    function(x) {
      if (Sys.getpid() != main && die()) tools::pskill(Sys.getpid(), 9)
      cat("call\n", file = log, append = TRUE)
      Sys.sleep(0.02)
      -rowSums((x - 1)^2) / 2
    },
    dim = 2, gradient = function(x) 1 - x, vectorized = TRUE
  )
}

test_that("an island whose worker was lost is run again, and no other", {
  skip_on_os("windows")
  log <- tempfile()
  mine <- tempfile() # there, until a worker has died of it
  on.exit(unlink(c(log, mine)))
  target <- deadly(log, function() file.exists(mine) && file.remove(mine))
  alone <- run(target)
  unlink(log)
  file.create(mine)
  dir <- tempfile("runs")
  on.exit(unlink(dir, recursive = TRUE), add = TRUE)
  lost <- with_workers(run(target, checkpoint = dir))
  expect_false(file.exists(mine))
  expect_identical(without_time(lost), without_time(alone))
  # and one for each file, by this process
  expect_length(readLines(log), 6 * n_calls + 6)
  expect_length(list.files(dir, "^final-"), 6)
})

test_that("an island that is lost again and again ends the call, with what there is", {
  skip_on_os("windows")
  log <- tempfile()
  deaths <- tempfile()
  on.exit(unlink(c(log, deaths)))
  always <- function() {
    cat("death\n", file = deaths, append = TRUE)
    TRUE
  }
  error <- with_workers(catch(run(deadly(log, always), islands = 2)))
  # each is tried three times at most
  n_deaths <- length(readLines(deaths))
  expect_true(n_deaths >= 3 && n_deaths <= 6)
  expect_s3_class(error, "autosmc_error_worker")
  expect_s3_class(error, "autosmc_error")
  expect_identical(error$records, list())
  dir <- tempfile("runs")
  on.exit(unlink(dir, recursive = TRUE), add = TRUE)
  # what has come back is there for the next call
  late <- deadly(log, function() file.exists(log) && length(readLines(log)) >= 4 * n_calls)
  error <- with_workers(catch(run(late, checkpoint = dir)))
  expect_s3_class(error, "autosmc_error_worker")
  expect_gt(length(error$records), 0)
  expect_length(list.files(dir, "^final-"), length(error$records))
})

test_that("a worker that is lost with points of an evaluation is no fault of the target", {
  skip_on_os("windows")
  main <- Sys.getpid()
  log_density <- function(x) {
    if (Sys.getpid() != main) tools::pskill(Sys.getpid(), 9)
    Sys.sleep(0.005)
    -sum((x - 1)^2) / 2
  }
  target <- target_function(log_density, 2, gradient = function(x) 1 - x)
  error <- with_workers(catch(
    smc_adapt(target, n_particles = 128, n_steps = 8, rounds = 1, scout = FALSE, seed = 1)
  ))
  expect_s3_class(error, "autosmc_error_worker")
  expect_false(inherits(error, "autosmc_error_target"))
  expect_match(message_of(error), "lost 3 times with the same points")
})

test_that("a worker without this version of the package is an error that says where", {
  skip_if_not_installed("future")
  library <- tempfile("library")
  source <- file.path(tempfile("source"), "autosmc")
  dir.create(library)
  dir.create(source, recursive = TRUE)
  writeLines(
    c("Package: autosmc", "Version: 0.0.1", "Title: T", "Description: D.", "License: MIT"),
    file.path(source, "DESCRIPTION")
  )
  file.create(file.path(source, "NAMESPACE"))
  on.exit(unlink(c(library, source), recursive = TRUE))
  install.packages(source, library, repos = NULL, type = "source", quiet = TRUE)
  libraries <- c(library, .libPaths()) # that of future may be a private one
  old <- future::plan(future::sequential)
  on.exit(future::plan(old), add = TRUE, after = FALSE)
  future::plan(future::cluster, workers = rep("localhost", 2), rscript_libs = libraries)
  error <- catch(run(target_gaussian(2)))
  expect_s3_class(error, "autosmc_error_worker")
  expect_identical(error$host, Sys.info()[["nodename"]])
  expect_true(normalizePath(library) %in% normalizePath(error$paths))
  expect_match(message_of(error), "0.0.1", fixed = TRUE)
  # one that has none at all
  none <- structure(list(host = "far", paths = "/there"), class = "autosmc_unfit_worker")
  error <- catch(get("check_worker", asNamespace("autosmc"))(none))
  expect_match(message_of(error), "far has no package autosmc")
  expect_match(message_of(error), "/there", fixed = TRUE)
  expect_identical(error$paths, "/there")
})

test_that("after an error, or an interrupt, the workers are there for the next call", {
  log <- tempfile()
  on.exit(unlink(log))
  calm <- deadly(log, function() FALSE)
  alone <- run(calm)
  failing <- target_function(
    function(x) if (x[1] > 1) stop("no more") else -sum(x^2) / 2, 2,
    gradient = function(x) -x
  )
  interrupting <- target_function(
    function(x) {
      cat(".", file = log, append = TRUE)
      warning("now")
      -sum(x^2) / 2
    }, 2,
    gradient = function(x) -x
  )
  with_workers({
    expect_s3_class(catch(run(failing)), "autosmc_error_target")
    expect_identical(without_time(run(calm)), without_time(alone))
    # as if it came while this process waits for the others
    interrupt <- structure(list(), class = c("interrupt", "condition"))
    caught <- tryCatch(
      withCallingHandlers(run(interrupting), warning = function(w) stop(interrupt)),
      interrupt = identity
    )
    expect_identical(caught, interrupt)
    expect_no_warning(again <- run(calm))
    expect_identical(without_time(again), without_time(alone))
  })
})

test_that("an interrupt ends the workers, which may have hours to go", {
  skip_on_os("windows")
  log <- tempfile()
  on.exit(unlink(log))
  main <- Sys.getpid()
  workers <- function() as.numeric(unique(readLines(log)))
  long <- target_function(
    function(x) {
      cat(Sys.getpid(), "\n", file = log, append = TRUE)
      if (length(workers()) == 2) {
        Sys.sleep(0.5) # until the main process waits
        tools::pskill(main, tools::SIGINT)
      }
      Sys.sleep(60)
      0
    }, 2,
    gradient = function(x) -x
  )
  caught <- with_workers(tryCatch(run(long), interrupt = identity))
  expect_s3_class(caught, "interrupt")
  is_alive <- function() tools::pskill(workers(), 0)
  expect_length(workers(), 2)
  for (i in 1:1000) if (any(is_alive())) Sys.sleep(0.01) else break
  expect_false(any(is_alive()))
})

test_that("a warning of the target is heard once, not once a worker", {
  warns <- target_function(
    function(x) {
      warning("mind the gap")
      -sum(x^2) / 2
    }, 2,
    gradient = function(x) -x
  )
  warnings <- with_workers(capture_warnings(run(warns, islands = 4)))
  expect_identical(warnings, "mind the gap")
})

test_that("what was kept is not sent to workers again", {
  dir <- tempfile("runs")
  log <- tempfile()
  on.exit(unlink(c(dir, log), recursive = TRUE))
  target <- deadly(log, function() FALSE)
  three <- run(target, 3, checkpoint = dir)
  unlink(log)
  six <- with_workers(run(target, 6, checkpoint = dir))
  # four particles are compared for each of three, and kept for each of the others
  expect_length(readLines(log), 3 + 3 * (n_calls + 1))
  expect_identical(without_time(six), without_time(run(target, 6)))
  # by their numbers, and replicates
  pieces <- with_workers(list(smc_islands(three, 4:6), smc_replicate(three, 3, seed = 1)))
  expect_identical(without_time(smc_combine(three, pieces[[1]])), without_time(six))
  expect_identical(pieces[[2]]$log_z, six$islands$log_z[1:3])
})

test_that("data of a closure are sent once", {
  closure <- local({
    y <- rnorm(1e6) # 8 MB
    target_function(
      function(x) -sum((x - mean(y))^2) / 2, 2,
      gradient = function(x) mean(y) - x
    )
  })
  old <- options(future.globals.maxSize = 10 * 2^20)
  on.exit(options(old))
  fit <- with_workers(run(closure, islands = 2))
  expect_identical(without_time(fit)$islands, without_time(run(closure, islands = 2))$islands)
})

test_that("points are shared so that all are done at the same time, as far as it pays", {
  shares <- internal("shares")
  each <- future_seconds
  for (n in c(2, 7, 64, 1000)) {
    for (per_point in c(1e-4, 1e-3, 0.1, 10)) {
      for (late in c(0, 0.005, 0.05, 3)) {
        given <- shares(n, per_point, late, 8)
        expect_equal(sum(given), n)
        expect_true(all(given > 0))
        others <- given[-1]
        if (length(others) > 0) {
          expect_lte(diff(range(others)), 1)
          # no point too many here, and none too few
          expect_lte(abs(per_point * (given[1] - mean(others)) - late), per_point * 1.5)
        }
        # as fast as any number of workers, but for whole points
        takes <- function(k) if (k == 1) n * per_point else late + (n * per_point - late) / k + (k - 1) * each
        fastest <- min(vapply(seq_len(min(8, n)), takes, 0))
        expect_lte(takes(length(given)), fastest + max(2 * each, 0.5 * fastest))
      }
    }
  }
  expect_equal(shares(100, 0, 0, 8), 100)
  expect_equal(shares(1, 100, 0, 8), 1)
})

test_that("how late shares come is learnt from batch to batch", {
  pace <- internal("new_pace")()
  # of 128 points that take 1 ms each: the seconds that a batch takes, where shares come so late
  batch <- function(late) {
    n <- internal("shares")(128, 0.001, median(pace$late), 2)
    own <- n[1] * 0.001
    took <- if (length(n) == 1) own else max(own, late + n[2] * 0.001)
    if (length(n) > 1) internal("learn_lateness")(pace, took, own, n[2] * 0.001)
    took
  }
  for (late in c(0.045, 0.005, 0.045)) {
    took <- replicate(40, batch(late))
    expect_lt(mean(took[21:40]), 1.1 * (0.128 + late) / 2)
  }
  # one that is late by chance changes nothing
  before <- batch(0.045)
  batch(1)
  expect_lt(batch(0.045), 1.1 * before)
  # where shares come too late nothing is sent any more
  expect_equal(replicate(40, batch(10))[21:40], rep(0.128, 20))
})

test_that("islands that are done before workers have begun are not for them", {
  sampler <- list(n_particles = 1000, pace = internal("new_pace")())
  pays <- function(n = 8) internal("pays_for_workers")(sampler, n, list(lambda = 1:9 / 9))
  with_workers({
    expect_true(pays()) # nothing is known
    expect_false(pays(1))
    # 80,000 evaluations, of which half are saved
    begin <- loading_seconds
    sampler$pace$per_evaluation <- 0.9 * begin / 40000
    expect_false(pays())
    sampler$pace$per_evaluation <- 1.1 * begin / 40000
    expect_true(pays())
  })
})

test_that("workers are asked for points when they have answered, and not waited for before", {
  are_ready <- internal("are_ready")
  pace <- internal("new_pace")()
  n_asked <- 0
  ask <- function() {
    n_asked <<- n_asked + 1
    future::future(NULL, seed = NULL)
  }
  with_workers({
    expect_false(are_ready(pace, 2, ask))
    expect_equal(n_asked, 2)
    future::value(pace$first)
    pace$asked <- -Inf # it would not look again at once
    expect_true(are_ready(pace, 2, ask))
    expect_true(are_ready(pace, 2, ask))
  })
  expect_equal(n_asked, 2)
})

# Of 10 ms a point. Which process computed each is in `log`.
test_that("workers compute their shares of a batch, with the same values and errors", {
  log <- tempfile()
  on.exit(unlink(log))
  evaluate <- function(x, gradient) {
    cat(rep(Sys.getpid(), nrow(x)), "", file = log, append = TRUE)
    Sys.sleep(0.01 * nrow(x))
    if (Sys.getpid() != main && any(x < 0)) stop("not here")
    list(log_density = rowSums(x), gradient = if (gradient) x, n_calls = nrow(x))
  }
  main <- Sys.getpid()
  pace <- internal("new_pace")()
  pace$is_ready <- TRUE
  with_workers({
    spread <- internal("spread_evaluator")(evaluate, list(), pace)
    x <- matrix(as.double(1:130), 65)
    values <- spread(x, TRUE)
    by <- scan(log, quiet = TRUE)
    expect_identical(values, list(log_density = rowSums(x), gradient = x, n_calls = 65L))
    # the first point tells what a point takes; nothing is known yet of how late shares come
    expect_length(by, 65)
    expect_equal(sum(by != main), 32)
    expect_null(spread(x, FALSE)$gradient)
    expect_error(spread(-x, TRUE), "not here")
    expect_identical(spread(x, TRUE), values) # the plan has come back
  })
})

# A call of 10 ms, so that workers take their shares. Who evaluated what is in `log`.
test_that("expensive evaluations of the runs that tune are shared, with the same results", {
  log <- tempfile()
  on.exit(unlink(log))
  slow <- target_function(
    function(x) {
      cat(Sys.getpid(), "\n", file = log, append = TRUE)
      Sys.sleep(0.01)
      -sum((x - 1)^2) / 2
    }, 2,
    gradient = function(x) 1 - x
  )
  adapt <- function(target) {
    smc_adapt(target,
      n_particles = 64, n_steps = 2, rounds = 0, scout = FALSE, whiten = FALSE,
      kernel = "lmc", tuner = tuner_kl(8), seed = 1
    )
  }
  # however long it takes them to load the package
  with_ready_workers <- function(code) {
    with_workers(with_internals(list(are_ready = function(...) TRUE), code))
  }
  alone <- adapt(slow)
  n <- length(readLines(log))
  unlink(log)
  shared <- with_ready_workers(adapt(slow))
  expect_identical(without_time(shared), without_time(alone))
  by <- table(readLines(log))
  expect_equal(sum(by), n)
  # of the first batch, of 64 points, all but the first are shared evenly
  elsewhere <- sum(by[names(by) != paste(Sys.getpid(), "")])
  expect_gte(elsewhere, 31)
  # an error there is the error that it would have been here
  main <- Sys.getpid()
  fails <- target_function(
    function(x) {
      Sys.sleep(0.01)
      if (Sys.getpid() != main) stop("not here")
      -sum(x^2) / 2
    }, 2,
    gradient = function(x) -x
  )
  error <- with_ready_workers(catch(adapt(fails)))
  expect_s3_class(error, "autosmc_error_target")
  expect_identical(error$step, 0L)
  expect_match(message_of(error$parent), "not here")
})

if (requireNamespace("future", quietly = TRUE)) {
  future::plan(future::sequential)
}
