# Whether 16 islands that future.batchtools sends to Slurm, a job each, are those of a
# single process.
source("model.R")
source("same.R")
fit <- readRDS("fit.rds")
islands <- function() {
  smc_run(target, fit$schedule, reference = fit$reference, n_particles = 256, islands = 16, seed = 1)
}
alone <- islands()
future::plan(future.batchtools::batchtools_slurm, template = "slurm.tmpl", workers = 4)
stopifnot(is_same(islands(), alone))
cat("identical\n")
