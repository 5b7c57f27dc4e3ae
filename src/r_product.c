/* r_product.c: products of R's matrices by product.c, for R code that makes
 * many of them: R's own BLAS is slow. They are matrices of doubles that fit. */
#include "product.h"
#include "r_interface.h"

#include <string.h>

/* Rows of the factors of a cross product that are taken at once: a sum over
 * many points would need scratch for all of them. */
enum { MOST_ROWS = 1024 };

static double *take(size_t n) { return (double *)R_alloc(n, sizeof(double)); }

/* a b */
SEXP r_multiply(SEXP a, SEXP b) {
  smc_matrix by = {.x = REAL(a), .rows = Rf_nrows(a), .columns = Rf_ncols(a)};
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, by.rows, Rf_ncols(b)));
  smc_multiply(&by, Rf_ncols(b), REAL(b), take(smc_product_scratch(&by)),
               REAL(out));
  UNPROTECT(1);
  return out;
}

/* part: out, rows first ... first + n - 1 of x. */
static void copy_rows(SEXP x, int first, int n, double *part) {
  int columns = Rf_ncols(x), rows = Rf_nrows(x);
  for (int j = 0; j < columns; j++)
    memcpy(part + (R_xlen_t)n * j, REAL(x) + (R_xlen_t)rows * j + first,
           (size_t)n * sizeof(double));
}

/* a' b */
SEXP r_cross_product(SEXP a, SEXP b) {
  int rows = Rf_nrows(a), most = rows < MOST_ROWS ? rows : MOST_ROWS;
  smc_matrix by = {.rows = Rf_ncols(a), .columns = most, .transposed = true};
  int columns = Rf_ncols(b);
  size_t size = (size_t)by.rows * (size_t)columns;
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, by.rows, columns));
  memset(REAL(out), 0, size * sizeof(double));
  double *part_of_a = take((size_t)most * (size_t)by.rows);
  double *part_of_b = take((size_t)most * (size_t)columns);
  double *product = take(size), *scratch = take(smc_product_scratch(&by));
  by.x = part_of_a;
  for (int first = 0; first < rows; first += most) {
    by.columns = rows - first < most ? rows - first : most;
    copy_rows(a, first, by.columns, part_of_a);
    copy_rows(b, first, by.columns, part_of_b);
    smc_multiply(&by, columns, part_of_b, scratch, product);
    for (size_t i = 0; i < size; i++)
      REAL(out)[i] += product[i];
  }
  UNPROTECT(1);
  return out;
}
