/* target_sonar.c: Bayesian logistic regression with a N(0, I) prior.
 *
 * The signs of the labels go into the design once, row by row, so that the
 * likelihood of a datum is sigmoid(m) with the margin m = (signed row) . x,
 * whatever its label.
 */
#define R_NO_REMAP
#define STRICT_R_HEADERS
#include "product.h"
#include "targets.h"
#include <R.h>
#include <Rinternals.h>
#include <math.h>

/* Factors in (1, 2] whose product cannot overflow: 2^500 < 1.8e308. */
enum { CHUNK = 500 };

typedef struct {
  int m, d;
  double *design;  /* m x d, rows times +1 (y = 1) or -1 (y = 0) */
  double *margins; /* m x TARGET_BLOCK work space */
  double *scratch; /* of the products */
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
  size_t m = (size_t)c->m;
  c->design = (double *)R_alloc(m * (size_t)c->d, sizeof(double));
  c->margins = (double *)R_alloc(m * TARGET_BLOCK, sizeof(double));
  smc_matrix rows = rows_of(c), columns = columns_of(c);
  size_t least = smc_product_scratch(&rows, TARGET_BLOCK);
  size_t most = smc_product_scratch(&columns, TARGET_BLOCK);
  c->scratch = (double *)R_alloc(most > least ? most : least, sizeof(double));
  for (int j = 0; j < c->d; j++)
    for (int i = 0; i < c->m; i++) {
      size_t at = target_column(c->m, j) + (size_t)i;
      c->design[at] = (REAL(y)[i] > 0.5 ? 1 : -1) * REAL(x)[at];
    }
  return c;
}

/* Log likelihood of up to CHUNK data: sum of
 *   log sigmoid(m) = min(m, 0) - log(1 + exp(-|m|)),
 * with one logarithm for the product of all 1 + exp(-|m|).
 *   m  in/out  margins, replaced by d log sigmoid(m) / dm = sigmoid(-m) */
static double chunk(int n, double *m) {
  double sum = 0, product = 1;
  for (int i = 0; i < n; i++) {
    double e = exp(-fabs(m[i])), one_plus_e = 1 + e;
    sum += m[i] < 0 ? m[i] : 0;
    product *= one_plus_e;
    m[i] = (m[i] > 0 ? e : 1) / one_plus_e;
  }
  return sum - log(product);
}

static double log_likelihood(int n, double *m) {
  double sum = 0;
  for (int i = 0; i < n; i += CHUNK)
    sum += chunk(n - i < CHUNK ? n - i : CHUNK, m + i);
  return sum;
}

static double log_prior(int d, const double *x) {
  double sum = 0;
  for (int i = 0; i < d; i++)
    sum += x[i] * x[i];
  return -sum / 2 - d * TARGET_LOG_SQRT_2PI;
}

/* Gradient: design' sigmoid(-margins) - x. */
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
    logp[k] = log_likelihood(c->m, c->margins + target_column(c->m, k)) +
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
  for (int k = 0; k < n; k += TARGET_BLOCK) {
    int size = n - k < TARGET_BLOCK ? n - k : TARGET_BLOCK;
    size_t at = target_column(d, k);
    block(c, size, x + at, logp + k, grad ? grad + at : NULL);
  }
  return 0;
}
