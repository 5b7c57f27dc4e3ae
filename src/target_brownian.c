/* target_brownian.c: a Brownian motion seen with noise, but not in the middle.
 *
 * Coordinates: the positions x_1..x_30, then theta_a and theta_b, which give
 * the innovation scale a = softplus(theta_a) and the observation scale
 * b = softplus(theta_b). Both scales are LogNormal(0, 2).
 */
#include "targets.h"
#include <float.h>
#include <math.h>

enum {
  N_STEPS = 30,
  N_OBSERVED = 20,
  FIRST_GAP = 10, /* positions 10..19, counted from 0, are not observed */
  GAP = 10,
  DIM = N_STEPS + 2
};

static const double observed[N_OBSERVED] = {
    0.21592641,  0.118771404, -0.07945447, 0.037677474, -0.27885845,
    -0.1484156,  -0.3250906,  -0.22957903, -0.44110894, -0.09830782,
    -0.8786016,  -0.83736074, -0.7384849,  -0.8939254,  -0.7774566,
    -0.70238715, -0.87771565, -0.51853573, -0.6948214,  -0.6202789};

static const double scale_sd = 2; /* of log a and log b */

/* Below this, log softplus(theta) = theta to the last bit. */
static const double softplus_is_exp = -40;

/* Neither branch overflows, and log1p keeps the small values. */
static double softplus(double theta) {
  return (theta > 0 ? theta : 0) + log1p(exp(-fabs(theta)));
}

/* softplus() itself underflows at -745, its logarithm does not. */
static double log_softplus(double theta) {
  return theta < softplus_is_exp ? theta : log(softplus(theta));
}

/* One scale s = softplus(theta), and what its normals need. */
typedef struct {
  double log_scale; /* log s */
  double dlog;      /* d log s / d theta */
  double precision; /* 1 / s^2 */
} scale;

/* The precision is kept finite, so that a residual of 0 counts 0. */
static scale scale_at(double theta) {
  double log_scale = log_softplus(theta);
  scale s = {.log_scale = log_scale,
             .dlog = exp(-softplus(-theta) - log_scale),
             .precision = fmin(exp(-2 * log_scale), DBL_MAX)};
  return s;
}

/* LogNormal(0, 2) log density of s, plus log ds/dtheta = log sigmoid(theta). */
static double scale_prior(double theta, const scale *s, double *slope) {
  double z = s->log_scale / scale_sd;
  *slope = -(1 + z / scale_sd) * s->dlog + exp(-softplus(theta));
  return -z * z / 2 - s->log_scale - log(scale_sd) - TARGET_LOG_SQRT_2PI -
         softplus(-theta);
}

/* n normal residuals of scale s with the given sum of squares. The square and
 * the precision meet as logarithms: one may underflow where the other
 * overflows. */
static double residuals(int n, double sum, const scale *s, double *slope) {
  double squares = exp(log(sum) - 2 * s->log_scale);
  *slope += (squares - n) * s->dlog;
  return -squares / 2 - n * (s->log_scale + TARGET_LOG_SQRT_2PI);
}

static int position_of(int observation) {
  return observation < FIRST_GAP ? observation : observation + GAP;
}

static double innovation(const double *x, int i) {
  return x[i] - (i > 0 ? x[i - 1] : 0);
}

static void position_gradient(const double *x, const scale *a, const scale *b,
                              double *grad) {
  for (int i = 0; i < N_STEPS; i++) {
    double step = a->precision * innovation(x, i);
    grad[i] = -step;
    if (i > 0)
      grad[i - 1] += step;
  }
  for (int j = 0; j < N_OBSERVED; j++) {
    int i = position_of(j);
    grad[i] += b->precision * (observed[j] - x[i]);
  }
}

static double brownian_point(const double *x, double *grad) {
  const double *theta = x + N_STEPS;
  scale a = scale_at(theta[0]), b = scale_at(theta[1]);
  double sum_a = 0, sum_b = 0, slope[2];
  for (int i = 0; i < N_STEPS; i++)
    sum_a += innovation(x, i) * innovation(x, i);
  for (int j = 0; j < N_OBSERVED; j++) {
    double residual = observed[j] - x[position_of(j)];
    sum_b += residual * residual;
  }
  double logp = scale_prior(theta[0], &a, &slope[0]) +
                scale_prior(theta[1], &b, &slope[1]) +
                residuals(N_STEPS, sum_a, &a, &slope[0]) +
                residuals(N_OBSERVED, sum_b, &b, &slope[1]);
  if (grad) {
    position_gradient(x, &a, &b, grad);
    grad[N_STEPS] = slope[0];
    grad[N_STEPS + 1] = slope[1];
  }
  return logp;
}

int target_brownian(void *data, int d, int n, const double *x, double *logp,
                    double *grad) {
  (void)data;
  if (d != DIM)
    return TARGET_BAD_DIM;
  for (int k = 0; k < n; k++) {
    size_t at = target_column(d, k);
    logp[k] = brownian_point(x + at, grad ? grad + at : NULL);
  }
  return 0;
}
