/* kernel_rwmh.c: the Gaussian random walk of variance h, Metropolis-adjusted.
 * It needs no gradients. */
#include "metropolis.h"
#include "vecmath.h"

static void propose(const smc_move *m, int k) {
  double scale = sqrt(m->current.step_size);
  size_t first = smc_size(m->from->d, k), end = first + (size_t)m->from->d;
  for (size_t j = first; j < end; j++)
    m->to->x[j] = m->from->x[j] + scale * m->noise[j];
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
