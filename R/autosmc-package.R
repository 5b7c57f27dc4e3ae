#' autosmc: log evidence and posterior draws with self-tuning SMC
#'
#' [smc()] takes a log density and returns its log normalising constant (log evidence), with a standard error, and
#' draws from the posterior; there is nothing to tune. Particles move from a reference distribution to the target
#' through annealed densities (sequential Monte Carlo). The step sizes of the Markov kernels are tuned at every step by
#' minimising an incremental Kullback-Leibler divergence between the distribution of the particles' paths and the ideal
#' one (Kim et al., 2025).
#'
#' * [smc()] locates the target, tunes the sampler, and then runs it with fresh random numbers; [smc_adapt()] and
#'   [smc_run()] are its two halves.
#' * [target_function()], [target_rtmb()], [target_stan()] and [target_native()] make targets of your own models;
#'   [target_sonar()] and its like are examples.
#' * [autosmc_run] is for packages that run the sampler from their own C code.
#' * [kernel_lmc()], [tuner_kl()], [schedule_power()], [reference_gaussian()] and [reference_function()] are settings of
#'   the sampler.
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
