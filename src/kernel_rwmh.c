/* kernel_rwmh.c: the Gaussian random walk of variance h, Metropolis-adjusted.
 * It needs no gradients. */
#include "metropolis.h"
#include "vecmath.h"

static void propose(const smc_move *m, int k, const double *noise) {
  double scale = sqrt(m->current.step_size);
  int d = m->from->d;
  const double *from = m->from->x + smc_size(d, k);
  double *to = m->to->x + smc_size(d, k);
  for (int i = 0; i < d; i++)
    to[i] = from[i] + scale * noise[i];
}

static void weigh(const smc_move *m, int k) {
  double lambda = m->current.lambda;
  smc_accept_reject(
      m, k, smc_annealed(m->to, k, lambda) - smc_annealed(m->from, k, lambda));
}

const smc_kernel smc_kernel_rwmh = {
    .name = "rwmh",
    .adjusted = true,
    .propose = propose,
    .weigh = weigh,
    .objective = smc_metropolis_objective,
};
