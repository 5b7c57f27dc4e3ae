# Without testthat, which is only suggested, there is nothing to run.
if (requireNamespace("testthat", quietly = TRUE)) {
  library(testthat)
  library(autosmc)
  test_check("autosmc")
}
