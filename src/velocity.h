/* velocity.h: what kernels with a velocity share. */
#ifndef SMC_VELOCITY_H
#define SMC_VELOCITY_H

#include "kernel.h"
#include "vecmath.h"

#include <math.h>

/* Particle k of m->to gets the velocity of that of m->from, refreshed in part,
 *   v' = sqrt(1 - rho^2) v + rho noise,
 * which leaves N(0, I) invariant. */
static inline void smc_refresh_velocity(const smc_move *m, int k,
                                        const double *noise) {
  int d = m->from->d;
  double rho = m->current.refresh_rate, kept = sqrt(1.0 - rho * rho);
  const double *from = m->from->v + smc_size(d, k);
  double *to = m->to->v + smc_size(d, k);
  SMC_SIMD
  for (int i = 0; i < d; i++)
    to[i] = kept * from[i] + rho * noise[i];
}

#endif
