# Makes data/sonar.rda and data/pines.rda. Run it in the package's top folder.
# It needs the packages mlbench and spatstat.data.

# UCI Machine Learning Repository, "Connectionist Bench (Sonar, Mines vs.
# Rocks)", in the order in which mlbench has it.
data("Sonar", package = "mlbench", envir = environment())
sonar <- Sonar
stopifnot(
  identical(dim(sonar), c(208L, 61L)),
  identical(names(sonar), c(paste0("V", 1:60), "Class")),
  identical(levels(sonar$Class), c("M", "R"))
)

# Finnish pine saplings; the observation window becomes the unit square.
data("finpines", package = "spatstat.data", envir = environment())
to_unit <- function(x, range) (x - range[1]) / (range[2] - range[1])
pines <- data.frame(
  x = to_unit(finpines$x, finpines$window$xrange),
  y = to_unit(finpines$y, finpines$window$yrange)
)
stopifnot(nrow(pines) == 126, pines$x >= 0, pines$x <= 1,
          pines$y >= 0, pines$y <= 1)

save(sonar, file = "data/sonar.rda", compress = "xz", version = 2)
save(pines, file = "data/pines.rda", compress = "xz", version = 2)
