# The log evidences of the paper's problems, for its experiments and for the article alike.
#
# read: a function that returns a table of results/ by its name, and NULL where there is none.
# Returns a named vector: of the funnel by its definition, of Sonar and Pines by long runs (all in evidence.csv), of
# Brownian and of two problems from posteriordb by quadrature (paper_truths.csv, which has Sonar's by importance
# sampling, too, -108.359 with an error of 0.004); of the others the median of the fits by the defaults that did not warn, or,
# where all did, of all, if they lie within one of each other. Those that are no median are the
# attribute "known", those of fits that warned "warned".
paper_truths <- function(read) {
  evidence <- read("evidence")
  quadrature <- read("paper_truths")
  quadrature <- quadrature[quadrature$way == "more nodes", ]
  known <- tapply(evidence$truth, evidence$target, mean)
  if (NROW(quadrature) > 0) {
    known <- c(known[!names(known) %in% quadrature$problem], tapply(quadrature$log_z, quadrature$problem, mean))
  }
  fits <- by_defaults(read("posteriordb"))
  fits <- fits[!fits$problem %in% names(known), ]
  medians <- unlist(lapply(split(fits, fits$problem), function(fits) {
    if (any(!fits$warned)) fits <- fits[!fits$warned, ] else if (diff(range(fits$log_z)) > 1) return()
    median(fits$log_z)
  }))
  warned <- setdiff(names(medians), fits$problem[!fits$warned])
  structure(c(known, medians), known = names(known), warned = warned)
}

# The fits by the defaults, one of each problem and seed: of the same density in C, where there are both.
by_defaults <- function(fits) {
  fits <- fits[fits$method %in% c("defaults", "defaults_c") & is.finite(fits$log_z), ]
  fits <- fits[order(fits$method != "defaults_c"), ]
  fits[!duplicated(fits[c("problem", "seed")]), ]
}
