# Without testthat, which is only suggested, there is nothing to run.
if (requireNamespace("testthat", quietly = TRUE)) {
  library(testthat)
  library(autosmc)
  # With NOT_CRAN=true in the environment all tests are run. CRAN's machines run those of these files, one after
  # another, in less than two minutes of processor time: what users see, and laws that are quick to see.
  quick <- c(
    "calibration", "columns", "describe", "draws", "evidence", "extend", "fit", "kernels", "laplace", "many", "maps",
    "methods", "models", "moments", "odd-values", "posterior-target", "report", "structure", "targets"
  )
  is_on_cran <- !identical(Sys.getenv("NOT_CRAN"), "true")
  if (is_on_cran) Sys.setenv(TESTTHAT_PARALLEL = "false")
  test_check("autosmc", filter = if (is_on_cran) sprintf("^(%s)$", paste(quick, collapse = "|")))
}
