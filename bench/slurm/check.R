# Whether the islands of the array are those of a single process.
source("model.R")
all <- readRDS("all.rds")
alone <- smc_extend(readRDS("fit.rds"), islands = nrow(all$islands))
same <- c("estimates", "particles", "log_weights", "schedule", "steps", "diagnostics")
stopifnot(identical(unclass(all)[same], unclass(alone)[same]))
cat("identical\n")
