#include "driven.h"

#include "vecmath.h"

#include <math.h>

/* coefficients_j . z_drivers, for one particle. */
static double combine(const smc_driven *driven, const double *coefficients,
                      int d, int j, const double *z) {
  double sum = 0.0;
  for (int i = 0; i < driven->n_drivers; i++)
    sum += coefficients[smc_size(d, i) + (size_t)j] * z[driven->drivers[i]];
  return sum;
}

void smc_drive(const smc_driven *driven, int d, int n, const double *z,
               double *u) {
  for (int k = 0; k < n; k++, z += d, u += d)
    for (int j = 0; j < d; j++)
      u[j] = z[j] * exp(combine(driven, driven->slope, d, j, z)) +
             combine(driven, driven->shift, d, j, z);
}

/* One particle: its gradient in u becomes that in z. What a driver collects
 * does not count again when its own turn comes: its coefficients are 0. */
static void pull_back(const smc_driven *driven, int d, const double *z,
                      double *grad) {
  for (int j = 0; j < d; j++) {
    double scale = exp(combine(driven, driven->slope, d, j, z));
    double by_scale = grad[j] * z[j] * scale + 1.0; /* 1: of the Jacobian */
    for (int i = 0; i < driven->n_drivers; i++) {
      size_t ij = smc_size(d, i) + (size_t)j;
      grad[driven->drivers[i]] +=
          driven->shift[ij] * grad[j] + driven->slope[ij] * by_scale;
    }
    grad[j] *= scale;
  }
}

void smc_drive_back(const smc_driven *driven, int d, int n, const double *z,
                    double *logp, double *grad) {
  for (int k = 0; k < n; k++, z += d) {
    for (int j = 0; j < d; j++)
      logp[k] += combine(driven, driven->slope, d, j, z);
    if (grad)
      pull_back(driven, d, z, grad + smc_size(d, k));
  }
}
