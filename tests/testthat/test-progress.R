# All that a session of its own, not interactive, writes to stdout and stderr (its
# lines, and what on a terminal overwrites one another) when it evaluates `code`. cli
# shows what there is to show at once, and again after 10 ms.
session_output <- function(code) {
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  dump <- function(x) paste(deparse(x), collapse = "\n")
  writeLines(c(
    sprintf(".libPaths(%s)", dump(.libPaths())),
    "library(autosmc)",
    "options(cli.progress_show_after = 0, cli.dynamic = TRUE, cli.ansi = FALSE,",
    "  cli.num_colors = 1, cli.width = 80)",
    dump(substitute(code))
  ), script)
  said <- system2(
    r_program("Rscript"), script,
    env = "CLI_TICK_TIME=10", stdout = TRUE, stderr = TRUE
  )
  lines <- trimws(unlist(strsplit(said, "\r")))
  lines[nzchar(lines)]
}

# the line --------------------------------------------------------------------

test_that("the core tells of every step once, with what the step before has left", {
  fit <- quick_run(target_funnel(2))
  told <- list()
  .Call(
    r_smc_run,
    with_addresses(target_interface(fit$target)),
    core_config(fit, as.list(fit$schedule), NULL, key = run_key("final", 1)),
    function(...) told <<- c(told, list(c(...)))
  )
  steps <- fit$steps
  last <- nrow(steps)
  expect_identical(
    do.call(rbind, told),
    cbind(
      0:last,
      c(0, steps$lambda),
      c(NA, NA, steps$ess[-last]),
      c(0, 0, steps$log_z[-last])
    )
  )
})

test_that("the count goes on through rounds, and islands beyond those foreseen", {
  progress <- new_progress(TRUE, n_rounds = 1, n_islands = 2)
  begin_run(progress, "adapt", 0, n_steps = 8)
  expect_identical(progress$label, "Round 1/1")
  expect_identical(c(progress$n_left, progress$n_before), c(2, 0))
  for (i in 1:3) begin_run(progress, "final", i, n_steps = 5)
  expect_identical(progress$label, "Island 3/3")
  expect_identical(c(progress$n_left, progress$n_before), c(0, 18))
})

# what the user sees ----------------------------------------------------------

test_that("one line counts through all rounds and islands", {
  lines <- session_output({
    density <- function(x) {
      Sys.sleep(0.02)
      -rowSums(x^2) / 2
    }
    fit <- smc(
      density,
      dim = 2, gradient = function(x) -x, vectorized = TRUE, n_particles = 500,
      n_steps = 4, rounds = 1, islands = 2, kernel = kernel_lmc(), seed = 1,
      progress = TRUE
    )
  })
  of_scout <- grepl("Scout", lines)
  expect_match(lines[of_scout], "^\\[ *\\] Scout, [0-9,]+ evaluations, ETA", all = TRUE)
  expect_false(is.unsorted(!of_scout))
  lines <- lines[!of_scout]
  form <- paste0(
    "^\\[=* *\\] (Round ([123]/3|4/4)|Island [12]/2), step ([0-9])/([0-9]), ",
    "lambda ([01][.][0-9]{3}), ESS [0-9]+%, log Z -?[0-9]+[.][0-9], ",
    "ETA +([?]|[0-9]+[smh])$"
  )
  expect_match(lines, form)
  expect_lte(max(nchar(lines)), 80 - 4) # more steps take two digits, and so may log Z
  expect_identical(
    unique(sub(form, "\\1", lines)),
    c("Round 1/3", "Round 2/3", "Round 3/3", "Round 4/4", "Island 1/2", "Island 2/2")
  )
  step <- as.numeric(sub(form, "\\3", lines))
  expect_true(all(step <= as.numeric(sub(form, "\\4", lines))))
  expect_identical(sub(form, "\\5", lines) == "0.000", step == 0)
  done <- nchar(gsub("[^=]", "", lines))
  expect_false(is.unsorted(done))
})

test_that("of islands in other processes the line says how many are done", {
  skip_if_not_installed("future")
  lines <- session_output({
    told <- NULL # also what comes too soon after another to be shown
    show_done <- autosmc:::show_done
    assignInNamespace("show_done", function(progress, n_done, n) {
      told <<- c(told, n_done)
      show_done(progress, n_done, n)
    }, "autosmc")
    # also islands that would be done here sooner
    assignInNamespace("loading_seconds", -1, "autosmc")
    future::plan(future::multisession, workers = 2)
    fit <- smc(
      target_gaussian(2),
      n_particles = 100, n_steps = 4, rounds = 0, islands = 3, seed = 1,
      progress = TRUE
    )
    cat(cli::cli_progress_num(), "lines, told of", told, "\n")
  })
  n <- length(lines)
  expect_match(lines[1], "Round 1/1", fixed = TRUE)
  form <- "^\\[=* *\\] ([0-3]) of 3 islands done, ETA.*"
  done <- grep("islands done", lines, value = TRUE)
  expect_match(done, form)
  expect_false(is.unsorted(sub(form, "\\1", done)))
  expect_match(lines[n], "^0 lines, told of (0 )?1 2 3$")
})

test_that("a session that is not interactive is told nothing", {
  said <- session_output({
    fit <- smc(target_gaussian(2), seed = 1)
    again <- smc_replicate(fit, 2)
    if (abs(fit$log_z) < 0.1) cat("it did run\n")
  })
  expect_identical(said, "it did run")
})

test_that("where lines cannot overwrite each other there is one a minute", {
  said <- session_output({
    options(cli.dynamic = FALSE)
    fit <- smc(target_gaussian(2), seed = 1, progress = TRUE)
    shown <- function() {
      progress <- autosmc:::new_progress(TRUE, 1, 1)
      progress$shown <- progress$shown - 61
      Sys.sleep(0.1)
      for (step in 1:9) autosmc:::show_line(progress, step, 9, sprintf("step %d,", step))
    }
    shown()
  })
  expect_identical(grep("step", said, value = TRUE), said)
  expect_length(said, 1)
})

test_that("an error or an interrupt takes the line away, and leaves R usable", {
  interrupt <- structure(list(), class = c("interrupt", "condition"))
  for (condition in list(simpleError("no"), interrupt)) {
    failing <- target_function(
      function(x) if (x[1, 1] == 0) 0 else stop(condition),
      dim = 2, gradient = function(x) -x, vectorized = TRUE
    )
    caught <- suppressMessages(tryCatch(
      quick_run(failing, progress = TRUE),
      interrupt = identity,
      error = function(e) e$parent
    ))
    expect_identical(caught, condition)
    expect_identical(cli::cli_progress_num(), 0L)
  }
  expect_usable_session()
})
