/* kernel_lmc.c: unadjusted Langevin Monte Carlo,
 *   K_t(x, .) = N(x + h_t g_t(x), 2 h_t I),
 * with a choice of backward kernels. */
#include "langevin.h"

/* At t = 1 there is no K_0. Either L_0 = q, which cancels gamma_0; or K_0 is
 * the reference's own Langevin kernel with the step size of t = 1. */
static bool backward_is_reference(const smc_move *m) {
  return m->step == 1 && m->options->backward == SMC_BACKWARD_TIME_CORRECT &&
         m->options->first_backward == SMC_FIRST_REFERENCE;
}

/* The level whose kernel is L_{t-1}. */
static smc_level backward_level(const smc_move *m) {
  smc_level level = m->previous;
  if (m->options->backward == SMC_BACKWARD_FORWARD)
    level = m->current;
  else if (m->step == 1) {
    level = m->current;
    level.lambda = m->previous.lambda;
  }
  return level;
}

/* log K_t(x_{t-1}, x_t), from the noise that makes x_t. */
static double log_forward(const smc_move *m, const double *noise) {
  int d = m->from->d;
  return smc_langevin_normaliser(d, m->current) -
         0.5 * smc_sum_of_squares(d, noise);
}

static double log_increment(const smc_move *m, int k, double log_forward) {
  if (m->options->backward == SMC_BACKWARD_DETAILED_BALANCE)
    return smc_detailed_balance(m->from, k, m->previous.lambda,
                                m->current.lambda);
  double after = smc_annealed(m->to, k, m->current.lambda);
  if (backward_is_reference(m))
    return after - log_forward;
  double before = smc_annealed(m->from, k, m->previous.lambda);
  double log_backward =
      smc_langevin_log_density(m->to, k, backward_level(m), m->from->x);
  return after - before + log_backward - log_forward;
}

static void propose(const smc_move *m, int k, const double *noise) {
  smc_langevin_propose(m->from, k, m->current, noise, m->to->x);
  m->log_g[k] = log_forward(m, noise);
}

static void weigh(const smc_move *m, int k) {
  m->log_g[k] = log_increment(m, k, m->log_g[k]);
}

static bool needs_gradients(const smc_move *m) {
  return !m->trial || !backward_is_reference(m);
}

const smc_kernel smc_kernel_lmc = {
    .name = "lmc",
    .gradients = true,
    .propose = propose,
    .weigh = weigh,
    .needs_gradients = needs_gradients,
    .objective = smc_divergence,
};
