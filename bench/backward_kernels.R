# The paper's comparison of backward kernels: target N(30 * 1, I) in ten
# dimensions, lambda_t = t / 64, h = 0.5, N = 1024, 256 replications.
source("bench/common.R")

seeds <- 1:256

target <- target_gaussian(10, mean = 30)
rows <- lapply(c("time_correct", "forward", "detailed_balance"), function(name) {
  kernel <- kernel_lmc(step_size = 0.5, backward = name)
  z <- replicate_seeds(seeds, function(seed) {
    fit <- smc_paper(target, kernel = kernel, schedule = (0:64) / 64, seed = seed)
    c(log_z = fit$log_z)
  })
  cbind(backward = name, spread(z[, "log_z"], seeds))
})
keep(with_provenance(do.call(rbind, rows)), "backward_kernels")
