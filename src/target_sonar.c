/* target_sonar.c: Bayesian logistic regression with a N(0, I) prior.
 *
 * The likelihood of a datum is sigmoid(m) with the margin m = sign * row . x,
 * where the sign is that of its label.
 */
#define R_NO_REMAP
#define STRICT_R_HEADERS
#include "product.h"
#include "targets.h"
#include "vecmath.h"
#include "wide.h"
#include <R.h>
#include <Rinternals.h>
#include <stdint.h>
#include <string.h>

/* Factors in (1, 2] whose product cannot overflow: 2^500 < 1.8e308. */
enum { CHUNK = 500 };

/* Sizes of margins, above which exp(-size) would have fewer digits. */
#define LARGEST 708.0

/* Points at a time: as many as smc_multiply() packs at once. */
enum { POINTS = 64 };

typedef struct {
  int m, d;
  const double *design; /* m x d */
  double *sign;         /* m: +1 (y = 1) or -1 (y = 0) */
  double *margins;      /* m x POINTS work space */
  double *scratch;      /* of the products */
} logistic;

static smc_matrix rows_of(const logistic *c) {
  return (smc_matrix){.x = c->design, .rows = c->m, .columns = c->d};
}

static smc_matrix columns_of(const logistic *c) {
  return (smc_matrix){
      .x = c->design, .rows = c->d, .columns = c->m, .transposed = true};
}

void *target_sonar_init(SEXP data) {
  if (!Rf_isNewList(data) || Rf_length(data) != 2)
    Rf_error("`data` must be a list of 2");
  SEXP x = VECTOR_ELT(data, 0), y = VECTOR_ELT(data, 1);
  logistic *c = (logistic *)R_alloc(1, sizeof *c);
  c->m = Rf_nrows(x);
  c->d = Rf_ncols(x);
  if (Rf_length(y) != c->m)
    Rf_error("`y` must have one value for every row of `x`");
  c->design = REAL(x);
  c->sign = (double *)R_alloc((size_t)c->m, sizeof(double));
  c->margins = (double *)R_alloc(target_column(c->m, POINTS), sizeof(double));
  smc_matrix rows = rows_of(c), columns = columns_of(c);
  size_t least = smc_product_scratch(&rows, POINTS);
  size_t most = smc_product_scratch(&columns, POINTS);
  c->scratch = (double *)R_alloc(most > least ? most : least, sizeof(double));
  const double *label = REAL(y);
  for (int i = 0; i < c->m; i++)
    c->sign[i] = label[i] > 0.5 ? 1 : -1;
  return c;
}

/* exp(-x), 0 <= x <= LARGEST, to the last place or two, without a branch or a
 * table, so that the compiler can make several at a time: exp(-x) = 2^k exp(r),
 * where r is at most log(2) / 2 in size. Of exp(r) the series up to degree 13
 * is left, by Horner's rule. */
static inline double exp_of_minus(double x) {
  const double to_integer = 0x1.8p52; /* added to k, it leaves no fraction */
  const double log2_high = 0x1.62e42fefa3800p-1;
  const double log2_low = 0x1.ef35793c76730p-45;
  double shifted = to_integer - x * 1.4426950408889634, scale;
  double k = shifted - to_integer;
  double r = (-x - k * log2_high) - k * log2_low;
  double power = 1.0 / 6227020800;
  power = power * r + 1.0 / 479001600;
  power = power * r + 1.0 / 39916800;
  power = power * r + 1.0 / 3628800;
  power = power * r + 1.0 / 362880;
  power = power * r + 1.0 / 40320;
  power = power * r + 1.0 / 5040;
  power = power * r + 1.0 / 720;
  power = power * r + 1.0 / 120;
  power = power * r + 1.0 / 24;
  power = power * r + 1.0 / 6;
  power = power * r + 0.5;
  power = power * r + 1.0;
  power = power * r + 1.0;
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  memcpy(&scale, &bits, sizeof scale);
  return power * scale;
}

/* Of n data with the margins sign * m: log sigmoid(margin) is `low` -
 * log(`factor`), min(margin, 0) - log(1 + exp(-|margin|)).
 *   m            in/out  replaced by the slope by m, sign * sigmoid(-margin)
 *   low, factor  out     n
 * In two loops, each without a branch: `factor` is first the size, and m
 * whether the margin is negative. */
typedef void sigmoids_fn(int n, const double *sign, double *m, double *low,
                         double *factor);

#define DEFINE_SIGMOIDS(name, attribute)                                       \
  attribute static void name(int n, const double *restrict sign,               \
                             double *restrict m, double *restrict low,         \
                             double *restrict factor) {                        \
    SMC_SIMD                                                                   \
    for (int i = 0; i < n; i++) {                                              \
      double margin = sign[i] * m[i], size = fabs(margin);                     \
      low[i] = (margin - size) / 2;                                            \
      factor[i] = size < LARGEST ? size : LARGEST;                             \
      m[i] = margin < 0 ? 1 : 0;                                               \
    }                                                                          \
    SMC_SIMD                                                                   \
    for (int i = 0; i < n; i++) {                                              \
      double e = exp_of_minus(factor[i]), part = e / (1 + e);                  \
      factor[i] = 1 + e;                                                       \
      m[i] = sign[i] * (part + m[i] * (1 - 2 * part));                         \
    }                                                                          \
  }

DEFINE_SIGMOIDS(narrow_sigmoids, )
#ifdef SMC_HAS_WIDE
DEFINE_SIGMOIDS(wide_sigmoids, SMC_WIDE)
#endif

static sigmoids_fn *choose_sigmoids(void) {
#ifdef SMC_HAS_WIDE
  if (smc_is_wide())
    return wide_sigmoids;
#endif
  return narrow_sigmoids;
}

/* Log likelihood of up to CHUNK data, with one logarithm for all; the slopes
 * are left in m. In four sums and products, the same ones everywhere. */
static double chunk(int n, const double *sign, double *m) {
  double low[CHUNK + 3], factor[CHUNK + 3];
  double sum[4] = {0, 0, 0, 0}, product[4] = {1, 1, 1, 1};
  choose_sigmoids()(n, sign, m, low, factor);
  for (int i = n; i < n + 3; i++)
    low[i] = 0, factor[i] = 1;
  for (int i = 0; i < n; i += 4)
    for (int j = 0; j < 4; j++)
      sum[j] += low[i + j], product[j] *= factor[i + j];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]) -
         log((product[0] * product[1]) * (product[2] * product[3]));
}

static double log_likelihood(int n, const double *sign, double *m) {
  double sum = 0;
  for (int i = 0; i < n; i += CHUNK)
    sum += chunk(n - i < CHUNK ? n - i : CHUNK, sign + i, m + i);
  return sum;
}

static double log_prior(int d, const double *x) {
  double sum = 0;
  for (int i = 0; i < d; i++)
    sum += x[i] * x[i];
  return -sum / 2 - d * TARGET_LOG_SQRT_2PI;
}

/* Gradient: design' (slopes of the log likelihood, in `margins`) - x. */
static void gradient(const logistic *c, int n, const double *x, double *grad) {
  smc_matrix columns = columns_of(c);
  smc_multiply(&columns, n, c->margins, c->scratch, grad);
  for (size_t i = 0; i < target_column(c->d, n); i++)
    grad[i] -= x[i];
}

static void block(const logistic *c, int n, const double *x, double *logp,
                  double *grad) {
  smc_matrix rows = rows_of(c);
  smc_multiply(&rows, n, x, c->scratch, c->margins);
  for (int k = 0; k < n; k++)
    logp[k] =
        log_likelihood(c->m, c->sign, c->margins + target_column(c->m, k)) +
        log_prior(c->d, x + target_column(c->d, k));
  if (grad)
    gradient(c, n, x, grad);
}

int target_sonar(void *data, int d, int n, const double *x, double *logp,
                 double *grad) {
  const logistic *c = data;
  if (!c)
    return TARGET_NO_CONTEXT;
  if (d != c->d)
    return TARGET_BAD_DIM;
  for (int k = 0; k < n; k += POINTS) {
    int size = n - k < POINTS ? n - k : POINTS;
    size_t at = target_column(d, k);
    block(c, size, x + at, logp + k, grad ? grad + at : NULL);
  }
  return 0;
}
