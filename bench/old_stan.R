# Programs of old versions of Stan (tests/testthat/stan/old), brought up to date: their log densities against those
# that R has, at five points, to results/old_stan.csv.
#
#   Rscript bench/old_stan.R
#
# Where the stanc.js of rstan is at hand (or its path in RSTAN_STANC), which takes old programs and can write them anew,
# `by_rstan` says what the compiler of today makes of its version: the same program as of ours, another one, or none
# since it refuses it.
suppressPackageStartupMessages(library(autosmc))
tests <- file.path("tests", "testthat", "stan")
source(file.path(tests, "old_values.R"))
texts <- vapply(names(old_stan), function(name) {
  paste(readLines(file.path(tests, "old", paste0(name, ".stan"))), collapse = "\n")
}, "")

new_stanc <- function(path) {
  if (nzchar(path)) {
    js <- QuickJSR::JSContext$new(stack_size = 4 * 1024^2)
    js$source(path)
    js
  }
}
today <- new_stanc(system.file("stanc.js", package = "StanHeaders"))
of_rstan <- new_stanc(Sys.getenv("RSTAN_STANC", system.file("exec", "stanc.js", package = "rstan")))
# The compiler's own text of a program, without comments; "" of one that it refuses.
canonical <- function(stanc, code) {
  text <- stanc$call("stanc", "model", code, as.array("print-canonical"))$result
  trimws(gsub("\\s+", " ", gsub("(?s)//[^\n]*|/[*].*?[*]/", "", toString(text), perl = TRUE)))
}
brought_up <- function(code) autosmc:::update_stan(list(code = code, includes = list()))

by_rstan <- function(code) {
  if (is.null(of_rstan)) {
    return(NA)
  }
  theirs <- canonical(today, canonical(of_rstan, code))
  ours <- canonical(today, brought_up(code)$program$code)
  if (!nzchar(theirs)) "refused" else if (identical(theirs, ours)) "same" else "another"
}

one <- as_one_program(texts)
target <- suppressWarnings(target_stan(one$code, one$data))
set.seed(1)
x <- matrix(rnorm(5 * target$dim), 5)
found <- differences_from_r(names(texts), target, x, function(target, x) {
  autosmc:::evaluate_target(target, x, gradient = FALSE)$log_density
})
utils::write.csv(data.frame(
  program = names(texts), log_density = signif(found$log_density, 8),
  largest_difference = signif(found$largest_difference, 2),
  changes = vapply(texts, function(code) toString(brought_up(code)$changes), ""),
  by_rstan = vapply(texts, by_rstan, "")
), file.path("bench", "results", "old_stan.csv"), row.names = FALSE)
