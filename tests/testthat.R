library(testthat)
library(autosmc)

test_check("autosmc")
