# Runs that are kept, and found again: a call that was cut off is the call that was not.

# A call in a process of its own, which may be killed at one of its evaluations of the
# target (`die_at`), or as it writes a file (`die_writing`). The fit is saved as `out`. The process is forked, as it
# is there in milliseconds.
script <- quote({
  calls <- written <- 0
  die <- function() tools::pskill(Sys.getpid(), 9)
  target <- target_function(function(x) {
    calls <<- calls + 1
    if (calls == job$die_at) die()
    -rowSums((x - 1)^2) / 2 - rowSums(x^4) / 10
  }, 2, gradient = function(x) 1 - x - 0.4 * x^3, vectorized = TRUE)
  write_half <- function(bytes, path) {
    written <<- written + 1
    dies <- written == job$die_writing
    connection <- file(path, "wb")
    writeBin(if (dies) head(bytes, length(bytes) / 2) else bytes, connection)
    close(connection)
    if (dies) die()
  }
  assignInNamespace("write_whole", write_half, "autosmc")
  set.seed(job$from)
  fit <- do.call(smc, c(list(target), job$arguments))
  saveRDS(list(fit = fit, calls = calls, next_number = runif(1)), paste0(job$out, ".part"))
  file.rename(paste0(job$out, ".part"), job$out) # which is there when it is whole
})

replaced_by <- function(x, by) {
  x[names(by)] <- by
  x
}
arguments <- function(...) {
  defaults <- list(n_particles = 64, n_steps = 6, rounds = 1, islands = 5, max_evals = 1e6)
  replaced_by(defaults, list(...))
}
start <- function(dir, ..., die_at = 0, die_writing = 0, from = 1, wait = TRUE) {
  out <- tempfile("out")
  job <- list2env(list( # an environment: no part of the target
    arguments = arguments(checkpoint = dir, ...), die_at = die_at, die_writing = die_writing, out = out, from = from
  ))
  child <- parallel::mcparallel(
    {
      assign("job", job, globalenv())
      eval(script, globalenv())
    },
    silent = TRUE
  )
  if (wait) suppressWarnings(parallel::mccollect(child)) # that a killed one has no result
  out
}
result_of <- function(out) if (file.exists(out)) readRDS(out)

calls <- 0
target <- target_function(function(x) {
  calls <<- calls + 1
  -rowSums((x - 1)^2) / 2 - rowSums(x^4) / 10
}, 2, gradient = function(x) 1 - x - 0.4 * x^3, vectorized = TRUE)
here <- function(..., of = target) {
  calls <<- 0
  suppressWarnings(do.call(smc, c(list(of), replaced_by(arguments(), list(...)))))
}
sums <- function(dir) tools::md5sum(sort(list.files(dir, full.names = TRUE)))
new_dir <- function() tempfile("runs")

# What a file holds, or its bytes; and the file with something else in it, and the right hash.
entry_of <- function(x) internal("read_entry")(if (is.raw(x)) x else readBin(x, "raw", file.size(x)))
sealed <- function(entry) {
  body <- if (is.raw(entry)) entry else serialize(entry, NULL, xdr = FALSE)
  c(internal("entry_mark"), charToRaw(internal("hash_of")(body)), body)
}
edit_entry <- function(file, edit) writeBin(sealed(edit(entry_of(file))), file)

# Twenty processes are killed, some of them as they write a file.
test_that("a call that is killed again and again comes to the same, bit for bit", {
  skip_on_os("windows")
  killed <- 0
  for (seed in list(7, NULL)) {
    dir <- new_dir()
    started <- function(...) start(..., seed = seed, islands = 20)
    whole <- result_of(started(new_dir(), from = 3))
    deaths <- c(3, 40, 30, 15, 15)
    for (i in seq_along(deaths)) {
      expect_null(result_of(started(dir, from = 2 + i, die_at = deaths[i])))
      expect_null(result_of(started(dir, from = 2 + i, die_writing = 2)))
      killed <- killed + 2
    }
    last <- result_of(started(dir, from = 3))
    expect_identical(without_time(last$fit), without_time(whole$fit))
    # R's generator is where it would have been
    expect_identical(last$next_number, whole$next_number)
    expect_lt(last$calls, whole$calls)
    expect_true(any(grepl(".part-", list.files(dir), fixed = TRUE)))
    unlink(dir, recursive = TRUE)
  }
  expect_identical(killed, 20)
})

test_that("all of a call is kept: made again it only compares", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  plain <- here(seed = 1)
  n_plain <- calls
  kept <- here(seed = 1, checkpoint = dir)
  expect_identical(without_time(kept), without_time(plain))
  files <- sums(dir)
  # one evaluation for each file but that of the seed
  expect_equal(calls, n_plain + length(files) - 1)
  again <- here(seed = 1, checkpoint = dir)
  # the times of the runs are those of the first call
  of_call <- c("call", "seconds")
  expect_identical(again[setdiff(names(again), of_call)], kept[setdiff(names(kept), of_call)])
  # and one for the diagnostic of edges, four for that of what is far out, two for rays, and one for each of the two
  # parts of the four ends, of every pass
  n_passes <- sum(again$runs$run == "final")
  expect_equal(calls, length(files) - 1 + (5 + 2 + 8) * n_passes)
  expect_identical(sums(dir), files)
  # the seed is found too, and R's generator is drawn from as ever
  set.seed(1)
  runif(1)
  after <- .Random.seed
  set.seed(1)
  expect_identical(here(checkpoint = dir)$estimates, kept$estimates)
  expect_identical(.Random.seed, after)
})

test_that("the halves and smc_extend() keep their runs too", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  adapt <- function(...) {
    calls <<- 0
    smc_adapt(target, n_particles = 64, n_steps = 6, rounds = 1, seed = 1, ...)
  }
  adapted <- adapt(checkpoint = dir)
  expect_identical(without_time(adapt(checkpoint = dir)), without_time(adapted))
  expect_lt(calls, 10)
  dirs <- c(dir, new_dir())
  on.exit(unlink(dirs, recursive = TRUE))
  run <- function(islands, ...) {
    calls <<- 0
    calmly(smc_run(target, adapted$schedule,
      reference = adapted$reference, n_particles = 64, seed = 1, islands = islands, ...
    ))
  }
  an_island <- nrow(adapted$schedule) + 1
  three <- run(3, checkpoint = dirs[2])
  # more islands than before: those that there are are not run again
  five <- run(5, checkpoint = dirs[2])
  expect_equal(calls, 3 + 2 * (an_island + 1))
  expect_identical(without_time(five), without_time(run(5)))
  expect_identical(
    without_time(smc_extend(three, islands = 6, checkpoint = dirs[2])), without_time(run(6))
  )
  calls <<- 0
  smc_extend(five, islands = 6, checkpoint = dirs[2])
  expect_equal(calls, 1)
})

test_that("what is of another run is an error that names it, and stays as it is", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  here(seed = 1, checkpoint = dir)
  files <- sums(dir)
  differs <- function(...) {
    error <- catch(here(..., checkpoint = dir))
    expect_s3_class(error, "autosmc_error_mismatch")
    expect_s3_class(error, "autosmc_error")
    expect_identical(sums(dir), files)
    error$differs
  }
  expect_identical(differs(seed = 2), "seed")
  expect_true("n_particles" %in% differs(seed = 1, n_particles = 128))
  expect_true("kernel" %in% differs(seed = 1, kernel = kernel_lmc()))
  expect_identical(differs(seed = 1, n_steps = 7), "schedule")
  expect_identical(differs(seed = 1, resampling = "systematic"), "resampling")
  expect_identical(differs(seed = 1, ess_threshold = 0.6), "ess_threshold")
  expect_identical(differs(seed = 1, tuner = tuner_kl(32)), "tuner")
  named <- target
  named$names <- c("a", "b")
  expect_identical(differs(seed = 1, of = named), "variables")
  # other data
  other <- target_function(
    function(x) -rowSums((x - 1)^2) / 2.001, 2,
    gradient = function(x) (1 - x) / 1.001, vectorized = TRUE
  )
  expect_identical(differs(seed = 1, of = other), "target")
  # another version, and another run's file
  file <- file.path(dir, "adapt-0.smc")
  edit_entry(file, function(entry) {
    entry$settings$version <- "0.0.1"
    entry
  })
  files <- sums(dir)
  expect_identical(differs(seed = 1), "version")
  file.copy(file.path(dir, "seed.smc"), file, overwrite = TRUE)
  files <- sums(dir)
  expect_true("run" %in% differs(seed = 1))
})

test_that("a reference of R functions counts by its code", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  wide <- function(sd) {
    force(sd)
    reference_function(
      function(n) matrix(rnorm(2 * n, 0, sd), n), function(x) sum(dnorm(x, 0, sd, log = TRUE)),
      gradient = function(x) -x / sd^2
    )
  }
  schedule <- data.frame(lambda = c(0.3, 1), step_size = 0.4)
  run <- function(reference) {
    calmly(smc_run(target, schedule,
      n_particles = 32, islands = 2, reference = reference, seed = 1, checkpoint = dir
    ))
  }
  kept <- run(wide(2))
  expect_identical(without_time(run(wide(2)))$islands, without_time(kept)$islands)
  error <- catch(run(reference_gaussian()))
  expect_identical(error$differs, "reference")
})

test_that("a file that was cut short is put aside, and its run made again", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  kept <- here(seed = 1, checkpoint = dir)
  file <- file.path(dir, "final-2.smc")
  bytes <- readBin(file, "raw", 1e6)
  for (n in c(0, 10, length(bytes) - 1)) {
    writeBin(head(bytes, n), file)
    warnings <- capture_warnings(
      again <- calmly(do.call(smc, c(list(target), arguments(seed = 1, checkpoint = dir))))
    )
    expect_length(warnings, 1)
    expect_match(warnings, "is damaged and was renamed")
    expect_identical(without_time(again), without_time(kept))
    expect_identical(file.size(paste0(file, ".damaged")), as.numeric(n))
    expect_identical(entry_of(file)$settings, entry_of(bytes)$settings)
  }
})

test_that("where nothing can be written the run goes on, and says so once", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  # the folder is gone as soon as the run has begun, and a file is in its place
  spoils <- target_function(function(x) {
    if (dir.exists(dir)) {
      unlink(dir, recursive = TRUE)
      file.create(dir)
    }
    -rowSums((x - 1)^2) / 2 - rowSums(x^4) / 10
  }, 2, gradient = function(x) 1 - x - 0.4 * x^3, vectorized = TRUE)
  warnings <- capture_warnings(
    fit <- calmly(do.call(smc, c(list(spoils), arguments(seed = 1, checkpoint = dir))))
  )
  expect_length(warnings, 1)
  expect_match(warnings, "Nothing can be written")
  expect_identical(fit$estimates, here(seed = 1)$estimates)
  # from the first file, as in a folder that is read-only
  full <- list(write_whole = function(bytes, file) stop("no room"))
  warnings <- with_internals(full, capture_warnings(
    calmly(do.call(smc, c(list(target), arguments(seed = 1, checkpoint = new_dir()))))
  ))
  expect_length(warnings, 1)
  expect_bad(here(checkpoint = file.path(dir, "below")), "checkpoint")
  for (bad in list(1, "", NA, c("a", "b"))) {
    expect_bad_undrawn(smc(target, checkpoint = bad), "checkpoint")
  }
})

# A process that may write files of 4 kB at most, where a longer one ends as on a full disk.
test_that("a file for which there is no room is not there, and the run goes on", {
  skip_on_os("windows")
  dir <- new_dir()
  code <- tempfile("code")
  on.exit(unlink(c(dir, code), recursive = TRUE))
  writeLines(c(
    "library(autosmc)", "heard <- c()",
    deparse(bquote(fit <- withCallingHandlers(
      do.call(smc, c(list(target_gaussian(2, mean = 1)), .(arguments(seed = 1, checkpoint = dir)))),
      warning = function(w) {
        heard <<- c(heard, class(w)[1])
        invokeRestart("muffleWarning")
      }
    ))),
    "cat(heard, format(fit$log_z, digits = 17))"
  ), code)
  said <- system2("sh", c("-c", shQuote(sprintf(
    "trap '' XFSZ; ulimit -f 8; exec %s --no-echo %s", file.path(R.home("bin"), "Rscript"), code
  ))),
  stdout = TRUE, env = paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep))
  )
  full <- here(seed = 1, of = target_gaussian(2, mean = 1))
  expect_identical(said, paste("autosmc_warning_checkpoint", format(full$log_z, digits = 17)))
  # what fitted is there, and is whole
  expect_setequal(list.files(dir), c("scout.smc", "seed.smc"))
  again <- here(seed = 1, of = target_gaussian(2, mean = 1), checkpoint = dir)
  expect_identical(again$estimates, full$estimates)
})

test_that("two processes in one folder are harmless", {
  skip_on_os("windows")
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  alone <- result_of(start(new_dir(), seed = 1))$fit
  outs <- c(start(dir, seed = 1, wait = FALSE), start(dir, seed = 1, wait = FALSE))
  for (i in 1:600) if (all(file.exists(outs))) break else Sys.sleep(0.1)
  for (out in outs) expect_identical(result_of(out)$fit$estimates, alone$estimates)
  again <- result_of(start(dir, seed = 1))$fit
  expect_identical(without_time(again), without_time(alone))
})

test_that("a file that a full disk has cut off is no file", {
  skip_if_not(file.exists("/dev/full"), "there is no device that is always full")
  expect_error(internal("write_whole")(raw(10), "/dev/full"), "not complete")
})

# damage, and what was not written by the package -------------------------------

schedule <- data.frame(lambda = c(0.3, 1), step_size = 0.4)
run_in <- function(dir, ..., of = target) {
  calmly(smc_run(of, schedule, n_particles = 16, islands = 2, seed = 1, checkpoint = dir, ...))
}
smc_in <- function(dir) calmly(do.call(smc, c(list(target), arguments(seed = 1, checkpoint = dir))))
results <- function(fit) fit[c("estimates", "particles", "log_weights", "moments", "seed")]
bytes_of <- function(file) readBin(file, "raw", file.size(file))

# The file with other bytes, for as long as `code` takes.
with_bytes <- function(file, bytes, code) {
  whole <- bytes_of(file)
  on.exit({
    unlink(paste0(file, ".damaged"))
    writeBin(whole, file)
  })
  writeBin(bytes, file)
  code
}

test_that("a flipped bit is damage, 300 of 300", {
  dirs <- replicate(2, new_dir())
  on.exit(unlink(dirs, recursive = TRUE))
  verbs <- list(run_in, smc_in)
  kept <- Map(function(verb, dir) results(verb(dir)), verbs, dirs)
  for (i in 1:300) {
    k <- if (i %% 6 == 0) 2 else 1
    files <- list.files(dirs[k], full.names = TRUE)
    file <- files[i %% length(files) + 1]
    bytes <- bytes_of(file)
    at <- ceiling(i / 300 * length(bytes))
    bytes[at] <- xor(bytes[at], as.raw(2^(i %% 8)))
    warnings <- with_bytes(file, bytes, capture_warnings(again <- verbs[[k]](dirs[k])))
    expect_length(warnings, 1)
    expect_match(warnings, "is damaged and was renamed")
    expect_identical(results(again), kept[[k]])
  }
})

test_that("what does not belong in an entry is no part of a fit", {
  dir <- new_dir()
  pwned <- tempfile()
  on.exit(unlink(c(dir, pwned), recursive = TRUE))
  kept <- results(smc_in(dir))
  evil <- function(...) file.create(pwned)
  code <- sprintf("{file.create('%s')}", pwned)
  n_tried <- 0
  tries <- function(name, edit) {
    n_tried <<- n_tried + 1
    file <- file.path(dir, paste0(name, ".smc"))
    result <- with_bytes(file, sealed(edit(entry_of(file))), catch(suppressWarnings(smc_in(dir))))
    if (inherits(result, "smc_fit")) {
      expect_identical(results(result), kept)
    } else {
      expect_s3_class(result, "autosmc_error")
    }
    expect_false(file.exists(pwned), info = c(name, deparse(edit)))
  }
  at <- function(...) {
    path <- c(...)
    function(value) function(entry) {
      entry[[path]] <- value
      entry
    }
  }
  odd <- list(NULL, code, evil, quote(evil()), globalenv(), NaN, 1:3, matrix(0, 3, 3), list(a = 1))
  for (value in odd) {
    tries("final-2", at("value", "coordinates")(value))
    tries("final-2", at("settings", "resampling")(value))
    tries("adapt-0", at("value", "steps")(value))
    tries("scout", at("value", "normals")(value))
    tries("bridge-1-5-1", at("value")(value))
    tries("seed", at("value")(value))
  }
  edits_of_numbers <- list(
    function(x) x[-1], function(x) replace(x, 1, NaN), function(x) rep(x, 2), as.character, function(x) list(x),
    function(x) structure(x, class = "evil"), function(x) x + 0.5
  )
  for (part in c("origins", "log_weights", "coordinates")) {
    for (edit in edits_of_numbers) {
      tries("final-1", function(entry) {
        entry$value[[part]] <- edit(entry$value[[part]])
        entry
      })
    }
  }
  for (n in c(.Machine$integer.max, -1L)) {
    tries("final-1", function(entry) {
      entry$value$origins[] <- n
      entry
    })
  }
  tries("scout", function(entry) {
    entry$value$normals[[1]]$mean <- numeric(3)
    entry
  })
  tries("final-1", function(entry) {
    names(entry$value)[names(entry$value) == "origins"] <- "origin"
    entry
  })
  # a matrix that R reads from a file need not have as many elements as its dimensions say
  tries("final-1", function(entry) {
    bytes <- serialize(entry, NULL, xdr = FALSE)
    dims <- grepRaw(writeBin(c(64L, 2L), raw()), bytes, fixed = TRUE)
    bytes[dims + 0:3] <- writeBin(1e6L, raw())
    bytes
  })
  expect_gt(n_tried, 60)
})

test_that("an island stands for itself only", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  run_in(dir)
  file.copy(file.path(dir, "final-1.smc"), file.path(dir, "final-2.smc"), overwrite = TRUE)
  expect_identical(catch(run_in(dir))$differs, "run")
})

test_that("files of an earlier version are an error that says so", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  dir.create(dir)
  saveRDS(list(settings = list(), value = 1), file.path(dir, "final-1.rds"))
  error <- catch(run_in(dir))
  expect_s3_class(error, "autosmc_error_mismatch")
  expect_identical(error$differs, "version")
  expect_match(message_of(error), "`version` was 0.1.0", fixed = TRUE)
})

# a changed model ---------------------------------------------------------------

test_that("a model that has changed where no particle is, is another one", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  make <- function(density, gradient = function(x) -x) {
    target_function(density, 2, gradient = gradient, vectorized = TRUE)
  }
  run <- function(...) catch(run_in(dir, of = make(...)))
  changed <- function(error) {
    expect_s3_class(error, "autosmc_error_mismatch")
    expect_identical(error$differs, "target")
    message_of(error)
  }
  data <- c(5, 6)
  counts <- new.env()
  counts$n <- calls <- 0
  beyond <- function(x) data[1] * (x[, 1] > 30)
  density <- function(x) {
    calls <<- calls + 1
    counts$n <- counts$n + 1
    -rowSums(x^2) / 2 + beyond(x)
  }
  kept <- run(density)
  # what a function counts, and what is assigned in it, is no part of the model
  x <- 7
  expect_identical(results(run(density)), results(kept))
  expect_match(changed(run(function(x) -rowSums(x^2) / 2)), "log_density")
  expect_match(changed(run(density, function(x) -x + 0 * (x > 30))), "gradient")
  data[1] <- 4
  expect_match(changed(run(density)), "`data`")
  data[1] <- 5
  # what is got by its name is used as well
  named <- new_dir()
  on.exit(unlink(named, recursive = TRUE), add = TRUE)
  by_name <- make(function(x) -rowSums(x^2) / 2 + get("weight") * (x[, 1] > 30))
  weight <- 1
  run_in(named, of = by_name)
  weight <- 2
  expect_match(changed(catch(run_in(named, of = by_name))), "`weight`")
  beyond <- function(x) data[1] * (x[, 1] > 40)
  expect_match(changed(run(density)), "`beyond`")
  # a reference of R functions too
  from <- function(sd) {
    reference_function(
      function(n) matrix(rnorm(2 * n), n), function(x) dnorm(x[1], log = TRUE) + dnorm(x[2], 0, sd, log = TRUE),
      gradient = function(x) -x
    )
  }
  other <- new_dir()
  on.exit(unlink(other, recursive = TRUE), add = TRUE)
  run_in(other, reference = from(1))
  expect_identical(catch(run_in(other, reference = from(1.1)))$differs, "reference")
})

test_that("a compiled target's gradient is compared at the particles", {
  dir <- new_dir()
  on.exit(unlink(dir, recursive = TRUE))
  kept <- run_in(dir, of = target_gaussian(2, mean = 1))
  file <- file.path(dir, "final-1.smc")
  edit_entry(file, function(entry) {
    entry$at_points$gradient[1] <- entry$at_points$gradient[1] + 0.01
    entry
  })
  expect_identical(catch(run_in(dir, of = target_gaussian(2, mean = 1)))$differs, "target")
})
