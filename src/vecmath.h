/* vecmath.h: sums over log weights that survive weights of any size. */
#ifndef SMC_VECMATH_H
#define SMC_VECMATH_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define SMC_TWO_PI 6.283185307179586476925286766559

/* Before a loop whose turns do not depend on each other, or but for `sum`,
 * which may be taken in any order: the compiler may do several at a time. */
#ifdef _OPENMP
#define SMC_SIMD _Pragma("omp simd")
#define SMC_SIMD_SUM _Pragma("omp simd reduction(+ : sum)")
#else
#define SMC_SIMD
#define SMC_SIMD_SUM
#endif

static inline size_t smc_size(int rows, int columns) {
  return (size_t)rows * (size_t)columns;
}

static inline double smc_dot(int n, const double *x, const double *y) {
  double sum = 0.0;
  SMC_SIMD_SUM
  for (int i = 0; i < n; i++)
    sum += x[i] * y[i];
  return sum;
}

/* x <- x + by y */
static inline void smc_add(int n, double by, const double *y, double *x) {
  SMC_SIMD
  for (int i = 0; i < n; i++)
    x[i] += by * y[i];
}

/* Whether all of n values are numbers. */
static inline bool smc_all_finite(int n, const double *x) {
  double sum[4] = {0.0, 0.0, 0.0, 0.0}; /* unless a term is NaN or infinite */
  int i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; j++)
      sum[j] += 0.0 * x[i + j];
  for (; i < n; i++)
    sum[0] += 0.0 * x[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]) == 0.0;
}

/* The largest of n values; -Inf when all are. */
static inline double smc_max(int n, const double *x) {
  double largest = -INFINITY;
  for (int i = 0; i < n; i++)
    if (x[i] > largest)
      largest = x[i];
  return largest;
}

/* Normalise n log weights: weights w (out, n) sum to one.
 * Subtracts the maximum and divides by the sum: exp(lw - logsumexp(lw)) would
 * lose its sum to one when |lw| is huge. Returns the log of the sum of the
 * weights as they were, log sum exp; or -Inf when all are (w is then left
 * untouched). */
static inline double smc_normalise(int n, const double *log_weight, double *w) {
  double largest = smc_max(n, log_weight), sum = 0.0;
  if (!(largest > -INFINITY))
    return -INFINITY;
  for (int i = 0; i < n; i++) {
    w[i] = exp(log_weight[i] - largest);
    sum += w[i];
  }
  for (int i = 0; i < n; i++)
    w[i] /= sum;
  return largest + log(sum);
}

/* The logs of these weights (out, n), likewise; all -Inf where all are. */
static inline void smc_normalise_log(int n, const double *log_weight,
                                     double *out) {
  double largest = smc_max(n, log_weight), sum = 0.0;
  if (!(largest > -INFINITY)) {
    memcpy(out, log_weight, (size_t)n * sizeof(double));
    return;
  }
  for (int i = 0; i < n; i++) {
    out[i] = log_weight[i] - largest;
    sum += exp(out[i]);
  }
  double log_sum = log(sum);
  for (int i = 0; i < n; i++)
    out[i] -= log_sum;
}

/* Effective sample size 1 / sum w^2 of n normalised weights. */
static inline double smc_ess(int n, const double *w) {
  double sum = 0.0;
  for (int i = 0; i < n; i++)
    sum += w[i] * w[i];
  return 1.0 / sum;
}

/* In four sums that do not wait for each other, the same ones everywhere. */
static inline double smc_sum_of_squares(int n, const double *x) {
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  int i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; j++)
      sum[j] += x[i + j] * x[i + j];
  for (; i < n; i++)
    sum[0] += x[i] * x[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

#endif
