/* target_funnel.c: Neal's funnel, with log Z = 0. */
#include "targets.h"
#include <math.h>

static const double sd_first = 3;

/* The first coordinate is the log variance of all the others. */
static double funnel_point(int d, const double *x, double *grad) {
  double z = x[0] / sd_first, precision = exp(-x[0]), sum = 0;
  for (int i = 1; i < d; i++)
    sum += x[i] * x[i];
  if (grad) {
    grad[0] = -z / sd_first - (d - 1) / 2.0 + precision * sum / 2;
    for (int i = 1; i < d; i++)
      grad[i] = -precision * x[i];
  }
  return -z * z / 2 - log(sd_first) - (d - 1) * x[0] / 2 - precision * sum / 2 -
         d * TARGET_LOG_SQRT_2PI;
}

int target_funnel(void *data, int d, int n, const double *x, double *logp,
                  double *grad) {
  (void)data;
  if (d < 1)
    return TARGET_BAD_DIM;
  for (int k = 0; k < n; k++) {
    size_t at = target_column(d, k);
    logp[k] = funnel_point(d, x + at, grad ? grad + at : NULL);
  }
  return 0;
}
