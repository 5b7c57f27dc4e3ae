source("model.R")
fit <- smc(target, n_particles = 256, seed = 1, checkpoint = "runs")
saveRDS(fit, "fit.rds")
