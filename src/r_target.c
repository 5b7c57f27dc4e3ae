/* r_target.c: targets as R functions and as compiled routines. */
#include "r_border.h"

#include <string.h>

SEXP r_element(SEXP list, const char *name) {
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  for (R_xlen_t i = 0; i < Rf_xlength(list); i++)
    if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0)
      return VECTOR_ELT(list, i);
  return R_NilValue;
}

void r_transpose(int rows, int columns, const double *in, double *out) {
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < rows; i++)
      out[j + (R_xlen_t)columns * i] = in[i + (R_xlen_t)rows * j];
}

/* steps ------------------------------------------------------------------- */

/* Tell R which step is under way, with what is known of the one before. */
static void tell_step(r_target *target) {
  const smc_trace *trace = target->trace;
  if (target->on_step == R_NilValue || trace->step == target->last_step)
    return;
  target->last_step = trace->step;
  int done = trace->n_done;
  int now = trace->step;
  SEXP step = PROTECT(Rf_ScalarInteger(now));
  SEXP lambda = PROTECT(Rf_ScalarReal(now ? trace->lambda[now - 1] : 0.0));
  SEXP ess = PROTECT(Rf_ScalarReal(done ? trace->ess[done - 1] : NA_REAL));
  SEXP log_z = PROTECT(Rf_ScalarReal(done ? trace->log_z[done - 1] : 0.0));
  SEXP call = PROTECT(Rf_lang5(target->on_step, step, lambda, ess, log_z));
  Rf_eval(call, R_GlobalEnv);
  UNPROTECT(5);
}

/* beginning and end ------------------------------------------------------- */

static DL_FUNC routine(SEXP list, const char *name) {
  SEXP symbol = r_element(list, name);
  return symbol == R_NilValue ? NULL : R_ExternalPtrAddrFn(symbol);
}

static void read_bounds(r_target *target, SEXP list, int n) {
  SEXP lower = r_element(list, "lower"), upper = r_element(list, "upper");
  if (lower == R_NilValue)
    return;
  target->bounds = (smc_bounds){REAL(lower), REAL(upper)};
  target->x =
      (double *)R_alloc((size_t)XLENGTH(lower) * (size_t)n, sizeof(double));
}

void r_target_begin(r_target *target, SEXP list, int n, SEXP on_step,
                    const smc_trace *trace) {
  memset(target, 0, sizeof *target);
  read_bounds(target, list, n);
  target->evaluate = r_element(list, "evaluate");
  target->on_step = on_step;
  target->trace = trace;
  target->last_step = -1;
  if (target->evaluate != R_NilValue)
    return;
  target->native =
      (autosmc_target_fn)(void (*)(void))routine(list, "log_density");
  target->release =
      (autosmc_release_fn)(void (*)(void))routine(list, "release");
  tell_step(target); /* from here on, errors are the target's */
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

static int evaluate_on_users_scale(const r_target *target, int d, int n,
                                   const double *x, double *logp,
                                   double *grad) {
  if (target->native)
    return target->native(target->context, d, n, x, logp, grad);
  evaluate_function(target->evaluate, d, n, x, logp, grad);
  return 0;
}

int r_target_evaluate(void *data, int d, int n, const double *u, double *logp,
                      double *grad) {
  r_target *target = data;
  R_CheckUserInterrupt();
  tell_step(target);
  if (!target->x)
    return evaluate_on_users_scale(target, d, n, u, logp, grad);
  smc_constrain(target->bounds, d, n, u, target->x);
  int code = evaluate_on_users_scale(target, d, n, target->x, logp, grad);
  if (!code)
    smc_pull_back(target->bounds, d, n, u, logp, grad);
  return code;
}
