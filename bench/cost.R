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

whole <- function(fit) {
  one <- function(seed) system.time(fit(sonar, seed = seed))[["elapsed"]]
  format(median(vapply(1:11, one, 0)), digits = 3)
}
cat(
  "smc(target_sonar()):", whole(smc), "s, by the paper's method:",
  whole(smc_paper), "s (medians of 11)\n"
)
cat(
  "by the paper's method with LMC and golden section:",
  whole(function(target, seed) {
    smc_paper(target,
      kernel = kernel_lmc(), tuner = tuner_kl(search = "golden"), seed = seed
    )
  }), "s\n"
)
