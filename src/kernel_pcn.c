/* kernel_pcn.c: the preconditioned Crank-Nicolson walk, Metropolis-adjusted: a
 * step of length h of the Ornstein-Uhlenbeck process, which leaves N(0, I), in
 * whose coordinates the reference is simple, invariant. Long steps are
 * independent draws from it. It needs no gradients. */
#include "metropolis.h"
#include "vecmath.h"

static void propose(const smc_move *m, int k, const double *noise) {
  double h = m->current.step_size;
  double stays = exp(-h);
  double scale = sqrt(-expm1(-2.0 * h));
  int d = m->from->d;
  const double *from = m->from->x + smc_size(d, k);
  double *to = m->to->x + smc_size(d, k);
  for (int i = 0; i < d; i++)
    to[i] = stays * from[i] + scale * noise[i];
}

static double half_square(const smc_cloud *cloud, int k) {
  const double *x = cloud->x + smc_size(cloud->d, k);
  double sum = 0.0;
  for (int i = 0; i < cloud->d; i++)
    sum += x[i] * x[i];
  return sum / 2.0;
}

/* Relative to N(0, I) the proposal is symmetric. */
static void weigh(const smc_move *m, int k) {
  double lambda = m->current.lambda;
  double to = smc_annealed(m->to, k, lambda) + half_square(m->to, k);
  double from = smc_annealed(m->from, k, lambda) + half_square(m->from, k);
  smc_accept_reject(m, k, to - from);
}

const smc_kernel smc_kernel_pcn = {
    .name = "pcn",
    .adjusted = true,
    .propose = propose,
    .weigh = weigh,
    .objective = smc_metropolis_objective,
};
