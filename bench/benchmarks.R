# The benchmark targets by the paper's method, one adapting run and one unbiased
# run, with KLMC and with LMC (Pines by KLMC only): 32 seeds each.
source("bench/common.R")

kernels <- list(klmc = kernel_klmc(), lmc = kernel_lmc())
rows <- list()
for (name in c("funnel", "brownian", "sonar", "pines")) {
  target <- targets[[name]]()
  for (kernel in if (name == "pines") "klmc" else names(kernels)) {
    row <- measure(target, 1:32, kernel = kernels[[kernel]])
    rows <- c(rows, list(cbind(target = name, kernel = kernel, row)))
  }
}
keep(do.call(rbind, rows), "benchmarks")
