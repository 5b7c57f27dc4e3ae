/* test_reference.c: the Student t and the mixture; the other references are in
 * test_path.c. */
#include "reference.h"
#include "toy.h"

#include <stdlib.h>

static smc_reference student(double df) {
  return (smc_reference){.type = SMC_REFERENCE_STUDENT, .df = df};
}

/* Its density by the textbook's formula, where that is accurate. */
static void test_density(void) {
  enum { n = 5 };
  static const double dfs[] = {0.3, 1.0, 2.5, 4.0, 31.0, 200.0};
  double off = 0.0;
  dice r = {720};
  for (int i = 0; i < 6; i++)
    for (int d = 1; d < 8; d++) {
      smc_reference q = student(dfs[i]);
      double z[7 * n], log_q[n], df = dfs[i];
      for (int j = 0; j < d * n; j++)
        z[j] = 3.0 * dice_normal(&r);
      CHECK(smc_reference_evaluate(&q, d, n, z, log_q, NULL) == 0);
      for (int k = 0; k < n; k++) {
        double square = 0.0;
        for (int j = 0; j < d; j++)
          square += z[d * k + j] * z[d * k + j];
        double expected = lgamma(0.5 * (df + d)) - lgamma(0.5 * df) -
                          0.5 * d * log(df * 3.141592653589793) -
                          0.5 * (df + d) * log(1.0 + square / df);
        off = fmax(off, fabs(log_q[k] - expected));
      }
    }
  CHECK_NEAR(off, 0.0, 1e-10);
}

/* With many degrees of freedom it is the normal one, to the last digits. */
static void test_limit(void) {
  enum { d = 50 };
  const smc_reference normal = {.type = SMC_REFERENCE_NORMAL};
  smc_reference q = student(1e15);
  double z[d], p, t, grad_p[d], grad_t[d];
  dice r = {721};
  for (int i = 0; i < d; i++)
    z[i] = dice_normal(&r);
  smc_reference_evaluate(&normal, d, 1, z, &p, grad_p);
  smc_reference_evaluate(&q, d, 1, z, &t, grad_t);
  CHECK_NEAR(t, p, 1e-11);
  CHECK_NEAR(grad_t[3], grad_p[3], 1e-11);
}

static void test_gradient(void) {
  enum { d = 4 };
  const double step = 1e-5;
  smc_reference q = student(2.5);
  double z[d] = {0.3, -2.0, 1.1, 4.0}, grad[d], middle, side[2], off = 0.0;
  smc_reference_evaluate(&q, d, 1, z, &middle, grad);
  for (int i = 0; i < d; i++) {
    for (int s = 0; s < 2; s++) {
      double moved[d] = {z[0], z[1], z[2], z[3]};
      moved[i] += (2 * s - 1) * step;
      smc_reference_evaluate(&q, d, 1, moved, &side[s], NULL);
    }
    off = fmax(off, fabs(grad[i] - (side[1] - side[0]) / (2.0 * step)));
  }
  CHECK_NEAR(off, 0.0, 1e-9);
}

/* Gammas of any shape have mean and variance `shape`, and E[1 / (1 + x)] by
 * quadrature; 4.5 standard errors. */
static void test_gamma(void) {
  static const double shapes[] = {0.05, 0.5, 1.0, 1.5, 7.0, 500.0};
  const uint32_t key[2] = {7, 8};
  for (int i = 0; i < 6; i++) {
    double a = shapes[i], expected = 0.0, total = 0.0;
    sample mean = {0}, square = {0}, inverse = {0};
    for (uint32_t k = 0; k < 50000; k++) {
      double x = smc_gamma(key, SMC_STAGE_SCALE, k, a);
      sample_add(&mean, x);
      sample_add(&square, (x - a) * (x - a));
      sample_add(&inverse, 1.0 / (1.0 + x));
    }
    for (double u = -600.0; u < 10.0; u += 0.005) { /* x = exp(u) */
      double x = exp(u), p = exp(a * u - x - lgamma(a)) * 0.005;
      expected += p / (1.0 + x);
      total += p;
    }
    CHECK_NEAR(total, 1.0, 1e-8);
    CHECK_NEAR(sample_mean(&mean), a, 4.5 * sample_error(&mean));
    CHECK_NEAR(sample_mean(&square), a, 4.5 * sample_error(&square));
    CHECK_NEAR(sample_mean(&inverse), expected, 4.5 * sample_error(&inverse));
  }
}

/* The first of many draws z are those of a few, however these are drawn. */
static void check_own_draws(const smc_reference *q, const uint32_t key[2],
                            const double *z) {
  double fewer[20];
  long differ = 0;
  smc_reference_sample(q, key, 2, 0, 7, fewer);
  smc_reference_sample(q, key, 2, 7, 3, fewer + 14);
  for (int j = 0; j < 20; j++)
    differ += z[j] != fewer[j];
  CHECK_NONE(differ, 20, "a draw does not depend on the number of particles");
}

/* Three components of two dimensions: W has the inverse of the factor of the
 * covariance. */
enum { N_MIXED = 3 };
static const double mix_weights[N_MIXED] = {0.3, 0.5, 0.2};
static const double mix_means[2 * N_MIXED] = {-1.0, 2.0, 1.5, 0.0, 4.0, -3.0};
static const double mix_factors[4 * N_MIXED] = {2.0, 0.5, 0.0, 1.0, 0.8, -0.4,
                                                0.0, 3.0, 1.0, 0.3, 0.0, 1.5};

static smc_reference mixture(void) {
  return (smc_reference){
      .type = SMC_REFERENCE_MIXTURE,
      .mixture = {N_MIXED, mix_weights, mix_means, mix_factors}};
}

/* Its density, written out. */
static double mixture_density(const double *z) {
  double sum = 0.0;
  for (int k = 0; k < N_MIXED; k++) {
    const double *w = mix_factors + 4 * k, *m = mix_means + 2 * k;
    double e0 = w[0] * (z[0] - m[0]);
    double e1 = w[1] * (z[0] - m[0]) + w[3] * (z[1] - m[1]);
    sum += mix_weights[k] * w[0] * w[3] * exp(-0.5 * (e0 * e0 + e1 * e1)) /
           (2.0 * 3.141592653589793);
  }
  return sum;
}

static void test_mixture_density(void) {
  const double step = 1e-5;
  smc_reference q = mixture();
  double off = 0.0, slope_off = 0.0, far[2] = {60.0, -80.0}, value, grad[2];
  dice r = {723};
  for (int i = 0; i < 40; i++) {
    double z[2] = {2.0 * dice_normal(&r), 2.0 * dice_normal(&r)}, log_q;
    smc_reference_evaluate(&q, 2, 1, z, &log_q, grad);
    off = fmax(off, fabs(log_q - log(mixture_density(z))));
    for (int j = 0; j < 2; j++) {
      double up[2] = {z[0], z[1]}, down[2] = {z[0], z[1]};
      up[j] += step;
      down[j] -= step;
      double slope = (log(mixture_density(up)) - log(mixture_density(down))) /
                     (2.0 * step);
      slope_off = fmax(slope_off, fabs(grad[j] - slope) / (1.0 + fabs(slope)));
    }
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  CHECK_NEAR(slope_off, 0.0, 1e-7);
  /* where no component has a density that is a number */
  smc_reference_evaluate(&q, 2, 1, far, &value, grad);
  CHECK(isfinite(value) && value < -1000.0 && isfinite(grad[0] + grad[1]));
}

/* Draws have the moments of the mixture: 4.5 standard errors. */
static void test_mixture_draws(void) {
  enum { n = 40000 };
  const uint32_t key[2] = {5, 11};
  smc_reference q = mixture();
  double *z = take_doubles(2 * n);
  smc_reference_sample(&q, key, 2, 0, n, z);
  check_own_draws(&q, key, z);
  sample first = {0}, second = {0}, product = {0};
  for (int k = 0; k < n; k++) {
    sample_add(&first, z[2 * k]);
    sample_add(&second, z[2 * k + 1]);
    sample_add(&product, z[2 * k] * z[2 * k + 1]);
  }
  /* z = m + W^-1 e: W^-1 = (1/a, 0; -b / (a c), 1/c) */
  double mean[2] = {0.0, 0.0}, cross = 0.0;
  for (int k = 0; k < N_MIXED; k++) {
    const double *w = mix_factors + 4 * k, *m = mix_means + 2 * k;
    mean[0] += mix_weights[k] * m[0];
    mean[1] += mix_weights[k] * m[1];
    cross += mix_weights[k] * (m[0] * m[1] - w[1] / (w[0] * w[0] * w[3]));
  }
  CHECK_NEAR(sample_mean(&first), mean[0], 4.5 * sample_error(&first));
  CHECK_NEAR(sample_mean(&second), mean[1], 4.5 * sample_error(&second));
  CHECK_NEAR(sample_mean(&product), cross, 4.5 * sample_error(&product));
  free(z);
}

/* In two dimensions P(|z|^2 > s) = (1 + s / df)^(-df / 2), and the angle is
 * uniform: 4.5 standard errors. Every particle's draw is its own. */
static void test_draws(void) {
  enum { n = 40000 };
  static const double dfs[] = {0.5, 1.5, 4.0, 1000.0};
  const uint32_t key[2] = {3, 9};
  double *z = take_doubles(2 * n);
  for (int i = 0; i < 4; i++) {
    smc_reference q = student(dfs[i]);
    smc_reference_sample(&q, key, 2, 0, n, z);
    check_own_draws(&q, key, z);
    for (double p = 0.05; p < 1.0; p += 0.15) {
      double limit = dfs[i] * (pow(p, -2.0 / dfs[i]) - 1.0);
      double beyond = 0.0, upper = 0.0;
      for (int k = 0; k < n; k++) {
        bool far = z[2 * k] * z[2 * k] + z[2 * k + 1] * z[2 * k + 1] > limit;
        beyond += far;
        upper += far && z[2 * k] > z[2 * k + 1];
      }
      CHECK_NEAR(beyond / n, p, 4.5 * sqrt(p * (1.0 - p) / n));
      CHECK_NEAR(upper / n, p / 2, 4.5 * sqrt(p / 2 * (1.0 - p / 2) / n));
    }
  }
  free(z);
}

void test_reference(void) {
  test_density();
  test_limit();
  test_gradient();
  test_gamma();
  test_draws();
  test_mixture_density();
  test_mixture_draws();
}
