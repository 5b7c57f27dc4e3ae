/* r_columns.c: what R code does again and again with the columns of matrices of
 * draws, a row a draw, in one pass and without copies of them. All matrices are
 * of doubles. */
#include "r_interface.h"

#include <math.h>
#include <string.h>

static const double *column(SEXP x, int j) {
  return REAL(x) + (R_xlen_t)Rf_nrows(x) * j;
}

/* A vector with an element for each column of x, and its names. */
static SEXP new_row(SEXP x) {
  SEXP row = PROTECT(Rf_allocVector(REALSXP, Rf_ncols(x)));
  SEXP names = Rf_getAttrib(x, R_DimNamesSymbol);
  if (names != R_NilValue)
    Rf_setAttrib(row, R_NamesSymbol, VECTOR_ELT(names, 1));
  UNPROTECT(1);
  return row;
}

/* sweeps ------------------------------------------------------------------ */

static void sweep_column(char op, int n, const double *x, double by,
                         double *out) {
  switch (op) {
  case '-':
    for (int i = 0; i < n; i++)
      out[i] = x[i] - by;
    break;
  case '+':
    for (int i = 0; i < n; i++)
      out[i] = x[i] + by;
    break;
  case '*':
    for (int i = 0; i < n; i++)
      out[i] = x[i] * by;
    break;
  default:
    for (int i = 0; i < n; i++)
      out[i] = x[i] / by;
  }
}

/* x, with `by` (an element a column) taken from it or added, or times or over
 * it: op is "-", "+", "*" or "/". */
SEXP r_sweep(SEXP x, SEXP by, SEXP op) {
  int n = Rf_nrows(x), d = Rf_ncols(x);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, n, d));
  for (int j = 0; j < d; j++)
    sweep_column(CHAR(STRING_ELT(op, 0))[0], n, column(x, j), REAL(by)[j],
                 REAL(out) + (R_xlen_t)n * j);
  Rf_setAttrib(out, R_DimNamesSymbol, Rf_getAttrib(x, R_DimNamesSymbol));
  UNPROTECT(1);
  return out;
}

/* sums -------------------------------------------------------------------- */

/* The sums of the columns of w x, or of w x^2; added up as R's colSums() does.
 */
SEXP r_weighted_sums(SEXP x, SEXP w, SEXP squared) {
  int n = Rf_nrows(x), d = Rf_ncols(x), of_squares = Rf_asLogical(squared);
  SEXP sums = PROTECT(new_row(x));
  for (int j = 0; j < d; j++) {
    const double *at = column(x, j), *weight = REAL(w);
    long double sum = 0.0;
    for (int i = 0; i < n; i++)
      sum += weight[i] * (of_squares ? at[i] * at[i] : at[i]);
    REAL(sums)[j] = (double)sum;
  }
  UNPROTECT(1);
  return sums;
}

/* The sum of terms over its standard error, where those of a group count as one
 * draw; 0 where there is no error. sums: scratch, one for each group; shares:
 * the groups' weights. */
static double t_value(int n, const double *terms, const double *w,
                      const int *group, int n_groups, const double *shares,
                      double *sums) {
  double mean = 0.0, square = 0.0;
  memset(sums, 0, (size_t)n_groups * sizeof(double));
  for (int i = 0; i < n; i++)
    sums[group[i] - 1] += w[i] * terms[i];
  for (int g = 0; g < n_groups; g++)
    mean += sums[g];
  for (int g = 0; g < n_groups; g++) {
    double off = sums[g] - shares[g] * mean;
    square += off * off;
  }
  return square > 0.0 ? mean / sqrt(square) : 0.0;
}

static const double *add_one_to_products(int n, const double *x,
                                         const double *y, double *out) {
  for (int i = 0; i < n; i++)
    out[i] = x[i] * y[i] + 1.0;
  return out;
}

/* For each column of x the weighted mean of x y + 1, over its standard error;
 * or where y is NULL, of x. w: weights, of sum 1; group: 1, 2, ..., that of
 * each row. */
SEXP r_t_values(SEXP x, SEXP y, SEXP w, SEXP group) {
  int n = Rf_nrows(x), d = Rf_ncols(x), n_groups = 0;
  for (int i = 0; i < n; i++)
    if (INTEGER(group)[i] > n_groups)
      n_groups = INTEGER(group)[i];
  double *products = (double *)R_alloc((size_t)n, sizeof(double));
  double *sums = (double *)R_alloc((size_t)n_groups, sizeof(double));
  double *shares = (double *)R_alloc((size_t)n_groups, sizeof(double));
  memset(shares, 0, (size_t)n_groups * sizeof(double));
  for (int i = 0; i < n; i++)
    shares[INTEGER(group)[i] - 1] += REAL(w)[i];
  SEXP t = PROTECT(Rf_allocVector(REALSXP, d));
  for (int j = 0; j < d; j++) {
    const double *terms = column(x, j);
    if (y != R_NilValue)
      terms = add_one_to_products(n, terms, column(y, j), products);
    REAL(t)
    [j] = t_value(n, terms, REAL(w), INTEGER(group), n_groups, shares, sums);
  }
  UNPROTECT(1);
  return t;
}

/* quasi-Newton steps ------------------------------------------------------ */

static double dot(int n, const double *x, const double *y) {
  long double sum = 0.0; /* as in R's sum() */
  for (int i = 0; i < n; i++) {
    double product = x[i] * y[i];
    sum += product;
  }
  return (double)sum;
}

/* H g, by the two loops of limited-memory BFGS: alpha, the diagonal that H has
 * without the pairs of differences, which are columns of s and of y. */
SEXP r_inverse_hessian_times(SEXP alpha, SEXP s, SEXP y, SEXP g) {
  int d = Rf_nrows(s), n_pairs = Rf_ncols(s);
  double *rho = (double *)R_alloc((size_t)n_pairs, sizeof(double));
  double *back = (double *)R_alloc((size_t)n_pairs, sizeof(double));
  SEXP out = PROTECT(Rf_duplicate(g));
  double *at = REAL(out);
  for (int j = n_pairs - 1; j >= 0; j--) {
    rho[j] = 1.0 / dot(d, column(s, j), column(y, j));
    back[j] = rho[j] * dot(d, column(s, j), at);
    for (int i = 0; i < d; i++)
      at[i] -= back[j] * column(y, j)[i];
  }
  for (int i = 0; i < d; i++)
    at[i] *= REAL(alpha)[i];
  for (int j = 0; j < n_pairs; j++) {
    double forth = rho[j] * dot(d, column(y, j), at);
    for (int i = 0; i < d; i++)
      at[i] += (back[j] - forth) * column(s, j)[i];
  }
  UNPROTECT(1);
  return out;
}
