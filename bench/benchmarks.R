# The benchmark targets by the defaults, and by LMC: 32 seeds each.
source("bench/common.R")

kernels <- list(klmc = kernel_klmc(), lmc = kernel_lmc())
rows <- list()
for (name in c("funnel", "brownian", "sonar", "pines")) {
  target <- targets[[name]]()
  for (kernel in names(kernels)) {
    row <- measure(target, 1:32, kernel = kernels[[kernel]])
    rows <- c(rows, list(cbind(target = name, kernel = kernel, row)))
  }
}
keep(do.call(rbind, rows), "benchmarks")
