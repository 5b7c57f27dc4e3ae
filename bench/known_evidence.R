# The log evidences of the paper's problems, for its experiments and for the article alike.
#
# read: a function that returns a table of results/ by its name, and NULL where there is none.
# Returns a named vector: of the funnel by its definition, of Brownian by quadrature, of Sonar
# and Pines by long runs (all in evidence.csv), of two problems from posteriordb by quadrature
# (paper_truths.csv); of the others the median of the fits by the defaults that did not warn.
# Those that are no such median are the attribute "known".
paper_truths <- function(read) {
  evidence <- read("evidence")
  quadrature <- read("paper_truths")
  quadrature <- quadrature[quadrature$way == "more nodes", ]
  known <- c(
    tapply(evidence$truth, evidence$target, mean),
    if (NROW(quadrature) > 0) tapply(quadrature$log_z, quadrature$problem, mean)
  )
  fits <- read("posteriordb")
  fits <- fits[fits$method %in% "defaults" & is.finite(fits$log_z) & !fits$warned, ]
  fits <- fits[!fits$problem %in% names(known), ]
  medians <- if (NROW(fits) > 0) tapply(fits$log_z, fits$problem, median)
  structure(c(known, medians), known = names(known))
}
