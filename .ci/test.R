# Rscript .ci/test.R COUNTS [FILE...]
#
# Runs tests/testthat, or these files of it, against the installed package: each in a process of its own, two
# at a time, those first that DESCRIPTION says to start with. Prints what failed, what was
# skipped and why, and what took longest; and writes 'passed failed skipped' to the file
# COUNTS. An error counts as a failure, and so does a process that ends early.
#
# testthat's own parallel runs send every expectation to one process that only counts them,
# which takes longer than most expectations do.

counts_file <- commandArgs(TRUE)[1]
description <- read.dcf("DESCRIPTION")
package <- description[[1, "Package"]]
suppressPackageStartupMessages(library(testthat))
invisible(loadNamespace(package)) # once, for all of the processes
Sys.setenv(TESTTHAT_PARALLEL = "false")

now <- function() proc.time()[["elapsed"]]

# Prints what is not a success, and keeps a row for each test.
Report <- R6::R6Class("Report", # nolint: R6 classes are written so
  inherit = testthat::Reporter,
  public = list(
    file = "",
    began = 0,
    counts = NULL,
    tests = NULL,
    start_file = function(filename) {
      self$file <- filename
    },
    start_test = function(context, test) {
      self$began <- now()
      self$counts <- c(passed = 0, failed = 0, skipped = 0)
    },
    end_test = function(context, test) {
      row <- data.frame(
        file = self$file, test = test, seconds = now() - self$began, t(self$counts)
      )
      self$tests <- rbind(self$tests, row)
      self$counts <- NULL
    },
    add_result = function(context, test, result) {
      kind <- sub("expectation_", "", class(result)[1], fixed = TRUE)
      name <- switch(kind,
        success = "passed",
        skip = "skipped",
        failure = ,
        error = "failed"
      )
      if (is.null(self$counts)) {
        test <- "outside of the tests"
        self$start_test(context, test)
        on.exit(self$end_test(context, test))
      }
      if (!is.null(name)) {
        self$counts[name] <- self$counts[name] + 1
      }
      if (kind != "success") {
        line <- if (!is.null(result$srcref)) paste0(":", result$srcref[1])
        said <- strsplit(format(result), "\n")[[1]]
        heading <- sprintf("\n%s: %s%s, %s", kind, self$file, line, test)
        # in one piece: the other process prints too
        cat(paste(c(heading, if (kind == "warning") said[1] else said, ""), collapse = "\n"))
      }
    }
  )
)

run_file <- function(file) {
  report <- Report$new()
  crash <- tryCatch(
    {
      testthat::test_file(
        file,
        package = package, load_package = "installed", stop_on_failure = FALSE,
        reporter = report
      )
      NULL
    },
    error = function(e) e # a file that cannot be parsed, say
  )
  if (!is.null(crash)) {
    cat(paste0("\n", basename(file), " broke off: ", conditionMessage(crash), "\n"))
  }
  list(tests = report$tests, broke_off = !is.null(crash))
}

show_longest <- function(tests, n = 12) {
  by_file <- sort(tapply(tests$seconds, tests$file, sum), decreasing = TRUE)
  cat("\nlongest files, in seconds:\n")
  cat(sprintf("%6.1f %s\n", utils::head(by_file, n), names(utils::head(by_file, n))), sep = "")
  longest <- utils::head(tests[order(-tests$seconds), ], n)
  cat("longest tests:\n")
  cat(sprintf("%6.1f %s: %s\n", longest$seconds, longest$file, longest$test), sep = "")
}

files <- commandArgs(TRUE)[-1]
if (length(files) == 0) files <- list.files("tests/testthat", "^test.*[.]R$", full.names = TRUE)
first <- trimws(strsplit(description[[1, "Config/testthat/start-first"]], ",")[[1]])
names <- sub("^test-(.*)[.]R$", "\\1", basename(files))
files <- files[order(match(names, first))]

results <- parallel::mclapply(files, run_file, mc.cores = 2, mc.preschedule = FALSE)
ended <- vapply(results, is.list, NA)
for (file in basename(files[!ended])) {
  cat("\nR ended in", file, "before its tests did\n")
}
tests <- do.call(rbind, lapply(results[ended], `[[`, "tests"))
if (!is.null(tests)) {
  show_longest(tests)
}
broke_off <- sum(!ended) + sum(vapply(results[ended], `[[`, NA, "broke_off"))
counts <- if (is.null(tests)) numeric(3) else colSums(tests[c("passed", "failed", "skipped")])
cat(counts + c(0, broke_off, 0), "\n", file = counts_file)
