# Random numbers that follow a seed and leave R's generator as it was.

draw_standard <- function(n, d) {
  z <- stats::rnorm(n * d)
  dim(z) <- c(n, d) # matrix() would copy it
  z
}

# n draws, and as many opposite to them.
opposite_draws <- function(n, d) {
  half <- draw_standard(n, d)
  rbind(half, -half)
}

# Evaluates `code` with R's default generators started at `seed`, whatever the
# user's are, and leaves these as they were.
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
