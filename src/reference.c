#include "reference.h"

#include "normals.h"
#include "vecmath.h"

#include <string.h>

typedef struct kind {
  bool on_user_scale;
  void (*sample)(const smc_reference *reference, const uint32_t key[2], int d,
                 int first, int n, double *z);
  int (*evaluate)(const smc_reference *reference, int d, int n,
                  const double *at, double *log_q, double *grad);
} kind;

/* normal ------------------------------------------------------------------ */

static void sample_normal(const smc_reference *reference, const uint32_t key[2],
                          int d, int first, int n, double *z) {
  (void)reference;
  smc_stream stream = smc_substream(key, SMC_STAGE_INITIAL, 0, 0);
  smc_normal_matrix(&stream, d, first, n, z);
}

static int evaluate_normal(const smc_reference *reference, int d, int n,
                           const double *at, double *log_q, double *grad) {
  (void)reference;
  double log_normaliser = 0.5 * d * log(SMC_TWO_PI);
  for (int k = 0; k < n; k++)
    log_q[k] =
        -0.5 * smc_sum_of_squares(d, at + smc_size(d, k)) - log_normaliser;
  size_t dn = grad ? smc_size(d, n) : 0;
  SMC_SIMD
  for (size_t j = 0; j < dn; j++)
    grad[j] = -at[j];
  return 0;
}

/* Student's t ------------------------------------------------------------- */

/* A normal draw over the root of a mean square of `df` others: particles have
 * the directions of the normal draws, and lengths of their own. */
static void sample_student(const smc_reference *reference,
                           const uint32_t key[2], int d, int first, int n,
                           double *z) {
  double shape = 0.5 * reference->df;
  sample_normal(reference, key, d, first, n, z);
  for (int k = 0; k < n; k++, z += d) {
    double gamma =
        smc_gamma(key, SMC_STAGE_SCALE, (uint32_t)(first + k), shape);
    double scale = sqrt(shape / gamma);
    for (int i = 0; i < d; i++)
      z[i] *= scale;
  }
}

/* log Gamma(x) less the first terms of its expansion, for x >= 16. */
static double stirling_rest(double x) {
  double y = 1.0 / (x * x);
  return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x;
}

/* log of Gamma(a + b) / Gamma(a) a^-b, for positive a and b: as one expression,
 * since the difference of two log Gammas has no digits left for a large a. */
static double log_gamma_ratio(double a, double b) {
  double sum = -b * log(a);
  for (; a < 16.0; a += 1.0)
    sum -= log1p(b / a);
  return sum + b * log(a) + (a + b - 0.5) * log1p(b / a) - b +
         stirling_rest(a + b) - stirling_rest(a);
}

/*   log q = log Gamma((df + d) / 2) - log Gamma(df / 2) - d / 2 log(df pi)
 *           - (df + d) / 2 log(1 + |z|^2 / df) */
static int evaluate_student(const smc_reference *reference, int d, int n,
                            const double *at, double *log_q, double *grad) {
  double df = reference->df;
  double log_normaliser =
      0.5 * d * log(SMC_TWO_PI) - log_gamma_ratio(0.5 * df, 0.5 * d);
  for (int k = 0; k < n; k++) {
    const double *z = at + smc_size(d, k);
    double square = smc_sum_of_squares(d, z);
    log_q[k] = -0.5 * (df + d) * log1p(square / df) - log_normaliser;
    for (int i = 0; grad && i < d; i++)
      grad[smc_size(d, k) + (size_t)i] = -(df + d) * z[i] / (df + square);
  }
  return 0;
}

/* mixture ----------------------------------------------------------------- */

/* Element i of W_k (z - mean_k), for one point. */
static double standardised(const smc_mixture *mixture, int d, int k, int i,
                           const double *z) {
  const double *mean = mixture->means + smc_size(d, k);
  const double *factor = mixture->factors + smc_size(d, d) * (size_t)k;
  double sum = 0.0;
  for (int j = 0; j <= i; j++)
    sum += factor[smc_size(d, j) + (size_t)i] * (z[j] - mean[j]);
  return sum;
}

/* The log of weight times density of component k, but for -d/2 log(2 pi). */
static double log_component(const smc_mixture *mixture, int d, int k,
                            const double *z) {
  const double *factor = mixture->factors + smc_size(d, d) * (size_t)k;
  double value = log(mixture->weights[k]);
  for (int i = 0; i < d; i++) {
    double e = standardised(mixture, d, k, i, z);
    value += log(factor[smc_size(d, i) + (size_t)i]) - 0.5 * e * e;
  }
  return value;
}

static double log_mixture(const smc_mixture *mixture, int d, const double *z) {
  double largest = -INFINITY, sum = 0.0;
  for (int k = 0; k < mixture->n; k++) {
    double value = log_component(mixture, d, k, z);
    if (value > largest) {
      sum = sum * exp(largest - value) + 1.0;
      largest = value;
    } else {
      sum += exp(value - largest);
    }
  }
  return largest + log(sum);
}

/* grad: out, that of log_mixture(), whose value is log_sum. */
static void mixture_gradient(const smc_mixture *mixture, int d, const double *z,
                             double log_sum, double *grad) {
  for (int j = 0; j < d; j++)
    grad[j] = 0.0;
  for (int k = 0; k < mixture->n; k++) {
    const double *factor = mixture->factors + smc_size(d, d) * (size_t)k;
    double share = exp(log_component(mixture, d, k, z) - log_sum);
    for (int i = 0; i < d; i++) {
      double e = standardised(mixture, d, k, i, z);
      for (int j = 0; j <= i; j++)
        grad[j] -= share * e * factor[smc_size(d, j) + (size_t)i];
    }
  }
}

static int evaluate_mixture(const smc_reference *reference, int d, int n,
                            const double *at, double *log_q, double *grad) {
  const smc_mixture *mixture = &reference->mixture;
  double log_normaliser = 0.5 * d * log(SMC_TWO_PI);
  for (int k = 0; k < n; k++) {
    const double *z = at + smc_size(d, k);
    double log_sum = log_mixture(mixture, d, z);
    log_q[k] = log_sum - log_normaliser;
    if (grad)
      mixture_gradient(mixture, d, z, log_sum, grad + smc_size(d, k));
  }
  return 0;
}

/* The component in whose part of (0, 1) u lies. */
static int choose_component(const smc_mixture *mixture, double u) {
  int k = 0;
  for (double sum = mixture->weights[0]; k < mixture->n - 1 && u > sum; k++)
    sum += mixture->weights[k + 1];
  return k;
}

/* e in z becomes mean + W^-1 e, by forward substitution. */
static void place_in_component(const smc_mixture *mixture, int d, int k,
                               double *z) {
  const double *mean = mixture->means + smc_size(d, k);
  const double *factor = mixture->factors + smc_size(d, d) * (size_t)k;
  for (int i = 0; i < d; i++) {
    double rest = z[i];
    for (int j = 0; j < i; j++)
      rest -= factor[smc_size(d, j) + (size_t)i] * (z[j] - mean[j]);
    z[i] = mean[i] + rest / factor[smc_size(d, i) + (size_t)i];
  }
}

static void sample_mixture(const smc_reference *reference,
                           const uint32_t key[2], int d, int first, int n,
                           double *z) {
  smc_stream stream = smc_substream(key, SMC_STAGE_SCALE, 0, 0);
  sample_normal(reference, key, d, first, n, z);
  for (int k = 0; k < n; k++) {
    double u;
    smc_uniforms(&stream, (uint32_t)(first + k), 1, &u);
    place_in_component(&reference->mixture, d,
                       choose_component(&reference->mixture, u),
                       z + smc_size(d, k));
  }
}

/* callback ---------------------------------------------------------------- */

static void copy_draws(const smc_reference *reference, const uint32_t key[2],
                       int d, int first, int n, double *z) {
  (void)key;
  memcpy(z, reference->draws + smc_size(d, first),
         smc_size(d, n) * sizeof(double));
}

static int evaluate_callback(const smc_reference *reference, int d, int n,
                             const double *at, double *log_q, double *grad) {
  return reference->density(reference->data, d, n, at, log_q, grad);
}

/* ------------------------------------------------------------------------- */

static const kind kinds[] = {
    [SMC_REFERENCE_NORMAL] = {false, sample_normal, evaluate_normal},
    [SMC_REFERENCE_STUDENT] = {false, sample_student, evaluate_student},
    [SMC_REFERENCE_MIXTURE] = {false, sample_mixture, evaluate_mixture},
    [SMC_REFERENCE_CALLBACK] = {true, copy_draws, evaluate_callback}};

bool smc_reference_is_on_user_scale(const smc_reference *reference) {
  return kinds[reference->type].on_user_scale;
}

void smc_reference_sample(const smc_reference *reference, const uint32_t key[2],
                          int d, int first, int n, double *z) {
  kinds[reference->type].sample(reference, key, d, first, n, z);
}

int smc_reference_evaluate(const smc_reference *reference, int d, int n,
                           const double *at, double *log_q, double *grad) {
  return kinds[reference->type].evaluate(reference, d, n, at, log_q, grad);
}
