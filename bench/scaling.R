# The paper's dimensional scaling: target N(3 * 1, I), N = 1024,
# T = 4 ceil(sqrt(d)), for LMC and for MALA tuned for the expected squared jump
# distance (ESJD) or for an acceptance of 0.574 (ARC), with the tuner of the paper;
# 32 seeds each. Draws the estimates and the step sizes in bench/results/scaling.png.
source("bench/common.R")

seeds <- 1:32
dims <- c(2, 8, 32, 128, 512)
kernels <- list(
  "SMC-LMC" = kernel_lmc(),
  "SMC-MALA-ESJD" = kernel_mala(objective = "esjd"),
  "SMC-MALA-ARC" = kernel_mala(objective = "acceptance")
)

rows <- list()
step_sizes <- list()
for (d in dims) {
  target <- target_gaussian(d, mean = 3)
  n_steps <- 4 * ceiling(sqrt(d))
  for (name in names(kernels)) {
    out <- replicate_seeds(seeds, function(seed) {
      fit <- smc_paper(
        target,
        kernel = kernels[[name]],
        n_steps = n_steps,
        tuner = tuner_kl(search = "golden"),
        seed = seed
      )
      c(log_z = fit$log_z, fit$schedule$step_size)
    })
    rows <- c(rows, list(cbind(
      d = d,
      kernel = name,
      spread(out[, "log_z"], seeds),
      first_step = median(out[, 2]),
      last_step = median(out[, n_steps + 1])
    )))
    step_sizes[[name]][[as.character(d)]] <- apply(out[, -1], 2, median)
  }
}
table <- do.call(rbind, rows)
keep(with_provenance(table), "scaling")

# the figure ------------------------------------------------------------------

colours <- c("#0072B2", "#D55E00", "#009E73") # told apart by the colour-blind
names(colours) <- names(kernels)
png("bench/results/scaling.png", 1500, 900, res = 150)
par(mfrow = c(2, 2), mar = c(4, 4.2, 2, 1), las = 1)

range <- range(table$q10, table$q90, 0)
plot(NA,
  log = "x", xlim = c(1.8, 570), ylim = range, xlab = "dimension d",
  ylab = "log Z (truth: 0)", main = "Estimates", xaxt = "n"
)
axis(1, dims)
abline(h = 0, lty = 3)
for (i in seq_along(kernels)) {
  one <- table[table$kernel == names(kernels)[i], ]
  x <- one$d * c(0.93, 1, 1.07)[i]
  segments(x, one$q10, x, one$q90, col = colours[i], lwd = 2)
  lines(x, one$median, col = colours[i], type = "o", pch = 14 + i)
}
legend("bottomleft", names(kernels), col = colours, pch = 15:17, bty = "n")

shades <- c("#A6CEE3", "#6BAED6", "#3182BD", "#08519C", "#000000")
for (name in names(kernels)) {
  all <- unlist(step_sizes)
  plot(NA,
    log = "y", xlim = c(0, 1), ylim = range(all), xlab = "t / T",
    ylab = "step size h", main = name
  )
  for (j in seq_along(dims)) {
    h <- step_sizes[[name]][[j]]
    lines(seq_along(h) / length(h), h, col = shades[j], lwd = 2, lty = j)
  }
  legend("bottomleft", paste("d =", dims),
    col = shades, lty = seq_along(dims),
    lwd = 2, bty = "n", ncol = 2, cex = 0.8
  )
}
invisible(dev.off())
