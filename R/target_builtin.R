# The built-in benchmark targets. Their routines are in src/target_*.c and use the same interface as a user's compiled
# target.

#' Benchmark target: independent normals
#'
#' The density of `N(mean, diag(sd^2))`, normalised, so that the true log normalising constant is 0 in any dimension.
#' @param dim (positive integer, at most 10 million) The dimension.
#' @param mean (numeric vector) The mean: one value for all coordinates, or `dim` of them. Default 0.
#' @param sd (positive numeric vector) The standard deviation: one value for
#'   all coordinates, or `dim` of them. Default 1.
#' @return A target, to be given to [smc()]. Its coordinates are called `x1`, `x2` and so on.
#' @section Errors: Of class `autosmc_error_input` when an argument is wrong.
#' @family benchmark targets
#' @examples
#' smc(target_gaussian(3, mean = 2), n_steps = 8, n_particles = 128, seed = 1)
#' @export
target_gaussian <- function(dim, mean = 0, sd = 1) {
  dim <- check_n(dim, "dim")
  check_numeric(mean, "mean", lengths = c(1, dim))
  check_positive(sd, "sd", lengths = c(1, dim))
  builtin_target(
    "gaussian", dim,
    data = list(mean = rep_len(as.double(mean), dim), sd = rep_len(as.double(sd), dim)),
    names = paste0("x", seq_len(dim)), label = "Gaussian"
  )
}

#' Benchmark target: Neal's funnel
#'
#' `y ~ N(0, 3^2)` and, given `y`, independently `x_i ~ N(0, exp(y))` for `i = 1, ..., dim - 1`, where 9 and `exp(y)`
#' are variances. The density is normalised: the true log normalising constant is 0.
#' @param dim (integer, at least 2, at most 10 million) The dimension. Default 10.
#' @return A target, to be given to [smc()]. Its coordinates are called `y`,
#'   which is the first, and `x1`, `x2` and so on.
#' @inheritSection target_gaussian Errors
#' @source Neal, R. M. (2003). Slice sampling. *The Annals of Statistics*, 31(3), 705-767.
#' @family benchmark targets
#' @examples
#' # with two variables, and few particles; log_z is 0
#' smc(target_funnel(2), n_steps = 8, n_particles = 128, seed = 1)
#' @export
target_funnel <- function(dim = 10) {
  dim <- check_n(dim, "dim", min = 2)
  builtin_target("funnel", dim, names = c("y", paste0("x", seq_len(dim - 1))), label = "Funnel")
}

#' Benchmark target: Brownian motion with missing observations
#'
#' The posterior, in 32 dimensions, of a Brownian motion of 30 steps that was
#' observed with noise at its first ten and its last ten positions:
#'
#' - `a = softplus(innovation_scale_raw)` and `b = softplus(observation_scale_raw)`, each `LogNormal(0, 2)`, where 2 is
#'   the standard deviation of the logarithm;
#' - `x_1 ~ N(0, a^2)` and `x_i ~ N(x_(i-1), a^2)` for `i = 2, ..., 30`;
#' - `y_i ~ N(x_i, b^2)` for `i = 1, ..., 10` and `i = 21, ..., 30`.
#'
#' The log density is that of the unconstrained coordinates: it includes the log-Jacobians
#' `log sigmoid(innovation_scale_raw)` and `log sigmoid(observation_scale_raw)`. The prior and the likelihood are
#' normalised, so the normalising constant is the evidence.
#' @return A target, to be given to [smc()]. Its coordinates are called `x1`
#'   to `x30`, `innovation_scale_raw` and `observation_scale_raw`.
#' @source Sountsov, P., Radul, A. and contributors (2020). *Inference Gym*,
#'   model `BrownianMotionUnknownScalesMissingMiddleObservations`.
#' @family benchmark targets
#' @examples
#' # one short run from the reference to the target, which is not accurate; `smc(target)`
#' # takes some seconds and is accurate
#' target <- target_brownian()
#' smc(target, n_steps = 16, n_particles = 128, rounds = 0, islands = 1, seed = 1)$log_z
#' @export
target_brownian <- function() {
  names <- c(paste0("x", 1:30), "innovation_scale_raw", "observation_scale_raw")
  builtin_target("brownian", 32L, names = names, label = "Brownian")
}

#' Benchmark target: logistic regression on the sonar data
#'
#' The posterior, in 61 dimensions, of a Bayesian logistic regression of the class in [sonar] ("R" counts as 1) on its
#' 60 measurements, each centred and divided by its standard deviation (with divisor `n - 1`), and an intercept, which
#' comes last. The prior is `N(0, I)`. The prior and the likelihood are normalised, so the normalising constant is the
#' evidence.
#' @return A target, to be given to [smc()]. Its coordinates are called `V1`
#'   to `V60`, as the columns of [sonar], and `intercept`.
#' @inherit sonar source
#' @family benchmark targets
#' @examples
#' # one short run from the reference to the target, which is not accurate; `smc(target)`
#' # takes some seconds and finds -108.4
#' target <- target_sonar()
#' smc(target, n_steps = 16, n_particles = 64, rounds = 0, islands = 1, seed = 1)$log_z
#' @export
target_sonar <- function() {
  data <- autosmc::sonar
  features <- setdiff(names(data), "Class")
  builtin_target(
    "sonar", length(features) + 1L,
    data = list(x = unname(cbind(scale(as.matrix(data[features])), 1)), y = as.double(data$Class == "R")),
    names = c(features, "intercept"), label = "Sonar"
  )
}

#' Benchmark target: log-Gaussian Cox process for the pine saplings
#'
#' The posterior of the log intensity of the [pines] on a grid of `d = side^2` cells
#' over the unit square, in whitened coordinates `z`. The benchmark has 1600 cells.
#'
#' - `z ~ N(0, I)` and `f = L z + mu`, where `L` is the lower Cholesky factor of `K`, with `K_ij = 1.91 exp(-33 r_ij /
#'   side)`, `r_ij` the distance of the cells `i` and `j` in units of a cell's side, and `mu = log(126) - 1.91 / 2`;
#' - the count `y_i` in cell `i` adds `f_i y_i - exp(f_i) / d`: the Poisson
#'   log likelihood without the terms that do not depend on `f`.
#'
#' The cells are counted along `x` first: the point `(x, y)` is in cell `1 + floor(side x) + side floor(side y)`. As `K`
#' depends on distances only, the normalising constant is the same for any other order or orientation.
#'
#' Making the target takes one Cholesky factorisation of a `d x d` matrix (about a second
#' for 1600 cells with R's own BLAS), and every evaluation two products with a triangular
#' matrix of that size. These are the package's own, and do not depend on the BLAS.
#' @param side (positive integer) The number of cells along a side of the square.
#' @return A target, to be given to [smc()]. Its coordinates are called `z1`, `z2` and so on.
#' @inheritSection target_gaussian Errors
#' @source The model: Møller, J., Syversveen, A. R. and Waagepetersen, R. P. (1998). Log Gaussian Cox processes.
#' *Scandinavian Journal of Statistics*, 25(3), 451-482. The data: see [pines].
#' @family benchmark targets
#' @examples
#' # a coarse grid, and one short run, which is not accurate; the benchmark is
#' # `target_pines()`, a fit of which takes minutes
#' target <- target_pines(side = 8)
#' target
#' smc(target, n_steps = 16, n_particles = 64, rounds = 0, islands = 1, seed = 1)$log_z
#' @export
target_pines <- function(side = 40) {
  # LAPACK, which factorises the covariance of the cells, takes matrices of fewer than 2^31 elements
  side <- check_count(side, "side", max = floor(.Machine$integer.max^(1 / 4)))
  variance <- 1.91
  n_points <- nrow(autosmc::pines)
  builtin_target(
    "pines", side^2,
    data = list(
      counts = grid_counts(autosmc::pines, side),
      chol = grid_chol(side, variance, range = side / 33),
      mu = log(n_points) - variance / 2,
      area = 1 / side^2
    ),
    names = paste0("z", seq_len(side^2)), label = "Pines"
  )
}

# internals ----------------------------------------------------------------

# Number of points in each cell of a side x side grid over the unit square,
# x running fastest. A point on the far edge belongs to the last cell.
grid_counts <- function(points, side) {
  cell <- function(u) pmin(floor(side * u), side - 1)
  index <- 1 + cell(points$x) + side * cell(points$y)
  as.double(tabulate(index, nbins = side^2))
}

# Lower Cholesky factor of the exponential covariance between the cells, in
# the order of grid_counts(). Distances are in units of a cell's side.
grid_chol <- function(side, variance, range) {
  column <- rep(seq_len(side), times = side)
  row <- rep(seq_len(side), each = side)
  distance <- sqrt(outer(column, column, "-")^2 + outer(row, row, "-")^2)
  t(chol(variance * exp(-distance / range)))
}
