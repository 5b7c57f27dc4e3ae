# Random numbers from R's generator: normal draws, and code that runs with a seed of its own.

# An n x d matrix of standard normal draws.
draw_standard <- function(n, d) {
  z <- stats::rnorm(n * d)
  dim(z) <- c(n, d) # matrix() would copy it
  z
}

# n antithetic pairs of standard normal draws: 2n rows.
opposite_draws <- function(n, d) {
  half <- draw_standard(n, d)
  rbind(half, -half)
}

# The value of `code` with R's default generators, started at `seed`. The user's generator and its state are restored.
with_seed <- function(seed, code) {
  kinds <- RNGkind()
  state <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit({
    if (is.null(state)) {
      RNGkind(kinds[1], kinds[2], kinds[3])
      rm(".Random.seed", envir = globalenv())
    } else {
      assign(".Random.seed", state, globalenv())
    }
  })
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  code
}
