# Points of a log density that has its gradient as an attribute, as fit_shape() makes them of draws.
points_at <- function(x, log_density) {
  mean <- colMeans(x)
  n <- nrow(x)
  list(
    x = sweep(x, 2, mean), g = attr(log_density(x), "gradient"), w = rep(1 / n, n), mean = mean,
    genealogies = n, is_first = seq_len(n) %% 2 == 0
  )
}

# The density as of counted_density(), of a target with as many variables as the points that it is first asked at have.
density_of <- function(log_density) {
  counted <- NULL
  function(x, ...) {
    if (is.null(counted)) {
      target <- target_function(log_density, ncol(x), vectorized = TRUE)
      counted <<- internal("counted_density")(target)
    }
    counted(x, ...)
  }
}
