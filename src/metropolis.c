#include "metropolis.h"

#include "vecmath.h"

bool smc_accept_reject(const smc_move *m, int k, double log_ratio) {
  double probability = log_ratio < 0.0 ? exp(log_ratio) : 1.0;
  if (isnan(log_ratio))
    probability = 0.0;
  m->acceptance[k] = probability;
  if (m->trial || m->uniform[k] < probability)
    return true;
  smc_cloud_copy(m->from, k, m->to);
  return false;
}

static double squared_jump(const smc_move *m, int k) {
  size_t first = smc_size(m->from->d, k);
  double sum = 0.0;
  for (size_t j = first; j < first + (size_t)m->from->d; j++) {
    double jump = m->to->x[j] - m->from->x[j];
    sum += jump * jump;
  }
  return sum;
}

/* Minus the mean of the squared jump, each weighed with the probability that
 * it is made (Rao-Blackwellised). */
static double minus_squared_jump(const smc_move *m) {
  double sum = 0.0;
  for (int k = 0; k < m->from->n; k++)
    sum -= m->acceptance[k] * squared_jump(m, k);
  return sum / m->from->n;
}

static double acceptance_gap(const smc_move *m) {
  double sum = 0.0;
  for (int k = 0; k < m->from->n; k++)
    sum += m->acceptance[k];
  double gap = log(sum / m->from->n) - log(m->options->target_acceptance);
  return gap * gap;
}

double smc_metropolis_objective(const smc_move *m) {
  return m->options->objective == SMC_OBJECTIVE_ESJD ? minus_squared_jump(m)
                                                     : acceptance_gap(m);
}
