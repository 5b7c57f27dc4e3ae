/* kernel_mala.c: the Metropolis-adjusted Langevin algorithm: the proposal of
 * LMC, accepted or rejected so as to leave gamma_t invariant. */
#include "langevin.h"
#include "metropolis.h"

static double log_ratio(const smc_move *m, int k) {
  smc_level level = m->current;
  return smc_annealed(m->to, k, level.lambda) -
         smc_annealed(m->from, k, level.lambda) +
         smc_langevin_log_density(m->to, k, level, m->from->x) -
         smc_langevin_log_density(m->from, k, level, m->to->x);
}

static void propose(const smc_move *m, int k, const double *noise) {
  smc_langevin_propose(m->from, k, m->current, noise, m->to->x);
}

static void weigh(const smc_move *m, int k) {
  smc_accept_reject(m, k, log_ratio(m, k));
}

const smc_kernel smc_kernel_mala = {
    .name = "mala",
    .gradients = true,
    .adjusted = true,
    .propose = propose,
    .weigh = weigh,
    .objective = smc_metropolis_objective,
};
