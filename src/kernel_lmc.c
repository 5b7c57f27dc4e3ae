/* kernel_lmc.c: unadjusted Langevin Monte Carlo,
 *   K_t(x, .) = N(x + h_t g_t(x), 2 h_t I),
 * with a choice of backward kernels. */
#include "langevin.h"

/* log K_t(x_{t-1}, x_t), from the noise that made x_t. */
static double log_forward(const smc_move *m, int k) {
  int d = m->from->d;
  return smc_langevin_normaliser(d, m->current.step_size) -
         0.5 * smc_sum_of_squares(d, m->noise + smc_size(d, k));
}

/* log L_{t-1}(x_t, x_{t-1}). */
static double log_backward(const smc_move *m, int k) {
  bool forward = m->options->backward == SMC_BACKWARD_FORWARD;
  smc_level level = forward ? m->current : m->previous;
  return smc_langevin_log_density(m->to, k, level, m->from->x);
}

/* At t = 1 there is no K_0: L_0 = q, which cancels gamma_0. The forward
 * backward kernel has no such gap. */
static bool backward_is_reference(const smc_move *m) {
  return m->step == 1 && m->options->backward == SMC_BACKWARD_TIME_CORRECT;
}

static double log_increment(const smc_move *m, int k) {
  double before = smc_annealed(m->from, k, m->previous.lambda);
  if (m->options->backward == SMC_BACKWARD_DETAILED_BALANCE)
    return smc_annealed(m->from, k, m->current.lambda) - before;
  double after = smc_annealed(m->to, k, m->current.lambda);
  if (backward_is_reference(m))
    return after - log_forward(m, k);
  return after - before + log_backward(m, k) - log_forward(m, k);
}

static int move(const smc_move *m) {
  bool gradients = !m->weights_only || !backward_is_reference(m);
  for (int k = 0; k < m->from->n; k++)
    smc_langevin_propose(m->from, k, m->current, m->noise, m->to->x);
  if (smc_path_evaluate(m->path, m->to, gradients))
    return 1;
  for (int k = 0; k < m->from->n; k++)
    m->log_g[k] = log_increment(m, k);
  return 0;
}

const smc_kernel smc_kernel_lmc = {
    .name = "lmc",
    .velocities = false,
    .move = move,
};
