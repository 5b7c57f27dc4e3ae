/* r_estimates.c: the bridge, and the tails of draws. */
#include "bridge.h"
#include "pareto.h"
#include "r_interface.h"

#include <math.h>

static smc_groups groups_of(SEXP groups) {
  const int *group = INTEGER(groups);
  bool any = XLENGTH(groups) > 0;
  int first = any ? group[0] : 1, last = any ? group[0] : 0;
  for (R_xlen_t k = 0; k < XLENGTH(groups); k++) {
    first = group[k] < first ? group[k] : first;
    last = group[k] > last ? group[k] : last;
  }
  return (smc_groups){group, first, last - first + 1};
}

/* list(log_z, variance) of smc_bridge(). origins, islands: integers. */
SEXP r_bridge(SEXP log_y, SEXP log_x, SEXP w, SEXP origins, SEXP islands) {
  static const char *const names[] = {"log_z", "variance"};
  smc_bridge_draws draws = {.n_y = Rf_length(log_y),
                            .n_x = Rf_length(log_x),
                            .log_y = REAL(log_y),
                            .log_x = REAL(log_x),
                            .w = REAL(w),
                            .origins = groups_of(origins),
                            .islands = groups_of(islands)};
  size_t room = (size_t)draws.n_y + (size_t)draws.n_x +
                (size_t)draws.origins.n + (size_t)draws.islands.n;
  double *scratch = (double *)R_alloc(room, sizeof(double));
  smc_bridge_estimate estimate = smc_bridge(&draws, scratch);
  SEXP result = PROTECT(r_new_list(names, 2));
  SET_VECTOR_ELT(result, 0, Rf_ScalarReal(estimate.log_z));
  SET_VECTOR_ELT(result, 1, Rf_ScalarReal(estimate.variance));
  UNPROTECT(1);
  return result;
}

/* The shape of one tail of some rows of a column of numbers: the upper one, or
 * with sign -1 the lower one. */
static double tail_shape(const double *x, double sign, SEXP rows, SEXP w,
                         SEXP n_draws, SEXP part, SEXP level,
                         smc_weighted *values) {
  int n = Rf_length(rows);
  for (int k = 0; k < n; k++) {
    values[k].x = sign * x[INTEGER(rows)[k] - 1];
    values[k].w = REAL(w)[k];
    if (!R_FINITE(values[k].x))
      return R_NaN;
  }
  return smc_tail_shape(n, values, Rf_asReal(part), Rf_asReal(n_draws),
                        Rf_asReal(level));
}

/* For each column of x, some rows of which have weights, the shape of the upper
 * tail, or of the heavier one of both: see smc_tail_shape(). n_draws: how many
 * independent draws they are worth. NaN where none is known. */
SEXP r_tail_shapes(SEXP x, SEXP rows, SEXP w, SEXP n_draws, SEXP part,
                   SEXP level, SEXP both) {
  int d = Rf_ncols(x), n = Rf_length(rows);
  smc_weighted *values =
      (smc_weighted *)R_alloc((size_t)n, sizeof(smc_weighted));
  SEXP shapes = PROTECT(Rf_allocVector(REALSXP, d));
  for (int j = 0; j < d; j++) {
    R_CheckUserInterrupt();
    const double *column = REAL(x) + (R_xlen_t)Rf_nrows(x) * j;
    double shape = R_NaN;
    for (int sign = Rf_asLogical(both) ? -1 : 1; sign < 2; sign += 2)
      shape = fmax(shape, tail_shape(column, sign, rows, w, n_draws, part,
                                     level, values)); /* which may be NaN */
    REAL(shapes)[j] = shape;
  }
  UNPROTECT(1);
  return shapes;
}
