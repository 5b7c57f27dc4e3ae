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
#include "velocity.h"

/* The velocity of particle k of `to` moves by half a step along the gradient at
 * `at`. */
static void kick(const smc_move *m, const smc_cloud *at, int k) {
  int d = at->d;
  double half = 0.5 * m->current.step_size;
  smc_slope slope = smc_annealed_slope(at, m->current.lambda);
  size_t first = smc_size(d, k);
  double *v = m->to->v + first;
  SMC_SIMD
  for (int i = 0; i < d; i++)
    v[i] += half * smc_slope_at(&slope, first + (size_t)i);
}

/* Its position moves by a step along its velocity. */
static void drift(const smc_move *m, int k) {
  int d = m->from->d;
  double h = m->current.step_size;
  const double *from = m->from->x + smc_size(d, k);
  const double *v = m->to->v + smc_size(d, k);
  double *to = m->to->x + smc_size(d, k);
  SMC_SIMD
  for (int i = 0; i < d; i++)
    to[i] = from[i] + h * v[i];
}

/* log of the density of (x, v) at a level, as it enters the weight. */
static double log_joint(const smc_cloud *cloud, int k, double lambda,
                        const double *v) {
  int d = cloud->d;
  return smc_annealed(cloud, k, lambda) -
         0.5 * smc_sum_of_squares(d, v + smc_size(d, k));
}

static void propose(const smc_move *m, int k, const double *noise) {
  smc_refresh_velocity(m, k, noise);
  m->log_g[k] = -log_joint(m->from, k, m->previous.lambda, m->to->v);
  kick(m, m->from, k);
  drift(m, k);
}

static void weigh(const smc_move *m, int k) {
  kick(m, m->to, k);
  m->log_g[k] += log_joint(m->to, k, m->current.lambda, m->to->v);
}

const smc_kernel smc_kernel_klmc = {
    .name = "klmc",
    .gradients = true,
    .refreshes = true,
    .propose = propose,
    .weigh = weigh,
    .objective = smc_divergence,
};
