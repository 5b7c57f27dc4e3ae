# The sampler's own work, and the time of whole runs, on Sonar. Run it with one
# thread of BLAS (OPENBLAS_NUM_THREADS=1), once with R's reference BLAS and once
# with OpenBLAS. The share is a ratio of medians taken in one session, of runs on
# Sonar and on a target of the same dimension that costs nothing.
source("bench/common.R")

folder <- tempfile()
dir.create(folder)
file.copy("bench/free_target.c", folder)
Sys.setenv(PKG_CPPFLAGS = paste0("-I", system.file("include", package = "autosmc")))
source_file <- file.path(folder, "free_target.c")
stopifnot(system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", source_file)) == 0)
dyn.load(file.path(folder, paste0("free_target", .Platform$dynlib.ext)))

sonar <- target_sonar()
free <- target_native("free_target", "free_target", dim = sonar$dim)
schedules <- list(
  lmc = data.frame(lambda = schedule_power(64), step_size = 0.01),
  klmc = data.frame(
    lambda = schedule_power(64),
    step_size = 0.07,
    refresh_rate = 0.5
  )
)

seconds <- function(target, schedule) {
  one <- function(seed) smc_run(target, schedule, seed = seed)$runs$seconds
  median(vapply(1:21, one, 0))
}
rows <- lapply(names(schedules), function(name) {
  all <- seconds(sonar, schedules[[name]])
  own <- seconds(free, schedules[[name]])
  data.frame(kernel = name, run_s = all, sampler_s = own, share = own / all)
})
cat("BLAS:", extSoftVersion()[["BLAS"]], "\n")
print(format(do.call(rbind, rows), digits = 3), row.names = FALSE)

whole <- vapply(1:11, function(seed) {
  system.time(smc(target_sonar(), seed = seed))[["elapsed"]]
}, 0)
cat("smc(target_sonar()):", format(median(whole), digits = 3), "s (median of 11)\n")
