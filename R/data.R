#' Sonar returns from mines and rocks
#'
#' Sonar signals bounced off a metal cylinder (a mine) or a roughly
#' cylindrical rock, at various angles and under various conditions.
#'
#' @format A data frame with 208 rows, one for each signal, and 61 columns. `V1` to
#'   `V60` (numeric): the energy within a frequency band, integrated over a period of
#'   time, between 0 and 1. `Class` (factor): `"M"` for a mine, `"R"` for a rock.
#'
#' @source
#' UCI Machine Learning Repository, "Connectionist Bench (Sonar, Mines vs.
#' Rocks)", contributed by T. Sejnowski, developed by
#' R. P. Gorman; taken from the R package mlbench.
#'
#' @references
#' Gorman, R. P. and Sejnowski, T. J. (1988). Analysis of hidden units in a
#' layered network trained to classify sonar targets. *Neural Networks*, 1(1),
#' 75-89.
#'
#' @seealso [target_sonar()]
#' @examples
#' table(sonar$Class)
"sonar"

#' Finnish pine saplings
#'
#' The locations of 126 pine saplings in a square of 10 m by 10 m in a Finnish
#' forest, with the square scaled to the unit square.
#'
#' @format A data frame with 126 rows, one for each sapling, and 2 columns:
#' \describe{
#'   \item{x, y}{(numeric) The location, between 0 and 1: the coordinates in
#'     metres minus the lower end of the observation window, divided by the
#'     length of its side.}
#' }
#'
#' @source
#' Recorded by Professor Seppo Kellomäki, Faculty of Forestry, University of
#' Joensuu, Finland, and prepared by Professor Antti Penttinen, Department of
#' Statistics, University of Jyväskylä, Finland; taken from `finpines` in the
#' R package spatstat.data. As its documentation says, the locations were
#' perturbed at random in angle, because the originals were polar coordinates
#' of low precision, and clipped to a square.
#'
#' @references
#' van Lieshout, M. N. M. (2004). *A J-function for marked point patterns*.
#' Research Report PNA-R0404, Centrum voor Wiskunde en Informatica, Amsterdam.
#'
#' @seealso [target_pines()]
#' @examples
#' plot(pines, asp = 1)
"pines"
