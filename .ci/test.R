# Rscript .ci/test.R COUNTS
#
# Runs tests/testthat against the installed package, prints what failed, what
# was skipped and why, and writes 'passed failed skipped' to the file COUNTS.
# An error counts as a failure.

counts_file <- commandArgs(TRUE)[1]
package <- read.dcf("DESCRIPTION", "Package")[[1]]

results <- testthat::ListReporter$new()
progress <- testthat::ProgressReporter$new(
  show_praise = FALSE, max_failures = Inf, update_interval = Inf
)

# A file that cannot be parsed, say, stops the run; what ran before it counts.
crash <- tryCatch(
  {
    testthat::test_dir(
      "tests/testthat",
      package = package, load_package = "installed", stop_on_failure = FALSE,
      reporter = testthat::MultiReporter$new(reporters = list(results, progress))
    )
    NULL
  },
  error = function(e) e
)
if (!is.null(crash)) {
  cat("\nThe test run broke off: ", conditionMessage(crash), "\n", sep = "")
}

expectations <- unlist(lapply(results$get_results(), `[[`, "results"), recursive = FALSE)
is_a <- function(kind) vapply(expectations, inherits, NA, paste0("expectation_", kind))
passed <- sum(is_a("success"))
failed <- sum(is_a("failure") | is_a("error")) + !is.null(crash)
skipped <- sum(is_a("skip"))

cat(passed, failed, skipped, "\n", file = counts_file)
