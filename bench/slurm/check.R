# Whether the islands of the array are those of a single process.
source("model.R")
source("same.R")
all <- readRDS("all.rds")
alone <- smc_extend(readRDS("fit.rds"), islands = nrow(all$islands))
stopifnot(is_same(all, alone))
cat("identical\n")
