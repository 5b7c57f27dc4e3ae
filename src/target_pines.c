/* target_pines.c: log-Gaussian Cox process in whitened coordinates.
 *
 * A point z ~ N(0, I) gives the log intensity f = L z + mu of the cells, and
 * a cell with count y adds y f - area exp(f).
 */
#define R_NO_REMAP
#define STRICT_R_HEADERS
#include "product.h"
#include "targets.h"
#include <R.h>
#include <Rinternals.h>
#include <math.h>

typedef struct {
  int d;
  const double *counts; /* d, inside the R object */
  const double *chol;   /* d x d, inside the R object; lower triangle L */
  double mu, area;
  double *f;       /* d x TARGET_BLOCK work space */
  double *scratch; /* of the products */
} cox;

void *target_pines_init(SEXP data) {
  if (!Rf_isNewList(data) || Rf_length(data) != 4)
    Rf_error("`data` must be a list of 4");
  SEXP counts = VECTOR_ELT(data, 0), chol = VECTOR_ELT(data, 1);
  cox *c = (cox *)R_alloc(1, sizeof *c);
  c->d = Rf_length(counts);
  if (Rf_nrows(chol) != c->d || Rf_ncols(chol) != c->d)
    Rf_error("`chol` must have one row and one column for every count");
  c->counts = REAL(counts);
  c->chol = REAL(chol);
  c->mu = Rf_asReal(VECTOR_ELT(data, 2));
  c->area = Rf_asReal(VECTOR_ELT(data, 3));
  smc_matrix l = smc_triangle(c->chol, c->d, false);
  c->f = (double *)R_alloc((size_t)c->d * TARGET_BLOCK, sizeof(double));
  c->scratch =
      (double *)R_alloc(smc_product_scratch(&l, TARGET_BLOCK), sizeof(double));
  return c;
}

/* Log density of one point.
 *   z  in      d
 *   f  in/out  L z, replaced by the derivative of the likelihood by f */
static double cox_point(const cox *c, const double *z, double *f) {
  double likelihood = 0, squares = 0;
  for (int i = 0; i < c->d; i++) {
    double log_intensity = f[i] + c->mu, mean = c->area * exp(log_intensity);
    likelihood += c->counts[i] * log_intensity - mean;
    squares += z[i] * z[i];
    f[i] = c->counts[i] - mean;
  }
  return likelihood - squares / 2 - c->d * TARGET_LOG_SQRT_2PI;
}

static void block(const cox *c, int n, const double *z, double *logp,
                  double *grad) {
  smc_matrix l = smc_triangle(c->chol, c->d, false);
  smc_matrix transpose = smc_triangle(c->chol, c->d, true);
  smc_multiply(&l, n, z, c->scratch, c->f);
  for (int k = 0; k < n; k++) {
    size_t at = target_column(c->d, k);
    logp[k] = cox_point(c, z + at, c->f + at);
  }
  if (!grad)
    return;
  smc_multiply(&transpose, n, c->f, c->scratch, grad);
  for (size_t i = 0; i < target_column(c->d, n); i++)
    grad[i] -= z[i];
}

int target_pines(void *data, int d, int n, const double *x, double *logp,
                 double *grad) {
  const cox *c = data;
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
