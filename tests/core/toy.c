#include "toy.h"

#include <string.h>

#define LOG_TWO_PI 1.8378770664093454835606594728112

double log_normal(double x, double mean, double variance) {
  double u = x - mean;
  return -0.5 * LOG_TWO_PI - 0.5 * log(variance) - 0.5 * u * u / variance;
}

/* 3 N(x; mean, sd^2 I) */
static double gaussian(int d, const double *x, double mean, double sd,
                       double *grad) {
  double sum = log(3.0);
  for (int i = 0; i < d; i++) {
    sum += log_normal(x[i], mean, sd * sd);
    if (grad)
      grad[i] = -(x[i] - mean) / (sd * sd);
  }
  return sum;
}

static double skewed(int d, const double *x, double *grad) {
  double sum = 0.7;
  for (int i = 0; i < d; i++) {
    double next = x[(i + 1) % d], last = x[(i + d - 1) % d];
    sum += -0.1 * x[i] * x[i] * x[i] * x[i] + 0.3 * x[i] * sin(next) - x[i];
    if (grad)
      grad[i] = -0.4 * x[i] * x[i] * x[i] + 0.3 * sin(next) +
                0.3 * last * cos(x[i]) - 1.0;
  }
  return sum;
}

double toy_log_density(toy_shape shape, int d, const double *x, double *grad) {
  switch (shape) {
  case TOY_SKEWED:
    return skewed(d, x, grad);
  case TOY_GAUSSIAN:
    return gaussian(d, x, 1.0, 0.7, grad);
  case TOY_HALF:
  case TOY_HALF_NAN: {
    double inside = gaussian(d, x, 0.5, 0.8, grad);
    if (x[0] > 0.0)
      return inside;
    if (grad && shape == TOY_HALF_NAN)
      grad[0] = NAN;
    return -INFINITY;
  }
  case TOY_IMPOSSIBLE:
    break;
  }
  if (grad)
    memset(grad, 0, (size_t)d * sizeof(double));
  return -INFINITY;
}

int toy_target(void *data, int d, int n, const double *x, double *logp,
               double *grad) {
  toy *t = data;
  t->calls++;
  t->points += n;
  t->gradient_calls += grad != NULL;
  if (t->last_x)
    memcpy(t->last_x, x, (size_t)d * (size_t)n * sizeof(double));
  if (t->calls == t->fail_at)
    return t->code;
  for (int k = 0; k < n; k++) {
    size_t first = (size_t)d * (size_t)k;
    logp[k] =
        toy_log_density(t->shape, d, x + first, grad ? grad + first : NULL);
  }
  return 0;
}

void toy_pause(void *data) { ((toy *)data)->pauses++; }

smc_cloud toy_cloud(int d, int n, bool velocities, bool gradients,
                    char **block) {
  smc_arena arena = {NULL, 0};
  smc_cloud_layout(&arena, d, n, velocities, gradients);
  *block = take_memory(arena.used);
  arena = (smc_arena){*block, 0};
  return smc_cloud_layout(&arena, d, n, velocities, gradients);
}
