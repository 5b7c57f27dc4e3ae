/* r_target.c: targets as R functions and as compiled routines. */
#include "r_interface.h"

#include <string.h>

/* beginning and end ------------------------------------------------------- */

static DL_FUNC routine(SEXP list, const char *name) {
  SEXP symbol = r_element(list, name);
  return symbol == R_NilValue ? NULL : R_ExternalPtrAddrFn(symbol);
}

void r_target_begin(r_target *target, SEXP list) {
  memset(target, 0, sizeof *target);
  target->evaluate = r_element(list, "evaluate");
  if (target->evaluate != R_NilValue)
    return;
  target->native =
      (autosmc_target_fn)(void (*)(void))routine(list, "log_density");
  target->release =
      (autosmc_release_fn)(void (*)(void))routine(list, "release");
  autosmc_init_fn init = (autosmc_init_fn)(void (*)(void))routine(list, "init");
  if (init) {
    target->context = init(r_element(list, "data"));
    target->has_context = 1;
  }
}

void r_target_end(r_target *target) {
  if (target->has_context && target->release)
    target->release(target->context);
  target->has_context = 0;
}

/* R functions ------------------------------------------------------------- */

/* Copy an n x d (or n) result of the R function, whose shape R has checked. */
static void take_result(SEXP result, const char *name, int d, int n,
                        double *out) {
  SEXP value = r_element(result, name);
  if (!Rf_isReal(value) || XLENGTH(value) != (R_xlen_t)d * n)
    Rf_error("internal error: `%s` of the target has a wrong shape", name);
  r_transpose(n, d, REAL(value), out);
}

static void evaluate_function(SEXP evaluate, int d, int n, const double *x,
                              double *logp, double *grad) {
  SEXP points = PROTECT(Rf_allocMatrix(REALSXP, n, d));
  r_transpose(d, n, x, REAL(points));
  SEXP gradient = PROTECT(Rf_ScalarLogical(grad != NULL));
  SEXP call = PROTECT(Rf_lang3(evaluate, points, gradient));
  SEXP result = PROTECT(Rf_eval(call, R_GlobalEnv));
  take_result(result, "log_density", 1, n, logp);
  if (grad)
    take_result(result, "gradient", d, n, grad);
  UNPROTECT(4);
}

/* evaluation -------------------------------------------------------------- */

int r_target_evaluate(void *data, int d, int n, const double *x, double *logp,
                      double *grad) {
  const r_target *target = data;
  if (target->native)
    return target->native(target->context, d, n, x, logp, grad);
  evaluate_function(target->evaluate, d, n, x, logp, grad);
  return 0;
}
