/* kernel_klmc.c: kinetic (underdamped) Langevin Monte Carlo, by OBABO with one
 * leapfrog step. The velocity is refreshed in part,
 *   v' = sqrt(1 - rho^2) v + rho noise,
 * and (x, v') is led through one leapfrog step of size h for -log gamma_t.
 *
 * The step is volume-preserving and the refreshment reversible for N(0, I), so
 * that the densities of the refreshments cancel against that of the velocity:
 *   log G_t = log gamma_t(x_t) - |v_t|^2 / 2
 *             - log gamma_{t-1}(x_{t-1}) + |v'|^2 / 2.
 */
#include "kernel.h"
#include "vecmath.h"

#include <math.h>

/* Velocities of `to` <- refreshed ones. */
static void refresh(const smc_move *m) {
  double rho = m->current.refresh_rate, kept = sqrt(1.0 - rho * rho);
  size_t dn = smc_size(m->from->d, m->from->n);
  for (size_t j = 0; j < dn; j++)
    m->to->v[j] = kept * m->from->v[j] + rho * m->noise[j];
}

/* Velocities of `to` move by half a step along the gradient at `at`. */
static void kick(const smc_move *m, const smc_cloud *at) {
  double half = 0.5 * m->current.step_size;
  size_t dn = smc_size(at->d, at->n);
  for (size_t j = 0; j < dn; j++)
    m->to->v[j] += half * smc_annealed_gradient(at, j, m->current.lambda);
}

static void drift(const smc_move *m) {
  size_t dn = smc_size(m->from->d, m->from->n);
  for (size_t j = 0; j < dn; j++)
    m->to->x[j] = m->from->x[j] + m->current.step_size * m->to->v[j];
}

/* log of the density of (x, v) at a level, as it enters the weight. */
static double log_joint(const smc_cloud *cloud, int k, double lambda,
                        const double *v) {
  int d = cloud->d;
  return smc_annealed(cloud, k, lambda) -
         0.5 * smc_sum_of_squares(d, v + smc_size(d, k));
}

static int move(const smc_move *m) {
  int n = m->from->n;
  refresh(m);
  for (int k = 0; k < n; k++)
    m->log_g[k] = -log_joint(m->from, k, m->previous.lambda, m->to->v);
  kick(m, m->from);
  drift(m);
  if (smc_path_evaluate(m->path, m->to, true))
    return 1;
  kick(m, m->to);
  for (int k = 0; k < n; k++)
    m->log_g[k] += log_joint(m->to, k, m->current.lambda, m->to->v);
  return 0;
}

const smc_kernel smc_kernel_klmc = {
    .name = "klmc",
    .gradients = true,
    .refreshes = true,
    .move = move,
    .objective = smc_divergence,
};
