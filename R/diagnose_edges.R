# Edges: whether the density ends abruptly near many draws. A kernel that does not reject moves leaves the target there.

# Points tried beside the draws, at least two a variable: a share of 5 % is known to 1.4 %; ...
edge_trials <- 256
# ... and where there are not fifty times as many evaluations in all, no fewer than these.
fewest_trials <- 64

edges_diagnostic <- new_diagnostic(
  most = function(sampler, spent, course) n_edge_trials(sampler, course),
  # Points one standard deviation away from some of the draws, along one variable each, are tried: the share of them at
  # which there is no density, and the names of these variables. Without gradients an edge does no harm; where moves
  # may be rejected it explains why draws and gradients contradict each other.
  ask = function(seen, evaluate) {
    sampler <- seen$sampler
    n <- n_edge_trials(sampler, seen$course)
    if (sampler$kernel$adjusted && !seen$contradicts) n <- min(n, fewest_trials)
    if (n == 0) {
      return(NULL)
    }
    weighty <- weighty_rows(seen$final$log_weights)
    x <- unconstrained_particles(seen$final)
    d <- ncol(x)
    sd <- weighted_sd(x, weighty$w, weighty$rows)
    along <- rep_len(seq_len(d), n)
    points <- with_seed(seed_of_run(sampler$seed, edge_key), {
      side <- sample(rep_len(c(-1, 1), n))
      rows <- weighty$rows[sample.int(length(weighty$rows), n, TRUE, weighty$w)]
      moved_along(x[rows, , drop = FALSE], along, side * sd[along])
    })
    beyond <- evaluate(points, gradient = FALSE)$log_density == -Inf
    list(share = mean(beyond), names = unique(sampler$target$names[along[beyond]]))
  },
  # kernels that reject moves do so at an edge, too
  judge = function(seen, found) {
    if (!is.null(found)) {
      diagnostic(
        found$share, if (seen$sampler$kernel$adjusted) Inf else rules$largest_edge,
        sprintf(
          "The density ends abruptly next to the draws, along %s: give the bounds as `lower` and `upper`.",
          format_names(found$names)
        )
      )
    }
  },
  remedy = function(record, found) c(record, has_edges = TRUE)
)

n_edge_trials <- function(sampler, course) {
  if (sampler$kernel$gradients) max(n_trials(course), 2 * sampler$target$dim) else 0
}

n_trials <- function(course) max(fewest_trials, min(edge_trials, floor(course$plan$max_evals / 50)))
