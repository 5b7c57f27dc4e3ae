source("model.R")
fit <- readRDS("fit.rds")
i <- as.integer(Sys.getenv("SLURM_ARRAY_TASK_ID"))
saveRDS(smc_islands(fit, i), sprintf("island-%d.rds", i))
