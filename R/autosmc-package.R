#' autosmc: log evidence and posterior draws with self-tuning SMC
#'
#' Give it a log density, and [smc()] returns the log normalising constant (log
#' evidence) and posterior draws, with nothing to tune. Annealed sequential
#' Monte Carlo moves particles from a reference to the target; the step
#' sizes of its Markov kernels are tuned greedily at every step, by minimising
#' the incremental Kullback-Leibler divergence between the path the particles
#' take and the path they should take.
#'
#' * [smc()] looks for the target, tunes, and then runs afresh; [smc_adapt()] and [smc_run()] are its
#'   two halves.
#' * [target_function()], [target_rtmb()], [target_stan()] and [target_native()] bring a
#'   model of your own; [target_sonar()] and its like are models to try.
#' * [autosmc_run] is for packages that run the sampler from their own C code.
#' * [kernel_lmc()], [tuner_kl()], [schedule_power()], [reference_gaussian()] and
#'   [reference_function()] choose how the sampler works.
#'
#' @references
#' Kim, K., Xu, Z., Gardner, J. R. and Campbell, T. (2025). *Tuning Sequential
#' Monte Carlo Samplers via Greedy Incremental Divergence Minimization.*
#' Proceedings of the 42nd International Conference on Machine Learning. \doi{10.48550/arXiv.2503.15704}
#' @examples
#' # a normal distribution in three variables, whose log evidence is 0
#' fit <- smc(target_gaussian(3, mean = 2), n_particles = 128, n_steps = 8, seed = 1)
#' fit
#' coef(fit)
#' @keywords internal
#' @importFrom parallelly availableCores
#' @importFrom tibble tibble
#' @useDynLib autosmc, r_smc_run, r_evaluate, r_chain, r_precision_pivots,
#'   r_at_each_point, r_bind_points, r_carries_gradient, r_multiply, r_multiply_rows,
#'   r_cross_product, r_put_rows, r_with_room, r_sweep, r_scaled_rows, r_weighted_sums,
#'   r_weighty_rows, r_concentration, r_number_groups, r_t_values,
#'   r_climb, r_normals_along, r_normal_factor, r_refine, r_match_normal, r_bridge, r_tail_shapes,
#'   r_hash, r_data_or_null, r_file_of_routine,
#'   r_bridgestan_describe, r_bridgestan_outputs, r_bridgestan_why
"_PACKAGE"
