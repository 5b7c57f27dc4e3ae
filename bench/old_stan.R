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

# The parameters in a row of a target's outputs.
parameters_in <- function(row) {
  base <- sub("\\[.*", "", names(row))
  lapply(split(row, factor(base, unique(base))), function(values) {
    index <- sub("^[^[]*\\[?", "", sub("\\]$", "", names(values)))
    if (identical(index, "")) {
      return(unname(values))
    }
    places <- do.call(rbind, lapply(strsplit(index, ","), as.integer))
    if (ncol(places) == 1) unname(values) else replace(array(NA_real_, apply(places, 2, max)), places, values)
  })
}

# A row a program: R's log density at the first row of x, and the largest difference of Stan's from it at all rows.
# target: that of as_one_program() of these programs. evaluate: a function of it and of x.
differences_from_r <- function(programs, target, x, evaluate) {
  counted <- function(k) {
    target$data$values$counts <- as.numeric(seq_along(programs) == k)
    evaluate(target, x)
  }
  log_jacobian <- counted(0)
  at <- target$outputs(x)[, target$parameters]
  rows <- lapply(seq_along(programs), function(k) {
    program <- old_stan[[programs[k]]]
    before <- paste0(programs[k], "_")
    own <- at[, startsWith(colnames(at), before), drop = FALSE]
    colnames(own) <- substring(colnames(own), nchar(before) + 1)
    by_r <- apply(own, 1, function(row) program$log_density(parameters_in(row), program$data))
    data.frame(log_density = by_r[1], largest_difference = max(abs(counted(k) - log_jacobian - by_r)))
  })
  do.call(rbind, stats::setNames(rows, programs))
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
