# The long results of vignette("practice"): `Rscript bench/practice.R` renews vignettes/practice.rds, in a few minutes.
library(autosmc)

# Forty observations in ten groups, with an effect of x or without; the effects of the groups are integrated out.
group <- rep(1:10, each = 4)
x <- rep(c(-1.5, -0.5, 0.5, 1.5), 10)
group_model <- function(has_slope) {
  list(
    simulate = function() {
      effects <- rnorm(1) + abs(rnorm(1)) * rnorm(10)
      effects[group] + (if (has_slope) rnorm(1, 0, 0.5) * x else 0) + rnorm(40)
    },
    target = function(y) {
      parts <- function(p) {
        slope <- if (has_slope) p[, 3] else numeric(nrow(p))
        rest <- rep(y, each = nrow(p)) - p[, 1] - outer(slope, x)
        list(slope = slope, rest = rest, sums = rest %*% outer(group, 1:10, "=="), widened = 1 + 4 * p[, 2]^2)
      }
      target_function(
        function(p) {
          at <- parts(p)
          square <- rowSums(at$rest^2) - p[, 2]^2 / at$widened * rowSums(at$sums^2)
          -20 * log(2 * pi) - 5 * log(at$widened) - square / 2 + dnorm(p[, 1], log = TRUE) + log(2) +
            dnorm(p[, 2], log = TRUE) + if (has_slope) dnorm(at$slope, 0, 0.5, log = TRUE) else 0
        },
        dim = 2 + has_slope, vectorized = TRUE, names = c("mean", "sd", if (has_slope) "slope"), lower = c(sd = 0),
        gradient = function(p) {
          at <- parts(p)
          cbind(
            rowSums(at$sums) / at$widened - p[, 1],
            p[, 2] * (rowSums(at$sums^2) / at$widened^2 - 40 / at$widened - 1),
            if (has_slope) at$rest %*% x - 4 * at$slope
          )
        }
      )
    }
  )
}
check <- check_evidence(
  list(groups = group_model(FALSE), slope = group_model(TRUE)),
  n = 100, n_particles = 128, seed = 1
)
print(check)
saveRDS(check, "vignettes/practice.rds")
