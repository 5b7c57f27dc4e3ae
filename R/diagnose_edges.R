# Edges: whether the density drops to zero near many draws. An unadjusted kernel leaves the support of the target there.

# Points tried near the draws, and at least two for each variable: with 256 points a share of 5 % has a standard error
# of 1.4 %.
edge_trials <- 256
# Their number is at most a fiftieth of `max_evals`, but at least this.
fewest_trials <- 64

edges_diagnostic <- new_diagnostic(
  most = function(sampler, spent, course) n_edge_trials(sampler, course),
  # Moves some of the draws by one standard deviation along one variable each. Returns the share of these points at
  # which the density is zero, and the names of the variables along which it is. No points are tried for kernels without
  # gradients, which edges do not bias. For adjusted kernels an edge explains why draws and gradients contradict each
  # other; where they do not, the fewest points are enough.
  ask = function(seen, evaluate) {
    sampler <- seen$sampler
    n <- n_edge_trials(sampler, seen$course)
    if (sampler$kernel$adjusted && !seen$contradicts) n <- min(n, fewest_trials)
    if (n == 0) {
      return(NULL)
    }
    weighty <- rows_with_weight(seen$final$log_weights)
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
  # never fails for adjusted kernels, which reject moves across an edge
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
