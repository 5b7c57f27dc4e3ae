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

/* rows -------------------------------------------------------------------- */

static char *address(SEXP x) {
  return Rf_isReal(x) ? (char *)REAL(x) : (char *)INTEGER(x);
}

/* The rows of y, a matrix or a vector, over those of x from `first` on. */
static void put_rows(SEXP x, double first, SEXP y) {
  size_t size = Rf_isReal(x) ? sizeof(double) : sizeof(int);
  size_t rows = (size_t)Rf_nrows(x), n = (size_t)Rf_nrows(y);
  if (TYPEOF(x) != TYPEOF(y) || !(Rf_isReal(x) || Rf_isInteger(x)))
    Rf_error("internal error: rows of another type");
  if (Rf_ncols(x) != Rf_ncols(y) ||
      !(first >= 0.0 && first + (double)n <= (double)rows))
    Rf_error("internal error: no room for these rows");
  char *to = address(x) + size * (size_t)first;
  const char *from = address(y);
  for (int j = 0; j < Rf_ncols(x); j++)
    memcpy(to + size * rows * (size_t)j, from + size * n * (size_t)j, size * n);
}

/* Writes the rows of y, a matrix or a vector, over those of x from `first` on,
 * counted from 0. x is changed in place: nobody else may hold it. Returns x. */
SEXP r_put_rows(SEXP x, SEXP first, SEXP y) {
  put_rows(x, Rf_asReal(first), y);
  return x;
}

/* A matrix, or a vector, with n rows, of which the first are those of x. The
 * others are not written, so that they take no memory until they are. */
SEXP r_with_room(SEXP x, SEXP n) {
  R_xlen_t rows = (R_xlen_t)Rf_asReal(n);
  SEXP names = Rf_getAttrib(x, R_DimNamesSymbol);
  double length = (double)rows * (Rf_isMatrix(x) ? Rf_ncols(x) : 1);
  SEXP out = PROTECT(r_try_allocate(TYPEOF(x), length));
  if (out == R_NilValue)
    r_lack_memory(length * sizeof(double));
  if (Rf_isMatrix(x)) {
    SEXP dim = PROTECT(Rf_allocVector(INTSXP, 2));
    INTEGER(dim)[0] = (int)rows;
    INTEGER(dim)[1] = Rf_ncols(x);
    Rf_setAttrib(out, R_DimSymbol, dim);
    UNPROTECT(1);
  }
  if (names != R_NilValue)
    r_name_columns(out, VECTOR_ELT(names, 1));
  put_rows(out, 0.0, x);
  UNPROTECT(1);
  return out;
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
  for (int j = 0; j < d; j++) {
    R_CheckUserInterrupt();
    sweep_column(CHAR(STRING_ELT(op, 0))[0], n, column(x, j), REAL(by)[j],
                 REAL(out) + (R_xlen_t)n * j);
  }
  Rf_setAttrib(out, R_DimNamesSymbol, Rf_getAttrib(x, R_DimNamesSymbol));
  UNPROTECT(1);
  return out;
}

/* w (x - centre), of some rows of x, with the numbers given, from 1; NULL for
 * all. centre: an element a column of x; w: one a row of what is returned. */
SEXP r_scaled_rows(SEXP x, SEXP rows, SEXP centre, SEXP w) {
  const int *row = rows == R_NilValue ? NULL : INTEGER(rows);
  int n = row ? Rf_length(rows) : Rf_nrows(x), d = Rf_ncols(x);
  const double *weight = REAL(w);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, n, d));
  double *to = REAL(out);
  for (int j = 0; j < d; j++) {
    const double *from = column(x, j);
    R_CheckUserInterrupt();
    for (int i = 0; i < n; i++)
      *to++ = weight[i] * (from[row ? row[i] - 1 : i] - REAL(centre)[j]);
  }
  UNPROTECT(1);
  return out;
}

/* sums -------------------------------------------------------------------- */

/* The sum of w (x - centre), or of w (x - centre)^2, over n elements of a
 * column, which are the first ones where rows is NULL; added up as R's
 * colSums() does. */
static double weighted_sum(R_xlen_t n, const double *x, const int *rows,
                           const double *w, double centre, int of_squares) {
  long double sum = 0.0;
  for (R_xlen_t i = 0; i < n; i++) {
    double off = x[rows ? rows[i] - 1 : i] - centre;
    sum += w[i] * (of_squares ? off * off : off);
  }
  return (double)sum;
}

/* These sums for each column. w: a weight for each of the rows, which count
 * from 1; centre, rows: may be NULL, for 0 and for all rows. */
SEXP r_weighted_sums(SEXP x, SEXP w, SEXP squared, SEXP centre, SEXP rows) {
  const int *row = rows == R_NilValue ? NULL : INTEGER(rows);
  R_xlen_t n = row ? XLENGTH(rows) : Rf_nrows(x);
  int of_squares = Rf_asLogical(squared);
  SEXP sums = PROTECT(new_row(x));
  double *sum = REAL(sums);
  for (int j = 0; j < Rf_ncols(x); j++) {
    double middle = centre == R_NilValue ? 0.0 : REAL(centre)[j];
    R_CheckUserInterrupt();
    sum[j] = weighted_sum(n, column(x, j), row, REAL(w), middle, of_squares);
  }
  UNPROTECT(1);
  return sums;
}

/* weights ----------------------------------------------------------------- */

static double largest_of(R_xlen_t n, const double *x) {
  double largest = R_NegInf;
  for (R_xlen_t i = 0; i < n; i++)
    if (x[i] > largest || isnan(x[i]))
      largest = x[i];
  return largest;
}

/* list(rows, w): of log weights those that are more than the part `least` of
 * the largest, and their weights, of sum 1. None where one is no number. */
SEXP r_weighty_rows(SEXP log_weights, SEXP least) {
  static const char *const names[] = {"rows", "w"};
  const double *x = REAL(log_weights), part = Rf_asReal(least);
  R_xlen_t n = XLENGTH(log_weights), n_kept = 0;
  double largest = largest_of(n, x);
  SEXP result = PROTECT(r_new_list(names, 2));
  for (R_xlen_t i = 0; i < n; i++)
    n_kept += exp(x[i] - largest) > part;
  SET_VECTOR_ELT(result, 0, Rf_allocVector(INTSXP, n_kept));
  SET_VECTOR_ELT(result, 1, Rf_allocVector(REALSXP, n_kept));
  int *rows = INTEGER(VECTOR_ELT(result, 0));
  double *w = REAL(VECTOR_ELT(result, 1));
  long double sum = 0.0;
  for (R_xlen_t i = 0, k = 0; k < n_kept; i++) {
    double weight = exp(x[i] - largest);
    if (weight > part) {
      rows[k] = (int)i + 1;
      w[k++] = weight;
      sum += weight;
    }
  }
  for (R_xlen_t k = 0; k < n_kept; k++)
    w[k] /= (double)sum;
  UNPROTECT(1);
  return result;
}

/* groups ------------------------------------------------------------------ */

/* The numbers of the groups that there may be, from the first one on. */
typedef struct range {
  int first, n;
} range;

static range range_of(SEXP groups) {
  const int *group = INTEGER(groups);
  R_xlen_t n = XLENGTH(groups);
  int first = n > 0 ? group[0] : 1, last = n > 0 ? group[0] : 0;
  for (R_xlen_t i = 0; i < n; i++) {
    first = group[i] < first ? group[i] : first;
    last = group[i] > last ? group[i] : last;
  }
  return (range){first, last - first + 1};
}

/* The sum of the squares of what the elements of x in each group add up to; to
 * the last bit that of R's rowsum(). */
SEXP r_concentration(SEXP x, SEXP groups) {
  range all = range_of(groups);
  const int *group = INTEGER(groups);
  const double *part = REAL(x);
  double *sums = (double *)R_alloc((size_t)all.n, sizeof(double));
  memset(sums, 0, (size_t)all.n * sizeof(double));
  for (R_xlen_t i = 0; i < XLENGTH(groups); i++)
    sums[group[i] - all.first] += part[i];
  long double squares = 0.0;
  for (int g = 0; g < all.n; g++) {
    double square = sums[g] * sums[g];
    squares += square;
  }
  return Rf_ScalarReal((double)squares);
}

/* The groups numbered 1, 2, ... in the order in which they appear. */
SEXP r_number_groups(SEXP groups) {
  range all = range_of(groups);
  R_xlen_t n = XLENGTH(groups);
  SEXP numbered = PROTECT(Rf_allocVector(INTSXP, n));
  const int *group = INTEGER(groups);
  int *number = (int *)R_alloc((size_t)all.n, sizeof(int)), last = 0;
  int *out = INTEGER(numbered);
  memset(number, 0, (size_t)all.n * sizeof(int));
  for (R_xlen_t i = 0; i < n; i++) {
    int *own = &number[group[i] - all.first];
    if (*own == 0)
      *own = ++last;
    out[i] = *own;
  }
  UNPROTECT(1);
  return numbered;
}

/* What is averaged, in a row: x y + 1, or where y is NULL, x. */
typedef struct terms {
  const double *x, *y;
  const int *rows; /* the rows of x, from 1; NULL for all: y has as many */
} terms;

static double term(const terms *of, int i) {
  double x = of->x[of->rows ? of->rows[i] - 1 : i];
  return of->y ? x * of->y[i] + 1.0 : x;
}

/* The sum of n terms over its standard error, where those of a group count as
 * one draw; 0 where there is no error. sums: scratch, one for each group;
 * shares: the groups' weights. */
static double t_value(int n, const terms *of, const double *w, const int *group,
                      int n_groups, const double *shares, double *sums) {
  double mean = 0.0, square = 0.0;
  memset(sums, 0, (size_t)n_groups * sizeof(double));
  for (int i = 0; i < n; i++)
    sums[group[i] - 1] += w[i] * term(of, i);
  for (int g = 0; g < n_groups; g++)
    mean += sums[g];
  for (int g = 0; g < n_groups; g++) {
    double off = sums[g] - shares[g] * mean;
    square += off * off;
  }
  return square > 0.0 ? mean / sqrt(square) : 0.0;
}

/* For each column of x the weighted mean of x y + 1, over its standard error;
 * or where y is NULL, of x, at some rows, or where these are NULL, at all. w:
 * weights, of sum 1; group: 1, 2, ..., that of each row. */
SEXP r_t_values(SEXP x, SEXP y, SEXP w, SEXP group, SEXP rows) {
  range all = range_of(group);
  int n = (int)XLENGTH(group), n_groups = all.first + all.n - 1;
  const int *row = rows == R_NilValue ? NULL : INTEGER(rows);
  const int *own = INTEGER(group);
  double *sums = (double *)R_alloc((size_t)n_groups, sizeof(double));
  double *shares = (double *)R_alloc((size_t)n_groups, sizeof(double));
  memset(shares, 0, (size_t)n_groups * sizeof(double));
  for (int i = 0; i < n; i++)
    shares[own[i] - 1] += REAL(w)[i];
  SEXP t = PROTECT(Rf_allocVector(REALSXP, Rf_ncols(x)));
  double *out = REAL(t);
  for (int j = 0; j < Rf_ncols(x); j++) {
    R_CheckUserInterrupt();
    terms of = {column(x, j), y == R_NilValue ? NULL : column(y, j), row};
    out[j] = t_value(n, &of, REAL(w), own, n_groups, shares, sums);
  }
  UNPROTECT(1);
  return t;
}
