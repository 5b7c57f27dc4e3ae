/* election.c: the log density of posteriordb's election88_full and its
 * gradient.
 *
 * A logistic regression with five batches of varying intercepts. Voters with
 * the same predictors are one cell. */
#include <Rinternals.h>
#include <autosmc.h>
#include <math.h>
#include <string.h>

enum { BATCHES = 5, SLOPES = 5 };

typedef struct {
  int n_cells;
  const int *start;     /* BATCHES + 1: where the intercepts of a batch begin */
  const int *intercept; /* BATCHES x n_cells: those of a cell, from 0 */
  const double *x;      /* SLOPES x n_cells */
  const double *n;      /* n_cells: voters */
  const double *yes;    /* n_cells: those of them with y = 1 */
  double *no_gradient;  /* where a gradient goes that is not wanted */
} election;

void *election_init(SEXP data) {
  election *m = (election *)R_alloc(1, sizeof *m);
  m->n_cells = Rf_length(VECTOR_ELT(data, 3));
  m->start = INTEGER(VECTOR_ELT(data, 0));
  m->intercept = INTEGER(VECTOR_ELT(data, 1));
  m->x = REAL(VECTOR_ELT(data, 2));
  m->n = REAL(VECTOR_ELT(data, 3));
  m->yes = REAL(VECTOR_ELT(data, 4));
  m->no_gradient = (double *)R_alloc(
      (size_t)(m->start[BATCHES] + SLOPES + BATCHES), sizeof(double));
  return m;
}

/* A batch is normal with scale 100 p, where u is the logit of p. Returns its
 * log density with the Jacobian; sets the gradients by z and u. */
static double batch(int n, const double *z, double u, double *gz, double *gu) {
  const double p = 1 / (1 + exp(-u)), scale = 100 * p;
  double squares = 0;
  for (int i = 0; i < n; i++) {
    squares += z[i] * z[i] / (scale * scale);
    gz[i] = -z[i] / (scale * scale);
  }
  *gu = (squares - n) * (1 - p) + 1 - 2 * p;
  return -n * log(scale) - squares / 2 + log(p) + log1p(-p);
}

/* The log likelihood of the cells; adds to the gradient. */
static double cells(const election *m, const double *x, double *g) {
  const double *slope = x + m->start[BATCHES];
  double *g_slope = g + m->start[BATCHES];
  double log_likelihood = 0;
  for (int c = 0; c < m->n_cells; c++) {
    const int *intercept = m->intercept + (size_t)BATCHES * c;
    const double *x_of = m->x + (size_t)SLOPES * c;
    double eta = 0;
    for (int b = 0; b < BATCHES; b++)
      eta += x[intercept[b]];
    for (int s = 0; s < SLOPES; s++)
      eta += slope[s] * x_of[s];
    const double log_1p_exp =
        eta > 0 ? eta + log1p(exp(-eta)) : log1p(exp(eta));
    const double residual = m->yes[c] - m->n[c] / (1 + exp(-eta));
    log_likelihood += m->yes[c] * eta - m->n[c] * log_1p_exp;
    for (int b = 0; b < BATCHES; b++)
      g[intercept[b]] += residual;
    for (int s = 0; s < SLOPES; s++)
      g_slope[s] += residual * x_of[s];
  }
  return log_likelihood;
}

int election_density(void *data, int d, int n, const double *x, double *logp,
                     double *grad) {
  const election *m = data;
  const int first_slope = m->start[BATCHES], first_scale = first_slope + SLOPES;
  for (int k = 0; k < n; k++, x += d) {
    double *g = grad ? grad + (size_t)d * k : m->no_gradient;
    logp[k] = 0;
    for (int b = 0; b < BATCHES; b++) {
      const int i = m->start[b];
      logp[k] += batch(m->start[b + 1] - i, x + i, x[first_scale + b], g + i,
                       g + first_scale + b);
    }
    for (int i = first_slope; i < first_scale; i++) {
      logp[k] -= x[i] * x[i] / 2e4;
      g[i] = -x[i] / 1e4;
    }
    logp[k] += cells(m, x, g);
  }
  return 0;
}
