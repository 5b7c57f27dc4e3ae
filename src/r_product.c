/* r_product.c: products of R's matrices by product.c, for R code that makes
 * many of them: R's own BLAS is slow. They are matrices of doubles that fit. */
#include "product.h"
#include "r_interface.h"

#include <string.h>

/* Rows that are taken at once: of the factors of a cross product, since a sum
 * over many points would need scratch for all of them, or of x; and points, so
 * that the user's interrupts are looked for between them. */
enum { MOST_ROWS = 1024, MOST_POINTS = 512 };

static double *take(size_t n) { return (double *)R_alloc(n, sizeof(double)); }

/* smc_multiply(), which it is to the last bit, for a matrix that may be large.
 */
static void multiply(const smc_matrix *a, int n, const double *x,
                     double *scratch, double *out) {
  for (int k = 0; k < n; k += MOST_POINTS) {
    R_CheckUserInterrupt();
    smc_multiply(a, n - k < MOST_POINTS ? n - k : MOST_POINTS,
                 x + (size_t)a->columns * (size_t)k, scratch,
                 out + (size_t)a->rows * (size_t)k);
  }
}

/* a b */
SEXP r_multiply(SEXP a, SEXP b) {
  smc_matrix by = {.x = REAL(a), .rows = Rf_nrows(a), .columns = Rf_ncols(a)};
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, by.rows, Rf_ncols(b)));
  multiply(&by, Rf_ncols(b), REAL(b),
           take(smc_product_scratch(&by, Rf_ncols(b))), REAL(out));
  UNPROTECT(1);
  return out;
}

/* out: n rows of x, those with the numbers rows, from 1, or from the first on,
 * less `centre` where this is not NULL. */
static void centre_rows(SEXP x, const int *rows, R_xlen_t first, int n,
                        const double *centre, double *out) {
  for (int j = 0; j < Rf_ncols(x); j++) {
    const double *at = REAL(x) + (R_xlen_t)Rf_nrows(x) * j;
    double middle = centre ? centre[j] : 0.0;
    for (int i = 0; i < n; i++)
      *out++ = at[rows ? rows[first + i] - 1 : first + i] - middle;
  }
}

/* (x - centre) b, of some rows of x, or where rows is NULL, of all, without a
 * copy of them; centre may be NULL. */
SEXP r_multiply_rows(SEXP x, SEXP rows, SEXP centre, SEXP b) {
  const int *numbers = rows == R_NilValue ? NULL : INTEGER(rows);
  const double *middle = centre == R_NilValue ? NULL : REAL(centre);
  int n = numbers ? Rf_length(rows) : Rf_nrows(x), columns = Rf_ncols(b);
  smc_matrix by = {.columns = Rf_ncols(x)};
  double *part = take((size_t)MOST_ROWS * (size_t)by.columns);
  double *product = take((size_t)MOST_ROWS * (size_t)columns);
  double *scratch = take(smc_product_scratch(&by, columns));
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, n, columns));
  by.x = part;
  for (int first = 0; first < n; first += by.rows) {
    by.rows = n - first < MOST_ROWS ? n - first : MOST_ROWS;
    centre_rows(x, numbers, first, by.rows, middle, part);
    multiply(&by, columns, REAL(b), scratch, product);
    for (int j = 0; j < columns; j++)
      memcpy(REAL(out) + (R_xlen_t)n * j + first,
             product + (R_xlen_t)by.rows * j, (size_t)by.rows * sizeof(double));
  }
  UNPROTECT(1);
  return out;
}

/* Rows first ... first + n - 1 of x, in part where these are not all. */
static const double *take_rows(SEXP x, int first, int n, double *part) {
  int columns = Rf_ncols(x), rows = Rf_nrows(x);
  if (n == rows)
    return REAL(x);
  for (int j = 0; j < columns; j++)
    memcpy(part + (R_xlen_t)n * j, REAL(x) + (R_xlen_t)rows * j + first,
           (size_t)n * sizeof(double));
  return part;
}

/* x: a symmetric matrix of d rows, of which what is below the diagonal is made
 * what is above. */
static void mirror(int d, double *x) {
  for (int j = 1; j < d; j++)
    for (int i = 0; i < j; i++)
      x[(R_xlen_t)d * i + j] = x[(R_xlen_t)d * j + i];
}

/* a' b */
SEXP r_cross_product(SEXP a, SEXP b) {
  int rows = Rf_nrows(a), columns = Rf_ncols(b);
  int most = rows < MOST_ROWS ? rows : MOST_ROWS;
  size_t copied = rows > most ? (size_t)most : 0;
  smc_matrix by = {.rows = Rf_ncols(a), .columns = most, .transposed = true};
  by.of_points = a == b;
  size_t size = (size_t)by.rows * (size_t)columns;
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, by.rows, columns));
  memset(REAL(out), 0, size * sizeof(double));
  double *part_of_a = take(copied * (size_t)by.rows);
  double *part_of_b = take(a == b ? 0 : copied * (size_t)columns);
  double *product = take(size),
         *scratch = take(smc_product_scratch(&by, columns));
  memset(product, 0, size * sizeof(double));
  for (int first = 0; first < rows; first += most) {
    R_CheckUserInterrupt();
    by.columns = rows - first < most ? rows - first : most;
    by.x = take_rows(a, first, by.columns, part_of_a);
    const double *points =
        a == b ? by.x : take_rows(b, first, by.columns, part_of_b);
    smc_multiply(&by, columns, points, scratch, product);
    for (size_t i = 0; i < size; i++)
      REAL(out)[i] += product[i];
  }
  if (a == b)
    mirror(by.rows, REAL(out));
  UNPROTECT(1);
  return out;
}
