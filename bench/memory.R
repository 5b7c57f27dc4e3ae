# The most memory that a fit takes: the peak resident size of a process of its own (VmHWM of
# Linux) less that of a process with a small fit. In doubles for each coordinate of a particle
# of one island, that is, divided by 8 bytes, n_particles and the dimension: all draws of 8
# islands are 8 such doubles.
#
#   Rscript bench/memory.R [CASE...]
source("bench/common.R")

dim <- 10
target <- target_gaussian(dim, mean = 1)
fixed <- data.frame(lambda = schedule_power(16), step_size = 0.1, refresh_rate = 0.5)
cases <- list(
  run_klmc = function(...) smc_run(target, fixed, kernel = "klmc", ...),
  run_lmc = function(...) smc_run(target, fixed[1:2], kernel = "lmc", ...),
  draws = function(...) smc(target, ...),
  moments = function(...) smc(target, keep = "moments", ...),
  million = function(...) smc(target, rounds = 0, ...)
)

peak_bytes <- function() {
  line <- grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
  1024 * as.numeric(gsub("[^0-9]", "", line))
}

peak_of <- function(case, n) {
  numbers_by("memory.R", c("--peak", case, format(n, scientific = FALSE)))
}

row_of <- function(case) {
  n_particles <- if (case == "million") 1e6 else 1e5
  extra <- peak_of(case, n_particles) - peak_of(case, 256)
  data.frame(case, n_particles, mb = extra / 1e6, doubles = extra / (8 * n_particles * dim))
}

args <- commandArgs(TRUE)
at <- match("--peak", args)
if (is.na(at)) {
  chosen <- if (length(args) > 0) args else names(cases)
  keep_rows(do.call(rbind, lapply(chosen, row_of)), "memory", list(case = names(cases)))
} else {
  invisible(cases[[args[at + 1]]](n_particles = as.numeric(args[at + 2]), seed = 1))
  cat(peak_bytes(), "\n")
}
