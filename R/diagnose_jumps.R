# Jumps: whether the log density is discontinuous, which gradients do not show. Stein's identities do not hold then, and
# an unadjusted kernel does not take account of the jumps.

# Smallest and largest number of lines through pairs of draws.
jump_lines <- c(4, 32)
# Places on each line, where the two draws are at 0 and 1. Some are beyond the draws, since few draws may lie on the
# other side of a jump.
jump_ends <- seq(-0.5, 1.5, by = 0.25)
# How often the interval with the largest unexplained change is halved, so that a smooth change becomes negligible.
jump_halvings <- 16
jump_evals <- length(jump_ends) + jump_halvings
# The smallest jump of the log density that counts, in nats.
least_jump <- 0.01

jumps_diagnostic <- new_diagnostic(
  advise = "particles",
  most = function(sampler, spent, course) if (sampler$kernel$gradients) n_jump_lines(course) * jump_evals else 0,
  ask = function(seen, evaluate) {
    if (seen$contradicts) {
      weighty <- rows_with_weight(seen$final$log_weights)
      x <- unconstrained_particles(seen$final)
      with_seed(seed_of_run(seen$sampler$seed, jumps_key), {
        n <- n_jump_lines(seen$course)
        ends <- replicate(2, weighty$rows[sample.int(length(weighty$rows), n, TRUE, weighty$w)])
        largest_jump(x[ends[, 1], , drop = FALSE], x[ends[, 2], , drop = FALSE], evaluate)
      })
    }
  },
  # never fails for adjusted kernels, which reject moves across a jump
  judge = function(seen, found) {
    if (isTRUE(found > 0)) {
      diagnostic(found, if (seen$sampler$kernel$adjusted) Inf else least_jump, c("The log density jumps, by ", "."))
    }
  },
  remedy = function(record, found) c(record, has_edges = TRUE)
)

n_jump_lines <- function(course) max(jump_lines[1], min(jump_lines[2], floor(course$plan$max_evals / 50 / jump_evals)))

# The largest jump on the lines through the rows of `from` and `to`, in nats; 0 for none. On each line the interval in
# which the change of the log density differs most from what the gradients at its ends explain is halved repeatedly. The
# change over the last interval is a jump if it exceeds what the gradients there explain, and if the density at its
# higher end is at least the lower one of the densities at both rows.
largest_jump <- function(from, to, evaluate) {
  n <- nrow(from)
  along <- function(t) {
    at <- evaluate(from + t * (to - from), gradient = TRUE)
    cbind(t = t, log_density = at$log_density, slope = rowSums(at$gradient * (to - from)))
  }
  step <- function(a, b) b[, "log_density"] - a[, "log_density"]
  explained <- function(a, b, slope) (b[, "t"] - a[, "t"]) * slope
  unexplained <- function(a, b) {
    off <- abs(step(a, b) - explained(a, b, (a[, "slope"] + b[, "slope"]) / 2))
    replace(off, !is.finite(off), -Inf)
  }
  likelier <- function(parts) {
    best <- max.col(vapply(parts, function(part) unexplained(part$a, part$b), numeric(n)), "first")
    take <- function(end) do.call(rbind, lapply(seq_len(n), function(i) parts[[best[i]]][[end]][i, ]))
    list(a = take("a"), b = take("b"))
  }
  places <- lapply(jump_ends, function(t) along(rep(t, n)))
  part <- likelier(Map(function(a, b) list(a = a, b = b), places[-length(places)], places[-1]))
  for (halving in seq_len(jump_halvings)) {
    middle <- along((part$a[, "t"] + part$b[, "t"]) / 2)
    part <- likelier(list(list(a = part$a, b = middle), list(a = middle, b = part$b)))
  }
  size <- abs(step(part$a, part$b))
  by_slope <- explained(part$a, part$b, pmax(abs(part$a[, "slope"]), abs(part$b[, "slope"])))
  height <- function(a, b, pick) pick(a[, "log_density"], b[, "log_density"])
  is_high <- height(part$a, part$b, pmax) >= do.call(height, c(places[jump_ends %in% 0:1], pmin))
  max(0, size[which(size > least_jump + 2 * by_slope & is_high)])
}
