# Programs of old versions of Stan (tests/testthat/stan/old), brought up to date and compiled: their log densities
# against those that R has, at five points each.
#
#   Rscript bench/old_stan.R [PROGRAM ...]   to results/old_stan.csv; all programs unless some are named
#
# Where the stanc.js of rstan is at hand, which takes old programs and can write them anew, `by_rstan` says what the
# compiler of today makes of its version: the same program, another one, or none since it refuses it.
suppressPackageStartupMessages(library(autosmc))
folder <- file.path("tests", "testthat", "stan", "old")
source(file.path(folder, "values.R"))
file <- file.path("bench", "results", "old_stan.csv")

new_stanc <- function(path) {
  if (nzchar(path)) {
    js <- QuickJSR::JSContext$new(stack_size = 4 * 1024^2)
    js$source(path)
    js
  }
}
today <- new_stanc(system.file("stanc.js", package = "StanHeaders"))
of_rstan <- new_stanc(Sys.getenv("RSTAN_STANC", system.file("exec", "stanc.js", package = "rstan")))
canonical <- function(stanc, code) stanc$call("stanc", "model", code, as.array("print-canonical"))$result

by_rstan <- function(code) {
  if (is.null(of_rstan)) {
    return(NA)
  }
  ours <- autosmc:::update_stan(list(code = code, includes = list()))$program$code
  theirs <- canonical(today, canonical(of_rstan, code))
  if (!any(nzchar(theirs))) "refused" else if (identical(theirs, canonical(today, ours))) "same" else "another"
}

row_of <- function(name) {
  program <- old_stan[[name]]
  changes <- ""
  heard <- function(m) {
    said <- gsub("\\s+", " ", cli::ansi_strip(conditionMessage(m)))
    if (inherits(m, "autosmc_message_update")) changes <<- sub(".*brought up to date: (.*)[.].*", "\\1", said)
    invokeRestart("muffleMessage")
  }
  path <- file.path(folder, paste0(name, ".stan"))
  target <- suppressWarnings(withCallingHandlers(target_stan(path, program$data), message = heard))
  set.seed(1)
  x <- matrix(rnorm(5 * target$dim), 5)
  by_stan <- autosmc:::evaluate_target(target, x, gradient = FALSE)$log_density
  by_r <- density_by_r(program, target, x)
  row <- data.frame(
    program = name, d = target$dim, log_density = signif(by_r[1], 8),
    largest_difference = signif(max(abs(by_stan - by_r)), 2), changes = changes,
    by_rstan = by_rstan(paste(readLines(path), collapse = "\n"))
  )
  print(row, row.names = FALSE)
  if (file.exists(file)) {
    old <- utils::read.csv(file)
    row <- rbind(old[old$program != name, ], row)
  }
  utils::write.csv(row[order(row$program), ], file, row.names = FALSE)
}

chosen <- commandArgs(TRUE)
for (name in if (length(chosen) > 0) chosen else names(old_stan)) {
  tryCatch(row_of(name), error = function(e) message(name, ": ", conditionMessage(e)))
}
