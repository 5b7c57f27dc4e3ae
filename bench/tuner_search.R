# How few evaluations of the tuner's objective lose nothing: golden section
# against the parabolic search, with tolerances and first bracketing steps of
# increasing coarseness, by the spread of the unbiased log Z over 32 seeds. The
# first row of each target is the paper's tuner, the last but one the default.
# Pines, which takes long, has these two only, with 8 seeds.
source("bench/common.R")

settings <- function(search, tolerance, start, growth) {
  data.frame(search, tolerance, start, growth)
}
searches <- list(
  klmc = rbind(
    settings("golden", 0.01, 0.01, 3),
    settings("golden", 0.1, 0.1, 2),
    settings("parabolic", 0.01, 0.01, 3),
    settings("parabolic", 0.05, 0.05, 3),
    settings("parabolic", 0.1, 0.1, 2),
    settings("parabolic", 0.2, 0.1, 2),
    settings("parabolic", 0.2, 0.2, 2)
  ),
  lmc = rbind(
    settings("golden", 0.01, 0.1, 2),
    settings("golden", 0.1, 0.1, 2),
    settings("parabolic", 0.01, 0.1, 2),
    settings("parabolic", 0.05, 0.1, 2),
    settings("parabolic", 0.1, 0.1, 2),
    settings("parabolic", 0.2, 0.1, 2),
    settings("parabolic", 0.2, 0.2, 2)
  )
)
kernels <- list(klmc = kernel_klmc(), lmc = kernel_lmc())

rows <- list()
for (name in names(targets)) {
  target <- targets[[name]]()
  for (kernel in names(kernels)) {
    long <- name == "pines"
    for (i in if (long) c(1, 6) else seq_len(nrow(searches[[kernel]]))) {
      s <- searches[[kernel]][i, ]
      row <- measure(
        target,
        if (long) 1:8 else 1:32,
        kernel = kernels[[kernel]],
        tuner = tuner_kl(
          search = s$search,
          tolerance = s$tolerance,
          bracket = c(s$start, s$growth)
        )
      )
      rows <- c(rows, list(cbind(target = name, kernel = kernel, s, row)))
    }
  }
}
keep(with_provenance(do.call(rbind, rows)), "tuner_search")
