/* target_gaussian.c: independent normals, with log Z = 0. */
#define R_NO_REMAP
#define STRICT_R_HEADERS
#include "targets.h"
#include <R.h>
#include <Rinternals.h>
#include <math.h>

typedef struct {
  int d;
  const double *mean;    /* d, inside the R object */
  const double *sd;      /* d, inside the R object */
  double log_normaliser; /* of the whole density */
} gaussian;

void *target_gaussian_init(SEXP data) {
  if (!Rf_isNewList(data) || Rf_length(data) != 2)
    Rf_error("`data` must be a list of 2");
  SEXP mean = VECTOR_ELT(data, 0), sd = VECTOR_ELT(data, 1);
  gaussian *g = (gaussian *)R_alloc(1, sizeof *g);
  if (Rf_length(mean) != Rf_length(sd))
    Rf_error("`mean` and `sd` must have the same length");
  g->d = Rf_length(mean);
  g->mean = REAL(mean);
  g->sd = REAL(sd);
  g->log_normaliser = g->d * TARGET_LOG_SQRT_2PI;
  for (int i = 0; i < g->d; i++)
    g->log_normaliser += log(g->sd[i]);
  return g;
}

/* Dividing by sd twice, not by its square, keeps extreme scales in range. */
static double gaussian_point(const gaussian *g, const double *x, double *grad) {
  double sum = 0;
  for (int i = 0; i < g->d; i++) {
    double z = (x[i] - g->mean[i]) / g->sd[i];
    sum += z * z;
    if (grad)
      grad[i] = -z / g->sd[i];
  }
  return -sum / 2 - g->log_normaliser;
}

int target_gaussian(void *data, int d, int n, const double *x, double *logp,
                    double *grad) {
  const gaussian *g = data;
  if (!g)
    return TARGET_NO_CONTEXT;
  if (d != g->d)
    return TARGET_BAD_DIM;
  for (int k = 0; k < n; k++) {
    size_t at = target_column(d, k);
    logp[k] = gaussian_point(g, x + at, grad ? grad + at : NULL);
  }
  return 0;
}
