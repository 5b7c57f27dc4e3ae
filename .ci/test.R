# Rscript .ci/test.R COUNTS
#
# Runs tests/testthat against the installed package, two files at a time (see
# Config/testthat in DESCRIPTION). Prints what failed, what was skipped and why, and what
# took longest; and writes 'passed failed skipped' to the file COUNTS. An error counts as
# a failure.

counts_file <- commandArgs(TRUE)[1]
package <- read.dcf("DESCRIPTION", "Package")[[1]]

now <- function() proc.time()[["elapsed"]]

# Results come from both processes in turn; before each, testthat says of which file.
Report <- R6::R6Class("Report", # nolint: R6 classes are written so
  inherit = testthat::Reporter,
  public = list(
    file = "",
    counts = c(passed = 0, failed = 0, skipped = 0),
    began = list(),
    times = list(),
    initialize = function() {
      super$initialize()
      self$capabilities$parallel_support <- TRUE
      self$capabilities$parallel_updates <- TRUE
    },
    start_file = function(filename) {
      self$file <- filename
    },
    start_test = function(context, test) {
      self$began[[self$file]] <- now()
    },
    end_test = function(context, test) {
      seconds <- now() - self$began[[self$file]]
      row <- data.frame(file = self$file, test = test, seconds = seconds)
      self$times <- c(self$times, list(row))
    },
    add_result = function(context, test, result) {
      kind <- sub("expectation_", "", class(result)[1], fixed = TRUE)
      name <- switch(kind,
        success = "passed",
        skip = "skipped",
        failure = ,
        error = "failed"
      )
      if (!is.null(name)) {
        self$counts[name] <- self$counts[name] + 1
      }
      if (kind != "success") {
        line <- if (!is.null(result$srcref)) paste0(":", result$srcref[1])
        cat(sprintf("\n%s: %s%s, %s\n", kind, self$file, line, test))
        said <- strsplit(format(result), "\n")[[1]]
        cat(if (kind == "warning") said[1] else said, sep = "\n")
      }
    }
  )
)

show_longest <- function(times, n = 12) {
  times <- do.call(rbind, times)
  by_file <- sort(tapply(times$seconds, times$file, sum), decreasing = TRUE)
  cat("\nlongest files, in seconds:\n")
  cat(sprintf("%6.1f %s\n", utils::head(by_file, n), names(utils::head(by_file, n))), sep = "")
  longest <- utils::head(times[order(-times$seconds), ], n)
  cat("longest tests:\n")
  cat(sprintf("%6.1f %s: %s\n", longest$seconds, longest$file, longest$test), sep = "")
}

report <- Report$new()
# A file that cannot be parsed, or R itself ending, say, stops the run; what ran before
# counts.
crash <- tryCatch(
  {
    testthat::test_dir(
      "tests/testthat",
      package = package, load_package = "installed", stop_on_failure = FALSE,
      reporter = report
    )
    NULL
  },
  error = function(e) e
)
if (!is.null(crash)) {
  cat("\nThe test run broke off: ", conditionMessage(crash), "\n", sep = "")
}
if (length(report$times) > 0) {
  show_longest(report$times)
}
counts <- report$counts
counts["failed"] <- counts["failed"] + !is.null(crash)
cat(counts, "\n", file = counts_file)
