# What stands for K_0 in LMC's time-correct backward kernel: the reference, or
# the reference's own Langevin kernel. The five built-in targets, and the shifted
# Gaussians of the scaling experiment; 32 seeds each (8 for Pines).
source("bench/common.R")

dims <- c(2, 8, 32, 128, 512)
cases <- c(
  lapply(targets, function(make) list(target = make(), n_steps = 64)),
  lapply(setNames(dims, paste0("shifted_", dims)), function(d) {
    list(target = target_gaussian(d, mean = 3), n_steps = 4 * ceiling(sqrt(d)))
  })
)
rows <- list()
for (name in names(cases)) {
  seeds <- if (name == "pines") 1:8 else 1:32
  for (first in c("reference", "independent")) {
    row <- measure(
      cases[[name]]$target,
      seeds,
      n_steps = cases[[name]]$n_steps,
      kernel = kernel_lmc(first_backward = first)
    )
    rows <- c(rows, list(cbind(target = name, first_backward = first, row)))
  }
}
keep(do.call(rbind, rows), "first_backward")
