/* kernel_rwmh.c: the Gaussian random walk of variance h, Metropolis-adjusted.
 * It needs no gradients. */
#include "metropolis.h"
#include "vecmath.h"

static void propose(const smc_move *m) {
  double scale = sqrt(m->current.step_size);
  size_t dn = smc_size(m->from->d, m->from->n);
  for (size_t j = 0; j < dn; j++)
    m->to->x[j] = m->from->x[j] + scale * m->noise[j];
}

static int move(const smc_move *m) {
  double lambda = m->current.lambda;
  propose(m);
  if (smc_path_evaluate(m->path, m->to, false))
    return 1;
  for (int k = 0; k < m->from->n; k++)
    smc_accept_reject(m, k,
                      smc_annealed(m->to, k, lambda) -
                          smc_annealed(m->from, k, lambda));
  return 0;
}

const smc_kernel smc_kernel_rwmh = {
    .name = "rwmh",
    .adjusted = true,
    .move = move,
    .objective = smc_metropolis_objective,
};
