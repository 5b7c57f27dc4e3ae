/* r_product.c: products of R's matrices by product.c, for R code that makes many
 * of them: R's own BLAS is slow. */
#include "product.h"
#include "r_interface.h"

/* a b, or where `transposed` is TRUE, a' b; both are matrices of doubles that
 * fit. */
SEXP r_multiply(SEXP a, SEXP b, SEXP transposed) {
  smc_matrix by = {.x = REAL(a),
                   .rows = Rf_nrows(a),
                   .columns = Rf_ncols(a),
                   .transposed = Rf_asLogical(transposed) == TRUE};
  if (by.transposed) {
    by.rows = Rf_ncols(a);
    by.columns = Rf_nrows(a);
  }
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, by.rows, Rf_ncols(b)));
  double *scratch = (double *)R_alloc(smc_product_scratch(&by), sizeof(double));
  smc_multiply(&by, Rf_ncols(b), REAL(b), scratch, REAL(out));
  UNPROTECT(1);
  return out;
}
