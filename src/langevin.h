/* langevin.h: the Langevin proposal N(x + h g(x), 2 h I) and its density,
 * with g the gradient of the annealed log density of a level. */
#ifndef SMC_LANGEVIN_H
#define SMC_LANGEVIN_H

#include "kernel.h"
#include "vecmath.h"

/* The part of the log density that does not depend on the points. */
static inline double smc_langevin_normaliser(int d, smc_level level) {
  return -0.5 * d * (log(2.0 * SMC_TWO_PI) + level.log_step_size);
}

/* Column k of `to` <- the proposal from particle k, for d normals. */
static inline void smc_langevin_propose(const smc_cloud *from, int k,
                                        smc_level level, const double *noise,
                                        double *to) {
  size_t first = smc_size(from->d, k), d = (size_t)from->d;
  double h = level.step_size, scale = sqrt(2.0 * h);
  smc_slope slope = smc_annealed_slope(from, level.lambda);
  SMC_SIMD
  for (size_t i = 0; i < d; i++)
    to[first + i] = from->x[first + i] + h * smc_slope_at(&slope, first + i) +
                    scale * noise[i];
}

/* The squared distance of column k of `to` from the mean of such a move. Four
 * sums, as in smc_sum_of_squares(). */
static inline double smc_langevin_distance(const smc_cloud *from, int k,
                                           smc_level level, const double *to) {
  size_t j = smc_size(from->d, k), end = j + (size_t)from->d;
  double h = level.step_size, sum[4] = {0.0, 0.0, 0.0, 0.0};
  smc_slope slope = smc_annealed_slope(from, level.lambda);
  for (; j + 4 <= end; j += 4)
    for (size_t i = 0; i < 4; i++) {
      double r = to[j + i] - from->x[j + i] - h * smc_slope_at(&slope, j + i);
      sum[i] += r * r;
    }
  for (; j < end; j++) {
    double r = to[j] - from->x[j] - h * smc_slope_at(&slope, j);
    sum[0] += r * r;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Log density of moving from particle k of `from` to column k of `to`. */
static inline double smc_langevin_log_density(const smc_cloud *from, int k,
                                              smc_level level,
                                              const double *to) {
  return smc_langevin_normaliser(from->d, level) -
         smc_langevin_distance(from, k, level, to) / (4.0 * level.step_size);
}

#endif
